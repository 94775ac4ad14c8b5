"""`replay`: first difference between a log and a model whose people react as in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dialsim.engine import choose
from dialsim.engine.behaviour import durations
from dialsim.engine.rules import ENDINGS, Windows, dial_gap
from dialsim.engine.world import CampaignBlock
from dialsim.errors import ReplayError
from dialsim.interface.arguments import checked
from dialsim.interface.instants import format_instant
from dialsim.interface.phrases import brief_text
from dialsim.logs.bodies import NO_INSTANT
from dialsim.logs.recorded_calls import (
    BITS_OF_CALL,
    NO_ENDING,
    CallTimes,
    Integers,
    Mask,
    RecordedCalls,
)
from dialsim.scenario.service import EngineSettings
from dialsim.scenario.units import format_duration

FEW = 20
"""Fewest calls of an ending to estimate the time of setup and ringing."""
_BELOW, _ABOVE = 3, 6
"""Plausible hold times extend below and above their shortest half by this many of its widths."""
_LEAST_WIDTH_MS = 500
_CLOCK_MS = 1_000
"""Tolerance (ms) for instants in logs without dials, which the real service may have written."""

Event = Literal["created", "lost", "released", "dialled"]
_COLUMNS: dict[Event, str] = {
    "created": "created", "lost": "lost", "released": "queued", "dialled": "dialled"
}  # fmt: skip
"""Events that may differ, in the order within an instant (T4), with their columns of
`CallTimes`.
"""
_SHARING_RULES = {"priority": "Q7", "weighted": "Q8", "deadline": "Q9"}


@dataclass(frozen=True, slots=True)
class HoldRange:
    """Time (ms) of setup and ringing of calls with one ending, if no dials are recorded.

    `typical` is the middle of the shortest interval with half of the calls, `spread` half its
    length; values outside `low` to `high` are implausible.
    """

    low: int
    typical: int
    high: int
    spread: int


@dataclass(frozen=True, slots=True)
class FirstMismatch:
    """The first difference: call, event, instants (ms; None where it does not happen) and rule."""

    at: int
    event: Event
    campaign: str
    recipient: int
    tel: str
    attempt: int
    recorded: int | None
    simulated: int | None
    rule: str
    why: str


@checked(ReplayError)
@dataclass(frozen=True, slots=True)
class Replayed:
    """Result of a replay.

    Of the recorded `calls`, `agree` are as the model makes them, at every instant that the log has.
    `before` counts the agreeing calls before the first difference. `missing` calls are recorded but
    not simulated, `extra` calls simulated but not recorded. `unseen` calls of the model may be
    conversations without a webhook. `hold_times` are by ending, for logs without dials.

    >>> log = dialsim.read_log(result.write("out/log"))
    >>> dialsim.replay(dialsim.RecordedCalls(log, scenario)).first_mismatch is None
    True
    """

    source: str
    scenario: str
    calls: int
    agree: int
    before: int
    missing: int
    extra: int
    unseen: int
    first_mismatch: FirstMismatch | None
    has_dials: bool
    hold_times: Mapping[str, HoldRange]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        counts = f"calls: {self.calls:,}, as the model makes them: {self.agree:,}"
        first = [] if self.first_mismatch is None else [self.first_mismatch.why]
        kind = f"dialsim.Replayed {self.source} against {self.scenario}, {counts}"
        return brief_text(kind, [*first, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON; instants as the interface writes them."""
        document = asdict(self)
        if self.first_mismatch is not None:
            for name in ("at", "recorded", "simulated"):
                at = getattr(self.first_mismatch, name)
                document["first_mismatch"][name] = None if at is None else format_instant(at)
        return document


@dataclass(frozen=True, slots=True)
class Pairs:
    """Recorded calls paired with simulated ones by key.

    `record` and `model` are row numbers, -1 if that side lacks the call. `wrong` has a mask by
    event, True for pairs that differ in it. `at` is the first instant at which a pair differs
    (`NO_INSTANT` if none). `unseen` are calls of the model that the log need not have. `holds` are
    the plausible hold times by ending; empty if the record has dials.
    """

    record: Integers
    model: Integers
    wrong: Mapping[Event, Mask]
    at: Integers
    unseen: Mask
    holds: Mapping[int, HoldRange]

    @property
    def agree(self) -> Mask:
        """True for each pair that agrees."""
        alike: Mask = (self.at == NO_INSTANT) & (self.record >= 0)
        return alike


