"""Terms of the service that all rooms share: statuses here, other terms in the other modules.

Statuses of campaigns and calls have the interface's names (sections 2.5, 3.1, 3.2).
"""

from __future__ import annotations

# StrEnum, so that a status is its text on the wire: in JSON, in comparisons and as a key.
from enum import StrEnum


class CampaignStatus(StrEnum):
    """Status of a campaign (interface, section 3.1)."""

    DRAFT = "DRAFT"
    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"

    @property
    def final(self) -> bool:
        """True if no rule leads out of this status."""
        return self in _FINAL


_FINAL = frozenset({CampaignStatus.COMPLETED, CampaignStatus.CANCELLED, CampaignStatus.EXPIRED})


class CallStatus(StrEnum):
    """Public status of a call (interface, section 3.2)."""

    SCHEDULED = "SCHEDULED"
    QUEUED = "QUEUED"
    INITIATED = "INITIATED"
    COMPLETED = "COMPLETED"
    NO_ANSWER = "NO_ANSWER"
    BUSY = "BUSY"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"
    ANALYSIS_FAILED = "ANALYSIS_FAILED"


class Phase(StrEnum):
    """Phase of an INITIATED call (P1); the interface has no status for it."""

    DIALLING = "dialling"
    RINGING = "ringing"
    TALKING = "talking"


class AgentStatus(StrEnum):
    """Outcome of the voice agent's part of a call (interface, section 2.5; F2)."""

    COMPLETED = "COMPLETED"
    ERROR = "ERROR"
    NOT_STARTED = "NOT_STARTED"
