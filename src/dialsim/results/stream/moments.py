"""Moments: instants told apart by the commands from outside between their happenings (T4).

A command given from outside finds all work of its instant done, POSTs included, and what it brings
about comes after that. The moment of a happening is its instant (ms) plus its turn, which is how
many commands had been given by then; so moments order a run (see `Trace.turn`). In a run that
nobody steers they are the instants.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import ANALYSIS_FAILED, LATE_RESULT, Trace
from dialsim.results.ledger import Ledger


def moments(
    trace: Trace, at: NDArray[np.int64], turn: NDArray[np.int32] | int = 0
) -> NDArray[np.int64]:
    """The moments at which what came to be in some turns happens at instants from then on.

    It happens with the first work on that instant, or in the very turn in which it came to be.
    """
    if not trace.turn:
        return at
    begun = np.searchsorted(np.array(trace.turns, dtype=np.int64), at, side="left")
    summed: NDArray[np.int64] = at + np.maximum(begun, turn)
    return summed


def row_moments(trace: Trace, ledger: Ledger) -> NDArray[np.int64]:
    """The moment of each row of a ledger, those that analyses added included."""
    if not trace.turn:
        return ledger.rows.at
    log = trace.calls[ledger.organization][ledger.campaign]
    written = ~np.isin(ledger.rows.kind, (ANALYSIS_FAILED, LATE_RESULT))
    moment = moments(trace, ledger.rows.at)
    turn = log.turns(int(np.count_nonzero(written)), trace.turn)
    moment[written] = ledger.rows.at[written] + turn
    return moment


def change_moments(trace: Trace, ledger: Ledger) -> NDArray[np.int64]:
    """The moment of each call's last change."""
    if not trace.turn:
        return ledger.changed_at
    moment = np.zeros(len(ledger.call), dtype=np.int64)
    moment[ledger.row_call] = row_moments(trace, ledger)  # numpy keeps the last of several
    return moment
