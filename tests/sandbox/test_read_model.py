"""Reads of a live simulation equal the tables of the same run at that instant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from dialsim.interface.instants import format_instant
from dialsim.interface.schedule import read_schedule
from dialsim.results.result import Result
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.operation import PageQuery
from dialsim.sandbox.service import InterfaceOperations
from dialsim.testing import Sketch, at

ANALYSIS = {
    "funnel": [{"step": "Greeted", "share": 0.9}, {"step": "Promised", "share": 0.3}],
    "fields": {
        "promise": {"type": "boolean", "required": True, "values": {"true": 0.4, "false": 0.6}}
    },
}
RATES = {
    "silent": 0.1,
    "agentError": 0.1,
    "notRecorded": 0.1,
    "analysisUnavailable": 0.1,
    "analysisFailed": 0.2,
    "lateResult": 0.5,
}


def past(attempt: int, status: str, minute: int) -> dict[str, object]:
    """A history that ends before the clock starts."""
    ended = at(f"Mon 07:{minute}")
    return {"history": {"callAttempt": attempt, "latestCallStatus": status, "lastEndedAt": ended}}


def eventful(seed: int) -> Sketch:
    """Two campaigns with all that changes what is shown of calls."""
    return (
        Sketch(
            12, seed=seed, start="Mon 08:00", end="1 Mar 2026 07:00", setup_time=None,
            queue_limit=40, queue_timeout="5m",
        )
        .having(
            caller_ids=["021000001", "021000002"],
            duplicate_call_alert={"window": "30d"},
            retention={"personalData": "5h", "output": "7h", "audio": "1h"},
        )
        .agent(params_schema={"amount": {"type": "number"}}, analysis=ANALYSIS)
        .behaviour(
            "default",
            outcomes={"answered": 0.4, "noAnswer": 0.4, "busy": 0.1, "failed": 0.1},
            talk_time={"dist": "lognormal", "mean": "75s", "sd": "60s", "min": "2s", "max": "10m"},
            analysis_delay={"dist": "uniform", "low": "5s", "high": "4m"},
            late_result_delay="20m",
            rates=RATES,
        )
        .campaign(
            "First",
            recipients={"count": 105, "agentParams": {"amount": 100, "metadata__case": "K"}},
            start="Mon 09:00",
            max_attempts=3,
            retry_interval="30m",
        )
        .campaign(
            "Second",
            {"tel": "0811111111", "customerName": "Before", **past(1, "BUSY", 30)},
            {"tel": "0822222222", **past(2, "COMPLETED", 40)},
            {"tel": "0833333333", "id": "EEEEEEEE-0000-4000-8000-000000000001"},
            start="Mon 09:00",
            max_attempts=3,
            retry_interval="1h",
            remove_duplicates=True,
        )
        .at("Mon 10:00", "pause", "First")
        .at("Mon 10:20", "resume", "First")
        .at("Mon 11:10", "reanalyze", "First", share=0.7)
    )  # fmt: skip


INSTANTS = [
    "2026-01-05T01:30:00Z",
    "2026-01-05T02:00:00Z",
    "2026-01-05T02:03:21.500Z",
    "2026-01-05T03:10:00Z",
    "2026-01-05T04:12:00Z",
    "2026-01-05T11:00:00Z",
    "2026-01-08T00:00:00Z",
]
SEEDS = (1, pytest.param(2, marks=pytest.mark.slow))


@pytest.fixture(params=SEEDS)
def service(request: pytest.FixtureRequest) -> InterfaceOperations:
    return InterfaceOperations(SandboxCore(eventful(request.param).scenario()))


def stops(service: InterfaceOperations) -> Iterator[Result]:
    """The tables of the run so far, at every instant."""
    for instant in INSTANTS:
        service.core.simulation.advance(to=instant)
        yield Result(service.core.simulation.trace)


def wire(value: object) -> str | None:
    """An instant of a table, as the interface writes it."""
    return None if pd.isna(value) else format_instant(value.value // 1_000_000)


def listed(service: InterfaceOperations, campaign: int) -> list[dict[str, object]]:
    """All recipients of a campaign in upload order, page by page."""
    identifier = service.core.accounts[0].views[campaign].identifier
    people: list[dict[str, object]] = []
    for page in range(1, 1000):
        data = service.list_recipients(0, identifier, PageQuery(page=page))
        if not data["recipients"]:
            assert data["totalRecipients"] == len(people)
            assert data["totalPages"] == page - 1 == -(-len(people) // 100)
            return people[::-1]
        people += data["recipients"]
    raise AssertionError("the list has no end")


def test_calls_are_those_of_the_tables(service: InterfaceOperations) -> None:
    met = set()
    for result in stops(service):
        for row in result.calls.itertuples():
            call = service.get_call(0, row.call_id)
            assert call["id"] == row.call_id
            assert call["sessionId"] == row.session_id
            assert call["callStatus"] == row.status
            met.add(call["callStatus"])
            talking = pd.isna(row.agent_status)
            assert call["agentStatus"] == ("IN_PROGRESS" if talking else row.agent_status)
            assert call["callStartedAt"] == wire(row.call_started_at)
            assert call["callEndedAt"] == wire(row.call_ended_at)
            assert call["createdAt"] == wire(row.created_at)
            duration = row.call_duration_ms
            shown = None if pd.isna(duration) else f"{duration / 1000:.3f}"
            assert call["callDuration"] == shown
            analyzed = row.analysis in {"analyzed", "no_conversation", "unavailable"}
            assert bool(call["result"]) == analyzed
    assert {"COMPLETED", "NO_ANSWER", "ANALYSIS_FAILED", "SCHEDULED", "QUEUED"} <= met


def test_recipients_are_those_of_the_tables(service: InterfaceOperations) -> None:
    for result in stops(service):
        for position, name in enumerate(("First", "Second")):
            table = result.recipients[result.recipients.campaign == name]
            people = listed(service, position)
            assert [person["id"] for person in people] == table.recipient_id.to_list()
            for person, row in zip(people, table.itertuples(), strict=True):
                assert person["callAttempt"] == row.call_attempt
                status = row.latest_call_status
                assert person["latestCallStatus"] == (None if pd.isna(status) else status)
                assert person["createdAt"] == wire(row.created_at)
                assert person["updatedAt"] == wire(row.updated_at)
                if not person["personalDataMasked"]:
                    assert person["tel"] == row.tel
                alone = service.get_recipient(0, row.recipient_id)
                assert alone == person


def test_ids_are_found_as_soon_as_they_are_there_and_in_either_case(
    service: InterfaceOperations,
) -> None:
    account = service.core.accounts[0]
    known: set[str] = set()
    for result in stops(service):
        for name, view in zip(("First", "Second"), account.views, strict=True):
            calls = result.calls[result.calls.campaign == name]
            for row in calls.itertuples():
                assert account.call(row.call_id) == account.call(row.call_id.upper())
                found, call = account.call(row.call_id)
                assert (found, found.call_ids(np.array([call]))[0]) == (view, row.call_id.encode())
            known.update(calls.call_id)
            for row in result.recipients[result.recipients.campaign == name].itertuples():
                for identifier in (row.recipient_id.lower(), row.recipient_id.upper()):
                    assert account.recipient(identifier) == (view, row.recipient)
    assert all(account.recipient(identifier) is None for identifier in known)
    assert account.call("00000000-0000-4000-8000-000000000000") is None


def test_a5_the_result_is_that_of_the_newest_webhook(service: InterfaceOperations) -> None:
    repeats = 0
    for result in stops(service):
        newest: dict[str, dict[str, object]] = {}
        for post in result.webhooks.sort_values("at", kind="stable").itertuples():
            payload = post.body["payload"]
            newest[payload["call"]["id"]] = payload
            repeats += payload["isReAnalysis"]
        for identifier, payload in newest.items():
            call = service.get_call(0, identifier)
            if call["dataExpired"]["output"]:
                continue
            assert call["result"] == (payload["callResult"] or {})
    assert repeats > 0


def test_d2_flags_turn_true_their_spans_after_the_end_of_the_call(
    service: InterfaceOperations,
) -> None:
    spans = {"audio": 1, "personalData": 5, "output": 7}
    for result in stops(service):
        now = pd.Timestamp(service.core.simulation.now)
        for row in result.calls.itertuples():
            call = service.get_call(0, row.call_id)
            for flag, hours in spans.items():
                gone = not pd.isna(row.call_ended_at) and (
                    now - row.call_ended_at >= pd.Timedelta(hours=hours)
                )
                assert call["dataExpired"][flag] == gone
            assert (call["recipient"]["customerName"] == "") == call["dataExpired"]["personalData"]
            if call["dataExpired"]["output"] and call["result"]:
                assert call["result"]["version"] is None


def test_d1_a_removed_result_has_null_under_every_key(service: InterfaceOperations) -> None:
    empty = {"type": None, "value": None, "required": None}
    full = {
        "version": None,
        "fixedAttr": {"callSummary": None, "funnel": {"funnelFlow": None, "value": None}},
        "postCallAnalyticsResult": {"promise": empty},
    }
    fallback = empty | {"description": None, "enumVariant": None}
    alike = [full, full | {"postCallAnalyticsResult": {"error": fallback}}]
    found = []
    for result in stops(service):
        for call_id in result.calls.call_id:
            call = service.get_call(0, call_id)
            if call["dataExpired"]["output"] and call["result"]:
                found.append(call["result"])
    assert found
    assert all(one in alike for one in found)
    assert all(one in found for one in alike)


def test_c8_calls_of_a_deleted_campaign_are_masked_whole(service: InterfaceOperations) -> None:
    service.core.simulation.advance(to="2026-01-05T02:30:00Z")
    call_id = Result(service.core.simulation.trace).calls.call_id[0]
    service.core.simulation.delete("First")
    call = service.get_call(0, call_id)
    assert call["dataExpired"] == {"audio": True, "personalData": True, "output": True}
    assert call["recipient"]["tel"][2:8] == "xxxxxx"


def test_a_campaign_that_is_added_is_served_like_any_other(service: InterfaceOperations) -> None:
    simulation = service.core.simulation
    simulation.advance(hours=1)
    person = {"tel": "0844444444", "id": "eeeeeeee-0000-4000-8000-000000000002"}
    identifier = simulation.add_campaign(
        {"name": "Third", "agent": "Agent", "recipients": [person]}
    )
    before = service.get_recipient(0, person["id"])
    assert (before["campaignId"], before["createdAt"]) == (identifier, "2026-01-05T02:00:00.000Z")
    body = {"startDateTime": "2026-01-05T02:00:00Z"}
    service.schedule_campaign(0, read_schedule(body), body, identifier)
    paused = service.pause_campaign(0, identifier).data
    assert paused == {"id": identifier, "status": "PAUSED"}
    table = Result(simulation.trace).calls
    call = service.get_call(0, table[table.campaign == "Third"].call_id.iloc[0])
    assert call["recipient"]["id"] == person["id"]
