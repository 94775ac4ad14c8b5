"""State of one organization during a run: records and columns of plain numbers.

Records are accessed by reference (`campaign = s.campaigns[0]; campaign.status = RUNNING`), compiled
or not. Fields are 64 bits wide, so that uncompiled arithmetic on them never overflows. Only
`PERSON`, of which there are many, is narrow; its fields are read through `int()`.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.compiled.jit import Columns, rule
from dialsim.engine.trace import CALL_SHIFT, RECIPIENT_SHIFT
from dialsim.interface import CampaignStatus

Record = Any
"""One record. numba infers its fields; mypy cannot."""
Records = NDArray[np.void]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

NO_TIMER = int(np.iinfo(np.int64).max)
"""Instant of an event that is not scheduled."""
UNLIMITED = int(np.iinfo(np.int64).max)

STATUSES = tuple(CampaignStatus)
DRAFT, SCHEDULED, RUNNING, PAUSED, COMPLETED, CANCELLED, EXPIRED = range(len(STATUSES))
"""Statuses as numbers; those from COMPLETED on are final."""

CAUSES = (
    "schedule",
    "start",
    "all_final",
    "pause",
    "resume",
    "cancel",
    "end_date_time",
    "delete",
)
SCHEDULE, START, ALL_FINAL, PAUSE, RESUME, CANCEL, END_DATE_TIME, DELETE = range(len(CAUSES))
"""Causes of a campaign's changes, and commands, as numbers."""

DONE, LOG_IS_FULL, DRAWS_ARE_WANTED, GO_ON = range(4)
"""Reasons why the rules return to Python; GO_ON only lets Python report progress."""

SHARING = ("roundRobin", "priority", "fifo", "weighted", "deadline")
ROUND_ROBIN, PRIORITY, FIFO, WEIGHTED, DEADLINE = range(len(SHARING))
"""Settings of `sharing` as numbers."""

ROWS_OF_A_CALL = 8
"""Upper limit of the log rows that one step writes for one call."""


def _record(*names: str, form: str = "i8") -> np.dtype[np.void]:
    return np.dtype([(name, form) for name in names], align=True)


DIALLER = _record(
    "now",  # current instant
    "ahead",  # next instant, NO_TIMER if there is none
    "look_at",  # lower bound of the campaigns' timers
    "woken",  # releases and dials are to be checked in this instant
    "completing",  # a campaign may be complete in this instant
    "limit",  # maxConcurrentCalls (Q1)
    "capacity",  # calls that the queue accepts (Q2)
    "lines_in_use",  # INITIATED calls, also the size of the heap of `lines`
    "queue_first",
    "queue_length",
    "queue_timeout",
    "release_interval",
    "gap",  # minimum time between two dials (Q4)
    "pace",  # next instant at which the pace allows a dial
    "dialled_last",  # instant, -1 before the first
    "sharing",  # index into `SHARING` (Q3)
    "counts_lines",  # a release requires a free line (Q10)
    "fresh_rank",  # class in `order` of people without and with a counted attempt (Q3)
    "retry_rank",
    "notes_reached",  # reached recipients are recorded (D3)
    "retries",  # not created yet
    "rows",  # lengths in use: of `log_at` and `log_keys`, `dials`, `changes`
    "dials",
    "changes",
    "wanted_reaction",  # draws that Python must make next
    "wanted_attempt",
    "wanted_block",
)

CAMPAIGN = _record(
    "status",
    "started",  # has been RUNNING
    "closed",  # no recipient will be called again
    "is_ready",  # may release calls in this instant
    "first_person",
    "people",
    "start_at",
    "first_due",  # due instant of first calls, and origin of release instants (C1, Q2)
    "end_at",
    "max_attempts",
    "retry_interval",
    "begins_at",  # timer: start of the campaign
    "ends_at",  # timer: endDateTime
    "closes_at",  # timer: close of the window of released calls
    "releases_at",  # timer: next check for a release
    "opened",  # open span of the last query
    "shuts",
    "first_window",
    "windows",
    "waiting",  # calls in SCHEDULED
    "queued",  # calls in QUEUED
    "dialling",  # lines being set up
    "under_way",  # calls ringing or in conversation
    "retries",  # retries not created yet
    "settled",  # settled recipients
    "priority",  # 0 where priorities do not apply (Q7)
    "first_of_priority",  # first campaign with the same priority
    "released_last",  # in `first_of_priority`: campaign of that priority released last, or -1
    "weight",  # Q8
    "at_most",  # Q10
    "reserved",  # Q11
    "reaction",
    "first_number",
    "numbers",
    "first_voice",
    "voices",
)

PERSON = _record(
    "campaign",
    "attempts",  # counted (P5)
    "calls",  # created
    "shown_last",  # caller ID of the last counted dial (P3)
    "script",  # index into `scripts`, -1: none
    form="i4",
)

