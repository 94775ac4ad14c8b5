"""Figures of one run as plain numbers, the cause that held it back, and the days on which runs end.

Experiments keep nothing else of a run. Figures are named `finish`, `January.finish`,
`Acme/January.people_reached`, `cost`. Tables of many runs have a row per replication and scope, and
a column per figure. `finish_by_2026-01-05` is the share of runs whose finish is before the end of
5 January, Thai time. Only days on which some run ends have a share; another day has the share of
the day before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field, replace
from datetime import date
from functools import cached_property
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from dialsim.errors import DialsimError, ExperimentError
from dialsim.experiments.intervals import (
    CONFIDENCE,
    NO_INTERVAL,
    Difference,
    Interval,
    Values,
    rank,
    share_beyond,
    share_difference,
    share_interval,
)
from dialsim.interface.arguments import checked
from dialsim.interface.instants import (
    DAY,
    MINUTE,
    THAI_OFFSET,
    date_text,
    midnight,
    ms_of,
    thai_date,
    utc,
)
from dialsim.results.bottleneck import Bottleneck, Reason
from dialsim.results.compliance import COMPLIANCE, compliance_figures
from dialsim.results.figures import (
    CHARGED,
    COST_PER,
    CUMULATIVE,
    DONE_BY,
    INSTANTS,
    OF_AGENTS,
    number_values,
    ordinal_of,
    unit_text,
)
from dialsim.results.run_view import ProgressCurve, RunPart
from dialsim.results.summary_text import ExperimentResult

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd
    from numpy.typing import NDArray

    from dialsim.experiments.known_bounds import KnownBounds, Place
    from dialsim.results.result import Result

Number = int | float

ATTEMPTS = "attempts_"
"""Prefix of the numbers of attempts in `ScopeFigures.aside`: `attempts_2`."""
MARKS = 50
"""Number of parts into which the progress to all people is divided."""


@dataclass(frozen=True, slots=True)
class ScopeFigures:
    """Figures of the whole run, of an organization or of a campaign.

    `scope` is `run`, `organization` or `campaign`. `values` are the numeric figures of the summary
    by name, NaN if undefined. `finish` and `final_at` are in ms since 1970 (UTC): infinite if a
    scheduled campaign has none, NaN if nothing was scheduled. `held_back` is as in the summary.
    `aside` are numbers that intervals need and that no table shows: the excess of `talk_minutes`
    and `cost` over the expectation for the answered calls (`dialsim.results.counts`), and the
    number of calls made as attempt 1, 2, … in a campaign.
    """

    scope: str
    organization: str | None
    campaign: str | None
    values: dict[str, Number]
    held_back: Bottleneck | None = None
    aside: dict[str, Number] = field(default_factory=dict)

    def number(self, name: str) -> Number:
        """Return a figure. Raises DialsimError if the run was made without it.

        Cumulative figures keep their value beyond the last attempt or day of the run.
        """
        if name in self.values:
            return self.values[name]
        for prefix in CUMULATIVE:
            if (ordinal := ordinal_of(name, prefix)) is not None:
                earlier = (f"{prefix}{k}" for k in range(ordinal, 0, -1))
                return next((self.values[one] for one in earlier if one in self.values), 0)
        raise DialsimError(
            f"there is a run without the figure {name}: it was made for other figures, or by "
            "another version of the program"
        )


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Figures of one replication; `start` is the earliest startAt in ms, or None.

    `reached` are the instants (ms) at which 1, 2, … `MARKS`-ths of all people were reached, as far
    as they were. `asked` are the names of the computed figures, None for all. With `asked`, neither
    `reached` nor the cause that held the run back is available.
    """

    replication: int
    start: int | None
    scopes: tuple[ScopeFigures, ...]
    reached: tuple[int, ...] = ()
    asked: frozenset[str] | None = None

    def to_text(self) -> str:
        """Return one line of text; `from_text` restores equal numbers from it."""
        scopes = [
            [
                s.scope,
                s.organization,
                s.campaign,
                s.values,
                s.held_back and astuple(s.held_back),
                s.aside,
            ]
            for s in self.scopes
        ]
        values = [self.replication, self.start, scopes, self.reached]
        return json.dumps(values, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str, asked: frozenset[str] | None = None) -> RunFigures:
        """Parse the result of `to_text`, of figures that were requested."""
        replication, start, scopes, reached = json.loads(text)
        parts = tuple(
            ScopeFigures(scope, organization, campaign, values, _held_back(held), aside)
            for scope, organization, campaign, values, held, aside in scopes
        )
        return cls(replication, start, parts, tuple(reached), asked)


