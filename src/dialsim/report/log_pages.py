"""Reports on logs: a calibration, and a comparison of two logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dialsim.interface.instants import HOUR, at_text, minute_text
from dialsim.logs.answering import ANSWERED
from dialsim.logs.backtest import Backtest
from dialsim.logs.behaviour_text import estimate_rows
from dialsim.logs.calibrate import draw_factors, draw_times, levels_of
from dialsim.logs.distances import OUTCOMES, Profile
from dialsim.report.page import Fact, Grid, Notes, Part, Picture, ReportPage, Section, picture
from dialsim.results.plots.drawing import (
    BLACK,
    BLUE,
    CYCLE,
    GREY,
    GRID,
    ORANGE,
    count_axis,
    days,
    dress,
    share_axis,
    time_axis,
)
from dialsim.results.summary_text import FigureTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dialsim.logs.answering import PointEstimate
    from dialsim.logs.calibrate import Calibrated, Calibration, HoldOut
    from dialsim.logs.held_out_campaigns import HeldOutCampaigns
    from dialsim.logs.log_comparison import Compared, LogComparison, Side


def calibration_page(calibration: Calibration, held: Sequence[HeldOutCampaigns] = ()) -> ReportPage:
    """Return the report of a calibration; `held` are its forecasts from earlier cuts."""
    first = next(iter(calibration.behaviours.values()))
    calls = sum(found.calls for found in calibration.behaviours.values())
    share = first.answering.outcomes["answered"]
    many = len(calibration.behaviours)
    return ReportPage(
        title=f"Behaviour from {calibration.source}",
        lead="What do the calls of this log say of how people behave?",
        answer=f"{share.value:.0%} answer a first attempt"
        if many == 1
        else f"{many} behaviours from {calls:,} calls",
        facts=[*_calibration_facts(calibration)],
        sections=[
            *(Section("Days with an outage", [Notes([f"{one}."])]) for one in calibration.outages),
            *(
                section
                for number, (name, found) in enumerate(calibration.behaviours.items())
                for section in _calibration_sections(
                    number, name, found, calibration.hold_out.get(name), many
                )
            ),
            *_backtests(held),
        ],
        made_from=f"Made by dialsim calibrate from {calibration.source}.",
    )


def _calibration_facts(calibration: Calibration) -> Iterator[Fact]:
    for name, found in calibration.behaviours.items():
        who = found.answering
        of = "" if len(calibration.behaviours) == 1 else f" ({name})"
        span = f"{minute_text(found.first)} to {minute_text(found.last)} Thai time"
        said = f"{found.calls:,} calls to {found.people:,} people"
        yield Fact(f"What does it rest on?{of}", said, f"{span}.")
        if "reachable" in who.determined:
            yield Fact(f"Who ever answers?{of}", _share(who.reachable), "Of all people.")
        else:
            yield Fact(f"Who ever answers?{of}", "The log cannot tell")
        held = calibration.hold_out.get(name)
        if held is not None:
            off, groups = len(held.warnings), len(held.curve)
            better = "Not shown" if held.gain.low <= 0 else f"Not in {off} of {groups} groups"
            better = better if off or held.gain.low <= 0 else "Yes"
            detail = (
                f"Log loss {held.loss:.4f} a call on {held.calls:,} calls not seen, "
                f"{held.constant:.4f} with one chance for all: {held.gain.value:.4f} "
                f"± {held.gain.error:.4f} less."
            )
            yield Fact(f"Does it forecast?{of}", better, detail)


def _share(estimate: PointEstimate) -> str:
    return f"{estimate.value:.1%} ± {estimate.error:.1%}".replace("%", " %")


def _calibration_sections(
    number: int, name: str, found: Calibrated, held: HoldOut | None, many: int
) -> Iterator[Section]:
    before = "" if many == 1 else f"{name}: "
    pictures = [*_pictures(number, found, held)]
    parts: list[Part] = [Grid(pictures)] if pictures else []
    yield Section(f"{before}Estimates and what was seen", [*parts, _estimates(found)])
    warnings = () if held is None else held.warnings
    for title, texts in (
        ("What the log contradicts", [*found.misfits, *(f"Held out: {one}" for one in warnings)]),
        ("What the log can't tell", found.undetermined),
    ):
        if texts:
            yield Section(f"{before}{title}", [Notes([f"{text}." for text in texts])])


def _campaigns(held: HeldOutCampaigns) -> Section:
    rows = tuple((one.name, *row) for one in held.campaigns for row in one.rows())
    columns = ("figure", "nine of ten runs", "what happened", "in the interval")
    parts: list[Part] = [FigureTable("Campaign", columns, rows)] if rows else []
    notes = [*held.notes, *(f"Not forecast: {why}." for why in held.missing)]
    return Section(
        f"Campaigns after {at_text(held.cut)} Thai time, forecast from the calls before",
        [*parts, *([Notes(notes)] if notes else [])],
    )


def _backtests(held: Sequence[HeldOutCampaigns]) -> Iterator[Section]:
    """Yield the forecasts from each cut; of several cuts also how many of them held."""
    yield from map(_campaigns, held)
    past = Backtest([one for cut in held for one in cut.campaigns])
    if len(held) > 1 and past.forecasts:
        yield Section("Did earlier forecasts hold?", [Notes([f"{one}." for one in past.lines()])])


def _pictures(number: int, found: Calibrated, held: HoldOut | None) -> Iterator[Picture]:
    who = found.answering
    for key, (levels, title) in levels_of(who).items():
        if len(levels) > 1:
            caption = f"Factors on the odds of an answer {title}, with 95 % intervals."
            yield picture(f"{key}{number}", partial(draw_factors, levels, title), caption)
    if found.talk_time is not None:
        caption = "Quantiles of talk times: those measured against those of the distribution."
        yield picture(f"talk{number}", partial(draw_times, found.talk_time), caption)
    if held is not None:
        caption = (
            "Calls not learned from, in ten groups by their forecast: answered as forecast? "
            "Orange groups contradict it."
        )
        yield picture(f"forecast{number}", partial(_draw_curve, held), caption)


def _draw_curve(held: HoldOut, ax: Axes) -> Axes:
    forecast = np.array([one.forecast for one in held.curve])
    answered = np.array([one.answered.value for one in held.curve])
    error = 1.96 * np.array([one.answered.error for one in held.curve])
    wrong = np.array([one.is_contradicted for one in held.curve])
    top = min(1.0, 1.1 * max(forecast.max(), (answered + error).max()))
    ax.plot([0.0, top], [0.0, top], color=GRID, linewidth=1.0)
    for rows, color in ((~wrong, BLUE), (wrong, ORANGE)):
        ax.errorbar(
            forecast[rows], answered[rows], yerr=error[rows], fmt="o", color=color, markersize=4
        )
    share_axis(ax, top)
    ax.set_xlim(0.0, top)
    ax.xaxis.set_major_formatter(ax.yaxis.get_major_formatter())
    return dress(ax, "Forecast of calls not seen", "forecast", "answered")


def _estimates(found: Calibrated) -> FigureTable:
    return FigureTable("Estimate", ("value ± standard error", "rests on"), (*estimate_rows(found),))


_SHOWN_RUNS = 20
"""Extra runs drawn: enough to see the random variation."""
Values = NDArray[np.float64]


class Curve(NamedTuple):
    """Curve of a log: `x` and `y` of equal length."""

    x: Values
    y: Values


class _Logs(NamedTuple):
    """The two logs of a comparison, and extra runs of the model."""

    real: Profile
    simulated: Profile
    others: tuple[Profile, ...]


def log_comparison_page(found: LogComparison) -> ReportPage:
    """Return the report of a comparison."""
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
        sections=[*_comparison_sections(found)],
        made_from="Made by dialsim compare-log "
        f"from {found.real.source} and {found.simulated.source}.",
    )


def _side_fact(question: str, side: Side) -> Fact:
    return Fact(question, side.amount, f"{side.source}, {side.span}.")


def _comparison_sections(found: LogComparison) -> Iterator[Section]:
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
    table: list[Part] = [_distances(found)]
    if found.not_compared is not None:
        table.append(Notes([f"Not compared where there is no number: {found.not_compared}."]))
    yield Section("All distances", table)


def _distances(found: LogComparison) -> FigureTable:
    heads = ("distance", "noise up to", "from other runs (95 %)", "beyond noise")
    return FigureTable("Distance", heads, tuple(map(_row, found.distances)))


def _row(one: Compared) -> tuple[str, ...]:
    name, unit, *cells = one.cells()
    beyond = "–" if cells[0] == "–" else "yes" if one.beyond_noise else "no"
    return f"{name}, {unit}" if unit else name, *cells, beyond


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
    """Draw a curve of each log on top of the curves of the extra runs."""
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
    """Draw empirical distribution functions by their percentiles."""
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
