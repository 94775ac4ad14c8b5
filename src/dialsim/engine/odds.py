"""The factors on the odds of an answer (`answeredOdds`), but for the wear of caller IDs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.chance import BLOCK_BITS, Column, Same, Values
from dialsim.engine.windows import HOUR, week_position

if TYPE_CHECKING:
    from dialsim.scenario.behaviour import AnsweredOdds
    from dialsim.scenario.people import People


class Odds:
    """A behaviour's factors for one campaign's people.

    `by_week_hour` has one for each of the 168 hours of the Thai week (hour and day), `by_attempt`
    one for each attempt from the first, the last of which repeats, and `by_segment` those of the
    segments that occur, the last for people without one; `segment` are the people's positions in
    it, None where all have the same.
    """

    __slots__ = ("_now", "by_attempt", "by_segment", "by_week_hour", "segment")

    def __init__(self, odds: AnsweredOdds, people: People) -> None:
        self.by_week_hour = np.array(
            [
                odds.by_day.get(hour // 24 + 1, 1.0) * odds.by_hour.get(hour % 24, 1.0)
                for hour in range(7 * 24)
            ]
        )
        self._now: list[float] = self.by_week_hour.tolist()
        self.by_attempt = odds.by_attempt
        self.by_segment = np.ones(1)
        self.segment: NDArray[np.int16] | None = None
        if people.segment is not None and odds.by_segment:
            listed = (odds.by_segment.get(name, 1.0) for name in people.segments)
            self.by_segment = np.array([*listed, 1.0])
            self.segment = people.segment  # code −1, no segment, is the last factor

    @property
    def matter(self) -> bool:
        """Whether any factor differs from 1."""
        factors = (*self._now, *self.by_attempt, *self.by_segment.tolist())
        return any(factor != 1.0 for factor in factors)

    def at(self, now: int) -> float:
        """The factor of an instant: of its Thai hour and day."""
        return self._now[week_position(now) // HOUR]

    def of_attempt(self, attempt: int) -> float:
        """The factor of an attempt's number, from 1."""
        return self.by_attempt[min(attempt, len(self.by_attempt)) - 1]

    def attempts(self, count: int) -> list[tuple[float, int]]:
        """The factors of so many first attempts, each with the number of attempts that have it."""
        *each, repeated = self.by_attempt
        return [
            *((factor, 1) for factor in each[:count]),
            *([(repeated, count - len(each))] if count > len(each) else []),
        ]

    def of_people(self) -> Values[float]:
        """Each person's factor: that of the segment."""
        if self.segment is None:
            return Same(1.0)
        factors = self.by_segment[self.segment]

        def fill(block: int, size: int) -> NDArray[np.float64]:
            return factors[block << BLOCK_BITS :][:size]

        return Column(len(factors), np.float64, fill)
