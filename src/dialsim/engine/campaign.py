"""A campaign: its states (rules C), its waiting calls (Q3, Q5) and its retries (rules R).

The module also holds the index for duplicate removal (D3) and the refusals of commands in the
interface's words.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
from simpy.events import Event

from dialsim.engine import trace
from dialsim.engine.call import Call, DialChoice
from dialsim.engine.clock import At, Clock, Step, Timer
from dialsim.engine.rules import (
    LOST_IN_QUEUE,
    REACHED,
    Windows,
    calls_again,
    is_release_instant,
    lines_held,
    order_classes,
    retry_due,
)
from dialsim.engine.trace import CallLog, CampaignChange, Reanalysis, ScheduledCampaign
from dialsim.engine.world import Continuation
from dialsim.errors import Refused
from dialsim.interface import CallStatus, CampaignStatus
from dialsim.interface.schedule import check_conditions, check_duplicate_alert

if TYPE_CHECKING:
    from dialsim.engine.dialler import Dialler
    from dialsim.engine.world import CampaignBlock
    from dialsim.interface.schedule import ScheduleRequest


class ReachedPeople:
    """Instants at which recipients were reached, in all campaigns and histories of an organization
    (D3).

    Nothing is stored if the organization's duplicate-call alert is off (`window` is None).
    """

    def __init__(self, window: int | None) -> None:
        """`window` is the length of the duplicate window in ms."""
        self._window = window
        self._campaigns: list[CampaignBlock] = []
        self._ended_at: list[dict[int, int]] = []

    def add(self, block: CampaignBlock) -> None:
        """Add the next campaign of the organization with the recipients that its history
        reached.
        """
        self._campaigns.append(block)
        self._ended_at.append({})
        for recipient, past in block.people.history.items():
            if past.reached:
                self.note(block, recipient, past.last_ended_at)

    def remove_last(self) -> None:
        """Remove the campaign that was added last."""
        # An added campaign whose request is refused leaves no trace (C11).
        self._campaigns.pop()
        self._ended_at.pop()

    def note(self, block: CampaignBlock, recipient: int, ended_at: int) -> None:
        """Register that a call to this recipient ended COMPLETED."""
        # Without the feature a million entries would be kept and never read.
        if self._window is not None:
            self._ended_at[block.position][recipient] = ended_at

    def duplicates(self, block: CampaignBlock, now: int) -> tuple[int, ...]:
        """Return the recipients of a campaign that its agent reached within the window before
        now.
        """
        if self._window is None:
            return ()
        reached = set(self._reached_since(block.agent.name, now - self._window))
        tels = enumerate(block.people.tels()) if reached else ()
        return tuple(recipient for recipient, tel in tels if tel in reached)

    def _reached_since(self, agent: str, since: int) -> Iterator[str]:
        """Yield the phone numbers that an agent reached at `since` or later."""
        for block, ended_at in zip(self._campaigns, self._ended_at, strict=True):
            if block.agent.name == agent and ended_at:
                tels = block.people.tels()
                # D3: the window includes its edge.
                yield from (tels[who] for who, ended in ended_at.items() if ended >= since)


def campaign_not_found() -> Refused:
    """Return the 404 for an unknown or deleted campaign (C8)."""
    return Refused(404, "CAMPAIGN_NOT_FOUND", ["Campaign not found"])


def already_started(status: CampaignStatus) -> Refused:
    """Return the 409 for a schedule request to a campaign that is not DRAFT."""
    text = f"Campaign has already been started (current status: {status})"
    return Refused(409, "CAMPAIGN_ALREADY_STARTED", [text])


def calling_not_allowed() -> Refused:
    """Return the 403 for an organization that may not call."""
    return Refused(403, "CALLING_NOT_ALLOWED", ["Your organization is not allowed to make calls."])


def all_duplicates() -> Refused:
    """Return the 400 for a list without recipients after duplicate removal (D3)."""
    text = "All recipients are duplicates within the configured window"
    return Refused(400, "VALIDATION_FAILED", [text])


def wrong_state(verb: str, status: CampaignStatus) -> Refused:
    """Return the 409 for a command that is not allowed in this status."""
    return Refused(409, "INVALID_CAMPAIGN_STATE", [f"Cannot {verb} a {status} campaign"])


Waiting = tuple[int, int, int, int]
"""Waiting call in SCHEDULED as (rank, due, recipient, call); the smallest is released first (Q3).

