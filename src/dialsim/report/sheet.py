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
from math import inf, isfinite, isnan, nan
from typing import TYPE_CHECKING

import numpy as np

from dialsim import __version__
from dialsim.errors import DialsimError, ExperimentError
from dialsim.experiments.comparison import Comparison
from dialsim.experiments.days import telling_days
from dialsim.experiments.estimates import SettingRuns
from dialsim.experiments.experiment_text import amount_text
from dialsim.experiments.facts import expected_mean
from dialsim.experiments.figure_names import COST
from dialsim.experiments.forecast import Forecast
from dialsim.experiments.goal import GoalEstimate, Statistic
from dialsim.experiments.intervals import CONFIDENCE, Interval, Values, quantile_interval
from dialsim.experiments.known_bounds import known_bounds_of
from dialsim.experiments.optimum import Optimum
from dialsim.experiments.plan import Plan
from dialsim.experiments.replications import Replications, replicate
from dialsim.experiments.run_figures import MARKS, RunFigures, earliest_start, fan, figures_of
from dialsim.experiments.sweep import Sweep
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
from dialsim.language import Language, language
from dialsim.report.sweep_page import frontier
from dialsim.results.bottleneck import held_back_text
from dialsim.results.compliance import COMPLIANCE
from dialsim.results.figures import COST_PARTS, cost_parts
from dialsim.results.result import Result
from dialsim.scenario.behaviour import BUILT_IN
from dialsim.scenario.calendar import days_between
from dialsim.scenario.units import is_next_day
from dialsim.templates import templates

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.scenario.scenario import Scenario

NAME = "sheet.html"

MOST_WEEKS = 5  # weeks of the calendar
MOST_ROWS = 6  # settings compared
_LONGEST = 60  # characters of a name
_LIKELY = 0.05  # probability from which a risk is named
_WITHOUT_FIGURES = 50  # runs of a plan that are made again, at most, if they lack figures


@dataclass(frozen=True, slots=True)
class Card:
    """A question with its answer, and what more there is to say."""

    heading: str
    value: str
    notes: Sequence[str]


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
    cost: str
    verdict: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Sheet:
    """Content of the page, in the language of its texts.

    `cost_parts` are the names, amounts and shares of the parts of the cost; `more_days` and
    `more_rows` say what there was no room for.
    """

    texts: Language
    title: str
    lead: str
    decision: str
    cards: Sequence[Card]
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
        gettext = self.texts.gettext
        return made.render(sheet=self, lang=self.texts.code, gettext=gettext)


def sheet_of(
    found: Result | Replications | Forecast | Sweep | Plan | Optimum,
    language_code: str = "en",
    *,
    scenario: Scenario | None = None,
    seed: int | None = None,
    compared: pd.DataFrame | None = None,
    baseline: str | None = None,
    beside: Sequence[SettingRuns] = (),
) -> Sheet:
    """Return the sheet of a result; its `html` is the page, its `decision` the first sentence.

    `scenario` is required for a Plan and an Optimum: the one that was varied, with the `seed` of
    the search. Runs that lack figures, as those of a search without a store do, are repeated.
    `compared` are the differences of a Sweep or Comparison from its variant `baseline`, by default
    those of `found.differences()`. `beside` are settings that Replications were compared with.
    Raises DialsimError for an unknown language.
    """
    texts = language(language_code)
    match found:
        case Result():
            return _of_run(texts, found)
        case Forecast():
            return _of_forecast(texts, found)
        case Replications():
            return _of_replications(texts, found, beside)
        case Sweep():
            base = baseline or found.baseline
            table = found.differences(base) if compared is None else compared
            return _of_sweep(texts, found, table, base)
    if scenario is None:
        raise DialsimError("the sheet of a plan needs the scenario that was varied")
    if isinstance(found, Plan):
        return _of_plan(texts, found, scenario, seed)
    return _of_optimum(texts, found, scenario, seed)


