"""The schedule request against golden texts, and against arbitrary JSON."""

import copy
import json
import math
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialsim.errors import ValidationFailed
from dialsim.interface.instants import parse_instant
from dialsim.interface.model import Fault
from dialsim.interface.schedule import (
    CallingAccount,
    DayWindows,
    ScheduleRequest,
    TimeRange,
    check_conditions,
    check_duplicate_alert,
    read_schedule,
)

GOLDEN = json.loads(Path(__file__).with_name("schedule_errors.json").read_text("utf-8"))
START = "2026-01-05T02:00:00Z"
MOST = 2**53 - 1  # integers that JSON has exactly
ACCOUNT = CallingAccount(
    caller_ids=frozenset({"021000001", "021000002"}),
    sip_accounts={
        "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10": {
            "c0a5b3d2-9c4e-4d6f-8a43-51d0f5b7e921": "021000003"
        }
    },
    duplicate_call_alert=False,
)
VOICES = {"malee", "kanya"}


def refusal(body: object) -> ValidationFailed:
    with pytest.raises(ValidationFailed) as caught:
        read_schedule(body)
    return caught.value


def condition_faults(body: object) -> tuple[Fault, ...]:
    """Return the failures of step 4, then of step 6 (C9)."""
    faults: tuple[Fault, ...] = ()
    request = read_schedule(body)
    for check in (partial(check_conditions, voice_keys=VOICES), check_duplicate_alert):
        try:
            check(request, ACCOUNT)
        except ValidationFailed as error:
            faults += error.faults
    return faults


# -- the golden texts --------------------------------------------------------------------------


@pytest.mark.parametrize("case", GOLDEN["shape"], ids=lambda case: case["case"])
def test_c10_a_malformed_body_is_refused_with_exactly_these_errors(case: dict[str, Any]) -> None:
    error = refusal(case["body"])
    assert list(error.errors) == case["errors"]
    assert (error.status, error.code, error.message) == (
        400,
        "VALIDATION_FAILED",
        case["errors"][0],
    )


@pytest.mark.parametrize("case", GOLDEN["conditions"], ids=lambda case: case["case"])
def test_c9_a_well_formed_body_fails_exactly_these_conditions(case: dict[str, Any]) -> None:
    faults = condition_faults(case["body"])
    assert [fault.message for fault in faults] == case["errors"]


@pytest.mark.parametrize(
    "case", GOLDEN["shape"] + GOLDEN["conditions"], ids=lambda case: case["case"]
)
def test_a_fault_names_a_place_in_the_body(case: dict[str, Any]) -> None:
    try:
        faults = condition_faults(case["body"])
    except ValidationFailed as error:
        faults = error.faults
    for fault in faults:
        place = case["body"]
        for depth, key in enumerate(fault.path, start=1):
            present = key in place if isinstance(key, str) else key < len(place)
            assert present or (depth == len(fault.path) and isinstance(place, dict))
            place = place[key] if present else None


# -- what golden JSON can't say ----------------------------------------------------------------


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("field", ["maxAttempts", "retryInterval"])
def test_c10_nan_and_infinity_are_no_integers(field: str, number: float) -> None:
    errors = refusal({"startDateTime": START, field: number}).errors
    assert errors == (f"{field} must be an integer number",)


def test_c10_one_point_zero_is_the_integer_one() -> None:
    request = read_schedule({"startDateTime": START, "maxAttempts": 1.0, "retryInterval": 3e5})
    assert (request.max_attempts, request.retry_interval) == (1, 300_000)
    assert type(request.retry_interval) is int


def test_integers_are_taken_as_far_as_json_has_them_exactly() -> None:
    body = {"startDateTime": START, "maxAttempts": MOST, "retryInterval": MOST}
    request = read_schedule(body)
    assert (request.max_attempts, request.retry_interval) == (MOST, MOST)
    for beyond in (MOST + 1, 10**40, 1e20):
        body = {"startDateTime": START, "maxAttempts": beyond, "retryInterval": beyond}
        assert refusal(body).errors == (
            f"maxAttempts must not be greater than {MOST}",
            f"retryInterval must not be greater than {MOST}",
        )


@pytest.mark.parametrize(
    "text", ["1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00+07:00", "1900-01-01", "0001-01-01"]
)
def test_c9_a_start_before_1970_is_past_like_any_other(text: str) -> None:
    assert read_schedule({"startDateTime": text}).start_date_time == 0


