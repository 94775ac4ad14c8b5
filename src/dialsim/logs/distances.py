"""Distances between two logs: one number each for outcomes, times of day, talk time and so on.

Distances defined by Chapela-Campa et al. 2023, "Can I trust my simulation model? Measuring the
quality of business process simulation models" (BPM 2023) are computed as in their package
`log-distance-measures`: a case is a person in a campaign, an event is a call, its activity the
outcome. Times are compared by the 1-Wasserstein distance, the area between two cumulative
distributions: the mean displacement of an event.

An event starts with the answer, or with the end of an unanswered call, because webhooks do not
contain the instants of dials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.log_reader import CALL_STATUSES, ColumnTable
from dialsim.interface.instants import (
    DAY,
    DAY_NAMES,
    HOUR,
    MINUTE,
    THAI_OFFSET,
    duration_text,
    hour_text,
    minute_text,
)
from dialsim.logs.answering import ANSWERED
from dialsim.logs.bodies import NO_INSTANT
from dialsim.logs.bodies import OUTCOMES as STATUS_OUTCOMES
from dialsim.logs.log import Log
from dialsim.logs.log_table import milliseconds, outcomes_of, people_of
from dialsim.results.run_view import RunView
from dialsim.webhooks.messages import VERDICTS, Verdict

Instants = NDArray[np.int64]
Values = NDArray[np.float64]
Counts = NDArray[np.int64]
Histogram = tuple[Values, Counts]
"""Distinct values in order, and their counts."""

OUTCOMES = ("answered", "no answer", "busy", "failed")
"""Names of outcomes, indexed by the codes of `answering`."""
SILENT = ("not_analyzed", "failed", "pending")
"""Conversations without a webhook (A2, A4), which a log of webhooks does not contain."""
_GRAM = 3
# Sign 0 stands before a person's first call and after the last one.
_SIGNS = len(OUTCOMES) + 1
_MOST_ATTEMPTS = 10
"""Attempts from this one on are counted together."""
_SOONEST = 0.01
"""Quantile of the gaps between attempts that represents the shortest one."""
_PARTS = (np.arange(99) + 1) / 100.0
BEGINNING = 10
"""Number of percentiles that are the beginning of a log, before random deviations add up.
"""
_LARGEST_DAY_DISTANCE = 23.0
"""Distance for a day of the week on which only one log has calls (as in the package)."""


@dataclass(frozen=True, slots=True)
class Events(ColumnTable):
    """Dialled and ended calls, by person, start and end.

    `person` is equal for the calls of one person in one campaign. `outcome` is an index into
    `OUTCOMES`; `attempt` is 0 if unknown. `started` and `ended` are ms since 1970.
    """

    person: Instants
    outcome: NDArray[np.integer]
    attempt: Instants
    started: Instants
    ended: Instants

    @classmethod
    def of(
        cls,
        person: Instants,
        outcome: NDArray[np.integer],
        attempt: Instants,
        answered: Instants,
        ended: Instants,
    ) -> Events:
        """Sort calls; `answered` is NO_INSTANT for unanswered calls, `outcome` -1 for no event."""
        kept = (outcome >= 0) & (ended != NO_INSTANT)
        started = np.where((outcome == ANSWERED) & (answered != NO_INSTANT), answered, ended)
        events = cls(person, outcome, attempt, started, ended)[kept]
        return events[np.lexsort((events.ended, events.started, events.person))]


def events_of(log: Log, *, webhooks_only: bool) -> Events:
    """Return the events of a log; if `webhooks_only`, without events that webhooks don't show."""
    calls, outcome = log.calls, outcomes_of(log)
    if webhooks_only:
        silent = calls["analysis"].astype(object).isin(SILENT).to_numpy()
        outcome = np.where(silent, -1, outcome)
    attempt = calls["attempt"].fillna(0).to_numpy(np.int64)
    times = milliseconds(calls["started_at"]), milliseconds(calls["ended_at"])
    return Events.of(people_of(calls), outcome, attempt, *times)


