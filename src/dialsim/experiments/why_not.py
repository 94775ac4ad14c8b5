"""Explanation of a goal that no value of a setting meets, and the nearest settings that do.

The reason for a missed deadline is arithmetic on the calling windows: the earliest instants of the
attempts, and the days on which calls can be made before the deadline. Other goals are missed by
people who are not reached, or by the parts of the cost. Runs show whether more lines help, and
which settings meet the goal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import inf, isfinite
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dialsim.experiments.estimates import to_json
from dialsim.experiments.experiment_text import amount_text
from dialsim.experiments.goal import Goal
from dialsim.experiments.known_bounds import CampaignCalendar, known_bounds_of
from dialsim.experiments.named_figures import FigureName
from dialsim.experiments.plan_text import finding_text
from dialsim.experiments.search import Search, closest, preferred
from dialsim.experiments.variants import Amount, AmountKind, SettingChange, setting_text
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
    from dialsim.experiments.goal import Clause, ClauseFinding

Constraint = Literal["attempts", "windows", "pauses", "end", "lines", "people", "cost", "values"]
Reason = tuple[Constraint, str]
Kind = Literal["attempts", "lines", "deadline", "end"]

_MORE_LINES = 8  # largest multiple of the present lines that is tried
_LATER = 60 * DAY  # time in which a later deadline or end is sought
_MORE_ATTEMPTS = 10  # further attempts that are tried


@dataclass(frozen=True, slots=True)
class Nearest:
    """Setting that meets the goal and is nearest to the closest value tried.

    `value` is the number of attempts or of lines, or the later deadline or end. With `sure` the
    goal is certainly met. `is_own` marks a value of the setting that the plan varies.
    """

    kind: Kind
    value: int | float | str
    text: str
    sure: bool
    is_own: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return JSON values."""
        return to_json(self, ("kind", "value", "text", "sure"))


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
        found = f"{self.reason}."
        for own, lead in ((True, ""), (False, f"With {self.setting}: ")):
            chosen = [each for each in self.nearest if each.is_own is own]
            if chosen:
                doubt = "" if all(each.sure for each in chosen) else ", as far as the runs can tell"
                options = ", or ".join(each.text for each in chosen)
                comma = "," if len(chosen) > 1 else ""
                found += f" {lead}{options}{comma} can{doubt}."
        return found

    def to_dict(self) -> dict[str, object]:
        """Return JSON values."""
        return to_json(self, ("constraint", "text", "nearest"))


def why_not(search: Search) -> WhyNot | None:
    """Explain why no value meets a goal.

    None if every value breaks a compliance rule, and without a campaign.
    """
    allowed = [index for index in search.indices if not search.at(index).breaches]
    if not allowed:
        return None
    index = closest(search)
    missed = [part for part in search.at(index).findings if not part.met]
    late = [part for part in missed if _is_deadline(part.clause)]
    if late and search.path.endswith(".maxConcurrentCalls"):
        # More lines never delay a finish, so the reason is what the value with most lines still
        # misses.
        index = max(allowed, key=lambda index: search.axis[index].value)
        missed = [part for part in search.at(index).findings if not part.met]
    worst = late[0] if late else min(missed, key=lambda part: part.margin)
    kind = _MissedDeadline if late else _MissedAmount
    explanation = kind(search, index, worst, len(missed) == 1)
    return explanation.found() if explanation.calendars else None


def _is_deadline(clause: Clause) -> bool:
    figure = clause.figure
    is_finish = figure.is_figure and figure.name == "finish"
    return is_finish and clause.bound.upper and clause.smaller_is_better


