"""Checks of who goes first: inside a campaign calls are released in the stated order (Q3)."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.status import CallStatus
from dialsim.testing.checks.record import CampaignRecord, kinds, leads_to
from dialsim.testing.violation import Violation

_FIRST, _ENDED, _RELEASED = kinds("scheduled"), kinds("ended"), kinds("released")
_WAITS = leads_to(CallStatus.SCHEDULED)


def violations(campaign: CampaignRecord) -> Iterator[Violation]:
    """Every release of a call while another one, which goes before it, waits."""
    rows = campaign.rows
    begins = _WAITS[rows.kind]
    ends = np.roll(begins, 1) & ~rows.first & ~begins  # the row after, in the same call
    in_turn = _in_turn(campaign, np.flatnonzero(begins))
    place = np.empty(len(begins), dtype=np.int64)
    place[in_turn] = np.arange(len(in_turn))
    place[ends] = place[np.flatnonzero(ends) - 1]
    moves = np.flatnonzero(begins | ends)
    moves = moves[np.argsort(rows.order[moves])]  # as they happened
    columns = (moves, place[moves], begins[moves], _RELEASED[rows.kind[moves]])
    for row, ahead in _overtaking(*(column.tolist() for column in columns)):
        text = f"released while recipient {rows.recipient[in_turn[ahead]]} waits, who goes first"
        yield campaign.breach_at(row, "Q3", int(rows.at[row]), text)


def _in_turn(campaign: CampaignRecord, waits: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows with which waits begin, by the order's class, due instant and upload order."""
    rows, past = campaign.rows, np.zeros(campaign.count, dtype=np.int64)
    for recipient, history in campaign.block.people.history.items():
        past[recipient] = history.call_attempt
    who, made = rows.recipient[waits], np.flatnonzero(rows.first)
    due = np.where(_FIRST[rows.kind[made]], campaign.start_at, rows.at[made])
    ended = np.concatenate([[0], np.cumsum(_ENDED[rows.kind])])
    attempts = past[who] + ended[waits] - ended[np.searchsorted(rows.recipient, who)]
    order = campaign.run.trace.world.scenario.engine.order
    goes_last = {"freshFirst": attempts > 0, "retriesFirst": attempts == 0}
    keys = (who, due[np.cumsum(rows.first)[waits] - 1], goes_last.get(order, attempts < 0))
    in_turn: NDArray[np.int64] = waits[np.lexsort(keys)]
    return in_turn


def _overtaking(
    rows: list[int], places: list[int], begins: list[bool], released: list[bool]
) -> Iterator[tuple[int, int]]:
    """Each row that releases a call out of turn, and the place of the one who goes first then."""
    waiting: list[int] = []
    over = bytearray(len(rows))
    for row, place, begin, release in zip(rows, places, begins, released, strict=True):
        if begin:
            heappush(waiting, place)
            continue
        over[place] = True
        while release and waiting[0] < place and over[waiting[0]]:
            heappop(waiting)
        if release and waiting[0] < place:
            yield row, waiting[0]
