"""A report and its parts: self-contained HTML without external links or resources.

The HTML is in `templates/`, figures are inline SVG. The only script is `page.js`, which sorts and
copies tables and shows values; everything is readable without it.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from math import isnan
from typing import TYPE_CHECKING

from markupsafe import Markup

from dialsim.language import templates
from dialsim.results.plots.drawing import BLACK, ON_DARK_PAPER, svg
from dialsim.results.summary_text import FigureTable, ValueText

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Environment
    from matplotlib.axes import Axes


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
