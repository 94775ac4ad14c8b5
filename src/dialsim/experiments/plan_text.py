"""Plans as sentences and small tables of text."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan
from typing import TYPE_CHECKING

import numpy as np

from dialsim.experiments.estimates import SettingRuns, not_allowed
from dialsim.experiments.experiment_text import (
    LOST_TO,
    UNITS_IN_VALUES,
    amount_text,
    expression_text,
)
from dialsim.experiments.goal import GoalEstimate, Statistic, certainty_text
from dialsim.experiments.variants import (
    COUNTED,
    AmountKind,
    SettingValue,
    read_amount,
    setting_noun,
    setting_text,
)
from dialsim.experiments.variants import amount_text as words_of
from dialsim.interface.instants import duration_text, minute_text, short_text, utc
from dialsim.interface.phrases import few
from dialsim.results.summary_text import FigureTable, ValueText

if TYPE_CHECKING:
    from dialsim.experiments.goal import Clause, ClauseFinding
    from dialsim.experiments.optimum import Combination, Optimum
    from dialsim.experiments.plan import Plan
    from dialsim.experiments.run_figures import RunFigures


def plan_headline(answer: Plan) -> str:
    """Return the answer in a sentence: `8 lines are enough to be done by … in 95 of 100 runs;
    …`.
    """
    wish = " and ".join(_wish(finding.clause) for finding in answer.estimate.findings)
    key = answer.path.rpartition(".")[2]
    if answer.stopped_after is not None:
        best = f"best is {setting_text(answer.path, answer.estimate.value)}"
        best = best if answer.met else f"nothing tried meets the goal; {best}"
        certain = certainty_text(answer.certainty)
        return stopped(answer.stopped_after, f"{best}, {certain} to meet the goal: {answer.goal}")
    if answer.value is None:
        return f"{_nothing(answer, key, wish)}."
    found, sure = setting_text(answer.path, answer.value), answer.estimate.sure
    if _is_enough(answer, key):
        # The wording carries the certainty: a headline is often all that is read.
        verb = ("is" if answer.value == 1 else "are") if sure else "seem to be"
        found = f"{found} {verb} enough to {wish}"
    else:
        among = "among " if answer.tied else ""
        found = f"{capitalized(found)}: {among}the {_superlative(answer, key)} to {wish}"
    if answer.tied:
        return f"{found}; the cost is indistinguishable from that of {_values(key, answer.tied)}."
    if not sure:
        found += f", as far as {answer.estimate.replications:,} runs can tell"
    if answer.in_doubt:
        # Instead of the neighbour, which would suggest a sharp border.
        return f"{found}; {_values(key, answer.in_doubt)} may do, too."
    return f"{found}{_beyond(answer)}."


def capitalized(text: str) -> str:
    """Return a text with a capital letter at its beginning; all other letters stay."""
    return f"{text[:1].upper()}{text[1:]}"


def stopped(seconds: float, found: str) -> str:
    """Format an answer as the findings of a search that ran out of time."""
    return f"Stopped after {duration_text(1000 * seconds)}, with what was known then: {found}."


def _is_enough(answer: Plan, key: str) -> bool:
    return answer.objective == "smallest" and key in COUNTED


def _superlative(answer: Plan, key: str) -> str:
    """Describe the objective in a word: `fewest`, `latest`, `cheapest`."""
    kind = read_amount(str(answer.between[0])).kind
    if answer.objective == "cheapest":
        return answer.objective
    words = ("fewest", "most") if key in COUNTED else ("smallest", "largest")
    if kind is AmountKind.INSTANT:
        words = "earliest", "latest"
    elif kind is AmountKind.DURATION or key == "retryInterval":
        words = "shortest", "longest"
    return words[answer.objective == "largest"]


def _nothing(answer: Plan, key: str, wish: str) -> str:
    low, high = (words_of(key, each) for each in answer.between)
    what = f"{'number of ' if key in COUNTED else ''}{setting_noun(key)}"
    if answer.estimate.breaches:
        return f"No {what} from {low} to {high} is allowed"
    found = "is" if answer.ruled_out else "was found to be"
    best = setting_text(answer.path, answer.estimate.value)
    return f"No {what} from {low} to {high} {found} enough to {wish}; closest: {best}"


def _values(key: str, values: Sequence[SettingValue]) -> str:
    return _listed([words_of(key, value) for value in values])


def _wish(clause: Clause) -> str:
    """Describe a clause as the continuation of `to`: `be done by Fri 9 Jan 18:00 on average`."""
    often, figure = _often(clause), clause.figure.name
    if often is not None and figure == "finish" and clause.bound.upper:
        place = clause.figure.place[1] or clause.figure.place[0]
        done = "be done" if place is None else f"have {place} done"
        return f"{done} {_by(clause)} {often}"
    if often is not None and figure in ("people_reached", "reach_share") and not clause.bound.upper:
        amount = amount_text(figure, clause.bound.value)
        share = figure == "reach_share"
        whom = f"{amount} of the people" if share else f"{amount} people"
        place = clause.figure.place[1] or clause.figure.place[0]
        more = "more than " if clause.bound.sign == ">" else ""
        return f"reach {more}{whom}{f' of {place}' if place else ''} {often}"
    if often is not None and figure == "cost" and clause.bound.upper:
        less = "below" if clause.bound.sign == "<" else "at most"
        return f"spend {less} {amount_text(figure, clause.bound.value)} {often}"
    return f"have {clause.text}"


def _often(clause: Clause) -> str | None:
    """Describe the share of runs in which a clause requires its bound; None for other clauses."""
    if clause.statistic is Statistic.MEAN:
        return "on average"
    # A quantile bounded on its thin side asks for few runs, and is clearer in its own notation.
    if clause.trap is not None or not clause.sign.strip("="):
        return None
    if clause.statistic is Statistic.PROBABILITY and not clause.wanted.startswith(">"):
        return None
    # 1 - 0.95 is 0.050000000000000044 in floats.
    percent = round(100 * clause.least_share, 6)
    more = "more than " if clause.sign == ">" and clause.statistic is Statistic.PROBABILITY else ""
    if percent == 50:
        return f"in {more}half of the runs"
    if percent == int(percent):
        return f"in {more}{percent:.0f} of 100 runs"
    return f"in {more}{percent:g} % of the runs"


def _by(clause: Clause) -> str:
    bound = clause.bound
    if bound.after_start:
        return f"{'in less than' if bound.sign == '<' else 'within'} {duration_text(bound.value)}"
    return f"{'before' if bound.sign == '<' else 'by'} {short_text(round(bound.value))}"


def _beyond(answer: Plan) -> str:
    """Describe the answer's neighbour, which just fails: `; with 7 lines, p95(finish) is …`."""
    part = answer.neighbour
    if answer.objective == "cheapest" or (part is not None and (part.met or not part.sure)):
        return ""
    if part is None:
        return f"; no {'smaller' if answer.objective == 'smallest' else 'larger'} value was tried"
    setting = setting_text(answer.path, part.value)
    if part.breaches:
        return f"; {setting}: {part.breaches[0].text}"
    # The first missed clause in the order of the goal is reason enough.
    missed = next(finding for finding in part.findings if not finding.met)
    return f"; with {setting}, {missed.clause.asked} is {finding_text(missed, missed.estimate)}"