class _Setting:
    """Runs of one setting of a scenario, in the words of a language.

    `scenario` is the one with the setting. With `predicts`, quantiles are shares of the runs, as in
    a forecast, else limits that hold with 95 % confidence.
    """

    def __init__(
        self,
        texts: Language,
        scenario: Scenario,
        runs: Sequence[RunFigures],
        *,
        predicts: bool = False,
        result: Result | None = None,
    ) -> None:
        self.texts = texts
        self.scenario = scenario
        self.runs = runs
        self.bounds = known_bounds_of(scenario)
        self._predicts = predicts
        self._result = result

    def values(self, figure: str) -> Values:
        """Return a figure of the whole run in each run; NaN where a run lacks it."""
        known = (run.scopes[0].values.get(figure, nan) for run in self.runs)
        return np.array([*known], dtype=np.float64)

    @cached_property
    def finishes(self) -> Values:
        """Finish of each run in ms: infinite without one, NaN if nothing was scheduled."""
        return self.values("finish")

    @property
    def is_scheduled(self) -> bool:
        """True if anything was scheduled."""
        return not np.isnan(self.finishes).all()

    @cached_property
    def late(self) -> Interval:
        """95 % quantile of the finish."""
        return quantile_interval(self.finishes, 0.95, CONFIDENCE, self.bounds.calls)

    @property
    def is_promised(self) -> bool:
        """True if the runs bound the 95 % quantile of the finish."""
        return len(self.runs) > 1 and not self._predicts and isfinite(self.late.high)

    @property
    def finish(self) -> float:
        """Instant to name as the finish: the upper limit of the quantile, else its estimate."""
        return self.late.high if self.is_promised else self.late.estimate

    @property
    def never(self) -> int:
        """Number of runs that do not finish."""
        return int((self.finishes == inf).sum())

    @property
    def hits(self) -> int:
        """Number of runs that are done by `finish`."""
        return int((self.finishes <= self.finish).sum())

    @cached_property
    def reached(self) -> float:
        """Mean number of people reached."""
        return float(self.values("people_reached").mean())

    @property
    def people(self) -> int:
        """Number of people on all lists."""
        return round(float(self.values("people").max()))

    @property
    def share(self) -> str:
        """Share of people reached, in words."""
        return self.texts.share(self.reached / self.people if self.people else 0)

    def counts(self) -> dict[str, str]:
        """Return the values of the placeholders that most headlines have."""
        known = self.is_scheduled and isfinite(self.finish)
        return {
            "when": self.texts.when(self.finish) if known else "",
            "reached": f"{self.reached:,.0f}",
            "people": f"{self.people:,}",
            "share": self.share,
            "runs": f"{len(self.runs):,}",
            "hits": f"{self.hits:,}",
            "never": f"{self.never:,}",
        }

    # -- cards ------------------------------------------------------------------------------------

    def cards(self) -> Iterator[Card]:
        """Yield the answers to: when, whom, at what cost, for what value."""
        gettext = self.texts.gettext
        yield Card(gettext("Finish"), self._finish_text(), [*self._certainty()])
        reached = gettext("{reached} of {people} people ({share})", **self.counts())
        yield Card(gettext("People reached"), reached, [*self._reach_notes()])
        if (costs := self.scenario.costs) is not None:
            notes = []
            if self.reached:
                each = f"{self.cost / self.reached:,.2f} {costs.currency}"
                notes.append(gettext("{amount} for each person reached", amount=each))
            value = float(self.values("value").mean())
            if self.scenario.value is not None and not isnan(value):
                worth = f"{amount_text('cost', value)} {costs.currency}"
                notes.append(gettext("The results are worth {amount}.", amount=worth))
            amount = f"{amount_text('cost', self.cost)} {costs.currency}"
            yield Card(gettext("Cost"), amount, notes)

    @cached_property
    def cost(self) -> float:
        """Mean cost; that of the run itself if there is only one."""
        if self.scenario.costs is None:
            return nan
        # Tables of a single run show what its conversations cost, not what they would on average.
        if len(self.runs) == 1:
            return float(self.values("cost")[0])
        return expected_mean(COST, self.runs, self.bounds)

    def _finish_text(self) -> str:
        if not self.is_scheduled:
            return self.texts.gettext("Nothing is scheduled")
        if not isfinite(self.finish):
            return self.texts.gettext("Not sure to finish")
        return self.texts.when(self.finish)

    def _certainty(self) -> Iterator[str]:
        """Yield sentences on how sure the finish is."""
        gettext, counts = self.texts.gettext, self.counts()
        if not self.is_scheduled:
            return
        if len(self.runs) == 1:
            yield gettext("From one run; another one may end earlier or later.")
            return
        if self.never:
            yield gettext("{never} of {runs} runs do not finish.", **counts)
        elif self.is_promised:
            yield gettext("95 % sure, judging by {runs} runs.", **counts)
        else:
            yield gettext("{hits} of {runs} runs are done by then.", **counts)
        finishes = self.finishes[~np.isnan(self.finishes)] / 1000
        for day in telling_days(finishes, self.bounds):
            share = day.estimate(finishes, self.bounds, CONFIDENCE).estimate
            when = self.texts.day(thai_date(day.day * DAY))
            words, share_text = self._likelihood(share), self.texts.share(share)
            yield gettext("By the end of {day}: {likely} ({share})",
                          day=when, likely=words, share=share_text)  # fmt: skip

    def _likelihood(self, share: float) -> str:
        """Return a probability in words: those of the IPCC for shares from 99, 90, 66, 33 and 10 %
        on.
        """
        gettext = self.texts.gettext
        for least, words in (
            (0.99, gettext("virtually certain")),
            (0.9, gettext("very likely")),
            (0.66, gettext("likely")),
            (0.33, gettext("about as likely as not")),
            (0.1, gettext("unlikely")),
        ):
            if share >= least:
                return words
        return gettext("very unlikely")

    def _reach_notes(self) -> Iterator[str]:
        gettext = self.texts.gettext
        if len(self.runs) > 1:
            low, high = np.quantile(self.values("people_reached"), [0.05, 0.95])
            yield gettext(
                "{low} to {high} in nine of ten runs", low=f"{low:,.0f}", high=f"{high:,.0f}"
            )
        open_ones = self.values("people_stalled") + self.values("people_pending")
        for count, text in (
            (
                self.values("people_exhausted").mean(),
                gettext("{people} not reached in all attempts"),
            ),
            (self.values("people_lost").mean(), gettext("{people} lost when their campaign ended")),
            (open_ones.mean(), gettext("{people} still to be called")),
        ):
            if count >= 1:
                yield text.format(people=f"{count:,.0f}")

    def cost_parts(self) -> Iterator[tuple[str, str, float]]:
        """Yield name, amount and share of the parts of the mean cost."""
        if self.scenario.costs is None or not self.cost:
            return
        means = {name: float(self.values(name).mean()) for name in COST_PARTS}
        gettext = self.texts.gettext
        names = {
            "dials": gettext("dials"),
            "minutes": gettext("minutes"),
            "people reached": gettext("people reached"),
            "lines": gettext("lines"),
            "fixed": gettext("fixed"),
        }
        for name, part in cost_parts({"cost": self.cost, **means}).items():
            if part >= 0.005:
                yield names[name], amount_text("cost", part), part / self.cost

    # -- calendar ---------------------------------------------------------------------------------

    def weeks(self) -> tuple[list[list[CalendarDay]], str]:
        """Return the days of calling in weeks from Monday on, and what is left out of them."""
        if not self.is_scheduled:
            return [], ""
        start = max(earliest_start(self.runs) or 0, self.scenario.clock.start)
        first, last = thai_date(start), max(self._last_day, thai_date(start))
        monday = first - timedelta(days=first.weekday())
        count = min((last - monday).days // 7 + 1, MOST_WEEKS)
        shown = monday + timedelta(days=7 * count - 1)
        spans = self._open_spans(midnight(shown) + DAY)
        names = {} if self.scenario.calendar is None else self.scenario.calendar.names_in(
            self.texts.code)  # fmt: skip
        marks = fan(self.runs, 0.5) if all(run.reached for run in self.runs) else None
        days = []
        for day in days_between(monday, shown):
            label = self.texts.short_day(day) if day.day == 1 or day == monday else str(day.day)
            if not first <= day <= last:
                days.append(CalendarDay(label, "outside"))
                continue
            days.append(self._calendar_day(day, label, spans, names.get(day, ""), marks))
        left = (last - shown).days
        more = ""
        if left > 0:
            more = self.texts.ngettext(
                "and {count} more day, until {day}", "and {count} more days, until {day}", left,
                day=self.texts.day(last),
            )  # fmt: skip
        return [days[k : k + 7] for k in range(0, len(days), 7)], more

    @property
    def _last_day(self) -> date:
        done = self.finishes[np.isfinite(self.finishes)]
        last = self.finish if isfinite(self.finish) else max(done, default=0.0)
        # Midnight belongs to the day that it ends.
        return thai_date(round(last) - 1)

    def _open_spans(self, until: int) -> list[tuple[int, int, str]]:
        """Return the spans in which organizations may call, with their names."""
        return [
            (int(begin), int(end), each.organization)
            for each in self.bounds.calendars
            for begin, end in each.open_spans(until)
        ]

    def _calendar_day(
        self,
        day: date,
        label: str,
        spans: Sequence[tuple[int, int, str]],
        holiday: str,
        marks: Values | None,
    ) -> CalendarDay:
        begin, end = midnight(day), midnight(day) + DAY
        within = [(max(a, begin), min(b, end), who) for a, b, who in spans if a < end and b > begin]
        reached = None
        if marks is not None:
            reached = (int((marks <= end).sum()) - 1) / MARKS
        mark = ""
        if isfinite(self.finish) and day == self._last_day:
            mark = self.texts.gettext("done")
        if not within:
            # Without calendars (campaigns that came from outside) the hours are not known.
            state = "closed" if self.bounds.calendars else "open"
            return CalendarDay(label, state, "", "", holiday, mark, reached)
        opens, closes = min(a for a, *_ in within), max(b for _, b, _ in within)
        first, last = (_hour((at - begin) // MINUTE) for at in (opens, closes))
        low, high = self._lines_within(within)
        lines = f"{low:,}" if low == high else f"{low:,}–{high:,}"
        return CalendarDay(label, "open", f"{first}–{last}", lines, holiday, mark, reached)

    def _lines_within(self, spans: Sequence[tuple[int, int, str]]) -> tuple[int, int]:
        """Return the least and the greatest number of lines in spans of a day."""
        limits = self._limits
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
        """Number of lines of each organization, with the instants (ms) from which they hold."""
        if self._result is not None:
            trace = self._result.trace
            return {owner.name: [(row.at, row.limit) for row in trace.limits_of(owner.position)]
                    for owner in trace.world.organizations}  # fmt: skip
        found = {}
        for owner in self.scenario.organizations:
            changes = [
                (action.at, int(action.value or 0))
                for action in (*owner.timeline, *owner.compiled_actions)
                if action.action == "setConcurrency"
            ]
            found[owner.name] = [(0, owner.max_concurrent_calls), *sorted(changes)]
        return found

    # -- risk and assumptions ---------------------------------------------------------------------

    def risks(self) -> Iterator[str]:
        """Yield the risks, the greatest first: people lost, rules broken, another day, one run,
        assumed behaviour, people not reached, the bottleneck.
        """
        gettext, ngettext, runs = self.texts.gettext, self.texts.ngettext, len(self.runs)
        lost = self.values("people_lost")
        if self.is_scheduled and (lost > 0).mean() >= _LIKELY:
            yield ngettext(
                "{count} person is lost on average: their campaign ends too early.",
                "{count} people are lost on average: their campaigns end too early.",
                round(float(lost.mean())),
            )
        elif self.never / runs >= _LIKELY:
            yield gettext("Calling may not finish: it does not in {never} of {runs} runs.",
                          **self.counts())  # fmt: skip
        yield from self._broken_rules()
        yield from self._another_day()
        if runs == 1:
            yield gettext(
                "This is one run: how much chance moves the finish is not known before it is "
                "simulated many times."
            )
        if self._is_assumed:
            yield gettext(
                "How people answer is assumed, not measured: compare it with own calls before "
                "promising a day."
            )
        exhausted = float(self.values("people_exhausted").mean())
        if self.people and exhausted >= 0.25 * self.people:
            yield gettext(
                "{share} of the people do not answer in any of their attempts.",
                share=self.texts.share(exhausted / self.people),
            )
        held = Counter(run.scopes[0].held_back for run in self.runs).most_common(1)[0][0]
        yield held_back_text(self.texts, held)

    def _broken_rules(self) -> Iterator[str]:
        names = [name for name in self.runs[0].scopes[0].values if name.startswith(COMPLIANCE)]
        for name in names:
            rule, _, count = name.removeprefix(COMPLIANCE).rpartition("_")
            broken = round(float(self.values(name).mean()))
            if count in ("outside", "repeated") and broken:
                yield self.texts.ngettext(
                    "The rule “{rule}” is broken by {count} call.",
                    "The rule “{rule}” is broken by {count} calls.", broken, rule=_short(rule),
                )  # fmt: skip

    def _another_day(self) -> Iterator[str]:
        """Yield the risk that calling runs over into a later day than in half of the runs."""
        done = np.sort(self.finishes[np.isfinite(self.finishes)] - 1)
        days = [thai_date(round(at)) for at in done.tolist()]
        usual = days[(len(days) - 1) // 2] if days else None
        late = sum(usual is not None and day > usual for day in days)
        if usual is not None and late >= _LIKELY * len(self.runs):
            yield self.texts.gettext(
                "With a probability of {share} calling runs over from {day} into a later day.",
                share=self.texts.share(late / len(self.runs)), day=self.texts.day(usual),
            )  # fmt: skip

    @property
    def _is_assumed(self) -> bool:
        used = {agent.behaviour for owner in self.scenario.organizations for agent in owner.agents}
        return any(self.scenario.behaviours[name] == BUILT_IN for name in used)

    def assumptions(self) -> Iterator[str]:
        """Yield what the result rests on."""
        gettext, ngettext = self.texts.gettext, self.texts.ngettext
        blocks = [c for owner in self.scenario.organizations for c in owner.campaigns if c.schedule]
        attempts = sorted({c.schedule.max_attempts for c in blocks if c.schedule})
        if attempts:
            most = str(attempts[0]) if len(attempts) == 1 else f"{attempts[0]}–{attempts[-1]}"
            pause = min(c.schedule.retry_interval for c in blocks if c.schedule)
            yield ngettext(
                "{people} people in {count} campaign; attempts for each: {attempts}, at least "
                "{pause} apart.",
                "{people} people in {count} campaigns; attempts for each: {attempts}, at least "
                "{pause} apart.",
                len(blocks), people=f"{self.people:,}", attempts=most,
                pause=self.texts.duration(pause),
            )  # fmt: skip
        answer = float(self.values("reach_by_attempt_1").mean())
        if not isnan(answer):
            where = (
                gettext("{share} of the people answer their first call, by the built-in behaviour.",
                        share=self.texts.share(answer))
                if self._is_assumed
                else gettext("{share} of the people answer their first call, by the behaviour in "
                             "the scenario.", share=self.texts.share(answer))
            )  # fmt: skip
            yield where
        calendar = self.scenario.calendar
        if calendar is None or not calendar.names:
            yield gettext("No day counts as a holiday.")
        else:
            yield gettext("Holidays of the calendar are taken into account.")
        if (costs := self.scenario.costs) is not None:
            prices = (
                (costs.per_dial, gettext("{amount} a dial")),
                (costs.per_minute, gettext("{amount} a minute")),
                (costs.per_reached, gettext("{amount} for each person reached")),
                (costs.per_line_day, gettext("{amount} for each line and day")),
                (costs.fixed, gettext("{amount} fixed")),
            )
            listed = [text.format(amount=f"{price:,.10g}") for price, text in prices if price]
            said = self.texts.listed(listed)
            yield gettext("Prices in {currency}: {prices}.", currency=costs.currency, prices=said)
        if warnings := len(self.scenario.warnings):
            yield ngettext("{count} warning is in report.html.",
                           "{count} warnings are in report.html.", warnings)  # fmt: skip

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
    ) -> Sheet:
        """Fill the page; `rows` are the settings compared and their verdicts."""
        gettext, texts = self.texts.gettext, self.texts
        weeks, more_days = self.weeks()
        shown, more = _around(rows, chosen)
        risk = risk or next(filter(None, self.risks()), "")
        made = gettext(
            "Made by dialsim {version} from “{scenario}”, {runs} runs with different chance. All "
            "instants are Thai time. A simulation answers for its assumptions only.",
            version=__version__, scenario=_short(self.scenario.name), runs=f"{len(self.runs):,}",
        )  # fmt: skip
        monday = date(2026, 1, 5)
        return Sheet(
            texts=texts,
            title=_short(title or self.scenario.name),
            lead=_short(lead or self.scenario.description or "", 2 * _LONGEST),
            decision=decision,
            cards=[*self.cards()],
            cost_parts=[*self.cost_parts()],
            weekdays=[texts.weekday(monday + timedelta(days=k)) for k in range(7)],
            weeks=weeks,
            more_days=more_days,
            risk=risk or gettext("No risk stands out."),
            rows=[self._row(*row, chosen) for row in shown],
            more_rows=texts.ngettext("and {count} more in report.html",
                                     "and {count} more in report.html", more) if more else "",
            assumptions=[*assumptions, *self.assumptions()],
            made_from=made,
        )  # fmt: skip

    def _row(self, setting: SettingRuns, verdict: str, chosen: str) -> ComparedRow:
        values = _Setting(self.texts, self.scenario, setting.runs)
        half = float(np.sort(values.finishes)[(len(setting.runs) - 1) // 2])
        finish = "–" if isnan(half) else self.texts.gettext("never")
        if isfinite(half):
            finish = self.texts.short_when(half)
        cost = ""
        if self.scenario.costs is not None:
            cost = amount_text("cost", expected_mean(COST, setting.runs, setting.bounds))
        name = _short(setting.name, _LONGEST)
        reached = "–" if isnan(values.reached) else f"{values.reached:,.0f}"
        return ComparedRow(name, finish, reached, cost, verdict, setting.name == chosen)


def _short(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _hour(minute: int) -> str:
    """Format a minute of the day: `9` or `9:30`."""
    return f"{minute // 60}" + (f":{minute % 60:02}" if minute % 60 else "")


def _around(
    rows: Sequence[tuple[SettingRuns, str]], chosen: str
) -> tuple[list[tuple[SettingRuns, str]], int]:
    """Return the rows that are shown, in their order, and the number of the others.

    First come the chosen row and those with a verdict, then their neighbours.
    """
    at = next((k for k, (row, _) in enumerate(rows) if row.name == chosen), 0)
    order = sorted(range(len(rows)), key=lambda k: (k != at, not rows[k][1], abs(k - at), k))
    kept = sorted(order[:MOST_ROWS])
    return [rows[k] for k in kept], len(rows) - len(kept)


# -- results of each kind --------------------------------------------------------------------------


def _of_run(texts: Language, found: Result) -> Sheet:
    scenario = found.trace.world.scenario
    setting = _Setting(texts, scenario, [figures_of(found)], result=found)
    return setting.sheet(_as_planned(setting))


def _of_replications(texts: Language, found: Replications, beside: Sequence[SettingRuns]) -> Sheet:
    setting = _Setting(texts, found.scenario, found.figures)
    name = texts.gettext("this plan")
    rows = [(SettingRuns(name, found.figures, found.bounds), ""), *((row, "") for row in beside)]
    return setting.sheet(_as_planned(setting), rows=rows if beside else (), chosen=name)


def _as_planned(setting: _Setting) -> str:
    gettext, counts = setting.texts.gettext, setting.counts()
    if not setting.is_scheduled:
        return gettext("Nothing is scheduled.")
    if not isfinite(setting.finish):
        return gettext(
            "As planned, calling is not sure to finish; {reached} of {people} people ({share}) are "
            "reached.", **counts
        )  # fmt: skip
    if len(setting.runs) == 1:
        return gettext(
            "As planned, calling is done by {when}, with {reached} of {people} people ({share}) "
            "reached.", **counts
        )  # fmt: skip
    if setting.is_promised:
        return gettext(
            "As planned, calling is done by {when} with 95 % certainty, with about {reached} of "
            "{people} people ({share}) reached.", **counts
        )  # fmt: skip
    return gettext(
        "As planned, calling is done by {when} in {hits} of {runs} runs, with about {reached} of "
        "{people} people ({share}) reached.", **counts
    )  # fmt: skip


def _of_forecast(texts: Language, found: Forecast) -> Sheet:
    gettext = texts.gettext
    setting = _Setting(texts, found.runs.scenario, found.runs.figures, predicts=True)
    counts, assumptions = setting.counts(), []
    if found.figures is None:
        decision = gettext("Nothing is scheduled.")
    elif isfinite(setting.finish):
        decision = gettext(
            "From today on, calling is done by {when} in {hits} of {runs} runs, with about "
            "{reached} of {people} people ({share}) reached.", **counts
        )  # fmt: skip
    else:
        decision = gettext(
            "From today on, calling is not sure to finish: {never} of {runs} runs do not.", **counts
        )
    if found.figures is not None:
        start = texts.when(found.figures.at)
        assumptions.append(gettext(
            "The forecast begins on {when}, when {reached} people had been reached.",
            when=start, reached=f"{found.figures.reached:,}",
        ))  # fmt: skip
    if found.draws:
        assumptions.append(gettext(
            "The runs are shared out over {draws} behaviours that the log allows.",
            draws=f"{found.draws:,}",
        ))  # fmt: skip
    sheet = setting.sheet(decision, assumptions=assumptions)
    earlier = [
        ComparedRow(
            gettext("Forecast of {when}", when=texts.short_when(part.at)),
            texts.short_when(part.finish.half) if isfinite(part.finish.half) else gettext("never"),
            f"{part.reach.half:,.0f}", "", "", False,
        )
        for part in found.earlier[-MOST_ROWS:]
    ]  # fmt: skip
    return replace(sheet, rows=earlier)


def _of_sweep(texts: Language, found: Sweep, compared: pd.DataFrame, baseline: str) -> Sheet:
    gettext = texts.gettext
    choice = frontier(found, compared, baseline)
    chosen = choice.recommended if choice.aims else baseline
    at = [variant.name for variant in found.variants].index(chosen)
    short = short_names(change.path for variant in found.variants for change in variant.changes)
    names = {v.name: _variant_text(texts, v, short) for v in found.variants}
    setting = _Setting(texts, found.variants[at].of(found.scenario), found.figures[at])
    values = {**setting.counts(), "setting": _short(names[chosen])}
    if not setting.is_scheduled:
        decision = gettext("Nothing is scheduled.")
    elif not choice.aims and choice.breaches:
        decision = gettext(
            "Stay with “{setting}”: the other variants break rules more often.", **values
        )
    elif not choice.aims:
        decision = gettext("No variant makes a difference to the finish, to reach or to cost.")
    elif baseline in choice.alike:
        decision = gettext(
            "“{setting}” comes out best, but the runs do not tell it from “{baseline}”.",
            baseline=_short(names[baseline]), **values,
        )  # fmt: skip
    elif isfinite(setting.finish):
        decision = gettext(
            "Recommended is “{setting}”: calling is done by {when}, with about {reached} of "
            "{people} people ({share}) reached.", **values
        )  # fmt: skip
    else:
        decision = gettext(
            "Recommended is “{setting}”, although it is not sure to finish; about {reached} of "
            "{people} people ({share}) are reached.", **values
        )  # fmt: skip
    verdicts = {baseline: gettext("baseline"), chosen: gettext("recommended")}
    verdicts |= dict.fromkeys(choice.breaches, gettext("not allowed"))
    rows = [
        (SettingRuns(names[v.name], runs, bounds), verdicts.get(v.name, ""))
        for v, runs, bounds in zip(found.variants, found.figures, found.all_bounds, strict=True)
    ]
    title = ""
    if isinstance(found, Comparison):
        title = gettext("Comparison of {files}", files=texts.listed([*names.values()]))
    same = gettext("All variants meet the same chance, so they are compared run by run.")
    return setting.sheet(decision, title=title, rows=rows, chosen=names[chosen], assumptions=[same])


def _of_plan(texts: Language, found: Plan, scenario: Scenario, seed: int | None) -> Sheet:
    gettext, part = texts.gettext, found.estimate
    name = _setting_text(texts, found.path, part.value)
    varied = Variant("", (SettingChange(found.path, str(part.value)),)).of(scenario)
    setting = _Setting(texts, varied, _with_figures(part, varied, seed))
    values = {**setting.counts(), "setting": _short(name), "runs": f"{part.replications:,}"}
    deadline = _deadline(part)
    if not found.met:
        low, high = (_setting_text(texts, found.path, end) for end in found.between)
        decision = gettext(
            "Nothing from {low} to {high} meets the goal; {setting} comes closest.",
            low=low, high=high, **values,
        )  # fmt: skip
    elif not part.sure or found.stopped_after is not None:
        decision = gettext(
            "{setting} seems to meet the goal; {runs} runs are too few to be sure.", **values
        )
    elif deadline is not None:
        at, share = deadline
        decision = gettext(
            "Recommended is {setting}: calling is done by {deadline} with a certainty of {sure} or "
            "more, and about {reached} of {people} people ({share}) are reached.",
            deadline=texts.when(at), sure=texts.share(share), **values,
        )  # fmt: skip
    else:
        decision = gettext(
            "Recommended is {setting}, which surely meets the goal; about {reached} of {people} "
            "people ({share}) are reached.", **values
        )  # fmt: skip
    rows = [
        (SettingRuns(_setting_text(texts, found.path, each.value), each.runs, each.bounds),
         _verdict(texts, each))
        for each in found.tried
    ]  # fmt: skip
    lead, risk = gettext("Goal: {goal}", goal=found.goal), _goal_risk(texts, found.met, part)
    return setting.sheet(decision, lead=lead, risk=risk, rows=rows, chosen=name)


def _of_optimum(texts: Language, found: Optimum, scenario: Scenario, seed: int | None) -> Sheet:
    gettext, part, short = texts.gettext, found.best.estimate, short_names(found.paths)

    def name_of(values: Sequence[SettingValue]) -> str:
        pairs = zip(found.paths, values, strict=True)
        return _changes_text(texts, [SettingChange(p, str(v)) for p, v in pairs], short)

    name = name_of(found.best.values)
    pairs = zip(found.paths, found.best.values, strict=True)
    varied = Variant("", tuple(SettingChange(p, str(v)) for p, v in pairs)).of(scenario)
    setting = _Setting(texts, varied, _with_figures(part, varied, seed))
    values = {**setting.counts(), "setting": _short(name), "combinations": f"{found.count:,}"}
    if not found.met:
        decision = gettext(
            "None of {combinations} combinations meets the goal; {setting} comes closest.", **values
        )
    elif not found.sure:
        decision = gettext(
            "{setting} seems the best of {combinations} combinations, as far as the runs can tell; "
            "about {reached} of {people} people ({share}) are reached.", **values
        )  # fmt: skip
    else:
        decision = gettext(
            "Recommended is {setting}, the best of {combinations} combinations; about {reached} of "
            "{people} people ({share}) are reached.", **values
        )  # fmt: skip
    rows = [
        (SettingRuns(name_of(each.values), each.estimate.runs, each.estimate.bounds),
         _verdict(texts, each.estimate) if found.goal else "")
        for each in found.tried
    ]  # fmt: skip
    goals = [found.goal, found.objective]
    lead = gettext("Goal: {goal}", goal="; ".join(filter(None, goals)))
    risk = _goal_risk(texts, found.met, part)
    return setting.sheet(decision, lead=lead, risk=risk, rows=rows, chosen=name)


def _with_figures(part: GoalEstimate, scenario: Scenario, seed: int | None) -> Sequence[RunFigures]:
    """Return the runs of an estimate with all figures; without a store some are made again."""
    if all(run.asked is None for run in part.runs):
        return part.runs
    count = min(part.replications, _WITHOUT_FIGURES)
    return replicate(scenario, count, seed=seed, jobs=1, progress=False).figures


def _deadline(part: GoalEstimate) -> tuple[float, float] | None:
    """Return the instant (ms) by which a goal asks everything to be done, and in what share of the
    runs; None if it does not.
    """
    for finding in part.findings:
        clause = finding.clause
        whole = clause.figure.is_figure and clause.figure.place == (None, None)
        if (
            whole
            and clause.figure.name == "finish"
            and clause.smaller_is_better
            and clause.statistic is not Statistic.MEAN
            and not clause.bound.after_start
        ):
            return clause.bound.value, clause.least_share
    return None


def _goal_risk(texts: Language, met: bool, part: GoalEstimate) -> str:
    """Return the risk of missing the goal; empty if it is surely met."""
    if not met:
        return texts.gettext("The goal is missed: what comes closest does not meet it.")
    if not part.sure:
        return texts.gettext("Whether the goal is met is not sure: more runs would tell.")
    return ""


def _verdict(texts: Language, part: GoalEstimate) -> str:
    gettext = texts.gettext
    if part.breaches:
        return gettext("not allowed")
    if part.sure:
        return gettext("meets the goal") if part.met else gettext("misses the goal")
    return gettext("meets it, not sure") if part.met else gettext("misses it, not sure")


# -- settings in words -----------------------------------------------------------------------------


def _variant_text(texts: Language, variant: Variant, short: Mapping[str, str]) -> str:
    """Return the name of a variant; a name made of its changes in the words of the language."""
    if variant.changes and variant.name == label_of(variant.changes, short):
        return _changes_text(texts, variant.changes, short)
    is_plain = variant.name in ("as is", "as it is") and not variant.changes
    return texts.gettext("as it is") if is_plain else variant.name


def _changes_text(
    texts: Language, changes: Sequence[SettingChange], short: Mapping[str, str]
) -> str:
    said = []
    for change in changes:
        text, whose = _setting_text(texts, change.path, change.value), short[change.path]
        if whose:
            owner = whose.removeprefix(" of ")
            text = texts.gettext("{setting} of {owner}", setting=text, owner=owner)
        said.append(text)
    return ", ".join(said)


def _setting_text(texts: Language, path: str, value: SettingValue) -> str:
    """Return a setting in words: `30 lines`, `retries after 2 hr`."""
    gettext, ngettext, key = texts.gettext, texts.ngettext, setting_key(path)
    if is_next_day(value):
        return gettext("retries on the next calling day")
    try:
        amount = read_amount(str(value))
    except ExperimentError:
        return f"{key}={value}"
    number = float(amount.value)
    if amount.kind is AmountKind.INSTANT:
        when = texts.when(number)
        said = {
            "startDateTime": gettext("start at {when}", when=when),
            "endDateTime": gettext("end at {when}", when=when),
        }
    elif amount.kind is AmountKind.DURATION or key == "retryInterval":
        when = texts.duration(number)
        said = {
            "retryInterval": gettext("retries after {time}", time=when),
            "queueTimeout": gettext("a queue timeout of {time}", time=when),
        }
    else:
        when = str(value)
        people = ngettext("{count} person", "{count} people", number)
        said = {
            "maxConcurrentCalls": ngettext("{count} line", "{count} lines", number),
            "maxAttempts": ngettext("{count} attempt", "{count} attempts", number),
            "callerIds": ngettext("{count} caller ID", "{count} caller IDs", number),
            "callsPerSecond": ngettext("{count} dial a second", "{count} dials a second", number),
            "count": people,
            "first": people,
        }
    return said.get(key, f"{key}={when}")