def hold_ranges(record: RecordedCalls, model: CallTimes) -> dict[int, HoldRange]:
    """Estimate the time of setup and ringing by ending: from the model's dial to the recorded end.

    The estimate is robust: up to half of the simulated dials may be wrong. Endings with few calls
    get the time that the behaviour gives.
    """
    own, theirs = _paired(record.calls, model)
    both = (own >= 0) & (theirs >= 0)
    own, theirs = own[both], theirs[both]
    held = record.calls.over[own] - model.dialled[theirs]
    known = (model.dialled[theirs] != NO_INSTANT) & (record.calls.over[own] != NO_INSTANT)
    found: dict[int, HoldRange] = {}
    for ending in range(len(ENDINGS)):
        times = np.sort(held[known & (record.calls.ending[own] == ending) & (held > 0)])
        # The shortest half of a few calls would be narrow by chance.
        if len(times) < FEW:
            found[ending] = expected_hold_range(record, ending)
            continue
        # The shorth, a robust estimate of location and scale (Rousseeuw & Leroy 1988): up to half
        # of the values may be wrong.
        half = (len(times) + 1) // 2
        widths = times[half - 1 :] - times[: len(times) - half + 1]
        begin = int(np.argmin(widths))
        low, high = int(times[begin]), int(times[begin + half - 1])
        found[ending] = _hold_range(low, high)
    return found


def expected_hold_range(record: RecordedCalls, ending: int) -> HoldRange:
    """Return the hold time by the scenario's behaviours: the 25 % to 75 % quantiles of setup plus
    ringing.
    """
    spans = []
    for name in {block.agent.behaviour for block in record.blocks}:
        behaviour = record.scenario.behaviours[name]
        ring = behaviour.ring_time
        times = (ring.answered, ring.no_answer, ring.busy, ring.failed)[ending]
        levels = np.array([0.25, 0.75])
        spans.append(durations(behaviour.setup_time, levels) + durations(times, levels))
    return _hold_range(int(min(low for low, _ in spans)), int(max(high for _, high in spans)))


