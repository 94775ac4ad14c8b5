"""Sweep and comparison: variants of a scenario, or scenario files, and their differences.

Replication k of every variant uses the same random numbers for the same person and attempt (common
random numbers; Law 2015, section 11.2). So differences are computed in pairs, and are far more
precise than each variant's own figures.

Files are the variants of a comparison. They share their random numbers as far as their campaigns
stand at equal positions ("Chance" in docs/rules.md). Campaigns are matched by the names of
organization and campaign.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import (
    RuleBreach,
    SettingRuns,
    breaches_of,
    check_baseline,
    differences,
    estimate_records,
    estimates,
    instant_text,
    records,
)
from dialsim.experiments.expression import Expression, ShownFigures, read_figures
from dialsim.experiments.intervals import CONFIDENCE
from dialsim.experiments.replications import RunSettings, runner
from dialsim.experiments.run_figures import (
    RunFigures,
    RunTables,
    figure_frame,
    replication_rows,
)
from dialsim.experiments.run_spec import RunSpec
from dialsim.experiments.sequential import INDIFFERENCE, Decided, Deciding
from dialsim.experiments.variants import (
    SettingValue,
    Variant,
    check_variable,
    sorting,
    variants_of,
)
from dialsim.interface.arguments import checked
from dialsim.scenario.loading import document_of, load
from dialsim.scenario.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.known_bounds import KnownBounds
    from dialsim.experiments.plots import SweepPlots
    from dialsim.results.summary_text import FigureTable

Adjustment = Literal["bonferroni"]


@checked(ExperimentError)
class Sweep(RunTables):
    """Result of many runs of every variant.

    The first columns of `frame`, `organizations` and `runs` are `variant`, the name, and one per
    varied path: its value, missing if the variant does not change it. Durations and instants are
    texts that sort by length and time. `origin` is the earliest
    startAt of all variants, so that later starts are visible. `baseline` is the variant that the
    others are compared with, with an adjustment for their number if `adjust` names one. `decided`
    are the decisions by a figure, or None; only with them do variants have different numbers of
    runs. `seed` is the seed of the runs, unless a variant sets another.

    >>> swept = dialsim.sweep(scenario, {"lines": [1, 2]}, 4, jobs=1)
    >>> swept.paths, swept.runs.groupby("lines").size().to_dict()
    (('lines',), {1: 4, 2: 4})
    """

    noun = "variant"

    def __init__(
        self,
        scenario: Scenario,
        variants: Sequence[Variant],
        figures: Sequence[Sequence[RunFigures]],
        all_bounds: Sequence[KnownBounds],
        expressions: Sequence[Expression] = (),
        decided: Decided | None = None,
        *,
        baseline: str | None = None,
        adjust: Adjustment | None = None,
        seed: int | None = None,
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
        self.figures = tuple(tuple(runs) for runs in figures)
        self.baseline = check_baseline(self.names, baseline)
        self.adjust = adjust
        self.given_seed = seed
        super().__init__([run for runs in self.figures for run in runs])

    @property
    def title(self) -> str:
        """Name of the scenario."""
        return self.scenario.name

    @property
    def names(self) -> list[str]:
        """Names of the variants."""
        return [variant.name for variant in self.variants]

    @property
    def seed(self) -> int:
        """Seed of the runs, unless a variant sets another."""
        return self.scenario.seed if self.given_seed is None else self.given_seed

    @cached_property
    def by_name(self) -> dict[str, SettingRuns]:
        """Runs of each variant and the limits known before them, by the variant's name."""
        parts = zip(self.names, self.figures, self.all_bounds, strict=True)
        return {name: SettingRuns(name, runs, bounds) for name, runs, bounds in parts}

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
        return self._like(self.scenario, cut, self.expressions, None)

    def _like(
        self,
        scenario: Scenario,
        figures: Sequence[Sequence[RunFigures]],
        expressions: Sequence[Expression],
        decided: Decided | None,
    ) -> Sweep:
        """Return a sweep of the same variants, with other runs or figures."""
        return Sweep(
            scenario, self.variants, figures, self.all_bounds, expressions, decided,
            baseline=self.baseline, adjust=self.adjust, seed=self.given_seed,
        )  # fmt: skip

    @property
    def paths(self) -> tuple[str, ...]:
        """Varied paths."""
        changes = (change for variant in self.variants for change in variant.changes)
        return tuple(dict.fromkeys(change.path for change in changes))

    @cached_property
    def breaches(self) -> dict[str, tuple[RuleBreach, ...]]:
        """Compliance rules that variants break more often than the baseline."""
        before = self.by_name[self.baseline].runs
        found = {name: breaches_of(self.scenario, own.runs, before)
                 for name, own in self.by_name.items()}  # fmt: skip
        return {name: breaches for name, breaches in found.items() if breaches}

    def showing(self, figures: str | Sequence[str]) -> Sweep:
        """Return the same runs with further expressions to show, such as `cost /
        people_reached`.
        """
        scenario, shown = read_figures(figures, self.scenario)
        return self._like(scenario, self.figures, shown, self.decided)

    def _intervals(self, confidence: float) -> pd.DataFrame:
        import pandas as pd

        parts = []
        for variant, own in zip(self.variants, self.settings(), strict=True):
            frames = {
                scope: frame[frame["variant"] == own.name].drop(columns=["variant", *self.paths])
                for scope, frame in self._frames().items()
            }
            part = estimates(
                frames, own.runs, confidence, own.bounds, self.days, self.expressions, self._start
            )
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

        `baseline` is the name of a variant; it and `adjust` default to the choices of the sweep.
        `statistic` names what `difference` compares: medians of instants (in seconds), means of
        other figures. `low` and `high` are the ends of its interval; `real` is True where it
        excludes 0, and `unit` is the unit of the difference. Of many variants some look different
        by chance: `adjust="bonferroni"` allows for that. Raises ExperimentError for an unknown
        variant.

        >>> swept = dialsim.sweep(scenario, {"lines": [1, 2]}, 4, jobs=1)
        >>> swept.differences().query("figure == 'finish_seconds'")["unit"].unique().tolist()
        ['s']
        """
        base = self.baseline if baseline is None else check_baseline(self.names, baseline)
        asked = base, confidence, adjust or self.adjust
        if asked not in self._compared:  # texts, pages and files need the same ones
            self._compared[asked] = differences(
                self._frames(), self.by_name, *asked, self.days, self.expressions, self._start
            )
        # A copy, because a caller may change its table.
        return self._compared[asked].copy()

    @cached_property
    def _compared(self) -> dict[tuple[str, float, Adjustment | None], pd.DataFrame]:
        return {}

    @property
    def run_differences(self) -> pd.DataFrame:
        """Differences of whole runs from the sweep's own baseline."""
        table = self.differences()
        return table[table["scope"] == "run"]

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

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the output folder, by name."""
        tables = super().frames() | {"differences": self.differences()}
        return tables if self.decided is None else tables | {"decisions": self.decided.frame}

    def settings(self) -> list[SettingRuns]:
        """Return the variants for a workbook."""
        return [*self.by_name.values()]

    def to_dict(self) -> dict[str, object]:
        """Return the output of `--format json`."""
        document = {
            "scenario": self.scenario.name,
            "seed": self.seed,
            "replications": self.replications,
            "origin": instant_text(self._start),
            "confidence": CONFIDENCE,
            "variants": [{"variant": v.name, "changes": v.texts} for v in self.variants],
            "estimates": estimate_records(
                self.intervals().drop(columns=list(self.paths)), self._start
            ),
            "baseline": self.baseline,
            "adjustment": self.adjust,
            "differences": records(self.differences()),
        }
        return document if self.decided is None else document | {"decided": self.decided.to_dict()}

    def printed(self) -> tuple[list[str], list[FigureTable]]:
        """Return the sentences and tables that a command prints."""
        from dialsim.experiments.experiment_text import sweep_content

        return sweep_content(self)

    def __repr__(self) -> str:
        return (
            f"<dialsim.Sweep {self.scenario.name!r}, variants: {len(self.variants):,}, "
            f"replications: {self.replications:,}>"
        )


@checked(ExperimentError)
def sweep(
    scenario: Scenario,
    vary: str | Mapping[str, Iterable[object]] | Sequence[Variant],
    replications: int = 50,
    *,
    figures: ShownFigures = (),
    decide: str | None = None,
    indifference: float = INDIFFERENCE,
    baseline: str | None = None,
    adjust: Adjustment | None = None,
    seed: int | None = None,
    **settings: Unpack[RunSettings],
) -> Sweep:
    """Run every variant of a scenario `replications` times, with common random numbers.

    `vary` maps paths to values, such as `{"lines": range(10, 60, 5)}`, and several paths are
    crossed; or it is a list of variants, or a text such as `lines=10..60:5`. `figures` are further
    expressions to show, such as `"cost / people_reached"`, or functions by name, as in `replicate`.

    `baseline` is the name of the variant that the others are compared with, by default the first,
    and `adjust` the adjustment for their number (`Sweep.differences`). With `decide`, a figure or
    an expression, `replications` is the maximum: a variant gets no more runs once that figure is
    certainly greater, or smaller, than the baseline's in more than half of the pairs of runs, or
    within the share `indifference` of it (`Sweep.decided`). The other arguments are as in
    `replicate`.

    Raises ExperimentError, and ScenarioError for a value that the scenario cannot have.

    >>> swept = dialsim.sweep(scenario, {"retryInterval": ["2h", "30m"]}, 3, jobs=1)
    >>> swept.runs.sort_values("retryInterval").retryInterval.tolist()
    ['30m', '30m', '30m', '2h', '2h', '2h']
    """
    if replications < 2:
        raise ExperimentError(f"a sweep needs 2 replications or more, not {replications}")
    variants = variants_of(vary, scenario.first_day)
    if not variants:
        raise ExperimentError("vary must contain at least one variant")
    check_variable(scenario, {c.path for variant in variants for c in variant.changes}, seed)
    scenario, shown = read_figures(figures, scenario)
    specs = [RunSpec(variant.of(scenario), seed) for variant in variants]
    names, bounds = [variant.name for variant in variants], [spec.bounds for spec in specs]
    base = check_baseline(names, baseline)
    deciding = None
    if decide is not None:
        deciding = Deciding(decide, indifference, names, base, replications, [scenario])
    runs, decided = _run(specs, replications, deciding, settings)
    return Sweep(
        scenario, variants, runs, bounds, shown, decided, baseline=base, adjust=adjust, seed=seed
    )


def _run(
    specs: Sequence[RunSpec], replications: int, deciding: Deciding | None, settings: RunSettings
) -> tuple[list[list[RunFigures]], Decided | None]:
    """Return the runs of each spec: `replications` of each, or fewer with `deciding`."""
    with runner(**settings) as workers:
        if deciding is None:
            workers.replicate(specs, replications)
            return [spec.first(replications) for spec in specs], None
        decided = deciding.replicate(workers, specs)
    counts = map(decided.runs, deciding.names)
    return [spec.first(count) for spec, count in zip(specs, counts, strict=True)], decided


# -- files -----------------------------------------------------------------------------------------


_LONGEST = 60  # characters of a value that a table shows


@dataclass(frozen=True, slots=True)
class FileDifference:
    """Path at which files differ; `values` has each file's value, None if absent."""

    path: str
    values: tuple[str | None, ...]


