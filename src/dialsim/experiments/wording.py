"""Experiments in words and small tables of text, for the terminal and for notebooks alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite, isnan
from typing import TYPE_CHECKING, Any

from dialsim.experiments.goal import Statistic
from dialsim.experiments.intervals import rank
from dialsim.results.thai_time import duration_text, minute_text, thai
from dialsim.results.wording import FigureTable

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.evidence import Evidence, Finding
    from dialsim.experiments.plan import Plan
    from dialsim.experiments.replications import Replications
    from dialsim.experiments.sweep import Sweep

_SHOWN = {
    "people_reached": "people reached",
    "reach_share": "share reached",
    "attempts": "attempts",
    "talk_minutes": "talk minutes",
    "cost": "cost",
    "slots_in_use_mean": "slots in use",
    "queue_wait_mean_seconds": "mean wait, seconds",
    "webhooks_lost": "webhooks lost",
}
"""The figures that are printed, with their names there; all others are in the tables."""


def replications_headline(runs: Replications) -> str:
    """How many runs there are, and when nearly all of them are done."""
    count = len(runs)
    said = f"{count} replication{'s' * (count != 1)} of seed {runs.seed}"
    finish = sorted(runs.runs["finish_seconds"].dropna())
    if not finish:
        return f"{said}: nothing was scheduled."
    if count < 2:
        return f"{said}: finished {_finish(finish[0], runs)}."
    late = finish[rank(len(finish), 0.95) - 1]
    never = sum(value == inf for value in finish)
    ending = f"; {never} did not finish" if never else ""
    return f"{said}: 95 % of them are done {_finish(late, runs)}{ending}."


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
            for figure, label in _SHOWN.items()
            if figure in found and found[figure]["runs"] and found[figure]["p95"]
        ]
        columns = ("mean", "95 % interval", "5 %", "half", "95 %")
        tables.append(FigureTable(name, columns, tuple(rows)))
    return tables


def _places(intervals: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The campaigns by the shortest name that is not ambiguous, then all together."""
    campaigns = intervals[intervals["scope"] == "campaign"]
    keys = list(campaigns.groupby(["organization", "campaign"], sort=False))
    names = [campaign for (_, campaign), _ in keys]
    places: list[tuple[str, pd.DataFrame]] = [
        (str(campaign) if names.count(campaign) == 1 else f"{organization}/{campaign}", part)
        for (organization, campaign), part in keys
    ]
    if len(places) != 1:
        places.append(("all", intervals[intervals["scope"] == "run"]))
    return places


def _finish_table(name: str, row: pd.Series, runs: Replications) -> FigureTable:
    labels = {"mean": "on average", "p05": "5 % of runs", "p50": "half of the runs",
              "p95": "95 % of runs"}  # fmt: skip
    rows = tuple(
        (label, when_text(row[part], runs), *(_limit(row[f"{part}_{end}"], runs) for end in _ENDS))
        for part, label in labels.items()
    )
    return FigureTable(f"{name} finishes", ("Thai time", "at least", "at most"), rows)


_ENDS = ("low", "high")


def _limit(seconds: float, whose: Replications) -> str:
    """A limit of an interval; infinite where the runs were too few for one."""
    return when_text(seconds, whose) if isfinite(seconds) else "–"


def _finish(seconds: float, whose: Replications | Sweep) -> str:
    return "never" if seconds == inf else f"by {when_text(seconds, whose)} Thai time"


def when_text(seconds: float, whose: Replications | Sweep) -> str:
    """An instant given in seconds from the earliest startAt, in Thai time and without the year."""
    if isnan(seconds) or whose.origin is None:
        return "–"
    if not isfinite(seconds):
        return "never" if seconds > 0 else "–"
    return _instant_text(round(whose.origin.timestamp() * 1000 + seconds * 1000))


def _estimate_cells(row: pd.Series) -> tuple[str, ...]:
    figure = str(row["figure"])
    interval = f"{amount_text(figure, row['mean_low'])} – {amount_text(figure, row['mean_high'])}"
    known = interval if isfinite(row["mean_low"]) else "–"
    quantiles = (amount_text(figure, row[part]) for part in ("p05", "p50", "p95"))
    return (amount_text(figure, row["mean"]), known, *quantiles)


def amount_text(figure: str, value: float) -> str:
    """A figure's value, short."""
    if not isfinite(value):
        return "–"
    if is_share(figure):
        return f"{100 * value:.1f} %"
    size = abs(value)
    return f"{value:,.0f}" if size >= 1000 or value == int(value) else f"{value:,.1f}"


def is_share(figure: str) -> bool:
    """Whether a figure is a share, by its name."""
    return figure.endswith("_share") or figure.startswith("reach_by_attempt_")


def sweep_headline(found: Sweep) -> str:
    """How many variants and runs there are."""
    count = len(found.variants)
    return (
        f"{count} variant{'s' * (count != 1)}, {found.replications} replications each, "
        "all with the same chance."
    )


