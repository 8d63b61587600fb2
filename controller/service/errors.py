"""What the running controller refuses or fails at; each is one line with the remedy."""

from controller.errors import BadInputError, BluetreeError, RunFailedError


class AdmissionError(BadInputError):
    """What was asked for does not fit; the text says where, and by how much."""


class UnknownJobError(BadInputError):
    """There is no such job or switch."""


class NotNowError(RunFailedError):
    """The job's phase, or the state of the testbed, does not allow it now."""


class ChangeRefusedError(RunFailedError):
    """A switch refused a change; everything is as it was before."""


class NoTestbedError(BadInputError):
    """No testbed is up in the folder."""


class NetworkKilledError(RunFailedError):
    """The network of the testbed did not end as it should have; its jobs are lost."""


class NoControllerError(RunFailedError):
    """A testbed is up, but no controller serves it."""


class StoreError(BluetreeError):
    """The database of the desired state cannot be used."""
