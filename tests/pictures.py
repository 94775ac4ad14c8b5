"""Figures that are not rendered, or not drawn, for tests of the rest of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from typing import Any
from unittest.mock import patch

from matplotlib.artist import Artist
from matplotlib.axis import Axis
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator

from dialsim.report.page import Picture
from dialsim.results.plots.drawing import SIZE

_save = Figure.savefig


@contextmanager
def unrendered() -> Iterator[None]:
    """Patch the rendering: SVG files have the right size, and only a digest of the drawing.

    Three quarters of the time of a page goes into outlines of letters and the layout.
    """
    with patch.object(Figure, "savefig", _save_digest):
        yield


_PAGES = ("run_page", "replications_page", "sweep_page", "plan_page")


@contextmanager
def undrawn() -> Iterator[None]:
    """Pages of runs and experiments have empty pictures, each with its size and what it shows."""
    with ExitStack() as stack:
        for page in _PAGES:
            stack.enter_context(patch(f"dialsim.report.{page}.picture", _empty))
        yield


def _empty(
    name: str,
    draw: Callable[..., Any],
    caption: str,
    size: tuple[float, float] = SIZE,
) -> Picture:
    width, height = (72 * inches for inches in size)
    return Picture("", width, height, caption)


def _save_digest(figure: Figure, file: Any, **options: Any) -> None:
    if options.get("format") != "svg":
        _save(figure, file, **options)
        return
    width, height = (72 * inches for inches in figure.get_size_inches())
    said = f'<svg viewBox="0 0 {width:g} {height:g}"><desc>{_digest(figure)}</desc></svg>'
    file.write(said.encode())


def _digest(figure: Figure) -> str:
    """The same for the same words and the same data, whatever they look like."""
    drawn: list[object] = []
    for artist in _artists(figure):
        match artist:
            case Text():
                drawn.append(artist.get_text())
            case Line2D():
                drawn.append(artist.get_xydata().tolist())
            case Patch():
                drawn.append(artist.get_path().vertices.tolist())
            case Collection():
                drawn.append([path.vertices.tolist() for path in artist.get_paths()])
                drawn.append(artist.get_offsets().tolist())
    return sha256(repr(drawn).encode()).hexdigest()


def _artists(figure: Figure) -> Iterator[Artist]:
    """All that a figure shows, but ticks of a scale: these are only made when they are drawn."""
    for ax in figure.axes:
        for part in ax.get_children():
            if not isinstance(part, Axis):
                yield from part.findobj()
                continue
            yield part.label
            if isinstance(part.get_major_locator(), FixedLocator):
                yield from part.get_ticklabels()
