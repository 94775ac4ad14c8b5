"""Slots in use: how many calls were under way, against how many could have been."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import DIALLED, CallRows, Trace
from dialsim.results.ledger import Ledger
from dialsim.results.spans import Spans, length, union
from dialsim.results.step_function import StepFunction


def counted(ledgers: Iterable[Ledger], gain: NDArray[np.int8]) -> StepFunction:
    """How many calls of these campaigns are in certain statuses, over time.

    `gain` says, by kind of change, how many calls enter (`SLOTS`, `WAITING`, `IN_QUEUE`).
    """
    return StepFunction.total(
        StepFunction.of_changes(ledger.rows.at, gain[ledger.rows.kind]) for ledger in ledgers
    )


def limit(trace: Trace, organization: int) -> StepFunction:
    """maxConcurrentCalls of an organization over time (Q1)."""
    rows = [row for row in trace.limits if row.organization == organization]
    at = np.array([row.at for row in rows], dtype=np.int64)
    limits = np.array([row.limit for row in rows], dtype=np.int64)
    return StepFunction.of_changes(at, np.diff(limits, prepend=0))


def paced(logs: Iterable[CallRows], gap: int) -> StepFunction:
    """1 for `gap` ms after each dial of an organization's campaigns, else 0 (Q4)."""
    none = np.empty(0, dtype=np.int64)
    dials = np.concatenate([none, *(rows.at[rows.kind == DIALLED] for rows in logs if gap)])
    at = np.concatenate([dials, dials + gap])
    order = np.argsort(at, kind="stable")
    return StepFunction.of_changes(at[order], np.where(order < len(dials), 1, -1))


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Slots in use by some calls, inside the open time of their campaigns.

    `open` is that time, `used_ms` and `capacity_ms` are slot-milliseconds used and allowed inside
    it, `busy` is the number of calls under way at any time.
    """

    open: Spans
    used_ms: int
    capacity_ms: int
    busy: StepFunction

    @classmethod
    def of(cls, busy: StepFunction, allowed: StepFunction, open_spans: Spans) -> Occupancy:
        """The use of one organization's slots, all of it or one campaign's."""
        return cls(
            open=open_spans,
            used_ms=busy.integral(open_spans),
            capacity_ms=allowed.integral(open_spans),
            busy=busy,
        )

    @classmethod
    def total(cls, parts: Iterable[Occupancy]) -> Occupancy:
        """That of several organizations together."""
        every = list(parts)
        return cls(
            open=union(part.open for part in every),
            used_ms=sum(part.used_ms for part in every),
            capacity_ms=sum(part.capacity_ms for part in every),
            busy=StepFunction.total(part.busy for part in every),
        )

    @property
    def mean(self) -> float | None:
        """Mean number of slots in use over the open time; None if there was none."""
        open_ms = length(self.open)
        return self.used_ms / open_ms if open_ms else None

    @property
    def share(self) -> float | None:
        """Slot time used, of the slot time allowed; None if nothing was allowed."""
        return self.used_ms / self.capacity_ms if self.capacity_ms else None
