"""Reports on logs: a calibration, and a comparison of two logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dialsim.interface.instants import HOUR, at_text, minute_text
from dialsim.logs.backtest import Backtest
from dialsim.logs.behaviour_text import estimate_rows
from dialsim.logs.calibrate import levels_of
from dialsim.logs.distances import OUTCOMES, Profile
from dialsim.report.page import Fact, Grid, Notes, Part, Picture, ReportPage, Section, picture
from dialsim.results.plots.drawing import (
    BLACK,
    BLUE,
    CYCLE,
    GREY,
    GRID,
    ORANGE,
    days,
    dress,
    share_axis,
    time_axis,
)
from dialsim.results.summary_text import FigureTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dialsim.logs.answering import PointEstimate
    from dialsim.logs.backtest import HeldOutCampaigns
    from dialsim.logs.calibrate import Calibrated, Calibration, HoldOut
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
                for section in _calibration_sections(number, name, found, calibration)
            ),
            *_backtests(held),
        ],
        made_from=f"Made by dialsim calibrate from {calibration.source}.",
    )


def _calibration_facts(calibration: Calibration) -> Iterator[Fact]:
    for name, found in calibration.behaviours.items():
        answers = found.answering
        of = "" if len(calibration.behaviours) == 1 else f" ({name})"
        span = f"{minute_text(found.first)} to {minute_text(found.last)} Thai time"
        said = f"{found.calls:,} calls to {found.people:,} people"
        yield Fact(f"What does it rest on?{of}", said, f"{span}.")
        if "reachable" in answers.determined:
            yield Fact(f"Who ever answers?{of}", _share(answers.reachable), "Of all people.")
        else:
            yield Fact(f"Who ever answers?{of}", "Not determined by the log")
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
    number: int, name: str, found: Calibrated, calibration: Calibration
) -> Iterator[Section]:
    before = "" if len(calibration.behaviours) == 1 else f"{name}: "
    held = calibration.hold_out.get(name)
    pictures = [*_pictures(number, name, found, calibration)]
    parts: list[Part] = [Grid(pictures)] if pictures else []
    yield Section(f"{before}Estimates and what was seen", [*parts, _estimates(found)])
    warnings = () if held is None else held.warnings
    for title, texts in (
        ("What the log contradicts", [*found.misfits, *(f"Held out: {one}" for one in warnings)]),
        ("What the log does not determine", found.undetermined),
    ):
        if texts:
            yield Section(f"{before}{title}", [Notes([f"{text}." for text in texts])])


def _campaigns(held: HeldOutCampaigns) -> Section:
    rows = tuple((one.campaign, *figure.row()) for one in held.campaigns for figure in one.figures)
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


def _pictures(
    number: int, name: str, found: Calibrated, calibration: Calibration
) -> Iterator[Picture]:
    plot, held = calibration.plot, calibration.hold_out.get(name)
    for by, levels in levels_of(found.answering).items():
        if len(levels) > 1:
            caption = f"Factors on the odds of an answer by {by}, with 95 % intervals."
            # `by=by`: the lambda would otherwise see the last value of the loop.
            yield picture(f"{by}{number}", lambda ax, by=by: plot.factors(by, name, ax=ax), caption)
    if found.talk_time is not None:
        caption = "Quantiles of talk times: those measured against those of the distribution."
        yield picture(f"talk{number}", lambda ax: plot.talk_times(name, ax=ax), caption)
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
    shown = "How attempts end: solid lines are REAL, dashed ones SIMULATED."
    pictures = [picture("outcomes", partial(_draw_outcomes, logs), shown)]
    pictures += [picture(one.key, partial(_draw_curves, one, logs), one.caption) for one in _CURVES]
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


def _answered(side: Profile) -> Curve:
    calls, answered = side.answering
    return Curve(np.arange(24.0), np.where(calls > 0, answered / np.maximum(calls, 1), np.nan))


def _hours(side: Profile) -> Curve:
    counts = side.week.sum(axis=0)
    # Shares, because the two logs may have different numbers of calls.
    return Curve(np.arange(24.0), counts / counts.sum())


def _quantiles(values: Values) -> Curve:
    """Return the empirical distribution function by its percentiles."""
    parts = np.linspace(0.0, 1.0, 201)
    return Curve(np.quantile(values, parts), parts) if len(values) else Curve(values, values)


def _progress(side: Profile) -> Curve:
    at = np.array([side.first, *side.moments, side.last], dtype=np.float64)
    return Curve(days(at), np.linspace(0.0, 1.0, len(at)))


class _Curves(NamedTuple):
    """Picture with a curve of shares of each log; without an `x` the axis is the Thai time."""

    key: str
    title: str
    x: str
    y: str
    caption: str
    curve: Callable[[Profile], Curve]
    drawstyle: str = "default"


_CURVES = (
    _Curves("answered", "Answered by hour", "hour of the day", "calls",
            "Calls that are answered, by hour of the day.", _answered, "steps-post"),
    _Curves("week", "Hour of the day", "hour of the day", "starts and ends",
            "Starts and ends of calls by hour of the day.", _hours, "steps-post"),
    _Curves("talk", "Talk time", "seconds", "answered calls",
            "Calls that talk for so long at most.", lambda side: _quantiles(side.talks / 1_000.0)),
    _Curves("gaps", "Gaps between attempts", "hours", "gaps",
            "Gaps between attempts of a person that last so long at most.",
            lambda side: _quantiles(side.gaps / HOUR)),
    _Curves("progress", "Progress", "", "calls made",
            "Calls that have been made by then: the end of a line is the finish.", _progress),
)  # fmt: skip


def _draw_curves(one: _Curves, logs: _Logs, ax: Axes) -> Axes:
    """Draw a curve of each log on top of the curves of the extra runs."""
    other = {"color": GREY, "linewidth": 0.5, "alpha": 0.6}
    real = {"color": BLACK, "linewidth": 1.4, "label": "REAL"}
    simulated = {"color": ORANGE, "linewidth": 1.4, "linestyle": "--", "label": "SIMULATED"}
    shown: list[tuple[Profile, dict[str, Any]]] = [(run, other) for run in logs.others]
    shown += [(logs.real, real), (logs.simulated, simulated)]
    most = 0.0
    for side, look in shown:
        curve = one.curve(side)
        ax.plot(*curve, drawstyle=one.drawstyle, **look)
        most = max(most, float(np.nanmax(curve.y, initial=0.0)))
    # Shares by hour are small; on an axis up to 100 % their differences would not be seen.
    share_axis(ax, min(1.0, 1.1 * most) or 1.0)
    start = min(logs.real.first, logs.simulated.first)
    end = max(logs.real.last, logs.simulated.last)
    return dress(ax, one.title, one.x or time_axis(ax, start, end), one.y)
