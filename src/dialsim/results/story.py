"""Story of one recipient in sentences with Thai times, and status sequences of all recipients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.log_reader import CALL_STATUSES, CREATES, TO_STATUS, Calls
from dialsim.engine.trace import CHANGES, DIALLED, CallLog, CallRows, Trace
from dialsim.engine.world import World
from dialsim.errors import DialsimError
from dialsim.interface.instants import date_text, duration_text, minute_text, time_text
from dialsim.interface.phrases import counted
from dialsim.results.campaigns import (
    PERSON_STATES,
    CampaignTimeline,
    PersonState,
    Position,
    listed,
)
from dialsim.results.run_view import CampaignResult, RunView
from dialsim.scenario.campaign import Past

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_NEXT_CALL = len(CALL_STATUSES)
_CHANGES_STATUS = np.array([change.from_status != change.to_status for change in CHANGES])
_TEXTS = (*CALL_STATUSES, "|")


def sequences(reading: RunView) -> pd.Series[str]:
    """Return the statuses of each recipient's calls in order, calls separated by `|`.

    Indexed by (organization, campaign, recipient). Changes of the phase alone are left out:
    `SCHEDULED QUEUED INITIATED NO_ANSWER | SCHEDULED QUEUED INITIATED COMPLETED`. Empty for a
    recipient without a call. Recipients removed as duplicates (D3) have no row.
    """
    import pandas as pd
    import pyarrow as pa

    from dialsim.results.tables import campaign_columns

    campaigns = [own.calls for own in reading.campaigns.values()]
    everyone = [np.arange(calls.people, dtype=np.int32) for calls in campaigns]
    index = pd.MultiIndex.from_arrays(
        [
            *campaign_columns(
                reading.catalog, reading.blocks, [calls.people for calls in campaigns]
            ).values(),
            np.concatenate([np.empty(0, dtype=np.int32), *everyone]),
        ],
        names=["organization", "campaign", "recipient"],
    )
    parts = pa.chunked_array([_texts(calls) for calls in campaigns], type=pa.large_string())
    states = [own.states for own in reading.campaigns.values()]
    kept = np.concatenate([np.empty(0, bool), *map(listed, states)])
    series = pd.Series(pd.array(parts, dtype="str"), index=index, name="sequence")
    return series if kept.all() else series[kept]


def sequence_of(own: CampaignResult, recipient: int) -> str:
    """Return the sequence of one recipient (position from 0), as in `sequences`.

    Raises DialsimError for an unknown recipient.
    """
    check_recipient(own.life, recipient)
    return str(_texts(own.calls)[recipient])


def _texts(calls: Calls) -> pa.Array:
    """Return the sequences of one campaign as texts; each distinct sequence is formatted once."""
    import pyarrow as pa

    words, first = _codes(calls)
    # The `large_` types have 64-bit offsets, like `first`.
    buffers = [None, pa.py_buffer(first), pa.py_buffer(words)]
    coded = pa.Array.from_buffers(pa.large_binary(), calls.people, buffers).dictionary_encode()
    texts = [" ".join(_TEXTS[code] for code in word) for word in coded.dictionary.to_pylist()]
    return pa.array(texts, type=pa.large_string()).take(coded.indices)


def _codes(calls: Calls) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return one byte per status or `|`, person by person, and the start of each person's bytes."""
    order = calls.rows_by_call()
    kinds = calls.rows.kind[order]
    order, kinds = order[_CHANGES_STATUS[kinds]], kinds[_CHANGES_STATUS[kinds]]
    people = calls.rows.recipient[order]
    # A `|` goes before each call but a person's first: such rows take two bytes.
    parted = CREATES[kinds] & (calls.rows.call[order] > 1)
    width = 1 + parted.astype(np.int64)
    index = np.cumsum(width) - 1
    codes = np.full(int(width.sum()), _NEXT_CALL, dtype=np.uint8)
    codes[index] = TO_STATUS[kinds]
    first = np.zeros(calls.people + 1, dtype=np.int64)
    np.cumsum(np.bincount(people, weights=width, minlength=calls.people), out=first[1:])
    return codes, first


