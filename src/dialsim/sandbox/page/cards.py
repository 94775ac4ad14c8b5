"""Cards: organizations and campaigns as the page shows them."""

from __future__ import annotations

from dataclasses import dataclass

from dialsim.interface.status import CampaignStatus
from dialsim.results.occupancy import limit
from dialsim.sandbox.account import Account
from dialsim.sandbox.campaign_desk import CampaignDesk
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.page.board import Board
from dialsim.sandbox.page.progress import Progress
from dialsim.sandbox.page.slot_chart import SlotChart
from dialsim.sandbox.page.view import Span

_ACTIONS = {
    CampaignStatus.DRAFT: ("Cancel",),
    CampaignStatus.SCHEDULED: ("Pause", "Cancel"),
    CampaignStatus.RUNNING: ("Pause", "Cancel"),
    CampaignStatus.PAUSED: ("Resume", "Cancel"),
}
"""What may be done to a campaign (C4 to C6)."""


@dataclass(frozen=True, slots=True)
class OrganizationCard:
    """An organization and its slots."""

    name: str
    in_use: int
    limit: int
    queued: int
    calling_allowed: bool
    chart: SlotChart

    @classmethod
    def of(cls, exchange: Exchange, board: Board, account: Account, span: Span) -> OrganizationCard:
        """An organization as it stands now."""
        position, simulation = account.block.position, exchange.simulation
        dialler, use = simulation.dialler(position), board.slot_use(position)
        return cls(
            name=account.block.name,
            in_use=use.in_use,
            limit=dialler.limit,
            queued=sum(board.progress(desk).queued for desk in account.desks),
            calling_allowed=dialler.calling_allowed,
            chart=SlotChart.of(use, limit(simulation.log, position), span),
        )


@dataclass(frozen=True, slots=True)
class CampaignCard:
    """A campaign, what it has come to, and what may be done to it."""

    id: str
    key: str
    name: str
    organization: str
    agent: str
    status: CampaignStatus
    deleted: bool
    progress: Progress
    actions: tuple[str, ...]

    @classmethod
    def of(cls, board: Board, account: Account, desk: CampaignDesk) -> CampaignCard:
        """A campaign as it stands now."""
        campaign, block = desk.campaign, desk.campaign.block
        return cls(
            id=desk.identifier,
            key=f"{block.organization}-{block.position}",
            name=block.name,
            organization=account.block.name,
            agent=block.agent.name,
            status=campaign.status,
            deleted=campaign.deleted,
            progress=board.progress(desk),
            actions=() if campaign.deleted else _ACTIONS.get(campaign.status, ()),
        )

    @property
    def final(self) -> bool:
        """Whether nobody will be called any more."""
        return self.status.final
