"""Errors of ports."""

from __future__ import annotations

from softswitch.errors import SoftswitchError


class PortError(SoftswitchError):
    """A port cannot be had as asked; the text names the interface and the remedy."""


class PortNameError(PortError):
    """What was written for a port is not one: bad usage, whatever the machine has."""


class QueueSettingError(PortNameError):
    """What is written as the setting of a queue is none."""
