"""Plots of the outcomes of calls: ends by hour, reach by attempt, hours of answers, the funnel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from dialsim.engine.log_reader import NOT_HAPPENED, TIMES_OUT, Calls
from dialsim.engine.trace import ENDED
from dialsim.interface import CallStatus
from dialsim.interface.instants import DAY, HOUR, THAI_OFFSET, WEEKDAYS, duration_text, hour_text
from dialsim.interface.phrases import percent
from dialsim.results.plots.drawing import (
    BLUE,
    EMPTY,
    GREEN,
    GREY,
    GRID,
    MAP,
    ON_DARK,
    ON_LIGHT,
    ORANGE,
    PAPER,
    PURPLE,
    SKY,
    TEXT,
    VERMILION,
    Extent,
    canvas,
    count_axis,
    days,
    dress,
    edges,
    families,
    letters,
    note,
    share_axis,
    show_values,
    stacked_bars,
    time_axis,
)
from dialsim.results.run_view import RunPart
from dialsim.results.summary import CampaignSummary

_GAP = 0.9
"""Gap between the bars of two agents, in bars."""


@dataclass(frozen=True, slots=True)
class FunnelCounts:
    """People of the campaigns of one agent, by the step that they reached.

    `steps` are names and counts: people, people reached, and analyzed conversations that reached
    each step of the agent's funnel.
    """

    organization: str
    agent: str
    steps: tuple[tuple[str, int], ...]


def funnels(campaigns: Iterable[CampaignSummary]) -> list[FunnelCounts]:
    """Return the counts of each agent with a funnel."""
    by_agent: dict[tuple[str, str], list[CampaignSummary]] = {}
    for campaign in campaigns:
        if campaign.analyses.funnel:
            agent = campaign.analyses.funnel[0].agent
            by_agent.setdefault((campaign.organization, agent), []).append(campaign)
    return [FunnelCounts(*position, _steps(parts)) for position, parts in by_agent.items()]


def _steps(campaigns: Sequence[CampaignSummary]) -> tuple[tuple[str, int], ...]:
    steps = zip(*(campaign.analyses.funnel for campaign in campaigns), strict=True)
    return (
        ("people", sum(campaign.people for campaign in campaigns)),
        ("reached", sum(campaign.people_reached for campaign in campaigns)),
        *((counts[0].step, sum(count.reached for count in counts)) for counts in steps),
    )


def draw_funnel(shown: Sequence[FunnelCounts], name: str, ax: Axes | None = None) -> Axes:
    """Draw bars from the people of each agent down to its last step; `name` ends the title."""
    ax = canvas(ax)
    most = max((count for funnel in shown for _, count in funnel.steps), default=1) or 1
    y, ticks = 0.0, {}
    said: list[tuple[Extent, Extent, str]] = []
    for funnel in shown:
        if len(shown) > 1:
            _write(ax, 0, y, f"{funnel.organization}, {funnel.agent}", weight="bold")
            y += 1
        people = funnel.steps[0][1]
        for number, (step, count) in enumerate(funnel.steps):
            ax.barh(y, count, 0.7, color=(GREY, BLUE, ORANGE)[min(number, 2)])
            share = f" ({percent(count / people)})" if people else ""
            _write(ax, count + most * 0.01, y, f"{count:,}{share}")
            ticks[y] = step
            said.append((None, (y - 0.5, y + 0.5), f"{step}: {count:,} of {people:,}"))
            y += 1
        y += _GAP
    ax.set_yticks([*ticks], [*ticks.values()])
    ax.set_ylim(max(y - _GAP, 1) - 0.4, -0.6)
    ax.grid(visible=False)
    ax.set_xlim(0, most * 1.25)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    show_values(ax, said)
    if not shown:
        note(ax, "No agent has a funnel.")
    title = f"Funnel: {name}" if name else "Funnel"
    return dress(ax, title, "people, and conversations analyzed", "")


def _write(ax: Axes, x: float, y: float, text: str, weight: str = "normal") -> None:
    ax.text(x, y, text, va="center", fontweight=weight, **letters())


_MOST_LABELS = 10


def reach_shares(part: RunPart) -> NDArray[np.float64]:
    """Return the shares of people reached by attempt 1, 2, …"""
    reached = [part.calls.reached[attempt] for attempt in sorted(part.calls.reached)]
    return np.cumsum(reached) / max(part.people.people, 1)


def draw_reach(part: RunPart, ax: Axes | None) -> Axes:
    """Draw a bar per attempt: the share reached before it, and its addition."""
    ax = canvas(ax)
    shares = reach_shares(part)
    attempts = np.arange(1, len(shares) + 1)
    before = np.concatenate([np.zeros(1), shares[:-1]])[: len(shares)]
    ax.bar(attempts, before, 0.7, color=SKY, alpha=0.5, label="reached before")
    ax.bar(attempts, shares - before, 0.7, before, color=BLUE, label="reached by this attempt")
    share_axis(ax)
    if len(shares) <= _MOST_LABELS:
        for attempt, share in zip(attempts, shares, strict=True):
            ax.text(float(attempt), float(share) + 0.02, percent(share), ha="center", **letters(9))
    show_values(ax, [
        ((attempt - 0.5, attempt + 0.5), None,
         f"attempt {attempt}: {100 * share:.1f} % reached by it or before, "
         f"{100 * (share - earlier):.1f} % by it")
        for attempt, share, earlier in zip(attempts.tolist(), shares, before, strict=True)
    ])  # fmt: skip
    if not len(shares):
        note(ax, "Nobody was called.")
    ax.set_ylim(0, min(1.0, float(shares.max(initial=0.5)) * 1.2 + 0.05))
    ax.set_xlim(0.4, max(len(shares), 2) + 0.6)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    return dress(ax, part.title("Reach by attempt"), "attempt", "share of people")


_LEAST_HOURS, _MOST_HOURS = 6, 10 * 24

ENDS = ("answered", "no answer", "busy", "failed", "other", "queue timeout")
_COLORS = (GREEN, SKY, ORANGE, VERMILION, GREY, PURPLE)
_STATUSES = (CallStatus.COMPLETED, CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED)


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """Counts of calls by time and end.

    `at` are the starts of the pieces of time (ms, int64) and `width` their length: an hour, a Thai
    day in long runs, less in short ones. `count[k]` belongs to `ENDS[k]`. A call counts at its
    dial, or at its queue timeout. `other` are dialled calls that were under way at the end, or were
    dropped.
    """

    at: NDArray[np.int64]
    width: int
    count: NDArray[np.int64]

    @classmethod
    def of(cls, part: RunPart) -> OutcomeCounts:
        """Count the calls of the campaigns in a part."""
        width = _width(part.end - part.start)
        first = (part.start + THAI_OFFSET) // width
        pieces = (part.end + THAI_OFFSET) // width - first + 1
        count = np.zeros((len(ENDS), pieces), dtype=np.int64)
        for calls in [own.calls for own in part.campaigns]:
            instants, ends = _calls(calls)
            piece = (instants + THAI_OFFSET) // width - first
            # Calls under way may end after their campaign was cancelled, beyond the last piece.
            inside = (piece >= 0) & (piece < pieces)
            np.add.at(count, (ends[inside], piece[inside]), 1)
        at = (first + np.arange(pieces)) * width - THAI_OFFSET
        return cls(at, width, count)


def _width(length: int) -> int:
    if length > _MOST_HOURS * HOUR:
        return DAY
    if length >= _LEAST_HOURS * HOUR:
        return HOUR
    cut = edges(0, length, 36)
    return int(cut[1] - cut[0])


def _calls(calls: Calls) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the instant at which each call counts and its end; calls neither dialled nor timed
    out are left out.
    """
    timed_out = TIMES_OUT[calls.last_kind]
    known = [calls.last_kind == ENDED[status] for status in _STATUSES]
    ends = np.select([*known, timed_out], [0, 1, 2, 3, 5], default=4)
    at = np.where(timed_out, calls.ended_at, calls.initiated_at)
    return at[at != NOT_HAPPENED], ends[at != NOT_HAPPENED]


