"""What happened to a recipient before the scenario begins: a forecast from the middle."""

from __future__ import annotations

from dataclasses import dataclass

from dialsim.interface.status import CallStatus

REACHED = frozenset({CallStatus.COMPLETED, CallStatus.ANALYSIS_FAILED})  # R3


@dataclass(frozen=True, slots=True)
class Past:
    """Where a recipient stands at the start: attempts counted (P5) and how the last call ended.

    `last_ended_at` is in ms UTC; `last_caller_id` is the number of the last dialled call, if known.
    """

    call_attempt: int
    latest_call_status: CallStatus
    last_ended_at: int
    last_caller_id: str | None = None

    @property
    def reached(self) -> bool:
        """Whether a call was answered (R3)."""
        return self.latest_call_status in REACHED
