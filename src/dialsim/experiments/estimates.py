"""Tables of estimates: mean and quantiles of every figure, and differences between variants.

Instants such as `finish` have no mean here: a mean may lie outside all calling hours, and it
depends on rare runs that go on for another day. Instants are compared by medians, and by the shares
of runs that are done by the end of each day (`dialsim.experiments.run_figures`).

A setting that breaks compliance rules more often than the scenario as it is (`RuleBreach`) is never
recommended. The setting and the scenario as it is are compared over the same replications, so that
a setting without effect on compliance never breaks a rule more often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from dialsim.errors import ExperimentError
from dialsim.experiments.expression import Expression, figure_of
from dialsim.experiments.intervals import (
    BY_SHARES,
    CONFIDENCE,
    NO_INTERVAL,
    Difference,
    Interval,
    Known,
    Values,
    mean_interval,
    median_difference,
    paired_difference,
    quantile_interval,
    rank,
)
from dialsim.experiments.known_bounds import KnownBounds, Place
from dialsim.experiments.named_figures import FigureName, facts
from dialsim.experiments.run_figures import (
    Days,
    DoneBy,
    RunFigures,
    compare_days,
    earliest_start,
    parts_of,
)
from dialsim.experiments.variants import setting_text
from dialsim.interface.instants import format_instant, utc
from dialsim.results.compliance import compliance_figure
from dialsim.results.figures import MAIN, Unit, is_instant, unit_text

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.scenario.scenario import Scenario

MEAN, MEDIAN, PROBABILITY = "mean", "median", "probability"
"""Statistics that a row of differences compares."""
QUANTILES = (5, 25, 50, 75, 95)
"""Percentages of the estimated quantiles."""


FactsOf = Callable[[Sequence[RunFigures], KnownBounds], Known]
"""Function that returns the facts about a figure in the given runs."""


def estimates(
    frames: Mapping[str, pd.DataFrame],
    runs: Sequence[RunFigures],
    confidence: float,
    bounds: KnownBounds,
    days: Days,
    expressions: Sequence[Expression] = (),
    origin: int | None = None,
) -> pd.DataFrame:
    """Return a table of estimates: a row per scope and figure of `frames`, and one per expression.

    Instants of expressions are in seconds from `origin` (ms), like those of the frames.

    Columns: scope, organization, campaign, figure, runs (that have the figure), unfinished (that
    have no end, for `finish_seconds`), mean, mean_low, mean_high, mean_enough; the same four
    columns for p05, p25, p50, p75 and p95; hits. `dialsim.experiments.intervals` explains the
    methods. `finish_seconds` is infinite where a run did not finish. A limit that the runs do not
    support is infinite, or NaN if there is no interval. Then `…_enough` is the approximate number
    of runs that would support the limit, missing if unknown.

    Instants have no mean. For each of `days` there is a figure such as `finish_by_2026-01-05`: its
    `mean` is the probability of being done by the end of that day, `hits` the number of runs that
    are done by then. Such a figure has no quantiles.
    """
    import pandas as pd

    check_confidence(confidence)
    rows = [
        {"scope": scope, "organization": None, "campaign": None} | place | row
        for scope, frame in frames.items()
        for place, part in parts_of(frame, scope)
        for row in estimates_of_place(
            {name: part[name].to_numpy(np.float64) for name in figure_columns(part)},
            runs,
            confidence,
            bounds,
            (place.get("organization"), place.get("campaign")),
            days[place.get("organization"), place.get("campaign")],
        )
    ]
    # An expression names its campaigns and organizations itself, so its row has the scope of the
    # run.
    whole = {"scope": "run", "organization": None, "campaign": None}
    have = figure_columns(frames["run"])
    for e in expressions:
        if e.text not in have:
            values, known = e.in_tables(runs, origin), e.facts_in_tables(runs, bounds)
            rows.append(whole | estimate(e.text, values, confidence, known, e.by_median))
    table = pd.DataFrame(rows)
    # pandas' nullable Int64: int64 has no missing values.
    return table.astype({name: "Int64" for name in table if str(name).endswith("_enough")})


def check_confidence(confidence: float) -> None:
    """Raise ExperimentError unless a level of confidence is between 0 and 1."""
    if not 0 < confidence < 1:
        raise ExperimentError(f"confidence must be between 0 and 1, such as 0.95, not {confidence}")


def figure_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns of a frame with numbers to estimate."""
    numbers = frame.select_dtypes("number").columns
    return [str(name) for name in numbers if name != "replication"]


