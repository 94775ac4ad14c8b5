"""Sweep: variants of a scenario with common random numbers, and the differences between them.

Replication k of every variant uses the same random numbers for the same person and attempt (common
random numbers; Law 2015, section 11.2). So differences are computed in pairs, and are far more
precise than each variant's own figures.

With a deciding figure, a variant gets no more runs once it certainly differs from the baseline in
that figure, or certainly does not. The claims are about pairs of runs: the figure is greater in
more than half of them, or smaller, or within the indifference. Each claim concerns a share of
pairs, and is evaluated by the looks of `dialsim.experiments.looks` as in a plan. That requires no
assumption about the distribution of differences; a mean may depend on rare pairs that few runs do
not show. The error is divided evenly among claims and variants (Bonferroni), so that all verdicts
of a sweep are true with 95 % confidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np

from dialsim.errors import ExperimentError
from dialsim.experiments.breaches import Breach, breaches_of
from dialsim.experiments.estimates import Measured, check_baseline, differences, estimates
from dialsim.experiments.expression import Expression, ShownFigures, read_expression, read_figures
from dialsim.experiments.intervals import CONFIDENCE, Values
from dialsim.experiments.known_bounds import KnownBounds
from dialsim.experiments.looks import Looks
from dialsim.experiments.run_figures import (
    RunFigures,
    RunTables,
    earliest_start,
    figure_frame,
    replication_rows,
)
from dialsim.experiments.run_spec import RunSpec
from dialsim.experiments.runner import ExperimentRunner, RunSettings, runner
from dialsim.experiments.variants import (
    SettingValue,
    Variant,
    check_variable,
    sorting,
    variants_of,
)
from dialsim.interface.phrases import checked

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.plots import SweepPlots
    from dialsim.scenario.scenario import Scenario

Adjustment = Literal["bonferroni", "holm"]
Verdict = Literal["more", "less", "alike", "open"]

INDIFFERENCE = 0.005
"""Default share within which two runs are equivalent."""
_FIRST_LOOK = 8
"""Runs at the first look, as in a plan: enough to stop early if all pairs agree."""
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Decision:
    """Verdict on a variant against the baseline, and its number of runs.

    Of the pairs of runs, the deciding figure is greater than the baseline's in `more`, smaller in
    `less`, and within the indifference in `alike`, which overlaps with both. The verdict names the
    relation that certainly holds in more than half of all pairs, or is `open`.
    """

    variant: str
    verdict: Verdict
    runs: int
    more: int
    less: int
    alike: int


@dataclass(frozen=True, slots=True)
class Decided:
    """Decisions of a sweep, in its order, with the deciding figure and the baseline.

    A pair is alike if its difference is at most the share `indifference` of the baseline's figure;
    for an instant, of the time since the earliest startAt. No variant has more than `most` runs.
    All verdicts together are true with the given `confidence`.
    """

    figure: Expression
    indifference: float
    baseline: str
    most: int
    confidence: float
    decisions: tuple[Decision, ...]

    def runs(self, variant: str) -> int:
        """Return the number of runs of a variant; the baseline has the maximum."""
        known = {part.variant: part.runs for part in self.decisions}
        return known.get(variant, max(known.values()))

    @property
    def frame(self) -> pd.DataFrame:
        """Table with a row per decision."""
        import pandas as pd

        return pd.DataFrame([asdict(part) for part in self.decisions])


class Deciding:
    """Sequential comparison of variants with the baseline, with no more runs than needed."""

    def __init__(
        self,
        figure: str,
        indifference: float,
        names: Sequence[str],
        baseline: str | None,
        most: int,
        scenarios: Sequence[Scenario],
    ) -> None:
        """`names` are the names of all variants, each with at most `most` runs.

        Raises ExperimentError for a figure that a scenario lacks, an indifference that is no share,
        an unknown baseline, and too few runs for any decision.
        """
        # Parsed for every scenario: one of several files may lack the campaign that the figure
        # names.
        (self._figure, *_) = [read_expression(figure, scenario) for scenario in scenarios]
        if not 0 <= indifference < 1:
            raise ExperimentError(f"the indifference is a share such as 0.01, not {indifference}")
        self._indifference = indifference
        self.names = names
        self._baseline = check_baseline(names, baseline)
        if len(names) < 2:
            raise ExperimentError("one variant alone has nothing to be told from")
        self._most = most
        self._looks = _looks(most)
        # Each variant may turn out more, less or alike: three claims, and none may be wrong.
        claims = 3 * (len(names) - 1)
        # Only one tail of each claim counts.
        self._level = 1 - 2 * (1 - CONFIDENCE) / claims
        if not self._looks.can_tell(_HALF, self._level):
            enough = next(n for n in range(most, 1000) if _looks(n).can_tell(_HALF, self._level))
            raise ExperimentError(
                f"{most} replications tell none of {len(names)} variants from another: "
                f"{enough} or more do"
            )

    def replicate(self, place: ExperimentRunner, specs: Sequence[RunSpec]) -> Decided:
        """Run the specs, one per variant, until all is decided or no runs are left."""
        by_name = dict(zip(self.names, specs, strict=True))
        base = by_name.pop(self._baseline)
        still_open, made, decisions = [*by_name], 0, {}
        for count in self._looks.counts:
            # An upper bound for the progress bar, as decided variants drop out.
            place.ahead = (len(still_open) + 1) * (self._most - made)
            place.replicate([base, *(by_name[name] for name in still_open)], count)
            made, start = count, earliest_start(base.first(count))
            theirs = self._figure.in_tables(base.first(count), start)
            for name in still_open:
                ours = self._figure.in_tables(by_name[name].first(count), start)
                decisions[name] = self._decision(name, ours, theirs)
            still_open = [name for name in still_open if decisions[name].verdict == "open"]
            if not still_open:
                break
        return Decided(
            self._figure,
            self._indifference,
            self._baseline,
            self._most,
            CONFIDENCE,
            tuple(decisions[name] for name in by_name),
        )

    def _decision(self, name: str, ours: Values, theirs: Values) -> Decision:
        from scipy import stats

        count = len(theirs)
        more, less = int((ours > theirs).sum()), int((ours < theirs).sum())
        alike = self._alike(ours, theirs)
        hits: dict[Verdict, int] = {"more": more, "less": less, "alike": alike}
        # The sign test: with equal variants each pair is more or less with probability 1/2,
        # whatever the distribution.
        tail = self._looks.of_share(_HALF, count, self._level).low
        sure = (each for each in hits if stats.binom.sf(hits[each] - 1, count, _HALF) <= tail)
        return Decision(name, next(sure, "open"), count, more, less, alike)

    def _alike(self, ours: Values, theirs: Values) -> int:
        """Return the number of equivalent pairs, pairs without any finish included."""
        with np.errstate(invalid="ignore"):
            within = np.abs(ours - theirs) <= self._indifference * np.abs(theirs)
        # Equality covers infinities: two runs that never finish are alike, though their difference
        # is NaN.
        return int(((ours == theirs) | (within & np.isfinite(theirs))).sum())


def _looks(most: int) -> Looks:
    return Looks.between(min(_FIRST_LOOK, most), most)


def run_variants(
    place: ExperimentRunner, specs: Sequence[RunSpec], replications: int, deciding: Deciding | None
) -> tuple[list[list[RunFigures]], Decided | None]:
    """Return the runs of each spec: `replications` of each, or fewer with `deciding`."""
    if deciding is None:
        place.replicate(specs, replications)
        return [spec.first(replications) for spec in specs], None
    decided = deciding.replicate(place, specs)
    counts = map(decided.runs, deciding.names)
    return [spec.first(count) for spec, count in zip(specs, counts, strict=True)], decided


class Sweep(RunTables):
    """Result of many runs of every variant.

    The first columns of `frame`, `organizations` and `runs` are `variant`, the name, and one per
    varied path: its value, missing if the variant does not change it. Durations and instants are
    texts that sort by length and time. `origin` is the earliest
    startAt of all variants, so that later starts are visible. `decided` are the decisions by a
    figure, or None; only with them do variants have different numbers of runs.

    >>> swept = dialsim.sweep(scenario, {"lines": [1, 2]}, 4, jobs=1)
    >>> swept.paths, swept.runs.groupby("lines").size().to_dict()
    (('lines',), {1: 4, 2: 4})
    """

    def __init__(
        self,
        scenario: Scenario,
        variants: Sequence[Variant],
        figures: Sequence[Sequence[RunFigures]],
        all_bounds: Sequence[KnownBounds],
        expressions: Sequence[Expression] = (),
        decided: Decided | None = None,
        baseline: str | None = None,
    ) -> None:
        """`figures` are the runs of each variant, in order of replication.

        `all_bounds` are the limits of each variant known before any run. `expressions` are combined
        figures, which `intervals` and `differences` include. `baseline` is the variant that others
        are compared with, by default the first.
        """
        self.scenario = scenario
        self.variants = tuple(variants)
        self.all_bounds = tuple(all_bounds)
        self.expressions = tuple(expressions)
        self.decided = decided
        self.baseline = self.variants[0].name if baseline is None else baseline
        self.figures = tuple(tuple(runs) for runs in figures)
        super().__init__([run for runs in self.figures for run in runs])

    @property
    def replications(self) -> int:
        """Number of runs of each variant, or the maximum."""
        return max(map(len, self.figures))

    @property
    def sure(self) -> bool | None:
        """True if the verdict on every variant is certain; None without a deciding figure."""
        if self.decided is None:
            return None
        return all(part.verdict != "open" for part in self.decided.decisions)

    @cached_property
    def together(self) -> Sweep:
        """Sweep with equal numbers of runs of each variant, so that all share their random
        numbers.
        """
        least = min(map(len, self.figures))
        if least == self.replications:
            return self
        # The first runs, not the best or last: replications are matched by their number.
        cut = [runs[:least] for runs in self.figures]
        return Sweep(
            self.scenario, self.variants, cut, self.all_bounds, self.expressions,
            baseline=self.baseline,
        )  # fmt: skip

    @property
    def paths(self) -> tuple[str, ...]:
        """Varied paths."""
        changes = (change for variant in self.variants for change in variant.changes)
        return tuple(dict.fromkeys(change.path for change in changes))

    def breaches(self, baseline: str) -> dict[str, tuple[Breach, ...]]:
        """Return the compliance rules that variants break more often than the baseline."""
        runs = dict(zip((variant.name for variant in self.variants), self.figures, strict=True))
        found = {name: breaches_of(self.scenario, own, runs[baseline])
                 for name, own in runs.items()}  # fmt: skip
        return {name: breaches for name, breaches in found.items() if breaches}

    def showing(self, figures: str | Sequence[str]) -> Sweep:
        """Return the same runs with further expressions to show, such as `cost /
        people_reached`.
        """
        scenario, shown = read_figures(figures, self.scenario)
        return Sweep(
            scenario, self.variants, self.figures, self.all_bounds, shown, self.decided,
            self.baseline,
        )  # fmt: skip

    def _intervals(self, confidence: float) -> pd.DataFrame:
        import pandas as pd

        parts = []
        shown = self._shown()
        for variant, runs, bounds in zip(self.variants, self.figures, self.all_bounds, strict=True):
            frames = {
                scope: frame[frame["variant"] == variant.name].drop(
                    columns=["variant", *self.paths]
                )
                for scope, frame in self._frames().items()
            }
            part = estimates(frames, runs, confidence, bounds, self.days, shown[variant.name])
            for position, (name, value) in enumerate(self._place(variant).items()):
                part.insert(position, name, value)
            parts.append(part)
        return sorting(pd.concat(parts, ignore_index=True), self.paths)

    def differences(
        self,
        baseline: str | None = None,
        *,
        confidence: float = 0.95,
        adjust: Adjustment | None = None,
    ) -> pd.DataFrame:
        """Return every variant's figures minus the baseline's, over pairs of runs.

        `baseline` is the name of a variant, by default `Sweep.baseline`. `statistic` names what
        `difference` compares: medians of instants (in seconds), means of other figures. `low` and
        `high` are the ends of its interval; `real` is True where it excludes 0, and `unit` is that
        of the difference. Of many variants some look different by chance: `adjust`, "holm" or
        "bonferroni", allows for that. Raises ExperimentError for an unknown variant.

        >>> swept = dialsim.sweep(scenario, {"lines": [1, 2]}, 4, jobs=1)
        >>> swept.differences().query("figure == 'finish_seconds'")["unit"].unique().tolist()
        ['s']
        """
        names = [variant.name for variant in self.variants]
        base = check_baseline(names, self.baseline if baseline is None else baseline)
        all_bounds = dict(zip(names, self.all_bounds, strict=True))
        runs = dict(zip(names, self.figures, strict=True))
        return differences(
            self._frames(),
            runs,
            all_bounds,
            base,
            confidence,
            adjust,
            self.days,
            self._shown(),
        )

    def _shown(self) -> dict[str, Measured]:
        """Return the expressions, with their values in the runs of each variant."""
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
        return sorting(figure_frame(rows, scope, ("variant", *self.paths)), self.paths)

    @cached_property
    def plot(self) -> SweepPlots:
        """Plots: `plot.curve(figure)` and `plot.cost()`."""
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


@checked(ExperimentError, RunSettings)
def sweep(
    scenario: Scenario,
    vary: str | Mapping[str, Iterable[object]] | Sequence[Variant],
    replications: int = 50,
    *,
    figures: ShownFigures = (),
    decide: str | None = None,
    indifference: float = INDIFFERENCE,
    baseline: str | None = None,
    seed: int | None = None,
    **settings: Unpack[RunSettings],
) -> Sweep:
    """Run every variant of a scenario `replications` times, with common random numbers.

    `vary` maps paths to values, such as `{"lines": range(10, 60, 5)}`, and several paths are
    crossed; or it is a list of variants, or a text such as `lines=10..60:5`. `figures` are further
    expressions to show, such as `"cost / people_reached"`, or functions by name, as in `replicate`.

    With `decide`, a figure or an expression, `replications` is the maximum: a variant gets no more
    runs once that figure is certainly greater, or smaller, than the `baseline`'s (the name of a
    variant, by default the first) in more than half of the pairs of runs, or within the share
    `indifference` of it (`Sweep.decided`). The other arguments are as in `replicate`.

    Raises ExperimentError, and ScenarioError for a value that the scenario cannot have.

    >>> swept = dialsim.sweep(scenario, {"retryInterval": ["2h", "30m"]}, 3, jobs=1)
    >>> swept.runs.sort_values("retryInterval").retryInterval.tolist()
    ['30m', '30m', '30m', '2h', '2h', '2h']
    """
    if replications < 2:
        raise ExperimentError(f"a sweep needs 2 replications or more, not {replications}")
    variants = variants_of(vary, scenario.first_day)
    if not variants:
        raise ExperimentError("there are no variants to run")
    check_variable(scenario, {c.path for variant in variants for c in variant.changes}, seed)
    scenario, shown = read_figures(figures, scenario)
    names = [variant.name for variant in variants]
    baseline = check_baseline(names, baseline)
    deciding = None
    if decide is not None:
        deciding = Deciding(decide, indifference, names, baseline, replications, [scenario])
    specs = [RunSpec(variant.of(scenario), seed) for variant in variants]
    with runner(**settings) as place:
        runs, decided = run_variants(place, specs, replications, deciding)
    bounds = [spec.bounds for spec in specs]
    return Sweep(scenario, variants, runs, bounds, shown, decided, baseline)
