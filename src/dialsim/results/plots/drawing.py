"""Common parts of all plots: colours, fonts, the axis of Thai time, titles and legends.

Colours are those of Okabe and Ito (Color Universal Design, 2008), distinguishable with all common
kinds of colour blindness. Fonts are Noto Sans for Latin and Thai, which are included (see
`fonts/OFL.txt`); other characters use matplotlib's DejaVu Sans. `ValueAreas` show values under the
pointer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import as_file, files
from io import BytesIO
from itertools import pairwise
from math import isfinite
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backend_bases import RendererBase
from matplotlib.dates import AutoDateLocator, num2date
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, Formatter, FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from dialsim.interface.instants import (
    DAY,
    HOUR,
    MINUTE,
    THAI,
    date_text,
    duration_text,
    short_text,
    thai,
)
from dialsim.results.campaigns import Spans
from dialsim.results.time_use import StepFunction

BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#8A8A8A"

CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, BLACK)
"""Colours for items that have none, in this order."""

PAPER = "#FFFFFF"
TEXT = "#333333"
GRID = "#D9D9D9"
OPEN = "#EAF2F8"
"""Shade of open calling windows."""

OUTAGE = "#F7DDD0"
EMPTY = "#F4F4F4"
"""Colour of empty cells of a map."""

ON_LIGHT, ON_DARK = "#1A1A1A", "#F7F7F7"
"""Colours of letters on light and dark cells of `MAP`; dark paper does not change them."""

ON_DARK_PAPER = {
    PAPER: "#1A2027",
    BLACK: "#E6EBF0",
    ORANGE: "#E8A820",
    SKY: "#A6D8F5",
    GREEN: "#2FBF94",
    BLUE: "#3D97D3",
    VERMILION: "#F0722B",
    PURPLE: "#D993BB",
    GREY: "#98A2AB",
    TEXT: "#C9D3DC",
    GRID: "#3A4550",
    OPEN: "#243444",
    OUTAGE: "#55301E",
    EMPTY: "#232B34",
}
"""Replacement of each colour on dark paper, with contrasts similar to those on white."""

MAP = "cividis"
"""Colour map of amounts (Nuñez, Anderton and Renslow, PLOS ONE 13(7), 2018)."""


@cache
def families() -> tuple[str, ...]:
    """Register the fonts with matplotlib, and return the font families of all texts."""
    from matplotlib.font_manager import fontManager

    names = []
    for file in ("NotoSans-Latin.ttf", "NotoSansThai-Regular.ttf"):
        with as_file(files("dialsim.results.plots") / "fonts" / file) as path:
            fontManager.addfont(path)
        # The name is read back from the font: matplotlib does not return it.
        names.append(fontManager.ttflist[-1].name)
    # The last family comes with matplotlib and has the symbols that both Noto fonts lack.
    return (*names, "DejaVu Sans")


_SECOND = 1_000
_WIDTHS = (
    *(count * _SECOND for count in (1, 5, 10, 30)),
    *(count * MINUTE for count in (1, 2, 5, 10, 30)),
    *(count * HOUR for count in (1, 2, 6, 12, 24)),
)
"""Widths in ms. All divide an hour or a day, so that edges fall on the opening hours of windows."""

MOST_POINTS = 600
_BINS = 300


def edges(start: int, end: int, most: int = _BINS) -> NDArray[np.int64]:
    """Return edges (ms) of at most about `most` equal pieces that cover `start` to `end`."""
    # Beyond the largest width there are more pieces than `most`, but edges stay at midnight.
    width = next((width for width in _WIDTHS if (end - start) <= width * most), _WIDTHS[-1])
    first, last = start // width, -(-max(end, start + 1) // width)
    return np.arange(first, last + 1, dtype=np.int64) * width


def steps(
    function: StepFunction, start: int, end: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Return a step function from `start` to `end`, for drawing with steps after each instant.

    The result is instants (ms), values, and the width in ms of the pieces over which values are
    means, 0 for exact changes. The last value is the value at `end`.
    """
    inside = (function.at > start) & (function.at < end)
    # Few changes are drawn exactly; many would only fill the file, since pixels show means anyway.
    if np.count_nonzero(inside) <= MOST_POINTS:
        at = np.concatenate([[start], function.at[inside], [end]])
        return at, function(at).astype(np.float64), 0
    cut = edges(start, end)
    means = function.means(cut)
    return cut, np.append(means, means[-1]), int(cut[1] - cut[0])


