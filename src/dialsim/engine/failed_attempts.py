"""Attempts that failed before the scenario begins, and what they weigh with each chance (P8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.windows import DAY, HOUR, THAI_OFFSET, WEEK, Windows
from dialsim.interface.status import CallStatus

if TYPE_CHECKING:
    from dialsim.engine.odds import Odds
    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.history import Past

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MONDAY = 4 * DAY - THAI_OFFSET  # 1970-01-05, midnight in Thailand
_STEP = HOUR // 4  # to which the limits of earlier attempts are rounded up, to have few of them
_ANSWERING = frozenset({CallStatus.NO_ANSWER, CallStatus.BUSY})  # what no dead number ends with


@dataclass(frozen=True, slots=True)
class FailedAttempts:
    """People who were called in vain and will be called again, as columns in their order.

    `count` are their attempts, `ended_at` (ms) the end of their last call. It is known of that call
    that it `failed`, or that it ended otherwise and the number is `working`, or that it only
    `waited` (Q5) and was no attempt.
    """

    recipient: Integers
    count: Integers
    ended_at: Integers
    failed: NDArray[np.bool_]
    working: NDArray[np.bool_]
    waited: NDArray[np.bool_]

    @classmethod
    def of(cls, history: Mapping[int, Past], max_attempts: int) -> FailedAttempts:
        """Those of a campaign's people that calls each of them so often."""
        past = {
            recipient: past
            for recipient, past in sorted(history.items())
            if not past.reached and 0 < past.call_attempt < max_attempts
        }
        ends = [entry.latest_call_status for entry in past.values()]
        return cls(
            recipient=np.array([*past], dtype=np.int64),
            count=np.array([entry.call_attempt for entry in past.values()], dtype=np.int64),
            ended_at=np.array([entry.last_ended_at for entry in past.values()], dtype=np.int64),
            failed=np.array([end is CallStatus.FAILED for end in ends], dtype=np.bool_),
            working=np.array([end in _ANSWERING for end in ends], dtype=np.bool_),
            waited=np.array([end is CallStatus.CANCELLED for end in ends], dtype=np.bool_),
        )

    def weights(
        self, count: int, odds: Odds, request: ScheduleRequest, chance: Floats, rest: Floats
    ) -> Iterator[tuple[NDArray[np.intp], Floats]]:
        """What the odds of their attempts say of those who have had `count` of them.

        Under odds times f a person of chance p fails to answer with probability
        (1 − p) / (1 − p + f·p). For each of the chances p, of which `rest` is 1 − p, the weight is
        the logarithm of that probability over all attempts, without the powers of 1 − p. Yields
        rows of people who share a weight, and the weight. When the last attempt was made is known;
        an earlier one may have been made whenever windows were open.
        """
        rows = np.flatnonzero(self.count == count)
        if not odds.matter:
            yield rows, np.zeros_like(chance)
            return
        hours = _Hours(odds.by_week_hour, Windows.of(request.time_windows))
        segment = np.zeros_like(rows)
        if odds.segment is not None:
            segment = odds.segment[self.recipient[rows]].astype(np.int64)
        last = np.where(self.waited[rows], -1, hours.kinds(self.ended_at[rows]))
        until = self.ended_at[rows] - request.retry_interval
        until = -(-until // _STEP) * _STEP if hours.vary else np.zeros_like(until)
        alike, group = np.unique(np.stack([segment, last, until]), axis=1, return_inverse=True)
        shares = hours.shares(request.start_date_time, alike[2])
        for number, (kind, hour, _) in enumerate(alike.T.tolist()):
            of_person = odds.by_segment[kind]
            earlier, weight = count, np.zeros_like(chance)
            if hour >= 0:
                earlier -= 1
                factor = odds.of_attempt(count) * of_person * hours.factors[hour]
                weight -= np.log(rest + factor * chance)
            for of_attempt, times in odds.attempts(earlier):
                factors = of_attempt * of_person * hours.factors
                failing = shares[number] @ (1.0 / (rest + factors[:, np.newaxis] * chance))
                weight += times * np.log(failing)
            yield rows[group == number], weight


class _Hours:
    """The different factors of the hours of the week, and how long windows are open under each."""

    def __init__(self, by_week_hour: Floats, windows: Windows) -> None:
        self.factors, self._kinds = np.unique(by_week_hour, return_inverse=True)
        self.vary = len(self.factors) > 1
        opens, closes = (windows.open_spans(_MONDAY, _MONDAY + WEEK) - _MONDAY).T
        # From one of these instants of a week to the next it is one hour, and open or closed
        self._instants = np.unique([*range(0, WEEK + 1, HOUR), *opens, *closes])
        begins = self._instants[:-1]
        is_open = np.searchsorted(opens, begins, "right") > np.searchsorted(closes, begins, "right")
        of_factor = np.zeros((len(begins), len(self.factors)))
        of_factor[np.arange(len(begins)), self._kinds[begins // HOUR]] = np.where(
            is_open, np.diff(self._instants), 0
        )
        self._open_before = np.vstack([np.zeros(len(self.factors)), np.cumsum(of_factor, axis=0)])

    def kinds(self, instants: Integers) -> Integers:
        """The positions in `factors` of those that hold at instants (ms)."""
        kinds: Integers = self._kinds[(instants - _MONDAY) % WEEK // HOUR]
        return kinds

    def shares(self, start: int, until: Integers) -> Floats:
        """The factors' shares in the open time from `start` up to each of `until` (ms).

        Where none lies between, those in the whole week.
        """
        open_time = self._since_monday(until) - self._since_monday(np.array([start]))
        open_time[open_time.sum(axis=1) <= 0.0] = self._open_before[-1]
        shares: Floats = open_time / open_time.sum(axis=1, keepdims=True)
        return shares

    def _since_monday(self, instants: Integers) -> Floats:
        """The open time under each factor from a certain Monday up to each instant (ms)."""
        weeks, position = np.divmod(instants - _MONDAY, WEEK)
        within = [np.interp(position, self._instants, before) for before in self._open_before.T]
        since: Floats = weeks[:, np.newaxis] * self._open_before[-1] + np.stack(within, axis=1)
        return since
