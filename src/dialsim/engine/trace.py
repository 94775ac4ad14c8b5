"""Trace: the complete output of an engine, from which all results are read.

A trace consists of integer columns. Each campaign has a log of its calls' status changes, in the
order of events. A row is an instant and a packed key of recipient, call and kind of change. Only
the legal kinds in `CHANGES` can be written.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dialsim.interface import CallStatus, CampaignStatus, Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialsim.engine.world import CampaignBlock, OrganizationBlock, World
    from dialsim.interface.payload import PostLog
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.behaviour import ScriptStep

S = CallStatus


class Change(NamedTuple):
    """Legal kind of change of a call; `from_status` is None for its creation."""

    from_status: CallStatus | None
    to_status: CallStatus
    phase: Phase | None
    cause: str


CHANGES: tuple[Change, ...] = (
    Change(None, S.SCHEDULED, None, "scheduled"),
    Change(None, S.SCHEDULED, None, "retry"),
    Change(S.SCHEDULED, S.QUEUED, None, "released"),
    Change(S.QUEUED, S.INITIATED, Phase.DIALLING, "dialled"),
    Change(S.INITIATED, S.INITIATED, Phase.RINGING, "ringing"),
    Change(S.INITIATED, S.INITIATED, Phase.TALKING, "answered"),
    Change(S.INITIATED, S.COMPLETED, None, "ended"),
    Change(S.INITIATED, S.NO_ANSWER, None, "ended"),
    Change(S.INITIATED, S.BUSY, None, "ended"),
    Change(S.INITIATED, S.FAILED, None, "ended"),
    Change(S.QUEUED, S.CANCELLED, None, "queue_timeout"),
    Change(S.QUEUED, S.SCHEDULED, None, "window_closed"),
    Change(S.QUEUED, S.SCHEDULED, None, "paused"),
    Change(S.INITIATED, S.SCHEDULED, None, "paused"),
    Change(S.SCHEDULED, S.CANCELLED, None, "cancelled"),
    Change(S.QUEUED, S.CANCELLED, None, "cancelled"),
    Change(S.INITIATED, S.CANCELLED, None, "cancelled"),
    Change(S.SCHEDULED, S.CANCELLED, None, "deleted"),
    Change(S.QUEUED, S.CANCELLED, None, "deleted"),
    Change(S.INITIATED, S.CANCELLED, None, "deleted"),
    Change(S.SCHEDULED, S.EXPIRED, None, "expired"),
    Change(S.QUEUED, S.EXPIRED, None, "expired"),
    Change(S.INITIATED, S.EXPIRED, None, "expired"),
    # Changes by analyses: an engine never writes these rows, readers of the trace add them (A4).
    Change(S.COMPLETED, S.ANALYSIS_FAILED, None, "analysis_failed"),
    Change(S.ANALYSIS_FAILED, S.COMPLETED, None, "late_result"),
)


def kind(from_status: CallStatus | None, to_status: CallStatus, cause: str) -> int:
    """Return the index of a change in `CHANGES`; raises KeyError if it is not legal."""
    for index, change in enumerate(CHANGES):
        if (change.from_status, change.to_status, change.cause) == (from_status, to_status, cause):
            return index
    raise KeyError((from_status, to_status, cause))


SCHEDULED = kind(None, S.SCHEDULED, "scheduled")
RETRY = kind(None, S.SCHEDULED, "retry")
RELEASED = kind(S.SCHEDULED, S.QUEUED, "released")
DIALLED = kind(S.QUEUED, S.INITIATED, "dialled")
RINGING = kind(S.INITIATED, S.INITIATED, "ringing")
ANSWERED = kind(S.INITIATED, S.INITIATED, "answered")
ENDED = {
    status: kind(S.INITIATED, status, "ended")
    for status in (S.COMPLETED, S.NO_ANSWER, S.BUSY, S.FAILED)
}
QUEUE_TIMEOUT = kind(S.QUEUED, S.CANCELLED, "queue_timeout")
WINDOW_CLOSED = kind(S.QUEUED, S.SCHEDULED, "window_closed")
PAUSED = {status: kind(status, S.SCHEDULED, "paused") for status in (S.QUEUED, S.INITIATED)}
DROPPED = {
    (status, cause): kind(status, S.EXPIRED if cause == "expired" else S.CANCELLED, cause)
    for status in (S.SCHEDULED, S.QUEUED, S.INITIATED)
    for cause in ("cancelled", "deleted", "expired")
}

ANALYSIS_FAILED = kind(S.COMPLETED, S.ANALYSIS_FAILED, "analysis_failed")
LATE_RESULT = kind(S.ANALYSIS_FAILED, S.COMPLETED, "late_result")

# A row's key packs recipient (from 0), call (from 1) and kind, in this order, into one int64. Only
# the functions below and the compiled engine (`compiled/state.py`) depend on the layout.
RECIPIENT_SHIFT = 32
CALL_SHIFT = 8


def call_key(recipient: int, call: int) -> int:
    """Return the packed key of a call (recipient from 0, call from 1), to be or-ed with a kind."""
    return recipient << RECIPIENT_SHIFT | call << CALL_SHIFT


def call_keys(
    recipients: NDArray[np.integer], calls: NDArray[np.integer] | int
) -> NDArray[np.int64]:
    """Return the packed keys of many calls."""
    numbers = np.asarray(calls, dtype=np.int64)
    return recipients.astype(np.int64) << RECIPIENT_SHIFT | numbers << CALL_SHIFT


def recipients_of(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the recipient of each key."""
    return keys >> RECIPIENT_SHIFT