class Story(str):
    """Text of several lines that notebooks and the prompt show without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="line-height:1.4">{escape(self)}</pre>'


class PersonChange(NamedTuple):
    """Row of the log of a recipient's calls; `kind` is an index into `CHANGES`.

    In a DIALLED row `number` and `voice` are indices into `World.numbers` and `World.voice_keys`,
    with voice -1 if unknown; in other rows both are -1.
    """

    at: int
    call: int
    kind: int
    number: int = -1
    voice: int = -1


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """Event in a story; `since` is the instant of the same call's previous change.

    `turn` orders events of one instant: changes of the campaign (0), calls (1), completion of the
    campaign (2).
    """

    at: int
    turn: int
    text: str
    since: int | None = None


def story_of(reading: RunView, recipient: int, campaign: str | None = None) -> Story:
    """Return everything that happened to a recipient (position from 0) of a campaign.

    Raises DialsimError unless exactly one campaign matches, and for an unknown recipient.
    """
    own = reading.find(campaign)
    check_recipient(own.life, recipient)
    events = in_order([*_calls(own, recipient), *campaign_events(reading.trace, own.life.position)])
    lines = [*_heading(own, recipient), *_days(events), "", _end(own, recipient)]
    return Story("\n".join(lines))


def check_recipient(life: CampaignTimeline, recipient: int) -> None:
    """Raise DialsimError unless a campaign has a recipient at this position."""
    if not 0 <= recipient < life.people:
        raise DialsimError(
            f"campaign {life.full_name} has {life.people} recipients, counted from 0; "
            f"there is no recipient {recipient}"
        )


def in_order(events: Iterable[StoryEvent]) -> list[StoryEvent]:
    """Sort events of calls and of their campaign in order of time."""
    return sorted(events, key=lambda event: (event.at, event.turn))


def _heading(own: CampaignResult, recipient: int) -> list[str]:
    people = own.block.people
    code = -1 if people.segment is None else int(people.segment[recipient])
    about = [
        people.customer_name(recipient),
        people.tel(recipient),
        None if code < 0 else f"segment {people.segments[code]}",
    ]
    return [
        f"Recipient {recipient} of {own.life.name} ({own.life.organization})",
        " · ".join(part for part in about if part),
        *_before(people.history.get(recipient)),
    ]


def _before(past: Past | None) -> Iterator[str]:
    """Describe the history."""
    if past is not None:
        ended = f"the last call ended on {minute_text(past.last_ended_at)}"
        yield f"Before: {counted(past.call_attempt, 'attempt')}, {past.latest_call_status}; {ended}"


def _days(events: list[StoryEvent]) -> Iterator[str]:
    """Yield the events under a heading per Thai date, with the time since the previous change."""
    day = ""
    for event in events:
        if date_text(event.at) != day:
            day = date_text(event.at)
            yield ""
            yield f"{day}, Thai time"
        passed = 0 if event.since is None else event.at - event.since
        later = f"  (after {duration_text(passed)})" if passed else ""
        yield f"  {time_text(event.at):<12}  {event.text}{later}"


def _calls(own: CampaignResult, recipient: int) -> Iterator[StoryEvent]:
    changes = person_changes(own.part.log, own.calls.rows, recipient)
    return call_events(own.run.world, changes, int(own.calls.past_attempts[recipient]))


def person_changes(log: CallLog, rows: CallRows, recipient: int) -> list[PersonChange]:
    """Return a recipient's rows of a campaign's log; `rows` are all rows of the log."""
    changes = []
    for row in np.flatnonzero(rows.recipient == recipient).tolist():
        number = voice = -1
        if rows.kind[row] == DIALLED:
            # The log keeps number and voice once per dial, not per row.
            dial = int(np.count_nonzero(rows.kind[:row] == DIALLED))
            number, voice = log.dial_numbers[dial], log.dial_voices[dial]
        at, call, kind = int(rows.at[row]), int(rows.call[row]), int(rows.kind[row])
        changes.append(PersonChange(at, call, kind, number, voice))
    return changes


def call_events(
    world: World, changes: Iterable[PersonChange], attempts: int = 0
) -> Iterator[StoryEvent]:
    """Yield the changes of one recipient's calls as events, in order.

    `attempts` is the number of attempts before the scenario begins (P5).
    """
    before = dict[int, int]()
    for at, call, kind, number, voice in changes:
        change = CHANGES[kind]
        if kind == DIALLED:
            spoken = f", voice {world.voice_keys[voice]}" if voice >= 0 else ""
            text = f"attempt {attempts + 1}: dialled from {world.numbers[number]}{spoken}"
        elif change.cause == "ended":
            attempts += 1
            text = f"the call ends: {change.to_status}"
        else:
            text = _WORDS[change.cause].format(call=call)
        # A retry is a separate call: its wait counts from the last change of the previous call.
        since = before.get(call - 1 if change.cause == "retry" else call)
        yield StoryEvent(at, 1, text, since)
        before[call] = at


_WORDS = {
    "scheduled": "call {call} is scheduled",
    "retry": "call {call} is scheduled: a retry is due",
    "released": "call {call} joins the queue",
    "ringing": "the phone rings",
    "answered": "answered: the conversation begins",
    "queue_timeout": "call {call} waited too long in the queue: CANCELLED, no attempt counted",
    "window_closed": "the window closes: call {call} leaves the queue, back to SCHEDULED",
    "paused": "the pause takes call {call} back to SCHEDULED",
    "cancelled": "call {call} is CANCELLED with the campaign",
    "deleted": "call {call} is CANCELLED: the campaign is deleted",
    "expired": "call {call} is EXPIRED: endDateTime has come",
    "analysis_failed": "the analysis of call {call} fails: ANALYSIS_FAILED",
    "late_result": "the result of call {call} comes late: COMPLETED again",
}


def campaign_events(trace: Trace, position: Position) -> Iterator[StoryEvent]:
    """Yield the changes of a campaign's status as events, in order."""
    for change in trace.campaign(*position).changes:
        cause = change.cause.replace("_", " ")
        turn = 2 if change.cause == "all_final" else 0
        yield StoryEvent(change.at, turn, f"- the campaign is {change.to_status} ({cause})")


