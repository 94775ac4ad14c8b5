"""A picture: an Axes with a figure of its own, which notebooks show as SVG."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, PercentFormatter

from dialsim.results.plots.ink import GRID, TEXT, families

SIZE = (6.4, 3.6)
"""Width and height in inches of a picture that is given no Axes."""


class Picture(Axes):
    """Axes that are the whole of a figure; a notebook shows them as they are."""

    def _repr_svg_(self) -> str:
        figure = self.get_figure(root=True)
        assert figure is not None
        return svg(figure)


def canvas(ax: Axes | None, size: tuple[float, float] = SIZE) -> Axes:
    """The Axes to draw on: the given one, or that of a new figure of that size in inches."""
    if ax is not None:
        return ax
    figure = Figure(figsize=size, layout="constrained")
    return figure.add_subplot(axes_class=Picture)


_TITLE, _KEY = 11, 8.5
"""Sizes of letters, in points."""
_BESIDE = 0.7 * 72
"""About what the numbers and the name of the vertical axis take of a picture's width, in points."""
_TICK = 16
"""What a tick and the margins take beside its label, in points."""
_ABOVE_AND_BELOW = 1.0 * 72
"""About what the title, and the numbers and the name of the horizontal axis, take of its height."""
_HANDLE, _COLUMN = 2.0, 1.2
"""What a legend adds to a label, and to a column but the last, in letters of its size."""
_ROW = 15.8
"""How high a row of a legend is, in points."""


def _room(ax: Axes) -> float:
    """How wide title and legend may be, in points; names on the vertical axis leave them less."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    places = ax.get_gridspec()
    columns = 1 if places is None else places.ncols
    named = isinstance(ax.yaxis.get_major_locator(), FixedLocator)
    names = [label.get_text() for label in ax.get_yticklabels()] if named else []
    lines = [line for name in names for line in name.split("\n")]
    beside = max([_BESIDE, *(_width(line, _KEY) + _TICK for line in lines)])
    return float(figure.get_figwidth()) * 72 / columns - beside


def _width(text: str, size: float) -> float:
    """The width of a text, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=list(families()), size=size)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def _wrapped(text: str, room: float) -> str:
    """A title in as many lines as it takes; what has no spaces, such as Thai, is cut anywhere."""
    lines = [""]
    for word in re.split(r"(?<= )", text):
        if lines[-1] and _width(f"{lines[-1]}{word}".rstrip(), _TITLE) > room:
            lines.append("")
        lines[-1] += word
        while _width(lines[-1].rstrip(), _TITLE) > room:
            fits = max(k for k in range(1, len(word)) if _width(lines[-1][:k], _TITLE) <= room)
            lines[-1:] = [lines[-1][:fits], lines[-1][fits:]]
    return "\n".join(line.rstrip() for line in lines)


def dress(ax: Axes, title: str, x: str, y: str) -> Axes:
    """Give a finished drawing its title, labels, fonts and a quiet frame; returns it."""
    fonts = list(families())
    said = _wrapped(title, _room(ax))
    ax.set_title(said, family=fonts, fontsize=_TITLE, color=TEXT, loc="left")
    ax.set_xlabel(x, family=fonts, fontsize=9, color=TEXT)
    ax.set_ylabel(y, family=fonts, fontsize=9, color=TEXT)
    ax.tick_params(labelfontfamily=fonts, labelsize=8.5, labelcolor=TEXT, color=GRID)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(GRID)
    ax.set_axisbelow(True)
    return ax


def key(ax: Axes) -> int:
    """A legend of all that has a label, in rows between the title and the drawing.

    The rows are as long as the picture is wide, and no longer: nothing is cut off. Returns how many
    there are.
    """
    from matplotlib.font_manager import FontProperties

    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return 0
    widths = [_width(label, _KEY) + _HANDLE * _KEY for label in labels]
    columns = next(count for count in range(len(widths), 0, -1) if _fits(widths, count, _room(ax)))
    # matplotlib fills column after column, people read row after row
    order = [k for column in range(columns) for k in range(column, len(labels), columns)]
    handles, labels = [handles[k] for k in order], [labels[k] for k in order]
    ax.legend(
        handles,
        labels,
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
    rows = -(-len(handles) // columns)
    ax.set_title(
        ax.get_title("left"),
        loc="left",
        pad=6 + _ROW * rows,
        family=list(families()),
        fontsize=_TITLE,
    )
    return rows


def drawing_size(ax: Axes, rows: int) -> tuple[float, float]:
    """About the size in points of what is drawn, below a title and a legend of so many rows.

    The layout itself is only made when the picture is.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    return _room(ax), float(figure.get_figheight()) * 72 - _ABOVE_AND_BELOW - _ROW * rows


def _fits(widths: Sequence[float], columns: int, room: float) -> bool:
    """Whether labels of these widths, row by row in so many columns, are no wider than the room."""
    widest = (max(widths[column::columns]) for column in range(columns))
    return columns == 1 or sum(widest) + (columns - 1) * _COLUMN * _KEY <= room


def note(ax: Axes, text: str) -> None:
    """Say in the middle of a drawing why there is nothing to see."""
    ax.text(
        0.5,
        0.5,
        text,
        transform=ax.transAxes,
        ha="center",
        va="center",
        family=list(families()),
        fontsize=10,
        color=TEXT,
    )


def count_axis(ax: Axes) -> None:
    """A vertical axis of whole numbers from 0, with thousands set apart and a light grid."""
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.grid(axis="y", color=GRID, linewidth=0.6)


def share_axis(ax: Axes) -> None:
    """A vertical axis of shares from 0 to at most 1, in percent, with a light grid."""
    ax.set_ylim(0, 1)
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=" %"))
    ax.grid(axis="y", color=GRID, linewidth=0.6)


def svg(figure: Figure) -> str:
    """The figure as an SVG document: letters as outlines, no date, the same bytes every time."""
    buffer = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "dialsim", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue().decode()
