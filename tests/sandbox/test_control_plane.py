"""The clock and the campaigns under /_dialsim."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.sandbox.asking import WORLD, Client, key
from tests.sandbox.asking import control as ask

import dialsim
from dialsim.engine.simulation import Simulation
from dialsim.errors import Refused
from dialsim.sandbox import clock as virtual_clock
from dialsim.sandbox import core as sandbox_exchange
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.operation import PageQuery
from dialsim.sandbox.service import InterfaceOperations

HOME = {"Host": "127.0.0.1:8400"}
START, END = "2026-01-05T02:00:00.000Z", "2026-03-01T00:00:00.000Z"
CAMPAIGN = "cccccccc-0000-4000-8000-000000000"
RUNNING, PAUSED, COMPLETED = f"{CAMPAIGN}003", f"{CAMPAIGN}004", f"{CAMPAIGN}005"


@pytest.fixture
def client() -> Client:
    return Client(SandboxCore(dialsim.load(WORLD)))


def test_the_clock_stands_at_the_start_until_it_is_moved(client: Client) -> None:
    assert ask(client, "GET", "/clock").json() == {
        "now": "2026-01-05T02:00:00.000Z",
        "mode": "manual",
        "speed": None,
        "speedReached": None,
        "nextEventAt": "2026-01-05T02:00:01.000Z",
        "status": "ready",
        "heldByJournal": None,
    }


def test_the_clock_moves_to_an_instant_by_a_span_and_to_the_next_event(client: Client) -> None:
    moves: list[tuple[dict[str, str], str]] = [
        ({"to": "2026-01-05T03:00:00.250Z"}, "2026-01-05T03:00:00.250Z"),
        ({"by": "0s"}, "2026-01-05T03:00:00.250Z"),
        ({"by": "250ms"}, "2026-01-05T03:00:00.500Z"),
        ({"until": "nextEvent"}, "2026-01-05T03:00:01.000Z"),
        ({"to": "2026-01-05T12:00:00+07:00"}, "2026-01-05T05:00:00.000Z"),
        ({"by": "1h30m"}, "2026-01-05T06:30:00.000Z"),
    ]
    for body, now in moves:
        assert ask(client, "POST", "/clock/advance", body).json()["now"] == now


def test_the_clock_moves_until_nothing_is_left_to_happen(client: Client) -> None:
    ask(client, "POST", f"/campaigns/{PAUSED}/cancel")
    state = ask(client, "POST", "/clock/advance", {"until": "idle"}).json()
    assert (state["now"], state["nextEventAt"]) == ("2026-01-06T03:00:26.000Z", None)


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, ["one of to, by and until must be given"]),
        ({"to": "2026-01-06T00:00:00Z", "by": "1h"}, ["one of to, by and until must be given"]),
        ({"a": 1, "b": 2}, [
            "property a should not exist",
            "property b should not exist",
            "one of to, by and until must be given",
        ]),
        ({"by": 5}, ["by needs a unit: 5s or 5ms, for instance"]),
        ({"by": None}, ["one of to, by and until must be given"]),
        ({"by": "-1h"}, ['by must not be negative, as "-1h" is']),
        (
            {"to": "2026-01-06T00:00:00"},
            [
                "to must say its offset: 2026-01-06T00:00:00Z is UTC, "
                "2026-01-06T00:00:00+07:00 is Thai time"
            ],
        ),
        ({"until": "later"}, ["until must be nextEvent, idle, status or webhooks"]),
        ({"to": "2026-01-05T01:59:59.999Z"}, [f"to must not be before now, {START}"]),
        ({"to": "2026-03-01T00:00:00.001Z"}, [f"to must not be after clock.end, {END}"]),
        ({"by": "60d"}, [f"to must not be after clock.end, {END}"]),
        ([], ["body must be an object"]),
    ],
)  # fmt: skip
def test_a_move_that_makes_no_sense_is_refused(
    client: Client, body: Any, errors: list[str]
) -> None:
    response = ask(client, "POST", "/clock/advance", body)
    assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_FAILED")
    assert response.json()["errors"] == errors


def test_moving_in_strides_comes_to_the_run_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = dialsim.load(WORLD)
    core = SandboxCore(scenario)
    monkeypatch.setattr(sandbox_exchange, "PATIENCE", 0)
    asyncio.run(core.clock.advance_to(scenario.clock.end or 0))
    whole, moved = Simulation(scenario).run(), core.simulation.trace
    assert moved.campaigns == whole.campaigns
    for ours, theirs in zip(moved.calls, whole.calls, strict=True):
        for log, other in zip(ours, theirs, strict=True):
            assert log.rows().at.tolist() == other.rows().at.tolist()
            assert log.rows().kind.tolist() == other.rows().kind.tolist()


def test_questions_are_answered_while_the_clock_moves_and_a_second_move_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox_exchange, "PATIENCE", 0)
    core = SandboxCore(dialsim.load(WORLD))
    clock = core.clock
    target = core.simulation.at + 7_200_000
    seen: list[int] = []

    async def scene() -> None:
        moving = asyncio.create_task(clock.advance_to(target))
        await asyncio.sleep(0)
        with pytest.raises(Refused) as refused:
            await clock.advance_by(1)
        assert (refused.value.status, refused.value.code) == (409, "CLOCK_BUSY")
        while not moving.done():
            InterfaceOperations(core).list_recipients(0, RUNNING, PageQuery())
            seen.append(core.simulation.at)
            await asyncio.sleep(0)
        await moving

    asyncio.run(scene())
    assert len(set(seen)) > 3
    assert seen == sorted(seen)
    assert core.simulation.at == target
    assert not clock.advancing


def test_waiting_for_idleness_gives_up_after_a_year(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_clock, "LONGEST_TO_IDLE", 60_000)
    clock = SandboxCore(dialsim.load(WORLD)).clock
    with pytest.raises(Refused) as refused:
        asyncio.run(clock.advance_to_idle())
    assert (refused.value.status, refused.value.code) == (409, "NOT_IDLE")
    assert not clock.advancing


def test_campaigns_are_listed_and_read_the_deleted_ones_too(client: Client) -> None:
    listed = ask(client, "GET", "/campaigns").json()
    assert [(state["organization"], state["name"]) for state in listed[:2]] == [
        ("Acme", "Draft"),
        ("Acme", "Scheduled"),
    ]
    assert len(listed) == 15
    assert ask(client, "GET", f"/campaigns/{RUNNING}").json() == {
        "id": RUNNING,
        "organization": "Acme",
        "name": "Running",
        "agent": "Reminder",
        "status": "RUNNING",
        "deleted": False,
        "createdAt": "2026-01-05T02:00:00.000Z",
        "totalRecipients": 4,
    }
    assert ask(client, "DELETE", f"/campaigns/{RUNNING}").json()["deleted"] is True
    assert ask(client, "GET", f"/campaigns/{RUNNING}").json()["status"] == "CANCELLED"
    recipients = client.ask(
        "GET", f"/api/campaign/{RUNNING}/recipients", {"X-API-Key": key("Acme")}
    )
    assert recipients.json()["code"] == "CAMPAIGN_NOT_FOUND"


def test_c5_c6_c8_commands_go_by_the_rules(client: Client) -> None:
    ask(client, "POST", "/clock/advance", {"to": "2026-01-05T04:00:00Z"})
    steps = [
        ("POST", f"{PAUSED}/resume", 200, "SCHEDULED"),
        ("POST", f"{PAUSED}/resume", 409, "Cannot resume a SCHEDULED campaign"),
        ("POST", f"{PAUSED}/cancel", 200, "CANCELLED"),
        ("POST", f"{PAUSED}/cancel", 409, "Cannot cancel a CANCELLED campaign"),
        ("POST", f"{COMPLETED}/cancel", 409, "Cannot cancel a COMPLETED campaign"),
        ("DELETE", COMPLETED, 200, "COMPLETED"),
        ("DELETE", COMPLETED, 404, "Campaign not found"),
        ("POST", f"{COMPLETED}/resume", 404, "Campaign not found"),
        ("POST", f"{CAMPAIGN}999/resume", 404, "Campaign not found"),
        ("POST", "x/resume", 400, "id must be a valid UUID"),
        ("PUT", COMPLETED, 405, f"Cannot PUT /_dialsim/campaigns/{COMPLETED}"),
    ]
    for method, path, status, text in steps:
        response = ask(client, method, f"/campaigns/{path}")
        body = response.json()
        assert (response.status_code, body.get("message", body.get("status"))) == (status, text)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "elsewhere.test"},
        {"Host": "127.0.0.1.elsewhere.test"},
        {"Host": "elsewhere.test@127.0.0.1:8400", "Origin": "http://elsewhere.test"},
        {"Host": "[::1"},
        {"Host": "127.0.0.256"},
        {"Host": "127.1"},
        {"Host": "10.0.0.1:8400"},
        HOME | {"Origin": "http://elsewhere.test"},
        HOME | {"Origin": "null"},
        HOME | {"Origin": "http://127.0.0.1:9999"},
    ],
)
def test_a_web_page_from_elsewhere_steers_nothing(client: Client, headers: dict[str, str]) -> None:
    response = client.ask("POST", f"/_dialsim/campaigns/{RUNNING}/cancel", headers)
    assert (response.status_code, response.json()["code"]) == (403, "FORBIDDEN")
    assert client.core.simulation.status("Acme/Running") == "RUNNING"


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8400", "localhost:8400", "[::1]:8400", "LOCALHOST", "127.0.0.2:80", "127.8.9.1"],
)
def test_a_page_of_the_sandbox_itself_may_steer(client: Client, host: str) -> None:
    headers = {"Host": host, "Origin": f"http://{host}"}
    assert client.ask("GET", "/_dialsim/clock", headers).status_code == 200