def thinned(count: int) -> NDArray[np.int64]:
    """Return indices of the points to draw: all, or `MOST_POINTS` spread evenly, the last
    included.
    """
    if count <= MOST_POINTS:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, MOST_POINTS).round().astype(np.int64))


# Days of 400 years, after which dates and days of the week repeat.
_CYCLE = 146_097


def days(at: NDArray[np.integer] | NDArray[np.floating] | float) -> NDArray[np.float64]:
    """Convert instants in ms to matplotlib's days since 1970, UTC."""
    return np.asarray(at, dtype=np.float64) / DAY


class ThaiDates(AutoDateLocator):
    """Tick locator of round instants in Thai time."""

    # Ticks are computed 400 years earlier, because matplotlib looks beyond both ends of an axis and
    # Python's dates end with the year 9999.
    def __init__(self, least: int = 3, most: int = 7) -> None:
        super().__init__(tz=THAI, minticks=least, maxticks=most)  # type: ignore[no-untyped-call]

    def __call__(self) -> Sequence[float]:
        """Return the ticks of the visible axis."""
        assert self.axis is not None
        low, high = self.axis.get_view_interval()
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the ticks between two instants in matplotlib's days."""
        # matplotlib passes the ends in either order.
        ends = [num2date(value - _CYCLE, tz=THAI) for value in sorted((vmin, vmax))]  # type: ignore[no-untyped-call]
        return [value + _CYCLE for value in super().tick_values(*ends)]  # type: ignore[no-untyped-call]


class ThaiTicks(Formatter):
    """Tick formatter: times of day with the date below the first of each day, or dates alone."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002
        """Format one instant for the cursor."""
        ms = round(x * DAY)
        return f"{date_text(ms)} {thai(ms):%H:%M}"

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Format all ticks of an axis."""
        instants = [round(value * DAY / 1000) * 1000 for value in values]
        texts, day = [], ""
        by_day = all(thai(ms).hour == thai(ms).minute == thai(ms).second == 0 for ms in instants)
        seconds = any(thai(ms).second for ms in instants)
        for ms in instants:
            weekday, number, month, _ = date_text(ms).split()
            if by_day:
                texts.append(f"{weekday}\n{number} {month}")
                continue
            time = f"{thai(ms):%H:%M:%S}" if seconds else f"{thai(ms):%H:%M}"
            date = f"{weekday} {number} {month}"
            texts.append(time if date == day else f"{time}\n{date}")
            day = date
        return texts


class ThaiInstants(Formatter):
    """Tick formatter with date and time on every tick."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002
        """Format one instant."""
        return self._text(round(x * DAY / _SECOND) * _SECOND, "%H:%M")

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Format all ticks, with seconds if they are closer than minutes."""
        instants = [round(value * DAY / _SECOND) * _SECOND for value in values]
        time = "%H:%M:%S" if any(ms % MINUTE for ms in instants) else "%H:%M"
        return [self._text(ms, time) for ms in instants]

    @staticmethod
    def _text(ms: int, time: str) -> str:
        weekday, day, month, _ = date_text(ms).split()
        return f"{weekday} {day} {month}\n{thai(ms):{time}}"


def instant_axis(axis: Axis) -> None:
    """Show instants of Thai time on an axis other than the time axis, such as y."""
    axis.set_major_locator(ThaiDates(2, 5))  # every tick has its date
    axis.set_major_formatter(ThaiInstants())


