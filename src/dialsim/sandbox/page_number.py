"""Page numbers: lists come in pages of one size, asked for by number (interface, section 4.3)."""

from __future__ import annotations

import re
from typing import NamedTuple

from dialsim.interface.errors import Refused

PAGE_SIZE = 100

_PAGE = re.compile(r"0*([1-9][0-9]*)")
_MOST_DIGITS = 12  # a page with more is beyond any list, and may be beyond an integer of JSON
_BEYOND = 10**_MOST_DIGITS


class PageNumber(NamedTuple):
    """A page that was asked for: its number as digits, and counted from 0."""

    digits: str
    place: int

    @property
    def rows(self) -> slice:
        """The rows of a list that are on the page."""
        return slice(self.place * PAGE_SIZE, (self.place + 1) * PAGE_SIZE)


def read_page(text: str | None) -> PageNumber:
    """The page of a query, the first if it names none; 400 if it is no whole number from 1 on."""
    match = _PAGE.fullmatch("1" if text is None else text)
    if match is None:
        raise Refused(400, "VALIDATION_FAILED", ["page must be an integer of 1 or more"])
    digits = match[1]
    return PageNumber(digits, int(digits) - 1 if len(digits) <= _MOST_DIGITS else _BEYOND)


def count_pages(total: int) -> int:
    """How many pages a list has."""
    return -(-total // PAGE_SIZE)
