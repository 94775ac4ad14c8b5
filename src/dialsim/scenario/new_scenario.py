"""New scenarios: the questions that they begin with, and the file that is made of the answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from dialsim.errors import DialsimError, StudioError
from dialsim.interface.instants import (
    DAY,
    day_start,
    minute_text,
    thai,
    thai_date,
)
from dialsim.scenario.calendar import (
    DAY_CLASSES,
    Calendar,
    DayClasses,
)
from dialsim.scenario.list_doctor import clean_list
from dialsim.scenario.units import (
    NEXT_CALLING_DAY,
    is_next_day,
    parse_duration,
    parse_offset_instant,
)
from dialsim.scenario.week import (
    Week,
    instant_in_words,
    range_text,
    read_windows,
    week_text,
    windows_of,
)

M = TypeVar("M", bound=BaseModel)


def new_instant(text: str, first_day: int | None = None) -> int:
    """Parse an instant in words or ISO 8601; days of the week count from today or `first_day`.

    Raises StudioError for anything else.
    """
    day = day_start(int(time.time() * 1000)) if first_day is None else first_day
    try:
        found = instant_in_words(text, day)
        return parse_offset_instant(text.strip()) if found is None else found
    except ValueError as error:
        raise StudioError(f"{text} {error}") from None


def new_deadline(text: str, begin: int) -> int | None:
    """Parse a deadline in words, None if empty. Raises StudioError unless it is after `begin`."""
    if not text.strip():
        return None
    end = new_instant(text, day_start(begin))
    if end <= begin:
        raise StudioError(
            f"{text} is {minute_text(end)}, which is not after the start, {minute_text(begin)}"
        )
    return end


def new_week(text: str) -> Week:
    """Parse windows in words. Raises StudioError."""
    try:
        return read_windows(text)
    except ValueError as error:
        raise StudioError(f"windows {error}") from None


def new_holidays(text: str) -> str | None:
    """Parse the code of a country; None for `none`. Raises StudioError for an unknown country."""
    if text.strip().casefold() in ("", "none"):
        return None
    _validated(Calendar, {"holidays": text.strip()})
    return text.strip()


def new_hours(text: str) -> list[str]:
    """Parse hours such as `09:00-12:00, 13:00-18:00`, or `closed`. Raises StudioError."""
    spans = [part.strip() for part in text.split(",")]
    closed = spans in (["closed"], [""])
    try:
        hours = _validated(DayClasses, {"holiday": [] if closed else spans}).holiday
    except StudioError as error:
        raise StudioError(f"hours {error}") from None
    return [*map(range_text, hours or ())]


def class_hours(week: Week, holiday_hours: str) -> dict[str, list[str]]:
    """Return the hours of each class of day. Raises StudioError if weekdays differ."""
    if any(week.get(day) != week.get(1) for day in range(2, 6)):
        raise StudioError(
            "windows must be the same from Mon to Fri if holidays count, not "
            f"{week_text(week)}: write none as the country of the holidays"
        )
    hours = [[*map(range_text, week.get(day, ()))] for day in (1, 6, 7)]
    return dict(zip(DAY_CLASSES, (*hours, new_hours(holiday_hours)), strict=True))


def _validated(model: type[M], given: dict[str, Any]) -> M:
    """Return a part of a scenario. Raises StudioError for an invalid one."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        says = str(first.get("ctx", {}).get("message", first["msg"]))
        raise StudioError(says) from None


def proposed_holidays(start: str, deadline: str, holidays: str) -> dict[date, str]:
    """Return the holidays between start and deadline, or of five weeks, with their names.

    Empty while the answers cannot be read.
    """
    try:
        begin, code = new_instant(start), new_holidays(holidays)
        end = new_deadline(deadline, begin) or begin + 35 * DAY
    except DialsimError:
        return {}
    calendar = Calendar(holidays=code)
    calendar.resolve(range(thai(begin).year, thai(end).year + 1))
    first, last = thai_date(begin), thai_date(end)
    # Without the other names of a day that has several
    return {d: n.partition(";")[0] for d, n in calendar.names.items() if first <= d <= last}


