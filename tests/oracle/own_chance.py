"""Probability that a person answers (P7, P8 of the rule book), computed naively.

Probabilities are integrated numerically, and the open time of windows is walked minute by minute.
Nothing here comes from dialsim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from oracle.given import DAY, HOUR, MINUTE, THAI, WEEK, Schedule, instant

QUARTER = 15 * MINUTE
UNANSWERED = ("noAnswer", "busy", "failed")


@dataclass
class Reading:
    """Knowledge of one person: behaviour, schedule, segment, and the history as written."""

    behaviour: dict[str, Any]
    schedule: dict[str, Any]
    segment: str | None = None
    history: dict[str, Any] | None = None

    @cached_property
    def shares(self) -> dict[str, float]:
        """Return the probability of each kind of person: `reachable`, `never` and `dead`."""
        people = self.behaviour["people"]
        dead = people.get("deadNumbers", 0.0)
        reachable = people.get("reachable", 1.0 - dead)
        told = self._of_history(dead)
        weight = {
            "reachable": reachable * told["working"] * self.all_failed,
            "never": (1.0 - reachable - dead) * told["working"],
            "dead": dead * told["dead"],
        }
        return {kind: part / sum(weight.values()) for kind, part in weight.items()}

    def _of_history(self, dead: float) -> dict[str, float]:
        """Return the likelihood of the last call's end for a dead number and for others, up to a
        factor.
        """
        status = (self.history or {}).get("latestCallStatus")
        if status in ("NO_ANSWER", "BUSY"):
            return {"dead": 0.0, "working": 1.0}
        if status != "FAILED":
            return {"dead": 1.0, "working": 1.0}
        shares = [self.behaviour["outcomes"].get(end, 0.0) for end in UNANSWERED]
        shares[2] -= dead
        return {"dead": 1.0, "working": shares[2] / sum(shares)}

    @cached_property
    def mean(self) -> float:
        people = self.behaviour["people"]
        reachable = people.get("reachable", 1.0 - people.get("deadNumbers", 0.0))
        return float(self.behaviour["outcomes"]["answered"] / reachable)

    @cached_property
    def all_failed(self) -> float:
        """The probability that a reachable person did not answer any attempt of the history."""
        return self._integral(1.0)

    def at_most(self, chance: float) -> float:
        """The probability that a reachable person's own chance is at most so much."""
        return self._integral(chance) / self.all_failed

    def _integral(self, upto: float) -> float:
        concentration = self.behaviour["people"].get("concentration")
        if concentration is None:
            return self.failing(self.mean) if upto >= self.mean else 0.0
        from scipy.integrate import quad
        from scipy.special import betainc, betaincinv

        a, b = self.mean * concentration, (1.0 - self.mean) * concentration
        share = betainc(a, b, upto)
        total, _ = quad(lambda u: self.failing(betaincinv(a, b, u)), 0.0, share, limit=200)
        return float(total)

    def failing(self, p: float) -> float:
        """The probability that a person of this chance failed to answer every attempt so far."""
        product = 1.0
        for factors in self.attempts:
            product *= sum(w * (1.0 - p) / (1.0 - p + f * p) for f, w in factors.items())
        return product

    @cached_property
    def attempts(self) -> list[dict[float, float]]:
        """For each attempt so far the factors that it may have had, with their probabilities."""
        if not self.history or not self.history.get("callAttempt"):
            return []
        odds = self.behaviour.get("answeredOdds", {})
        count, ended = self.history["callAttempt"], instant(self.history["lastEndedAt"])
        by_attempt = odds.get("byAttempt", [1.0])
        of_person = odds.get("bySegment", {}).get(self.segment, 1.0)
        own = [by_attempt[min(i, len(by_attempt) - 1)] * of_person for i in range(count)]
        last_is_known = self.history["latestCallStatus"] != "CANCELLED"
        found = []
        for number, factor in enumerate(own, start=1):
            if number == count and last_is_known:
                hours = {self.of_hour(ended): 1.0}
            else:
                hours = self.earlier_hours(ended)
            found.append({factor * hour: share for hour, share in hours.items()})
        return found

    def of_hour(self, at: int) -> float:
        odds = self.behaviour.get("answeredOdds", {})
        day, time = divmod(at + THAI, DAY)
        return float(
            odds.get("byDay", {}).get(str((day + 3) % 7 + 1), 1.0)
            * odds.get("byHour", {}).get(str(time // HOUR), 1.0)
        )

    def earlier_hours(self, ended: int) -> dict[float, float]:
        """Return the hours of attempts without an instant: the open time before, else a whole
        week's.
        """
        schedule = Schedule.of(self.schedule)
        until = ended - schedule.retry_interval
        until = -(-until // QUARTER) * QUARTER
        found = self.open_time(schedule.start, until)
        return found or self.open_time(schedule.start, schedule.start + WEEK)

    def open_time(self, start: int, until: int) -> dict[float, float]:
        minutes = [at for at in range(start, until, MINUTE) if self._is_open(at)]
        factors, counts = np.unique([self.of_hour(at) for at in minutes], return_counts=True)
        return dict(zip(factors.tolist(), (counts / max(1, len(minutes))).tolist(), strict=True))

    @cached_property
    def _is_open(self) -> Callable[[int], bool]:
        return lru_cache(None)(Schedule.of(self.schedule).windows.open)
