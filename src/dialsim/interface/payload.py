"""The `CALL_RESULT` payload: what the webhook says of a call (interface, sections 2.7 and 6.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import orjson

from dialsim.interface.agent import ParamSchema
from dialsim.interface.instants import format_instant
from dialsim.interface.schedule import ScheduleRequest
from dialsim.interface.status import CampaignStatus

FAILED_MESSAGE = "The line or the number failed"
"""`errorMessage` of a call that ended FAILED (F2); the wording is ours."""
QUEUE_TIMEOUT_MESSAGE = "The call waited too long in the queue"
"""`errorMessage` of a call CANCELLED by the queue timeout (F2); the wording is ours."""

_FORM = (
    b'{"type":"CALL_RESULT","payload":{"isReAnalysis":%b,"agentName":%b,"campaignName":%b,'
    b'"call":{"id":%b,"sessionId":%b,"callStatus":%b,"callStartedAt":%b,"callEndedAt":%b,'
    b'"callDuration":%b,"errorMessage":%b},'
    b'"recipient":{"tel":%b,"customerName":%b,"callAttempt":%b,"latestCallStatus":%b,'
    b'"agentParams":%b},'
    b'"agent":%b,"campaign":%b,"callResult":%b,"recordUrl":%b,"transcriptFileUrl":%b,'
    b'"dataExpired":%b}}'
)


class Payloads(NamedTuple):
    """Many payloads, field by field: each is a column of JSON texts, in UTF-8, one per payload."""

    is_re_analysis: Iterable[bytes]
    agent_name: Iterable[bytes]
    campaign_name: Iterable[bytes]
    call_id: Iterable[bytes]
    session_id: Iterable[bytes]
    call_status: Iterable[bytes]
    call_started_at: Iterable[bytes]
    call_ended_at: Iterable[bytes]
    call_duration: Iterable[bytes]
    error_message: Iterable[bytes]
    tel: Iterable[bytes]
    customer_name: Iterable[bytes]
    call_attempt: Iterable[bytes]
    latest_call_status: Iterable[bytes]
    agent_params: Iterable[bytes]
    agent: Iterable[bytes]
    campaign: Iterable[bytes]
    call_result: Iterable[bytes]
    record_url: Iterable[bytes]
    transcript_file_url: Iterable[bytes]
    data_expired: Iterable[bytes]

    def bodies(self) -> list[bytes]:
        """The bodies of the POSTs: compact JSON in UTF-8, fields in the interface's order.

        Columns that go on for ever end with the shortest of the others.
        """
        return list(map(_FORM.__mod__, zip(*self, strict=False)))


def agent_part(identifier: str, name: str, schema: Mapping[str, ParamSchema] | None) -> bytes:
    """`payload.agent`: id, name and the parameters that recipients carry (section 2.2)."""
    entries = None
    if schema is not None:
        entries = {
            key: entry.model_dump(by_alias=True, exclude_none=True) for key, entry in schema.items()
        }
    return orjson.dumps({"id": identifier, "name": name, "paramsSchema": entries})


def campaign_part(
    identifier: str,
    name: str,
    *,
    status: CampaignStatus,
    max_concurrent_calls: int,
    request: ScheduleRequest,
    start_at: int,
) -> bytes:
    """`payload.campaign`: the settings (section 2.7) with defaults filled in (F3).

    `start_at` is the effective start (ms), `status` and `max_concurrent_calls` those at send time.
    """
    end = request.end_date_time
    return orjson.dumps(
        {
            "id": identifier,
            "name": name,
            "status": status,
            "maxAttempts": request.max_attempts,
            "maxConcurrentCalls": max_concurrent_calls,
            "retryInterval": request.retry_interval,
            "scheduleStartAt": format_instant(start_at),
            "scheduleEndAt": None if end is None else format_instant(end),
            "scheduleDateTimeWindow": [
                day.model_dump(by_alias=True) for day in request.time_windows
            ],
            "sipAccountId": request.sip_account_id,
        }
    )


def data_expired(*, audio: bool, personal_data: bool, output: bool) -> bytes:
    """`payload.dataExpired`: what retention has removed (section 6.6)."""
    return orjson.dumps({"audio": audio, "personalData": personal_data, "output": output})
