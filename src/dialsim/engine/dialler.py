"""The dialler of an organization: its lines, its queue and the pace of its dials (rules Q)."""

from __future__ import annotations

from collections import deque
from functools import reduce
from math import inf
from typing import TYPE_CHECKING

from simpy.events import Event

from dialsim.engine.call import NumberUse
from dialsim.engine.campaign import ReachedPeople, SimulatedCampaign
from dialsim.engine.clock import At, Clock, Step, Timer
from dialsim.engine.rules import dial_gap, goes_before_by_weight
from dialsim.engine.trace import CallLog, LimitChange, Trace, UrlChange
from dialsim.interface import CallStatus

if TYPE_CHECKING:
    from dialsim.engine.call import Call, ScriptedNumbers
    from dialsim.engine.world import CampaignBlock, OrganizationBlock

_QUEUED = CallStatus.QUEUED
_DIALLING = Step.DIALLING


class Dialler:
    """Dialler of one organization: calls of all its campaigns from release to end."""

    def __init__(
        self, clock: Clock, block: OrganizationBlock, trace: Trace, scripted: ScriptedNumbers
    ) -> None:
        """`scripted` are the scripts of numbers, shared by all organizations (P6)."""
        scenario = trace.world.scenario
        self.clock = clock
        self.block = block
        self.trace = trace
        self.scripted = scripted
        self.campaigns: list[SimulatedCampaign] = []
        self.calling_allowed = block.settings.calling_allowed
        self.lines_in_use = 0
        self._queue_limit = scenario.engine.queue_limit
        self._queue_timeout = scenario.engine.queue_timeout
        self._sharing = scenario.engine.sharing
        self._gap = dial_gap(scenario.engine.calls_per_second)
        self._queue: deque[Call] = deque()
        self._queued = 0
        self._capacity: float = 0
        # by priority: position of the campaign released last
        self._released_last: dict[float, int] = {}
        self.counts_lines = False
        """True once a release requires a free line (Q10)."""
        self._dialled_last: int | None = None
        self._woken = False
        self._pace = Timer(clock, Step.DUE, self._wake_on)
        self._deadline = Timer(clock, Step.QUEUE_TIMEOUT, self._time_out)
        # One count of uses per recovery time: behaviours with equal ones share it.
        recoveries = {
            behaviour.answered_odds.by_caller_id_use.recovery
            for behaviour in scenario.behaviours.values()
            if behaviour.answered_odds.by_caller_id_use is not None
        }
        self.number_uses = {recovery: NumberUse(recovery) for recovery in recoveries}
        # Defined before set_limit, which wakes the dialler and logs the first limit.
        self.limit = 0
        self.set_limit(block.settings.max_concurrent_calls)
        alert = block.settings.duplicate_call_alert
        self.reached = ReachedPeople(None if alert is None else alert.window)
        webhook = block.settings.webhook
        self.set_webhook_url(None if webhook is None else webhook.url)
        self._behaviours: dict[str, str] = {}  # by agent: behaviour set since the start
        for campaign in block.campaigns:
            self.add(campaign)

    def add(self, block: CampaignBlock) -> SimulatedCampaign:
        """Add the organization's next campaign, a DRAFT."""
        self.trace.calls[self.block.position].append(CallLog(self.trace.turns))
        campaign = SimulatedCampaign(self.clock, block, self)
        self.campaigns.append(campaign)
        self.reached.add(block)
        # A campaign added later gets the agent's current behaviour, not that behaviour in the file.
        if block.agent.name in self._behaviours:
            campaign.use_behaviour(self._behaviours[block.agent.name])
        return campaign

    def remove_last(self) -> None:
        """Remove the newest campaign, a DRAFT."""
        self.block.campaigns.pop()
        self.trace.calls[self.block.position].pop()
        self.campaigns.pop()
        self.reached.remove_last()

    @property
    def queue_length(self) -> int:
        """Number of QUEUED calls."""
        return self._queued

    def set_limit(self, limit: int) -> None:
        """Change maxConcurrentCalls; a lower limit ends no call (Q1)."""
        self.limit = limit
        # Kept as a number, because it is compared for every call that becomes due.
        self._capacity = self._queue_capacity()
        self.trace.limits.append(
            LimitChange(self.clock.now, self.block.position, limit, self.trace.turn)
        )
        self.wake()

    def set_webhook_url(self, url: str | None) -> None:
        """Change the webhook URL from the next result on (W6)."""
        self.trace.urls.append(UrlChange(self.clock.now, self.block.position, url, self.trace.turn))

    def set_calling_allowed(self, allowed: bool) -> None:
        """Allow or forbid the organization to start campaigns (interface, section 5)."""
        self.calling_allowed = allowed

    def use_behaviour(self, agent: str, behaviour: str) -> None:
        """Change the behaviour of the people whom an agent calls, from the next dial on.

        Campaigns that are added later use it as well.
        """
        self._behaviours[agent] = behaviour
        for campaign in self.campaigns:
            if campaign.block.agent.name == agent:
                campaign.use_behaviour(behaviour)

    def wake(self) -> None:
        """Schedule a round of releases and dials in this instant's step for them (T4)."""
        # Many calls can end on one instant; one round serves them all.
        if not self._woken:
            self._woken = True
            At(self.clock, self.clock.now, _DIALLING, self._work)

    def call_due(self) -> None:
        """Register that another call may be released (Q2)."""
        # Without room a round would change nothing. The event that makes room wakes the dialler.
        if self._queued < self._capacity:
            self.wake()

    def slot_freed(self) -> None:
        """Free the line of a call that ended or was withdrawn (Q1)."""
        self.lines_in_use -= 1
        self.wake()

    def left_queue(self) -> None:
        """Register that a queued call returned to SCHEDULED or was dropped."""
        self._queued -= 1
        self.wake()

    def _wake_on(self, _event: Event) -> None:
        self.wake()

    def _queue_capacity(self) -> float:
        """Return the capacity of the queue under the current limit (Q2)."""
        if self.limit == 0:
            return 0
        if self._queue_limit == "unlimited":
            return inf
        return self.limit if self._queue_limit is None else self._queue_limit

    def _work(self, _event: Event) -> None:
        """Release and dial until neither is possible (T4 step 7)."""
        self._woken = False
        now = self.clock.now
        self._pace.drop()
        # Once per round: nothing that a round does opens a window or starts a campaign.
        ready = [campaign for campaign in self.campaigns if campaign.can_release(now)]
        self._release(now, ready)
        # Dialling makes room in the queue, which may be shorter than the number of free lines.
        while self._dial(now):
            self._release(now, ready)
        self._await_deadline()
        self._await_releases(now)

    def _release(self, now: int, ready: list[SimulatedCampaign]) -> None:
        """SCHEDULED → QUEUED while the queue has room (Q2)."""
        while ready and self._queued < self._capacity:
            able = self._with_a_line(ready) if self.counts_lines else ready
            if not able:
                break
            campaign = self._next(able)
            self._queue.append(campaign.release(now))
            self._queued += 1
            self._released_last[self._rank(campaign)] = campaign.block.position
            if not campaign.waiting:
                ready.remove(campaign)

    def _next(self, ready: list[SimulatedCampaign]) -> SimulatedCampaign:
        """Return the campaign to release from next (Q3); `ready` is in scenario order."""
        if len(ready) == 1:
            return ready[0]
        match self._sharing:
            case "fifo":
                return min(ready, key=_fifo_key)
            case "weighted":
                return reduce(_first_by_weight, ready)
            case "deadline":
                return min(ready, key=_deadline_key)
            case _:
                rank = min(map(self._rank, ready))
                return self._in_turn([one for one in ready if self._rank(one) == rank], rank)

    def _rank(self, campaign: SimulatedCampaign) -> float:
        """Return the priority of a campaign (Q7), or 0 if priorities are unused.

        Campaigns of equal rank take turns.
        """
        return campaign.block.share.priority if self._sharing == "priority" else 0

    def _in_turn(self, equals: list[SimulatedCampaign], rank: float) -> SimulatedCampaign:
        """Return the campaign after the last one released from (Q3)."""
        last = self._released_last.get(rank, -1)
        # The position decides, as members of `equals` and their indices change between rounds.
        return next((campaign for campaign in equals if campaign.block.position > last), equals[0])

    def _has_free_line(self) -> bool:
        """Return True if a line is neither in use nor needed by a queued call (Q10)."""
        return self.lines_in_use + self._queued < self.limit

    def _with_a_line(self, ready: list[SimulatedCampaign]) -> list[SimulatedCampaign]:
        """Return the campaigns for whose next call a line is available (Q10, Q11)."""
        if not self._has_free_line():
            return []
        now = self.clock.now
        # Lines that a campaign holds and already uses are in the count of lines in use.
        unused = sum(max(0, each.held_lines(now) - each.lines) for each in self.campaigns)
        is_unheld = self.lines_in_use + self._queued + unused < self.limit
        return [
            campaign
            for campaign in ready
            if campaign.lines < campaign.block.share.at_most
            and (is_unheld or campaign.lines < campaign.held_lines(now))
        ]

    def _dial(self, now: int) -> bool:
        """QUEUED → INITIATED while lines and pace allow (Q4); returns True if any call was
        dialled.
        """
        dialled = False
        while self._queued and self.lines_in_use < self.limit:
            if self._gap and self._dialled_last is not None:
                free_at = self._dialled_last + self._gap
                if now < free_at:
                    self._pace.set(free_at)
                    break
            # Calls that left the queue in other ways stay in the deque, because removal from its
            # middle takes linear time. They are recognized by their status.
            call = self._queue.popleft()
            if call.status is _QUEUED:
                self._queued -= 1
                self.lines_in_use += 1
                self._dialled_last = now
                call.campaign.dial(call, now)
                dialled = True
        return dialled

    def _time_out(self, _event: Event) -> None:
        """QUEUED → CANCELLED for calls that waited too long (Q5)."""
        queued_before = self.clock.now - self._queue_timeout
        queue = self._queue
        while queue and (queue[0].status is not _QUEUED or queue[0].queued_at <= queued_before):
            call = queue.popleft()
            if call.status is _QUEUED:
                call.campaign.queue_timeout(call)
                self.left_queue()
        self._await_deadline()

    def _await_deadline(self) -> None:
        """Set the timer of the queue timeout (Q5)."""
        queue = self._queue
        # All calls wait equally long, so the first in the queue times out first.
        while queue and queue[0].status is not _QUEUED:
            queue.popleft()
        if queue:
            self._deadline.set_no_later(queue[0].queued_at + self._queue_timeout)
        else:
            self._deadline.drop()

    def _await_releases(self, now: int) -> None:
        """Set the timers for openings of windows and for release instants (Q2)."""
        # Without room or a line there is nothing to wait for: the event that makes it wakes the
        # dialler.
        room = self._queued < self._capacity
        if self.counts_lines and not self._has_free_line():
            room = False
        for campaign in self.campaigns:
            campaign.await_release(now if room else None)


def _fifo_key(campaign: SimulatedCampaign) -> tuple[int, int, int, int]:
    rank, due, recipient, _ = campaign.waiting.first()
    return (rank, due, campaign.block.position, recipient)


def _first_by_weight(first: SimulatedCampaign, later: SimulatedCampaign) -> SimulatedCampaign:  # Q8
    lines, weight = later.lines, later.block.share.weight
    before = goes_before_by_weight(lines, weight, first.lines, first.block.share.weight)
    return later if before else first


def _deadline_key(campaign: SimulatedCampaign) -> tuple[float, int]:  # Q9
    end = campaign.end_date_time
    return inf if end is None else end, campaign.block.position
