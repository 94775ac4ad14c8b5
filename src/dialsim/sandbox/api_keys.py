"""API keys: one per organization, in the form that the interface describes (section 5)."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256

PREFIX = "sim_"
LENGTH = 32


def derived_key(seed: int, organization: str) -> str:
    """The key of an organization that fixes none: its prefix, an underscore and 32 characters."""
    return PREFIX + sha256(f"API key of {organization}, seed {seed}".encode()).hexdigest()[:LENGTH]


def regenerated_key(seed: int, organization: str, first: str, times: int) -> str:
    """The key of an organization after it was regenerated some times; the prefix of the first."""
    text = f"API key of {organization}, seed {seed}, regenerated {times} times"
    return first[:-LENGTH] + sha256(text.encode()).hexdigest()[:LENGTH]


class KeyRing:
    """Who a key belongs to. Keys themselves are not kept, only what they hash to."""

    def __init__(self, keys: Iterable[str]) -> None:
        """`keys` are those of the organizations, in the order of the scenario."""
        self._digests = [_digest(key.encode()) for key in keys]

    def replace(self, organization: int, key: str) -> None:
        """Give an organization, by position, another key; its old one is unknown from now on."""
        self._digests[organization] = _digest(key.encode())

    def owner(self, key: bytes) -> int | None:
        """The position of the organization whose key it is; None for an unknown key.

        Takes as long for a key that is nearly right as for any other, and for the last
        organization as for the first.
        """
        digest, owner = _digest(key), None
        for position, known in enumerate(self._digests):
            if hmac.compare_digest(digest, known):
                owner = position
        return owner


def _digest(key: bytes) -> bytes:
    return sha256(key).digest()