def kinds_of(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the kind of change of each key, an index into `CHANGES`."""
    return keys & 0xFF


class Dials(NamedTuple):
    """Columns of `CallLog` with one entry per DIALLED row."""

    numbers: NDArray[np.int32]
    voices: NDArray[np.int32]
    behaviours: NDArray[np.int16]


_INSTANTS = attrgetter("_at")


class CallLog:
    """Status changes of one campaign's calls, in the order of events.

    `dial_numbers`, `dial_voices` and `dial_behaviours` have one entry per DIALLED row, in the same
    order: indices into `World.numbers`, `World.voice_keys` (-1: unknown voice) and
    `World.behaviours`. `scripted` maps `call_key` to the script step of a call's newest dial that
    was not withdrawn (P6).
    """

    __slots__ = (
        "_at",
        "_begun",
        "_keys",
        "_turn_rows",
        "_turns",
        "dial_behaviours",
        "dial_numbers",
        "dial_voices",
        "scripted",
    )

    def __init__(self, begun: Sequence[int] = ()) -> None:
        """`begun` is the list `Trace.turns`, which gets an entry with each turn."""
        self._at = array("q")
        self._keys = array("q")
        self._begun = begun
        self._turns = array("q", [0])  # turns in which rows were written
        self._turn_rows = array("q", [0])  # index of the first row of each
        self.dial_numbers = array("i")
        self.dial_voices = array("i")
        self.dial_behaviours = array("h")
        self.scripted: dict[int, ScriptStep] = {}

    @classmethod
    def whole(cls, at: NDArray[np.int64], keys: NDArray[np.int64], dials: Dials) -> CallLog:
        """Build the log of a finished run; nothing can be appended to it."""
        log = cls()
        # numpy arrays in place of array.array: all readers accept both, and a copy would double the
        # memory.
        log._at, log._keys = cast("array[int]", at), cast("array[int]", keys)
        log.dial_numbers, log.dial_voices, log.dial_behaviours = (
            cast("array[int]", column) for column in dials
        )
        return log

    def __len__(self) -> int:
        return len(self._at)

    def copy(self, begun: Sequence[int]) -> CallLog:
        """Return a copy of the rows written so far, with `begun` as its turns; the log may grow."""
        log = CallLog(begun)
        for column in self.__slots__:
            if column != "_begun":
                setattr(log, column, copy(getattr(self, column)))
        return log

    def append(self, at: int, key: int) -> None:
        """Append one change; `key` is `call_key(…) | kind`."""
        if len(self._begun) != self._turns[-1]:
            self._begin_turn()
        self._at.append(at)
        self._keys.append(key)

    def extend(self, at: int, recipients: NDArray[np.int64], call: int, kind: int) -> None:
        """Append the same change of call number `call` of many recipients at one instant."""
        if len(self._begun) != self._turns[-1]:
            self._begin_turn()
        self._at.frombytes(np.full(len(recipients), at, dtype=np.int64).tobytes())
        self._keys.frombytes((call_keys(recipients, call) | kind).tobytes())

    def has_any(self, kinds: frozenset[int], since: int) -> bool:
        """Return True if any row from index `since` on has one of these kinds."""
        # For the few new rows a loop is faster than creating a numpy array.
        return any(key & 0xFF in kinds for key in self._keys[since:])

    def _begin_turn(self) -> None:
        # At the first row of a turn, not at its command: most commands write to few logs.
        self._turns.append(len(self._begun))
        self._turn_rows.append(len(self._at))

    def turns(self, rows: int) -> NDArray[np.int64]:
        """Return the turn in which each of the first `rows` rows was written."""
        entry = np.searchsorted(self._turn_rows, np.arange(rows), side="right") - 1
        return np.array(self._turns, dtype=np.int64)[entry]

    def count_until(self, at: int) -> int:
        """Return the number of rows up to and including an instant."""
        return bisect_right(self._at, at)

    def rows(self, since: int = 0, until: int | None = None) -> PackedRows:
        """Return the rows from index `since` up to `until` as columns; the log may grow."""
        at, keys = (_part(column, since, until) for column in (self._at, self._keys))
        return PackedRows(at, keys)


def _part(column: array[int], since: int, until: int | None) -> NDArray[np.int64]:
    """Return a part of a column as an array."""
    if isinstance(column, np.ndarray):  # column of a finished log
        return column[since:until]
    # A copy: an array.array with an exported buffer cannot grow.
    return np.array(column[since:until] if since or until is not None else column, dtype=np.int64)


@dataclass(frozen=True)
class CallRows:
    """Columns of one campaign's log; `at` is in ms, `kind` an index into `CHANGES`."""

    at: NDArray[np.int64]
    recipient: NDArray[np.int32]
    call: NDArray[np.int32]
    kind: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, rows: slice | NDArray[np.bool_] | NDArray[np.integer]) -> CallRows:
        return CallRows(self.at[rows], self.recipient[rows], self.call[rows], self.kind[rows])


