"""Ids: RFC 9562 UUIDs (version 4) derived from the seed and an address, many at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.chance import BLOCK, BLOCK_BITS, Purpose, generator, rows_by_pair

# slices of the hexadecimal digits between the dashes
_GROUPS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))


class FormerSeed(int):
    """Seed of a run that an earlier version of dialsim began: its ids have version 8.

    The version is part of the seed because ids depend on the seed and their address alone.
    """


def call_ids(
    seed: int,
    organization: int,
    campaign: int,
    recipients: NDArray[np.integer],
    calls: NDArray[np.integer],
) -> NDArray[np.bytes_]:
    """Return the ids of calls: call `calls[i]` (from 1) of recipient `recipients[i]` (from 0).

    The result is ASCII text of dtype S36, in the order given.
    """
    return _ids(seed, (organization, campaign), Purpose.CALL_ID, recipients, calls)


def session_ids(
    seed: int,
    organization: int,
    campaign: int,
    recipients: NDArray[np.integer],
    calls: NDArray[np.integer],
) -> NDArray[np.bytes_]:
    """Return the session ids of calls (F2), with the arguments of `call_ids`."""
    return _ids(seed, (organization, campaign), Purpose.SESSION_ID, recipients, calls)


def recipient_ids(
    seed: int, organization: int, campaign: int, recipients: NDArray[np.integer]
) -> NDArray[np.bytes_]:
    """Return the ids of recipients (from 0) as text of dtype S36."""
    nothing = np.zeros(len(recipients), dtype=np.int64)
    return _ids(seed, (organization, campaign), Purpose.RECIPIENT_ID, recipients, nothing)


def organization_id(seed: int, organization: int) -> str:
    """Return the id of an organization without a fixed one."""
    return _id(seed, (organization, 0), Purpose.ORGANIZATION_ID)


def campaign_id(seed: int, organization: int, campaign: int) -> str:
    """Return the id of a campaign without a fixed one."""
    return _id(seed, (organization, campaign), Purpose.CAMPAIGN_ID)


def agent_id(seed: int, organization: int, agent: int) -> str:
    """Return the id of an agent without a fixed one."""
    return _id(seed, (organization, agent), Purpose.AGENT_ID)


def _id(seed: int, position: tuple[int, int], purpose: Purpose) -> str:
    only = np.zeros(1, dtype=np.int64)
    return bytes(_ids(seed, position, purpose, only, only)[0]).decode()


def _ids(
    seed: int,
    position: tuple[int, int],
    purpose: Purpose,
    recipients: NDArray[np.integer],
    calls: NDArray[np.integer],
) -> NDArray[np.bytes_]:
    words = np.empty((len(recipients), 2), dtype=np.uint64)
    for call, block, rows in rows_by_pair(calls, recipients >> BLOCK_BITS):
        places = recipients[rows].astype(np.int64) & (BLOCK - 1)
        # Philox makes four words per step, which is two ids.
        start = int(places.min()) & ~1
        words_of = generator(seed, (0, *position, call, purpose, block))
        words_of.advance(start // 2)
        drawn = words_of.random_raw(2 * (int(places.max()) + 1 - start))
        words[rows] = drawn.reshape(-1, 2).take(places - start, axis=0)
    return _text(words, 8 if isinstance(seed, FormerSeed) else 4)


def _text(words: NDArray[np.uint64], version: int) -> NDArray[np.bytes_]:
    octets = words.astype(">u8").view(np.uint8).reshape(-1, 16)
    octets[:, 6] = octets[:, 6] & 0x0F | version << 4
    octets[:, 8] = octets[:, 8] & 0x3F | 0x80  # variant 10
    digits = np.frombuffer(octets.tobytes().hex().encode(), dtype=np.uint8).reshape(-1, 32)
    text = np.full((len(words), 36), ord("-"), dtype=np.uint8)
    for dashes, (first, end) in enumerate(_GROUPS):
        text[:, first + dashes : end + dashes] = digits[:, first:end]
    return text.view("S36").ravel()