def draw_outcomes(part: RunPart, ax: Axes | None) -> Axes:
    """Draw stacked bars of calls by hour and end."""
    ax = canvas(ax)
    outcomes = OutcomeCounts.of(part)
    at, width = outcomes.at, outcomes.width
    gap = width // 12
    layers = dict(zip(ENDS, zip(_COLORS, outcomes.count, strict=True), strict=True))
    bars = days(at + gap // 2), float(days(width - gap))
    stacked_bars(ax, at, width, bars, layers, always=("answered", "no answer"))
    time = time_axis(ax, int(at[0]), int(at[-1]) + width)
    count_axis(ax)
    unit = {HOUR: "hour", DAY: "day"}.get(width, duration_text(width))
    return dress(ax, part.title(f"Calls by {unit} and end"), time, f"calls per {unit}")


_LEAST_RANGE = 0.2
_SHADES = 40
_MONDAY = 3  # 1970-01-01 was a Thursday


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Ended dials, and the answered ones among them, by weekday and hour (7 × 24).

    The time is that of the dial, in Thai time; Monday is row 0.
    """

    # One attempt of each person: later attempts go to people who are harder to reach, so that hours
    # with many of them would look worse than they are.
    attempts: NDArray[np.int64]
    answered: NDArray[np.int64]

    @classmethod
    def of(cls, part: RunPart, attempt: int) -> AnswerCounts:
        """Count the calls of the campaigns of a part of a run; histories add to the ordinal of an
        attempt (P5).
        """
        attempts, answered = np.zeros((2, 7, 24), dtype=np.int64)
        for calls in [own.calls for own in part.campaigns]:
            counted = calls.counted & (calls.attempt == attempt)
            thai = calls.initiated_at[counted] + THAI_OFFSET
            cell = (thai // DAY + _MONDAY) % 7, thai % DAY // HOUR
            np.add.at(attempts, cell, 1)
            yes = calls.started_at[counted] != NOT_HAPPENED
            np.add.at(answered, (cell[0][yes], cell[1][yes]), 1)
        return cls(attempts, answered)

    @property
    def share(self) -> NDArray[np.float64]:
        """Answered ÷ attempts; NaN without attempts."""
        none = np.full(self.attempts.shape, np.nan)
        share: NDArray[np.float64] = np.divide(
            self.answered, self.attempts, out=none, where=self.attempts > 0
        )
        return share


def draw_answers(part: RunPart, attempt: int, ax: Axes | None) -> Axes:
    """Draw a heat map, weekday by hour, without the hours before the first and after the last
    dial.
    """
    ax = canvas(ax)
    answers = AnswerCounts.of(part, attempt)
    hours = np.flatnonzero(answers.attempts.any(axis=0))
    which = "First attempts" if attempt == 1 else f"Attempts no. {attempt}"
    title = part.title(f"{which} answered, by weekday and hour")
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
    show_values(ax, [
        ((hour, hour + 1), (day, day + 1),
         f"{WEEKDAYS[day]} {hour_text(hour)}: {answers.answered[day, hour]:,} of "
         f"{answers.attempts[day, hour]:,} answered ({percent(answers.share[day, hour])})")
        for day, hour in np.argwhere(answers.attempts).tolist()
    ])  # fmt: skip
    if last - first <= 12:
        _write_shares(ax, shown, first, norm)
    _draw_scale(ax, mesh)
    return ax


def _write_shares(
    ax: Axes, shown: NDArray[np.float64], first: int, norm: mpl.colors.Normalize
) -> None:
    """Write the share in percent in each cell, light on dark and dark on light."""
    for (day, hour), share in np.ndenumerate(shown):
        if not np.isnan(share):
            ax.text(
                first + hour + 0.5,
                day + 0.5,
                f"{100 * share:.0f}",
                ha="center",
                va="center",
                **letters(8, ON_DARK if norm(share) < 0.6 else ON_LIGHT),
            )


def _draw_scale(ax: Axes, mesh: mpl.collections.QuadMesh) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    scale = figure.colorbar(mesh, ax=ax, format=PercentFormatter(xmax=1, decimals=0, symbol=" %"))
    scale.locator = MaxNLocator(nbins=6, steps=[1, 2, 5, 10])
    scale.outline.set_visible(False)
    assert scale.solids is not None
    # The SVG would contain a bitmap otherwise.
    scale.solids.set_rasterized(False)
    scale.ax.tick_params(
        labelfontfamily=list(families()), labelsize=8.5, labelcolor=TEXT, color=GRID
    )
    scale.set_label("answered, of those dialled", **letters(9))
