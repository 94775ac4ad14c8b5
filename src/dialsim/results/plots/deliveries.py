"""Webhook deliveries: what became of the results, by when they were sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from dialsim.results.plots.grain import edges
from dialsim.results.plots.ink import GREEN, GREY, ORANGE, OUTAGE, SKY, VERMILION
from dialsim.results.plots.picture import canvas, count_axis, dress, key, note
from dialsim.results.plots.scope import Scope
from dialsim.results.plots.thai_axis import days, shade, time_axis
from dialsim.results.spans import Spans
from dialsim.results.stream.delivery_tally import Fate, fates
from dialsim.results.thai_time import duration_text

_LOOKS = {
    Fate.AT_FIRST_TRY: ("at first try", GREEN),
    Fate.AFTER_RETRIES: ("after retries", ORANGE),
    Fate.LOST: ("lost", VERMILION),
    Fate.PENDING: ("pending", SKY),
    Fate.WITHOUT_URL: ("no URL: kept, not sent", GREY),
}
_PIECES = 60


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Counts of results: `count[fate, k]` were first sent between `edges[k]` and `edges[k + 1]`.

    `edges` are instants in ms; a result without a URL stands where it would have been sent.
    """

    edges: NDArray[np.int64]
    count: NDArray[np.int64]

    @classmethod
    def of(cls, scope: Scope) -> Deliveries:
        """Those of the campaigns in a scope."""
        streams = [scope.reading.streams[position] for position in scope.positions]
        sent = [stream.notices.sent_at for stream in streams]
        last = max([scope.end, *(int(at.max()) for at in sent if len(at))])
        cut = edges(scope.start, last + 1, _PIECES)
        count = np.zeros((len(Fate), len(cut) - 1), dtype=np.int64)
        for stream, at in zip(streams, sent, strict=True):
            # a campaign cancelled before the first startAt may have something to tell of
            piece = np.clip(np.searchsorted(cut, at, side="right") - 1, 0, None)
            np.add.at(count, (fates(stream), piece), 1)
        return cls(cut, count)


def draw_deliveries(scope: Scope, ax: Axes | None) -> Axes:
    """Stacked bars of results by the time of their first POST; outages of the receiver shaded."""
    ax = canvas(ax)
    deliveries = Deliveries.of(scope)
    cut, width = deliveries.edges, int(deliveries.edges[1] - deliveries.edges[0])
    for organization in dict.fromkeys(o for o, _ in scope.positions):
        shade(ax, _outages(scope, organization), "outage of the receiver", OUTAGE)
    bottom = np.zeros(len(cut) - 1)
    for fate, (label, color) in _LOOKS.items():
        count = deliveries.count[fate]
        if count.any():
            ax.bar(
                days(cut[:-1]),
                count,
                float(days(width)) * 0.9,
                bottom,
                align="edge",
                color=color,
                label=label,
            )
            bottom = bottom + count
    time = time_axis(ax, scope.start, int(cut[-1]))
    count_axis(ax)
    if not deliveries.count.any():
        note(ax, "There was no result to tell of.")
    dress(ax, scope.title("Results to the webhook"), time, f"results per {duration_text(width)}")
    key(ax)
    return ax


def _outages(scope: Scope, organization: int) -> Spans:
    """Those of the simulated receiver, where there is one (W5)."""
    if scope.reading.trace.posts is not None:
        return np.empty((0, 2), np.int64)
    webhook = scope.reading.world.organizations[organization].settings.webhook
    outages = webhook.receiver.outages if webhook is not None else ()
    return np.array([(outage.from_, outage.to) for outage in outages], np.int64).reshape(-1, 2)
