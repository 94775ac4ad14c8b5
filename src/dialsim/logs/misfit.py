"""Misfit: differences between a log and logs of the fitted model, each with the forecast at risk.

The fitted model gives each call its chance to be answered and to fail, from the ends of the
recipient's earlier calls. In a log of that model, the ends of a group of calls differ from the sum
of their chances by noise alone, if the group was chosen before the calls were made. These
one-step-ahead checks (Dawid 1984, "The prequential approach", Journal of the Royal Statistical
Society A 147) compare the same quantities as posterior predictive checks (Gelman et al. 2013,
chapter 6), without simulated logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.interface.instants import DAY, THAI_OFFSET, date_text
from dialsim.logs.answering import ANSWERED, FAILED, Answering, Attempts, Floats, Integers

if TYPE_CHECKING:
    from dialsim.logs.durations import FittedDurations
    from dialsim.logs.hold_times import HoldTimes

_SURELY = 4.0
"""Smallest difference that is shown, in standard errors; some 60 groups of a log are compared."""
_MATTERS = 0.03
"""Smallest difference of shares that is shown."""
_RHYTHM_SURELY, _RHYTHM_MATTERS = 3.0, 0.01
"""Both limits for the comparison of retries at the same hour with retries at other hours."""
_FEW = 30
_OUTAGE_SURELY, _OUTAGE_MORE, _OUTAGE_TIMES = 6.0, 0.2, 2.0
_TAIL, _FEWEST_IN_TAIL = 0.99, 1_000
_TAIL_OFF = 0.3
"""Smallest relative error of the mean of the longest 1 % that is shown."""


@dataclass(frozen=True, slots=True)
class OutageDay:
    """A date (days since 1970, Thai time) on which far more calls failed than on other days."""

    date: int
    calls: int
    failed: float
    usual: float

    @property
    def name(self) -> str:
        """The date as the interface writes dates."""
        return date_name(self.date)

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.failed:.0%} of {self.calls:,} calls failed, on other days "
            f"{self.usual:.0%}: an outage, not behaviour. Nothing is learned from these failures, "
            "and the day does not count for its weekday"
        )


def date_name(date: int) -> str:
    """Return days since 1970 as `2026-01-06`."""
    return str(np.datetime64(date, "D"))


def dates_of(at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the Thai dates of instants (ms), in days since 1970."""
    return (at + THAI_OFFSET) // DAY


