"""Experiments in sentences and small tables of text, printed or shown in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite, isnan
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.text import Text

from dialsim.experiments.expression import Expression
from dialsim.experiments.goal import Statistic
from dialsim.experiments.intervals import Interval, quantile_interval
from dialsim.results.figures import MAIN, Unit, is_instant, unit_of
from dialsim.results.summary_text import WIDTH, FigureTable, fragment, rich_table
from dialsim.results.thai_time import duration_text, minute_text, thai

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.comparison import Comparison
    from dialsim.experiments.goal import Evidence, Finding
    from dialsim.experiments.optimum import Combination, Optimum
    from dialsim.experiments.plan import Plan
    from dialsim.experiments.replications import Replications
    from dialsim.experiments.run_figures import RunFigures
    from dialsim.experiments.sweep import Sweep


_CONFIDENCE = 0.95


def replications_headline(runs: Replications) -> str:
    """How many runs there are, when half of them are done, and by when it is safe to say so."""
    count = len(runs)
    said = f"{count} replication{'s' * (count != 1)} of seed {runs.seed}"
    finish = runs.runs["finish_seconds"].dropna().to_numpy()
    if not len(finish):
        return f"{said}: nothing was scheduled."
    never = sum(value == inf for value in finish)
    ending = f"; {never} did not finish" if never and count > 1 else ""
    if count < 2 or (runs.prior.calls and not never):
        return f"{said}: finished {_finish(finish[0], runs)}{ending}."
    half, late = (
        quantile_interval(finish, share, _CONFIDENCE, runs.prior.calls) for share in (0.5, 0.95)
    )
    done = f"half of them are done {_finish(half.estimate, runs)}"
    return f"{said}: {done}{_by_when_nearly_all(late, runs)}{ending}."


def _by_when_nearly_all(late: Interval, runs: Replications) -> str:
    """The upper limit of the 95 % quantile; without one, that its estimate is no more than that."""
    if isfinite(late.high):
        return f", and 95 % {_finish(late.high, runs)} (with 95 % confidence)"
    if not isfinite(late.estimate):
        return ""
    more = f" {late.enough} runs or more would bound it" if late.enough else ""
    return f"; that 95 % are done {_finish(late.estimate, runs)} is only an estimate:{more}"


def lost_sentences(runs: Replications) -> list[str]:
    """How many people were lost, if any were."""
    lost = runs.runs["people_lost"]
    count = int((lost > 0).sum())
    if not count:
        return []
    which = "every run" if count == len(runs) else f"{count} of {len(runs)} runs"
    return [f"Warning: in {which} people are lost, {amount_text('people_lost', lost.mean())} on "
            f"average: {_LOST_TO}."]  # fmt: skip


_LOST_TO = "endDateTime or a cancellation comes before calling is done with them"


def precision_sentences(runs: Replications) -> list[str]:
    """What came of each wanted precision."""
    said = []
    for part in runs.precision:
        wanted = f"the mean of {part.figure} to within {_share(part.wanted)}"
        if part.met:
            reached = _share(part.reached)
            said.append(f"{len(runs)} replications tell {wanted} (reached: {reached}).")
        elif part.unfinished:
            said.append(f"Warning: {part.unfinished} runs did not finish, so no number of them "
                        f"tells {wanted}.")  # fmt: skip
        else:
            got = f"reached: {_share(part.reached)}" if isfinite(part.reached) else "far from it"
            said.append(f"Warning: {len(runs)} replications don't tell {wanted} ({got}).")
    return said


def _share(share: float) -> str:
    return f"{100 * share:.3g} %"


def replications_tables(runs: Replications) -> list[FigureTable]:
    """When each campaign finishes, and its figures; those of all together if there are several."""
    intervals = runs.intervals()
    tables = []
    for name, part in _places(intervals):
        found = {row["figure"]: row for _, row in part.iterrows()}
        if found["finish_seconds"]["runs"]:
            tables.append(_finish_table(name, found["finish_seconds"], runs))
        rows = [
            (label, *_estimate_cells(found[figure]))
            for figure, label in MAIN.items()
            if figure in found and found[figure]["runs"] and found[figure]["p95"]
        ]
        tables.append(FigureTable(name, _ESTIMATE_COLUMNS, tuple(rows)))
    rows = [(_with_unit(e), *_expression_cells(e, intervals, runs)) for e in runs.expressions]
    if rows:
        tables.append(FigureTable("Figure", _ESTIMATE_COLUMNS, tuple(rows)))
    return tables


_ESTIMATE_COLUMNS = ("mean", "95 % interval", "5 %", "half", "95 %")


def _with_unit(expression: Expression) -> str:
    label = expression.measure.label
    return (
        expression.text
        if not label or expression.unit in _SAY_THEIRS
        else (f"{expression.text} ({label})")
    )


def _expression_cells(
    expression: Expression, table: pd.DataFrame, whose: Replications | Sweep
) -> tuple[str, ...]:
    row = table[table["figure"] == expression.text].iloc[0]

    def text(value: float) -> str:
        if expression.is_instant:
            return when_text(value, whose)
        return "infinite" if value == inf else expression_text(expression, value)

    low, high = (row[f"mean_{end}"] for end in _ENDS)
    known = isfinite(low) and isfinite(high)
    interval = f"{text(low)} – {text(high)}" if known else "–"
    return (text(row["mean"]), interval, *(text(row[part]) for part in ("p05", "p50", "p95")))


def _places(intervals: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The campaigns by the shortest name that is not ambiguous, then all together."""
    places = [
        (name, _of_campaign(intervals, *place))
        for place, name in _campaign_names(intervals).items()
    ]
    if len(places) != 1:
        places.append(("all", intervals[intervals["scope"] == "run"]))
    return places


