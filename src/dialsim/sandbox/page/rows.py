"""Progress: what a campaign has come to so far, counted as its log goes on.

The board: what the page counts of a sandbox, kept up with it at the cost of what is new.

Call lines: calls as the page lists them, one line each.

Cards: organizations and campaigns as the page shows them.

Faults as the page lists them, and the form by which one is asked for.

Webhook lines: the results that left last, or were kept, as the page lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from dialsim.engine.calls import IN_QUEUE, NEVER, SLOTS
from dialsim.engine.post_log import PostKey
from dialsim.engine.trace import CHANGES, ENDED, CallRows
from dialsim.interface.errors import Refused
from dialsim.interface.payload import NOT_SENT, UNDER_WAY, WORDS, accepted
from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.results.time_use import limit
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.faults import FaultOrder, InjectedFault
from dialsim.sandbox.organization import Account
from dialsim.sandbox.page.slots import SlotChart, SlotUse
from dialsim.sandbox.page.view import Place, Span, View, is_number
from dialsim.sandbox.webhooks import WebhookRow
from dialsim.scenario.units import format_duration
from dialsim.webhooks.deliveries import has_url
from dialsim.webhooks.messages import sequence

_REACHED = ENDED[CallStatus.COMPLETED]


@dataclass(frozen=True, slots=True)
class Progress:
    """How many people of a campaign stand where; the last four add up to `people`.

    `under_way` are in a call (Q1), `queued` those of the waiting whose call is in the queue.
    Nobody waits once the campaign has its final status: then they were left out.
    """

    people: int
    queued: int
    reached: int
    unreached: int
    under_way: int
    waiting: int


class ProgressCount:
    """Counts one campaign; `take_in` is handed each part of the log once."""

    def __init__(self, campaign_view: CampaignView) -> None:
        self._view = campaign_view
        self._kinds = np.zeros(len(CHANGES), dtype=np.int64)
        self._reached_before: int | None = None

    def take_in(self, rows: CallRows) -> None:
        """Count what is new in the log."""
        self._kinds += np.bincount(rows.kind, minlength=len(CHANGES))

    @property
    def progress(self) -> Progress:
        """How things stand after what was taken in."""
        campaign = self._view.campaign
        people = self._view.total_recipients
        removed = campaign.block.people.count - people
        done = campaign.people_done - removed
        reached = int(self._kinds[_REACHED]) + self._before()
        under_way = int(self._kinds @ SLOTS)
        return Progress(
            people=people,
            queued=int(self._kinds @ IN_QUEUE),
            reached=reached,
            unreached=done - reached,
            under_way=under_way,
            waiting=people - done - under_way,
        )

    def _before(self) -> int:
        """Who was reached before the scenario began (R3); they count once it is scheduled."""
        if not self._kinds.any() and not self._view.campaign.people_done:
            return 0
        if self._reached_before is None:
            history = self._view.campaign.block.people.history
            self._reached_before = sum(
                past.reached and self._view.is_listed(who) for who, past in history.items()
            )
        return self._reached_before


_Place = tuple[int, int]


class Board:
    """Progress of every campaign and slot use of every organization, by their positions."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core
        self._counts: dict[_Place, ProgressCount] = {}
        self._read: dict[_Place, int] = {}
        start = core.scenario.clock.start
        self._uses = [SlotUse(start) for _ in core.accounts]

    def catch_up(self) -> None:
        """Take in what has happened since the last time."""
        now = self._core.simulation.at
        for account, use in zip(self._core.accounts, self._uses, strict=True):
            changed_at, gains = [np.empty(0, np.int64)], [np.empty(0, np.int8)]
            for campaign_view in account.views:
                log, place = campaign_view.campaign.log, _place(campaign_view)
                count = self._counts.setdefault(place, ProgressCount(campaign_view))
                if len(log) == self._read.get(place, 0):
                    continue
                rows = log.rows(self._read.get(place, 0))
                self._read[place] = len(log)
                count.take_in(rows)
                gain = SLOTS[rows.kind]
                changed_at.append(rows.at[gain != 0])
                gains.append(gain[gain != 0])
            use.take_in(np.concatenate(changed_at), np.concatenate(gains), now)

    def progress(self, campaign_view: CampaignView) -> Progress:
        """What a campaign has come to."""
        return self._counts[_place(campaign_view)].progress

    def slot_use(self, organization: int) -> SlotUse:
        """The slots of an organization."""
        return self._uses[organization]


