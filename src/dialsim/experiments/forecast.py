"""Forecast from today: finish and reach of a running campaign, and changes since the last forecast.

A forecast is many runs of a scenario whose people have histories (P8). Its intervals are prediction
intervals for the one real campaign, not confidence intervals of a mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, floor, inf, isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from dialsim.engine.rules import Windows
from dialsim.errors import ExperimentError
from dialsim.experiments import experiment_text
from dialsim.experiments.estimates import instant_text
from dialsim.experiments.known_bounds import WHOLE, Place, campaigns_at
from dialsim.experiments.replications import Replications, RunSettings, replicate, runner
from dialsim.experiments.run_figures import run_values
from dialsim.experiments.run_spec import RunSpec
from dialsim.experiments.variants import Variant
from dialsim.interface.arguments import checked
from dialsim.interface.instants import (
    MINUTE,
    WEEK,
    at_text,
    duration_text,
    format_instant,
    parse_instant,
    short_text,
)
from dialsim.interface.phrases import counted
from dialsim.results.folder import MANIFEST, SUMMARY
from dialsim.results.summary_text import ExperimentResult, FigureTable
from dialsim.scenario.behaviour import BUILT_IN
from dialsim.scenario.campaign import GeneratedRecipients
from dialsim.scenario.people import table_of

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from dialsim.experiments.estimates import SettingRuns
    from dialsim.experiments.expression import Expression
    from dialsim.experiments.plots import ReplicationPlots
    from dialsim.experiments.run_figures import ScopeFigures
    from dialsim.scenario.campaign import Past
    from dialsim.scenario.scenario import Scenario


KIND = "forecast"
FEWEST_RUNS = 19
"""Fewest runs that give an interval with 90 % coverage."""
_OUTSIDE = 0.05
_SURE = 0.95
_EARLIER = "earlier"
_PAIRS = 7
_LONGEST = 520 * WEEK
_LEAST_SIDE = 0.005
"""Least length of an interval's side in a score, as a share of the median."""


@dataclass(frozen=True, slots=True)
class Span:
    """Median of all runs, and a prediction interval with 90 % coverage."""

    # A further value of the same distribution lies between the r-th smallest and the r-th greatest
    # of n with probability (n + 1 − 2r) ÷ (n + 1), for any distribution (David & Nagaraja 2003,
    # "Order Statistics", section 7.3).
    low: float
    half: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Span:
        """Compute the interval from the values of all runs, infinite ones included."""
        ordered, count = sorted(values), len(values)
        outside = floor(_OUTSIDE * (count + 1))
        return cls(ordered[outside - 1], ordered[ceil(count / 2) - 1], ordered[count - outside])

    def holds(self, truth: float) -> bool:
        """Return True if the interval contains a truth."""
        return self.low <= truth <= self.high

    def score(self, truth: float) -> float:
        """Return the distance of a truth from the median, in lengths of the interval's side."""
        if not isfinite(self.half):  # not done in half of the runs: no width helps
            return 0.0 if self.holds(truth) else inf
        side = self.high - self.half if truth > self.half else self.half - self.low
        return abs(truth - self.half) / max(side, _LEAST_SIDE * abs(self.half), 1e-9)

    def in_open_time(self, windows: Windows, start: int) -> Span:
        """Return an interval of instants as times (ms) since `start` with windows open."""
        return Span(*(open_between(windows, start, at) for at in (self.low, self.half, self.high)))


class Widening(NamedTuple):
    """Factors on the lengths of the intervals' sides, found by a backtest."""

    finish: float = 1.0
    reach: float = 1.0

    def of_reach(self, span: Span, people: int) -> Span:
        """Return a forecast's interval of the people reached, widened by the factor `reach`."""
        low, half, high = span.low, span.half, span.high
        return Span(
            max(half - self.reach * (half - low), 0.0), half,
            min(half + self.reach * (high - half), float(people)),
        )  # fmt: skip

    def of_finish(self, span: Span, start: int, windows: Windows) -> Span:
        """Return a forecast's interval of the finish, widened by the factor `finish`.

        Both sides of the interval are measured in time of open windows.
        """
        if self.finish == 1.0 or not all(map(isfinite, (span.low, span.half, span.high))):
            return span
        at = span.in_open_time(windows, start)
        first = max(at.half - self.finish * (at.half - at.low), 0.0)
        last = at.half + self.finish * (at.high - at.half)
        return Span(
            min(_instant_after(windows, start, first), span.low), span.half,
            max(_instant_after(windows, start, last), span.high),
        )  # fmt: skip


