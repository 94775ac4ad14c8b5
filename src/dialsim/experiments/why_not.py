"""Explanation of a goal that no value of a setting meets, and the nearest settings that do.

The reason for a missed deadline is arithmetic on the calling windows: the earliest instants of the
attempts, and the days on which calls can be made before the deadline. Other goals are missed by
people who are not reached, or by the parts of the cost. Runs show whether more lines help, and
which settings meet the goal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, log10
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dialsim.experiments.experiment_text import amount_text
from dialsim.experiments.figure_names import FigureName
from dialsim.experiments.goal import Goal, Statistic
from dialsim.experiments.known_bounds import Calendar, known_bounds_of
from dialsim.experiments.plan_text import finding_text
from dialsim.experiments.search import Search, closest, smallest
from dialsim.experiments.variants import SettingChange, make_axis, setting_text
from dialsim.interface.instants import (
    DAY,
    THAI_OFFSET,
    duration_text,
    format_instant,
    short_text,
)
from dialsim.interface.phrases import counted
from dialsim.scenario.campaign import MOST_LINES

if TYPE_CHECKING:
    from dialsim.experiments.goal import ClauseFinding, GoalEstimate

Constraint = Literal["attempts", "windows", "pauses", "end", "lines", "people", "cost", "values"]
Reason = tuple[Constraint, str]

_MORE_LINES = 8  # factor of the most lines tried
_LATER = 60 * DAY  # time after the deadline in which a later one is sought
_LATER_TRIED = 3  # later calling days that are tried as a deadline
_MORE_ATTEMPTS = 10  # further attempts that are tried


@dataclass(frozen=True, slots=True)
class Nearest:
    """A setting near the closest one that meets the goal.

    `value` is the number of attempts or of lines, the later deadline or end, or the other bound.
    With `sure` the goal is certainly met. `is_own` marks a value of the setting that the plan
    varies.
    """

    kind: Literal["attempts", "lines", "deadline", "end", "goal"]
    value: int | float | str
    text: str
    sure: bool
    is_own: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return JSON values."""
        return {"kind": self.kind, "value": self.value, "text": self.text, "sure": self.sure}


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Binding constraint of a goal that no value meets, and the nearest settings that meet it."""

    constraint: Constraint
    reason: str
    setting: str
    nearest: tuple[Nearest, ...]

    @property
    def text(self) -> str:
        """Reason and nearest settings as sentences."""
        said = f"{self.reason}."
        for own, lead in ((True, ""), (False, f"With {self.setting}: ")):
            chosen = [each for each in self.nearest if each.is_own is own]
            if chosen:
                doubt = "" if all(each.sure for each in chosen) else ", as far as the runs can tell"
                options = ", or ".join(each.text for each in chosen)
                comma = "," if len(chosen) > 1 else ""
                said += f" {lead}{options}{comma} can{doubt}."
        return said

    def to_dict(self) -> dict[str, object]:
        """Return JSON values."""
        nearest = [each.to_dict() for each in self.nearest]
        return {"constraint": self.constraint, "text": self.text, "nearest": nearest}


def why_not(search: Search) -> WhyNot | None:
    """Explain why no value meets a goal.

    None if every value breaks a compliance rule, and without a campaign.
    """
    allowed = [index for index in search.indices if not search.at(index).breaches]
    if not allowed:
        return None
    index = closest(search)
    missed = [part for part in search.at(index).findings if not part.met]
    late = [
        part
        for part in missed
        if part.clause.figure.is_figure
        and part.clause.figure.name == "finish"
        and part.clause.bound.upper
        and part.clause.smaller_is_better
    ]
    if not late:
        worst = min(missed, key=lambda part: part.margin)
        return _MissedAmount(search, index, worst, len(missed) == 1).explained()
    if search.path.endswith(".maxConcurrentCalls"):
        index = allowed[-1]
        missed = [part for part in search.at(index).findings if not part.met]
    return _MissedDeadline(search, index, late[0], len(missed) == 1).explained()


class _Missed:
    """A clause that the value at an index of a search misses."""

    def __init__(self, search: Search, index: int, missed: ClauseFinding, is_only: bool) -> None:
        self._search, self._index, self._missed, self._is_only = search, index, missed, is_only
        self._change = SettingChange(search.path, search.axis[index].text)
        self._scenario = search.scenario.with_(f"{search.path}={self._change.text}")
        self._setting = setting_text(search.path, self._change.value)

    def _calendars(self) -> list[Calendar]:
        organization, campaign = self._missed.clause.figure.place
        return [
            each
            for each in known_bounds_of(self._scenario).calendars
            if organization in (None, each.organization) and campaign in (None, each.campaign)
        ]

    def _end_reason(self, calendar: Calendar, lines: str) -> Reason:
        lost = amount_text("people_lost", self._search.at(self._index).people_lost or 0)
        end = short_text(calendar.request.end_date_time or 0)
        text = f"The campaign ends {end}, and {lost} people are lost with {self._setting}{lines}"
        return "end", text

    # -- Nearest settings, found by runs -------------------------------------------------------

    def _path(self, calendar: Calendar) -> tuple[str, str | None]:
        """Return the path of the organization, and of the campaign's own schedule request."""
        for number, owner in enumerate(self._scenario.organizations):
            for place, campaign in enumerate(owner.campaigns):
                if (owner.name, campaign.name) == (calendar.organization, calendar.campaign):
                    path = f"organizations.{number}"
                    own = campaign.schedule is not None
                    return path, f"{path}.campaigns.{place}.schedule" if own else None
        raise AssertionError("the calendar is of a campaign of the scenario")

    def _lines_now(self, calendar: Calendar) -> int:
        owners = self._scenario.organizations
        return next(
            owner.max_concurrent_calls for owner in owners if owner.name == calendar.organization
        )

    def _more_lines(self, calendar: Calendar) -> tuple[str, list[Nearest]]:
        """Return the fewest lines that meet the goal, or a text on the most lines tried."""
        path = f"{self._path(calendar)[0]}.maxConcurrentCalls"
        now = self._lines_now(calendar)
        if self._is_own(path):
            now = int(self._search.axis[len(self._search.axis) - 1].value)
        most = min(max(_MORE_LINES * now, now + 1), MOST_LINES)
        axis = make_axis(str(min(now + 1, most)), str(most))
        search = self._search.along(self._scenario, path, axis)
        last = len(axis) - 1
        search.settle([last])
        # If the most lines miss the goal, fewer lines are not tried.
        found = smallest(search, range(last + 1)) if search.met(last) else None
        lines = [] if found is None else [self._nearest("lines", path, search, found)]
        verb = "miss" if search.at(last).sure else "seem to miss"
        return "" if lines else f"; {most:,} lines {verb} the goal, too", lines

    def _fewer_attempts(self, calendar: Calendar, most: int) -> Iterator[Nearest]:
        """Yield the most attempts, up to `most` and fewer than now, that meet the goal."""
        schedule = self._path(calendar)[1]
        most = min(calendar.request.max_attempts - 1, most)
        # A strict service refuses a single attempt that has a retry interval.
        least = 2 if self._scenario.service.strict else 1
        if schedule is None or most < least:
            return
        path, axis = f"{schedule}.maxAttempts", make_axis(str(least), str(most))
        search = self._search.along(self._scenario, path, axis)
        found = smallest(search, range(len(axis) - 1, -1, -1))
        if found is not None:
            yield self._nearest("attempts", path, search, found)

    def _nearest(
        self, kind: Literal["attempts", "lines"], path: str, search: Search, index: int
    ) -> Nearest:
        part = search.at(index)
        text = setting_text(path, part.value)
        return Nearest(kind, part.value, text, part.sure, self._is_own(path))

    def _is_own(self, path: str) -> bool:
        """Return True if the plan itself varies a setting."""
        # Paths name campaigns by number or by name.
        return self._search.path.rpartition(".")[2] == path.rpartition(".")[2]


