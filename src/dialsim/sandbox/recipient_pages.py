"""Pages of a campaign's recipients, rendered once for as long as they stand (interface, 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dialsim.sandbox.kept_answers import KeptAnswers
from dialsim.sandbox.page_number import PAGE_SIZE

if TYPE_CHECKING:
    from dialsim.sandbox.campaign_desk import CampaignDesk

_MOST_PAGES = 2_048
_AHEAD = 8  # pages rendered at once for who reads one after the other: a fifth of the work


class RecipientPages:
    """The pages of one campaign's list; who has caught up with the log asks."""

    def __init__(self, desk: CampaignDesk) -> None:
        self._desk = desk
        self._kept = KeptAnswers(_MOST_PAGES)
        self._asked_last = -1

    def page(self, number: int, at: int) -> bytes:
        """The recipients of a page (counted from 0) as JSON, without the brackets around them."""
        who = self._desk.newest_first(number * PAGE_SIZE, (number + 1) * PAGE_SIZE)
        if not len(who):
            return b""
        text = self._kept.find(number, self._desk.version(who), at)
        if text is None:
            ahead = _AHEAD if 0 < number - self._asked_last <= _AHEAD else 1
            text = self._render(number, ahead, at)
        self._asked_last = number
        return text

    def _render(self, first: int, count: int, at: int) -> bytes:
        """Render some pages and keep them; the first of them."""
        desk = self._desk
        who = desk.newest_first(first * PAGE_SIZE, (first + count) * PAGE_SIZE)
        rows, until = desk.recipients(who, at), desk.stand_until(who, at)
        starts = range(0, len(who), PAGE_SIZE)
        ends = np.minimum.reduceat(until, starts).tolist()
        for place, start in enumerate(starts):
            stop = start + PAGE_SIZE
            text = b",".join(rows[start:stop])
            self._kept.keep(first + place, text, desk.version(who[start:stop]), ends[place])
        return b",".join(rows[:PAGE_SIZE])
