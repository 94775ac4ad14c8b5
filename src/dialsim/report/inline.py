"""Inline pictures: a matplotlib figure as an SVG element that can stand in a page with others."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from dialsim.report.page import Picture, ink_name
from dialsim.results.plots.ink import BLACK, ON_DARK_PAPER
from dialsim.results.plots.picture import svg

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
