"""Calling windows against a plain reading of them: day by day, or instant by instant."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialsim.engine.rules import Windows, first_multiple, week_position
from dialsim.interface.instants import DAY, HOUR, LAST_INSTANT, MINUTE, WEEK, parse_instant
from dialsim.interface.schedule import read_schedule

Ranges = list[tuple[int, int]]

MONDAY = parse_instant("2026-01-04T17:00:00Z")  # 2026-01-05, midnight in Thailand


def monday(clock: str, days: int = 0) -> int:
    """An instant of the week of 5 January 2026, by the Thai clock."""
    hours, minutes = clock.split(":")
    return MONDAY + days * DAY + int(hours) * HOUR + int(minutes) * MINUTE


def windows(*items: tuple[int, str]) -> Windows:
    """(1, "09:00-12:00") is Monday morning."""
    body = {
        "startDateTime": "2026-01-05T00:00:00Z",
        "timeWindows": [
            {"dayOfWeek": day, "time": [dict(zip(("start", "end"), text.split("-"), strict=True))]}
            for day, text in items
        ],
    }
    return Windows.of(read_schedule(body).time_windows)


def open_in(ranges: Ranges, instant: int) -> bool:
    """T3 as it is written: inside some range, its end excluded."""
    position = (instant - MONDAY) % WEEK
    return any(start <= position < end for start, end in ranges)


@st.composite
def week_ranges(draw: st.DrawFn) -> Ranges:
    """Ranges of whole minutes inside one day each; they may overlap, touch and repeat."""
    ranges = []
    for _ in range(draw(st.integers(1, 6))):
        day = draw(st.integers(0, 6))
        start = draw(st.integers(0, 1438))
        end = draw(st.integers(start + 1, min(1439, start + draw(st.sampled_from((1, 3, 900))))))
        ranges.append((day * DAY + start * MINUTE, day * DAY + end * MINUTE))
    return ranges


@st.composite
def instants(draw: st.DrawFn, ranges: Ranges) -> int:
    """An instant at, just before or just after an edge of a range, or anywhere; before 1970 too."""
    edge = draw(st.sampled_from([edge for span in ranges for edge in span]))
    off = draw(st.sampled_from((-1, 0, 1)) | st.integers(-WEEK, WEEK))
    return MONDAY + draw(st.integers(-3000, 50)) * WEEK + edge + off


def test_t2_the_week_is_the_thai_week() -> None:
    # Sunday 17:00 UTC is Monday 00:00 in Thailand, UTC+7 in summer as in winter.
    for text in ("2026-01-04T17:00:00Z", "2026-07-05T17:00:00Z", "2041-03-03T17:00:00Z"):
        assert week_position(parse_instant(text)) == 0
        assert week_position(parse_instant(text) - 1) == WEEK - 1
    assert week_position(parse_instant("1970-01-01T00:00:00Z")) == 3 * DAY + 7 * HOUR  # a Thursday


def test_t3_a_range_is_half_open() -> None:
    nine_to_seven = windows((1, "09:00-19:00"))
    assert not nine_to_seven.is_open(monday("09:00") - 1)
    assert nine_to_seven.is_open(monday("09:00"))
    assert nine_to_seven.is_open(monday("19:00") - 1)
    assert not nine_to_seven.is_open(monday("19:00"))


def test_t3_a_day_not_listed_is_closed_and_the_default_is_the_interfaces() -> None:
    default = Windows.of(read_schedule({"startDateTime": "2026-01-05"}).time_windows)
    hours = [(start // HOUR % 24, end // HOUR % 24) for start, end in spans(default)]
    assert hours == [(9, 19)] * 5 + [(10, 19)] * 2
    assert spans(windows((3, "09:00-10:00"))) == [(2 * DAY + 9 * HOUR, 2 * DAY + 10 * HOUR)]


def spans(week: Windows) -> Ranges:
    """The open spans of one week, from Monday 00:00 Thai time."""
    return [(a - MONDAY, b - MONDAY) for a, b in week.open_spans(MONDAY, MONDAY + WEEK).tolist()]


def test_t3_ranges_that_overlap_or_touch_are_one() -> None:
    for items in (
        [(1, "09:00-12:00"), (1, "12:00-13:00")],
        [(1, "11:00-13:00"), (1, "09:00-12:00")],
        [(1, "09:00-13:00"), (1, "10:00-11:00"), (1, "09:00-09:01")],
    ):
        week = windows(*items)
        assert spans(week) == [(9 * HOUR, 13 * HOUR)]
        assert week.next_close(monday("09:30")) == monday("13:00")
    apart = windows((1, "09:00-12:00"), (1, "12:01-13:00"))
    assert apart.next_close(monday("09:30")) == monday("12:00")
    assert apart.next_open(monday("12:00")) == monday("12:01")


def test_t3_the_last_minute_of_a_day_is_closed_even_between_two_open_days() -> None:
    week = windows(*((day, "00:00-23:59") for day in range(1, 8)))
    assert week.is_open(monday("23:59") - 1)
    assert not week.is_open(monday("23:59"))
    assert week.next_open(monday("23:59")) == monday("00:00", days=1)
    assert week.next_open(monday("23:59", days=6)) == monday("00:00", days=7)


@given(st.data())
def test_t3_open_and_the_next_edges_are_those_of_a_plain_reading(data: st.DataObject) -> None:
    # Several instants of one `Windows`, in any order: what it remembers must not show.
    ranges = data.draw(week_ranges())
    week = Windows(ranges)
    for instant in data.draw(st.lists(instants(ranges), min_size=1, max_size=8)):
        monday_before = instant - (instant - MONDAY) % WEEK
        weeks = (monday_before, monday_before + WEEK)
        openings = [instant, *(w + start for w in weeks for start, _ in ranges)]
        closings = [instant, *(w + end for w in weeks for _, end in ranges)]
        opens = min(at for at in openings if at >= instant and open_in(ranges, at))
        closes = min(at for at in closings if at >= instant and not open_in(ranges, at))
        asked = [
            (week.is_open, open_in(ranges, instant)),
            (week.next_open, opens),
            (week.next_close, closes),
        ]
        for ask, expected in data.draw(st.permutations(asked)):
            assert ask(instant) == expected


@given(st.data())
def test_t3_open_spans_are_what_is_open_and_no_more(data: st.DataObject) -> None:
    ranges = data.draw(week_ranges())
    start = data.draw(instants(ranges))
    end = start + data.draw(st.integers(-5, 3 * WEEK))
    found = [tuple(row) for row in Windows(ranges).open_spans(start, end).tolist()]
    inside = [at for span in found for at in (span[0], span[1] - 1)]
    outside = [at for span in found for at in (span[0] - 1, span[1]) if start <= at < end]
    assert all(start <= a < b <= end for a, b in found)
    assert found == sorted(found)
    assert all(open_in(ranges, at) for at in inside)
    assert not any(open_in(ranges, at) for at in outside)
    mondays = range(start - (start - MONDAY) % WEEK - WEEK, max(start, end), WEEK)
    edges = (m + edge for m in mondays for span in ranges for edge in (span[0], span[1] - 1))
    for at in (start, end - 1, *edges):
        if start <= at < end and open_in(ranges, at):
            assert any(a <= at < b for a, b in found)


@given(st.data())
def test_q2_the_next_release_instant_is_the_first_of_a_walk_along_the_grid(
    data: st.DataObject,
) -> None:
    ranges = data.draw(week_ranges())
    minutes = data.draw(st.integers(1, 60))
    interval = minutes * MINUTE
    origin = MONDAY + data.draw(st.integers(0, 200)) * MINUTE
    instant = origin + data.draw(st.integers(-HOUR, 2 * WEEK))
    first = max(origin, origin + -((origin - instant) // interval) * interval)
    walk = (first + k * interval for k in range(WEEK // MINUTE))  # then week and grid repeat
    expected = next((at for at in walk if open_in(ranges, at)), None)
    assert Windows(ranges).next_open_on_grid(instant, origin, interval) == expected


def test_q2_a_release_instant_that_comes_weeks_later_is_found() -> None:
    # Every 11 minutes from Monday 10:00: a week is 10,080 minutes, 4 more than 916 × 11, so that
    # the first release after 10:00 comes 4 minutes earlier each week: 10:11, 10:07, 10:03.
    week = windows((1, "10:03-10:05"))
    found = week.next_open_on_grid(monday("10:00"), monday("10:00"), 11 * MINUTE)
    assert found == monday("10:03", days=14)


def test_q2_no_release_instant_ever_is_told_from_a_late_one() -> None:
    week = windows((1, "10:05-10:20"))
    assert week.next_open_on_grid(monday("10:00"), monday("10:00"), HOUR) is None
    # With 7 ms less than an hour step k comes k × 7 ms before the full hour. It is 40 minutes
    # early, at 10:20 or before, from k = 342,858 on; that hour is Monday's 10 o'clock (k − 1 hours
    # after the start, k − 1 a multiple of 168) first at k = 342,889, 39 years on.
    late = week.next_open_on_grid(monday("10:00"), monday("10:00"), HOUR - 7)
    assert late == monday("10:00") + 342_889 * (HOUR - 7)


def test_q2_the_search_ends_with_the_year_9999() -> None:
    last = windows(*((day, "00:00-23:59") for day in range(1, 8)))
    assert last.next_open_on_grid(LAST_INSTANT, LAST_INSTANT, HOUR) == LAST_INSTANT
    assert last.next_open_on_grid(LAST_INSTANT + 1, LAST_INSTANT, HOUR) is None


@pytest.mark.parametrize("modulus", range(1, 14))
def test_q2_the_first_multiple_in_a_range_of_remainders_is_the_smallest(modulus: int) -> None:
    for factor, low, high in product(range(2 * modulus), range(modulus), range(modulus)):
        inside = [
            k
            for k in range(modulus)
            if (low <= factor * k % modulus <= high)
            or (low > high and (factor * k % modulus >= low or factor * k % modulus <= high))
        ]
        expected = inside[0] if inside else -1
        assert first_multiple(factor, modulus, low, high) == expected, (factor, low, high)