def events_of_run(reading: RunView, *, webhooks_only: bool) -> Events:
    """Return the events of a run, as `events_of` reads them from its folder."""
    code = np.array([STATUS_OUTCOMES.get(status, -1) for status in CALL_STATUSES], dtype=np.int8)
    silent = [VERDICTS.index(Verdict(name)) for name in SILENT]
    nothing = np.empty(0, np.int64)
    top, columns = 0, [(nothing, code[:0], nothing, nothing, nothing)]
    for own in reading.campaigns.values():
        calls = own.calls
        outcome = code[calls.status]
        if webhooks_only:
            outcome[np.isin(own.verdicts.code, silent)] = -1
        person = calls.recipient.astype(np.int64) + top
        # Numbers of people start at 0 in each campaign; shifted, they are unique in the run.
        top = int(person.max(initial=top - 1)) + 1
        attempt = calls.attempt.astype(np.int64)
        columns.append((person, outcome, attempt, calls.started_at, calls.ended_at))
    joined = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
    return Events.of(*joined)


@dataclass(frozen=True, slots=True)
class Profile:
    """Data of a log, the input of distances.

    `grams` counts all sequences of three outcomes; `attempts` counts by attempt and outcome;
    `answering` counts calls, and answered calls, by hour of the day; `week` counts starts and ends
    by day (0 is Monday) and hour. `hours` and `arrivals` are hours since 1970, `relative` hours
    since a person's first start. `between`, `cycles`, `gaps` (ms) and `talks` are sorted; `moments`
    are quantiles of all starts and ends.
    """

    calls: int
    people: int
    first: int
    last: int
    grams: Counts
    attempts: Counts
    answering: Counts
    week: Counts
    hours: Histogram
    relative: Histogram
    arrivals: Histogram
    between: Values
    cycles: Values
    gaps: Values
    talks: Values
    moments: Values

    @property
    def soonest(self) -> float:
        """1 % quantile (ms) of the gaps between attempts; NaN without gaps."""
        return float(np.quantile(self.gaps, _SOONEST)) if len(self.gaps) else np.nan


