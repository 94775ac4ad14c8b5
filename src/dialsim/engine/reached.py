"""Whom an organization's agents reached of late: what duplicate removal looks at (D3)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialsim.engine.world import CampaignBlock


class ReachedPeople:
    """When each agent last reached each phone number, over all campaigns and their histories.

    Nothing is kept where the organization's duplicate-call alert is off (`window` is None).
    """

    def __init__(self, window: int | None, campaigns: list[CampaignBlock]) -> None:
        """`window` in ms is how far back a request looks; histories are noted at once."""
        self._window = window
        self._last: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for block in campaigns:
            for recipient, past in block.people.history.items():
                if past.reached:
                    self.note(block, recipient, past.last_ended_at)

    def note(self, block: CampaignBlock, recipient: int, ended_at: int) -> None:
        """A call to this recipient ended COMPLETED."""
        if self._window is not None:
            last, tel = self._last[block.agent.name], block.people.tel(recipient)
            last[tel] = max(ended_at, last.get(tel, ended_at))

    def duplicates(self, block: CampaignBlock, now: int) -> tuple[int, ...]:
        """The recipients of a campaign whom its agent reached within the window before now."""
        if self._window is None:
            return ()
        last, since = self._last[block.agent.name], now - self._window
        return tuple(
            recipient
            for recipient, tel in enumerate(block.people.tels())
            if last.get(tel, since - 1) >= since
        )