def new_interval(text: str) -> int | str:
    """Parse a retry interval to ms; `next calling day` stays. Raises StudioError otherwise."""
    if is_next_day(text):
        return NEXT_CALLING_DAY
    try:
        return parse_duration(text)
    except ValueError as error:
        raise StudioError(f"the retry interval {error}") from None


class FirstQuestion(NamedTuple):
    """Question that a new scenario begins with; `field` is a field of `NewScenario`.

    `read` raises StudioError for an answer that cannot be read beside the earlier answers. `least`
    is the smallest whole number, None for an answer that is a text.
    """

    field: str
    label: str
    hint: str
    default: str
    read: Callable[[str, Mapping[str, Any]], object] = lambda text, _: text
    least: int | None = None


FIRST_QUESTIONS = (
    FirstQuestion("lines", "Lines", "calls at a time", "10", least=0),
    FirstQuestion("start", "Start", "Thai time, such as 2026-01-05 09:00", "Mon 09:00",
                  lambda text, _: new_instant(text)),
    FirstQuestion("windows", "Calling hours", "Thai time",
                  "Mon-Fri 09:00-19:00; Sat-Sun 10:00-19:00",
                  lambda text, _: new_week(text)),
    FirstQuestion("holidays", "Holidays", "those of a country by its code, or none", "TH",
                  lambda text, answers: new_holidays(text) and class_hours(
                      new_week(answers["windows"]), "closed")),
    FirstQuestion("holiday_hours", "Hours on holidays", "such as 10:00-16:00, or closed", "closed",
                  lambda text, _: new_hours(text)),
    FirstQuestion("attempts", "Attempts", "calls for a person at most", "3", least=1),
    FirstQuestion("retry_interval", "Retry interval",
                  "time from an attempt without success to the next, or 'next calling day'", "1h",
                  lambda text, _: new_interval(text)),
    FirstQuestion("deadline", "Deadline", "such as Fri 18:00; may be left out", "",
                  lambda text, answers: new_deadline(text, new_instant(answers["start"]))),
    FirstQuestion("value", "Value of a person reached",
                  "money, or a formula of the list's columns such as 0.1 * amount; may be left out",
                  ""),
)  # fmt: skip
"""Questions of `dialsim new` and of a studio without a scenario, in their order."""
_DEFAULTS = {question.field: question.default for question in FIRST_QUESTIONS}


