"""The manager's sheet: one A4 page with the decision, its certainty, its cost, and the main risk.

Results of every kind fill the same `Sheet`: the runs of one setting, which is what was simulated or
what is recommended, and a headline. Everything else on the sheet follows from these runs. All texts
are messages of `dialsim.language`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from math import inf, isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from dialsim import __version__
from dialsim.errors import DialsimError, ExperimentError
from dialsim.experiments.estimates import SettingRuns
from dialsim.experiments.experiment_text import amount_text
from dialsim.experiments.forecast import Forecast
from dialsim.experiments.goal import GoalEstimate, Statistic
from dialsim.experiments.intervals import CONFIDENCE, Interval, Values, quantile_interval
from dialsim.experiments.known_bounds import known_bounds_of
from dialsim.experiments.named_figures import COST, expected_mean
from dialsim.experiments.optimum import Optimum
from dialsim.experiments.plan import Plan
from dialsim.experiments.replications import Replications, replicate
from dialsim.experiments.run_figures import (
    MARKS,
    RunFigures,
    calling_days,
    earliest_start,
    fan,
    figures_of,
    run_values,
)
from dialsim.experiments.sweep import Comparison, Sweep
from dialsim.experiments.variants import (
    AmountKind,
    SettingChange,
    SettingValue,
    Variant,
    label_of,
    read_amount,
    setting_key,
    short_names,
)
from dialsim.interface.instants import DAY, MINUTE, midnight, thai_date
from dialsim.language import Language, language, templates
from dialsim.report.run_page import LEAST_PART
from dialsim.report.sweep_page import frontier
from dialsim.results.bottleneck import held_back_text
from dialsim.results.compliance import COMPLIANCE
from dialsim.results.figures import COST_PARTS, cost_parts
from dialsim.results.result import Result
from dialsim.scenario.behaviour import BUILT_IN
from dialsim.scenario.units import is_next_day
from dialsim.scenario.week import days_between

if TYPE_CHECKING:
    from dialsim.experiments.goal import Clause
    from dialsim.scenario.scenario import Scenario

NAME = "sheet.html"

MOST_WEEKS = 5  # weeks of the calendar
MOST_ROWS = 6  # settings compared
_LONGEST = 60  # characters of a name
_LIKELY = 0.05  # least probability of a risk that is named
_MANY = 0.25  # least share of people not reached that is a risk
_PENDING = "people_pending"
_PRICES = ("per_dial", "per_minute", "per_reached", "per_line_day", "fixed")
_WITHOUT_FIGURES = 50  # runs of a plan that are made again, at most, if they lack figures


@dataclass(frozen=True, slots=True)
class CalendarDay:
    """A day of the calendar strip.

    `state` is `open`, `closed` or `outside` (before or after calling). `holiday` is its name,
    `mark` what happens on the day. `reached` is the share of people reached by its end, None if
    unknown.
    """

    label: str
    state: str
    hours: str = ""
    lines: str = ""
    holiday: str = ""
    mark: str = ""
    reached: float | None = None


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A setting that was compared: name, finish, people reached, cost, and verdict."""

    name: str
    finish: str
    reached: str
    cost: str = ""
    verdict: str = ""
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class ManagerSheet:
    """Content of the page, in the language of its texts.

    `finish`, `reached` and `cost` are an answer and notes on it; `cost` is empty without prices.
    `cost_parts` are the names, amounts and shares of the parts of the cost. `more_days` and
    `more_rows` describe what did not fit on the page.
    """

    texts: Language
    title: str
    lead: str
    decision: str
    finish: Sequence[str]
    reached: Sequence[str]
    cost: Sequence[str]
    cost_parts: Sequence[tuple[str, str, float]]
    weekdays: Sequence[str]
    weeks: Sequence[Sequence[CalendarDay]]
    more_days: str
    risk: str
    rows: Sequence[ComparedRow]
    more_rows: str
    assumptions: Sequence[str]
    made_from: str

    def html(self) -> str:
        """Return the document; equal sheets give equal text."""
        made = templates("dialsim.report").get_template(NAME)
        page = made.render(sheet=self, gettext=self.texts.gettext)
        return page.replace(" %", "\N{NO-BREAK SPACE}%")  # stays on the line of its number