def profile(events: Events, most: int | None = None) -> Profile:
    """Compute the profile; `most` is the number of values that represent a sample, None for all.

    Raises ValueError without events.
    """
    person, started, ended = events.person, events.started, events.ended
    begins = np.diff(person, prepend=person[0] - 1) != 0
    first = np.flatnonzero(begins)
    arrivals = started[first]
    origin = np.repeat(arrivals, np.diff(first, append=len(person)))
    moments = np.concatenate([started, ended])
    local = moments + THAI_OFFSET
    # Day 0 of the epoch is a Thursday.
    weekday = (local // DAY + 3) % 7
    hour = local % DAY // HOUR
    again = ~begins[1:]
    at = (started + THAI_OFFSET) % DAY // HOUR
    is_answered = events.outcome == ANSWERED
    attempt = np.minimum(events.attempt, _MOST_ATTEMPTS)
    known = attempt > 0
    cells = (attempt[known] - 1) * len(OUTCOMES) + events.outcome[known]

    def sample(values: NDArray[Any]) -> Values:
        values = np.sort(values).astype(np.float64)
        if most is None or not len(values):
            return values
        # Quantiles at the middles of equal parts represent a sample.
        return values[((np.arange(most) + 0.5) / most * len(values)).astype(np.int64)]

    return Profile(
        calls=len(person),
        people=len(first),
        first=int(started.min()),
        last=int(ended.max()),
        grams=_grams(events.outcome, first),
        attempts=np.bincount(cells, minlength=_MOST_ATTEMPTS * len(OUTCOMES)).reshape(
            _MOST_ATTEMPTS, -1
        ),
        answering=np.stack(
            [np.bincount(at, minlength=24), np.bincount(at[is_answered], minlength=24)]
        ),
        week=np.bincount(weekday * 24 + hour, minlength=168).reshape(7, 24),
        hours=_histogram(moments // HOUR),
        relative=_histogram((moments - np.concatenate([origin, origin])) // HOUR),
        arrivals=_histogram(arrivals // HOUR),
        between=sample(np.diff(np.sort(arrivals))),
        cycles=sample(np.maximum.reduceat(ended, first) - arrivals),
        gaps=sample((started[1:] - ended[:-1])[again]),
        talks=sample((ended - started)[is_answered]),
        moments=np.quantile(moments.astype(np.float64), _PARTS),
    )


def _histogram(values: Instants) -> Histogram:
    each, counts = np.unique(values, return_counts=True)
    return each.astype(np.float64), counts


def _grams(outcome: NDArray[np.integer], first: Instants) -> Counts:
    """Count each sequence of `_GRAM` outcomes, with empty outcomes around each person's."""
    empty = np.repeat(first, _GRAM - 1)
    signs = np.insert(outcome.astype(np.int64) + 1, empty, 0)
    signs = np.concatenate([signs, np.zeros(_GRAM - 1, np.int64)])
    # The two empty signs at a person's end also begin the next person, so no sequence contains
    # outcomes of both people.
    codes = (signs[:-2] * _SIGNS + signs[1:-1]) * _SIGNS + signs[2:]
    return np.bincount(codes, minlength=_SIGNS**_GRAM)


# -- distances -------------------------------------------------------------------------------------


def wasserstein(one: Histogram, other: Histogram) -> float:
    """Return the 1-Wasserstein distance of two histograms; NaN if one is empty."""
    from scipy.stats import wasserstein_distance

    if not len(one[0]) or not len(other[0]):
        return np.nan
    return float(wasserstein_distance(one[0], other[0], one[1], other[1]))


def _of_samples(one: Values, other: Values) -> float:
    from scipy.stats import wasserstein_distance

    # For sorted samples of equal size this is the same in a fraction of the time.
    if len(one) == len(other):
        return float(np.abs(one - other).mean()) if len(one) else np.nan
    return float(wasserstein_distance(one, other)) if len(one) and len(other) else np.nan


def n_gram(one: Profile, other: Profile) -> float:
    """Return the difference in counts of sequences of three outcomes, as a share of all."""
    different = np.abs(one.grams - other.grams).sum()
    return float(different / (one.grams.sum() + other.grams.sum()))


def circadian_events(one: Profile, other: Profile) -> float:
    """Return the distance of hours of the day, averaged over the days of the week (hours).

    A day on which only one log has calls counts 23.
    """
    here, there = one.week.sum(axis=1), other.week.sum(axis=1)
    both = (here > 0) & (there > 0)
    shares = [week[both] / week[both].sum(axis=1, keepdims=True) for week in (one.week, other.week)]
    by_day = np.where((here > 0) != (there > 0), _LARGEST_DAY_DISTANCE, 0.0)
    by_day[both] = np.abs(np.cumsum(shares[0] - shares[1], axis=1)).sum(axis=1)
    return float(by_day.mean())


def outcomes(one: Profile, other: Profile) -> float:
    """Return the total variation of outcomes by attempt, weighted by calls (points)."""
    return float(100.0 * by_attempt(one, other).sum() / 2.0)


def by_attempt(one: Profile, other: Profile) -> Values:
    """Return, by attempt and outcome, the difference of shares, weighted by the attempt's calls."""
    here, there = (side.attempts.sum(axis=1, keepdims=True) for side in (one, other))
    weight = np.where((here > 0) & (there > 0), here + there, 0)
    shares = one.attempts / np.maximum(here, 1) - other.attempts / np.maximum(there, 1)
    weighted: Values = np.abs(shares) * weight / max(weight.sum(), 1)
    return weighted


def answered_by_hour(one: Profile, other: Profile) -> float:
    """Return the distance of the shares answered by hour of the day, weighted by calls (points)."""
    return float(100.0 * by_hour(one, other).sum())


def by_hour(one: Profile, other: Profile) -> Values:
    """Return, by hour of the day, the difference of shares answered, weighted by the hour's
    calls.
    """
    here, there = one.answering, other.answering
    weight = np.where((here[0] > 0) & (there[0] > 0), here[0] + there[0], 0)
    rates = here[1] / np.maximum(here[0], 1) - there[1] / np.maximum(there[0], 1)
    weighted: Values = np.abs(rates) * weight / max(weight.sum(), 1)
    return weighted


def shift(one: Profile, other: Profile) -> float:
    """Return the displacement (min) that all of the second log shares."""
    return abs(common_shift(one, other)) / MINUTE


def common_shift(one: Profile, other: Profile) -> float:
    """Return the displacement (ms) that all quantiles of starts and ends share; 0 if none."""
    # If only calls take longer, or retries come later, the first calls do not move, and the result
    # is 0.
    moved = other.moments - one.moments
    # Positive if all quantiles moved later, negative if all moved earlier, else 0; one of the terms
    # is always 0.
    return float(max(moved.min(), 0.0) + min(moved.max(), 0.0))


_Distance = Callable[[Profile, Profile], float]
_Words = Callable[[Profile, Profile], tuple[str, str, str]]
"""Part of two logs that a sentence compares, and its value in each of them."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Distance between logs, its unit, and the values that a sentence on the difference shows.

    `of_people` marks distances that require distinguishable people.
    """

    key: str
    name: str
    unit: str
    distance: _Distance
    words: _Words
    of_people: bool = False

    def __reduce__(self) -> tuple[Callable[[str], Metric], tuple[str]]:
        # The metric's functions are made by other functions, so that pickle cannot find them by
        # name.
        return _metric, (self.key,)

    def text(self, value: float) -> str:
        """Format a distance without its unit."""
        if self.unit == "share":
            return f"{value:.3f}"
        whole = not self.unit or value >= 100
        return f"{value:,.0f}" if whole else f"{value:.{1 if value >= 10 else 2}f}"

    def sentence(self, real: Profile, simulated: Profile) -> str:
        """Return the difference in words."""
        where, here, there = self.words(real, simulated)
        return f"{self.name}: {where}{there} in SIMULATED, {here} in REAL"


def _hours(name: str) -> _Distance:
    """Return the function that compares a histogram of hours of two logs."""
    return lambda one, other: wasserstein(getattr(one, name), getattr(other, name))


def _samples(name: str, unit: int) -> _Distance:
    """Return the function that compares sorted times of two logs, in a unit (ms)."""
    return lambda one, other: _of_samples(getattr(one, name), getattr(other, name)) / unit


def _values(value: Callable[[Profile], float]) -> _Distance:
    """Return the function that compares a number of two logs."""
    return lambda one, other: float(abs(value(one) - value(other)))


def _each(text: Callable[[Profile], str]) -> _Words:
    """Return the function that shows the same text about both logs."""
    return lambda one, other: ("", text(one), text(other))


def _time(ms: Callable[[Profile], float], when: str = " on average") -> _Words:
    """Return the function that shows a duration of both logs, rounded to steps above noise."""

    def text(side: Profile) -> str:
        value = ms(side)
        step = 100 if value < MINUTE else 1_000 if value < HOUR else MINUTE
        return duration_text(round(value / step) * step) + when

    return _each(text)


def _instant(ms: Callable[[Profile], float]) -> _Words:
    return _each(lambda side: minute_text(round(ms(side))))


def _mean(histogram: Histogram) -> float:
    """Return the mean of a histogram of hours, in ms."""
    return float(np.average(histogram[0], weights=histogram[1])) * HOUR


def _largest(values: NDArray[Any]) -> tuple[int, ...]:
    """Return the index of the value furthest from 0."""
    return tuple(map(int, np.unravel_index(np.abs(values).argmax(), values.shape)))


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}".replace("%", " %")


def _outcome_words(one: Profile, other: Profile) -> tuple[str, str, str]:
    attempt, outcome = _largest(by_attempt(one, other))
    shares = [side.attempts[attempt] / side.attempts[attempt].sum() for side in (one, other)]
    here, there = (_share(share[outcome], 1.0) for share in shares)
    return f"attempts number {attempt + 1} that end with {OUTCOMES[outcome]}: ", here, there


def _hour_words(one: Profile, other: Profile) -> tuple[str, str, str]:
    (hour,) = _largest(by_hour(one, other))
    here, there = (
        _share(side.answering[1, hour], side.answering[0, hour]) for side in (one, other)
    )
    return f"from {hour_text(hour)}: ", here, there


def _week_words(one: Profile, other: Profile) -> tuple[str, str, str]:
    day, hour = _largest(one.week / one.week.sum() - other.week / other.week.sum())
    here, there = (_share(side.week[day, hour], side.week.sum()) for side in (one, other))
    return f"on {DAY_NAMES[day]}s from {hour_text(hour)}: ", here, there


def _gram_words(one: Profile, other: Profile) -> tuple[str, str, str]:
    (code,) = _largest(one.grams - other.grams)
    signs = [code // _SIGNS**index % _SIGNS for index in reversed(range(_GRAM))]
    names = ["nothing", *OUTCOMES]
    here, there = (f"{side.grams[code]:,} times" for side in (one, other))
    return f"{', then '.join(names[sign] for sign in signs)}: ", here, there


def _metric(key: str) -> Metric:
    return next(one for one in METRICS if one.key == key)


METRICS = (
    Metric("people", "number of people", "", _values(lambda side: side.people),
           _each(lambda side: f"{side.people:,}"), of_people=True),
    Metric("shift", "shift of all calls", "min", shift,
           _instant(lambda side: float(np.median(side.moments[:BEGINNING])))),
    Metric("retryInterval", "retry interval", "min",  # shown by the shortest gaps
           _values(lambda side: side.soonest / MINUTE),
           _time(lambda side: side.soonest, ""), of_people=True),
    Metric("talkTime", "talk time", "s", _samples("talks", 1_000),
           _time(lambda side: side.talks.mean())),
    Metric("outcomes", "share of outcomes by attempt", "points", outcomes, _outcome_words),
    Metric("answeredByHour", "share answered by hour of the day", "points", answered_by_hour,
           _hour_words),
    Metric("nGram", "sequence of outcomes", "share", n_gram, _gram_words, of_people=True),
    Metric("calls", "number of calls", "", _values(lambda side: side.calls),
           _each(lambda side: f"{side.calls:,}")),
    Metric("absolute", "hour of calls", "h", _hours("hours"),
           _instant(lambda side: _mean(side.hours))),
    Metric("circadian", "day of the week and hour of calls", "h", circadian_events, _week_words),
    Metric("arrivals", "hour of first calls", "h", _hours("arrivals"),
           _instant(lambda side: _mean(side.arrivals)), of_people=True),
    Metric("interArrivals", "time between first calls", "s", _samples("between", 1_000),
           _time(lambda side: side.between.mean()), of_people=True),
    Metric("relative", "time since the first call", "h", _hours("relative"),
           _time(lambda side: _mean(side.relative)), of_people=True),
    Metric("gaps", "gap between attempts", "min", _samples("gaps", MINUTE),
           _time(lambda side: side.gaps.mean()), of_people=True),
    Metric("cycleTime", "time from first to last call", "min", _samples("cycles", MINUTE),
           _time(lambda side: side.cycles.mean()), of_people=True),
    Metric("finish", "time to finish", "min",
           _values(lambda side: (side.last - side.first) / MINUTE),
           _time(lambda side: side.last - side.first, "")),
)  # fmt: skip
