"""A picture: an Axes with a figure of its own, which notebooks show as SVG."""

from __future__ import annotations

from io import BytesIO

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

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


def dress(ax: Axes, title: str, x: str, y: str) -> Axes:
    """Give a finished drawing its title, labels, fonts and a quiet frame; returns it."""
    fonts = list(families())
    ax.set_title(title, family=fonts, fontsize=11, color=TEXT, loc="left")
    ax.set_xlabel(x, family=fonts, fontsize=9, color=TEXT)
    ax.set_ylabel(y, family=fonts, fontsize=9, color=TEXT)
    ax.tick_params(labelfontfamily=fonts, labelsize=8.5, labelcolor=TEXT, color=GRID)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(GRID)
    ax.set_axisbelow(True)
    return ax


def key(ax: Axes, columns: int) -> None:
    """A legend of all that has a label, in rows between the title and the drawing."""
    from matplotlib.font_manager import FontProperties

    handles, labels = ax.get_legend_handles_labels()
    rows = -(-len(handles) // columns)
    ax.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=columns,
        prop=FontProperties(family=list(families()), size=8.5),
        labelcolor=TEXT,
        frameon=False,
        borderpad=0.2,
        borderaxespad=0,
        handlelength=1.2,
        handletextpad=0.5,
        columnspacing=1.2,
    )
    ax.set_title(
        ax.get_title("left"), loc="left", pad=8 + 14 * rows, family=list(families()), fontsize=11
    )


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
