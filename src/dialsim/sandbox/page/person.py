"""A person: everything that happened to one recipient, and how to find one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import numpy as np

from dialsim.engine.trace import DIALLED
from dialsim.interface.model import is_uuid
from dialsim.results.story import Event, PersonChange, call_events, campaign_events, in_order
from dialsim.results.thai_time import date_text
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.page.rows import CallLine
from dialsim.sandbox.page.view import Place

MOST_FOUND = 20


@dataclass(frozen=True, slots=True)
class Who:
    """A recipient as the interface shows them (section 2.4), and where they are listed."""

    place: Place
    organization: str
    campaign: str
    shown: dict[str, Any]

    @classmethod
    def of(cls, core: SandboxCore, campaign_view: CampaignView, recipient: int) -> Who:
        """A recipient as things stand now."""
        campaign_view.catch_up()
        block, at = campaign_view.campaign.block, core.simulation.at
        return cls(
            place=Place(block.organization, block.position, recipient),
            organization=core.accounts[block.organization].block.name,
            campaign=block.name,
            shown=campaign_view.recipient(recipient, at),
        )


@dataclass(frozen=True, slots=True)
class Person:
    """A recipient, their calls, the newest first, and what happened, by Thai dates."""

    who: Who
    calls: list[CallLine]
    days: list[tuple[str, list[Event]]]


class PersonLog:
    """One recipient's rows of a campaign's log, kept up with it."""

    def __init__(self, core: SandboxCore, campaign_view: CampaignView, recipient: int) -> None:
        self._core = core
        self._view = campaign_view
        self._recipient = recipient
        self._rows_read = 0
        self._dials_read = 0
        self._changes: list[PersonChange] = []

    def person(self) -> Person:
        """The recipient as things stand now."""
        self._catch_up()
        campaign_view, at = self._view, self._core.simulation.at
        who, calls = (
            Who.of(self._core, campaign_view, self._recipient),
            campaign_view.calls_of(self._recipient),
        )
        return Person(
            who=who,
            calls=[CallLine.of(campaign_view, call, at) for call in reversed(calls)],
            days=[
                (day, [*events])
                for day, events in groupby(self._events(calls, at), lambda e: date_text(e.at))
            ],
        )

    def _events(self, calls: list[int], at: int) -> list[Event]:
        block, log = self._view.campaign.block, self._core.simulation.log
        past = block.people.history.get(self._recipient)
        changes = list(self._changes)
        for call in calls:
            number = self._view.entry(call).number
            mishaps = self._view.mishaps(call, at)
            changes += [PersonChange(since, number, kind) for since, kind in mishaps]
        changes.sort(key=lambda change: change.at)
        return in_order(
            [
                *call_events(log.world, changes, past.call_attempt if past else 0),
                *campaign_events(log, (block.organization, block.position)),
            ]
        )

    def _catch_up(self) -> None:
        log = self._view.campaign.log
        if len(log) == self._rows_read:
            return
        rows = log.rows(self._rows_read)
        self._rows_read = len(log)
        dials = np.cumsum(rows.kind == DIALLED) + self._dials_read - 1
        for row in np.flatnonzero(rows.recipient == self._recipient).tolist():
            at, call, kind = int(rows.at[row]), int(rows.call[row]), int(rows.kind[row])
            number = voice = -1
            if kind == DIALLED:
                number, voice = log.dial_numbers[dials[row]], log.dial_voices[dials[row]]
            self._changes.append(PersonChange(at, call, kind, number, voice))
        self._dials_read += int(np.count_nonzero(rows.kind == DIALLED))


def find_people(core: SandboxCore, text: str) -> list[Place]:
    """The recipients with a phone number or an id, or the one whom the call of an id is to.

    Looks at every recipient, and gives at most MOST_FOUND. A number whose owner's personal data has
    been removed finds nobody (D1).
    """
    if is_uuid(text):
        return _by_id(core, text)
    wanted = "".join(text.split()).replace("-", "")
    campaign_views = [campaign_view for account in core.accounts for campaign_view in account.views]
    found = (
        Who.of(core, campaign_view, recipient)
        for campaign_view in campaign_views
        for recipient, tel in enumerate(campaign_view.campaign.block.people.tels())
        if tel == wanted and campaign_view.is_listed(recipient)
    )
    visible = (who.place for who in found if not who.shown["personalDataMasked"])
    return [*islice(visible, MOST_FOUND)]


def _by_id(core: SandboxCore, identifier: str) -> list[Place]:
    for account in core.accounts:
        if (hit := account.recipient(identifier)) is not None:
            campaign_view, who = hit
        elif (hit := account.call(identifier)) is not None:
            campaign_view, who = hit[0], hit[0].entry(hit[1]).recipient
        else:
            continue
        return [
            Place(
                campaign_view.campaign.block.organization,
                campaign_view.campaign.block.position,
                who,
            )
        ]
    return []
