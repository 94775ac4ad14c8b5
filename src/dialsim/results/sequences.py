"""Status sequences: what each recipient went through, as text to count and compare."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from dialsim.engine.trace import CHANGES
from dialsim.results.columns import campaign_columns
from dialsim.results.ledger import CALL_STATUSES, CREATES, TO_STATUS, Ledger
from dialsim.results.person_state import listed
from dialsim.results.reading import Reading

_NEXT_CALL = len(CALL_STATUSES)
_CHANGES_STATUS = np.array([change.from_status != change.to_status for change in CHANGES])
_TEXTS = (*CALL_STATUSES, "|")


def sequences(reading: Reading) -> pd.Series[str]:
    """The statuses of each recipient's calls, one after the other, calls parted by `|`.

    Indexed by (organization, campaign, recipient). A row that only changes the phase is left out:
    `SCHEDULED QUEUED INITIATED NO_ANSWER | SCHEDULED QUEUED INITIATED COMPLETED`. Empty for a
    recipient without a call. Recipients who were removed as duplicates (D3) have no row.
    """
    ledgers = list(reading.ledgers.values())
    everyone = [np.arange(ledger.people, dtype=np.int32) for ledger in ledgers]
    index = pd.MultiIndex.from_arrays(
        [
            *campaign_columns(reading, [ledger.people for ledger in ledgers]).values(),
            np.concatenate([np.empty(0, dtype=np.int32), *everyone]),
        ],
        names=["organization", "campaign", "recipient"],
    )
    parts = pa.chunked_array([_texts(ledger) for ledger in ledgers], type=pa.large_string())
    kept = np.concatenate([np.empty(0, bool), *map(listed, reading.states.values())])
    series = pd.Series(pd.array(parts, dtype="str"), index=index, name="sequence")
    return series if kept.all() else series[kept]


def _texts(ledger: Ledger) -> pa.Array:
    """The sequences of one campaign; each different one is put into words once."""
    words, first = _codes(ledger)
    buffers = [None, pa.py_buffer(first), pa.py_buffer(words)]
    coded = pa.Array.from_buffers(pa.large_binary(), ledger.people, buffers).dictionary_encode()
    texts = [" ".join(_TEXTS[code] for code in word) for word in coded.dictionary.to_pylist()]
    return pa.array(texts, type=pa.large_string()).take(coded.indices)


def _codes(ledger: Ledger) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """A byte per status or `|`, person by person, and where each person's bytes begin."""
    order = ledger.rows_by_call()
    kinds = ledger.rows.kind[order]
    order, kinds = order[_CHANGES_STATUS[kinds]], kinds[_CHANGES_STATUS[kinds]]
    people = ledger.rows.recipient[order]
    parted = CREATES[kinds] & (ledger.rows.call[order] > 1)
    width = 1 + parted.astype(np.int64)
    place = np.cumsum(width) - 1
    codes = np.full(int(width.sum()), _NEXT_CALL, dtype=np.uint8)
    codes[place] = TO_STATUS[kinds]
    first = np.zeros(ledger.people + 1, dtype=np.int64)
    np.cumsum(np.bincount(people, weights=width, minlength=ledger.people), out=first[1:])
    return codes, first
