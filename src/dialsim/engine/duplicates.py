"""Whom an organization's agents reached of late: what duplicate removal looks at (D3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialsim.engine.world import CampaignBlock


class ReachedPeople:
    """When each recipient was reached, in all of an organization's campaigns and their histories.

    Nothing is kept where the organization's duplicate-call alert is off (`window` is None).
    """

    def __init__(self, window: int | None) -> None:
        """`window` in ms is how far back a request looks."""
        self._window = window
        self._campaigns: list[CampaignBlock] = []
        self._ended_at: list[dict[int, int]] = []

    def add(self, block: CampaignBlock) -> None:
        """Take in the next campaign of the organization, and whom its history says was reached."""
        self._campaigns.append(block)
        self._ended_at.append({})
        for recipient, past in block.people.history.items():
            if past.reached:
                self.note(block, recipient, past.last_ended_at)

    def remove_last(self) -> None:
        """Forget the campaign that was added last."""
        self._campaigns.pop()
        self._ended_at.pop()

    def note(self, block: CampaignBlock, recipient: int, ended_at: int) -> None:
        """A call to this recipient ended COMPLETED."""
        if self._window is not None:
            self._ended_at[block.position][recipient] = ended_at

    def duplicates(self, block: CampaignBlock, now: int) -> tuple[int, ...]:
        """The recipients of a campaign whom its agent reached within the window before now."""
        if self._window is None:
            return ()
        reached = set(self._reached_since(block.agent.name, now - self._window))
        tels = enumerate(block.people.tels()) if reached else ()
        return tuple(recipient for recipient, tel in tels if tel in reached)

    def _reached_since(self, agent: str, since: int) -> Iterator[str]:
        """The phone numbers that an agent reached at an instant or later."""
        for block, ended_at in zip(self._campaigns, self._ended_at, strict=True):
            if block.agent.name == agent and ended_at:
                tels = block.people.tels()
                yield from (tels[who] for who, ended in ended_at.items() if ended >= since)