def open_between(windows: Windows, start: int, until: float) -> float:
    """Return the time (ms) between two instants in which windows are open."""
    if not isfinite(until):
        return until
    spans = windows.open_spans(start, round(until))
    return float((spans[:, 1] - spans[:, 0]).sum())


def _instant_after(windows: Windows, start: int, open_time: float) -> float:
    """Return the instant at which windows have been open for a time since `start`."""
    end = start + WEEK
    while open_between(windows, start, end) < open_time and end < start + _LONGEST:
        end += WEEK
    for begin, close in windows.open_spans(start, end).tolist():
        if open_time <= close - begin:
            return float(begin + open_time)
        open_time -= close - begin
    return float(end)


@dataclass(frozen=True, slots=True)
class ForecastFigures:
    """Figures of a forecast that are kept for later ones; instants in ms, infinite for never.

    `at` is the beginning of the forecast. `done_by` is the instant at which 95 % of the `runs` are
    done. `finish` and `reach` are intervals. `reached` is the number of `people` reached before
    `at`.
    """

    at: int
    runs: int
    people: int
    reached: int
    done_by: float
    finish: Span
    reach: Span

    def to_dict(self) -> dict[str, object]:
        """Return JSON values: instants as texts, null for never."""
        return {
            "at": format_instant(self.at),
            "runs": self.runs,
            "people": self.people,
            "reached": self.reached,
            "done_by": instant_text(self.done_by),
            "finish": {name: instant_text(getattr(self.finish, name)) for name in _ENDS},
            "reach": {name: getattr(self.reach, name) for name in _ENDS},
        }

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> ForecastFigures:
        """Parse the result of `to_dict`.

        Raises KeyError, TypeError or ValueError for other content.
        """
        return cls(
            at=parse_instant(kept["at"]),
            runs=int(kept["runs"]),
            people=int(kept["people"]),
            reached=int(kept["reached"]),
            done_by=_instant_of(kept["done_by"]),
            finish=Span(*(_instant_of(kept["finish"][name]) for name in _ENDS)),
            reach=Span(*(float(kept["reach"][name]) for name in _ENDS)),
        )


_ENDS = ("low", "half", "high")


def _instant_of(text: str | None) -> float:
    return inf if text is None else parse_instant(text)


