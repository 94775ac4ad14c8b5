"""The calendar: holidays, and settings and rules per class of day or date.

A day is a Thai date. Its class is `weekday` (Monday to Friday), `saturday`, `sunday`, or `holiday`
on any day of the week. Calling hours and compliance rules are written in these classes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from dialsim.interface.model import broken, wrong
from dialsim.scenario.fields import Limit, Model, Text, Whole
from dialsim.scenario.week import (
    DATE_PATTERN,
    RANGE_PATTERN,
    Range,
    Week,
    range_text,
    read_date,
    read_days,
    read_range,
)

DayClass = Literal["weekday", "saturday", "sunday", "holiday"]
DAY_CLASSES: tuple[DayClass, ...] = ("weekday", "saturday", "sunday", "holiday")


def _date(value: object) -> date:
    if isinstance(value, date):
        return value
    try:
        return read_date(str(value))
    except ValueError as error:
        raise broken(str(error)) from None


Date = Annotated[
    date,
    BeforeValidator(_date),
    WithJsonSchema({"type": "string", "pattern": DATE_PATTERN}),
]
"""Date in Thailand."""


def _ranges(value: object) -> tuple[Range, ...]:
    """Parse one range, a list of ranges, or `closed`."""
    if value == "closed":
        return ()
    listed = isinstance(value, list | tuple)
    if not listed and not isinstance(value, str):
        raise wrong("must be a time such as 09:00-18:00, a list of such, or closed")
    ranges: list[Range] = []
    for index, item in enumerate(value if isinstance(value, list | tuple) else [value]):
        try:
            span = item if isinstance(item, tuple) else read_range(item)
        except ValueError as error:
            raise broken(str(error), *([index] if listed else [])) from None
        for other in ranges:
            if span[0] < other[1] and other[0] < span[1]:
                message = f"must not overlap {range_text(other)}, as {range_text(span)} does"
                raise broken(message, index)
        ranges.append(span)
    return tuple(sorted(ranges))


Ranges = Annotated[
    tuple[Range, ...],
    BeforeValidator(_ranges),
    PlainSerializer(lambda spans: [*map(range_text, spans)], when_used="json"),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": RANGE_PATTERN},
                {"const": "closed"},
                {"type": "array", "items": {"type": "string", "pattern": RANGE_PATTERN}},
            ]
        }
    ),
]


class DayClasses(Model):
    """Times of the day in Thailand, by class of day; a class that is left out has none.

    Holidays that are left out follow the day of the week.
    """

    weekday: Ranges = Field(
        default=(), description="Monday to Friday. Left out: closed.", examples=["08:00-20:00"]
    )
    saturday: Ranges = Field(
        default=(),
        description="Saturday. Left out: closed.",
        examples=[["09:00-12:00", "13:00-18:00"]],
    )
    sunday: Ranges = Field(default=(), description="Sunday. Left out: closed.", examples=["closed"])
    holiday: Ranges | None = Field(
        default=None,
        description="Holidays of the calendar, whatever day they fall on. Left out: as that day.",
        examples=["10:00-16:00"],
    )

    def of(self, day: date, calendar: Calendar) -> tuple[Range, ...]:
        """Return the ranges of a date, by its class."""
        if calendar.day_class(day) == "holiday" and self.holiday is not None:
            return self.holiday
        return self.of_weekday(day.isoweekday())

    def of_weekday(self, number: int) -> tuple[Range, ...]:
        """Return the ranges of a day of the week (1 is Monday) that is not a holiday."""
        return self.weekday if number <= 5 else self.saturday if number == 6 else self.sunday

    @property
    def week(self) -> Week:
        """Ranges by day of the week, without holidays."""
        return {number: self.of_weekday(number) for number in range(1, 8)}


# -- the calendar ----------------------------------------------------------------------------------


def _country(value: object) -> str:
    """Validate the code of a country that the package `holidays` supports."""
    if not isinstance(value, str):
        raise wrong('must be the code of a country in quotes, such as "TH"')
    # Imported here: only files with holidays need the package.
    from holidays.registry import COUNTRIES

    # The registry has codes of two and three letters, and class names.
    codes = {code for _, *codes in COUNTRIES.values() for code in codes if len(code) == 2}
    if value in codes:
        return value
    names = {name.replace("_", " "): codes[0] for name, (_, *codes) in COUNTRIES.items()}
    names |= {code.casefold(): codes[0] for _, *codes in COUNTRIES.values() for code in codes[1:]}
    text = value.strip().casefold().replace("_", " ")
    near = [value.strip().upper()] if value.strip().upper() in codes else []
    near += [names[name] for name in get_close_matches(text, names, n=1, cutoff=0.7)]
    # With two letters difflib finds no close matches.
    if len(text) == 2 and sum(a == b for a, b in zip(text, "th", strict=True)) == 1:
        near.append("TH")  # the service's own country
    hint = f"did you mean {near[0]}?" if near else "write its code of two letters, such as TH"
    raise broken(f'"{value}" is no country whose holidays are known; {hint}')


class Calendar(Model):
    """Holidays, and dates without calls."""

    holidays: (
        Annotated[
            str, BeforeValidator(_country), Field(json_schema_extra={"pattern": "^[A-Z]{2}$"})
        ]
        | None
    ) = Field(
        default=None,
        description="Code of the country whose public holidays count (package holidays). Left "
        "out: only ownHolidays.",
        examples=["TH"],
    )
    categories: tuple[Text, ...] = Field(
        default=("public",),
        description="Which of that country's holidays count: public, and for Thailand also "
        "government, bank and others.",
        examples=[["public", "government"]],
    )
    own_holidays: dict[Date, Text] = Field(
        default_factory=dict,
        description="Further holidays, by date, with their names.",
        examples=[{"2026-06-05": "Company day"}],
        json_schema_extra={"propertyNames": {"pattern": DATE_PATTERN}},
    )
    open: tuple[Date, ...] = Field(
        default=(),
        description="Holidays of the country that are ordinary days here.",
        examples=[["2026-05-04"]],
    )
    closed: tuple[Date, ...] = Field(
        default=(),
        description="Dates without calls of campaigns with callingHours, whatever the hours are.",
        examples=[["2026-04-16"]],
    )
    _names: dict[date, str] = PrivateAttr(default_factory=dict)

    @field_validator("categories")
    @classmethod
    def _are_known(cls, categories: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        country = info.data.get("holidays")
        known = () if country is None else _of_country(country, [], ()).supported_categories
        for index, category in enumerate(categories):
            if country is not None and category not in known:
                near = get_close_matches(category, known, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise broken(f"must be among {', '.join(known)}{hint}", index)
        return categories

    @model_validator(mode="after")
    def _says_one_thing_of_a_date(self) -> Self:
        for key, listed in (("open", self.open), ("closed", self.closed)):
            for index, day in enumerate(listed):
                if day in listed[:index]:
                    raise broken(f"has {day} twice", key, index)
        for index, day in enumerate(self.open):
            other = "closed" if day in self.closed else "ownHolidays"
            if day in self.closed or day in self.own_holidays:
                raise broken(f"is {day}, which is in {other}, too", "open", index)
        return self

    def years_known(self) -> range | None:
        """Return the years known to the package; None without a country."""
        if self.holidays is None:
            return None
        country = _of_country(self.holidays, [], ())
        return range(country.start_year, country.end_year + 1)

    def resolve(self, years: range) -> None:
        """Look up the holidays of these years, as far as the package has them."""
        names: dict[date, str] = {}
        known = self.years_known()
        if known is not None and self.holidays is not None:
            listed = [year for year in years if year in known]
            names = dict(_of_country(self.holidays, listed, self.categories))
        names |= self.own_holidays
        # Sorted by date: the digest of a scenario depends on the order.
        self._names = {day: names[day] for day in sorted(names) if day not in self.open}

    @property
    def names(self) -> Mapping[date, str]:
        """Holidays in force with their names, in order of date."""
        return self._names

    def names_in(self, language: str) -> dict[date, str]:
        """Return the holidays in force with their names in a language, if the package has it."""
        if self.holidays is None:
            return dict(self._names)
        years = sorted({day.year for day in self._names})
        translated = _of_country(self.holidays, years, self.categories, language)
        return {
            day: name if day in self.own_holidays else translated.get(day, name)
            for day, name in self._names.items()
        }

    def day_class(self, day: date) -> DayClass:
        """Return the class of a date."""
        return "holiday" if day in self._names else DAY_CLASSES[max(0, day.isoweekday() - 5)]


def _of_country(
    country: str, years: list[int], categories: tuple[str, ...], language: str = "en"
) -> Any:
    from holidays import country_holidays

    made = country_holidays(country)
    # Codes of two letters, or with a region, such as en_US.
    spoken = sorted(code for code in made.supported_languages if code[:2] == language)
    if not years:
        return made
    # expand=False: by default the package adds further years whenever one is asked for, so that
    # results would depend on earlier questions.
    return country_holidays(
        country, years=years, language=spoken[-1] if spoken else None, expand=False,
        categories=categories or None,
    )  # fmt: skip


# -- lines -----------------------------------------------------------------------------------------

_TIMED = re.compile(
    r"(?P<days>.*?)\s*(?P<time>[0-9]{1,2}[:.]?[0-9]{0,2}\s*[-–]\s*[0-9]{1,2}[:.][0-9]{2})?"
)
_WHOLE_DAY = (0, 24 * 60)


@dataclass(frozen=True, slots=True)
class LineTime:
    """Time of a number of lines: days of the week, holidays, or one date.

    If several apply, a date precedes holidays, and holidays precede days of the week. Among equals,
    a time of day precedes a whole day.
    """

    text: str
    span: Range
    weekdays: frozenset[int] = frozenset()
    holiday: bool = False
    only: date | None = None

    @property
    def rank(self) -> int:
        """Precedence; higher ranks apply first."""
        kind = 2 if self.only is not None else 1 if self.holiday else 0
        return 2 * kind + (self.span != _WHOLE_DAY)

    def holds_on(self, day: date, calendar: Calendar) -> bool:
        """Return True if the entry applies to a date."""
        if self.only is not None:
            return self.only == day
        return (
            calendar.day_class(day) == "holiday"
            if self.holiday
            else day.isoweekday() in self.weekdays
        )

    def meets(self, other: LineTime) -> bool:
        """Return True if both entries apply at a common time, with equal precedence."""
        days = (self.weekdays & other.weekdays) or (self.holiday and other.holiday)
        dates = self.only is not None and self.only == other.only
        (a, b), (c, d) = self.span, other.span
        return self.rank == other.rank and bool(days or dates) and a < d and c < b


# Cached: the same few keys are read again for every day of many weeks.
@lru_cache(maxsize=1000)
def line_time(text: str) -> LineTime:
    """Parse a key of `lines`. Raises ValueError with the fault."""
    found = _TIMED.fullmatch(text.strip())
    days, time = (found["days"].strip(), found["time"]) if found else (text.strip(), None)
    if text == "default":
        raise ValueError(
            "is no key of lines: write the usual number of lines as maxConcurrentCalls"
        )
    span = _WHOLE_DAY if time is None else _line_span(time)
    if not days and time is not None:
        return LineTime(text, span, weekdays=frozenset(range(1, 8)))
    if re.match(r"[0-9]", days):
        return LineTime(text, span, only=read_date(days))
    if days == "holiday":
        return LineTime(text, span, holiday=True)
    try:
        return LineTime(text, span, weekdays=frozenset(read_days(days)))
    except ValueError as error:
        message = f"{error}; or write holiday, 13:00-18:00 or 2026-01-09"
        raise ValueError(message) from None


def _line_span(text: str) -> Range:
    # In files, days end at 23:59; for lines the last minute counts as well.
    last = re.sub(r"-\s*24:00$", "-23:59", text)
    start, end = read_range(last)
    return start, end if last == text else 24 * 60


def _line_key(key: object) -> str:
    try:
        return line_time(str(key)).text
    except ValueError as error:
        raise broken(str(error)) from None


def _no_overlap(lines: dict[str, int]) -> dict[str, int]:
    times = [line_time(key) for key in lines]
    for index, later in enumerate(times):
        for earlier in times[:index]:
            if later.meets(earlier):
                raise broken(f'overlaps "{earlier.text}": only one of them can apply', later.text)
    return lines


Lines = Annotated[
    dict[Annotated[str, BeforeValidator(_line_key)], Limit], AfterValidator(_no_overlap)
]
"""Numbers of lines by times in the notation of `line_time`."""


def lines_of(
    lines: Mapping[str, int], otherwise: int, day: date, calendar: Calendar
) -> dict[int, int]:
    """Return the numbers of lines on a date, by the minute of the day from which each applies."""
    held = sorted(
        (
            (time, count)
            for key, count in lines.items()
            if (time := line_time(key)).holds_on(day, calendar)
        ),
        key=lambda pair: -pair[0].rank,
    )
    minutes = sorted({0, *(m for time, _ in held for m in time.span if m < 24 * 60)})
    return {
        minute: next(
            (count for time, count in held if time.span[0] <= minute < time.span[1]), otherwise
        )
        for minute in minutes
    }


# -- compliance rules ------------------------------------------------------------------------------

# Rules are data: they do not change the simulation. Validation warns about windows that exceed a
# rule, and the summary counts the dials outside it.


class ComplianceRule(Model):
    """Compliance rule: a missing `contact` allows any time, a missing `perDay` any number."""

    name: Text = Field(description="What the rule is called; unique.", examples=["House rule"])
    contact: DayClasses | None = Field(
        default=None, description="When people may be contacted, in Thai time."
    )
    per_day: Annotated[Whole, Field(ge=1, le=1000)] | None = Field(
        default=None,
        description="Contacts allowed per day and phone number, by all campaigns of the "
        "organization together.",
        examples=[1],
    )
    source: Text | None = Field(
        default=None, description="Where the rule is written.", examples=["Policy 12, page 3"]
    )

    @model_validator(mode="after")
    def _says_something(self) -> ComplianceRule:
        if self.contact is None and self.per_day is None:
            raise broken("needs contact, perDay, or both")
        return self


THAI_DEBT_COLLECTION = ComplianceRule.model_validate(
    {
        "name": "thai-debt-collection",
        "contact": {
            "weekday": "08:00-20:00",
            "saturday": "08:00-18:00",
            "sunday": "08:00-18:00",
            "holiday": "08:00-18:00",
        },
        "perDay": 1,
        "source": "Debt Collection Act B.E. 2558 (2015), section 9 (2) and (3), and the "
        "notification of the Debt Collection Supervisory Committee on the number of contacts, "
        "Royal Gazette of 23 August 2019",
    }
)
"""Thai debt collection rule, checked against press and law firms, not against the Gazette
itself.
"""

BUILT_IN_RULES = {rule.name: rule for rule in (THAI_DEBT_COLLECTION,)}


def _rule(value: object) -> object:
    """Return the built-in rule with this name; other values are returned for the model to
    validate.
    """
    if not isinstance(value, str) or value in BUILT_IN_RULES:
        return BUILT_IN_RULES[value] if isinstance(value, str) else value
    near = get_close_matches(value, BUILT_IN_RULES, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(BUILT_IN_RULES)}"
    raise broken(f'"{value}" is no built-in rule; {hint}')


def _unique(rules: tuple[ComplianceRule, ...]) -> tuple[ComplianceRule, ...]:
    names = [rule.name for rule in rules]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise broken(f'"{name}" must be unique, but an earlier rule has it too', index)
    return rules


class _OrByName:
    """Annotation of a rule: its JSON Schema also accepts the name of a built-in rule."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "enum": [*BUILT_IN_RULES]}, handler(schema)]}


ComplianceRules = Annotated[
    tuple[Annotated[ComplianceRule, BeforeValidator(_rule), _OrByName()], ...],
    AfterValidator(_unique),
]
"""Rules, given by the names of built-in ones or in full."""
