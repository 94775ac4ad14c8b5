"""Every error that dialsim raises on purpose.

    DialsimError
     ├ ScenarioError         a scenario, a list of recipients or an override has problems
     ├ Refused               the service's interface refuses a request
     │  ├ ValidationFailed   the request fails a step of its checks (400 VALIDATION_FAILED)
     │  └ NotKept            the sandbox cannot write the request to its journal (507 NOT_KEPT)
     ├ ExperimentError       the arguments of an experiment make no sense
     ├ ReplicationFailed     one replication of an experiment raised an error
     ├ WorkersLost           worker processes died again and again without a result
     ├ StoreError            a store of finished replications cannot be used
     ├ OutputError           an output folder cannot be written
     │  └ ExistingOutput     the output folder exists and may not be replaced
     ├ LogError              a file or table is not a log of calls
     ├ ReplayError           a log and a scenario do not fit together
     ├ ServiceError          the service cannot be read (`dialsim pull`)
     ├ JournalError          a journal of the sandbox cannot be used
     └ StudioError           the studio cannot carry out a request

The text of an error names the location, the fault, and what would be right. The command line prints
the text and exits with status 2. Every error survives pickling, because worker processes hand their
errors to the parent process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialsim.interface.model import Fault
    from dialsim.scenario.problems import Problem


class DialsimError(Exception):
    """Base class of every error that dialsim raises on purpose."""


class ScenarioError(DialsimError):
    """Problems of a scenario: `problems` in file order, and one line of text for each."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


class Refused(DialsimError):
    """Refusal of a request, with the contents of the error envelope (interface, section 7).

    `status` is the HTTP status, `code` the machine-readable code, and `errors` the failures of the
    first step of the checks that failed. `message` is the first failure.
    """

    def __init__(self, status: int, code: str, errors: Sequence[str]) -> None:
        super().__init__(errors[0])
        self.status = status
        self.code = code
        self.errors = tuple(errors)

    def __reduce__(self) -> tuple[type[Refused], tuple[object, ...]]:
        return type(self), (self.status, self.code, self.errors)

    @property
    def message(self) -> str:
        """First failure, which the interface repeats as `message`."""
        return self.errors[0]


class ValidationFailed(Refused):
    """Request that fails a step of its checks: 400 `VALIDATION_FAILED` (C9).

    `faults` are the failures of that step, in the order of `errors`.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(400, "VALIDATION_FAILED", [fault.message for fault in self.faults])

    def __reduce__(self) -> tuple[type[ValidationFailed], tuple[object, ...]]:
        return type(self), (self.faults,)


class NotKept(Refused):
    """Request that the sandbox did not carry out because its journal cannot be written."""

    def __init__(self, error: JournalError) -> None:
        self._error = error
        super().__init__(507, "NOT_KEPT", [f"It is not done, as it can't be kept: {error}"])

    def __reduce__(self) -> tuple[type[NotKept], tuple[JournalError]]:
        return type(self), (self._error,)


class ExperimentError(DialsimError):
    """Arguments of an experiment that make no sense."""


class ReplicationFailed(DialsimError):
    """Replication that raised an error, with the command that runs the replication alone."""

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
    """Worker processes that died again and again without a result."""


class StoreError(DialsimError):
    """Store of finished replications that cannot be used."""


class OutputError(DialsimError):
    """Output folder that cannot be written."""


class ExistingOutput(OutputError):
    """Output folder that exists and may not be replaced."""


class LogError(DialsimError):
    """File or table that is not a log of calls."""


class ReplayError(DialsimError):
    """Log and scenario that do not fit together."""


class ServiceError(DialsimError):
    """Service that cannot be read; the text names the request, the fault and the remedy."""


class JournalError(DialsimError):
    """Journal of a sandbox that cannot be used."""


class StudioError(DialsimError):
    """Request that the studio cannot carry out."""
