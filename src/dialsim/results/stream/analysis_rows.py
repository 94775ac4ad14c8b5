"""What analyses add to the log: a failed one spoils the call, a late one mends it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dialsim.engine.trace import ANALYSIS_FAILED, LATE_RESULT, CallRows
from dialsim.results.ledger import NEVER, Ledger
from dialsim.results.stream.analyses import Analyses


def with_analyses(ledger: Ledger, analyses: Analyses, until: int) -> Ledger:
    """The ledger with the rows of failed analyses and late results up to `until` (ms) (A4)."""
    failed = np.flatnonzero((analyses.failed_at != NEVER) & (analyses.failed_at <= until))
    if not len(failed):
        return ledger
    ready_at = analyses.ready_at[failed]
    late = failed[(ready_at != NEVER) & (ready_at <= until)]
    at = np.concatenate([analyses.failed_at[failed], analyses.ready_at[late]])
    kind = np.repeat(np.array([ANALYSIS_FAILED, LATE_RESULT], np.uint8), [len(failed), len(late)])
    call = np.concatenate([analyses.call[failed], analyses.call[late]])
    order = np.argsort(at, kind="stable")
    at, kind, call = at[order], kind[order], call[order]
    rows, place = ledger.rows, np.searchsorted(ledger.rows.at, at, side="right")
    changed_at, final_kind = ledger.changed_at.copy(), ledger.final_kind.copy()
    changed_at[call], final_kind[call] = at, kind  # numpy keeps the last of several
    return replace(
        ledger,
        rows=CallRows(
            at=np.insert(rows.at, place, at),
            recipient=np.insert(rows.recipient, place, ledger.recipient[call]),
            call=np.insert(rows.call, place, ledger.call[call]),
            kind=np.insert(rows.kind, place, kind),
        ),
        row_call=np.insert(ledger.row_call, place, call),
        changed_at=changed_at,
        final_kind=final_kind,
    )
