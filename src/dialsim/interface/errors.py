"""The one family of errors, and the refusals that the service's interface words itself."""

from __future__ import annotations

from collections.abc import Sequence


class DialsimError(Exception):
    """Anything dialsim raises on purpose; its text names the culprit and how to put it right."""


class Refused(DialsimError):
    """A request that the service refuses, as its error envelope says it (interface, section 7).

    `status` is the HTTP status, `code` the machine code, `errors` every failure of the step that
    failed; `message` is the first of them.
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
        """The first failure, which the interface repeats as `message`."""
        return self.errors[0]