def _place(campaign_view: CampaignView) -> _Place:
    block = campaign_view.campaign.block
    return block.organization, block.position


MOST_CALLS = 50
"""How many of the latest calls are listed."""


@dataclass(frozen=True, slots=True)
class CallLine:
    """One call; `place` finds it, `shown` is what the interface says of it (section 2.5).

    `changed_at` (ms) is its last change by the engine, `attempt` 0 until it has ended as one (P5).
    """

    place: Place
    person: Place
    campaign: str
    changed_at: int
    attempt: int
    shown: dict[str, Any]

    @classmethod
    def of(cls, campaign_view: CampaignView, call: int, at: int) -> CallLine:
        """A call as it stands at the instant `at` (ms)."""
        entry, block = campaign_view.entry(call), campaign_view.campaign.block
        return cls(
            place=Place(block.organization, block.position, call),
            person=Place(block.organization, block.position, entry.recipient),
            campaign=block.name,
            changed_at=entry.changed_at,
            attempt=entry.attempt,
            shown=campaign_view.call(call, at),
        )

    @property
    def version(self) -> str:
        """Another text whenever something about the call is another one."""
        return f"{self.changed_at}-{self.shown['updatedAt']}"


def latest_calls(core: SandboxCore, view: View) -> list[CallLine]:
    """The calls that changed last, newest first, of the campaign and status that are chosen."""
    chosen = Place.read(view.campaign, 2)
    status = CallStatus(view.status) if view.status else None
    found = []
    for account in core.accounts:
        for campaign_view in account.views:
            block = campaign_view.campaign.block
            if chosen is None or chosen[:2] == (block.organization, block.position):
                campaign_view.catch_up()
                latest = campaign_view.latest_calls(MOST_CALLS, status)
                found += [(changed_at, campaign_view, call) for changed_at, call in latest]
    found.sort(key=lambda line: -line[0])
    now = core.simulation.at
    return [CallLine.of(campaign_view, call, now) for _, campaign_view, call in found[:MOST_CALLS]]


def view_at(core: SandboxCore, place: Place) -> CampaignView | None:
    """The campaign_view of a campaign by its place; None if there is none."""
    if place.organization < len(core.accounts):
        campaign_views = core.accounts[place.organization].views
        if place.campaign < len(campaign_views):
            return campaign_views[place.campaign]
    return None


_ACTIONS = {
    CampaignStatus.DRAFT: ("Cancel",),
    CampaignStatus.SCHEDULED: ("Pause", "Cancel"),
    CampaignStatus.RUNNING: ("Pause", "Cancel"),
    CampaignStatus.PAUSED: ("Resume", "Cancel"),
}
"""What may be done to a campaign (C4 to C6)."""


@dataclass(frozen=True, slots=True)
class OrganizationCard:
    """An organization and its slots."""

    name: str
    in_use: int
    limit: int
    queued: int
    calling_allowed: bool
    chart: SlotChart

    @classmethod
    def of(cls, core: SandboxCore, board: Board, account: Account, span: Span) -> OrganizationCard:
        """An organization as it stands now."""
        position, simulation = account.block.position, core.simulation
        dialler, use = simulation.dialler(position), board.slot_use(position)
        return cls(
            name=account.block.name,
            in_use=use.in_use,
            limit=dialler.limit,
            queued=sum(board.progress(campaign_view).queued for campaign_view in account.views),
            calling_allowed=dialler.calling_allowed,
            chart=SlotChart.of(use, limit(simulation.log, position), span),
        )


