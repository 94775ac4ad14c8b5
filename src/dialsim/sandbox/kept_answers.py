"""Answers that are kept for as long as nothing can have changed them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

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
