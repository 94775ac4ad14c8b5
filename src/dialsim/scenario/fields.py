"""Base class of the models of a scenario file, and field types with exact errors.

Validators raise one of two errors, which `error_text` words: `wrong` is completed by the actual
value (`must be true or false, not "yes"`). `broken` is complete (`must not be empty`) and may name
a field below with `path`. Errors propose the likely meaning. Phone numbers follow Thai rules.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from dialsim.interface.model import UUID_PATTERN, WireModel, broken, is_uuid, wrong

# Columns of lists of people
PREFIX = "history."
HISTORY_COLUMNS = tuple(
    PREFIX + key for key in ("callAttempt", "latestCallStatus", "lastEndedAt", "lastCallerId")
)
PARAM = "agentParams."
COLUMNS = ("tel", "customerName", "segment", "script", "id")
ROUNDED_BY_SPREADSHEET = re.compile(r"[0-9][.,]?[0-9]*[eE]\+?[0-9]{1,2}")
"""Cell with a number whose last digits a spreadsheet has dropped."""

CURLY_QUOTES = "“”„‟‘’‚‛"

_NUMBER = re.compile(
    r"(?:฿|THB)?\s*([-+]?(?:[0-9]{1,3}(?:[, \u00a0\u202f][0-9]{3})+|[0-9]+)(?:\.[0-9]+)?)"
    r"\s*(?:฿|THB|บาท)?",
    re.IGNORECASE,
)
# In accounting: (500.00), and 500.00- in exports of SAP.
_NEGATIVE = re.compile(r"\(([^-+()]+)\)|([^-+()]+)-")
# \u00a0 and \u202f are no-break spaces, wide and narrow.
_BETWEEN_THOUSANDS = re.compile(r"[, \u00a0\u202f]")


def is_curly_quoted(text: str) -> bool:
    """Return True for a text in one pair of curly quotes, which are certainly meant as straight
    ones.
    """
    return (
        len(text) > 1
        and text[0] in CURLY_QUOTES
        and text[-1] in CURLY_QUOTES
        and text[0] not in text[1:-1]
    )


def in_ascii(text: str) -> str:
    """Return a text without quotes, with Thai and other digits as ASCII digits."""
    bare = text.strip().strip(CURLY_QUOTES + "\"'").strip()
    if bare.isascii():  # most texts: the loop over characters is slow
        return bare
    return "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in bare)


def number_meant(text: str) -> str | None:
    """Return the number meant by `4,356`, `฿4,356.50`, `(500)` or `๔๓๕๖`; None if unclear."""
    plain = in_ascii(text)
    owed = _NEGATIVE.fullmatch(plain)
    found = _NUMBER.fullmatch(f"-{owed[1] or owed[2]}" if owed else plain)
    return _BETWEEN_THOUSANDS.sub("", found[1]) if found else None


PLAUSIBLE_TEXT = (
    "Thai numbers that begin with 06, 08 or 09 have 10 digits, those with 02 to 05 or 07 have 9, "
    "and +66 may stand in place of the 0; foreign ones begin with + and the code of their country"
)

# Thai numbering plan (NBTC): mobile 0 + 9 digits, fixed 0 + 8 digits. Service numbers (191, 1669,
# 1800 xxx xxx) are left out, because they belong to no person. Foreign numbers: ITU-T E.164.
_MOBILE, _FIXED = r"[689][0-9]{8}", r"[23457][0-9]{7}"
_PLAUSIBLE = re.compile(rf"(?:0|\+66)(?:{_MOBILE}|{_FIXED})|\+(?!66)[1-9][0-9]{{6,14}}")
# Also invisible characters of copied numbers: zero-width spaces, direction marks, byte order marks.
_SEPARATORS = re.compile(r"\(0\)|[\s()\-\u2010-\u2015.'\u200b-\u200f\u202a-\u202e\u2060\ufeff]")


def is_plausible(tel: str) -> bool:
    """Return True for the length and prefix of a Thai number, or for a possible foreign number."""
    return _PLAUSIBLE.fullmatch(tel) is not None


def national(tel: str) -> str:
    """Return a Thai number in national form, with one leading 0; other numbers unchanged.

    `+66812345678`, `66812345678` and `812345678`, from a spreadsheet, become `0812345678`.
    """
    if tel.startswith(("+66", "0066")):  # 00 in place of +, as telephones abroad dial it
        return "0" + tel[tel.index("66") + 2 :].lstrip("0")
    if tel[0] == "0":
        return tel
    # The country code without its +, and 8 (fixed) or 9 digits (mobile).
    if tel.startswith("66") and len(tel) in (10, 11):
        return "0" + tel[2:]
    return "0" + tel if lacks_zero(tel) else tel


def lacks_zero(tel: str) -> bool:
    """Return True if a spreadsheet has probably dropped the leading 0."""
    return tel[0] not in "0+" and len(tel) in (8, 9)


def phone_meant(text: str) -> str | None:
    """Return the number meant by a spelling such as `081-234-5678`; None if unclear."""
    tel = _SEPARATORS.sub("", in_ascii(text))
    return tel if is_plausible(tel) else None


def kind_of_number(tel: str) -> str | None:
    """Return `mobile` or `fixed` for a Thai number, else `foreign`; None if not plausible."""
    if not is_plausible(tel):
        return None
    number = national(tel)
    if number[0] == "+":
        return "foreign"
    return "mobile" if len(number) == 10 else "fixed"


def phone_normalized(text: str) -> str | None:
    """Return the number in national form for any spelling; None if unclear.

    Unlike `phone_meant` it restores a leading 0 that a spreadsheet has dropped.
    """
    plain = in_ascii(text)
    decimal = _DECIMAL.fullmatch(plain)
    if decimal:
        # 812345678.0 is a number that a program read as one; 212345.67 is an amount.
        plain = decimal[1] if not decimal[2].strip("0") else ""
    tel = _SEPARATORS.sub("", plain)
    number = national(tel) if tel else tel
    return number if is_plausible(number) else None


_DECIMAL = re.compile(r"([1-9][0-9]*|0)\.([0-9]+)")
# No Thai number begins with this.
_MADE_UP = "0000"


def made_up_phone(number: int) -> str:
    """Return an impossible number, for a caller ID that is still to be rented."""
    return f"{_MADE_UP}{number:05}"


def is_made_up(tel: str) -> bool:
    """Return True for a number from `made_up_phone`."""
    return tel.startswith(_MADE_UP)


PHONE_PATTERN = r"^\+?[0-9]{1,20}$"
"""Pattern of a phone number, also for JSON Schema."""
PHONE_TEXT = "must be a phone number of at most 20 digits, with or without a + in front"


class Model(WireModel):
    """Block of a scenario file: frozen, camelCase keys, no unknown ones; null means left out."""

    @model_validator(mode="before")
    @classmethod
    def _null_means_left_out(cls, block: Any) -> Any:
        if isinstance(block, dict) and None in block.values():
            return {key: value for key, value in block.items() if value is not None}
        return block


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise wrong("must be text")
    if not value.strip():
        raise broken("must not be empty")
    return value


def _uuid(value: object) -> str:
    if not is_uuid(value):
        raise wrong("must be a UUID such as 7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10")
    return value


def _url(value: object) -> str:
    text = _text(value)
    try:
        parts = urlsplit(text)
        # Reading `port` also checks its range: it raises ValueError.
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    # urlsplit drops tabs and line breaks, so they are looked for in the text itself.
    if not sound or re.search(r"\s", text):
        raise wrong("must be a URL that begins with http:// or https://")
    return text


def _param(value: object) -> object:
    finite = not isinstance(value, float) or math.isfinite(value)
    if not isinstance(value, str | int | float) or not finite:
        raise wrong("must be text, a finite number, true or false")
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise wrong("must be true or false")
    return value


def _whole(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong("must be a whole number")
    return value


def number(value: object) -> float:
    """Validate a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong("must be a number")
    if not math.isfinite(value):
        raise wrong("must be a finite number")
    if abs(value) > 1e15:
        raise wrong("must be a number of sensible size, at most 1e15")
    return float(value)


