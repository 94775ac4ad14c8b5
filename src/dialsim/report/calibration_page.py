"""The page of a calibration: what was estimated, beside what the log shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dialsim.evidence.held_out_campaigns import at_text
from dialsim.report.page import Fact, Grid, Notes, Part, Picture, ReportPage, Section, picture
from dialsim.results.plots.drawing import BLACK, BLUE, GRID, ORANGE, dress, share_axis
from dialsim.results.summary_text import FigureTable
from dialsim.results.thai_time import duration_text, minute_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dialsim.evidence.answering import Estimate, Level
    from dialsim.evidence.calibrate import Calibrated, Calibration, HoldOut
    from dialsim.evidence.durations import FittedDurations
    from dialsim.evidence.held_out_campaigns import HeldOutCampaigns

_DAYS = {1: "Mon", 2: "Tue", 3: "Wed", 4: "Thu", 5: "Fri", 6: "Sat", 7: "Sun"}


def calibration_page(calibration: Calibration, held: HeldOutCampaigns | None = None) -> ReportPage:
    """The page of behaviours estimated from a log; `held` are campaigns that were forecast."""
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
        facts=[*_facts(calibration)],
        sections=[
            *(
                section
                for number, (name, found) in enumerate(calibration.behaviours.items())
                for section in _sections(number, name, found, calibration.hold_out.get(name), many)
            ),
            *([] if held is None else [_campaigns(held)]),
        ],
        made_from=f"Made by dialsim calibrate from {calibration.source}.",
    )


def _facts(calibration: Calibration) -> Iterator[Fact]:
    for name, found in calibration.behaviours.items():
        who = found.answering
        of = "" if len(calibration.behaviours) == 1 else f" ({name})"
        span = f"{minute_text(found.first)} to {minute_text(found.last)} Thai time"
        said = f"{found.calls:,} calls to {found.people:,} people"
        yield Fact(f"What does it rest on?{of}", said, f"{span}.")
        if "reachable" in who.told:
            yield Fact(f"Who ever answers?{of}", _share(who.reachable), "Of all people.")
        else:
            yield Fact(f"Who ever answers?{of}", "The log cannot tell")
        held = calibration.hold_out.get(name)
        if held is not None:
            better = held.gain.low > 0
            detail = (
                f"Log loss {held.loss:.4f} a call on {held.calls:,} calls not seen, "
                f"{held.constant:.4f} with one chance for all: {held.gain.value:.4f} "
                f"± {held.gain.error:.4f} less."
            )
            yield Fact(f"Does it forecast?{of}", "Yes" if better else "Not shown", detail)


def _share(estimate: Estimate) -> str:
    return f"{estimate.value:.1%} ± {estimate.error:.1%}".replace("%", " %")


def _sections(
    number: int, name: str, found: Calibrated, held: HoldOut | None, many: int
) -> Iterator[Section]:
    before = "" if many == 1 else f"{name}: "
    pictures = [*_pictures(number, found, held)]
    parts: list[Part] = [Grid(pictures)] if pictures else []
    yield Section(f"{before}Estimates and what was seen", [*parts, _table(found)])
    yield Section(
        f"{before}What the log can't tell", [Notes([f"{text}." for text in found.untold])]
    )


def _campaigns(held: HeldOutCampaigns) -> Section:
    rows = tuple(
        (one.name, *of)
        for one in held.campaigns
        for of in (
            ("done", one.finish_span, at_text(one.finish), _held(one.finish_held)),
            ("people reached", one.reach_span, f"{one.reached:,}", _held(one.reach_held)),
        )
    )
    columns = ("figure", "nine of ten runs", "what happened", "in the interval")
    parts: list[Part] = [FigureTable("Campaign", columns, rows)] if rows else []
    notes = [f"Not forecast: {why}." for why in held.missing]
    return Section(
        f"Campaigns after {at_text(held.cut)} Thai time, forecast from the calls before",
        [*parts, *([Notes(notes)] if notes else [])],
    )


def _held(inside: bool) -> str:
    return "yes" if inside else "no"


def _pictures(number: int, found: Calibrated, held: HoldOut | None) -> Iterator[Picture]:
    who = found.answering
    for key, levels, title in (
        ("hour", {str(hour): level for hour, level in who.hours.items()}, "by hour"),
        ("day", {_DAYS[day]: level for day, level in who.days.items()}, "by day"),
        ("segment", dict(who.segments), "by segment"),
    ):
        if len(levels) > 1:
            caption = f"Factors on the odds of an answer {title}, with 95 % intervals."
            yield picture(f"{key}{number}", partial(_draw_factors, levels, title), caption)
    if found.talk_time is not None:
        caption = "Quantiles of talk times: those measured against those of the distribution."
        yield picture(f"talk{number}", partial(_draw_times, found.talk_time), caption)
    if held is not None:
        caption = "Calls not learned from, in ten groups by their forecast: answered as forecast?"
        yield picture(f"forecast{number}", partial(_draw_curve, held), caption)


def _draw_factors(levels: Mapping[str, Level], title: str, ax: Axes) -> Axes:
    at = np.arange(len(levels))
    effects = [level.effect for level in levels.values()]
    values = np.exp([effect.value for effect in effects])
    ends = np.exp([[effect.low, effect.high] for effect in effects]).T
    ax.axhline(1.0, color=GRID, linewidth=1.0)
    ax.errorbar(at, values, yerr=np.abs(ends - values), fmt="o", color=BLUE, markersize=4)
    ax.set_xticks(at, list(levels))
    ax.set_ylim(bottom=0.0)
    return dress(ax, f"Odds of an answer {title}", "", "factor")


def _draw_times(measured: FittedDurations, ax: Axes) -> Axes:
    parts = (np.arange(100) + 0.5) / 100.0
    ax.plot(np.quantile(measured.measured, parts) / 1000.0, parts, color=BLACK, label="measured")
    ax.plot(
        measured.quantiles / 1000.0, parts, color=ORANGE, label=measured.distribution.dist,
        linestyle="--",
    )  # fmt: skip
    share_axis(ax)
    return dress(ax, "Talk times", "seconds", "calls that are as short")


def _draw_curve(held: HoldOut, ax: Axes) -> Axes:
    forecast = np.array([one.forecast for one in held.curve])
    answered = np.array([one.answered.value for one in held.curve])
    error = 1.96 * np.array([one.answered.error for one in held.curve])
    top = min(1.0, 1.1 * max(forecast.max(), (answered + error).max()))
    ax.plot([0.0, top], [0.0, top], color=GRID, linewidth=1.0)
    ax.errorbar(forecast, answered, yerr=error, fmt="o", color=BLUE, markersize=4)
    share_axis(ax, top)
    ax.set_xlim(0.0, top)
    ax.xaxis.set_major_formatter(ax.yaxis.get_major_formatter())
    return dress(ax, "Forecast of calls not seen", "forecast", "answered")


def _table(found: Calibrated) -> FigureTable:
    who = found.answering
    rows = [
        (f"{end} at a first attempt", _share(share), f"{share.count:,} calls")
        for end, share in who.outcomes.items()
    ]
    for label, key, share in (
        ("people who ever answer", "reachable", who.reachable),
        ("dead numbers", "deadNumbers", who.dead_numbers),
    ):
        if key in who.told:
            rows.append((label, _share(share), f"{share.count:,} people"))
    if "concentration" in who.told:
        alike = who.concentration
        said = f"{alike.value:.2g} ± {alike.error:.2g}"
        rows.append(("concentration", said, f"{alike.count:,} people"))
    if who.wear is not None:
        per1000, recovery = who.wear.per1000.factor, who.wear.recovery.factor
        said = f"{per1000.value:.2g} ± {per1000.error:.2g}"
        rows.append(("odds after 1,000 dials of the number", said, f"{per1000.count:,} calls"))
        said = " ± ".join(duration_text(round(ms)) for ms in (recovery.value, recovery.error))
        rows.append(("recovery of a number", said, f"{recovery.count:,} calls"))
    if found.talk_time is not None:
        mean = duration_text(round(float(found.talk_time.measured.mean()), -2))
        said = f"{found.talk_time.distribution.dist}, {mean} on average"
        rows.append(("talk time", said, f"{found.talk_time.count:,} calls"))
    return FigureTable("Estimate", ("value ± standard error", "rests on"), tuple(rows))
