"""How operations may fail: statuses, codes, and texts as examples of them (section 7)."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from itertools import groupby
from typing import Any, NamedTuple

FAILURE = {"$ref": "#/components/schemas/Failure"}


class FailureKind(NamedTuple):
    """A code, the status it comes with, and one of its texts."""

    status: int
    code: str
    text: str


NO_KEY = FailureKind(401, "API_KEY_REQUIRED", "API key is required")
WRONG_KEY = FailureKind(401, "INVALID_API_KEY", "Invalid API key")
INVALID_ID = FailureKind(400, "INVALID_ID", "id must be a valid UUID")
INVALID_PAGE = FailureKind(400, "VALIDATION_FAILED", "page must be an integer of 1 or more")
INVALID_BODY = FailureKind(400, "VALIDATION_FAILED", "property foo should not exist")
NOT_ALLOWED = FailureKind(
    403, "CALLING_NOT_ALLOWED", "Your organization is not allowed to make calls."
)
NO_CAMPAIGN = FailureKind(404, "CAMPAIGN_NOT_FOUND", "Campaign not found")
NO_RECIPIENT = FailureKind(404, "RECIPIENT_NOT_FOUND", "Recipient not found")
NO_CALL = FailureKind(404, "CALL_NOT_FOUND", "Call not found")
STARTED = FailureKind(
    409,
    "CAMPAIGN_ALREADY_STARTED",
    "Campaign has already been started (current status: RUNNING)",
)
NOT_PAUSABLE = FailureKind(409, "INVALID_CAMPAIGN_STATE", "Cannot pause a DRAFT campaign")
TOO_LARGE = FailureKind(
    413, "PAYLOAD_TOO_LARGE", "The request body must not be larger than 1048576 bytes"
)
OUR_FAULT = FailureKind(500, "INTERNAL_ERROR", "Internal server error")


def failures(kinds: Iterable[FailureKind]) -> dict[str, Any]:
    """The responses of an operation that may fail in these ways, by status."""
    in_order = sorted(kinds, key=lambda kind: kind.status)
    return {
        str(status): _response(status, list(same))
        for status, same in groupby(in_order, key=lambda kind: kind.status)
    }


def _response(status: int, kinds: list[FailureKind]) -> dict[str, Any]:
    codes = [kind.code for kind in kinds]
    own = {"properties": {"statusCode": {"const": status}, "code": {"enum": codes}}}
    return {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}",
        "content": {
            "application/json": {
                "schema": {"allOf": [FAILURE, own]},
                "examples": {kind.code: {"value": _envelope(kind)} for kind in kinds},
            }
        },
    }


def _envelope(kind: FailureKind) -> dict[str, Any]:
    return {
        "success": False,
        "statusCode": kind.status,
        "code": kind.code,
        "message": kind.text,
        "errors": [kind.text],
    }
