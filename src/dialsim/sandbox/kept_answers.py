"""Answers that are kept for as long as nothing can have changed them."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

Version = tuple[int, ...]
"""What an answer depends on, counted; an answer of another version is stale."""


class _Kept(NamedTuple):
    text: bytes
    version: Version
    until: int


class KeptAnswers:
    """The answers asked for last, by number, at most `most` of them.

    Time never goes back, so an answer that is right at one instant is right until something is
    written that it depends on, or until the instant (ms) at which it changes by itself.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[int, _Kept] = OrderedDict()

    def find(self, number: int, version: Version, at: int) -> bytes | None:
        """The answer of this number if it is still right at an instant."""
        kept = self._kept.get(number)
        if kept is None or kept.version != version or at >= kept.until:
            return None
        self._kept.move_to_end(number)
        return kept.text

    def keep(self, number: int, text: bytes, version: Version, until: int) -> None:
        """Keep an answer, and forget the one not asked for longest."""
        self._kept[number] = _Kept(text, version, until)
        self._kept.move_to_end(number)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
