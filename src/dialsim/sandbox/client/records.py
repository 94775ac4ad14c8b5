"""Campaigns and webhooks as the control plane lists them, for Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from pydantic.alias_generators import to_snake

from dialsim.errors import DialsimError
from dialsim.interface.instants import parse_instant, utc
from dialsim.interface.status import CampaignStatus
from dialsim.sandbox.access import PREFIX

if TYPE_CHECKING:
    from dialsim.sandbox.client.session import ControlClient


def by_field(state: dict[str, Any]) -> dict[str, Any]:
    """The values of an object on the wire by the names of Python, instants as datetimes."""
    return {
        to_snake(name): utc(parse_instant(value)) if name in _INSTANTS else value
        for name, value in state.items()
    }


_INSTANTS = ("at", "createdAt", "receivedAt")


@dataclass(frozen=True, slots=True)
class CampaignRecord:
    """A campaign as it stood when it was asked for; the interface itself hides `deleted` ones."""

    id: str
    organization: str
    name: str
    agent: str
    status: CampaignStatus
    deleted: bool
    created_at: datetime
    total_recipients: int

    @classmethod
    def read(cls, state: dict[str, Any]) -> Self:
        """Read the state of a campaign as it is on the wire."""
        values = by_field(state)
        return cls(**values | {"status": CampaignStatus(values["status"])})

    @property
    def full_name(self) -> str:
        """The name with the organization's: `Acme/January`."""
        return f"{self.organization}/{self.name}"


def find(campaigns: Sequence[CampaignRecord], name: str) -> CampaignRecord:
    """The campaign of a name or full name; raises DialsimError unless it is exactly one."""
    found = [one for one in campaigns if one.full_name == name]
    found = found or [one for one in campaigns if one.name == name]
    if len(found) == 1:
        return found[0]
    known = ", ".join(one.full_name for one in found or campaigns)
    if found:
        raise DialsimError(f"more than one campaign {name!r}; say which: {known}")
    raise DialsimError(f"no campaign {name!r}; there are: {known}")


@dataclass(frozen=True, slots=True)
class OrganizationRecord:
    """An organization as it stood when it was added or asked for, with its `api_key`."""

    id: str
    name: str
    api_key: str
    max_concurrent_calls: int
    slots_in_use: int
    queue_length: int
    calling_allowed: bool
    webhook_url: str | None
    results: Literal["sent", "kept"]

    @classmethod
    def read(cls, state: dict[str, Any], api_key: str) -> Self:
        """Read the state of an organization as it is on the wire."""
        return cls(**by_field(state) | {"api_key": api_key})


@dataclass(frozen=True, slots=True)
class TriggeredRecord:
    """The `n`th triggered result, and the outcome of its POST (see `WebhookRecord`)."""

    n: int
    at: datetime
    call_id: str
    url: str
    response: int | str
    received: bool
    body: dict[str, Any]

    @classmethod
    def read(cls, row: dict[str, Any]) -> Self:
        """Read the answer as it is on the wire."""
        return cls(**by_field(row))


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
        return cls(**by_field(row))


class RemoteWebhooks(Sequence[WebhookRecord]):
    """Webhooks as they were when they were asked for; pages are read as they are needed."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client
        self._pages: dict[int, list[WebhookRecord]] = {}
        self._total = int(self._read(1)["total"])

    def __len__(self) -> int:
        return self._total

    @overload
    def __getitem__(self, place: int) -> WebhookRecord: ...
    @overload
    def __getitem__(self, place: slice) -> list[WebhookRecord]: ...
    def __getitem__(self, place: int | slice) -> WebhookRecord | list[WebhookRecord]:
        if isinstance(place, slice):
            return [self[row] for row in range(*place.indices(self._total))]
        row = range(self._total)[place]
        page = row // len(self._pages[1]) + 1  # the first page is full where there is a second
        if page not in self._pages:
            self._read(page)
        return self._pages[page][row % len(self._pages[1])]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr([*self])

    def _read(self, page: int) -> dict[str, Any]:
        shown: dict[str, Any] = self._client.ask("GET", f"{PREFIX}/webhooks?page={page}")
        self._pages[page] = [WebhookRecord.read(row) for row in shown["webhooks"]]
        return shown
