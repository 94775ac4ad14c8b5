"""Answers that fail on purpose: 5xx and slow ones, as clients see them over real sockets."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from tests.sandbox.asking import Client, control, exchange_of_the_corpus, key

import dialsim
from dialsim.sandbox import application, failures
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.failures import MOST_FAULTS
from dialsim.sandbox.restart import begin, resume
from dialsim.testing import Sketch

WORLD = (
    Sketch(lines=1)
    .campaign("January", "busy 1s; answered 5s 90s", max_attempts=2)
    .campaign("May", "busy 1s", requested=None)
)
AGENTS = "/api/agent/list"
AT_ONCE = {"startDateTime": "2026-01-05T02:00:00Z"}
SERVICE_UNAVAILABLE = {
    "success": False,
    "statusCode": 503,
    "code": "SERVICE_UNAVAILABLE",
    "message": "Service unavailable",
    "errors": ["Service unavailable"],
}


@pytest.fixture
def sandbox() -> Iterator[dialsim.Sandbox]:
    with dialsim.Sandbox(WORLD.scenario()) as sandbox:
        yield sandbox


@pytest.fixture
def client() -> Client:
    return Client(exchange_of_the_corpus())


def http(sandbox: dialsim.Sandbox) -> httpx.Client:
    headers = {"X-API-Key": sandbox.api_key}
    return httpx.Client(base_url=sandbox.url, headers=headers, verify=False)


def statuses(asking: httpx.Client, count: int, path: str = AGENTS) -> list[int]:
    return [asking.get(path).status_code for _ in range(count)]


def add(client: Client, **order: Any) -> Any:
    response = control(client, "POST", "/faults", order)
    assert response.status_code == 201, response.text
    return response.json()


def of(client: Client, organization: str, path: str = AGENTS) -> int:
    return client.ask("GET", path, {"X-API-Key": key(organization)}).status_code


def undated(answer: httpx.Response) -> list[tuple[str, str]]:
    """Return the headers without the date."""
    return [(name, value) for name, value in answer.headers.items() if name != "date"]


# -- what strikes ----------------------------------------------------------------------------------


def test_the_next_answers_are_errors_and_then_all_is_as_before(sandbox: dialsim.Sandbox) -> None:
    with http(sandbox) as asking:
        before = asking.get(AGENTS)
        fault = sandbox.faults.strike_api("error", 2)
        assert (fault.id, fault.met, fault.struck, fault.left) == (1, 0, 0, 2)
        struck = asking.get(AGENTS)
        assert (struck.status_code, struck.json()) == (503, SERVICE_UNAVAILABLE)
        assert struck.headers[failures.MARK] == "1"
        assert (sandbox.faults[1].struck, sandbox.faults[1].left) == (1, 1)
        assert statuses(asking, 3) == [503, 200, 200]
        after = asking.get(AGENTS)
    assert (after.content, undated(after)) == (before.content, undated(before))
    [spent] = sandbox.faults
    assert (spent.met, spent.struck, spent.left) == (2, 2, 0)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (500, "INTERNAL_ERROR"),
        (401, "INVALID_API_KEY"),
        (429, "TOO_MANY_REQUESTS"),
        (502, "BAD_GATEWAY"),
        (503, "SERVICE_UNAVAILABLE"),
        (504, "GATEWAY_TIMEOUT"),
    ],
)
def test_an_error_has_the_status_that_was_asked_for(client: Client, status: int, code: str) -> None:
    add(client, api="error", next=1, status=status)
    answer = client.ask("GET", AGENTS, {"X-API-Key": key("Acme")})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["statusCode"] == status


def test_a_request_that_is_answered_with_an_error_is_not_carried_out(
    sandbox: dialsim.Sandbox,
) -> None:
    sandbox.faults.strike_api("error")
    with pytest.raises(dialsim.Refused, match="Service unavailable") as refused:
        sandbox.schedule("May", AT_ONCE)
    assert refused.value.status == 503
    assert sandbox.campaign("May").status == "DRAFT"
    sandbox.schedule("May", AT_ONCE)
    assert sandbox.campaign("May").status == "RUNNING"


def test_a_slow_answer_is_held_back_as_long_as_was_asked_for(
    sandbox: dialsim.Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[float] = []

    async def hold(seconds: float) -> None:
        held.append(seconds)
        await asyncio.sleep(seconds)

    monkeypatch.setattr(application, "asyncio", SimpleNamespace(sleep=hold))
    with http(sandbox) as asking:
        before = asking.get(AGENTS)
        sandbox.faults.strike_api("slow", delay="20ms")
        slow = asking.get(AGENTS)
        assert statuses(asking, 2) == [200, 200]
        assert (slow.status_code, slow.content, undated(slow)) == (
            (200, before.content, undated(before))
        )
        sandbox.faults.strike_api("slow", delay="1m")
        with pytest.raises(httpx.ReadTimeout):
            asking.get(AGENTS, timeout=httpx.Timeout(600, read=0.1))
        while len(held) < 2:  # where the client gives up before its request is read
            time.sleep(0.01)
    assert held == [0.02, 60.0]
    assert [fault.left for fault in sandbox.faults] == [0, 0]


def test_a_slow_answer_is_that_of_the_moment_of_the_request_and_others_do_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held: list[float] = []
    go_on = asyncio.Event()

    async def hold(seconds: float) -> None:
        held.append(seconds)
        await go_on.wait()

    client = Client(exchange_of_the_corpus())
    add(client, api="slow", next=1, delay="1m")
    monkeypatch.setattr(application, "asyncio", SimpleNamespace(sleep=hold))
    paused = "/api/campaign/cccccccc-0000-4000-8000-000000000003"
    headers = {"X-API-Key": key("Acme")}

    async def scene() -> tuple[httpx.Response, httpx.Response]:
        transport = httpx.ASGITransport(client.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://it") as asking:
            slow = asyncio.create_task(asking.post(f"{paused}/pause", headers=headers))
            while not held:
                await asyncio.sleep(0)
            other = await asking.post(f"{paused}/pause", headers=headers)
            assert not slow.done()
            go_on.set()
            return await slow, other

    slow, other = asyncio.run(scene())
    assert held == [60.0]
    assert slow.json()["message"] == "Campaign status updated to PAUSED successfully"
    assert other.json()["message"] == "Campaign is already PAUSED"


def test_an_answer_that_is_held_back_is_given_when_the_sandbox_is_stopped(
    sandbox: dialsim.Sandbox,
) -> None:
    """The request has been carried out: that it was broken off would be wrong."""
    sandbox.faults.strike_api("slow", delay="1m")
    campaign = sandbox.campaigns[0].id

    async def scene() -> httpx.Response:
        headers = {"X-API-Key": sandbox.api_key}
        async with httpx.AsyncClient(base_url=sandbox.url, headers=headers) as asking:
            slow = asyncio.create_task(asking.post(f"/api/campaign/{campaign}/pause"))
            while (await asking.get("/_dialsim/faults/1")).json()["left"]:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(sandbox.stop)
            return await slow

    assert asyncio.run(scene()).json()["data"] == {"id": campaign, "status": "PAUSED"}


# -- what comes instead of the answer --------------------------------------------------------------

JANUARY = {"startDateTime": "2026-01-05T02:00:00Z"}


def start(sandbox: dialsim.Sandbox, asking: httpx.Client) -> httpx.Response:
    return asking.post(f"/api/campaign/{sandbox.campaign('May').id}/schedule", json=JANUARY)


def test_a_429_says_when_to_try_again(sandbox: dialsim.Sandbox) -> None:
    with http(sandbox) as asking:
        sandbox.faults.strike_api("error", retry_after="1500ms")
        sandbox.faults.strike_api("error", status=503, retry_after="7s")
        sandbox.faults.strike_api("error", status=429)
        told = [
            (answer.status_code, answer.headers.get("retry-after"))
            for answer in (asking.get(AGENTS) for _ in range(4))
        ]
    assert told == [(429, "2"), (503, "7"), (429, None), (200, None)]


def test_a_request_may_be_carried_out_and_answered_with_an_error(sandbox: dialsim.Sandbox) -> None:
    sandbox.faults.strike_api("error", status=502, executed=True)
    with http(sandbox) as asking:
        lost = start(sandbox, asking)
        assert (lost.status_code, lost.json()["code"]) == (502, "BAD_GATEWAY")
        assert sandbox.campaign("May").status == "RUNNING"
        again = start(sandbox, asking)
        assert again.json()["code"] == "CAMPAIGN_ALREADY_STARTED"
    logged = sandbox.requests.filter("POST")
    assert [(one.status, one.fault, one.body) for one in logged] == [
        (502, 1, JANUARY),
        (409, None, JANUARY),
    ]


@pytest.mark.parametrize("executed", [False, True])
def test_a_connection_is_dropped_before_or_after_the_request_is_carried_out(
    sandbox: dialsim.Sandbox, executed: bool
) -> None:
    sandbox.faults.strike_api("drop", executed=executed)
    with http(sandbox) as asking:
        with pytest.raises(httpx.TransportError):
            start(sandbox, asking)
        assert sandbox.campaign("May").status == ("RUNNING" if executed else "DRAFT")
        assert asking.get(AGENTS).status_code == 200
    [dropped] = sandbox.requests.filter("POST")
    assert (dropped.status, dropped.fault, dropped.body) == (None, 1, JANUARY)
    assert dropped == sandbox.requests.filter(status="none")[0]


def test_a_key_is_refused_for_a_while(sandbox: dialsim.Sandbox) -> None:
    fault = sandbox.faults.strike_api("error", status=401, lasts="10m")
    assert (fault.left, fault.until) == (None, sandbox.clock.now + timedelta(minutes=10))
    with http(sandbox) as asking:
        assert statuses(asking, 3) == [401] * 3
        assert asking.get(AGENTS).json()["code"] == "INVALID_API_KEY"
        sandbox.clock.advance(minutes=9, seconds=59)
        assert statuses(asking, 1) == [401]
        sandbox.clock.advance(seconds=1)
        assert statuses(asking, 1) == [200]
    assert sandbox.faults[fault.id].struck == 5


def test_what_lasts_may_be_spent_before(sandbox: dialsim.Sandbox) -> None:
    sandbox.faults.strike_api("error", 1, lasts="1h")
    with http(sandbox) as asking:
        assert statuses(asking, 2) == [503, 200]


def test_the_body_of_an_answer_comes_in_pieces(
    sandbox: dialsim.Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)
        await asyncio.sleep(0.02)

    monkeypatch.setattr(application, "asyncio", SimpleNamespace(sleep=wait))
    with http(sandbox) as asking:
        before = asking.get(AGENTS)
        sandbox.faults.strike_api("slowBody", delay="20s")
        with asking.stream("GET", AGENTS) as slow:
            pieces = [*slow.iter_raw()]
    assert len(pieces) > 1
    assert (slow.status_code, b"".join(pieces)) == (200, before.content)
    assert undated(slow) == undated(before)
    assert waited == [2.0] * (application.PIECES - 1)


def test_a_body_that_is_slow_comes_as_a_whole_when_the_sandbox_is_stopped(
    sandbox: dialsim.Sandbox,
) -> None:
    sandbox.faults.strike_api("slowBody", delay="1m")

    async def scene() -> httpx.Response:
        headers = {"X-API-Key": sandbox.api_key}
        async with httpx.AsyncClient(base_url=sandbox.url, headers=headers) as asking:
            slow = asyncio.create_task(asking.get(AGENTS))
            while (await asking.get("/_dialsim/faults/1")).json()["left"]:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(sandbox.stop)
            return await slow

    assert asyncio.run(scene()).json()["success"]


# -- whom it strikes -------------------------------------------------------------------------------


def test_only_requests_under_api_with_a_right_key_are_struck(client: Client) -> None:
    add(client, api="error", next=9)
    assert client.ask("GET", AGENTS).json()["code"] == "API_KEY_REQUIRED"
    assert client.ask("GET", AGENTS, {"X-API-Key": "wrong"}).json()["code"] == "INVALID_API_KEY"
    assert client.ask("GET", "/voice-demo/catalog").status_code == 200
    assert client.ask("GET", "/openapi.json").status_code == 200
    assert control(client, "GET", "/campaigns").status_code == 200
    assert control(client, "GET", "/faults/1").json()["met"] == 0
    assert of(client, "Acme", "/api/nowhere") == 503
    assert control(client, "GET", "/faults/1").json()["struck"] == 1


def test_a_fault_may_be_for_one_organization_or_for_some_paths(client: Client) -> None:
    add(client, api="error", next=9, organization="Beta")
    add(client, api="error", next=9, path="/api/call/", status=500)
    assert [of(client, name) for name in ("Acme", "Beta", "Gamma")] == [200, 503, 200]
    assert of(client, "Acme", "/api/call/x") == 500
    assert of(client, "Acme", "/api/call") == 404
    identifier = control(client, "GET", "/organizations/Acme").json()["id"]
    add(client, api="error", next=1, organization=identifier.upper(), status=502)
    assert of(client, "Acme") == 502


def test_the_oldest_fault_that_is_not_spent_strikes_and_no_other(client: Client) -> None:
    for status, count in ((500, 1), (502, 2), (504, 1)):
        add(client, api="error", next=count, status=status)
    assert [of(client, "Acme") for _ in range(5)] == [500, 502, 502, 504, 200]
    listed = control(client, "GET", "/faults").json()
    assert [(one["met"], one["struck"]) for one in listed] == [(1, 1), (2, 2), (1, 1)]


# -- chance ----------------------------------------------------------------------------------------


def struck(client: Client, count: int = 40) -> str:
    return "".join("x" if of(client, "Acme") == 503 else "." for _ in range(count))


def test_a_share_is_left_to_chance_that_the_seed_decides() -> None:
    text = WORLD.text
    rounds = []
    for seed in (1, 1, 2):
        client = Client(SandboxCore(dialsim.loads(text), seed))
        add(client, api="error", next=1000, share=0.3)
        headers = {"X-API-Key": client.core.api_key(0)}
        answers = [client.ask("GET", AGENTS, headers).status_code for _ in range(200)]
        rounds.append(answers)
        [fault] = control(client, "GET", "/faults").json()
        assert (fault["met"], fault["struck"]) == (200, answers.count(503))
        assert 40 < answers.count(503) < 80  # 60 expected, standard deviation 6.5
    assert rounds[0] == rounds[1]
    assert rounds[0] != rounds[2]


def test_whoever_an_older_fault_lets_pass_meets_the_next_one(client: Client) -> None:
    add(client, api="error", next=1000, share=0.5)
    add(client, api="error", next=1000, share=0.5, status=500)
    answers = [of(client, "Acme") for _ in range(60)]
    listed = control(client, "GET", "/faults").json()
    assert [one["struck"] for one in listed] == [answers.count(503), answers.count(500)]
    assert [one["met"] for one in listed] == [60, 60 - answers.count(503)]
    assert len(set(answers)) == 3
    alone = exchange_of_the_corpus()
    add(Client(alone), api="error", next=1000, share=0.5)
    assert struck(Client(alone), 60) == "".join("x" if one == 503 else "." for one in answers)


def test_two_faults_of_the_same_kind_have_chances_of_their_own(client: Client) -> None:
    rounds = []
    for _ in range(2):
        add(client, api="error", next=1000, share=0.5)
        rounds.append(struck(client))
        control(client, "DELETE", "/faults")
    assert rounds[0] != rounds[1]


# -- counting, listing, clearing -------------------------------------------------------------------


def test_faults_are_listed_with_what_was_asked_and_what_became_of_it(client: Client) -> None:
    made = add(client, api="error", next=3, share=0.5, status=None)
    asked = {
        "webhooks": None,
        "api": "error",
        "next": 3,
        "at": None,
        "lasts": None,
        "every": None,
        "share": 0.5,
        "organization": None,
        "campaign": None,
        "path": None,
        "status": None,
        "retryAfter": None,
        "executed": None,
        "delay": None,
        "requestsPerSecond": None,
        "burst": None,
    }
    assert made == {"id": 1, "asked": asked, "met": 0, "struck": 0, "left": 3, "until": None}
    add(client, api="slow", next=1, delay="1500ms", path="/api", organization="Acme")
    listed = control(client, "GET", "/faults").json()
    assert listed[0] == made == control(client, "GET", "/faults/1").json()
    assert [listed[1]["asked"][name] for name in ("delay", "path", "organization")] == (
        ["1s500ms", "/api", "Acme"]
    )


def test_cleared_faults_strike_no_more_and_their_numbers_are_not_used_again(client: Client) -> None:
    for status in (500, 502, 504):
        add(client, api="error", next=5, status=status)
    assert of(client, "Acme") == 500
    cleared = control(client, "DELETE", "/faults/1")
    assert (cleared.status_code, cleared.json()["struck"]) == (200, 1)
    assert of(client, "Acme") == 502
    assert [one["id"] for one in control(client, "DELETE", "/faults").json()] == [2, 3]
    assert of(client, "Acme") == 200
    assert control(client, "GET", "/faults").json() == control(client, "DELETE", "/faults").json()
    assert add(client, api="error", next=1)["id"] == 4


@pytest.mark.parametrize("number", ["1", "0", "-1", "x", "٣", "9" * 5000])
def test_a_fault_that_is_not_there_is_404(client: Client, number: str) -> None:
    for method in ("GET", "DELETE"):
        response = control(client, method, f"/faults/{number}")
        assert (response.status_code, response.json()["code"]) == (404, "FAULT_NOT_FOUND")


def test_there_are_not_more_faults_than_somebody_can_look_through(client: Client) -> None:
    for _ in range(MOST_FAULTS):
        add(client, api="error", next=1)
    response = control(client, "POST", "/faults", {"api": "error", "next": 1})
    assert (response.status_code, response.json()["code"]) == (409, "TOO_MANY_FAULTS")
    control(client, "DELETE", "/faults/7")
    assert add(client, api="error", next=1)["id"] == MOST_FAULTS + 1


FITS = {"api": "error", "next": 1}


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ([], ["body must be an object"]),
        ({}, ["next or lasts must be given", "one of webhooks and api must be given"]),
        ({"next": 1}, ["one of webhooks and api must be given"]),
        (FITS | {"webhooks": "late"}, ["one of webhooks and api must be given"]),
        (FITS | {"webhooks": None, "next": None}, ["next or lasts must be given"]),
        (FITS | {"api": "errors"}, ["api must be error, limit, drop, slow or slowBody"]),
        (
            {"webhooks": "lost", "next": 1},
            ["webhooks must be timeout, refuse, late, twice, delayed or stale"],
        ),
        (FITS | {"next": 0}, ["next must not be less than 1"]),
        (FITS | {"next": 1_000_001}, ["next must not be greater than 1000000"]),
        (FITS | {"next": "3"}, ["next must be a whole number"]),
        (FITS | {"share": 0}, ["share must be greater than 0"]),
        (FITS | {"share": 1.1}, ["share must not be greater than 1"]),
        (FITS | {"status": 404}, ["status must be 401, 429, 500, 502, 503 or 504"]),
        (FITS | {"delay": "2s"}, [
            "delay goes with api slow, api slowBody or webhooks delayed alone"
        ]),
        ({"webhooks": "delayed", "next": 1}, ["delay is required where webhooks is delayed"]),
        ({"webhooks": "delayed", "next": 1, "delay": "25h"}, ["delay must not be longer than 1d"]),
        ({"webhooks": "late", "next": 1, "delay": "1s"}, [
            "delay goes with api slow, api slowBody or webhooks delayed alone"
        ]),
        ({"api": "slow", "next": 1, "delay": "1s", "executed": True}, [
            "executed goes with api error or api drop alone"
        ]),
        (FITS | {"status": 500, "retryAfter": "1s"}, [
            "retryAfter goes with status 429 or 503 alone"
        ]),
        (FITS | {"lasts": "0s"}, ["lasts must be greater than 0"]),
        (FITS | {"campaign": "x"}, ["campaign goes with webhooks alone"]),
        (FITS | {"path": "/_dialsim"}, ["path must be a path that begins with /api"]),
        (FITS | {"path": "/apis"}, ["path must be a path that begins with /api"]),
        (FITS | {"organization": "acme"}, [
            'organization "acme" is not known; known here: Acme, Beta, Gamma'
        ]),
        ({"api": "slow", "next": 1}, ["delay is required where api is slow"]),
        ({"api": "slow", "next": 1, "delay": "61s"}, ["delay must not be longer than 1m"]),
        ({"api": "slow", "next": 1, "delay": "0s"}, ["delay must be greater than 0"]),
        ({"api": "slow", "next": 1, "delay": 5}, ["delay needs a unit: 5s or 5ms, for instance"]),
        ({"api": "slow", "next": 1, "delay": "1s", "status": 500}, [
            "status goes with api error alone"
        ]),
        ({"webhooks": "late", "next": 1, "path": "/api"}, ["path goes with api alone"]),
        ({"webhooks": "late", "next": 1, "campaign": "January"}, [
            'campaign "January" is not the id of a campaign'
        ]),
        ({"next": 0, "share": "x", "whenever": 2, "api": "error"}, [
            "property whenever should not exist",
            "next must not be less than 1",
            "share must be a number",
        ]),
    ],
)  # fmt: skip
def test_an_order_that_makes_no_sense_is_refused_and_nothing_changes(
    client: Client, body: Any, errors: list[str]
) -> None:
    response = control(client, "POST", "/faults", body)
    assert (response.status_code, response.json()["code"]) == (400, "VALIDATION_FAILED")
    assert response.json()["errors"] == errors
    assert control(client, "GET", "/faults").json() == []


def test_a_campaign_must_be_one_of_the_organization(client: Client) -> None:
    of_acme = "cccccccc-0000-4000-8000-000000000003"
    order = {"webhooks": "late", "next": 1, "campaign": of_acme, "organization": "Beta"}
    response = control(client, "POST", "/faults", order)
    assert response.json()["message"] == "campaign is one of Acme, not of Beta"
    assert add(client, **order | {"organization": "Acme"})["asked"]["campaign"] == of_acme


# -- as before -------------------------------------------------------------------------------------


def test_spent_or_cleared_faults_leave_no_trace_in_any_answer() -> None:
    touched, untouched = (Client(SandboxCore(WORLD.scenario())) for _ in range(2))
    headers = {"X-API-Key": touched.core.api_key(0)}

    def rounds() -> Iterator[tuple[str, str, Any]]:
        [january, _] = (one["id"] for one in control(untouched, "GET", "/campaigns").json())
        yield "POST", f"/api/campaign/{january}/pause", None
        for _ in range(3):
            for path in (AGENTS, f"/api/campaign/{january}/recipients", "/api/nowhere"):
                yield "GET", path, None
            for path in ("/clock", "/campaigns", "/organizations"):
                yield "GET", f"/_dialsim{path}", None
            yield "POST", f"/_dialsim/campaigns/{january}/resume", None
            yield "POST", "/_dialsim/clock/advance", {"by": "20m"}

    add(touched, api="error", next=2)
    add(touched, api="slow", next=1, delay="1ms")
    add(touched, api="error", next=5, share=0.5)
    while of_it := [one for one in control(touched, "GET", "/faults").json()[:2] if one["left"]]:
        assert of_it
        touched.ask("GET", AGENTS, headers)
    control(touched, "DELETE", "/faults/3")
    for method, path, body in rounds():
        answers = []
        for client in (touched, untouched):
            if path.startswith("/_dialsim"):
                answers.append(control(client, method, path.removeprefix("/_dialsim"), body))
            else:
                answers.append(client.ask(method, path, headers))
        assert answers[0].content == answers[1].content
        assert answers[0].headers == answers[1].headers
        assert answers[0].status_code == answers[1].status_code
    trace, other = (client.core.simulation.trace for client in (touched, untouched))
    assert trace.turns == other.turns
    assert trace.campaigns == other.campaigns


def test_faults_and_their_chances_go_on_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    stopped = Client(begin(file, WORLD.scenario()))
    whole = Client(SandboxCore(WORLD.scenario()))
    headers = {"X-API-Key": whole.core.api_key(0)}

    def seen(client: Client, count: int) -> list[int]:
        return [client.ask("GET", AGENTS, headers).status_code for _ in range(count)]

    for client in (stopped, whole):
        for status in (500, 502, 504):
            add(client, api="error", next=20, share=0.4, status=status)
        control(client, "DELETE", "/faults/2")
    first = seen(stopped, 23)
    stopped.core.journal.close()  # type: ignore[union-attr]
    again = Client(resume(file))
    assert first + seen(again, 23) == seen(whole, 46)
    listed = control(again, "GET", "/faults").content
    assert listed == control(whole, "GET", "/faults").content
    assert re.search(rb'"struck":[1-9]', listed)
    again.core.journal.close()  # type: ignore[union-attr]


# -- from Python -----------------------------------------------------------------------------------


def test_faults_are_asked_for_listed_and_cleared_from_python(sandbox: dialsim.Sandbox) -> None:
    faults = sandbox.faults
    first = faults.strike_api("error", 3, status=502, path=AGENTS, organization="Acme")
    assert first.asked.model_dump(exclude_none=True) == {
        "api": "error",
        "next": 3,
        "status": 502,
        "share": 1.0,
        "path": AGENTS,
        "organization": "Acme",
    }
    assert first.until is None
    second = faults.strike_webhooks("late", campaign="January", share=0.5)
    assert second.asked.campaign == sandbox.campaign("January").id
    assert [*faults] == [first, second]
    assert repr(faults).startswith("<dialsim faults: [FaultState(id=1, ")
    faults.clear(first)
    with pytest.raises(dialsim.Refused, match="Fault not found"):
        _ = faults[1]
    faults.clear(2)
    faults.strike_api("slow", delay="1s")
    faults.clear()
    assert [*faults] == []
    with pytest.raises(dialsim.Refused, match="delay is required"):
        faults.strike_api("slow")
    with pytest.raises(dialsim.DialsimError, match="no campaign 'June'; there are: Acme/January"):
        faults.strike_webhooks("late", campaign="June")