def _campaign_names(table: pd.DataFrame) -> dict[tuple[str, str], str]:
    """The campaigns by organization and name, each with its shortest name that is clear."""
    campaigns = table[table["scope"] == "campaign"][["organization", "campaign"]]
    places = [(str(o), str(c)) for o, c in campaigns.drop_duplicates().itertuples(index=False)]
    names = [campaign for _, campaign in places]
    return {(o, c): c if names.count(c) == 1 else f"{o}/{c}" for o, c in places}


def _of_campaign(table: pd.DataFrame, organization: str, campaign: str) -> pd.DataFrame:
    return table[(table["organization"] == organization) & (table["campaign"] == campaign)]


def _finish_table(name: str, row: pd.Series, runs: Replications) -> FigureTable:
    labels = {"p05": "5 % of runs", "p50": "half of the runs", "p95": "95 % of runs",
              "mean": "on average"}  # fmt: skip
    rows = tuple(
        (label, when_text(row[part], runs), *(_limit(row, part, end, runs) for end in _ENDS))
        for part, label in labels.items()
    )
    return FigureTable(f"{name} finishes", ("Thai time", "at least", "at most"), rows)


_ENDS = ("low", "high")


def _limit(row: pd.Series, part: str, end: str, whose: Replications) -> str:
    """A limit of an interval; where there is none, from how many runs on there is."""
    seconds, enough = row[f"{part}_{end}"], _enough(row, part)
    if isfinite(seconds):
        return when_text(seconds, whose)
    return "–" if enough is None else f"from {enough} runs on"


def _enough(row: pd.Series, part: str) -> int | None:
    """About how many runs would give a limit that is missing, where that is known."""
    from pandas import isna

    enough = row[f"{part}_enough"]
    return None if isna(enough) else int(enough)


def _finish(seconds: float, whose: Replications | Sweep) -> str:
    return "never" if seconds == inf else f"by {when_text(seconds, whose)} Thai time"


def when_text(seconds: float, whose: Replications | Sweep) -> str:
    """An instant given in seconds from the earliest startAt, in Thai time and without the year."""
    if isnan(seconds) or whose.origin is None:
        return "–"
    if not isfinite(seconds):
        return "never" if seconds > 0 else "–"
    return instant_text(round(whose.origin.timestamp() * 1000 + seconds * 1000))


def _estimate_cells(row: pd.Series) -> tuple[str, ...]:
    figure = str(row["figure"])
    quantiles = (amount_text(figure, row[part]) for part in ("p05", "p50", "p95"))
    return (amount_text(figure, row["mean"]), _interval_text(row), *quantiles)


def _interval_text(row: pd.Series) -> str:
    """`12 – 15`; with `, skewed: ~180 runs` behind where these are too few to tell much."""
    low, high = (
        amount_text(str(row["figure"]), row[end]) if isfinite(row[end]) else None
        for end in ("mean_low", "mean_high")
    )
    enough = _enough(row, "mean")
    if low is None:
        return "–" if enough is None else f"from {enough} runs on"
    known = f"{low} or more" if high is None else f"{low} – {high}"
    return known if enough is None else f"{known}, skewed: ~{enough} runs"


def amount_text(figure: str, value: float) -> str:
    """A figure's value, short."""
    return _amount(unit_of(figure), value)