`rank` is the class of the order (0 first), `due` the due instant, `recipient` the upload order,
`call` the ordinal of the call.
"""


class WaitingList:
    """Waiting calls of one campaign.

    First calls are a range of recipients; all other calls are in a heap.
    """

    __slots__ = ("_due", "_fresh", "_fresh_rank", "_heap", "_next", "_retry_rank")

    def __init__(self, order: str) -> None:
        """`order` is `due`, `freshFirst` or `retriesFirst` (Q3)."""
        self._fresh_rank, self._retry_rank = order_classes(order)
        # First calls are all due at startAt and go in upload order. An entry per call would cost
        # memory and a heap operation for each of a million recipients.
        self._due = 0
        self._fresh: Sequence[int] = ()
        self._next = 0
        self._heap: list[Waiting] = []

    def __len__(self) -> int:
        return len(self._fresh) - self._next + len(self._heap)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield (recipient, call) of every waiting call, in no particular order."""
        for recipient in self._fresh[self._next :]:
            # First calls have no entry; their number is always 1.
            yield recipient, 1
        for _, _, recipient, call in self._heap:
            yield recipient, call

    def add_first_calls(self, recipients: Sequence[int], due: int) -> None:
        """Add the first calls of recipients, given in upload order."""
        self._fresh, self._next, self._due = recipients, 0, due

    def add(self, due: int, recipient: int, call: int, attempts: int) -> None:
        """Add a call of a recipient with this number of counted attempts (P5)."""
        rank = self._retry_rank if attempts else self._fresh_rank
        heappush(self._heap, (rank, due, recipient, call))

    def first(self) -> Waiting:
        """Return the call to release next; raises IndexError if none waits."""
        if self._next == len(self._fresh):
            return self._heap[0]
        fresh = (self._fresh_rank, self._due, self._fresh[self._next], 1)
        return min(fresh, self._heap[0]) if self._heap else fresh

    def take(self) -> Waiting:
        """Remove and return the call to release next."""
        waiting = self.first()
        # Compared by identity: `first` has compared the values.
        if self._heap and self._heap[0] is waiting:
            return heappop(self._heap)
        self._next += 1
        return waiting

    def clear(self) -> None:
        """Remove all calls."""
        self._next = len(self._fresh)
        self._heap.clear()


_RUNNING = CampaignStatus.RUNNING
_STOPPABLE = (CampaignStatus.SCHEDULED, CampaignStatus.RUNNING)


