# ruff: noqa: E501 - requests and what is told of them are read line by line
"""Campaigns created under /_dialsim, from JSON and from CSV."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter
from tests.sandbox.asking import Client, control, exchange_of_the_corpus, key

from dialsim.sandbox.application import application
from dialsim.sandbox.commands import AddCampaign, Command
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.operation import MOST_CONTROL_BYTES

START = "2026-01-05T04:00:00.000Z"
PERSON = {"tel": "0890000001", "customerName": "สมหญิง", "agentParams": {"amount": 5}}
BLOCK = {
    "organization": "Acme",
    "name": "New",
    "agent": "Reminder",
    "recipients": [PERSON, {"tel": "0890000002", "agentParams": {"amount": 7}}],
}
ID = "cccccccc-0000-4000-8000-00000000ABCD"


@pytest.fixture
def client() -> Client:
    return Client(exchange_of_the_corpus())


def upload(client: Client, csv: str, **query: str) -> httpx.Response:
    path = httpx.URL("/_dialsim/campaigns", params=query)
    headers = {"Host": "127.0.0.1:8400", "Content-Type": "text/csv; charset=utf-8"}
    return client.ask("POST", str(path), headers, csv.encode())


def listed(client: Client, campaign: str) -> Any:
    path = f"/api/campaign/{campaign}/recipients"
    return client.ask("GET", path, {"X-API-Key": key("Acme")}).json()["data"]["recipients"]


def test_c11_a_new_campaign_is_a_draft_that_the_interface_shows_at_once(client: Client) -> None:
    response = control(client, "POST", "/campaigns", BLOCK)
    state = response.json()
    assert (response.status_code, state) == (
        201,
        {
            "id": state["id"],
            "organization": "Acme",
            "name": "New",
            "agent": "Reminder",
            "status": "DRAFT",
            "deleted": False,
            "createdAt": START,
            "totalRecipients": 2,
        },
    )
    assert control(client, "GET", f"/campaigns/{state['id']}").json() == state
    newest, first = listed(client, state["id"])
    assert (first["customerName"], first["tel"]) == ("สมหญิง", "0890000001")
    assert first["agentParams"] == {"amount": 5}
    assert newest["latestCallStatus"] is None
    assert newest["createdAt"] == newest["updatedAt"] == START
    headers = {"X-API-Key": key("Acme"), "Content-Type": "application/json"}
    body = json.dumps({"startDateTime": START}).encode()
    started = client.ask("POST", f"/api/campaign/{state['id']}/schedule", headers, body)
    assert started.json()["data"]["status"] == "SCHEDULED"
    assert listed(client, state["id"])[0]["latestCallStatus"] is not None
    other = client.ask("GET", f"/api/campaign/{state['id']}/recipients", {"X-API-Key": key("Beta")})
    assert other.json()["code"] == "CAMPAIGN_NOT_FOUND"


def test_id_and_schedule_may_come_along_and_ids_stand_for_names(client: Client) -> None:
    acme = control(client, "GET", "/organizations/Acme").json()["id"]
    agents = client.ask("GET", "/api/agent/list", {"X-API-Key": key("Acme")}).json()["data"]
    agent = next(agent["id"] for agent in agents if agent["name"] == "Reminder")
    more = {"organization": acme.upper(), "agent": agent.upper(), "id": ID}
    schedule = {"schedule": {"startDateTime": "2026-01-06T02:00:00Z"}}
    state = control(client, "POST", "/campaigns", BLOCK | more | schedule).json()
    assert (state["id"], state["agent"], state["status"]) == (ID, "Reminder", "SCHEDULED")
    assert listed(client, ID.lower())[0]["campaignId"] == ID


def test_recipients_may_come_as_csv_and_the_rest_in_the_query(client: Client) -> None:
    csv = "tel,customerName,agentParams.amount\n0890000001,สมหญิง,5\n0890000002,,7\n"
    query = {"organization": "Acme", "name": "New", "agent": "Reminder", "id": ID}
    schedule = json.dumps({"startDateTime": "2026-01-06T02:00:00Z"})
    response = upload(client, csv, **query, schedule=schedule)
    assert (response.status_code, response.json()["status"]) == (201, "SCHEDULED")
    newest, first = listed(client, ID)
    assert (first["customerName"], newest["customerName"]) == ("สมหญิง", None)
    assert newest["agentParams"] == {"amount": 7}


def test_q10_a_campaign_may_say_which_lines_it_takes(client: Client) -> None:
    share = {"priority": 2, "weight": 3, "atMost": 2, "reserved": 1}
    assert control(client, "POST", "/campaigns", BLOCK | share).status_code == 201
    query = {"organization": "Acme", "name": "CSV", "agent": "Reminder"}
    csv = "tel,agentParams.amount\n0890000001,5\n"
    lines = {key: str(value) for key, value in share.items()}
    assert upload(client, csv, **query, **lines).status_code == 201
    for added in (
        control(client, "POST", "/campaigns", BLOCK | {"name": "More", "atMost": "many"}),
        upload(client, csv, **query | {"name": "More"}, atMost="many"),
    ):
        assert added.status_code == 400
        assert added.json()["errors"] == ['atMost must be a whole number, not "many"']


def test_f2_an_empty_name_is_none_as_only_a_masked_one_is_shown_as_an_empty_text(
    client: Client,
) -> None:
    people = [{"tel": "0890000001", "customerName": ""}, {"tel": "0890000002"}]
    block = {"organization": "Acme", "agent": "Survey", "name": "Listed", "recipients": people}
    ids = [control(client, "POST", "/campaigns", block).json()["id"]]
    csv = 'tel,customerName\n0890000001,""\n0890000002,\n'
    ids.append(upload(client, csv, organization="Acme", agent="Survey", name="CSV").json()["id"])
    for identifier in ids:
        assert [person["customerName"] for person in listed(client, identifier)] == [None, None]


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        ({"organization": "Delta"}, ['organization "Delta" is not known; known here: Acme, Beta, Gamma']),
        ({"organization": None}, ["organization must be the id or the name of one: Acme, Beta, Gamma"]),
        ({"agent": "Remainder"}, ['agent "Remainder" is no agent of this organization; did you mean Reminder?']),
        ({"agent": None}, ["agent is required"]),
        ({"nmae": "x"}, ["nmae is not a known key; did you mean name?"]),
        ({"recipients": {"file": "people.csv"}}, ["recipients.file can't be used: no files are read here; give a list of people, or count"]),
        (
            {"recipients": [{"tel": "12a"}, {"tel": "0890000002", "agentParams": {"amount": "x"}}]},
            [
                "recipients.1.agentParams.amount must be a number",
                'recipients.0.tel must be a phone number of at most 20 digits, with or without a + in front, not "12a"',
            ],
        ),
        ({"name": "Running"}, ['name "Running" must be unique, but organizations.0.campaigns.2 has it too']),
        ({"schedule": {"startDateTime": "soon", "x": 1}}, [
            "schedule.property x should not exist; known here: startDateTime, endDateTime, timeWindows, maxAttempts, retryInterval, callerIds, sipAccountId, sipCallerId, ttsVoiceKeys, removeDuplicates",
            "schedule.startDateTime must be a valid ISO 8601 date string, such as 2026-01-05T09:00:00+07:00",
        ]),
    ],
)  # fmt: skip
def test_whatever_is_wrong_is_told_and_nothing_is_added(
    client: Client, change: Any, errors: list[str]
) -> None:
    count = len(control(client, "GET", "/campaigns").json())
    response = control(client, "POST", "/campaigns", BLOCK | change)
    assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_FAILED")
    assert response.json()["errors"] == errors
    assert len(control(client, "GET", "/campaigns").json()) == count


def test_a_csv_has_its_problems_by_row_and_column_and_the_many_are_counted(client: Client) -> None:
    rows = "".join(f"12345,{number}\n" for number in range(3)) + "x,1\n" * 250
    query = {"organization": "Acme", "name": "New", "agent": "Reminder"}
    response = upload(client, f"tel,agentParams.amount\n0811111111,many\n{rows}", **query)
    errors = response.json()["errors"]
    assert (response.status_code, len(errors)) == (400, 101)
    assert errors[0] == 'recipients.csv:2:12: agentParams.amount must be a number, not "many"'
    assert errors[1].startswith("recipients.csv:6:1: tel must be a phone number")
    assert errors[-1] == "151 more problems like these"


def test_a_request_that_is_refused_at_once_adds_nothing(client: Client) -> None:
    gamma = BLOCK | {
        "organization": "Gamma",
        "agent": "Caller",
        "recipients": {"count": 3},
        "schedule": {"startDateTime": START},
    }
    response = control(client, "POST", "/campaigns", gamma)
    assert (response.status_code, response.json()["code"]) == (403, "CALLING_NOT_ALLOWED")
    assert len(client.core.accounts[2].views) == 2


@pytest.mark.parametrize(
    ("content_type", "body", "status", "text"),
    [
        ("text/plain", b"x", 415, 'Content-Type must be application/json or text/csv or application/octet-stream, not "text/plain"'),
        ("application/json", b"{", 400, "body must be valid JSON"),
        ("application/json", b"[]", 400, "body must be an object"),
        ("application/json", b"", 400, "organization must be the id or the name of one: Acme, Beta, Gamma"),
    ],
)  # fmt: skip
def test_what_is_no_upload_is_refused(
    client: Client, content_type: str, body: bytes, status: int, text: str
) -> None:
    headers = {"Host": "127.0.0.1:8400", "Content-Type": content_type}
    response = client.ask("POST", "/_dialsim/campaigns", headers, body)
    assert (response.status_code, response.json()["message"]) == (status, text)


def test_an_upload_may_be_larger_than_a_request_to_the_interface_but_not_endless(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    csv = "tel,agentParams.amount\n" + "".join(f"09{n:08},1\n" for n in range(90_000))
    query = {"organization": "Acme", "name": "New", "agent": "Reminder"}
    assert len(csv) > 1_048_576
    assert upload(client, csv, **query).json()["totalRecipients"] == 90_000
    assert MOST_CONTROL_BYTES == 256 * 1_048_576
    monkeypatch.setattr("dialsim.sandbox.control.organizations.MOST_CONTROL_BYTES", len(csv) - 1)
    response = upload(client, csv, **query | {"name": "More"})
    assert (response.status_code, response.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"schedule": "{"}, "schedule must be valid JSON"),
        ({"recipients": "[]"}, "recipients can't stand beside a CSV of recipients"),
        ({"name": ""}, "name must not be empty"),
    ],
)
def test_the_query_beside_a_csv_is_checked(
    client: Client, query: dict[str, str], text: str
) -> None:
    whole = {"organization": "Acme", "name": "New", "agent": "Survey"} | query
    response = upload(client, "tel\n0811111111\n", **whole)
    assert (response.status_code, response.json()["errors"]) == (400, [text])


def test_the_command_can_be_written_down_and_carried_out_again(client: Client) -> None:
    csv = "tel,agentParams.amount\n0890000001,5\n".encode("utf-8-sig")
    block = {"name": "New", "agent": "Reminder", "id": ID}
    command = AddCampaign(organization=0, block=block, csv=csv)
    written = TypeAdapter(Command).dump_json(command)
    client.core.carry_out(TypeAdapter(Command).validate_json(written))
    assert listed(client, ID)[0]["tel"] == "0890000001"
    assert command.csv is csv  # a quarter of a gigabyte is not copied
    assert command.block is block


def test_others_are_answered_while_a_long_list_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    core = exchange_of_the_corpus()
    reading, answered = asyncio.Event(), asyncio.Event()
    real = AddCampaign.read

    async def scene() -> httpx.Response:
        loop = asyncio.get_running_loop()

        def read_slowly(command: AddCampaign, around: Any) -> None:
            loop.call_soon_threadsafe(reading.set)
            asyncio.run_coroutine_threadsafe(answered.wait(), loop).result(timeout=600)
            real(command, around)

        monkeypatch.setattr(AddCampaign, "read", read_slowly)
        transport = httpx.ASGITransport(application(core))
        home = {"Host": "127.0.0.1:8400"}
        async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=home) as ask:
            creating = asyncio.create_task(ask.post("/_dialsim/campaigns", json=BLOCK))
            await reading.wait()
            assert (await ask.get("/_dialsim/clock")).status_code == 200
            answered.set()
            return await creating

    assert asyncio.run(scene()).status_code == 201


def test_names_that_are_taken_meanwhile_are_refused(client: Client) -> None:
    core: SandboxCore = client.core
    first, second = (
        AddCampaign(organization=0, block={k: v for k, v in BLOCK.items() if k != "organization"})
        for _ in range(2)
    )
    first.read(core.simulation.surroundings(0))
    second.read(core.simulation.surroundings(0))
    core.carry_out(first)
    with pytest.raises(Exception, match='name "New" must be unique'):
        core.carry_out(second)
