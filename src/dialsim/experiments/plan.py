"""Plan: the smallest, largest or cheapest value of a setting that meets a goal.

The values are searched by bisection, with common random numbers for all values. A few runs per
value guide the search. The likely answer, the value before it, and contradicting values get more
runs, until they are certain or have the maximum. The error is controlled over all looks at a value
(`dialsim.experiments.looks`). In doubt the answer is conservative: a value that certainly meets the
goal, with the values that may do so as well. Values off the path of the bisection are tried, too;
if they contradict it, the response is not monotone, and the plan warns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Unpack

from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import check_confidence
from dialsim.experiments.expression import OwnFigures, read_figures
from dialsim.experiments.goal import (
    ClauseFinding,
    GoalEstimate,
    chance_of_meeting,
    doubts_of,
    estimates_frame,
    read_goal,
)
from dialsim.experiments.runner import OutOfTime, RunSettings, runner
from dialsim.experiments.search import (
    Search,
    cheapest,
    closest,
    doubtful,
    enough,
    enough_runs,
    ruled_out,
    smallest,
    tied,
)
from dialsim.experiments.variants import (
    Axis,
    check_axis,
    check_variable,
    crossed,
    make_axis,
    read_amount,
    read_range,
    setting_text,
)
from dialsim.experiments.why_not import WhyNot, why_not
from dialsim.interface.phrases import brief_text, checked, kind_of
from dialsim.scenario.loading import long_path
from dialsim.scenario.units import value_text

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.plots import PlanPlots
    from dialsim.scenario.scenario import Scenario

Objective = Literal["smallest", "largest", "cheapest"]
Value = int | float | str


@dataclass(frozen=True, slots=True)
class Plan:
    """Answer to "which value meets the goal?".

    `value` is a number, or the text of a duration or an instant; None without an answer. `estimate`
    is the evaluation of `value`, or of the closest value if none meets the goal (`met` False).
    `neighbour` is the evaluation of the next value in the desired direction, which just fails (None
    at the end of the range). `tried` are all evaluations, by value. `ruled_out` means that
    certainly no value meets the goal. `tied` are other values that meet the goal, with costs
    indistinguishable from the cheapest. `in_doubt` are values before the answer that may meet the
    goal as well. If no value certainly meets it, `value` is the one with the largest margin.
    `warnings` list doubts. `stopped_after` is the time limit in seconds if it ended the search; the
    answer then depends on the speed of the machine. `why_not` explains a missed goal.
    `first_estimate` is a sentence on the estimate before any run. `path` is the whole path of the
    setting, `paths` its name as it was asked for.

    >>> goal = "mean(people_reached) >= 20"
    >>> answer = dialsim.plan(scenario, {"lines": [1, 2, 4]}, goal, jobs=1)
    >>> answer.value, answer.met, answer.sure
    (1, True, True)
    """

    scenario: str
    path: str
    between: tuple[Value, Value]
    goal: str
    objective: Objective
    value: Value | None
    met: bool
    ruled_out: bool
    estimate: GoalEstimate
    neighbour: GoalEstimate | None
    tried: tuple[GoalEstimate, ...]
    tied: tuple[Value, ...]
    in_doubt: tuple[Value, ...]
    warnings: tuple[str, ...]
    stopped_after: float | None = None
    why_not: WhyNot | None = None
    first_estimate: str | None = None
    asked: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Name of the setting as it was asked for."""
        return (self.asked or self.path,)

    @property
    def sure(self) -> bool:
        """True if the runs make the verdict on the answer certain."""
        return self.ruled_out or self.estimate.sure

    @property
    def frame(self) -> pd.DataFrame:
        """Table with a row per value tried.

        Columns are the setting, `met` and `sure` (bool), `replications` (int64), `cost`,
        `reach_share` and `people_lost` (means), and each clause of the goal with the ends of its
        interval, `CLAUSE low` and `CLAUSE high`. Instants are timestamps in UTC, NaT for never;
        `attrs["units"]` has the units of the others.
        """
        rows = [{self.paths[0]: part.value} for part in self.tried]
        return estimates_frame(rows, self.tried)

    def to_dict(self) -> dict[str, object]:
        """Return the output of `--format json`."""
        return {
            "value": self.value,
            "met": self.met,
            "goal": self.goal,
            "ruled_out": self.ruled_out,
            "path": self.path,
            "between": list(self.between),
            "objective": self.objective,
            "estimate": self.estimate.to_dict(),
            "neighbour": self.neighbour.to_dict() if self.neighbour else None,
            "tried": [estimate.to_dict() for estimate in self.tried],
            "tied": list(self.tied),
            "in_doubt": list(self.in_doubt),
            "not_allowed": [part.value for part in self.not_allowed],
            "warnings": list(self.warnings),
            "certainty": self.certainty,
            "stopped_after": self.stopped_after,
            "why_not": None if self.why_not is None else self.why_not.to_dict(),
            "first_estimate": self.first_estimate,
        }

    @property
    def certainty(self) -> float:
        """Estimated probability that the value of `estimate` meets the goal."""
        return chance_of_meeting(self.estimate)

    @property
    def not_allowed(self) -> tuple[GoalEstimate, ...]:
        """Values tried that break a compliance rule more often than the scenario as it is."""
        return tuple(part for part in self.tried if part.breaches)

    @property
    def plot(self) -> PlanPlots:
        """Plots: `plot.estimates()`."""
        from dialsim.experiments.plots import PlanPlots

        return PlanPlots(self)

    def __repr__(self) -> str:
        from dialsim.experiments.plan_text import plan_headline, plan_sentences

        said = [plan_headline(self), *plan_sentences(self)]
        return brief_text(f"dialsim.Plan {self.scenario!r}", said)

    def _repr_html_(self) -> str:
        from dialsim.experiments.plan_text import plan_html

        return plan_html(self)


