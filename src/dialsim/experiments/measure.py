"""Measures: what an expression of figures is measured in, such as THB per person.

A measure is an instant, or powers of units. Numbers of things and shares go together with one
another and with plain numbers; times, money and instants go only with their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dialsim.results.figures import Unit

_SECONDS = {Unit.SECONDS: 1.0, Unit.MINUTES: 60.0}
_COMPOUND = {
    Unit.PER_PERSON: ((Unit.CURRENCY, 1), (Unit.PEOPLE, -1)),
    Unit.PER_CONVERSATION: ((Unit.CURRENCY, 1), (Unit.CONVERSATIONS, -1)),
}
_ONE_OF = {
    Unit.DAYS: "day",
    Unit.PEOPLE: "person",
    Unit.CALLS: "call",
    Unit.DIALS: "dial",
    Unit.ATTEMPTS: "attempt",
    Unit.SLOTS: "slot",
    Unit.CONVERSATIONS: "conversation",
    Unit.RESULTS: "result",
}

Powers = tuple[tuple[Unit, int], ...]


class Mismatch(ValueError):
    """Measures that can't be put together; the text says why."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Powers of units, or an instant; `currency` is what money is called."""

    powers: Powers = ()
    is_instant: bool = False
    currency: str | None = field(default=None, compare=False)

    @classmethod
    def of(cls, unit: Unit, currency: str | None = None) -> Measure:
        """That of a figure."""
        powers = () if unit is Unit.INSTANT else _COMPOUND.get(unit, ((unit, 1),))
        return cls(powers, unit is Unit.INSTANT, currency)

    @property
    def unit(self) -> Unit:
        """The unit of a figure with this measure; NO_NUMBER where none has it."""
        if self.is_instant:
            return Unit.INSTANT
        if len(self.powers) == 1 and self.powers[0][1] == 1:
            return self.powers[0][0]
        same = (u for u, powers in _COMPOUND.items() if dict(powers) == dict(self.powers))
        return next(same, Unit.NO_NUMBER)

    @property
    def label(self) -> str:
        """Such as `THB per person`, `s` or `people`; empty for plain numbers and instants."""
        money = self.currency or "money"
        above = [_power(unit, power, money) for unit, power in self.powers if power > 0]
        below = [
            _power(unit, -power, money, of_one=True) for unit, power in self.powers if power < 0
        ]
        return " per ".join([" × ".join(above) or "1", *below]) if self.powers else ""

    @property
    def is_plain(self) -> bool:
        """Whether it is a number, of whatever things, and no time, money or instant."""
        return not self.is_instant and self._dimension == (0, 0)

    @property
    def ms(self) -> int | None:
        """The milliseconds of 1, of a time or a time for something; None for what is no time."""
        time = self._time if self._dimension == (1, 0) else None
        return None if time is None else round(1000 * _SECONDS[time])

    @property
    def is_share(self) -> bool:
        """Whether a percentage says it: a share, or a number of things per thing."""
        share = self.powers == ((Unit.SHARE, 1),)
        return share or (self._is_ratio and self.is_plain)

    @property
    def kind(self) -> str:
        """What it is in a word, such as `money`, for errors."""
        if self.is_instant:
            return "an instant"
        if self.powers == ((Unit.SHARE, 1),):
            return "a share"
        if len(self.powers) == 1 and self.powers[0][0] in _ONE_OF:
            return f"a number of {self.powers[0][0]}"
        named = {(0, 0): "a number", (1, 0): "a time", (0, 1): "money"}
        known = named.get(self._dimension)
        return known if known and not self._is_ratio else self.label

    @property
    def _is_ratio(self) -> bool:
        return any(power < 0 for _, power in self.powers)

    @property
    def _dimension(self) -> tuple[int, int]:
        """The powers of time and of money."""
        powers = dict(self.powers)
        return sum(powers.get(unit, 0) for unit in _SECONDS), powers.get(Unit.CURRENCY, 0)

    @property
    def _time(self) -> Unit | None:
        return next((unit for unit, _ in self.powers if unit in _SECONDS), None)

    def times(self, other: Measure, sign: int) -> tuple[Measure, float]:
        """Of a product (sign 1) or a quotient (−1), and the factor of the second value."""
        if self.is_instant or other.is_instant:
            raise Mismatch("an instant can only be moved by a time, or taken from another instant")
        factor, powers = _converted(other, self._time)
        total = dict(self.powers)
        for unit, power in powers.items():
            total[unit] = total.get(unit, 0) + sign * power
        left = {unit: power for unit, power in total.items() if power and unit is not Unit.SHARE}
        alike = sign < 0 and self.powers and dict(self.powers) == powers
        shares = not left and total.get(Unit.SHARE, 0) > 0
        if alike or shares:
            return Measure.of(Unit.SHARE), factor
        return Measure(tuple(left.items()), currency=self.currency or other.currency), factor

    def plus(self, other: Measure, sign: int) -> tuple[Measure, float, float]:
        """Of a sum (sign 1) or a difference (−1), and the factors of both values."""
        if self.is_instant or other.is_instant:
            return self._moved(other, sign)
        if self._dimension != other._dimension:
            raise Mismatch("")
        factor, powers = _converted(other, self._time)
        if dict(self.powers) == powers:
            return self, 1.0, factor
        common = [part for part in self.powers if part[0] not in (*_ONE_OF, Unit.SHARE)]
        return Measure(tuple(common), currency=self.currency), 1.0, factor

    def _moved(self, other: Measure, sign: int) -> tuple[Measure, float, float]:
        """Instants are in ms."""
        if self.is_instant and other.is_instant:
            if sign > 0:
                raise Mismatch("two instants can't be added; their difference is a time")
            return Measure.of(Unit.SECONDS), 0.001, 0.001
        time, instant = (other, self) if self.is_instant else (self, other)
        if time._dimension != (1, 0) or time._is_ratio or (sign < 0 and instant is other):
            raise Mismatch("")
        factor = 1000.0 * _converted(time, Unit.SECONDS)[0]
        return instant, *((1.0, factor) if instant is self else (factor, 1.0))


NUMBER = Measure()


def _converted(measure: Measure, time: Unit | None) -> tuple[float, Mapping[Unit, int]]:
    """The powers with times in another unit of time, and the factor that makes values so."""
    factor, powers = 1.0, dict[Unit, int]()
    for unit, power in measure.powers:
        if time is not None and unit in _SECONDS:
            factor *= (_SECONDS[unit] / _SECONDS[time]) ** power
            unit = time  # noqa: PLW2901 (what it is converted to)
        powers[unit] = powers.get(unit, 0) + power
    return factor, powers


def _power(unit: Unit, power: int, money: str, of_one: bool = False) -> str:
    name = money if unit is Unit.CURRENCY else str(unit)
    if of_one and power == 1:
        name = _ONE_OF.get(unit, name)
    return name + {1: "", 2: "²", 3: "³"}.get(power, f"^{power}")
