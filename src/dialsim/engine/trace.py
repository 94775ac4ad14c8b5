"""The trace: all that an engine says of a run, and all that every result is a reading of.

A trace is columns of integers. Each campaign keeps its own log of its calls' status changes, in
the order they happened; a row is an instant and a packed key of recipient, call and the kind of
change. The kinds are few and legal (`CHANGES`); a change that is not among them cannot be written.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.status import CallStatus, CampaignStatus, Phase

if TYPE_CHECKING:
    from dialsim.engine.post_log import PostLog, PostRows
    from dialsim.engine.world import CampaignBlock, OrganizationBlock, World
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.scripts import ScriptStep

S = CallStatus


class Change(NamedTuple):
    """One legal kind of change of a call; `from_status` is None for its creation."""

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
    # what analyses change: an engine writes no such row, a reading of the trace adds it (A4)
    Change(S.COMPLETED, S.ANALYSIS_FAILED, None, "analysis_failed"),
    Change(S.ANALYSIS_FAILED, S.COMPLETED, None, "late_result"),
)


def kind(from_status: CallStatus | None, to_status: CallStatus, cause: str) -> int:
    """The index in `CHANGES` of the one change so named; KeyError if it is not legal."""
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

# A row's key is recipient (from 0), call (from 1) and kind, packed in this order into one int64.
# Nobody but these functions and the compiled engine, which writes keys of its own, knows how.
RECIPIENT_SHIFT = 32
CALL_SHIFT = 8


def call_key(recipient: int, call: int) -> int:
    """The packed key of a call (recipient from 0, call from 1), to be or-ed with a kind."""
    return recipient << RECIPIENT_SHIFT | call << CALL_SHIFT


def call_keys(
    recipients: NDArray[np.integer], calls: NDArray[np.integer] | int
) -> NDArray[np.int64]:
    """The packed keys of many calls."""
    numbers = np.asarray(calls, dtype=np.int64)
    return recipients.astype(np.int64) << RECIPIENT_SHIFT | numbers << CALL_SHIFT


def recipients_of(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The recipient of each key."""
    return keys >> RECIPIENT_SHIFT


