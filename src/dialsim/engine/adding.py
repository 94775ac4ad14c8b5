"""Adding a campaign to an organization while it runs (C11)."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from dialsim.engine.timeline import lay_out_request
from dialsim.interface.errors import DialsimError, Refused

if TYPE_CHECKING:
    from dialsim.engine.campaign import Campaign
    from dialsim.engine.dialler import Dialler
    from dialsim.scenario.added_campaign import Surroundings
    from dialsim.scenario.models import Campaign as CampaignModel


def add_campaign(
    dialler: Dialler,
    now: int,
    campaign: CampaignModel | Mapping[str, object],
    csv: bytes | str | None,
    folder: str | PathLike[str] | None,
) -> Campaign:
    """Add a campaign to those of a dialler; arguments and errors are `Simulation.add_campaign`'s.

    Without `scheduledAt` its request is made now (ms).
    """
    world, position = dialler.trace.world, dialler.block.position
    model = _checked(campaign, world.surroundings(position, now), csv, folder)
    block = world.add_campaign(position, model, now)
    added = dialler.add(block)
    if block.schedule is None:
        return added
    if block.scheduled_at is not None and block.scheduled_at > now:
        lay_out_request(dialler.clock, added, dialler.trace)
        return added
    try:
        added.schedule(block.schedule)
    except Refused:
        dialler.remove_last()
        raise
    return added


def _checked(
    campaign: CampaignModel | Mapping[str, object],
    around: Surroundings,
    csv: bytes | str | None,
    folder: str | PathLike[str] | None,
) -> CampaignModel:
    from dialsim.scenario.added_campaign import check_campaign, read_campaign
    from dialsim.scenario.models import Campaign as CampaignModel

    if isinstance(campaign, CampaignModel):
        if csv is not None:
            raise DialsimError(f"campaign {campaign.name!r} has its recipients already")
        check_campaign(campaign, around)
        return campaign
    content = csv.encode("utf-8", "surrogatepass") if isinstance(csv, str) else csv
    return read_campaign(campaign, around, content, None if folder is None else Path(folder))
