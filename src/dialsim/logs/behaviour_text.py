"""Calibrations as text: YAML of the behaviours, draws of them, and a summary for the screen."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import yaml

from dialsim.interface.instants import HOUR, duration_text, minute_text
from dialsim.logs.answering import ENDS
from dialsim.scenario.units import format_duration

if TYPE_CHECKING:
    from dialsim.logs.answering import Answering, Level, PointEstimate
    from dialsim.logs.calibrate import Calibrated, Calibration, HoldOut, Shares
    from dialsim.logs.durations import FittedDurations

_WIDTH = 100
DRAWS = 50
"""Number of behaviours drawn from the posterior."""
_SEED = 1
_NO_SETUP = "1ms"
_EVERYBODY = 0.99999
"""Smallest share of reachable people that counts as all."""


# -- YAML with comments ----------------------------------------------------------------------------


class Noted(NamedTuple):
    """A value of a scenario file with its comment."""

    value: Any
    note: str


def plain(tree: Any) -> Any:
    """Return a tree of values without the comments."""
    if isinstance(tree, Noted):
        return plain(tree.value)
    if isinstance(tree, Mapping):
        return {key: plain(value) for key, value in tree.items()}
    return [plain(value) for value in tree] if isinstance(tree, list) else tree


class _Dumper(yaml.SafeDumper):
    """Dumper that indents lists, and writes tuples, which have many values, on few lines."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


_Dumper.add_representer(
    tuple, lambda dumper, values: dumper.represent_sequence(_LIST, values, flow_style=True)
)
_LIST = "tag:yaml.org,2002:seq"


