"""Faults sown into a good log: each breaks one rule that bodies can show."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, NamedTuple

from dialsim.interface.instants import format_instant, parse_instant
from logs.good_log import Entry

Log = list[Entry]
Payload = dict[str, Any]
HOUR = 3_600_000


class Fault(NamedTuple):
    """A change of a log, and the rule that it breaks."""

    rule: str
    sow: Callable[[Log], None]


FAULTS: dict[str, Fault] = {}


def breaks(rule: str) -> Callable[[Callable[[Log], None]], Callable[[Log], None]]:
    def enter(sow: Callable[[Log], None]) -> Callable[[Log], None]:
        FAULTS[sow.__name__] = Fault(rule, sow)
        return sow

    return enter


def payloads(log: Log, choose: Callable[[Payload], bool], skip: int = 20) -> list[Payload]:
    """All bodies of one result: of the first one, after some, that is chosen."""
    bodies = [entry["body"]["payload"] for entry in log]
    chosen = next(body for body in bodies[skip:] if choose(body))
    return [
        body
        for body in bodies
        if body["call"]["id"] == chosen["call"]["id"]
        and body["isReAnalysis"] == chosen["isReAnalysis"]
        and body["dataExpired"] == chosen["dataExpired"]
    ]


def ends(status: str) -> Callable[[Payload], bool]:
    return lambda body: body["call"]["callStatus"] == status and not body["isReAnalysis"]


def is_re_analysis(body: Payload) -> bool:
    return bool(body["isReAnalysis"]) and not is_masked(body)


def is_masked(body: Payload) -> bool:
    return bool(body["dataExpired"]["personalData"])


def later(instant: str, ms: int) -> str:
    return format_instant(parse_instant(instant) + ms)


def set_call(bodies: Iterable[Payload], **values: Any) -> None:
    for body in bodies:
        body["call"].update(values)


def set_person(bodies: Iterable[Payload], **values: Any) -> None:
    for body in bodies:
        body["recipient"].update(values)


def set_campaign(bodies: Iterable[Payload], **values: Any) -> None:
    for body in bodies:
        body["campaign"].update(values)


def set_flags(bodies: Iterable[Payload], **values: Any) -> None:
    for body in bodies:
        body["dataExpired"].update(values)


def set_all(log: Log, **values: Any) -> None:
    set_campaign((entry["body"]["payload"] for entry in log), **values)


def move(bodies: Iterable[Payload], ms: int) -> None:
    for body in bodies:
        for name in ("callStartedAt", "callEndedAt"):
            if body["call"][name] is not None:
                body["call"][name] = later(body["call"][name], ms)


def call_again(log: Log, body: Payload, after: int, attempt: int) -> None:
    """One call more to the same person, not answered, so long after the end of the other."""
    entry: Entry = {"at": "", "attempt": 1, "response": 200, "received": True}
    again = deepcopy(body)
    again["call"] |= {
        "id": "00000000-0000-4000-8000-000000000001", "sessionId": "another one",
        "callStatus": "NO_ANSWER", "callStartedAt": None, "callDuration": None,
        "callEndedAt": later(body["call"]["callEndedAt"], after),
    }  # fmt: skip
    again["recipient"] |= {"callAttempt": attempt, "latestCallStatus": "NO_ANSWER"}
    again |= {"callResult": None, "recordUrl": None, "transcriptFileUrl": None}
    entry |= {
        "at": again["call"]["callEndedAt"],
        "body": {"type": "CALL_RESULT", "payload": again},
    }
    log.append(entry)


@breaks("F1")
def a_duration_that_is_too_long(log: Log) -> None:
    set_call(payloads(log, ends("COMPLETED")), callDuration="9999.000")


@breaks("F1")
def a_duration_with_two_decimals(log: Log) -> None:
    bodies = payloads(log, ends("COMPLETED"))
    set_call(bodies, callDuration=bodies[0]["call"]["callDuration"] + "0")


@breaks("F1")
def a_duration_without_a_conversation(log: Log) -> None:
    set_call(payloads(log, ends("BUSY")), callDuration="3.000")


@breaks("F1")
def no_duration_of_a_conversation(log: Log) -> None:
    set_call(payloads(log, ends("COMPLETED")), callDuration=None)


@breaks("F1")
def an_end_before_the_start(log: Log) -> None:
    bodies = payloads(log, ends("COMPLETED"))
    set_call(bodies, callEndedAt=later(bodies[0]["call"]["callStartedAt"], -1))


@breaks("F1")
def no_end(log: Log) -> None:
    set_call(payloads(log, ends("NO_ANSWER")), callEndedAt=None)


@breaks("P2")
def a_start_without_an_answer(log: Log) -> None:
    bodies = payloads(log, ends("NO_ANSWER"))
    set_call(bodies, callStartedAt=bodies[0]["call"]["callEndedAt"])


@breaks("P2")
def completed_without_a_start(log: Log) -> None:
    set_call(payloads(log, ends("COMPLETED")), callStartedAt=None, callDuration=None)


@breaks("F2")
def an_error_message_of_a_good_call(log: Log) -> None:
    set_call(payloads(log, ends("COMPLETED")), errorMessage="The line failed")


@breaks("F2")
def a_session_of_another_call(log: Log) -> None:
    set_call(payloads(log, ends("BUSY")), sessionId=log[0]["body"]["payload"]["call"]["sessionId"])


@breaks("F2")
def the_name_of_another_agent(log: Log) -> None:
    for body in payloads(log, ends("BUSY")):
        body["agentName"] = "Somebody"


@breaks("F3")
def the_name_of_another_campaign(log: Log) -> None:
    for body in payloads(log, ends("BUSY")):
        body["campaignName"] = "Other"


@breaks("W1")
def a_webhook_of_an_expired_call(log: Log) -> None:
    set_call(payloads(log, ends("CANCELLED")), callStatus="EXPIRED")


@breaks("W1")
def a_webhook_of_a_failed_analysis(log: Log) -> None:
    set_call(payloads(log, ends("COMPLETED")), callStatus="ANALYSIS_FAILED")


@breaks("W1")
def a_conversation_without_a_result(log: Log) -> None:
    for body in payloads(log, ends("COMPLETED")):
        body["callResult"] = None


@breaks("W1")
def a_result_without_a_conversation(log: Log) -> None:
    result = payloads(log, ends("COMPLETED"))[0]["callResult"]
    for body in payloads(log, ends("NO_ANSWER")):
        body["callResult"] = result


@breaks("W1")
def a_second_result_that_is_no_re_analysis(log: Log) -> None:
    entry = next(e for e in log if ends("COMPLETED")(e["body"]["payload"]))
    again = deepcopy(entry) | {"attempt": None, "at": later(entry["at"], HOUR)}
    again["body"]["payload"]["callResult"]["fixedAttr"]["callSummary"] = "Something else"
    log.append(again)


@breaks("W3")
def a_result_before_the_end(log: Log) -> None:
    entry = next(e for e in log[50:] if ends("COMPLETED")(e["body"]["payload"]))
    entry["at"] = later(entry["body"]["payload"]["call"]["callEndedAt"], -5_000)


@breaks("A5")
def a_re_analysis_of_a_call_without_an_answer(log: Log) -> None:
    for body in payloads(log, ends("FAILED")):
        body["isReAnalysis"] = True


@breaks("A5")
def a_re_analysis_in_another_session(log: Log) -> None:
    set_call(payloads(log, is_re_analysis), sessionId="another one")


@breaks("A5")
def a_fallback_that_replaces_a_good_result(log: Log) -> None:
    def has_error(body: Payload) -> bool:
        items = (body["callResult"] or {}).get("postCallAnalyticsResult")
        return bool(items) and "error" in items

    fallback = payloads(log, has_error, 0)[0]["callResult"]
    for body in payloads(log, lambda b: is_re_analysis(b) and not has_error(b)):
        body["callResult"] = fallback


@breaks("A5")
def a_re_analysis_before_the_first_result(log: Log) -> None:
    body = payloads(log, is_re_analysis)[0]
    for entry in log:
        payload = entry["body"]["payload"]
        if payload["call"]["id"] == body["call"]["id"] and not payload["isReAnalysis"]:
            entry["at"] = later(entry["at"], 300 * HOUR)


@breaks("A3")
def a_funnel_step_that_is_none(log: Log) -> None:
    for body in payloads(log, ends("COMPLETED")):
        body["callResult"]["fixedAttr"]["funnel"]["value"] = "Danced"


@breaks("A3")
def a_version_that_is_not_the_form(log: Log) -> None:
    for body in payloads(log, ends("COMPLETED")):
        body["callResult"]["version"] = "v1"


@breaks("D1")
def a_recording_that_is_gone(log: Log) -> None:
    for body in payloads(log, is_masked):
        body["recordUrl"] = "https://example.test/1.wav"


@breaks("D1")
def a_transcript_that_is_gone(log: Log) -> None:
    for body in payloads(log, is_masked):
        body["transcriptFileUrl"] = "https://example.test/1.json"


@breaks("D1")
def a_number_that_is_gone(log: Log) -> None:
    set_person(payloads(log, is_masked), tel="0812345678")


@breaks("D1")
def a_name_that_is_gone(log: Log) -> None:
    set_person(payloads(log, is_masked), customerName="Somsak")


@breaks("D1")
def parameters_that_are_gone(log: Log) -> None:
    set_person(payloads(log, is_masked), agentParams={"amount": 5})


@breaks("D1")
def a_mask_without_its_flag(log: Log) -> None:
    set_person(payloads(log, ends("BUSY")), tel="08xxxxxx12")


@breaks("D1")
def an_output_that_is_gone(log: Log) -> None:
    set_flags(payloads(log, ends("COMPLETED")), output=True)


@breaks("D1")
def a_masked_result_without_its_flag(log: Log) -> None:
    set_flags(payloads(log, lambda body: body["dataExpired"]["output"]), output=False)


@breaks("D2")
def a_flag_that_is_taken_back(log: Log) -> None:
    masked = payloads(log, is_masked)[0]["call"]["id"]
    entry = next(
        e for e in log
        if e["body"]["payload"]["call"]["id"] == masked and is_masked(e["body"]["payload"])
    )  # fmt: skip
    again = deepcopy(entry) | {"attempt": None, "at": later(entry["at"], HOUR)}
    again["body"]["payload"]["dataExpired"]["audio"] = False
    log.append(again)


@breaks("P5")
def an_attempt_that_is_not_counted(log: Log) -> None:
    set_person(payloads(log, ends("NO_ANSWER")), callAttempt=0)


@breaks("R1")
def more_attempts_than_allowed(log: Log) -> None:
    set_person(payloads(log, ends("NO_ANSWER")), callAttempt=4)


@breaks("R1")
def a_call_that_waits_after_the_last_attempt(log: Log) -> None:
    bodies = payloads(
        log, lambda body: ends("NO_ANSWER")(body) and body["recipient"]["callAttempt"] == 3
    )
    set_person(bodies, latestCallStatus="SCHEDULED")


@breaks("R3")
def a_newer_call_than_the_answered_one(log: Log) -> None:
    set_person(payloads(log, ends("COMPLETED")), latestCallStatus="QUEUED")


@breaks("R3")
def a_call_after_the_answer(log: Log) -> None:
    body = payloads(
        log, lambda body: ends("COMPLETED")(body) and body["recipient"]["callAttempt"] == 1
    )[0]
    call_again(log, body, HOUR, 2)


@breaks("R2")
def a_retry_too_early(log: Log) -> None:
    body = payloads(
        log,
        lambda body: ends("NO_ANSWER")(body) and body["recipient"]["callAttempt"] == 3,
    )[0]
    before = next(
        entry["body"]["payload"] for entry in reversed(log)
        if entry["body"]["payload"]["recipient"]["tel"] == body["recipient"]["tel"]
        and entry["body"]["payload"]["call"]["callEndedAt"] < body["call"]["callEndedAt"]
    )  # fmt: skip
    bodies = payloads(log, lambda other: other["call"]["id"] == body["call"]["id"], 0)
    set_call(bodies, callEndedAt=later(before["call"]["callEndedAt"], 300_000))


@breaks("C1")
def a_call_before_the_start(log: Log) -> None:
    set_all(log, scheduleStartAt="2026-01-05T02:30:00.000Z")


@breaks("C1")
def attempts_that_change(log: Log) -> None:
    set_campaign(payloads(log, ends("BUSY")), maxAttempts=5)


@breaks("C1")
def windows_that_change(log: Log) -> None:
    week = [{"dayOfWeek": 1, "time": [{"start": "08:00", "end": "20:00"}]}]
    set_campaign(payloads(log, ends("BUSY")), scheduleDateTimeWindow=week)


@breaks("C2")
def a_call_of_a_campaign_that_has_not_begun(log: Log) -> None:
    set_campaign(payloads(log, ends("BUSY")), status="SCHEDULED")


@breaks("C3")
def a_campaign_that_is_over_too_early(log: Log) -> None:
    set_campaign(payloads(log, ends("BUSY"), 0), status="COMPLETED")


@breaks("C7")
def a_call_after_the_end_date(log: Log) -> None:
    set_all(log, scheduleEndAt="2026-01-05T02:40:00.000Z")


@breaks("C9")
def a_retry_interval_that_is_refused(log: Log) -> None:
    set_all(log, retryInterval=299_999)


@breaks("C9")
def an_end_that_is_not_after_the_start(log: Log) -> None:
    set_all(log, scheduleEndAt="2026-01-05T02:00:00.000Z")


@breaks("C9")
def a_day_that_no_week_has(log: Log) -> None:
    week = [{"dayOfWeek": 8, "time": [{"start": "08:00", "end": "20:00"}]}]
    set_all(log, scheduleDateTimeWindow=week)


@breaks("T3")
def a_conversation_outside_the_windows(log: Log) -> None:
    week = [{"dayOfWeek": 1, "time": [{"start": "09:00", "end": "09:20"}]}]
    set_all(log, scheduleDateTimeWindow=week)


@breaks("Q6")
def a_queue_timeout_outside_the_windows(log: Log) -> None:
    week = [{"dayOfWeek": 1, "time": [{"start": "09:00", "end": "09:01"}]}]
    set_all(log, scheduleDateTimeWindow=week)


@breaks("Q1")
def more_calls_than_lines(log: Log) -> None:
    set_all(log, maxConcurrentCalls=3)


@breaks("W4")
def another_person_in_the_re_analysis(log: Log) -> None:
    set_person(payloads(log, is_re_analysis), tel="0800000000")


@breaks("W4")
def a_recording_of_nobody(log: Log) -> None:
    for body in payloads(log, ends("NO_ANSWER")):
        body["recordUrl"] = "https://example.test/1.wav"


@breaks("W4")
def a_second_post_that_differs(log: Log) -> None:
    entry = next(e for e in log[50:] if e["attempt"] == 2)
    entry["body"]["payload"]["recipient"]["callAttempt"] += 1


@breaks("W2")
def a_post_after_a_success(log: Log) -> None:
    entry = next(e for e in log[50:] if e["attempt"] == 1 and e["response"] == 200)
    log.append(deepcopy(entry) | {"attempt": 2, "at": later(entry["at"], 2_000)})


@breaks("W2")
def a_post_too_soon(log: Log) -> None:
    entry = next(e for e in log[50:] if e["attempt"] == 2)
    entry["at"] = later(entry["at"], -800)


@breaks("P2")
def a_status_of_another_system(log: Log) -> None:
    set_call(payloads(log, ends("NO_ANSWER")), callStatus="VOICEMAIL")


@breaks("P2")
def a_status_in_small_letters(log: Log) -> None:
    set_call(payloads(log, ends("NO_ANSWER")), callStatus="no_answer")


@breaks("C2")
def a_campaign_status_of_another_system(log: Log) -> None:
    set_campaign(payloads(log, ends("BUSY")), status="FINISHED")


@breaks("A3")
def a_version_that_is_none(log: Log) -> None:
    for body in payloads(log, ends("COMPLETED")):
        body["callResult"]["version"] = "v9"


@breaks("W4")
def a_latest_status_of_another_system(log: Log) -> None:
    set_person(payloads(log, ends("BUSY")), latestCallStatus="ENGAGED")


@breaks("W4")
def a_latest_status_of_a_call_that_was_not_made(log: Log) -> None:
    set_person(payloads(log, ends("NO_ANSWER")), latestCallStatus="BUSY")


@breaks("W4")
def a_latest_status_of_an_answer_that_was_not_given(log: Log) -> None:
    set_person(payloads(log, ends("FAILED")), latestCallStatus="COMPLETED")


@breaks("F2")
def the_id_of_another_agent(log: Log) -> None:
    for body in payloads(log, ends("BUSY")):
        body["agent"]["id"] = "00000000-0000-4000-8000-00000000000a"


def keep(log: Log, stays: Callable[[Payload], bool]) -> None:
    log[:] = [entry for entry in log if stays(entry["body"]["payload"])]


@breaks("W1")
def a_fifth_of_the_lines_deleted(log: Log) -> None:
    chosen = random.Random(5).sample(range(len(log)), len(log) // 5)
    log[:] = [entry for row, entry in enumerate(log) if row not in {*chosen}]


@breaks("W1")
def a_second_attempt_deleted(log: Log) -> None:
    tel = payloads(log, lambda body: body["recipient"]["callAttempt"] == 3)[0]["recipient"]["tel"]
    keep(log, lambda b: b["recipient"]["tel"] != tel or b["recipient"]["callAttempt"] != 2)


@breaks("W1")
def all_last_attempts_deleted(log: Log) -> None:
    keep(log, lambda body: body["recipient"]["callAttempt"] < 3)


@breaks("R2")
def a_retry_too_early_beside_a_wrong_number_of_attempts(log: Log) -> None:
    third = [
        body["recipient"]["tel"] for entry in log
        if (body := entry["body"]["payload"])["recipient"]["callAttempt"] == 3
    ]  # fmt: skip
    for entry in log:
        body = entry["body"]["payload"]
        if body["recipient"]["tel"] == third[-1] and body["recipient"]["callAttempt"] == 3:
            body["recipient"]["callAttempt"] = 2
    a_retry_too_early(log)


@breaks("R3")
def a_call_after_the_answer_beside_a_wrong_number_of_attempts(log: Log) -> None:
    body = payloads(log, lambda body: body["recipient"]["callAttempt"] == 3)[0]
    bodies = payloads(log, lambda other: other["call"]["id"] == body["call"]["id"], 0)
    set_person(bodies, callAttempt=1)
    a_call_after_the_answer(log)