@dataclass(frozen=True, slots=True)
class CampaignCard:
    """A campaign, what it has come to, and what may be done to it."""

    id: str
    key: str
    name: str
    organization: str
    agent: str
    status: CampaignStatus
    deleted: bool
    progress: Progress
    actions: tuple[str, ...]

    @classmethod
    def of(cls, board: Board, account: Account, campaign_view: CampaignView) -> CampaignCard:
        """A campaign as it stands now."""
        campaign, block = campaign_view.campaign, campaign_view.campaign.block
        return cls(
            id=campaign_view.identifier,
            key=f"{block.organization}-{block.position}",
            name=block.name,
            organization=account.block.name,
            agent=block.agent.name,
            status=campaign.status,
            deleted=campaign.deleted,
            progress=board.progress(campaign_view),
            actions=() if campaign.deleted else _ACTIONS.get(campaign.status, ()),
        )

    @property
    def final(self) -> bool:
        """Whether nobody will be called any more."""
        return self.status.final


KINDS = {
    "api=error&status=503": "API answers: 503 in their place",
    "api=error&status=500": "API answers: 500 in their place",
    "api=slow&delay=2s": "API answers: 2 s late",
    "api=slow&delay=15s": "API answers: 15 s late",
    "webhooks=timeout": "Webhooks: lost on the way, no answer",
    "webhooks=refuse": "Webhooks: connection refused",
    "webhooks=late": "Webhooks: received, answer too late",
    "webhooks=twice": "Webhooks: received twice",
}
"""What can be asked for by the form; the control plane takes any status, delay and path."""

SHARES = {"": "each of them", "0.5": "every other, by chance", "0.1": "one in ten, by chance"}

_POSTS = {
    "timeout": "webhooks are lost on the way",
    "refuse": "the webhook's connection is refused",
    "late": "webhooks are received and answered too late",
    "twice": "webhooks are received twice",
}


@dataclass(frozen=True, slots=True)
class FaultLine:
    """One fault: what it does to whom, and what became of it."""

    number: int
    text: str
    struck: int
    met: int
    next: int

    @classmethod
    def of(cls, core: SandboxCore, fault: InjectedFault) -> FaultLine:
        """A fault as it stands now."""
        return cls(
            number=fault.number,
            text=f"{_what(fault.order)}{_whose(core, fault)}",
            struck=fault.struck,
            met=fault.met,
            next=fault.order.next,
        )

    @property
    def spent(self) -> bool:
        """Whether it strikes nobody any more."""
        return self.struck == self.next


def body_of(form: Mapping[str, str]) -> dict[str, object]:
    """A form as the body of a request for a fault; what is no number is left for the check."""
    fields = {name: value for name, value in form.items() if value and name != "kind"}
    fields |= dict(parse_qsl(form.get("kind", "")))
    return {
        name: number_of(value) if name in ("next", "share", "status") else value
        for name, value in fields.items()
    }


