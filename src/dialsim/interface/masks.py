"""What is left of people's data once the retention policy has removed it (D1)."""

from __future__ import annotations

import re
from collections.abc import Mapping

MASKED_NAME = ""
"""A masked recipient's `customerName`, whether or not there was a name."""

_MASKED_TEL = re.compile(r"[0-9]{2}x+[0-9]{2}")
_KEPT_PREFIX = "metadata__"


def mask_tel(tel: str) -> str:
    """Mask a phone number: its first two digits, an `x` for each between, its last two (D1).

    Anything but digits is dropped. A number of up to four digits has none between and stays; a
    masked one stays as it is.
    """
    if _MASKED_TEL.fullmatch(tel):
        return tel
    digits = re.sub("[^0-9]", "", tel)
    hidden = len(digits) - 4
    return f"{digits[:2]}{'x' * hidden}{digits[-2:]}" if hidden > 0 else digits


def mask_agent_params(params: Mapping[str, object]) -> dict[str, object]:
    """Mask `agentParams`: every key stays, with null; `metadata__…` keys keep their values."""
    return {key: value if key.startswith(_KEPT_PREFIX) else None for key, value in params.items()}


def mask_call_result(result: Mapping[str, object]) -> dict[str, object]:
    """Mask a `callResult`: every key stays, at every depth; each value is null, lists too (D1).

    `metadata__…` keys keep their values, wherever they stand.
    """
    return {
        key: value if key.startswith(_KEPT_PREFIX) else _blank(value)
        for key, value in result.items()
    }


def _blank(value: object) -> object:
    return mask_call_result(value) if isinstance(value, Mapping) else None
