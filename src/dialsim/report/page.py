"""A report and its parts, such as effects of levers: HTML without external links or resources.

The HTML is in `templates/`, figures are inline SVG. The only script is `page.js`, which sorts and
copies tables and shows values; everything is readable without it.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from math import inf, isfinite, isnan
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from dialsim.experiments import plan_text
from dialsim.experiments.estimates import MEAN, MEDIAN, PROBABILITY, not_allowed
from dialsim.experiments.experiment_text import difference_text
from dialsim.experiments.goal import Goal, GoalEstimate, judge
from dialsim.experiments.intervals import CONFIDENCE, Difference
from dialsim.experiments.run_figures import RunFigures, day_label
from dialsim.interface.instants import minute_text
from dialsim.interface.phrases import counted
from dialsim.language import templates
from dialsim.report.what_if import SHORTER_RETRIES, WhatIf, loses
from dialsim.results.bottleneck import Bottleneck
from dialsim.results.figures import is_done_by, is_instant
from dialsim.results.plots.drawing import BLACK, ON_DARK_PAPER, svg
from dialsim.results.summary_text import FigureTable, ValueText

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Environment
    from matplotlib.axes import Axes

    from dialsim.experiments.plan import Plan

NAME = "report.html"

SIZE = (4.7, 3.05)
"""Size in inches: narrow enough for the text to stay legible when a phone scales the figure."""


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG figure: the content of its `svg` element, its size in points, and its caption."""

    drawing: str
    width: float
    height: float
    caption: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Figures shown one at a time, chosen by label; initially the first one.

    `name` must be unique among the choices of the page; `asked` is the label of the choice.
    """

    name: str
    asked: str
    options: Sequence[tuple[str, Picture]]


@dataclass(frozen=True, slots=True)
class Notes:
    """A bulleted list of sentences."""

    sentences: Sequence[str]


@dataclass(frozen=True, slots=True)
class Grid:
    """Small tables or figures side by side, if the screen is wide enough."""

    parts: Sequence[FigureTable | Picture | Choice]


Part = str | Notes | FigureTable | Grid
"""Element of a section; a string is a paragraph."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A question, its short answer, and details."""

    question: str
    answer: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the elements below it."""

    heading: str
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A whole report: the answer first, then the facts that it rests on."""

    title: str
    lead: str
    answer: str
    facts: Sequence[Fact]
    sections: Sequence[Section]
    made_from: str

    def html(self) -> str:
        """Return the document; equal pages give equal text."""
        made = _environment()
        script = _script(made)
        # The hash allows this one script; 'unsafe-inline' would also run a script smuggled in by a
        # name in a scenario.
        digest = b64encode(sha256(script.encode()).digest()).decode()
        policy = f"{_POLICY}; script-src 'sha256-{digest}'"
        return made.get_template("page.html").render(
            page=self,
            inks=[(_ink_name(ink), dark) for ink, dark in ON_DARK_PAPER.items()],
            ink=_INK.sub(_variable, BLACK),
            most_options=max((len(choice.options) for choice in self._choices()), default=0),
            script=script,
            policy=policy,
        )

    def _choices(self) -> Iterator[Choice]:
        grids = (p for section in self.sections for p in section.parts if isinstance(p, Grid))
        yield from (inner for grid in grids for inner in grid.parts if isinstance(inner, Choice))


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content-Security-Policy: the browser loads nothing and runs no script but the page's own."""


@cache
def _environment() -> Environment:
    made = templates("dialsim.report")
    made.filters |= {"nbsp": _unbroken, "table_class": _table_class, "data_value": _data_value}
    return made


def _script(made: Environment) -> str:
    return made.get_template("page.js").render()