def outages(outcome: NDArray[np.int64], dialled_at: NDArray[np.int64]) -> tuple[OutageDay, ...]:
    """Find the dates on which far more calls failed than on the median date."""
    dates, of = np.unique(dates_of(dialled_at), return_inverse=True)
    calls = np.bincount(of)
    failed = np.bincount(of, weights=outcome == FAILED)
    many = calls >= _FEW
    if many.sum() < 2:  # a single day can't differ from others
        return ()
    # the lower of two middle days, because one of two days may be the outage
    usual = float(np.sort((failed / calls)[many])[(many.sum() - 1) // 2])
    error = np.sqrt(max(usual * (1.0 - usual), 0.01) / calls)
    more = failed / calls - usual
    found = many & (more > _OUTAGE_SURELY * error) & (more > _OUTAGE_MORE)
    found &= failed / calls > _OUTAGE_TIMES * usual
    return tuple(
        OutageDay(int(dates[row]), int(calls[row]), float(failed[row] / calls[row]), usual)
        for row in np.flatnonzero(found).tolist()
    )


class _Misfit(NamedTuple):
    """Difference in standard errors, and a sentence on it."""

    deviation: float
    sentence: str


def _sentence(
    group: str,
    ended: str,
    calls: int,
    observed: float,
    expected: float,
    deviation: float,
    risk: str,
) -> _Misfit:
    """Describe a group of `calls` whose ends differ from what the fitted model expects."""
    return _Misfit(
        deviation,
        f"{group}: {observed:.0%} of {calls:,} calls {ended}, the fitted behaviour expects "
        f"{expected:.0%} ({deviation:+.0f} standard errors). At risk: {risk}",
    )


_FINISH = "the finish, as these calls come sooner or later than forecast"
_REACH = "the reach of later attempts"


def misfits(
    attempts: Attempts,
    answers: Answering,
    times: Mapping[str, FittedDurations | None],
    holds: HoldTimes | None,
) -> tuple[str, ...]:
    """Return a sentence on each difference between a log and the fitted model, the largest first.

    `times` are the fitted durations, by their names in sentences; `holds` stand for setup and
    ringing where the log has no dials.
    """
    chances = answers.model.chances_of_ends(attempts)
    found = [*_by_groups(attempts, chances), *_persistence(attempts, chances)]
    found.sort(key=lambda one: -abs(one.deviation))
    return (*(one.sentence for one in found), *_tails(times, holds))


def _by_groups(attempts: Attempts, chances: tuple[Floats, Floats]) -> Iterator[_Misfit]:
    seen = attempts.seen
    order = np.argsort(np.argsort(chances[0][seen], kind="stable"), kind="stable")
    tenth = np.full(len(attempts), -1)
    tenth[seen] = order * 10 // max(len(order), 1)
    groups: Sequence[tuple[Integers, str]] = (
        (dates_of(attempts.dialled_at), "On {date}"),
        (attempts.hour, "From {value}:00 to {after}:00"),
        (attempts.attempt, "At attempt {value}"),
        (tenth, "Of calls whose chance of an answer is in tenth {after} of all"),
    )
    for codes, words in groups:
        for value in np.unique(codes[seen]).tolist():
            date = date_text(value * DAY - THAI_OFFSET) if "date" in words else ""
            name = words.format(value=value, after=value + 1, date=date)
            rows = seen & (codes == value)
            for ended, end, own in (
                ("were answered", ANSWERED, chances[0]), ("failed", FAILED, chances[1])
            ):  # fmt: skip
                one = _compared(name, ended, attempts.outcome[rows] == end, own[rows])
                if one is not None:
                    yield one


def _persistence(attempts: Attempts, chances: tuple[Floats, Floats]) -> Iterator[_Misfit]:
    """Compare retries at an hour of an earlier, unanswered attempt with retries at other hours.

    People with hours of their own answer less often at the same hour, and more often at other
    hours, than the fitted model expects, which has no such hours. A single comparison needs fewer
    standard errors than the many of `_by_groups`.
    """
    key = attempts.person * 24 + attempts.hour
    order = np.lexsort((attempts.attempt, key))
    repeats = np.zeros(len(attempts), dtype=bool)
    repeats[order[1:]] = np.diff(key[order]) == 0
    later = attempts.seen & (attempts.attempt > 1)
    same, other = later & repeats, later & ~repeats
    if min(same.sum(), other.sum()) < _FEW:
        return
    off, variance = [], 0.0
    for rows in (same, other):
        own = chances[0][rows]
        off.append(float((attempts.outcome[rows] == ANSWERED).mean() - own.mean()))
        variance += float((own * (1.0 - own)).sum()) / len(own) ** 2
    deviation = (off[0] - off[1]) / sqrt(max(variance, 1e-12))
    if abs(deviation) >= _RHYTHM_SURELY and abs(off[0] - off[1]) >= _RHYTHM_MATTERS:
        observed = float((attempts.outcome[same] == ANSWERED).mean())
        yield _sentence(
            "Called again at an hour at which they did not answer before, against other hours",
            "were answered", int(same.sum()), observed, observed - off[0] + off[1], deviation,
            _RHYTHM,
        )  # fmt: skip


_RHYTHM = (
    f"{_REACH}. People with hours of their own are not modelled: a retry interval that meets "
    "other hours reaches more people than forecast, one of 24 hours fewer"
)


def _compared(
    group: str,
    ended: str,
    happened: NDArray[np.bool_],
    chances: Floats,
) -> _Misfit | None:
    """Return the difference of a group; None if it is within noise or too small to matter."""
    calls = len(happened)
    if calls < _FEW:
        return None
    observed, expected = float(happened.mean()), float(chances.mean())
    error = sqrt(max(float((chances * (1.0 - chances)).sum()), 1e-9)) / calls
    deviation = (observed - expected) / error
    if abs(deviation) < _SURELY or abs(observed - expected) < _MATTERS:
        return None
    return _sentence(group, ended, calls, observed, expected, deviation, _FINISH)


def _tails(times: Mapping[str, FittedDurations | None], holds: HoldTimes | None) -> Iterator[str]:
    """Yield a sentence on each fitted duration whose longest 1 % differs from the measured one."""
    found = []
    for name, fit in times.items():
        if fit is None or len(fit.measured) < _FEWEST_IN_TAIL:
            continue
        ours = fit.upper_mean(_TAIL)
        theirs = float(fit.measured[fit.measured >= np.quantile(fit.measured, _TAIL)].mean())
        if theirs > 0 and abs(ours / theirs - 1.0) > _TAIL_OFF:
            found.append((name, theirs, ours))
    if holds is not None and holds.tail is not None and holds.tail.is_off:
        found.append(
            ("hold times (setup and ringing)", holds.tail.observed, holds.tail.expected.mean())
        )
    for name, theirs, ours in found:
        yield (
            f"The longest 1 % of {name}: {theirs / 1000:,.0f} s on average, with the fitted "
            f"behaviour {ours / 1000:,.0f} s. At risk: the finish"
        )
