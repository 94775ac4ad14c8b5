"""ISO 8601 in, milliseconds out, and back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialsim.interface.instants import format_instant, parse_instant

LAST = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("2026-01-05", 1_767_571_200_000),
        ("2026-01-05T02:00", 1_767_578_400_000),
        ("2026-01-05T02:00:00", 1_767_578_400_000),
        ("2026-01-05T02:00:00Z", 1_767_578_400_000),
        ("2026-01-05t02:00:00z", 1_767_578_400_000),
        ("2026-01-05 02:00:00Z", 1_767_578_400_000),
        ("2026-01-05T09:00:00+07:00", 1_767_578_400_000),
        ("2026-01-05T09:00:00+0700", 1_767_578_400_000),
        ("2026-01-05T09:00+07", 1_767_578_400_000),
        ("2026-01-04T20:30:00-05:30", 1_767_578_400_000),
        ("2026-01-05T07:45+0545", 1_767_578_400_000),
        ("2026-01-05T02:00:00-00:00", 1_767_578_400_000),
        ("2026-01-05T02:00:00.5Z", 1_767_578_400_500),
        ("2026-01-05T02:00:00,25Z", 1_767_578_400_250),
        ("2026-01-05T02:00:00.1239999999Z", 1_767_578_400_123),
        ("2024-02-29", 1_709_164_800_000),
        ("9999-12-31T23:59:59.999999Z", LAST),
    ],
)
def test_t1_accepted_forms_are_read_to_the_millisecond(text: str, instant: int) -> None:
    assert parse_instant(text) == instant


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not an ISO 8601"),
        ("yesterday", "not an ISO 8601"),
        ("2026-01-05T02:00:00Z\n", "not an ISO 8601"),
        ("2026-01-05T24:00:00Z", "not an ISO 8601"),
        ("2026-01-05T23:59:60Z", "not an ISO 8601"),
        ("2026-13-01", "a day that does not exist"),
        ("2026-02-30T00:00:00Z", "a day that does not exist"),
        ("0000-01-01", "a day that does not exist"),
        ("1969-12-31T23:59:59.999Z", "outside the years 1970 to 9999"),
        ("9999-12-31T23:59:59-00:01", "outside the years 1970 to 9999"),
    ],
)
def test_a_refused_text_is_quoted_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        parse_instant(text)
    assert repr(text) in str(caught.value)


def test_an_instant_is_written_as_the_interface_writes_it() -> None:
    assert format_instant(1_767_578_400_007) == "2026-01-05T02:00:00.007Z"
    assert format_instant(0) == "1970-01-01T00:00:00.000Z"
    assert format_instant(LAST) == "9999-12-31T23:59:59.999Z"


@pytest.mark.parametrize("instant", [-1, LAST + 1, 10**40])
def test_an_instant_outside_the_years_has_no_text(instant: int) -> None:
    with pytest.raises(ValueError, match="outside the years 1970 to 9999"):
        format_instant(instant)


@given(st.integers(0, LAST))
def test_every_instant_survives_the_round_trip(instant: int) -> None:
    assert parse_instant(format_instant(instant)) == instant


@given(
    st.integers(2 * 86_400_000_000, (LAST - 2 * 86_400_000) * 1000),
    OFFSETS,
    st.sampled_from(["minutes", "seconds", "milliseconds", "microseconds"]),
)
def test_t1_reading_agrees_with_datetime_in_every_offset(
    microseconds: int, offset: int, precision: str
) -> None:
    moment = EPOCH + timedelta(microseconds=microseconds)
    text = moment.astimezone(timezone(timedelta(minutes=offset))).isoformat(timespec=precision)
    expected = datetime.fromisoformat(text) - EPOCH
    assert parse_instant(text) == expected // timedelta(milliseconds=1)


@given(st.text(st.sampled_from("0123456789-:.,TtZz+ ๑W"), max_size=30) | st.text())
def test_any_other_text_is_a_value_error(text: str) -> None:
    try:
        instant = parse_instant(text)
    except ValueError:
        return
    assert 0 <= instant <= LAST