# A plain string, not Markup: names from scenarios are still escaped after this filter.
def _unbroken(text: str) -> str:
    """Keep percent signs and ± on the line of their number."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%").replace("± ", "±\N{NO-BREAK SPACE}")


_PHONE = 44
"""Total width (characters) of the columns that fit on a phone."""
_SENTENCE = 54
"""Cells with more characters than this make a table left-aligned, as text."""


def _table_class(table: FigureTable) -> str:
    """Return the CSS classes of a table: stacked cells on a phone, sortable, text."""
    columns = zip((table.title, *table.columns), *table.rows, strict=True)
    widths = [max(map(len, column)) for column in columns]
    stacks = " stacks" if sum(widths) > _PHONE else ""
    sorts = " sorts" if len(table.rows) - len(table.fixed) > 1 else ""
    return f"table{stacks}{sorts}{' words' if max(widths[1:], default=0) > _SENTENCE else ''}"


def _data_value(cell: str) -> Markup:
    """Return the attribute with the value to sort a cell by; empty if it has none."""
    if not isinstance(cell, ValueText):
        plain = cell.replace(",", "")
        return Markup(f' data-value="{plain}"' if _NUMBER.fullmatch(plain) else "")
    if isnan(cell.value):
        return Markup("")
    # JavaScript spells infinity out; `Number("inf")` would be NaN.
    return Markup(
        f' data-value="{cell.value}"'.replace('"inf', '"Infinity').replace("-inf", "-Infinity")
    )


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


_OUTSIDE = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", re.DOTALL)
_INK = re.compile(r"#[0-9a-f]{6}")
_SVG = re.compile(r'<svg\b[^>]*?viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>(.*)</svg>', re.DOTALL)


def picture(
    name: str, draw: Callable[..., Axes], caption: str, size: tuple[float, float] = SIZE
) -> Picture:
    """Make a figure of a page with `draw(ax=…)`.

    `name` must be unique among the figures of the page: it prefixes the ids inside the SVG.
    `caption` describes the figure, also to screen readers.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    draw(ax=figure.add_subplot())
    found = _SVG.search(_OUTSIDE.sub("", svg(figure)))
    # matplotlib always writes a viewBox.
    assert found is not None
    # matplotlib reuses ids in every figure; in one document they would refer to the first figure's
    # shapes.
    text = found[3].replace("xlink:href", "href").replace('href="#', f'href="#{name}-')
    text = re.sub(r'\bid="', f'id="{name}-', text).replace("url(#", f"url(#{name}-")
    text = re.sub(r'style="[^"]*"', lambda style: _INK.sub(_variable, style[0]), text)
    return Picture(text, float(found[1]), float(found[2]), caption)


def _variable(ink: re.Match[str]) -> str:
    """Replace an ink by a CSS variable for dark mode; an SVG copied elsewhere has the light ink."""
    return f"var({_ink_name(ink[0])},{ink[0]})" if ink[0].upper() in ON_DARK_PAPER else ink[0]


def _ink_name(ink: str) -> str:
    """Return the name of the CSS variable of an ink."""
    return f"--ink-{ink[1:].lower()}"


def effect_text(figure: str, effect: Difference) -> ValueText:
    """Format a difference of a figure as tables of differences do: `-12 ± 8, real`."""
    # The mean of finishes is infinite as soon as one run never finishes; the median is not.
    statistic = MEDIAN if is_instant(figure) else MEAN
    statistic = PROBABILITY if is_done_by(figure) else statistic
    named = {"figure": figure, "statistic": statistic, "real": effect.real}
    return difference_text({**asdict(effect), **named, "difference": effect.estimate})


def effect_table(what_if: WhatIf, currency: str | None, title: str = "Changed by") -> FigureTable:
    """Return the table of the effects of levers."""
    names = {"finish": "finish", "people_reached": "people reached", "cost": f"cost, {currency}"}
    figures = [*what_if.levers[0].effects] if what_if.levers else [*names][: 2 + bool(currency)]
    heads = [names.get(figure) or f"done {day_label(figure)}" for figure in figures]
    rows = [
        (lever.name, *(effect_text(figure, effect) for figure, effect in lever.effects.items()))
        for lever in what_if.levers
    ]
    return FigureTable(title, tuple(heads), tuple(rows))


def not_allowed_notes(measured: Iterable[WhatIf]) -> list[Part]:
    """List the levers that break a compliance rule more often, apart from the others."""
    refused = not_allowed(
        (lever.name, lever.breaches) for what_if in measured for lever in what_if.not_allowed
    )
    return [Notes(refused)] if refused else []


def spread(what_if: WhatIf) -> str:
    """Return the range of finishes and of the share reached over the runs without a lever."""
    finishes = [run.scopes[0].values["finish"] for run in what_if.base]
    done = [at for at in finishes if isfinite(at)]
    # Not the other runs: NaN stands for a run in which nothing was scheduled.
    never = sum(at == inf for at in finishes)
    shares = 100 * np.array([run.scopes[0].values["reach_share"] for run in what_if.base])
    reached = f"{shares.min():.1f} to {shares.max():.1f} % reached"
    if not done:
        return f"none of {what_if.pairs} runs finished; {reached}"
    first, last = (minute_text(round(at)) for at in (min(done), max(done)))
    when = f"done {first}" if first == last else f"done between {first} and {last}"
    return f"{when}, {reached}" + (f"; {never} did not finish" if never else "")


_NAMED = 3
"""Levers named, at most, of those that meet a goal."""


@dataclass(frozen=True, slots=True)
class GoalWhatIf:
    """Levers compared with the goal of a plan.

    `base` is the estimate of the goal from the runs without any lever. `levers` has an estimate per
    lever of `what_if`, in the same order.
    """

    what_if: WhatIf
    base: GoalEstimate
    levers: tuple[GoalEstimate, ...]


