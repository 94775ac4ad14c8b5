"""What is wrong with a scenario: problems, each with its place, gathered until all are known."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from dialsim.errors import ScenarioError

if TYPE_CHECKING:
    from dialsim.scenario.document import Cursor, Place

MOST_PER_FILE = 100
"""No more problems of one file are told apart; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, and a message that begins with the dotted path.

    `file` is the file's name as given, or the override (`--set seed=x`); line and column count
    from 1 and are None where there are none. `path` is "" where the file as a whole is meant.
    """

    file: str
    line: int | None
    column: int | None
    path: str
    message: str

    def __str__(self) -> str:
        place = [self.file, *(str(at) for at in (self.line, self.column) if at is not None)]
        return f"{':'.join(place)}: {self.message}"


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence on what is allowed in a scenario but may not be meant.

    `organization` is the position of the one that it is about, -1 where it is about all of them.
    """

    text: str
    organization: int = -1


class Problems:
    """The problems found so far in a scenario, whose own file is `main`, and in files it names."""

    def __init__(self, main: str) -> None:
        self._main = main
        self._found: dict[Problem, None] = {}

    def __len__(self) -> int:
        return len(self._found)

    def note(self, problem: Problem) -> None:
        """Keep a problem, unless the same one is known already."""
        self._found[problem] = None

    def add(self, culprit: Cursor, says: str) -> None:
        """Note what a part of the file is told: `says` goes behind the path of the culprit."""
        self.note(told(culprit.place, culprit.path, says))

    def fail(self, problem: Problem) -> NoReturn:
        """Note a problem with which reading can't go on, and raise all that are noted."""
        self.note(problem)
        raise ScenarioError(self._in_order())

    def refer(self, reference: Cursor, error: ScenarioError) -> None:
        """Note why a file that `reference` names can't be read: there, if it has no lines."""
        for problem in error.problems:
            if problem.line is None:
                self.add(reference, f"can't be used: {problem}")
            else:
                self.note(problem)

    def raise_if_any(self) -> None:
        """Raise ScenarioError with all problems by place: main file, files it names, overrides."""
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
    """A problem of a part of a document as told to who wrote only the part at `path`."""
    above = ".".join(map(str, path))
    if not problem.path.startswith(above):
        return problem
    return replace(
        problem,
        path=problem.path.removeprefix(above).removeprefix("."),
        message=problem.message.removeprefix(above).lstrip(".: "),
    )


def told(place: Place, path: tuple[str | int, ...], says: str) -> Problem:
    """A problem whose message is the dotted path and what is said of it."""
    dotted = ".".join(map(str, path))
    message = f"{dotted} {says}" if dotted else says
    return Problem(place.file, place.line, place.column, dotted, message)
