"""Experiments as sentences and small tables of text, printed or shown in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite, isnan, nan
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from dialsim.experiments.estimates import MEAN, PROBABILITY, not_allowed
from dialsim.experiments.expression import Expression, figure_of
from dialsim.experiments.intervals import Interval, is_symmetric, quantile_interval
from dialsim.experiments.run_figures import day_label
from dialsim.interface.instants import duration_text, ms_of, short_text
from dialsim.interface.phrases import counted, joined
from dialsim.results.figures import MAIN, Unit, is_done_by
from dialsim.results.summary_text import WIDTH, FigureTable, ValueText, rich_table

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.replications import Replications
    from dialsim.experiments.sweep import Comparison, Sweep


_CONFIDENCE = 0.95


def replications_content(runs: Replications) -> tuple[list[str], list[FigureTable]]:
    """Return the sentences and tables of replications."""
    said = [replications_headline(runs), *lost_sentences(runs), *precision_sentences(runs)]
    return said, replications_tables(runs)


def replications_headline(runs: Replications) -> str:
    """Describe the number of runs, and the instants by which half and 95 % of them are done."""
    count = len(runs)
    said = f"{counted(count, 'replication')} of seed {runs.seed}"
    finish = runs.runs["finish_seconds"].dropna().to_numpy()
    if not len(finish):
        return f"{said}: nothing was scheduled."
    never = sum(value == inf for value in finish)
    ending = f"; {never} did not finish" if never and count > 1 else ""
    # Without randomness in calls all runs finish at the same time.
    if count < 2 or (runs.bounds.calls and not never):
        return f"{said}: finished {_finish(finish[0], runs)}{ending}."
    half, late = (
        quantile_interval(finish, share, _CONFIDENCE, runs.bounds.calls) for share in (0.5, 0.95)
    )
    done = f"half of them are done {_finish(half.estimate, runs)}"
    return f"{said}: {done}{_by_when_nearly_all(late, runs)}{ending}."


def _by_when_nearly_all(late: Interval, runs: Replications) -> str:
    """Describe the instant by which 95 % are done: its upper limit, or else its estimate."""
    if isfinite(late.high):
        return f", and 95 % {_finish(late.high, runs)} (with 95 % confidence)"
    if not isfinite(late.estimate):
        return ""
    more = f" {late.enough} runs or more would bound it" if late.enough else ""
    return f"; that 95 % are done {_finish(late.estimate, runs)} is only an estimate:{more}"


def lost_sentences(runs: Replications) -> list[str]:
    """Warn about lost people, if any."""
    lost = runs.runs["people_lost"]
    count = int((lost > 0).sum())
    if not count:
        return []
    which = "every run" if count == len(runs) else f"{count} of {len(runs)} runs"
    return [f"Warning: in {which} people are lost, {amount_text('people_lost', lost.mean())} on "
            f"average: {LOST_TO}."]  # fmt: skip


LOST_TO = "endDateTime or a cancellation comes before calling is done with them"


def precision_sentences(runs: Replications) -> list[str]:
    """Describe the result for each requested precision."""
    said = []
    for part in runs.precision:
        named = part.figure.startswith("mean(")
        figure = part.figure if named else f"the {part.statistic} of {part.figure}"
        wanted = f"{figure} to within {_share(part.wanted)}"
        got = f"reached: {_share(part.reached)}" if isfinite(part.reached) else "far from it"
        if part.met:
            said.append(f"{len(runs)} replications determine {wanted} ({got}).")
        elif part.unfinished:
            said.append(f"Warning: {part.unfinished} runs did not finish, so no number of "
                        f"runs determines {wanted}.")  # fmt: skip
        else:
            said.append(f"Warning: {len(runs)} replications don't determine {wanted} ({got}).")
    return said


def _share(share: float) -> str:
    return f"{100 * share:.3g} %"


def replications_tables(runs: Replications) -> list[FigureTable]:
    """Return tables of the finish and figures of each campaign, and of all if there are several."""
    intervals = runs.intervals()
    tables = []
    for name, part in _places(intervals):
        found = {row["figure"]: row for _, row in part.iterrows()}
        if found["finish_seconds"]["runs"]:
            tables.append(_finish_table(name, found, runs))
        rows = [
            (label, *_cells(figure_of(figure), found[figure], runs))
            for figure, label in MAIN.items()
            if figure in found and found[figure]["runs"] and found[figure]["p95"]
        ]
        tables.append(FigureTable(name, _ESTIMATE_COLUMNS, tuple(rows)))
    for columns, shown in (
        (_ESTIMATE_COLUMNS, [e for e in runs.expressions if not e.by_median]),
        (_MEDIAN_COLUMNS, [e for e in runs.expressions if e.by_median]),
    ):
        rows = [(_with_unit(e), *_cells(e, _row_of(e, intervals), runs)) for e in shown]
        if rows:
            tables.append(FigureTable("Figure", columns, tuple(rows)))
    return tables


UNITS_IN_VALUES = (Unit.SHARE, Unit.SECONDS)
"""Units that texts print behind the value."""

_ESTIMATE_COLUMNS = ("mean", "95 % interval", "5 %", "half", "95 %")
_MEDIAN_COLUMNS = ("half", "95 % interval", "5 %", "95 %")


def _with_unit(expression: Expression) -> str:
    label = expression.measure.label
    return (
        expression.label
        if not label or expression.unit in UNITS_IN_VALUES
        else (f"{expression.label} ({label})")
    )


def _cells(expression: Expression, row: pd.Series, whose: Replications | Sweep) -> tuple[str, ...]:
    """Return the texts of mean, interval and quantiles; the median replaces an instant's mean."""

    def text(value: float) -> ValueText:
        return figure_text(expression, value, whose)

    middle = "p50" if expression.by_median else "mean"
    quantiles = [part for part in ("p05", "p50", "p95") if part != middle]
    low, high = row[f"{middle}_low"], row[f"{middle}_high"]
    interval = _interval_text(low, high, text, _enough(row, middle))
    return (text(row[middle]), interval, *(text(row[part]) for part in quantiles))