def plan_question(answer: Plan) -> str:
    """Return the question: the setting with its path, the range, and instants in full."""
    key = answer.path.rpartition(".")[2]
    low, high = (words_of(key, value) for value in answer.between)
    setting = f"{_superlative(answer, key)} {setting_noun(key)} from {low} to {high}"
    bounds = (finding.clause.bound for finding in answer.estimate.findings)
    words = {bound.words: minute_text(round(bound.value)) for bound in bounds if bound.words}
    instants = [f"{text} is {full}, Thai time" for text, full in words.items()]
    asked = f"{setting} with {answer.goal} ({answer.path})"
    return f"Asked for: the {'; '.join([asked, *instants])}."


def _listed(names: Sequence[str], between: str = ", ") -> str:
    """Join names: `3, 4 and 5`; of many, the first and the number of the others."""
    shown = names if len(names) <= _MOST_NAMED else names[: _MOST_NAMED - 1]
    return few(shown, len(names), between=between)


def _combinations(parts: Sequence[Combination]) -> str:
    # Names of combinations contain commas.
    return _listed([part.name for part in parts], "; ")


_MOST_NAMED = 5


def plan_content(answer: Plan) -> tuple[list[str], list[FigureTable]]:
    """Return the sentences and tables of a plan."""
    found = [plan_headline(answer), plan_question(answer), *plan_sentences(answer)]
    return [*found, *warnings_of(answer)], [plan_table(answer)]


def warnings_of(answer: Plan | Optimum) -> list[str]:
    """Return the warnings as sentences."""
    return [f"Warning: {text}." for text in answer.warnings]


def plan_sentences(answer: Plan) -> list[str]:
    """Explain a goal that no value meets; describe the people that the answer reaches and loses.

    Reached people are left out if the goal asks for them.
    """
    part, said = answer.estimate, [answer.why_not.text] if answer.why_not is not None else []
    setting = setting_text(answer.path, part.value)
    asked = {figure.name for finding in part.findings for figure in finding.clause.figure.figures}
    reach = any("reach" in name for name in asked)
    if part.reach_share is not None and not reach:
        share = amount_text("reach_share", part.reach_share)
        said.append(
            f"With {setting}, {share} of the people are reached on average; the goal does not ask "
            "for that."
        )
    said += [sentence for finding in part.findings if (sentence := _undefined(finding, part.runs))]
    if part.people_lost:
        lost = amount_text("people_lost", part.people_lost)
        said.append(f"Warning: with {setting}, {lost} people are lost on average: {LOST_TO}.")
    return [*said, *not_allowed_of_plan(answer), *filter(None, [answer.first_estimate])]


