"""Phone numbers: which of them can be Thai or foreign ones, and how each is written in Thailand."""

from __future__ import annotations

import re

from dialsim.scenario.corrections import in_ascii

PLAUSIBLE_TEXT = (
    "Thai numbers that begin with 06, 08 or 09 have 10 digits, those with 02 to 05 or 07 have 9, "
    "and +66 may stand in place of the 0; foreign ones begin with + and the code of their country"
)

# Thai numbering plan (NBTC): mobile 0 + 9 digits, fixed 0 + 8 digits. Numbers of services (191,
# 1669, 1800 xxx xxx) are left out: nobody answers them for themselves. Foreign ones: ITU-T E.164.
_MOBILE, _FIXED = r"[689][0-9]{8}", r"[23457][0-9]{7}"
_PLAUSIBLE = re.compile(rf"(?:0|\+66)(?:{_MOBILE}|{_FIXED})|\+(?!66)[1-9][0-9]{{6,14}}")
_SEPARATORS = re.compile(r"\(0\)|[\s()\-\u2010-\u2015.'\u200b-\u200f\u202a-\u202e\u2060\ufeff]")


def is_plausible(tel: str) -> bool:
    """Whether a number has the length and the prefix of a Thai one, or may be a foreign one."""
    return _PLAUSIBLE.fullmatch(tel) is not None


def national(tel: str) -> str:
    """A Thai number as it is dialled in Thailand, with one 0 in front; others as they are.

    `+66812345678`, `66812345678` and, where a spreadsheet has been, `812345678` are `0812345678`.
    """
    if tel[0] == "0":
        return tel
    if tel.startswith("+66"):
        return "0" + tel[3:].lstrip("0")
    if tel.startswith("66") and len(tel) in (10, 11):
        return "0" + tel[2:]
    return "0" + tel if lacks_zero(tel) else tel


def lacks_zero(tel: str) -> bool:
    """Whether a number looks as if a spreadsheet had taken the 0 away in front of it."""
    return tel[0] not in "0+" and len(tel) in (8, 9)


def phone_meant(text: str) -> str | None:
    """The number that is meant by `081-234-5678` and the like; None if that can't be told."""
    tel = _SEPARATORS.sub("", in_ascii(text))
    return tel if is_plausible(tel) else None