def test_half_a_surrogate_pair_is_no_string() -> None:
    errors = refusal({"startDateTime": START, "callerIds": ["\ud800"], "\udfff": 1}).errors
    assert errors == (
        "property \\udfff should not exist",
        "each value in callerIds must be a string",
    )


def test_a_fault_leads_to_its_culprit() -> None:
    body = {
        "startDateTime": START,
        "timeWindows": [{"dayOfWeek": 1, "time": [{"start": "09:00", "end": "9:30", "x": 0}]}],
        "ttsVoiceKeys": ["malee", 5],
        "foo": 1,
    }
    assert [fault.path for fault in refusal(body).faults] == [
        ("foo",),
        ("timeWindows", 0, "time", 0, "x"),
        ("timeWindows", 0, "time", 0, "end"),
        ("ttsVoiceKeys", 1),
    ]


def test_a_failed_condition_leads_to_its_culprit() -> None:
    body = {
        "startDateTime": START,
        "endDateTime": START,
        "timeWindows": [
            {"dayOfWeek": 1, "time": []},
            {"dayOfWeek": 2, "time": [{"start": "09:00", "end": "09:00"}]},
        ],
        "callerIds": ["021000001", "0"],
    }
    assert [fault.path for fault in condition_faults(body)] == [
        ("endDateTime",),
        ("timeWindows", 0, "time"),
        ("timeWindows", 1, "time", 0),
        ("callerIds", 1),
    ]


def test_duplicate_removal_is_fine_where_the_organization_has_the_feature() -> None:
    request = read_schedule({"startDateTime": START, "removeDuplicates": True})
    account = CallingAccount(frozenset(), {}, duplicate_call_alert=True)
    check_duplicate_alert(request, account)
    with pytest.raises(ValidationFailed, match="Duplicate call alert is not enabled"):
        check_duplicate_alert(request, ACCOUNT)


def test_a_rejection_survives_a_trip_to_another_process() -> None:
    error = refusal({"foo": 1})
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.faults, copied.errors, copied.status) == (error.faults, error.errors, 400)


# -- defaults ----------------------------------------------------------------------------------


def test_c9_only_the_start_is_needed_and_the_rest_has_defaults() -> None:
    request = read_schedule({"startDateTime": START})
    assert request.start_date_time == parse_instant(START)
    assert request.end_date_time is None
    assert (request.max_attempts, request.retry_interval) == (1, 0)
    assert (request.caller_ids, request.tts_voice_keys) == (None, None)
    assert (request.sip_account_id, request.sip_caller_id) == (None, None)
    assert request.remove_duplicates is False


def test_t3_the_default_windows_are_written_out() -> None:
    windows = read_schedule({"startDateTime": START}).time_windows
    hours = [(day.day_of_week, day.time[0].start, day.time[0].end) for day in windows]
    assert hours == [
        *((day, "09:00", "19:00") for day in range(1, 6)),
        (6, "10:00", "19:00"),
        (7, "10:00", "19:00"),
    ]
    assert all(len(day.time) == 1 for day in windows)


def test_windows_are_kept_as_sent() -> None:
    time = [{"start": "13:00", "end": "14:30"}, {"start": "09:00", "end": "13:00"}]
    sent = [{"dayOfWeek": 7, "time": time}, {"dayOfWeek": 1, "time": time}]
    request = read_schedule({"startDateTime": START, "timeWindows": sent})
    assert request.model_dump(mode="json", by_alias=True)["timeWindows"] == sent
    assert request.time_windows[1] == DayWindows(
        day_of_week=1,
        time=(TimeRange(start="13:00", end="14:30"), TimeRange(start="09:00", end="13:00")),
    )
    span = request.time_windows[0].time[0]
    assert (span.start_minute, span.end_minute) == (780, 870)


def test_c9_a_buddhist_year_is_a_year_like_any_other_for_programs() -> None:
    request = read_schedule({"startDateTime": "2569-01-05", "endDateTime": "2569-01-06T00:00Z"})
    assert request.end_date_time == request.start_date_time + 86_400_000
    assert request.model_dump(mode="json", by_alias=True)["startDateTime"][:10] == "2569-01-05"


@pytest.mark.parametrize(("attempts", "interval"), [(1, 0), (2, 3_600_000), (9, 3_600_000)])
def test_c9_an_interval_left_out_is_an_hour_where_there_are_retries(
    attempts: int, interval: int
) -> None:
    for retry in ({}, {"retryInterval": None}):
        request = read_schedule({"startDateTime": START, "maxAttempts": attempts, **retry})
        assert request.retry_interval == interval


