"""Failures of operations: statuses, codes and example texts (section 7, and dialsim's own)."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from itertools import groupby
from typing import Any, NamedTuple, Self

from dialsim.engine.campaign import (
    already_started,
    calling_not_allowed,
    campaign_not_found,
    wrong_state,
)
from dialsim.errors import Refused
from dialsim.interface import CampaignStatus

FAILURE = {"$ref": "#/components/schemas/Failure"}


MOST_FAULTS = 100
MOST_SNAPSHOTS = 100


class FailureKind(NamedTuple):
    """Failure: code, HTTP status and an example text; `marked` for injected faults."""

    status: int
    code: str
    text: str
    marked: bool = False

    @classmethod
    def of(cls, refused: Refused) -> Self:
        """Return the failure that answers a refusal of the engine."""
        return cls(refused.status, refused.code, refused.message)

    def refused(self, text: str | None = None) -> Refused:
        """Return the refusal, with the text of this case instead of the example."""
        return Refused(self.status, self.code, [text or self.text])


# The texts are examples for the description. A refusal may have a text of its own case.
NO_KEY = FailureKind(401, "API_KEY_REQUIRED", "API key is required")
WRONG_KEY = FailureKind(401, "INVALID_API_KEY", "Invalid API key")
INVALID_PAGE = FailureKind(400, "VALIDATION_FAILED", "page must be an integer of 1 or more")
INVALID_BODY = FailureKind(400, "VALIDATION_FAILED", "property foo should not exist")
NOT_ALLOWED = FailureKind.of(calling_not_allowed())
NO_CAMPAIGN = FailureKind.of(campaign_not_found())
NO_RECIPIENT = FailureKind(404, "RECIPIENT_NOT_FOUND", "Recipient not found")
NO_CALL = FailureKind(404, "CALL_NOT_FOUND", "Call not found")
STARTED = FailureKind.of(already_started(CampaignStatus.RUNNING))
NOT_PAUSABLE = FailureKind.of(wrong_state("pause", CampaignStatus.DRAFT))
TOO_LARGE = FailureKind(
    413, "PAYLOAD_TOO_LARGE", "The request body must not be larger than 1048576 bytes"
)
OUR_FAULT = FailureKind(500, "INTERNAL_ERROR", "Internal server error")
ASKED_FOR = (
    WRONG_KEY._replace(marked=True),
    FailureKind(429, "TOO_MANY_REQUESTS", "Too many requests", marked=True),
    OUR_FAULT._replace(marked=True),
    FailureKind(502, "BAD_GATEWAY", "Bad gateway", marked=True),
    FailureKind(503, "SERVICE_UNAVAILABLE", "Service unavailable", marked=True),
    FailureKind(504, "GATEWAY_TIMEOUT", "Gateway timeout", marked=True),
)
"""Failures that operators can inject into requests; an internal error is among them."""
NOT_KEPT = FailureKind(
    507,
    "NOT_KEPT",
    "It is not done, as it can't be kept: team.journal can't be written: database or disk is full",
)
"""Failure of every changing operation in a sandbox with a journal."""
NO_TOKEN = FailureKind(401, "CONTROL_TOKEN_REQUIRED", "The control token is required")
WRONG_TOKEN = FailureKind(401, "INVALID_CONTROL_TOKEN", "Invalid control token")
ELSEWHERE = FailureKind(403, "FORBIDDEN", "The control plane answers this machine alone")
OTHER_SITE = ELSEWHERE._replace(text="The control plane answers no pages of other sites")
TOO_LARGE_HERE = TOO_LARGE._replace(text="The request body must not be larger than 268435456 bytes")
NOT_JSON = FailureKind(
    415, "UNSUPPORTED_MEDIA_TYPE", 'Content-Type must be application/json, not "text/plain"'
)
GUARDED = (NO_TOKEN, WRONG_TOKEN, ELSEWHERE, INVALID_BODY, OUR_FAULT)
"""Failures of every request of the control plane."""
BODY = (TOO_LARGE_HERE, NOT_JSON)
"""Further failures of a request with a body."""
BEFORE_NOW = FailureKind(
    400, "VALIDATION_FAILED", "to must not be before now, 2026-01-05T02:00:00.000Z"
)
CLOCK_BUSY = FailureKind(409, "CLOCK_BUSY", "The clock is being moved already")
CLOCK_RUNNING = FailureKind(
    409, "CLOCK_RUNNING", "The clock runs by itself; set its mode to manual first"
)
NOT_IDLE = FailureKind(
    409,
    "NOT_IDLE",
    "After a year there is still something to happen, at 2027-01-06T02:00:00.000Z",
)
NOT_RESUMABLE = FailureKind.of(wrong_state("resume", CampaignStatus.RUNNING))
NOT_CANCELLABLE = FailureKind.of(wrong_state("cancel", CampaignStatus.COMPLETED))
NOT_DELIVERED = FailureKind(
    409,
    "INVALID_CALL_STATE",
    "Cannot re-analyze a call whose result has not been delivered yet",
)
NO_WEBHOOK = FailureKind(404, "WEBHOOK_NOT_FOUND", "Webhook not found")
NO_WEBHOOK_URL = FailureKind(409, "NO_WEBHOOK_URL", "The organization has no webhook URL")
NO_ORGANIZATION = FailureKind(404, "ORGANIZATION_NOT_FOUND", "Organization not found")
STATE_REPLACED = FailureKind(
    409,
    "STATE_REPLACED",
    "The sandbox was reset or restored meanwhile; nothing is left of this",
)
NO_SNAPSHOT = FailureKind(404, "SNAPSHOT_NOT_FOUND", "Snapshot not found")
SNAPSHOT_EXISTS = FailureKind(
    409,
    "SNAPSHOT_EXISTS",
    'There is a snapshot "before" already: delete it, or choose another name',
)
TOO_MANY_SNAPSHOTS = FailureKind(
    409, "TOO_MANY_SNAPSHOTS", f"There are {MOST_SNAPSHOTS} snapshots already: delete some of them"
)
TOO_MANY_STREAMS = FailureKind(
    503, "TOO_MANY_STREAMS", "There are 64 streams of events already: close some of them"
)
NO_FAULT = FailureKind(404, "FAULT_NOT_FOUND", "Fault not found")
TOO_MANY_FAULTS = FailureKind(
    409, "TOO_MANY_FAULTS", f"There are {MOST_FAULTS} faults already: clear some of them"
)
UNKNOWN_MEDIA = FailureKind(
    415,
    "UNSUPPORTED_MEDIA_TYPE",
    "Content-Type must be application/json or text/csv or application/octet-stream, "
    'not "text/plain"',
)
NO_FILE = FailureKind(404, "FILE_NOT_FOUND", "File not found")
WRONG_SIGNATURE = FailureKind(403, "INVALID_SIGNATURE", "The link's signature is wrong")
EXPIRED = FailureKind(410, "LINK_EXPIRED", "The link expired at 2026-01-05T03:00:00.000Z")
NO_RECORDING = FailureKind(404, "RECORDING_NOT_FOUND", "Recording not found")
REMOVED = FailureKind(410, "FILE_REMOVED", "The recording was removed")
KEYED = (NO_KEY, *ASKED_FOR)
"""Failures of every request under /api."""


def invalid_id(name: str) -> FailureKind:
    """Return the failure for a path identifier that is not a UUID (section 4)."""
    return FailureKind(400, "INVALID_ID", f"{name} must be a valid UUID")


MARK = "X-Dialsim-Fault"
"""Header of an injected error, with the fault's number."""

