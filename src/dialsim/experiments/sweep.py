"""A sweep: variants of a scenario that meet the same chance, and the differences between them.

Replication k of every variant draws the same random numbers for the same person and attempt
(common random numbers; Law 2015, section 11.2), so differences are taken pair by pair, and are
known far better than each variant's own figures.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from dialsim.experiments.case import Case
from dialsim.experiments.errors import ExperimentError
from dialsim.experiments.estimates import Measured, check_baseline, differences, estimates
from dialsim.experiments.expression import Expression, read_expression
from dialsim.experiments.prior import Prior
from dialsim.experiments.run_figures import (
    RunFigures,
    RunTables,
    figure_frame,
    replication_rows,
)
from dialsim.experiments.runner import runner
from dialsim.experiments.variants import SettingValue, Variant, check_variable, variants_of
from dialsim.results.progress import Shown

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.engine.engines import Choice
    from dialsim.experiments.plots import SweepPlots
    from dialsim.scenario.scenario import Scenario

Adjustment = Literal["bonferroni", "holm"]


class Sweep(RunTables):
    """What came of many runs of every variant.

    The first columns of `frame`, `organizations` and `runs` are `variant`, the name, and one per
    path that varies: its value, missing where the variant leaves it as is. `origin` is the earliest
    startAt of all variants, so that starting later shows.
    """

    def __init__(
        self,
        scenario: Scenario,
        variants: Sequence[Variant],
        figures: Sequence[Sequence[RunFigures]],
        priors: Sequence[Prior],
        expressions: Sequence[Expression] = (),
    ) -> None:
        """`figures` are the runs of each variant, in order of replication.

        `priors` are what was known of each variant before any run, `expressions` figures made of
        others, which `intervals` and `differences` have as well.
        """
        self.scenario = scenario
        self.variants = tuple(variants)
        self.priors = tuple(priors)
        self.expressions = tuple(expressions)
        self.figures = tuple(tuple(runs) for runs in figures)
        super().__init__([run for runs in self.figures for run in runs])

    @property
    def replications(self) -> int:
        """How many runs each variant has."""
        return len(self.figures[0])

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that vary."""
        changes = (change for variant in self.variants for change in variant.changes)
        return tuple(dict.fromkeys(change.path for change in changes))

    def showing(self, figures: Sequence[str]) -> Sweep:
        """The same runs, with expressions such as `cost / people_reached` to be shown as well."""
        shown = [read_expression(text, self.scenario) for text in figures]
        return Sweep(self.scenario, self.variants, self.figures, self.priors, shown)

    def _intervals(self, confidence: float) -> pd.DataFrame:
        import pandas as pd

        parts = []
        shown = self._shown()
        for variant, prior in zip(self.variants, self.priors, strict=True):
            frames = {
                scope: frame[frame["variant"] == variant.name].drop(
                    columns=["variant", *self.paths]
                )
                for scope, frame in self._frames().items()
            }
            part = estimates(frames, confidence, prior, shown[variant.name])
            for position, (name, value) in enumerate(self._place(variant).items()):
                part.insert(position, name, value)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def differences(
        self,
        baseline: str | None = None,
        *,
        confidence: float = 0.95,
        paired: bool = True,
        adjust: Adjustment | None = None,
    ) -> pd.DataFrame:
        """Every variant's figures minus the baseline's: see `dialsim.experiments.estimates`.

        `baseline` is the name of a variant, by default the first. `paired=False` takes variants as
        independent, for comparison. Raises ExperimentError if there is no such variant.
        """
        names = [variant.name for variant in self.variants]
        base = check_baseline(names, baseline)
        priors = dict(zip(names, self.priors, strict=True))
        shown = self._shown()
        return differences(self._frames(), priors, base, confidence, paired, adjust, shown)

    def _shown(self) -> dict[str, Measured]:
        """The expressions, with their values in the runs of each variant."""
        return {
            variant.name: [(e, e.in_tables(runs, self._start)) for e in self.expressions]
            for variant, runs in zip(self.variants, self.figures, strict=True)
        }

    def _place(self, variant: Variant) -> dict[str, SettingValue | None]:
        values = {change.path: change.value for change in variant.changes}
        return {"variant": variant.name} | {path: values.get(path) for path in self.paths}

    def _table(self, scope: str) -> pd.DataFrame:
        rows = [
            self._place(variant) | row
            for variant, runs in zip(self.variants, self.figures, strict=True)
            for row in replication_rows(runs, scope, self._start)
        ]
        return figure_frame(rows, scope, ("variant", *self.paths))

    @cached_property
    def plot(self) -> SweepPlots:
        """The pictures: `plot.curve(figure)` and `plot.cost()`."""
        from dialsim.experiments.plots import SweepPlots

        return SweepPlots(self)

    def __repr__(self) -> str:
        return (
            f"<dialsim.Sweep {self.scenario.name!r}, variants: {len(self.variants):,}, "
            f"replications: {self.replications:,}>"
        )

    def _repr_html_(self) -> str:
        from dialsim.experiments.experiment_text import sweep_html

        return sweep_html(self)


def sweep(
    scenario: Scenario,
    vary: str | Mapping[str, Iterable[object]] | Sequence[Variant],
    replications: int = 50,
    *,
    figures: Sequence[str] = (),
    seed: int | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Shown = None,
    engine: Choice = "auto",
) -> Sweep:
    """Run every variant of a scenario `replications` times, all with the same chance.

    `vary` has the values to try for each path, such as
    `{"lines": range(10, 60, 5)}`, and several paths are crossed; or it is a list of variants, or a
    text such as `lines=10..60:5`. `figures` are expressions to be shown as well, such as
    `"cost / people_reached"`.
    The rest is as in `replicate`. Raises ExperimentError, and
    ScenarioError for a value that the scenario can't have.
    """
    if replications < 2:
        raise ExperimentError(f"a sweep needs 2 replications or more, not {replications}")
    variants = variants_of(vary, scenario.first_day)
    if not variants:
        raise ExperimentError("there are no variants to run")
    check_variable(scenario, {c.path for variant in variants for c in variant.changes}, seed)
    shown = [read_expression(text, scenario) for text in figures]
    cases = [Case(variant.of(scenario), seed) for variant in variants]
    with runner(jobs, dask, store, progress, engine) as place:
        place.replicate(cases, replications)
    runs = [case.first(replications) for case in cases]
    return Sweep(scenario, variants, runs, [case.prior for case in cases], shown)
