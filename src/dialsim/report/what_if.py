"""What holds campaigns back, and levers: small changes whose effects are measured by further runs.

Further runs use common random numbers with the runs of the scenario itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dialsim.errors import DialsimError, ScenarioError
from dialsim.experiments import plan_text
from dialsim.experiments.estimates import (
    MEAN,
    MEDIAN,
    PROBABILITY,
    RuleBreach,
    breaches_of,
    known_of,
    not_allowed,
)
from dialsim.experiments.experiment_text import difference_text
from dialsim.experiments.goal import Goal, GoalEstimate, judge
from dialsim.experiments.intervals import CONFIDENCE, FEWEST, Difference, figure_difference
from dialsim.experiments.known_bounds import WHOLE, KnownBounds
from dialsim.experiments.run_figures import (
    DoneBy,
    RunFigures,
    compare_days,
    day_label,
    run_values,
    telling_days,
)
from dialsim.experiments.sweep import sweep
from dialsim.experiments.variants import SettingChange, Variant
from dialsim.interface.instants import (
    DAY,
    HOUR,
    LAST_INSTANT,
    clock_text,
    duration_text,
    format_instant,
    minute_text,
)
from dialsim.interface.phrases import counted
from dialsim.interface.schedule import LEAST_RETRY_INTERVAL, DayWindows, ScheduleRequest
from dialsim.report.page import Fact, Notes, Part
from dialsim.results.bottleneck import Bottleneck, Reason
from dialsim.results.figures import is_done_by, is_instant
from dialsim.results.result import Progress
from dialsim.results.summary_text import FigureTable, ValueText
from dialsim.scenario.organization import Organization
from dialsim.scenario.week import Range, range_text, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.engine import Choice
    from dialsim.experiments.plan import Plan
    from dialsim.experiments.run_figures import ScopeFigures
    from dialsim.scenario.scenario import Scenario


_LAST_MINUTE = 23 * 60 + 59

AS_IT_IS = Variant("as it is", ())
Runs = tuple[RunFigures, ...]


@dataclass(frozen=True, slots=True)
class _Bound:
    """The organization to change: its path, its settings, and its figures in one run."""

    path: str
    settings: Organization
    figures: ScopeFigures

    def schedules(self) -> Iterator[tuple[str, ScheduleRequest]]:
        """Yield the schedule requests of its campaigns, with their paths."""
        for index, campaign in enumerate(self.settings.campaigns):
            if campaign.schedule is not None:
                yield f"{self.path}.campaigns.{index}.schedule", campaign.schedule


def levers(scenario: Scenario, figures: RunFigures, organization: str | None) -> list[Variant]:
    """Return what might help an organization: each lever changes one thing a little.

    More lines, longer windows, another attempt, a shorter retry interval; if a run of the scenario,
    whose figures are `figures`, indicates it, also a shorter queue, a faster pace or a later
    endDateTime. If lines and pacing together are the bottleneck of that run, so that neither helps
    alone, the last lever changes both. Without a name it is the organization that finishes last.
    Empty if nothing was scheduled, or if the scenario was not loaded from a text.
    """
    bound = _bound(scenario, figures, organization)
    if bound is None or scenario.origin is None:
        return []
    lines, pace = [*_lines(bound)], [*_pace(scenario)]
    found = [
        *lines,
        *_windows(scenario, bound),
        *_attempts(scenario, bound),
        *_retries(bound),
        *_queue(scenario, bound),
        *pace,
        *_end(bound),
    ]
    held = bound.figures.held_back
    if held is not None and {Reason.LINES, Reason.PACING} <= {held.reason, *held.also}:
        both = [*lines, *pace]
        name = " and ".join(name for name, _ in both)
        found.append((name, [change for _, changes in both for change in changes]))
    return [Variant(name, tuple(changes)) for name, changes in found if changes]


SHORTER_RETRIES = (
    "The model takes the chance of an answer as independent of the time since the last attempt, so "
    "what a shorter retry interval brings is optimistic."
)
"""Caveat to print wherever a page recommends a shorter retry interval."""


def shortens_retries(scenario: Scenario, base: Scenario) -> bool:
    """True if some campaign of a scenario has a shorter retry interval than in `base`."""
    pairs = (
        (campaign.schedule, before.schedule)
        for owner, owner_before in zip(scenario.organizations, base.organizations, strict=False)
        for campaign, before in zip(owner.campaigns, owner_before.campaigns, strict=False)
    )
    return any(
        now is not None
        and before is not None
        and before.max_attempts > 1
        and now.retry_interval < before.retry_interval
        for now, before in pairs
    )


_Lever = tuple[str, list[SettingChange]]


def _bound(scenario: Scenario, figures: RunFigures, organization: str | None) -> _Bound | None:
    owners = [part for part in figures.scopes if part.scope == "organization"]
    scheduled = [
        (index, owner)
        for index, owner in enumerate(owners)
        if not isnan(owner.values["finish"]) and organization in (None, owner.organization)
    ]
    if not scheduled:
        return None
    # sorted, not max: of equal finishes the last organization is taken.
    index, last = sorted(scheduled, key=lambda listed: listed[1].values["finish"])[-1]
    return _Bound(f"organizations.{index}", scenario.organizations[index], last)


def _lines(bound: _Bound) -> Iterator[_Lever]:
    """Lever: two lines more, or 10 % more if that is more, at all times."""
    limit = bound.settings.max_concurrent_calls
    more = max(2, round(limit / 10))
    # Later limits grow by as much; otherwise the lever would end at the first timeline action.
    changes = [SettingChange(f"{bound.path}.maxConcurrentCalls", str(limit + more))]
    for index, action in enumerate(bound.settings.timeline):
        if action.action == "setConcurrency" and isinstance(action.value, int):
            changes.append(
                SettingChange(f"{bound.path}.timeline.{index}.value", str(action.value + more))
            )
    for key, count in bound.settings.lines.items():
        changes.append(SettingChange(f"{bound.path}.lines.{key}", str(count + more)))
    yield f"{more} lines more ({limit + more})", changes


def _windows(scenario: Scenario, bound: _Bound) -> Iterator[_Lever]:
    """Lever: one more hour a day after the windows, or else before them, as the rules allow."""
    for later in (True, False):
        changes, hours = list[SettingChange](), dict[str, None]()

        def longer(
            spans: Sequence[Range], days: Sequence[int], later: bool = later,
            hours: dict[str, None] = hours,
        ) -> tuple[Range, ...]:  # fmt: skip
            hour = _hour(spans, scenario, days, later)
            hours |= {range_text(hour): None} if hour else {}
            return union([*spans, hour]) if hour else tuple(spans)

        for index, campaign in enumerate(bound.settings.campaigns):
            path = f"{bound.path}.campaigns.{index}"
            if campaign.calling_hours is not None:
                # callingHours stand in place of timeWindows, which can not be changed beside them.
                for name, spans in campaign.calling_hours:
                    new = longer(spans or (), _DAYS_OF[name])
                    if new != (spans or ()):
                        text = json.dumps([*map(range_text, new)])
                        changes.append(SettingChange(f"{path}.callingHours.{name}", text))
            elif campaign.schedule is not None:
                week = campaign.schedule.time_windows
                new_week = [_plain_day(day, longer(_spans(day), (day.day_of_week,)))
                            for day in week]  # fmt: skip
                if new_week != [_plain_day(day, _spans(day)) for day in week]:
                    text = json.dumps(new_week)
                    changes.append(SettingChange(f"{path}.schedule.timeWindows", text))
        if changes:
            yield f"an hour more a day ({', '.join(hours)})", changes
            return


_DAYS_OF = {"weekday": (1,), "saturday": (6,), "sunday": (7,), "holiday": (1, 6, 7)}


# A holiday may fall on any day of the week: its hours must be allowed on weekdays, Saturdays and
# Sundays alike.
def _hour(
    spans: Sequence[Range], scenario: Scenario, days: Sequence[int], later: bool
) -> Range | None:
    """Return the hour before a day's calling hours, or after them if `later`; None if forbidden."""
    if not spans:
        return None
    first, last = min(spans)[0], max(spans)[1]
    hour = (last, min(last + 60, _LAST_MINUTE)) if later else (max(first - 60, 0), first)
    contacts = [rule.contact.of_weekday(day) for rule in scenario.compliance
                if rule.contact is not None for day in days]  # fmt: skip
    allowed = all(any(a <= hour[0] and hour[1] <= b for a, b in times) for times in contacts)
    return hour if allowed and hour[0] < hour[1] else None