_RETRY_AFTER: dict[str, Any] = {
    "Retry-After": {
        "description": "Seconds to wait before the next request, if the fault gives them.",
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    }
}
_MARKS: dict[str, Any] = {
    MARK: {
        "description": "Number of the injected fault, if this answer comes from one.",
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    }
}


def responses(kinds: Iterable[FailureKind]) -> dict[str, Any]:
    """The responses of an operation that may fail in these ways, by status."""
    in_order = sorted(kinds, key=lambda kind: kind.status)
    return {
        str(status): _response(status, list(same))
        for status, same in groupby(in_order, key=lambda kind: kind.status)
    }


def _response(status: int, kinds: list[FailureKind]) -> dict[str, Any]:
    codes = list(dict.fromkeys(kind.code for kind in kinds))
    # with types, and `enum` for a single value: generators of clients can merge no others
    own = {
        "type": "object",
        "properties": {
            "statusCode": {"type": "integer", "enum": [status]},
            "code": {"type": "string", "enum": codes},
        },
    }
    response = {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}",
        "content": {
            "application/json": {
                "schema": {"allOf": [FAILURE, own]},
                "examples": {kind.code: {"value": _envelope(kind)} for kind in kinds},
            }
        },
    }
    if not any(kind.marked for kind in kinds):
        return response
    return response | {"headers": _MARKS | (_RETRY_AFTER if status in (429, 503) else {})}


def _envelope(kind: FailureKind) -> dict[str, Any]:
    return {
        "success": False,
        "statusCode": kind.status,
        "code": kind.code,
        "message": kind.text,
        "errors": [kind.text],
    }
