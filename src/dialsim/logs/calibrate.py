"""Behaviours estimated from a log: answers, durations, and failures.

`docs/calibrate.md` describes the methods, and the values that a log cannot determine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray

from dialsim.engine.rules import week_position
from dialsim.errors import DialsimError, LogError
from dialsim.experiments.forecast import Forecast, forecast
from dialsim.experiments.variants import Variant, variants_in
from dialsim.interface.arguments import checked
from dialsim.interface.instants import DAY, HOUR, THAI_OFFSET, WEEK, WEEKDAYS
from dialsim.interface.phrases import brief_text
from dialsim.logs.answering import (
    ANSWERED,
    COLUMNS,
    DAYS_OF_WEEK,
    ENDS,
    FAILED,
    UNSEEN,
    Answering,
    Attempts,
    DialHistory,
    PointEstimate,
    Wear,
    answering,
)
from dialsim.logs.bodies import NO_INSTANT
from dialsim.logs.durations import FittedDurations, fitted
from dialsim.logs.hold_times import HoldTimes, assumed_holds, hold_times
from dialsim.logs.log import CampaignOfLog, Log
from dialsim.logs.log_table import milliseconds, outcomes_of, people_of
from dialsim.logs.misfit import OutageDay, date_name, dates_of, misfits, outages
from dialsim.results.summary_text import FigureTable, fragment
from dialsim.scenario.loading import document_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dialsim.experiments.replications import RunSettings
    from dialsim.logs.answering import Level
    from dialsim.scenario.scenario import Scenario

By = Literal["agent", "campaign", "segment"]

FEWEST = 30
"""Fewest calls for an estimate."""
_RATES = {"silent": "no_conversation", "notRecorded": "not_analyzed",
          "analysisUnavailable": "unavailable"}  # fmt: skip
_LATE_TIMES, _LATE_MS = 10, 300_000
"""A result is late (A4) beyond this multiple of the median delay, and beyond this time in ms."""
_MOST_VALUES = 20
"""Most distinct values of a field with estimated shares; fields with more are free text."""
NEVER_SATURATED = (
    "the lines were never saturated for long, so the log does not show how long calls are set up "
    "and ring. Setup and ring times are the default's, and the finish depends on them"
)
_BINS = 10
_OPEN = {
    "concentration": "how much people differ is hardly seen in it",
    "reachable": "people who never answer look like people who rarely do",
    "deadNumbers": "too few calls show whose number always fails",
}
"""Reasons why a log leaves a value of `people` undetermined."""
_ALIKE = 0.05
"""Share of the variance within an hour below which numbers count as equally used."""
_OFF = 0.05
"""Least difference between a share of answered calls and its forecast that is reported."""


Shares = Mapping[str, PointEstimate]
"""Shares of values among conversations."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Behaviour estimated from a log; values that the log does not contain are None or missing.

    `setup_time` and `ring_time` (with the keys of the scenario) are measured in logs with instants
    of dials, `holds` is estimated from logs without. `furthest` are the shares of the funnel's
    values, `fields` the shares of each field's values. `latency` is the time from the end of an
    unanswered call to its webhook. `undetermined` has a sentence on each undetermined value.
    """

    name: str
    calls: int
    people: int
    first: int
    last: int
    answering: Answering
    talk_time: FittedDurations | None
    setup_time: FittedDurations | None
    ring_time: Mapping[str, FittedDurations]
    holds: HoldTimes | None
    analysis_delay: FittedDurations | None
    late_result_delay: FittedDurations | None
    rates: Mapping[str, PointEstimate]
    furthest: Shares
    fields: Mapping[str, Shares]
    latency: FittedDurations | None
    undetermined: Sequence[str]
    misfits: Sequence[str]


@dataclass(frozen=True, slots=True)
class Bin:
    """Calls with similar forecasts: mean forecast, and share of answers."""

    forecast: float
    answered: PointEstimate

    @property
    def is_contradicted(self) -> bool:
        """True if the share of answered calls is off the forecast by more than 3 standard errors
        and by more than 5 percentage points.
        """
        off = abs(self.answered.value - self.forecast)
        return off > 3.0 * self.answered.error and off > _OFF


@dataclass(frozen=True, slots=True)
class HoldOut:
    """Quality of forecasts for calls that the estimate has not used.

    The model learned from the calls dialled up to `cut` (ms) and forecast the others, each from the
    person's earlier calls. `loss` is its log loss per call; `constant` is the log loss if every
    call is forecast by the share answered up to the cut. `gain` is `constant` minus `loss`.
    """

    cut: int
    learned: int
    calls: int
    loss: float
    constant: float
    gain: PointEstimate
    curve: tuple[Bin, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return a sentence on each group whose answers contradict its forecast."""
        return tuple(
            f"of {one.answered.count:,} calls forecast at {one.forecast:.0%}, "
            f"{one.answered.value:.0%} were answered"
            for one in self.curve
            if one.is_contradicted
        )