def _hold_range(low: int, high: int) -> HoldRange:
    width = max(high - low, _LEAST_WIDTH_MS)
    bounds = max(1, low - _BELOW * width), high + _ABOVE * width
    return HoldRange(bounds[0], (low + high) // 2, bounds[1], width // 2)


def _paired(record: CallTimes, model: CallTimes) -> tuple[Integers, Integers]:
    """Return the rows of record and model by key, -1 where a side lacks the call."""
    # Keys name person, attempt and losses before, so that calls pair up even if they are made hours
    # apart.
    keys = np.union1d(record.key, model.key)
    rows = []
    for calls in (record, model):
        row = np.full(len(keys), -1, dtype=np.int64)
        row[np.searchsorted(keys, calls.key)] = np.arange(len(calls))
        rows.append(row)
    return rows[0], rows[1]


def _at(column: Integers, rows: Integers, missing: int = NO_INSTANT) -> Integers:
    """Return a column at some rows, `missing` for row -1."""
    # Row -1 selects the appended value.
    return np.append(column, missing)[rows]


def _earlier(one: Integers, other: Integers) -> Integers:
    """Return the earlier of two instants; either may be missing."""
    return np.where(
        one == NO_INSTANT, other, np.where(other == NO_INSTANT, one, np.minimum(one, other))
    )


def pairs(record: RecordedCalls, model: CallTimes) -> Pairs:
    """Compare recorded and simulated calls."""
    holds = {} if record.has_dials else hold_ranges(record, model)
    own, theirs = _paired(record.calls, model)
    wrong: dict[Event, Mask] = {}
    at = np.full(len(own), NO_INSTANT)
    unseen = np.zeros(len(own), dtype=bool)
    for event, name in _COLUMNS.items():
        mine = _at(getattr(record.calls, name), own)
        others = _at(getattr(model, name), theirs)
        if event == "lost" and not record.has_dials:
            both = (mine != NO_INSTANT) & (others != NO_INSTANT)
            far = np.abs(np.where(both, mine - others, 0)) > _CLOCK_MS
            # Two clocks are involved; a loss that only one side has differs in any case.
            differs = far | (~both & (mine != others))
        elif record.has_dials:
            differs = mine != others
        elif event == "dialled":
            mine = dials(record, holds, own)
            ending = _at(record.calls.ending, own, NO_ENDING)
            low, high = np.array([(holds[e].low, holds[e].high)
                                  for e in range(len(ENDINGS))])[ending].T  # fmt: skip
            held = _at(record.calls.over, own) - others
            fits = (others != NO_INSTANT) & (held >= low) & (held <= high)
            differs = (mine != NO_INSTANT) & ~fits
            # A call without a webhook may be a conversation that was not analyzed (A2).
            unseen = (own < 0) & (others != NO_INSTANT)
        else:
            differs = np.zeros(len(own), dtype=bool)
        wrong[event] = differs
        at = np.where(differs, _earlier(at, _earlier(mine, others)), at)
    # Calls that only waited leave no body, so that their absence is no difference
    if not record.has_dials:
        shown = (own >= 0) | wrong["lost"] | unseen
        known = _earlier(_at(record.calls.ended, own), _at(model.dialled, theirs))
        known = np.where(own >= 0, _at(record.calls.ended, own), known)
        shown &= known <= record.horizon
        own, theirs, at, unseen = own[shown], theirs[shown], at[shown], unseen[shown]
        wrong = {event: mask[shown] for event, mask in wrong.items()}
    return Pairs(own, theirs, wrong, at, unseen, holds)


@checked(ReplayError)
def replay(record: RecordedCalls) -> Replayed:
    """Replay a record under the scenario's engine settings, and report differences.

    >>> log = dialsim.read_log(result.write("out/log"))
    >>> found = dialsim.replay(dialsim.RecordedCalls(log, scenario))
    >>> found.agree == found.calls
    True
    """
    model = record.played(record.scenario.engine, choose("auto", len(record.calls)))
    found = pairs(record, model)
    recorded, simulated = found.record >= 0, found.model >= 0
    first = _first(record, model, found)
    began = _earlier(_at(record.calls.dialled, found.record), _at(record.calls.lost, found.record))
    if not record.has_dials:
        over = _at(record.calls.over, found.record)
        # Without dials the end of ringing is the earliest known instant of a call.
        began = _earlier(over, _at(record.calls.lost, found.record))
    early = recorded & ((began < first.at) if first is not None else True)
    early &= found.agree
    names = [status.value for status in ENDINGS]
    return Replayed(
        source=record.source,
        scenario=record.scenario.name,
        calls=int(recorded.sum()),
        agree=int(found.agree.sum()),
        before=int(early.sum()),
        missing=int((recorded & ~simulated).sum()),
        extra=int((~recorded & simulated & ~found.unseen).sum()),
        unseen=int(found.unseen.sum()),
        first_mismatch=first,
        has_dials=record.has_dials,
        hold_times={names[ending]: one for ending, one in found.holds.items()},
        notes=tuple(record.notes),
    )


# -- which rule decides --------------------------------------------------------------------------


def _first(record: RecordedCalls, model: CallTimes, found: Pairs) -> FirstMismatch | None:
    """Return the earliest difference; within an instant the first by the order of T4."""
    differing = np.flatnonzero(found.at != NO_INSTANT)
    if not len(differing):
        return None
    at = int(found.at[differing].min())
    here: dict[Event, Mask] = {}
    for event, name in _COLUMNS.items():
        mine = _at(getattr(record.calls, name), found.record)
        if event == "dialled" and not record.has_dials:
            mine = dials(record, found.holds, found.record)
        when = _earlier(mine, _at(getattr(model, name), found.model))
        here[event] = found.wrong[event] & (when == at)
    # Releases and dials alternate in an instant. The different dial of a call that was released
    # alike is no effect of different releases, so it comes before them
    released_alike = here["dialled"] & ~found.wrong["released"]
    candidates: list[tuple[Event, Mask]] = [
        ("created", here["created"]), ("lost", here["lost"]), ("dialled", released_alike),
        ("released", here["released"]), ("dialled", here["dialled"]),
    ]  # fmt: skip
    event, mask = next((event, mask) for event, mask in candidates if mask.any())
    return _Scene(record, model, found).mismatch(int(np.flatnonzero(mask)[0]), event, at)


def dials(
    record: RecordedCalls, holds: Mapping[int, HoldRange], rows: Integers | None = None
) -> Integers:
    """Return the instants of the recorded dials of some rows, or of all; estimated by hold times
    if the record has none.
    """
    rows = np.arange(len(record.calls)) if rows is None else rows
    if record.has_dials:
        return _at(record.calls.dialled, rows)
    over, ending = _at(record.calls.over, rows), _at(record.calls.ending, rows, NO_ENDING)
    typical = np.array([holds[e].typical for e in range(len(ENDINGS))])[ending]
    return np.where((ending == NO_ENDING) | (over == NO_INSTANT), NO_INSTANT, over - typical)


@dataclass(frozen=True, slots=True)
class _Scene:
    """Situation at the first difference, from which the deciding rule is inferred."""

    record: RecordedCalls
    model: CallTimes
    found: Pairs

    @property
    def settings(self) -> EngineSettings:
        return self.record.scenario.engine

    def mismatch(self, pair: int, event: Event, at: int) -> FirstMismatch:
        """Return the difference of a pair, with its rule."""
        row, other = int(self.found.record[pair]), int(self.found.model[pair])
        calls, here = (self.record.calls, row) if row >= 0 else (self.model, other)
        block = self.record.blocks[int(calls.campaign[here])]
        name = _COLUMNS[event]
        recorded = _instant(getattr(self.record.calls, name), row)
        if event == "dialled" and not self.record.has_dials:
            recorded = _instant(dials(self.record, self.found.holds, np.array([row])), 0)
        simulated = _instant(getattr(self.model, name), other)
        rule, why = self._rule(event, block, row, recorded, simulated, at)
        recipient = int(calls.recipient[here])
        return FirstMismatch(
            at=at, event=event, campaign=block.name, recipient=recipient,
            tel=block.people.tel(recipient), attempt=int(calls.attempt[here]),
            recorded=recorded, simulated=simulated, rule=rule, why=why,
        )  # fmt: skip

    def _rule(
        self,
        event: Event,
        block: CampaignBlock,
        row: int,
        recorded: int | None,
        simulated: int | None,
        at: int,
    ) -> tuple[str, str]:
        """Return the rule that explains the difference, and the evidence for it."""
        if event == "created":
            return self._of_creation(block, row, recorded, simulated)
        if event == "lost":
            return self._of_loss(row, recorded)
        found = self._outside(block, recorded)
        if found is None and event == "dialled" and not self.record.has_dials:
            found = self._too_soon(block, row, recorded)
        if found is None:
            found = self._others(event, block, at)
        if found is not None:
            return found
        # The model is ahead if it had room, a line or the pace earlier than the log.
        is_ahead = simulated is not None and (recorded is None or simulated < recorded)
        of_step = self._of_release if event == "released" else self._of_dial
        return of_step(block, is_ahead)

    def _of_creation(
        self, block: CampaignBlock, row: int, recorded: int | None, simulated: int | None
    ) -> tuple[str, str]:
        if recorded is None or simulated is None:
            return "R1", "only one of log and model calls again: maxAttempts, or R3"
        if int(self.record.calls.attempt[row]) == 1:
            return "C1", "the schedule request comes at another instant"
        interval = block.schedule.retry_interval if block.schedule is not None else 0
        return "R2", f"retryInterval is {format_duration(interval)}"

    def _of_loss(self, row: int, recorded: int | None) -> tuple[str, str]:
        queued = _instant(self.record.calls.queued, row)
        why = f"queueTimeout is {format_duration(self.settings.queue_timeout)}"
        if recorded is not None and queued is not None:
            why = f"lost after {format_duration(recorded - queued)}, {why}"
        return "Q5", why

    def _outside(self, block: CampaignBlock, recorded: int | None) -> tuple[str, str] | None:
        """Return a rule if the log dials at an instant that the scenario forbids."""
        if recorded is None or block.schedule is None:
            return None
        # With estimated dials the rule must be broken at both ends of the uncertainty.
        windows, slack = Windows.of(block.schedule.time_windows), self._slack
        if not any(windows.is_open(recorded + by) for by in (-slack, 0, slack)):
            return "T3", "the log calls outside the scenario's time windows"
        if recorded + slack < block.schedule.start_date_time:
            return "C1", "the log calls before the scenario's startDateTime"
        end = block.schedule.end_date_time
        if end is not None and recorded - slack >= end:
            return "C7", "the log calls from the scenario's endDateTime on"
        return None

    def _too_soon(
        self, block: CampaignBlock, row: int, recorded: int | None
    ) -> tuple[str, str] | None:
        """Return a rule if a retry is dialled before it is due, which bodies can show too."""
        calls = self.record.calls
        if block.schedule is None or row < 1 or recorded is None:
            return None
        is_retry = calls.key[row - 1] >> BITS_OF_CALL == calls.key[row] >> BITS_OF_CALL
        waited = int(calls.over[row] - calls.ended[row - 1])
        if not is_retry or waited >= block.schedule.retry_interval:
            return None
        return "R2", (
            f"a retry {format_duration(waited)} after the call before it; retryInterval is "
            f"{format_duration(block.schedule.retry_interval)}"
        )

    def _others(self, event: Event, block: CampaignBlock, at: int) -> tuple[str, str] | None:
        """Return the rule on order (Q3) if log and model choose different people at one instant."""
        found, calls = self.found, self.record.calls
        rows, others = found.record, found.model
        if event == "dialled":
            mine = dials(self.record, self.found.holds, rows)
        else:
            mine = _at(getattr(calls, _COLUMNS[event]), rows)
        theirs = _at(getattr(self.model, _COLUMNS[event]), others)
        campaign = np.where(rows >= 0, _at(calls.campaign, rows), _at(self.model.campaign, others))
        owners = np.array([one.organization for one in self.record.blocks])
        about = (owners[campaign] == block.organization) & found.wrong[event]
        in_log, in_model = (
            (instants != NO_INSTANT) & (np.abs(instants - at) <= self._slack)
            for instants in (mine, theirs)
        )
        ones = np.flatnonzero(about & in_log & ~in_model)
        instead = np.flatnonzero(about & in_model & ~in_log & (rows >= 0))
        if not len(ones) or not len(instead):
            return None
        one, other = int(rows[ones[0]]), int(rows[instead[0]])
        # That two calls changed places may only be the effect of a window that one side does not
        # have.
        forbidden = self._outside(self.record.blocks[int(calls.campaign[one])], at)
        if forbidden is not None:
            return forbidden
        choice = f"the log takes {self._person(one)}, the model {self._person(other)}"
        if calls.campaign[one] == calls.campaign[other]:
            return "Q3", f"order is {self.settings.order}: {choice}"
        rule = _SHARING_RULES.get(self.settings.sharing, "Q3")
        return rule, f"sharing is {self.settings.sharing}: {choice}"

    @property
    def _slack(self) -> int:
        """Uncertainty (ms) of the recorded dials."""
        return max((one.high - one.typical for one in self.found.holds.values()), default=0)

    def _person(self, row: int) -> str:
        calls = self.record.calls
        block, attempt = self.record.blocks[int(calls.campaign[row])], int(calls.attempt[row])
        return f"{block.people.tel(int(calls.recipient[row]))} ({block.name}, attempt {attempt})"

    def _of_release(self, block: CampaignBlock, is_ahead: bool) -> tuple[str, str]:
        """Attribute a release that one side made earlier to the interval or the queue (Q2)."""
        interval, limit = self.settings.release_interval, self.settings.queue_limit
        waits = f"the {'log' if is_ahead else 'model'} waits longer"
        grid = self.record.release_grid
        if grid % interval if interval else grid > 1:
            own, known = format_duration(interval), format_duration(grid)
            return "Q2", f"{waits}: releaseInterval is {own}, in the log releases are {known} apart"
        longest = self.record.longest_queue(block.organization)
        room = "that of the lines" if limit is None else limit
        return "Q2", (
            f"{waits} for room: queueLimit is {room}, and at most {longest} calls wait in the "
            "queue of the log"
        )

    def _of_dial(self, block: CampaignBlock, is_ahead: bool) -> tuple[str, str]:
        """Attribute a dial that one side made earlier to a free line or the pace (Q1, Q4)."""
        gap = dial_gap(self.settings.calls_per_second)
        lines = self.record.scenario.organizations[block.organization].max_concurrent_calls
        most = self.record.most_at_once(block.organization) if self.record.has_dials else lines
        # With callsPerSecond the model may wait for the pace, however many lines the log uses.
        if most < lines if is_ahead else most > lines and not gap:
            return "Q1", f"the log has at most {most} lines in use, the scenario {lines}"
        first = "the model dials it, the log not yet" if is_ahead else "the log dials sooner"
        # Bodies show no releases, so that the interval may be the cause as well.
        waits = "" if self.record.has_dials else "releaseInterval, or "
        pace = f"{format_duration(gap)} between dials" if gap else "no limit"
        return "Q4", f"{first}: {waits}callsPerSecond ({pace})"


def _instant(column: NDArray[np.int64], row: int) -> int | None:
    value = int(column[row]) if row >= 0 else NO_INSTANT
    return None if value == NO_INSTANT else value
