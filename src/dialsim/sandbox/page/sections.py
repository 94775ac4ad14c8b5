"""The live parts of the page, their counts, and the stream that keeps a tab up to date.

Counts are updated from new log rows alone: progress of campaigns, and the lines of organizations
minute by minute, with a chart: an SVG made of steps, and a text version.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.log_reader import IN_QUEUE, SLOTS
from dialsim.engine.trace import CHANGES, ENDED
from dialsim.interface.instants import (
    MINUTE,
    date_text,
    duration_text,
    format_instant,
    parse_instant,
    thai,
    time_text,
)
from dialsim.interface.status import CallStatus, CampaignStatus
from dialsim.results.campaigns import Position
from dialsim.results.time_use import StepFunction, limit
from dialsim.sandbox.access import PREFIX
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.control.clock import ClockState
from dialsim.sandbox.control.run import SnapshotState
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.faults import InjectedFault
from dialsim.sandbox.page.view import (
    MOST_FOUND,
    MOST_REQUESTS,
    SPANS,
    ChartSpan,
    PagePlace,
    Person,
    View,
    Who,
    find_people,
    fitting_span,
    latest_calls,
    latest_webhooks,
    view_at,
)
from dialsim.scenario.distribution import Constant
from dialsim.scenario.faults import StandingFault
from dialsim.scenario.units import format_duration
from dialsim.templates import templates

if TYPE_CHECKING:
    from jinja2 import Environment


_REACHED = ENDED[CallStatus.COMPLETED]
KEPT = 8 * 24 * 60
"""Number of minutes kept: a week and the rest of a day."""


@dataclass(frozen=True, slots=True)
class CampaignProgress:
    """Numbers of people in each state of a campaign; the last four add up to `people`.

    `under_way` are in a call (Q1), `queued` are the waiting people whose call is in the queue. A
    campaign with its final status has no waiting people: they are then left out.
    """

    people: int
    queued: int
    reached: int
    unreached: int
    under_way: int
    waiting: int


class Board:
    """Progress of every campaign and line use of every organization."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core
        self._rows_read: dict[Position, int] = {}
        self._kinds: dict[Position, NDArray[np.int64]] = {}  # rows of the log by kind
        self._reached_before: dict[Position, int] = {}
        start = core.scenario.clock.start
        self._uses = [LiveSlotUse(start) for _ in core.accounts]

    def catch_up(self) -> None:
        """Read the events since the last update."""
        added = len(self._core.accounts) - len(self._uses)
        self._uses += [LiveSlotUse(self._core.scenario.clock.start) for _ in range(added)]
        for account, use in zip(self._core.accounts, self._uses, strict=True):
            changed_at, gains = [np.empty(0, np.int64)], [np.empty(0, np.int8)]
            for view in account.views:
                log, position = view.campaign.log, view.position
                kinds = self._kinds.setdefault(position, np.zeros(len(CHANGES), dtype=np.int64))
                read = self._rows_read.get(position, 0)
                if len(log) == read:
                    continue
                self._rows_read[position] = len(log)
                rows = log.rows(read)
                kinds += np.bincount(rows.kind, minlength=len(CHANGES))
                gain = SLOTS[rows.kind]
                changed_at.append(rows.at[gain != 0])
                gains.append(gain[gain != 0])
            use.take_in(np.concatenate(changed_at), np.concatenate(gains), self._core.simulation.at)

    def progress(self, view: CampaignView) -> CampaignProgress:
        """Return the progress of a campaign."""
        kinds, people = self._kinds[view.position], view.total_recipients
        done = view.campaign.people_done - (view.campaign.block.people.count - people)
        reached = int(kinds[_REACHED])
        if kinds.any() or view.campaign.people_done:
            reached += self._before(view)
        under_way = int(kinds @ SLOTS)
        return CampaignProgress(
            people=people,
            queued=int(kinds @ IN_QUEUE),
            reached=reached,
            unreached=done - reached,
            under_way=under_way,
            waiting=people - done - under_way,
        )

    def slot_use(self, organization: int) -> LiveSlotUse:
        """The lines of an organization."""
        return self._uses[organization]

    def _before(self, view: CampaignView) -> int:
        """Return the number of people reached before the start (R3), once scheduled."""
        position = view.position
        if position not in self._reached_before:
            history = view.campaign.block.people.history
            self._reached_before[position] = sum(
                past.reached and view.is_listed(who) for who, past in history.items()
            )
        return self._reached_before[position]


@dataclass(frozen=True, slots=True)
class SlotColumns:
    """Lines in use in columns of equal width: `at` is the beginning of each (ms, int64).

    `peak` is the most at once (int64), `mean` the average (float64), up to now in the last one.
    """

    at: NDArray[np.int64]
    peak: NDArray[np.int64]
    mean: NDArray[np.float64]


