"""A view: the selection of one tab of the page, held in its address, and its lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import groupby, islice
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

import numpy as np

from dialsim.engine.log_reader import ENDS
from dialsim.interface.instants import date_text
from dialsim.interface.model import is_uuid
from dialsim.results.story import (
    PersonChange,
    StoryEvent,
    call_events,
    campaign_events,
    in_order,
    person_changes,
)
from dialsim.sandbox.access import PREFIX
from dialsim.sandbox.answers import is_number
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.tables import Row

PATH = f"{PREFIX}/"


class PagePosition(NamedTuple):
    """A campaign by positions from 0, and one of its recipients or calls."""

    organization: int
    campaign: int
    number: int = 0

    @classmethod
    def read(cls, text: str, parts: int) -> PagePosition | None:
        """Parse `0.2` or `0.2.17` with the required number of parts; None for any other text."""
        numbers = text.split(".")
        if len(numbers) != parts or not all(is_number(number) for number in numbers):
            return None
        return cls(*map(int, numbers))


@dataclass(frozen=True, slots=True)
class View:
    """Selection of a tab; an empty text selects nothing.

    `campaigns` is the page of the list, from 1; `campaign` (a position of two parts) selects the
    listed calls and webhooks; `person` is a position of three parts, `find` the search text.
    """

    campaigns: int = 1
    campaign: str = ""
    person: str = ""
    find: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """Return the view of an address; invalid parts are ignored."""
        page = query.get("campaigns", "")
        campaign, person = query.get("campaign", ""), query.get("person", "")
        return cls(
            campaigns=int(page) if is_number(page) and int(page) else 1,
            campaign=campaign if PagePosition.read(campaign, 2) else "",
            person=person if PagePosition.read(person, 3) else "",
            find=query.get("find", "").strip()[:100],
        )

    def query(self, **changes: object) -> str:
        """The query of this view's address with some choices changed; empty for the default."""
        changed = replace(self, **changes)  # type: ignore[arg-type]
        usual = {field.name: field.default for field in fields(self)}
        chosen = {name: v for name, v in asdict(changed).items() if v != usual[name]}
        return f"?{urlencode(chosen)}" if chosen else ""

    def url(self, **changes: object) -> str:
        """The address of this view, with some choices changed."""
        return PATH + self.query(**changes)

    def others(self, *names: str) -> dict[str, str]:
        """Return the hidden fields of a form that changes `names`."""
        usual = {field.name: field.default for field in fields(self)}
        carried = {name: v for name, v in asdict(self).items() if name not in names}
        return {name: str(v) for name, v in carried.items() if v != usual[name]}


MOST_CALLS = 50
"""Number of latest calls listed."""


def call_line(campaign_view: CampaignView, call: int, at: int) -> dict[str, Any]:
    """Return a listed call as it stands at an instant (ms).

    `shown` is the call in the interface (section 2.5). `attempt` is 0 until the call has ended as
    an attempt (P5). `version` changes whenever the call changes.
    """
    entry, shown = campaign_view.calls[call], campaign_view.call(call, at)
    return {
        "position": PagePosition(*campaign_view.position, call),
        "person": PagePosition(*campaign_view.position, entry.recipient),
        "campaign": campaign_view.campaign.block.name,
        "changed_at": entry.changed_at,
        "attempt": entry.attempt if ENDS[entry.last_kind] else 0,
        "version": f"{entry.changed_at}-{shown['updatedAt']}",
        "shown": shown,
    }


def latest_calls(core: SandboxCore, view: View) -> list[dict[str, Any]]:
    """The calls that changed last, newest first, of the campaign that is chosen."""
    chosen = PagePosition.read(view.campaign, 2)
    found = []
    for account in core.accounts:
        for campaign_view in account.views:
            if chosen is None or chosen[:2] == campaign_view.position:
                campaign_view.catch_up()
                latest = campaign_view.latest_calls(MOST_CALLS)
                found += [(changed_at, campaign_view, call) for changed_at, call in latest]
    found.sort(key=lambda line: -line[0])
    now = core.simulation.at
    return [call_line(campaign_view, call, now) for _, campaign_view, call in found[:MOST_CALLS]]


def view_at(core: SandboxCore, position: PagePosition) -> CampaignView | None:
    """The campaign_view of a campaign by its position; None if there is none."""
    if position.organization < len(core.accounts):
        campaign_views = core.accounts[position.organization].views
        if position.campaign < len(campaign_views):
            return campaign_views[position.campaign]
    return None


MOST_WEBHOOKS = 50
"""Number of latest webhooks listed."""


