"""Campaign data that `dialsim pull` reads, and the folder that it writes.

The service shows the recipients of a campaign and the state of each of them. The folder has a
scenario, a list of people, and comments on unknown values.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, BeforeValidator, Field, JsonValue
from pydantic.alias_generators import to_camel

from dialsim import __version__
from dialsim.errors import ValidationFailed
from dialsim.experiments.variants import DRAWS
from dialsim.interface import CallStatus
from dialsim.interface.instants import (
    day_number,
    format_instant,
    minute_text,
    ms_of,
    parse_instant,
    thai_date,
)
from dialsim.interface.schedule import DEFAULT_RETRY_INTERVAL, ScheduleRequest, read_schedule
from dialsim.logs.behaviour_text import Noted, draws_text, yaml_lines
from dialsim.logs.calibrate import Calibration
from dialsim.results.folder import MANIFEST, SOURCE, replacing
from dialsim.scenario.campaign import REACHED
from dialsim.scenario.fields import HISTORY_COLUMNS, PARAM, PHONE_PATTERN
from dialsim.scenario.loading import load

if TYPE_CHECKING:
    from dialsim.logs.bodies import Settings
    from dialsim.logs.log import Log


_ENDED = REACHED | {CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED, CallStatus.CANCELLED}


def _known_status(value: object) -> object:
    """Map a status that the interface does not define to INITIATED, a call in progress."""
    named = isinstance(value, str) and value in {status.value for status in CallStatus}
    return CallStatus.INITIATED if isinstance(value, str) and not named else value


def _moment(value: object) -> int:
    return parse_instant(value if isinstance(value, str) else "")


class Answered(BaseModel, alias_generator=to_camel):
    """Part of an answer; further fields are ignored."""


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

    @property
    def reached(self) -> bool:
        """True if a call was answered (R3)."""
        return self.latest_call_status in REACHED

    def last_ended_at(
        self, schedule: ScheduleRequest, now: int, dial: LoggedDial | None
    ) -> int | None:
        """Return the instant (ms) at which the last call ended; None without a call.

        For a call that has ended it is the recipient's last change. If a retry waits already, it is
        the end in the log's `dial`, or the latest possible instant: the last change, which came
        `retryInterval` after the end (R2) or later.
        """
        if self.latest_call_status in _ENDED:
            return min(self.updated_at, now)
        if not self.call_attempt:
            return None
        if dial is not None and dial.ended_at <= now:
            return dial.ended_at
        latest = min(self.updated_at, now) - schedule.retry_interval
        return min(max(latest, schedule.start_date_time), now)


class LoggedDial(NamedTuple):
    """Last attempt to call a person in a log: its number, its end (ms) and the caller ID."""

    attempt: int
    ended_at: int
    caller_id: str | None


@dataclass(frozen=True, slots=True)
class LoggedCampaign:
    """Data on a campaign in a log of webhooks; `dials` are by phone number.

    People who share a number are left out: their calls can't be told apart.
    """

    name: str | None
    agent: str | None
    lines: int | None
    schedule: ScheduleRequest | None
    dials: dict[str, LoggedDial]

    @classmethod
    def of(cls, log: Log, identifier: str, shared: frozenset[str]) -> LoggedCampaign | None:
        """Return the log's data on the campaign with an id, None if it is not in the log.

        `shared` are phone numbers of several people. Of settings that changed the last ones count.
        """
        ids = [campaign.id and campaign.id.lower() for campaign in log.campaigns]
        if identifier not in ids:
            return None
        index = ids.index(identifier)
        calls = log.calls[log.calls["campaign"] == index]
        shown = log.bodies.loc[log.bodies["campaign"] == index, "setting"]
        settings = log.settings[int(shown.iloc[-1])] if len(shown) else None
        counted = calls[calls["attempt"].notna() & calls["ended_at"].notna() & calls["tel"].notna()]
        last = counted.sort_values("ended_at", kind="stable").groupby("tel").last()
        dials = {
            str(tel): LoggedDial(
                int(row.attempt),
                ms_of(row.ended_at),
                str(row.caller_id) if isinstance(row.caller_id, str) else None,
            )
            for tel, row in last.iterrows()
            if tel not in shared
        }
        numbers = sorted({dial.caller_id for dial in dials.values() if dial.caller_id})
        return cls(
            name=log.campaigns[index].name,
            agent=log.campaigns[index].agent,
            lines=settings.max_concurrent_calls if settings else None,
            schedule=_schedule_of(settings, numbers) if settings else None,
            dials=dials,
        )


def _schedule_of(settings: Settings, caller_ids: list[str]) -> ScheduleRequest | None:
    """Return a schedule request with these settings; None if they lack times or are invalid."""
    if settings.start_at is None or settings.windows is None:
        return None
    try:
        return read_schedule({**settings.request(), "callerIds": caller_ids or None})
    except ValidationFailed:
        return None


def numbers_of_several(people: list[PulledRecipient]) -> frozenset[str]:
    """Return the phone numbers that more than one recipient has."""
    counts = Counter(person.tel for person in people)
    return frozenset(tel for tel, count in counts.items() if count > 1)


@dataclass(slots=True)
class PulledCampaign:
    """A campaign as far as the service shows it; recipients in upload order."""

    id: str
    recipients: list[PulledRecipient]
    file: str
    schedule: ScheduleRequest | None = None
    logged: LoggedCampaign | None = None

    @property
    def name(self) -> str:
        """Name for the scenario, from the log if it has one: the interface does not show it."""
        return (self.logged and self.logged.name) or f"Campaign {self.id[:8]}"

    @property
    def agent_name(self) -> str:
        """Name of the agent for the scenario, from the log if it has one."""
        return (self.logged and self.logged.agent) or "Agent"

    def last_dial(self, person: PulledRecipient) -> LoggedDial | None:
        """Return a person's last attempt if the log has it."""
        dial = self.logged.dials.get(person.tel) if self.logged else None
        known = dial is not None and dial.attempt == person.call_attempt
        return dial if known else None

    @property
    def reached(self) -> int:
        """Number of people already reached."""
        return sum(person.reached for person in self.recipients)

    @property
    def most_attempts(self) -> int:
        """Largest number of attempts to one person."""
        return max((person.call_attempt for person in self.recipients), default=0)


