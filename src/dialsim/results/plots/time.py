"""Plots over time: progress, lines in use, the queue, and deliveries of webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dialsim.interface.instants import DAY, duration_text, minute_text, short_text
from dialsim.results.campaigns import Spans
from dialsim.results.counts import Fate, fates, first_day, queue_waits
from dialsim.results.plots.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    OUTAGE,
    SKY,
    TEXT,
    VERMILION,
    canvas,
    count_axis,
    days,
    dress,
    edges,
    families,
    letters,
    note,
    piece_text,
    shade,
    show_values_over_time,
    stacked_bars,
    steps,
    thinned,
    time_axis,
    value_pieces,
)
from dialsim.results.run_view import ProgressCurve, RunPart
from dialsim.results.time_use import StepFunction


def draw_occupancy(part: RunPart, ax: Axes | None) -> Axes:
    """Draw calls under way and maxConcurrentCalls; many changes are drawn as means."""
    ax = canvas(ax)
    use = part.lines()
    shade(ax, part.open)
    at, busy, width = steps(use.busy, part.start, part.end)
    label = f"lines in use (mean of {duration_text(width)})" if width else "lines in use"
    ax.fill_between(days(at), busy, step="post", color=SKY, alpha=0.45, linewidth=0)
    ax.plot(days(at), busy, drawstyle="steps-post", color=BLUE, linewidth=1.2, label=label)
    at, allowed, _ = steps(use.allowed, part.start, part.end)
    ax.plot(
        days(at), allowed, drawstyle="steps-post", color=VERMILION, linewidth=1.6, label="limit"
    )
    time = time_axis(ax, part.start, part.end)
    count_axis(ax)
    ax.set_ylim(0, max(float(allowed.max()), float(busy.max()), 1) * 1.08)
    pieces = value_pieces(part.start, part.end)
    limits = use.allowed(np.array([since for since, _ in pieces]))
    show_values_over_time(ax, [
        (since, until, f"{piece_text(since, until)}: {busy_mean:.1f} lines "
         f"in use on average, limit {limit:,.0f}")
        for (since, until), busy_mean, limit
        in zip(pieces, _means(use.busy, pieces), limits, strict=True)
    ])  # fmt: skip
    return dress(ax, part.title("Lines in use"), time, "lines")


def _means(function: StepFunction, pieces: Sequence[tuple[int, int]]) -> list[float]:
    """Return the mean of a step function over each of consecutive pieces of time."""
    cut = np.array([*(since for since, _ in pieces), pieces[-1][1]])
    means: list[float] = function.means(cut).tolist()
    return means


def draw_progress(part: RunPart, ax: Axes | None) -> Axes:
    """Draw people reached and settled over time."""
    progress = ProgressCurve(part.campaigns)
    ax = canvas(ax)
    shade(ax, part.open)
    ax.axhline(progress.people, color=GREY, linewidth=1, linestyle=(0, (4, 3)), label="all people")
    _curve(ax, progress.done, part, SKY, "done with")
    _curve(ax, progress.reached, part, BLUE, "reached")
    _finish(ax, part, progress)
    label = time_axis(ax, part.start, part.end)
    count_axis(ax)
    ax.set_ylim(0, max(progress.people, 1) * 1.12)
    show_values_over_time(ax, [
        (since, until, f"{short_text(until)}: {_until(progress.reached, until)} reached, "
         f"{_until(progress.done, until)} done with, of {progress.people:,} people")
        for since, until in value_pieces(part.start, part.end)
    ])  # fmt: skip
    return dress(ax, part.title("Progress"), label, "people")


def _until(at: NDArray[np.int64], instant: int) -> str:
    return f"{np.searchsorted(at, instant, side='right'):,}"


def _curve(ax: Axes, at: NDArray[np.int64], part: RunPart, color: str, label: str) -> None:
    """Draw a count that increases by one at each instant."""
    shown = thinned(len(at))
    x = np.concatenate([[part.start], at[shown], [part.end]])
    y = np.concatenate([[0], shown + 1, [len(at)]])
    ax.plot(days(x), y, drawstyle="steps-post", color=color, linewidth=2, label=label)


def _finish(ax: Axes, part: RunPart, progress: ProgressCurve) -> None:
    """Mark the finish of the last campaign, if all of them have one."""
    finishes = [own.finish for own in part.campaigns if own.life.request is not None]
    if not finishes or None in finishes:
        return
    finish = max(at for at in finishes if at is not None)
    ax.plot([float(days(finish))], [len(progress.done)], "o", color=BLACK, markersize=5)
    ax.annotate(
        f"finish {minute_text(finish)}",
        (float(days(finish)), progress.people),
        xytext=(0, 5),
        textcoords="offset points",
        ha="right",
        **letters(8.5, BLACK),
    )


def draw_value(part: RunPart, ax: Axes | None) -> Axes:
    """Draw the value of results by the day of the conversation."""
    ax, scenario = canvas(ax), part.reading.world.scenario
    value = part.value_by_day
    worth = np.zeros(1) if value is None else value
    at = first_day(scenario) + DAY * np.arange(len(worth))
    currency = scenario.costs.currency if scenario.costs else "value"
    layers = {currency: (GREEN, np.rint(worth).astype(np.int64))}
    stacked_bars(ax, at, DAY, (days(at + DAY // 10), 0.8), layers, always=(currency,))
    label = time_axis(ax, int(at[0]), int(at[-1]) + DAY)
    count_axis(ax)
    ax.set_ylim(bottom=min(0.0, 1.1 * float(worth.min())))
    if value is None:
        note(ax, "The scenario names no value.")
    return dress(ax, part.title("Value of results by day"), label, f"{currency} per day")


_QUEUE_PIECES = 60


@dataclass(frozen=True, slots=True)
class QueueWaits:
    """Waits in the queue by the time of their end: `at` are the middles of pieces of time (ms).

    `median_s` and `p95_s` are in seconds; pieces without an ended wait are left out.
    """

    at: NDArray[np.int64]
    median_s: NDArray[np.float64]
    p95_s: NDArray[np.float64]

    @classmethod
    def of(cls, part: RunPart) -> QueueWaits:
        """Collect the waits of campaigns; interrupted ones do not count, as in the summary."""
        parts = [queue_waits(calls) for calls in [own.calls for own in part.campaigns]]
        at = np.concatenate([np.empty(0, np.int64), *(left for left, _ in parts)])
        waits = np.concatenate([np.empty(0, np.int64), *(wait for _, wait in parts)])
        cut = edges(part.start, part.end, _QUEUE_PIECES)
        order = np.argsort(at, kind="stable")
        groups = np.split(waits[order], np.searchsorted(at[order], cut[1:-1]))
        filled = [k for k, group in enumerate(groups) if len(group)]
        both = np.array([np.quantile(groups[k], (0.5, 0.95)) / 1000 for k in filled])
        median, p95 = both.reshape(-1, 2).T
        return cls((cut[:-1] + np.diff(cut) // 2)[filled], median, p95)


def draw_queue(part: RunPart, ax: Axes | None) -> Axes:
    """Draw the queue's length as an area, and on the right the waits of calls that left it."""
    ax = canvas(ax)
    shade(ax, part.open)
    at, length, _ = steps(part.lines().queued, part.start, part.end)
    ax.fill_between(
        days(at), length, step="post", color=ORANGE, alpha=0.55, linewidth=0, label="queue length"
    )
    waits = QueueWaits.of(part)
    right = _draw_waits(ax, waits)
    pieces = value_pieces(part.start, part.end)
    means = _means(part.lines().queued, pieces)
    # The axes of the waits lie above the axes of the queue and receive the pointer.
    show_values_over_time(right, [
        (since, until, f"{piece_text(since, until)}: {mean:.1f} calls in the "
         f"queue on average{_waits_text(waits, since, until)}")
        for (since, until), mean in zip(pieces, means, strict=True)
    ])  # fmt: skip
    time = time_axis(ax, part.start, part.end)
    count_axis(ax)
    ax.set_ylim(0, max(float(length.max()), 1) * 1.15)
    right.tick_params(labelfontfamily=list(families()), labelsize=8.5, labelcolor=BLUE)
    return dress(ax, part.title("The queue"), time, "calls in the queue")


