"""The parts of the page that live, each as HTML, and the stream that keeps a tab up to date."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import cache
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from dialsim.interface.instants import format_instant, parse_instant
from dialsim.interface.status import CampaignStatus
from dialsim.results.thai_time import date_text, duration_text, thai, time_text
from dialsim.results.time_use import limit
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.control.clock import ClockState
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.faults import FaultOrder, InjectedFault
from dialsim.sandbox.page.board import Board, SlotChart
from dialsim.sandbox.page.lists import (
    MOST_FOUND,
    Person,
    Who,
    find_people,
    latest_calls,
    latest_requests,
    latest_webhooks,
    view_at,
)
from dialsim.sandbox.page.view import SPANS, PagePlace, View, fitting_span
from dialsim.scenario.units import format_duration
from dialsim.templates import templates

if TYPE_CHECKING:
    from jinja2 import Environment

OWN = f"{PREFIX}/page"
"""Where everything lives that the page asks for."""


def render(template: str, **values: object) -> str:
    """A template of this package, filled in."""
    return _environment().get_template(f"{template}.html").render(own=OWN, **values)


@cache
def _environment() -> Environment:
    environment = templates("dialsim.sandbox.page")
    environment.filters |= {
        "instant": parse_instant,
        "utc": format_instant,
        "thai": _thai_text,
        "thai_short": _short_text,
        "thai_second": _second_text,
        "time": time_text,
        "duration": duration_text,
        "talk": _talk_text,
        "number": "{:,}".format,
        "dotted": _dotted,
        "dashed": _dashed,
    }
    return environment


def _thai_text(instant: int) -> str:
    return f"{date_text(instant)} {time_text(instant)}"


def _short_text(instant: int) -> str:
    """`5 Jan 09:00`."""
    _, day, month, _ = date_text(instant).split()
    return f"{day} {month} {thai(instant):%H:%M}"


def _second_text(instant: int) -> str:
    """`5 Jan 09:00:01`, cut off."""
    return f"{_short_text(instant)}:{thai(instant):%S}"


def _talk_text(seconds: str) -> str:
    """A `callDuration` of the interface."""
    return duration_text(round(float(seconds) * 1000))


def _dotted(place: tuple[int, ...]) -> str:
    return ".".join(map(str, place))


def _dashed(place: tuple[int, ...]) -> str:
    return "-".join(map(str, place))


INTERVAL = 0.25
"""Seconds between looks at what is new."""
MOST_ORGANIZATIONS = 12
CAMPAIGNS_A_PAGE = 20

OPTION_LABELS = {
    "organization-options": "Organizations",
    "agent-options": "Agents",
    "campaign-options": "Campaigns",
}
"""What there is to choose from in forms, each a section of its own."""

_MOST_LISTED = 500  # of those to choose from; the newest, of organizations
_MOST_SCRIPTS = 100
_HEARTBEAT = 15  # seconds after which a silent stream says that it is alive
_SHARE = 4  # a tab waits this many times as long as its rendering took, so that others have a turn
_LONGEST = 2  # seconds
_MOST_SEARCHES = 16  # of tabs that are open at a time
_UNTOLD = 2  # seconds within which a change shows that no row of the trace tells of

_ACTIONS = {
    CampaignStatus.DRAFT: ("Cancel",),
    CampaignStatus.SCHEDULED: ("Pause", "Cancel"),
    CampaignStatus.RUNNING: ("Pause", "Cancel"),
    CampaignStatus.PAUSED: ("Resume", "Cancel"),
}
"""What may be done to a campaign (C4 to C6)."""

_POSTS = {
    "timeout": "webhooks are lost on the way",
    "refuse": "the webhook's connection is refused",
    "late": "webhooks are received and answered too late",
    "twice": "webhooks are received twice",
    "stale": "webhooks are followed by the result before",
}


class Sections:
    """Renders the sections of views of one sandbox."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core
        self._board, self._epoch = Board(core), core.epoch
        self._found: dict[str, list[PagePlace]] = {}

    async def events(self, view: View) -> AsyncIterator[bytes]:
        """The sections of a view as server-sent events: all of them, then each that changes.

        A slow tab is sent less, and nothing piles up for it.
        """
        yield b"retry: 1000\n\n"
        sent = dict[str, str]()
        seen: object = None
        spoke = monotonic()
        while True:
            began = monotonic()
            stamp = self._stamp()
            sections = self.render(view) if stamp != seen else {}
            seen, took = stamp, monotonic() - began
            for name, html in sections.items():
                if sent.get(name) != html:
                    sent[name] = html
                    spoke = monotonic()
                    yield _event(name, html)
            if monotonic() - spoke > _HEARTBEAT:
                spoke = monotonic()
                yield b": alive\n\n"
            await asyncio.sleep(min(max(INTERVAL, _SHARE * took), _LONGEST))

    def render(self, view: View) -> dict[str, str]:
        """All sections of a view, by their names."""
        if self._epoch != self._core.epoch:  # another run: what was counted is not of it
            self._board, self._epoch = Board(self._core), self._core.epoch
        self._board.catch_up()
        core = self._core
        return {
            "clock": render("clock", clock=ClockState.of(core)),
            "news": self._news(),
            "organizations": self._organizations(view),
            "campaigns": self._campaigns(view),
            "calls": render("calls", calls=latest_calls(core, view), view=view),
            "webhooks": render("webhooks", webhooks=latest_webhooks(core, view), view=view),
            "requests": render("requests", requests=latest_requests(core)),
            "person": self._person(view),
            "scripts": self._scripts(),
            **self._options(view),
            "faults": render(
                "faults",
                faults=[
                    (fault, fault_text(core, fault), fault.is_over(core.at))
                    for fault in core.faults
                ],
            ),
        }

    def where(self, view: CampaignView) -> str:
        """The address at which a campaign is listed."""
        every = [one for account in self._core.accounts for one in account.views]
        page = every.index(view) // CAMPAIGNS_A_PAGE + 1
        block = view.campaign.block
        return f"{View(campaigns=page).url()}#campaign-{block.organization}-{block.position}-title"

    def look_up(self, text: str) -> list[PagePlace]:
        """The people whom somebody looks for; they are kept for the tabs that list them."""
        if len(self._found) >= _MOST_SEARCHES:
            del self._found[next(iter(self._found))]
        self._found[text] = find_people(self._core, text)
        return self._found[text]

    def _stamp(self) -> object:
        """Another value whenever there may be something new."""
        core, clock = self._core, self._core.clock
        return (
            core.epoch,
            core.at,
            core.simulation.log.size(),
            (clock.advancing, clock.speed, core.journal and core.journal.error),
            (len(core.records), len(core.outbox.log), core.sender.busy, core.requests.changes),
            tuple((fault.number, fault.met) for fault in core.faults),
            monotonic() // _UNTOLD,
        )

    def _news(self) -> str:
        changes, name = self._core.simulation.log.campaigns, ""
        if changes:
            place = changes[-1].organization, changes[-1].campaign
            name = self._core.simulation.campaign(*place).block.name
        return render("news", change=changes[-1] if changes else None, name=name)

    def _organizations(self, view: View) -> str:
        core, accounts = self._core, self._core.accounts
        span = view.span or fitting_span(core.simulation.at - core.scenario.clock.start)
        cards = []
        for account in accounts[:MOST_ORGANIZATIONS]:
            position = account.block.position
            use, allowed = self._board.slot_use(position), limit(core.simulation.log, position)
            cards.append(
                {
                    "name": account.block.name,
                    "dialler": core.simulation.dialler(position),
                    "in_use": use.in_use,
                    "id": account.identifier,
                    "url": core.webhook_url(position),
                    "queued": sum(self._board.progress(one).queued for one in account.views),
                    "chart": SlotChart.of(use, allowed, SPANS[span]),
                }
            )
        more = max(len(accounts) - MOST_ORGANIZATIONS, 0)
        return render("organizations", cards=cards, more=more, span=span, spans=SPANS, view=view)

    def _campaigns(self, view: View) -> str:
        accounts = self._core.accounts
        total = sum(len(account.views) for account in accounts)
        pages = max(-(-total // CAMPAIGNS_A_PAGE), 1)
        shown = min(view.campaigns, pages)
        first = (shown - 1) * CAMPAIGNS_A_PAGE
        every = ((account, one) for account in accounts for one in account.views)
        cards = [
            {
                "id": one.identifier,
                "campaign": one.campaign,
                "organization": account.block.name,
                "progress": self._board.progress(one),
                "actions": () if one.campaign.deleted else _ACTIONS.get(one.campaign.status, ()),
            }
            for account, one in islice(every, first, first + CAMPAIGNS_A_PAGE)
        ]
        return render("campaigns", cards=cards, pages=pages, shown=shown, view=view)

    def _scripts(self) -> str:
        scripts = self._core.simulation.scripts
        shown = [(tel, scripts[tel]) for tel in sorted(scripts)[:_MOST_SCRIPTS]]
        return render("scripts", scripts=shown, more=len(scripts) - len(shown))

    def _options(self, view: View) -> dict[str, str]:
        """What forms offer; the organizations that were added last are likeliest to be wanted."""
        accounts = self._core.accounts[-_MOST_LISTED:]
        organizations = [(account.block.name, account.block.name) for account in accounts]
        agents = [
            (
                urlencode({"organization": account.block.name, "agent": agent.name}),
                f"{agent.name} ({account.block.name})",
            )
            for account in accounts
            for agent in account.block.settings.agents
        ]
        campaigns = (
            (
                f"{account.block.position}.{place}",
                f"{one.campaign.block.name} ({account.block.name})",
            )
            for account in self._core.accounts
            for place, one in enumerate(account.views)
        )
        return {
            "organization-options": render("options", options=organizations, chosen=None),
            "agent-options": render("options", options=agents[:_MOST_LISTED], chosen=None),
            "campaign-options": render(
                "options", options=islice(campaigns, _MOST_LISTED), chosen=view.campaign
            ),
        }

    def _person(self, view: View) -> str:
        place, found = PagePlace.read(view.person, 3), list[PagePlace]()
        if place is None and view.find:
            found = self._found.get(view.find) or self.look_up(view.find)
        listed = [
            Who.of(self._core, one, place.number)
            for place in found
            if (one := view_at(self._core, place)) is not None
        ]
        person = None if place is None else Person.of(self._core, place)
        return render("person", person=person, found=listed, most_found=MOST_FOUND, view=view)


def _event(name: str, html: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in html.splitlines())
    return f"event: {name}\n{lines}\n".encode()


def fault_text(core: SandboxCore, fault: InjectedFault) -> str:
    """What a fault does to whom."""
    what = _what(fault.order)
    if fault.organization is None:
        return what
    account = core.accounts[fault.organization]
    if fault.campaign is None:
        return f"{what}, {account.block.name} alone"
    block = account.views[fault.campaign].campaign.block
    return f"{what}, {block.name} ({account.block.name}) alone"


def _what(order: FaultOrder) -> str:
    late = "" if order.delay is None else format_duration(order.delay)
    if order.webhooks is not None:
        what = _POSTS.get(order.webhooks, f"webhooks leave {late} later")
    else:
        done = {
            "error": f"are {order.status or (503 if order.retry_after is None else 429)}",
            "drop": "are dropped connections",
            "slow": f"come {late} late",
            "slowBody": f"take {late} for their body",
        }[order.api or "error"]
        answers = "API answers" + (f" of {order.path}…" if order.path else "")
        what = f"{answers} {done}" + (", after being carried out" if order.executed else "")
    return what if order.share == 1 else f"{what}, with a chance of {order.share:.0%}"
