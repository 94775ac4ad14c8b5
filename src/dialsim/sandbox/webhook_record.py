"""Webhooks as the control plane lists them, for Python."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from dialsim.engine.move import instant_as_datetime
from dialsim.interface.instants import parse_instant


@dataclass(frozen=True, slots=True)
class WebhookRecord:
    """A POST that was made, or a payload that was kept for want of a URL (W6).

    `n` is its place in the list of all, from 1. `response` is an HTTP status, or "timeout",
    "refused" or "broken"; None while there is none. `attempt` and `url` are None where the payload
    was kept, `result` is 0 for the first result of a call, and `body` is decoded.
    """

    n: int
    at: datetime
    organization: str
    campaign: str
    campaign_id: str
    call_id: str
    result: int
    attempt: int | None
    url: str | None
    status: Literal["delivered", "failed", "kept", "underWay"]
    response: int | str | None
    received: bool
    resent: bool
    body: dict[str, Any]

    @classmethod
    def read(cls, row: dict[str, Any]) -> Self:
        """Read a row of the list as it is on the wire."""
        return cls(
            n=row["n"],
            at=instant_as_datetime(parse_instant(row["at"])),
            organization=row["organization"],
            campaign=row["campaign"],
            campaign_id=row["campaignId"],
            call_id=row["callId"],
            result=row["result"],
            attempt=row["attempt"],
            url=row["url"],
            status=row["status"],
            response=row["response"],
            received=row["received"],
            resent=row["resent"],
            body=row["body"],
        )
