"""Optimum: the best combination of several settings that meets the goals.

In a small grid all combinations are tried, with common random numbers; in a large one first a
coarse grid and then finer ones around the best. (A search may miss better combinations elsewhere,
which the answer mentions.) A few runs each show which combinations may be the best. Only these get
more runs, until all of the following is settled or no runs are left:

- the best meets the goals, and better ones do not (`judge`);
- no other combination that meets them is better by more than the indifference, by the interval of
  paired differences (Kim & Nelson 2006, "Selecting the best system", section 4; with constraints
  Andradóttir & Kim 2010, "Fully sequential procedures for comparing constrained systems via
  simulation", Naval Research Logistics 57).

A certain verdict is wrong with a probability of at most 1 − `confidence`, over all combinations
tried, all goals and all looks: half of it for the goals, half for the comparisons, each divided
evenly (Bonferroni). Combinations that are equal within the indifference are ordered by their
values: the smallest value of the first setting wins, then of the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import inf, isfinite, isnan, nan, prod, sqrt
from typing import TYPE_CHECKING, Unpack

import numpy as np

from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import to_json, undominated
from dialsim.experiments.expression import (
    Expression,
    OwnFigures,
    figure_of,
    read_expression,
    read_figures,
)
from dialsim.experiments.fluid import (
    first_estimate,
    has_figures,
    no_estimate,
    seems_met,
    sought_text,
)
from dialsim.experiments.goal import (
    Goal,
    GoalEstimate,
    certainty_text,
    chance_of_meeting,
    doubts_of,
    estimates_frame,
    read_goal,
)
from dialsim.experiments.intervals import Known, paired_difference
from dialsim.experiments.named_figures import COST, expected_mean
from dialsim.experiments.replications import OutOfTime, RunSettings, runner
from dialsim.experiments.search import Effort, Trials
from dialsim.experiments.sequential import LEAST_TO_BE_SURE
from dialsim.experiments.variants import (
    SettingChange,
    SettingValue,
    Variant,
    check_axis,
    check_values,
    check_variable,
    crossed,
    label_of,
    short_names,
    sorting,
)
from dialsim.interface.arguments import checked
from dialsim.results.summary_text import ExperimentResult
from dialsim.scenario.loading import long_path

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from dialsim.experiments.estimates import SettingRuns
    from dialsim.experiments.known_bounds import KnownBounds
    from dialsim.experiments.plots import OptimumPlots
    from dialsim.experiments.replications import ExperimentRunner
    from dialsim.experiments.run_figures import RunFigures
    from dialsim.results.summary_text import FigureTable
    from dialsim.scenario.scenario import Scenario


_ALL = 256
"""Largest number of combinations that are all tried."""
_COARSE = 64
"""Approximate number of combinations of the first, coarse grid of a search."""
_AT_ONCE = 16
"""Number of combinations that get runs at once."""
_FORESEEN = 32
"""Largest number of combinations that are ordered by first estimates."""

_OF_ANSWER = frozenset({"finish", "people_reached"})
"""Figures that every answer has for a combination."""

Key = tuple[int, ...]
"""Combination: index of each setting's value, in the order of the settings."""


@dataclass(frozen=True, slots=True)
class Objective:
    """Figure whose mean is to be minimized or maximized.

    An instant counts from `origin` (ms), when calling begins.
    """

    # Instants count from the beginning of calling, because a share of the time since 1970 would
    # make every difference small.
    figure: Expression
    greatest: bool
    origin: int

    @property
    def text(self) -> str:
        """Text such as `maximize mean(people_reached)`."""
        return f"{'maximize' if self.greatest else 'minimize'} mean({self.figure.text})"

    def losses(self, runs: Sequence[RunFigures]) -> NDArray[np.float64]:
        """Return the loss of each run, smaller is better; infinite for an undefined figure."""
        values = self.figure.of(runs) - (self.origin if self.figure.is_instant else 0)
        return np.where(np.isnan(values), inf, -values if self.greatest else values)

    def facts(self, runs: Sequence[RunFigures], bounds: KnownBounds) -> Known:
        """Return the facts about the losses, besides their values."""
        known = self.figure.facts(runs, bounds)
        return Known(certain=True, least=0.0, most=0.0).minus(known) if self.greatest else known

    def loss(self, runs: Sequence[RunFigures], bounds: KnownBounds) -> float:
        """Return the mean loss, with the expectation of charges where it is known."""
        losses = self.losses(runs)
        if not np.isfinite(losses).all():
            return float(losses.sum())
        return float(self.facts(runs, bounds).expected(losses).mean())

    def mean(self, runs: Sequence[RunFigures], bounds: KnownBounds) -> float:
        """Return the mean of the figure, NaN where it is not finite."""
        loss = self.loss(runs, bounds)
        if not isfinite(loss):
            return nan
        return (-loss if self.greatest else loss) + (self.origin if self.figure.is_instant else 0)