# -- arbitrary bodies --------------------------------------------------------------------------

INSTANTS = st.sampled_from(["2026-01-05", "2026-01-05T10:00:00+07:00", START, "2030-06-01T00:00z"])
TIMES = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59))
RANGES = st.fixed_dictionaries({"start": TIMES, "end": TIMES})
DAYS = st.fixed_dictionaries(
    {"dayOfWeek": st.integers(1, 7) | st.just(3.0), "time": st.lists(RANGES, max_size=3)}
)
TEXTS = st.lists(st.text(max_size=5), min_size=1, max_size=3)
UUIDS = st.uuids().map(str) | st.uuids().map(lambda uuid: str(uuid).upper())
BODIES = st.fixed_dictionaries(
    {"startDateTime": INSTANTS},
    optional={
        "endDateTime": st.none() | INSTANTS,
        "timeWindows": st.none() | st.lists(DAYS, max_size=4),
        "maxAttempts": st.none() | st.integers(1, MOST) | st.just(2.0),
        "retryInterval": st.none() | st.integers(0, MOST),
        "callerIds": st.none() | TEXTS,
        "sipAccountId": st.none() | UUIDS,
        "sipCallerId": st.none() | UUIDS,
        "ttsVoiceKeys": st.none() | TEXTS,
        "removeDuplicates": st.none() | st.booleans(),
    },
)
NAMES = st.sampled_from(
    [
        *ScheduleRequest.model_json_schema()["properties"],
        *("dayOfWeek", "time", "start", "end", "foo", ""),
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=6)
    | INSTANTS
    | TIMES
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=40)
@given(
    JSON
    | st.dictionaries(NAMES, JSON)
    | BODIES.flatmap(
        lambda body: st.dictionaries(st.sampled_from(sorted(body)), JSON).map(
            lambda bad: body | bad
        )
    )
)
def test_any_json_is_read_or_refused_and_left_as_it_was(body: object) -> None:
    before = copy.deepcopy(body)
    try:
        read_schedule(body)
    except ValidationFailed as error:
        errors = error.errors
    else:
        errors = ()
    assert len(set(errors)) == len(errors)
    assert all(errors)
    assert repr(body) == repr(before)


@given(BODIES)
def test_a_valid_body_is_read_the_same_after_a_round_trip(body: dict[str, Any]) -> None:
    request = read_schedule(body)
    assert read_schedule(body) == request
    assert read_schedule(request.model_dump(mode="json", by_alias=True)) == request
    assert request.start_date_time == parse_instant(body["startDateTime"])
    attempts = body.get("maxAttempts")
    assert request.max_attempts == (1 if attempts is None else attempts)
    sent = body.get("timeWindows")
    assert sent is None or len(request.time_windows) == len(sent)


@given(BODIES, st.permutations(range(11)))
def test_c10_the_order_of_fields_does_not_matter(body: dict[str, Any], order: list[int]) -> None:
    fields = list(body.items())
    shuffled = dict(fields[index] for index in order if index < len(fields))
    assert read_schedule(shuffled) == read_schedule(body)
    assert condition_faults(shuffled) == condition_faults(body)


# -- the JSON Schema ---------------------------------------------------------------------------


def test_the_json_schema_describes_every_field_and_requires_only_the_start() -> None:
    schema = ScheduleRequest.model_json_schema()
    assert schema["required"] == ["startDateTime"]
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == [
        *("startDateTime", "endDateTime", "timeWindows", "maxAttempts", "retryInterval"),
        *("callerIds", "sipAccountId", "sipCallerId", "ttsVoiceKeys", "removeDuplicates"),
    ]
    described = [
        *schema["properties"].values(),
        *schema["$defs"]["DayWindows"]["properties"].values(),
        *schema["$defs"]["TimeRange"]["properties"].values(),
    ]
    assert all(field["description"] for field in described)


def test_the_json_schema_examples_are_accepted_together() -> None:
    properties = ScheduleRequest.model_json_schema()["properties"]
    body = {name: field["examples"][0] for name, field in properties.items()}
    assert read_schedule(body).max_attempts == 3


def test_c9_the_json_schema_allows_null_where_it_counts_as_absent() -> None:
    properties = ScheduleRequest.model_json_schema()["properties"]
    nullable = {
        name for name, field in properties.items() if {"type": "null"} in field.get("anyOf", [])
    }
    assert set(properties) - nullable == {"startDateTime"}
