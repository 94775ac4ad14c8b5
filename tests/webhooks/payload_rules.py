"""The interface's rules for a `CALL_RESULT`, sections 2.6, 2.7, 6.3, 6.4 and 6.6, as a checker.

Written from the interface alone: nothing here comes from the code that makes payloads. `broken`
lists every rule that a body breaks, by the path of the culprit; an empty list means a valid body.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Check = Callable[[Any, str], list[str]]

UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
INSTANT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
CALL_STATUSES = (
    *("SCHEDULED", "QUEUED", "INITIATED", "COMPLETED", "NO_ANSWER", "BUSY", "FAILED"),
    *("CANCELLED", "EXPIRED", "ANALYSIS_FAILED"),
)
CAMPAIGN_STATUSES = (
    *("DRAFT", "SCHEDULED", "RUNNING", "PAUSED", "COMPLETED", "CANCELLED", "EXPIRED"),
)
SENT = ("COMPLETED", "NO_ANSWER", "BUSY", "FAILED", "CANCELLED")  # 6.3


def broken(body: Any) -> list[str]:
    """Every rule that a body breaks."""
    faults = BODY(body, "body")
    return faults or [*_call_faults(body["payload"]), *_expiry_faults(body["payload"])]


# -- kinds of values ---------------------------------------------------------------------------


def text(pattern: str = r"(?s).*") -> Check:
    def check(value: Any, path: str) -> list[str]:
        good = isinstance(value, str) and re.fullmatch(pattern, value)
        return [] if good else [f"{path} is {value!r}"]

    return check


def one_of(*values: Any) -> Check:
    def check(value: Any, path: str) -> list[str]:
        return [] if value in values and not isinstance(value, int) else [f"{path} is {value!r}"]

    return check


def boolean(value: Any, path: str) -> list[str]:
    return [] if isinstance(value, bool) else [f"{path} is {value!r}"]


def integer(least: int = 0) -> Check:
    def check(value: Any, path: str) -> list[str]:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return [] if good else [f"{path} is {value!r}"]

    return check


def anything(value: Any, path: str) -> list[str]:
    return []


def nullable(check: Check) -> Check:
    return lambda value, path: [] if value is None else check(value, path)


def items(check: Check, least: int = 0) -> Check:
    def each(value: Any, path: str) -> list[str]:
        if not isinstance(value, list) or len(value) < least:
            return [f"{path} is {value!r}"]
        return [fault for i, item in enumerate(value) for fault in check(item, f"{path}.{i}")]

    return each


def mapping(check: Check) -> Check:
    def each(value: Any, path: str) -> list[str]:
        if not isinstance(value, dict):
            return [f"{path} is {value!r}"]
        return [fault for key, item in value.items() for fault in check(item, f"{path}.{key}")]

    return each


def object_of(fields: dict[str, Check], optional: dict[str, Check] | None = None) -> Check:
    """An object with these fields, in this order, the optional ones anywhere behind."""

    def check(value: Any, path: str) -> list[str]:
        if not isinstance(value, dict):
            return [f"{path} is {value!r}"]
        extra = {key: optional[key] for key in value if optional and key in optional}
        if [key for key in value if key not in extra] != [*fields]:
            return [f"{path} has the keys {[*value]}, not {[*fields]}"]
        return [
            fault
            for key, one in (fields | extra).items()
            for fault in one(value[key], f"{path}.{key}")
        ]

    return check


# -- the objects of the interface -------------------------------------------------------------

PARAM = object_of(
    {"type": one_of("text", "number", "boolean"), "required": boolean},
    {
        "description": text(),
        "default": anything,
        "spell": anything,
        "pronunciation_map": anything,
    },
)
DAY = object_of(
    {
        "dayOfWeek": integer(1),
        "time": items(
            object_of({"start": text(r"[0-2]\d:[0-5]\d"), "end": text(r"[0-2]\d:[0-5]\d")}), 1
        ),
    }
)
CAMPAIGN = object_of(  # 2.7
    {
        "id": text(UUID),
        "name": text(),
        "status": one_of(*CAMPAIGN_STATUSES),
        "maxAttempts": integer(1),
        "maxConcurrentCalls": integer(0),
        "retryInterval": integer(0),
        "scheduleStartAt": text(INSTANT),
        "scheduleEndAt": nullable(text(INSTANT)),
        "scheduleDateTimeWindow": items(DAY, 1),
        "sipAccountId": nullable(text(UUID)),
    }
)
FIELD = object_of(
    {"type": text(), "value": anything, "required": boolean},
    {"description": text(), "enumVariant": nullable(items(text()))},
)
FIXED = object_of(
    {"callSummary": text()},
    {"funnel": object_of({"funnelFlow": items(text(), 1), "value": text()})},
)


def result(value: Any, path: str) -> list[str]:
    """2.6: v2 has postCallAnalyticsResult, v1 has customizableAttr, and a fallback is v2."""
    version = value.get("version") if isinstance(value, dict) else None
    custom = "customizableAttr" if version == "v1" else "postCallAnalyticsResult"
    shape = object_of({"version": one_of("v1", "v2"), "fixedAttr": FIXED, custom: mapping(FIELD)})
    faults = shape(value, path)
    if not faults and "error" in value[custom]:
        faults = _fallback_faults(value, path)
    elif not faults and "funnel" in value["fixedAttr"]:
        funnel = value["fixedAttr"]["funnel"]
        if funnel["value"] not in (*funnel["funnelFlow"], "Unknown"):
            faults = [f"{path}.fixedAttr.funnel.value is not among its steps"]
    return faults


def _fallback_faults(value: dict[str, Any], path: str) -> list[str]:
    fixed, custom = value["fixedAttr"], value.get("postCallAnalyticsResult", {})
    error = custom.get("error", {})
    nobody_spoke = error.get("value") == "No conversation"
    rules = {
        "is v2": value["version"] == "v2",
        "has the single key error": [*custom] == ["error"],
        "has a string as error": error.get("type") == "string" and error.get("required") is True,
        "describes the error": isinstance(error.get("description"), str),
        "has enumVariant null": "enumVariant" in error and error["enumVariant"] is None,
        "says Unknown": fixed.get("funnel", {}).get("value") == "Unknown",
        "lists Unknown alone": nobody_spoke or fixed["funnel"]["funnelFlow"] == ["Unknown"],
        "says No conversation twice": (fixed["callSummary"] == "No conversation") == nobody_spoke,
    }
    return [f"{path}: a fallback {rule}" for rule, holds in rules.items() if not holds]


BODY = object_of(  # 6.4
    {
        "type": one_of("CALL_RESULT"),
        "payload": object_of(
            {
                "isReAnalysis": boolean,
                "agentName": text(),
                "campaignName": text(),
                "call": object_of(
                    {
                        "id": text(UUID),
                        "sessionId": text(UUID),
                        "callStatus": one_of(*SENT),
                        "callStartedAt": nullable(text(INSTANT)),
                        "callEndedAt": nullable(text(INSTANT)),
                        "callDuration": nullable(text(r"[0-9]+\.[0-9]{3}")),
                        "errorMessage": nullable(text(r".+")),
                    }
                ),
                "recipient": object_of(
                    {
                        "tel": text(r"\+?[0-9]+|[0-9]{2}x+[0-9]{2}"),
                        "customerName": nullable(text()),
                        "callAttempt": integer(0),
                        "latestCallStatus": one_of(*CALL_STATUSES),
                        "agentParams": mapping(anything),
                    }
                ),
                "agent": object_of(
                    {"id": text(UUID), "name": text(), "paramsSchema": nullable(mapping(PARAM))}
                ),
                "campaign": CAMPAIGN,
                "callResult": nullable(mapping(anything)),
                "recordUrl": nullable(text(r"https?://\S+")),
                "transcriptFileUrl": nullable(text(r"https?://\S+")),
                "dataExpired": object_of(
                    {"audio": boolean, "personalData": boolean, "output": boolean}
                ),
            }
        ),
    }
)


def _call_faults(payload: dict[str, Any]) -> list[str]:
    """Nulls that depend on how the call ended."""
    call, completed = payload["call"], payload["call"]["callStatus"] == "COMPLETED"
    links = payload["recordUrl"], payload["transcriptFileUrl"]
    rules = {
        "answered calls have a start": (call["callStartedAt"] is not None) == completed,
        "every end is known": call["callEndedAt"] is not None,
        "conversations have a duration": (call["callDuration"] is not None) == completed,
        "only completed calls have results": (payload["callResult"] is not None) == completed,
        "only completed calls have files": completed or links == (None, None),
        "only completed calls are re-analyzed": completed or not payload["isReAnalysis"],
        "names are repeated": payload["agentName"] == payload["agent"]["name"]
        and payload["campaignName"] == payload["campaign"]["name"],
    }
    return [rule for rule, holds in rules.items() if not holds]


def _expiry_faults(payload: dict[str, Any]) -> list[str]:
    """6.6: what the three flags do."""
    expired, recipient, found = payload["dataExpired"], payload["recipient"], payload["callResult"]
    params = recipient["agentParams"]
    kept = {key: value for key, value in params.items() if not key.startswith("metadata__")}
    has_audio, has_transcript = payload["recordUrl"], payload["transcriptFileUrl"]
    completed = payload["call"]["callStatus"] == "COMPLETED"
    hidden = re.fullmatch(r"[0-9]{2}x+[0-9]{2}", recipient["tel"]) is not None
    rules = {
        "the recording goes with audio": (has_audio is None) == (expired["audio"] or not completed),
        "the transcript goes with personal data": (has_transcript is None)
        == (expired["personalData"] or not completed),
        "the number is masked with personal data": hidden == expired["personalData"],
        "the name is empty with personal data": not expired["personalData"]
        or recipient["customerName"] == "",
        "parameters are null with personal data": not expired["personalData"]
        or all(value is None for value in kept.values()),
    }
    faults = [rule for rule, holds in rules.items() if not holds]
    if found is not None:
        faults += _emptied_faults(found) if expired["output"] else result(found, "callResult")
    return faults


def _emptied_faults(value: Any, path: str = "callResult") -> list[str]:
    """An expired result: every key with null (6.6), but for metadata__… keys."""
    if isinstance(value, dict):
        return [
            fault
            for key, item in value.items()
            if not key.startswith("metadata__")
            for fault in _emptied_faults(item, f"{path}.{key}")
        ]
    return [] if value is None else [f"{path} is {value!r}"]