@checked(ExperimentError)
class Forecast(ExperimentResult):
    """Result of many runs from today on.

    `runs` are the replications, `figures` the figures of the forecast, `earlier` the figures of
    earlier ones, oldest first. `draws` is the number of behaviours among which the runs are
    divided; 0 means that all use the scenario's. `notes` are sentences on the assumptions of the
    forecast.

    >>> found = dialsim.forecast(scenario, 19, jobs=1)
    >>> found.figures.people, found.figures.reached
    (40, 0)
    """

    def __init__(
        self,
        runs: Replications,
        earlier: Sequence[ForecastFigures] = (),
        draws: int = 0,
        notes: Sequence[str] = (),
        widening: Widening | None = None,
    ) -> None:
        self.runs = runs
        self._widening = widening or Widening()
        self.draws = draws
        self.notes = tuple(notes)
        start = runs.scenario.clock.start
        # A forecast repeated for an earlier day must not show later ones as its past.
        self.earlier = tuple(sorted((e for e in earlier if e.at < start), key=lambda e: e.at))

    @cached_property
    def figures(self) -> ForecastFigures | None:
        """Figures of all campaigns together; None if nothing is scheduled."""
        return self._figures([run.scopes[0] for run in self.runs.figures])

    def campaigns(self) -> dict[tuple[str, str], ForecastFigures]:
        """Return the figures of each scheduled campaign, by organization and campaign."""
        found = {place: self._figures(scopes) for place, scopes in self._by_campaign().items()}
        return {place: figures for place, figures in found.items() if figures is not None}

    def _by_campaign(self) -> dict[tuple[str, str], list[ScopeFigures]]:
        """Return the figures of each campaign in all runs, by organization and campaign."""
        listed = [run.scopes for run in self.runs.figures]
        return {
            (part.organization or "", part.campaign or ""): [scopes[index] for scopes in listed]
            for index, part in enumerate(listed[0])
            if part.scope == "campaign"
        }

    def _figures(self, scopes: Sequence[ScopeFigures]) -> ForecastFigures | None:
        finishes = [float(scope.values["finish"]) for scope in scopes]
        # The schedule does not depend on the run: NaN in one is NaN in all.
        if any(map(isnan, finishes)):
            return None
        at, people = self.runs.scenario.clock.start, round(max(s.values["people"] for s in scopes))
        wider, reaches = self._widening, [float(scope.values["people_reached"]) for scope in scopes]
        campaign = scopes[0].campaign if scopes[0].scope == "campaign" else None
        return ForecastFigures(
            at=at,
            runs=len(finishes),
            people=people,
            reached=_reached_before(self.runs.scenario, scopes[0]),
            done_by=sorted(finishes)[ceil(_SURE * len(finishes)) - 1],
            finish=wider.of_finish(Span.of(finishes), at, windows_of(self.runs.scenario, campaign)),
            reach=wider.of_reach(Span.of(reaches), people),
        )

    def campaign_spans(self, *figures: str) -> dict[tuple[str, str], tuple[Span, ...]]:
        """Return the intervals of some figures, by organization and campaign."""
        known = self.runs.figures[0].scopes[0].values
        unknown = next((name for name in figures if name not in known), None)
        if unknown is not None:
            raise ExperimentError(f"figures must be figures of a run, which {unknown} is not")
        return {
            place: tuple(Span.of([float(part.values[name]) for part in scopes]) for name in figures)
            for place, scopes in self._by_campaign().items()
        }

    # -- in words ---------------------------------------------------------------------------------

    def answer(self) -> str:
        """Describe the finish and the share of runs that are done by then, without a full stop."""
        found, count = self.figures, len(self.runs)
        if found is None:
            return "Nothing is scheduled"
        if isfinite(found.done_by):
            sure = ceil(_SURE * count)
            return f"Done by {_by(found.done_by)} Thai time in {sure} of {count} runs"
        never = int((run_values(self.runs.figures, "finish") == inf).sum())
        if not isfinite(found.finish.half):
            return f"Not done in {never} of {count} runs"
        return (
            f"Not sure to be done: {never} of {count} runs are not; half of the runs are done by "
            f"{_by(found.finish.half)} Thai time"
        )

    def reach_text(self) -> str:
        """Describe the reach: `it will reach 7,590 (7,480–7,700) of 10,000 people, 3,120 of them
        are … already`.
        """
        found = self.figures
        assert found is not None
        reach = f"{found.reach.half:,.0f} ({found.reach.low:,.0f}–{found.reach.high:,.0f})"
        are = "is" if found.reached == 1 else "are"
        return (
            f"it will reach {reach} of {found.people:,} people, {found.reached:,} of them {are} "
            "reached already"
        )

    def sentences(self) -> list[str]:
        """Return the answer, its uncertainty, lost people, and changes."""
        if self.figures is None:
            return [f"{self.answer()}."]
        said = [f"{self.answer()}; {self.reach_text()}.", self.span_sentence()]
        if self.draws:
            said.append(
                f"The runs are shared out over {self.draws} behaviours that the log allows."
            )
        lost = experiment_text.lost_sentences(self.runs)
        return [*said, *self.notes, *lost, *self.change_sentences()]

    def half_text(self) -> str:
        """Describe the instant by which half of the runs are done."""
        found = self.figures
        assert found is not None
        half = found.finish.half
        return f"Half of the runs by {_by(half)}" if isfinite(half) else "Not in half of the runs"

    def span_sentence(self) -> str:
        """Describe the interval of the finish."""
        found = self.figures
        assert found is not None
        low, high = found.finish.low, found.finish.high
        if not isfinite(low):
            return "In nine of ten runs it is never done."
        if not isfinite(high):
            return f"In nine of ten runs it is done at {at_text(low)} or later, or not at all."
        return f"In nine of ten runs it is done between {at_text(low)} and {_by(high)}."

    def change_sentences(self) -> list[str]:
        """Describe the changes since the last forecast, if any."""
        now = self.figures
        if now is None or not self.earlier:
            return []
        last = self.earlier[-1]
        when = short_text(last.at)
        parts = [
            _more_reached(now.reached - last.reached),
            _finish_change(last.done_by, now.done_by),
            _reach_change(round(now.reach.half - last.reach.half)),
        ]
        expected = last.reach.holds(now.reach.half)
        verdict = "as the last forecast expected" if expected else "outside its interval"
        return [f"Since the forecast of {when}: {', '.join(parts)} ({verdict})."]

    def tables(self) -> list[FigureTable]:
        """Return the intervals of each campaign and of all together, and the forecasts so far."""
        found = self.figures
        if found is None:
            return []
        parts = [(campaign, figures) for (_, campaign), figures in self.campaigns().items()]
        parts += [("all", found)] if len(self._by_campaign()) > 1 else []
        tables = [FigureTable(name, _SPAN_COLUMNS, _span_rows(part)) for name, part in parts]
        return [*tables, *([self.history_table()] if self.earlier else [])]

    def history_table(self) -> FigureTable:
        """Return a table with a row per forecast, the newest last."""
        now = self.figures
        assert now is not None
        rows = tuple(
            (
                short_text(part.at),
                _by(part.done_by),
                f"{part.reach.half:,.0f}",
                f"{part.reach.low:,.0f} – {part.reach.high:,.0f}",
                f"{part.reached:,}",
            )
            for part in (*self.earlier, now)
        )
        return FigureTable(
            "Forecast of", ("done by (95 %)", "will reach", "nine of ten", "reached then"), rows
        )

    # -- as data ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, object]:
        """Return JSON values: estimates of all figures, and this and the earlier forecasts."""
        return {
            **self.runs.to_dict(),
            KIND: None if self.figures is None else self.figures.to_dict(),
            _EARLIER: [part.to_dict() for part in self.earlier],
        }

    @property
    def title(self) -> str:
        """Name of the scenario."""
        return self.runs.scenario.name

    expressions: tuple[Expression, ...] = ()

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the output folder, by name."""
        return {"runs": self.runs.runs, "campaigns": self.runs.frame}

    def settings(self) -> list[SettingRuns]:
        """Return the runs for a workbook."""
        return self.runs.settings()

    def printed(self) -> tuple[list[str], list[FigureTable]]:
        """Return the sentences and tables that a command prints."""
        return self.sentences(), self.tables()

    @property
    def frame(self) -> pd.DataFrame:
        """Table with a row for each figure of each campaign, and of all together.

        `low`, `half` and `high` are the ends of the interval that holds nine of ten runs, and the
        median: for `finish` timestamps in UTC, NaT for never, for `people_reached` people.
        `by_now` are the people who are reached already.
        """
        import pandas as pd

        places = {("", ""): self.figures} if self.figures else {}
        rows = []
        for (organization, campaign), found in {**places, **self.campaigns()}.items():
            place = {"organization": organization or None, "campaign": campaign or None}
            ends = {
                name: pd.to_datetime(at, unit="ms", utc=True) if isfinite(at) else pd.NaT
                for name in _ENDS
                for at in [getattr(found.finish, name)]
            }
            reach = {name: getattr(found.reach, name) for name in _ENDS}
            rows.append({**place, "figure": "finish", "unit": "instant", **ends})
            people = {"figure": "people_reached", "unit": "people", "by_now": found.reached}
            rows.append({**place, **people, **reach})
        return pd.DataFrame(rows)

    @property
    def sure(self) -> bool:
        """True if at least 95 % of the runs are done."""
        return self.figures is not None and isfinite(self.figures.done_by)

    @property
    def plot(self) -> ReplicationPlots:
        """Plots of the runs: `plot.progress()` and `plot.finish()`."""
        return self.runs.plot


_SPAN_COLUMNS = ("nine of ten: from", "half of the runs", "to")


def _span_rows(found: ForecastFigures) -> tuple[tuple[str, ...], ...]:
    finish, reach = found.finish, found.reach
    return (
        ("done", at_text(finish.low), at_text(finish.half), _by(finish.high)),
        ("people reached", *(f"{getattr(reach, name):,.0f}" for name in _ENDS)),
        ("reached already", "", f"{found.reached:,}", ""),
    )


def _by(instant: float) -> str:
    """Format an instant to the minute, rounded up, so that everything is over by then."""
    return at_text(-(-instant // MINUTE) * MINUTE) if isfinite(instant) else "never"


def _more_reached(more: int) -> str:
    # Reached people stay reached: fewer means that people left the list.
    if more < 0:
        return "the list of people has changed"
    return f"{counted(more, 'more person is', 'more people are')} reached"


def _finish_change(last: float, now: float) -> str:
    if not isfinite(last) or not isfinite(now):
        if last == now:
            return "it is still not sure to be done"
        return "it is not sure to be done any more" if now == inf else "it is sure to be done now"
    change = round((now - last) / MINUTE) * MINUTE
    later = f"{duration_text(abs(change))} {'later' if change > 0 else 'sooner'}"
    return f"it is done {later if change else 'at the same time'}"


def _reach_change(change: int) -> str:
    return f"it will reach {abs(change):,} {'more' if change > 0 else 'fewer'} in the end"


def windows_of(scenario: Scenario, only: str | None = None) -> Windows:
    """Return the windows of a campaign, or of all campaigns together."""
    ranges: list[tuple[int, int]] = []
    for campaign in campaigns_at(scenario, (None, only)):
        if campaign.schedule is not None:
            starts, ends = Windows.of(campaign.schedule.time_windows).ranges
            ranges += zip(starts, ends, strict=True)
    return Windows(ranges or [(0, WEEK)])


def _reached_before(scenario: Scenario, scope: ScopeFigures) -> int:
    """Return the number of people of a run or campaign who were reached before it begins (R3)."""
    return sum(past.reached for past in _pasts(scenario, (scope.organization, scope.campaign)))


def _pasts(scenario: Scenario, place: Place = WHOLE) -> Iterator[Past]:
    """Yield the histories of the people of campaigns."""
    for campaign in campaigns_at(scenario, place):
        listed = campaign.recipients
        if not isinstance(listed, GeneratedRecipients):
            yield from table_of(listed).history.values()


@dataclass(frozen=True, slots=True)
class Standing:
    """State of running campaigns at the start of a scenario, `at` (ms).

    `reached` are the instants (ms, int64, sorted) at which people had been reached: the ends of
    their last calls, since a history has no other instants.
    """

    at: int
    reached: NDArray[np.int64]


def standing_of(scenario: Scenario) -> Standing | None:
    """Return the state of a scenario's campaigns; None without histories."""
    pasts = [*_pasts(scenario)]
    if not pasts:
        return None
    reached = np.array([past.last_ended_at for past in pasts if past.reached], np.int64)
    return Standing(scenario.clock.start, np.sort(reached))


