"""The page of a comparison of two logs: each distance, and a picture of what it is taken of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dialsim.engine.windows import HOUR
from dialsim.evidence.answering import ANSWERED
from dialsim.evidence.distances import OUTCOMES, Profile
from dialsim.report.page import Fact, Grid, Notes, Part, ReportPage, Section, picture
from dialsim.results.plots.drawing import (
    BLACK,
    CYCLE,
    GREY,
    ORANGE,
    count_axis,
    days,
    dress,
    share_axis,
    time_axis,
)
from dialsim.results.summary_text import FigureTable
from dialsim.results.thai_time import minute_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dialsim.evidence.log_comparison import Compared, LogComparison, Side

_SHOWN_RUNS = 20
"""So many of the further runs are drawn: enough to see what chance does."""
Values = NDArray[np.float64]


class Curve(NamedTuple):
    """What is drawn of a log: `x` and `y`, of equal length."""

    x: Values
    y: Values


class _Logs(NamedTuple):
    """The two logs of a comparison, and further runs of the model."""

    real: Profile
    simulated: Profile
    others: tuple[Profile, ...]


def log_comparison_page(found: LogComparison) -> ReportPage:
    """The page of a comparison."""
    beyond = len(found.beyond_noise)
    return ReportPage(
        title=f"{found.simulated.source} against {found.real.source}",
        lead="How far is the simulated log from the real one?",
        answer=found.sentence,
        facts=[
            _side_fact("What is REAL?", found.real),
            _side_fact("What is SIMULATED?", found.simulated),
            Fact(
                "How many distances are beyond noise?",
                f"{beyond} of {len(found.distances)}",
                f"Noise is how far {found.replications} further runs of {found.noise} are apart.",
            ),
        ],
        sections=[*_sections(found)],
        made_from="Made by dialsim compare-log "
        f"from {found.real.source} and {found.simulated.source}.",
    )


def _side_fact(question: str, side: Side) -> Fact:
    found = side.profile
    span = f"{minute_text(found.first)} to {minute_text(found.last)} Thai time"
    said = f"{found.calls:,} calls to {found.people:,} people"
    return Fact(question, said, f"{side.source}, {span}.")


def _sections(found: LogComparison) -> Iterator[Section]:
    logs = _Logs(found.real.profile, found.simulated.profile, found.others[:_SHOWN_RUNS])
    pictures = [
        picture(key, partial(draw, logs), caption)
        for key, draw, caption in (
            ("outcomes", _draw_outcomes, "How attempts end: solid lines are REAL, dashed ones "
             "SIMULATED."),
            ("answered", _draw_answered, "Calls that are answered, by hour of the day."),
            ("hours", _draw_hours, "Starts and ends of calls in each hour."),
            ("week", _draw_week, "Starts and ends of calls by hour of the day."),
            ("talk", _draw_talks, "Calls that talk for so long at most."),
            ("gaps", _draw_gaps, "Gaps between attempts of a person that last so long "
             "at most."),
            ("progress", _draw_progress, "Calls that have been made by then: the end of a "
             "line is the finish."),
        )
    ]  # fmt: skip
    said = (
        "REAL is black, SIMULATED orange and dashed; grey are further runs of the model, which "
        "show what chance does."
    )
    parts: list[Part] = [said, Grid(pictures)]
    yield Section("What the logs show", parts)
    table: list[Part] = [_table(found)]
    if found.untold is not None:
        table.append(Notes([f"Not compared where there is no number: {found.untold}."]))
    yield Section("All distances", table)


def _table(found: LogComparison) -> FigureTable:
    heads = ("distance", "noise up to", "from other runs (95 %)", "beyond noise")
    return FigureTable("Distance", heads, tuple(map(_row, found.distances)))


def _row(one: Compared) -> tuple[str, ...]:
    unit = f", {one.metric.unit}" if one.metric.unit else ""
    name = f"{one.metric.name}{unit}"
    if np.isnan(one.distance):
        return name, "–", "–", "–", "–"
    distance, floor, low, high = map(one.metric.text, (one.distance, one.floor, one.low, one.high))
    return name, distance, floor, f"{low} to {high}", "yes" if one.beyond_noise else "no"


def _draw_outcomes(logs: _Logs, ax: Axes) -> Axes:
    for side, style in ((logs.real, "-"), (logs.simulated, "--")):
        counts = side.attempts.sum(axis=1)
        there = np.flatnonzero(counts)
        shares = side.attempts[there] / counts[there, None]
        for outcome, name in enumerate(OUTCOMES):
            ax.plot(
                there + 1, shares[:, outcome], style, color=CYCLE[outcome], marker="o",
                markersize=3, label=name if style == "-" else None,
            )  # fmt: skip
    share_axis(ax)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return dress(ax, "Outcomes by attempt", "attempt", "calls")


def _draw_sides(
    ax: Axes,
    curve: Callable[[Profile], Curve],
    logs: _Logs,
    drawstyle: str = "default",
) -> None:
    """Draw a curve of each log, over those of further runs."""
    for number, run in enumerate(logs.others):
        label = None if number else "other runs"
        ax.plot(*curve(run), color=GREY, linewidth=0.5, alpha=0.6, drawstyle=drawstyle, label=label)
    ax.plot(*curve(logs.real), color=BLACK, linewidth=1.4, drawstyle=drawstyle, label="REAL")
    ax.plot(
        *curve(logs.simulated), color=ORANGE, linewidth=1.4, linestyle="--", drawstyle=drawstyle,
        label="SIMULATED",
    )  # fmt: skip


def _draw_answered(logs: _Logs, ax: Axes) -> Axes:
    def curve(side: Profile) -> Curve:
        calls, answered = side.answering
        return Curve(np.arange(24.0), np.where(calls > 0, answered / np.maximum(calls, 1), np.nan))

    _draw_sides(ax, curve, logs, "steps-post")
    share_axis(ax)
    return dress(ax, f"{OUTCOMES[ANSWERED].capitalize()} by hour", "hour of the day", "calls")


def _draw_hours(logs: _Logs, ax: Axes) -> Axes:
    first = min(logs.real.first, logs.simulated.first) // HOUR
    last = max(logs.real.last, logs.simulated.last) // HOUR + 1

    def curve(side: Profile) -> Curve:
        at, counts = side.hours
        place = at.astype(np.int64) - first
        inside = (place >= 0) & (place <= last - first)
        each = np.zeros(last - first + 1)
        each[place[inside]] = counts[inside]
        return Curve(days(np.arange(first, last + 1) * HOUR), each)

    _draw_sides(ax, curve, logs, "steps-post")
    count_axis(ax)
    return dress(ax, "Calls hour by hour", time_axis(ax, first * HOUR, last * HOUR), "an hour")


def _draw_week(logs: _Logs, ax: Axes) -> Axes:
    def curve(side: Profile) -> Curve:
        counts = side.week.sum(axis=0)
        return Curve(np.arange(24.0), counts / counts.sum())

    _draw_sides(ax, curve, logs, "steps-post")
    share_axis(
        ax, 1.1 * max(curve(side).y.max() for side in (logs.real, logs.simulated, *logs.others))
    )
    return dress(ax, "Hour of the day", "hour of the day", "starts and ends")


def _draw_talks(logs: _Logs, ax: Axes) -> Axes:
    _draw_distribution(ax, lambda side: side.talks / 1_000.0, logs)
    return dress(ax, "Talk time", "seconds", "answered calls")


def _draw_gaps(logs: _Logs, ax: Axes) -> Axes:
    _draw_distribution(ax, lambda side: side.gaps / HOUR, logs)
    return dress(ax, "Gaps between attempts", "hours", "gaps")


def _draw_distribution(ax: Axes, values: Callable[[Profile], Values], logs: _Logs) -> None:
    """Draw the distributions of sorted values, by their percentiles."""
    parts = np.linspace(0.0, 1.0, 201)

    def curve(side: Profile) -> Curve:
        of = values(side)
        return Curve(np.quantile(of, parts), parts) if len(of) else Curve(of, of)

    _draw_sides(ax, curve, logs)
    share_axis(ax)


def _draw_progress(logs: _Logs, ax: Axes) -> Axes:
    def curve(side: Profile) -> Curve:
        at = np.array([side.first, *side.moments, side.last], dtype=np.float64)
        return Curve(days(at), np.linspace(0.0, 1.0, len(at)))

    _draw_sides(ax, curve, logs)
    share_axis(ax)
    start = min(logs.real.first, logs.simulated.first)
    end = max(logs.real.last, logs.simulated.last)
    return dress(ax, "Progress", time_axis(ax, start, end), "calls made")
