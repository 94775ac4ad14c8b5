"""A campaign as far as the service tells it: its recipients, and where each of them stands."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field, JsonValue
from pydantic.alias_generators import to_camel

from dialsim.interface.agent import ParamSchema
from dialsim.interface.instants import format_instant, parse_instant
from dialsim.interface.model import ValidationFailed
from dialsim.interface.schedule import ScheduleRequest, read_schedule
from dialsim.interface.status import CallStatus
from dialsim.results.thai_time import minute_text
from dialsim.scenario.campaign import REACHED

if TYPE_CHECKING:
    from dialsim.evidence.bodies import Settings
    from dialsim.evidence.log import Log

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

    def last_ended_at(
        self, schedule: ScheduleRequest, now: int, dial: LoggedDial | None
    ) -> int | None:
        """When the last call ended (ms), None if there was none; `dial` is what the log has.

        The last change is the end of a call that has ended. A retry that waits was made
        `retryInterval` after the end of the call before it (R2), or changed after that: then it
        is the latest instant that is possible.
        """
        if self.latest_call_status in _ENDED:
            return min(self.updated_at, now)
        if not self.call_attempt:
            return None
        if dial is not None and dial.ended_at <= now:
            return dial.ended_at
        latest = min(self.updated_at, now) - schedule.retry_interval
        return min(max(latest, schedule.start_date_time), now)


class PulledAgent(Answered):
    """An agent of the organization (interface, section 2.2)."""

    id: str
    name: str
    params_schema: dict[str, ParamSchema] | None = None


class LoggedDial(NamedTuple):
    """The last attempt at a person in a log: its number, its end (ms), and the number shown."""

    attempt: int
    ended_at: int
    caller_id: str | None


@dataclass(frozen=True, slots=True)
class LoggedCampaign:
    """What a log of webhooks says of a campaign; `dials` are by phone number.

    People who share a number can't be told apart by it, so they are left out.
    """

    name: str | None
    agent: str | None
    lines: int | None
    schedule: ScheduleRequest | None
    dials: dict[str, LoggedDial]

    @classmethod
    def of(cls, log: Log, identifier: str, shared: frozenset[str]) -> LoggedCampaign | None:
        """That of a campaign's id, None if it is not in the log; `shared` are numbers of several.

        Of settings that have changed the last ones count.
        """
        ids = [campaign.id and campaign.id.lower() for campaign in log.campaigns]
        if identifier not in ids:
            return None
        place = ids.index(identifier)
        calls = log.calls[log.calls["campaign"] == place]
        shown = log.bodies.loc[log.bodies["campaign"] == place, "setting"]
        settings = log.settings[int(shown.iloc[-1])] if len(shown) else None
        counted = calls[calls["attempt"].notna() & calls["ended_at"].notna() & calls["tel"].notna()]
        last = counted.sort_values("ended_at", kind="stable").groupby("tel").last()
        dials = {
            str(tel): LoggedDial(
                int(row.attempt),
                round(row.ended_at.timestamp() * 1000),
                str(row.caller_id) if isinstance(row.caller_id, str) else None,
            )
            for tel, row in last.iterrows()
            if tel not in shared
        }
        numbers = sorted({dial.caller_id for dial in dials.values() if dial.caller_id})
        return cls(
            name=log.campaigns[place].name,
            agent=log.campaigns[place].agent_id or log.campaigns[place].agent,
            lines=settings.max_concurrent_calls if settings else None,
            schedule=_schedule_of(settings, numbers) if settings else None,
            dials=dials,
        )


def _schedule_of(settings: Settings, caller_ids: list[str]) -> ScheduleRequest | None:
    """The request that settings come from; None where they don't say when, or make no sense."""
    if settings.start_at is None or settings.windows is None:
        return None
    days: dict[int, list[dict[str, str]]] = {}
    for window in settings.windows:
        span = {"start": _time(window.start), "end": _time(window.end)}
        days.setdefault(window.day, []).append(span)
    body = {
        "startDateTime": format_instant(settings.start_at),
        "endDateTime": None if settings.end_at is None else format_instant(settings.end_at),
        "timeWindows": [{"dayOfWeek": day, "time": spans} for day, spans in days.items()],
        "maxAttempts": settings.max_attempts,
        "retryInterval": settings.retry_interval,
        "callerIds": caller_ids or None,
    }
    try:
        return read_schedule(body)
    except ValidationFailed:
        return None


def _time(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def numbers_of_several(people: list[PulledRecipient]) -> frozenset[str]:
    """Phone numbers that more than one recipient has."""
    counts = Counter(person.tel for person in people)
    return frozenset(tel for tel, count in counts.items() if count > 1)


@dataclass(slots=True)
class PulledCampaign:
    """A campaign as far as the service tells it; recipients in the order of their upload."""

    id: str
    recipients: list[PulledRecipient]
    file: str
    schedule: ScheduleRequest | None = None
    agent: PulledAgent | None = None
    logged: LoggedCampaign | None = None

    @property
    def name(self) -> str:
        """A name for the scenario: the log's; the interface tells none."""
        return (self.logged and self.logged.name) or f"Campaign {self.id[:8]}"

    def last_dial(self, person: PulledRecipient) -> LoggedDial | None:
        """A person's last attempt, if the log has it."""
        dial = self.logged.dials.get(person.tel) if self.logged else None
        known = dial is not None and dial.attempt == person.call_attempt
        return dial if known else None

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
