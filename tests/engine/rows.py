"""A trace as rows that can be read, and compared, line by line.

Times are seconds after `START`; a call is `person.call`, such as `0.2` for the second call of the
first person.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import CHANGES, DIALLED, CallLog, Change, Trace
from dialsim.testing.sketch import MONDAY

START = MONDAY.replace(hour=10)
"""Start of the clock in sketches whose traces are read here: Monday, Thai time."""
WEEK_S = 7 * 24 * 3600
ZERO = round(START.timestamp() * 1000)
"""The same as traces have it, in ms since 1970, UTC."""


class Row(NamedTuple):
    """One change of a call, at its place in the tables (T4); positions and `at` as in the trace.

    `number`, `voice` and `behaviour` are what the dial showed, None in other rows.
    """

    at: int
    organization: int
    campaign: int
    recipient: int
    call: int
    occurrence: int
    change: Change
    number: str | None = None
    voice: str | None = None
    behaviour: str | None = None


def rows(trace: Trace) -> list[Row]:
    """Every change of every call, in the order of tables."""
    return sorted(_rows(trace), key=lambda row: row[:6])


def _rows(trace: Trace) -> Iterator[Row]:
    world = trace.world
    voices = [*world.voice_keys, None]
    for o, logs in enumerate(trace.calls):
        for c, log in enumerate(logs):
            columns, dials = log.rows(), 0
            lists = (columns.at, columns.recipient, columns.call, columns.kind)
            for i, (at, recipient, call, kind) in enumerate(
                zip(*(column.tolist() for column in lists), strict=True)
            ):
                shown: tuple[str | None, ...] = ()
                if kind == DIALLED:
                    shown = (
                        world.numbers[log.dial_numbers[dials]],
                        voices[log.dial_voices[dials]],
                        world.behaviours[log.dial_behaviours[dials]],
                    )
                    dials += 1
                yield Row(at, o, c, recipient, call, i, CHANGES[kind], *shown)
            assert dials == len(log.dial_numbers) == len(log.dial_voices)


def after(seconds: float) -> datetime:
    """The instant so many seconds after `START`."""
    return START + timedelta(seconds=seconds)


def seconds(at: int) -> str:
    """An instant as seconds after `START`, exactly."""
    whole, rest = divmod(at - ZERO, 1000)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)


def calls(trace: Trace, of: str = "A") -> list[str]:
    """Transitions of the calls of a campaign: `0 0.1 QUEUED>dialling dialled`."""
    return [
        f"{seconds(row.at)} {row.recipient}.{row.call} {row.change.from_status or 'new'}>"
        f"{row.change.phase or row.change.to_status} {row.change.cause}"
        for row in rows(trace)
        if name(trace, row.organization, row.campaign).split("/")[-1] == of
    ]


def dials(trace: Trace) -> list[str]:
    """Dials as instant, campaign and person: `0 A 0.1`."""
    return [
        f"{seconds(row.at)} {name(trace, *row[1:3])} {row.recipient}.{row.call}"
        for row in rows(trace)
        if row.change.cause == "dialled"
    ]


def numbers(trace: Trace) -> list[tuple[str, str | None]]:
    """The number that each dial showed: `("0.1", "021000001")`."""
    return [
        (f"{row.recipient}.{row.call}", row.number)
        for row in rows(trace)
        if row.change.cause == "dialled"
    ]


def life(trace: Trace) -> list[str]:
    """Transitions of the campaigns: `0 A DRAFT>SCHEDULED schedule`."""
    return [
        f"{seconds(row.at)} {name(trace, row.organization, row.campaign)} "
        f"{row.from_status}>{row.to_status} {row.cause}"
        for row in sorted(trace.campaigns, key=lambda row: row[:3])
    ]


def refusals(trace: Trace) -> list[str]:
    """Refused actions: `5 A pause INVALID_CAMPAIGN_STATE: Cannot pause a DRAFT campaign`."""
    return [
        f"{seconds(row.at)} {name(trace, row.organization, row.campaign)} {row.action} "
        f"{row.code}: {row.message}"
        for row in trace.refused
    ]


def stalled(trace: Trace) -> set[str]:
    """The campaigns that are stalled."""
    return {name(trace, *position) for position in trace.stalled}


def tables(trace: Trace) -> bytes:
    """Contents of a trace without turns, in the order of tables, as bytes to compare runs by."""
    limits, changes = (
        [row[:3] for row in sorted(trace.limits, key=lambda row: row[:2])],
        [row[:6] for row in sorted(trace.campaigns, key=lambda row: row[:3])],
    )
    lines = [row[:5] + row[6:] for row in rows(trace)]
    said = (lines, changes, limits, trace.refused, trace.end, sorted(trace.stalled), trace.cut)
    return repr(said).encode()


def told(trace: Trace) -> dict[str, object]:
    """Contents of the trace of a whole run by name, to compare engines by."""
    return {"rows": [row[:5] + row[6:] for row in rows(trace)], **told_beside_calls(trace)}


def told_beside_calls(trace: Trace) -> dict[str, object]:
    """Contents as in `told`, without the rows of calls."""
    return {
        "campaigns": [row[:6] for row in sorted(trace.campaigns, key=lambda row: row[:3])],
        "requests": [*trace.requests.items()],
        "limits": trace.limits,
        "urls": trace.urls,
        "reanalyses": trace.reanalyses,
        "refused": trace.refused,
        "numbers": trace.world.numbers,
        "voices": trace.world.voice_keys,
        "end": (trace.end, sorted(trace.stalled), trace.cut, trace.idle),
    }


def have_same_calls(one: Trace, other: Trace) -> bool:
    """True if two traces have the same rows, numbers mapped to indices in the traces' own lists.

    That is faster than comparing formatted rows.
    """
    logs, others = ([log for logs in trace.calls for log in logs] for trace in (one, other))
    return all(
        np.array_equal(wanted, found)
        for log, another in zip(logs, others, strict=True)
        for wanted, found in zip(_columns(log), _columns(another), strict=True)
    )


def _columns(log: CallLog) -> list[NDArray[np.int64]]:
    """A log's columns in the order of tables (T4): what happens in one instant has no other."""
    rows = log.rows()
    order = np.lexsort((rows.call, rows.recipient, rows.at))
    place = np.cumsum(rows.kind == DIALLED) - 1
    dials = place[order[rows.kind[order] == DIALLED]]
    shown = (log.dial_numbers, log.dial_voices, log.dial_behaviours)
    columns = (rows.at, rows.recipient, rows.call, rows.kind)
    return [
        *(column[order].astype(np.int64) for column in columns),
        *(np.array(column, dtype=np.int64)[dials] for column in shown),
    ]


def name(trace: Trace, organization: int, campaign: int | None) -> str:
    """A campaign's name; the organization's stands before it if there is more than one."""
    block = trace.world.organizations[organization]
    own = "" if campaign is None else block.campaigns[campaign].name
    return own if len(trace.world.organizations) == 1 else f"{block.name}/{own}"


def lines(text: str) -> list[str]:
    """The lines of a text, without indentation."""
    return [line.strip() for line in text.strip().splitlines()]