def kinds_of(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The kind of change of each key, an index into `CHANGES`."""
    return keys & 0xFF


class Dials(NamedTuple):
    """What `CallLog` has an entry of per DIALLED row, as columns."""

    numbers: NDArray[np.int32]
    voices: NDArray[np.int32]
    behaviours: NDArray[np.int16]


class CallLog:
    """The status changes of one campaign's calls, in the order in which they happened.

    `dial_numbers`, `dial_voices` and `dial_behaviours` have an entry per DIALLED row, in the same
    order: indexes into `World.numbers`, `World.voice_keys` (-1: no voice is known) and
    `World.behaviours`. `scripted` has, by `call_key`, the step that the script of the number said
    of a call's newest dial, of those dials that were not withdrawn (P6).
    """

    __slots__ = (
        "_at",
        "_keys",
        "_turns",
        "dial_behaviours",
        "dial_numbers",
        "dial_voices",
        "scripted",
    )

    def __init__(self) -> None:
        self._at = array("q")
        self._keys = array("q")
        self._turns = array("q")  # how many rows there were when each turn began
        self.dial_numbers = array("i")
        self.dial_voices = array("i")
        self.dial_behaviours = array("h")
        self.scripted: dict[int, ScriptStep] = {}

    @classmethod
    def whole(cls, at: NDArray[np.int64], keys: NDArray[np.int64], dials: Dials) -> CallLog:
        """The log of a run that is over; nothing can be appended to it."""
        log = cls()
        # Whatever reads these reads arrays of numpy in the same way, and copies cost memory
        log._at, log._keys = cast("array[int]", at), cast("array[int]", keys)
        log.dial_numbers, log.dial_voices, log.dial_behaviours = (
            cast("array[int]", column) for column in dials
        )
        return log

    def __len__(self) -> int:
        return len(self._at)

    def copy(self) -> CallLog:
        """What is written by now; the log may go on."""
        log = CallLog()
        for column in self.__slots__:
            setattr(log, column, copy(getattr(self, column)))
        return log

    def append(self, at: int, key: int) -> None:
        """Write one change: `key` is `call_key(…) | kind`."""
        self._at.append(at)
        self._keys.append(key)

    def extend(self, at: int, recipients: NDArray[np.int64], call: int, kind: int) -> None:
        """Write the same change of call number `call` of many recipients at one instant."""
        self._at.frombytes(np.full(len(recipients), at, dtype=np.int64).tobytes())
        self._keys.frombytes((call_keys(recipients, call) | kind).tobytes())

    def has_any(self, kinds: frozenset[int], since: int) -> bool:
        """Whether any row from index `since` on is of some kinds of change."""
        # a loop over the few new rows takes less than an array of numpy
        return any(key & 0xFF in kinds for key in self._keys[since:])

    def begin_turn(self) -> None:
        """Note that what follows is brought about by one more command from outside."""
        self._turns.append(len(self._at))

    def drop_turn(self) -> None:
        """Take the last turn back: the command was refused, and nothing was written."""
        self._turns.pop()

    def turns(self, rows: int, begun: int) -> NDArray[np.int64]:
        """The turn in which each of the first `rows` rows was written; `begun` is `Trace.turn`.

        Turns that began before the log was made are counted too.
        """
        before = begun - len(self._turns)
        return before + np.searchsorted(self._turns, np.arange(rows), side="right")

    def count_until(self, at: int) -> int:
        """How many rows there are up to an instant, itself included."""
        return bisect_right(self._at, at)

    def rows(self, since: int = 0, until: int | None = None) -> CallRows:
        """The rows from index `since` on, up to `until`, as columns; the log may go on."""
        at, keys = (_part(column, since, until) for column in (self._at, self._keys))
        # Parts of a word can be read where they stand, which takes a third of shifting whole ones
        words = keys.astype("<i8", copy=False)
        return CallRows(
            at=at,
            recipient=words.view("<i4")[1::2].astype(np.int32),
            call=(words.view("<u4")[::2] >> CALL_SHIFT).astype(np.int32),
            kind=words.view(np.uint8)[::8].copy(),
        )


def _part(column: array[int], since: int, until: int | None) -> NDArray[np.int64]:
    """A part of a column; of one that may grow it is a copy, which doesn't keep it from that."""
    if isinstance(column, np.ndarray):  # that of a whole log
        return column[since:until]
    return np.array(column[since:until] if since or until is not None else column, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class CallRows:
    """Columns of one campaign's log: `at` is in ms, `kind` an index into `CHANGES`."""

    at: NDArray[np.int64]
    recipient: NDArray[np.int32]
    call: NDArray[np.int32]
    kind: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, rows: slice | NDArray[np.bool_] | NDArray[np.integer]) -> CallRows:
        return CallRows(self.at[rows], self.recipient[rows], self.call[rows], self.kind[rows])


class CampaignChange(NamedTuple):
    """One change of a campaign's status; positions are those of the scenario, from 0.

    `turn`, here and below, is how many commands had been given from outside (see `Trace.turn`).
    """

    at: int
    organization: int
    campaign: int
    from_status: CampaignStatus
    to_status: CampaignStatus
    cause: str
    turn: int = 0


class Refusal(NamedTuple):
    """What the file asked of the engine, a schedule request say, and was refused."""

    at: int
    organization: int
    campaign: int | None
    action: str
    code: str
    message: str


class ScheduledCampaign(NamedTuple):
    """The schedule request that a campaign was started with, made at `at`; F3: its real start.

    `removed` are the recipients whom the request dropped as duplicates (D3), in upload order.
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
    """An organization's webhook URL from `at` on, or None (the first entry is clock.start)."""

    at: int
    organization: int
    url: str | None
    turn: int = 0


class Reanalysis(NamedTuple):
    """At `at` a share of a campaign's delivered calls, by a draw each, is analyzed again (A5).

    With `only`, a recipient (from 0) and the number of a call (from 1), it is that one call.
    """

    at: int
    organization: int
    campaign: int
    share: float
    turn: int = 0
    only: tuple[int, int] | None = None


@dataclass(slots=True)
class Trace:
    """A run: what happened to every call and campaign of `world`.

    `calls[o][c]` is the log of campaign c of organization o. `end` is the last instant worked off.
    `turns` has the instant of each command that was given from outside, in the order given: all
    work of that instant was done before, and the command's own was done after it (T4).
    `requests` has the effective schedule of each campaign that was scheduled, by its position.
    `posts` are the POSTs that were really made; None where the receiver is the simulated one (W5).
    `stalled` holds the (organization, campaign) positions of campaigns not final for which nothing
    could ever happen again (T5); `cut` says that clock.end came before the run was over, `idle`
    that nothing is left to happen. `engine` is which one ran.
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
        """What has happened by now, to be read while the run goes on."""
        return replace(
            self,
            world=self.world.snapshot(),
            calls=[[log.copy() for log in organization] for organization in self.calls],
            campaigns=[*self.campaigns],
            requests={**self.requests},
            limits=[*self.limits],
            urls=[*self.urls],
            reanalyses=[*self.reanalyses],
            refused=[*self.refused],
            turns=self.turns[:],
            posts=None if self.posts is None else self.posts.copy(),
        )

    @property
    def turn(self) -> int:
        """How many commands were given from outside so far.

        Instants and turns never decrease along a run, so `at + turn` orders what happened, and is
        the same number only for what happened on the same instant in the same turn.
        """
        return len(self.turns)

    def begin_turn(self, at: int) -> None:
        """Note that a command is about to be given from outside, at an instant worked off (T4)."""
        self.turns.append(at)
        for organization in self.calls:
            for log in organization:
                log.begin_turn()

    def drop_turn(self) -> None:
        """Take the last turn back: the command was refused, and changed nothing."""
        self.turns.pop()
        for organization in self.calls:
            for log in organization:
                log.drop_turn()

    def campaign(self, organization: int, campaign: int) -> CampaignTrace:
        """What the trace says of one campaign, given by its positions in the scenario."""
        return CampaignTrace(self, organization, campaign)

    def limits_of(self, organization: int) -> list[LimitChange]:
        """The limits of one organization, in the order of their instants."""
        return [row for row in self.limits if row.organization == organization]

    def urls_of(self, organization: int) -> list[UrlChange]:
        """The webhook URLs of one organization, in the order of their instants."""
        return [row for row in self.urls if row.organization == organization]

    def size(self) -> int:
        """How many changes of calls, campaigns and limits, and how many refusals, there are."""
        logs = sum(len(log) for organization in self.calls for log in organization)
        return logs + len(self.campaigns) + len(self.limits) + len(self.refused)


@dataclass(frozen=True, slots=True)
class CampaignTrace:
    """One campaign's part of a trace, by the positions of its organization and its own.

    Nothing is copied before it is asked for, so of a run that goes on it tells what is so by then.
    """

    trace: Trace
    organization: int
    campaign: int

    @property
    def log(self) -> CallLog:
        """The log of its calls."""
        return self.trace.calls[self.organization][self.campaign]

    @property
    def owner(self) -> OrganizationBlock:
        """Its organization."""
        return self.trace.world.organizations[self.organization]

    @property
    def block(self) -> CampaignBlock:
        """The campaign as it was uploaded."""
        return self.owner.campaigns[self.campaign]

    @property
    def scheduled(self) -> ScheduledCampaign | None:
        """The schedule request it was started with; None before."""
        return self.trace.requests.get((self.organization, self.campaign))

    @property
    def changes(self) -> list[CampaignChange]:
        """The changes of its status, in the order in which they happened."""
        return [row for row in self.trace.campaigns if self._is_own(row)]

    @property
    def deleted(self) -> CampaignChange | None:
        """The change by which it was deleted (C8); None if it was not."""
        return next((row for row in self.changes if row.cause == "delete"), None)

    @property
    def refused(self) -> list[Refusal]:
        """What was asked for it and refused, in that order."""
        return [row for row in self.trace.refused if self._is_own(row)]

    @property
    def reanalyses(self) -> list[Reanalysis]:
        """The re-analyses of its calls, in the order in which they began (A5)."""
        return [row for row in self.trace.reanalyses if self._is_own(row)]

    @property
    def posts(self) -> PostRows | None:
        """The POSTs of its results; None where the receiver is the simulated one (W5)."""
        posts = self.trace.posts
        return None if posts is None else posts.rows(self.organization, self.campaign)

    @property
    def limits(self) -> list[LimitChange]:
        """The limits of its organization."""
        return self.trace.limits_of(self.organization)

    @property
    def urls(self) -> list[UrlChange]:
        """The webhook URLs of its organization."""
        return self.trace.urls_of(self.organization)

    @property
    def stalled(self) -> bool:
        """Whether it is not final, and nothing could ever happen to it again (T5)."""
        return (self.organization, self.campaign) in self.trace.stalled

    def _is_own(self, row: CampaignChange | Refusal | Reanalysis) -> bool:
        return row.campaign == self.campaign and row.organization == self.organization
