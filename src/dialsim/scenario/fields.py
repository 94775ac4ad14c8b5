"""The base of the models of a scenario file, and fields with exact errors.

Validators raise one of two errors, and `error_text` makes the final text: `wrong` is completed by
what stands in the file (`must be true or false, not "yes"`), `broken` is complete (`must not be
empty`) and may name a field below with `path`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from dialsim.interface.model import UUID_PATTERN, WireModel, broken, is_uuid, wrong

PHONE_PATTERN = r"^\+?[0-9]{1,20}$"
"""A phone number, also for JSON Schema."""
PHONE_TEXT = "must be a phone number of at most 20 digits, with or without a + in front"


class Model(WireModel):
    """A block of a scenario file: frozen, camelCase keys, no unknown ones; null means left out."""

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
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
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


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong("must be a number")
    if not math.isfinite(value):
        raise wrong("must be a finite number")
    if abs(value) > 1e15:
        raise wrong("must be a number of sensible size, at most 1e15")
    return float(value)


def patterned(pattern: str, says: str) -> BeforeValidator:
    """The validator of a text that must match a pattern; `says` what it must be."""
    form = re.compile(pattern)

    def check(value: object) -> str:
        text = _text(value)
        if not form.fullmatch(text):
            raise wrong(says)
        return text

    return BeforeValidator(check)


Text = Annotated[str, BeforeValidator(_text), Field(json_schema_extra={"minLength": 1})]
Phone = Annotated[
    str,
    patterned(PHONE_PATTERN, PHONE_TEXT),
    Field(json_schema_extra={"pattern": PHONE_PATTERN}),
]
Uuid = Annotated[str, BeforeValidator(_uuid), Field(json_schema_extra={"pattern": UUID_PATTERN})]
Url = Annotated[str, BeforeValidator(_url), Field(json_schema_extra={"pattern": r"^https?://\S+$"})]
ParamValue = Annotated[str | int | float | bool, BeforeValidator(_param)]
"""A value in a recipient's `agentParams`."""
Switch = Annotated[bool, BeforeValidator(_switch)]
Whole = Annotated[int, BeforeValidator(_whole)]
Number = Annotated[float, BeforeValidator(_number)]
Share = Annotated[Number, Field(ge=0, le=1)]
Amount = Annotated[Number, Field(ge=0)]
Limit = Annotated[Whole, Field(ge=0, le=1_000_000)]
"""A number of concurrent calls (Q1)."""


def sum_to_one(shares: Mapping[str, float]) -> Mapping[str, float]:
    """The shares, if they sum to 1 within a millionth."""
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