def sheet_of(
    found: Result | Replications | Forecast | Sweep | Plan | Optimum,
    language_code: str = "en",
    *,
    scenario: Scenario | None = None,
    seed: int | None = None,
    beside: Sequence[SettingRuns] = (),
) -> ManagerSheet:
    """Return the sheet of a result; its `html` is the page, its `decision` the first sentence.

    `scenario` is required for a Plan and an Optimum: the one that was varied, with the `seed` of
    the search. Runs that lack figures, as those of a search without a store do, are repeated.
    `beside` are settings that Replications were compared with.
    Raises DialsimError for an unknown language.
    """
    say = _Sentences(language(language_code))
    match found:
        case Result():
            world = found.trace.world
            setting = _Setting(say, world.scenario, [figures_of(found)], result=found)
            return setting.sheet(setting.as_planned())
        case Forecast():
            return _of_forecast(say, found)
        case Replications():
            setting, name = _Setting(say, found.scenario, found.figures), say("this plan")
            own = SettingRuns(name, found.figures, found.bounds)
            rows = [(row, "") for row in (own, *beside)] if beside else []
            return setting.sheet(setting.as_planned(), rows=rows, chosen=name)
        case Sweep():
            return _of_sweep(say, found)
    if scenario is None:
        raise DialsimError("the sheet of a plan needs the scenario that was varied")
    if isinstance(found, Plan):
        return _of_plan(say, found, scenario, seed)
    return _of_optimum(say, found, scenario, seed)


class _Sentences:
    """Sentences of the sheet in a language, by key: `say("goal", goal=…)`."""

    def __init__(self, texts: Language) -> None:
        self.texts = texts
        made = templates("dialsim.report").get_template("sentences.txt")
        module: Any = made.make_module({"gettext": texts.gettext})
        self._sentences: Mapping[str | float, str] = module.sentences

    def __call__(self, key: str | float, **values: object) -> str:
        return self._sentences[key].format_map(values)

    def has(self, key: str) -> bool:
        """Return True if there is a sentence with this key."""
        return key in self._sentences

    def likelihood(self, share: float) -> str:
        """Return a probability in the words of the IPCC, which are keys of the sentences."""
        least = max(key for key in self._sentences if not isinstance(key, str) and key <= share)
        return self(least)