def _spans(day: DayWindows) -> tuple[Range, ...]:
    return tuple((span.start_minute, span.end_minute) for span in day.time)


def _plain_day(day: DayWindows, spans: Sequence[Range]) -> dict[str, object]:
    times = [{"start": clock_text(start), "end": clock_text(end)} for start, end in spans]
    return {"dayOfWeek": day.day_of_week, "time": times}


def first_interval(scenario: Scenario) -> int:
    """Return the retry interval (ms) to set when a single attempt gets a second one."""
    return DAY if scenario.compliance else HOUR


def _attempts(scenario: Scenario, bound: _Bound) -> Iterator[_Lever]:
    """Lever: one more attempt for all people."""
    changes = []
    for path, request in bound.schedules():
        changes.append(SettingChange(f"{path}.maxAttempts", str(request.max_attempts + 1)))
        # The interval may be 0 so far, which is not allowed with a second attempt.
        if request.max_attempts == 1:
            changes.append(SettingChange(f"{path}.retryInterval", str(first_interval(scenario))))
    yield "one attempt more", changes


def _retries(bound: _Bound) -> Iterator[_Lever]:
    """Lever: half the retry interval."""
    halved = {
        path: max(request.retry_interval // 2, LEAST_RETRY_INTERVAL)
        for path, request in bound.schedules()
        if request.max_attempts > 1 and request.retry_interval > LEAST_RETRY_INTERVAL
    }
    lengths = {duration_text(interval) for interval in halved.values()}
    name = f"retries after {lengths.pop()}" if len(lengths) == 1 else "retries in half the time"
    changes = [SettingChange(f"{path}.retryInterval", str(value)) for path, value in halved.items()]
    yield name, changes


def _queue(scenario: Scenario, bound: _Bound) -> Iterator[_Lever]:
    """Lever, if calls timed out in the queue: a queue no longer than half the number of lines."""
    limit = max(1, bound.settings.max_concurrent_calls // 2)
    # A shorter queue loses fewer calls to the timeout: people stay due instead of waiting in line.
    if bound.figures.values["queue_timeouts"] and scenario.engine.queue_limit != limit:
        yield f"queue of {limit} calls", [SettingChange("engine.queueLimit", str(limit))]


def _pace(scenario: Scenario) -> Iterator[_Lever]:
    """Lever, if calls are paced: twice the dials per second, and no release interval."""
    engine = scenario.engine
    if engine.calls_per_second is not None:
        double = 2 * engine.calls_per_second
        yield f"{double:g} dials a second", [SettingChange("engine.callsPerSecond", f"{double:g}")]
    if engine.release_interval:
        yield "release at once", [SettingChange("engine.releaseInterval", "0")]


def _end(bound: _Bound) -> Iterator[_Lever]:
    """Lever, if people expired: endDateTime a day later, within the range of instants (T5)."""
    changes = [
        SettingChange(f"{path}.endDateTime", f'"{format_instant(request.end_date_time + DAY)}"')
        for path, request in bound.schedules()
        if request.end_date_time is not None and request.end_date_time <= LAST_INSTANT - DAY
    ]
    if bound.figures.values["people_expired"]:
        yield "endDateTime a day later", changes


# 2 × 0.5⁶ < 0.05 in the sign test; a literal, as computing it would import scipy
MOST_PAIRS = 6
"""Pairs of runs per lever if one run is known: the fewest whose agreement is significant."""
MOST_PAIRS_OF_MANY = 25
"""Most pairs of runs per lever, if as many runs are known."""
BUDGET = 300_000
"""Most people called in all further runs together, unless the user sets the number of pairs."""
_IN_THIS_PROCESS = 150_000


@dataclass(frozen=True, slots=True)
class FurtherRuns:
    """Options of the further runs of a page: their number, processes, store, progress, engine.

    Each lever is measured by `pairs` pairs of runs (0: not at all; None: as many as the default
    budget allows). The rest is as in `dialsim.experiments.sweep.sweep`.
    """

    pairs: int | None = None
    jobs: int | None = None
    dask: str | None = None
    store: Path | None = None
    progress: Progress | None = None
    engine: Choice = "auto"

    def __post_init__(self) -> None:
        """Raise DialsimError unless the number of pairs is 0 or gives an interval."""
        if self.pairs is not None and (self.pairs < 0 or self.pairs == 1):
            raise DialsimError(
                f"pairs must be 2 or more runs of each lever, or 0 for none, not {self.pairs}"
            )


@dataclass(frozen=True, slots=True)
class StudiedVariant:
    """A variant to be improved, with some of its runs.

    `organization` is the one to be changed; None for the one that finishes last.
    """

    variant: Variant
    runs: Sequence[RunFigures]
    organization: str | None = None


@dataclass(frozen=True, slots=True)
class MeasuredLever:
    """A lever, its runs, and its effects by figure: finish, done by a day, people, and any cost.

    `shortens_retries` says that it leaves less time between attempts. `breaches` are the compliance
    rules that it breaks more often.
    """

    name: str
    runs: Runs
    shortens_retries: bool
    effects: Mapping[str, Difference]
    breaches: tuple[RuleBreach, ...] = ()

    @property
    def finish(self) -> Difference:
        """Effect on the finish, in seconds."""
        return self.effects["finish"]

    @property
    def reached(self) -> Difference:
        """Effect on the number of people reached."""
        return self.effects["people_reached"]

    @property
    def sooner(self) -> bool:
        """True if runs with it finish earlier, significantly."""
        return self.finish.real and self.finish.estimate < 0

    @property
    def reaches_more(self) -> bool:
        """True if runs with it reach more people, significantly."""
        return self.reached.real and self.reached.estimate > 0


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Levers measured against `base`, the runs without any; each has as many runs as that.

    `not_allowed` are those that break a compliance rule more often, which no page recommends.
    """

    base: Runs
    levers: tuple[MeasuredLever, ...]
    not_allowed: tuple[MeasuredLever, ...] = ()

    @property
    def pairs(self) -> int:
        """Number of runs of each lever."""
        return len(self.base)

    @property
    def runs(self) -> int:
        """Number of all runs."""
        return self.pairs * (len(self.levers) + len(self.not_allowed) + 1)


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """Reason why no levers were measured, and the `command` that measures them, if any."""

    why: str
    command: str = ""

    @property
    def said(self) -> str:
        """The reason and the command in a sentence or two."""
        if not self.command:
            return f"{self.why}."
        return f"{self.why}. {self.command} measures it, DIR being the folder of this page."


_COMMAND = f"dialsim report DIR --what-if {MOST_PAIRS}"
_NOT_ASKED = NotMeasured("It was left out, as asked", _COMMAND)

Help = WhatIf | NotMeasured | None
"""Levers measured, or the reason why they were not; None if there is no lever to measure."""


def what_would_help(
    scenario: Scenario,
    seed: int | None,
    studied: Sequence[StudiedVariant],
    further: FurtherRuns,
) -> list[Help]:
    """Measure the levers of several variants at once.

    `seed` applies to all runs, None for the scenario's. Levers that are invalid for the scenario
    are omitted. Raises ExperimentError if a CSV of the scenario was changed since it was loaded.
    """
    if further.pairs == 0:
        return [_NOT_ASKED if _could_help(scenario, study) else None for study in studied]
    possible = [_possible(scenario, study) for study in studied]
    variants = [
        variant
        for study, listed in zip(studied, possible, strict=True)
        if listed
        for variant in (study.variant, *(_both(study.variant, lever) for lever, _ in listed))
    ]
    people = sum(round(study.runs[0].scopes[0].values["people"]) * (len(listed) + 1)
                 for study, listed in zip(studied, possible, strict=True))  # fmt: skip
    if not variants:
        return [None for _ in studied]
    pairs = further.pairs
    if pairs is None:
        pairs = affordable_pairs(people, min(len(study.runs) for study in studied))
    if not pairs:
        reason = NotMeasured(
            f"It takes {FEWEST} runs or more of each of {len(variants)} variants, which call "
            f"{FEWEST * people:,} people; without being asked a page calls {BUDGET:,}",
            _COMMAND,
        )
        return [reason if listed else None for listed in possible]
    jobs = further.jobs
    if jobs is None and people * pairs <= _IN_THIS_PROCESS:
        # Starting worker processes takes longer than these runs.
        jobs = 1
    found = sweep(
        scenario,
        variants,
        pairs,
        seed=seed,
        jobs=jobs,
        dask=further.dask,
        store=further.store,
        progress=further.progress,
        engine=further.engine,
    )
    runs = zip(found.figures, found.all_bounds, strict=True)
    return [_measured(listed, runs, scenario) if listed else None for listed in possible]


def _could_help(scenario: Scenario, study: StudiedVariant) -> bool:
    """True if anything was scheduled, in a scenario that variants can be made of."""
    finishes = (part.values["finish"] for part in study.runs[0].scopes)
    return scenario.origin is not None and not all(map(isnan, finishes))


def affordable_pairs(people: int, known: int = 1) -> int:
    """Return how many pairs of runs fit into the default budget; 0 if even the fewest don't.

    `people` is the number called in one pair of each lever, `known` the number of runs without a
    lever that exist.
    """
    pairs = BUDGET // max(1, people)
    most = max(MOST_PAIRS, min(known, MOST_PAIRS_OF_MANY))
    return min(pairs, most) if pairs >= FEWEST else 0


def _possible(scenario: Scenario, study: StudiedVariant) -> list[tuple[Variant, bool]]:
    """Return the levers that are valid for the scenario of a variant, and which shorten retries."""
    varied = study.variant.of(scenario)
    possible = []
    for lever in levers(varied, study.runs[0], study.organization):
        try:
            changed = _both(study.variant, lever).of(scenario)
        # A lever may exceed limits of the interface, such as the most attempts.
        except ScenarioError:
            continue
        possible.append((lever, shortens_retries(changed, varied)))
    return possible


def _both(variant: Variant, lever: Variant) -> Variant:
    changes = (*variant.changes, *lever.changes)
    return Variant(f"{variant.name}, {lever.name}", changes, variant.scenario)


def _measured(
    possible: Sequence[tuple[Variant, bool]],
    runs: Iterator[tuple[Runs, KnownBounds]],
    scenario: Scenario,
) -> WhatIf:
    """Compare the runs of a variant with the runs of its levers."""
    base, bounds = next(runs)
    listed = [(*lever, *next(runs)) for lever in possible]
    # The days of all levers together: each row of the table has the same columns.
    every = [_values("finish", base), *(_values("finish", with_it) for _, _, with_it, _ in listed)]
    days = telling_days(np.concatenate(every), bounds)
    # Without prices the cost is NaN in all runs.
    figures = ("finish", "people_reached", *(("cost",) if scenario.costs else ()))
    measured = [
        MeasuredLever(
            lever.name,
            with_it,
            shortens,
            _effects((with_it, base), (own, bounds), days, figures),
            breaches_of(scenario, with_it, base),
        )
        for lever, shortens, with_it, own in listed
    ]
    allowed = (lever for lever in measured if not lever.breaches)
    return WhatIf(base, tuple(allowed), tuple(lever for lever in measured if lever.breaches))


def _effects(
    sides: tuple[Runs, Runs],
    all_bounds: tuple[KnownBounds, KnownBounds],
    days: Sequence[DoneBy],
    figures: Sequence[str],
) -> dict[str, Difference]:
    """Return the paired differences of figures, and of the probabilities to be done by a day."""
    effects = {}
    for figure in figures:
        one, two = (_values(figure, runs) for runs in sides)
        known, other = (known_of(figure, WHOLE, *side)
                        for side in zip(sides, all_bounds, strict=True))  # fmt: skip
        effects[figure] = figure_difference(figure, (one, two), (known, other))
        if figure == "finish":
            effects |= {
                day.column: compare_days((day, day), (one, two), all_bounds, CONFIDENCE)
                for day in days
            }
    return effects


def _values(figure: str, runs: Sequence[RunFigures]) -> NDArray[np.float64]:
    """Return a figure of whole runs; `finish` in seconds."""
    values = run_values(runs, figure)
    return values / 1000 if figure == "finish" else values


_SMALL = 0.01
"""Share of the people reached, or of the time, that counts as no loss."""


def best(what_if: WhatIf) -> MeasuredLever | None:
    """Return the best lever; None if no lever helps.

    If all runs finish, it is the one that brings the finish forward most, else the one that reaches
    most people; without such a lever the other figure decides.

    Only significant effects count, and only levers without a loss in the other figure: an earlier
    finish because fewer people are reached is no improvement.
    """
    sooner = (lever for lever in what_if.levers if lever.sooner and not loses(what_if, lever))
    more = (lever for lever in what_if.levers
            if lever.reaches_more and not _delays(what_if, lever))  # fmt: skip
    earliest = min(sooner, key=lambda lever: lever.finish.estimate, default=None)
    most = max(more, key=lambda lever: lever.reached.estimate, default=None)
    all_finish = all(isfinite(finish) for finish in _values("finish", what_if.base))
    return (earliest or most) if all_finish else (most or earliest)


def loses(what_if: WhatIf, lever: MeasuredLever) -> bool:
    """True if a lever significantly loses people who would be reached without it."""
    reached = float(np.mean(_values("people_reached", what_if.base)))
    return lever.reached.real and -lever.reached.estimate > _SMALL * reached


def _delays(what_if: WhatIf, lever: MeasuredLever) -> bool:
    """True if a lever significantly delays the finish."""
    taken = [
        (run.scopes[0].values["finish"] - run.start) / 1000
        for run in what_if.base
        if run.start is not None and isfinite(run.scopes[0].values["finish"])
    ]
    return lever.finish.real and lever.finish.estimate > _SMALL * float(np.median(taken or [inf]))


# -- in words and tables ---------------------------------------------------------------------------


def effect_text(figure: str, effect: Difference) -> ValueText:
    """Format a difference of a figure as tables of differences do: `-12 ± 8, real`."""
    # The mean of finishes is infinite as soon as one run never finishes; the median is not.
    statistic = MEDIAN if is_instant(figure) else MEAN
    statistic = PROBABILITY if is_done_by(figure) else statistic
    named = {"figure": figure, "statistic": statistic, "real": effect.real}
    return difference_text({**asdict(effect), **named, "difference": effect.estimate})


def effect_table(what_if: WhatIf, currency: str | None, title: str = "Changed by") -> FigureTable:
    """Return the table of the effects of levers."""
    names = {"finish": "finish", "people_reached": "people reached", "cost": f"cost, {currency}"}
    figures = [*what_if.levers[0].effects] if what_if.levers else [*names][: 2 + bool(currency)]
    heads = [names.get(figure) or f"done {day_label(figure)}" for figure in figures]
    rows = [
        (lever.name, *(effect_text(figure, effect) for figure, effect in lever.effects.items()))
        for lever in what_if.levers
    ]
    return FigureTable(title, tuple(heads), tuple(rows))


def not_allowed_notes(measured: Iterable[WhatIf]) -> list[Part]:
    """List the levers that break a compliance rule more often, apart from the others."""
    refused = not_allowed(
        (lever.name, lever.breaches) for what_if in measured for lever in what_if.not_allowed
    )
    return [Notes(refused)] if refused else []


def spread(what_if: WhatIf) -> str:
    """Describe the range of finishes and of the share reached over the runs without a lever."""
    finishes = run_values(what_if.base, "finish")
    done = finishes[np.isfinite(finishes)]
    # Not the other runs: NaN stands for a run in which nothing was scheduled.
    never = int((finishes == inf).sum())
    shares = 100 * run_values(what_if.base, "reach_share")
    reached = f"{shares.min():.1f} to {shares.max():.1f} % reached"
    if not len(done):
        return f"none of {what_if.pairs} runs finished; {reached}"
    first, last = (minute_text(round(at)) for at in (done.min(), done.max()))
    when = f"done {first}" if first == last else f"done between {first} and {last}"
    return f"{when}, {reached}" + (f"; {never} did not finish" if never else "")


_NAMED = 3
"""Levers named, at most, of those that meet a goal."""


@dataclass(frozen=True, slots=True)
class GoalWhatIf:
    """Levers compared with the goal of a plan.

    `base` is the estimate of the goal from the runs without any lever. `levers` has an estimate per
    lever of `what_if`, in the same order.
    """

    what_if: WhatIf
    base: GoalEstimate
    levers: tuple[GoalEstimate, ...]


def asked_of(answer: Plan) -> tuple[str | None, str | None]:
    """Return the organization and the campaign of a goal; None where it names none or several."""
    studied = {finding.clause.figure.place for finding in answer.estimate.findings}
    if len(studied) == 1:
        return studied.pop()
    owners = {organization for organization, _ in studied}
    return (owners.pop(), None) if len(owners) == 1 else (None, None)


def against_goal(answer: Plan, what_if: WhatIf) -> GoalWhatIf:
    """Evaluate the goal of a plan on the runs of each lever, and on those without."""
    goal = Goal(answer.goal, tuple(finding.clause for finding in answer.estimate.findings))

    def judged(name: str, runs: Sequence[RunFigures]) -> GoalEstimate:
        return judge(name, goal, runs, CONFIDENCE, answer.estimate.bounds)

    levers = (judged(lever.name, lever.runs) for lever in what_if.levers)
    return GoalWhatIf(what_if, judged("as it is", what_if.base), tuple(levers))


def goal_fact(measured: GoalWhatIf) -> Fact:
    """Return the fact on the levers that meet a goal which the plan misses.

    Levers that lose people who would be reached without them are not named.
    """
    question, what_if = "What would help to meet it?", measured.what_if
    meeting = [
        (lever, estimate)
        for lever, estimate in zip(what_if.levers, measured.levers, strict=True)
        if estimate.met and not loses(what_if, lever)
    ][:_NAMED]
    if not meeting:
        tried = f"None of {len(what_if.levers)} small changes meets the goal."
        return Fact(question, "No small change alone", tried)
    first = meeting[0][1]
    figures = ", ".join(
        f"{with_it.clause.asked} is {plan_text.finding_text(with_it, with_it.estimate)} "
        f"instead of {plan_text.finding_text(without, without.estimate)}"
        for with_it, without in zip(first.findings, measured.base.findings, strict=True)
    )
    said = [f"With {first.value}, {figures}, in {what_if.pairs} runs each."]
    # Levers get fewer runs than the plan's own values.
    if not all(estimate.sure for _, estimate in meeting):
        said.append("Not sure: so few runs may meet it by chance.")
    if any(lever.shortens_retries for lever, _ in meeting):
        said.append(SHORTER_RETRIES)
    names = " or ".join(lever.name for lever, _ in meeting)
    return Fact(question, f"{names[0].upper()}{names[1:]}", " ".join(said))


def goal_table(measured: GoalWhatIf, setting: str) -> FigureTable:
    """Return the table of the goal's figures with each lever, and whether they meet it."""
    clauses = [finding.clause for finding in measured.base.findings]
    bounds = (plan_text.bound_text(finding) for finding in measured.base.findings)
    rows = [("the goal", *bounds, "")]
    names = (f"{setting}, as it is", *(lever.name for lever in measured.what_if.levers))
    for name, part in zip(names, (measured.base, *measured.levers), strict=True):
        cells = (plan_text.finding_text(finding, finding.estimate) for finding in part.findings)
        rows.append((name, *cells, plan_text.verdict_text(part)))
    heads = [*(clause.asked for clause in clauses), "meets it"]
    return FigureTable("With", tuple(heads), tuple(rows), fixed=frozenset({0}))


@dataclass(frozen=True, slots=True)
class Holding:
    """Bottleneck that `count` of `runs` runs share; `example` is the bottleneck of the first
    one.
    """

    example: Bottleneck
    count: int
    runs: int

    @property
    def reason(self) -> str:
        """The reason in a word or two, such as `Pacing`."""
        return self.example.sentence.partition(": ")[0]

    @property
    def how_often(self) -> str:
        """Number of runs in words: `in 48 of 50 runs`."""
        return f"in {self.count} of {counted(self.runs, 'run')}"

    @property
    def said(self) -> str:
        """Explanation of the example, without the reason."""
        return self.example.sentence.partition(": ")[2]


def holding(
    runs: Sequence[RunFigures], organization: str | None = None, campaign: str | None = None
) -> Holding | None:
    """Return the most frequent bottleneck of runs or of a part of them; None if there was nothing
    to do.

    Without names it is the bottleneck of the campaign that finishes last.
    """
    listed = [
        part.held_back
        for run in runs
        for part in run.scopes
        if part.held_back is not None
        and (part.organization, part.campaign) == (organization, campaign)
    ]
    # As sets: which of two joint causes is named first differs from run to run.
    causes = [frozenset({held.reason, *held.also}) for held in listed]
    if not causes:
        return None
    most, count = Counter(causes).most_common(1)[0]
    return Holding(listed[causes.index(most)], count, len(listed))


def holding_fact(question: str, found: Holding | None, campaigns: int) -> Fact:
    """Return the fact on the bottleneck; it names the campaign if there are several."""
    if found is None:
        return Fact(question, "Nothing")
    which = f" ({found.example.campaign})" if campaigns > 1 else ""
    often = f"I{found.how_often[1:]}"
    return Fact(question, f"{found.reason}{which}", f"{often}; in the first of them {found.said}")