class SimulatedCampaign:
    """One campaign of a running simulation.

    The commands `schedule`, `pause`, `resume`, `cancel` and `delete` raise `Refused` with the
    interface's code and text if a rule forbids them. A refused command changes nothing.
    """

    def __init__(self, clock: Clock, block: CampaignBlock, dialler: Dialler) -> None:
        count = block.people.count
        self.clock = clock
        self.block = block
        self.log: CallLog = dialler.trace.calls[block.organization][block.position]
        self.status = CampaignStatus.DRAFT
        self.waiting = WaitingList(dialler.trace.world.scenario.engine.order)
        self.deleted = False
        self.people_done = 0
        self._dialler = dialler
        self._trace = dialler.trace
        self._release_interval = dialler.trace.world.scenario.engine.release_interval
        self._outgoing = DialChoice(
            dialler.trace.world, block, self.log, dialler.number_uses, dialler.scripted
        )
        # Arrays of 32 bits take half the memory of lists, for up to millions of people.
        self._attempts = array("i", bytes(4 * count))  # by recipient: counted attempts (P5)
        self._calls = array("i", bytes(4 * count))  # by recipient: calls created
        # by recipient: calls that are QUEUED or whose line is being set up
        self._open: dict[int, Call] = {}
        self._under_way = 0  # calls ringing or in conversation
        self._retries: list[tuple[int, int]] = []  # heap of (due, recipient): calls not created yet
        self._started = False  # has been RUNNING
        self._closed = False  # no recipient will be called again
        self._start = Timer(clock, Step.DUE, self._started_running)
        self._end = Timer(clock, Step.END_DATE_TIME, self._end_date_time)
        self._closing = Timer(clock, Step.WINDOW_CLOSING, self._window_closed)
        self._retry = Timer(clock, Step.DUE, self._retries_due)
        self._next_release = Timer(clock, Step.DUE, self._wake)

    # -- commands -----------------------------------------------------------------------------

    def schedule(self, request: ScheduleRequest) -> None:
        """DRAFT → SCHEDULED, one call per recipient (C1)."""
        self._require_schedulable(request)
        now = self.clock.now
        # The last check that may refuse the request; nothing of the campaign has changed before.
        removed = self._duplicates(request)
        self._request = request
        self._start_at = max(now, request.start_date_time)
        self._windows = Windows.of(request.time_windows)
        self._outgoing.start(request, self._dialler.block.settings)
        past = Continuation.of(self._trace.world, self.block, request, self._start_at, removed)
        self._first_due = past.first_due
        self._trace.requests[self.block.organization, self.block.position] = ScheduledCampaign(
            request, now, self._start_at, removed
        )
        self.people_done += len(removed) + past.settled
        if self.block.share.counts_lines:
            self._dialler.counts_lines = True
        # Before the first calls: people with a history get none.
        self._go_on_from(past)
        self._create_first_calls({*removed, *past.recipients.tolist()})
        self._become(CampaignStatus.SCHEDULED, "schedule")
        if request.end_date_time is not None:
            self._end.set(max(now, request.end_date_time))  # C7: the end may be in the past
        self._await_start()

    def pause(self) -> None:
        """SCHEDULED or RUNNING → PAUSED; waiting calls return to SCHEDULED (C4)."""
        self._require_existing()
        if self.status is CampaignStatus.PAUSED:
            return
        self._require_status("pause", _STOPPABLE)
        for call in self._open.values():
            self.log.append(self.clock.now, call.key | trace.PAUSED[call.status])
            self._withdraw(call)
            self._wait(call.due, call.recipient, call.number)
        self._open.clear()
        for timer in (self._start, self._closing, self._next_release):
            timer.drop()
        self._become(CampaignStatus.PAUSED, "pause")
        self._dialler.wake()  # Q11: a paused campaign holds no lines

    def resume(self) -> None:
        """PAUSED → RUNNING if it was RUNNING before or may start now, else → SCHEDULED (C5)."""
        self._require_existing()
        self._require_status("resume", (CampaignStatus.PAUSED,))
        now = self.clock.now
        begins = self._start_instant(now)
        if self._started or begins == now:
            self._become(CampaignStatus.RUNNING, "resume")
            self._run()
        else:
            self._become(CampaignStatus.SCHEDULED, "resume")
            self._await_start()

    def cancel(self) -> None:
        """Any state that is not final → CANCELLED; waiting calls are cancelled (C6)."""
        self._require_existing()
        self._require_status("cancel", (CampaignStatus.DRAFT, CampaignStatus.PAUSED, *_STOPPABLE))
        self._drop_waiting("cancelled")
        self._become(CampaignStatus.CANCELLED, "cancel")

    def delete(self) -> None:
        """Delete the campaign, in any state (C8)."""
        self._require_existing()
        self.deleted = True
        if self.status.final:
            self._become(self.status, "delete")
        else:
            self._drop_waiting("deleted")
            self._become(CampaignStatus.CANCELLED, "delete")

    def reanalyze(self, share: float) -> None:
        """Start another analysis of a share of the delivered calls (A5); dialling is not
        affected.
        """
        self._reanalyze(share, None)

    def reanalyze_call(self, recipient: int, call: int) -> None:
        """Start another analysis of one call (from 1) of a recipient (from 0), if delivered
        (A5).
        """
        if not (0 <= recipient < len(self._calls) and 1 <= call <= self._calls[recipient]):
            raise Refused(404, "CALL_NOT_FOUND", ["Call not found"])
        self._reanalyze(1.0, (recipient, call))

    def use_behaviour(self, name: str) -> None:
        """Change the behaviour of the recipients from the next dial on."""
        self._outgoing.use_behaviour(name)

    # -- queries of the dialler -----------------------------------------------------------------

    def can_release(self, now: int) -> bool:
        """Return True if a call of this campaign may be released now (Q2)."""
        return (
            self.status is _RUNNING
            and len(self.waiting) > 0
            and (is_release_instant(now, self._first_due, self._release_interval))
            and self._windows.is_open(now)
        )

    @property
    def lines(self) -> int:
        """Number of the campaign's calls that are QUEUED or INITIATED (Q8, Q10)."""
        return len(self._open) + self._under_way

    @property
    def end_date_time(self) -> int | None:
        """`endDateTime` of the campaign's schedule request (Q9)."""
        return self._request.end_date_time

    def held_lines(self, now: int) -> int:
        """Return the number of lines kept for the campaign, in use or not (Q11)."""
        reserved = self.block.share.reserved
        if not reserved or self.status is not _RUNNING or not self._windows.is_open(now):
            return 0
        return lines_held(reserved, self.block.people.count, self.people_done)

    def release(self, now: int) -> Call:
        """SCHEDULED → QUEUED for the next call in order (Q2, Q3)."""
        _, due, recipient, number = self.waiting.take()
        call = Call(self, recipient, number, due, now)
        self._open[recipient] = call
        self._closing.set(self._windows.next_close(now))  # Q6
        return call

    def dial(self, call: Call, now: int) -> None:
        """QUEUED → INITIATED for the recipient's next attempt (Q4)."""
        self._outgoing.dial(call, self._attempts[call.recipient] + 1, now)

    def await_release(self, now: int | None) -> None:
        """Set the timer for the next instant after `now` at which a waiting call may be released.

        With `now` None the timer is dropped: without room in the queue there is nothing to wait
        for.
        """
        self._next_release.drop()
        if now is None or self.status is not _RUNNING:
            return
        # Lines held become free for other campaigns when the window closes (Q11).
        if self.held_lines(now):
            self._next_release.set(self._windows.next_close(now))
        if not self.waiting:
            return
        if self._release_interval:
            instant = self._windows.next_open_on_grid(now, self._first_due, self._release_interval)
        else:
            instant = self._windows.next_open(now)
        if instant is not None and instant > now:  # open already: the call waits for a line
            self._next_release.set(instant)

    # -- what calls report ----------------------------------------------------------------------

    def call_rings(self, call: Call) -> None:
        """Register that the line is set up: the call can no longer be withdrawn (C4)."""
        del self._open[call.recipient]
        self._under_way += 1
        self._outgoing.counted(call)

    def call_ended(self, call: Call, ending: int) -> None:
        """Register the end of a dialled call: count the attempt (P5), and plan a retry (R1, R3)."""
        recipient = call.recipient
        self._attempts[recipient] += 1
        self._under_way -= 1
        if ending == REACHED:
            self._dialler.reached.note(self.block, recipient, self.clock.now)
        self._dialler.slot_freed()
        most = self._request.max_attempts
        if calls_again(ending, self._attempts[recipient], most) and not self._closed:
            self._retry_later(recipient, ending)
        else:
            self.people_done += 1
            self._check_final()

    def queue_timeout(self, call: Call) -> None:
        """QUEUED → CANCELLED without counting an attempt, so that a further call follows (Q5,
        R1).
        """
        self.log.append(self.clock.now, call.key | trace.QUEUE_TIMEOUT)
        call.status = CallStatus.CANCELLED
        del self._open[call.recipient]
        self._retry_later(call.recipient, LOST_IN_QUEUE)

    # -- timers ---------------------------------------------------------------------------------

    def _started_running(self, _event: Event) -> None:
        """SCHEDULED → RUNNING (C2)."""
        self._become(CampaignStatus.RUNNING, "start")
        self._run()

    def _end_date_time(self, _event: Event) -> None:
        """Expire the waiting calls, and with them the campaign (C7)."""
        # Computed before the waiting calls are dropped. Conversations under way go on. If no other
        # call was cut short, their end completes the campaign (C7).
        cut_short = bool(self._open or len(self.waiting) or self._retries)
        self._drop_waiting("expired")
        if cut_short or not self._started:
            self._become(CampaignStatus.EXPIRED, "end_date_time")

    def _window_closed(self, _event: Event) -> None:
        """Return queued calls to SCHEDULED; lines being set up are not affected (Q6)."""
        # A list, because the loop removes entries from the dictionary.
        queued = [call for call in self._open.values() if call.status is CallStatus.QUEUED]
        for call in queued:
            self.log.append(self.clock.now, call.key | trace.WINDOW_CLOSED)
            del self._open[call.recipient]
            self._withdraw(call)
            self._wait(call.due, call.recipient, call.number)

    def _retries_due(self, _event: Event) -> None:
        """Create retries at their due instant, even during a pause (R2)."""
        now = self.clock.now
        while self._retries and self._retries[0][0] <= now:
            due, recipient = heappop(self._retries)
            self._calls[recipient] += 1
            number = self._calls[recipient]
            self.log.append(now, trace.call_key(recipient, number) | trace.RETRY)
            self._wait(due, recipient, number)
        self._await_retry()
        self._dialler.call_due()

    def _all_final(self, _event: Event) -> None:
        """RUNNING → COMPLETED, unless a command of the same instant came between (C3)."""
        if self._is_final():
            self._become(CampaignStatus.COMPLETED, "all_final")

    def _wake(self, _event: Event) -> None:
        self._dialler.wake()

    # -- the rest -------------------------------------------------------------------------------

    def _reanalyze(self, share: float, only: tuple[int, int] | None) -> None:
        self._require_existing()
        position, turn = (self.block.organization, self.block.position), self._trace.turn
        self._trace.reanalyses.append(Reanalysis(self.clock.now, *position, share, turn, only))

    def _run(self) -> None:
        self._started = True
        self._dialler.wake()
        self._check_final()

    def _start_instant(self, now: int) -> int | None:
        """Return the first instant from `now` on at which the campaign may become RUNNING (C2)."""
        # A window that opens only at or after the end date is no start: the campaign expires as
        # SCHEDULED (C7).
        opens = self._windows.next_open(max(now, self._start_at))
        end = self._request.end_date_time
        return opens if end is None or opens < end else None

    def _await_start(self) -> None:
        begins = self._start_instant(self.clock.now)
        if begins is not None:
            self._start.set(begins)

    def _create_first_calls(self, elsewhere: Collection[int]) -> None:
        """Create a call in SCHEDULED for every recipient who is not in `elsewhere`."""
        everybody = range(self.block.people.count)
        recipients: Sequence[int] = everybody
        if elsewhere:
            recipients = [recipient for recipient in everybody if recipient not in elsewhere]
        self.log.extend(self.clock.now, np.array(recipients, dtype=np.int64), 1, trace.SCHEDULED)
        self._calls = array("i", [1]) * len(everybody)
        for recipient in elsewhere:
            self._calls[recipient] = 0
        self.waiting.add_first_calls(recipients, self._first_due)

    def _go_on_from(self, past: Continuation) -> None:
        """Take over the attempts, caller IDs and next calls of people with a history (C1)."""
        columns = (past.recipients, past.attempts, past.caller_ids)
        for recipient, attempts, number in zip(*(each.tolist() for each in columns), strict=True):
            self._attempts[recipient] = attempts
            self._outgoing.shown_before(recipient, number)
        # Sorted by due instant, and a sorted list is a heap.
        self._retries = [*zip(past.due.tolist(), past.called_again.tolist(), strict=True)]
        self._await_retry()

    def _duplicates(self, request: ScheduleRequest) -> tuple[int, ...]:
        """Return the recipients that the request drops: check 6 of a schedule request (D3, C9)."""
        if not request.remove_duplicates:
            return ()
        removed = self._dialler.reached.duplicates(self.block, self.clock.now)
        if len(removed) == self.block.people.count:
            raise all_duplicates()
        return removed

    def _retry_later(self, recipient: int, ending: int) -> None:
        due = retry_due(self.clock.now, self._request.retry_interval, ending)
        heappush(self._retries, (due, recipient))
        self._await_retry()

    def _await_retry(self) -> None:
        if self._retries:  # the next call after a history may be overdue (C1)
            self._retry.set(max(self.clock.now, self._retries[0][0]))

    def _wait(self, due: int, recipient: int, number: int) -> None:
        self.waiting.add(due, recipient, number, self._attempts[recipient])

    def _withdraw(self, call: Call) -> None:
        """Take a call out of the queue, or drop the line being set up (C4, P5)."""
        if call.status is CallStatus.INITIATED:
            self._outgoing.withdrawn(call, self.clock.now)
            self._dialler.slot_freed()
        else:
            self._dialler.left_queue()
        call.withdraw()

    def _drop_waiting(self, cause: str) -> None:
        """End waiting calls for good, and drop retries that are not yet due (C6, C7, C8)."""
        now = self.clock.now
        for call in self._open.values():
            self.log.append(now, call.key | trace.DROPPED[call.status, cause])
            self._withdraw(call)
        kind = trace.DROPPED[CallStatus.SCHEDULED, cause]
        for recipient, number in self.waiting:
            self.log.append(now, trace.call_key(recipient, number) | kind)
        self.people_done += len(self._open) + len(self.waiting) + len(self._retries)
        self._open.clear()
        self.waiting.clear()
        self._retries.clear()
        self._closed = True
        self._dialler.wake()  # Q11

    def _is_final(self) -> bool:
        """Return True if the campaign is RUNNING and every recipient is settled (C3)."""
        return self.status is _RUNNING and not (
            self._open or len(self.waiting) or self._retries or self._under_way
        )

    def _check_final(self) -> None:
        if self._is_final():
            # Completion is a step of its own (T4): a resume or retry of this instant may come
            # before it.
            At(self.clock, self.clock.now, Step.FINAL, self._all_final)

    def _become(self, status: CampaignStatus, cause: str) -> None:
        self._trace.campaigns.append(
            CampaignChange(
                self.clock.now,
                self.block.organization,
                self.block.position,
                self.status,
                status,
                cause,
                self._trace.turn,
            )
        )
        self.status = status
        if status.final:
            # Events left in the queue would keep a run alive until they are due.
            timers = (self._start, self._end, self._closing, self._retry, self._next_release)
            for timer in timers:
                timer.drop()

    def _require_existing(self) -> None:
        if self.deleted:
            raise campaign_not_found()  # C8

    def _require_schedulable(self, request: ScheduleRequest) -> None:
        """Make checks 2 to 5 of a schedule request; check that duplicates can be removed (C9)."""
        self._require_existing()
        if self.status is not CampaignStatus.DRAFT:
            raise already_started(self.status)
        scenario = self._trace.world.scenario
        account = self._dialler.block.settings.calling_account()
        voice_keys = {voice.voice_key for voice in scenario.voices}
        strict, now = scenario.service.strict, self.clock.now
        check_conditions(request, account, voice_keys, strict=strict, now=now)
        if not self._dialler.calling_allowed:
            raise calling_not_allowed()
        check_duplicate_alert(request, account)

    def _require_status(self, verb: str, allowed: tuple[CampaignStatus, ...]) -> None:
        if self.status not in allowed:
            raise wrong_state(verb, self.status)