class _Setting:
    """Runs of one setting of a scenario, in the words of a language.

    `scenario` is the one with the setting. With `predicts`, quantiles are shares of the runs, as in
    a forecast, else limits that hold with 95 % confidence.
    """

    def __init__(
        self,
        say: _Sentences,
        scenario: Scenario,
        runs: Sequence[RunFigures],
        *,
        predicts: bool = False,
        result: Result | None = None,
    ) -> None:
        self.say = say
        self.texts = say.texts
        self.scenario = scenario
        self.runs = runs
        self.bounds = known_bounds_of(scenario)
        self._predicts = predicts
        self._result = result

    def values(self, figure: str) -> Values:
        """Return a figure of the whole run in each run; NaN where a run lacks it."""
        return run_values(self.runs, figure)

    def mean(self, figure: str) -> float:
        """Return the mean of a figure of the whole run."""
        return float(self.values(figure).mean())

    @cached_property
    def finishes(self) -> Values:
        """Finish of each run in ms: infinite without one, NaN if nothing was scheduled."""
        return self.values("finish")

    @cached_property
    def done(self) -> Values:
        """Finishes of the runs that finish, sorted."""
        return np.sort(self.finishes[np.isfinite(self.finishes)])

    @property
    def is_scheduled(self) -> bool:
        """True if anything was scheduled."""
        return not np.isnan(self.finishes).all()

    @cached_property
    def _late(self) -> Interval:
        return quantile_interval(self.finishes, 0.95, CONFIDENCE, self.bounds.calls)

    @property
    def is_promised(self) -> bool:
        """True if the runs bound the 95 % quantile of the finish."""
        return len(self.runs) > 1 and not self._predicts and isfinite(self._late.high)

    @property
    def finish(self) -> float:
        """Instant to name as the finish: the upper limit of the quantile, else its estimate."""
        return self._late.high if self.is_promised else self._late.estimate

    @property
    def never(self) -> int:
        """Number of runs that do not finish."""
        return int((self.finishes == inf).sum())

    @cached_property
    def people(self) -> int:
        """Number of people on all lists."""
        return round(self.mean("people"))

    def counts(self) -> dict[str, str]:
        """Return the values of the placeholders that most sentences have."""
        reached, done = self.mean("people_reached"), int((self.finishes <= self.finish).sum())
        return {
            "when": self.texts.when(self.finish) if isfinite(self.finish) else "",
            "reached": f"{reached:,.0f}",
            "people": f"{self.people:,}",
            "share": self.texts.share(reached / self.people if self.people else 0),
            "runs": f"{len(self.runs):,}",
            "hits": f"{done:,}",
            "never": f"{self.never:,}",
        }

    def as_planned(self) -> str:
        """Return the decision on a scenario that was not varied."""
        if not self.is_scheduled:
            return self.say("nothing scheduled")
        how = "promised" if self.is_promised else "counted"
        how = "once" if len(self.runs) == 1 else how
        return self.say(f"planned, {how if isfinite(self.finish) else 'unsure'}", **self.counts())

    # -- answers ----------------------------------------------------------------------------------

    def _finish_lines(self) -> Iterator[str]:
        """Yield the finish, and sentences on how sure it is."""
        say = self.say
        if not self.is_scheduled:
            yield say("nothing scheduled")
            return
        yield self.texts.when(self.finish) if isfinite(self.finish) else say("finish, unsure")
        if len(self.runs) == 1:
            yield say("finish, once")
            return
        how = "promised" if self.is_promised else "counted"
        yield say(f"finish, {'never' if self.never else how}", **self.counts())
        finishes = self.finishes[~np.isnan(self.finishes)] / 1000
        days = calling_days({"finish_seconds": finishes}, 0, (None, None))
        for index in sorted({(len(days) - 1) // 2, len(days) - 1} if days else ()):
            day = days[index]
            share = day.estimate(finishes, self.bounds, CONFIDENCE).estimate
            when, words = self.texts.day(thai_date(day.day * DAY)), say.likelihood(share)
            yield say("finish, by day", day=when, likely=words, share=self.texts.share(share))

    def _reached_lines(self) -> Iterator[str]:
        yield self.say("reached", **self.counts())
        if len(self.runs) > 1:
            low, high = np.quantile(self.values("people_reached"), [0.05, 0.95])
            yield self.say("reached, range", low=f"{low:,.0f}", high=f"{high:,.0f}")
        for name in ("people_exhausted", "people_lost", "people_pending"):
            count = self.mean(name) + (self.mean("people_stalled") if name == _PENDING else 0)
            if count >= 1:
                yield self.say(name, people=f"{count:,.0f}")

    def _money(self, amount: float) -> str:
        assert self.scenario.costs is not None
        return f"{amount_text('cost', amount)} {self.texts.currency(self.scenario.costs.currency)}"

    @cached_property
    def _cost(self) -> float:
        # Tables of a single run show what its conversations cost, not what they would on average.
        if len(self.runs) == 1:
            return self.mean("cost")
        return expected_mean(COST, self.runs, self.bounds)

    def _cost_lines(self) -> Iterator[str]:
        costs = self.scenario.costs
        if costs is None:
            return
        yield self._money(self._cost)
        if reached := self.mean("people_reached"):
            each = f"{self._cost / reached:,.2f} {self.texts.currency(costs.currency)}"
            yield self.say("cost, each", amount=each)
        value = self.mean("value")
        if self.scenario.value is not None and not isnan(value):
            yield self.say("worth", amount=self._money(value))

    def _cost_parts(self) -> Iterator[tuple[str, str, float]]:
        """Yield name, amount and share of the parts of the mean cost."""
        if self.scenario.costs is None or not self._cost:
            return
        amounts = {"cost": self._cost, **{name: self.mean(name) for name in COST_PARTS}}
        for name, part in zip(COST_PARTS, cost_parts(amounts).values(), strict=True):
            if part >= LEAST_PART:
                yield self.say(name), amount_text("cost", part), part / self._cost

    # -- calendar ---------------------------------------------------------------------------------

    def _weeks(self) -> tuple[list[list[CalendarDay]], str]:
        """Return the days of calling in weeks from Monday on, and what is left out of them."""
        if not self.is_scheduled:
            return [], ""
        first = thai_date(max(earliest_start(self.runs) or 0, self.scenario.clock.start))
        last = max(self._last_day, first)
        monday = first - timedelta(days=first.weekday())
        count = min((last - monday).days // 7 + 1, MOST_WEEKS)
        shown = monday + timedelta(days=7 * count - 1)
        calendar = self.scenario.calendar
        names = {} if calendar is None else calendar.names_in(self.texts.code)
        days = []
        for day in days_between(monday, shown):
            label = self.texts.short_day(day) if day.day == 1 or day == monday else str(day.day)
            if first <= day <= last:
                days.append(self._calendar_day(day, label, names.get(day, "")))
            else:
                days.append(CalendarDay(label, "outside"))
        more = self.say("more days", day=self.texts.day(last)) if last > shown else ""
        return [days[k : k + 7] for k in range(0, len(days), 7)], more

    @property
    def _last_day(self) -> date:
        last = self.finish if isfinite(self.finish) else self.done.max(initial=1)
        # Midnight belongs to the day that it ends.
        return thai_date(round(last) - 1)

    @cached_property
    def _spans(self) -> list[tuple[int, int, str]]:
        """Spans in which organizations may call, with their names."""
        until = midnight(self._last_day) + DAY
        return [
            (begin, end, each.organization)
            for each in self.bounds.calendars
            for begin, end in each.open_spans(until).tolist()
        ]

    @cached_property
    def _marks(self) -> Values | None:
        return fan(self.runs, 0.5) if all(run.reached for run in self.runs) else None

    def _calendar_day(self, day: date, label: str, holiday: str) -> CalendarDay:
        begin, end = midnight(day), midnight(day) + DAY
        within = [(max(a, begin), min(b, end), who) for a, b, who in self._spans
                  if a < end and b > begin]  # fmt: skip
        reached, marks = None, self._marks
        if marks is not None:
            reached = (int((marks <= end).sum()) - 1) / MARKS
        mark = self.say("done") if isfinite(self.finish) and day == self._last_day else ""
        if not within:
            # Without calendars (campaigns that came from outside) the hours are not known.
            state = "closed" if self.bounds.calendars else "open"
            return CalendarDay(label, state, holiday=holiday, mark=mark, reached=reached)
        opens, closes = min(a for a, *_ in within), max(b for _, b, _ in within)
        hours = "–".join(_hour((at - begin) // MINUTE) for at in (opens, closes))
        lines = "–".join(f"{count:,}" for count in sorted({*self._lines_within(within)}))
        return CalendarDay(label, "open", hours, lines, holiday, mark, reached)

    def _lines_within(self, spans: Sequence[tuple[int, int, str]]) -> tuple[int, int]:
        """Return the least and the greatest number of lines in spans of a day."""
        limits = self._limits
        # The sum of lines changes only where a span begins or a limit is set.
        at = {a for a, *_ in spans}
        at |= {change for a, b, who in spans for change, _ in limits[who] if a < change < b}
        totals = []
        for instant in at:
            owners = {who for a, b, who in spans if a <= instant < b}
            held = ([lines for change, lines in limits[who] if change <= instant] for who in owners)
            totals.append(sum(each[-1] for each in held if each))
        return min(totals), max(totals)

    @cached_property
    def _limits(self) -> dict[str, list[tuple[int, int]]]:
        """Limits of each organization: first instants (ms) and numbers of lines."""
        if self._result is not None:
            trace = self._result.trace
            return {owner.name: [(row.at, row.limit) for row in trace.limits_of(owner.position)]
                    for owner in trace.world.organizations}  # fmt: skip
        return {owner.name: [(0, owner.max_concurrent_calls), *owner.limit_changes]
                for owner in self.scenario.organizations}  # fmt: skip

    # -- risk and assumptions ---------------------------------------------------------------------

    def _risks(self) -> Iterator[str]:
        """Yield the risks, the greatest first: people lost, rules broken, another day, one run,
        assumed behaviour, people not reached, the bottleneck.
        """
        say, runs = self.say, len(self.runs)
        if (self.values("people_lost") > 0).mean() >= _LIKELY:
            yield say("risk, lost", people=f"{self.mean('people_lost'):,.0f}")
        elif self.never / runs >= _LIKELY:
            yield say("risk, never", **self.counts())
        for name in self.runs[0].scopes[0].values:
            rule, _, count = name.removeprefix(COMPLIANCE).rpartition("_")
            is_rule = name.startswith(COMPLIANCE) and count in ("outside", "repeated")
            if is_rule and (calls := round(self.mean(name))):
                yield say("risk, rule", rule=_short(rule), calls=f"{calls:,}")
        days = [thai_date(round(at) - 1) for at in self.done.tolist()]
        usual = days[(len(days) - 1) // 2] if days else date.max
        if (late := sum(day > usual for day in days) / runs) >= _LIKELY:
            share = self.texts.share(late)
            yield say("risk, later", share=share, day=self.texts.day(usual))
        if runs == 1:
            yield say("risk, once")
        if self._is_assumed:
            yield say("risk, assumed")
        if self.people and (share_left := self.mean("people_exhausted") / self.people) >= _MANY:
            yield say("risk, unreached", share=self.texts.share(share_left))
        held = Counter(run.scopes[0].held_back for run in self.runs).most_common(1)[0][0]
        yield held_back_text(self.texts, held)
        yield say("risk, none")

    @property
    def _is_assumed(self) -> bool:
        used = {agent.behaviour for owner in self.scenario.organizations for agent in owner.agents}
        return any(self.scenario.behaviours[name] == BUILT_IN for name in used)

    def _assumptions(self) -> Iterator[str]:
        """Yield what the result rests on."""
        say, texts, costs = self.say, self.texts, self.scenario.costs
        campaigns = [c for owner in self.scenario.organizations for c in owner.campaigns]
        requests = [campaign.schedule for campaign in campaigns if campaign.schedule]
        if requests:
            attempts = {request.max_attempts for request in requests}
            again = [request.retry_interval for request in requests if request.max_attempts > 1]
            pause = texts.duration(min(again)) if again else "–"
            most = "–".join(map(str, sorted({min(attempts), max(attempts)})))
            key = "rests, lists" if again else "rests, one attempt"
            counts = {"people": f"{self.people:,}", "campaigns": f"{len(requests):,}"}
            yield say(key, attempts=most, pause=pause, **counts)
        answered = self.mean("reach_by_attempt_1")
        if not isnan(answered) and not self._predicts:
            key = "rests, built in" if self._is_assumed else "rests, scenario"
            yield say(key, share=texts.share(answered))
        calendar = self.scenario.calendar
        yield say("rests, holidays" if calendar and calendar.names else "rests, no holidays")
        if costs is not None:
            prices = {name: getattr(costs, name) for name in _PRICES}
            said = [say(name, amount=f"{price:,.10g}") for name, price in prices.items() if price]
            yield say(
                "rests, prices", currency=texts.currency(costs.currency), prices=texts.listed(said)
            )
        if warnings := len(self.scenario.warnings):
            yield say("rests, warnings", count=f"{warnings:,}")

    # -- the sheet --------------------------------------------------------------------------------

    def sheet(
        self,
        decision: str,
        *,
        title: str = "",
        lead: str = "",
        risk: str = "",
        rows: Sequence[tuple[SettingRuns, str]] = (),
        chosen: str = "",
        assumptions: Sequence[str] = (),
    ) -> ManagerSheet:
        """Fill the page; `rows` are the settings compared and their verdicts."""
        weeks, more_days = self._weeks()
        shown = _around(rows, chosen)
        more = f"{len(rows) - len(shown):,}" if len(rows) > len(shown) else ""
        monday, name = date(2026, 1, 5), _short(self.scenario.name)
        runs = f"{len(self.runs):,}"
        return ManagerSheet(
            texts=self.texts,
            title=_short(title) if title else name,
            lead=_short(lead or self.scenario.description or "", 2 * _LONGEST),
            decision=decision,
            finish=[*self._finish_lines()],
            reached=[*self._reached_lines()],
            cost=[*self._cost_lines()],
            cost_parts=[*self._cost_parts()],
            weekdays=[self.texts.weekday(monday + timedelta(days=k)) for k in range(7)],
            weeks=weeks,
            more_days=more_days,
            risk=risk or next(filter(None, self._risks())),
            rows=[self._row(*row, chosen) for row in shown],
            more_rows=more and self.say("more rows", count=more),
            assumptions=[*assumptions, *self._assumptions()],
            made_from=self.say("made", version=__version__, scenario=name, runs=runs),
        )

    def _row(self, setting: SettingRuns, verdict: str, chosen: str) -> ComparedRow:
        half = np.quantile(run_values(setting.runs, "finish"), 0.5, method="inverted_cdf")
        finish = "–" if isnan(half) else self.say("never")
        if isfinite(half):
            finish = self.texts.short_when(half)
        cost = ""
        if self.scenario.costs is not None:
            cost = amount_text("cost", expected_mean(COST, setting.runs, setting.bounds))
        reached = float(run_values(setting.runs, "people_reached").mean())
        if isnan(reached):  # searches ask for the share
            reached = float(run_values(setting.runs, "reach_share").mean()) * self.people
        name, is_chosen = _short(setting.name), setting.name == chosen
        return ComparedRow(name, finish, f"{reached:,.0f}", cost, verdict, is_chosen)


def _short(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _hour(minute: int) -> str:
    """Format a minute of the day: `9` or `9:30`."""
    return f"{minute // 60}" + (f":{minute % 60:02}" if minute % 60 else "")


def _around(rows: Sequence[tuple[SettingRuns, str]], chosen: str) -> list[tuple[SettingRuns, str]]:
    """Return the rows that are shown, in their order: first the chosen one and those with a
    verdict, then their neighbours.
    """
    at = next((k for k, (row, _) in enumerate(rows) if row.name == chosen), 0)
    order = sorted(range(len(rows)), key=lambda k: (k != at, not rows[k][1], abs(k - at), k))
    return [rows[k] for k in sorted(order[:MOST_ROWS])]


# -- results of each kind --------------------------------------------------------------------------


def _of_forecast(say: _Sentences, found: Forecast) -> ManagerSheet:
    setting, texts = (
        _Setting(say, found.runs.scenario, found.runs.figures, predicts=True),
        say.texts,
    )
    figures = found.figures
    if figures is None:
        return setting.sheet(say("nothing scheduled"))
    how = "counted" if isfinite(setting.finish) else "unsure"
    decision = say(f"forecast, {how}", **setting.counts())
    start = texts.when(figures.at)
    assumptions = [say("rests, forecast", when=start, reached=f"{figures.reached:,}")]
    if found.draws:
        assumptions.append(say("rests, draws", draws=f"{found.draws:,}"))
    earlier = [
        ComparedRow(
            say("earlier", when=texts.short_when(part.at)),
            texts.short_when(part.finish.half) if isfinite(part.finish.half) else say("never"),
            f"{part.reach.half:,.0f}",
        )
        for part in found.earlier[-MOST_ROWS:]
    ]
    return replace(setting.sheet(decision, assumptions=assumptions), rows=earlier)


def _of_sweep(say: _Sentences, found: Sweep) -> ManagerSheet:
    choice, baseline = frontier(found), found.baseline
    chosen = choice.recommended if choice.aims else baseline
    at = found.names.index(chosen)
    short = short_names(change.path for variant in found.variants for change in variant.changes)
    names = {v.name: _variant_text(say, v, short) for v in found.variants}
    setting = _Setting(say, found.variants[at].of(found.scenario), found.figures[at])
    if not choice.aims:
        key = "sweep, rules" if found.breaches else "sweep, alike"
    elif baseline in choice.alike:
        key = "sweep, not told"
    else:
        key = "sweep, recommended" if isfinite(setting.finish) else "sweep, unsure"
    named = {"setting": _short(names[chosen]), "baseline": _short(names[baseline])}
    key = key if setting.is_scheduled else "nothing scheduled"
    verdicts = {baseline: say("baseline"), chosen: say("recommended")}
    verdicts |= dict.fromkeys(found.breaches, say("not allowed"))
    rows = [
        (replace(own, name=names[name]), verdicts.get(name, ""))
        for name, own in found.by_name.items()
    ]
    is_comparison = isinstance(found, Comparison)
    title = say("comparison", files=say.texts.listed([*names.values()])) if is_comparison else ""
    return setting.sheet(
        say(key, **setting.counts(), **named), title=title, rows=rows, chosen=names[chosen],
        assumptions=[say("rests, same chance")],
    )  # fmt: skip


def _of_plan(say: _Sentences, found: Plan, scenario: Scenario, seed: int | None) -> ManagerSheet:
    texts, part, deadline = say.texts, found.estimate, _deadline(found.estimate)
    name, low, high = (
        _setting_text(say, found.path, value) for value in (part.value, *found.between)
    )
    setting = _at(say, part, [SettingChange(found.path, str(part.value))], scenario, seed)
    named = {"setting": _short(name), "runs": f"{part.replications:,}", "low": low, "high": high}
    key = "plan, met"
    if not found.met:
        key = "plan, missed"
    elif not part.sure or found.stopped_after is not None:
        key = "plan, doubtful"
    elif deadline is not None:
        key = "plan, by deadline"
        named |= {"deadline": texts.when(deadline[0]), "sure": texts.share(deadline[1])}
    rows = [
        (SettingRuns(_setting_text(say, found.path, each.value), each.runs, each.bounds),
         _verdict(say, each))
        for each in found.tried
    ]  # fmt: skip
    return setting.sheet(
        say(key, **{**setting.counts(), **named}), lead=_goal_text(say, part, scenario),
        risk=_goal_risk(say, found.met, part), rows=rows, chosen=name,
    )  # fmt: skip


def _of_optimum(
    say: _Sentences, found: Optimum, scenario: Scenario, seed: int | None
) -> ManagerSheet:
    part, short = found.best.estimate, short_names(found.paths)

    def changes(values: Sequence[SettingValue]) -> list[SettingChange]:
        pairs = zip(found.paths, values, strict=True)
        return [SettingChange(path, str(value)) for path, value in pairs]

    names = [_changes_text(say, changes(each.values), short) for each in found.tried]
    name = names[found.tried.index(found.best)]
    setting = _at(say, part, changes(found.best.values), scenario, seed)
    key = "optimum, best" if found.sure else "optimum, doubtful"
    key = key if found.met else "optimum, missed"
    named = {"setting": _short(name), "combinations": f"{found.count:,}"}
    rows = [
        (SettingRuns(label, each.estimate.runs, each.estimate.bounds),
         _verdict(say, each.estimate) if found.goal else "")
        for label, each in zip(names, found.tried, strict=True)
    ]  # fmt: skip
    return setting.sheet(
        say(key, **setting.counts(), **named),
        lead=_goal_text(say, part, scenario, found.objective),
        risk=_goal_risk(say, found.met, part), rows=rows, chosen=name,
    )  # fmt: skip


def _at(
    say: _Sentences, part: GoalEstimate, changes: Sequence[SettingChange], scenario: Scenario,
    seed: int | None,
) -> _Setting:  # fmt: skip
    """Return the setting that a search found; runs that lack figures are made again."""
    varied = Variant("", tuple(changes)).of(scenario)
    runs: Sequence[RunFigures] = part.runs
    if any(run.asked is not None for run in runs):
        count = min(part.replications, _WITHOUT_FIGURES)
        runs = replicate(varied, count, seed=seed, jobs=1, progress=False).figures
    return _Setting(say, varied, runs)


def _deadline(part: GoalEstimate) -> tuple[float, float] | None:
    """Return the deadline (ms) of a goal and the share of runs to keep it; None without one."""
    clauses = (finding.clause for finding in part.findings if _is_deadline(finding.clause))
    return next(((clause.bound.value, clause.least_share) for clause in clauses), None)


def _is_deadline(clause: Clause) -> bool:
    figure, bound = clause.figure, clause.bound
    whole = figure.is_figure and figure.name == "finish" and figure.place == (None, None)
    least = clause.smaller_is_better and clause.statistic is not Statistic.MEAN
    return whole and least and not bound.after_start


def _goal_text(
    say: _Sentences, part: GoalEstimate, scenario: Scenario, objective: str | None = None
) -> str:
    """Return the goal and the objective in words; a clause without a wording is quoted."""
    texts, said = say.texts, list[str]()
    for finding in part.findings:
        clause, figure = finding.clause, finding.clause.figure
        key, value = f"goal, {figure.text}", clause.bound.value
        amount = texts.share(value) if figure.text == "reach_share" else f"{value:,.10g}"
        if figure.text == "cost" and scenario.costs is not None:
            amount = f"{amount} {texts.currency(scenario.costs.currency)}"
        if _is_deadline(clause):
            share = texts.share(clause.least_share)
            said.append(say("goal, finish", when=texts.when(value), share=share))
        elif (
            clause.statistic is Statistic.MEAN
            and clause.smaller_is_better is (figure.text == "cost")
            and say.has(key)
        ):
            said.append(say(key, amount=amount))
        else:
            said.append(clause.text)
    if objective is not None:
        way, _, mean = objective.partition(" ")
        figure_text = mean.removeprefix("mean(").removesuffix(")")
        key = f"goal, {'most' if way == 'maximize' else 'least'} {figure_text}"
        said.append(say(key) if say.has(key) else objective)
    return say("goal", goal=texts.listed(said)) if said else ""


def _goal_risk(say: _Sentences, met: bool, part: GoalEstimate) -> str:
    """Return the risk of missing the goal as a sentence; empty if the goal is certainly met."""
    if met and part.sure:
        return ""
    return say("risk, doubtful") if met else say("risk, missed")


def _verdict(say: _Sentences, part: GoalEstimate) -> str:
    if part.breaches:
        return say("not allowed")
    return say(f"{'meets' if part.met else 'misses'}{', sure' if part.sure else ''}")


# -- settings in words -----------------------------------------------------------------------------


def _variant_text(say: _Sentences, variant: Variant, short: Mapping[str, str]) -> str:
    """Return the name of a variant; a name made of its changes in the words of the language."""
    if variant.changes and variant.name == label_of(variant.changes, short):
        return _changes_text(say, variant.changes, short)
    is_plain = variant.name in ("as is", "as it is") and not variant.changes
    return say("as it is") if is_plain else variant.name


def _changes_text(
    say: _Sentences, changes: Sequence[SettingChange], short: Mapping[str, str]
) -> str:
    said = []
    for change in changes:
        text, owner = _setting_text(say, change.path, change.value), short[change.path]
        owned = say("owned", setting=text, owner=owner.removeprefix(" of ")) if owner else text
        said.append(owned)
    return say.texts.listed(said)


def _setting_text(say: _Sentences, path: str, value: SettingValue) -> str:
    """Return a setting in words: `30 lines`, `retries after 2 hr`."""
    texts, key = say.texts, setting_key(path)
    if is_next_day(value):
        return say("next day")
    try:
        amount = read_amount(str(value))
    except ExperimentError:
        return f"{key}={value}"
    number = float(amount.value)
    if amount.kind is AmountKind.INSTANT:
        text = texts.when(number)
    elif amount.kind is AmountKind.DURATION or key == "retryInterval":
        text = texts.duration(number)
    else:
        # Each noun is written out: Babel collects messages from literal calls only.
        people = texts.ngettext("{count} person", "{count} people", number)
        return {
            "maxConcurrentCalls": texts.ngettext("{count} line", "{count} lines", number),
            "maxAttempts": texts.ngettext("{count} attempt", "{count} attempts", number),
            "callerIds": texts.ngettext("{count} caller ID", "{count} caller IDs", number),
            "callsPerSecond": texts.ngettext(
                "{count} dial a second", "{count} dials a second", number
            ),
            "count": people,
            "first": people,
        }.get(key, f"{key}={value}")
    return say(key, value=text) if say.has(key) else f"{key}={text}"