@dataclass(frozen=True, slots=True)
class Combination:
    """Combination that was tried: values of its settings, and evaluation of its runs.

    `objective` is the mean of the objective's figure, None without one. `finish` is the instant at
    which half of the runs are done (ms since 1970, infinite if never). `cost` (NaN without costs)
    and `people_reached` are means of whole runs. All three use the number of runs that every
    combination has, so that they share their random numbers.
    """

    values: tuple[SettingValue, ...]
    estimate: GoalEstimate
    objective: float | None
    finish: float
    cost: float
    people_reached: float

    @property
    def name(self) -> str:
        """Name such as `lines=8, maxAttempts=3`."""
        return str(self.estimate.value)

    def to_dict(self) -> dict[str, object]:
        """Return JSON values."""
        names = "values", "objective", "people_reached_mean"
        own = to_json(self, names, people_reached_mean=self.people_reached)
        return own | self.estimate.to_dict()


@checked(ExperimentError)
@dataclass(frozen=True, slots=True, repr=False)
class Optimum(ExperimentResult):
    """Answer to "which combination does best?".

    `figure` is the objective's; None if the smallest values are wanted. `best` is the answer, or
    the closest combination if none meets the goals (`met` False). `sure` means that it meets them
    and that no other combination tried is better by more than the indifference. `open` are
    combinations that may be better; `in_doubt` are better combinations of which all allowed runs do
    not decide whether they meet the goals. `alike` meet the goals as well, with an equal objective
    within the indifference. `frontier` are combinations that meet the goals and are not dominated
    in finish, cost and people reached, earliest finish first; if none meets the goals, it covers
    all. `tried` are all evaluations; `count` is the number of combinations. `warnings` list doubts.
    `certainty` is the estimated probability that `best` meets the goals and no other is better.
    `stopped_after` is the time limit in seconds if it ended the search; the answer then depends on
    the speed of the machine. `first_estimate` is a sentence on the estimate before any run. `paths`
    are the settings, named as they were asked for.

    >>> best = dialsim.optimize(scenario, {"lines": [1, 2]}, minimize="mean(cost)", jobs=1)
    >>> best.frame["lines"].tolist()
    [1, 2]
    """

    scenario: str
    paths: tuple[str, ...]
    goal: str | None
    objective: str | None
    figure: Expression | None
    best: Combination
    met: bool
    sure: bool
    open: tuple[Combination, ...]
    in_doubt: tuple[Combination, ...]
    alike: tuple[Combination, ...]
    frontier: tuple[Combination, ...]
    tried: tuple[Combination, ...]
    count: int
    indifference: float
    origin: int | None
    warnings: tuple[str, ...]
    certainty: float
    stopped_after: float | None
    first_estimate: str | None = None

    @property
    def title(self) -> str:
        """Name of the scenario."""
        return self.scenario

    def to_dict(self) -> dict[str, object]:
        """Return the output of `--format json`."""
        names = ("paths", "goal", "objective", "met", "sure", "best", "open", "in_doubt", "alike",
                 "frontier", "tried", "combinations", "indifference", "not_allowed", "warnings",
                 "certainty", "stopped_after", "first_estimate")  # fmt: skip
        # All combinations are among `tried`; the other lists have their names.
        listed = {
            name: [part.name for part in getattr(self, name)]
            for name in ("open", "in_doubt", "alike", "frontier", "not_allowed")
        }
        return to_json(self, names, combinations=self.count, **listed)

    @property
    def frame(self) -> pd.DataFrame:
        """Table with a row per combination tried: a column per setting, the mean of the objective,
        the median finish (UTC), and the columns of `Plan.frame`.
        """
        import pandas as pd

        is_instant = self.figure is not None and self.figure.is_instant
        rows = []
        for part in self.tried:
            row: dict[str, object] = dict(zip(self.paths, part.values, strict=True))
            if part.objective is not None:
                at = pd.to_datetime(part.objective, unit="ms", utc=True)
                row["objective"] = at if is_instant else part.objective
            never = not isfinite(part.finish)
            row["finish"] = pd.NaT if never else pd.Timestamp(part.finish, unit="ms", tz="UTC")
            rows.append(row | {"people_reached": part.people_reached})
        frame = estimates_frame(rows, [part.estimate for part in self.tried])
        frame.attrs["units"]["people_reached"] = "people"
        if self.figure is not None and not is_instant:
            frame.attrs["units"]["objective"] = self.figure.measure.label
        return sorting(frame, self.paths)

    @property
    def not_allowed(self) -> tuple[Combination, ...]:
        """Combinations tried that break a compliance rule more often than the scenario as it is."""
        return tuple(part for part in self.tried if part.estimate.breaches)

    @property
    def plot(self) -> OptimumPlots:
        """Plots: `plot.frontier()`."""
        from dialsim.experiments.plots import OptimumPlots

        return OptimumPlots(self)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Figure of the objective, if any."""
        return () if self.figure is None else (self.figure,)

    def settings(self) -> list[SettingRuns]:
        """Return the combinations tried for a workbook."""
        from dialsim.experiments.plan_text import setting_of

        return [setting_of(part.name, part.estimate) for part in self.tried]

    def printed(self) -> tuple[list[str], list[FigureTable]]:
        """Return the sentences and tables that a command prints."""
        from dialsim.experiments.plan_text import optimum_content

        return optimum_content(self)


@checked(ExperimentError)
def optimize(
    scenario: Scenario,
    vary: Mapping[str, Iterable[object]],
    goal: str | Sequence[str] | None = None,
    *,
    maximize: str | None = None,
    minimize: str | None = None,
    indifference: float = 0.005,
    replications: int = 8,
    max_replications: int = 400,
    confidence: float = 0.95,
    seed: int | None = None,
    known: Callable[[str], object] | None = None,
    within: float | None = None,
    figures: OwnFigures | None = None,
    **settings: Unpack[RunSettings],
) -> Optimum:
    """Find the combination of several settings that meets all goals and does best.

    `vary` maps paths to values, as in `sweep`: a list, or a text such as `1..80` or `1h,2h,4h`.
    Goals are as in `plan`; several are joined. `maximize` or `minimize` is `mean(FIGURE)`; without
    them the smallest values that meet the goals are best, the first path first. Differences below
    the share `indifference` of the objective are ignored. The other arguments are as in `plan`.
    Raises ExperimentError for unreadable input, ScenarioError for a value that the scenario cannot
    have.

    >>> vary = {"lines": [1, 2], "maxAttempts": [1, 2]}
    >>> best = dialsim.optimize(scenario, vary, "mean(people_reached) >= 25", jobs=1)
    >>> best.paths, best.frame.columns[:2].tolist()
    (('lines', 'maxAttempts'), ['lines', 'maxAttempts'])
    """
    effort = Effort(replications, max_replications, confidence, seed)
    if not 0 <= indifference < 1:
        raise ExperimentError(f"the indifference is a share such as 0.01, not {indifference}")
    scenario, _ = read_figures(figures or (), scenario)
    goals = [goal] if isinstance(goal, str) else list(goal or ())
    objective = read_objective(maximize, minimize, scenario)
    if not goals and objective is None:
        raise ExperimentError("say what is wanted: a goal, something to maximize, or to minimize")
    wanted = read_goal(" and ".join(goals), scenario) if goals else Goal("", ())
    for path in vary:
        check_axis(path)
    axes = {long_path(scenario, path): _axis(path, values, scenario.first_day)
            for path, values in vary.items()}  # fmt: skip
    if len(axes) < len(vary):
        raise ExperimentError(f"two of {', '.join(vary)} are the same setting")
    check_variable(scenario, axes, seed)
    for path, texts in axes.items():
        check_values(scenario, path, texts)
    with runner(within=within, **settings) as workers:
        race = _Race(workers, scenario, axes, wanted, objective, effort, indifference, known)
        stopped = None
        try:
            race.explore()
            best = race.settle()
        except OutOfTime:
            race.take_finished()
            best, stopped = race.leader(), within
    return race.answer(tuple(vary), best, stopped)


def read_objective(
    maximize: str | None, minimize: str | None, scenario: Scenario
) -> Objective | None:
    """Parse `mean(FIGURE)` to maximize or minimize; None if neither is given."""
    if maximize is not None and minimize is not None:
        raise ExperimentError("give either maximize or minimize, not both")
    text = maximize if minimize is None else minimize
    if text is None:
        return None
    bare = text.strip()
    if not (bare.startswith("mean(") and bare.endswith(")")):
        raise ExperimentError(f"{text}: write mean(FIGURE), such as mean(people_reached)")
    figure = read_expression(bare[5:-1], scenario, bare, 5)
    return Objective(figure, minimize is None, scenario.calling_begins)


def _axis(path: str, values: Iterable[object], first_day: int) -> tuple[str, ...]:
    """Return the values of a setting as texts."""
    return tuple(variant.changes[0].text for variant in crossed({path: values}, first_day))


class _Race(Trials[Key]):
    """Race of combinations: promising ones get more runs than the others."""

    def __init__(
        self,
        runner: ExperimentRunner,
        scenario: Scenario,
        axes: Mapping[str, Sequence[str]],
        goal: Goal,
        objective: Objective | None,
        effort: Effort,
        indifference: float,
        known: Callable[[str], object] | None,
    ) -> None:
        figure = None if objective is None else objective.figure
        super().__init__(
            runner, scenario, goal, effort, objective=figure, figures=_OF_ANSWER, known=known
        )
        self._axes = axes
        self._sizes = tuple(len(values) for values in axes.values())
        self._short = short_names(axes)
        self._objective = objective
        self._indifference = indifference
        self._doubtful: set[Key] = set()
        self._losses: dict[tuple[Key, int], float] = {}

    @property
    def _error(self) -> float:
        """Error probability of one combination, for its goals and again for its comparisons."""
        # Divided by all combinations and not only by those tried so far, because the choice of
        # these depends on the runs.
        return (1 - self.effort.confidence) / (2 * prod(self._sizes))

    @property
    def _confidence(self) -> float:
        return 1 - self._error

    def _loss(self, key: Key) -> float:
        """Return the mean loss of a combination, 0 without an objective."""
        if self._objective is None:
            return 0.0
        part = self._tried[key]
        known = key, part.replications
        if known not in self._losses:  # each step of the race needs it many times
            self._losses[known] = self._objective.loss(part.runs, part.bounds)
        return self._losses[known]

    def explore(self) -> None:
        """Evaluate all combinations of a small grid, and a selection from a large one."""
        sizes = self._sizes
        if prod(sizes) <= _ALL:
            keys = self._foreseen([*product(*map(range, sizes))])
            for first in range(0, len(keys), _AT_ONCE):
                self._try(keys[first : first + _AT_ONCE])
            return
        # At least both ends and the middle of each setting: with two values a response with a
        # maximum inside would look flat.
        count = max(3, int(_COARSE ** (1 / len(sizes))))
        coarse = [
            sorted({round(step * (size - 1) / (count - 1)) for step in range(count)})
            if size > count
            else list(range(size))
            for size in sizes
        ]
        self._try(product(*coarse))
        steps = [max(1, (size - 1) // (2 * (count - 1))) for size in sizes]
        while True:
            # Without a combination that meets the goals the search moves towards them.
            around = self.leader() or self._closest()
            near = [*self._around(around, steps)]
            if any(key not in self._tried for key in near):
                self._try(near)
            elif max(steps) == 1:
                return
            else:
                # Steps shrink only once the centre beats all its neighbours, as in a pattern
                # search.
                steps = [max(1, step // 2) for step in steps]

    def _foreseen(self, keys: list[Key]) -> list[Key]:
        """Order combinations by their first estimates, most promising first, and log the first."""
        # An estimate takes as long as some runs of a small campaign: more of them delay the search.
        found = {key: first_estimate(self._variant(key)) for key in keys[:_FORESEEN]}
        figures = () if self._objective is None else self._objective.figure.figures
        known = {key: run for key, run in found.items() if run and has_figures(run, figures)}
        if len(known) < len(keys) or seems_met(self.goal, known[keys[0]]) is None:
            if len(found) == len(keys):
                self.first_estimate = no_estimate(self._variant(keys[0]), "what is wanted")
            return keys

        def rank(key: Key) -> tuple[bool, float, Key]:
            losses = [0.0] if self._objective is None else self._objective.losses([known[key]])
            return not seems_met(self.goal, known[key]), float(losses[0]), key

        ordered = sorted(keys, key=rank)
        self.first_estimate = sought_text("best", self._value(ordered[0]))
        return ordered

    def _around(self, key: Key, steps: Sequence[int]) -> Iterator[Key]:
        """Yield a combination and its neighbours at a distance of `steps` on each axis."""
        return product(
            *(
                sorted({max(0, at - step), at, min(size - 1, at + step)})
                for at, step, size in zip(key, steps, self._sizes, strict=True)
            )
        )

    def settle(self) -> Key | None:
        """Give further runs to candidates until nothing is open, or no runs are left.

        Returns a combination that certainly meets the goals, if there is one.
        """
        while True:
            leader = self.leader()
            wanted = [key for key in self._open(leader) if self._has_looks(key)][:_AT_ONCE]
            sure = leader is None or self._tried[leader].sure
            if leader is not None and (wanted or not sure) and self._has_looks(leader):
                # The leader gets more runs along with its rivals: a paired difference uses only the
                # runs that both sides have.
                wanted.append(leader)
            if wanted:
                self._look_at(wanted)
            elif leader is not None and not sure:
                # After all its runs, the leader's goals are in doubt; the next best may be certain.
                self._doubtful.add(leader)
            elif leader is None and self._doubtful:
                # If no combination is certain, a doubtful one is the answer.
                self._doubtful.clear()
                return self.leader()
            else:
                return leader

    def _open(self, leader: Key | None) -> list[Key]:
        """Return combinations that may be better than the leader, the most promising first."""
        if leader is None:
            keys = [key for key, part in self._tried.items()
                    if not part.sure and key not in self._doubtful]  # fmt: skip
            return sorted(keys, key=lambda key: self._tried[key].shortfall)
        keys = [
            key
            for key in self._tried
            if key != leader and key not in self._doubtful and not self._settled(key, leader)
        ]
        return sorted(keys, key=lambda key: (self._tried[key].shortfall, self._loss(key), key))

    def _settled(self, key: Key, leader: Key) -> bool:
        """Return True if a combination is certainly not better than the leader."""
        estimate = self._tried[key]
        if not estimate.met and estimate.sure:
            return True
        # Without an objective the smallest values win, and keys are in the order of the values.
        if self._objective is None:
            return key > leader
        least = self._least_loss(key, leader)
        # A combination that would win a tie must certainly be worse; others only must not be
        # better.
        return least > 0 if key < leader else least >= -self._tolerance(leader)

    def _paired_losses(self, objective: Objective, *keys: Key) -> list[NDArray[np.float64]]:
        """Return the losses of combinations in the runs that all of them have."""
        count = min(self._tried[key].replications for key in keys)
        return [objective.losses(self._specs[key].first(count)) for key in keys]

    def _least_loss(self, key: Key, leader: Key) -> float:
        """Return the lower limit of the mean loss of a combination minus that of the leader."""
        assert self._objective is not None
        ours, theirs = self._paired_losses(self._objective, key, leader)
        # Each look is a separate test (Bonferroni), and only the lower limit is used.
        confidence = 1 - 2 * self._error / len(self._looks.counts)
        known, other = (
            self._objective.facts(self._specs[part].first(len(ours)), self._specs[part].bounds)
            for part in (key, leader)
        )
        found = paired_difference(ours, theirs, confidence, (known, other))
        if isfinite(found.low):
            return found.low
        # A difference that no pair shows is rare, and small unless the figure can jump
        alike = len(ours) >= LEAST_TO_BE_SURE and found.rose == found.fell == 0
        return 0.0 if alike and not known.jumps else -inf

    def _tolerance(self, leader: Key) -> float:
        return self._indifference * abs(self._loss(leader))

    def leader(self) -> Key | None:
        """Return the best combination that seems to meet the goals, or None."""
        meeting = [
            key
            for key, part in self._tried.items()
            if part.met and isfinite(self._loss(key)) and key not in self._doubtful
        ]
        if not meeting:
            return None
        best = min(meeting, key=lambda key: (self._loss(key), key))
        limit = self._loss(best) + self._tolerance(best)
        # Within the tolerance the smallest values win, so that no line is added for a gain that
        # does not matter.
        return min(key for key in meeting if self._loss(key) <= limit)

    def _closest(self) -> Key:
        return min(self._tried, key=lambda key: (self._tried[key].shortfall, self._loss(key), key))

    def _try(self, keys: Iterable[Key]) -> None:
        self._look_at([key for key in keys if key not in self._tried])

    def _findings_so_far(self) -> str:
        leader = self.leader()
        found = "none meets the goals so far"
        if leader is not None:
            found = f"{self._value(leader)} leads, {certainty_text(self.certainty(leader))}"
        return f"{found}; {len(self._tried)} tried"

    def certainty(self, leader: Key) -> float:
        """Estimate the probability that the leader meets the goals and that no other is better.

        Combinations are treated as independent; settled combinations count as certainly not better.
        """
        losing = (1 - self._chance_of_winning(key, leader) for key in self._open(leader))
        return chance_of_meeting(self._tried[leader]) * prod(losing)

    def _chance_of_winning(self, key: Key, leader: Key) -> float:
        from scipy.special import stdtr

        meeting = chance_of_meeting(self._tried[key])
        if self._objective is None:
            return meeting
        ours, theirs = self._paired_losses(self._objective, key, leader)
        losses = ours - theirs
        count = len(losses)
        spread = float(np.std(losses, ddof=1)) if count > 1 else 0.0
        if not spread or not isfinite(spread):
            return 0.0 if losses.mean() > 0 else meeting
        tolerance = self._tolerance(leader) if key > leader else 0.0
        worse = (float(losses.mean()) + tolerance) / spread * sqrt(count)
        return min(meeting, float(stdtr(count - 1, -worse)))

    def _changes(self, key: Key) -> tuple[SettingChange, ...]:
        return tuple(
            SettingChange(path, values[at])
            for (path, values), at in zip(self._axes.items(), key, strict=True)
        )

    def _value(self, key: Key) -> str:
        return label_of(self._changes(key), self._short)

    def _variant(self, key: Key) -> Scenario:
        return Variant(self._value(key), self._changes(key)).of(self.scenario)

    def _combination(self, key: Key) -> Combination:
        estimate, objective = self._tried[key], self._objective
        # Only the runs of the first look, which all combinations have: with unequal runs, the
        # frontier would compare different random numbers.
        runs = estimate.runs[: self._looks.counts[0]]
        return Combination(
            values=tuple(change.value for change in self._changes(key)),
            estimate=estimate,
            objective=None if objective is None else objective.mean(estimate.runs, estimate.bounds),
            finish=float(np.quantile(figure_of("finish").of(runs), 0.5, method="inverted_cdf")),
            cost=expected_mean(COST, runs, estimate.bounds) if self.scenario.costs else nan,
            people_reached=float(figure_of("people_reached").of(runs).mean()),
        )

    def answer(
        self, paths: tuple[str, ...], best: Key | None, stopped_after: float | None
    ) -> Optimum:
        """Return the result so far; `paths` are the settings as they were asked for."""
        combinations = {key: self._combination(key) for key in sorted(self._tried)}
        met, objective = best is not None, self._objective
        chosen = self._closest() if best is None else best
        still_open = [] if best is None else self._open(best)
        limit = self._loss(chosen) + self._tolerance(chosen)
        alike = [
            part
            for key, part in combinations.items()
            if met
            and objective is not None
            and key not in (chosen, *still_open, *self._doubtful)
            and part.estimate.met
            and self._loss(key) <= limit
        ]
        starts = [run.start for run in self._tried[chosen].runs if run.start is not None]
        return Optimum(
            scenario=self.scenario.name,
            paths=paths,
            goal=self.goal.text or None,
            objective=None if objective is None else objective.text,
            figure=None if objective is None else objective.figure,
            best=combinations[chosen],
            met=met,
            sure=met
            and stopped_after is None
            and self._tried[chosen].sure
            and not (still_open or self._doubtful),
            certainty=0.0 if best is None else self.certainty(best),
            stopped_after=stopped_after,
            first_estimate=self.first_estimate,
            open=tuple(combinations[key] for key in still_open),
            in_doubt=tuple(combinations[key] for key in sorted(self._doubtful)),
            alike=tuple(alike),
            frontier=_frontier(combinations.values(), met),
            tried=tuple(combinations.values()),
            count=prod(self._sizes),
            indifference=self._indifference,
            origin=min(starts, default=None),
            warnings=tuple(self._warnings(chosen, met, still_open, stopped_after is None)),
        )

    def _warnings(
        self, chosen: Key, met: bool, still_open: Sequence[Key], is_complete: bool
    ) -> Iterator[str]:
        yield from doubts_of(self.goal, self.scenario)
        if len(self._tried) < prod(self._sizes) and is_complete:
            yield (
                f"{len(self._tried):,} of {prod(self._sizes):,} combinations were tried, in ever "
                "smaller steps around the best: one far from those may be better"
            )
        yield from self._turns()
        most = self._looks.counts[-1]
        if not met or not is_complete:
            return
        if not self._tried[chosen].sure:
            yield (
                f"{self._value(chosen)} meets the goals in {self._tried[chosen].replications} "
                f"replications, which are too few to be sure of it: --max-replications {4 * most} "
                "may decide"
            )
        if still_open:
            names = "; ".join(self._value(key) for key in still_open[:5])
            more = f"; and {len(still_open) - 5} more" if len(still_open) > 5 else ""
            yield f"not distinguished from the best by {most} replications: {names}{more}"

    def _turns(self) -> Iterator[str]:
        """Yield warnings about clauses that turn more than once along a setting."""
        for axis, path in enumerate(self._axes):
            lines: dict[Key, list[Key]] = {}
            for key in sorted(self._tried):
                lines.setdefault((*key[:axis], *key[axis + 1 :]), []).append(key)
            for number, clause in enumerate(self.goal.clauses):
                if any(self._turns_back(line, number) for line in lines.values()):
                    yield (
                        f"the response is not monotone: along {path}, {clause.text} is met, missed "
                        "and met again, or the other way round; values between those tried may "
                        "differ as well"
                    )

    def _turns_back(self, line: Sequence[Key], clause: int) -> bool:
        findings = [self._tried[key].findings[clause] for key in line]
        # Uncertain findings alternate by chance and would warn too often.
        verdicts = [finding.met for finding in findings if finding.sure]
        return sum(a != b for a, b in pairwise(verdicts)) > 1


def _frontier(combinations: Iterable[Combination], met: bool) -> tuple[Combination, ...]:
    """Return the combinations that are not dominated in finish, cost and reach.

    Only combinations that break no compliance rule are compared: those that meet the goals, or
    those that miss them if `met` is False.
    """
    parts = [p for p in combinations if p.estimate.met is met and not p.estimate.breaches]
    losses = [
        (part.finish, 0.0 if isnan(part.cost) else part.cost, -part.people_reached)
        for part in parts
    ]
    return tuple(parts[index] for index in undominated(losses))
