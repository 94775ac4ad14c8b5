"""Trials: the settings that a search tries, with their runs and evaluations.

All settings share their random numbers, and get their runs in looks
(`dialsim.experiments.sequential`). `plan` and `optimize` differ in which settings they try, and
which of these get further looks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import breach_figures, breaches_of, check_confidence
from dialsim.experiments.facts import facts_needed
from dialsim.experiments.figure_names import COST
from dialsim.experiments.goal import Goal, GoalEstimate, judge
from dialsim.experiments.intervals import CONFIDENCE
from dialsim.experiments.known_bounds import known_bounds_of
from dialsim.experiments.run_spec import RunSpec
from dialsim.experiments.sequential import Looks
from dialsim.interface.phrases import brief_text
from dialsim.results.summary_text import fragment

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.estimates import RuleBreach
    from dialsim.experiments.expression import Expression
    from dialsim.experiments.run_figures import RunFigures
    from dialsim.experiments.runner import ExperimentRunner
    from dialsim.experiments.variants import SettingValue
    from dialsim.results.summary_text import FigureTable
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
                "a plan needs 2 replications or more, and no more than their maximum"
            )

    @property
    def looks(self) -> Looks:
        """Numbers of runs after which a setting is evaluated."""
        return Looks.between(self.first, self.most)


class Baseline:
    """The scenario as it is: breaches under other settings are compared with its own."""

    def __init__(self, scenario: Scenario, seed: int | None) -> None:
        self._scenario = scenario
        self._seed = seed
        self._spec = RunSpec(scenario, seed)
        # Searches along several settings meet the same scenario again, and share its runs.
        self._specs = {(self._spec.digest, self._spec.seed): self._spec}
        self.figures = breach_figures(scenario)

    @property
    def specs(self) -> list[RunSpec]:
        """The specs to be replicated beside each setting; none without compliance rules."""
        return [self._spec] if self.figures else []

    def spec(self, scenario: Scenario) -> RunSpec:
        """Return the spec of a setting; equal scenarios share one."""
        spec = RunSpec(scenario, self._seed)
        return self._specs.setdefault((spec.digest, spec.seed), spec)

    def breaches(self, runs: Sequence[RunFigures]) -> tuple[RuleBreach, ...]:
        """Return the rules that the first runs of a setting break more often."""
        before = self._spec.first(len(runs)) if self.figures else ()
        return breaches_of(self._scenario, runs, before)


class GoalAnswer:
    """Common part of the answers of `plan` and `optimize`."""

    __slots__ = ()
    scenario: str

    @property
    def title(self) -> str:
        """Heading of the printed answer: the name of the scenario."""
        return self.scenario

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Figures that a workbook has besides the usual ones."""
        return ()

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the output folder: none for a search."""
        return {}

    def printed(self) -> tuple[list[str], list[FigureTable]]:
        """Return the sentences and tables that a command prints."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return brief_text(f"dialsim.{type(self).__name__} {self.scenario!r}", self.printed()[0])

    def _repr_html_(self) -> str:
        return fragment(self.title, *self.printed())


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
        """Return the setting, or its name, that an evaluation bears."""
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
