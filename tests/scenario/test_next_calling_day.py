"""`next calling day`: the smallest retry interval without two calls of a recipient on one day."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

import dialsim
from dialsim.interface.instants import HOUR, MINUTE
from dialsim.scenario.scenario import Scenario, json_schema
from dialsim.scenario.units import NEXT_CALLING_DAY
from dialsim.testing import Sketch

BUSY = "; ".join(["busy 1s"] * 4)


def debt(interval: object = None, **body: Any) -> Sketch:
    """A campaign of one recipient who is always busy, in Thai time from Monday on."""
    own = body if interval is None else body | {"retryInterval": interval}
    sketch = Sketch(1, start="5 Jan 2026 00:00", end="31 Jan 2026 00:00")
    return sketch.campaign("Debt", BUSY, max_attempts=4, **own)


def interval_of(scenario: Scenario) -> int:
    request = scenario.organizations[0].campaigns[0].schedule
    assert request is not None
    return request.retry_interval


def week(*hours: str) -> list[dict[str, object]]:
    """Windows from Monday on, a text of ranges per day."""
    return [
        {"dayOfWeek": day, "time": [dict(zip(("start", "end"), span.split("-"), strict=True))
                                    for span in text.split()]}
        for day, text in enumerate(hours, 1)
        if text
    ]  # fmt: skip


def days_called(scenario: Scenario) -> list[Any]:
    dialled = dialsim.run(scenario).calls["initiated_at"].dropna()
    return list(dialled.dt.tz_convert("Asia/Bangkok").dt.date)


@pytest.mark.parametrize(
    ("windows", "hours"),
    [
        (week("09:00-19:00"), 10),
        (week("09:00-12:00 13:00-17:00", "", "10:00-15:00"), 8),
        (week("13:00-17:00 08:00-09:00"), 9),
        (week("09:00-09:02"), 1 / 12),
    ],
)
def test_it_is_the_longest_day_from_first_opening_to_last_closing(
    windows: list[dict[str, object]], hours: float
) -> None:
    assert interval_of(debt(NEXT_CALLING_DAY, timeWindows=windows).scenario()) == hours * HOUR


def test_default_windows_and_plans_count() -> None:
    hours = {"weekday": ["09:00-12:00", "13:00-20:00"], "sunday": "10:00-12:00"}
    assert interval_of(debt(NEXT_CALLING_DAY).scenario()) == 10 * HOUR
    assert interval_of(debt(NEXT_CALLING_DAY, calling_hours=hours).scenario()) == 11 * HOUR


def test_overrides_name_it_and_windows_of_later_overrides_count() -> None:
    scenario = debt().scenario(
        ["Debt.retryInterval=Next calling day", "Debt.windows=Mon-Fri 08:00-20:00"]
    )
    assert interval_of(scenario) == 12 * HOUR
    assert interval_of(scenario.with_("Debt.windows=daily 08:00-09:00")) == HOUR


def test_a_single_attempt_has_no_interval_so_that_strict_services_take_it() -> None:
    strict = debt(NEXT_CALLING_DAY).also(service={"strict": True}).scenario()
    assert interval_of(strict) == 10 * HOUR
    assert interval_of(strict.with_("Debt.maxAttempts=1")) == 0
    swept = dialsim.sweep(strict, {"Debt.maxAttempts": [1, 2]}, 2, jobs=1)
    assert [*swept.runs["dials"]] == [1, 1, 2, 2]


def test_the_schema_of_files_has_it() -> None:
    validator = Draft202012Validator(json_schema())
    for value, is_valid in ((NEXT_CALLING_DAY, True), (HOUR, True), ("tomorrow", False)):
        document = {"organizations": [{"name": "Acme", "maxConcurrentCalls": 1, "agents": [
            {"name": "Agent"}], "campaigns": [{"name": "Debt", "agent": "Agent", "recipients": [],
            "schedule": {"startDateTime": "2026-01-05T02:00:00Z", "maxAttempts": 2,
                         "retryInterval": value}}]}], "name": "x"}  # fmt: skip
        assert validator.is_valid(document) is is_valid


def test_nothing_smaller_will_do() -> None:
    windows = week(*["09:00-19:00"] * 7)
    apart = days_called(debt(NEXT_CALLING_DAY, timeWindows=windows).scenario())
    # The first call ends three seconds after the first opening.
    smaller = days_called(debt(10 * HOUR - 4000, timeWindows=windows).scenario())
    assert len(apart) == len(set(apart)) == 4
    assert len(set(smaller)) < len(smaller) == 4


_SPANS = st.tuples(st.integers(0, 1438), st.integers(1, 600)).map(
    lambda span: (span[0], min(sum(span), 1439))
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(_SPANS, max_size=2), min_size=7, max_size=7).filter(any))
def test_nobody_is_called_twice_on_a_day(days: list[list[tuple[int, int]]]) -> None:
    def clock(minute: int) -> str:
        return f"{minute // 60:02}:{minute % 60:02}"

    windows = week(*(" ".join(f"{clock(a)}-{clock(b)}" for a, b in spans) for spans in days))
    scenario = debt(NEXT_CALLING_DAY, timeWindows=windows).scenario()
    called = days_called(scenario)
    assert called
    assert len(called) == len(set(called))
    assert interval_of(scenario) % MINUTE == 0
