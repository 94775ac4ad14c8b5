"""Call lines: calls as the page lists them, one line each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from dialsim.interface.status import CallStatus
from dialsim.sandbox.campaign_desk import CampaignDesk
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.page.view import Place, View

MOST = 50
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
    def of(cls, desk: CampaignDesk, call: int, at: int) -> CallLine:
        """A call as it stands at the instant `at` (ms)."""
        entry, block = desk.entry(call), desk.campaign.block
        return cls(
            place=Place(block.organization, block.position, call),
            person=Place(block.organization, block.position, entry.recipient),
            campaign=block.name,
            changed_at=entry.changed_at,
            attempt=entry.attempt,
            shown=orjson.loads(desk.call(call, at)),
        )

    @property
    def version(self) -> str:
        """Another text whenever something about the call is another one."""
        return f"{self.changed_at}-{self.shown['updatedAt']}"


def latest_calls(exchange: Exchange, view: View) -> list[CallLine]:
    """The calls that changed last, newest first, of the campaign and status that are chosen."""
    chosen = Place.read(view.campaign, 2)
    status = CallStatus(view.status) if view.status else None
    found = []
    for account in exchange.accounts:
        for desk in account.desks:
            block = desk.campaign.block
            if chosen is None or chosen[:2] == (block.organization, block.position):
                desk.catch_up()
                latest = desk.latest_calls(MOST, status)
                found += [(changed_at, desk, call) for changed_at, call in latest]
    found.sort(key=lambda line: -line[0])
    now = exchange.simulation.at
    return [CallLine.of(desk, call, now) for _, desk, call in found[:MOST]]


def desk_at(exchange: Exchange, place: Place) -> CampaignDesk | None:
    """The desk of a campaign by its place; None if there is none."""
    if place.organization < len(exchange.accounts):
        desks = exchange.accounts[place.organization].desks
        if place.campaign < len(desks):
            return desks[place.campaign]
    return None