def _end(own: CampaignResult, recipient: int) -> str:
    """Return the last line: the recipient's final state."""
    calls = own.calls
    attempts = int(calls.attempts_of(np.array([recipient]))[0])
    state = PERSON_STATES[own.states[recipient]]
    if state is not PersonState.REACHED:
        return _ENDINGS[state].format(made=counted(attempts, "attempt"))
    if calls.past_reached[recipient]:
        return f"Reached before the scenario began, by attempt {attempts}: not called again."
    call = calls[calls.of(recipient)[-1]]  # R3: no call follows an answered one
    talked = f"talked {duration_text(call.talk_ms)}" if call.talk_ms else "talking still"
    return f"Reached on {minute_text(call.started_at)}, by attempt {call.attempt}; {talked}."


_ENDINGS = {
    PersonState.EXHAUSTED: "Not reached: {made}, as many as were allowed.",
    PersonState.EXPIRED: "Not reached: endDateTime came after {made}.",
    PersonState.CANCELLED: "Not reached: the campaign was cancelled after {made}.",
    PersonState.STALLED: "Still to be called after {made}, and nothing would ever happen again.",
    PersonState.PENDING: "Still to be called, or in a call, after {made} when the run ended.",
    PersonState.UNSCHEDULED: "Never called: the campaign was never scheduled.",
    PersonState.REMOVED: "Off the list: removed as a duplicate by the schedule request.",
}
