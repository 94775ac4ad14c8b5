"""Calibrations as text: YAML of the behaviours, and a summary for the screen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from dialsim.interface.instants import HOUR, duration_text, minute_text
from dialsim.logs.answering import ANSWERED, NO_ANSWER
from dialsim.scenario.units import format_duration

if TYPE_CHECKING:
    from dialsim.logs.answering import Answering, Level, PointEstimate
    from dialsim.logs.calibrate import Calibrated, Calibration, HoldOut, Shares
    from dialsim.logs.durations import FittedDurations
    from dialsim.logs.hold_times import HoldTimes

_WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ]*")
_WORDS = {"no", "yes", "on", "off", "true", "false", "null", "y", "n"}
DRAWS = 50
"""Number of behaviours drawn from the posterior."""
_SEED = 1
_NO_SETUP = "1ms"
_EVERYBODY = 0.99999
"""Smallest share of reachable people that counts as all."""


def yaml_text(calibration: Calibration) -> str:
    """Return the behaviours as YAML for a scenario."""
    return "\n".join(_lines(calibration)) + "\n"


def _lines(calibration: Calibration) -> Iterator[str]:
    of = "" if calibration.by is None else f", by {calibration.by}"
    yield f"# Behaviours estimated by `dialsim calibrate` from {calibration.source}{of}."
    yield "# Behind each number stand its standard error and the count that it rests on."
    for name, count in calibration.left_out.items():
        yield f"# {name} is left out: {count} calls are too few."
    yield "behaviours:"
    for behaviour in calibration.behaviours.values():
        yield from _behaviour(behaviour)


def _behaviour(found: Calibrated) -> Iterator[str]:
    yield f"  {_key(found.name)}:"
    span = f"{minute_text(found.first)} to {minute_text(found.last)} Thai time"
    yield f"    # {found.calls:,} calls to {found.people:,} people, {span}"
    yield answering_text(found.answering)
    if found.holds is not None:
        yield from _holds(found.holds)
    if found.setup_time is not None:
        yield from _times("setupTime", found.setup_time)
    if found.ring_time:
        yield "    ringTime:"
        for end, time in found.ring_time.items():
            yield from _times(end, time, indent=6)
    for key, measured in (
        ("talkTime", found.talk_time),
        ("analysisDelay", found.analysis_delay),
        ("lateResultDelay", found.late_result_delay),
    ):
        if measured is not None:
            yield from _times(key, measured)
    if found.rates:
        yield "    rates:"
        for rate, share in found.rates.items():
            yield _number(6, f"{rate}: ", share)
    yield "    # What the log leaves open, and what stands in its place:"
    for sentence in found.undetermined:
        yield from _comment(f"- {sentence}.", "    #   ")
    if found.misfits:
        yield "    # The log contradicts this behaviour:"
        for sentence in found.misfits:
            yield from _comment(f"- {sentence}.", "    #   ")
    yield from _elsewhere(found)


def draws_text(calibration: Calibration, count: int = DRAWS) -> str:
    """Return behaviours that may also have made the log, as YAML of named variants.

    Each is a draw from the uncertainty about who answers, and about talk times. A forecast that
    divides its runs among them includes this uncertainty (`dialsim forecast --draws`).
    """
    chance = np.random.default_rng(_SEED)
    lines = [
        f"# Behaviours that may have made {calibration.source} as well, drawn by dialsim from what",
        "# the log leaves open. `dialsim forecast --draws` shares its runs out over them.",
    ]
    for number in range(1, count + 1):
        lines.append(f"draw {number}:")
        for found in calibration.behaviours.values():
            for key, value in _drawn(found, chance).items():
                change = f"behaviours.{found.name}.{key}={json.dumps(value, ensure_ascii=False)}"
                lines.append(f"  - {json.dumps(change, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def _drawn(found: Calibrated, chance: np.random.Generator) -> dict[str, object]:
    """Return a draw of one behaviour, by its keys in a scenario."""
    import yaml

    drawn: dict[str, object] = yaml.safe_load(answering_text(found.answering.draw(chance)))
    if found.talk_time is not None:
        drawn["talkTime"] = found.talk_time.draw(chance)
    if found.holds is not None:
        drawn |= {"setupTime": _NO_SETUP, "ringTime": found.holds.draw(chance).written}
    return drawn


def answering_text(who: Answering) -> str:
    """Return the keys of a behaviour about who answers, as YAML."""
    return "\n".join([*_outcomes(who), *_odds(who), *_people(who)])


def _outcomes(who: Answering) -> Iterator[str]:
    fresh = "" if who.wear is None else ", by a number that has not dialled lately"
    yield f"    outcomes: # at a first attempt, where all factors are 1{fresh}"
    values = {end: round(share.value, 4) for end, share in who.outcomes.items()}
    largest = max(values, key=lambda end: values[end])
    values[largest] = round(1.0 - sum(v for end, v in values.items() if end != largest), 4)
    for end, share in who.outcomes.items():
        yield f"      {end}: {values[end]:g} {_rests_on(share)}"


def _odds(who: Answering) -> Iterator[str]:
    yield "    answeredOdds:"
    if len(who.hours) > 1:
        yield f"      byHour: # {_spread(who, 'hour')}"
        yield from (_factor(f"{hour}: ", level) for hour, level in who.hours.items())
    if len(who.weekdays) > 1:
        yield f"      byDay: # 1 is Monday; {_spread(who, 'day')}"
        yield from (_factor(f"{day}: ", level) for day, level in who.weekdays.items())
    yield "      byAttempt: # the last one repeats"
    yield from (_factor("- ", level) for level in who.attempts)
    if who.segments:
        yield f"      bySegment: # {_spread(who, 'segment')}"
        yield from (_factor(f"{_key(name)}: ", level) for name, level in who.segments.items())
    if who.wear is not None:
        per1000, recovery = who.wear.per1000.factor, who.wear.recovery.factor
        value = f"{per1000.value:.4g}" if per1000.value >= 0.001 else f"{per1000.value:.3e}"
        yield "      byCallerIdUse: # of the dials of a number before this one"
        yield f"        per1000: {value} {_rests_on(per1000)}"
        error = f"± {_time(recovery.error)}, n = {recovery.count:,}"
        yield f"        recovery: {_time(recovery.value)} # {error}"


def _time(ms: float) -> str:
    """Format a time for a scenario, in whole minutes if it is long, else in whole seconds."""
    unit = 60_000 if ms >= 6_000_000 else 1_000
    return format_duration(max(round(ms / unit), 1) * unit)


def _spread(who: Answering, group: str) -> str:
    return f"shrunk towards 1; their logarithms differ by {who.spread[group]:.2f}"


def _factor(key: str, level: Level) -> str:
    return _number(8, key, level.factor)


def _people(who: Answering) -> Iterator[str]:
    """Yield the block `people` with all values of the joint fit."""
    # A default in place of one of the values would contradict the others, which were fitted
    # together with it.
    yield "    people:"
    dead = min(who.dead_numbers.value, who.outcomes["failed"].value)
    # Rounded down, because it must not exceed the share of failures.
    dead = int(dead * 1e4) / 1e4
    yield f"      deadNumbers: {dead:g} {_joint(who, 'deadNumbers', who.dead_numbers)}"
    reachable = max(who.reachable.value, who.outcomes["answered"].value)
    if reachable < _EVERYBODY - dead:
        reachable = int(reachable * 1e4 + 1) / 1e4
        yield f"      reachable: {reachable:g} {_joint(who, 'reachable', who.reachable)}"
    else:
        yield "      # reachable: all but the dead numbers"
    alike = who.concentration
    yield f"      concentration: {_digits(alike.value)} {_joint(who, 'concentration', alike)}"


def _joint(who: Answering, key: str, estimate: PointEstimate) -> str:
    """Return the comment of a value of `people`, which the log may leave undetermined."""
    rests_on = _rests_on(estimate)
    return (
        rests_on if key in who.determined else f"{rests_on}; goes with the other values, see below"
    )


def _times(key: str, measured: FittedDurations, indent: int = 4) -> Iterator[str]:
    """Yield a distribution; estimates have one line each."""
    space = " " * indent
    if isinstance(measured.written, str):
        yield f"{space}{key}: {measured.written} # always, n = {measured.count:,}"
        return
    written = measured.written
    values = written.get("values")
    if isinstance(values, list):
        yield from _comment(f"No family fits: {measured.rejected}.", f"{space}# ")
        yield f"{space}{key}:"
        yield f"{space}  dist: empirical # as measured, n = {measured.count:,}"
        yield f"{space}  values:"
        text = wrap(", ".join(values), _WIDTH - indent - 6, break_on_hyphens=False)
        yield f"{space}    [{text[0]}" + ("]" if len(text) == 1 else "")
        for line in text[1:]:
            yield f"{space}     {line}" + ("]" if line is text[-1] else "")
        return
    worst = max(measured.off.values())
    yield f"{space}{key}: # quantiles from 5 % to 99 % within {worst:.1%} of those measured"
    for name, value in written.items():
        estimate = measured.estimates.get(name)
        note = "" if estimate is None else (
            f" # ± {_milliseconds(estimate.error)}, n = {estimate.count:,}"
        )  # fmt: skip
        yield f"{space}  {name}: {value}{note}"


def _elsewhere(found: Calibrated) -> Iterator[str]:
    """Yield values for other parts of a scenario, as comments."""
    if found.latency is not None:
        written = found.latency.quantiles
        yield "    # For engine.webhookDelay, from the end of an unanswered call to its webhook:"
        middle, count = format_duration(round(written[50])), found.latency.count
        most = format_duration(round(written[98]))
        yield f"    #   {middle} in the middle, up to {most} in 98 %, n = {count:,}"
    if found.furthest is not None:
        yield "    # For analysis.funnel of the agent, the furthest step of conversations:"
        yield from _shares(found.furthest, "    #   ")
    for name, shares in found.fields.items():
        yield f"    # For analysis.fields of the agent, values of {_key(name)}:"
        yield from _shares(shares, "    #   ")


def _shares(shares: Shares, before: str) -> Iterator[str]:
    for value, share in shares.values.items():
        yield f"{before}{_key(value)}: {share.value:.4f} {_rests_on(share)}"


def _holds(holds: HoldTimes) -> Iterator[str]:
    """Yield the hold times; the log does not separate the setup from the ringing."""
    hours = duration_text(round(holds.saturated / HOUR, 1) * HOUR)
    yield f"    setupTime: {_NO_SETUP} # part of ringTime: webhooks have no instants of dials"
    yield f"    ringTime: # from the gaps on lines that were saturated for {hours}"
    for outcome, (name, written) in enumerate(holds.written.items()):
        estimate = holds.estimate(outcome)
        shape = ", ".join(f"{key}: {value}" for key, value in written.items())
        error = f"± {_milliseconds(estimate.error)}, n = {estimate.count:,}"
        yield f"      {name}: {{{shape}}} # mean {_milliseconds(estimate.value)} {error}"


def _number(indent: int, key: str, estimate: PointEstimate) -> str:
    return f"{' ' * indent}{key}{_digits(estimate.value)} {_rests_on(estimate)}"


def _digits(value: float) -> str:
    return f"{value:.4g}" if abs(value) >= 0.001 else f"{value:.6f}".rstrip("0").rstrip(".") or "0"


def _rests_on(estimate: PointEstimate) -> str:
    return f"# ± {estimate.error:.2g}, n = {estimate.count:,}"


def _milliseconds(value: float) -> str:
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.2g} s"


def _key(name: str) -> str:
    """Return a name as a key of YAML, quoted if necessary."""
    import orjson

    plain = _PLAIN.fullmatch(name) and name == name.strip() and name.lower() not in _WORDS
    return name if plain else orjson.dumps(name).decode()


def _comment(text: str, before: str) -> Iterator[str]:
    lines = wrap(text, _WIDTH - len(before), break_on_hyphens=False)
    yield f"{before}{lines[0]}"
    yield from (f"{before}  {line}" for line in lines[1:])


def summary_lines(calibration: Calibration) -> Iterator[str]:
    """Yield the summary for the screen."""
    for name, found in calibration.behaviours.items():
        yield f"{name}: {found.calls:,} calls to {found.people:,} people"
        yield from (f"  {label}: {value}" for label, value, _ in estimate_rows(found))
        held = calibration.hold_out.get(name)
        if held is not None:
            yield from (f"  {line}" for line in _held_out(held))
        yield from (f"  misfit: {sentence}" for sentence in found.misfits)
    yield from (f"{one}." for one in calibration.outages)
    for name, count in calibration.left_out.items():
        yield f"{name}: left out, {count} calls are too few"


def estimate_rows(found: Calibrated) -> Iterator[tuple[str, str, str]]:
    """Yield label, value with standard error, and the count that it rests on."""
    who = found.answering
    for end, share in who.outcomes.items():
        yield f"{end} at a first attempt", _percent(share), f"{share.count:,} calls"
    alike = who.concentration
    for label, key, value, estimate in (
        ("ever reachable", "reachable", _percent(who.reachable), who.reachable),
        ("dead numbers", "deadNumbers", _percent(who.dead_numbers), who.dead_numbers),
        ("concentration", "concentration", f"{alike.value:.2g} ± {alike.error:.2g}", alike),
    ):
        said = value if key in who.determined else "the log cannot tell"
        yield label, said, f"{estimate.count:,} people"
    if who.wear is not None:
        per1000, recovery = who.wear.per1000.factor, who.wear.recovery.factor
        said = f"odds times {per1000.value:.2g} ± {per1000.error:.2g} after 1,000 dials"
        said += f", recovery {duration_text(round(recovery.value, -3))}"
        yield "caller IDs", said, f"{per1000.count:,} calls"
    if found.talk_time is not None:
        mean = duration_text(round(float(found.talk_time.measured.mean()), -2))
        said = f"{found.talk_time.distribution.dist}, {mean} on average"
        yield "talk time", said, f"{found.talk_time.count:,} calls"
    if found.holds is not None:
        answer, none = (found.holds.estimate(outcome) for outcome in (ANSWERED, NO_ANSWER))
        said = f"{_seconds(answer)} up to an answer, {_seconds(none)} without one"
        yield "setup and ringing", said, f"{answer.count + none.count:,} calls"


def _seconds(estimate: PointEstimate) -> str:
    return f"{estimate.value / 1000:.1f} ± {estimate.error / 1000:.1f} s"


def _held_out(held: HoldOut) -> Iterator[str]:
    better = "better" if held.gain.low > 0 else "worse" if held.gain.high < 0 else "no different"
    yield (
        f"hold-out: {held.learned:,} calls up to {minute_text(held.cut)} Thai time forecast the "
        f"{held.calls:,} after it"
    )
    yield (
        f"  log loss {held.loss:.4f}, that of a constant {held.constant:.4f}: {better} by "
        f"{held.gain.value:.4f} ± {held.gain.error:.4f} a call"
    )
    # A number that the log contradicts is a warning, not an entry of the table
    sound = [one for one in held.curve if not one.is_contradicted]
    if sound:
        yield "  forecast → answered: " + ", ".join(
            f"{one.forecast:.0%} → {one.answered.value:.0%}" for one in sound
        )
    yield from (f"warning: {sentence}" for sentence in held.warnings)


def _percent(estimate: PointEstimate) -> str:
    return f"{estimate.value:.1%} ± {estimate.error:.1%}"
