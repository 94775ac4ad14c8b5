"""Pages of a campaign's recipients, rendered once for as long as they stand (interface, 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dialsim.sandbox.envelopes import success
from dialsim.sandbox.kept_answers import KeptAnswers, Version
from dialsim.sandbox.page_number import PAGE_SIZE, PageNumber, count_pages

if TYPE_CHECKING:
    from dialsim.sandbox.campaign_desk import CampaignDesk

_MOST_PAGES = 2_048
_MOST_AHEAD = 64  # pages rendered at once: for each a tenth of the work of one alone


class RecipientPages:
    """The answers to requests for pages of one campaign's list; who asks has caught up."""

    def __init__(self, desk: CampaignDesk) -> None:
        self._desk = desk
        self._kept = KeptAnswers(_MOST_PAGES)

    def answer(self, page: PageNumber, at: int) -> bytes:
        """A page in the success envelope."""
        version = self._version(page.place)
        if version is None:
            return self._envelope(page.digits.encode(), [])
        kept = self._kept.find(page.place, version, at)
        return self._render(page.place, self._count(page.place, at), at) if kept is None else kept

    def _version(self, place: int) -> Version | None:
        return self._desk.list_version(place * PAGE_SIZE, (place + 1) * PAGE_SIZE)

    def _count(self, place: int, at: int) -> int:
        """How many pages to render from one on, up to known ones: the more were read before it.

        Whoever reads on has them doubled, also over several connections at once.
        """
        read = sum(before in self._kept for before in range(place - _MOST_AHEAD, place))
        return next((n for n in range(1, read) if self._stands(place + n, at)), max(read, 1))

    def _stands(self, place: int, at: int) -> bool:
        """Whether a page was rendered and is still right."""
        if place not in self._kept:
            return False
        version = self._version(place)
        return version is not None and self._kept.text(place, version, at) is not None

    def _render(self, first: int, count: int, at: int) -> bytes:
        """Render some pages and keep them; the first of them."""
        who = self._desk.newest_first(first * PAGE_SIZE, (first + count) * PAGE_SIZE)
        texts = self._desk.recipients(who, at)
        until = np.minimum.reduceat(texts.until, range(0, len(who), PAGE_SIZE)).tolist()
        pages = [
            self._envelope(b"%d" % number, rows)
            for number, rows in enumerate(texts.pages(PAGE_SIZE), first + 1)
        ]
        for place, page in enumerate(pages, first):
            version = self._version(place)
            assert version is not None  # it has recipients
            self._kept.keep(place, page, version, until[place - first])
        return pages[0]

    def _envelope(self, number: bytes, rows: list[bytes]) -> bytes:
        total = self._desk.total_recipients
        head = b'{"totalRecipients":%d,"totalPages":%d,"page":%b,"recipients":['
        counts = total, count_pages(total), number
        return success("Get Campaign recipients successfully", head % counts, *rows, b"]}")
