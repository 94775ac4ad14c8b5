"""Settings of the simulated service: clock, names, engine, costs, and faults.

Faults are failures of webhooks and API answers, with their times and targets. A scenario file lists
the standing faults of the service: its limits, maintenance and latency. Operators of a sandbox
order further faults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    field_serializer,
    field_validator,
)

from dialsim.interface.instants import MINUTE, format_instant, parse_instant
from dialsim.interface.model import Combined, NullAsAbsent, broken, given, wrong
from dialsim.scenario.distribution import Clipped, Constant, Distribution
from dialsim.scenario.document import Cursor
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
    duration_of,
    era_fault,
    format_duration,
    parse_offset_instant,
    positive,
)

WebhookFault = Literal["timeout", "refuse", "late", "twice", "delayed", "stale"]
"""Kinds of webhook faults.

`timeout`: nothing reaches the receiver, and the service waits in vain; `refuse`: the connection is
refused; `late`: the receiver gets the POST, but its answer counts as too late; `twice`: the
receiver gets the POST twice; `delayed`: the POST leaves later, unchanged, and other POSTs overtake
it; `stale`: the receiver gets the POST, and then the previous result of the same recipient again.
"""
ApiFault = Literal["error", "limit", "drop", "slow", "slowBody"]
"""Kinds of answer faults.

