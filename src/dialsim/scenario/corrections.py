"""Corrections: what is meant by texts that people write and programs don't read."""

from __future__ import annotations

import re
import unicodedata

CURLY_QUOTES = "“”„‟‘’‚‛"

_NUMBER = re.compile(
    r"(?:฿|THB)?\s*([-+]?(?:[0-9]{1,3}(?:[, \u00a0\u202f][0-9]{3})+|[0-9]+)(?:\.[0-9]+)?)"
    r"\s*(?:฿|THB|บาท)?",
    re.IGNORECASE,
)
_BETWEEN_THOUSANDS = re.compile(r"[, \u00a0\u202f]")


def is_curly_quoted(text: str) -> bool:
    """Whether one pair of curly quotes stands around a text: surely meant as straight ones."""
    return (
        len(text) > 1
        and text[0] in CURLY_QUOTES
        and text[-1] in CURLY_QUOTES
        and text[0] not in text[1:-1]
    )


def in_ascii(text: str) -> str:
    """A text out of its quotes, with Thai and other digits as ASCII ones."""
    bare = text.strip().strip(CURLY_QUOTES + "\"'").strip()
    return "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in bare)


def number_meant(text: str) -> str | None:
    """The number that is meant by `4,356`, `฿4,356.50` or `๔๓๕๖`; None if that can't be told."""
    found = _NUMBER.fullmatch(in_ascii(text))
    return _BETWEEN_THOUSANDS.sub("", found[1]) if found else None
