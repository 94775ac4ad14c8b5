"""The schedule request's JSON Schema against its ordered rules: they mean the same bodies."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from dialsim.errors import ValidationFailed
from dialsim.interface.instants import INSTANT_PATTERN, parse_instant_or_epoch
from dialsim.interface.schedule import (
    CallingAccount,
    ScheduleRequest,
    check_conditions,
    check_duplicate_alert,
    read_schedule,
)

SCHEMA = Draft202012Validator(ScheduleRequest.model_json_schema())
ACCOUNT_ID, CALLER_ID = (
    "5aaaaaaa-0000-4000-8000-000000000001",
    "5bbbbbbb-0000-4000-8000-000000000001",
)
ACCOUNT = CallingAccount(
    caller_ids=frozenset({"021000001"}),
    sip_accounts={ACCOUNT_ID: {CALLER_ID: "021000009"}},
    duplicate_call_alert=False,
)
VOICES = {"malee"}

# Rules on the world, on the calendar, or on two values, which no schema can express.
BEYOND_A_SCHEMA = (
    r"(start|end)DateTime must be a valid ISO 8601 date string",  # of a day that does not exist
    r"Start date must be before end date",
    r"Start time must be before end time for day [1-7]",
    r"Unknown (voice|caller ID): .*",
    r"Unknown SIP account",
    r"The specified caller ID does not belong to the selected SIP account",
    r"Duplicate call alert is not enabled for this organization",
)

ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
INSTANTS = st.sampled_from(
    [
        *("2026-01-05T02:00:00Z", "2026-01-12", "1969-12-31T23:30:00-01:00", "2024-02-29"),
        *("2023-02-29", "2026-04-31", "2026-13-01", "1969-12-31", "9999-12-31T23:59-01", "soon"),
        *("2026-01-05T24:00Z", "1970-01-01T00:00+07:00", "0000-01-01", "2026-1-5", ""),
    ]
) | st.from_regex(INSTANT_PATTERN, fullmatch=True)
TIMES = st.sampled_from(["09:00", "19:00", "23:59", "24:00", "9:00", "00:00"])
RANGES = st.fixed_dictionaries({"start": TIMES, "end": TIMES})
DAYS = st.fixed_dictionaries(
    {"dayOfWeek": st.integers(0, 8) | st.just(5.0), "time": st.lists(RANGES, max_size=2)}
)
UUIDS = st.sampled_from([ACCOUNT_ID, CALLER_ID, ACCOUNT_ID.upper(), "x"])
FIELDS = {
    "endDateTime": INSTANTS,
    "timeWindows": st.lists(DAYS, max_size=2),
    "maxAttempts": st.integers(-1, 4) | st.sampled_from([1.0, 2.0, 2.5, 10**30]),
    "retryInterval": st.sampled_from([-1, 0, 0.0, 1, 299_999, 300_000, 3e5, 300_000.5, 10**30]),
    "callerIds": st.lists(st.sampled_from(["021000001", "999"]), max_size=2),
    "sipAccountId": UUIDS,
    "sipCallerId": UUIDS,
    "ttsVoiceKeys": st.lists(st.sampled_from(["malee", "nobody"]), max_size=2),
    "removeDuplicates": st.booleans(),
}
BODIES = st.fixed_dictionaries(
    {"startDateTime": INSTANTS},
    optional={name: values | st.none() for name, values in FIELDS.items()},
)
WILD = st.fixed_dictionaries(
    {},
    optional={
        "startDateTime": INSTANTS | ANYTHING,
        "foo": ANYTHING,
        **{name: values | ANYTHING for name, values in FIELDS.items()},
    },
)


def failures(body: Any) -> tuple[str, ...]:
    """The texts of the step that refuses a body; none if it is accepted."""
    try:
        check_conditions(read_schedule(body), ACCOUNT, VOICES)
        check_duplicate_alert(read_schedule(body), ACCOUNT)
    except ValidationFailed as refused:
        return refused.errors
    return ()


@given(BODIES | WILD | ANYTHING)
def test_c10_a_body_that_fits_fails_only_what_no_schema_can_say_and_no_other_is_accepted(
    body: Any,
) -> None:
    texts = failures(body)
    if SCHEMA.is_valid(body):
        event("fits, refused" if texts else "fits, accepted")
        for text in texts:
            assert any(re.fullmatch(known, text) for known in BEYOND_A_SCHEMA), text
    else:
        event("does not fit")
        assert texts


@given(INSTANTS | st.text(max_size=30))
def test_the_pattern_of_instants_lets_every_instant_through(text: str) -> None:
    try:
        parse_instant_or_epoch(text)
    except ValueError:
        return
    assert re.search(INSTANT_PATTERN, text)


def test_the_pattern_of_instants_leaves_leap_years_and_the_ends_of_time_alone() -> None:
    for text in ("2023-02-29", "1969-12-31", "0001-01-01", "9999-12-31T23:59-01"):
        assert re.search(INSTANT_PATTERN, text)
    for text in ("2026-02-30", "2026-04-31", "2026-13-01", "0000-01-01"):
        assert not re.search(INSTANT_PATTERN, text)
