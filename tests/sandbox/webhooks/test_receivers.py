"""Webhooks over HTTP to a real receiver in a separate process (rules W)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import httpx
import pytest
from tests.sandbox.serving import served
from tests.sandbox.webhooks.sending import lines

import dialsim
from dialsim.interface.payload import BROKEN, REFUSED, TIMED_OUT
from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Sketch
from dialsim.testing.receiver import Answer, ReceivedRequest, Receiver

HOME = {"X-API-Key": "sim_0123456789abcdef0123456789abcdef"}


def scenario(people: int, url: str, overrides: tuple[str, ...] = ()) -> dialsim.Scenario:
    """One or two people, whose lines are busy."""
    scripts = {"0811111111": "busy 3s", "0822222222": "busy 3500ms"}
    called = [{"tel": tel, "script": script} for tel, script in scripts.items()]
    return (
        Sketch(5, seed=3, setup_time=None)
        .also(service={"name": "Voicely", "publicUrl": "https://voicely.example"})
        .having(api_key=HOME["X-API-Key"], webhook={"url": url})
        .behaviour("default", analysis_delay="0s", late_result_delay="1m", rates={})
        .campaign("One", *called[:people])
        .scenario(overrides)
    )


TIMEOUT = 2.0  # s, within which this machine answers, however busy it is
SHORT_TIMEOUT = 0.5  # s, for replies that are not to come in time


class ReceiverProcess:
    """A receiver in a separate process, controlled over HTTP."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "dialsim.testing.receiver"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()

    def answer(self, *answers: dict[str, Any]) -> None:
        """Answer the next requests so."""
        httpx.put(self.url.replace("/webhook", "/-/answers"), json=answers, verify=False)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Return the requests since the last call."""
        url = self.url.replace("/webhook", "/-/requests")
        told: list[dict[str, Any]] = httpx.get(url, verify=False).json()
        return told

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture
def receiver() -> Iterator[ReceiverProcess]:
    started = ReceiverProcess()
    yield started
    started.stop()


class Sandbox:
    """A sandbox on a port, whose POSTs time out sooner than after ten seconds of real time."""

    def __init__(self, core: SandboxCore, url: str) -> None:
        self.core = core
        self.url = url

    def ask(self, method: str, path: str, body: object = None) -> Any:
        reply = httpx.request(
            method, self.url + path, json=body, headers=HOME, timeout=600, verify=False
        )
        assert reply.status_code < 300, reply.text
        return reply.json()

    def advance(self, **move: str) -> None:
        self.ask("POST", "/_dialsim/clock/advance", move)

    def time_out_once(self) -> None:
        """Advance the clock until the first POST has timed out; the next ones have longer."""
        while not self.posts:
            self.advance(until="nextEvent")
        self.core.sender.timeout = TIMEOUT

    @property
    def posts(self) -> list[tuple[int, int, int]]:
        """Number, instant (ms since clock.start) and response of each POST."""
        log, start = self.core.simulation.log.posts, self.core.scenario.clock.start
        assert log is not None
        posts = map(log.row, range(len(log)))
        return [(post.number, post.at - start, post.response) for post in posts]


@contextmanager
def sandbox(
    people: int, url: str, timeout: float = TIMEOUT, overrides: tuple[str, ...] = ()
) -> Iterator[Sandbox]:
    core = SandboxCore(scenario(people, url, overrides))
    core.sender.timeout = timeout
    with served(core) as server:
        yield Sandbox(core, server.url)


def test_w2_a_post_has_the_services_headers_and_the_body_that_a_run_writes(
    receiver: ReceiverProcess,
) -> None:
    with sandbox(1, receiver.url) as box:
        box.advance(until="idle")
    [request] = receiver.requests
    headers = {name.lower(): value for name, value in request["headers"].items()}
    assert request["method"] == "POST"
    assert headers["content-type"] == "application/json"
    assert headers["user-agent"] == "Voicely-Webhook/1.0"
    assert headers["x-voicely-event"] == "CALL_RESULT"
    assert "cookie" not in headers
    run = dialsim.run(scenario(1, receiver.url))
    assert [request["body"].encode()] == [line.body for line in lines(run)]


def some(by_default: set[int], *statuses: int) -> list[Any]:
    """Statuses, of which a few are tried by default."""
    return [
        pytest.param(status, marks=[pytest.mark.slow] * (status not in by_default))
        for status in statuses
    ]


@pytest.mark.parametrize("status", some({200, 299}, 200, 201, 202, 204, 299))
def test_w2_any_2xx_is_success(receiver: ReceiverProcess, status: int) -> None:
    receiver.answer({"status": status})
    with sandbox(1, receiver.url) as box:
        box.advance(until="idle")
        assert [(number, response) for number, _, response in box.posts] == [(1, status)]
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "status",
    some({301, 307, 400, 410, 429, 503},
         301, 302, 303, 307, 308, 400, 401, 404, 410, 429, 500, 503),
)  # fmt: skip
def test_w2_anything_else_is_tried_three_times_after_1_and_2_seconds(
    receiver: ReceiverProcess, status: int
) -> None:
    elsewhere = {"Location": receiver.url + "/elsewhere"}
    receiver.answer(*[{"status": status, "headers": elsewhere}] * 4)
    with sandbox(1, receiver.url) as box:
        box.advance(until="idle")
        posts = box.posts
    assert [(number, response) for number, _, response in posts] == [
        (1, status),
        (2, status),
        (3, status),
    ]
    assert [later[1] - earlier[1] for earlier, later in pairwise(posts)] == [1_000, 2_000]
    requests = receiver.requests
    assert {request["path"] for request in requests} == {"/webhook"}  # a 3xx is not followed
    assert len({request["body"] for request in requests}) == 1
    assert len(requests) == 3


def test_w2_a_receiver_that_recovers_gets_the_same_body(receiver: ReceiverProcess) -> None:
    receiver.answer({"status": 500})
    with sandbox(1, receiver.url) as box:
        box.advance(until="idle")
        assert [response for *_, response in box.posts] == [500, 200]
    first, second = receiver.requests
    assert first["body"] == second["body"]


def test_w2_refused_connections_fail_at_once(receiver: ReceiverProcess) -> None:
    url = receiver.url
    receiver.stop()
    with sandbox(1, url) as box:
        box.advance(until="idle")
        posts = box.posts
    assert [response for *_, response in posts] == [REFUSED] * 3
    assert [later[1] - earlier[1] for earlier, later in pairwise(posts)] == [1_000, 2_000]


def test_w2_a_reply_that_breaks_off_in_the_middle_has_failed(receiver: ReceiverProcess) -> None:
    receiver.answer({"then": "reset", "body": "half of it"})
    with sandbox(1, receiver.url) as box:
        box.advance(until="idle")
        assert [response for *_, response in box.posts] == [BROKEN, 200]
    assert len(receiver.requests) == 2


def test_w2_a_reply_just_in_time_is_one_and_a_later_one_takes_10_virtual_seconds(
    receiver: ReceiverProcess,
) -> None:
    receiver.answer({"delay": 0.5 * TIMEOUT})
    with sandbox(1, receiver.url) as box:
        box.advance(until="idle")
        assert [response for *_, response in box.posts] == [200]
    receiver.answer({"delay": 1.5 * TIMEOUT})
    with sandbox(1, receiver.url, SHORT_TIMEOUT) as box:
        box.time_out_once()
        box.advance(until="idle")
        posts = box.posts
    assert [response for *_, response in posts] == [TIMED_OUT, 200]
    assert posts[1][1] - posts[0][1] == 11_000
    assert len({request["body"] for request in receiver.requests}) == 1  # W5: it has both


@pytest.mark.slow
def test_w2_the_limit_is_ten_seconds_of_real_time(receiver: ReceiverProcess) -> None:
    receiver.answer({"delay": 9.5}, {"delay": 10.5})
    with sandbox(2, receiver.url, timeout=SandboxCore(SMALL).sender.timeout) as box:
        box.advance(until="idle")
        assert sorted(response for *_, response in box.posts) == [TIMED_OUT, 200, 200]


SMALL = scenario(1, "http://127.0.0.1:9")


def test_w2_a_body_that_never_ends_is_given_up_in_time(receiver: ReceiverProcess) -> None:
    receiver.answer({"then": "endless"})
    with sandbox(1, receiver.url, SHORT_TIMEOUT) as box:
        box.time_out_once()
        box.advance(until="idle")
        assert [response for *_, response in box.posts] == [TIMED_OUT, 200]


def test_w3_results_may_arrive_out_of_order(receiver: ReceiverProcess) -> None:
    receiver.answer({"status": 503})
    with sandbox(2, receiver.url, overrides=("service.inOrder=true",)) as box:
        box.advance(until="idle")
    tels = [_tel(request) for request in receiver.requests]
    assert tels == ["0811111111", "0822222222", "0811111111"]


def test_w6_a_changed_url_applies_to_the_next_result(receiver: ReceiverProcess) -> None:
    other = ReceiverProcess()
    try:
        with sandbox(2, receiver.url) as box:
            while not box.posts:
                box.advance(until="nextEvent")
            box.ask("PATCH", "/_dialsim/organizations/Acme", {"webhookUrl": other.url})
            box.advance(until="idle")
        assert [_tel(request) for request in receiver.requests] == ["0811111111"]
        assert [_tel(request) for request in other.requests] == ["0822222222"]
    finally:
        other.stop()


def test_w6_without_a_url_nothing_is_sent(receiver: ReceiverProcess) -> None:
    with sandbox(2, receiver.url) as box:
        box.ask("PATCH", "/_dialsim/organizations/Acme", {"webhookUrl": None})
        box.advance(until="idle")
        assert box.posts == []
    assert receiver.requests == []


def test_in_order_a_receiver_that_calls_back_is_answered_while_the_clock_stands_still() -> None:
    seen: list[dict[str, Any]] = []
    in_order = ("service.inOrder=true",)
    with Receiver() as receiver, sandbox(2, receiver.url, 10, in_order) as box:

        def confirm(request: ReceivedRequest) -> None:
            before = box.ask("GET", "/_dialsim/clock")["now"]
            call = request.json["payload"]["call"]["id"]
            seen.append(box.ask("GET", f"/api/call/{call}")["data"])
            campaign = request.json["payload"]["campaign"]["id"]
            box.ask("POST", f"/api/campaign/{campaign}/pause")
            assert box.ask("GET", "/_dialsim/clock")["now"] == before

        receiver.otherwise = Answer(first=confirm)
        box.advance(until="idle")
        assert [call["callStatus"] for call in seen] == ["BUSY", "BUSY"]
        told = [request.json["payload"] for request in receiver.requests]
        assert [one["campaign"]["status"] for one in told] == ["RUNNING", "PAUSED"]


def _tel(request: dict[str, Any]) -> str:
    tel: str = httpx.Response(200, text=request["body"]).json()["payload"]["recipient"]["tel"]
    return tel
