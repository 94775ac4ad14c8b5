from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialsim.interface.instants import format_instant
from dialsim.scenario.units import (
    LONGEST_MS,
    format_duration,
    parse_duration,
    parse_offset_instant,
)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("250ms", 250),
        ("45s", 45_000),
        ("10m", 600_000),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        ("1d1h1m1s1ms", 90_061_001),
        ("1.5h", 5_400_000),
        ("0.25s", 250),
        ("PT10M", 600_000),
        ("PT0.5S", 500),
        ("P1DT2H", 93_600_000),
        ("P2W", 14 * 86_400_000),
        ("P1D", 86_400_000),
        ("3650d", LONGEST_MS),
    ],
)
def test_a_duration_reads_as_milliseconds(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "5", "5.0", "ten", "5 s", "5S", "5sec", "m", "1m1h", "1s1s", "-5s", "+5s"),
        *("1.5h30m", "1h1.5m", ".5s", "5.s", "0.1ms", "1e3s", "3651d", "9" * 400 + "d", "٥s"),
        *(
            "P",
            "PT",
            "P1DT",
            "P1Y",
            "P1M",
            "PT1.5H",
            "P1W2D",
            "pt10m",
            "PT10",
            "5m\n",
            "nan",
            "inf",
        ),
    ],
)
def test_what_is_no_duration_is_refused_and_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(must|needs)"):
        parse_duration(text)


@given(st.integers(0, LONGEST_MS))
def test_a_written_duration_reads_back_as_itself(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds)) == milliseconds


@given(
    st.integers(0, 500),
    st.integers(0, 100),
    st.integers(0, 100),
    st.integers(0, 100),
    st.integers(0, 10_000),
)
def test_parts_of_a_duration_add_up(d: int, h: int, m: int, s: int, ms: int) -> None:
    expected = (((d * 24 + h) * 60 + m) * 60 + s) * 1000 + ms
    assert parse_duration(f"{d}d{h}h{m}m{s}s{ms}ms") == expected


@given(st.text(max_size=12))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    says = "must "
    try:
        milliseconds = parse_duration(text)
    except ValueError as error:
        milliseconds, says = 0, str(error)
    assert 0 <= milliseconds <= LONGEST_MS
    assert says.startswith(("must ", "needs "))


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-05T01:00:00Z",
        "2026-01-05T01:00Z",
        "2026-01-05T08:00:00+07:00",
        "2026-01-05T08:00:00+0700",
        "2026-01-05 01:00:00.000z",
        "2026-01-04T18:00:00.0004-07",
    ],
)
def test_an_instant_reads_as_milliseconds_since_1970(text: str) -> None:
    assert parse_offset_instant(text) == 1_767_574_800_000


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-05T01:00:00",
        "2026-01-05",
        "2026-02-30T00:00:00Z",
        "2026-01-05T24:00:00Z",
        "2512-12-31T00:00:00",
        "now",
        "",
    ],
)
def test_an_instant_needs_a_real_day_and_an_offset(text: str) -> None:
    with pytest.raises(ValueError, match="must "):
        parse_offset_instant(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2569-01-05T08:00:00+07:00", "2026-01-05T08:00:00+07:00"),
        ("2569-01-05 01:00Z", "2026-01-05T01:00:00Z"),
        ("2567-02-29", "2024-02-29T00:00:00+07:00"),
        ("2513-01-01T07:00", "1970-01-01T07:00:00+07:00"),
        ("2700-12-31T00:00:00.5Z", "2157-12-31T00:00:00.5Z"),
        ("05/01/2569", "2026-01-05T00:00:00+07:00"),
        ("5/1/2026 9:00", "2026-01-05T09:00:00+07:00"),
        ("5-1-2026, 09.30", "2026-01-05T09:30:00+07:00"),
        ("31.12.2569 23:59:59 +07:00", "2026-12-31T23:59:59+07:00"),
        ("12/31/2026", "2026-12-31T00:00:00+07:00"),
        ("2026/1/5", "2026-01-05T00:00:00+07:00"),
        ("2026-1-5T9:00Z", "2026-01-05T09:00:00Z"),
    ],
)
def test_a_date_of_another_spelling_or_era_is_refused_with_the_one_that_is_meant(
    text: str, meant: str
) -> None:
    with pytest.raises(ValueError, match=f"write {re.escape(meant)}$"):
        parse_offset_instant(text)
    assert parse_offset_instant(meant) >= 0


@pytest.mark.parametrize("text", ["2569-02-29", "2569-13-01T00:00:00Z"])
def test_a_buddhist_day_that_there_is_not_is_told_its_year(text: str) -> None:
    with pytest.raises(ValueError, match=r"2569 is 2026$"):
        parse_offset_instant(text)


@pytest.mark.parametrize("text", ["5/1/69", "32/13/2026", "5 Jan 2026", "1/2/3"])
def test_a_date_that_may_mean_anything_gets_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 2026-01-05T01:00:00Z or"):
        parse_offset_instant(text)


@pytest.mark.parametrize("year", ["2512", "2701", "9999"])
def test_years_that_nobody_counts_in_the_buddhist_era_are_taken_as_they_stand(year: str) -> None:
    assert format_instant(parse_offset_instant(f"{year}-01-05T01:00:00Z"))[:4] == year