def number_of(text: str) -> object:
    """The number that a field of a form holds; what is none stays a text."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


def _what(order: FaultOrder) -> str:
    if order.webhooks is not None:
        what = _POSTS[order.webhooks]
    else:
        answers = "API answers" + (f" of {order.path}…" if order.path else "")
        done = f"are {order.status or 503}"
        if order.delay is not None:
            done = f"come {format_duration(order.delay)} late"
        what = f"{answers} {done}"
    return what if order.share == 1 else f"{what}, with a chance of {order.share:.0%}"


def _whose(core: SandboxCore, fault: InjectedFault) -> str:
    if fault.organization is None:
        return ""
    account = core.accounts[fault.organization]
    if fault.campaign is None:
        return f", {account.block.name} alone"
    block = account.views[fault.campaign].campaign.block
    return f", {block.name} ({account.block.name}) alone"


MOST_WEBHOOKS = 50
"""How many of the latest webhooks are listed."""

_PARTS = 6  # of a webhook's place: its key's five and its number
_ENDS_BACK = (
    4 * MOST_WEBHOOKS
)  # calls that ended last: their results leave in nearly the same order
_MOST_LOOKED_AT = 5_000  # POSTs: what is chosen is looked for among so many of the latest


@dataclass(frozen=True, slots=True)
class WebhookLine:
    """One POST of a result, or a result that was kept because there was no URL (`number` 0).

    `at` (ms) is when it left; `number` is the POST's of its result, from 1; `response` an HTTP
    status or a code of `interface.delivery`.
    """

    key: PostKey
    call: CallLine
    at: int
    number: int
    resent: bool
    response: int

    @property
    def outcome(self) -> str:
        """What came of it, in a word or two."""
        if self.response == NOT_SENT:
            return "kept"
        if self.response == UNDER_WAY:
            return "under way"
        return WORDS.get(self.response) or str(self.response)

    @property
    def fate(self) -> str:
        """What came of it, as a kind: `delivered`, `failed`, `kept` or `under-way`."""
        if self.response == NOT_SENT:
            return "kept"
        if self.response == UNDER_WAY:
            return "under-way"
        return "delivered" if accepted(self.response) else "failed"

    @property
    def place(self) -> tuple[int, ...]:
        """What finds it again, see `find_webhook`."""
        return (*self.key, self.number)


def find_webhook(core: SandboxCore, text: str) -> WebhookRow:
    """What the control plane says of the webhook at a place, written `0.2.17.1.0.1`.

    Reads the whole list. Raises Refused, 404, if there is none.
    """
    numbers = [int(part) for part in text.split(".") if is_number(part)]
    if len(numbers) == _PARTS and view_at(core, Place(*numbers[:2])) is not None:
        organization, campaign, recipient, call, result, number = numbers
        table = core.webhooks
        rows = table.find(place=(organization, campaign), call=(recipient, call))
        for row in table.rows(rows):
            if (row.result, row.attempt or 0) == (result, number):
                return row
    raise Refused(404, "WEBHOOK_NOT_FOUND", ["Webhook not found"])


def latest_webhooks(core: SandboxCore, view: View) -> list[WebhookLine]:
    """The webhooks that left last, newest first, of the campaign that is chosen."""
    found = [*islice(_sent(core, view), MOST_WEBHOOKS), *_kept(core, view)]
    found.sort(key=lambda line: (-line[1], -line[2]))
    return [
        WebhookLine(key, _call_line(core, campaign_view, key), at, number, resent, response)
        for (key, campaign_view), at, number, resent, response in found[:MOST_WEBHOOKS]
    ]


_Found = tuple[tuple[PostKey, CampaignView], int, int, bool, int]


def _sent(core: SandboxCore, view: View) -> Iterator[_Found]:
    """POSTs, newest first."""
    log, chosen = core.outbox.log, Place.read(view.campaign, 2)
    for row in range(len(log) - 1, max(len(log) - _MOST_LOOKED_AT, 0) - 1, -1):
        key, number, at, _, resent, response = log.row(row)
        if chosen is None or chosen[:2] == key[:2]:
            campaign_view = view_at(core, Place(*key[:2]))
            assert campaign_view is not None  # what is in the log is of a campaign
            yield (key, campaign_view), at, number, resent, response


def _kept(core: SandboxCore, view: View) -> Iterator[_Found]:
    """First results that had no URL to go to (W6), of the calls that ended last."""
    trace, now, chosen = core.simulation.log, core.at, Place.read(view.campaign, 2)
    without = {change.organization for change in trace.urls if change.url is None}
    campaign_views = (
        campaign_view for position in without for campaign_view in core.accounts[position].views
    )
    for campaign_view in campaign_views:
        block = campaign_view.campaign.block
        if chosen is not None and chosen[:2] != (block.organization, block.position):
            continue
        campaign_view.catch_up()
        ended = campaign_view.book.ended(max(campaign_view.book.ends - _ENDS_BACK, 0))
        messages = campaign_view.results.firsts(ended)
        sent = sequence(trace, messages.sent_at, messages.turn)
        kept = (messages.ready_at != NEVER) & (messages.sent_at <= now)
        kept &= ~has_url(trace, block.organization, sent)
        for row in np.flatnonzero(kept).tolist():
            entry = campaign_view.entry(int(messages.call[row]))
            key = PostKey(block.organization, block.position, entry.recipient, entry.number, 0)
            yield (key, campaign_view), int(messages.sent_at[row]), 0, False, NOT_SENT


def _call_line(core: SandboxCore, campaign_view: CampaignView, key: PostKey) -> CallLine:
    campaign_view.catch_up()
    return CallLine.of(campaign_view, campaign_view.position_of(key.recipient, key.call), core.at)
