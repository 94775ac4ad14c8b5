"""Tallies: one campaign's countable facts, which add up to those of an organization or a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import CHANGES, DIALLED
from dialsim.engine.windows import DAY, THAI_OFFSET
from dialsim.interface.status import CallStatus
from dialsim.results.cost import billed
from dialsim.results.ledger import NEVER, TIMES_OUT, WITHDRAWS, Ledger
from dialsim.results.person_state import PERSON_STATES, PeopleCount, PersonState, listed
from dialsim.results.step_function import distinct
from dialsim.scenario.service import Costs


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of a campaign or of several.

    `by_kind[k]` counts the calls whose last change is `CHANGES[k]`; `reached[k]` the people reached
    by attempt k + 1 and no earlier, histories included; `waits_ms` has each wait from a release to
    the dial or queue timeout that ended it; `days` are the Thai dates, as days since 1970, with a
    dial.
    """

    people: PeopleCount
    by_kind: NDArray[np.int64]
    dials: int
    withdrawn: int
    reached: NDArray[np.int64]
    waits_ms: NDArray[np.int64]
    days: NDArray[np.int64]
    talk_ms: int
    charged_dials: int
    charged_increments: int

    def ended(self, status: str | None = None) -> int:
        """How many calls were dialled and ended, in that status or in any (P2)."""
        return self._count(
            change.cause == "ended" and status in (None, change.to_status) for change in CHANGES
        )

    def dropped(self, *causes: str) -> int:
        """How many calls one of these causes ended."""
        return self._count(change.cause in causes for change in CHANGES)

    def _count(self, chosen: Iterable[bool]) -> int:
        return int(self.by_kind[[*chosen]].sum())


def take_tally(ledger: Ledger, states: NDArray[np.int8], costs: Costs | None) -> Tally:
    """Count one campaign; `states` are those of its recipients."""
    kinds = ledger.rows.kind
    dialled = kinds == DIALLED
    charged, increments = billed(ledger, costs.billing_increment if costs else 1)
    return Tally(
        people=PeopleCount.of(states),
        by_kind=np.bincount(ledger.last_kind, minlength=len(CHANGES)),
        dials=int(np.count_nonzero(dialled)),
        withdrawn=int(np.count_nonzero(WITHDRAWS[kinds])),
        reached=reached_by_attempt(ledger, states),
        waits_ms=queue_waits(ledger)[1],
        days=distinct((ledger.rows.at[dialled] + THAI_OFFSET) // DAY),
        talk_ms=int(ledger.talk_ms.sum()),
        charged_dials=int(np.count_nonzero(charged)),
        charged_increments=int(increments.sum()),
    )


def reached_by_attempt(ledger: Ledger, states: NDArray[np.int8]) -> NDArray[np.int64]:
    """How many people were reached by attempt 1, by attempt 2, …, up to the last one made."""
    on_list = listed(states)
    here = ledger.attempt[ledger.started_at != NEVER]
    before = ledger.past_attempts[ledger.past_reached & on_list]
    made = max(
        int(ledger.attempt.max(initial=0)), int(ledger.past_attempts[on_list].max(initial=0))
    )
    return np.bincount(np.concatenate([here, before]), minlength=made + 1)[1:]


def attempts_of_exhausted(ledger: Ledger, states: NDArray[np.int8]) -> dict[CallStatus, int]:
    """The attempts, in this run, of the people who ran out of them, by how they ended."""
    exhausted = states[ledger.recipient] == PERSON_STATES.index(PersonState.EXHAUSTED)
    count = np.bincount(ledger.last_kind[exhausted & ledger.counted], minlength=len(CHANGES))
    return {CHANGES[kind].to_status: int(count[kind]) for kind in np.flatnonzero(count)}


def add_up(tallies: Sequence[Tally]) -> Tally:
    """The tally of several campaigns together."""
    none = np.empty(0, dtype=np.int64)
    reached = np.zeros(max((len(tally.reached) for tally in tallies), default=0), dtype=np.int64)
    for tally in tallies:
        reached[: len(tally.reached)] += tally.reached
    return Tally(
        people=PeopleCount.total(tally.people for tally in tallies),
        by_kind=np.sum(
            [tally.by_kind for tally in tallies] or [np.zeros(len(CHANGES), int)], axis=0
        ),
        dials=sum(tally.dials for tally in tallies),
        withdrawn=sum(tally.withdrawn for tally in tallies),
        reached=reached,
        waits_ms=np.concatenate([none, *(tally.waits_ms for tally in tallies)]),
        days=distinct(np.sort(np.concatenate([none, *(tally.days for tally in tallies)]))),
        talk_ms=sum(tally.talk_ms for tally in tallies),
        charged_dials=sum(tally.charged_dials for tally in tallies),
        charged_increments=sum(tally.charged_increments for tally in tallies),
    )


def queue_waits(ledger: Ledger) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each wait in the queue that a dial or a queue timeout ended: when it did, and its ms."""
    order = ledger.rows_by_call()
    kinds, at = ledger.rows.kind[order], ledger.rows.at[order]
    left = np.flatnonzero((kinds == DIALLED) | TIMES_OUT[kinds])
    return at[left], at[left] - at[left - 1]  # a queued call's row before is its release