def sweep_tables(
    found: Sweep, differences: pd.DataFrame | None, baseline: str
) -> list[FigureTable]:
    """The variants' figures, and their differences to the baseline with a verdict on each."""
    intervals = found.intervals()
    whole = by_variant(intervals[intervals["scope"] == "run"])
    shown = ["people_reached", "cost"] if found.scenario.costs else ["people_reached"]
    rows = []
    for variant in found.variants:
        finish = whole[variant.name, "finish_seconds"]
        cells = [when_text(finish[part], found) for part in ("mean", "p95")]
        cells += [amount_text(figure, whole[variant.name, figure]["mean"]) for figure in shown]
        rows.append((variant.name, *cells))
    labels = tuple(_SHOWN[figure] for figure in shown)
    tables = [FigureTable("Variant", ("finish, mean", "95 % done", *labels), tuple(rows))]
    if differences is not None and len(differences):
        names = [variant.name for variant in found.variants if variant.name != baseline]
        tables.append(_difference_table(differences, baseline, names, shown))
    return tables


def _difference_table(
    differences: pd.DataFrame, baseline: str, names: Sequence[str], shown: Sequence[str]
) -> FigureTable:
    whole = by_variant(differences[differences["scope"] == "run"])
    figures = ("finish_seconds", *shown)
    rows = [(name, *(difference_text(whole[name, figure]) for figure in figures)) for name in names]
    labels = ("finish", *(_SHOWN[figure] for figure in shown))
    return FigureTable(f"Minus {baseline}", labels, tuple(rows))


def by_variant(table: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of a table by variant and figure."""
    rows = table.to_dict("records")
    return {(row["variant"], row["figure"]): {str(k): v for k, v in row.items()} for row in rows}


def difference_text(row: Mapping[str, Any]) -> str:
    """`-3 min 57 s ± 8 s, real`: real where the interval excludes 0."""
    verdict = "real" if row["real"] else "not sure"
    if row["low"] == row["high"] == 0:
        return "none"
    if not isfinite(row["low"]):
        if not isfinite(row["difference"]) and not isnan(row["difference"]):
            return f"{'later' if row['difference'] > 0 else 'earlier'}, {verdict}"
        return "–"
    half = (row["high"] - row["low"]) / 2
    if row["figure"] == "finish_seconds":
        sign = "-" if row["difference"] < 0 else "+"
        size, margin = (duration_text(1000 * round(abs(x))) for x in (row["difference"], half))
        return f"{sign}{size} ± {margin}, {verdict}"
    sign = "+" if row["difference"] >= 0 else ""
    size, margin = (amount_text(row["figure"], x) for x in (row["difference"], half))
    return f"{sign}{size} ± {margin}, {verdict}"


def plan_headline(answer: Plan) -> str:
    """The value, or what comes closest."""
    low, high = answer.between
    goal = f"the goal {answer.goal}"
    if answer.value is None:
        return (
            f"No value of {answer.path} from {low} to {high} meets {goal}; "
            f"{answer.evidence.value} comes closest."
        )
    wish = f"the {answer.objective} value from {low} to {high} that meets {goal}"
    found = f"{answer.path} = {answer.value} is {wish}"
    return f"{found}." if answer.evidence.sure else f"{found}, as far as its runs can tell."


def plan_tables(answer: Plan) -> list[FigureTable]:
    """The evidence on the answer and on its neighbour, then on all values tried."""
    first = [("answer" if answer.met else "closest", answer.evidence)]
    if answer.neighbour is not None:
        first.append(("neighbour", answer.neighbour))
    tables = [
        FigureTable(
            finding.clause.text,
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
    rows = tuple(
        (str(part.value), verdict_text(part), str(part.replications)) for part in answer.tried
    )
    return [*tables, FigureTable("Value tried", ("meets the goal", "runs"), rows)]


def verdict_text(part: Evidence | Finding) -> str:
    """Whether a goal or a clause is met, and if that is in doubt."""
    return f"{'yes' if part.met else 'no'}{'' if part.sure else ', not sure'}"


def _finding_cells(finding: Finding) -> list[str]:
    """Estimate and interval, as people read them."""
    return [finding_text(finding, x) for x in (finding.estimate, finding.low, finding.high)]


def finding_text(finding: Finding, value: float) -> str:
    """The estimate of a clause, or an end of its interval."""
    clause = finding.clause
    if clause.statistic is Statistic.PROBABILITY:
        return f"{100 * value:.3g} %"
    if not clause.is_instant:
        return amount_text(clause.figure.name, value)
    if not isfinite(value):
        return "never" if value == finding.estimate and value > 0 else "–"
    return duration_text(value) if clause.bound.after_start else _instant_text(round(value))


def bound_text(finding: Finding) -> str:
    """The bound of a clause as its estimate is written: `≤ Fri 9 Jan 19:00`."""
    clause = finding.clause
    share = clause.statistic is Statistic.PROBABILITY
    sign = clause.sign.replace("<=", "≤").replace(">=", "≥")
    return f"{sign} {finding_text(finding, clause.share if share else clause.bound.value)}"


def _instant_text(instant: int) -> str:
    """Thai time to the minute, without the year."""
    return minute_text(instant).replace(f" {thai(instant).year} ", " ")
