"""Campaigns and webhooks as the control plane lists them, for Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from dialsim.errors import DialsimError
from dialsim.sandbox.access import PREFIX
from dialsim.sandbox.control.campaigns import CampaignState
from dialsim.sandbox.tables import WebhookRow

if TYPE_CHECKING:
    from dialsim.sandbox.client.session import ControlClient


def find(campaigns: Sequence[CampaignState], name: str) -> CampaignState:
    """The campaign of a name or full name; raises DialsimError unless it is exactly one."""
    found = [one for one in campaigns if one.full_name == name]
    found = found or [one for one in campaigns if one.name == name]
    if len(found) == 1:
        return found[0]
    known = ", ".join(one.full_name for one in found or campaigns)
    if found:
        raise DialsimError(f"more than one campaign {name!r}; say which: {known}")
    raise DialsimError(f"no campaign {name!r}; there are: {known}")


class RemoteWebhooks(Sequence[WebhookRow]):
    """Webhooks as they were when they were asked for; pages are read as they are needed."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client
        self._pages: dict[int, list[WebhookRow]] = {}
        self._total = int(self._read(1)["total"])

    def __len__(self) -> int:
        return self._total

    @overload
    def __getitem__(self, place: int) -> WebhookRow: ...
    @overload
    def __getitem__(self, place: slice) -> list[WebhookRow]: ...
    def __getitem__(self, place: int | slice) -> WebhookRow | list[WebhookRow]:
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
        self._pages[page] = [WebhookRow.model_validate(row) for row in shown["webhooks"]]
        return shown
