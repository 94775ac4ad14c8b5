"""Templates: the page's HTML, every text in it escaped, and how instants and numbers are told.

Sections: the parts of the page that live, each as HTML.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cache
from itertools import islice
from time import monotonic
from typing import TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined

from dialsim.interface.instants import format_instant, parse_instant
from dialsim.results.thai_time import date_text, duration_text, thai, time_text
from dialsim.sandbox.control.clock import ClockState
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.page.person import MOST_FOUND, PersonLog, Who, find_people
from dialsim.sandbox.page.rows import (
    Board,
    CampaignCard,
    FaultLine,
    OrganizationCard,
    latest_calls,
    latest_webhooks,
    view_at,
)
from dialsim.sandbox.page.view import SPANS, Place, View, fitting_span

OWN = f"{PREFIX}/page"
"""Where everything lives that the page asks for."""


def render(template: str, **values: object) -> str:
    """A template of this package, filled in."""
    return _environment().get_template(f"{template}.html").render(own=OWN, **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dialsim.sandbox.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
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


MOST_ORGANIZATIONS = 12
CAMPAIGNS_A_PAGE = 20
_MOST_KEPT = 16  # views, and people, of tabs that are open at a time
_UNTOLD = 2  # seconds within which a change shows that no row of the trace tells of


Key = TypeVar("Key")
Value = TypeVar("Value")


class Sections:
    """Renders sections for views; tabs that look at the same thing share the work."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core
        self._board = Board(core)
        self._people = OrderedDict[Place, PersonLog]()
        self._found = OrderedDict[str, list[Place]]()
        self._rendered = OrderedDict[View, tuple[object, dict[str, str]]]()

    def render(self, view: View) -> dict[str, str]:
        """All sections of a view, by their names."""
        stamp = self._stamp()
        known = self._rendered.get(view)
        if known is not None and known[0] == stamp:
            return known[1]
        self._board.catch_up()
        sections = {
            "clock": render("clock", clock=ClockState.of(self._core)),
            "news": self._news(),
            "organizations": self._organizations(view),
            "campaigns": self._campaigns(view),
            "calls": render("calls", calls=latest_calls(self._core, view), view=view),
            "webhooks": self._webhooks(view),
            "person": self._person(view),
            "faults": self._faults(),
        }
        _keep(self._rendered, view, (stamp, sections))
        return sections

    def _stamp(self) -> object:
        """Another value whenever there may be something new."""
        core, clock = self._core, self._core.clock
        return (
            core.at,
            core.simulation.log.size(),
            (clock.advancing, clock.speed, core.journal and core.journal.error),
            (len(core.outbox.log), core.sender.busy),
            tuple((fault.number, fault.met) for fault in core.faults),
            monotonic() // _UNTOLD,
        )

    def _news(self) -> str:
        log = self._core.simulation.log
        return render("news", change=_Change.last(self._core) if log.campaigns else None)

    def _organizations(self, view: View) -> str:
        accounts = self._core.accounts
        elapsed = self._core.simulation.at - self._core.scenario.clock.start
        span = view.span or fitting_span(elapsed)
        cards = [
            OrganizationCard.of(self._core, self._board, account, SPANS[span])
            for account in accounts[:MOST_ORGANIZATIONS]
        ]
        more = max(len(accounts) - MOST_ORGANIZATIONS, 0)
        return render("organizations", cards=cards, more=more, span=span, spans=SPANS, view=view)

    def _campaigns(self, view: View) -> str:
        total = sum(len(account.views) for account in self._core.accounts)
        pages = max(-(-total // CAMPAIGNS_A_PAGE), 1)
        shown = min(view.campaigns, pages)
        every = (
            (account, campaign_view)
            for account in self._core.accounts
            for campaign_view in account.views
        )
        first = (shown - 1) * CAMPAIGNS_A_PAGE
        cards = [
            CampaignCard.of(self._board, account, campaign_view)
            for account, campaign_view in islice(every, first, first + CAMPAIGNS_A_PAGE)
        ]
        return render("campaigns", cards=cards, pages=pages, shown=shown, view=view)

    def _webhooks(self, view: View) -> str:
        return render("webhooks", webhooks=latest_webhooks(self._core, view), view=view)

    def _faults(self) -> str:
        lines = [FaultLine.of(self._core, fault) for fault in self._core.faults]
        return render("faults", faults=lines)

    def look_up(self, text: str) -> list[Place]:
        """The people whom somebody looks for; they are kept for the tabs that list them."""
        found = find_people(self._core, text)
        _keep(self._found, text, found)
        return found

    def _person(self, view: View) -> str:
        place, found = Place.read(view.person, 3), list[Place]()
        if place is None and view.find:
            known = self._found.get(view.find)
            found = self.look_up(view.find) if known is None else known
        log = None if place is None else self._person_log(place)
        listed = [
            Who.of(self._core, campaign_view, place.number)
            for place in found
            if (campaign_view := view_at(self._core, place)) is not None
        ]
        person = None if log is None else log.person()
        return render("person", person=person, found=listed, most_found=MOST_FOUND, view=view)

    def _person_log(self, place: Place) -> PersonLog | None:
        log, campaign_view = self._people.get(place), view_at(self._core, place)
        if (
            log is None
            and campaign_view is not None
            and place.number < campaign_view.campaign.block.people.count
        ):
            log = PersonLog(self._core, campaign_view, place.number)
            _keep(self._people, place, log)
        return log


@dataclass(frozen=True, slots=True)
class _Change:
    """The last change of any campaign's status."""

    name: str
    status: str
    at: int
    cause: str

    @classmethod
    def last(cls, core: SandboxCore) -> _Change:
        change = core.simulation.log.campaigns[-1]
        block = core.simulation.campaign(change.organization, change.campaign).block
        return cls(block.name, change.to_status, change.at, change.cause.replace("_", " "))


def _keep(kept: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    """Keep a value, and give up the one that was kept longest ago where there are too many."""
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > _MOST_KEPT:
        kept.popitem(last=False)