def time_axis(ax: Axes, start: int, end: int) -> str:
    """Make x the Thai time from `start` to `end` (ms); returns the axis label."""
    # matplotlib warns of an axis without extent.
    margin = max((end - start) // 50, 1000)
    ax.set_xlim(float(days(start - margin)), float(days(end + margin)))
    ax.xaxis.set_major_locator(ThaiDates())
    ax.xaxis.set_major_formatter(ThaiTicks())
    years = sorted({thai(start).year, thai(end).year})
    return f"Thai time, {'–'.join(map(str, years))}"


def stacked_bars(
    ax: Axes,
    starts: NDArray[np.int64],
    width: int,
    bars: tuple[NDArray[np.float64], float],
    layers: Mapping[str, tuple[str, NDArray[np.int64]]],
    always: Collection[str] = (),
) -> None:
    """Draw stacked bars of counts over pieces of time, with values under the pointer.

    `layers` has a colour and counts by name. The pieces begin at `starts` and last `width` (ms);
    `bars` are the left edges and the width of the bars, in matplotlib's days. Layers without any
    count are left out, except those of `always`.
    """
    bottom = np.zeros(len(starts))
    for name, (color, count) in layers.items():
        if count.any() or name in always:
            ax.bar(bars[0], count, bars[1], bottom, align="edge", color=color, label=name)
            bottom = bottom + count
    pieces = zip(*(count.tolist() for _, count in layers.values()), strict=True)
    said = [dict(zip(layers, counts, strict=True)) for counts in pieces]
    show_values_over_time(ax, [
        (since, since + width, counts_text(since, since + width, counts))
        for since, counts in zip(starts.tolist(), said, strict=True)
    ])  # fmt: skip


def shade(ax: Axes, spans: Spans, label: str = "window open", color: str = OPEN) -> None:
    """Shade spans of time over the whole height of a plot."""
    if not len(spans):
        return
    ax.broken_barh(
        [(float(days(since)), float(days(until - since))) for since, until in spans],
        (0, 1),
        transform=ax.get_xaxis_transform(),
        facecolor=color,
        edgecolor="none",
        zorder=0,
        label=label,
    )


SIZE = (6.4, 3.6)
"""Width and height in inches of a plot without a given Axes."""


class StandaloneAxes(Axes):
    """Axes that fill a figure; notebooks show them as an image."""

    def _repr_svg_(self) -> str:
        figure = self.get_figure(root=True)
        assert figure is not None
        return svg(figure)


def canvas(ax: Axes | None, size: tuple[float, float] = SIZE) -> Axes:
    """Return the given Axes, or the Axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    figure = Figure(figsize=size, layout="constrained")
    return figure.add_subplot(axes_class=StandaloneAxes)


_TITLE, _KEY = 11, 8.5
"""Font sizes in points."""
_BESIDE = 0.7 * 72
"""Approximate width of the vertical axis's numbers and name, in points."""
_TICK = 16
"""Width of a tick and its margins, in points."""
_ABOVE_AND_BELOW = 1.0 * 72
"""Approximate height of title, horizontal axis's numbers and name, in points."""
_HANDLE, _COLUMN = 2.0, 1.2
"""Additional width of a legend's label, and of a column except the last, in font sizes."""
_ROW = 15.8
"""Height of a legend's row, in points."""


def _room(ax: Axes) -> float:
    """Return the width available to title and legend, in points."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    grid = ax.get_gridspec()
    columns = 1 if grid is None else grid.ncols
    named = isinstance(ax.yaxis.get_major_locator(), FixedLocator)
    names = [label.get_text() for label in ax.get_yticklabels()] if named else []
    # Names of rows are drawn left of the axis and reduce the room for the title.
    lines = [line for name in names for line in name.split("\n")]
    beside = max([_BESIDE, *(_width(line, _KEY) + _TICK for line in lines)])
    return float(figure.get_figwidth()) * 72 / columns - beside


def _width(text: str, size: float) -> float:
    """Return the width of a text, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=list(families()), size=size)
    # No renderer exists before the figure is saved; outlines give the width without one. `ismath`:
    # a $ in a name is no formula.
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def _wrapped(text: str, room: float) -> str:
    """Wrap a title; text without spaces, such as Thai, is cut anywhere."""
    lines = [""]
    # Split behind spaces, so that joining the parts restores the text.
    for word in re.split(r"(?<= )", text):
        if lines[-1] and _width(f"{lines[-1]}{word}".rstrip(), _TITLE) > room:
            lines.append("")
        lines[-1] += word
        while _width(lines[-1].rstrip(), _TITLE) > room:
            fits = max(k for k in range(1, len(word)) if _width(lines[-1][:k], _TITLE) <= room)
            lines[-1:] = [lines[-1][:fits], lines[-1][fits:]]
    return "\n".join(line.rstrip() for line in lines)


