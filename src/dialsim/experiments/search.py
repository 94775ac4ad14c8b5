"""Search along an axis: which values are tried, and with how many runs.

A value first gets a few runs, which show on which side of the goal's bound it lies unless it is
close. That suffices for the bisection, which leads to the point where the goal turns from missed to
met. Only the values there, and contradicting ones, get further looks, until they are certain, or
until the remaining runs would hardly decide (`dialsim.experiments.looks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING

from dialsim.errors import ExperimentError
from dialsim.experiments.breaches import Baseline
from dialsim.experiments.facts import facts, facts_needed
from dialsim.experiments.figure_names import COST
from dialsim.experiments.fluid import first_estimate, no_estimate, seems_met, sought_text
from dialsim.experiments.goal import (
    ClauseFinding,
    GoalEstimate,
    Statistic,
    certainty_text,
    chance_of_meeting,
    judge,
)
from dialsim.experiments.intervals import CONFIDENCE, paired_difference
from dialsim.experiments.known_bounds import known_bounds_of
from dialsim.experiments.looks import LEAST_TO_BE_SURE, Looks
from dialsim.experiments.run_spec import RunSpec
from dialsim.experiments.variants import SettingChange, Variant, setting_text

if TYPE_CHECKING:
    from dialsim.experiments.goal import Goal
    from dialsim.experiments.runner import ExperimentRunner
    from dialsim.experiments.variants import Axis
    from dialsim.scenario.scenario import Scenario


_MORE = 4
"""Factor of the proposed runs where the maximum is too small."""
_HOPE = 0.2
"""Stop sampling a value when the probability of a decision falls below this."""
_PROBES = 7
"""Values tried between the ends if neither end meets the goal."""
_GRID = 9
"""Values tried in each round of the search for the cheapest."""


class Search:
    """Values of an axis, and evaluations of those that were tried."""

    def __init__(
        self,
        place: ExperimentRunner,
        scenario: Scenario,
        seed: int | None,
        path: str,
        axis: Axis,
        goal: Goal,
        first: int,
        most: int,
        confidence: float,
        known: Callable[[str], object] | None = None,
    ) -> None:
        """`known` is called after each look with the findings so far."""
        self.scenario = scenario
        self.path = path
        self.axis = axis
        self.goal = goal
        self.warnings: list[str] = []
        self.first_estimate: str | None = None
        self._place = place
        self._looks = Looks.between(first, most)
        self._confidence = confidence
        self._runs_and_seed = first, most, seed
        self._baseline = Baseline(scenario, seed)
        self._specs: dict[int, RunSpec] = {}
        self._known = known
        self._first = 1
        figures = [figure for clause in goal.clauses for figure in clause.figure.figures]
        self._asked = goal.figures | facts_needed([*figures, COST], known_bounds_of(scenario))
        self._looked: dict[int, int] = {}
        self._tried: dict[int, GoalEstimate] = {}

    def along(self, scenario: Scenario, path: str, axis: Axis, goal: Goal | None = None) -> Search:
        """Return a search along another axis with the same runner, seed, certainty and baseline."""
        first, most, seed = self._runs_and_seed
        search = Search(
            self._place, scenario, seed, path, axis, goal or self.goal, first, most,
            self._confidence,
        )  # fmt: skip
        search._baseline = self._baseline
        return search

    @property
    def tried(self) -> tuple[GoalEstimate, ...]:
        """All evaluations, by value."""
        return tuple(self._tried[index] for index in sorted(self._tried))

    @property
    def indices(self) -> list[int]:
        """Values tried, as indices into the axis."""
        return sorted(self._tried)

    @property
    def can_be_sure(self) -> bool:
        """True if the runs can prove that a value meets the goal, if all are within the bounds."""
        return all(
            self._looks.can_tell(clause.share_to_tell, self._confidence)
            for clause in self.goal.clauses
        )

    def foreseen(self, order: Sequence[int]) -> list[int]:
        """Return values between which the goal turns by the first estimates, and log the turn."""

        def met(place: int) -> bool | None:
            return seems_met(self.goal, first_estimate(self._variant(order[place])))

        last = len(order) - 1
        if (is_enough := met(0)) is None:
            self.first_estimate = no_estimate(self._variant(order[0]), self.goal.text)
            return []
        low, high = (-1, 0) if is_enough else (0, last)
        is_enough = is_enough or met(last)
        while is_enough and high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if met(middle) else (middle, high)
        found = setting_text(self.path, self.axis[order[high]].plain) if is_enough else "no value"
        self.first_estimate = sought_text("enough", found)
        # A goal for nearly all runs takes a little more than one for the mean.
        return [order[low], order[min(high + 1, last)]] if is_enough and high else []

    def at(self, index: int) -> GoalEstimate:
        """Return the evaluation of one value, after at least one look."""
        if index not in self._tried:
            self._look_at([index])
            # After a misleading first look all later values get as many runs as exposed it.
            while self._looked[index] < self._first and not self._tried[index].sure:
                self._look_at([index])
        return self._tried[index]

    def met(self, index: int) -> bool:
        """Return True if a value seems to meet the goal."""
        return self.at(index).met

    def try_all(self, indices: Iterable[int]) -> None:
        """Make the first look at several values that had none."""
        self._look_at([index for index in dict.fromkeys(indices) if index not in self._tried])

    def settle(
        self, indices: Iterable[int], enough: Callable[[GoalEstimate], bool] | None = None
    ) -> bool:
        """Look at values until their evaluations are certain, or `enough`, or further looks are
        hopeless.

        Returns True if any got a further look.
        """
        indices = list(dict.fromkeys(indices))
        self.try_all(indices)
        again = False
        while doubtful := [
            index
            for index in indices
            if not self._tried[index].sure
            and self._is_hopeful(index)
            and not (enough is not None and enough(self._tried[index]))
        ]:
            self._look_at(doubtful)
            again = True
        return again

    def confirm(self, index: int) -> bool:
        """Look at a value that seems to meet the goal until it is certain, or seems to miss it.

        Returns True if that took a further look.
        """
        again = self.settle([index], lambda estimate: not estimate.met)
        if not self._tried[index].met:
            # So few runs have misled the search, so values on the rest of the path get as many at
            # first.
            self._first = max(self._first, self._looked[index])
        return again

    def _is_hopeful(self, index: int) -> bool:
        """Return True if further looks at a value may make it certain."""
        if self._looked[index] == len(self._looks.counts):
            return False
        estimate = self._tried[index]
        # With so few runs nothing may count as certain, however clear it looks.
        if estimate.replications < LEAST_TO_BE_SURE:
            return True
        prospects = [self._prospect(part, estimate.replications) for part in estimate.findings]
        # A goal is met if all clauses are, and missed if any is; minimum and maximum bound both
        # without assuming independence.
        met, missed = min(met for met, _ in prospects), max(missed for _, missed in prospects)
        return met + missed >= _HOPE

    def _prospect(self, finding: ClauseFinding, count: int) -> tuple[float, float]:
        """Return the probabilities that all runs prove a clause met, and missed."""
        clause = finding.clause
        if finding.sure:
            return float(finding.met), float(not finding.met)
        if clause.statistic is Statistic.MEAN:
            half = (finding.high - finding.low) / 2
            if not isfinite(half):
                return 1.0, 1.0  # nothing is known yet
            distance = abs(finding.estimate - clause.bound.value)
            told = self._looks.prospect_of_mean(distance, half, count, self._confidence)
            return (told, 0.0) if finding.met else (0.0, told)
        greater, smaller = self._looks.prospect_of_share(
            clause.least_share, finding.hits or 0, count, self._confidence
        )
        return (smaller, greater) if clause.wanted.startswith("<") else (greater, smaller)

    def _look_at(self, indices: Sequence[int]) -> None:
        """Make the next look at several values at once."""
        self._place.ahead = self._ahead(len(indices))
        counts = {index: self._looks.counts[self._looked.get(index, 0)] for index in indices}
        for count in sorted({*counts.values()}):
            together = [index for index in indices if counts[index] == count]
            specs = [self._spec(index) for index in together]
            asked = self._asked | self._baseline.figures
            self._place.replicate([*specs, *self._baseline.specs], count, asked)
        for index, count in counts.items():
            self._looked[index] = self._looked.get(index, 0) + 1
            self._tried[index] = self._judged(index, count, self._looks)
        if self._known is not None:
            self._known(self._known_so_far())

    def _judged(self, index: int, count: int, looks: Looks) -> GoalEstimate:
        spec = self._spec(index)
        value, runs = self.axis[index].plain, spec.first(count)
        breaches = self._baseline.breaches(runs)
        return judge(value, self.goal, runs, self._confidence, spec.bounds, looks, breaches)

    def _turns(self) -> list[tuple[int, int]]:
        """Return neighbouring values tried if exactly one of them seems to meet the goal."""
        pairs = pairwise(self.indices)
        return [pair for pair in pairs if self._tried[pair[0]].met is not self._tried[pair[1]].met]

    def _known_so_far(self) -> str:
        """Describe the findings: `53 lines: missed (sure), 54 lines: met (88 % certain)`."""
        turns = self._turns()
        shown = turns[0] if turns else (self.indices[0], self.indices[-1])
        said: list[str] = []
        for index in dict.fromkeys(shown):
            found = self._tried[index]
            chance = chance_of_meeting(found)
            verdict = "met" if found.met else "missed"
            certain = certainty_text(chance if found.met else 1 - chance)
            said.append(f"{setting_text(self.path, found.value)}: {verdict} ({certain})")
        return ", ".join(said)

    def take_finished(self) -> None:
        """Judge values by the runs that are finished when the time is up.

        Raises ExperimentError if no value has two runs.
        """
        for index, spec in self._specs.items():
            count = min(each.known for each in (spec, *self._baseline.specs))
            if index not in self._tried and count >= 2:
                found = self._judged(index, count, Looks((count,)))
                # The clock chose this number of runs, not the plan of looks, so no error level
                # holds.
                self._tried[index] = replace(found, sure=False)
        if not self._tried:
            raise ExperimentError(
                "the time was up before any value had two runs: allow more with --within"
            )

    def _ahead(self, values: int) -> int:
        """Estimate the remaining runs: of the bisection, and for certainty about two values."""
        first, turns = self._looks.counts[0], self._turns()
        low, high = turns[0] if turns else (0, len(self.axis))
        sure = max(
            self._looks.least(clause.share_to_tell, self._confidence) or self._looks.counts[-1]
            for clause in self.goal.clauses
        )
        ends = [self._tried[index].replications for index in (low, high) if index in self._tried]
        # Two neighbours have to be certain: the last that misses and the first that meets.
        rest = 2 * sure - sum(min(sure, count) for count in ends) if high - low == 1 else 2 * sure
        return first * (values + (high - low - 1).bit_length()) + rest

    def _spec(self, index: int) -> RunSpec:
        if index not in self._specs:
            self._specs[index] = self._baseline.spec(self._variant(index))
        return self._specs[index]

    def _variant(self, index: int) -> Scenario:
        change = SettingChange(self.path, self.axis[index].text)
        return Variant(change.text, (change,)).of(self.scenario)

    def warn(self, text: str) -> None:
        """Add a warning, once."""
        if text not in self.warnings:
            self.warnings.append(text)


def enough(first: int, most: int, share: float, confidence: float) -> bool:
    """Return True if `most` runs can prove that a share this large meets a bound, if all of them
    do.
    """
    return Looks.between(first, most).can_tell(share, confidence)


def enough_runs(first: int, most: int, share: float, confidence: float, least: int = 0) -> int:
    """Return a larger maximum of runs that suffices, at least `least`."""
    most *= _MORE
    while most < least or not enough(first, most, share, confidence):
        most *= _MORE
    return most


def smallest(search: Search, order: Sequence[int]) -> int | None:
    """Return the first index of an order that meets the goal, or None.

    `order` ascends for the smallest and descends for the largest. Bisection finds where each clause
    turns; the goal is met where all clauses are. Values off the path show whether a clause turns
    more than once. The result is the first value that *certainly* meets the goal; uncertain ones
    before it are `doubtful`. If no value certainly meets it, the result is the safest of those that
    seem to.
    """
    spread = False
    while True:
        found, end = _first_meeting(search, order)
        if found is None:
            if search.settle(search.indices):
                continue
            _check_turns(search, order)
            return None
        # More runs may move the place where the goal turns, so it is searched anew.
        if search.confirm(order[found]) or search.settle([order[max(found - 1, 0)]]):
            continue
        if not spread:
            off_the_path = [*_spread(0, found, 3), *_spread(found, end, 3)]
            search.try_all(order[place] for place in off_the_path)
            spread = True
            continue
        beyond = [place for place in _tried(search, order) if found < place <= end]
        if search.settle((order[place] for place in beyond), lambda estimate: estimate.met):
            continue
        answer = found
        if not search.at(order[found]).sure:
            answer = _first_sure(search, order, found) or _safest(search, order, found, end)
        doubtful(search, order, order[answer])
        if _meeting(search, order)[0] == found:
            _check_turns(search, order)
            return order[answer]


def _first_meeting(search: Search, order: Sequence[int]) -> tuple[int | None, int]:
    """Return the first index that seems to meet the goal, or None, and the last one up to which it
    is met.

    Both assume that clauses turn no more often than necessary.
    """
    low, high = 0, len(order) - 1
    search.try_all([order[low], order[high]])
    for met in _conditions(search):
        span = _span(search, order, met)
        if span is None:
            return None, high
        low, high = max(low, span[0]), min(high, span[1])
    if low <= high and search.met(order[low]):
        found: int | None = low
    else:
        found = next(iter(_meeting(search, order)), None)
    while found is not None:
        for place in range(max(found - 2, 0), found):
            search.at(order[place])
        earliest = _meeting(search, order)[0]
        if earliest == found:
            break
        found = _turn(search.met, order, search, missed=0, met=earliest)
    return found, high


def _conditions(search: Search) -> list[Callable[[int], bool]]:
    """Return the conditions of an answer, which turn independently: clauses, compliance."""

    def clause(number: int) -> Callable[[int], bool]:
        return lambda index: search.at(index).findings[number].met

    clauses = [clause(number) for number in range(len(search.goal.clauses))]
    return [*clauses, lambda index: not search.at(index).breaches]


def _first_sure(search: Search, order: Sequence[int], found: int) -> int | None:
    """Return the first index after the doubtful `found` that certainly meets the goal.

    The steps double, up to a value that certainly misses the goal; None if there is none.
    """
    if not search.can_be_sure:
        return None

    def sure(index: int) -> bool:
        search.settle([index])
        estimate = search.at(index)
        return estimate.met and estimate.sure

    # Steps double while values are in doubt, and get smaller before a value that certainly misses.
    doubtful, beyond, step = found, len(order), 1
    while beyond - doubtful > 1:
        place = min(doubtful + step, beyond - 1)
        if sure(order[place]):
            return _turn(sure, order, search, missed=found, met=place)
        if search.at(order[place]).sure:
            beyond, step = place, max(1, (place - doubtful) // 2)
        else:
            doubtful, step = place, 2 * step
    return None


def _safest(search: Search, order: Sequence[int], found: int, end: int) -> int:
    """Return the index farthest from the turning points, if none certainly meets the goal."""
    # The goal seems met from `found` to `end`. At the end of the order no clause turns, so the end
    # is safest; otherwise a clause turns at `end`, and the middle is.
    safest = end if end == len(order) - 1 else (found + end) // 2
    search.settle([order[safest]])
    return safest if search.met(order[safest]) else found


def doubtful(search: Search, order: Sequence[int], index: int) -> list[int]:
    """Return the indices before the answer that may meet the goal.

    They follow the last one in the order that certainly misses it.
    """
    answer = order.index(index)
    found = answer if search.at(index).sure else _meeting(search, order)[0]

    def in_doubt(index: int) -> bool:
        search.settle([index])
        estimate = search.at(index)
        return estimate.met or not estimate.sure

    first, step = found, 1
    while first > 0:
        place = max(0, first - step)
        if not in_doubt(order[place]):
            first = _turn(in_doubt, order, search, missed=place, met=first)
            break
        first, step = place, 2 * step
    return [order[place] for place in range(first, answer)]


def _tried(search: Search, order: Sequence[int]) -> list[int]:
    """Return the positions in an order that were tried."""
    return sorted(order.index(index) for index in search.indices)


def _meeting(search: Search, order: Sequence[int]) -> list[int]:
    """Return the positions in an order that were tried and meet the goal."""
    return [place for place in _tried(search, order) if search.met(order[place])]


def _span(
    search: Search, order: Sequence[int], met: Callable[[int], bool]
) -> tuple[int, int] | None:
    """Return the first and the last place at which a condition is met; None if it was at none.

    It is met in between, unless it turns more often than necessary.
    """
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
    """Return the position at which meeting turns into missing, on the way from `met` to
    `missed`.
    """
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
    """Return up to `count` evenly spaced positions between two."""
    inside = range(low + 1, high)
    if len(inside) <= count:
        return list(inside)
    return sorted({low + round((high - low) * k / (count + 1)) for k in range(1, count + 1)})


def _check_turns(search: Search, order: Sequence[int]) -> None:
    """Warn about each clause that certainly turns more than once."""
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
    """Return True if certainly no value meets the goal."""
    # Each value tried must certainly miss a clause. Of two neighbours with untried values between
    # them, both must certainly miss the same clause, which the values between then miss as well,
    # unless its response turns there and back.
    missed = [
        {
            number
            for number, finding in enumerate(search.at(index).findings)
            if finding.sure and not finding.met
        }
        | ({-1} if search.at(index).breaches else set())
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
    """Return the index with the lowest mean cost among values that meet the goal, or None.

    A grid of values is tried, then a finer grid between the neighbours of the best one, and so on:
    exact if cost and goal are smooth on the scale of the grid.
    """
    low, high = 0, len(search.axis) - 1
    while True:
        grid = [low, *_spread(low, high, _GRID - 2), high]
        search.settle(grid)
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
    """Return values that also meet the goal and whose mean cost is not distinguishable from the
    best.
    """
    # The runs share their random numbers, so costs are compared in pairs.
    chosen = search.at(best)
    others = (index for index in search.indices if index != best and search.met(index))
    return [index for index in others if not _dearer(search.at(index), chosen)]


def _dearer(part: GoalEstimate, chosen: GoalEstimate) -> bool:
    """Return True if the costs of two values certainly differ."""
    count = min(len(part.runs), len(chosen.runs))
    sides = [(side.runs[:count], side.bounds) for side in (part, chosen)]
    costs, least = (COST.of(runs) for runs, _ in sides)
    known, other = (facts(COST, runs, bounds) for runs, bounds in sides)
    return paired_difference(costs, least, CONFIDENCE, (known, other)).real


def closest(search: Search) -> int:
    """Return the tried value that comes closest to meeting the goal."""
    return min(search.indices, key=lambda index: (search.at(index).shortfall, index))