def expression_text(figure: Expression, value: float) -> str:
    """The value of an expression, short; a time as people say it."""
    if figure.is_figure or figure.unit is not Unit.SECONDS or not isfinite(value):
        return _amount(figure.unit, value)
    return f"{'-' if value < 0 else ''}{duration_text(1000 * round(abs(value)))}"


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
    return f"{value:,.0f}" if size >= 1000 or value == int(value) else f"{value:,.1f}"


def sweep_headline(found: Sweep, what: str = "variant") -> str:
    """How many variants, or files, and runs there are."""
    count = len(found.variants)
    return (
        f"{count} {what}{'s' * (count != 1)}, {found.replications} replications each, "
        "all with the same chance."
    )


def sweep_content(
    found: Sweep, differences: pd.DataFrame, baseline: str
) -> tuple[list[str], list[FigureTable]]:
    """What is said of a sweep, and its tables."""
    whole, campaigns = sweep_tables(found, differences, baseline)
    return [sweep_headline(found)], [*whole, *campaigns]


def comparison_content(
    found: Comparison, differences: pd.DataFrame, baseline: str
) -> tuple[list[str], list[FigureTable]]:
    """What is said of a comparison of files, and its tables."""
    whole, campaigns = sweep_tables(found, differences, baseline)
    said = [comparison_headline(found, differences, baseline), sweep_headline(found, "file")]
    return [*said, *comparison_sentences(found)], [*whole, *campaigns, *changed_tables(found)]


def sweep_tables(
    found: Sweep, differences: pd.DataFrame, baseline: str
) -> tuple[list[FigureTable], list[FigureTable]]:
    """The variants' figures and their differences to the baseline, with a verdict on each.

    Those of all campaigns together, and those of each campaign if there are several.
    """
    intervals = found.intervals()
    shown = ["people_reached"]
    shown += ["people_lost"] if (found.runs["people_lost"] > 0).any() else []
    shown += ["cost"] if found.scenario.costs else []
    names = [variant.name for variant in found.variants]

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
            (name, *_expression_cells(e, intervals[intervals["variant"] == name], found))
            for name in names
        )
        whole.append(FigureTable(_with_unit(e), _ESTIMATE_COLUMNS, of_variants))
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
    known = by_variant(figures)
    rows = []
    for name in names:
        if (name, "finish_seconds") not in known:
            continue  # a campaign that only other files have
        cells = [when_text(known[name, "finish_seconds"][part], whose) for part in ("p50", "p95")]
        cells += [amount_text(figure, known[name, figure]["mean"]) for figure in shown]
        rows.append((name, *cells))
    labels = ("half done", "95 % done", *(MAIN[figure] for figure in shown))
    return FigureTable(title, labels, tuple(rows))


def _difference_table(
    title: str,
    differences: pd.DataFrame,
    names: Sequence[str],
    shown: Sequence[str],
    expressions: Sequence[Expression],
) -> FigureTable:
    known = by_variant(differences)
    figures = ("finish_seconds", *shown)
    rows = [
        (
            name,
            *(difference_text(known[name, figure]) for figure in figures),
            *(difference_text(known[name, e.text], e) for e in expressions),
        )
        for name in names
        if (name, "finish_seconds") in known
    ]
    labels = ("finish", *(MAIN[figure] for figure in shown), *(e.text for e in expressions))
    return FigureTable(title, labels, tuple(rows))


def comparison_sentences(found: Comparison) -> list[str]:
    """What can't be compared."""
    said = []
    for name, files in found.unmatched.items():
        only = files[0] if len(files) == 1 else f"{', '.join(files[:-1])} and {files[-1]}"
        said.append(f"Campaign {name} is only in {only}: it counts in the whole there.")
    if not found.file_differences:
        said.append("The files say the same.")
    return said


def changed_tables(found: Comparison) -> list[FigureTable]:
    """What the files say differently; no table if they say the same."""
    rows = [
        (part.path or "the whole file", *(value or "–" for value in part.values))
        for part in found.file_differences
    ]
    names = tuple(variant.name for variant in found.variants)
    return [FigureTable("What the files say", names, tuple(rows))] if rows else []


def comparison_headline(found: Comparison, differences: pd.DataFrame, baseline: str) -> str:
    """How every other file differs from the baseline, in a sentence."""
    known = by_variant(differences[differences["scope"] == "run"])
    said = [
        f"{name} {_finishes(known[name, 'finish_seconds'])} and "
        f"{_reaches(known[name, 'people_reached'])}"
        for name in (variant.name for variant in found.variants)
        if name != baseline
    ]
    return f"Against {baseline}: {'; '.join(said)}."