@checked(ExperimentError)
class Comparison(Sweep):
    """Result of many runs of several scenario files: a `Sweep` whose variants are the files.

    >>> both = {"two": scenario, "four": scenario.with_(lines=4)}
    >>> found = dialsim.compare(both, 4, jobs=1)
    >>> found.runs.groupby("variant", sort=False).size().to_dict()
    {'two': 4, 'four': 4}
    """

    noun = "file"

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """Scenarios of the files, which are the variants."""
        return tuple(variant.of(self.scenario) for variant in self.variants)

    @property
    def title(self) -> str:
        """Names of the files."""
        return " or ".join(self.names)

    @property
    def file_differences(self) -> tuple[FileDifference, ...]:
        """Differences between the files as written, path by path, overrides included."""
        return tuple(file_differences([document_of(scenario) for scenario in self.scenarios]))

    @property
    def changed(self) -> pd.DataFrame:
        """`file_differences` as a table: a row per path, a column per file."""
        import pandas as pd

        rows = [(part.path, *part.values) for part in self.file_differences]
        return pd.DataFrame(rows, columns=["path", *self.names])

    @property
    def unmatched(self) -> dict[str, tuple[str, ...]]:
        """Campaigns that are missing in some files, with the files that have them."""
        having: dict[str, list[str]] = {}
        for file, scenario in zip(self.names, self.scenarios, strict=True):
            for organization in scenario.organizations:
                for campaign in organization.campaigns:
                    having.setdefault(f"{organization.name}/{campaign.name}", []).append(file)
        return {
            name: tuple(files) for name, files in having.items() if len(files) < len(self.names)
        }

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the output folder, by name."""
        return super().frames() | {"changed": self.changed}

    def to_dict(self) -> dict[str, object]:
        """Return the output of `--format json`."""
        return super().to_dict() | {
            "unmatched": self.unmatched,
            "file_differences": [
                {"path": part.path, "values": dict(zip(self.names, part.values, strict=True))}
                for part in self.file_differences
            ],
        }

    def printed(self) -> tuple[list[str], list[FigureTable]]:
        """Return the sentences and tables that a command prints."""
        from dialsim.experiments.experiment_text import comparison_content

        return comparison_content(self)

    def __repr__(self) -> str:
        return f"<dialsim.Comparison {', '.join(self.names)}, replications: {self.replications:,}>"


ScenarioOrFile = str | os.PathLike[str] | Scenario


@checked(ExperimentError)
def compare(
    files: Sequence[ScenarioOrFile] | Mapping[str, ScenarioOrFile],
    replications: int = 50,
    *,
    figures: ShownFigures = (),
    decide: str | None = None,
    indifference: float = INDIFFERENCE,
    baseline: str | None = None,
    adjust: Adjustment | None = None,
    seed: int | None = None,
    **settings: Unpack[RunSettings],
) -> Comparison:
    """Run several scenario files `replications` times each, with common random numbers.

    `files` are paths or scenarios, in a list or by name. `seed` defaults to the first file's and
    applies to all. `figures`, `decide`, `indifference`, `baseline` and `adjust` are as in `sweep`;
    every file must have the figures in them. The other arguments are as in `replicate`. Raises
    ExperimentError, and ScenarioError for a file with problems.

    >>> both = {"two": scenario, "four": scenario.with_(lines=4)}
    >>> found = dialsim.compare(both, 6, decide="finish", jobs=1)
    >>> found.differences().query("figure == 'finish_seconds'")["variant"].unique().tolist()
    ['four']
    """
    named = _named(files)
    if len(named) < 2:
        raise ExperimentError(f"a comparison needs 2 files or more, not {len(named)}")
    if replications < 2:
        raise ExperimentError(f"a comparison needs 2 replications or more, not {replications}")
    read = {name: read_figures(figures, part) for name, part in named.items()}
    (_, shown), *_ = read.values()
    names, scenarios = [*read], [scenario for scenario, _ in read.values()]
    # With different seeds, differences between files would include differences of chance.
    seed = scenarios[0].seed if seed is None else seed
    specs = [RunSpec(scenario, seed) for scenario in scenarios]
    base = check_baseline(names, baseline)
    deciding = None
    if decide is not None:
        deciding = Deciding(decide, indifference, names, base, replications, scenarios)
    runs, decided = _run(specs, replications, deciding, settings)
    variants = [Variant(name, scenario=part) for name, part in zip(names, scenarios, strict=True)]
    return Comparison(
        scenarios[0], variants, runs, [spec.bounds for spec in specs], shown, decided,
        baseline=base, adjust=adjust, seed=specs[0].seed,
    )  # fmt: skip


def _named(
    files: Sequence[ScenarioOrFile] | Mapping[str, ScenarioOrFile],
) -> dict[str, Scenario]:
    """Return the scenarios by unique names: file names, with folders if necessary."""
    if isinstance(files, Mapping):
        return {name: s if isinstance(s, Scenario) else load(s) for name, s in files.items()}
    loaded = [part if isinstance(part, Scenario) else load(part) for part in files]
    return dict(zip(names_of([_path(scenario) for scenario in loaded]), loaded, strict=True))


def _path(scenario: Scenario) -> Path:
    return scenario.source or Path(scenario.name)


def names_of(paths: Sequence[Path]) -> list[str]:
    """Return short unique names for files: the last part without suffix, or more parts if
    necessary.
    """
    parts = [path.with_suffix("").parts for path in paths]
    for length in range(1, max(map(len, parts), default=0) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    twice = {path for path, often in Counter(paths).items() if often > 1}
    numbers = {path: count(1) for path in twice}
    return [f"{path} ({next(numbers[path])})" if path in twice else str(path) for path in paths]


def file_differences(documents: Sequence[Any]) -> Iterator[FileDifference]:
    """Yield the paths at which documents differ.

    Items of lists are matched by their `name` if all have one; other lists are compared as a whole.
    """
    yield from _walk("", documents)


_ABSENT = object()
"""Stand-in for a path that a document lacks, since None is a value."""


def _walk(path: str, found: Sequence[Any]) -> Iterator[FileDifference]:
    present = [value for value in found if value is not _ABSENT]
    if len(present) == len(found) and all(value == present[0] for value in present):
        return
    # If a file lacks a whole block, the block is one difference, not each of its lines.
    branches = [_branches(value) for value in present]
    kinds = {type(value) for value in present}
    if len(present) < len(found) or None in branches or len(kinds) > 1:
        texts = (None if value is _ABSENT else _text(value) for value in found)
        yield FileDifference(path, tuple(texts))
        return
    keys = dict.fromkeys(key for branch in branches for key in branch or {})
    if kinds == {list}:  # the order of campaigns matters (Q3), the order of keys does not
        common = [
            [key for key in b or {} if all(key in (c or {}) for c in branches)] for b in branches
        ]
        if any(order != common[0] for order in common):
            yield FileDifference(
                path, tuple(f"{', '.join(order)} in this order" for order in common)
            )
    for key in keys:
        below = [(branch or {}).get(key, _ABSENT) for branch in branches]
        yield from _walk(f"{path}.{key}" if path else key, below)


def _branches(value: Any) -> dict[str, Any] | None:
    """Return the parts of a value by their names in paths; None for a value without parts."""
    if isinstance(value, dict):
        return {str(key): part for key, part in value.items()}
    if not isinstance(value, list):
        return None
    names = [part.get("name") if isinstance(part, dict) else None for part in value]
    if None in names or len(set(map(str, names))) < len(names):
        return None
    return dict(zip(map(str, names), value, strict=True))


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