@checked(LogError)
@dataclass(frozen=True, slots=True)
class Calibration:
    """Behaviours estimated from a log, by name; `by` is the grouping (None: all calls together)."""

    source: str
    by: By | None
    behaviours: Mapping[str, Calibrated]
    left_out: Mapping[str, int]
    hold_out: Mapping[str, HoldOut]
    outages: tuple[OutageDay, ...]
    without: tuple[int, ...]
    """Dates that are left out, outages included."""
    assumes_holds: bool
    """True if setup and ring times are the default's, as the log does not show them."""

    def to_yaml(self) -> str:
        """Return the block `behaviours:` of a scenario; comments have the precision of each
        number.
        """
        from dialsim.logs.behaviour_text import yaml_text

        return yaml_text(self)

    @property
    def draws(self) -> tuple[Variant, ...]:
        """Behaviours that may have made the log as well, drawn from the posterior.

        Each is a variant that replaces values of the scenario that `apply` returns. They are the
        same at each access.
        """
        from dialsim.logs.behaviour_text import draws_text

        return tuple(variants_in(draws_text(self), self.source))

    @property
    def misfit(self) -> tuple[str, ...]:
        """Sentences on each contradiction of the estimate by the log, or one that there is none."""
        found = [
            f"The log contradicts behaviour {name}: {sentence}"
            for name, one in self.behaviours.items()
            for sentence in one.misfits
        ]
        return tuple(found) or ("Check of misfit: the log contradicts none of the estimates",)

    def apply(self, scenario: Scenario) -> Scenario:
        """Return a scenario whose agents have these behaviours.

        Without `by` all agents have the single behaviour. Otherwise an agent has the behaviour of
        its name, or of the name of its campaign. Raises DialsimError for behaviours by segment, and
        if none of them fits.
        """
        if self.by == "segment":
            raise DialsimError(
                "behaviours by segment belong to no agent: calibrate without by, which estimates "
                "bySegment"
            )
        changes: dict[str, object] = {}
        for o, owner in enumerate(scenario.organizations):
            for a, agent in enumerate(owner.agents):
                called = {one.name for one in owner.campaigns if one.agent == agent.name}
                names = {None: {"default"}, "agent": {agent.name}}.get(self.by, called)
                fitting = sorted(names & self.behaviours.keys())
                if len(fitting) > 1:
                    raise DialsimError(
                        f"agent {agent.name} has one behaviour, but calls {' and '.join(fitting)}: "
                        "calibrate by agent"
                    )
                for name in fitting:
                    changes[f"organizations.{o}.agents.{a}.behaviour"] = name
        if not changes:
            listed = ", ".join(self.behaviours)
            raise DialsimError(f"no {self.by} of the scenario has a behaviour; there are {listed}")
        from dialsim.logs.behaviour_text import behaviours_of

        kept = document_of(scenario).get("behaviours") or {}
        return scenario.with_({"behaviours": kept | behaviours_of(self), **changes})

    def forecast(
        self,
        scenario: Scenario,
        replications: int = 100,
        *,
        seed: int | None = None,
        **settings: Unpack[RunSettings],
    ) -> Forecast:
        """Forecast a scenario with these behaviours and their uncertainty.

        The runs are divided among `draws`. The check of misfit is among the forecast's sentences.
        Arguments and errors are as in `dialsim.forecast` and `apply`.

        >>> log = dialsim.read_log(result.write("out/log"))
        >>> print(dialsim.calibrate(log).forecast(scenario, 20, jobs=1))
        <dialsim.Forecast 'Scenario'>
        Done by ...
        """
        return forecast(
            self.apply(scenario), replications, draws=self.draws, notes=self._notes, seed=seed,
            **settings,
        )  # fmt: skip

    @property
    def _notes(self) -> tuple[str, ...]:
        return tuple(f"{sentence}." for sentence in self.misfit)

    @property
    def frame(self) -> pd.DataFrame:
        """Table with a row per estimate: behaviour, key in a scenario, value, low, high (95 %),
        unit, count (calls or people it rests on), and whether the log determines it.
        """
        from dialsim.logs.behaviour_text import estimates_of

        rows = [
            (name, *row) for name, found in self.behaviours.items() for row in estimates_of(found)
        ]
        columns = ["behaviour", "key", "value", "low", "high", "unit", "count", "sure"]
        return pd.DataFrame(rows, columns=columns)

    @property
    def sure(self) -> bool:
        """True if the log determines all values of `frame`, and contradicts none."""
        contradicted = any(found.misfits for found in self.behaviours.values())
        return bool(self.frame["sure"].all()) and not contradicted

    @property
    def plot(self) -> CalibrationPlots:
        """Plots: `plot.factors()` and `plot.talk_times()`."""
        return CalibrationPlots(self)

    def __repr__(self) -> str:
        from dialsim.logs.behaviour_text import summary_lines

        lines = [*self._notes, *summary_lines(self)]
        return brief_text(f"dialsim.Calibration of {self.source}", lines)

    def _repr_html_(self) -> str:
        from dialsim.logs.behaviour_text import estimate_rows

        columns = ("estimate", "rests on")
        tables = [
            FigureTable(name, columns, tuple(estimate_rows(found)))
            for name, found in self.behaviours.items()
        ]
        return fragment(f"Behaviour from {self.source}", self._notes, tables)