def estimates_of_place(
    columns: Mapping[str, Values],
    runs: Sequence[RunFigures],
    confidence: float,
    bounds: KnownBounds,
    place: Place,
    days: Sequence[DoneBy],
) -> Iterator[dict[str, Any]]:
    """Yield the rows of `estimates` for one place; `columns` are its figures in `runs`."""
    for name, values in columns.items():
        known = known_of(name, place, runs, bounds)
        yield estimate(name, values, confidence, known, is_instant(name))
    for day in days:
        done = day.done(columns[day.source])
        done = done[~np.isnan(done)]
        found = day.estimate(columns[day.source], bounds, confidence)
        row = {"figure": day.column, "runs": len(done), "unfinished": 0, "hits": int(done.sum())}
        yield row | _columns("mean", found)


def known_of(column: str, place: Place, runs: Sequence[RunFigures], bounds: KnownBounds) -> Known:
    """Return the facts about a column of a table; for an instant, only whether it is certain."""
    if is_instant(column):
        return Known(certain=bounds.certain(column))
    return facts(FigureName(column, *place), runs, bounds)


def estimate(
    name: str, values: Values, confidence: float, known: Known, by_median: bool
) -> dict[str, Any]:
    """Return the row of one figure in `estimates`, without the columns of its place.

    Runs in which the figure is NaN are left out. With `by_median` the row has no mean.
    """
    given = ~np.isnan(values)
    values = values[given]
    mean = NO_INTERVAL
    if not by_median:
        mean = mean_interval(values, confidence, known.among(given))
    unfinished = int(np.isinf(values).sum())
    row: dict[str, Any] = {"figure": name, "runs": len(values), "unfinished": unfinished}
    row |= _columns("mean", mean)
    for percent in QUANTILES:
        found = quantile_interval(values, percent / 100, confidence, known.certain)
        row |= _columns(f"p{percent:02}", found)
    return row


def _columns(statistic: str, found: Interval) -> dict[str, float | None]:
    ends = {"": found.estimate, "_low": found.low, "_high": found.high, "_enough": found.enough}
    return {f"{statistic}{end}": value for end, value in ends.items()}


# -- as JSON: NaN and infinite numbers are null ----------------------------------------------------


def estimate_records(table: pd.DataFrame, origin: int | None) -> list[dict[str, Any]]:
    """Return the rows of `estimates`, with instants beside the seconds from `origin` (ms)."""
    rows = records(table)
    for row in rows:
        if is_instant(row["figure"]) and origin is not None:
            instant = row["figure"].removesuffix("_seconds")
            for name in (f"p{percent:02}" for percent in QUANTILES):
                seconds = row[name]
                at = None if seconds is None else origin + 1000 * seconds
                row[f"{instant}_{name}"] = instant_text(at)
    return rows


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    # As objects: in a float column pandas would turn None back into NaN.
    known = table.astype(object).where(table.notna(), None)
    return [
        {str(name): finite(value) for name, value in row.items()}
        for row in known.to_dict("records")
    ]


def finite(value: Any) -> Any:
    """Return a value, None in place of a number that is not finite."""
    return None if isinstance(value, float) and not isfinite(value) else value


