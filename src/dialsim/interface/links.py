"""Links to recordings and transcripts: signed, and good for an hour (section 6.4)."""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

VALID_SECONDS = 3_600

FileKind = Literal["recordings", "transcripts"]

_ENDINGS = {"recordings": ".wav", "transcripts": ".json"}
_URL_MARKS = "/:?#[]@!$&'()*+,;=%-._~"
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))


def links(
    public_url: str,
    kind: FileKind,
    call_ids: NDArray[np.bytes_],
    sent_at: NDArray[np.int64],
    seed: int,
) -> NDArray[np.bytes_]:
    """The links to files of calls (`call_ids`: S36) in results sent at these instants (ms).

    Whole URLs as ASCII text of one length. They name the second at which they expire, and a
    signature that depends on the file, that second and the seed: it protects nothing, but it is
    the same in every run, and differs where a real one would.
    """
    expires = sent_at // 1_000 + VALID_SECONDS
    signatures = _signatures(call_ids, expires, seed ^ len(kind))
    columns = [
        _constant(f"{quote(public_url.rstrip('/'), safe=_URL_MARKS)}/files/{kind}/", len(call_ids)),
        np.ascontiguousarray(call_ids).view(np.uint8).reshape(-1, 36),
        _constant(f"{_ENDINGS[kind]}?expires=", len(call_ids)),
        (expires[:, None] // 10 ** np.arange(9, -1, -1) % 10 + ord("0")).astype(np.uint8),
        _constant("&signature=", len(call_ids)),
        _HEX[(signatures[:, None] >> np.arange(60, -1, -4, dtype=np.uint64)) & np.uint64(15)],
    ]
    text = np.concatenate(columns, axis=1)
    return text.view(f"S{text.shape[1]}").ravel()


def signature(kind: FileKind, call_id: str, expires: int, seed: int) -> str:
    """The signature in links to a file of a call that expire at a second since 1970."""
    ids = np.array([call_id.encode()], dtype="S36")
    return f"{int(_signatures(ids, np.array([expires]), seed ^ len(kind))[0]):016x}"


def _constant(text: str, rows: int) -> NDArray[np.uint8]:
    return np.broadcast_to(np.frombuffer(text.encode(), dtype=np.uint8), (rows, len(text.encode())))


def _signatures(
    call_ids: NDArray[np.bytes_], expires: NDArray[np.int64], salt: int
) -> NDArray[np.uint64]:
    """64 bits per link, by the finalizer of SplitMix64 (Steele, Lea and Flood 2014)."""
    words = np.ascontiguousarray(call_ids).view(np.uint32).reshape(-1, 9).astype(np.uint64)
    signature = expires.astype(np.uint64) * _STEP + np.uint64(salt % 2**64)
    for column in words.T:
        signature = (signature ^ column) + _STEP
        for shift, factor in _MIX:
            signature = (signature ^ (signature >> np.uint64(shift))) * factor
        signature ^= signature >> np.uint64(31)
    return signature
