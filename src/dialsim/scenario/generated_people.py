"""Made-up people: Thai mobile numbers, names and segments from a seed and a campaign's position."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dialsim.scenario.thai_names import FIRST_NAMES, LAST_NAMES

PREFIXES = ("06", "08", "09")
"""What Thai mobile numbers begin with; eight digits follow."""

_DIGITS = 8
_NUMBERS = len(PREFIXES) * 10**_DIGITS
_NUMBER, _NAME, _SEGMENT = range(3)


class Generator:
    """Makes up the people of one campaign; person i is the same however many there are.

    Numbers are a bijection of the index (affine, modulo the 300 million mobile numbers), so that
    no two people of a campaign share one. Numbers and names are labels, alike in all replications
    of a seed; segments decide how people react, and are drawn anew in each.
    """

    __slots__ = ("_factor", "_key", "_offset", "_replication")

    def __init__(self, seed: int, replication: int, organization: int, campaign: int) -> None:
        self._key = (seed, organization, campaign)
        self._replication = replication
        draw = self._draws(_NUMBER)
        self._offset = int(draw.integers(_NUMBERS))
        self._factor = int(draw.integers(_NUMBERS // 10, _NUMBERS))
        while math.gcd(self._factor, _NUMBERS) != 1:
            self._factor += 1

    def _draws(self, purpose: int) -> np.random.Generator:
        anew = self._replication > 0 and purpose == _SEGMENT
        key = np.random.SeedSequence(
            (*self._key, purpose), spawn_key=(self._replication,) if anew else ()
        )
        return np.random.Generator(np.random.Philox(key))

    def tels(self, start: int, stop: int) -> list[str]:
        """The numbers of the people from index `start` up to `stop`, ten digits each."""
        index = np.arange(start, stop, dtype=np.int64)
        number = (index * self._factor + self._offset) % _NUMBERS
        digits = np.empty((len(index), 2 + _DIGITS), dtype=np.uint8)
        prefixes = np.array([[int(digit) for digit in prefix] for prefix in PREFIXES], np.uint8)
        digits[:, :2] = prefixes[number // 10**_DIGITS]
        for column in range(1 + _DIGITS, 1, -1):
            number, digits[:, column] = np.divmod(number, 10)
        texts: list[str] = (digits + ord("0")).view(f"S{2 + _DIGITS}").ravel().astype(str).tolist()
        return texts

    def tel(self, index: int) -> str:
        """The number of the person at an index."""
        prefix, digits = divmod((index * self._factor + self._offset) % _NUMBERS, 10**_DIGITS)
        return f"{PREFIXES[prefix]}{digits:0{_DIGITS}}"

    def names(self, start: int, stop: int) -> list[str]:
        """The names of the people from index `start` up to `stop`: a first and a last name."""
        names = len(FIRST_NAMES) * len(LAST_NAMES)
        chosen = (self._uniforms(_NAME, start, stop) * names).astype(np.int64)
        first, last = np.divmod(chosen, len(LAST_NAMES))
        pairs = zip(first.tolist(), last.tolist(), strict=True)
        return [f"{FIRST_NAMES[i]} {LAST_NAMES[j]}" for i, j in pairs]

    def segments(self, count: int, shares: Sequence[float]) -> NDArray[np.int16]:
        """The segments of the first `count` people, as positions in `shares`, drawn one by one."""
        ends = np.cumsum(shares)[:-1]
        uniforms = self._uniforms(_SEGMENT, 0, count)
        return np.searchsorted(ends, uniforms, side="right").astype(np.int16)

    def _uniforms(self, purpose: int, start: int, stop: int) -> NDArray[np.float64]:
        """One uniform per person, always the same for the same index."""
        draws = self._draws(purpose)
        assert isinstance(draws.bit_generator, np.random.Philox)
        # Philox gives four values per step of its counter
        draws.bit_generator.advance(start // 4)
        return draws.random(stop - start + start % 4)[start % 4 :]
