"""What happened to a recipient before the scenario begins: a forecast from the middle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, model_validator

from dialsim.interface.model import broken
from dialsim.interface.status import CallStatus
from dialsim.scenario.fields import Model, Text, Whole
from dialsim.scenario.units import Instant

MOST_ATTEMPTS = 1_000_000
"""More of them than anybody is called; totals stay far from the ends of their columns."""
REACHED = frozenset({CallStatus.COMPLETED, CallStatus.ANALYSIS_FAILED})  # R3
_COUNTED = REACHED | {CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED}  # P5
_ENDED = _COUNTED | {CallStatus.CANCELLED}  # F1: those that have an end (Q5)


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


class History(Model):
    """What happened to a recipient before the scenario begins, with the interface's names."""

    call_attempt: Annotated[Whole, Field(ge=0, le=MOST_ATTEMPTS)] = Field(
        default=0, description="Attempts that were dialled and ended.", examples=[1]
    )
    latest_call_status: CallStatus | None = Field(
        default=None, description="Status of the newest call.", examples=["NO_ANSWER"]
    )
    last_ended_at: Instant | None = Field(
        default=None,
        description="When the last call ended; not later than clock.start.",
        examples=["2026-01-05T03:12:40Z"],
    )
    last_caller_id: Text | None = Field(
        default=None,
        description="The number that the last call came from: a retry avoids it.",
        examples=["021000002"],
    )

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        wrong = contradiction(self.call_attempt, self.latest_call_status, self.last_ended_at)
        if wrong is not None:
            key, says = wrong
            raise broken(says, key)
        return self

    @property
    def past(self) -> Past | None:
        """Where it leaves the recipient; None where there was no call."""
        if self.last_ended_at is None or self.latest_call_status is None:
            return None
        return Past(
            self.call_attempt, self.latest_call_status, self.last_ended_at, self.last_caller_id
        )


def contradiction(
    call_attempt: int, status: CallStatus | None, last_ended_at: int | None
) -> tuple[str, str] | None:
    """What a history can't mean: the key at fault, and what is said of it; None if it is sound.

    A call that ended has an end, and one that was dialled and ended is an attempt. Calls that were
    still to be made, or expired, need neither.
    """
    if status in _COUNTED and call_attempt == 0:
        return "callAttempt", f"must be 1 or more where latestCallStatus is {status}"
    if status is None and (call_attempt or last_ended_at is not None):
        return "latestCallStatus", "is required where there was a call"
    if last_ended_at is None and (call_attempt or status in _ENDED):
        return "lastEndedAt", "is required where there was a call"
    return None
