"""The errors of the evaluation: one line each, that names the thing and the remedy."""

__all__ = ["EvaluationError", "MissingError"]


class EvaluationError(ValueError):
    """An option, a text file or an output folder that cannot be used."""


class MissingError(RuntimeError):
    """The machine or the cluster lacks something that the evaluation needs."""