def not_allowed_of_plan(answer: Plan) -> list[str]:
    """Return sentences on values tried that break a compliance rule more often, with the rule."""
    listed = [(setting_text(answer.path, part.value), part.breaches) for part in answer.not_allowed]
    return _shortened(not_allowed(listed))


def not_allowed_of_optimum(answer: Optimum) -> list[str]:
    """Return sentences on combinations tried that break a compliance rule more often."""
    return _shortened(
        not_allowed((part.name, part.estimate.breaches) for part in answer.not_allowed)
    )


def _shortened(sentences: list[str]) -> list[str]:
    """Return the first sentences, and a last one with the number of settings left out."""
    rest = len(sentences) - _MOST_NAMED
    more = [f"{rest:,} more that were tried are not allowed either."] if rest > 0 else []
    return [*sentences[:_MOST_NAMED], *more]


def _undefined(finding: ClauseFinding, runs: Sequence[RunFigures]) -> str | None:
    """Describe the number of runs in which an expression divides by zero."""
    figure = finding.clause.figure
    count = 0 if figure.is_instant else int((~np.isfinite(figure.of(runs))).sum())
    if not count:
        return None
    return (
        f"Warning: {figure.text} has no finite value in {count} of {len(runs)} runs, where it is "
        "divided by zero or an end is missing; a mean leaves out runs without any value."
    )


def plan_table(answer: Plan) -> FigureTable:
    """Return the table of all values tried, with the statistics of the goal; the answer has an
    arrow.
    """
    tried = answer.tried
    columns: dict[str, list[str]] = {"meets the goal": [verdict_text(part) for part in tried]}
    for number, finding in enumerate(answer.estimate.findings):
        columns[_clause_title(finding)] = [_interval_text(part.findings[number]) for part in tried]
    columns |= {
        "runs": [str(part.replications) for part in tried],
        "reached": _means("reach_share", [part.reach_share for part in tried]),
        "lost": _means("people_lost", [part.people_lost or None for part in tried]),
        "cost": _means("cost", [part.cost for part in tried]),
    }
    kept = {name: cells for name, cells in columns.items() if any(cells)}
    key = answer.path.rpartition(".")[2]
    values = []
    for part in tried:
        arrow = "→ " if part.value == answer.estimate.value else ""
        number_of = float(read_amount(str(part.value)).value)
        values.append(ValueText(f"{arrow}{words_of(key, part.value)}", number_of))
    rows = tuple(zip(values, *kept.values(), strict=True))
    return FigureTable("Value tried", tuple(kept), rows)


def _interval_text(finding: ClauseFinding) -> ValueText:
    estimate, low, high = finding_cells(finding)
    return ValueText(f"{estimate} ({low} to {high})", finding.estimate)


def setting_of(name: str, part: GoalEstimate) -> SettingRuns:
    """Return a setting tried for a workbook, with its verdict and the statistics of the goal."""
    cells: dict[str, object] = {"meets the goal": verdict_text(part)}
    for finding in part.findings:
        clause, limits = finding.clause, (finding.estimate, finding.low, finding.high)
        for end, value in zip(("", ", at least", ", at most"), limits, strict=True):
            cell: object = value if isfinite(value) else None
            if clause.is_instant and isfinite(value):
                after = clause.bound.after_start
                cell = finding_text(finding, value) if after else utc(round(value))
            cells[f"{clause.asked}{end}"] = cell
    return SettingRuns(name, part.runs, part.bounds, cells)


def _clause_title(finding: ClauseFinding) -> str:
    """Return the statistic of a clause, with its unit if its figures do not imply it."""
    clause = finding.clause
    label = "" if clause.figure.is_figure else clause.figure.measure.label
    plain = clause.statistic is Statistic.PROBABILITY or clause.figure.unit in UNITS_IN_VALUES
    return clause.asked if plain or not label else f"{clause.asked} ({label})"


def _means(figure: str, values: Sequence[float | None]) -> list[str]:
    return ["" if value is None else amount_text(figure, value) for value in values]


def verdict_text(part: GoalEstimate | ClauseFinding) -> str:
    """Format whether a goal or clause is met, and whether that is certain."""
    if isinstance(part, GoalEstimate) and part.breaches:
        return "no, not allowed"
    return f"{'yes' if part.met else 'no'}{'' if part.sure else ', not sure'}"


