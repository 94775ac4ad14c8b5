"""A campaign as far as the service tells it: its recipients, and where each of them stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, JsonValue
from pydantic.alias_generators import to_camel

from dialsim.interface.agent import ParamSchema
from dialsim.interface.instants import parse_instant
from dialsim.interface.schedule import ScheduleRequest
from dialsim.interface.status import CallStatus
from dialsim.results.thai_time import minute_text
from dialsim.scenario.campaign import REACHED

_ENDED = REACHED | {CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED, CallStatus.CANCELLED}


def _known_status(value: object) -> object:
    """A status that the interface doesn't name counts as that of a call under way."""
    named = isinstance(value, str) and value in {status.value for status in CallStatus}
    return CallStatus.INITIATED if isinstance(value, str) and not named else value


def _moment(value: object) -> int:
    return parse_instant(value if isinstance(value, str) else "")


class Answered(BaseModel, alias_generator=to_camel):
    """A part of an answer; what else it says is of no use here."""


_At = Annotated[int, BeforeValidator(_moment)]


class PulledRecipient(Answered):
    """A recipient as the service shows them (interface, section 2.4)."""

    id: str
    tel: str
    customer_name: str | None = None
    call_attempt: Annotated[int, Field(ge=0)]
    latest_call_status: Annotated[CallStatus | None, BeforeValidator(_known_status)] = None
    agent_params: dict[str, JsonValue] = {}
    updated_at: _At
    personal_data_masked: bool = False

    @property
    def reached(self) -> bool:
        """Whether a call was answered (R3)."""
        return self.latest_call_status in REACHED

    def last_ended_at(self, schedule: ScheduleRequest, now: int) -> int | None:
        """When the last call ended (ms), None if there was none; the interface tells no more.

        The last change is the end of a call that has ended. A retry that waits was made
        `retryInterval` after the end of the call before it (R2), or changed after that: then it
        is the latest instant that is possible.
        """
        if self.latest_call_status in _ENDED:
            return min(self.updated_at, now)
        if not self.call_attempt:
            return None
        latest = min(self.updated_at, now) - schedule.retry_interval
        return min(max(latest, schedule.start_date_time), now)


class PulledAgent(Answered):
    """An agent of the organization (interface, section 2.2)."""

    id: str
    name: str
    params_schema: dict[str, ParamSchema] | None = None


@dataclass(slots=True)
class PulledCampaign:
    """A campaign as far as the service tells it; recipients in the order of their upload."""

    id: str
    recipients: list[PulledRecipient]
    file: str
    schedule: ScheduleRequest | None = None
    agent: PulledAgent | None = None

    @property
    def name(self) -> str:
        """A name for the scenario; the interface tells none."""
        return f"Campaign {self.id[:8]}"

    @property
    def reached(self) -> int:
        """How many people are reached already."""
        return sum(person.reached for person in self.recipients)

    @property
    def most_attempts(self) -> int:
        """The most attempts that anybody has had."""
        return max((person.call_attempt for person in self.recipients), default=0)


@dataclass(slots=True)
class Pulled:
    """What was written where: `at` is the instant of the data (ms), `notes` say what is a guess."""

    folder: Path
    at: int
    campaigns: list[PulledCampaign]
    notes: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """What is to be said of it."""
        said = []
        for part in self.campaigns:
            said.append(
                f"{part.name}: of {len(part.recipients):,} people {part.reached:,} are reached by "
                f"{minute_text(self.at)} Thai time."
            )
        return [*said, *(f"Note: {note}" for note in self.notes), f"Written to {self.folder}"]