def asked_of(answer: Plan) -> tuple[str | None, str | None]:
    """Return the organization and campaign of a goal; None if not named or not unique."""
    studied = {finding.clause.figure.place for finding in answer.estimate.findings}
    if len(studied) == 1:
        return studied.pop()
    owners = {organization for organization, _ in studied}
    return (owners.pop(), None) if len(owners) == 1 else (None, None)


def against_goal(answer: Plan, what_if: WhatIf) -> GoalWhatIf:
    """Evaluate the goal of a plan on the runs of each lever, and on those without."""
    goal = Goal(answer.goal, tuple(finding.clause for finding in answer.estimate.findings))

    def judged(name: str, runs: Sequence[RunFigures]) -> GoalEstimate:
        return judge(name, goal, runs, CONFIDENCE, answer.estimate.bounds)

    levers = (judged(lever.name, lever.runs) for lever in what_if.levers)
    return GoalWhatIf(what_if, judged("as it is", what_if.base), tuple(levers))


def goal_fact(measured: GoalWhatIf) -> Fact:
    """Return the fact on the levers that meet a goal which the plan misses.

    Levers that lose people who would be reached without them are not named.
    """
    question, what_if = "What would help to meet it?", measured.what_if
    meeting = [
        (lever, estimate)
        for lever, estimate in zip(what_if.levers, measured.levers, strict=True)
        if estimate.met and not loses(what_if, lever)
    ][:_NAMED]
    if not meeting:
        tried = f"None of {len(what_if.levers)} small changes meets the goal."
        return Fact(question, "No small change alone", tried)
    first = meeting[0][1]
    figures = ", ".join(
        f"{with_it.clause.asked} is {plan_text.finding_text(with_it, with_it.estimate)} "
        f"instead of {plan_text.finding_text(without, without.estimate)}"
        for with_it, without in zip(first.findings, measured.base.findings, strict=True)
    )
    said = [f"With {first.value}, {figures}, in {what_if.pairs} runs each."]
    # Levers get fewer runs than the plan's own values.
    if not all(estimate.sure for _, estimate in meeting):
        said.append("Not sure: so few runs may meet it by chance.")
    if any(lever.shortens_retries for lever, _ in meeting):
        said.append(SHORTER_RETRIES)
    names = " or ".join(lever.name for lever, _ in meeting)
    return Fact(question, f"{names[0].upper()}{names[1:]}", " ".join(said))


def goal_table(measured: GoalWhatIf, setting: str) -> FigureTable:
    """Return the table of the goal's figures with each lever, and whether they meet it."""
    clauses = [finding.clause for finding in measured.base.findings]
    bounds = (plan_text.bound_text(finding) for finding in measured.base.findings)
    rows = [("the goal", *bounds, "")]
    names = (f"{setting}, as it is", *(lever.name for lever in measured.what_if.levers))
    for name, part in zip(names, (measured.base, *measured.levers), strict=True):
        cells = (plan_text.finding_text(finding, finding.estimate) for finding in part.findings)
        rows.append((name, *cells, plan_text.verdict_text(part)))
    heads = [*(clause.asked for clause in clauses), "meets it"]
    return FigureTable("With", tuple(heads), tuple(rows), fixed=frozenset({0}))


@dataclass(frozen=True, slots=True)
class Holding:
    """Bottleneck that `count` of `runs` runs share; `example` is the bottleneck of the first
    one.
    """

    example: Bottleneck
    count: int
    runs: int

    @property
    def reason(self) -> str:
        """The reason in a word or two, such as `Pacing`."""
        return self.example.sentence.partition(": ")[0]

    @property
    def how_often(self) -> str:
        """Number of runs in words: `in 48 of 50 runs`."""
        return f"in {self.count} of {counted(self.runs, 'run')}"

    @property
    def said(self) -> str:
        """Explanation of the example, without the reason."""
        return self.example.sentence.partition(": ")[2]


def holding(
    runs: Sequence[RunFigures], organization: str | None = None, campaign: str | None = None
) -> Holding | None:
    """Return the most frequent bottleneck of runs or of a part of them; None if there was nothing
    to do.

    Without names it is the bottleneck of the campaign that finishes last.
    """
    listed = [
        part.held_back
        for run in runs
        for part in run.scopes
        if part.held_back is not None
        and (part.organization, part.campaign) == (organization, campaign)
    ]
    # As sets: which of two joint causes is named first differs from run to run.
    causes = [frozenset({held.reason, *held.also}) for held in listed]
    if not causes:
        return None
    most, count = Counter(causes).most_common(1)[0]
    return Holding(listed[causes.index(most)], count, len(listed))


def holding_fact(question: str, found: Holding | None, campaigns: int) -> Fact:
    """Return the fact on the bottleneck; it names the campaign if there are several."""
    if found is None:
        return Fact(question, "Nothing")
    which = f" ({found.example.campaign})" if campaigns > 1 else ""
    often = f"I{found.how_often[1:]}"
    return Fact(question, f"{found.reason}{which}", f"{often}; in the first of them {found.said}")