def _held_back(kept: list[Any] | None) -> Bottleneck | None:
    if kept is None:
        return None
    campaign, reason, sentence, share, also = kept
    return Bottleneck(campaign, Reason(reason), sentence, share, tuple(map(Reason, also)))


def figures_of(result: Result, asked: frozenset[str] | None = None) -> RunFigures:
    """Return the figures of a result's summary, its progress, and the cause that held it back.

    With `asked` only these figures are computed, which saves most of the time
    (benchmarks/decision.py).
    """
    reading = result.reading
    if asked is None:
        _read_ahead(reading.part())
    starts = [life.start for life in reading.lives if life.start is not None]
    run, *others = reading.parts
    of_run = _scope_figures(run, asked)
    scopes = (of_run, *(
        # A lone organization has the figures of the run; they are not made twice.
        replace(of_run, **part.name._asdict())
        if part.name.scope == "organization" and part.campaigns == run.campaigns
        else _scope_figures(part, asked)
        for part in others
    ))  # fmt: skip
    wanted = [own for own in reading.world.scenario.own_figures if not asked or own.name in asked]
    if wanted:
        whole = {own.name: own.value(result) for own in wanted}
        scopes = tuple(
            replace(part, values=part.values | whole) if part.scope == "run" else part
            for part in scopes
        )
    reached: tuple[int, ...] = ()
    if asked is None:
        reached = ProgressCurve(reading.campaigns.values()).marks(MARKS)
    start = min(starts, default=None)
    return RunFigures(reading.world.replication, start, scopes, reached, asked)


_WORTH_A_THREAD = 200_000
"""Number of people from which the figures of a run are read by two threads."""


def _read_ahead(part: RunPart) -> None:
    """Compute the slowest parts of a run's figures in two threads; `part` caches them."""
    if sum(life.people for life in part.lives) < _WORTH_A_THREAD:
        return
    # numpy works without the interpreter's lock, and a first answer of the studio has a processor
    # to spare. A column that both threads need at once may be made twice; both are equal.
    with ThreadPoolExecutor(1) as beside:
        beside.submit(lambda: (part.waits, part.deliveries, part.analyses, part.expected))
        _ = part.held_back


def _scope_figures(part: RunPart, asked: frozenset[str] | None) -> ScopeFigures:
    held_back = part.held_back if asked is None else None
    return ScopeFigures(*part.name, _values(part, asked), held_back, _aside(part, asked))


def _values(part: RunPart, asked: frozenset[str] | None) -> dict[str, Number]:
    values = number_values(lambda figure: figure.make(part), asked)
    if asked is None or any(name.startswith(COMPLIANCE) for name in asked):
        positions = [life.position for life in part.lives]
        values |= compliance_figures(part.reading, positions)
    for name, value in values.items():
        if value is None:
            # An instant that a scheduled part lacks never came (infinite); an unscheduled part has
            # none (NaN).
            values[name] = inf if part.is_scheduled and name in INSTANTS else nan
        elif name in INSTANTS:
            values[name] = ms_of(value)
    return values


def _aside(part: RunPart, asked: frozenset[str] | None) -> dict[str, Number]:
    made = part.attempts.tolist()
    aside: dict[str, Number] = {f"{ATTEMPTS}{k}": count for k, count in enumerate(made, 1)}
    charged = asked is None or any(name in CHARGED or name.startswith(COST_PER) for name in asked)
    if charged and not (part.costs is None and asked is not None and "talk_minutes" not in asked):
        beyond = part.charges.talk_ms - part.expected.talk_ms
        aside["talk_minutes"] = beyond / MINUTE
        if part.costs is not None:
            beyond = part.charges.increments - part.expected.increments
            aside["cost"] = beyond * part.costs.per_increment
    return aside