class _Missed:
    """Clause missed by the value at an index of a search; subclasses explain why."""

    def __init__(self, search: Search, index: int, missed: ClauseFinding, is_only: bool) -> None:
        self.search, self.index, self.is_only = search, index, is_only
        self.missed, self.clause = missed, missed.clause
        self.estimate = search.at(index)
        change = SettingChange(search.path, search.axis[index].text)
        self.scenario = search.scenario.with_(f"{search.path}={change.text}")
        self.setting = setting_text(search.path, change.value)
        self.calendars = known_bounds_of(self.scenario).calendars_of(self.clause.figure.place)

    def found(self) -> WhyNot:
        """Return the binding constraint and the nearest settings."""
        raise NotImplementedError

    @property
    def calendar(self) -> CampaignCalendar:
        """CampaignCalendar of the campaign that is held responsible."""
        return self.calendars[0]

    def end_reason(self, lines: str) -> Reason:
        """Return the reason for people lost at the end of the campaign."""
        lost = amount_text("people_lost", self.estimate.people_lost or 0)
        end = short_text(self.calendar.request.end_date_time or 0)
        return (
            "end",
            f"The campaign ends {end}, and {lost} people are lost with {self.setting}{lines}",
        )

    # -- nearest settings, found by runs ----------------------------------------------------------

    @property
    def _paths(self) -> tuple[str, str | None]:
        """Path of the organization, and of the campaign's own schedule request, if it has one."""
        for number, owner in enumerate(self.scenario.organizations):
            for position, campaign in enumerate(owner.campaigns):
                if (owner.name, campaign.name) == (
                    self.calendar.organization,
                    self.calendar.campaign,
                ):
                    path = f"organizations.{number}"
                    own = f"{path}.campaigns.{position}.schedule"
                    return path, None if campaign.schedule is None else own
        raise AssertionError("the calendar is of a campaign of the scenario")

    @property
    def lines_now(self) -> int:
        """Number of lines of the campaign's organization."""
        owners = self.scenario.organizations
        name = self.calendar.organization
        return next(owner.max_concurrent_calls for owner in owners if owner.name == name)

    def _limits(self, path: str, now: int) -> tuple[int, int]:
        """Return the least and the greatest value that the plan tried of a setting."""
        if not self._is_own(path):
            return now, now
        values = [int(self.search.axis[end].value) for end in (0, -1)]
        return min(values), max(values)

    def _is_own(self, path: str) -> bool:
        """Return True if the plan itself varies a setting."""
        # Only last parts are compared, since paths name campaigns by number or by name.
        return self.search.path.rpartition(".")[2] == path.rpartition(".")[2]

    def _tried(
        self, kind: Kind, path: str, values: Sequence[int]
    ) -> tuple[list[Nearest], Search | None]:
        """Return the first of some values that meets the goal, if any, and the search for it.

        If the last one misses the goal, no other is tried.
        """
        if not values:
            return [], None
        axis = [Amount(AmountKind.WHOLE, Decimal(value)) for value in values]
        search = self.search.along(self.scenario, path, axis)
        last = len(axis) - 1
        search.settle([last])
        index = preferred(search) if search.met(last) else None
        if index is None:
            return [], search
        part = search.at(index)
        text = setting_text(path, part.value)
        return [Nearest(kind, part.value, text, part.sure, self._is_own(path))], search

    def more_lines(self) -> tuple[str, list[Nearest]]:
        """Return the fewest lines that meet the goal, or a text on the most lines tried."""
        path = f"{self._paths[0]}.maxConcurrentCalls"
        _, now = self._limits(path, self.lines_now)
        most = min(max(_MORE_LINES * now, now + 1), MOST_LINES)
        lines, search = self._tried("lines", path, range(min(now + 1, most), most + 1))
        if lines or search is None:
            return "", lines
        verb = "miss" if search.at(len(search.axis) - 1).sure else "seem to miss"
        return f"; {most:,} lines {verb} the goal, too", []

    def fewer_lines(self) -> list[Nearest]:
        """Return the most lines that meet the goal, if lines have a price."""
        costs, path = self.scenario.costs, f"{self._paths[0]}.maxConcurrentCalls"
        now, _ = self._limits(path, self.lines_now)
        if costs is None or not costs.per_line_day:
            return []
        return self._tried("lines", path, range(now - 1, 0, -1))[0]

    def attempts(self, values: Sequence[int]) -> list[Nearest]:
        """Return the first of some numbers of attempts that meets the goal."""
        schedule = self._paths[1]
        return (
            []
            if schedule is None
            else self._tried("attempts", f"{schedule}.maxAttempts", values)[0]
        )

    def fewer_attempts(self, most: int) -> list[Nearest]:
        """Return the most attempts, up to `most` and fewer than now, that meet the goal."""
        # A strict service refuses a single attempt that has a retry interval.
        least = 2 if self.scenario.service.strict else 1
        return self.attempts(
            range(min(self.calendar.request.max_attempts - 1, most), least - 1, -1)
        )

    def more_attempts(self) -> list[Nearest]:
        """Return the fewest further attempts that meet the goal."""
        now = self.calendar.request.max_attempts
        # A request for one attempt has no retry interval, which more attempts would need.
        if now == 1:
            return []
        _, now = self._limits(".maxAttempts", now)
        return self.attempts(range(now + 1, now + _MORE_ATTEMPTS + 1))

    def closes(self, after: int) -> list[int]:
        """Return the ends of the calling days after an instant."""
        ends = self.calendar.open_spans(after + _LATER)[:, 1]
        days = {(end - 1 + THAI_OFFSET) // DAY: end for end in ends.tolist()}
        return [end for end in days.values() if end > after]

    def later(
        self, kind: Kind, closes: Sequence[int], goal_until: Callable[[int], Goal]
    ) -> Iterator[Nearest]:
        """Yield the first end of a calling day that, as deadline or end, certainly meets the goal.

        A campaign that would end before is extended; `goal_until` returns the goal for a deadline.
        """
        end, schedule = self.calendar.request.end_date_time, self._paths[1]

        def meets(close: int) -> bool:
            scenario = self.search.scenario
            if end is not None and end <= close:
                scenario = scenario.with_(f"{schedule}.endDateTime={format_instant(close)}")
            axis = [self.search.axis[self.index]]
            search = self.search.along(scenario, self.search.path, axis, goal_until(close))
            search.settle([0])
            return search.at(0).met and search.at(0).sure

        if not closes or (end is not None and schedule is None) or not meets(closes[-1]):
            return
        low, high = 0, len(closes) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if meets(closes[middle]) else (middle + 1, high)
        close = closes[high]
        text = "an end at" if kind == "end" else "a deadline of"
        if kind == "deadline" and end is not None and end <= close:
            text = f"an end and {text}"
        yield Nearest(kind, format_instant(close), f"{text} {short_text(close)}", sure=True)


class _MissedDeadline(_Missed):
    """A deadline that a value misses."""

    def __init__(self, search: Search, index: int, missed: ClauseFinding, is_only: bool) -> None:
        super().__init__(search, index, missed, is_only)
        bound = missed.clause.bound
        self._origin = self.scenario.calling_begins if bound.after_start else 0
        self._deadline = round(bound.value) + self._origin
        # The campaign whose last attempt is possible latest holds back the others.
        self.calendars.sort(key=self._last_attempt, reverse=True)

    def found(self) -> WhyNot:
        most_lines, lines = self.more_lines()
        attempts = self.fewer_attempts(self._in_time(self.calendar))
        nearest = (*lines, *attempts, *self._later_deadline())
        return WhyNot(*self._reason(most_lines, bool(lines), bool(attempts)), self.setting, nearest)

    def _reason(self, most_lines: str, more_lines_help: bool, fewer_attempts_help: bool) -> Reason:
        request, until = self.calendar.request, self._until
        if not self._days_before(self._limit):
            return "windows", f"No calling window opens {until}"
        if more_lines_help:
            now = setting_text("maxConcurrentCalls", self.lines_now)
            return "lines", f"{now} can't make all calls {until}"
        if self._in_time(self.calendar) < request.max_attempts and (
            fewer_attempts_help or self._is_exhausting
        ):
            return self._too_many_attempts()
        if self.estimate.people_lost and request.end_date_time == self._limit:
            return self.end_reason(most_lines)
        spans = np.minimum(self._spans(self.calendar), self._limit)
        hours = duration_text(int((spans[:, 1] - spans[:, 0]).sum()))
        return "windows", f"The calling windows leave {hours} on {self._days} {until}{most_lines}"

    @property
    def _is_exhausting(self) -> bool:
        """True if in every run some recipients need all their attempts."""
        if self.scenario.clock.end is not None:
            return False  # recipients that are not reached may still wait for calls
        place = self.calendar.organization, self.calendar.campaign
        reached, lost = (
            FigureName(each, *place).of(self.estimate.runs)
            for each in ("reach_share", "people_lost")
        )
        return bool((reached < 1).all() and not lost.any())

    # -- arithmetic on the calling windows --------------------------------------------------------

    def _spans(self, calendar: CampaignCalendar) -> NDArray[np.int64]:
        """Return the open spans of a campaign from its start on."""
        spans = calendar.open_spans(self._deadline + _LATER).copy()
        spans[:, 0] = np.maximum(spans[:, 0], calendar.request.start_date_time or 0)
        return spans[spans[:, 0] < spans[:, 1]]

    def _attempts(self, calendar: CampaignCalendar) -> list[int]:
        """Return the earliest instants of the attempts of a recipient who never answers."""
        request, instants, due = calendar.request, list[int](), 0
        for begin, end in self._spans(calendar).tolist():
            due = max(due, begin)
            while due < end and len(instants) < request.max_attempts:
                instants.append(due)
                due += max(request.retry_interval, 1)
        return instants

    def _last_attempt(self, calendar: CampaignCalendar) -> float:
        instants = self._attempts(calendar)
        return instants[-1] if len(instants) == calendar.request.max_attempts else inf

    def _in_time(self, calendar: CampaignCalendar) -> int:
        """Return the number of attempts that are possible before the deadline."""
        return sum(instant < self._limit for instant in self._attempts(calendar))

    @property
    def _limit(self) -> int:
        """Deadline, or the end of the campaign if it is earlier."""
        return min(self.calendar.request.end_date_time or self._deadline, self._deadline)

    def _days_before(self, until: float) -> int:
        starts = self._spans(self.calendar)[:, 0]
        return len(np.unique((starts[starts < until] + THAI_OFFSET) // DAY))

    @property
    def _days(self) -> str:
        return counted(self._days_before(self._limit), "calling day")

    @property
    def _until(self) -> str:
        ends = ", when the campaign ends" if self._limit < self._deadline else ""
        return f"until {short_text(self._limit)}{ends}"

    def _too_many_attempts(self) -> Reason:
        """Return the reason if the last attempt is possible only after the deadline."""
        request, until = self.calendar.request, self._until
        attempts = setting_text("maxAttempts", request.max_attempts)
        if self._in_time(replace(self.calendar, pauses=())) == request.max_attempts:
            return "pauses", (
                f"{attempts} do not fit {until}: pauses and closed days leave {self._days}, "
                f"without them {attempts} would fit: lines cannot help"
            )
        last = self._last_attempt(self.calendar)
        have, need = self._days_before(self._limit), self._days_before(last + 1)
        if isfinite(last) and need > have:
            return "attempts", (
                f"{attempts} need {need} calling days; there {'is' if have == 1 else 'are'} {have} "
                f"{until}: lines cannot help"
            )
        interval = duration_text(request.retry_interval)
        return "attempts", (
            f"{attempts} with a retry interval of {interval} do not fit {until}: lines cannot help"
        )

    def _later_deadline(self) -> Iterator[Nearest]:
        """Yield the end of the first calling day that, as a deadline, meets the goal."""
        closes = self.closes(self._deadline) if self.is_only else ()
        return self.later("deadline", closes, self._goal_until)

    def _goal_until(self, close: int) -> Goal:
        """Return the goal with another deadline."""
        goal, late = self.search.goal, self.clause
        bound = replace(late.bound, value=float(close - self._origin))
        clauses = [replace(late, bound=bound) if each == late else each for each in goal.clauses]
        return Goal(goal.text, tuple(clauses))


class _MissedAmount(_Missed):
    """A bound on people, cost or another amount that a value misses."""

    def found(self) -> WhyNot:
        is_lost = self.clause.figure.name == "people_lost"
        if self.clause.smaller_is_better and not is_lost:
            most_lines, lines = "", self.fewer_lines()
            nearest = [*lines, *self.fewer_attempts(self.calendar.request.max_attempts)]
        else:
            most_lines, lines = self.more_lines()
            nearest = [*lines, *([] if is_lost else self.more_attempts()), *self._later_end()]
        return WhyNot(*self._reason(most_lines, bool(lines)), self.setting, tuple(nearest))

    def _later_end(self) -> Iterator[Nearest]:
        """Yield the earliest end of a calling day that meets the goal as the campaign's end."""
        end = self.calendar.request.end_date_time
        closes = self.closes(end) if end is not None and self.estimate.people_lost else ()
        return self.later("end", closes, lambda _: self.search.goal)

    def _mean(self, name: str) -> float:
        return float(FigureName(name, *self.clause.figure.place).of(self.estimate.runs).mean())

    def _reason(self, most_lines: str, lines_help: bool) -> Reason:
        clause, costs = self.clause, self.scenario.costs
        if clause.figure.name in ("people_reached", "reach_share", "people_lost"):
            return self._people_reason(most_lines, lines_help)
        if clause.smaller_is_better and costs is not None and "cost" in clause.figure.text:
            parts = self.estimate.cost_parts(clause.figure.place)
            most = max(parts, key=lambda part: parts[part])
            total, share = (amount_text("cost", x) for x in (sum(parts.values()), parts[most]))
            return "cost", (
                f"With {self.setting} the cost is {total} {costs.currency} on average, "
                f"{share} of it for {most}"
            )
        value = finding_text(self.missed, self.missed.estimate)
        tried = len(self.search.indices)
        which = f", the closest of {counted(tried, 'value')} tried" if tried > 1 else ""
        return "values", f"{clause.asked} is {value} with {self.setting}{which}"

    def _people_reason(self, most_lines: str, lines_help: bool) -> Reason:
        people, lost = self._mean("people"), self._mean("people_lost")
        reached, request = self._mean("reach_share") * people, self.calendar.request
        if self.clause.figure.name == "people_reached" and self.clause.bound.value > people:
            return "people", f"There are only {people:,.0f} people"
        if lost > people - reached - lost and request.end_date_time is not None:
            return self.end_reason(most_lines)
        if lines_help:
            return "lines", f"{self.setting} can't make all calls"
        counts = (amount_text("people", count) for count in (reached, people, people - reached))
        attempts = setting_text("maxAttempts", request.max_attempts)
        verb = "reach" if request.max_attempts > 1 else "reaches"
        return "attempts", "{} {} {} of {} people on average, and {} are not reached{}".format(
            attempts, verb, *counts, most_lines
        )
