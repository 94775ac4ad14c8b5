"""Recipients as JSON (interface, section 2.4), in columns of what their texts are made of.

Pages of a campaign's recipients, rendered once for as long as they stand (interface, 4.3).

Answers that are kept for as long as nothing can have changed them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.sandbox.http.answers import success
from dialsim.sandbox.tables import PAGE_SIZE, PageNumber, count_pages

if TYPE_CHECKING:
    from dialsim.sandbox.campaign_view import CampaignView


Column = list[bytes] | bytes
"""A text for each of some recipients, or one for all of them."""


@dataclass(frozen=True, slots=True)
class RecipientTexts:
    """Some recipients: columns of JSON, and when (ms) time alone changes each of them next.

    `identifier` has no quotes around it. `progress` is what `callAttempt` and `latestCallStatus`
    are, `origin` what `campaignId` and `createdAt` are, with their names.
    """

    identifier: list[bytes]
    customer_name: list[bytes]
    tel: list[bytes]
    progress: Column
    agent_params: Column
    origin: bytes
    updated_at: Column
    personal_data_masked: Column
    until: NDArray[np.int64]

    def pages(self, size: int) -> Iterator[list[bytes]]:
        """So many of them at a time, the last ones fewer, with commas between them, in parts.

        The parts are as few as can be, and to be joined at once: a text for each recipient on the
        way would take twice as long.
        """
        before, columns, after = self._parts()
        row = [part for text in before for part in (text, b"")]
        between = after + b"," + before[0]
        for start in range(0, len(self.identifier), size):
            stop = min(start + size, len(self.identifier))
            page = [between, *row[1:]] * (stop - start)
            for place, column in enumerate(columns):
                page[2 * place + 1 :: len(row)] = column[start:stop]
            page[0] = before[0]
            page.append(after)
            yield page

    def _parts(self) -> tuple[list[bytes], list[list[bytes]], bytes]:
        """What stands before each list of texts, these lists, and the end."""
        before, columns, text = list[bytes](), list[list[bytes]](), b""
        labelled: tuple[tuple[bytes, Column], ...] = (
            (b'{"id":"', self.identifier),
            (b'","customerName":', self.customer_name),
            (b',"tel":', self.tel),
            (b",", self.progress),
            (b',"agentParams":', self.agent_params),
            (b",", self.origin),
            (b',"updatedAt":', self.updated_at),
            (b',"personalDataMasked":', self.personal_data_masked),
        )
        for label, column in labelled:
            text += label
            if isinstance(column, bytes):
                text += column
            else:
                before.append(text)
                columns.append(column)
                text = b""
        return before, columns, text + b"}"


_MOST_PAGES = 2_048
_MOST_AHEAD = 64  # pages rendered at once: for each a tenth of the work of one alone


class RecipientPages:
    """The answers to requests for pages of one campaign's list; who asks has caught up."""

    def __init__(self, view: CampaignView) -> None:
        self._view = view
        self._kept = KeptAnswers(_MOST_PAGES)

    def answer(self, page: PageNumber, at: int) -> bytes:
        """A page in the success envelope."""
        version = self._version(page.place)
        if version is None:
            return self._envelope(page.digits.encode(), [])
        kept = self._kept.find(page.place, version, at)
        return self._render(page.place, self._count(page.place, at), at) if kept is None else kept

    def _version(self, place: int) -> Version | None:
        return self._view.list_version(place * PAGE_SIZE, (place + 1) * PAGE_SIZE)

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
        who = self._view.newest_first(first * PAGE_SIZE, (first + count) * PAGE_SIZE)
        texts = self._view.recipients(who, at)
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
        total = self._view.total_recipients
        head = b'{"totalRecipients":%d,"totalPages":%d,"page":%b,"recipients":['
        counts = total, count_pages(total), number
        return success("Get Campaign recipients successfully", head % counts, *rows, b"]}")


Version = tuple[int, ...]
"""What an answer depends on, counted; an answer of another version is stale."""

_SHARE_NEW = 8  # there may be one new answer to so many others
_REMEMBERED = 4  # times as many numbers as answers are known to have been asked for


class _Kept(NamedTuple):
    text: bytes
    version: Version
    until: int


class KeptAnswers:
    """Answers by number, `most` of them, those asked for last, and room for some new ones.

    Time never goes back, so an answer that is right at one instant is right until something is
    written that it depends on, or until the instant (ms) at which it changes by itself. One that
    was asked for only once is new: whoever reads a long list from end to end doesn't drive out what
    is asked for again and again (the policy 2Q: Johnson and Shasha, VLDB 1994).
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._new: OrderedDict[int, _Kept] = OrderedDict()
        self._often: OrderedDict[int, _Kept] = OrderedDict()
        self._asked: OrderedDict[int, bool] = OrderedDict()  # whether a number was twice, or more

    def __contains__(self, number: int) -> bool:
        """Whether there is an answer of this number, right or stale."""
        return number in self._often or number in self._new

    def find(self, number: int, version: Version, at: int) -> bytes | None:
        """The answer of a number that is asked for, if it is still right at an instant."""
        self._asked[number] = again = number in self._asked
        _renew(self._asked, number, self._most * _REMEMBERED)
        if again and number in self._new:
            self._often[number] = self._new.pop(number)
        if number in self._often:
            _renew(self._often, number, self._most)
        return self.text(number, version, at)

    def text(self, number: int, version: Version, at: int) -> bytes | None:
        """The answer of a number that nobody asks for, if it is still right at an instant."""
        kept = self._often.get(number) or self._new.get(number)
        if kept is None or kept.version != version or at >= kept.until:
            return None
        return kept.text

    def keep(self, number: int, text: bytes, version: Version, until: int) -> None:
        """Keep an answer, and forget the one of its kind that was not asked for longest."""
        if number in self._often or self._asked.get(number, False):
            place, most = self._often, self._most
        else:
            place, most = self._new, max(self._most // _SHARE_NEW, 1)
        place[number] = _Kept(text, version, until)
        _renew(place, number, most)


def _renew(order: OrderedDict[int, Any], number: int, most: int) -> None:
    """Put a number last, and drop the first if there are too many."""
    order.move_to_end(number)
    if len(order) > most:
        order.popitem(last=False)