def latest_webhooks(core: SandboxCore, view: View) -> list[dict[str, Any]]:
    """Return the latest webhooks of the selected campaign, newest first.

    Each is a row of the control plane, with its call and the outcome in words.
    """
    chosen = PagePosition.read(view.campaign, 2)
    if chosen is not None and view_at(core, chosen) is None:
        return []
    table = core.webhooks
    found = table.find(campaign=None if chosen is None else chosen[:2])[: -MOST_WEBHOOKS - 1 : -1]
    return [row | _shown_with(core, row) for row in table.rows(found)]


def _shown_with(core: SandboxCore, row: Row) -> dict[str, Any]:
    key = core.webhooks.key(row["n"])
    campaign_view = core.accounts[key.organization].views[key.campaign]
    campaign_view.catch_up()
    call = campaign_view.calls.of(key.recipient)[key.call - 1]
    without = {"kept": "kept", "underWay": "under way"}
    return {
        "call": call_line(campaign_view, call, core.at),
        "outcome": row["response"] or without[row["status"]],
    }


def find_webhook(core: SandboxCore, n: int) -> Row:
    """Return the control plane's row of a webhook, by its number; 404 if there is none."""
    core.webhooks.key(n)
    return core.webhooks.rows(np.array([n - 1]))[0]


MOST_REQUESTS = 50
"""Number of latest requests listed."""


MOST_FOUND = 20


def recipient_line(core: SandboxCore, position: PagePosition) -> dict[str, Any] | None:
    """Return a recipient as things stand now; None for an unknown one.

    `shown` is the recipient in the interface (section 2.4).
    """
    campaign_view = view_at(core, position)
    if campaign_view is None or position.number >= campaign_view.campaign.block.people.count:
        return None
    campaign_view.catch_up()
    return {
        "position": position,
        "organization": core.accounts[position.organization].block.name,
        "campaign": campaign_view.campaign.block.name,
        "shown": campaign_view.recipient(position.number, core.at),
    }


def person(core: SandboxCore, position: PagePosition) -> dict[str, Any] | None:
    """Return a recipient with their calls, the newest first, and events by Thai dates."""
    found, campaign_view = recipient_line(core, position), view_at(core, position)
    if found is None or campaign_view is None:
        return None
    calls = campaign_view.calls.of(position.number)
    events = _events(core, campaign_view, position.number, calls)
    return found | {
        "calls": [call_line(campaign_view, call, core.at) for call in reversed(calls)],
        "days": [(day, [*own]) for day, own in groupby(events, lambda e: date_text(e.at))],
    }


def _events(
    core: SandboxCore, campaign_view: CampaignView, recipient: int, calls: list[int]
) -> list[StoryEvent]:
    block, log = campaign_view.campaign.block, core.simulation.log
    past = block.people.history.get(recipient)
    rows = campaign_view.campaign.log
    changes = person_changes(rows, rows.rows(0), recipient)
    for call in calls:
        number = campaign_view.calls[call].call
        by_analyses = campaign_view.analyses.changes_of(call, core.simulation.at)
        changes += [PersonChange(since, number, kind) for since, kind in by_analyses]
    changes.sort(key=lambda change: change.at)
    return in_order(
        [
            *call_events(log.world, changes, past.call_attempt if past else 0),
            *campaign_events(log, campaign_view.position),
        ]
    )


def find_people(core: SandboxCore, text: str) -> list[PagePosition]:
    """Return the recipients with a phone number or an id, or the recipient of a call id.

    Searches all recipients and returns at most MOST_FOUND. A number whose owner's personal data
    have been removed matches no recipient (D1).
    """
    if is_uuid(text):
        return _by_id(core, text)
    # Phone numbers are often written in groups of digits.
    wanted = "".join(text.split()).replace("-", "")
    found = (
        line
        for account in core.accounts
        for campaign_view in account.views
        for recipient in campaign_view.who_has(wanted).tolist()
        if campaign_view.is_listed(recipient)
        and (line := recipient_line(core, PagePosition(*campaign_view.position, recipient)))
    )
    # D1: a masked recipient is not found by the removed phone number.
    visible = (line["position"] for line in found if not line["shown"]["personalDataMasked"])
    return [*islice(visible, MOST_FOUND)]


def _by_id(core: SandboxCore, identifier: str) -> list[PagePosition]:
    for account in core.accounts:
        if (hit := account.recipient(identifier)) is not None:
            campaign_view, who = hit
        elif (hit := account.call(identifier)) is not None:
            campaign_view, who = hit[0], hit[0].calls[hit[1]].recipient
        else:
            continue
        return [PagePosition(*campaign_view.position, who)]
    return []
