"""The changes of a campaign's calls as rows of the transitions table, any of them at a time."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dialsim.engine.trace import CHANGES, CallLog, CallRows
from dialsim.interface.instants import format_instant
from dialsim.interface.status import CallStatus, Phase
from dialsim.interface.wire import InstantText, WireModel
from dialsim.results.ledger import CALL_STATUSES, TO_STATUS
from dialsim.sandbox.call_book import CallBook
from dialsim.sandbox.call_results import AnalysisChanges, CallResults


class TransitionRow(WireModel):
    """A change of a call: the columns of the transitions table."""

    at: InstantText
    recipient: int = Field(description="Position in the campaign's list, from 0.")
    call: int = Field(description="1, 2, … of this recipient.")
    from_status: CallStatus | None
    to_status: CallStatus
    phase: Phase | None
    cause: str


class TransitionTable:
    """Changes in the order in which they happened; new ones come behind the others.

    What analyses change (A4) stands behind everything else of its instant.
    """

    def __init__(self, log: CallLog, book: CallBook, results: CallResults) -> None:
        self._log = log
        self._book = book
        self._results = results

    def count(self, at: int) -> int:
        """How many changes there are by now, which is the instant `at` (ms)."""
        return len(self._log) + len(self._results.changes(at).at)

    def rows(self, start: int, stop: int, at: int) -> CallRows:
        """Some of the changes there are by now; their number alone says how long it takes."""
        analyses = self._results.changes(at)

        def place(change: int) -> int:
            """Where a change by an analysis stands among all."""
            return self._log.count_until(int(analyses.at[change])) + change

        everything = range(len(analyses.at))
        first = bisect_left(everything, start, key=place)
        last = bisect_left(everything, stop, key=place)
        logged = self._log.rows(start - first, max(stop - last, start - first))
        chosen = AnalysisChanges(*(column[first:last] for column in analyses))
        before = [place(change) - change - (start - first) for change in everything[first:last]]
        return self._merged(logged, chosen, before)

    def find(
        self, at: int, status: CallStatus | None, recipients: NDArray[np.int64] | None
    ) -> CallRows:
        """The changes to a status, and of calls to some recipients; None: whichever."""
        rows = self.rows(0, self.count(at), at)
        chosen = np.ones(len(rows.at), dtype=bool)
        if status is not None:
            chosen &= TO_STATUS[rows.kind] == CALL_STATUSES.index(status)
        if recipients is not None:
            chosen &= np.isin(rows.recipient, recipients)
        return rows[chosen]

    def _merged(self, logged: CallRows, analyses: AnalysisChanges, before: list[int]) -> CallRows:
        """Rows of the log with changes by analyses, each put in before a row of the log."""
        if not before:
            return logged
        who = self._book.column("recipient", analyses.call)
        number = self._book.column("number", analyses.call)
        return CallRows(
            at=np.insert(logged.at, before, analyses.at),
            recipient=np.insert(logged.recipient, before, who),
            call=np.insert(logged.call, before, number),
            kind=np.insert(logged.kind, before, analyses.kind),
        )


def shown(rows: CallRows) -> list[TransitionRow]:
    """Changes as they are shown."""
    columns = (rows.at.tolist(), rows.recipient.tolist(), rows.call.tolist(), rows.kind.tolist())
    return [
        TransitionRow(
            at=format_instant(at),
            recipient=recipient,
            call=call,
            from_status=CHANGES[kind].from_status,
            to_status=CHANGES[kind].to_status,
            phase=CHANGES[kind].phase,
            cause=CHANGES[kind].cause,
        )
        for at, recipient, call, kind in zip(*columns, strict=True)
    ]
