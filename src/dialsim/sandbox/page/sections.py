"""The live parts of the page, their counts, and the stream that keeps a tab up to date.

A page takes hardly longer after weeks than after a day: progress is counted from the last change of
each call, and the chart of lines reads the last day.
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

from dialsim.engine.log_reader import CALL_STATUSES, SLOTS, TO_STATUS
from dialsim.interface import CallStatus, CampaignStatus
from dialsim.interface.instants import (
    MINUTE,
    date_text,
    duration_text,
    format_instant,
    parse_instant,
    thai,
    time_text,
)
from dialsim.language import templates
from dialsim.results.time_use import StepFunction, limit
from dialsim.sandbox.access import PREFIX
from dialsim.sandbox.campaign_view import Account, CampaignView
from dialsim.sandbox.control.clock import ClockState
from dialsim.sandbox.control.run import SnapshotState
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.page.view import (
    MOST_FOUND,
    MOST_REQUESTS,
    PagePosition,
    View,
    find_people,
    latest_calls,
    latest_webhooks,
    person,
    recipient_line,
)
from dialsim.scenario.service import StandingFault

if TYPE_CHECKING:
    from jinja2 import Environment


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

    @classmethod
    def of(cls, view: CampaignView) -> CampaignProgress:
        """Return the progress of a campaign."""
        view.catch_up()
        statuses = TO_STATUS.take(view.calls.last_kind)
        calls = dict(
            zip(
                CALL_STATUSES,
                np.bincount(statuses, minlength=len(CALL_STATUSES)).tolist(),
                strict=True,
            )
        )
        people, campaign = view.total_recipients, view.campaign
        done = campaign.people_done - (campaign.block.people.count - people)
        reached, under_way = calls[CallStatus.COMPLETED], calls[CallStatus.INITIATED]
        # People reached before the start are done only once the campaign is scheduled (R3).
        if campaign.block.people.history and (len(view.calls) or campaign.people_done):
            reached += int(view.calls.past_reached[view.newest_first(0, people)].sum())
        return cls(
            people=people,
            queued=calls[CallStatus.QUEUED],
            reached=reached,
            unreached=done - reached,
            under_way=under_way,
            waiting=people - done - under_way,
        )


WIDTH, HEIGHT = 600, 100
COLUMN = 10 * MINUTE
"""Virtual time (ms) of a column of the chart."""
COLUMNS = 144


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines in use over the last 24 hours, as `d` attributes in a box of WIDTH × HEIGHT.

    `top` is the number of lines at the upper edge, `begins`, `middle` and `ends` are instants (ms)
    of the time axis, `peak` and `mean` the most lines at once and their average.
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
    def of(cls, in_use: StepFunction, limit: StepFunction, now: int) -> LineChart:
        """Draw lines in use, and their limit, up to an instant (ms)."""
        begins = (now // COLUMN - COLUMNS + 1) * COLUMN
        edges = begins + np.arange(COLUMNS + 1, dtype=np.int64) * COLUMN
        # The last column has just begun: its mean is taken up to now, and an empty span has none.
        means = in_use.means(np.minimum(edges, now + 1))
        # The value at the start of a column, and all values after it, lie between two starts.
        starts = edges[:-1]
        changed = in_use.at > begins
        at = np.concatenate([starts, in_use.at[changed]])
        order = np.argsort(at, kind="stable")
        values = np.concatenate([in_use(starts), in_use.value[changed]])[order]
        peaks = np.maximum.reduceat(values, np.searchsorted(at[order], starts))
        allowed = limit(np.maximum(edges[1:] - 1, limit.at[0]))
        top = max(int(peaks.max()), int(allowed.max()), 1)
        return cls(
            peak_path=_steps(peaks, top, closed=True),
            mean_path=_steps(means, top, closed=True),
            limit_path=_steps(allowed, top, closed=False),
            top=top,
            begins=begins,
            middle=begins + COLUMNS // 2 * COLUMN,
            ends=begins + COLUMNS * COLUMN,
            peak=int(peaks.max()),
            mean=float(means.mean()),
        )


def lines_in_use(core: SandboxCore, account: Account, since: int) -> StepFunction:
    """Return the lines in use of an organization from an instant (ms) on.

    Only rows after the instant are read: a page takes no longer after weeks than after a day.
    """
    logs = [view.campaign.log for view in account.views]
    rows = [log.rows(log.count_until(since)) for log in logs]
    none = [np.empty(0, dtype=np.int64)]
    at = np.concatenate(none + [one.at for one in rows])
    gain = np.concatenate(none + [SLOTS[one.kind] for one in rows])
    order = np.argsort(at, kind="stable")
    before = core.simulation.dialler(account.block.position).lines_in_use - gain.sum()
    return StepFunction.of_changes(
        np.insert(at[order], 0, since), np.insert(gain[order], 0, before).astype(np.int64)
    )


def _steps(values: NDArray[np.int64] | NDArray[np.float64], top: int, *, closed: bool) -> str:
    """Return the SVG path of a step line with a level per column; `closed` adds the base line."""
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
    """Render a template of this package."""
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
    """Format an instant without its year: `5 Jan 09:00`."""
    _, day, month, _ = date_text(instant).split()
    return f"{day} {month} {thai(instant):%H:%M}"


def _second_text(instant: int) -> str:
    """Format an instant, cut to seconds: `5 Jan 09:00:01`."""
    return f"{_short_text(instant)}:{thai(instant):%S}"


def _talk_text(seconds: str) -> str:
    """Format a `callDuration` of the interface."""
    return duration_text(round(float(seconds) * 1000))


def _dotted(position: tuple[int, ...]) -> str:
    return ".".join(map(str, position))


def _dashed(position: tuple[int, ...]) -> str:
    return "-".join(map(str, position))


INTERVAL = 0.25
"""Seconds between checks for changes."""
MOST_ORGANIZATIONS = 12
CAMPAIGNS_A_PAGE = 20

OPTION_LABELS = {
    "organization-options": "Organizations",
    "agent-options": "Agents",
    "campaign-options": "Campaigns",
}
"""Choices of the forms, each a separate section."""

_MOST_LISTED = 500  # choices in a list; of organizations, the newest are listed
_MOST_SCRIPTS = 100
_HEARTBEAT = 15  # seconds between keep-alive messages of a silent stream
_SHARE = 4  # a tab waits this many times as long as its rendering took, so that others have a turn
_LONGEST = 2  # seconds that a tab waits at most
_MOST_SEARCHES = 16  # tabs open at a time
_UNTOLD = 2  # seconds between renderings for changes without a row of the trace

_ACTIONS = {
    CampaignStatus.DRAFT: ("Cancel",),
    CampaignStatus.SCHEDULED: ("Pause", "Cancel"),
    CampaignStatus.RUNNING: ("Pause", "Cancel"),
    CampaignStatus.PAUSED: ("Resume", "Cancel"),
}
"""Commands allowed for each status of a campaign (C4 to C6)."""


class Sections:
    """Renderer of the page's sections, for the views of one sandbox."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core
        self._found: dict[str, list[PagePosition]] = {}

    async def events(self, view: View) -> AsyncIterator[bytes]:
        """The sections of a view as server-sent events: all of them, then each that changes.

        A slow tab gets fewer updates, and none are queued for it.
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
                # A section is compared as a whole: a tab gets only what differs, and a slow tab
                # gets less often.
                if sent.get(name) != html:
                    sent[name] = html
                    spoke = monotonic()
                    yield _event(name, html)
            if monotonic() - spoke > _HEARTBEAT:
                spoke = monotonic()
                yield b": alive\n\n"
            # A tab that is expensive to render waits longer, so that it takes a fifth of the time
            # at most.
            await asyncio.sleep(min(max(INTERVAL, _SHARE * took), _LONGEST))

    def render(self, view: View) -> dict[str, str]:
        """All sections of a view, by their names."""
        core = self._core
        return {
            "clock": render("clock", clock=ClockState.of(core)),
            "news": self._news(),
            "organizations": self._organizations(),
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
                    (fault, order_text(fault.order), fault.is_over(core.at))
                    for fault in core.faults
                ],
            ),
        }

    def where(self, view: CampaignView) -> str:
        """Return the address of the page on which the list shows a campaign."""
        every = [one for account in self._core.accounts for one in account.views]
        page = every.index(view) // CAMPAIGNS_A_PAGE + 1
        block = view.campaign.block
        return f"{View(campaigns=page).url()}#campaign-{block.organization}-{block.position}-title"

    def look_up(self, text: str) -> list[PagePosition]:
        """Return the people that match a search, and keep them for tabs that list them."""
        if len(self._found) >= _MOST_SEARCHES:
            del self._found[next(iter(self._found))]
        self._found[text] = find_people(self._core, text)
        return self._found[text]

    def _stamp(self) -> object:
        """Return a value that changes whenever the page may have changed."""
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
            position = changes[-1].organization, changes[-1].campaign
            name = self._core.simulation.campaign(*position).block.name
        return render("news", change=changes[-1] if changes else None, name=name)

    def _organizations(self) -> str:
        core, accounts = self._core, self._core.accounts
        since = (core.at // COLUMN - COLUMNS + 1) * COLUMN
        cards = [
            {
                "name": account.block.name,
                "dialler": core.simulation.dialler(account.block.position),
                "id": account.identifier,
                "url": core.webhook_url(account.block.position),
                "results": core.where_results_go(account),
                "chart": LineChart.of(
                    lines_in_use(core, account, since),
                    limit(core.simulation.log, account.block.position),
                    core.at,
                ),
            }
            for account in accounts[:MOST_ORGANIZATIONS]
        ]
        more = max(len(accounts) - MOST_ORGANIZATIONS, 0)
        return render("organizations", cards=cards, more=more)

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
                "progress": CampaignProgress.of(one),
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
                f"{account.block.position}.{index}",
                f"{one.campaign.block.name} ({account.block.name})",
            )
            for account in self._core.accounts
            for index, one in enumerate(account.views)
        )
        return {
            "organization-options": render("options", options=organizations, chosen=None),
            "agent-options": render("options", options=agents[:_MOST_LISTED], chosen=None),
            "campaign-options": render(
                "options", options=islice(campaigns, _MOST_LISTED), chosen=view.campaign
            ),
        }

    def _person(self, view: View) -> str:
        position, found = PagePosition.read(view.person, 3), list[PagePosition]()
        if position is None and view.find:
            found = self._found.get(view.find) or self.look_up(view.find)
        return render(
            "person",
            person=None if position is None else person(self._core, position),
            found=[recipient_line(self._core, one) for one in found],
            most_found=MOST_FOUND,
            view=view,
        )


def _event(name: str, html: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in html.splitlines())
    return f"event: {name}\n{lines}\n".encode()


def order_text(order: StandingFault) -> str:
    """Return the properties of a fault as they were given: `api: error, status: 503, next: 2`."""
    given = order.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
    return _pairs(given)


def _pairs(given: dict[str, object]) -> str:
    shown = {
        name: f"({_pairs(value)})" if isinstance(value, dict) else value
        for name, value in given.items()
    }
    return ", ".join(f"{name}: {value}" for name, value in shown.items())
