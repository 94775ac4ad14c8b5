"""Columns as the JSON texts that payloads are put together from."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from dialsim.results.ledger import NEVER

_DAY, _MINUTE = 86_400_000, 60_000
_INSTANT = np.dtype(
    [
        ("open", "S1"),
        ("date", "S10"),
        ("at", "S1"),
        ("minute", "S5"),
        ("colon", "S1"),
        ("second", "S6"),
        ("close", "S2"),
    ]
)
_DIGIT = np.uint8(ord("0"))


def instants(at: NDArray[np.int64]) -> list[bytes]:
    """Instants (ms) as quoted ISO 8601 texts such as `"2026-01-05T02:00:00.000Z"`; or `null`."""
    never = at == NEVER
    moments = np.where(never, 0, at)
    day = moments // _DAY
    minute, millisecond = np.divmod(moments - day * _DAY, _MINUTE)
    days, of_day = np.unique(day, return_inverse=True)
    dates = np.datetime_as_string(days.astype("datetime64[D]")).astype("S10")
    minutes, seconds = _times()
    text = np.empty(len(at), dtype=_INSTANT)
    text["open"], text["at"], text["colon"], text["close"] = b'"', b"T", b":", b'Z"'
    text["date"] = dates[of_day]
    text["minute"] = minutes[minute]
    text["second"] = seconds[millisecond]
    texts: list[bytes] = text.view(f"S{_INSTANT.itemsize}").tolist()
    for row in np.flatnonzero(never):
        texts[row] = b"null"
    return texts


@cache
def _times() -> tuple[NDArray[np.bytes_], NDArray[np.bytes_]]:
    """Each minute of a day as `00:00`, and each millisecond of a minute as `00.000`."""
    minute, millisecond = np.arange(_DAY // _MINUTE), np.arange(_MINUTE)
    minutes = np.full((len(minute), 5), ord(":"), dtype=np.uint8)
    _put(minutes, 0, 2, minute // 60)
    _put(minutes, 3, 2, minute % 60)
    seconds = np.full((len(millisecond), 6), ord("."), dtype=np.uint8)
    _put(seconds, 0, 2, millisecond // 1000)
    _put(seconds, 3, 3, millisecond % 1000)
    return minutes.view("S5").ravel(), seconds.view("S6").ravel()


def durations(ms: NDArray[np.int64]) -> list[bytes]:
    """Durations (ms) as quoted seconds with three decimals (F1); negative ones as `null`."""
    return [b'"%d.%03d"' % divmod(span, 1000) if span >= 0 else b"null" for span in ms.tolist()]


def quoted(ascii_text: NDArray[np.bytes_]) -> list[bytes]:
    """ASCII texts of one length that need no escapes, as JSON strings."""
    width = ascii_text.dtype.itemsize
    text = np.full((len(ascii_text), width + 2), ord('"'), dtype=np.uint8)
    text[:, 1:-1] = np.ascontiguousarray(ascii_text).view(np.uint8).reshape(-1, width)
    texts: list[bytes] = text.view(f"S{width + 2}").ravel().tolist()
    return texts


def _put(text: NDArray[np.uint8], place: int, digits: int, numbers: NDArray[np.int64]) -> None:
    """Write whole numbers with leading zeros from a column on."""
    for digit in range(digits):
        power = 10 ** (digits - 1 - digit)
        text[:, place + digit] = (numbers // power % 10).astype(np.uint8) + _DIGIT
