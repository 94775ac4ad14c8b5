"""Retention: what an organization's policy has removed of a call, as three flags (rules D)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.calls import NEVER
from dialsim.interface.payload import data_expired
from dialsim.scenario.organization import Retention

AUDIO, PERSONAL_DATA, OUTPUT = 1, 2, 4
ALL_EXPIRED = AUDIO | PERSONAL_DATA | OUTPUT  # C8: of every call of a deleted campaign
DATA_EXPIRED = tuple(
    data_expired(
        audio=bool(flags & AUDIO),
        personal_data=bool(flags & PERSONAL_DATA),
        output=bool(flags & OUTPUT),
    )
    for flags in range(ALL_EXPIRED + 1)
)
"""The three flags on the wire, by their bits."""


def expired(
    retention: Retention | None, ended_at: NDArray[np.int64], at: NDArray[np.int64] | int
) -> NDArray[np.int8]:
    """The three flags as bits, each set its span after the end of the call (D2); instants in ms.

    A call without an end (`NEVER`) keeps everything, and so does an organization without a policy.
    """
    flags, policy = np.zeros(len(ended_at), dtype=np.int8), retention or Retention()
    age = np.where(ended_at == NEVER, -1, at - np.maximum(ended_at, 0))
    spans = {AUDIO: policy.audio, PERSONAL_DATA: policy.personal_data, OUTPUT: policy.output}
    for flag, span in spans.items():
        if span is not None:
            flags[age >= span] |= flag
    return flags
