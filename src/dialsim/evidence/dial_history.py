"""How often numbers had dialled lately, from the dials of a log: n of `byCallerIdUse`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FAR = 800.0
"""The exponential function of minus this is 0: what is so far apart does not count."""


class DialHistory:
    """All dials of a log: the number that each showed, and when.

    Numbers are the organizations' own: the same one of two organizations wears for each by itself.
    """

    def __init__(self, number: NDArray[np.int64], at: NDArray[np.int64]) -> None:
        """`number` is a code from 0, `at` in ms; dials of one instant count in their order."""
        self._order = np.lexsort((at, number))
        self._number = number[self._order]
        self._at = (at[self._order] - (at.min() if len(at) else 0)).astype(np.float64)

    def __len__(self) -> int:
        return len(self._order)

    def uses(self, recovery: float) -> NDArray[np.float64]:
        """The count of earlier dials of each dial's number, fading by exp(−age ÷ recovery)."""
        if not len(self):
            return np.empty(0)
        # One sum over all numbers: each number's dials come so long after those of the one before
        # that nothing of these is left
        ages = self._at / recovery
        ages += self._number * (ages.max() + _FAR)
        sums = np.logaddexp.accumulate(ages)
        found = np.zeros(len(self))
        found[self._order[1:]] = np.exp(sums[:-1] - ages[1:])
        return found