class _MissedDeadline(_Missed):
    """A deadline that a value misses."""

    def __init__(self, search: Search, index: int, missed: ClauseFinding, is_only: bool) -> None:
        super().__init__(search, index, missed, is_only)
        bound = missed.clause.bound
        self._origin = self._scenario.calling_begins if bound.after_start else 0
        self._deadline = round(bound.value) + self._origin

    def explained(self) -> WhyNot | None:
        """Return the binding constraint and the nearest settings; None without a campaign."""
        calendars = self._calendars()
        if not calendars:
            return None
        # The campaign whose last attempt is possible latest holds back the others.
        calendar = max(calendars, key=self._last_attempt)
        most_lines, lines = self._more_lines(calendar)
        attempts = [*self._fewer_attempts(calendar, self._in_time(calendar))]
        nearest = (*lines, *attempts, *self._later(calendar))
        if not self._calling_days(calendar, self._limit(calendar)):
            reason: Reason = "windows", f"No calling window opens {self._until(calendar)}"
        elif lines:
            now = setting_text("maxConcurrentCalls", self._lines_now(calendar))
            reason = "lines", f"{now} can't make all calls {self._until(calendar)}"
        elif self._in_time(calendar) < calendar.request.max_attempts and (
            attempts or self._is_exhausting(calendar)
        ):
            reason = self._too_many_attempts(calendar)
        else:
            reason = self._too_little_time(calendar, most_lines)
        return WhyNot(*reason, self._setting, nearest)

    def _is_exhausting(self, calendar: Calendar) -> bool:
        """Return True if in every run some recipients need all their attempts."""
        if self._scenario.clock.end is not None:
            return False  # recipients that are not reached may still wait for calls
        place, runs = (calendar.organization, calendar.campaign), self._search.at(self._index).runs
        reached, lost = (
            FigureName(each, *place).of(runs) for each in ("reach_share", "people_lost")
        )
        return bool((reached < 1).all() and not lost.any())

    # -- Arithmetic on the calling windows ----------------------------------------------------

    def _spans(self, calendar: Calendar) -> NDArray[np.int64]:
        """Return the open spans of a campaign from its start on."""
        spans = calendar.open_spans(self._deadline + _LATER).copy()
        start = calendar.request.start_date_time
        spans[:, 0] = np.maximum(spans[:, 0], start or 0)
        return spans[spans[:, 0] < spans[:, 1]]

    def _attempts(self, calendar: Calendar) -> list[int]:
        """Return the earliest instants of the attempts of a recipient who never answers."""
        request, instants = calendar.request, list[int]()
        due = 0
        for begin, end in self._spans(calendar).tolist():
            due = max(due, begin)
            while due < end and len(instants) < request.max_attempts:
                instants.append(due)
                due += max(request.retry_interval, 1)
        return instants

    def _last_attempt(self, calendar: Calendar) -> float:
        instants = self._attempts(calendar)
        return instants[-1] if len(instants) == calendar.request.max_attempts else np.inf

    def _limit(self, calendar: Calendar) -> int:
        """Return the deadline, or the end of the campaign before it."""
        end = calendar.request.end_date_time
        return self._deadline if end is None else min(end, self._deadline)

    def _in_time(self, calendar: Calendar) -> int:
        """Return the number of attempts that are possible before the deadline."""
        return sum(instant < self._limit(calendar) for instant in self._attempts(calendar))

    def _calling_days(self, calendar: Calendar, until: float) -> int:
        starts = self._spans(calendar)[:, 0]
        return len(np.unique((starts[starts < until] + THAI_OFFSET) // DAY))

    def _until(self, calendar: Calendar) -> str:
        limit = self._limit(calendar)
        ends = ", when the campaign ends" if limit < self._deadline else ""
        return f"until {short_text(limit)}{ends}"

    def _days_text(self, calendar: Calendar) -> str:
        return counted(self._calling_days(calendar, self._limit(calendar)), "calling day")

    def _too_many_attempts(self, calendar: Calendar) -> Reason:
        """Return the reason if the last attempt is possible only after the deadline."""
        request, until = calendar.request, self._until(calendar)
        attempts = setting_text("maxAttempts", request.max_attempts)
        unpaused = replace(calendar, pauses=())
        if self._in_time(unpaused) == request.max_attempts:
            return "pauses", (
                f"{attempts} do not fit {until}: pauses and closed days leave "
                f"{self._days_text(calendar)}, without them {attempts} would fit: lines cannot help"
            )
        last = self._last_attempt(calendar)
        have = self._calling_days(calendar, self._limit(calendar))
        need = self._calling_days(calendar, last + 1)
        if isfinite(last) and need > have:
            return "attempts", (
                f"{attempts} need {need} calling days; there {'is' if have == 1 else 'are'} {have} "
                f"{until}: lines cannot help"
            )
        interval = duration_text(request.retry_interval)
        first = (
            f": the last is possible from {short_text(round(last))} on" if isfinite(last) else ""
        )
        return "attempts", (
            f"{attempts} with a retry interval of {interval} do not fit {until}{first}; lines "
            "cannot help"
        )

    def _too_little_time(self, calendar: Calendar, lines: str) -> Reason:
        """Return the reason if all attempts are possible before the deadline."""
        limit, lost = self._limit(calendar), self._search.at(self._index).people_lost
        if lost and calendar.request.end_date_time == limit:
            return self._end_reason(calendar, lines)
        spans = np.minimum(self._spans(calendar), limit)
        hours = duration_text(int((spans[:, 1] - spans[:, 0]).sum()))
        return "windows", (
            f"The calling windows leave {hours} on {self._days_text(calendar)} "
            f"{self._until(calendar)}{lines}"
        )

    def _later(self, calendar: Calendar) -> Iterator[Nearest]:
        """Yield the end of the first calling day that, as a deadline, meets the goal."""
        closes = self._closes(calendar)
        if not self._is_only or not closes:
            return
        end, schedule = calendar.request.end_date_time, self._path(calendar)[1]
        moved = end is not None and end <= closes[-1]
        if moved and schedule is None:
            return

        def judged(close: int, last: int) -> Search:
            scenario = self._search.scenario
            if moved:
                scenario = scenario.with_(f"{schedule}.endDateTime={format_instant(last)}")
            search = self._search.along(
                scenario, self._search.path, self._search.axis, self._goal_until(close)
            )
            search.settle([self._index])
            return search

        clause = self._missed.clause
        runs = judged(closes[-1], closes[-1]) if moved else self._search
        values = np.sort(clause.values(runs.at(self._index).runs)) + self._origin
        if clause.statistic is Statistic.MEAN:
            finish = float(values.mean())
        else:
            finish = float(np.quantile(values, clause.least_share, method="higher"))
        for close in [close for close in closes if close >= finish][:_LATER_TRIED]:
            part = judged(close, close).at(self._index)
            if part.met and part.sure:
                what = "an end and a deadline" if moved else "a deadline"
                text = f"{what} of {short_text(close)}"
                yield Nearest("deadline", format_instant(close), text, sure=True)
                return

    def _closes(self, calendar: Calendar) -> list[int]:
        """Return the ends of the calling days after the deadline."""
        ends = self._spans(calendar)[:, 1]
        days = {(end - 1 + THAI_OFFSET) // DAY: end for end in ends.tolist()}
        return [end for end in days.values() if end > self._deadline]

    def _goal_until(self, close: int) -> Goal:
        """Return the goal with another deadline."""
        goal, late = self._search.goal, self._missed.clause
        bound = replace(late.bound, value=float(close - self._origin))
        clauses = [replace(late, bound=bound) if each == late else each for each in goal.clauses]
        return Goal(goal.text, tuple(clauses))


class _MissedAmount(_Missed):
    """A bound on people, cost or another amount that a value misses."""

    def explained(self) -> WhyNot | None:
        """Return the binding constraint and the nearest settings; None without a campaign."""
        calendar = next(iter(self._calendars()), None)
        if calendar is None:
            return None
        clause = self._missed.clause
        if not clause.smaller_is_better or clause.figure.name == "people_lost":
            most_lines, lines = self._more_lines(calendar)
            nearest = [*lines, *self._more_attempts(calendar), *self._later_end(calendar)]
        else:
            most_lines, lines = "", [*self._fewer_lines(calendar)]
            attempts = self._fewer_attempts(calendar, calendar.request.max_attempts)
            nearest = [*lines, *attempts]
        reason = self._reason(calendar, bool(lines), most_lines)
        return WhyNot(*reason, self._setting, (*nearest, *self._other_bound()))

    def _reason(self, calendar: Calendar, is_lines: bool, most_lines: str) -> Reason:
        clause, runs = self._missed.clause, self._search.at(self._index).runs
        figure = clause.figure

        def mean(name: str) -> float:
            return float(FigureName(name, *figure.place).of(runs).mean())

        if figure.name in ("people_reached", "reach_share", "people_lost"):
            people, lost = mean("people"), mean("people_lost")
            reached = mean("reach_share") * people
            if figure.name == "people_reached" and clause.bound.value > people:
                return "people", f"There are only {people:,.0f} people"
            if lost > people - reached - lost and calendar.request.end_date_time is not None:
                return self._end_reason(calendar, most_lines)
            if is_lines:
                return "lines", f"{self._setting} can't make all calls"
            digits = 1 if people < 100 else 0
            counts = (
                f"{count:,.{digits}f}".removesuffix(".0")
                for count in (reached, people, people - reached)
            )
            attempts = setting_text("maxAttempts", calendar.request.max_attempts)
            verb = "reach" if calendar.request.max_attempts > 1 else "reaches"
            return "attempts", "{} {} {} of {} people on average, and {} are not reached{}".format(
                attempts, verb, *counts, most_lines
            )
        costs = self._scenario.costs
        if clause.smaller_is_better and costs is not None and "cost" in clause.figure.text:
            parts = self._search.at(self._index).cost_parts(figure.place)
            most = max(parts, key=lambda part: parts[part])
            total, share = (amount_text("cost", x) for x in (sum(parts.values()), parts[most]))
            return "cost", (
                f"With {self._setting} the cost is {total} {costs.currency} on average, "
                f"{share} of it for {most}"
            )
        value = finding_text(self._missed, self._missed.estimate)
        tried = len(self._search.indices)
        which = f", the closest of {counted(tried, 'value')} tried" if tried > 1 else ""
        return "values", f"{clause.asked} is {value} with {self._setting}{which}"

    def _more_attempts(self, calendar: Calendar) -> Iterator[Nearest]:
        """Yield the fewest further attempts that meet the goal; 1 attempt has no retry interval."""
        schedule, now = self._path(calendar)[1], calendar.request.max_attempts
        if schedule is None or self._missed.clause.figure.name == "people_lost" or now == 1:
            return
        path = f"{schedule}.maxAttempts"
        if self._is_own(path):
            now = int(self._search.axis[len(self._search.axis) - 1].value)
        search = self._search.along(
            self._scenario, path, make_axis(str(now + 1), str(now + _MORE_ATTEMPTS))
        )
        if search.met(_MORE_ATTEMPTS - 1):
            found = smallest(search, range(_MORE_ATTEMPTS))
            if found is not None:
                yield self._nearest("attempts", path, search, found)

    def _fewer_lines(self, calendar: Calendar) -> Iterator[Nearest]:
        """Yield the most lines that meet the goal, if lines have a price."""
        now, path = self._lines_now(calendar), f"{self._path(calendar)[0]}.maxConcurrentCalls"
        if self._is_own(path):
            now = int(self._search.axis[0].value)
        if now == 1 or self._scenario.costs is None or not self._scenario.costs.per_line_day:
            return
        search = self._search.along(self._scenario, path, make_axis("1", str(now - 1)))
        found = smallest(search, range(now - 2, -1, -1))
        if found is not None:
            yield self._nearest("lines", path, search, found)

    def _later_end(self, calendar: Calendar) -> Iterator[Nearest]:
        """Yield the earliest end of a calling day that, as the end of the campaign, will do."""
        end, schedule = calendar.request.end_date_time, self._path(calendar)[1]
        if end is None or schedule is None or not self._search.at(self._index).people_lost:
            return
        spans = calendar.open_spans(end + _LATER)
        days = {(close - 1 + THAI_OFFSET) // DAY: close for close in spans[:, 1].tolist()}
        closes = [close for close in days.values() if close > end]

        def with_end(at: int) -> GoalEstimate:
            instant = format_instant(closes[at])
            scenario = self._search.scenario.with_(f"{schedule}.endDateTime={instant}")
            search = self._search.along(scenario, self._search.path, self._search.axis)
            search.settle([self._index])
            return search.at(self._index)

        low, high = 0, len(closes) - 1
        if high < 0 or not with_end(high).met:
            return
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if with_end(middle).met else (middle + 1, high)
        instant, sure = format_instant(closes[high]), with_end(high).sure
        yield Nearest("end", instant, f"an end at {short_text(closes[high])}", sure)

    def _other_bound(self) -> Iterator[Nearest]:
        """Yield the bound, rounded to three digits, that the value certainly meets."""
        missed, clause = self._missed, self._missed.clause
        upper = clause.sign.startswith("<")
        limit = missed.high if upper else missed.low
        if not self._is_only or clause.figure.is_instant or not isfinite(limit) or limit <= 0:
            return
        unit = 10.0 ** (floor(log10(limit)) - 2)
        steps = ceil(limit / unit) if upper else floor(limit / unit)
        value = round(steps * unit, 6)
        text = f"a goal of {clause.asked} {clause.sign} {value:,.6g}"
        yield Nearest("goal", value, text, sure=True)
