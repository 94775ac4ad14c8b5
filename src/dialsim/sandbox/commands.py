"""Commands: everything that clients and operators do to a sandbox, as data.

A command names what it acts on by position and carries what the request carried, so that it can be
written down and carried out again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dialsim.interface.schedule import read_schedule
from dialsim.sandbox.organization_changes import OrganizationChanges
from dialsim.sandbox.shapes import read_shape

if TYPE_CHECKING:
    from dialsim.engine.campaign import Campaign
    from dialsim.sandbox.exchange import Exchange


class _Command(BaseModel, ABC):
    """Something done at one instant."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def carry_out(self, exchange: Exchange) -> None:
        """Do it; raises `Refused` where a rule forbids it, and then changes nothing."""


class _CampaignCommand(_Command):
    """Something done to a campaign, by the positions of its organization and its own."""

    organization: int
    campaign: int

    def on(self, exchange: Exchange) -> Campaign:
        """The campaign."""
        return exchange.simulation.campaign(self.organization, self.campaign)


class ScheduleCampaign(_CampaignCommand):
    """Start a campaign with the body of a schedule request (C1, C9)."""

    kind: Literal["schedule"] = "schedule"
    body: dict[str, JsonValue]

    def carry_out(self, exchange: Exchange) -> None:
        """Do it."""
        self.on(exchange).schedule(read_schedule(self.body))


class PauseCampaign(_CampaignCommand):
    """Pause a campaign (C4)."""

    kind: Literal["pause"] = "pause"

    def carry_out(self, exchange: Exchange) -> None:
        """Do it."""
        self.on(exchange).pause()


class ResumeCampaign(_CampaignCommand):
    """Resume a campaign (C5)."""

    kind: Literal["resume"] = "resume"

    def carry_out(self, exchange: Exchange) -> None:
        """Do it."""
        self.on(exchange).resume()


class CancelCampaign(_CampaignCommand):
    """Cancel a campaign (C6)."""

    kind: Literal["cancel"] = "cancel"

    def carry_out(self, exchange: Exchange) -> None:
        """Do it."""
        self.on(exchange).cancel()


class DeleteCampaign(_CampaignCommand):
    """Delete a campaign (C8)."""

    kind: Literal["delete"] = "delete"

    def carry_out(self, exchange: Exchange) -> None:
        """Do it."""
        self.on(exchange).delete()


class ChangeOrganization(_Command):
    """Change settings of an organization, by position, all or none of them (see the shape)."""

    kind: Literal["changeOrganization"] = "changeOrganization"
    organization: int
    changes: dict[str, JsonValue]

    def carry_out(self, exchange: Exchange) -> None:
        """Do it."""
        changes = read_shape(OrganizationChanges, self.changes)
        changes.make(exchange.simulation.dialler(self.organization))
        if changes.regenerate_api_key:
            exchange.regenerate_key(self.organization)


Command = Annotated[
    ScheduleCampaign
    | PauseCampaign
    | ResumeCampaign
    | CancelCampaign
    | DeleteCampaign
    | ChangeOrganization,
    Field(discriminator="kind"),
]
"""Any command; pydantic reads it back from what `model_dump` wrote."""
