"""What can go wrong with many runs."""

from __future__ import annotations

from dialsim.interface.errors import DialsimError


class ExperimentError(DialsimError):
    """An experiment that was asked for wrongly."""


class ReplicationFailed(DialsimError):
    """A replication that raised an error: which one, and the command that reruns it alone."""

    def __init__(self, seed: int, replication: int, cause: str, rerun: str) -> None:
        super().__init__(
            f"replication {replication} of seed {seed} failed: {cause}; to run it alone: {rerun}"
        )
        self.seed = seed
        self.replication = replication
        self.cause = cause
        self.rerun = rerun

    def __reduce__(self) -> tuple[type[ReplicationFailed], tuple[int, int, str, str]]:
        return type(self), (self.seed, self.replication, self.cause, self.rerun)


class WorkersLost(DialsimError):
    """Worker processes that kept dying without getting anything done."""