@checked(ExperimentError)
def forecast(
    scenario: Scenario,
    replications: int = 100,
    *,
    draws: Sequence[Variant] = (),
    earlier: Sequence[ForecastFigures] = (),
    notes: Sequence[str] = (),
    widening: Widening | None = None,
    seed: int | None = None,
    **settings: Unpack[RunSettings],
) -> Forecast:
    """Forecast the continuation of campaigns from `clock.start`, by 19 `replications` or more.

    `draws` are variants with plausible behaviours, as written by `dialsim calibrate --draws`. The
    runs are divided among them, at least one each, with independent random numbers. `earlier` are
    the figures of earlier forecasts; those that begin no earlier than this one are ignored. `notes`
    are sentences that `sentences` returns as well, `widening` makes the intervals wider. The other
    arguments are as in `replicate`. Raises ExperimentError, ReplicationFailed, WorkersLost.

    >>> found = dialsim.forecast(scenario, 19, jobs=1)
    >>> found.frame.figure.tolist()
    ['finish', 'people_reached', 'finish', 'people_reached']
    """
    if replications < FEWEST_RUNS:
        raise ExperimentError(f"a forecast takes {FEWEST_RUNS} runs or more, not {replications}")
    if not draws:
        runs = replicate(scenario, replications, seed=seed, **settings)
        return Forecast(runs, earlier, notes=notes, widening=widening)
    # Independent seeds, so that the uncertainty about the behaviour adds to the spread like chance
    # does.
    given = RunSpec(scenario, seed).seed
    specs = [
        RunSpec(draw.of(scenario), draw_seed(given, index)) for index, draw in enumerate(draws)
    ]
    # Every behaviour gets equally many runs; the surplus is cut off below.
    each = ceil(replications / len(specs))
    with runner(**settings) as workers:
        workers.replicate(specs, each)
    found = [run for spec in specs for run in spec.first(each)]
    numbered = [replace(run, replication=number) for number, run in enumerate(found)]
    drawn = Replications(scenario, given, numbered, [], [])
    return Forecast(drawn, earlier, len(specs), notes, widening)