@dataclass(slots=True)
class Pulled:
    """Summary of the written data: `at` is the instant of the data (ms), `notes` list the
    guesses.
    """

    folder: Path
    at: int
    campaigns: list[PulledCampaign]
    notes: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """Return the summary as sentences."""
        lines = []
        for part in self.campaigns:
            lines.append(
                f"{part.name}: of {len(part.recipients):,} people {part.reached:,} had been "
                f"reached by {minute_text(self.at)} Thai time."
            )
        return [*lines, *(f"Note: {note}" for note in self.notes), f"Written to {self.folder}"]


DEFAULT_LINES = 10
"""Value of maxConcurrentCalls if neither an option nor the log gives it."""
_NUMBER = re.compile(PHONE_PATTERN[1:-1])
CARRIED_OVER = (
    "startDateTime", "endDateTime", "timeWindows", "maxAttempts", "retryInterval", "callerIds"
)  # fmt: skip
"""Fields of a schedule request that a forecast depends on."""


def write_pulled(
    pulled: Pulled, url: str, lines: int | None, behaviours: Calibration | None, force: bool
) -> None:
    """Write what was pulled from `url`; `pulled.notes` gets a note on every guess.

    `lines` is maxConcurrentCalls, None to take it from the log. Without `behaviours` the built-in
    default behaviour applies. Raises OutputError, ScenarioError.
    """
    with replacing(pulled.folder, force) as draft:
        blocks = []
        for campaign in pulled.campaigns:
            schedule = campaign.schedule or _guessed(campaign, pulled)
            without = () if behaviours is None else behaviours.without
            _write_people(draft / campaign.file, campaign, schedule, pulled, without)
            blocks.append(_campaign(campaign, schedule))
        text = _scenario_text(pulled, url, lines, behaviours, blocks)
        (draft / SOURCE).write_text(text, encoding="utf-8")
        manifest = {
            "dialsim": __version__,
            "pulled": {
                "url": url,
                "campaigns": [campaign.id for campaign in pulled.campaigns],
                "at": format_instant(pulled.at),
            },
        }
        (draft / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        if behaviours is not None:
            (draft / DRAWS).write_text(draws_text(behaviours), encoding="utf-8")
        # A folder that can't be loaded must not replace the existing one
        load(draft / SOURCE)


def _guessed(campaign: PulledCampaign, pulled: Pulled) -> ScheduleRequest:
    """Return a guessed schedule for a campaign without a known one, and note what is guessed."""
    ends = [p.updated_at for p in campaign.recipients if p.call_attempt]
    attempts = max(1, campaign.most_attempts)
    pulled.notes.append(
        f"{campaign.name}: the service does not return the schedule. Written instead: the default "
        f"time windows, maxAttempts {attempts} (the most that anybody has had), no end. Give the "
        "body of the request that started it (--schedule FILE), or change scenario.yaml."
    )
    return ScheduleRequest(
        start_date_time=min(ends, default=pulled.at),
        max_attempts=attempts,
        retry_interval=DEFAULT_RETRY_INTERVAL if attempts > 1 else 0,
    )


def _write_people(
    file: Path,
    campaign: PulledCampaign,
    schedule: ScheduleRequest,
    pulled: Pulled,
    without: Sequence[int],
) -> None:
    """Write the list of people; masked and invalid phone numbers are replaced by made-up ones."""
    params = list(dict.fromkeys(name for p in campaign.recipients for name in p.agent_params))
    replaced = 0
    with file.open("w", encoding="utf-8", newline="") as sheet:
        rows = csv.writer(sheet, lineterminator="\n")
        rows.writerow(
            ["tel", "customerName", "id", *(PARAM + name for name in params), *HISTORY_COLUMNS]
        )
        for number, person in enumerate(campaign.recipients, 1):
            tel = person.tel
            if not _NUMBER.fullmatch(tel):
                replaced += 1
                tel = f"{number:020}"
            values = (_cell(person.agent_params.get(name)) for name in params)
            history = _history(person, campaign.last_dial(person), schedule, pulled.at, without)
            rows.writerow([tel, person.customer_name or "", person.id, *values, *history])
    if replaced:
        pulled.notes.append(
            f"{campaign.name}: {replaced:,} phone numbers are masked, and replaced by numbers that "
            "begin with 00; a forecast does not depend on phone numbers."
        )


def _history(
    person: PulledRecipient,
    dial: LoggedDial | None,
    schedule: ScheduleRequest,
    now: int,
    without: Sequence[int],
) -> list[str]:
    ended_at = person.last_ended_at(schedule, now, dial)
    if ended_at is None or person.latest_call_status is None:
        return [""] * len(HISTORY_COLUMNS)
    status = person.latest_call_status
    if status is CallStatus.FAILED and day_number(thai_date(ended_at)) in without:
        status = CallStatus.CANCELLED  # P8: a failure in an outage is no sign of a dead number
    return [
        str(person.call_attempt),
        status.value,
        format_instant(ended_at),
        (dial and dial.caller_id) or "",
    ]


def _cell(value: JsonValue) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _scenario_text(
    pulled: Pulled,
    url: str,
    lines: int | None,
    behaviours: Calibration | None,
    campaigns: Sequence[Mapping[str, Any]],
) -> str:
    logged = [part.logged.lines for part in pulled.campaigns if part.logged and part.logged.lines]
    if lines is None and logged:
        lines, guess = logged[-1], "from the log"
    elif lines is not None:
        guess = "given by --lines"
    else:
        lines, guess = DEFAULT_LINES, "a guess, the service does not return it"
        pulled.notes.append(
            f"The service does not return how many calls may be under way at once: {DEFAULT_LINES} "
            "is a guess, which moves the finish more than anything else. Give --lines N, or change "
            "maxConcurrentCalls in scenario.yaml."
        )
    numbers = [
        number
        for part in pulled.campaigns
        for number in (part.schedule and part.schedule.caller_ids) or ()
    ]
    agents = dict.fromkeys(part.agent_name for part in pulled.campaigns)
    start = Noted(format_instant(pulled.at), "the instant of the data: a forecast begins here")
    document: dict[str, Any] = {
        "version": 1,
        "name": " and ".join(part.name for part in pulled.campaigns),
        "clock": {"start": start},
    }
    if ahead := people_ahead(
        [p.call_attempt for p in part.recipients] for part in pulled.campaigns
    ):
        note = f"{ahead:,} people were called again while others were never called (Q3)"
        document["engine"] = {"order": Noted("retriesFirst", note)}
    organization = {
        "name": "Pulled",
        "maxConcurrentCalls": Noted(lines, guess),
        **({"callerIds": [*dict.fromkeys(numbers)]} if numbers else {}),
        "agents": [{"name": name} for name in agents],
        "campaigns": [*campaigns],
    }
    taken = "the log shows it" if behaviours else "the built-in default behaviour is taken"
    parts = [
        f"# Read from {url} by dialsim pull; the data are of {minute_text(pulled.at)} Thai time.",
        "# The interface does not show: how many calls may be under way at once, the caller IDs of",
        f"# calls made, how people behave ({taken}), and when",
        "# calls ended whose retries wait already (the list of people has the latest possible",
        "# instant). Calls under way are made again.",
        *yaml_lines(document),
        *([behaviours.to_yaml().rstrip()] if behaviours else []),
        *yaml_lines({"organizations": [organization]}),
    ]
    return "\n".join(parts) + "\n"


_RETRIES_FIRST = 0.02
"""Share of called people who are called again before others once, above which it is no chance.
"""


def people_ahead(attempts: Iterable[Iterable[int]]) -> int:
    """Return how many people were called again while others were never called; 0 if by chance.

    `attempts` are the counts of each campaign's people. A positive result means that retries come
    before first calls (Q3).
    """
    made = [np.fromiter(part, dtype=np.int64) for part in attempts]
    called = sum(int((part > 0).sum()) for part in made)
    ahead = sum(int((part > 1).sum()) for part in made if (part == 0).any())
    return ahead if ahead > _RETRIES_FIRST * called else 0


def _campaign(campaign: PulledCampaign, schedule: ScheduleRequest) -> Mapping[str, Any]:
    body = schedule.model_dump(mode="json", by_alias=True, exclude_none=True)
    source = (
        "as it was requested" if campaign.schedule else "a guess: the service does not return it"
    )
    if campaign.schedule and campaign.logged and campaign.schedule is campaign.logged.schedule:
        source = "as the log shows it"
    return {
        "name": campaign.name,
        "id": campaign.id,
        "agent": campaign.agent_name,
        "recipients": {"file": campaign.file},
        "schedule": Noted({name: body[name] for name in CARRIED_OVER if name in body}, source),
    }
