"""Trials of settings, and the search along one setting.

`plan` and `optimize` try settings, which share their random numbers and get their runs in looks
(`dialsim.experiments.sequential`). They differ in which settings they try, and which of these get
further looks.

Along one setting, a value first gets a few runs, which show on which side of the goal's bound it
lies unless it is close. That suffices for the bisection, which leads to the point where the goal
turns from missed to met. Only the values there, and contradicting ones, get further looks, until
they are certain, or until the remaining runs would hardly decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Generic, TypeVar

from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import breach_figures, breaches_of, check_confidence
from dialsim.experiments.fluid import first_estimate, no_estimate, seems_met, sought_text
from dialsim.experiments.goal import (
    ClauseFinding,
    Goal,
    GoalEstimate,
    Statistic,
    certainty_text,
    chance_of_meeting,
    judge,
)
from dialsim.experiments.intervals import CONFIDENCE, paired_difference
from dialsim.experiments.known_bounds import known_bounds_of
from dialsim.experiments.named_figures import COST, facts, facts_needed
from dialsim.experiments.run_spec import RunSpec
from dialsim.experiments.sequential import LEAST_TO_BE_SURE, Looks
from dialsim.experiments.variants import Amount, SettingChange, SettingValue, Variant, setting_text

if TYPE_CHECKING:
    from dialsim.experiments.estimates import RuleBreach
    from dialsim.experiments.expression import Expression
    from dialsim.experiments.replications import ExperimentRunner
    from dialsim.experiments.run_figures import RunFigures
    from dialsim.scenario.scenario import Scenario

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Effort:
    """Number of runs that each setting gets at first and at most, and the confidence of answers.

    `seed` defaults to the scenario's. Raises ExperimentError for numbers that make no search.
    """

    first: int
    most: int
    confidence: float = CONFIDENCE
    seed: int | None = None

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        if not 2 <= self.first <= self.most:
            raise ExperimentError(
                "replications must be 2 or more, and at most max_replications, not "
                f"{self.first} and {self.most}"
            )

    @property
    def looks(self) -> Looks:
        """Numbers of runs after which a setting is evaluated."""
        return Looks.between(self.first, self.most)


class Baseline:
    """Scenario as it is; the breaches of other settings are compared with its breaches."""

    def __init__(self, scenario: Scenario, seed: int | None) -> None:
        self._scenario = scenario
        self._seed = seed
        self._spec = RunSpec(scenario, seed)
        # Searches along several settings meet the same scenario again, and share its runs.
        self._specs = {(self._spec.digest, self._spec.seed): self._spec}
        self.figures = breach_figures(scenario)

    @property
    def specs(self) -> list[RunSpec]:
        """Specs to replicate beside each setting; none without compliance rules."""
        return [self._spec] if self.figures else []

    def spec(self, scenario: Scenario) -> RunSpec:
        """Return the spec of a setting; equal scenarios share one."""
        spec = RunSpec(scenario, self._seed)
        return self._specs.setdefault((spec.digest, spec.seed), spec)

    def breaches(self, runs: Sequence[RunFigures]) -> tuple[RuleBreach, ...]:
        """Return the rules that a setting's first runs break more often than the baseline's."""
        before = self._spec.first(len(runs)) if self.figures else ()
        return breaches_of(self._scenario, runs, before)


class Trials(Generic[Key]):
    """Settings that were tried, by key; a subclass decides what to try."""

    def __init__(
        self,
        runner: ExperimentRunner,
        scenario: Scenario,
        goal: Goal,
        effort: Effort,
        *,
        objective: Expression | None = None,
        figures: frozenset[str] = frozenset(),
        known: Callable[[str], object] | None = None,
        baseline: Baseline | None = None,
    ) -> None:
        """Set up a search without any runs.

        `figures` are further figures of the runs, besides the figures of goal and `objective`.

        `known` is called after each look with the findings so far.
        """
        self.scenario = scenario
        self.goal = goal
        self.effort = effort
        self.first_estimate: str | None = None
        self._runner = runner
        self._looks = effort.looks
        self._known = known
        self._baseline = baseline or Baseline(scenario, effort.seed)
        named = [COST, *(() if objective is None else objective.figures)]
        named += [figure for clause in goal.clauses for figure in clause.figure.figures]
        needed = facts_needed(named, known_bounds_of(scenario))
        self._asked = goal.figures | needed | figures | self._baseline.figures
        self._specs: dict[Key, RunSpec] = {}
        self._looked: dict[Key, int] = {}
        self._tried: dict[Key, GoalEstimate] = {}

    # -- what a subclass knows --------------------------------------------------------------------

    @property
    def _confidence(self) -> float:
        """Confidence of the evaluation of one setting."""
        return self.effort.confidence

    def _value(self, key: Key) -> SettingValue:
        """Return the setting, or its name, for the field `value` of an evaluation."""
        raise NotImplementedError

    def _variant(self, key: Key) -> Scenario:
        """Return the scenario with a setting."""
        raise NotImplementedError

    def _findings_so_far(self) -> str:
        """Describe for the progress bar which setting leads."""
        raise NotImplementedError

    # -- looks ------------------------------------------------------------------------------------

    def _has_looks(self, key: Key) -> bool:
        return self._looked[key] < len(self._looks.counts)

    def _look_at(self, keys: Sequence[Key]) -> None:
        """Make the next look at several settings at once."""
        # Settings may be at different looks; looks of equal size run together to use all processes.
        counts = {key: self._looks.counts[self._looked.get(key, 0)] for key in keys}
        for count in sorted({*counts.values()}):
            specs = [self._spec(key) for key in keys if counts[key] == count]
            self._runner.replicate([*specs, *self._baseline.specs], count, self._asked)
        for key, count in counts.items():
            self._looked[key] = self._looked.get(key, 0) + 1
            self._tried[key] = self._judged(key, count, self._looks)
        if self._known is not None:
            self._known(self._findings_so_far())

    def take_finished(self) -> None:
        """Judge settings by the runs that are finished when the time is up.

        Raises ExperimentError if no setting has two runs.
        """
        for key, spec in self._specs.items():
            count = min(each.known for each in (spec, *self._baseline.specs))
            if key not in self._tried and count >= 2:
                found = self._judged(key, count, Looks((count,)))
                # The clock chose this number of runs, not the plan of looks, so no error level
                # holds.
                self._tried[key] = replace(found, sure=False)
        if not self._tried:
            raise ExperimentError(
                "the time was up before any setting had two runs: allow more with --within"
            )

    def _judged(self, key: Key, count: int, looks: Looks) -> GoalEstimate:
        spec = self._spec(key)
        runs = spec.first(count)
        breaches = self._baseline.breaches(runs)
        return judge(
            self._value(key), self.goal, runs, self._confidence, spec.bounds, looks, breaches
        )

    def _spec(self, key: Key) -> RunSpec:
        if key not in self._specs:
            self._specs[key] = self._baseline.spec(self._variant(key))
        return self._specs[key]


# -- along one setting -----------------------------------------------------------------------------

_HOPE = 0.2
"""Stop sampling a value when the probability of a decision falls below this."""
_PROBES = 7
"""Values tried between the ends if neither end meets the goal."""
_GRID = 9
"""Values tried in each round of the search for the cheapest."""


class Search(Trials[int]):
    """Values of a setting in order of preference, and evaluations of those that were tried.

    Either the smallest or the largest value comes first; an index is a position in this order.
    """

    def __init__(
        self,
        runner: ExperimentRunner,
        scenario: Scenario,
        path: str,
        axis: Sequence[Amount],
        goal: Goal,
        effort: Effort,
        known: Callable[[str], object] | None = None,
        baseline: Baseline | None = None,
    ) -> None:
        super().__init__(runner, scenario, goal, effort, known=known, baseline=baseline)
        self.path = path
        self.axis = axis
        self.warnings: list[str] = []
        self._first = 1

    def along(
        self, scenario: Scenario, path: str, axis: Sequence[Amount], goal: Goal | None = None
    ) -> Search:
        """Return a search along another axis with the same runner, effort and baseline."""
        return Search(
            self._runner, scenario, path, axis, goal or self.goal, self.effort,
            baseline=self._baseline,
        )  # fmt: skip

    @property
    def indices(self) -> list[int]:
        """Values tried, as indices into the axis."""
        return sorted(self._tried)

    @property
    def tried(self) -> tuple[GoalEstimate, ...]:
        """All evaluations, sorted by value."""
        return tuple(
            self._tried[index]
            for index in sorted(self._tried, key=lambda index: self.axis[index].value)
        )

    @property
    def can_be_sure(self) -> bool:
        """True if runs that are all within the bounds can prove that a value meets the goal."""
        return all(
            self._looks.can_tell(clause.share_to_tell, self._confidence)
            for clause in self.goal.clauses
        )

    def foreseen(self) -> list[int]:
        """Return indices around the first value that is enough by first estimates, and log it."""

        def met(index: int) -> bool | None:
            return seems_met(self.goal, first_estimate(self._variant(index)))

        last = len(self.axis) - 1
        if (is_enough := met(0)) is None:
            self.first_estimate = no_estimate(self._variant(0), self.goal.text)
            return []
        low, high = (-1, 0) if is_enough else (0, last)
        is_enough = is_enough or met(last)
        while is_enough and high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if met(middle) else (middle, high)
        found = setting_text(self.path, self.axis[high].plain) if is_enough else "no value"
        self.first_estimate = sought_text("enough", found)
        # A goal for nearly all runs needs a little more than a mean, which is all that estimates
        # give.
        return [low, min(high + 1, last)] if is_enough and high else []

    def at(self, index: int) -> GoalEstimate:
        """Return the evaluation of one value, after at least one look."""
        if index not in self._tried:
            self._look_at([index])
            # Once a first look has misled, later values get as many runs as it took to notice.
            while self._looked[index] < self._first and not self._tried[index].sure:
                self._look_at([index])
        return self._tried[index]

    def met(self, index: int) -> bool:
        """Return True if a value seems to meet the goal."""
        return self.at(index).met

    def try_all(self, indices: Iterable[int]) -> None:
        """Evaluate several values for the first time; values evaluated before are skipped."""
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
            # The search was misled by fewer runs than this value has now, so later values start
            # with as many.
            self._first = max(self._first, self._looked[index])
        return again

    def _is_hopeful(self, index: int) -> bool:
        """Return True if further looks at a value may make it certain."""
        if not self._has_looks(index):
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
        """Return the probabilities that the last look proves a clause met, and missed."""
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

    def _look_at(self, keys: Sequence[int]) -> None:
        self._runner.ahead = self._ahead(len(keys))
        super()._look_at(keys)

    def _value(self, key: int) -> SettingValue:
        return self.axis[key].plain

    def _variant(self, key: int) -> Scenario:
        change = SettingChange(self.path, self.axis[key].text)
        return Variant(setting_text(self.path, change.text), (change,)).of(self.scenario)

    def _turns(self) -> list[tuple[int, int]]:
        """Return neighbouring values tried if exactly one of them seems to meet the goal."""
        pairs = pairwise(self.indices)
        return [pair for pair in pairs if self._tried[pair[0]].met is not self._tried[pair[1]].met]

    def _findings_so_far(self) -> str:
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

    def warn(self, text: str) -> None:
        """Add a warning, once."""
        if text not in self.warnings:
            self.warnings.append(text)


def preferred(search: Search) -> int | None:
    """Return the first index that meets the goal, or None.

    Bisection finds where each clause turns from met to missed or back; the goal is met where all
    clauses are. Values off the path of the bisection show whether a clause turns more than once.
    The result is the first value that *certainly* meets the goal; uncertain ones before it are
    `doubtful`. If no value certainly meets it, the result is the safest of those that seem to.
    """
    spread = False
    while True:
        found, end = _first_meeting(search)
        if found is None:
            if search.settle(search.indices):
                continue
            _check_turns(search)
            return None
        # More runs may move the turn of the goal, so it is searched anew.
        if search.confirm(found) or search.settle([max(found - 1, 0)]):
            continue
        if not spread:
            search.try_all([*_spread(0, found, 3), *_spread(found, end, 3)])
            spread = True
            continue
        beyond = [index for index in search.indices if found < index <= end]
        if search.settle(beyond, lambda estimate: estimate.met):
            continue
        answer = found
        if not search.at(found).sure:
            answer = _first_sure(search, found) or _safest(search, found, end)
        doubtful(search, answer)
        if _meeting(search)[0] == found:
            _check_turns(search)
            return answer


def _first_meeting(search: Search) -> tuple[int | None, int]:
    """Return the first index that seems to meet the goal, or None, and the last index before the
    goal is missed again.

    Both assume that clauses turn no more often than necessary.
    """
    low, high = 0, len(search.axis) - 1
    search.try_all([low, high])
    for met in _conditions(search):
        span = _span(search, met)
        if span is None:
            return None, high
        low, high = max(low, span[0]), min(high, span[1])
    found = low if low <= high and search.met(low) else next(iter(_meeting(search)), None)
    while found is not None:
        for index in range(max(found - 2, 0), found):
            search.at(index)
        earliest = _meeting(search)[0]
        if earliest == found:
            break
        found = _turn(search.met, search, missed=0, met=earliest)
    return found, high


def _conditions(search: Search) -> list[Callable[[int], bool]]:
    """Return the independent conditions of an answer: one per clause, and compliance.

    Each may turn from met to missed at another value.
    """

    def clause(number: int) -> Callable[[int], bool]:
        return lambda index: search.at(index).findings[number].met

    clauses = [clause(number) for number in range(len(search.goal.clauses))]
    return [*clauses, lambda index: not search.at(index).breaches]


def _first_sure(search: Search, found: int) -> int | None:
    """Return the first index after the doubtful `found` that certainly meets the goal.

    The search ends at a value that certainly misses the goal. None if no index is certain.
    """
    if not search.can_be_sure:
        return None

    def sure(index: int) -> bool:
        search.settle([index])
        estimate = search.at(index)
        return estimate.met and estimate.sure

    # Steps double while values are in doubt, and get smaller before a value that certainly misses.
    doubtful, beyond, step = found, len(search.axis), 1
    while beyond - doubtful > 1:
        index = min(doubtful + step, beyond - 1)
        if sure(index):
            return _turn(sure, search, missed=found, met=index)
        if search.at(index).sure:
            beyond, step = index, max(1, (index - doubtful) // 2)
        else:
            doubtful, step = index, 2 * step
    return None


def _safest(search: Search, found: int, end: int) -> int:
    """Return the index farthest from the turning points, if none certainly meets the goal."""
    # The goal seems met from `found` to `end`. At the end of the axis no clause turns, so the end
    # is safest; otherwise a clause turns at `end`, and the middle is.
    safest = end if end == len(search.axis) - 1 else (found + end) // 2
    search.settle([safest])
    return safest if search.met(safest) else found


def doubtful(search: Search, answer: int) -> list[int]:
    """Return the indices before the answer that may meet the goal.

    They follow the last index that certainly misses the goal.
    """
    found = answer if search.at(answer).sure else _meeting(search)[0]

    def in_doubt(index: int) -> bool:
        search.settle([index])
        estimate = search.at(index)
        return estimate.met or not estimate.sure

    first, step = found, 1
    while first > 0:
        index = max(0, first - step)
        if not in_doubt(index):
            first = _turn(in_doubt, search, missed=index, met=first)
            break
        first, step = index, 2 * step
    return [*range(first, answer)]


def _meeting(search: Search) -> list[int]:
    """Return the indices of the values tried that seem to meet the goal."""
    return [index for index in search.indices if search.met(index)]


def _span(search: Search, met: Callable[[int], bool]) -> tuple[int, int] | None:
    """Return the first and the last index at which a condition is met; None if it is met nowhere.

    In between it is met as well, unless it turns more often than necessary.
    """
    last = len(search.axis) - 1
    indices = [0, last]
    if not met(0) and not met(last):
        indices = [0, *_spread(0, last, _PROBES), last]
        search.try_all(indices)
    meeting = [index for index in indices if met(index)]
    if not meeting:
        return None
    first = 0 if met(0) else _turn(met, search, missed=0, met=meeting[0])
    end = last if met(last) else _turn(met, search, missed=last, met=meeting[-1])
    return first, end


def _turn(holds: Callable[[int], bool], search: Search, *, missed: int, met: int) -> int:
    """Return the last index that meets a condition, on the way from `met` to `missed`."""
    ends = min(missed, met), max(missed, met)
    between = [index for index in search.indices if ends[0] <= index <= ends[1]]
    missed = min((index for index in between if not holds(index)), key=lambda k: abs(k - met))
    met = min((index for index in between if holds(index)), key=lambda k: abs(k - missed))
    while abs(met - missed) > 1:
        middle = (missed + met) // 2
        if holds(middle):
            met = middle
        else:
            missed = middle
    return met


def _spread(low: int, high: int, count: int) -> list[int]:
    """Return up to `count` evenly spaced indices between `low` and `high`."""
    inside = range(low + 1, high)
    if len(inside) <= count:
        return list(inside)
    return sorted({low + round((high - low) * k / (count + 1)) for k in range(1, count + 1)})


def _check_turns(search: Search) -> None:
    """Warn about each clause that certainly turns more than once."""
    for number, clause in enumerate(search.goal.clauses):
        turns: list[tuple[int, bool]] = []
        for index in search.indices:
            finding = search.at(index).findings[number]
            if finding.sure and (not turns or turns[-1][1] != finding.met):
                turns.append((index, finding.met))
        if len(turns) > 2:
            found = ", ".join(
                f"{'met' if met else 'missed'} at {search.axis[index].text}" for index, met in turns
            )
            search.warn(
                f"the response is not monotone: {clause.text} is {found}; the values between those "
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
        meeting = _meeting(search)
        best = cheapest_of(search, meeting) if meeting else closest(search)
        if high - low <= _GRID - 1:
            return best if meeting else None
        known = sorted({*grid, best})
        at = known.index(best)
        low, high = known[max(at - 1, 0)], known[min(at + 1, len(known) - 1)]


def cheapest_of(search: Search, indices: Sequence[int]) -> int:
    """Return the index with the lowest mean cost among the given indices."""
    return min(indices, key=lambda index: (search.at(index).cost or 0.0, index))


def tied(search: Search, best: int) -> list[int]:
    """Return values that also meet the goal and whose mean cost is not distinguishable from the
    best.
    """
    # The runs share their random numbers, so costs are compared in pairs.
    chosen = search.at(best)
    others = (index for index in _meeting(search) if index != best)
    return [index for index in others if not _dearer(search.at(index), chosen)]


def _dearer(part: GoalEstimate, chosen: GoalEstimate) -> bool:
    """Return True if the costs of two values certainly differ."""
    count = min(len(part.runs), len(chosen.runs))
    sides = [(side.runs[:count], side.bounds) for side in (part, chosen)]
    costs, least = (COST.of(runs) for runs, _ in sides)
    known, other = (facts(COST, runs, bounds) for runs, bounds in sides)
    return paired_difference(costs, least, CONFIDENCE, (known, other)).real


def closest(search: Search) -> int:
    """Return the tried value that comes closest to meeting the goal, the smallest if several do."""
    return min(
        search.indices, key=lambda index: (search.at(index).shortfall, search.axis[index].value)
    )