def figure_text(expression: Expression, value: float, whose: Replications | Sweep) -> ValueText:
    """Format the value of an expression from a table, in which instants are in seconds."""
    if expression.is_instant:
        return when_text(value, whose)
    if value == inf and not expression.is_figure:
        return ValueText("infinite", nan)
    return expression_text(expression, value)


def _places(intervals: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the rows of each campaign by name; without exactly one, also those of the run."""
    places = [
        (name, _of_campaign(intervals, *place))
        for place, name in _campaign_names(intervals).items()
    ]
    if len(places) != 1:
        places.append(("all", intervals[intervals["scope"] == "run"]))
    return places


def _campaign_names(table: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Return the campaigns by organization and name; names include the organization if there are
    several.
    """
    campaigns = table[table["scope"] == "campaign"][["organization", "campaign"]]
    places = [(str(o), str(c)) for o, c in campaigns.drop_duplicates().itertuples(index=False)]
    several = len({organization for organization, _ in places}) > 1
    return {(o, c): f"{o}/{c}" if several else c for o, c in places}


def _of_campaign(table: pd.DataFrame, organization: str, campaign: str) -> pd.DataFrame:
    return table[(table["organization"] == organization) & (table["campaign"] == campaign)]


def _finish_table(name: str, found: Mapping[str, pd.Series], runs: Replications) -> FigureTable:
    labels = {"p05": "5 % of runs", "p50": "half of the runs", "p95": "95 % of runs"}
    row = found["finish_seconds"]
    rows = [
        (label, when_text(row[part], runs), *(_limit(row, part, end, runs) for end in _ENDS))
        for part, label in labels.items()
    ]
    rows += [
        (f"done {day_label(day)}", *(amount_text(day, found[day][part]) for part in _MEAN_AND_ENDS))
        for day in found
        if is_done_by(day) and day.startswith("finish")
    ]
    return FigureTable(f"{name} finishes", ("Thai time", "at least", "at most"), tuple(rows))


def day_sentence(rows: Mapping[Any, Any]) -> str:
    """Return the probabilities of being done by the end of each day; `rows` are estimates."""
    known = [name for name in rows if is_done_by(name) and name.startswith("finish")]
    said = [f"{amount_text(name, rows[name]['mean'])} {day_label(name)}" for name in known]
    return f"Probability of being done: {', '.join(said)}." if said else ""


_ENDS = ("low", "high")
_MEAN_AND_ENDS = ("mean", "mean_low", "mean_high")


def _limit(row: pd.Series, part: str, end: str, whose: Replications) -> str:
    """Format a limit of an interval, or the number of runs that would support it."""
    seconds, enough = row[f"{part}_{end}"], _enough(row, part)
    if isfinite(seconds):
        return when_text(seconds, whose)
    return "–" if enough is None else f"from {enough} runs on"


def _enough(row: pd.Series, part: str) -> int | None:
    """Return the approximate number of runs that a missing limit needs, if known."""
    from pandas import isna

    enough = row[f"{part}_enough"]
    return None if isna(enough) else int(enough)


def _finish(seconds: float, whose: Replications | Sweep) -> str:
    return "never" if seconds == inf else f"by {when_text(seconds, whose)} Thai time"


def when_text(seconds: float, whose: Replications | Sweep) -> ValueText:
    """Format an instant, given in seconds from the earliest startAt, in Thai time without the
    year.
    """
    if isnan(seconds) or whose.origin is None:
        return ValueText("–", nan)
    if not isfinite(seconds):
        return ValueText("never" if seconds > 0 else "–", seconds)
    instant = round(ms_of(whose.origin) + seconds * 1000)
    return ValueText(short_text(instant), instant)


def _row_of(expression: Expression, table: pd.DataFrame) -> pd.Series:
    return table[table["figure"] == expression.text].iloc[0]


def _interval_text(
    low: float, high: float, text: Callable[[float], ValueText], enough: int | None
) -> str:
    """Format an interval such as `12 – 15`; if runs are too few, `12 – 15, skewed: ~180 runs`."""
    if not isfinite(low):
        return "–" if enough is None else f"from {enough} runs on"
    known = f"{text(low)} – {text(high)}" if isfinite(high) else f"{text(low)} or more"
    # The interval is printed nevertheless, since it is a lower bound of the uncertainty.
    skewed = "" if enough is None else f", skewed: ~{enough} runs"
    return ValueText(f"{known}{skewed}", text(low).value)


def amount_text(figure: str, value: float) -> ValueText:
    """Format a figure's value."""
    return expression_text(figure_of(figure), value)


def expression_text(figure: Expression, value: float) -> ValueText:
    """Format the value of an expression; durations in their largest units."""
    known = value if isfinite(value) else nan
    if figure.is_figure or figure.unit is not Unit.SECONDS or not isfinite(value):
        return ValueText(_amount(figure.unit, value), known)
    return ValueText(f"{'-' if value < 0 else ''}{duration_text(1000 * round(abs(value)))}", known)


def _amount(unit: Unit, value: float) -> str:
    if not isfinite(value):
        return "–"
    if unit is Unit.SHARE:
        return f"{100 * value:.1f} %"
    size = abs(value)
    if size < 1000 and unit in (Unit.PER_PERSON, Unit.PER_CONVERSATION):
        return f"{value:,.2f}"
    if size < 10 and unit is Unit.NO_NUMBER:
        return f"{value:.3g}"
    # Decimals of large numbers would suggest a precision that no simulation has.
    return f"{value:,.0f}" if size >= 1000 or value == int(value) else f"{value:,.1f}"


def sweep_headline(found: Sweep) -> str:
    """Describe the number of variants, or files, and of runs."""
    variants = counted(len(found.variants), found.noun)
    return f"{variants}, {runs_text(found)} replications each, all with the same chance."


def runs_text(found: Sweep) -> str:
    """Describe the number of runs per variant: `50` or `12 to 50`."""
    least, most = len(found.together.figures[0]), found.replications
    return str(most) if least == most else f"{least} to {most}"


def decided_sentences(found: Sweep) -> list[str]:
    """Describe the numbers of different, equivalent and undecided variants, if a figure decides."""
    decided = found.decided
    if decided is None:
        return []
    verdicts = [part.verdict for part in decided.decisions]
    alike, unsure = verdicts.count("alike"), verdicts.count("open")
    parts = [f"{len(verdicts) - alike - unsure} of {len(verdicts)} differ"]
    parts += [f"{alike} alike"] if alike else []
    parts += [f"{unsure} not told by {decided.most} replications"] if unsure else []
    figure, runs, most = decided.figure.text, sum(map(len, found.figures)), decided.most
    return [
        f"Decided by {figure} against {decided.baseline}: {', '.join(parts)}. "
        f"That took {runs:,} of {most * len(found.variants):,} runs."
    ]


def decided_tables(found: Sweep) -> list[FigureTable]:
    """Return the table of verdicts on the variants, with their pairs of runs."""
    decided = found.decided
    if decided is None:
        return []
    more, less = ("later", "earlier") if decided.figure.is_instant else ("more", "less")
    words = {"more": more, "less": less, "alike": "alike", "open": "not told"}
    rows = []
    for part in decided.decisions:
        counts = (part.runs, part.more, part.less, part.alike)
        cells = (ValueText(f"{count:,}", count) for count in counts)
        rows.append((part.variant, words[part.verdict], *cells))
    alike = f"within {_share(decided.indifference)}"
    title = f"{decided.figure.text} against {decided.baseline}"
    return [FigureTable(title, ("verdict", "runs", more, less, alike), tuple(rows))]


def sweep_content(found: Sweep) -> tuple[list[str], list[FigureTable]]:
    """Return the sentences and tables of a sweep."""
    whole, campaigns = sweep_tables(found)
    said = [sweep_headline(found), *decided_sentences(found)]
    said += [*not_allowed(found.breaches.items()), *more_probable_sentences(found)]
    return said, [*whole, *decided_tables(found), *campaigns]


def comparison_content(found: Comparison) -> tuple[list[str], list[FigureTable]]:
    """Return the sentences and tables of a comparison of files."""
    said, tables = sweep_content(found)
    return [comparison_headline(found), *said, *comparison_sentences(found)], [
        *tables,
        *changed_tables(found),
    ]


_LEAST_SHIFT = 0.005  # least change of a probability that a sentence mentions
_MOST_SHIFTS = 5


def more_probable_sentences(found: Sweep) -> list[str]:
    """Describe how allowed variants change the probability of being done by the end of a day."""
    rows, said = found.run_differences, []
    for row in rows[rows["figure"].isin(undecided_days(rows))].to_dict("records"):
        if row["variant"] not in found.breaches and abs(row["difference"]) >= _LEAST_SHIFT:
            way = "more" if row["difference"] > 0 else "less"
            share, base = (amount_text(row["figure"], row[name]) for name in _SIDES)
            sure = "" if row["real"] else f"; {row['pairs']} pairs of runs don't make that sure"
            said.append(
                f"To be done {day_label(row['figure'])} is {way} probable with {row['variant']}: "
                f"{share} instead of {base}{sure}."
            )
    return said[:_MOST_SHIFTS]


_SIDES = ("mean", "baseline_mean")


def sweep_tables(found: Sweep) -> tuple[list[FigureTable], list[FigureTable]]:
    """Return the variants' figures and their differences from the baseline, with verdicts.

    The first list is for all campaigns together, the second for each campaign if there are several.
    """
    intervals, differences, baseline = found.intervals(), found.differences(), found.baseline
    shown = ["people_reached"]
    shown += ["people_lost"] if (found.runs["people_lost"] > 0).any() else []
    shown += ["cost"] if found.scenario.costs else []
    names = found.names

    def pair(title: str, figures: pd.DataFrame, minus: pd.DataFrame) -> list[FigureTable]:
        tables = [_variant_table(title or "Variant", figures, names, shown, found)]
        if len(minus):
            others = [name for name in names if name != baseline]
            title = f"{title} minus {baseline}" if title else f"Minus {baseline}"
            own = found.expressions if figures["scope"].iloc[0] == "run" else ()
            tables.append(_difference_table(title, minus, others, shown, own))
        return tables

    whole = pair("", *(table[table["scope"] == "run"] for table in (intervals, differences)))
    for e in found.expressions:
        of_variants = tuple(
            (name, *_cells(e, _row_of(e, intervals[intervals["variant"] == name]), found))
            for name in names
        )
        columns = _MEDIAN_COLUMNS if e.by_median else _ESTIMATE_COLUMNS
        whole.append(FigureTable(_with_unit(e), columns, of_variants))
    places = _campaign_names(intervals)
    campaigns = [
        table
        for place, name in places.items()
        if len(places) > 1
        for table in pair(name, *(_of_campaign(part, *place) for part in (intervals, differences)))
    ]
    return whole, campaigns


def _variant_table(
    title: str, figures: pd.DataFrame, names: Sequence[str], shown: Sequence[str], whose: Sweep
) -> FigureTable:
    known, days = by_variant(figures), undecided_days(figures)
    rows = []
    for name in names:
        if (name, "finish_seconds") not in known:
            continue  # campaign of other files only
        cells = [when_text(known[name, "finish_seconds"][part], whose) for part in ("p50", "p95")]
        cells += [amount_text(figure, known[name, figure]["mean"]) for figure in (*days, *shown)]
        rows.append((name, *cells))
    labels = ("median finish", "95 % done", *map(day_label, days), *(MAIN[name] for name in shown))
    return FigureTable(title, labels, tuple(rows))


def _difference_table(
    title: str,
    differences: pd.DataFrame,
    names: Sequence[str],
    shown: Sequence[str],
    expressions: Sequence[Expression],
) -> FigureTable:
    known, days = by_variant(differences), undecided_days(differences)
    figures = ("finish_seconds", *days, *shown)
    rows = [
        (
            name,
            *(difference_text(known[name, figure]) for figure in figures),
            *(difference_text(known[name, e.text], e) for e in expressions),
        )
        for name in names
        if (name, "finish_seconds") in known
    ]
    labels = ("median finish", *map(day_label, days), *(MAIN[figure] for figure in shown))
    return FigureTable(title, (*labels, *(e.label for e in expressions)), tuple(rows))


def undecided_days(table: pd.DataFrame) -> list[str]:
    """Return the figures of the undecided days; of the last day if all are decided.

    A day is decided if all variants are certainly done at its end, or all are certainly not.
    `table` has estimates or differences of one campaign, organization or run, whose column `mean`
    is a probability.
    """
    days = table[[is_done_by(name) and name.startswith("finish") for name in table["figure"]]]
    sides = [name for name in _SIDES if name in days]
    shares = days.groupby("figure", sort=False)[sides].agg(["min", "max"])
    open_days = [str(name) for name, row in shares.iterrows() if row.min() < 1 and row.max() > 0]
    return open_days or [*dict.fromkeys(days["figure"])][-1:]


def comparison_sentences(found: Comparison) -> list[str]:
    """Describe campaigns that not all files have."""
    said = []
    for name, files in found.unmatched.items():
        said.append(f"Campaign {name} is only in {joined(files)}, and counts in the totals there.")
    if not found.file_differences:
        said.append("The files say the same.")
    return said


def changed_tables(found: Comparison) -> list[FigureTable]:
    """Return the table of differences between the files, if any."""
    rows = [
        (part.path or "the whole file", *(value or "–" for value in part.values))
        for part in found.file_differences
    ]
    return [FigureTable("What the files say", (*found.names,), tuple(rows))] if rows else []


def comparison_headline(found: Comparison) -> str:
    """Describe how every other file differs from the baseline."""
    known = by_variant(found.run_differences)
    said = [
        f"{name}: median finish {difference_text(known[name, 'finish_seconds'])}; people reached "
        f"{difference_text(known[name, 'people_reached'])}"
        for name in found.names
        if name != found.baseline
    ]
    return f"Against {found.baseline}: {'. '.join(said)}."


def by_variant(table: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows of a table by variant and figure."""
    rows = table.to_dict("records")
    return {(row["variant"], row["figure"]): {str(k): v for k, v in row.items()} for row in rows}


def difference_text(row: Mapping[str, Any], expression: Expression | None = None) -> ValueText:
    """Return a difference with its interval and verdict; it is real if the interval excludes 0.

    Of a mean `-12 ± 8, real`; of a median `-3 min 57 s (-4 min 5 s to -3 min 2 s), real`; of a
    probability `+5.6 points (-1.0 to +20.4), not sure`. Without an interval the pairs are counted:
    `earlier in 17 of 40 pairs, real`.
    """
    return ValueText(_difference_text(row, expression), row["difference"])


def _difference_text(row: Mapping[str, Any], expression: Expression | None) -> str:
    figure = expression or figure_of(row["figure"])

    def size_text(amount: float) -> str:
        if is_done_by(row["figure"]):
            return f"{100 * amount:.1f}"
        if figure.is_instant:
            return duration_text(1000 * round(amount))
        return expression_text(figure, amount)

    def signed(amount: float) -> str:
        return f"{'-' if amount < 0 else '+'}{size_text(abs(amount))}" if isfinite(amount) else ""

    verdict = "real" if row["real"] else "not sure"
    size = signed(row["difference"])
    moved = row["statistic"] != PROBABILITY and (row["rose"] or row["fell"])
    # An interval around 0 would hide that no pair of runs differs at all.
    unchanged = row["pairs"] and not row["difference"] and not moved
    if isfinite(row["low"]) and isfinite(row["high"]) and not unchanged:
        if row["difference"] == row["low"] == row["high"] == 0:
            return "none"
        ends = row["difference"], row["low"], row["high"]
        if row["statistic"] == MEAN and is_symmetric(*ends):
            return f"{size} ± {size_text((row['high'] - row['low']) / 2)}, {verdict}"
        unit = " points" if row["statistic"] == PROBABILITY else ""
        return f"{size}{unit} ({signed(row['low'])} to {signed(row['high'])}), {verdict}"
    pairs, rose, fell = (int(row[name]) for name in ("pairs", "rose", "fell"))
    if not pairs:
        return f"{size}, {verdict}" if size else "–"
    if not rose and not fell:
        return f"none in {pairs} pairs"
    more, less = ("later", "earlier") if figure.is_instant else ("more", "less")
    way = f"{more if rose >= fell else less} in {max(rose, fell)} of {pairs} pairs"
    return ", ".join([*([size] if size else []), way, verdict])


_WIDEST, _NAMES = 200, 60


def print_experiment(
    title: str, said: Sequence[str], tables: Sequence[FigureTable], file: IO[str] | None = None
) -> None:
    """Print sentences and tables to a stream (default: standard output)."""
    console = Console(file=file, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = _WIDEST
        widths = [console.measure(rich_table(table, _NAMES)).maximum for table in tables]
        console.width = max([WIDTH, *widths])
    console.print(Text(title, style="bold"))
    for sentence in said:
        console.print(Text(sentence, style="yellow" if sentence.startswith("Warning") else ""))
    for table in tables:
        console.print()
        console.print(rich_table(table, _NAMES))
