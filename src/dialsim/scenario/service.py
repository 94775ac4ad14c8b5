"""Settings of the simulated service: clock, names, engine, and costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    ValidationInfo,
    field_validator,
)

from dialsim.interface.instants import MINUTE, format_instant, parse_instant
from dialsim.interface.model import broken, wrong
from dialsim.scenario.document import Cursor
from dialsim.scenario.faults import MOST_STANDING, StandingFault
from dialsim.scenario.fields import (
    Amount,
    Model,
    Number,
    Phone,
    Switch,
    Text,
    Url,
    Whole,
    number,
    patterned,
)
from dialsim.scenario.problems import Problems
from dialsim.scenario.units import (
    Duration,
    Instant,
    PositiveDuration,
    era_fault,
    parse_offset_instant,
)


@dataclass(frozen=True, slots=True)
class Beginning:
    """Start of the simulated time: no request comes earlier, and every history has ended.

    `at` is in ms, 0 if unknown; `name` is its name in problems.
    """

    at: int
    name: str = "clock.start"

    def __str__(self) -> str:
        return f"{self.name}, {format_instant(self.at).replace('.000Z', 'Z')}"


def start_of(root: Cursor, problems: Problems) -> int:
    """Return the start of a document's clock in ms since 1970: as written, else its earliest
    instant.

    Returns 0 for an unreadable start. A document without any instant is reported.
    """
    written = root.at("clock", "start")
    if written.exists:
        return _read(written, parse_offset_instant) or 0
    read = [_read(at, parse_offset_instant) for at in _each(root, *_INSTANTS)]
    read += [_read(at, _parse_start) for at in _each(root, *_STARTS)]
    # A schedule without a sound startDateTime has an error of its own.
    requests = _each(root, "campaigns.*.schedule", "timeline.*.body")
    if not read and not any(requests) and any(root.each("organizations.*.campaigns.*")):
        message = "is required: there is no scheduledAt, startDateTime or timeline instant instead"
        problems.add(written, message)
    return min((instant for instant in read if instant is not None), default=0)


def calling_begins(root: Cursor) -> int | None:
    """Return the earliest startDateTime of a document, or its clock.start; None without either."""
    read = [_read(at, _parse_start) for at in _each(root, *_STARTS)]
    known = [instant for instant in read if instant is not None]
    return min(known) if known else _read(root.at("clock", "start"), parse_offset_instant)


def check_order(root: Cursor, start: Beginning, problems: Problems) -> None:
    """Report instants before the beginning, and histories after it."""
    for cursor in _each(root, *_INSTANTS):
        instant = _read(cursor, parse_offset_instant)
        if instant is not None and instant < start.at:
            problems.add(cursor, f"must not be before {start}")
    for cursor in root.each("organizations.*.campaigns.*.recipients.*.history.lastEndedAt"):
        instant = _read(cursor, parse_offset_instant)
        # An unknown start (0) would make every history look too late.
        if instant is not None and instant > start.at > 0:
            problems.add(cursor, not_after(start))


def not_after(start: Beginning) -> str:
    """Return the error text for a history that ends after the beginning."""
    return f"must not be after {start}"


_INSTANTS = ("campaigns.*.scheduledAt", "timeline.*.at")
_STARTS = ("campaigns.*.schedule.startDateTime", "timeline.*.body.startDateTime")


def _each(root: Cursor, *patterns: str) -> Iterator[Cursor]:
    for organization in root.at("organizations").items():
        for pattern in patterns:
            yield from organization.each(pattern)


def _parse_start(text: str) -> int:
    """Parse a startDateTime.

    Raises ValueError for a Buddhist year, which would lie centuries ahead.
    """
    if era_fault(text) is not None:
        raise ValueError
    return parse_instant(text)


def _read(cursor: Cursor, parse: Callable[[str], int]) -> int | None:
    try:
        # The model reports texts that cannot be read.
        return parse(cursor.text or "")
    except ValueError:
        return None


HEADER_NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9-]{0,39}$"
HEADER_NAME_TEXT = "must be at most 40 letters, digits and hyphens with a letter first"
LONGEST_RELEASE_INTERVAL = 3_600_000


class ClockSettings(Model):
    """Beginning and end of the simulated time; instants in ms since 1970, UTC."""

    start: Instant = Field(
        description="Where the simulated time begins. Left out: the earliest scheduledAt, "
        "startDateTime or timeline instant of the file.",
        examples=["2026-01-05T01:00:00Z"],
    )
    end: Instant | None = Field(
        default=None,
        description="The last instant simulated. Left out: until nothing is left to happen.",
        examples=["2026-01-12T00:00:00Z"],
    )

    @field_validator("end")
    @classmethod
    def _is_after_start(cls, end: int | None, info: ValidationInfo) -> int | None:
        # `end - 1` stands for a start that failed: then there is nothing to compare.
        if end is not None and end <= info.data.get("start", end - 1):
            start = format_instant(info.data["start"]).replace(".000Z", "Z")
            raise broken(f"must be after clock.start, {start}")
        return end


def _not_too_many(faults: tuple[StandingFault, ...]) -> tuple[StandingFault, ...]:
    if len(faults) > MOST_STANDING:
        raise broken(f"must not be more than {MOST_STANDING}")
    return faults


class Service(Model):
    """Name and addresses of the service."""

    name: Annotated[str, patterned(HEADER_NAME_PATTERN, HEADER_NAME_TEXT)] = Field(
        default="Dialsim",
        description="The service's name in header names: letters, digits and hyphens.",
        examples=["Dialsim"],
        json_schema_extra={"pattern": HEADER_NAME_PATTERN},
    )
    public_url: Url = Field(
        default="http://127.0.0.1:8400",
        description="Where links to recordings point. Left out: the server's own address.",
        examples=["http://127.0.0.1:8400"],
    )
    shared_number: Phone = Field(
        default="020000000",
        description="The number calls come from where neither request nor agent names one.",
        examples=["020000000"],
    )
    guessed: Switch = Field(
        default=False,
        description="Whether a sandbox has endpoints that the interface names but does not show, "
        "as we guess them.",
        examples=[True],
    )
    in_order: Switch = Field(
        default=False,
        description="Whether a sandbox lets no time pass while webhooks are under way.",
        examples=[True],
    )
    strict: Switch = Field(
        default=False,
        description="Whether requests are refused where the interface leaves open whether they are "
        "valid.",
        examples=[True],
    )
    webhook_concurrency: Annotated[Whole, Field(ge=1, le=1_000)] = Field(
        default=5,
        description="Most webhooks of a sandbox that are under way at once. With more than 5, "
        "retries may leave behind later results.",
        examples=[50],
    )
    faults: Annotated[tuple[StandingFault, ...], AfterValidator(_not_too_many)] = Field(
        default=(),
        description="The limits, maintenance windows and latency of a sandbox: each fault strikes "
        "what those before it let pass. A sandbox alone has them.",
        examples=[[{"api": "limit", "requestsPerSecond": 5, "burst": 20}]],
    )


def _queue_limit(value: object) -> int | Literal["unlimited"]:
    if value == "unlimited":
        return "unlimited"
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1:
        raise wrong("must be a whole number or unlimited")
    if value < 1:
        raise broken("must not be less than 1; for no limit write unlimited")
    if value > 1_000_000_000:
        raise broken("must not be greater than 1000000000; for no limit write unlimited")
    return int(value)


_QueueLength = Annotated[int, Field(ge=1)]
Sharing = Literal["roundRobin", "fifo", "priority", "weighted", "deadline"]


class EngineSettings(Model):
    """Queueing, order and pace of calls; durations in ms (rules Q)."""

    queue_timeout: PositiveDuration = Field(
        default=600_000,
        description="A call that waits longer in the queue is cancelled (Q5); at least 1ms.",
        examples=["10m"],
    )
    queue_limit: (
        Annotated[_QueueLength | Literal["unlimited"], BeforeValidator(_queue_limit)] | None
    ) = Field(
        default=None,
        description="Most calls in an organization's queue, or unlimited (Q2). Left out: as "
        "many as its maxConcurrentCalls.",
        examples=[40],
    )
    release_interval: Duration = Field(
        default=0,
        description="Time between releases of calls to the queue, at most 1h (Q2). 0: whenever "
        "there is room.",
        examples=[0],
    )
    order: Literal["due", "freshFirst", "retriesFirst"] = Field(
        default="due", description="Which call of a campaign goes first (Q3).", examples=["due"]
    )
    sharing: Sharing = Field(
        default="roundRobin",
        description="How campaigns of an organization share its lines (Q3): priority by their "
        "priority (Q7), weighted by their weight (Q8), deadline by their endDateTime (Q9).",
        examples=["roundRobin"],
    )
    calls_per_second: Annotated[Number, Field(ge=0.0001, le=1_000_000)] | None = Field(
        default=None,
        description="Most dials per second of an organization (Q4). Left out: no limit.",
        examples=[2],
    )
    webhook_delay: Duration = Field(
        default=0,
        description="From a result to its first POST (W3).",
        examples=[0],
    )

    @field_validator("release_interval")
    @classmethod
    def _is_not_too_long(cls, interval: int) -> int:
        if interval > LONGEST_RELEASE_INTERVAL:
            raise broken("must not be longer than 1h")
        return interval


class Costs(Model):
    """Costs of calling."""

    currency: Text = Field(
        default="THB", description="The currency that figures are shown in.", examples=["THB"]
    )
    per_dial: Amount = Field(default=0.0, description="Cost of each call dialled.", examples=[0.10])
    per_minute: Amount = Field(
        default=0.0, description="Cost of each minute of conversation.", examples=[1.20]
    )
    billing_increment: PositiveDuration = Field(
        default=1000,
        description="Conversations are charged in whole multiples of this, rounded up; more "
        "than 0.",
        examples=["60s"],
    )
    per_reached: Amount = Field(
        default=0.0,
        description="Cost of each person reached by a call of the run.",
        examples=[0.50],
    )
    per_line_day: Amount = Field(
        default=0.0,
        description="Cost of each line on each Thai date with a dial: of as many lines as "
        "maxConcurrentCalls allowed at most when calls were dialled.",
        examples=[35],
    )
    fixed: Amount = Field(
        default=0.0, description="Cost of the run as a whole, however long it is.", examples=[5000]
    )

    @property
    def per_increment(self) -> float:
        """Cost of each billing increment of conversation."""
        return self.per_minute * self.billing_increment / MINUTE


VALUE_KEY = r"^(?:reached|funnel\..+|field\..+\..+)$"
"""Pattern of keys with a value: `reached`, `funnel.STEP` or `field.NAME.VALUE`; also for JSON
Schema.
"""


def _worth(amount: object) -> float | str:
    return amount if isinstance(amount, str) else number(amount)


_Worth = Annotated[float | str, PlainValidator(_worth, json_schema_input_type=float | str)]
Values = Annotated[
    dict[Text, _Worth],
    Field(json_schema_extra={"propertyNames": {"pattern": VALUE_KEY}, "minProperties": 1}),
]
"""Worth of a campaign's results, in the currency of the costs: numbers, or formulas."""