class PackedRows(CallRows):
    """Rows whose recipients and calls stay packed in their keys, which saves 8 bytes a row."""

    _low: NDArray[np.uint32]

    def __init__(self, at: NDArray[np.int64], keys: NDArray[np.int64]) -> None:
        # Views of the key's parts take a third of the time of shifts and masks over whole words.
        words = keys.astype("<i8", copy=False)
        parts = {
            "at": at,
            "recipient": words.view("<i4")[1::2],
            "kind": words.view(np.uint8)[::8].copy(),
            "_low": words.view("<u4")[::2],
        }
        self.__dict__.update(parts)

    def unpacked_calls(self) -> NDArray[np.int32]:
        """Return the ordinal of each row's call, as `call` does, without keeping the column."""
        return (self._low >> CALL_SHIFT).view(np.int32)

    @cached_property
    def call(self) -> NDArray[np.int32]:
        """Ordinal of each row's call."""
        return self.unpacked_calls()


class CampaignChange(NamedTuple):
    """Change of a campaign's status; positions are those of the scenario, from 0.

    `turn`, here and below, is the number of commands from outside so far (see `Trace.turn`).
    """

    at: int
    organization: int
    campaign: int
    from_status: CampaignStatus
    to_status: CampaignStatus
    cause: str
    turn: int = 0


class Refusal(NamedTuple):
    """Refused schedule request or timeline action of the scenario file."""

    at: int
    organization: int
    campaign: int | None
    action: str
    code: str
    message: str


class ScheduledCampaign(NamedTuple):
    """Accepted schedule request of a campaign, made at `at`; `start_at` is its effective start
    (F3).

    `removed` are the recipients that the request dropped as duplicates (D3), in upload order.
    """

    request: ScheduleRequest
    at: int
    start_at: int
    removed: tuple[int, ...] = ()


class LimitChange(NamedTuple):
    """maxConcurrentCalls of an organization from `at` on (the first entry is clock.start)."""

    at: int
    organization: int
    limit: int
    turn: int = 0


class UrlChange(NamedTuple):
    """Webhook URL of an organization from `at` on, or None (the first entry is clock.start)."""

    at: int
    organization: int
    url: str | None
    turn: int = 0


class Reanalysis(NamedTuple):
    """Re-analysis of a random share of a campaign's delivered calls, begun at `at` (A5).

    `only` is the recipient (from 0) and the ordinal (from 1) of a single call instead.
    """

    at: int
    organization: int
    campaign: int
    share: float
    turn: int = 0
    only: tuple[int, int] | None = None


