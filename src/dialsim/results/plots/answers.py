"""When people answer: the share of one attempt answered, by weekday and hour of Thai time."""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from dialsim.engine.windows import DAY, HOUR, THAI_OFFSET
from dialsim.results.ledger import NEVER
from dialsim.results.plots.ink import EMPTY, GRID, MAP, ON_DARK, ON_LIGHT, PAPER, TEXT, families
from dialsim.results.plots.picture import canvas, dress, note
from dialsim.results.plots.scope import Scope

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LEAST_RANGE = 0.2
_SHADES = 40
_MONDAY = 3  # 1970-01-01 was a Thursday


@dataclass(frozen=True, slots=True)
class Answers:
    """Dials that ended, and those of them that were answered, by weekday and hour (7 × 24).

    Of one attempt of each person: later ones go to those who are harder to reach, so that hours
    with more of them would look worse than they are. The time is that of the dial, Thai time;
    Monday is row 0.
    """

    attempts: NDArray[np.int64]
    answered: NDArray[np.int64]

    @classmethod
    def of(cls, scope: Scope, attempt: int) -> Answers:
        """Those of the campaigns in a scope; histories count for the attempt's number (P5)."""
        attempts, answered = np.zeros((2, 7, 24), dtype=np.int64)
        for ledger in scope.ledgers:
            counted = ledger.counted & (ledger.attempt == attempt)
            thai = ledger.initiated_at[counted] + THAI_OFFSET
            cell = (thai // DAY + _MONDAY) % 7, thai % DAY // HOUR
            np.add.at(attempts, cell, 1)
            yes = ledger.started_at[counted] != NEVER
            np.add.at(answered, (cell[0][yes], cell[1][yes]), 1)
        return cls(attempts, answered)

    @property
    def share(self) -> NDArray[np.float64]:
        """Answered ÷ attempts; NaN where there were none."""
        none = np.full(self.attempts.shape, np.nan)
        share: NDArray[np.float64] = np.divide(
            self.answered, self.attempts, out=none, where=self.attempts > 0
        )
        return share


def draw_answers(scope: Scope, attempt: int, ax: Axes | None) -> Axes:
    """A heat map, weekday by hour; hours before the first and after the last dial are left out."""
    ax = canvas(ax)
    answers = Answers.of(scope, attempt)
    hours = np.flatnonzero(answers.attempts.any(axis=0))
    which = "First attempts" if attempt == 1 else f"Attempts no. {attempt}"
    title = scope.title(f"{which} answered, by weekday and hour")
    dress(ax, title, "hour of the day, Thai time", "")
    if not len(hours):
        note(ax, "Nobody was dialled for that attempt.")
        return ax
    first, last = int(hours[0]), int(hours[-1]) + 1
    shown = answers.share[:, first:last]
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    wider = max(0.02, (_LEAST_RANGE - (high - low)) / 2)
    norm = mpl.colors.Normalize(max(0.0, low - wider), min(1.0, high + wider))
    mesh = ax.pcolormesh(
        np.arange(first, last + 1),
        np.arange(8),
        np.ma.masked_invalid(shown),
        cmap=mpl.colormaps[MAP].resampled(_SHADES),
        edgecolors=PAPER,
        linewidth=1.5,
        norm=norm,
    )
    ax.invert_yaxis()
    ax.set_yticks(np.arange(7) + 0.5, WEEKDAYS)
    ax.set_xticks(np.arange(first, last + 1, max(1, (last - first) // 10)))
    ax.tick_params(length=0)
    ax.set_facecolor(EMPTY)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if last - first <= 12:
        _write_shares(ax, shown, first, norm)
    _draw_scale(ax, mesh)
    return ax


def _write_shares(
    ax: Axes, shown: NDArray[np.float64], first: int, norm: mpl.colors.Normalize
) -> None:
    """The share in percent in each cell, light on dark and dark on light."""
    for (day, hour), share in np.ndenumerate(shown):
        if not np.isnan(share):
            ax.text(
                first + hour + 0.5,
                day + 0.5,
                f"{100 * share:.0f}",
                ha="center",
                va="center",
                family=list(families()),
                fontsize=8,
                color=ON_DARK if norm(share) < 0.6 else ON_LIGHT,
            )


def _draw_scale(ax: Axes, mesh: mpl.collections.QuadMesh) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    scale = figure.colorbar(mesh, ax=ax, format=PercentFormatter(xmax=1, decimals=0, symbol=" %"))
    scale.locator = MaxNLocator(nbins=6, steps=[1, 2, 5, 10])
    scale.outline.set_visible(False)
    assert scale.solids is not None
    scale.solids.set_rasterized(False)  # an image within the SVG otherwise
    scale.ax.tick_params(
        labelfontfamily=list(families()), labelsize=8.5, labelcolor=TEXT, color=GRID
    )
    scale.set_label("answered, of those dialled", family=list(families()), fontsize=9, color=TEXT)
