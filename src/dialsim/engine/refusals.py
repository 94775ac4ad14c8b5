"""Refusals of what is asked of a campaign, in the interface's words (C4 to C6, C8, C9, D3)."""

from __future__ import annotations

from dialsim.interface.errors import Refused
from dialsim.interface.status import CampaignStatus


def campaign_not_found() -> Refused:
    """There is no such campaign, or no longer (C8)."""
    return Refused(404, "CAMPAIGN_NOT_FOUND", ["Campaign not found"])


def already_started(status: CampaignStatus) -> Refused:
    """A schedule request to a campaign that is no DRAFT."""
    text = f"Campaign has already been started (current status: {status})"
    return Refused(409, "CAMPAIGN_ALREADY_STARTED", [text])


def calling_not_allowed() -> Refused:
    """The organization may not call."""
    return Refused(403, "CALLING_NOT_ALLOWED", ["Your organization is not allowed to make calls."])


def all_duplicates() -> Refused:
    """Nobody is left once duplicates are removed (D3)."""
    text = "All recipients are duplicates within the configured window"
    return Refused(400, "VALIDATION_FAILED", [text])


def wrong_state(verb: str, status: CampaignStatus) -> Refused:
    """What can't be done in this status."""
    return Refused(409, "INVALID_CAMPAIGN_STATE", [f"Cannot {verb} a {status} campaign"])