@dataclass(frozen=True, slots=True)
class NewScenario:
    """Answers for a commented scenario file; instants and times in words.

    `listed` is the name of a clean list, and `params` are the types of the parameters in the list,
    by name. Without a list, `people` are made up. `holidays` is the code of a country or `none`;
    the holidays of `ordinary` count as other days. `deadline` stands in a comment of the file.
    """

    name: str = "January"
    people: int = 1000
    listed: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    lines: int = int(_DEFAULTS["lines"])
    start: str = _DEFAULTS["start"]
    windows: str = _DEFAULTS["windows"]
    holidays: str = _DEFAULTS["holidays"]
    ordinary: tuple[str, ...] = ()
    holiday_hours: str = _DEFAULTS["holiday_hours"]
    attempts: int = int(_DEFAULTS["attempts"])
    retry_interval: str = _DEFAULTS["retry_interval"]
    caller_ids: tuple[str, ...] = ()
    deadline: str = ""
    value: str = ""

    def text(self, file: str = "campaign.yaml") -> str:
        """Return the scenario file, to be named `file`. Raises StudioError for invalid answers."""
        begin = new_instant(self.start)
        end = new_deadline(self.deadline, begin)
        numbers = json.dumps(self.caller_ids)
        own = f"\n    callerIds: {numbers} # numbers to call from" if self.caller_ids else ""
        used = f"          callerIds: {numbers}\n" if self.caller_ids else ""
        goal = "" if end is None else (
            f"# It should be done by {minute_text(end)}, Thai time. How many lines are enough?\n"
            f"#   dialsim plan {file} --vary lines=1..{max(10, 4 * self.lines)} "
            f'--goal "p95(finish) <= {thai(end):%Y-%m-%d %H:%M}"\n'
        )  # fmt: skip
        retry = new_interval(self.retry_interval) if self.attempts > 1 else 0
        calendar, hours, windows = self._when()
        return f"""\
# A scenario of dialsim. All keys are explained in docs/scenario-format.md.
#   dialsim run {file} --out out/first
{goal}version: 1
name: {_quoted(self.name)}
{calendar}organizations:
  - name: Ours
    maxConcurrentCalls: {self.lines} # lines: how many calls at a time{own}
    agents:
      - name: Agent{self._params_schema()}
    campaigns:
      - name: {_quoted(self.name)}
        agent: Agent
        recipients: {self._recipients()}
{hours}        schedule:
          startDateTime: {thai(begin):%Y-%m-%dT%H:%M:%S}+07:00 # {minute_text(begin)}, Thai time
{windows}          maxAttempts: {self.attempts} # calls for a person at most, the first included
          retryInterval: {retry} # from an attempt without success to the next; a number is in ms
{used}# What people do when they are called is assumed (docs/default-behaviour.md). To change it:
# behaviours:
#   default:
#     outcomes: {{answered: 0.5, noAnswer: 0.33, busy: 0.05, failed: 0.12}}
#     talkTime: {{dist: lognormal, mean: 75s, sd: 88s, min: 2s, max: 10m}}
# What calls cost, if that is to be counted:
# costs: {{currency: THB, perDial: 0.10, perMinute: 1.20, billingIncrement: 60s}}
{self._value()}"""

    def _when(self) -> tuple[str, str, str]:
        """Return YAML lines of calendar, callingHours and timeWindows; unused ones are empty."""
        code, week = new_holidays(self.holidays), new_week(self.windows)
        said = week_text(week)
        if code is None:
            days = "".join(f"            - {_flow(day)}\n" for day in windows_of(week))
            return "", "", f"          timeWindows: # {said}\n{days}"
        hours = class_hours(week, self.holiday_hours)
        classes = "".join(
            f"          {name}: {json.dumps(spans) if spans else 'closed'}\n"
            for name, spans in hours.items()
        )
        but = f", open: {json.dumps(self.ordinary)}" if self.ordinary else ""
        return (
            f"calendar: {{holidays: {code}{but}}} # dialsim validate lists the holidays\n",
            f"        callingHours: # {said}\n{classes}",
            "",
        )

    def _value(self) -> str:
        if not self.value.strip():
            return ""
        return f"value: {{reached: {_quoted(self.value.strip())}}} # of each person reached\n"

    def _recipients(self) -> str:
        if self.listed is None:
            return f"{{count: {self.people}}} # made-up people; a list: {{file: people.csv}}"
        return f"{{file: {_quoted(self.listed)}}}"

    def _params_schema(self) -> str:
        if not self.params:
            return ""
        entries = (f"{_quoted(name)}: {{type: {kind}}}" for name, kind in self.params.items())
        return f"\n        paramsSchema: {{{', '.join(entries)}}} # columns of the list"


def cleaned(name: str, content: bytes) -> tuple[str, bytes, Mapping[str, str]]:
    """Return a list that can be read strictly: name, content, and the types of its parameters.

    An export that cannot be read strictly is replaced by the list doctor's workbook.
    """
    found = clean_list(content, name)
    if not found.is_as_written:
        name, content = f"{Path(name).stem}-clean.xlsx", found.workbook()
    return name, content, found.types


def faults_of(answers: Mapping[str, str], *, listed: bool) -> dict[str, str]:
    """Return the errors in the answers to the first questions, by field."""
    faults = {}
    people = FirstQuestion("people", "People", "", "1000", least=None if listed else 1)
    for name, _, _, example, read, least in (*FIRST_QUESTIONS, people):
        text = answers[name].replace(",", "").strip()
        # isdigit() alone would accept digits of all scripts.
        if least is not None and not (text.isascii() and text.isdigit() and int(text) >= least):
            faults[name] = f"must be a whole number from {least} on, such as {example}"
        try:
            read(answers[name], answers)
        except DialsimError as error:
            # A fault of an earlier answer is raised again; it is reported only with that answer.
            if str(error) not in faults.values():
                faults[name] = str(error)
    return faults


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _flow(day: dict[str, object]) -> str:
    """Return a day's windows in YAML flow style."""
    times = json.dumps(day["time"]).replace('"start"', "start").replace('"end"', "end")
    return f"{{dayOfWeek: {day['dayOfWeek']}, time: {times}}}"