def optimum_headline(answer: Optimum) -> str:
    """Describe the best combination, or the closest one."""
    name, of = answer.best.name, f"{answer.count:,} combinations"
    first = capitalized(name)
    if answer.best.estimate.breaches:
        return f"None of {of} is allowed."
    if answer.stopped_after is not None:
        leads = f"{name} leads, {certainty_text(answer.certainty)}"
        if not answer.met:
            leads = f"none meets the goal {answer.goal} so far; {name} comes closest"
        return stopped(answer.stopped_after, f"{leads}; {len(answer.tried):,} of {of} were tried")
    if not answer.met:
        return f"None of {of} meets the goal {answer.goal}; closest comes {name}."
    among = f" of {of}" + ("" if answer.goal is None else f" that meet the goal {answer.goal}")
    doubt = "." if answer.sure else ", as far as the runs can tell."
    figure, value = answer.figure, answer.best.objective
    if answer.objective is None or figure is None or value is None:
        return f"{first} has the smallest values{among}{doubt}"
    which, _, asked = answer.objective.partition(" ")
    instant = figure.is_instant and isfinite(value)
    said = short_text(round(value)) if instant else expression_text(figure, value)
    most = "greatest" if which == "maximize" else "smallest"
    return f"{first} has the {most} {asked}, {said},{among}{doubt}"


def optimum_content(answer: Optimum) -> tuple[list[str], list[FigureTable]]:
    """Return the sentences and tables of an optimum."""
    return [optimum_headline(answer), *optimum_sentences(answer)], optimum_tables(answer)


def optimum_sentences(answer: Optimum) -> list[str]:
    """Describe equivalent and undecided combinations."""
    said = []
    if answer.alike:
        share = f"{100 * answer.indifference:.3g} %"
        names = _combinations(answer.alike)
        said.append(f"Within {share} of the best, and meeting the goal as well: {names}.")
    if answer.in_doubt:
        said.append(
            f"May meet the goal, too, and would be better: {_combinations(answer.in_doubt)}."
        )
    first = filter(None, [answer.first_estimate])
    return [*said, *not_allowed_of_optimum(answer), *warnings_of(answer), *first]


def optimum_tables(answer: Optimum) -> list[FigureTable]:
    """Return the evaluation of the answer, and the frontier of finish, cost and reach."""
    estimate = [
        (finding.clause.text, verdict_text(finding), *finding_cells(finding),
         str(answer.best.estimate.replications))
        for finding in answer.best.estimate.findings
    ]  # fmt: skip
    columns = ("meets it", "estimate", "at least", "at most", "runs")
    first = [FigureTable(answer.best.name, columns, tuple(estimate))] if estimate else []
    return [*first, _frontier_table(answer)]


def _frontier_table(answer: Optimum) -> FigureTable:
    priced = any(not isnan(part.cost) for part in answer.frontier)
    shown = [part for part in answer.tried if part in answer.frontier or part == answer.best]
    rows = [
        (
            f"{'→ ' if part == answer.best else ''}{part.name}",
            short_text(round(part.finish)) if isfinite(part.finish) else "never",
            amount_text("people_reached", part.people_reached),
            *([amount_text("cost", part.cost)] if priced else []),
            verdict_text(part.estimate) if answer.goal else "–",
        )
        for part in sorted(shown, key=lambda part: (part.finish, part.cost))
    ]
    columns = ("median finish", "people reached", *(["cost"] if priced else []), "meets the goal")
    return FigureTable("Beaten by none", columns, tuple(rows))


def finding_cells(finding: ClauseFinding) -> list[str]:
    """Return estimate and interval as texts."""
    return [finding_text(finding, x) for x in (finding.estimate, finding.low, finding.high)]


def finding_text(finding: ClauseFinding, value: float) -> ValueText:
    """Format the estimate of a clause, or a limit of its interval."""
    return ValueText(_finding_text(finding, value), value)


def _finding_text(finding: ClauseFinding, value: float) -> str:
    clause = finding.clause
    if clause.statistic is Statistic.PROBABILITY:
        return f"{100 * value:.3g} %"
    if not clause.is_instant:
        endless = value == finding.estimate and value > 0 and not isfinite(value)
        return "infinite" if endless else expression_text(clause.figure, value)
    if not isfinite(value):
        return "never" if value == finding.estimate and value > 0 else "–"
    return duration_text(value) if clause.bound.after_start else short_text(round(value))


def bound_text(finding: ClauseFinding) -> str:
    """Format the bound of a clause like its estimate: `≤ Fri 9 Jan 19:00`."""
    clause = finding.clause
    share = clause.statistic is Statistic.PROBABILITY
    sign = clause.sign.replace("<=", "≤").replace(">=", "≥")
    return f"{sign} {finding_text(finding, clause.share if share else clause.bound.value)}"
