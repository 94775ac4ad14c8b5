"""Columns as the JSON texts that payloads are put together from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialsim.results.ledger import NEVER

_DAY = 86_400_000
_DIGIT = np.uint8(ord("0"))


def instants(at: NDArray[np.int64]) -> list[bytes]:
    """Instants (ms) as quoted ISO 8601 texts such as `"2026-01-05T02:00:00.000Z"`; or `null`."""
    never = at == NEVER
    moments = np.where(never, 0, at)
    text = np.empty((len(at), 26), dtype=np.uint8)
    text[:] = np.frombuffer(b'"0000-00-00T00:00:00.000Z"', dtype=np.uint8)
    day, rest = np.divmod(moments, _DAY)
    days, of_day = np.unique(day, return_inverse=True)
    dates = np.datetime_as_string(days.astype("datetime64[D]")).astype("S10")
    text[:, 1:11] = dates.view(np.uint8).reshape(-1, 10)[of_day]
    minutes, milliseconds = np.divmod(rest, 60_000)
    _put(text, 12, 2, minutes // 60)
    _put(text, 15, 2, minutes % 60)
    _put(text, 18, 2, milliseconds // 1000)
    _put(text, 21, 3, milliseconds % 1000)
    texts: list[bytes] = text.view("S26").ravel().tolist()
    for row in np.flatnonzero(never):
        texts[row] = b"null"
    return texts


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
