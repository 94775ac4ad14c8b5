"""The search along an axis: which values are tried, and with how many runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dialsim.experiments.case import Case
from dialsim.experiments.goal import Evidence, judge
from dialsim.experiments.intervals import paired_difference, share_interval
from dialsim.experiments.variants import SettingChange, Variant

if TYPE_CHECKING:
    from dialsim.experiments.goal import Goal
    from dialsim.experiments.runner import ExperimentRunner
    from dialsim.experiments.value_range import ValueRange
    from dialsim.scenario.scenario import Scenario

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
        place: ExperimentRunner,
        scenario: Scenario,
        seed: int | None,
        path: str,
        axis: ValueRange,
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
        self._cases: dict[int, Case] = {}
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
            self._place.replicate([self._case(index) for index in doubtful], count)
            for index in doubtful:
                runs = self._cases[index].first(count)
                value = self.axis[index].plain
                prior = self._cases[index].prior
                self._tried[index] = judge(value, self.goal, runs, self._confidence, prior)
            doubtful = [index for index in doubtful if not self._tried[index].sure]

    def _case(self, index: int) -> Case:
        if index not in self._cases:
            change = SettingChange(self.path, self.axis[index].text)
            scenario = Variant(change.text, (change,)).of(self.scenario)
            self._cases[index] = Case(scenario, self._seed)
        return self._cases[index]

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


def enough_runs(first: int, most: int, share: float, confidence: float, least: int = 0) -> int:
    """A greater maximum of runs, `least` or more, that is enough: of the next look or looks."""
    most *= _MORE
    while most < least or not enough(first, most, share, confidence):
        most *= _MORE
    return most


def _looks(first: int, most: int) -> list[int]:
    """The numbers of runs after which a value is judged."""
    counts = [first]
    while counts[-1] < most:
        counts.append(min(most, counts[-1] * _MORE))
    return counts


def smallest(search: Search, order: Sequence[int]) -> int | None:
    """The first index of an order that meets the goal, None if none was found.

    `order` goes up for the smallest and down for the largest. Bisection finds where each clause
    turns, from missed to met or the other way round, and the goal is met where all clauses are.
    Values off the path show whether a clause turns more than once.
    """
    last = len(order) - 1
    search.try_all([order[0], order[last]])
    low, high = 0, last
    for clause in range(len(search.goal.clauses)):
        span = _span(search, order, clause)
        if span is None:
            return None
        low, high = max(low, span[0]), min(high, span[1])
    if low <= high and search.met(order[low]):
        found: int | None = low
    else:
        found = next(iter(_meeting(search, order)), None)
    while found is not None:
        before = {found - 2, found - 1, *_spread(0, found, 3)}
        after = _spread(found, high, 3)
        search.try_all(order[place] for place in [*before, *after] if place >= 0)
        earliest = _meeting(search, order)[0]
        if earliest == found:
            break
        found = _turn(search.met, order, search, missed=0, met=earliest)
    _check_turns(search, order)
    return None if found is None else order[found]


def _tried(search: Search, order: Sequence[int]) -> list[int]:
    """The places of an order that were tried."""
    return sorted(order.index(index) for index in search.indices)


def _meeting(search: Search, order: Sequence[int]) -> list[int]:
    """The places of an order that were tried and meet the goal."""
    return [place for place in _tried(search, order) if search.met(order[place])]


def _span(search: Search, order: Sequence[int], clause: int) -> tuple[int, int] | None:
    """The first and the last place at which a clause is met; None if it was met at none.

    It is met in between, if it turns no more often than it has to.
    """

    def met(index: int) -> bool:
        return search.at(index).findings[clause].met

    last = len(order) - 1
    places = [0, last]
    if not met(order[0]) and not met(order[last]):
        places = [0, *_spread(0, last, _PROBES), last]
        search.try_all(order[place] for place in places)
    meeting = [place for place in places if met(order[place])]
    if not meeting:
        return None
    first = 0 if met(order[0]) else _turn(met, order, search, missed=0, met=meeting[0])
    end = last if met(order[last]) else _turn(met, order, search, missed=last, met=meeting[-1])
    return first, end


def _turn(
    holds: Callable[[int], bool], order: Sequence[int], search: Search, *, missed: int, met: int
) -> int:
    """The place next to which meeting turns into missing, on the way from `met` to `missed`."""
    ends = min(missed, met), max(missed, met)
    between = [place for place in _tried(search, order) if ends[0] <= place <= ends[1]]
    missed = min(
        (place for place in between if not holds(order[place])), key=lambda p: abs(p - met)
    )
    met = min((place for place in between if holds(order[place])), key=lambda p: abs(p - missed))
    while abs(met - missed) > 1:
        middle = (missed + met) // 2
        if holds(order[middle]):
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


def _check_turns(search: Search, order: Sequence[int]) -> None:
    """Warn of each clause that turns more than once among the values that tell for sure."""
    for number, clause in enumerate(search.goal.clauses):
        turns: list[tuple[int, bool]] = []
        for index in (order[place] for place in _tried(search, order)):
            finding = search.at(index).findings[number]
            if finding.sure and (not turns or turns[-1][1] != finding.met):
                turns.append((index, finding.met))
        if len(turns) > 2:
            said = ", ".join(
                f"{'met' if met else 'missed'} at {search.axis[index].text}" for index, met in turns
            )
            search.warn(
                f"the response is not monotone: {clause.text} is {said}; the values between those "
                "tried may differ as well"
            )


def ruled_out(search: Search) -> bool:
    """Whether it is shown that no value meets the goal, and not only that none was found.

    Each value tried must surely miss some clause; and of two between which none was tried both must
    surely miss the same one, which those between then miss as well, unless its response turns there
    and back again.
    """
    missed = [
        {
            number
            for number, finding in enumerate(search.at(index).findings)
            if finding.sure and not finding.met
        }
        for index in search.indices
    ]
    ends = search.indices[0] == 0 and search.indices[-1] == len(search.axis) - 1
    steps = zip(pairwise(search.indices), pairwise(missed), strict=True)
    return (
        ends
        and all(missed)
        and all(after - before == 1 or here & there for (before, after), (here, there) in steps)
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


def tied(search: Search, best: int) -> list[int]:
    """Values that meet the goal as well, and whose mean cost can't be told from that of the best.

    They met the same chance, so the costs are compared run by run.
    """
    chosen = search.at(best)
    others = (index for index in search.indices if index != best and search.met(index))
    return [index for index in others if not _dearer(search.at(index), chosen)]


def _dearer(part: Evidence, chosen: Evidence) -> bool:
    """Whether the costs of two values are surely different."""
    count = min(len(part.runs), len(chosen.runs))
    costs, least = (
        np.array([run.scopes[0].values["cost"] for run in side.runs[:count]], dtype=np.float64)
        for side in (part, chosen)
    )
    certain = part.prior.certain("cost") and chosen.prior.certain("cost")
    return paired_difference(costs, least, 0.95, certain).p_value < 1 - 0.95


def closest(search: Search) -> int:
    """Of the values tried, the one that comes closest to meeting the goal."""
    return min(search.indices, key=lambda index: (search.at(index).shortfall, index))
