"""The organization's webhook and the simulated receiver behind it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from dialsim.scenario.distribution import Distribution, distribution
from dialsim.scenario.fields import Model, Share, Url, broken
from dialsim.scenario.units import Instant


class Outage(Model):
    """A span in which the receiver refuses connections, or lets them hang (W5)."""

    from_: Instant = Field(
        alias="from", description="First instant of the outage.", examples=["2026-01-06T03:00:00Z"]
    )
    to: Instant = Field(description="When it is over.", examples=["2026-01-06T03:20:00Z"])
    mode: Literal["refuse", "hang"] = Field(
        default="refuse", description="What happens to POSTs.", examples=["refuse"]
    )

    @field_validator("to")
    @classmethod
    def _is_after_from(cls, to: int, info: ValidationInfo) -> int:
        if to <= info.data.get("from_", to - 1):
            raise broken("must be after from")
        return to


class Receiver(Model):
    """How the simulated receiver answers (W5)."""

    latency: Distribution = Field(
        default=distribution("200ms"),
        description="How long an answer takes.",
        examples=["300ms"],
    )
    error_rate: Share = Field(
        default=0.0, description="Share of POSTs that are answered by an error.", examples=[0.01]
    )
    outages: tuple[Outage, ...] = Field(
        default=(), description="Spans in which nothing is answered."
    )


class Webhook(Model):
    """Where results are sent (interface, section 6.1)."""

    url: Url = Field(
        description="The URL that results are sent to.", examples=["https://example.test/hook"]
    )
    receiver: Receiver = Field(default=Receiver(), description="How it answers.")