def yaml_lines(tree: Mapping[Any, Any], indent: int = 0) -> list[str]:
    """Return a tree of values as YAML; comments stand on the lines where their values begin."""
    text = yaml.dump(plain(tree), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    lines = [" " * indent + line for line in text.splitlines()]

    def annotate(node: Any, value: Any, line: int) -> None:
        if isinstance(value, Noted):
            lines[line] += f" # {value.note}"
            value = value.value
        if isinstance(value, Mapping):
            for (key, child), item in zip(node.value, value.values(), strict=True):
                annotate(child, item, key.start_mark.line)
        elif isinstance(value, list):
            for child, item in zip(node.value, value, strict=True):
                annotate(child, item, child.start_mark.line)

    annotate(yaml.compose(text, yaml.SafeLoader), tree, 0)
    return lines


def _items(sentences: Iterable[str]) -> Iterator[str]:
    """Yield sentences as a list in a comment; each may take several lines."""
    before = "    #   "
    for sentence in sentences:
        yield from wrap(
            f"- {sentence}.", _WIDTH, initial_indent=before, subsequent_indent=f"{before}  ",
            break_on_hyphens=False,
        )  # fmt: skip


# -- behaviours ------------------------------------------------------------------------------------


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
    for found in calibration.behaviours.values():
        span = f"{minute_text(found.first)} to {minute_text(found.last)} Thai time"
        name, *values = yaml_lines({found.name: behaviour(found)}, 2)
        yield name
        yield f"    # {found.calls:,} calls to {found.people:,} people, {span}"
        yield from values
        yield "    # Values that the log does not determine:"
        yield from _items(found.undetermined)
        if found.misfits:
            yield "    # The log contradicts this behaviour:"
            yield from _items(found.misfits)
        yield from _elsewhere(found)


def behaviour(found: Calibrated) -> dict[str, Any]:
    """Return a behaviour as a scenario has it, with the precision of each value."""
    tree = answering_block(found.answering)
    if found.holds is not None:
        hours = duration_text(round(found.holds.saturated / HOUR, 1) * HOUR)
        tree["setupTime"] = Noted(_NO_SETUP, "part of ringTime: webhooks have no instants of dials")
        rings = {
            name: Noted({**written}, _mean_note(found.holds.estimate(outcome)))
            for outcome, (name, written) in enumerate(found.holds.written.items())
        }
        tree["ringTime"] = Noted(rings, f"from the gaps on lines that were saturated for {hours}")
    if found.setup_time is not None:
        tree["setupTime"] = _times(found.setup_time)
    if found.ring_time:
        tree["ringTime"] = {end: _times(time) for end, time in found.ring_time.items()}
    for key, measured in (
        ("talkTime", found.talk_time),
        ("analysisDelay", found.analysis_delay),
        ("lateResultDelay", found.late_result_delay),
    ):
        if measured is not None:
            tree[key] = _times(measured)
    if found.rates:
        tree["rates"] = {rate: _number(share) for rate, share in found.rates.items()}
    return tree


def behaviours_of(calibration: Calibration) -> dict[str, Any]:
    """Return the behaviours as a scenario has them, without their precision."""
    return {name: plain(behaviour(found)) for name, found in calibration.behaviours.items()}


def answering_block(answers: Answering) -> dict[str, Any]:
    """Return the keys of a behaviour about answers and failures."""
    fresh = "" if answers.wear is None else ", by a number that has not dialled lately"
    shares = {end: round(share.value, 4) for end, share in answers.outcomes.items()}
    # Rounded shares must add up to 1; the largest one is adjusted, because that changes it least.
    largest = max(shares, key=lambda end: shares[end])
    shares[largest] = round(1.0 - sum(v for end, v in shares.items() if end != largest), 4)
    outcomes = {end: Noted(shares[end], _rests_on(one)) for end, one in answers.outcomes.items()}
    return {
        "outcomes": Noted(outcomes, f"at a first attempt, where all factors are 1{fresh}"),
        "answeredOdds": _odds(answers),
        "people": _people(answers),
    }


def _odds(answers: Answering) -> dict[str, Any]:
    def shrunk(levels: Mapping[Any, Level], group: str, before: str = "") -> Noted:
        note = f"shrunk towards 1; their logarithms differ by {answers.spread[group]:.2f}"
        return Noted({key: _number(level.factor) for key, level in levels.items()}, before + note)

    odds: dict[str, Any] = {}
    if len(answers.hours) > 1:
        odds["byHour"] = shrunk(answers.hours, "hour")
    if len(answers.weekdays) > 1:
        odds["byDay"] = shrunk(answers.weekdays, "day", "1 is Monday; ")
    attempts = [_number(level.factor) for level in answers.attempts]
    odds["byAttempt"] = Noted(attempts, "the last one repeats")
    if answers.segments:
        odds["bySegment"] = shrunk(answers.segments, "segment")
    if answers.wear is not None:
        recovery = answers.wear.recovery.factor
        error = f"± {_time(recovery.error)}, n = {recovery.count:,}"
        use = {
            "per1000": _number(answers.wear.per1000.factor),
            "recovery": Noted(_time(recovery.value), error),
        }
        odds["byCallerIdUse"] = Noted(use, "of the dials of a number before this one")
    return odds


def _people(answers: Answering) -> dict[str, Any]:
    """Return the block `people` with all values of the joint fit."""

    # A default in place of one of the values would contradict the others, which were fitted
    # together with it.
    def joint(key: str, value: float, estimate: PointEstimate) -> Noted:
        note = _rests_on(estimate)
        determined = key in answers.determined
        return Noted(
            value, note if determined else f"{note}; goes with the other values, see below"
        )

    # `deadNumbers` is rounded down, because it must not exceed the share of failures, and
    # `reachable` up, because it must not fall below the share of answers.
    dead = int(min(answers.dead_numbers.value, answers.outcomes["failed"].value) * 1e4) / 1e4
    reachable = max(answers.reachable.value, answers.outcomes["answered"].value)
    found = {"deadNumbers": joint("deadNumbers", dead, answers.dead_numbers)}
    # Left out if all but the dead numbers are reachable, which is the default
    if reachable < _EVERYBODY - dead:
        found["reachable"] = joint("reachable", int(reachable * 1e4 + 1) / 1e4, answers.reachable)
    alike = _rounded(answers.concentration.value)
    found["concentration"] = joint("concentration", alike, answers.concentration)
    return found


def _times(measured: FittedDurations) -> Any:
    """Return a distribution, each of its parameters with its precision."""
    written, count = measured.written, f"n = {measured.count:,}"
    if isinstance(written, str):
        return Noted(written, f"always, {count}")
    if "values" in written:
        note = f"as measured, {count}: {measured.rejected}"
        return {**written, "dist": Noted("empirical", note)}
    worst = max(measured.off.values())
    noted = {
        key: Noted(value, f"± {_milliseconds(measured.estimates[key].error)}, {count}")
        if key in measured.estimates
        else value
        for key, value in written.items()
    }
    return Noted(noted, f"quantiles from 5 % to 99 % within {worst:.1%} of those measured")


def _elsewhere(found: Calibrated) -> Iterator[str]:
    """Yield values for other parts of a scenario, as comments."""
    if found.latency is not None:
        written = found.latency.quantiles
        yield "    # For engine.webhookDelay, from the end of an unanswered call to its webhook:"
        middle, count = format_duration(round(written[50])), found.latency.count
        most = format_duration(round(written[98]))
        yield f"    #   median {middle}, up to {most} in 98 % of calls, n = {count:,}"
    if found.furthest:
        yield "    # For analysis.funnel of the agent, the furthest step of conversations:"
        yield from _shares(found.furthest)
    for name, shares in found.fields.items():
        yield f"    # For analysis.fields of the agent, values of {name}:"
        yield from _shares(shares)


def _shares(shares: Shares) -> Iterator[str]:
    noted = {value: _number(share) for value, share in shares.items()}
    yield from (f"    #   {line}" for line in yaml_lines(noted))


def _number(estimate: PointEstimate) -> Noted:
    return Noted(_rounded(estimate.value), _rests_on(estimate))


def _rounded(value: float) -> float:
    """Return a number with four digits, which is more than any log determines."""
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded


def _rests_on(estimate: PointEstimate) -> str:
    return f"± {estimate.error:.2g}, n = {estimate.count:,}"


def _mean_note(estimate: PointEstimate) -> str:
    mean, error = _milliseconds(estimate.value), _milliseconds(estimate.error)
    return f"mean {mean} ± {error}, n = {estimate.count:,}"


def _milliseconds(value: float) -> str:
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.2g} s"


