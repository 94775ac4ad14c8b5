"""Plan: the smallest, largest or cheapest value of a setting that meets a goal.

The values are searched by bisection, with common random numbers for all values. A few runs per
value guide the search. The likely answer, the value before it, and contradicting values get more
runs, until they are certain or have the maximum. The error is controlled over all looks at a value
(`dialsim.experiments.sequential`). In doubt the answer is conservative: a value that certainly
meets the goal, and beside it the values that may meet it as well. Values off the path of the
bisection are tried, too; if they contradict it, the response is not monotone, and the plan warns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Unpack

from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import to_json
from dialsim.experiments.expression import OwnFigures, read_figures
from dialsim.experiments.goal import (
    GoalEstimate,
    chance_of_meeting,
    doubts_of,
    estimates_frame,
    read_goal,
)
from dialsim.experiments.replications import OutOfTime, RunSettings, runner
from dialsim.experiments.search import (
    Effort,
    Search,
    cheapest,
    cheapest_of,
    closest,
    doubtful,
    preferred,
    ruled_out,
    tied,
)
from dialsim.experiments.variants import (
    Amount,
    SettingValue,
    check_axis,
    check_values,
    check_variable,
    crossed,
    read_amount,
    setting_text,
    value_range,
)
from dialsim.experiments.why_not import WhyNot, why_not
from dialsim.interface.arguments import checked
from dialsim.results.summary_text import ExperimentResult
from dialsim.scenario.loading import long_path
from dialsim.scenario.units import value_text

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.estimates import SettingRuns
    from dialsim.experiments.expression import Expression
    from dialsim.experiments.plots import PlanPlots
    from dialsim.results.summary_text import FigureTable
    from dialsim.scenario.scenario import Scenario

Objective = Literal["smallest", "largest", "cheapest"]


@checked(ExperimentError)
@dataclass(frozen=True, slots=True, repr=False)
class Plan(ExperimentResult):
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
    between: tuple[SettingValue, SettingValue]
    goal: str
    objective: Objective
    value: SettingValue | None
    met: bool
    ruled_out: bool
    estimate: GoalEstimate
    neighbour: GoalEstimate | None
    tried: tuple[GoalEstimate, ...]
    tied: tuple[SettingValue, ...]
    in_doubt: tuple[SettingValue, ...]
    warnings: tuple[str, ...]
    stopped_after: float | None = None
    why_not: WhyNot | None = None
    first_estimate: str | None = None
    asked: str | None = None
    expressions: ClassVar[tuple[Expression, ...]] = ()

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

    @property
    def title(self) -> str:
        """Name of the scenario."""
        return self.scenario

    def to_dict(self) -> dict[str, object]:
        """Return the output of `--format json`."""
        names = ("value", "met", "goal", "ruled_out", "path", "between", "objective", "estimate",
                 "neighbour", "tried", "tied", "in_doubt", "not_allowed", "warnings", "certainty",
                 "stopped_after", "why_not", "first_estimate")  # fmt: skip
        return to_json(self, names, not_allowed=[part.value for part in self.not_allowed])

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

    def settings(self) -> list[SettingRuns]:
        """Return the values tried for a workbook."""
        from dialsim.experiments.plan_text import setting_of

        return [setting_of(setting_text(self.path, part.value), part) for part in self.tried]

    def printed(self) -> tuple[list[str], list[FigureTable]]:
        """Return the sentences and tables that a command prints."""
        from dialsim.experiments.plan_text import plan_content

        return plan_content(self)


@checked(ExperimentError)
def plan(
    scenario: Scenario,
    vary: str | Mapping[str, Iterable[object]],
    between: Sequence[object] | str | None = None,
    goal: str | None = None,
    *,
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

    `vary` has the values of one setting as in `sweep`, `{"lines": range(1, 61)}` or
    `{"lines": "1..60:5"}`, before the goal. Or it is a path, and `between` are the ends of the
    range, numbers, durations or instants, or a text such as `1..60:5`. Every value tried gets
    `replications` runs, decisive ones up to `max_replications`. `known` is called during the search
    with the findings so far, and the total of `progress` is an estimate. After `within` seconds the
    search stops with the findings so far. `figures` are functions of a `Result` by the names that
    the goal has for their figures. The other arguments are as in `replicate`.
    Raises ExperimentError for an unreadable goal or range, ScenarioError for a value that the
    scenario cannot have.

    >>> goal = "mean(people_reached) >= 20"
    >>> answer = dialsim.plan(scenario, {"lines": range(1, 5)}, goal, jobs=1)
    >>> answer.frame[["lines", "met", "sure"]].head(1).values.tolist()
    [[1, True, True]]
    """
    effort = Effort(replications, max_replications, confidence, seed)
    scenario, _ = read_figures(figures or (), scenario)
    if objective == "cheapest" and scenario.costs is None:
        raise ExperimentError("nothing is the cheapest: the scenario names no costs")
    if isinstance(vary, Mapping) and isinstance(between, str) and goal is None:
        between, goal = None, between
    if goal is None:
        raise ExperimentError("goal must be a text such as p95(finish) <= Fri 18:00, not None")
    asked, axis = _axis(vary, between, scenario.first_day)
    path, wanted = long_path(scenario, asked), read_goal(goal, scenario)
    check_variable(scenario, (path,), seed)
    check_values(scenario, path, [amount.text for amount in axis])
    # An index of the search is a position in the order of preference.
    ordered = axis[::-1] if objective == "largest" else axis
    with runner(within=within, **settings) as workers:
        search = Search(workers, scenario, path, ordered, wanted, effort, known)
        stopped = None
        try:
            found = _find(search, objective)
        except OutOfTime:
            found, stopped = _found_so_far(search, objective), within
        explained = None
        if found.index is None and stopped is None:
            # If the time runs out, the answer has no explanation.
            with suppress(OutOfTime):
                explained = why_not(search)
    answer = Plan(
        scenario=scenario.name,
        path=path,
        between=(axis[0].plain, axis[-1].plain),
        goal=wanted.text,
        objective=objective,
        value=None if found.index is None else search.at(found.index).value,
        met=found.index is not None,
        ruled_out=found.index is None and stopped is None and ruled_out(search),
        estimate=search.at(closest(search) if found.index is None else found.index),
        neighbour=None if found.beside is None else search.at(found.beside),
        tried=search.tried,
        tied=_plain(search, found.tied),
        in_doubt=_plain(search, found.in_doubt),
        warnings=tuple(search.warnings),
        stopped_after=stopped,
        why_not=explained,
        first_estimate=search.first_estimate,
        asked=asked,
    )
    warnings = [*doubts_of(wanted, scenario), *_unpriced(path, objective, scenario)]
    doubts = [] if stopped is not None else _doubts(answer, effort)
    return replace(answer, warnings=(*warnings, *answer.warnings, *doubts))