@checked(ExperimentError, RunSettings)
def plan(
    scenario: Scenario,
    vary: str | Mapping[str, Iterable[object]],
    between: tuple[object, object] | str | None = None,
    goal: str | None = None,
    *,
    step: object | None = None,
    objective: Objective = "smallest",
    replications: int = 8,
    max_replications: int = 400,
    confidence: float = 0.95,
    seed: int | None = None,
    known: Callable[[str], object] | None = None,
    within: float | None = None,
    figures: OwnFigures | None = None,
    **settings: Unpack[RunSettings],
) -> Plan:
    """Find the smallest (largest, cheapest) value at a path that meets a goal.

    `vary` has the values of one setting as in `sweep`, `{"lines": range(1, 61)}`, before the goal.
    Or it is a path, and `between` are the ends of the range, numbers, durations or instants, or a
    text `LOW..HIGH:STEP`; `step` is the distance of values (1, 1m, 1h, or a hundredth of the
    range). Every value tried gets `replications` runs, decisive ones up to `max_replications`.
    `known` is called during the search with the findings so far, and the total of `progress` is an
    estimate. After `within` seconds the search stops with the findings so far. `figures` are
    functions of a `Result` by the names that the goal has for their figures. The other arguments
    are as in `replicate`.
    Raises ExperimentError for an unreadable goal or range, ScenarioError for a value that the
    scenario cannot have.

    >>> goal = "mean(people_reached) >= 20"
    >>> answer = dialsim.plan(scenario, {"lines": range(1, 5)}, goal, jobs=1)
    >>> answer.frame[["lines", "met", "sure"]].head(1).values.tolist()
    [[1, True, True]]
    """
    check_confidence(confidence)
    scenario, _ = read_figures(figures or (), scenario)
    if objective not in ("smallest", "largest", "cheapest"):
        raise ExperimentError(f"there is no objective {objective}: smallest, largest or cheapest")
    if objective == "cheapest" and scenario.costs is None:
        raise ExperimentError("nothing is the cheapest: the scenario names no costs")
    if not 2 <= replications <= max_replications:
        raise ExperimentError("a plan needs 2 replications or more, and no more than their maximum")
    if isinstance(vary, Mapping) and isinstance(between, str) and goal is None:
        between, goal = None, between
    if goal is None:
        raise ExperimentError("goal must be a text such as p95(finish) <= Fri 18:00, not None")
    asked, axis = _axis(vary, between, step, scenario.first_day)
    vary = long_path(scenario, asked)
    wanted = read_goal(goal, scenario)
    check_variable(scenario, (vary,), seed)
    with runner(within=within, **settings) as place:
        search = Search(
            place, scenario, seed, vary, axis, wanted, replications, max_replications, confidence,
            known,
        )  # fmt: skip
        try:
            answer = _answer(search, objective)
        except OutOfTime:
            answer = replace(_so_far(search, objective), stopped_after=within)
        if not answer.met and answer.stopped_after is None:
            # Without time for the explanation the answer stands.
            with suppress(OutOfTime):
                answer = replace(answer, why_not=why_not(search))
    doubts = []
    if answer.stopped_after is None:
        doubts = _doubts(answer, replications, max_replications, confidence)
    unpriced = []
    if objective == "cheapest" and _is_unpriced(vary, scenario):
        unpriced.append(_unpriced(vary))
    return replace(
        answer,
        asked=asked,
        warnings=(*doubts_of(wanted, scenario), *unpriced, *answer.warnings, *doubts),
    )