An error or a dropped connection replaces the answer, or the same answer arrives later, as a whole
or in pieces. `limit`: 429 replaces the answer while a token bucket is empty.
"""
ErrorStatus = Literal[401, 429, 500, 502, 503, 504]

MOST_STANDING = 20
"""Most faults in a scenario file."""
MOST_STRIKES = 1_000_000
LONGEST_DELAY = 60_000
"""Longest delay of an answer (ms of real time)."""
LONGEST_HOLD = 86_400_000
"""Longest delay of a webhook (ms of virtual time)."""
_MAY_SAY_WHEN = (429, 503)  # statuses that allow Retry-After


ApiPath = Annotated[str, patterned(r"/api(/\S*)?", "must be a path that begins with /api")]
_GOES_WITH = {
    "campaign": "webhooks",
    "path": "api",
    "status": "api error",
    "retryAfter": "api error",
    "executed": "api error or api drop",
    "delay": "api slow, api slowBody or webhooks delayed",
    "requestsPerSecond": "api limit",
    "burst": "api limit",
}
_KINDS = {"webhooks": get_args(WebhookFault), "api": get_args(ApiFault)}
_NEEDED = {
    "slow": "delay",
    "slowBody": "delay",
    "delayed": "delay",
    "limit": "requestsPerSecond",
}


def _spelled_out(delay: object) -> object:
    if isinstance(delay, Mapping | Clipped):
        return delay
    return Constant.model_construct(dist="constant", value=positive(duration_of(delay)))


class StandingFault(Combined, Model):
    """Fault of webhooks or API answers; without `next` or `lasts` it strikes until it is cleared.

    Several standing faults together are the profile of a service.
    """

    webhooks: WebhookFault | None = Field(
        default=None, description="What happens to POSTs of the webhook.", examples=["delayed"]
    )
    api: ApiFault | None = Field(
        default=None,
        description="What happens to answers under /api if the API key is right.",
        examples=["error"],
    )
    next: Annotated[Whole, Field(ge=1, le=MOST_STRIKES)] | None = Field(
        default=None, description="How many POSTs or answers it strikes.", examples=[3]
    )
    at: Instant | None = Field(
        default=None,
        description="The virtual instant from which the fault strikes. Left out: at once.",
        examples=["2026-01-05T20:00:00Z"],
    )
    lasts: PositiveDuration | None = Field(
        default=None, description="Virtual time for which the fault strikes.", examples=["10m"]
    )
    every: PositiveDuration | None = Field(
        default=None,
        description="Virtual time from one beginning of the fault to the next; longer than lasts.",
        examples=["1d"],
    )
    share: Annotated[Number, Field(gt=0, le=1), NullAsAbsent()] = Field(
        default=1,
        description="Probability with which the fault strikes each POST or answer.",
        examples=[0.5],
    )
    organization: Text | None = Field(
        default=None,
        description="The only organization that the fault strikes, by id or by name.",
        examples=["Acme"],
    )
    path: ApiPath | None = Field(
        default=None,
        description="Beginning of the paths that the fault strikes.",
        examples=["/api/call/"],
    )
    status: ErrorStatus | None = Field(
        default=None,
        description="The status of an error; left out: 429 with retryAfter, else 503.",
        examples=[503],
    )
    retry_after: PositiveDuration | None = Field(
        default=None,
        description="The Retry-After of a 429 or 503, rounded up to seconds.",
        examples=["2s"],
    )
    executed: Switch | None = Field(
        default=None,
        description="true: the request is carried out before its answer is lost.",
        examples=[True],
    )
    delay: Annotated[Distribution, BeforeValidator(_spelled_out)] | None = Field(
        default=None,
        description="Delay of an answer, in real time, at most a minute; or of a webhook, in "
        "virtual time, at most a day. A duration or a distribution.",
        examples=["2s"],
    )
    requests_per_second: Annotated[Number, Field(ge=0.0001, le=1_000_000)] | None = Field(
        default=None,
        description="Tokens that the bucket of each organization gets per second of virtual time.",
        examples=[5],
    )
    burst: Annotated[Whole, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="Tokens in a full bucket; 1 if left out.", examples=[20]
    )

    @property
    def error_status(self) -> ErrorStatus:
        """Status of an error in place of the answer."""
        is_refusal = self.api == "limit" or self.retry_after is not None
        return self.status or (429 if is_refusal else 503)

    @property
    def longest_delay(self) -> int:
        """Upper limit of a delay (ms)."""
        return LONGEST_DELAY if self.webhooks is None else LONGEST_HOLD

    @field_validator("delay")
    @classmethod
    def _is_bearable(cls, delay: Distribution | None, info: ValidationInfo) -> Any:
        longest = LONGEST_HOLD if info.data.get("webhooks") else LONGEST_DELAY
        if isinstance(delay, Constant) and delay.value > longest:
            raise broken(f"must not be longer than {format_duration(longest)}")
        return delay

    @field_serializer("delay", when_used="json")
    def _as_written(self, delay: Distribution | None) -> Any:
        if isinstance(delay, Constant):
            return format_duration(delay.value)
        return delay and delay.model_dump(mode="json", by_alias=True, exclude_none=True)

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """Yield an error unless exactly one kind of fault is given, with fitting settings."""
        named = {name for name, value in given.items() if value is not None}
        if "every" in named and "lasts" not in named:
            yield "every goes with lasts alone"
        if len(named & {"webhooks", "api"}) != 1:
            yield "one of webhooks and api must be given"
            return
        [what] = named & {"webhooks", "api"}
        how = given[what]
        # an unknown kind may be a misspelling of any kind
        meant = [how] if how in _KINDS[what] else _KINDS[what]
        fitting = {what, *(f"{what} {kind}" for kind in meant)}
        for name, kinds in _GOES_WITH.items():
            if name in named and not fitting & {*re.split(", | or ", kinds)}:
                yield f"{name} goes with {kinds} alone"
        needed = _NEEDED.get(str(how))
        if needed is not None and needed not in named:
            yield f"{needed} is required where {what} is {how}"
        if "retryAfter" in named and given.get("status") not in (None, *_MAY_SAY_WHEN):
            yield "retryAfter goes with status 429 or 503 alone"

    @field_validator("every")
    @classmethod
    def _is_longer_than_a_turn(cls, every: int | None, info: ValidationInfo) -> int | None:
        lasts = info.data.get("lasts")
        if every is not None and lasts is not None and every <= lasts:
            raise broken("must be longer than lasts")
        return every


class FaultOrder(StandingFault):
    """Order for a fault of webhooks or API answers: its number of strikes and its targets."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [given("webhooks"), given("api")],
            "anyOf": [given("next"), given("lasts")],
        }
    )

    campaign: Text | None = Field(
        default=None, description="The only one whose webhooks are struck, by id."
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """Yield the errors of a standing fault, and one for an order without an end."""
        if given.get("next") is None and given.get("lasts") is None:
            yield "next or lasts must be given"
        yield from super().conflicts(given)


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
    # A schedule without a valid startDateTime is reported elsewhere.
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
        description="Start of the simulated time. Left out: the earliest scheduledAt, "
        "startDateTime or timeline instant of the file.",
        examples=["2026-01-05T01:00:00Z"],
    )
    end: Instant | None = Field(
        default=None,
        description="The last instant simulated. Left out: until nothing more can happen.",
        examples=["2026-01-12T00:00:00Z"],
    )

    @field_validator("end")
    @classmethod
    def _is_after_start(cls, end: int | None, info: ValidationInfo) -> int | None:
        # `end - 1` is a stand-in for an invalid start, which has its own error.
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
        description="Address in links to recordings. Left out: the server's own address.",
        examples=["http://127.0.0.1:8400"],
    )
    shared_number: Phone = Field(
        default="020000000",
        description="Caller ID of calls for which neither request nor agent names a number.",
        examples=["020000000"],
    )
    guessed: Switch = Field(
        default=False,
        description="true: a sandbox has the endpoints that the interface names but does not "
        "show, as dialsim guesses them.",
        examples=[True],
    )
    in_order: Switch = Field(
        default=False,
        description="true: the clock of a sandbox waits while webhooks are under way.",
        examples=[True],
    )
    strict: Switch = Field(
        default=False,
        description="true: requests are refused if the interface leaves open whether they are "
        "valid.",
        examples=[True],
    )
    webhook_concurrency: Annotated[Whole, Field(ge=1, le=1_000)] = Field(
        default=5,
        description="Upper limit of webhooks of a sandbox that are under way at once. With more "
        "than 5, a retry may arrive after a later result.",
        examples=[50],
    )
    faults: Annotated[tuple[StandingFault, ...], AfterValidator(_not_too_many)] = Field(
        default=(),
        description="The limits, maintenance windows and latency of a sandbox: each fault "
        "strikes the POSTs and answers that the faults before it let pass. Runs without a "
        "sandbox ignore them.",
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
        description="Longest wait of a call in the queue, at least 1ms; a call that waits longer "
        "is cancelled (Q5).",
        examples=["10m"],
    )
    queue_limit: (
        Annotated[_QueueLength | Literal["unlimited"], BeforeValidator(_queue_limit)] | None
    ) = Field(
        default=None,
        description="Upper limit of calls in an organization's queue, or unlimited (Q2). Left "
        "out: the organization's maxConcurrentCalls.",
        examples=[40],
    )
    release_interval: Duration = Field(
        default=0,
        description="Time between releases of calls to the queue, at most 1h (Q2). 0: calls are "
        "released whenever the queue has room.",
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
        description="Upper limit of dials per second of an organization (Q4). Left out: no limit.",
        examples=[2],
    )
    webhook_delay: Duration = Field(
        default=0,
        description="Time from a result to its first POST (W3).",
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
        description="Conversations are charged in whole multiples of this duration, rounded up; "
        "more than 0.",
        examples=["60s"],
    )
    per_reached: Amount = Field(
        default=0.0,
        description="Cost of each person reached by a call of the run.",
        examples=[0.50],
    )
    per_line_day: Amount = Field(
        default=0.0,
        description="Cost of each line on each Thai date with a dial. The number of lines is the "
        "highest maxConcurrentCalls at a dial of that date.",
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