AGENDA = _record(
    "begin",  # index of its first element in `run_keys` and the other columns of agendas
    "room",  # number of its elements
    "first",  # first entry of the run, from `begin` on
    "length",  # entries of the run
    "heaped",  # entries of the heap
)

QUEUED_CALL = _record("person", "due", "queued_at")

LINE = _record(  # an INITIATED call
    "campaign", "person", "due", "dialled_at", "number", "phase", "ending", "ring", "talk"
)

REACTION = np.dtype(
    [
        ("behaviour", "i8"),
        ("recovery", "i8"),  # index into `recoveries`, -1: no fatigue of caller IDs
        ("per1000", "f8"),
        ("on_holiday", "f8"),
        ("no_answer", "f8"),
        ("busy", "f8"),
    ]
)

SCRIPT = _record("first_step", "steps")
STEP = _record("ending", "ring", "talk", "setup", "until")  # `setup`, `until`: -1 if not set
DIAL = np.dtype([("number", "i4"), ("voice", "i4"), ("behaviour", "i2")])
CHANGE = _record("at", "campaign", "before", "after", "cause")


INTEGER, FLOAT = np.dtype(np.int64), np.dtype(np.float64)


class State(Columns):
    """Complete state of an organization. A heap is a pair of columns.

    People of all campaigns are numbered consecutively, campaign by campaign. `agendas` has the
    waiting calls of each campaign, and behind them the retries that are not created yet. `uses` and
    `used_at` have a row for each of `recoveries` and a column for each of `World.numbers`. `slots`
    to `values` are columns of `Chances`.
    """

    dialler: Annotated[Record, DIALLER, 0]
    campaigns: Annotated[Records, CAMPAIGN, 1]
    reactions: Annotated[Records, REACTION, 1]
    people: Annotated[Records, PERSON, 1]
    agendas: Annotated[Records, AGENDA, 1]
    run_keys: Annotated[Integers, INTEGER, 1]
    run_people: Annotated[Integers, INTEGER, 1]
    heap_keys: Annotated[Integers, INTEGER, 1]
    heap_people: Annotated[Integers, INTEGER, 1]
    queue: Annotated[Records, QUEUED_CALL, 1]
    lines: Annotated[Records, LINE, 1]
    line_at: Annotated[Integers, INTEGER, 1]
    line_numbers: Annotated[Integers, INTEGER, 1]
    free_lines: Annotated[Integers, INTEGER, 1]
    reached_at: Annotated[Integers, INTEGER, 1]
    window_starts: Annotated[Integers, INTEGER, 1]
    window_ends: Annotated[Integers, INTEGER, 1]
    numbers: Annotated[Integers, INTEGER, 1]
    voices: Annotated[Integers, INTEGER, 1]
    scripts: Annotated[Records, SCRIPT, 1]
    steps: Annotated[Records, STEP, 1]
    week_odds: Annotated[Floats, FLOAT, 2]
    holidays: Annotated[Integers, INTEGER, 1]
    recoveries: Annotated[Integers, INTEGER, 1]
    uses: Annotated[Integers, INTEGER, 2]
    used_at: Annotated[Integers, INTEGER, 2]
    slots: Annotated[Integers, INTEGER, 1]
    attempt_odds: Annotated[Floats, FLOAT, 2]
    entry_of: Annotated[Integers, INTEGER, 3]
    entries: Annotated[Integers, INTEGER, 2]
    values: Annotated[Floats, FLOAT, 2]
    log_at: Annotated[Integers, INTEGER, 1]
    log_keys: Annotated[Integers, INTEGER, 1]
    dials: Annotated[Records, DIAL, 1]
    changes: Annotated[Records, CHANGE, 1]


def records(count: int, form: np.dtype[np.void]) -> Any:
    """Return `count` records of zeros."""
    return np.zeros(count, dtype=form).view(np.recarray)


def longer(column: Any, length: int) -> Any:
    """Return a copy of a column with room for `length` entries."""
    grown = np.empty(length, dtype=column.dtype).view(type(column))
    grown[: len(column)] = column
    return grown


@rule
def look_at(s: State, instant: int) -> None:
    """Register that a timer was set to an instant."""
    s.dialler.look_at = min(s.dialler.look_at, instant)


@rule
def has_room(s: State, rows: int) -> bool:
    """Return True if the log has room for `rows` rows and one more dial."""
    return s.dialler.rows + rows <= len(s.log_at) and s.dialler.dials < len(s.dials)


@rule
def write(s: State, person: int, kind: int) -> None:
    """Write a change of a person's newest call to the log."""
    dialler = s.dialler
    call = int(s.people[person].calls)
    s.log_at[dialler.rows] = dialler.now
    s.log_keys[dialler.rows] = person << RECIPIENT_SHIFT | call << CALL_SHIFT | kind
    dialler.rows += 1
