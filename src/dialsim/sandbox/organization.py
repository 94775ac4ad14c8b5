"""An organization's account: its settings, and all that its API key can see and control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import ConfigDict, Field

from dialsim.engine.dialler import Dialler
from dialsim.engine.identity import agent_id, organization_id
from dialsim.engine.world import OrganizationBlock
from dialsim.interface.model import Combined, given
from dialsim.interface.payload import agent_json
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.live_engine import LiveEngine
from dialsim.scenario.fields import Limit, Switch, Url


class OrganizationChanges(Combined):
    """What is to be changed; what is left out stays, and null is no value but for the URL."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                given("maxConcurrentCalls"),
                given("callingAllowed"),
                given("regenerateApiKey"),
                {"required": ["webhookUrl"]},
            ]
        }
    )

    max_concurrent_calls: Limit | None = Field(
        default=None, description="A lower limit hangs up nobody.", examples=[20]
    )
    calling_allowed: Switch | None = Field(
        default=None, description="Whether campaigns may be started."
    )
    webhook_url: Url | None = Field(
        default=None,
        description="Where results are sent from the next one on; null: nowhere.",
        examples=["http://127.0.0.1:9000/hook"],
    )
    regenerate_api_key: Switch | None = Field(
        default=None, description="true makes a new key; the old one is wrong at once."
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """Something is to be changed; null is a value of the URL alone."""
        known = [field.alias or "" for field in cls.model_fields.values()]
        if "webhookUrl" not in given and all(given.get(name) is None for name in known):
            yield f"at least one of {', '.join(known)} must be given"

    def make(self, dialler: Dialler) -> None:
        """Make the changes that the engine knows of; none of them can fail."""
        if self.max_concurrent_calls is not None:
            dialler.set_limit(self.max_concurrent_calls)
        if self.calling_allowed is not None:
            dialler.set_calling_allowed(self.calling_allowed)
        if "webhook_url" in self.model_fields_set:
            dialler.set_webhook_url(self.webhook_url)


class Account:
    """One organization's agents, campaigns, recipients and calls, found by their ids."""

    def __init__(self, simulation: LiveEngine, block: OrganizationBlock) -> None:
        self.block = block
        seed = simulation.log.world.seed
        self.identifier = block.settings.id or organization_id(seed, block.position)
        self._views: list[CampaignView] = []
        self._simulation = simulation
        self._by_campaign_id: dict[str, CampaignView] = {}

    @property
    def views(self) -> list[CampaignView]:
        """The views of all campaigns there are by now, in the order of the scenario."""
        self._open_views()
        return self._views

    def _open_views(self) -> None:
        for position in range(len(self._views), len(self.block.campaigns)):
            campaign = self._simulation.campaign(self.block.position, position)
            view = CampaignView(self._simulation.log, campaign)
            self._views.append(view)
            self._by_campaign_id[view.identifier.lower()] = view

    @property
    def agents(self) -> list[dict[str, object]]:
        """The agents, newest first (interface, section 4.1)."""
        seed, organization = self._simulation.log.world.seed, self.block.position
        agents = [
            agent_json(
                agent.id or agent_id(seed, organization, position), agent.name, agent.params_schema
            )
            for position, agent in enumerate(self.block.settings.agents)
        ]
        return agents[::-1]  # F4: the last in the file first

    def campaign(self, identifier: str) -> CampaignView | None:
        """The campaign of an id; None if there is none, or it was deleted (C8)."""
        self._open_views()
        view = self._by_campaign_id.get(identifier.lower())
        return None if view is None or view.campaign.deleted else view

    def recipient(self, identifier: str) -> tuple[CampaignView, int] | None:
        """The campaign and number of a recipient; None for one not listed any more (C8, D3)."""
        found = self.uploaded(identifier)
        if found is None or found[0].campaign.deleted or not found[0].is_listed(found[1]):
            return None
        return found

    def uploaded(self, identifier: str) -> tuple[CampaignView, int] | None:
        """The campaign and number of whoever was uploaded at any time."""
        for view in self.views:
            if (recipient := view.recipient_position(identifier)) is not None:
                return view, recipient
        return None

    def call(self, identifier: str) -> tuple[CampaignView, int] | None:
        """The campaign and position of a call, of a deleted campaign too (C8)."""
        for view in self.views:
            if (call := view.call_position(identifier)) is not None:
                return view, call
        return None

    def catch_up(self) -> None:
        """Take in what has happened, so that nobody who asks for anything has to wait for it."""
        for view in self.views:
            view.catch_up()
