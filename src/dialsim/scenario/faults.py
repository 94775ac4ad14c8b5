"""Faults as data: failures of webhooks and API answers, their times and their targets.

A scenario file lists the standing faults of the service: its limits, maintenance and latency.
Operators of a sandbox order further faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_serializer,
    field_validator,
)

from dialsim.interface.model import Combined, NullAsAbsent, broken, given
from dialsim.scenario.distribution import Clipped, Constant, Distribution
from dialsim.scenario.fields import Model, Number, Switch, Text, Whole, patterned
from dialsim.scenario.units import (
    Instant,
    PositiveDuration,
    duration_of,
    format_duration,
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
        description="What happens to answers under /api, the key being right.",
        examples=["error"],
    )
    next: Annotated[Whole, Field(ge=1, le=MOST_STRIKES)] | None = Field(
        default=None, description="How many it strikes.", examples=[3]
    )
    at: Instant | None = Field(
        default=None,
        description="The virtual instant from which it strikes. Left out: at once.",
        examples=["2026-01-05T20:00:00Z"],
    )
    lasts: PositiveDuration | None = Field(
        default=None, description="For how much virtual time it strikes.", examples=["10m"]
    )
    every: PositiveDuration | None = Field(
        default=None,
        description="After how much virtual time it begins anew; longer than lasts.",
        examples=["1d"],
    )
    share: Annotated[Number, Field(gt=0, le=1), NullAsAbsent()] = Field(
        default=1,
        description="The chance, for each that it could strike, to be struck.",
        examples=[0.5],
    )
    organization: Text | None = Field(
        default=None,
        description="The only one to be struck, by id or by name.",
        examples=["Acme"],
    )
    path: ApiPath | None = Field(
        default=None, description="How the paths begin that are struck.", examples=["/api/call/"]
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
        description="Whether the request is carried out before its answer is lost.",
        examples=[True],
    )
    delay: Annotated[Distribution, BeforeValidator(_spelled_out)] | None = Field(
        default=None,
        description="By how much an answer is slow, in real time, at most a minute; or a webhook "
        "late, in virtual time, at most a day. A duration or a distribution.",
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