def patterned(pattern: str, message: str) -> BeforeValidator:
    """Build a validator of texts that match a pattern; other texts fail with `message`."""
    form = re.compile(pattern)

    def check(value: object) -> str:
        text = _text(value)
        if not form.fullmatch(text):
            raise wrong(message)
        return text

    return BeforeValidator(check)


Text = Annotated[str, BeforeValidator(_text), Field(json_schema_extra={"minLength": 1})]
Phone = Annotated[
    str,
    patterned(PHONE_PATTERN, PHONE_TEXT),
    Field(json_schema_extra={"pattern": PHONE_PATTERN}),
]
Uuid = Annotated[str, BeforeValidator(_uuid), Field(json_schema_extra={"pattern": UUID_PATTERN})]
FixedId = Annotated[
    Uuid | None,
    Field(
        description="A fixed id (UUID). Left out: derived from the seed.",
        examples=["7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"],
    ),
]
Url = Annotated[str, BeforeValidator(_url), Field(json_schema_extra={"pattern": r"^https?://\S+$"})]
ParamValue = Annotated[str | int | float | bool, BeforeValidator(_param)]
"""Value in a recipient's `agentParams`."""
Switch = Annotated[bool, BeforeValidator(_switch)]
Whole = Annotated[int, BeforeValidator(_whole)]
Number = Annotated[float, BeforeValidator(number)]
Share = Annotated[Number, Field(ge=0, le=1)]
Amount = Annotated[Number, Field(ge=0)]
Limit = Annotated[Whole, Field(ge=0, le=1_000_000)]
"""Number of concurrent calls (Q1)."""


def sum_to_one(shares: Mapping[str, float]) -> Mapping[str, float]:
    """Validate that shares sum to 1 within a millionth."""
    total = math.fsum(shares.values())
    if abs(total - 1) > 1e-6:
        raise broken(f"must sum to 1, but sums to {total:.10g}")
    return shares


def _not_empty(items: Collection[Any]) -> Collection[Any]:
    if not items:
        raise broken("must not be empty")
    return items


Shares = Annotated[dict[Text, Share], AfterValidator(sum_to_one)]
"""Shares of a whole, by name; they sum to 1."""
NotEmpty = AfterValidator(_not_empty)
