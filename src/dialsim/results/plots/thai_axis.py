"""The time axis of all pictures: Thai time (UTC+7 all year, T2), whatever the locale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.dates import AutoDateLocator, num2date
from matplotlib.ticker import Formatter
from numpy.typing import NDArray

from dialsim.results.plots.ink import OPEN
from dialsim.results.spans import Spans
from dialsim.results.thai_time import THAI, date_text, thai

DAY_MS = 86_400_000
_CYCLE = 146_097  # days of 400 years, after which dates and days of the week are the same again


def days(at: NDArray[np.integer] | NDArray[np.floating] | float) -> NDArray[np.float64]:
    """Instants in ms as matplotlib counts time: days since 1970, UTC."""
    return np.asarray(at, dtype=np.float64) / DAY_MS


class ThaiDates(AutoDateLocator):
    """Round instants of Thai time, found 400 years earlier.

    matplotlib looks beyond both ends of an axis, and Python's dates end with the year 9999.
    """

    def __init__(self) -> None:
        super().__init__(tz=THAI, minticks=3, maxticks=7)  # type: ignore[no-untyped-call]

    def __call__(self) -> Sequence[float]:
        """The ticks of the axis as it is shown."""
        assert self.axis is not None
        low, high = self.axis.get_view_interval()
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """The ticks between two instants, which are as `days` has them."""
        ends = [num2date(value - _CYCLE, tz=THAI) for value in sorted((vmin, vmax))]  # type: ignore[no-untyped-call]
        return [value + _CYCLE for value in super().tick_values(*ends)]  # type: ignore[no-untyped-call]


class ThaiTicks(Formatter):
    """Times of day, with the date below the first of each day; dates alone where days are far."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002
        """The text of one instant, as the cursor shows it."""
        ms = round(x * DAY_MS)
        return f"{date_text(ms)} {thai(ms):%H:%M}"

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """The texts of all ticks of an axis."""
        instants = [round(value * DAY_MS / 1000) * 1000 for value in values]
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
    """Date and time below each other, on every tick."""

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002
        """The text of one instant."""
        ms = round(x * DAY_MS / 60_000) * 60_000
        weekday, day, month, _ = date_text(ms).split()
        return f"{weekday} {day} {month}\n{thai(ms):%H:%M}"


def instant_axis(axis: Axis) -> None:
    """Make an axis that is not the one of time, such as y, show instants of Thai time."""
    axis.set_major_locator(ThaiDates())
    axis.set_major_formatter(ThaiInstants())


def time_axis(ax: Axes, start: int, end: int) -> str:
    """Make x the Thai time from `start` to `end` (ms); returns the label that it is to bear."""
    margin = max((end - start) // 50, 1000)
    ax.set_xlim(float(days(start - margin)), float(days(end + margin)))
    ax.xaxis.set_major_locator(ThaiDates())
    ax.xaxis.set_major_formatter(ThaiTicks())
    years = sorted({thai(start).year, thai(end).year})
    return f"Thai time, {'–'.join(map(str, years))}"


def shade(ax: Axes, spans: Spans, label: str = "window open", color: str = OPEN) -> None:
    """Shade spans of time from the bottom to the top of a drawing."""
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