def _axis(vary: object, between: object, step: object | None, first_day: int) -> tuple[str, Axis]:
    """Return the path of the setting as it was asked for, and its values in ascending order."""
    if isinstance(vary, Mapping):
        if len(vary) != 1:
            raise ExperimentError(
                f"vary must name one setting, not {len(vary)}: dialsim.optimize varies several"
            )
        if between is not None or step is not None:
            raise ExperimentError("vary has the values already: leave out between and step")
        [asked] = vary
        check_axis(asked)
        tried = [read_amount(part.changes[0].text, first_day) for part in crossed(vary, first_day)]
        if len({amount.kind for amount in tried}) > 1:
            raise ExperimentError(f"vary: write the values of {asked} with the same unit")
        return asked, sorted(tried, key=lambda amount: amount.value)
    if not isinstance(vary, str):
        raise ExperimentError(
            'vary must be the values of a setting, {"lines": range(1, 61)}, or its path, not '
            f"{kind_of(vary)}"
        )
    if isinstance(between, str):
        axis = read_range(between, first_day)
        if axis is None:
            raise ExperimentError(f"{between}: write the range as LOW..HIGH, such as 1..200")
        return vary, axis
    if not isinstance(between, Sequence) or len(between) != 2:
        raise ExperimentError(
            "between must be the ends of a range such as (1, 200), or a text 1..200, not "
            f"{kind_of(between)}"
        )
    low, high = (value_text(end) for end in between)
    return vary, make_axis(low, high, None if step is None else value_text(step), first_day)


def _is_unpriced(path: str, scenario: Scenario) -> bool:
    """Return True if `costs` has no price for a setting: lines, or engine settings."""
    lines_are_free = scenario.costs is None or not scenario.costs.per_line_day
    is_line = path.endswith(".maxConcurrentCalls")
    return path.startswith("engine.") or (is_line and lines_are_free)


def _unpriced(path: str) -> str:
    lines = "; costs.perLineDay would price a line" if path.endswith(".maxConcurrentCalls") else ""
    return (
        f"{path} has no price: costs counts dials and minutes, so a value is cheaper only for "
        f"making fewer of them, and often by chance{lines}"
    )


