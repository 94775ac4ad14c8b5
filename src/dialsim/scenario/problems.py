"""Problems of a scenario with their locations, collected until all are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from dialsim.errors import ScenarioError

if TYPE_CHECKING:
    from dialsim.scenario.document import Cursor, Location

MOST_PER_FILE = 100
"""Problems reported per file; further ones are only counted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault: location, and a message that begins with the dotted path.

    `file` is the file's name as given, or the override (`--set seed=x`). Line and column count from
    1, or are None. `path` is "" for the file as a whole.
    """

    file: str
    line: int | None
    column: int | None
    path: str
    message: str

    def __str__(self) -> str:
        location = [self.file, *(str(at) for at in (self.line, self.column) if at is not None)]
        return f"{':'.join(location)}: {self.message}"


@dataclass(frozen=True, slots=True)
class Remark:
    """Warning about a setting that is allowed but probably not intended.

    `organization` is its position, -1 for the whole scenario.
    """

    text: str
    organization: int = -1


class Problems:
    """Problems found so far in a scenario, whose own file is `main`, and in the files it names."""

    def __init__(self, main: str) -> None:
        self._main = main
        self._found: dict[Problem, None] = {}

    def __len__(self) -> int:
        return len(self._found)

    def note(self, problem: Problem) -> None:
        """Add a problem, unless it is known already."""
        self._found[problem] = None

    def add(self, culprit: Cursor, message: str) -> None:
        """Add a problem of a part of the file; its text is the path and `message`."""
        self.note(problem_at(culprit.location, culprit.path, message))

    @contextmanager
    def at(self, culprit: Cursor) -> Iterator[None]:
        """Report a ValueError of the `with` block as a problem of a part of the file."""
        try:
            yield
        except ValueError as error:
            self.add(culprit, str(error))

    def fail(self, problem: Problem) -> NoReturn:
        """Add a problem that ends the reading, and raise ScenarioError with all of them."""
        self.note(problem)
        raise ScenarioError(self._in_order())

    def refer(self, reference: Cursor, error: ScenarioError) -> None:
        """Add the problems of a file that `reference` names; those without a line are put at the
        reference.
        """
        for problem in error.problems:
            if problem.line is None:
                self.add(reference, f"can't be used: {problem}")
            else:
                self.note(problem)

    def raise_if_any(self) -> None:
        """Raise ScenarioError with all problems sorted by location: main file, named files,
        overrides.
        """
        if self._found:
            raise ScenarioError(self._in_order())

    def _in_order(self) -> list[Problem]:
        ordered = sorted(
            self._found,
            key=lambda p: (
                p.line is None,
                p.file != self._main,
                p.file,
                p.line or 0,
                p.column or 0,
            ),
        )
        counts = Counter(problem.file for problem in ordered)
        kept: list[Problem] = []
        seen: Counter[str] = Counter()
        for problem in ordered:
            seen[problem.file] += 1
            if seen[problem.file] <= MOST_PER_FILE:
                kept.append(problem)
            elif seen[problem.file] == MOST_PER_FILE + 1:
                more = f"{counts[problem.file] - MOST_PER_FILE} more problems like these"
                kept.append(Problem(problem.file, None, None, "", more))
        return kept


def seen_from(path: tuple[str | int, ...], problem: Problem) -> Problem:
    """Make the path of a problem relative, for input that is only the part at `path`."""
    above = ".".join(map(str, path))
    if not problem.path.startswith(above):
        return problem
    return replace(
        problem,
        path=problem.path.removeprefix(above).removeprefix("."),
        message=problem.message.removeprefix(above).lstrip(".: "),
    )


def problem_at(location: Location, path: tuple[str | int, ...], message: str) -> Problem:
    """Build a problem; its text is the dotted path and `message`."""
    dotted = ".".join(map(str, path))
    message = f"{dotted} {message}" if dotted else message
    return Problem(location.file, location.line, location.column, dotted, message)