def _waits_text(waits: QueueWaits, since: int, until: int) -> str:
    """Format the waits that ended in a piece of time of `QueueWaits`."""
    found = np.flatnonzero((waits.at >= since) & (waits.at < until))
    if not len(found):
        return ""
    median, late = (duration_text(1000 * round(float(values[found[0]])))
                    for values in (waits.median_s, waits.p95_s))  # fmt: skip
    return f"; half waited up to {median}, 95 % up to {late}"


def _draw_waits(ax: Axes, waits: QueueWaits) -> Axes:
    """Draw median and 95th percentile on a second axis, in minutes for long waits."""
    right = ax.twinx()
    longest = float(waits.p95_s.max(initial=1.0))
    unit, seconds = ("min", 60) if longest > 180 else ("s", 1)
    gaps = np.flatnonzero(np.diff(waits.at) > 2 * np.diff(waits.at).min(initial=10**12)) + 1
    x = np.insert(days(waits.at), gaps, np.nan)  # no line across the night
    for values, style, name in ((waits.median_s, "-", "median"), (waits.p95_s, ":", "95 %")):
        y = np.insert(values / seconds, gaps, np.nan)
        right.plot(x, y, style, color=BLUE, linewidth=1.6)
        ax.plot([], [], style, color=BLUE, linewidth=1.6, label=f"wait, {name}")
    right.set_ylim(0, longest / seconds * 1.15)
    right.yaxis.set_major_locator(MaxNLocator(nbins=6))
    right.set_ylabel(f"wait in the queue ({unit})", **letters(9, BLUE))
    for spine in right.spines.values():
        spine.set_visible(False)
    right.tick_params(color=TEXT, length=0)
    return right


