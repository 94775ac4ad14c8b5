"""Inline pictures: a matplotlib figure as an SVG element that can stand in a page with others.

A page and its parts: HTML without scripts, links to elsewhere or anything to load.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Protocol

from dialsim.results.plots.drawing import BLACK, ON_DARK_PAPER, svg
from dialsim.results.summary_text import FigureTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes


SIZE = (4.7, 3.05)
"""Inches: narrow enough that letters can still be read where a phone shrinks the picture."""

_OUTSIDE = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", re.DOTALL)
_NAMESPACES = re.compile(r' xmlns(?::\w+)?="[^"]*"')
_INK = re.compile(r"#[0-9a-f]{6}")
_SIZE = re.compile(r'<svg\b[^>]*?viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>')


def picture(
    name: str, draw: Callable[..., Axes], caption: str, size: tuple[float, float] = SIZE
) -> Picture:
    """Make a picture of a page. `draw(ax=…)` draws it, and `name` is a word that no
    other picture of the page has.

    `caption` tells what it shows: it is read to those who don't see it, too.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    draw(ax=figure.add_subplot())
    return Picture(_inline(svg(figure), name, caption), caption)


def _inline(document: str, name: str, alternative: str) -> str:
    """The document without what belongs to files, its ids made the picture's own."""
    text = _OUTSIDE.sub("", document[document.index("<svg") :])
    text = _NAMESPACES.sub("", text).replace("xlink:href", "href")
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    text = text.replace("url(#", f"url(#{name}-")
    text = re.sub(r'style="[^"]*"', lambda style: _INK.sub(_variable, style[0]), text)

    def opening(found: re.Match[str]) -> str:
        width, height = float(found[1]), float(found[2])
        label = escape(alternative, quote=True)
        return (
            f'<svg role="img" aria-label="{label}" width="{width * 4 / 3:.0f}" '
            f'height="{height * 4 / 3:.0f}" viewBox="0 0 {width:g} {height:g}" '
            f'style="fill: {_INK.sub(_variable, BLACK)}">'  # of what names no ink of its own
        )

    return _SIZE.sub(opening, text, count=1).strip()


def _variable(ink: re.Match[str]) -> str:
    """An ink that the page changes on dark paper; whoever takes the SVG elsewhere has the light."""
    return f"var({ink_name(ink[0])},{ink[0]})" if ink[0].upper() in ON_DARK_PAPER else ink[0]


NAME = "report.html"


def shown(text: str) -> str:
    """Text as HTML; a percent sign stays with its number, and so does ±."""
    return escape(text).replace(" %", "\N{NO-BREAK SPACE}%").replace("± ", "±\N{NO-BREAK SPACE}")


def ink_name(ink: str) -> str:
    """The property of a page's style that holds an ink where the paper is dark."""
    return f"--ink-{ink[1:].lower()}"


def _style() -> str:
    """The style of every page. Pictures change their inks with the paper, but for print."""
    written = (files("dialsim.report") / "style.css").read_text(encoding="utf-8")
    inks = " ".join(f"{ink_name(ink)}: {dark};" for ink, dark in ON_DARK_PAPER.items())
    return f"{written}@media screen and (prefers-color-scheme: dark) {{ :root {{ {inks} }} }}\n"


class Part(Protocol):
    """Anything that can stand in a section."""

    def html(self) -> str:
        """The part as HTML."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    sentence: str

    def html(self) -> str:
        """A `p`."""
        return f"<p>{shown(self.sentence)}</p>"


@dataclass(frozen=True, slots=True)
class Notes:
    """A list of remarks."""

    sentences: Sequence[str]

    def html(self) -> str:
        """A `ul`."""
        return f"<ul>{''.join(f'<li>{shown(said)}</li>' for said in self.sentences)}</ul>"


@dataclass(frozen=True, slots=True)
class Fact:
    """A question, its answer in a few words, and what is to be said about it."""

    question: str
    answer: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """The answers that the page is about."""

    facts: Sequence[Fact]

    def html(self) -> str:
        """A `dl` of cards."""
        cards = "".join(
            f"<div><dt>{shown(fact.question)}</dt><dd><strong>{shown(fact.answer)}</strong>"
            + (f"<span>{shown(fact.detail)}</span>" if fact.detail else "")
            + "</dd></div>"
            for fact in self.facts
        )
        return f'<dl class="facts">{cards}</dl>'


_PHONE = 44
"""So many letters of a table's columns together go side by side on a phone."""
_SENTENCE = 54
"""A table with a cell of more letters holds words, which are read from the left."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts; its title heads the column of names."""

    table: FigureTable

    def html(self) -> str:
        """A `table` that scrolls by itself where it is wider than the page.

        On a phone, one with much in it has its cells below one another, each with its column's
        head; roles say then what the tags say elsewhere.
        """
        table = self.table
        head = "".join(
            f'<th scope="col" role="columnheader">{shown(cell)}</th>'
            for cell in (table.title, *table.columns)
        )
        rows = "".join(
            f'<tr role="row"><th scope="row" role="rowheader">{shown(name)}</th>'
            f"{self._cells(cells)}</tr>"
            for name, *cells in table.rows
        )
        label = escape(table.title, quote=True)
        columns = zip((table.title, *table.columns), *table.rows, strict=True)
        widths = [max(map(len, column)) for column in columns]
        kind = "table stacks" if sum(widths) > _PHONE else "table"
        if max(widths[1:], default=0) > _SENTENCE:
            kind += " words"
        return (
            f'<div class="{kind}" role="region" aria-label="{label}" tabindex="0">'
            f'<table role="table"><thead role="rowgroup"><tr role="row">{head}</tr></thead>'
            f'<tbody role="rowgroup">{rows}</tbody></table></div>'
        )

    def _cells(self, cells: Sequence[str]) -> str:
        return "".join(
            f'<td role="cell" data-head="{escape(head, quote=True)}">{shown(cell)}</td>'
            for head, cell in zip(self.table.columns, cells, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Tables:
    """Small tables side by side where there is room."""

    tables: Sequence[FigureTable]

    def html(self) -> str:
        """A grid."""
        return f'<div class="grid">{"".join(Table(table).html() for table in self.tables)}</div>'


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as SVG, with what to say to those who can't see it."""

    svg: str
    caption: str

    def html(self) -> str:
        """A `figure`."""
        return f"<figure>{self.svg}<figcaption>{shown(self.caption)}</figcaption></figure>"


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures side by side where there is room."""

    pictures: Sequence[Picture]

    def html(self) -> str:
        """A grid."""
        return f'<div class="grid">{"".join(picture.html() for picture in self.pictures)}</div>'


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    heading: str
    parts: Sequence[Part]

    def html(self) -> str:
        """A `section`."""
        inside = "".join(part.html() for part in self.parts)
        return f"<section><h2>{shown(self.heading)}</h2>{inside}</section>"


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page: the answer stands first, in `facts`."""

    title: str
    lead: str
    answer: str
    facts: Facts
    sections: Sequence[Section]
    made_from: str

    def html(self) -> str:
        """The document. Same page, same text."""
        body = "".join(section.html() for section in self.sections)
        return (
            "<!doctype html>\n"
            '<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            f"<title>{shown(self.title)}</title><style>\n{_style()}</style></head>\n"
            f"<body><main><header><h1>{shown(self.title)}</h1>"
            f'<p class="lead">{shown(self.lead)}</p></header>'
            f'<section class="answer"><h2>{shown(self.answer)}</h2>{self.facts.html()}</section>'
            f"{body}</main><footer><p>{shown(self.made_from)}</p></footer></body></html>\n"
        )
