"""Grain: how finely time is cut where a picture could not show every event."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialsim.results.step_function import StepFunction

_SECOND, _MINUTE, _HOUR = 1_000, 60_000, 3_600_000
_WIDTHS = (
    *(count * _SECOND for count in (1, 5, 10, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 30)),
    *(count * _HOUR for count in (1, 2, 6, 12, 24)),
)
"""Widths that divide an hour or a day, so that edges fall on the hours at which windows open."""

MOST_POINTS = 600
_BINS = 300


def edges(start: int, end: int, most: int = _BINS) -> NDArray[np.int64]:
    """Edges (ms) of about at most that many equal pieces from `start` to `end`, both covered."""
    width = next((width for width in _WIDTHS if (end - start) <= width * most), _WIDTHS[-1])
    first, last = start // width, -(-max(end, start + 1) // width)
    return np.arange(first, last + 1, dtype=np.int64) * width


def steps(
    function: StepFunction, start: int, end: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """A step function from `start` to `end`, to be drawn with steps after each instant.

    Instants (ms), values, and the width in ms of the pieces over which the values are means; 0
    where every change is there as it was. The last value is that at `end`.
    """
    inside = (function.at > start) & (function.at < end)
    if np.count_nonzero(inside) <= MOST_POINTS:
        at = np.concatenate([[start], function.at[inside], [end]])
        return at, function(at).astype(np.float64), 0
    cut = edges(start, end)
    means = function.means(cut)
    return cut, np.append(means, means[-1]), int(cut[1] - cut[0])


def thinned(count: int) -> NDArray[np.int64]:
    """Which of so many points to draw: all, or `MOST_POINTS` spread evenly, the last included."""
    if count <= MOST_POINTS:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, MOST_POINTS).round().astype(np.int64))
