"""Distributed training as traffic: models, workers that compute and send, parameter servers."""

from traffic.training.models import MODELS, Layer, Model
from traffic.training.schedule import LayerWork, Ordering, Schedule, compress
from traffic.training.server import (
    AggregationServer,
    ParameterServer,
    ParameterServerConfig,
    server,
)
from traffic.training.worker import StepTimes, TrainerConfig, TrainingReport, TrainingWorker

__all__ = [
    "MODELS",
    "AggregationServer",
    "Layer",
    "LayerWork",
    "Model",
    "Ordering",
    "ParameterServer",
    "ParameterServerConfig",
    "Schedule",
    "StepTimes",
    "TrainerConfig",
    "TrainingReport",
    "TrainingWorker",
    "compress",
    "server",
]