def _axis(
    vary: str | Mapping[str, Iterable[object]],
    between: Sequence[object] | str | None,
    first_day: int,
) -> tuple[str, list[Amount]]:
    """Return the path of the setting as it was asked for, and its values in ascending order."""
    if isinstance(vary, str) and isinstance(between, str):
        vary, between = {vary: between}, None
    if isinstance(vary, Mapping):
        if len(vary) != 1:
            raise ExperimentError(
                f"vary must name one setting, not {len(vary)}: dialsim.optimize varies several"
            )
        if between is not None:
            raise ExperimentError("vary has the values already: leave out between")
        [asked] = vary
        check_axis(asked)
        tried = [read_amount(part.changes[0].text, first_day) for part in crossed(vary, first_day)]
        if len({amount.kind for amount in tried}) > 1:
            raise ExperimentError(f"vary: write the values of {asked} with the same unit")
        return asked, sorted(tried, key=lambda amount: amount.value)
    if between is None or len(between) != 2:
        raise ExperimentError(
            f"between must be the ends of a range such as (1, 200), not {between}"
        )
    low, high = map(value_text, between)
    return vary, value_range(low, high, None, first_day)


def _unpriced(path: str, objective: Objective, scenario: Scenario) -> list[str]:
    """Warn about the cheapest value of a setting that has no price: lines, or engine settings."""
    is_line = path.endswith(".maxConcurrentCalls")
    is_free = is_line and scenario.costs is not None and not scenario.costs.per_line_day
    if objective != "cheapest" or not (is_free or path.startswith("engine.")):
        return []
    lines = "; costs.perLineDay would price a line" if is_line else ""
    return [
        f"{path} has no price: costs counts dials and minutes, so a value is cheaper only if "
        f"it makes fewer of them, often by chance{lines}"
    ]


@dataclass(frozen=True, slots=True)
class _Found:
    """Indices of the answer (None without one), its neighbour, and values tied or in doubt."""

    index: int | None
    beside: int | None = None
    tied: Sequence[int] = ()
    in_doubt: Sequence[int] = ()


def _find(search: Search, objective: Objective) -> _Found:
    last = len(search.axis) - 1
    if objective == "cheapest":
        index = cheapest(search)
        if index is None:
            return _Found(None)
        beside = index - 1 if index else index + 1
        search.settle([] if beside > last else [beside])
        return _Found(index, None if beside > last else beside, tied(search, index))
    search.try_all([0, *search.foreseen(), last])
    index = preferred(search)
    if index is None:
        return _Found(None)
    return _Found(index, index - 1 if index else None, in_doubt=doubtful(search, index))


def _found_so_far(search: Search, objective: Objective) -> _Found:
    """Return the answer when the time is up, without further runs."""
    search.take_finished()
    meeting = [index for index in search.indices if search.met(index)]
    if not meeting:
        return _Found(None)
    if objective == "cheapest":
        return _Found(cheapest_of(search, meeting))
    before = [index for index in search.indices if index < meeting[0]]
    unsure = [index for index in before if not search.at(index).sure]
    return _Found(meeting[0], before[-1] if before else None, in_doubt=unsure)


def _plain(search: Search, indices: Sequence[int]) -> tuple[SettingValue, ...]:
    """Return the values at some indices, ascending."""
    amounts = sorted((search.axis[index] for index in indices), key=lambda amount: amount.value)
    return tuple(amount.plain for amount in amounts)


def _doubts(answer: Plan, effort: Effort) -> list[str]:
    """Describe which of the answer and its neighbour is uncertain, and the remedy."""
    parts = [answer.estimate]
    # With an uncertain answer the neighbour is one of many in doubt.
    if answer.neighbour is not None and (answer.estimate.sure or not answer.in_doubt):
        parts.append(answer.neighbour)
    return [
        f"{setting_text(answer.path, part.value)}: the goal is {'met' if part.met else 'missed'} "
        f"in {part.replications} replications, which are too few to be sure of it: "
        f"--max-replications {_enough(part, effort)} may decide, or take a value with more to spare"
        for part in parts
        if not part.sure
    ]


_MORE = 4
"""Factor by which a maximum of runs that is too small is raised in a proposal."""


def _enough(part: GoalEstimate, effort: Effort) -> int:
    """Return a maximum of runs that may make an evaluation certain."""
    unsure = [finding for finding in part.findings if not finding.sure]
    share = max(finding.clause.share_to_tell for finding in unsure)
    skewed = max(finding.enough or 0 for finding in unsure)
    more = replace(effort, most=_MORE * effort.most)
    while more.most < skewed or not more.looks.can_tell(share, effort.confidence):
        more = replace(more, most=_MORE * more.most)
    return more.most
