"""Fault orders: what is to go wrong on purpose, as an operator asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from dialsim.interface.wire import NullAsAbsent, given
from dialsim.sandbox.shapes import Combined
from dialsim.scenario.fields import Number, Text, Whole, broken, patterned
from dialsim.scenario.units import PositiveDuration, format_duration

WebhookFault = Literal["timeout", "refuse", "late", "twice"]
"""What may happen to a POST of the webhook.

`timeout`: nothing reaches the receiver, and the service waits in vain; `refuse`: the connection is
refused; `late`: the receiver gets the POST, but its answer counts as too late; `twice`: the
receiver gets it twice.
"""
ApiFault = Literal["error", "slow"]
"""What may happen to an answer: an error in its place, or the same answer later."""
ErrorStatus = Literal[500, 502, 503, 504]

MOST_STRIKES = 1_000_000
LONGEST_DELAY = 60_000
"""The most (ms, of real time) by which an answer is delayed."""


def _bearable(delay: int) -> int:
    if delay > LONGEST_DELAY:
        raise broken(f"must not be longer than {format_duration(LONGEST_DELAY)}")
    return delay


ApiPath = Annotated[str, patterned(r"/api(/\S*)?", "must be a path that begins with /api")]
_GOES_WITH = {
    "campaign": "webhooks",
    "path": "api",
    "status": "api error",
    "delay": "api slow",
}
_KINDS = {"webhooks", "api error", "api slow"}


class FaultOrder(Combined):
    """A fault of webhooks or of API answers: how often it strikes, and whom."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [given("webhooks"), given("api")]})

    webhooks: WebhookFault | None = Field(
        default=None, description="What happens to POSTs of the webhook."
    )
    api: ApiFault | None = Field(
        default=None, description="What happens to answers under /api, the key being right."
    )
    next: Annotated[Whole, Field(ge=1, le=MOST_STRIKES)] = Field(
        description="How many it strikes.", examples=[3]
    )
    share: Annotated[Number, Field(gt=0, le=1), NullAsAbsent()] = Field(
        default=1, description="The chance, for each that it could strike, to be struck."
    )
    organization: Text | None = Field(
        default=None, description="The only one to be struck, by id or by name."
    )
    campaign: Text | None = Field(
        default=None, description="The only one whose webhooks are struck, by id."
    )
    path: ApiPath | None = Field(
        default=None, description="How the paths begin that are struck.", examples=["/api/call/"]
    )
    status: ErrorStatus | None = Field(
        default=None, description="The status of an error, 503 if none is given."
    )
    delay: Annotated[PositiveDuration, AfterValidator(_bearable)] | None = Field(
        default=None, description="By how much an answer is slow, in real time.", examples=["2s"]
    )

    @model_validator(mode="before")
    @classmethod
    def _null_means_left_out(cls, order: Any) -> Any:
        if isinstance(order, Mapping):
            return {name: value for name, value in order.items() if value is not None}
        return order

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """There is one kind of fault, with what belongs to it."""
        named = {name for name, value in given.items() if value is not None}
        if len(named & {"webhooks", "api"}) != 1:
            yield "one of webhooks and api must be given"
            return
        kinds = {"webhooks"} if "webhooks" in named else {"api", f"api {given['api']}"}
        if kinds.isdisjoint(_KINDS):  # of what is no kind of answer, anything might go with it
            kinds |= _KINDS - {"webhooks"}
        for name, kind in _GOES_WITH.items():
            if name in named and kind not in kinds:
                yield f"{name} goes with {kind} alone"
        if given.get("api") == "slow" and "delay" not in named:
            yield "delay is required where api is slow"
