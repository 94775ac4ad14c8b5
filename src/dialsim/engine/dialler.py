"""The dialler of an organization: its slots, its queue and the pace of its dials (rules Q)."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from math import ceil, inf
from typing import TYPE_CHECKING

from simpy.events import Event

from dialsim.engine.call import NumberUse
from dialsim.engine.campaign import Campaign, ReachedPeople
from dialsim.engine.clock import At, Clock, Step, Timer
from dialsim.engine.trace import CallLog, LimitChange, Trace, UrlChange
from dialsim.interface.status import CallStatus

if TYPE_CHECKING:
    from dialsim.engine.call import Call, ScriptedNumbers
    from dialsim.engine.world import CampaignBlock, OrganizationBlock

_QUEUED = CallStatus.QUEUED
_DIALLING = Step.DIALLING


class Dialler:
    """One organization's calls between release and end, whatever campaign they belong to."""

    def __init__(
        self, clock: Clock, block: OrganizationBlock, trace: Trace, scripted: ScriptedNumbers
    ) -> None:
        """`scripted` are the scripts of numbers that any organization may dial."""
        scenario = trace.world.scenario
        self.clock = clock
        self.block = block
        self.trace = trace
        self.scripted = scripted
        self.campaigns: list[Campaign] = []
        self.calling_allowed = block.settings.calling_allowed
        self.slots_in_use = 0
        self._queue_limit = scenario.engine.queue_limit
        self._queue_timeout = scenario.engine.queue_timeout
        self._sharing = scenario.engine.sharing
        self._gap = dial_gap(scenario.engine.calls_per_second)
        self._queue: deque[Call] = deque()
        self._queued = 0
        self._capacity: float = 0
        self._released_last: dict[float, int] = {}  # a campaign's position, by priority
        self.counts_lines = False
        """Whether a line must be there for whoever is released (Q10)."""
        self._dialled_last: int | None = None
        self._woken = False
        self._pace = Timer(clock, Step.DUE, self._wake_on)
        self._deadline = Timer(clock, Step.QUEUE_TIMEOUT, self._time_out)
        recoveries = {
            behaviour.answered_odds.by_caller_id_use.recovery
            for behaviour in scenario.behaviours.values()
            if behaviour.answered_odds.by_caller_id_use is not None
        }
        self.number_uses = {recovery: NumberUse(recovery) for recovery in recoveries}
        self.limit = 0
        self.set_limit(block.settings.max_concurrent_calls)
        alert = block.settings.duplicate_call_alert
        self.reached = ReachedPeople(None if alert is None else alert.window)
        webhook = block.settings.webhook
        self.set_webhook_url(None if webhook is None else webhook.url)
        self._behaviours: dict[str, str] = {}  # by agent, where it was changed
        for campaign in block.campaigns:
            self.add(campaign)

    def add(self, block: CampaignBlock) -> Campaign:
        """Take up the organization's next campaign, a DRAFT."""
        self.trace.calls[self.block.position].append(CallLog())
        campaign = Campaign(self.clock, block, self)
        self.campaigns.append(campaign)
        self.reached.add(block)
        if block.agent.name in self._behaviours:
            campaign.use_behaviour(self._behaviours[block.agent.name])
        return campaign

    def remove_last(self) -> None:
        """Take the newest campaign, a DRAFT, out of the organization again."""
        self.block.campaigns.pop()
        self.trace.calls[self.block.position].pop()
        self.campaigns.pop()
        self.reached.remove_last()

    @property
    def queue_length(self) -> int:
        """How many calls are QUEUED."""
        return self._queued

    def set_limit(self, limit: int) -> None:
        """Change maxConcurrentCalls; a lower one hangs up nobody (Q1)."""
        self.limit = limit
        self._capacity = self._queue_capacity()
        self.trace.limits.append(
            LimitChange(self.clock.now, self.block.position, limit, self.trace.turn)
        )
        self.wake()

    def set_webhook_url(self, url: str | None) -> None:
        """Change where results are sent; the next one goes there (W6)."""
        self.trace.urls.append(UrlChange(self.clock.now, self.block.position, url, self.trace.turn))

    def set_calling_allowed(self, allowed: bool) -> None:
        """Allow or forbid the organization to start campaigns (interface, section 5)."""
        self.calling_allowed = allowed

    def use_behaviour(self, agent: str, behaviour: str) -> None:
        """Have the people whom an agent calls react by another behaviour from the next dial on.

        Campaigns that are added later too.
        """
        self._behaviours[agent] = behaviour
        for campaign in self.campaigns:
            if campaign.block.agent.name == agent:
                campaign.use_behaviour(behaviour)

    def wake(self) -> None:
        """Have releases and dials looked at in this instant's step for them (T4)."""
        if not self._woken:
            self._woken = True
            At(self.clock, self.clock.now, _DIALLING, self._work)

    def call_due(self) -> None:
        """Another call may be released; without room for it, whatever makes room wakes us (Q2)."""
        if self._queued < self._capacity:
            self.wake()

    def slot_freed(self) -> None:
        """A call that held a slot ended or was withdrawn (Q1)."""
        self.slots_in_use -= 1
        self.wake()

    def left_queue(self) -> None:
        """A queued call went back to SCHEDULED or was dropped."""
        self._queued -= 1
        self.wake()

    def _wake_on(self, _event: Event) -> None:
        self.wake()

    def _queue_capacity(self) -> float:
        """How many calls the queue takes under the limit of now (Q2)."""
        if self.limit == 0:
            return 0
        if self._queue_limit == "unlimited":
            return inf
        return self.limit if self._queue_limit is None else self._queue_limit

    def _work(self, _event: Event) -> None:
        """Release and dial until neither can do more (T4 step 7)."""
        self._woken = False
        now = self.clock.now
        self._pace.drop()
        ready = [campaign for campaign in self.campaigns if campaign.can_release(now)]
        self._release(now, ready)
        while self._dial(now):
            self._release(now, ready)
        self._await_deadline()
        self._await_releases(now)

    def _release(self, now: int, ready: list[Campaign]) -> None:
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

    def _next(self, ready: list[Campaign]) -> Campaign:
        """The campaign whose call is released next (Q3); `ready` is in scenario order."""
        if len(ready) == 1:
            return ready[0]
        match self._sharing:
            case "fifo":
                return min(ready, key=_fifo_key)
            case "weighted":
                return min(ready, key=_weighted_key)
            case "deadline":
                return min(ready, key=_deadline_key)
            case _:
                rank = min(map(self._rank, ready))
                return self._in_turn([one for one in ready if self._rank(one) == rank], rank)

    def _rank(self, campaign: Campaign) -> float:
        """What goes before the turns: the priority (Q7), if that counts."""
        return campaign.block.share.priority if self._sharing == "priority" else 0

    def _in_turn(self, equals: list[Campaign], rank: float) -> Campaign:
        """The campaign after the one that was released from last (Q3)."""
        last = self._released_last.get(rank, -1)
        return next((campaign for campaign in equals if campaign.block.position > last), equals[0])

    def _has_free_line(self) -> bool:
        """Whether a line is neither in use nor waited for by a queued call (Q10)."""
        return self.slots_in_use + self._queued < self.limit

    def _with_a_line(self, ready: list[Campaign]) -> list[Campaign]:
        """The campaigns for whose next call a line is there (Q10, Q11)."""
        if not self._has_free_line():
            return []
        now = self.clock.now
        unused = sum(max(0, each.held_lines(now) - each.lines) for each in self.campaigns)
        is_unheld = self.slots_in_use + self._queued + unused < self.limit
        return [
            campaign
            for campaign in ready
            if campaign.lines < campaign.block.share.at_most
            and (is_unheld or campaign.lines < campaign.held_lines(now))
        ]

    def _dial(self, now: int) -> bool:
        """QUEUED → INITIATED while slots and pace allow (Q4); whether any call was dialled."""
        dialled = False
        while self._queued and self.slots_in_use < self.limit:
            if self._gap and self._dialled_last is not None:
                free_at = self._dialled_last + self._gap
                if now < free_at:
                    self._pace.set(free_at)
                    break
            call = self._queue.popleft()
            if call.status is _QUEUED:
                self._queued -= 1
                self.slots_in_use += 1
                self._dialled_last = now
                call.campaign.dial(call, now)
                dialled = True
        return dialled

    def _time_out(self, _event: Event) -> None:
        """QUEUED → CANCELLED for those who waited too long (Q5)."""
        queued_before = self.clock.now - self._queue_timeout
        queue = self._queue
        while queue and (queue[0].status is not _QUEUED or queue[0].queued_at <= queued_before):
            call = queue.popleft()
            if call.status is _QUEUED:
                call.campaign.queue_timeout(call)
                self.left_queue()
        self._await_deadline()

    def _await_deadline(self) -> None:
        """All wait equally long, so the first in the queue times out first (Q5)."""
        queue = self._queue
        while queue and queue[0].status is not _QUEUED:
            queue.popleft()
        if queue:
            self._deadline.set_no_later(queue[0].queued_at + self._queue_timeout)
        else:
            self._deadline.drop()

    def _await_releases(self, now: int) -> None:
        """Look again when a closed window opens or a release instant comes (Q2), if there is room.

        Without room, or a line, nothing need be awaited: whatever makes them wakes the dialler.
        """
        room = self._queued < self._capacity
        if self.counts_lines and not self._has_free_line():
            room = False
        for campaign in self.campaigns:
            campaign.await_release(now if room else None)


def dial_gap(calls_per_second: float | None) -> int:
    """The least time in ms between two dials of an organization (Q4); 0 without a limit."""
    if calls_per_second is None:
        return 0
    return ceil(1000 / Fraction(repr(calls_per_second)))


def _fifo_key(campaign: Campaign) -> tuple[int, int, int, int]:
    rank, due, recipient, _ = campaign.waiting.first()
    return (rank, due, campaign.block.position, recipient)


def _weighted_key(campaign: Campaign) -> tuple[Fraction, int]:  # Q8
    return Fraction(campaign.lines + 1, campaign.block.share.weight), campaign.block.position


def _deadline_key(campaign: Campaign) -> tuple[float, int]:  # Q9
    end = campaign.end_date_time
    return inf if end is None else end, campaign.block.position
