"""The transitions table: one row per change of a call, in the order in which they happened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray

from dialsim.engine.trace import CHANGES, CallRows
from dialsim.interface.status import Phase
from dialsim.results.columns import campaign_columns, instants, names
from dialsim.results.ledger import CALL_STATUSES, TO_STATUS, Ledger
from dialsim.results.reading import Reading

PHASES = tuple(Phase)
CAUSES = tuple(dict.fromkeys(change.cause for change in CHANGES))

_FROM_STATUS = np.array(
    [CALL_STATUSES.index(c.from_status) if c.from_status else -1 for c in CHANGES], dtype=np.int8
)
_PHASE = np.array([PHASES.index(c.phase) if c.phase else -1 for c in CHANGES], dtype=np.int8)
_CAUSE = np.array([CAUSES.index(change.cause) for change in CHANGES], dtype=np.int8)


def transitions_table(reading: Reading) -> pd.DataFrame:
    """One row per change, by (at, organization, campaign, recipient, call, occurrence) (T4).

    `phase` is the one that the change leads to, null where that ends or precedes the call;
    `from_status` is null for a call's creation.
    """
    parts = [occurrence_order(ledger) for ledger in reading.ledgers.values()]
    at = _joined(np.int64, [part.at for part in parts])
    merged = np.argsort(at, kind="stable") if len(parts) > 1 else slice(None)
    kind = _joined(np.uint8, [part.kind for part in parts])[merged]
    campaigns = campaign_columns(reading, [len(part.at) for part in parts])
    return pd.DataFrame(
        {
            "at": instants(at[merged]),
            **{name: column[merged] for name, column in campaigns.items()},
            "recipient": _joined(np.int32, [part.recipient for part in parts])[merged],
            "call": _joined(np.int32, [part.call for part in parts])[merged],
            "from_status": names(_FROM_STATUS[kind], CALL_STATUSES),
            "to_status": names(TO_STATUS[kind], CALL_STATUSES),
            "phase": names(_PHASE[kind], PHASES),
            "cause": names(_CAUSE[kind], CAUSES),
        },
        copy=False,
    )


def occurrence_order(ledger: Ledger) -> CallRows:
    """The log with the rows of one instant by (recipient, call, occurrence) (T4).

    Only instants whose rows are not in that order yet are sorted.
    """
    rows, calls = ledger.rows, ledger.row_call
    same = rows.at[1:] == rows.at[:-1]
    wrong = np.flatnonzero(same & (calls[1:] < calls[:-1]))
    if not len(wrong):
        return rows
    run = np.cumsum(np.append(False, ~same))
    disordered = np.zeros(int(run[-1]) + 1, dtype=bool)
    disordered[run[wrong]] = True
    places = np.flatnonzero(disordered[run])
    order = np.arange(len(calls))
    order[places] = places[np.lexsort((calls[places], run[places]))]
    return CallRows(
        at=rows.at, recipient=rows.recipient[order], call=rows.call[order], kind=rows.kind[order]
    )


def _joined(dtype: DTypeLike, parts: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *parts])
