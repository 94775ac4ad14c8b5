"""An account: all that one organization's API key can see and control."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dialsim.engine.identity import agent_id, organization_id
from dialsim.engine.world import OrganizationBlock
from dialsim.interface.payload import agent_part
from dialsim.sandbox.campaign_desk import CampaignDesk
from dialsim.sandbox.id_index import IdIndex
from dialsim.sandbox.running import Running

_CAMPAIGN_SHIFT = 32  # a place is a campaign's position and a recipient or call of it


class Account:
    """One organization's agents, campaigns, recipients and calls, found by their ids."""

    def __init__(self, simulation: Running, block: OrganizationBlock) -> None:
        self.block = block
        seed = simulation.log.world.seed
        self.identifier = block.settings.id or organization_id(seed, block.position)
        self._desks: list[CampaignDesk] = []
        self._simulation = simulation
        self._by_campaign_id: dict[str, CampaignDesk] = {}
        self._recipients = IdIndex()
        self._recipients_listed = 0
        self._calls = IdIndex()
        self._calls_listed: list[int] = []

    @property
    def desks(self) -> list[CampaignDesk]:
        """The desks of all campaigns there are by now, in the order of the scenario."""
        self._open_desks()
        return self._desks

    def _open_desks(self) -> None:
        for position in range(len(self._desks), len(self.block.campaigns)):
            campaign = self._simulation.campaign(self.block.position, position)
            desk = CampaignDesk(self._simulation.log, campaign)
            self._desks.append(desk)
            self._calls_listed.append(0)
            self._by_campaign_id[desk.identifier.lower()] = desk

    @cached_property
    def agents(self) -> bytes:
        """The agents as a JSON array, newest first (interface, section 4.1)."""
        seed, organization = self._simulation.log.world.seed, self.block.position
        parts = [
            agent_part(
                agent.id or agent_id(seed, organization, position), agent.name, agent.params_schema
            )
            for position, agent in enumerate(self.block.settings.agents)
        ]
        return b"[%b]" % b",".join(reversed(parts))  # F4: the last in the file first

    def campaign(self, identifier: str) -> CampaignDesk | None:
        """The campaign of an id; None if there is none, or it was deleted (C8)."""
        self._open_desks()
        desk = self._by_campaign_id.get(identifier.lower())
        return None if desk is None or desk.campaign.deleted else desk

    def recipient(self, identifier: str) -> tuple[CampaignDesk, int] | None:
        """The campaign and number of a recipient; None for one not listed any more (C8, D3)."""
        found = self.uploaded(identifier)
        if found is None or found[0].campaign.deleted or not found[0].is_listed(found[1]):
            return None
        return found

    def uploaded(self, identifier: str) -> tuple[CampaignDesk, int] | None:
        """The campaign and number of whoever was uploaded at any time."""
        self._list_recipients()
        place = self._recipients.find(identifier)
        return None if place is None else self._at(place)

    def call(self, identifier: str) -> tuple[CampaignDesk, int] | None:
        """The campaign and position of a call, of a deleted campaign too (C8)."""
        place = self._calls.find(identifier)
        if place is None:
            self._list_calls()
            place = self._calls.find(identifier)
        return None if place is None else self._at(place)

    def _at(self, place: int) -> tuple[CampaignDesk, int]:
        campaign, number = divmod(place, 1 << _CAMPAIGN_SHIFT)
        return self._desks[campaign], number

    def _list_recipients(self) -> None:
        """Index the recipients of campaigns that have come since the last time."""
        for position in range(self._recipients_listed, len(self.desks)):
            desk = self._desks[position]
            everybody = np.arange(desk.campaign.block.people.count, dtype=np.int64)
            places = everybody | position << _CAMPAIGN_SHIFT
            self._recipients.add(desk.recipient_ids(everybody), places)
        self._recipients_listed = len(self.desks)

    def _list_calls(self) -> None:
        """Index the calls that have been created since the last time."""
        for position, desk in enumerate(self.desks):
            desk.catch_up()
            new = np.arange(self._calls_listed[position], desk.calls, dtype=np.int64)
            self._calls.add(desk.call_ids(new), new | position << _CAMPAIGN_SHIFT)
            self._calls_listed[position] = desk.calls
