"""A view: the selection of one tab of the page, held in its address, and its lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import groupby, islice
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

import numpy as np

from dialsim.engine.log_reader import ENDS, NOT_HAPPENED
from dialsim.interface.instants import date_text
from dialsim.interface.model import is_uuid
from dialsim.interface.payload import NOT_SENT, UNDER_WAY, WORDS, PostKey
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
from dialsim.sandbox.failures import NO_WEBHOOK
from dialsim.sandbox.tables import Row, fate_of
from dialsim.webhooks.deliveries import has_url
from dialsim.webhooks.messages import sequence

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
        """The query of this view's address, with some choices changed; empty for the usual one."""
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

_PARTS = 6  # parts of a webhook's position: the five of its key, and its number
_ENDS_BACK = (
    4 * MOST_WEBHOOKS
)  # calls that ended last: their results leave in nearly the same order
# The POSTs of a campaign are looked for among so many: a page must not read a log of millions.
_MOST_LOOKED_AT = 5_000


def webhook_line(
    core: SandboxCore, key: PostKey, at: int, number: int, resent: bool, response: int
) -> dict[str, Any]:
    """Return a listed POST of a result that left at an instant (ms), or a kept result.

    `number` is the POST's of its result, from 1, and 0 for a kept result. `response` is an HTTP
    status or a code of `interface.payload`. `position` is the position for `find_webhook`.
    """
    campaign_view = core.accounts[key.organization].views[key.campaign]
    campaign_view.catch_up()
    call = campaign_view.calls.of(key.recipient)[key.call - 1]
    words = {NOT_SENT: "kept", UNDER_WAY: "under way"} | WORDS
    return {
        "position": (*key, number),
        "call": call_line(campaign_view, call, core.at),
        "at": at,
        "number": number,
        "result": key.result,
        "resent": resent,
        "response": response,
        "outcome": words.get(response) or str(response),
        "fate": fate_of(response),
    }


def find_webhook(core: SandboxCore, text: str) -> Row:
    """Return the control plane's record of a webhook, given a position such as `0.2.17.1.0.1`.

    Reads the whole list. Raises Refused with 404 for an unknown position.
    """
    numbers = [int(part) for part in text.split(".") if is_number(part)]
    if len(numbers) == _PARTS and view_at(core, PagePosition(*numbers[:2])) is not None:
        organization, campaign, recipient, call, result, number = numbers
        table = core.webhooks
        rows = table.find(campaign=(organization, campaign), call=(recipient, call))
        for row in table.rows(rows):
            if (row["result"], row["attempt"] or 0) == (result, number):
                return row
    raise NO_WEBHOOK.refused()


def latest_webhooks(core: SandboxCore, view: View) -> list[dict[str, Any]]:
    """Return the latest webhooks of the selected campaign, newest first."""
    found = [*islice(_sent(core, view), MOST_WEBHOOKS), *_kept(core, view)]
    found.sort(key=lambda line: (-line[1], -line[2]))
    return [webhook_line(core, *line) for line in found[:MOST_WEBHOOKS]]


_Found = tuple[PostKey, int, int, bool, int]


def _sent(core: SandboxCore, view: View) -> Iterator[_Found]:
    """POSTs, newest first."""
    log, chosen = core.outbox.log, PagePosition.read(view.campaign, 2)
    for row in range(len(log) - 1, max(len(log) - _MOST_LOOKED_AT, 0) - 1, -1):
        key, number, at, _, resent, response = log.row(row)
        if chosen is None or chosen[:2] == key[:2]:
            yield key, at, number, resent, response


def _kept(core: SandboxCore, view: View) -> Iterator[_Found]:
    """First results that had no URL to go to (W6), of the calls that ended last."""
    trace, now, chosen = core.simulation.log, core.at, PagePosition.read(view.campaign, 2)
    # Results without a URL are in no log of POSTs, so they are made anew from the calls that ended.
    without = {change.organization for change in trace.urls if change.url is None}
    campaign_views = (
        campaign_view for position in without for campaign_view in core.accounts[position].views
    )
    for campaign_view in campaign_views:
        if chosen is not None and chosen[:2] != campaign_view.position:
            continue
        campaign_view.catch_up()
        calls = campaign_view.calls
        ended = calls.ended(max(calls.ends - _ENDS_BACK, 0))
        messages = campaign_view.analyses.firsts(ended)
        sent = sequence(trace, messages.sent_at, messages.turn)
        kept = (messages.ready_at != NOT_HAPPENED) & (messages.sent_at <= now)
        kept &= ~has_url(trace, campaign_view.position.organization, sent)
        for row in np.flatnonzero(kept).tolist():
            entry = calls[int(messages.call[row])]
            key = PostKey(*campaign_view.position, entry.recipient, entry.call, 0)
            yield key, int(messages.sent_at[row]), 0, False, NOT_SENT


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
