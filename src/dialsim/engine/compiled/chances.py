"""Chance in columns: what every attempt holds in store for everybody, block by block of people.

The draws and quantiles are those of `Reactions`, so that both engines meet the same ones. They
depend on neither limits nor queues: variants of a scenario that are run with one seed and
replication share them, and only the first has to wait for them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.chance import BLOCK, BLOCK_BITS, Purpose, Same

if TYPE_CHECKING:
    from dialsim.engine.behaviour import Reactions
    from dialsim.engine.chance import Draws, Values


T = TypeVar("T", bound=np.generic)


class Kind(IntEnum):
    """What a column of an entry is for; RING has one for each of `ENDINGS`."""

    OUTCOME = 0
    OWN = 1
    SEGMENT = 2
    SETUP = 3
    RING = 4
    TALK = 8
    NUMBER = 9
    VOICE = 10


_KINDS = max(Kind) + 1
_CHOICES = {Kind.NUMBER: Purpose.CALLER_ID, Kind.VOICE: Purpose.VOICE}
_MISSING = -1


class Chances:
    """The columns of one seed and replication, made when they are asked for.

    An entry holds what one attempt has in store for a block of `BLOCK` people under one behaviour:
    for each `Kind` the row of `values` (float64; durations in ms, too) with a number per person, -1
    where it wasn't asked for. Rows are as wide as the largest block of people so far, as there may
    be thousands of small campaigns. `entry_of` finds an entry by reaction, `slots[attempt]` and
    block; `attempt_odds` is by reaction and slot, `week_odds` by reaction and hour of the week.
    """

    def __init__(self) -> None:
        self.values = np.empty((0, 1))
        self.entries = np.empty((0, _KINDS), dtype=np.int64)
        self.entry_of = np.full((0, 0, 0), _MISSING, dtype=np.int64)
        self.slots = np.full(1, _MISSING, dtype=np.int64)
        self.attempt_odds = np.empty((0, 0))
        self.week_odds = np.empty((0, 7 * 24))
        self._reactions: list[Reactions] = []
        self._numbers: dict[Reactions, int] = {}
        self._rows = self._used_entries = self._used_slots = 0
        self._width = 1
        self._row_of: dict[tuple[object, ...], int] = {}

    def reaction(self, reactions: Reactions) -> int:
        """The number under which a campaign's reactions to a behaviour are known here."""
        if reactions not in self._numbers:
            number = self._numbers[reactions] = len(self._reactions)
            self._reactions.append(reactions)
            self._width = max(self._width, min(BLOCK, reactions.draws.count))
            blocks = (reactions.draws.count >> BLOCK_BITS) + 1
            room, slots, most_blocks = self.entry_of.shape
            if number == room or blocks > most_blocks:
                room = max(room, 2 * number, 1)
                self.entry_of = _larger(self.entry_of, (room, slots, max(blocks, most_blocks)))
                self.attempt_odds = _larger(self.attempt_odds, (room, slots))
                self.week_odds = _larger(self.week_odds, (room, 7 * 24))
            self.week_odds[number] = reactions.odds.by_week_hour
            for attempt in np.flatnonzero(self.slots >= 0).tolist():
                self.attempt_odds[number, self.slots[attempt]] = reactions.columns(attempt).odds
        return self._numbers[reactions]

    def make(self, reaction: int, attempt: int, block: int, choices: set[Kind]) -> None:
        """Make what is missing of an entry; `choices` are those that a dial has to make."""
        self._ensure_slot(attempt)
        reactions = self._reactions[reaction]
        columns, draws = reactions.columns(attempt), reactions.draws
        place = reaction, self.slots[attempt], block
        if self.entry_of[place] == _MISSING:
            self.entry_of[place] = entry = self._new_entry()
            once: list[tuple[Kind, Values[float]]] = [
                (Kind.OWN, reactions.own_chance),
                (Kind.SEGMENT, reactions.segment_odds),
            ]
            each: list[tuple[int, Values[float]]] = [
                (Kind.OUTCOME, columns.outcome),
                (Kind.SETUP, columns.setup),
                (Kind.TALK, columns.talk),
                *enumerate(columns.ring.values(), start=Kind.RING),
            ]
            for kind, values in once:
                self.entries[entry, kind] = self._row(values, block, draws, reaction, kind)
            for number, column in each:
                self.entries[entry, number] = self._row(column, block, draws)
        for kind in choices:
            entry = self.entry_of[place]
            if self.entries[entry, kind] == _MISSING:
                drawn = draws.column(_CHOICES[kind], attempt)
                key = (draws, kind, attempt)
                self.entries[entry, kind] = self._row(drawn, block, draws, *key)

    def _row(self, values: Values[float], block: int, draws: Draws, *key: object) -> int:
        """The row with the values of a block; one that has a key is made once for all attempts."""
        size = self._width
        if isinstance(values, Same):
            key = ("same", values[0], size)
        else:
            size = min(BLOCK, draws.count - (block << BLOCK_BITS))
            key = (*key, block) if key else ()
        if key and key in self._row_of:
            return self._row_of[key]
        rows, width = self.values.shape
        if self._rows == rows or self._width > width:
            rows = max(16, 2 * rows) if self._rows == rows else rows
            self.values = _larger(self.values, (rows, self._width))
        row = self._rows
        self._rows += 1
        self.values[row, :size] = values.block(block, size)
        if key:
            self._row_of[key] = row
        return row

    def _new_entry(self) -> int:
        if self._used_entries == len(self.entries):
            self.entries = _larger(self.entries, (max(16, 2 * self._used_entries), _KINDS))
        self._used_entries += 1
        return self._used_entries - 1

    def _ensure_slot(self, attempt: int) -> None:
        if attempt >= len(self.slots):
            self.slots = _larger(self.slots, (max(16, 2 * attempt),))
        if self.slots[attempt] == _MISSING:
            reactions, slots, blocks = self.entry_of.shape
            self.slots[attempt] = slot = self._used_slots
            self._used_slots += 1
            if slot == slots:
                self.entry_of = _larger(self.entry_of, (reactions, 2 * slot or 4, blocks))
                self.attempt_odds = _larger(self.attempt_odds, (reactions, 2 * slot or 4))
            for number, each in enumerate(self._reactions):
                self.attempt_odds[number, slot] = each.columns(attempt).odds


def _larger(table: NDArray[T], shape: tuple[int, ...]) -> NDArray[T]:
    """A table with the same beginning in each direction; what is new is missing, if integers."""
    larger = np.empty(shape, dtype=table.dtype)
    if table.dtype == np.int64:
        larger.fill(_MISSING)
    larger[tuple(slice(size) for size in table.shape)] = table
    return larger