@dataclass(slots=True)
class Trace:
    """Everything that happened to the calls and campaigns of `world` in a run.

    `calls[o][c]` is the log of campaign c of organization o. `end` is the last completed instant.
    `turns` has the instant of each command from outside, in order; a command runs after all other
    work of its instant (T4). `requests` maps (organization, campaign) positions to the schedule
    request in force. `posts` are real POSTs; None with a simulated receiver (W5). `stalled` holds
    the positions of campaigns that are not final but can never change again (T5). `cut` is True if
    clock.end came before the run was over, `idle` if nothing is left to happen. `engine` is the
    name of the engine.
    """

    world: World
    calls: list[list[CallLog]]
    campaigns: list[CampaignChange] = field(default_factory=list)
    requests: dict[tuple[int, int], ScheduledCampaign] = field(default_factory=dict)
    limits: list[LimitChange] = field(default_factory=list)
    urls: list[UrlChange] = field(default_factory=list)
    reanalyses: list[Reanalysis] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    turns: array[int] = field(default_factory=lambda: array("q"))
    posts: PostLog | None = None
    end: int = 0
    stalled: frozenset[tuple[int, int]] = frozenset()
    cut: bool = False
    idle: bool = False
    engine: str = "simpy"

    def snapshot(self) -> Trace:
        """Return a copy of the trace so far, for reading while the run goes on."""
        turns = self.turns[:]
        return replace(
            self,
            world=self.world.snapshot(),
            calls=[[log.copy(turns) for log in organization] for organization in self.calls],
            campaigns=[*self.campaigns],
            requests={**self.requests},
            limits=[*self.limits],
            urls=[*self.urls],
            reanalyses=[*self.reanalyses],
            refused=[*self.refused],
            turns=turns,
            posts=None if self.posts is None else self.posts.copy(),
        )

    @property
    def turn(self) -> int:
        """Number of commands from outside so far.

        Instants and turns never decrease along a run. So `at + turn` orders events, and is equal
        only for events of the same instant and turn.
        """
        return len(self.turns)

    def campaign(self, organization: int, campaign: int) -> CampaignTrace:
        """Return one campaign's part of the trace, given by its positions in the scenario."""
        return CampaignTrace(self, organization, campaign)

    def limits_of(self, organization: int) -> list[LimitChange]:
        """Return the limits of one organization, in order of time."""
        return [row for row in self.limits if row.organization == organization]

    def urls_of(self, organization: int) -> list[UrlChange]:
        """Return the webhook URLs of one organization, in order of time."""
        return [row for row in self.urls if row.organization == organization]

    def size(self) -> int:
        """Return the number of changes of calls, campaigns and limits, plus refusals."""
        return self.call_changes() + len(self.campaigns) + len(self.limits) + len(self.refused)

    def call_changes(self) -> int:
        """Return the number of changes of calls."""
        # by functions in C: a sandbox asks after each command, and may have thousands of campaigns
        return sum(map(len, map(_INSTANTS, chain.from_iterable(self.calls))))


@dataclass(frozen=True, slots=True)
class CampaignTrace:
    """One campaign's part of a trace, given by the positions of organization and campaign.

    Nothing is copied in advance: during a run the properties return the state so far.
    """

    trace: Trace
    organization: int
    campaign: int

    @property
    def log(self) -> CallLog:
        """Log of the campaign's calls."""
        return self.trace.calls[self.organization][self.campaign]

    @property
    def owner(self) -> OrganizationBlock:
        """The campaign's organization."""
        return self.trace.world.organizations[self.organization]

    @property
    def block(self) -> CampaignBlock:
        """The campaign as uploaded."""
        return self.owner.campaigns[self.campaign]

    @property
    def scheduled(self) -> ScheduledCampaign | None:
        """Schedule request in force; None before scheduling."""
        return self.trace.requests.get((self.organization, self.campaign))

    @property
    def changes(self) -> list[CampaignChange]:
        """Changes of the campaign's status, in order of time."""
        return [row for row in self.trace.campaigns if self._is_own(row)]

    @property
    def deleted(self) -> CampaignChange | None:
        """Deletion of the campaign (C8), or None."""
        return next((row for row in self.changes if row.cause == "delete"), None)

    @property
    def refused(self) -> list[Refusal]:
        """Refused schedule requests and timeline actions of the campaign, in order of time."""
        return [row for row in self.trace.refused if self._is_own(row)]

    @property
    def reanalyses(self) -> list[Reanalysis]:
        """Re-analyses of the campaign's calls, in order of time (A5)."""
        return [row for row in self.trace.reanalyses if self._is_own(row)]

    @property
    def limits(self) -> list[LimitChange]:
        """Limits of the campaign's organization."""
        return self.trace.limits_of(self.organization)

    @property
    def urls(self) -> list[UrlChange]:
        """Webhook URLs of the campaign's organization."""
        return self.trace.urls_of(self.organization)

    @property
    def stalled(self) -> bool:
        """True if the campaign is not final and can never change again (T5)."""
        return (self.organization, self.campaign) in self.trace.stalled

    def _is_own(self, row: CampaignChange | Refusal | Reanalysis) -> bool:
        return row.campaign == self.campaign and row.organization == self.organization
