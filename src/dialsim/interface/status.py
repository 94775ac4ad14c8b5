"""The states of campaigns and calls, by the interface's names (sections 2.5, 3.1, 3.2)."""

from __future__ import annotations

from enum import StrEnum


class CampaignStatus(StrEnum):
    """A campaign's status (interface, section 3.1)."""

    DRAFT = "DRAFT"
    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"

    @property
    def final(self) -> bool:
        """Whether no rule leads out of this status."""
        return self in _FINAL


_FINAL = frozenset({CampaignStatus.COMPLETED, CampaignStatus.CANCELLED, CampaignStatus.EXPIRED})


class CallStatus(StrEnum):
    """A call's public status (interface, section 3.2)."""

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
    """What an INITIATED call is doing; the interface has no status for it (P1)."""

    DIALLING = "dialling"
    RINGING = "ringing"
    TALKING = "talking"


class AgentStatus(StrEnum):
    """How the voice agent fared in a call (interface, section 2.5; F2)."""

    COMPLETED = "COMPLETED"
    ERROR = "ERROR"
    NOT_STARTED = "NOT_STARTED"
