"""The search along an axis: which values are tried, and with how many runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dialsim.experiments.evidence import Evidence, weigh
from dialsim.experiments.intervals import share_interval
from dialsim.experiments.subject import Subject
from dialsim.experiments.variants import Change, Variant

if TYPE_CHECKING:
    from dialsim.experiments.axis import Axis
    from dialsim.experiments.goal import Goal
    from dialsim.experiments.laboratory import Laboratory
    from dialsim.scenario.models import Scenario

_MORE = 4
"""A value in doubt gets so many times the runs at its next look."""
_PROBES = 7
"""So many values between the ends are tried where neither end meets the goal."""
_GRID = 9
"""So many values are tried in each round for the cheapest."""


class Search:
    """The values of an axis, and the evidence on those that were tried."""

    def __init__(
        self,
        place: Laboratory,
        scenario: Scenario,
        seed: int | None,
        path: str,
        axis: Axis,
        goal: Goal,
        first: int,
        most: int,
        confidence: float,
    ) -> None:
        self.scenario = scenario
        self.path = path
        self.axis = axis
        self.goal = goal
        self.warnings: list[str] = []
        self._place = place
        self._seed = seed
        self._looks = _looks(first, most)
        self._confidence = _each(confidence, self._looks)
        self._subjects: dict[int, Subject] = {}
        self._tried: dict[int, Evidence] = {}

    @property
    def tried(self) -> tuple[Evidence, ...]:
        """All evidence, by value."""
        return tuple(self._tried[index] for index in sorted(self._tried))

    @property
    def indices(self) -> list[int]:
        """The values tried, as indexes into the axis."""
        return sorted(self._tried)

    def at(self, index: int) -> Evidence:
        """The evidence on one value."""
        self.try_all([index])
        return self._tried[index]

    def met(self, index: int) -> bool:
        """Whether a value meets the goal."""
        return self.at(index).met

    def try_all(self, indices: Iterable[int]) -> None:
        """Gather evidence on several values at once."""
        doubtful = [index for index in dict.fromkeys(indices) if index not in self._tried]
        for count in self._looks:
            if not doubtful:
                return
            self._place.replicate([self._subject(index) for index in doubtful], count)
            for index in doubtful:
                runs = self._subjects[index].first(count)
                value = self.axis[index].plain
                self._tried[index] = weigh(value, self.goal, runs, self._confidence)
            doubtful = [index for index in doubtful if not self._tried[index].sure]

    def _subject(self, index: int) -> Subject:
        if index not in self._subjects:
            change = Change(self.path, self.axis[index].text)
            scenario = Variant(change.text, (change,)).of(self.scenario)
            self._subjects[index] = Subject(scenario, self._seed)
        return self._subjects[index]

    def warn(self, text: str) -> None:
        """Note something to doubt, once."""
        if text not in self.warnings:
            self.warnings.append(text)


def _each(confidence: float, looks: Sequence[int]) -> float:
    """The confidence of one look, that all of them together have the whole (Bonferroni)."""
    return 1 - (1 - confidence) / len(looks)


def enough(first: int, most: int, share: float, confidence: float) -> bool:
    """Whether `most` runs can tell that so great a share of them meets a bound, if all do."""
    each = _each(confidence, _looks(first, most))
    return share_interval(most, most, each).low >= share


def enough_runs(first: int, most: int, share: float, confidence: float) -> int:
    """A greater maximum of runs, which is enough: that of the next look or looks."""
    most *= _MORE
    while not enough(first, most, share, confidence):
        most *= _MORE
    return most


def _looks(first: int, most: int) -> list[int]:
    """The numbers of runs after which a value is judged."""
    counts = [first]
    while counts[-1] < most:
        counts.append(min(most, counts[-1] * _MORE))
    return counts


def smallest(search: Search, order: Sequence[int]) -> int | None:
    """The first index of an order that meets the goal, None if none does.

    `order` goes up for the smallest and down for the largest. Bisection finds where missing turns
    into meeting; values off its path show whether that happens once.
    """
    last = len(order) - 1
    search.try_all([order[0], order[last]])
    if search.met(order[0]):
        return order[0]
    if search.met(order[last]):
        met = last
    else:
        probes = _spread(0, last, _PROBES)
        search.try_all(order[place] for place in probes)
        meeting = [place for place in probes if search.met(order[place])]
        if not meeting:
            return None
        met = meeting[0]
        _warn(search, order[met], order[last])
    while True:
        met = _bisect(search, order, met)
        before = [met - 2, *_spread(0, met - 1, 3)]
        after = _spread(met, last, 3)
        before = sorted({place for place in before if 0 < place < met - 1})
        search.try_all(order[place] for place in [*before, *after])
        for place in after:
            if not search.met(order[place]):
                _warn(search, order[met], order[place])
        earlier = [place for place in before if search.met(order[place])]
        if not earlier:
            return order[met]
        _warn(search, order[earlier[0]], order[met - 1])
        met = earlier[0]


def _bisect(search: Search, order: Sequence[int], met: int) -> int:
    """The place where missing turns into meeting, at or before `met`."""
    known = {index: place for place, index in enumerate(order) if index in search.indices}
    missed = max(place for index, place in known.items() if place < met and not search.met(index))
    while met - missed > 1:
        middle = (missed + met) // 2
        if search.met(order[middle]):
            met = middle
        else:
            missed = middle
    return met


def _spread(low: int, high: int, count: int) -> list[int]:
    """Up to `count` places between two, evenly spread."""
    inside = range(low + 1, high)
    if len(inside) <= count:
        return list(inside)
    return sorted({low + round((high - low) * k / (count + 1)) for k in range(1, count + 1)})


def _warn(search: Search, met: int, missed: int) -> None:
    values = search.axis[met].text, search.axis[missed].text
    search.warn(
        f"the response is not monotone: {values[0]} meets the goal, {values[1]} does not; "
        "the values between those tried may differ as well"
    )


def cheapest(search: Search) -> int | None:
    """The index with the lowest mean cost of those that meet the goal, None if none is found.

    A grid of values is tried, then the finer grid between the neighbours of the best of them, and
    so on down to the step: exact where cost and goal change smoothly on the scale of the grid.
    """
    low, high = 0, len(search.axis) - 1
    while True:
        grid = [low, *_spread(low, high, _GRID - 2), high]
        search.try_all(grid)
        meeting = [index for index in search.indices if search.met(index)]
        if not meeting:
            best = closest(search)
        else:
            best = min(meeting, key=lambda index: (search.at(index).cost or 0.0, index))
        if high - low <= _GRID - 1:
            return best if meeting else None
        place = sorted({*grid, best})
        at = place.index(best)
        low, high = place[max(at - 1, 0)], place[min(at + 1, len(place) - 1)]


def closest(search: Search) -> int:
    """Of the values tried, the one that comes closest to meeting the goal."""
    return min(search.indices, key=lambda index: (search.at(index).shortfall, index))