def hold_time_note(
    scenario: Scenario, *, seed: int | None = None, jobs: int | None = None
) -> str | None:
    """Return a sentence on how much assumed setup and ring times move the finish.

    None if all behaviours have their own setup or ring times. Runs with 10 s more before each
    outcome are compared with runs of the same seeds.
    """
    used = {one.behaviour for owner in scenario.organizations for one in owner.agents}
    assumed = [
        name
        for name in sorted(used)
        if (one := scenario.behaviours[name]).setup_time == BUILT_IN.setup_time
        and one.ring_time == BUILT_IN.ring_time
    ]
    if not assumed:
        return None
    longer = scenario.with_(*(_longer(scenario, name) for name in assumed))
    finishes = [
        run_values(replicate(one, _PAIRS, seed=seed, jobs=jobs).figures, "finish")
        for one in (scenario, longer)
    ]
    said = "The finish rests on assumed ring and setup times"
    if not np.isfinite(finishes).all():
        return f"{said}."
    moved = abs(round(float(np.median(finishes[1] - finishes[0])) / MINUTE)) * MINUTE
    return f"{said}: 10 s more would move it by {duration_text(moved)}."


def _longer(scenario: Scenario, name: str) -> str:
    """Return the override that holds lines 10 s longer before each outcome."""
    behaviour = scenario.behaviours[name]
    written: dict[str, object] = {"dist": "uniform", "low": "11s", "high": "13s"}
    if behaviour is not BUILT_IN:
        return f"behaviours.{name}.setupTime={json.dumps(written)}"
    people = behaviour.model_dump(mode="json", by_alias=True, include={"people"})
    return f"behaviours.{name}={json.dumps({**people, 'setupTime': written})}"


def draw_seed(seed: int, draw: int) -> int:
    """Return an independent seed for each draw."""
    return int(np.random.SeedSequence([seed, draw]).generate_state(1)[0])


def kept_forecasts(folder: Path) -> list[ForecastFigures]:
    """Return the forecasts in a folder of `dialsim forecast`, its own included.

    Raises ExperimentError for another or an unreadable folder.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if manifest.get("experiment") != KIND:
            raise ExperimentError(f"{folder} is no folder of dialsim forecast --out")
        kept = list(manifest["arguments"][_EARLIER])
        if manifest["finished"]:
            own = json.loads((folder / SUMMARY).read_bytes())[KIND]
            kept += [] if own is None else [own]
        return [ForecastFigures.from_dict(part) for part in kept]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExperimentError(
            f"{folder} is no folder of dialsim forecast --out that can be read: {error}"
        ) from None
