"""Delivery: what may come of a POST of the webhook, and how often it is made (section 6.2)."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import NDArray

TIMEOUT_MS = 10_000
WAITS_MS = (1_000, 2_000)
"""From a failure to the next POST (W2)."""

OK, ERROR = 200, 500
"""HTTP statuses of the simulated receiver (W5)."""

NOT_SENT, TIMED_OUT, REFUSED, BROKEN, UNDER_WAY = 0, -1, -2, -3, -4
"""What stands in the place of an HTTP status where a POST got none (see `WORDS`)."""

WORDS = {TIMED_OUT: "timeout", REFUSED: "refused", BROKEN: "broken"}
"""How failures without a status are written: no whole reply in time, no connection, or a
connection that ended before the reply was whole. What was not sent, or is under way, has none."""


@overload
def accepted(response: int) -> bool: ...
@overload
def accepted(response: NDArray[np.int16]) -> NDArray[np.bool_]: ...
def accepted(response: int | NDArray[np.int16]) -> bool | NDArray[np.bool_]:
    """Whether the receiver took the result, by the status of its answer: any 2xx (W2)."""
    return response // 100 == 2