Group = Literal["hour", "day", "segment"]


def levels_of(answers: Answering) -> dict[Group, dict[str, Level]]:
    """Return factors on the odds of an answer by group."""
    return {
        "hour": {str(hour): level for hour, level in answers.hours.items()},
        "day": {WEEKDAYS[day - 1]: level for day, level in answers.weekdays.items()},
        "segment": dict(answers.segments),
    }


@checked(LogError)
class CalibrationPlots:
    """Plots of a calibration, drawn on `ax` or on a new figure, like `Result.plot`.

    `behaviour` is a name, by default the first.
    """

    def __init__(self, calibration: Calibration) -> None:
        self._behaviours = calibration.behaviours

    def factors(
        self,
        by: Group = "hour",
        behaviour: str | None = None,
        *,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot the factors on the odds of an answer, with 95 % intervals."""
        from dialsim.results.plots.drawing import BLUE, GRID, canvas, dress

        ax, levels = canvas(ax), levels_of(self._of(behaviour).answering)[by]
        at = np.arange(len(levels))
        values = np.exp([level.value for level in levels.values()])
        ends = np.exp([[level.low, level.high] for level in levels.values()]).T
        ax.axhline(1.0, color=GRID, linewidth=1.0)
        ax.errorbar(at, values, yerr=np.abs(ends - values), fmt="o", color=BLUE, markersize=4)
        ax.set_xticks(at, list(levels))
        ax.set_ylim(bottom=0.0)
        return dress(ax, f"Odds of an answer by {by}", "", "factor")

    def talk_times(self, behaviour: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot the quantiles of talk times, measured and fitted."""
        from dialsim.results.plots.drawing import BLACK, ORANGE, canvas, dress, share_axis

        found = self._of(behaviour).talk_time
        if found is None:
            raise DialsimError("the log shows no talk times")
        ax, parts = canvas(ax), (np.arange(100) + 0.5) / 100.0
        seconds = np.quantile(found.measured, parts) / 1000.0, found.quantiles / 1000.0
        ax.plot(seconds[0], parts, color=BLACK, label="measured")
        ax.plot(seconds[1], parts, "--", color=ORANGE, label=found.distribution.dist)
        share_axis(ax)
        return dress(ax, "Talk times", "seconds", "calls that are as short")

    def _of(self, behaviour: str | None) -> Calibrated:
        name = next(iter(self._behaviours)) if behaviour is None else behaviour
        if name not in self._behaviours:
            raise DialsimError(
                f"there is no behaviour {name}; there are {', '.join(self._behaviours)}"
            )
        return self._behaviours[name]


@checked(LogError)
def calibrate(
    log: Log,
    by: By | None = None,
    hold_out: float | None = None,
    *,
    lines: int | None = None,
    without: Sequence[int] = (),
) -> Calibration:
    """Estimate behaviours from a log.

    With `by` there is a behaviour for each agent, campaign or segment. `hold_out` is the share of
    calls, the last ones, that are forecast from the calls before. `lines` is maxConcurrentCalls
    where webhooks do not show it. Dates `without`, in days since 1970 (Thai time), are left out
    like days of outages: each has a factor of its own, and nothing is learned from its failures.
    Raises DialsimError for too few calls, and for a date without a call.

    >>> log = dialsim.read_log(result.write("out/log"))
    >>> dialsim.calibrate(log).frame.columns.tolist()
    ['behaviour', 'key', 'value', 'low', 'high', 'unit', 'count', 'sure']
    """
    if hold_out is not None and not 0.0 < hold_out < 1.0:
        raise DialsimError(f"hold-out must be a share between 0 and 1, not {hold_out:g}")
    calls = dialled_calls(log)
    holds = None if log.has_dials else hold_times(log, calls, lines)
    if holds is not None:
        # Twice: hold times are estimated from the calls, and then place their dials better.
        calls = dialled_calls(log, holds)
    known = outages(calls["outcome"].to_numpy(), calls["dialled_at"].to_numpy())
    _require_calls(log, calls, without)
    left = tuple(sorted({*without, *(one.date for one in known)}))
    dials = _dials(log, calls)
    behaviours, left_out, held = {}, {}, {}
    for name, part in _groups(log, calls, by):
        if len(part) < FEWEST:
            left_out[name] = len(part)
            continue
        segments = by != "segment"
        behaviours[name] = _calibrated(name, log, part, dials, holds, left, segments=segments)
        if hold_out is not None and (found := _held_out(part, dials, hold_out, left)) is not None:
            held[name] = found
    if not behaviours:
        counted = f"{log.source}: {len(calls)} calls were dialled and have ended"
        raise DialsimError(f"{counted}; a behaviour is estimated from {FEWEST} calls or more")
    if hold_out is not None and not held:
        raise DialsimError(
            f"hold-out {hold_out:g} of {len(calls)} calls leaves too few to learn from or to "
            f"forecast: {FEWEST} of each are needed"
        )
    assumes_holds = holds is None and not log.has_dials
    return Calibration(log.source, by, behaviours, left_out, held, known, left, assumes_holds)


def _require_calls(log: Log, calls: pd.DataFrame, dates: Sequence[int]) -> None:
    """Raise DialsimError for a date that is to be left out but has no call."""
    called = np.unique(dates_of(calls["dialled_at"].to_numpy()))
    for date in dates:
        if date not in called:
            first, last = (date_name(int(one)) for one in (called.min(), called.max()))
            raise DialsimError(
                f"{log.source}: no call was made on {date_name(date)}, which is to be left out; "
                f"calls were made from {first} to {last}"
            )


def dialled_calls(log: Log, holds: HoldTimes | None = None) -> pd.DataFrame:
    """Return dialled and ended calls, with `outcome` and `dialled_at` (ms).

    `dial` is the index of a call among the known dials, or −1. Dials that the log does not contain
    are estimated from the end of ringing and `holds`, or the default's setup and ring times.
    """
    outcome, known = outcomes_of(log), _known_dials(log)
    calls = log.calls[outcome >= 0].copy()
    calls["outcome"] = outcome[outcome >= 0]
    calls["dial"] = np.where(known, np.cumsum(known) - 1, -1)[outcome >= 0]
    started, ended = milliseconds(calls["started_at"]), milliseconds(calls["ended_at"])
    dialled = milliseconds(calls["initiated_at"])
    held = assumed_holds()[0] if holds is None else holds.means
    codes = calls["outcome"].to_numpy()
    rung = np.where((codes == ANSWERED) & (started != NO_INSTANT), started, ended)
    earliest = _earliest_dials(log, calls["setting"].to_numpy(), rung)
    before = rung - held[codes].astype(np.int64)
    # A guess must not lie before the window opened; else the first minutes of a day would seem to
    # belong to the hour before.
    guessed = np.maximum(before, np.minimum(earliest, rung))
    guessed = np.where(rung != NO_INSTANT, guessed, NO_INSTANT)
    calls["dialled_at"] = np.where(dialled != NO_INSTANT, dialled, guessed)
    return calls[calls["dialled_at"] != NO_INSTANT]


def _earliest_dials(
    log: Log, settings: NDArray[np.int64], at: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return lower limits (ms) of the dials of calls that stopped ringing `at` instants (T3, F3).

    The limit is the latest opening of a window, or the campaign's start.
    """
    earliest = np.zeros(len(at), dtype=np.int64)
    for number, one in enumerate(log.settings):
        rows = np.flatnonzero((settings == number) & (at != NO_INSTANT))
        start = 0 if one.start_at is None else one.start_at
        earliest[rows] = start
        windows = one.calling_hours
        if windows is None:
            continue
        # `ranges` merges adjacent windows, so a guess may cross from one to the next.
        opening = np.array(windows.ranges[0])
        position = week_position(at[rows])
        # index −1: the last opening of the previous week
        last = np.searchsorted(opening, position, side="right") - 1
        earliest[rows] = np.maximum(start, at[rows] - (position - opening[last]) % WEEK)
    return earliest


def _dials(log: Log, calls: pd.DataFrame) -> DialHistory | None:
    """Return all dials of a log by caller ID (P3); None if one of `calls` is not among them."""
    # Use counts of a number are wrong if any dial from it is missing.
    if (calls["dial"] < 0).any():
        return None
    dialled = log.calls[_known_dials(log)]
    owners = dict(enumerate(str(one.organization) for one in log.campaigns))
    shown = [dialled["campaign"].map(owners), dialled["caller_id"].astype(str)]
    number = pd.MultiIndex.from_arrays(shown).factorize()[0].astype(np.int64)
    return DialHistory(number, milliseconds(dialled["initiated_at"]))


def _known_dials(log: Log) -> NDArray[np.bool_]:
    """Return True for calls with a known caller ID and instant of the dial."""
    known = log.calls["initiated_at"].notna() & log.calls["caller_id"].notna()
    return known.to_numpy(bool)


def _groups(log: Log, calls: pd.DataFrame, by: By | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the calls of each behaviour, by name."""
    if by is None:
        yield "default", calls
        return
    if by == "segment":
        if not calls["segment"].notna().any():
            raise DialsimError(
                f"{log.source}: names no segments; only the folder of a run does. "
                "Without --by segment there is one behaviour for everybody"
            )
        names = calls["segment"].astype(object).where(calls["segment"].notna(), "none")
    else:
        listed = [behaviour_of(one, by) for one in log.campaigns]
        names = calls["campaign"].map(dict(enumerate(listed)))
    for name, part in calls.groupby(names.astype(str), sort=True):
        yield str(name), part


def behaviour_of(campaign: CampaignOfLog, by: By | None) -> str:
    """Return the name of the behaviour of a campaign's calls; not for `by` segment."""
    if by is None:
        return "default"
    name = campaign.agent or campaign.agent_id if by == "agent" else campaign.name or campaign.id
    return name or "unknown"


def cut_of(dialled_at: NDArray[np.int64], share: float) -> int:
    """Return the instant (ms) after which the last `share` of calls is dialled."""
    return int(np.quantile(dialled_at, 1.0 - share))


def attempts_of(
    calls: pd.DataFrame,
    dials: DialHistory | None,
    without: Sequence[int] = (),
    *,
    segments: bool = True,
) -> Attempts:
    """Return dialled calls by person and attempt.

    Attempts that the log lacks before a person's later attempts are added as unseen.
    """
    dialled_at = calls["dialled_at"].to_numpy(np.int64)
    days, time = np.divmod(dialled_at + THAI_OFFSET, DAY)
    names: tuple[str, ...] = ()
    segment: Any = -1
    if segments and calls["segment"].notna().any():
        kinds = pd.Categorical(calls["segment"].astype(object))
        names, segment = tuple(map(str, kinds.categories)), kinds.codes.astype(np.int64)
    seen = pd.DataFrame(
        {
            "person": people_of(calls),
            # Masked calls have no attempt number; as first attempts they imply no earlier calls.
            "attempt": np.maximum(calls["attempt"].fillna(1).to_numpy(np.int64), 1),
            "hour": time // HOUR,
            # Day 0 of the epoch is a Thursday.
            "day": (days + 3) % 7 + 1,
            "segment": segment,
            "outcome": calls["outcome"].to_numpy(np.int64),
            "dial": calls["dial"].to_numpy(np.int64),
            "dialled_at": dialled_at,
        }
    )
    # A missing attempt was not answered (R3), which is evidence about the person even without its
    # hour.
    attempts = pd.concat([seen, _unseen(seen)]).sort_values(["person", "attempt", "dialled_at"])
    attempts = _without(attempts, without)
    columns: dict[str, Any] = {name: attempts[name].to_numpy() for name in COLUMNS}
    return Attempts(**columns, segments=names, dials=dials)


def _without(attempts: pd.DataFrame, dates: Sequence[int]) -> pd.DataFrame:
    """Assign separate day codes to the calls of these dates, and remove their failed calls.

    The other calls stay: without them, the recipients who answered on these dates would be missing
    among people of their kind.
    """
    date = dates_of(attempts["dialled_at"].to_numpy())
    for number, left_out in enumerate(dates, DAYS_OF_WEEK + 1):
        rows = (date == left_out) & (attempts["outcome"] != UNSEEN)
        attempts.loc[rows, "day"] = number
    failed = (attempts["day"] > DAYS_OF_WEEK) & (attempts["outcome"] == FAILED)
    return attempts[~failed]


def _unseen(seen: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each missing attempt before a person's last one."""
    ordered = seen.sort_values(["person", "attempt"])
    before = ordered.groupby("person")["attempt"].shift(fill_value=0)
    missing = (ordered["attempt"] - before - 1).clip(lower=0)
    rows = ordered.index.repeat(missing)
    gaps = ordered.loc[rows, ["person", "segment"]].reset_index(drop=True)
    gaps["attempt"] = before[rows].to_numpy() + 1 + gaps.groupby(rows.to_numpy()).cumcount()
    return gaps.assign(hour=-1, day=-1, outcome=UNSEEN, dial=-1, dialled_at=0)


def _calibrated(
    name: str,
    log: Log,
    calls: pd.DataFrame,
    dials: DialHistory | None,
    holds: HoldTimes | None,
    without: Sequence[int],
    *,
    segments: bool,
) -> Calibrated:
    attempts = attempts_of(calls, dials, without, segments=segments)
    answers = answering(attempts)
    if (why := answers.contradicted(attempts)) is not None:
        raise DialsimError(
            f"{log.source}: no behaviour {name} is written, because its estimates do not reproduce "
            f"the log: {why}"
        )
    answered = calls[calls["outcome"] == ANSWERED]
    talk = _fitted(answered["call_duration_ms"].dropna().to_numpy(np.int64))
    setup, rings = _line_times(calls)
    setup_time, ring_times = _fitted(setup), {end: _fitted(one) for end, one in rings.items()}
    latency = _latencies(calls)
    rates, delays, late = _analyses(log, answered, latency)
    furthest, fields = _found(answered)
    at = calls["dialled_at"].to_numpy()
    times = {"conversations": talk, "setup times": setup_time}
    times |= {f"ring times before {end}": fit for end, fit in ring_times.items()}
    return Calibrated(
        name=name,
        calls=len(calls),
        people=len(np.unique(attempts.person)),
        first=int(at.min()),
        last=int(at.max()),
        answering=answers,
        talk_time=talk,
        setup_time=setup_time,
        ring_time={end: fit for end, fit in ring_times.items() if fit is not None},
        holds=holds,
        analysis_delay=_fitted(delays),
        late_result_delay=_fitted(late),
        rates=rates,
        furthest=furthest,
        fields=fields,
        latency=_fitted(latency),
        undetermined=[*_undetermined(log, answers, attempts, delays, holds)],
        misfits=misfits(attempts, answers, times, holds),
    )


def _fitted(measured: NDArray[np.int64]) -> FittedDurations | None:
    return fitted(measured) if len(measured) >= FEWEST else None


def _line_times(
    calls: pd.DataFrame,
) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    """Return the times to set up lines and to ring (ms), as far as the log contains them (P1)."""
    known = calls[calls["initiated_at"].notna() & calls["ended_at"].notna()]
    at = {name: milliseconds(known[name]) for name in
          ("initiated_at", "ringing_at", "started_at", "ended_at")}  # fmt: skip
    outcome = known["outcome"].to_numpy()
    end = np.where(at["started_at"] != NO_INSTANT, at["started_at"], at["ended_at"])
    ringing = np.where(at["ringing_at"] != NO_INSTANT, at["ringing_at"], end)
    rings = {name: (end - ringing)[outcome == code] for code, name in enumerate(ENDS)}
    return ringing - at["initiated_at"], rings


def _latencies(calls: pd.DataFrame) -> NDArray[np.int64]:
    """Return the times from the ends of unanswered calls to their webhooks (ms; W3)."""
    rows = calls[
        (calls["outcome"] != ANSWERED) & calls["sent_at"].notna() & calls["ended_at"].notna()
    ]
    values = milliseconds(rows["sent_at"]) - milliseconds(rows["ended_at"])
    return values[values >= 0]


def _share(count: int, total: int) -> PointEstimate:
    """Return a share and its standard error."""
    # One success and one failure are added for the error (Agresti, Coull), which would be 0 for
    # shares of 0 and 1.
    share, about = count / total, (count + 1) / (total + 2)
    return PointEstimate(share, sqrt(about * (1.0 - about) / total), total)


def _analyses(
    log: Log, answered: pd.DataFrame, latency: NDArray[np.int64]
) -> tuple[dict[str, PointEstimate], NDArray[np.int64], NDArray[np.int64]]:
    """Return failure rates, and the delays (ms) of analyses and of late results."""
    kinds = answered["analysis"].astype(object)
    judged = answered[kinds.notna() & (kinds != "pending")]
    if not len(judged):
        return {}, np.empty(0, np.int64), np.empty(0, np.int64)
    kinds = judged["analysis"].astype(str)
    sent = judged[judged["sent_at"].notna() & judged["ended_at"].notna()]
    took = milliseconds(sent["sent_at"]) - milliseconds(sent["ended_at"])
    # A webhook arrives after analysis and latency; unanswered calls show the latency alone.
    took = np.maximum(took - (np.median(latency).astype(np.int64) if len(latency) else 0), 0)
    middle = np.median(took) if len(took) else 0
    # Both bounds: with very quick analyses ten times the median is nothing unusual.
    is_late = took > max(_LATE_TIMES * middle, _LATE_MS)
    late, failed = int(is_late.sum()), int((kinds == "failed").sum())
    found = Counter(kinds)
    total = len(judged)
    rates = {rate: _share(found[kind], total) for rate, kind in _RATES.items()
             if log.form == "run" or rate != "notRecorded"}  # fmt: skip
    # In a log of webhooks an analysis that failed for good leaves no body.
    if log.form == "run" or late:
        rates["analysisFailed"] = _share(late + failed, total)
    if log.form == "run" and late + failed:
        rates["lateResult"] = _share(late, late + failed)
    ordinary = took[~is_late]
    wait = int(np.median(ordinary)) if len(ordinary) else 0
    return rates, ordinary, np.maximum(took[is_late] - wait, 0)


def _found(answered: pd.DataFrame) -> tuple[Shares, dict[str, Shares]]:
    """Return the shares of the funnel's and of each field's values in analyzed conversations."""
    sound = answered[answered["analysis"].astype(str) == "analyzed"]
    furthest = _shares(Counter(sound["funnel"].dropna().astype(str)))
    counted: dict[str, Counter[str]] = {}
    for text, count in sound["fields"].dropna().astype(str).value_counts().items():
        for field, value in orjson.loads(str(text)).items():
            shown = value if isinstance(value, str) else orjson.dumps(value).decode()
            counted.setdefault(field, Counter())[shown] += int(count)
    fields = {
        name: _shares(values)
        for name, values in counted.items()
        if len(values) <= min(_MOST_VALUES, values.total() / 2)
    }
    return furthest, fields


def _shares(counted: Counter[str]) -> Shares:
    total = counted.total()
    return {value: _share(count, total) for value, count in counted.most_common()}


def _undetermined(
    log: Log,
    answers: Answering,
    attempts: Attempts,
    delays: NDArray[np.int64],
    holds: HoldTimes | None,
) -> Iterator[str]:
    """Yield a sentence on each value that the log does not determine."""
    if not log.has_dials:
        if holds is None:
            yield f"setupTime and ringTime: {NEVER_SATURATED}"
        yield "rates.agentError and rates.notRecorded: such calls send no webhook (A2)"
    else:
        yield "rates.agentError alone: the log shows such calls as notRecorded"
    for key, why in _OPEN.items():
        if key not in answers.determined:
            yield (
                f"people.{key} by itself: {why}. The value is part of the joint fit and goes with "
                "the other values of people and outcomes; replace none of them alone"
            )
    if not len(delays):
        yield (
            "analysisDelay and rates.lateResult: the log doesn't say when results were sent. "
            "rates.analysisFailed contains only failures without a late result"
        )
    yield "answeredOdds.onHoliday: a log names no holidays"
    if answers.wear is None:
        yield f"answeredOdds.byCallerIdUse: {answers.no_wear}"
    elif _used_alike(answers.wear, attempts):
        yield (
            "answeredOdds.byCallerIdUse in full: at any one time all numbers had been used about "
            "equally. Other changes over time, but for hours and days, would look the same"
        )
    if len(answers.attempts) > 1 and "concentration" in answers.determined:
        yield (
            "answeredOdds.byAttempt in full: that later attempts are answered less often is put "
            "down to the people who are left, as far as that explains it"
        )
    if not attempts.segments:
        yield "answeredOdds.bySegment: the calls have no segments"


def _used_alike(wear: Wear, attempts: Attempts) -> bool:
    """Return True if, at any one time, all caller IDs had been used about equally."""
    assert attempts.dials is not None
    uses = attempts.dials.uses(wear.recovery.factor.value)[attempts.dial[attempts.seen]]
    hour = pd.Series(attempts.dialled_at[attempts.seen] // HOUR)
    # Within an hour of a date everything else is equal; only differences there identify fatigue.
    within = pd.Series(uses).groupby(hour).transform("mean") - uses
    return bool(within.var() < _ALIKE * uses.var())


def _held_out(
    calls: pd.DataFrame, dials: DialHistory | None, share: float, without: Sequence[int]
) -> HoldOut | None:
    """Estimate from the first calls and forecast the others; None with too few of either."""
    attempts = attempts_of(calls, dials, without)
    at, seen = attempts.dialled_at, attempts.seen
    # Divided by time, not at random: a forecast is about later calls.
    cut = cut_of(at[seen], share)
    before = at <= cut
    learned = int((before & seen).sum())
    later = ~before & seen
    if learned < FEWEST or later.sum() < FEWEST:
        return None
    # The log loss of an impossible event would be infinite.
    chances = np.clip(answering(attempts[before]).chances(attempts)[later], 1e-9, 1.0 - 1e-9)
    answered = attempts.outcome[later] == ANSWERED
    rate = float((attempts.outcome[before & seen] == ANSWERED).mean())
    rate = min(max(rate, 1e-9), 1.0 - 1e-9)
    losses = -np.log(np.where(answered, chances, 1.0 - chances))
    constants = -np.log(np.where(answered, rate, 1.0 - rate))
    gains = constants - losses
    gain = PointEstimate(float(gains.mean()), float(gains.std() / sqrt(len(gains))), len(gains))
    order = np.argsort(chances, kind="stable")
    # Bins of equal size rather than width, so that each share has the same precision.
    edges = np.linspace(0, len(order), _BINS + 1).astype(int)
    bins = [
        Bin(float(chances[rows].mean()), _share(int(answered[rows].sum()), len(rows)))
        for rows in (order[low:high] for low, high in pairwise(edges.tolist()))
        if len(rows)
    ]
    return HoldOut(
        cut, learned, len(gains), float(losses.mean()), float(constants.mean()), gain, tuple(bins)
    )
