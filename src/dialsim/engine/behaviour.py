"""Reactions of recipients to a dial, by script or by chance (a scenario's `behaviours`; P2, P7).

`Reactions` returns them call by call, `Chances` in blocks of recipients for the compiled engine.
Each uniform draw becomes a duration or an ending through the inverse distribution function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from math import exp, lgamma, log, sqrt
from typing import TYPE_CHECKING, NamedTuple, TypeVar, assert_never

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.chance import BLOCK, BLOCK_BITS, Draws, Purpose, Same, Values, gamma_quantiles
from dialsim.engine.own_chance import Odds, own_chances
from dialsim.engine.rules import ENDINGS, REACHED, ending, fatigue
from dialsim.interface import CallStatus

if TYPE_CHECKING:
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.behaviour import Behaviour, ScriptStep
    from dialsim.scenario.distribution import Distribution, Weibull
    from dialsim.scenario.people import People


Floats = NDArray[np.float64]
Quantile = Callable[[Floats], Floats]


def durations(distribution: Distribution, uniforms: Floats) -> NDArray[np.int64]:
    """Return durations in ms at the given uniforms: clipped to min and max, rounded half up."""
    values = quantile(distribution)(uniforms)
    if distribution.min is not None or distribution.max is not None:
        values = np.clip(values, distribution.min, distribution.max)
    return np.floor(np.maximum(values, 0.0) + 0.5).astype(np.int64)


def quantile(distribution: Distribution) -> Quantile:  # noqa: PLR0911 (one return per family)
    """Return the inverse distribution function, before clipping, for arrays of uniforms in [0,
    1).
    """
    match distribution.dist:
        case "constant":
            value = distribution.value
            return lambda u: np.full(u.shape, float(value))
        case "uniform":
            low, width = distribution.low, distribution.high - distribution.low
            return lambda u: low + width * u
        case "exponential":
            mean = distribution.mean
            return lambda u: -mean * np.log1p(-u)
        case "lognormal":
            # Imported here because scipy.special takes a quarter of a second to load.
            from scipy.special import ndtri

            # sigma² = ln(1 + (sd/mean)²), mu = ln(mean) − sigma²/2
            variance = log(1.0 + (distribution.sd / distribution.mean) ** 2)
            location, scale = log(distribution.mean) - variance / 2.0, sqrt(variance)
            return lambda u: np.exp(location + scale * ndtri(u))
        case "gamma":
            # shape = (mean/sd)², scale = sd²/mean
            if distribution.sd == 0:
                mean = distribution.mean
                return lambda u: np.full(u.shape, float(mean))
            shape = (distribution.mean / distribution.sd) ** 2
            scale = distribution.mean / shape
            return lambda u: scale * gamma_quantiles(shape, u)
        case "weibull":
            return _weibull(distribution)
        case "triangular":
            return _triangular(distribution.low, distribution.mode, distribution.high)
        case "empirical":
            values = np.sort(np.asarray(distribution.values, dtype=np.float64))
            return lambda u: values[(u * len(values)).astype(np.intp)]
        case _ as unreachable:
            assert_never(unreachable)


def _weibull(distribution: Weibull) -> Quantile:
    mean, sd = distribution.mean, distribution.sd
    if sd == 0:
        return lambda u: np.full(u.shape, float(mean))
    shape = weibull_shape(sd / mean)
    scale = mean / exp(lgamma(1.0 + 1.0 / shape))
    return lambda u: scale * (-np.log1p(-u)) ** (1.0 / shape)


def weibull_shape(variation: float) -> float:
    """Return the shape k of a Weibull distribution with coefficient of variation sd/mean =
    `variation`.

    Solves Γ(1+2/k) / Γ(1+1/k)² = 1 + variation² for 1/k by bisection; the left side grows with 1/k.
    """
    target = log(1.0 + variation * variation)
    low, high = 0.0, 1.0
    while lgamma(1.0 + 2.0 * high) - 2.0 * lgamma(1.0 + high) < target:
        high *= 2.0
    # More steps than a double has bits: the interval is a single number long before the end.
    for _ in range(200):
        middle = (low + high) / 2.0
        if lgamma(1.0 + 2.0 * middle) - 2.0 * lgamma(1.0 + middle) < target:
            low = middle
        else:
            high = middle
    return 2.0 / (low + high)


def _triangular(low: float, mode: float, high: float) -> Quantile:
    width = high - low
    if width == 0:
        return lambda u: np.full(u.shape, float(low))
    turn = (mode - low) / width

    def at(u: Floats) -> Floats:
        rising = low + np.sqrt(u * width * (mode - low))
        falling = high - np.sqrt((1.0 - u) * width * (high - mode))
        return np.where(u < turn, rising, falling)

    return at


_ANSWERED = ENDINGS[REACHED]


class Reaction(NamedTuple):
    """Outcome of a dial: final status and duration of each phase in ms (P1, P2)."""

    outcome: CallStatus
    setup_ms: int
    ring_ms: int
    talk_ms: int


class Attempt(NamedTuple):
    """Values of one attempt for every recipient: the factor on the odds, and a column per draw."""

    odds: float
    outcome: Values[float]
    setup: Values[int]
    ring: dict[CallStatus, Values[int]]
    talk: Values[int]


class Reactions:
    """Reactions of one campaign's recipients under one behaviour.

    A recipient's draws on an attempt never change. A redial after a withdrawn dial, or a dial under
    another limit, differs only by hour, day and use of the caller ID at that instant.
    """

    def __init__(
        self,
        behaviour: Behaviour,
        position: int,
        draws: Draws,
        people: People,
        request: ScheduleRequest,
        holidays: Sequence[int] = (),
    ) -> None:
        """`position` is the index of the behaviour in `World.behaviours`.

        `holidays` are days since 1970, sorted. `request` is the campaign's schedule request: the
        attempts of a history were made under it (P8).
        """
        self.behaviour = position
        self._behaviour = behaviour
        self.draws = draws
        self._scripts = people.scripts
        self._script = None if people.script is None else people.script.data
        self._attempts: dict[int, Attempt] = {}
        self.odds = Odds(behaviour.answered_odds, people, holidays)
        self.segment_odds = self.odds.of_people()
        self.own_chance = own_chances(behaviour, self.odds, people, draws, request)  # P7
        use = behaviour.answered_odds.by_caller_id_use
        self.per1000 = None if use is None else use.per1000
        self.recovery = None if use is None else use.recovery
        dead = 0.0 if behaviour.people is None else behaviour.people.dead_numbers
        no_answer, busy, failed = behaviour.outcomes.others(dead)
        rest = no_answer + busy + failed
        shares = (no_answer, no_answer + busy)
        self.other_bounds = tuple(share / rest for share in shares) if rest else (1.0, 1.0)

    def dial(self, recipient: int, attempt: int, now: int, uses: float) -> Reaction:
        """Return the reaction of a recipient to attempt number `attempt`, dialled now.

        `uses` is the decayed count of the organization's dials of the caller ID.
        """
        columns = self.columns(attempt)
        setup = columns.setup[recipient] or 1  # P1: at least 1 ms
        if self._script is not None and (code := self._script[recipient]) >= 0:
            script = self._scripts[code]
            # The last step of a script repeats for all further attempts.
            return _following(script[min(attempt, len(script)) - 1], setup, now)
        outcome = self._outcome(columns, recipient, now, uses)
        talk = columns.talk[recipient] if outcome is _ANSWERED else 0
        return Reaction(outcome, setup, columns.ring[outcome][recipient], talk)

    def follow(self, step: ScriptStep, recipient: int, attempt: int, now: int) -> Reaction:
        """Return the reaction to an attempt dialled now to a number with a script, whose next
        step is `step` (P6).
        """
        return _following(step, self.columns(attempt).setup[recipient] or 1, now)  # P1

    def _outcome(self, columns: Attempt, recipient: int, now: int, uses: float) -> CallStatus:
        odds = self.odds.at(now) * columns.odds * self.segment_odds[recipient]
        if self.per1000 is not None:
            odds *= fatigue(self.per1000, uses)
        own, draw = self.own_chance[recipient], columns.outcome[recipient]
        return ENDINGS[ending(own, odds, draw, *self.other_bounds)]

    def columns(self, attempt: int) -> Attempt:
        """Return the values of an attempt, made on first use."""
        columns = self._attempts.get(attempt)
        if columns is None:
            columns = self._attempts[attempt] = self._columns_of(attempt)
        return columns

    def _columns_of(self, attempt: int) -> Attempt:
        behaviour, ring = self._behaviour, self._behaviour.ring_time
        rings = (ring.answered, ring.no_answer, ring.busy, ring.failed)
        return Attempt(
            odds=self.odds.of_attempt(attempt),
            outcome=self.draws.column(Purpose.OUTCOME, attempt),
            setup=self._durations(behaviour.setup_time, Purpose.SETUP_TIME, attempt),
            ring={
                outcome: self._durations(distribution, Purpose.RING_TIME, attempt)
                for outcome, distribution in zip(ENDINGS, rings, strict=True)
            },
            talk=self._durations(behaviour.talk_time, Purpose.TALK_TIME, attempt),
        )

    def _durations(self, distribution: Distribution, purpose: Purpose, attempt: int) -> Values[int]:
        if distribution.dist == "constant":
            return Same(int(durations(distribution, np.zeros(1))[0]))
        return self.draws.durations(
            distribution, purpose, attempt, partial(durations, distribution)
        )


def _following(step: ScriptStep, setup_ms: int, now: int) -> Reaction:
    setup = setup_ms if step.setup is None else step.setup
    ring = step.ring if step.until is None else max(0, step.until - now - setup)
    return Reaction(step.outcome, setup, ring, step.talk)


# -- reactions in columns --------------------------------------------------------------------------

Scalar = TypeVar("Scalar", bound=np.generic)


class ColumnKind(IntEnum):
    """Kind of a column of an entry; RING stands for four columns, one for each of `ENDINGS`."""

    OUTCOME = 0
    OWN = 1
    SEGMENT = 2
    SETUP = 3
    RING = 4
    TALK = 8
    NUMBER = 9
    VOICE = 10


_KINDS = max(ColumnKind) + 1
_CHOICES = {ColumnKind.NUMBER: Purpose.CALLER_ID, ColumnKind.VOICE: Purpose.VOICE}
_MISSING = -1


class Chances:
    """Values of all attempts of all recipients, for one seed and replication, as arrays.

    The compiled engine requests the columns as it needs them. They are made from the draws and
    quantiles of `Reactions`, so both engines use equal numbers. They depend on neither limits nor
    queues: variants of a scenario with one seed and replication share them, and only the first
    variant computes them. Variants with another behaviour share the columns that are equal in both.

    An entry holds the values of one attempt for a block of `BLOCK` recipients under one behaviour:
    for each `ColumnKind` a row index of `values`, or -1 if not requested yet. A row of `values` has
    one float64 per recipient; durations are in ms. `entry_of` maps reaction, `slots[attempt]` and
    block to an entry. `attempt_odds` is indexed by reaction and slot, `week_odds` by reaction and
    hour of the week.
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
        # Rows are as wide as the largest block so far: thousands of small campaigns would otherwise
        # fill rows of 4,096 numbers each.
        self._width = 1
        self._row_of: dict[tuple[object, int], int] = {}

    @property
    def reactions(self) -> int:
        """Number of behaviours in use, over all campaigns."""
        return len(self._reactions)

    def reaction(self, reactions: Reactions) -> int:
        """Return the index of a campaign's reactions, registered on first use."""
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

    def make(self, reaction: int, attempt: int, block: int, choices: set[ColumnKind]) -> None:
        """Compute the missing columns of an entry.

        `choices` are the kinds of columns with which a dial chooses caller ID and voice.
        """
        self._ensure_slot(attempt)
        reactions = self._reactions[reaction]
        columns, draws = reactions.columns(attempt), reactions.draws
        cell = reaction, self.slots[attempt], block
        if self.entry_of[cell] == _MISSING:
            self.entry_of[cell] = entry = self._new_entry()
            made: list[tuple[int, Values[float]]] = [
                (ColumnKind.OWN, reactions.own_chance),
                (ColumnKind.SEGMENT, reactions.segment_odds),
                (ColumnKind.OUTCOME, columns.outcome),
                (ColumnKind.SETUP, columns.setup),
                (ColumnKind.TALK, columns.talk),
                *enumerate(columns.ring.values(), start=ColumnKind.RING),
            ]
            for number, column in made:
                self.entries[entry, number] = self._row(column, block, draws.count)
        for kind in choices:
            entry = self.entry_of[cell]
            if self.entries[entry, kind] == _MISSING:
                drawn = draws.column(_CHOICES[kind], attempt)
                self.entries[entry, kind] = self._row(drawn, block, draws.count)

    def _row(self, values: Values[float], block: int, count: int) -> int:
        """Return the row index of a column's values in a block, stored on first use.

        `count` is the number of recipients of the campaign.
        """
        size, key = self._width, (values, block)
        if isinstance(values, Same):
            key = (values[0], size)
        else:
            size = min(BLOCK, count - (block << BLOCK_BITS))
        if key in self._row_of:
            return self._row_of[key]
        rows, width = self.values.shape
        if self._rows == rows or self._width > width:
            rows = max(16, 2 * rows) if self._rows == rows else rows
            self.values = _larger(self.values, (rows, self._width))
        row = self._rows
        self._rows += 1
        self.values[row, :size] = values.block(block, size)
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


def _larger(table: NDArray[Scalar], shape: tuple[int, ...]) -> NDArray[Scalar]:
    """Copy a table into a larger one; new integer elements are `_MISSING`."""
    larger = np.empty(shape, dtype=table.dtype)
    if table.dtype == np.int64:
        larger.fill(_MISSING)
    larger[tuple(slice(size) for size in table.shape)] = table
    return larger