_LOOKS = {
    Fate.AT_FIRST_TRY: ("at first try", GREEN),
    Fate.AFTER_RETRIES: ("after retries", ORANGE),
    Fate.LOST: ("lost", VERMILION),
    Fate.PENDING: ("pending", SKY),
    Fate.WITHOUT_URL: ("no URL: kept, not sent", GREY),
}
_DELIVERY_PIECES = 60


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Counts of results: `count[fate, k]` were first sent between `edges[k]` and `edges[k + 1]`.

    `edges` are instants in ms; a result without a URL counts where it would have been sent.
    """

    edges: NDArray[np.int64]
    count: NDArray[np.int64]

    @classmethod
    def of(cls, part: RunPart) -> Deliveries:
        """Count the results of the campaigns in a part."""
        streams = [own.stream for own in part.campaigns]
        sent = [stream.messages.sent_at for stream in streams]
        last = max([part.end, *(int(at.max()) for at in sent if len(at))])
        cut = edges(part.start, last + 1, _DELIVERY_PIECES)
        count = np.zeros((len(Fate), len(cut) - 1), dtype=np.int64)
        for stream, at in zip(streams, sent, strict=True):
            # A campaign cancelled before the first startAt may still send results.
            piece = np.clip(np.searchsorted(cut, at, side="right") - 1, 0, None)
            np.add.at(count, (fates(stream), piece), 1)
        return cls(cut, count)


def draw_deliveries(part: RunPart, ax: Axes | None) -> Axes:
    """Draw stacked bars of results by the time of their first POST, with outages shaded."""
    ax = canvas(ax)
    deliveries = Deliveries.of(part)
    cut, width = deliveries.edges, int(deliveries.edges[1] - deliveries.edges[0])
    for organization in part.organizations:
        shade(ax, _outages(part, organization), "outage of the receiver", OUTAGE)
    layers = {label: (color, deliveries.count[fate]) for fate, (label, color) in _LOOKS.items()}
    stacked_bars(ax, cut[:-1], width, (days(cut[:-1]), float(days(width)) * 0.9), layers)
    time = time_axis(ax, part.start, int(cut[-1]))
    count_axis(ax)
    if not deliveries.count.any():
        note(ax, "No result was sent.")
    per_piece = f"results per {duration_text(width)}"
    return dress(ax, part.title("Results to the webhook"), time, per_piece)


def _outages(part: RunPart, organization: int) -> Spans:
    """Return the outages of the simulated receiver, if any (W5)."""
    if part.reading.trace.posts is not None:
        return np.empty((0, 2), np.int64)
    webhook = part.reading.world.organizations[organization].settings.webhook
    outages = webhook.receiver.outages if webhook is not None else ()
    return np.array([(outage.from_, outage.to) for outage in outages], np.int64).reshape(-1, 2)
