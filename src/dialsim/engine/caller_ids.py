"""Caller IDs: which number a dial shows (P3), and how a number tires (`byCallerIdUse`)."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp

from dialsim.engine.chance import Draws, Purpose

NONE = -1
_DIAL = 1_000_000_000  # one dial, in the fixed point in which dials are summed


class CallerIds:
    """The numbers a campaign calls from, as indexes into `World.numbers`."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = tuple(dict.fromkeys(numbers))  # P3: a repeat counts once

    def choose(self, draws: Draws, recipient: int, attempt: int, previous: int) -> int:
        """Uniformly at random, but not `previous` (`NONE`: no call was dialled before) (P3)."""
        numbers = self._numbers
        if len(numbers) > 1 and previous in numbers:
            numbers = tuple(number for number in numbers if number != previous)
        if len(numbers) == 1:
            return numbers[0]
        return numbers[int(draws.column(Purpose.CALLER_ID, attempt)[recipient] * len(numbers))]


class NumberUse:
    """How often an organization dialled each of its numbers lately: n of `byCallerIdUse`.

    Dials decay exponentially with time constant `recovery` (ms). They are summed in fixed point,
    so that dials and withdrawals of one instant commute exactly (T4).
    """

    __slots__ = ("_recovery", "_uses")

    def __init__(self, recovery: int) -> None:
        self._recovery = recovery
        self._uses: dict[int, tuple[int, int]] = {}

    def count(self, number: int, now: int) -> float:
        """The decayed count of dials of `number` before this one."""
        return max(0, self._decayed(number, now)) / _DIAL

    def dialled(self, number: int, now: int) -> None:
        """Count a dial."""
        self._uses[number] = (self._decayed(number, now) + _DIAL, now)

    def withdrawn(self, number: int, dialled_at: int, now: int) -> None:
        """Take back a dial that was withdrawn before it rang (P5)."""
        left = round(_DIAL * exp((dialled_at - now) / self._recovery))
        self._uses[number] = (self._decayed(number, now) - left, now)

    def _decayed(self, number: int, now: int) -> int:
        uses, at = self._uses.get(number, (0, now))
        return uses if at == now else round(uses * exp((at - now) / self._recovery))
