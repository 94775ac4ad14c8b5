"""The service that is simulated: its clock, its names, its engine's settings, what calls cost."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from dialsim.interface.instants import format_instant
from dialsim.interface.model import broken, wrong
from dialsim.scenario.fields import Amount, Model, Number, Phone, Text, Url, patterned
from dialsim.scenario.units import Duration, Instant, PositiveDuration

HEADER_NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9-]{0,39}$"
HEADER_NAME_TEXT = "must be at most 40 letters, digits and hyphens with a letter first"
LONGEST_RELEASE_INTERVAL = 3_600_000


class Clock(Model):
    """When the simulated time begins and ends; instants in ms since 1970, UTC."""

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
        if end is not None and end <= info.data.get("start", end - 1):
            start = format_instant(info.data["start"]).replace(".000Z", "Z")
            raise broken(f"must be after clock.start, {start}")
        return end


class Service(Model):
    """What the service is called and where it answers."""

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


class EngineSettings(Model):
    """How the service's engine queues, orders and paces calls; durations in ms (rules Q)."""

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
    sharing: Literal["roundRobin", "fifo"] = Field(
        default="roundRobin",
        description="How campaigns of an organization share its slots (Q3).",
        examples=["roundRobin"],
    )
    calls_per_second: Annotated[Number, Field(ge=0.0001, le=1_000_000)] | None = Field(
        default=None,
        description="Most dials per second of an organization (Q4). Left out: no limit.",
        examples=[2],
    )
    webhook_delay: Duration = Field(
        default=0,
        description="From a result to the first POST that tells of it (W3).",
        examples=[0],
    )

    @field_validator("release_interval")
    @classmethod
    def _is_not_too_long(cls, interval: int) -> int:
        if interval > LONGEST_RELEASE_INTERVAL:
            raise broken("must not be longer than 1h")
        return interval


class Costs(Model):
    """What calls cost."""

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
