"""Reach by attempt: what share of the people each further attempt has reached."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dialsim.results.held_back import percent
from dialsim.results.person_state import listed
from dialsim.results.plots.ink import BLUE, SKY, TEXT, families
from dialsim.results.plots.picture import canvas, dress, key, note, share_axis
from dialsim.results.plots.scope import Scope
from dialsim.results.tally import reached_by_attempt

_MOST_LABELS = 10


def reach_shares(scope: Scope) -> NDArray[np.float64]:
    """The share of people reached by attempt 1, by attempt 2, …: as `reach_by_attempt`."""
    reading = scope.reading
    parts = [
        reached_by_attempt(reading.ledgers[position], reading.states[position])
        for position in scope.positions
    ]
    people = sum(int(listed(reading.states[position]).sum()) for position in scope.positions)
    reached = np.zeros(max(map(len, parts), default=0), dtype=np.int64)
    for part in parts:
        reached[: len(part)] += part
    return np.cumsum(reached) / max(people, 1)


def draw_reach(scope: Scope, ax: Axes | None) -> Axes:
    """A bar per attempt: the share reached before it, and what it adds."""
    ax = canvas(ax)
    shares = reach_shares(scope)
    attempts = np.arange(1, len(shares) + 1)
    before = np.concatenate([np.zeros(1), shares[:-1]])[: len(shares)]
    ax.bar(attempts, before, 0.7, color=SKY, alpha=0.5, label="reached before")
    ax.bar(attempts, shares - before, 0.7, before, color=BLUE, label="reached by this attempt")
    share_axis(ax)
    if len(shares) <= _MOST_LABELS:
        for attempt, share in zip(attempts, shares, strict=True):
            ax.text(
                float(attempt),
                float(share) + 0.02,
                percent(share),
                ha="center",
                family=list(families()),
                fontsize=9,
                color=TEXT,
            )
    if not len(shares):
        note(ax, "Nobody was called.")
    ax.set_ylim(0, min(1.0, float(shares.max(initial=0.5)) * 1.2 + 0.05))
    ax.set_xlim(0.4, max(len(shares), 2) + 0.6)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    dress(ax, scope.title("Reach by attempt"), "attempt", "share of people")
    key(ax)
    return ax