def _finishes(row: Mapping[str, Any]) -> str:
    if not row["real"]:
        alike = not row["rose"] and not row["fell"]
        return "is done at the same time" if alike else "is done at no surely different time"
    if not isfinite(row["difference"]):
        return f"is done {difference_text(row).removesuffix(', real')}"
    way = "earlier" if row["difference"] < 0 else "later"
    return f"is done {_size('finish_seconds', abs(row['difference']))} {way}"


def _reaches(row: Mapping[str, Any]) -> str:
    if not row["real"]:
        alike = not row["rose"] and not row["fell"]
        return "reaches as many people" if alike else "reaches no surely different number of them"
    way = "fewer" if row["difference"] < 0 else "more"
    return f"reaches {_size('people_reached', abs(row['difference']))} {way} people"


def by_variant(table: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of a table by variant and figure."""
    rows = table.to_dict("records")
    return {(row["variant"], row["figure"]): {str(k): v for k, v in row.items()} for row in rows}


def difference_text(row: Mapping[str, Any], expression: Expression | None = None) -> str:
    """`-3 min 57 s ± 8 s, real`: real where the interval excludes 0.

    Without an interval it says what the sign test counts: `earlier in 17 of 40 pairs, real`.
    """
    is_time = is_instant(row["figure"]) if expression is None else expression.is_instant

    def size_text(amount: float) -> str:
        if expression is None or is_time:
            return _size("finish" if is_time else row["figure"], amount)
        return expression_text(expression, amount)

    verdict = "real" if row["real"] else "not sure"
    size = ""
    if isfinite(row["difference"]):
        size = f"{'-' if row['difference'] < 0 else '+'}{size_text(abs(row['difference']))}"
    if isfinite(row["low"]):
        half = (row["high"] - row["low"]) / 2
        if row["difference"] == half == 0:
            return "none"
        return f"{size} ± {size_text(half)}, {verdict}"
    pairs, rose, fell = (int(row[name]) for name in ("pairs", "rose", "fell"))
    if not pairs:
        return f"{size}, {verdict}" if size else "–"
    if not rose and not fell:
        return f"none in {pairs} pairs"
    more, less = ("later", "earlier") if is_time else ("more", "less")
    way = f"{more if rose >= fell else less} in {max(rose, fell)} of {pairs} pairs"
    return ", ".join([*([size] if size else []), way, verdict])


def _size(figure: str, amount: float) -> str:
    if is_instant(figure):
        return duration_text(1000 * round(amount))
    return amount_text(figure, amount)


def plan_headline(answer: Plan) -> str:
    """The value, or what comes closest."""
    low, high = answer.between
    goal = f"the goal {answer.goal}"
    if answer.value is None:
        verdict = f"meets {goal}" if answer.ruled_out else f"was found that meets {goal}"
        return (
            f"No value of {answer.path} from {low} to {high} {verdict}; "
            f"{answer.evidence.value} comes closest."
        )
    if answer.tied:
        wish = (
            f"among the cheapest values from {low} to {high} that meet {goal}: its cost can't be "
            f"told from that of {_listed(answer.tied)}"
        )
    elif answer.in_doubt and answer.evidence.sure:
        wish = (
            f"the {answer.objective} value from {low} to {high} that surely meets {goal}; "
            f"{_listed(answer.in_doubt)} may meet it as well"
        )
    else:
        wish = f"the {answer.objective} value from {low} to {high} that meets {goal}"
    found = f"{answer.path} = {answer.value} is {wish}"
    return f"{found}." if answer.evidence.sure else f"{found}, as far as its runs can tell."


def _listed(values: Sequence[object]) -> str:
    """`3, 4 and 5`; of many the first, and how many more there are."""
    named = [str(value) for value in values]
    if len(named) > _MOST_NAMED:
        named = [*named[: _MOST_NAMED - 1], f"{len(named) - _MOST_NAMED + 1} more"]
    return f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]


_MOST_NAMED = 5


def plan_sentences(answer: Plan) -> list[str]:
    """Whom the value reaches, unless the goal asks for that, and whom it loses."""
    part, said = answer.evidence, []
    asked = {figure.name for finding in part.findings for figure in finding.clause.figure.figures}
    reach = any("reach" in name for name in asked)
    if part.reach_share is not None and not reach:
        share = amount_text("reach_share", part.reach_share)
        said.append(f"With {part.value}, {share} of the people are reached on average; the goal "
                    "does not ask for that.")  # fmt: skip
    said += [sentence for finding in part.findings if (sentence := _undefined(finding, part.runs))]
    if part.people_lost:
        lost = amount_text("people_lost", part.people_lost)
        said.append(f"Warning: with {part.value}, {lost} people are lost on average: {_LOST_TO}.")
    return said


def _undefined(finding: Finding, runs: Sequence[RunFigures]) -> str | None:
    """In how many runs an expression is divided by nothing."""
    figure = finding.clause.figure
    if not runs or figure.is_instant:
        return None
    values = figure.of(runs)
    endless, none = int(np.isinf(values).sum()), int(np.isnan(values).sum())
    if not endless and not none:
        return None
    said = [f"infinite in {endless}"] if endless else []
    said += [f"without a value in {none}"] if none else []
    more = ", which a mean leaves out" if none else ""
    return (
        f"Warning: {figure.text} is {' and '.join(said)} of {len(runs)} runs, where it is divided "
        f"by nothing or is of what never ended{more}."
    )


def plan_tables(answer: Plan) -> list[FigureTable]:
    """The evidence on the answer and on its neighbour, then on all values tried."""
    first = [("answer" if answer.met else "closest", answer.evidence)]
    if answer.neighbour is not None:
        first.append(("neighbour", answer.neighbour))
    tables = [
        FigureTable(
            _clause_title(finding),
            ("value", "meets it", "estimate", "at least", "at most", "runs"),
            tuple(
                (
                    label,
                    str(part.value),
                    verdict_text(part.findings[number]),
                    *_finding_cells(part.findings[number]),
                    str(part.replications),
                )
                for label, part in first
            ),
        )
        for number, finding in enumerate(answer.evidence.findings)
    ]
    return [*tables, _tried_table(answer)]


def _clause_title(finding: Finding) -> str:
    """The clause, with what it is measured in where its figures don't tell."""
    clause = finding.clause
    label = "" if clause.figure.is_figure else clause.figure.measure.label
    plain = clause.statistic is Statistic.PROBABILITY or clause.figure.unit in _SAY_THEIRS
    return clause.text if plain or not label else f"{clause.text} ({label})"


_SAY_THEIRS = (Unit.SHARE, Unit.SECONDS)
"""Units whose values are written with them."""


def _tried_table(answer: Plan) -> FigureTable:
    """Every value tried: its verdict, its runs, and what it reaches, loses and costs on average."""
    columns = {
        "meets the goal": [verdict_text(part) for part in answer.tried],
        "runs": [str(part.replications) for part in answer.tried],
        "reached": _means("reach_share", [part.reach_share for part in answer.tried]),
        "lost": _means("people_lost", [part.people_lost or None for part in answer.tried]),
        "cost": _means("cost", [part.cost for part in answer.tried]),
    }
    kept = {name: cells for name, cells in columns.items() if any(cells)}
    values = [str(part.value) for part in answer.tried]
    return FigureTable("Value tried", tuple(kept), tuple(zip(values, *kept.values(), strict=True)))


def _means(figure: str, values: Sequence[float | None]) -> list[str]:
    return ["" if value is None else amount_text(figure, value) for value in values]


def verdict_text(part: Evidence | Finding) -> str:
    """Whether a goal or a clause is met, and if that is in doubt."""
    return f"{'yes' if part.met else 'no'}{'' if part.sure else ', not sure'}"


def optimum_headline(answer: Optimum) -> str:
    """The best combination and what it is the best at, or what comes closest."""
    name, of = answer.best.name, f"{answer.count:,} combinations"
    if not answer.met:
        return f"None of {of} meets the goal {answer.goal}; {name} comes closest."
    among = f" of {of}" + ("" if answer.goal is None else f" that meet the goal {answer.goal}")
    doubt = "." if answer.sure else ", as far as the runs can tell."
    if answer.objective is None or answer.best.objective is None:
        return f"{name} has the smallest values{among}{doubt}"
    which, _, asked = answer.objective.partition(" ")
    figure, value = asked.removeprefix("mean(").removesuffix(")"), answer.best.objective
    said = instant_text(round(value)) if is_instant(figure) else amount_text(figure, value)
    most = "greatest" if which == "maximize" else "smallest"
    return f"{name} has the {most} {asked}, {said},{among}{doubt}"


def optimum_sentences(answer: Optimum) -> list[str]:
    """What does as well, and what could not be told apart."""
    said = []
    if answer.alike:
        share = f"{100 * answer.indifference:.3g} %"
        names = _named(answer.alike)
        said.append(f"Within {share} of it, and meeting the goal as well: {names}.")
    if answer.in_doubt:
        said.append(f"May meet the goal, too, and would be better: {_named(answer.in_doubt)}.")
    return [*said, *(f"Warning: {text}." for text in answer.warnings)]


def _named(parts: Sequence[Combination]) -> str:
    names = [part.name for part in parts[:_MOST_NAMED]]
    rest = len(parts) - len(names)
    return "; ".join([*names, *([f"and {rest} more"] if rest else [])])


def optimum_tables(answer: Optimum) -> list[FigureTable]:
    """The evidence on the answer, and the frontier of finish, cost and reach."""
    evidence = [
        (finding.clause.text, verdict_text(finding), *_finding_cells(finding),
         str(answer.best.evidence.replications))
        for finding in answer.best.evidence.findings
    ]  # fmt: skip
    columns = ("meets it", "estimate", "at least", "at most", "runs")
    first = [FigureTable(answer.best.name, columns, tuple(evidence))] if evidence else []
    return [*first, _frontier_table(answer)]


def _frontier_table(answer: Optimum) -> FigureTable:
    priced = any(not isnan(part.cost) for part in answer.frontier)
    shown = [part for part in answer.tried if part in answer.frontier or part == answer.best]
    rows = [
        (
            f"{'→ ' if part == answer.best else ''}{part.name}",
            instant_text(round(part.finish)) if isfinite(part.finish) else "never",
            amount_text("people_reached", part.people_reached),
            *([amount_text("cost", part.cost)] if priced else []),
            verdict_text(part.evidence) if answer.goal else "–",
        )
        for part in sorted(shown, key=lambda part: (part.finish, part.cost))
    ]
    columns = ("half done", "people reached", *(["cost"] if priced else []), "meets the goal")
    return FigureTable("Beaten by none", columns, tuple(rows))


def _finding_cells(finding: Finding) -> list[str]:
    """Estimate and interval, as people read them."""
    return [finding_text(finding, x) for x in (finding.estimate, finding.low, finding.high)]


def finding_text(finding: Finding, value: float) -> str:
    """The estimate of a clause, or an end of its interval."""
    clause = finding.clause
    if clause.statistic is Statistic.PROBABILITY:
        return f"{100 * value:.3g} %"
    if not clause.is_instant:
        endless = value == finding.estimate and value > 0 and not isfinite(value)
        return "infinite" if endless else expression_text(clause.figure, value)
    if not isfinite(value):
        return "never" if value == finding.estimate and value > 0 else "–"
    return duration_text(value) if clause.bound.after_start else instant_text(round(value))


def bound_text(finding: Finding) -> str:
    """The bound of a clause as its estimate is written: `≤ Fri 9 Jan 19:00`."""
    clause = finding.clause
    share = clause.statistic is Statistic.PROBABILITY
    sign = clause.sign.replace("<=", "≤").replace(">=", "≥")
    return f"{sign} {finding_text(finding, clause.share if share else clause.bound.value)}"


def instant_text(instant: int) -> str:
    """Thai time to the minute, without the year."""
    return minute_text(instant).replace(f" {thai(instant).year} ", " ")


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


def replications_html(runs: Replications) -> str:
    """As notebooks show it."""
    said = [replications_headline(runs), *lost_sentences(runs)]
    said += precision_sentences(runs)
    return fragment(runs.scenario.name, said, replications_tables(runs))


def comparison_html(found: Comparison) -> str:
    """As notebooks show it."""
    base = found.variants[0].name
    names = " or ".join(variant.name for variant in found.variants)
    return fragment(names, *comparison_content(found, found.differences(base), base))


def sweep_html(found: Sweep) -> str:
    """As notebooks show it."""
    base = found.variants[0].name
    return fragment(found.scenario.name, *sweep_content(found, found.differences(base), base))


def optimum_html(answer: Optimum) -> str:
    """As notebooks show it."""
    said = [optimum_headline(answer), *optimum_sentences(answer)]
    return fragment(answer.scenario, said, optimum_tables(answer))


def plan_html(answer: Plan) -> str:
    """As notebooks show it."""
    warnings = (f"Warning: {text}." for text in answer.warnings)
    said = [plan_headline(answer), *plan_sentences(answer), *warnings]
    return fragment(answer.scenario, said, plan_tables(answer))