class LiveSlotUse:
    """Line use of one organization; `take_in` gets each change once."""

    def __init__(self, start: int) -> None:
        """`start` is the clock's first instant (ms)."""
        self.in_use = 0
        self.upto = start
        self._first = start // MINUTE  # the minute that row 0 is about
        self.used = np.zeros(1, dtype=np.int64)  # slot-milliseconds
        self._peak = np.zeros(1, dtype=np.int64)

    def take_in(self, at: NDArray[np.int64], gain: NDArray[np.int8], now: int) -> None:
        """Take in how many slots were taken (+) and freed (-) when, and that nothing else was.

        `at` (ms, any order) lies between the instant of the last time and `now`.
        """
        start = max(self.upto, (now // MINUTE - KEPT) * MINUTE)
        self._make_room(start // MINUTE, now // MINUTE)
        edges = np.arange(start // MINUTE * MINUTE + MINUTE, now, MINUTE, dtype=np.int64)
        times = np.concatenate([[start], np.maximum(at, start), edges])
        gains = np.concatenate([[self.in_use], gain, np.zeros(len(edges), dtype=np.int64)])
        order = np.argsort(times, kind="stable")
        value, since = np.cumsum(gains[order]), times[order]
        lasted = np.diff(since, append=now)
        row = since // MINUTE - self._first
        np.add.at(self.used, row, value * lasted)
        np.maximum.at(self._peak, row[lasted > 0], value[lasted > 0])
        self.in_use, self.upto = int(value[-1]), now

    def columns(self, minutes: int, count: int) -> SlotColumns:
        """The last `count` columns of so many minutes each; the last one is of now."""
        last = self.upto // MINUTE // minutes
        first = (last - count + 1) * minutes
        at = (first + np.arange(count, dtype=np.int64) * minutes) * MINUTE
        lasted = np.minimum(self.upto - at, minutes * MINUTE)
        used = self._stretch(self.used, first, minutes * count).reshape(count, minutes)
        peak = self._stretch(self._peak, first, minutes * count).reshape(count, minutes).max(axis=1)
        peak[-1] = max(peak[-1], self.in_use)
        mean = used.sum(axis=1) / np.maximum(lasted, 1)
        if not lasted[-1]:
            mean[-1] = self.in_use
        return SlotColumns(at, peak, mean)

    def _stretch(self, kept: NDArray[np.int64], first: int, count: int) -> NDArray[np.int64]:
        """Return the rows of `count` minutes from a minute on; 0 for minutes not kept."""
        stretch = np.zeros(count, dtype=np.int64)
        rows = np.arange(first, first + count) - self._first
        known = (rows >= 0) & (rows < len(kept))
        stretch[known] = kept[rows[known]]
        return stretch

    def _make_room(self, start: int, last: int) -> None:
        """Add rows for every minute up to `last`, and drop old minutes."""
        if start - self._first > 2 * KEPT:
            keep_from = start - KEPT
            self.used = self._stretch(self.used, keep_from, KEPT)
            self._peak = self._stretch(self._peak, keep_from, KEPT)
            self._first = keep_from
        missing = last - self._first + 1 - len(self.used)
        if missing > 0:
            spare = np.zeros(missing + len(self.used) // 2, dtype=np.int64)
            self.used = np.concatenate([self.used, spare])
            self._peak = np.concatenate([self._peak, spare])


WIDTH, HEIGHT = 600, 100


@dataclass(frozen=True, slots=True)
class SlotChart:
    """The parts of the picture: `d` attributes in a box of WIDTH × HEIGHT.

    `top` is the number of slots at the upper edge, `begins`, `middle` and `ends` are instants (ms)
    of the time axis, `peak` and `mean` what the whole time shown comes to.
    """

    peak_path: str
    mean_path: str
    limit_path: str
    top: int
    begins: int
    middle: int
    ends: int
    peak: int
    mean: float

    @classmethod
    def of(cls, use: LiveSlotUse, limit: StepFunction, span: ChartSpan) -> SlotChart:
        """Draw the last stretch of virtual time."""
        columns = use.columns(span.minutes, span.columns)
        width = span.minutes * MINUTE
        allowed = limit(np.maximum(columns.at + width - 1, limit.at[0]))
        top = max(int(columns.peak.max()), int(allowed.max()), 1)
        return cls(
            peak_path=_steps(columns.peak, top, closed=True),
            mean_path=_steps(columns.mean, top, closed=True),
            limit_path=_steps(allowed, top, closed=False),
            top=top,
            begins=int(columns.at[0]),
            middle=int(columns.at[0]) + span.columns * width // 2,
            ends=int(columns.at[-1]) + width,
            peak=int(columns.peak.max()),
            mean=float(columns.mean.mean()),
        )


def _steps(values: NDArray[np.int64] | NDArray[np.float64], top: int, *, closed: bool) -> str:
    """A line that goes along each column at its height; `closed` has it stand on the ground."""
    step = WIDTH / len(values)
    heights = np.round(HEIGHT * (1 - values / top), 1)
    turns = np.flatnonzero(np.diff(heights)) + 1
    path = [f"M0 {HEIGHT}V{heights[0]:g}" if closed else f"M0 {heights[0]:g}"]
    path += [f"H{turn * step:g}V{heights[turn]:g}" for turn in turns.tolist()]
    path.append(f"H{WIDTH}V{HEIGHT}Z" if closed else f"H{WIDTH}")
    return "".join(path)


OWN = f"{PREFIX}/page"
"""Path prefix of all requests of the page."""


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
"""Choices of the forms, each a separate section."""

_MOST_LISTED = 500  # of those to choose from; the newest, of organizations
_MOST_SCRIPTS = 100
_HEARTBEAT = 15  # seconds between keep-alive messages of a silent stream
_SHARE = 4  # a tab waits this many times as long as its rendering took, so that others have a turn
_LONGEST = 2  # seconds
_MOST_SEARCHES = 16  # of tabs that are open at a time
_UNTOLD = 2  # seconds between renderings for changes without a row of the trace

_ACTIONS = {
    CampaignStatus.DRAFT: ("Cancel",),
    CampaignStatus.SCHEDULED: ("Pause", "Cancel"),
    CampaignStatus.RUNNING: ("Pause", "Cancel"),
    CampaignStatus.PAUSED: ("Resume", "Cancel"),
}
"""Commands allowed for each status of a campaign (C4 to C6)."""

_POSTS = {
    "timeout": "webhooks are lost on the way",
    "refuse": "the webhook's connection is refused",
    "late": "webhooks are received and answered too late",
    "twice": "webhooks are received twice",
    "stale": "webhooks are followed by the result before",
}


class Sections:
    """Renderer of the page's sections, for the views of one sandbox."""

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
        if self._epoch != self._core.epoch:  # another run: the counts belong to the old run
            self._board, self._epoch = Board(self._core), self._core.epoch
        self._board.catch_up()
        core = self._core
        return {
            "clock": render("clock", clock=ClockState.of(core)),
            "news": self._news(),
            "organizations": self._organizations(view),
            "snapshots": render(
                "snapshots",
                snapshots=[SnapshotState.of(*one) for one in core.snapshots.items()],
            ),
            "campaigns": self._campaigns(view),
            "calls": render("calls", calls=latest_calls(core, view), view=view),
            "webhooks": render("webhooks", webhooks=latest_webhooks(core, view), view=view),
            "requests": render("requests", requests=core.requests.newest(MOST_REQUESTS)),
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
        """Return the people that match a search, and keep them for tabs that list them."""
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
            tuple(core.snapshots),
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
                    "results": core.where_results_go(account),
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
        """Return the choices of the forms, with the most recent organizations first."""
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
    """Return a description of a fault and its target."""
    order = fault.order
    what = _what(order)
    if order.lasts is not None and order.every is not None:
        turn = f"{format_duration(order.lasts)} every {format_duration(order.every)}"
        what += f", {turn} from {_short_text(fault.begins)} on"
    elif order.at is not None:
        what += f", from {_short_text(order.at)} on"
    if fault.is_standing:
        what += ", by the scenario"
    if fault.organization is None:
        return what
    account = core.accounts[fault.organization]
    if fault.campaign is None:
        return f"{what}, {account.block.name} alone"
    block = account.views[fault.campaign].campaign.block
    return f"{what}, {block.name} ({account.block.name}) alone"


def _what(order: StandingFault) -> str:
    late = _delay_text(order)
    if order.webhooks is not None:
        what = _POSTS.get(order.webhooks, f"webhooks leave {late} later")
    else:
        done = {
            "error": f"are {order.error_status}",
            "limit": f"are 429 beyond {order.requests_per_second or 0:,g} requests per second "
            f"({order.burst or 1:,} at once)",
            "drop": "are dropped connections",
            "slow": f"come {late} late",
            "slowBody": f"take {late} for their body",
        }[order.api or "error"]
        answers = "API answers" + (f" of {order.path}…" if order.path else "")
        what = f"{answers} {done}" + (", after being carried out" if order.executed else "")
    return what if order.share == 1 else f"{what}, with a chance of {order.share:.0%}"


def _delay_text(order: StandingFault) -> str:
    """`5m`, or `a lognormal time (mean 5m, sd 2m)`."""
    if order.delay is None or isinstance(order.delay, Constant):
        return "" if order.delay is None else format_duration(order.delay.value)
    shown = order.delay.model_dump(mode="json", exclude_none=True, exclude={"dist", "values"})
    settings = ", ".join(f"{name} {value}" for name, value in shown.items())
    return f"a {order.delay.dist} time" + (f" ({settings})" if settings else "")