def _time(ms: float) -> str:
    """Format a time for a scenario, in whole minutes if it is long, else in whole seconds."""
    unit = 60_000 if ms >= 6_000_000 else 1_000
    return format_duration(max(round(ms / unit), 1) * unit)


# -- draws -----------------------------------------------------------------------------------------


def draws_text(calibration: Calibration, count: int = DRAWS) -> str:
    """Return behaviours that may also have made the log, as YAML of named variants.

    Each is a draw from the uncertainty about answers and about talk times. A forecast that
    divides its runs among them includes this uncertainty (`dialsim forecast --draws`).
    """
    chance = np.random.default_rng(_SEED)
    lines = [
        f"# Behaviours that may have made {calibration.source} as well, drawn by dialsim from the",
        "# uncertainty of the estimates. `dialsim forecast --draws` divides its runs among them.",
    ]
    for number in range(1, count + 1):
        lines.append(f"draw {number}:")
        for found in calibration.behaviours.values():
            for key, value in _drawn(found, chance).items():
                change = f"behaviours.{found.name}.{key}={json.dumps(value, ensure_ascii=False)}"
                lines.append(f"  - {json.dumps(change, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def _drawn(found: Calibrated, chance: np.random.Generator) -> dict[str, Any]:
    """Return a draw of one behaviour, by its keys in a scenario."""
    drawn: dict[str, Any] = plain(answering_block(found.answering.draw(chance)))
    if found.talk_time is not None:
        drawn["talkTime"] = found.talk_time.draw(chance)
    if found.holds is not None:
        drawn |= {"setupTime": _NO_SETUP, "ringTime": found.holds.draw(chance).written}
    return drawn


# -- estimates one by one --------------------------------------------------------------------------


def estimates_of(
    found: Calibrated,
) -> Iterator[tuple[str, float, float, float, str, int, bool]]:
    """Yield key, value, low, high, unit, count, and whether the log determines the value."""
    answers, talk, holds = found.answering, found.talk_time, found.holds
    groups: list[tuple[str, Mapping[str, PointEstimate], str]] = [
        ("outcomes", answers.outcomes, "share"),
        ("rates", found.rates, "share"),
        ("people", {"reachable": answers.reachable, "deadNumbers": answers.dead_numbers}, "share"),
        ("people", {"concentration": answers.concentration}, ""),
    ]
    if talk is not None:
        groups.append(("talkTime", talk.estimates, "ms"))
    if holds is not None:
        ends = {end: holds.estimate(outcome) for outcome, end in enumerate(ENDS)}
        groups.append(("ringTime", ends, "ms"))
    if answers.wear is not None:
        per1000, recovery = answers.wear.per1000.factor, answers.wear.recovery.factor
        groups.append(("answeredOdds.byCallerIdUse", {"per1000": per1000}, ""))
        groups.append(("answeredOdds.byCallerIdUse", {"recovery": recovery}, "ms"))
    for group, estimates, unit in groups:
        for name, one in estimates.items():
            is_sure = group != "people" or name in answers.determined
            yield f"{group}.{name}", one.value, one.low, one.high, unit, one.count, is_sure
    factors: dict[str, Mapping[Any, Level]] = {
        "byHour": answers.hours, "byDay": answers.days, "bySegment": answers.segments,
        "byAttempt": dict(enumerate(answers.attempts, 1)),
    }  # fmt: skip
    for group, levels in factors.items():
        for name, level in levels.items():
            value, low, high = np.exp([level.value, level.low, level.high]).tolist()
            yield f"answeredOdds.{group}.{name}", value, low, high, "factor", level.count, True


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
    """Yield key, value with standard error, and the count that it rests on; without factors."""
    for key, value, _, high, unit, count, is_sure in estimates_of(found):
        if unit == "factor":
            continue
        error = (high - value) / 1.96
        match unit:
            case "share":
                shown = f"{value:.1%} ± {error:.1%}"
            case "ms":
                shown = f"{value / 1000:.1f} ± {error / 1000:.1f} s"
            case _:
                shown = f"{value:.2g} ± {error:.2g}"
        rests_on = f"{count:,} {'people' if key.startswith('people.') else 'calls'}"
        yield key, shown if is_sure else "not determined", rests_on


def _held_out(held: HoldOut) -> Iterator[str]:
    better = "better" if held.gain.low > 0 else "worse" if held.gain.high < 0 else "no different"
    yield (
        f"hold-out: {held.learned:,} calls up to {minute_text(held.cut)} Thai time forecast the "
        f"{held.calls:,} after it"
    )
    yield (
        f"  log loss {held.loss:.4f}, of a constant forecast {held.constant:.4f}: {better} by "
        f"{held.gain.value:.4f} ± {held.gain.error:.4f} a call"
    )
    # A number that the log contradicts is a warning, not an entry of the table
    sound = [one for one in held.curve if not one.is_contradicted]
    if sound:
        yield "  forecast → answered: " + ", ".join(
            f"{one.forecast:.0%} → {one.answered.value:.0%}" for one in sound
        )
    yield from (f"warning: {sentence}" for sentence in held.warnings)
