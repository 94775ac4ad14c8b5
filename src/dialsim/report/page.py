"""A page and its parts: HTML without links to elsewhere or anything to load; all is in one file.

The HTML itself is in `templates/`; pictures stand in it as SVG. Its only script is `page.js`, which
sorts and copies tables and shows values; without it everything is there as well.
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

from dialsim.results.plots.drawing import BLACK, ON_DARK_PAPER, svg
from dialsim.results.summary_text import FigureTable, ValueText
from dialsim.templates import templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Environment
    from matplotlib.axes import Axes


NAME = "report.html"

SIZE = (4.7, 3.05)
"""Inches: narrow enough that letters can still be read where a phone shrinks the picture."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: what is inside its `svg` element, its size in points, and what it shows."""

    drawing: str
    width: float
    height: float
    caption: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Pictures of which the reader sees one, and chooses which by its label; first the first.

    `name` is a word that no other choice of the page has, `asked` tells what is chosen.
    """

    name: str
    asked: str
    options: Sequence[tuple[str, Picture]]


@dataclass(frozen=True, slots=True)
class Notes:
    """A list of remarks."""

    sentences: Sequence[str]


@dataclass(frozen=True, slots=True)
class Grid:
    """Small tables, or pictures, side by side where there is room."""

    parts: Sequence[FigureTable | Picture | Choice]


Part = str | Notes | FigureTable | Grid
"""What can stand in a section; a text is a paragraph."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A question, its answer in a few words, and what is to be said about it."""

    question: str
    answer: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    heading: str
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A whole page: the answer stands first, then the facts that it rests on."""

    title: str
    lead: str
    answer: str
    facts: Sequence[Fact]
    sections: Sequence[Section]
    made_from: str

    def html(self) -> str:
        """The document. Same page, same text."""
        made = _environment()
        script = _script(made)
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
"""Browsers hold a page to loading nothing, and to running no script but its own."""


@cache
def _environment() -> Environment:
    made = templates("dialsim.report")
    made.filters |= {"nbsp": _unbroken, "table_class": _table_class, "data_value": _data_value}
    return made


def _script(made: Environment) -> str:
    return made.get_template("page.js").render()


def _unbroken(text: str) -> str:
    """A percent sign stays with its number, and so does ±."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%").replace("± ", "±\N{NO-BREAK SPACE}")


_PHONE = 44
"""So many letters of a table's columns together go side by side on a phone."""
_SENTENCE = 54
"""A table with a cell of more letters holds words, which are read from the left."""


def _table_class(table: FigureTable) -> str:
    """The classes of a table: it may have its cells below one another on a phone, or hold words."""
    columns = zip((table.title, *table.columns), *table.rows, strict=True)
    widths = [max(map(len, column)) for column in columns]
    stacks = " stacks" if sum(widths) > _PHONE else ""
    sorts = " sorts" if len(table.rows) - len(table.fixed) > 1 else ""
    return f"table{stacks}{sorts}{' words' if max(widths[1:], default=0) > _SENTENCE else ''}"


def _data_value(cell: str) -> Markup:
    """The attribute by which a cell is sorted: the value that it says, if it says one."""
    if not isinstance(cell, ValueText):
        plain = cell.replace(",", "")
        return Markup(f' data-value="{plain}"' if _NUMBER.fullmatch(plain) else "")
    if isnan(cell.value):
        return Markup("")
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
    """Make a picture of a page with `draw(ax=…)`.

    `name` is a word that no other picture of the page has: the ids inside begin with it. `caption`
    tells what it shows; it is read to those who don't see it, too.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    draw(ax=figure.add_subplot())
    found = _SVG.search(_OUTSIDE.sub("", svg(figure)))
    assert found is not None
    text = found[3].replace("xlink:href", "href").replace('href="#', f'href="#{name}-')
    text = re.sub(r'\bid="', f'id="{name}-', text).replace("url(#", f"url(#{name}-")
    text = re.sub(r'style="[^"]*"', lambda style: _INK.sub(_variable, style[0]), text)
    return Picture(text, float(found[1]), float(found[2]), caption)


def _variable(ink: re.Match[str]) -> str:
    """An ink that the page changes on dark paper; whoever takes the SVG elsewhere has the light."""
    return f"var({_ink_name(ink[0])},{ink[0]})" if ink[0].upper() in ON_DARK_PAPER else ink[0]


def _ink_name(ink: str) -> str:
    """The property of a page's style that holds an ink where the paper is dark."""
    return f"--ink-{ink[1:].lower()}"
