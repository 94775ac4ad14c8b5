"""What a picture tells of the place that somebody points at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import isfinite

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase

from dialsim.results.plots.drawing import days, edges
from dialsim.results.thai_time import duration_text, short_text

_NEAR = 7.0
"""So many points around a mark belong to it."""
Extent = tuple[float, float] | float | None
"""Along an axis, in its data: from here to there, around a mark, or all of it."""


class Values(Artist):
    """Areas of a drawing, unseen, that tell a value to whoever points at them.

    Only an SVG has them: a rectangle with a title each, which browsers show.
    """

    def __init__(self, listed: Sequence[tuple[Extent, Extent, str]]) -> None:
        """Each has its extent along x, along y, and what it says; what says nothing is left out."""
        super().__init__()
        self.listed = [place for place in listed if place[2]]
        self.set_in_layout(False)
        self.set_zorder(100)  # above all that is drawn, which would be pointed at instead

    def draw(self, renderer: RendererBase) -> None:
        """Write them."""
        writer, ax = getattr(renderer, "writer", None), self.axes
        if writer is None or not isinstance(ax, Axes):
            return
        height = renderer.get_canvas_width_height()[1]
        for x, y, text in self.listed:
            left, right = _extent(ax, 0, x)
            bottom, top = _extent(ax, 1, y)
            if right <= left or top <= bottom:
                continue
            place = (left, height - top, right - left, top - bottom)
            names = ("x", "y", "width", "height")
            attributes = {name: f"{value:.1f}" for name, value in zip(names, place, strict=True)}
            writer.start("rect", attrib={"fill": "none", "pointer-events": "all"} | attributes)
            writer.element("title", text)
            writer.end("rect")


def _extent(ax: Axes, axis: int, extent: Extent) -> tuple[float, float]:
    """Along one axis, in points, within the drawing."""
    least, most = ax.bbox.get_points()[:, axis]
    if extent is None:
        return float(least), float(most)
    ends = extent if isinstance(extent, tuple) else (extent, extent)
    near = 0.0 if isinstance(extent, tuple) else _NEAR
    corners = [(end, ax.get_ylim()[0]) if axis == 0 else (ax.get_xlim()[0], end) for end in ends]
    low, high = sorted(float(place) for place in ax.transData.transform(corners)[:, axis])
    if not (isfinite(low) and isfinite(high)):
        return 0.0, 0.0
    return max(low - near, float(least)), min(high + near, float(most))


def tell(ax: Axes, listed: Iterable[tuple[Extent, Extent, str]]) -> None:
    """Let the areas of a drawing tell values."""
    ax.add_artist(Values([*listed]))


_TOLD = 60
"""Into so many pieces is an axis of time cut at most, each of which tells its values."""


def told(start: int, end: int) -> list[tuple[int, int]]:
    """The pieces (ms) of an axis of time that tell values, from `start` to `end`."""
    cut = edges(start, end, _TOLD)
    return [(max(since, start), min(until, end)) for since, until in pairwise(cut.tolist())
            if since < end and until > start]  # fmt: skip


def tell_times(ax: Axes, listed: Iterable[tuple[int, int, str]]) -> None:
    """Let pieces of time (ms) tell values."""
    tell(ax, [((float(days(since)), float(days(until))), None, text)
              for since, until, text in listed])  # fmt: skip


def piece_text(since: int, until: int) -> str:
    """A piece of time: `Mon 5 Jan 09:00, 1 h`."""
    return f"{short_text(since)}, {duration_text(until - since)}"


def counts_text(since: int, until: int, counts: Mapping[str, int]) -> str:
    """`Mon 5 Jan 09:00, 1 h: 12 answered, 3 busy`; empty where there is nothing to count."""
    said = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"{piece_text(since, until)}: {said}" if said else ""