def _answer(search: Search, objective: Objective) -> Plan:
    last = len(search.axis) - 1
    index: int | None
    # The search returns the first value of an order that meets the goal, so the order is the
    # objective.
    order = range(last, -1, -1) if objective == "largest" else range(last + 1)
    if objective == "cheapest":
        index = cheapest(search)
        beside = None if index is None else (index - 1 if index else index + 1)
        search.settle([] if beside is None or beside > last else [beside])
    else:
        search.try_all([order[0], *search.foreseen(order), order[-1]])
        index = smallest(search, order)
        beside = None if index is None else index - order.step
    smaller = [] if index is None or objective == "cheapest" else doubtful(search, order, index)
    alike = tied(search, index) if objective == "cheapest" and index is not None else []
    neighbour = search.at(beside) if beside is not None and 0 <= beside <= last else None
    excluded = index is None and ruled_out(search)
    return _plan(search, objective, index, neighbour, alike, sorted(smaller), excluded)


def _so_far(search: Search, objective: Objective) -> Plan:
    """Return the answer when the time is up, without further runs."""
    search.take_finished()
    order = search.indices[::-1] if objective == "largest" else search.indices
    meeting = [index for index in order if search.met(index)]
    index = meeting[0] if meeting else None
    if objective == "cheapest" and meeting:
        index = min(meeting, key=lambda index: (search.at(index).cost or 0.0, index))
    before = [] if index is None or objective == "cheapest" else order[: order.index(index)]
    neighbour = search.at(before[-1]) if before else None
    unsure = sorted(index for index in before if not search.at(index).sure)
    return _plan(search, objective, index, neighbour, [], unsure, is_ruled_out=False)


def _plan(
    search: Search,
    objective: Objective,
    index: int | None,
    neighbour: GoalEstimate | None,
    alike: Sequence[int],
    unsure: Sequence[int],
    is_ruled_out: bool,
) -> Plan:
    last = len(search.axis) - 1
    estimate = search.at(closest(search) if index is None else index)
    return Plan(
        scenario=search.scenario.name,
        path=search.path,
        between=(search.axis[0].plain, search.axis[last].plain),
        goal=search.goal.text,
        objective=objective,
        value=None if index is None else estimate.value,
        met=index is not None,
        ruled_out=is_ruled_out,
        estimate=estimate,
        neighbour=neighbour,
        tried=search.tried,
        tied=tuple(search.at(other).value for other in alike),
        in_doubt=tuple(search.axis[other].plain for other in unsure),
        warnings=tuple(search.warnings),
        first_estimate=search.first_estimate,
    )


def _doubts(answer: Plan, first: int, most: int, confidence: float) -> list[str]:
    """Describe which of the answer and its neighbour is uncertain, and the remedy."""
    said = []
    parts = (answer.estimate, answer.neighbour)
    if answer.in_doubt and not answer.estimate.sure:
        parts = (answer.estimate, None)  # the neighbour is one of many in doubt
    for part in parts:
        if part is None or part.sure:
            continue
        unsure = [finding for finding in part.findings if not finding.sure]
        verdict = "the goal is met" if part.met else "the goal is missed"
        advice = _advice(first, most, unsure, confidence)
        said.append(
            f"{setting_text(answer.path, part.value)}: {verdict} in {part.replications} "
            f"replications, which are too few to be sure of it{advice}"
        )
    return said


def _advice(first: int, most: int, unsure: Sequence[ClauseFinding], confidence: float) -> str:
    """Describe how to remove a doubt."""
    share = max(finding.clause.share_to_tell for finding in unsure)
    skewed = max((finding.enough or 0 for finding in unsure), default=0)
    more = enough_runs(first, most, share, confidence, skewed)
    if not enough(first, most, share, confidence):
        return f", as they are even if all are within the bound: --max-replications {more} may tell"
    if skewed > most:
        return f", as the figure is too skewed for them: --max-replications {more} may tell"
    return f": --max-replications {more} may tell, or take a value with more to spare"