def to_json(result: object, names: Iterable[str], **values: object) -> dict[str, Any]:
    """Return attributes of a result by name, as JSON has them; `values` replace some of them."""
    return {
        name: _plain(values[name] if name in values else getattr(result, name)) for name in names
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return value.to_dict() if hasattr(value, "to_dict") else finite(value)


def instant_text(at: float | None) -> str | None:
    """Format an instant (ms); None for NaN, and for an infinite instant, which never comes."""
    return None if at is None or not isfinite(at) else format_instant(round(at))


# -- settings side by side -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SettingRuns:
    """Setting with its runs; `cells` has the values of the columns before its figures."""

    name: str
    runs: Sequence[RunFigures]
    bounds: KnownBounds
    cells: Mapping[str, object] = field(default_factory=dict)


Pair = tuple[SettingRuns, SettingRuns]
"""Setting and its baseline."""


def settings_table(
    settings: Sequence[SettingRuns], expressions: Sequence[Expression] = ()
) -> tuple[pd.DataFrame, dict[str, Unit]]:
    """Return settings side by side, with 95 % intervals, and the units of the columns.

    A row per setting, and per campaign if there are several. Figures that no run has are left out.
    """
    import pandas as pd

    origin = earliest_start([run for setting in settings for run in setting.runs])
    rows, units = [], dict[str, Unit]()
    for setting in settings:
        campaigns = [part for part in setting.runs[0].scopes if part.scope == "campaign"]
        places = [(part.organization, part.campaign) for part in campaigns]
        for place in [(None, None), *(places if len(places) > 1 else [])]:
            finish = figure_of("finish", place)
            shown = [("median finish", "p50", finish), ("95 % done", "p95", finish)]
            shown += [(label, "mean", figure_of(name, place)) for name, label in MAIN.items()]
            if place == (None, None):
                shown += [(e.text, "p50" if e.by_median else "mean", e) for e in expressions]
            row: dict[str, object] = {"setting": setting.name, "runs": len(setting.runs)}
            row |= {"campaign": place[1] or "all"} if len(places) > 1 else {}
            row |= setting.cells
            for label, statistic, figure in shown:
                values = figure.in_tables(setting.runs, origin)
                known = figure.facts_in_tables(setting.runs, setting.bounds)
                found = estimate(label, values, CONFIDENCE, known, statistic != "mean")
                for end, name in _COLUMN_ENDS.items():
                    value = found[f"{statistic}{end}"]
                    if figure.is_instant:
                        at = (origin or 0) + 1000 * value
                        value = utc(round(at)) if isfinite(at) else None
                    row[f"{label}{name}"] = value
                    units[f"{label}{name}"] = figure.unit
            rows.append(row)
    return pd.DataFrame(rows).dropna(axis="columns", how="all"), units


_COLUMN_ENDS = {"": "", "_low": ", at least", "_high": ", at most"}


def differences(
    frames: Mapping[str, pd.DataFrame],
    settings: Mapping[str, SettingRuns],
    baseline: str,
    confidence: float,
    adjust: str | None,
    days: Days,
    expressions: Sequence[Expression] = (),
    origin: int | None = None,
) -> pd.DataFrame:
    """Compare each other variant with the baseline: a row per variant, scope and figure.

    `settings` has the runs of each variant, baseline included; `expressions` and `origin` are as in
    `estimates`.

    Columns: variant, scope, organization, campaign, figure, unit, statistic, mean, baseline_mean,
    median, baseline_median, difference, low, high, p_value, real, method, pairs, rose, fell. All
    values describe the runs that both variants have. `statistic` names what `difference` compares:
    the median of paired differences for instants, the probability for figures such as
    `finish_by_2026-01-05`, and the mean for all others. Means are missing where medians are
    compared, and medians elsewhere. `real` is true where the interval excludes 0. The difference of
    a mean has no interval, and is not real, if some runs did not finish, or if the differences are
    equal or too skewed for their number. `rose` and `fell` are the numbers of `pairs` with a
    greater and a smaller value. `unit` is the unit of the differences: seconds for instants.

    Without adjustment, one in twenty differences looks real at 95 % although there is none.
    `adjust="bonferroni"` widens the intervals, so that the confidence holds for all variants of one
    figure together.
    """
    import pandas as pd

    check_confidence(confidence)
    pairs = {
        name: _paired(own, settings[baseline]) for name, own in settings.items() if name != baseline
    }
    # Bonferroni: with m comparisons each one gets 1/m of the admitted error.
    level = 1 - (1 - confidence) / max(len(pairs), 1) if adjust else confidence
    rows = [
        {"variant": other} | row
        for other, pair in pairs.items()
        for scope, frame in frames.items()
        for row in _compared(frame, scope, pair, level, days)
    ]
    whole = {"scope": "run", "organization": None, "campaign": None}
    have = figure_columns(frames["run"])
    for other, pair in pairs.items():
        for e in expressions:
            if e.text not in have:
                sides = [e.in_tables(own.runs, origin) for own in pair]
                row = _difference(e.text, e.by_median, sides, level, e.facts_in_tables, pair)
                rows.append({"variant": other} | whole | row)
    table = pd.DataFrame(rows, columns=["variant", *_COLUMNS])
    named = {e.text: e.measure.label or "s" * e.is_instant for e in expressions}
    units = {name: named[name] if name in named else unit_text(name) for name in table["figure"]}
    table["unit"] = table["figure"].map(units)
    by_p, by_interval = table["p_value"] < 1 - level, (table["low"] > 0) | (table["high"] < 0)
    # An exact test decides about shares, because their combined interval may end at 0.
    table["real"] = np.where(table["method"] == BY_SHARES, by_p, by_interval)
    return table


def check_baseline(names: Sequence[str], baseline: str | None) -> str:
    """Return the baseline, by default the first variant. Raises ExperimentError for an unknown
    one.
    """
    if baseline is None:
        return names[0]
    worded = ", ".join(setting_text(*change.split("=", 1)) for change in baseline.split(", ")
                       if "=" in change)  # fmt: skip
    if worded in names:
        return worded
    if baseline not in names:
        raise ExperimentError(f"there is no variant {baseline}; there are: {'; '.join(names)}")
    return baseline


_COLUMNS = (
    *("scope", "organization", "campaign", "figure", "unit", "statistic"),
    *("mean", "baseline_mean", "median", "baseline_median"),
    *("difference", "low", "high", "p_value", "real", "method", "pairs", "rose", "fell"),
)


def _paired(own: SettingRuns, baseline: SettingRuns) -> Pair:
    """Return the runs that both have: a variant that was decided early has fewer."""
    count = min(len(own.runs), len(baseline.runs))
    return replace(own, runs=own.runs[:count]), replace(baseline, runs=baseline.runs[:count])


def _compared(
    frame: pd.DataFrame, scope: str, pair: Pair, level: float, days: Days
) -> Iterator[dict[str, Any]]:
    # The columns before `replication` identify the variant and its settings: they are not figures.
    varied = [str(name) for name in frame.columns[: list(frame.columns).index("replication")]]
    for place, part in parts_of(frame, scope):
        sides = [part[part["variant"] == own.name][: len(own.runs)] for own in pair]
        if any(side.empty for side in sides):
            continue  # campaign or organization of one side only
        whole, at = {"scope": scope, **place}, (place.get("organization"), place.get("campaign"))
        for figure in figure_columns(part):
            if figure not in varied:
                values = [_values(side, figure) for side in sides]
                find = partial(known_of, figure, at)
                yield whole | _difference(figure, is_instant(figure), values, level, find, pair)
        for day in days[at]:
            yield whole | _of_day(day, [_values(side, day.source) for side in sides], level, pair)


def _of_day(day: DoneBy, sides: Sequence[Values], level: float, pair: Pair) -> dict[str, Any]:
    """Compare the probabilities of being done by the end of a day."""
    one, other = sides
    known = pair[0].bounds, pair[1].bounds
    shares = [day.estimate(*side, level).estimate for side in zip(sides, known, strict=True)]
    found = compare_days((day, day), (one, other), known, level)
    return _row(day.column, PROBABILITY, shares, found)


def _difference(
    figure: str,
    by_median: bool,
    sides: Sequence[Values],
    level: float,
    facts_of: FactsOf,
    pair: Pair,
) -> dict[str, Any]:
    (one, other), (known, others) = sides, (facts_of(own.runs, own.bounds) for own in pair)
    if by_median:
        found = median_difference(one, other, level, known.certain and others.certain)
        return _row(figure, MEDIAN, [_median(one), _median(other)], found)
    found = paired_difference(one, other, level, (known, others))
    return _row(figure, MEAN, [_mean(one, known), _mean(other, others)], found)


def _row(figure: str, statistic: str, sides: Sequence[float], found: Difference) -> dict[str, Any]:
    name = "median" if statistic == MEDIAN else "mean"
    named = {"figure": figure, "statistic": statistic, "difference": found.estimate}
    return named | {name: sides[0], f"baseline_{name}": sides[1]} | asdict(found)


def _values(frame: pd.DataFrame, figure: str) -> Values:
    return frame[figure].to_numpy(dtype=np.float64)


def _median(values: Values) -> float:
    # The median by rank, as in `quantile_interval`: an instant of one of the runs. np.median would
    # average the two in the middle.
    known = np.sort(values[~np.isnan(values)])
    return float(known[rank(len(known), 0.5) - 1]) if len(known) else float("nan")


def _mean(values: Values, known: Known) -> float:
    given = ~np.isnan(values)
    return mean_interval(values[given], CONFIDENCE, known.among(given)).estimate


def undominated(losses: Sequence[tuple[float, ...]]) -> list[int]:
    """Return the indices of points that no other dominates, by increasing first loss.

    A point is dominated by one that is not larger in any loss and smaller in one. Of equal points
    the first is kept; points with an infinite loss are left out.
    """
    # Reversed: of equal points the first index remains.
    first = {point: index for index, point in reversed([*enumerate(losses)])}
    return [
        first[point]
        for point in sorted(first)
        if all(map(isfinite, point))
        and not any(
            other != point and all(a <= b for a, b in zip(other, point, strict=True))
            for other in first
        )
    ]


_BROKEN_BY = {
    "repeated": ("repeated call on one day", "repeated calls on one day"),
    "outside": ("call outside the times of contact", "calls outside the times of contact"),
}
"""Counts that break a rule, with their singular and plural in texts."""


@dataclass(frozen=True, slots=True)
class RuleBreach:
    """Rule that a setting breaks more often than the scenario as it is, with both mean counts."""

    rule: str
    count: str
    mean: float
    before: float

    @property
    def text(self) -> str:
        """Text such as `9,155 repeated calls on one day, not allowed by thai-debt-collection`."""
        one, several = _BROKEN_BY[self.count]
        mean, before = _number(self.mean), _number(self.before)
        if mean == before:  # rounded means would contradict the sentence
            mean, before = f"{self.mean:,.2f}", f"{self.before:,.2f}"
        calls = one if self.mean == 1 else several
        as_it_is = f" (as it is: {before})" if self.before else ""
        return f"{mean} {calls}{as_it_is}, not allowed by {self.rule}"


def _number(mean: float) -> str:
    return f"{mean:,.0f}" if mean >= 10 or mean == int(mean) else f"{mean:.2g}"


def not_allowed(named: Iterable[tuple[str, Sequence[RuleBreach]]]) -> list[str]:
    """Return a sentence for each setting that breaks a rule more often than the scenario as it is.

    For example: `Retries after 1 h: 9,155 repeated calls on one day, not allowed by one a day.`
    """
    return [
        f"{name[:1].upper()}{name[1:]}: {'; '.join(breach.text for breach in breaches)}."
        for name, breaches in named
        if breaches
    ]


def breach_figures(scenario: Scenario) -> frozenset[str]:
    """Return the names of the figures that count breaches; none without compliance rules."""
    return frozenset(
        compliance_figure(rule.name, count) for rule in scenario.compliance for count in _BROKEN_BY
    )


def breaches_of(
    scenario: Scenario, runs: Sequence[RunFigures], before: Sequence[RunFigures]
) -> tuple[RuleBreach, ...]:
    """Return the rules of a scenario that `runs` break more often than the runs `before` a change.

    Both begin with replication 0; only replications in both are compared.
    """
    pairs, found = min(len(runs), len(before)), []
    for rule in scenario.compliance:
        for count in _BROKEN_BY:
            name = compliance_figure(rule.name, count)
            if any(name not in run.scopes[0].values for run in (*runs[:1], *before[:1])):
                continue  # a file of a comparison may lack the rule
            figure = FigureName(name, None, None)
            now, then = (float(figure.of(part[:pairs]).mean()) for part in (runs, before))
            if now > then:
                found.append(RuleBreach(rule.name, count, now, then))
    return tuple(found)