def letters(size: float = _KEY, color: str = TEXT) -> dict[str, Any]:
    """Return the font settings of a text."""
    return {"family": list(families()), "fontsize": size, "color": color}


def dress(ax: Axes, title: str, x: str, y: str) -> Axes:
    """Add title, labels, legend, fonts and a light frame to a finished plot; returns it.

    The legend lists everything with a label, in rows between title and plot that fit the width.
    """
    rows = key(ax)
    said = _wrapped(title, _room(ax))
    # 6 is matplotlib's default pad without a legend.
    ax.set_title(said, loc="left", pad=6 + _ROW * rows, **letters(_TITLE))
    ax.set_xlabel(x, **letters(9))
    ax.set_ylabel(y, **letters(9))
    ax.tick_params(labelfontfamily=list(families()), labelsize=8.5, labelcolor=TEXT, color=GRID)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(GRID)
    ax.set_axisbelow(True)
    return ax


def key(ax: Axes) -> int:
    """Draw a legend of everything with a label; returns its number of rows."""
    from matplotlib.font_manager import FontProperties

    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return 0
    widths = [_width(label, _KEY) + _HANDLE * _KEY for label in labels]
    columns = next(count for count in range(len(widths), 0, -1) if _fits(widths, count, _room(ax)))
    # matplotlib fills a legend column by column, but people read row by row.
    order = [k for column in range(columns) for k in range(column, len(labels), columns)]
    ax.legend(
        [handles[k] for k in order],
        [labels[k] for k in order],
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=columns,
        prop=FontProperties(family=list(families()), size=_KEY),
        labelcolor=TEXT,
        frameon=False,
        borderpad=0.2,
        borderaxespad=0,
        handlelength=1.2,
        handletextpad=0.5,
        columnspacing=_COLUMN,
    )
    return -(-len(handles) // columns)


def drawing_size(ax: Axes, rows: int) -> tuple[float, float]:
    """Return the approximate size in points of the plot area, below a title and `rows` rows of
    legend.
    """
    # An approximation, because the layout is computed only when the figure is rendered.
    figure = ax.get_figure(root=True)
    assert figure is not None
    return _room(ax), float(figure.get_figheight()) * 72 - _ABOVE_AND_BELOW - _ROW * rows


def _fits(widths: Sequence[float], columns: int, room: float) -> bool:
    """Return True if labels fit the width when they fill so many columns row by row."""
    widest = (max(widths[column::columns]) for column in range(columns))
    return columns == 1 or sum(widest) + (columns - 1) * _COLUMN * _KEY <= room


def note(ax: Axes, text: str) -> None:
    """Write a text in the middle of an empty plot."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", **letters(10))


def count_axis(ax: Axes) -> None:
    """Format a vertical axis of integers from 0, with thousands separators and a light grid."""
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.grid(axis="y", color=GRID, linewidth=0.6)


def share_axis(ax: Axes, top: float = 1.0) -> None:
    """Format a vertical axis of shares from 0, in percent, with a light grid."""
    ax.set_ylim(0, top)
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=" %"))
    ax.grid(axis="y", color=GRID, linewidth=0.6)


def svg(figure: Figure) -> str:
    """Return the figure as an SVG document with equal bytes every time."""
    buffer = BytesIO()
    # matplotlib's ids are random without a salt, and metadata contains the date. Letters are
    # outlines, because readers may lack the fonts.
    with mpl.rc_context({"svg.hashsalt": "dialsim", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue().decode()


_NEAR = 7.0
"""Distance in points within which a mark shows its value."""
Extent = tuple[float, float] | float | None
"""Extent along an axis in data units: a range, a mark, or the whole axis."""


class ValueAreas(Artist):
    """Invisible areas of a plot that show a value under the pointer."""

    # Only an SVG has them: each is a rectangle with a title, which browsers show as a tooltip.
    def __init__(self, listed: Sequence[tuple[Extent, Extent, str]]) -> None:
        """`listed` has the x extent, y extent and text of each area; areas without text are left
        out.
        """
        super().__init__()
        self.listed = [area for area in listed if area[2]]
        # Otherwise the layout would make room for the invisible areas.
        self.set_in_layout(False)
        self.set_zorder(100)  # above all other elements, which would receive the pointer instead

    def draw(self, renderer: RendererBase) -> None:
        """Write the areas."""
        # Only the SVG renderer has a writer; a PNG has no tooltips.
        writer, ax = getattr(renderer, "writer", None), self.axes
        if writer is None or not isinstance(ax, Axes):
            return
        # SVG counts y from the top, matplotlib from the bottom.
        height = renderer.get_canvas_width_height()[1]
        for x, y, text in self.listed:
            left, right = _extent(ax, 0, x)
            bottom, top = _extent(ax, 1, y)
            if right <= left or top <= bottom:
                continue
            area = (left, height - top, right - left, top - bottom)
            names = ("x", "y", "width", "height")
            attributes = {name: f"{value:.1f}" for name, value in zip(names, area, strict=True)}
            writer.start("rect", attrib={"fill": "none", "pointer-events": "all"} | attributes)
            writer.element("title", text)
            writer.end("rect")


def _extent(ax: Axes, axis: int, extent: Extent) -> tuple[float, float]:
    """Return the extent along one axis, in points, within the plot."""
    least, most = ax.bbox.get_points()[:, axis]
    if extent is None:
        return float(least), float(most)
    ends = extent if isinstance(extent, tuple) else (extent, extent)
    near = 0.0 if isinstance(extent, tuple) else _NEAR
    corners = [(end, ax.get_ylim()[0]) if axis == 0 else (ax.get_xlim()[0], end) for end in ends]
    low, high = sorted(float(end) for end in ax.transData.transform(corners)[:, axis])
    if not (isfinite(low) and isfinite(high)):
        return 0.0, 0.0
    return max(low - near, float(least)), min(high + near, float(most))


def show_values(ax: Axes, listed: Iterable[tuple[Extent, Extent, str]]) -> None:
    """Add areas with values to a plot."""
    ax.add_artist(ValueAreas([*listed]))


_MOST_PIECES = 60
"""Maximum number of pieces with values on an axis of time."""


def value_pieces(start: int, end: int) -> list[tuple[int, int]]:
    """Return the pieces (ms) with values of an axis of time from `start` to `end`."""
    cut = edges(start, end, _MOST_PIECES)
    return [(max(since, start), min(until, end)) for since, until in pairwise(cut.tolist())
            if since < end and until > start]  # fmt: skip


def show_values_over_time(ax: Axes, listed: Iterable[tuple[int, int, str]]) -> None:
    """Add values to pieces of time (ms)."""
    show_values(ax, [((float(days(since)), float(days(until))), None, text)
              for since, until, text in listed])  # fmt: skip


def piece_text(since: int, until: int) -> str:
    """Format a piece of time: `Mon 5 Jan 09:00, 1 h`."""
    return f"{short_text(since)}, {duration_text(until - since)}"


def counts_text(since: int, until: int, counts: Mapping[str, int]) -> str:
    """Format counts: `Mon 5 Jan 09:00, 1 h: 12 answered, 3 busy`; empty without counts."""
    said = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"{piece_text(since, until)}: {said}" if said else ""
