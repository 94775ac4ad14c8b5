"""The view of one campaign: its recipients and calls as the interface shows them now."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import repeat
from operator import is_
from typing import NamedTuple, TypedDict

import numpy as np
import orjson
from numpy.typing import NDArray

from dialsim.engine.calls import CALL_STATUSES, NEVER
from dialsim.engine.campaign import Campaign
from dialsim.engine.identity import call_ids, recipient_ids, session_ids
from dialsim.engine.trace import Trace
from dialsim.interface.instants import format_instant
from dialsim.interface.status import CallStatus
from dialsim.sandbox.calls import NONE, CallBook, CallEntry, CallResults
from dialsim.sandbox.recipients import Column, KeptAnswers, RecipientPages, RecipientTexts, Version
from dialsim.sandbox.tables import CallTable, TransitionTable
from dialsim.scenario.people import GeneratedPeople
from dialsim.webhooks import bodies
from dialsim.webhooks.analysis import AnalysisOutcome
from dialsim.webhooks.visible_state import (
    ALL_EXPIRED,
    DATA_EXPIRED,
    OUTPUT,
    PERSONAL_DATA,
    Persons,
    expire_next,
    expired,
)

_STATUSES = [*map(orjson.dumps, CALL_STATUSES), b"null"]  # the last, -1, stands for none
_BOOLEANS = (b"false", b"true")
_CALL = (
    b'{"id":"%b","sessionId":"%b","callStatus":%b,"agentStatus":"%b","callStartedAt":%b,'
    b'"callEndedAt":%b,"callDuration":%b,"result":%b,'
    b'"recipient":{"id":"%b","customerName":%b,"tel":%b},'
    b'"createdAt":%b,"updatedAt":%b,"dataExpired":%b}'
)

_GROUP = 256  # calls created one after the other, whose ids are made and kept together
_MOST_GROUPS = 2_048
_MOST_CALLS = 16_384


class Place(TypedDict):
    """Where a campaign stands: the positions of its organization and its own."""

    organization: int
    campaign: int


class _Names(NamedTuple):
    """The ids of a group of calls: arrays of S36."""

    call: NDArray[np.bytes_]
    session: NDArray[np.bytes_]
    recipient: NDArray[np.bytes_]


class CampaignView:
    """What can be read of one campaign; everything is shown as it stands at the instant `at` (ms).

    `identifier` is the campaign's id, `created_at` the instant of the upload (F2). `book`,
    `results` and `persons` are what it is read from.
    """

    def __init__(self, trace: Trace, campaign: Campaign) -> None:
        block = campaign.block
        self.campaign = campaign
        self.identifier = block.id
        self.created_at = block.created_at
        self._trace = trace
        self._people = block.people
        self._retention = trace.world.organizations[block.organization].settings.retention
        created_at = _instant(self.created_at)
        self._origin = b'"campaignId":"%b","createdAt":%b' % (block.id.encode(), created_at)
        self._key = block.organization, block.position
        self._place = trace.world.seed, *self._key
        self.persons = Persons(block.people)
        self.book = CallBook(campaign.log, block.people)
        self.results = CallResults(trace, block, self.book)
        self.pages = RecipientPages(self)
        self.call_table = CallTable(self, trace, self.book, self.results)
        self.transition_table = TransitionTable(campaign.log, self.book, self.results)
        self._kept_calls = KeptAnswers(_MOST_CALLS)
        self._names = lru_cache(_MOST_GROUPS)(self._make_names)

    @property
    def place(self) -> Place:
        """Where the campaign stands."""
        block = self.campaign.block
        return Place(organization=block.organization, campaign=block.position)

    def catch_up(self) -> None:
        """Take in what has happened since the last time; everything below reads what is known."""
        self.book.catch_up()
        self.results.catch_up()

    # -- what may be kept -------------------------------------------------------------------------

    def version(self, first: int, last: int) -> Version:
        """What answers about recipients up to `last`, and their calls, depend on but time."""
        changed = self.book.version(first, last)
        return changed, self.results.version, len(self._removed), self.campaign.deleted

    # -- ids --------------------------------------------------------------------------------------

    @property
    def calls(self) -> int:
        """How many calls there are; they are numbered from 0 in the order of their creation."""
        return len(self.book)

    def call_ids(self, calls: NDArray[np.int64]) -> NDArray[np.bytes_]:
        """The ids of calls (S36)."""
        book = self.book
        return call_ids(*self._place, book.column("recipient", calls), book.column("number", calls))

    def recipient_ids(self, who: NDArray[np.int64]) -> NDArray[np.bytes_]:
        """The ids of recipients (S36): what the upload fixes, else derived ones."""
        ids = recipient_ids(*self._place, who)
        if not isinstance(self._people, GeneratedPeople):
            for row, recipient in enumerate(who.tolist()):
                if fixed := self._people.fixed_id(recipient):
                    ids[row] = fixed.encode()
        return ids

    def session_ids(self, calls: NDArray[np.int64]) -> NDArray[np.bytes_]:
        """The session ids of calls (S36)."""
        book = self.book
        who, number = book.column("recipient", calls), book.column("number", calls)
        return session_ids(*self._place, who, number)

    # -- recipients -------------------------------------------------------------------------------

    @property
    def total_recipients(self) -> int:
        """How many recipients the list has; those removed as duplicates have left it (D3)."""
        return self._people.count - len(self._removed)

    def is_listed(self, recipient: int) -> bool:
        """Whether a recipient was not removed as a duplicate (D3)."""
        row = np.searchsorted(self._removed, recipient)
        return bool(row == len(self._removed) or self._removed[row] != recipient)

    def newest_first(self, start: int, stop: int) -> NDArray[np.int64]:
        """Some of the recipients who are listed: the last of the upload is number 0 (F4)."""
        total = self.total_recipients
        rows = np.arange(max(total - start, 0) - 1, max(total - stop, 0) - 1, -1)
        return self._kept[rows] if len(self._removed) else rows

    def list_version(self, start: int, stop: int) -> Version | None:
        """The version of some of the recipients who are listed, None if there are none."""
        total = self.total_recipients
        oldest, newest = max(total - stop, 0), total - 1 - start
        if newest < 0:
            return None
        if len(self._removed):
            oldest, newest = int(self._kept[oldest]), int(self._kept[newest])
        return self.version(oldest, newest)

    def who_has(self, tel: str) -> NDArray[np.int64]:
        """The recipients with a phone number as it was uploaded."""
        return self.persons.who_has(tel)

    def recipients(self, who: NDArray[np.int64], at: int) -> RecipientTexts:
        """Recipients as JSON (interface, section 2.4)."""
        calls = self.book.newest[who].astype(np.int64)
        has = np.flatnonzero(calls != NONE)
        standing = self.results.standing(calls[has], at)
        status = self.book.past_status[who]
        changed_at = np.full(len(who), self.created_at, dtype=np.int64)
        status[has], changed_at[has] = standing.status, standing.changed_at
        ended_at = self.book.past_ended_at[who]
        ended_at[has] = self.book.column("ended_at", calls[has])
        until = expire_next(self._retention, ended_at, at)
        until[has] = np.minimum(until[has], self.results.change_next(calls[has], at))
        masked = (self.flags(ended_at, at) & PERSONAL_DATA) != 0
        persons = who.astype(np.int32)
        return RecipientTexts(
            identifier=self.recipient_ids(who).tolist(),
            customer_name=self.persons.names(persons, masked),
            tel=self.persons.tels(persons, masked),
            progress=_few(self.book.attempts[who] * len(_STATUSES) + status + 1, _progress),
            agent_params=_same(self.persons.params(persons, masked)),
            origin=self._origin,
            updated_at=_instants(changed_at),
            personal_data_masked=_few(masked, _BOOLEANS.__getitem__),
            until=until,
        )

    def recipient(self, recipient: int, at: int) -> bytes:
        """One recipient as JSON."""
        return b"".join(next(self.recipients(np.array([recipient]), at).pages(1)))

    # -- calls ------------------------------------------------------------------------------------

    def call(self, call: int, at: int) -> bytes:
        """A call as JSON (interface, section 2.5)."""
        entry = self.book[call]
        version = self.version(entry.recipient, entry.recipient)
        text = self._kept_calls.find(call, version, at)
        if text is None:
            text = self._render_call(call, entry, at)
            until = self.results.change_next(np.array([call]), at)
            expiry = expire_next(self._retention, np.array([entry.ended_at]), at)
            self._kept_calls.keep(call, text, version, min(int(until[0]), int(expiry[0])))
        return text

    def _render_call(self, call: int, entry: CallEntry, at: int) -> bytes:
        one = np.array([call])
        who = np.array([entry.recipient], dtype=np.int32)
        standing = self.results.standing(one, at)
        flags = self.flags(np.array([entry.ended_at]), at)
        masked = (flags & PERSONAL_DATA) != 0
        output_removed = bool(flags[0] & OUTPUT)
        result, ready_at = self.results.result(call, at, output_removed)
        changed_at = max(int(standing.changed_at[0]), ready_at)
        talk = entry.ended_at - entry.started_at if entry.started_at != NEVER else -1
        group, place = divmod(call, _GROUP)
        names = self._names(group, min(_GROUP, self.calls - group * _GROUP))
        return _CALL % (
            names.call[place],
            names.session[place],
            _STATUSES[standing.status[0]],
            self.results.agent_status(call, entry).encode(),
            _instant(entry.started_at),
            _instant(entry.ended_at),
            *bodies.durations(np.array([talk if entry.ended_at != NEVER else -1])),
            result,
            names.recipient[place],
            *self.persons.names(who, masked),
            *self.persons.tels(who, masked),
            _instant(entry.created_at),
            _instant(changed_at),
            DATA_EXPIRED[flags[0]],
        )

    def latest_calls(self, most: int, status: CallStatus | None = None) -> list[tuple[int, int]]:
        """The calls that changed last, newest first: the instant (ms) of the change, the call.

        `status` is the engine's: an analysis that failed leaves a call among the COMPLETED.
        """
        code = None if status is None else CALL_STATUSES.index(status)
        calls = self.book.latest(most, code)
        at = self.book.column("changed_at", calls)
        return [*zip(at.tolist(), calls.tolist(), strict=True)]

    def calls_of(self, recipient: int) -> list[int]:
        """The calls of a recipient, the oldest first."""
        calls: list[int] = self.book.of_recipient(recipient).tolist()
        return calls

    def position_of(self, recipient: int, number: int) -> int:
        """The position of a call that there is, by its recipient and its number from 1."""
        newest = int(self.book.newest[recipient])
        is_newest = self.entry(newest).number == number
        return newest if is_newest else self.calls_of(recipient)[number - 1]

    def mishaps(self, call: int, at: int) -> list[tuple[int, int]]:
        """What a failed analysis has changed of a call: when (ms), and to what kind (A4)."""
        return self.results.mishaps(call, at)

    def entry(self, call: int) -> CallEntry:
        """A call as the engine left it."""
        return self.book[call]

    def outcome(self, call: int) -> AnalysisOutcome:
        """What is wrong with a conversation that has ended, or with its analysis."""
        return self.results.outcome(call)

    def expired(self, call: int, at: int) -> int:
        """What retention, or a deletion, has removed of a call by an instant, as bits."""
        return int(self.flags(np.array([self.book[call].ended_at]), at)[0])

    # -- the rest ---------------------------------------------------------------------------------

    def _make_names(self, group: int, size: int) -> _Names:
        """The ids of a group's first calls; they are made many at a time, which costs no more."""
        calls = np.arange(group * _GROUP, group * _GROUP + size)
        return _Names(
            call=self.call_ids(calls),
            session=self.session_ids(calls),
            recipient=self.recipient_ids(self.book.column("recipient", calls)),
        )

    def flags(self, ended_at: NDArray[np.int64], at: int) -> NDArray[np.int8]:
        """What retention has removed of calls with these ends (D2), a deletion of all (C8)."""
        if self.campaign.deleted:
            return np.full(len(ended_at), ALL_EXPIRED, dtype=np.int8)
        return expired(self._retention, ended_at, at)

    @property
    def _removed(self) -> NDArray[np.int64]:
        scheduled = self._trace.campaign(*self._key).scheduled
        if scheduled is None or not scheduled.removed:
            return _NOBODY
        return self._removed_once

    @cached_property
    def _removed_once(self) -> NDArray[np.int64]:
        """The recipients removed by the one request there ever is, ascending."""
        return np.array(self._trace.requests[self._key].removed, dtype=np.int64)

    @cached_property
    def _kept(self) -> NDArray[np.int64]:
        """The recipients who were not removed, ascending."""
        kept: NDArray[np.int64] = np.setdiff1d(np.arange(self._people.count), self._removed_once)
        return kept


_NOBODY = np.empty(0, dtype=np.int64)


def _few(codes: NDArray[np.integer], text: Callable[[int], bytes]) -> Column:
    """The text of each of some codes; only few of them are different."""
    if (codes == codes[0]).all():
        return text(int(codes[0]))
    different, place = np.unique(codes, return_inverse=True)
    texts = [*map(text, different.tolist())]
    return [*map(texts.__getitem__, place.tolist())]


def _same(texts: list[bytes]) -> Column:
    """Texts, given once if all of them are one and the same object."""
    return texts[0] if all(map(is_, texts, repeat(texts[0]))) else texts


def _progress(code: int) -> bytes:
    """How often a recipient was called, and how the newest call stands."""
    attempts, status = divmod(code, len(_STATUSES))
    return b'"callAttempt":%d,"latestCallStatus":%b' % (attempts, _STATUSES[status - 1])


def _instants(at: NDArray[np.int64]) -> Column:
    """Instants (ms) as JSON; calls that were created at once, and not dialled, have the same."""
    return _instant(int(at[0])) if (at == at[0]).all() else bodies.instants(at)


def _instant(ms: int) -> bytes:
    return b"null" if ms == NEVER else b'"%b"' % format_instant(ms).encode()
