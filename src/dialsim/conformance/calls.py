"""Rules on calls as functions of columns: Q2, Q4, P3, P5, R1 to R3.

Columns have a row per call, sorted by person, and by time for each person. A status is an index
into `STATUSES`.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.status import CallStatus

STATUSES = tuple(CallStatus)

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.integer[Any]]

_UNREACHED = np.isin(STATUSES, [CallStatus.NO_ANSWER, CallStatus.BUSY, CallStatus.FAILED])


def retry_due(
    ended_at: Integers,
    retry_interval: Integers | int,
    status: Codes,  # noqa: ARG001 (an interval by status is a common wish)
) -> Integers:
    """Return the instant at which the call after each call is due (R2)."""
    return ended_at + retry_interval


def is_called_again(
    status: Codes, is_timeout: Mask, attempts: Integers, max_attempts: Integers | int
) -> Mask:
    """Return True for calls after which their person is called again (R1, R3).

    `is_timeout` marks calls that timed out in the queue; `attempts` counts those up to the call.
    """
    again: Mask = (_UNREACHED[status] | is_timeout) & (attempts < max_attempts)
    return again


def attempts_so_far(person: Codes, counted: Mask) -> Integers:
    """Return how many calls of a person count as attempts, up to each call (P5)."""
    total = np.concatenate([[0], np.cumsum(counted, dtype=np.int64)])
    own: Integers = total[1:] - total[np.searchsorted(person, person)]
    return own


def shows_the_same(person: Codes, number: NDArray[Any]) -> Mask:
    """Return True for dials that show the caller ID of their person's dial before (P3)."""
    again = (person[1:] == person[:-1]) & (number[1:] == number[:-1])
    return np.append(False, again)[: len(person)]


def is_between_releases(at: Integers, origin: Integers | int, interval: int) -> Mask:
    """Return True for releases that are not on a release instant (Q2)."""
    off: Mask = (at - origin) % interval != 0
    return off


def least_gap(calls_per_second: float | None) -> int:
    """Return the minimum time between two dials, in ms (Q4)."""
    # By way of the text: 0.1 as a float is slightly more than a tenth.
    return 0 if calls_per_second is None else ceil(1000 / Fraction(str(calls_per_second)))
