"""The chart of slots in use against the limit: SVG made of steps, and the same in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialsim.results.step_function import StepFunction
from dialsim.sandbox.page.slot_use import MINUTE, SlotUse
from dialsim.sandbox.page.view import Span

WIDTH, HEIGHT = 600, 100


@dataclass(frozen=True, slots=True)
class SlotChart:
    """The parts of the picture: `d` attributes in a box of WIDTH × HEIGHT.

    `top` is the number of slots at the upper edge, `begins`, `middle` and `ends` are instants (ms)
    of the time axis, `peak` and `mean` what the whole time shown comes to.
    """

    peak_path: str
    mean_path: str
    limit_path: str
    top: int
    begins: int
    middle: int
    ends: int
    peak: int
    mean: float

    @classmethod
    def of(cls, use: SlotUse, limit: StepFunction, span: Span) -> SlotChart:
        """Draw the last stretch of virtual time."""
        columns = use.columns(span.minutes, span.columns)
        width = span.minutes * MINUTE
        allowed = limit(np.maximum(columns.at + width - 1, limit.at[0]))
        top = max(int(columns.peak.max()), int(allowed.max()), 1)
        return cls(
            peak_path=_steps(columns.peak, top, closed=True),
            mean_path=_steps(columns.mean, top, closed=True),
            limit_path=_steps(allowed, top, closed=False),
            top=top,
            begins=int(columns.at[0]),
            middle=int(columns.at[0]) + span.columns * width // 2,
            ends=int(columns.at[-1]) + width,
            peak=int(columns.peak.max()),
            mean=float(columns.mean.mean()),
        )


def _steps(values: NDArray[np.int64] | NDArray[np.float64], top: int, *, closed: bool) -> str:
    """A line that goes along each column at its height; `closed` has it stand on the ground."""
    step = WIDTH / len(values)
    heights = np.round(HEIGHT * (1 - values / top), 1)
    turns = np.flatnonzero(np.diff(heights)) + 1
    path = [f"M0 {HEIGHT}V{heights[0]:g}" if closed else f"M0 {heights[0]:g}"]
    path += [f"H{turn * step:g}V{heights[turn]:g}" for turn in turns.tolist()]
    path.append(f"H{WIDTH}V{HEIGHT}Z" if closed else f"H{WIDTH}")
    return "".join(path)