def fan(runs: Sequence[RunFigures], share: float) -> NDArray[np.float64]:
    """Return a quantile of the instants (ms) at which 0, 1, … `MARKS`-ths of people are reached.

    Infinite if fewer runs ever get there.
    """
    instants = np.full((len(runs), MARKS + 1), inf)
    for row, run in zip(instants, runs, strict=True):
        row[0] = inf if run.start is None else run.start
        row[1 : len(run.reached) + 1] = run.reached
    ordered: NDArray[np.float64] = np.sort(instants, axis=0)[rank(len(runs), share) - 1]
    return ordered


PLACES = {"run": (), "organization": ("organization",), "campaign": ("organization", "campaign")}
"""Columns that identify a row of each scope."""


def parts_of(frame: pd.DataFrame, scope: str) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield the names and the rows of each place of a scope."""
    # Without the units, which pandas would copy deeply with each of hundreds of columns read.
    frame = frame.copy(deep=False)
    frame.attrs = {}
    keys = list(PLACES[scope])
    if not keys:
        yield {}, frame
        return
    for names, part in frame.groupby(keys, sort=False):
        yield dict(zip(keys, names, strict=True)), part


def earliest_start(runs: Sequence[RunFigures]) -> int | None:
    """Return the earliest startAt (F3) in any of the runs, in ms; None if nothing was scheduled."""
    return min((run.start for run in runs if run.start is not None), default=None)


def run_values(runs: Sequence[RunFigures], figure: str) -> Values:
    """Return a figure of the whole run in each run; NaN where a run lacks it."""
    known = (run.scopes[0].values.get(figure, nan) for run in runs)
    return np.array([*known], dtype=np.float64)


def replication_rows(
    runs: Sequence[RunFigures], scope: str, origin: int | None
) -> list[dict[str, Any]]:
    """Return the rows of one scope: replication, names, instants, other figures.

    `finish` is in ms, None without one. `finish_seconds` counts from `origin`, and is infinite if a
    scheduled campaign did not finish; `final_at` and `final_at_seconds` likewise. Every row has
    every figure; the counts of steps and fields of other agents are 0.
    """
    listed = [(run, part) for run in runs for part in run.scopes if part.scope == scope]
    names = _names([part for _, part in listed])
    return [_row(run, part, names, origin) for run, part in listed]


def figure_frame(
    rows: Sequence[dict[str, Any]], scope: str, before: Sequence[str] = ()
) -> pd.DataFrame:
    """Return rows as a table; counts are int64, other figures float64, instants in UTC.

    `attrs["units"]` has the unit of each figure.
    """
    import pandas as pd

    columns = [*before, "replication", *PLACES[scope]]
    names = dict.fromkeys([*columns, *(c for n in INSTANTS for c in (n, f"{n}_seconds"))])
    names |= dict.fromkeys(name for row in rows for name in row)
    frame = pd.DataFrame(list(rows), columns=[*names])
    for name in INSTANTS:
        instants = pd.to_datetime(frame[name].astype("Int64"), unit="ms", utc=True)
        frame[name] = instants.astype(pd.DatetimeTZDtype("ms", "UTC"))
    figures = [name for name in names if name not in (*columns, *INSTANTS)]
    frame.attrs["units"] = {name: unit_text(name) for name in figures}
    return frame


def _names(parts: Sequence[ScopeFigures]) -> list[str]:
    """Return all figures of some parts, with attempts and days in ascending order at the end."""
    names = dict.fromkeys(name for part in parts for name in part.values)
    rest = [name for name in names if not name.startswith(CUMULATIVE)]
    series = [
        sorted((ordinal, name) for name in names if (ordinal := ordinal_of(name, prefix)))
        for prefix in CUMULATIVE
    ]
    return [*rest, *(name for part in series for _, name in part)]


def _row(
    run: RunFigures, part: ScopeFigures, names: Sequence[str], origin: int | None
) -> dict[str, Any]:
    row: dict[str, Any] = {"replication": run.replication}
    row |= {name: getattr(part, name) for name in PLACES[part.scope]}
    for name in INSTANTS:
        at = part.values[name]
        row[name] = int(at) if isfinite(at) else None
        row[f"{name}_seconds"] = at if origin is None else (at - origin) / 1000
    for name in names:
        if name not in INSTANTS:
            # Steps and fields belong to agents, and a campaign has one agent.
            others = name.startswith(OF_AGENTS) and name not in part.values
            row[name] = 0 if others else part.number(name)
    return row


@checked(ExperimentError)
class RunTables(ExperimentResult):
    """Figures of many runs as tables, with a row per run; in a sweep, per run and variant.

    `finish` is an instant, NaT without one; `finish_seconds` counts from `origin`, and is infinite
    if a run did not finish (later than any instant).
    """

    def __init__(self, runs: Sequence[RunFigures]) -> None:
        self._start = earliest_start(runs)
        self._estimated: dict[float, pd.DataFrame] = {}

    @property
    def origin(self) -> datetime | None:
        """Earliest startAt of all runs; None if nothing started."""
        return None if self._start is None else utc(self._start)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Table with a row per run and campaign.

        Counts are int64, other numbers float64; `attrs["units"]` has their units.

        >>> found = dialsim.replicate(scenario, 3, jobs=1)
        >>> found.frame.attrs["units"]["talk_minutes"]
        'min'
        """
        return self._table("campaign")

    @cached_property
    def organizations(self) -> pd.DataFrame:
        """Table with a row per run and organization, and the columns of `frame`."""
        return self._table("organization")

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Table with a row per run, and the columns of `frame`."""
        return self._table("run")

    def intervals(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return mean and quantiles of every figure with their intervals.

        There is a row per scope (run, organization or campaign) and figure, and in a sweep per
        variant. `mean`, `p05`, `p25`, `p50`, `p75` and `p95` are in the unit of the figure, ends of
        their intervals in columns such as `mean_low` and `mean_high`: NaN without an interval,
        infinite for a limit that the runs do not support; about `mean_enough` runs would. Raises
        ExperimentError unless 0 < confidence < 1.

        >>> found = dialsim.replicate(scenario, 10, jobs=1)
        >>> intervals = found.intervals().set_index(["scope", "figure"])
        >>> bool(intervals.loc[("run", "people_reached"), "mean_low"] > 0)
        True
        """
        if confidence not in self._estimated:  # a page needs them for every plot
            self._estimated[confidence] = self._intervals(confidence)
        return self._estimated[confidence].copy()

    def _intervals(self, confidence: float) -> pd.DataFrame:
        raise NotImplementedError

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the output folder, by name."""
        return {
            "runs": self.runs,
            "organizations": self.organizations,
            "campaigns": self.frame,
            "estimates": self.intervals(),
        }

    def _frames(self) -> dict[str, pd.DataFrame]:
        return {"run": self.runs, "organization": self.organizations, "campaign": self.frame}

    @cached_property
    def days(self) -> Days:
        """Days on which runs end, by organization and campaign."""
        found = {}
        for scope, frame in self._frames().items():
            for place, part in parts_of(frame, scope):
                names = place.get("organization"), place.get("campaign")
                columns = {f"{name}_seconds": part[f"{name}_seconds"].to_numpy(np.float64)
                           for name in INSTANTS}  # fmt: skip
                found[names] = calling_days(columns, self._start, names)
        return found

    def _table(self, scope: str) -> pd.DataFrame:
        raise NotImplementedError


MOST_DAYS = 5  # days that a table has for one campaign
_LANDMARKS = (0.0, 0.05, 0.5, 0.95, 1.0)  # of more days, the days of these quantiles are kept
_SHORT = 2  # days that a table of effects has columns for


@dataclass(frozen=True, slots=True)
class DoneBy:
    """The figure "done by the end of a day" of an instant, such as `finish`, at one place.

    `day` counts from 1 January 1970, Thai time. Instants are in seconds from `origin` (ms). `place`
    is an organization and a campaign; neither for the whole run.

    Where every run is done by the end of a day, further runs may go on after its closing. Their
    share is estimated from the calling time left until then, by the tail of
    `intervals.share_beyond`. The interval of a share comes from the runs alone (Clopper and Pearson
    1934).
    """

    instant: str
    day: int
    origin: int
    place: Place

    @property
    def column(self) -> str:
        """Name of the figure in tables: `finish_by_2026-01-05`."""
        return f"{self.instant}{DONE_BY}{thai_date(self.day * DAY - THAI_OFFSET)}"

    @property
    def source(self) -> str:
        """Column of the instant: `finish_seconds`."""
        return f"{self.instant}_seconds"

    def done(self, seconds: Values) -> Values:
        """Return 1 for each run that is done by then, else 0; NaN where nothing was scheduled."""
        return np.where(np.isnan(seconds), np.nan, _days(seconds, self.origin) <= self.day)

    def estimate(self, seconds: Values, bounds: KnownBounds, confidence: float) -> Interval:
        """Estimate the share of all runs that are done by then."""
        known = seconds[~np.isnan(seconds)]
        days, count = _days(known, self.origin), len(known)
        hits, tail = int((days <= self.day).sum()), (1 - confidence) / 2
        if not count:
            return NO_INTERVAL
        certain = bounds.certain(self.instant)
        found = share_interval(hits, count, (tail, tail), certain)
        calendars = bounds.calendars_of(self.place)
        if hits < count or certain or len(calendars) != 1 or self.instant != "finish":
            return found
        beyond = share_beyond(calendars[0].left_on(self.day, self.origin + 1000 * known))
        return replace(found, estimate=max(found.low, 1.0 - beyond))


def compare_days(
    days: tuple[DoneBy, DoneBy],
    sides: tuple[Values, Values],
    all_bounds: tuple[KnownBounds, KnownBounds],
    confidence: float,
) -> Difference:
    """Return the difference of the probabilities of being done by the end of a day.

    `days` are the same day, each with the origin of its side. The estimate is the difference of
    both estimates, clipped to the limits.
    """
    certain = all(bounds.certain(days[0].instant) for bounds in all_bounds)
    done = [day.done(side) for day, side in zip(days, sides, strict=True)]
    found = share_difference(done[0], done[1], confidence, certain)
    one, two = (
        day.estimate(side, bounds, confidence).estimate
        for day, side, bounds in zip(days, sides, all_bounds, strict=True)
    )
    return replace(found, estimate=float(np.clip(one - two, found.low, found.high)))


def _days(seconds: Values, origin: int) -> Values:
    """Thai days of instants, counted from 1 January 1970; midnight belongs to the day it ends."""
    return np.ceil((seconds * 1000 + (origin + THAI_OFFSET)) / DAY) - 1


Days = Mapping["Place", Sequence[DoneBy]]
"""Days of each organization and campaign, of each organization, and of the whole run."""


def calling_days(columns: Mapping[str, Values], origin: int | None, place: Place) -> list[DoneBy]:
    """Return the days on which runs of a place end, at most `MOST_DAYS` for each instant.

    `columns` has the figures of all runs, by their columns in the tables.
    """
    found: list[DoneBy] = []
    if origin is None:
        return found
    for instant in INSTANTS:
        if f"{instant}_seconds" not in columns:
            continue
        seconds = columns[f"{instant}_seconds"]
        days = np.sort(_days(seconds[np.isfinite(seconds)], origin))
        kept = np.unique(days)
        if len(kept) > MOST_DAYS:
            kept = np.unique(np.quantile(days, _LANDMARKS, method="inverted_cdf"))
        found += [DoneBy(instant, int(day), origin, place) for day in kept]
    return found


def telling_days(finish: Values, bounds: KnownBounds) -> list[DoneBy]:
    """Return up to two days by whose end it is uncertain that a run is done; else the last day.

    `finish` are the finishes of whole runs in seconds since 1970.
    """
    days = calling_days({"finish_seconds": finish}, 0, (None, None))
    shares = [day.estimate(finish, bounds, CONFIDENCE).estimate for day in days]
    open_ones = [day for day, share in zip(days, shares, strict=True) if 0 < share < 1]
    return (open_ones or days[-1:])[:_SHORT]


def day_label(column: str) -> str:
    """Return the words for a column such as `finish_by_2026-01-05`: `by Mon 5 Jan`."""
    day = date.fromisoformat(column.rpartition(DONE_BY)[2])
    return f"by {date_text(midnight(day)).rpartition(' ')[0]}"
