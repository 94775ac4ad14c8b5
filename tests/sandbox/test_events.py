"""Events for programs: all that happens, once, in order, whoever is slow or comes back."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from tests.sandbox.asking import Client
from tests.sandbox.serving import served

from dialsim.sandbox.access import with_webhook_url
from dialsim.sandbox.control.events import MOST_STREAMS
from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Answer, Receiver, Sketch

SKETCH = Sketch(lines=1).campaign(
    "January", "busy 1s; answered 5s 90s", "noAnswer 20s", max_attempts=2, retry_interval="10m"
)
STREAM = {"Accept": "text/event-stream"}
HOME = {"Host": "127.0.0.1:8400"}
Event = tuple[str, str | None, Any]


@contextmanager
def stream(
    url: str, last: str | None = None, after: str | None = None
) -> Iterator[Iterator[Event]]:
    """Return the server-sent events of a client: kind, id, data."""
    headers = STREAM if last is None else STREAM | {"Last-Event-ID": last}
    query = {} if after is None else {"after": after}
    path = f"{url}/_dialsim/events"
    with httpx.stream(
        "GET", path, headers=headers, params=query, timeout=30, verify=False
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        yield read(response.iter_lines())


def read(lines: Iterator[str]) -> Iterator[Event]:
    fields = dict[str, str]()
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], fields.get("id"), json.loads(fields["data"])
            fields = {}


def until(events: Iterator[Event], kind: str, **having: object) -> list[Event]:
    """The events up to the first of a kind with such data."""
    seen = []
    for event in events:
        seen.append(event)
        if event[0] == kind and {**event[2], **having} == event[2]:
            break
    return seen


def control(url: str, method: str, path: str, body: object = None) -> Any:
    answer = httpx.request(method, f"{url}/_dialsim{path}", json=body, timeout=60, verify=False)
    assert answer.is_success, answer.text
    return answer.json()


def told(events: list[Event]) -> list[Event]:
    return [event for event in events if event[0] not in ("clock", "reset")]


def test_everything_that_happens_is_told_in_its_order() -> None:
    with Receiver() as receiver:
        receiver.answer(Answer(500))
        core = SandboxCore(with_webhook_url(SKETCH.scenario(), receiver.url))
        with served(core) as sandbox, stream(sandbox.url, after="0") as events:
            control(sandbox.url, "POST", "/clock/advance", {"until": "idle"})
            seen = told(until(events, "campaign", toStatus="COMPLETED"))
            [january] = control(sandbox.url, "GET", "/campaigns")
            path = f"/campaigns/{january['id']}/transitions"
            listed = control(sandbox.url, "GET", path)["transitions"]
            webhooks = control(sandbox.url, "GET", "/webhooks")["webhooks"]
            everything = list[Event]()
            with stream(sandbox.url, after="0") as again:
                while [kind for kind, _, _ in everything].count("webhook") < len(webhooks):
                    everything += told([next(again)])
    calls = [data for kind, _, data in seen if kind == "call"]
    names = ("at", "call", "fromStatus", "toStatus", "phase", "cause")
    assert [[one[name] for name in names] for one in calls] == [
        [row[name] for name in names] for row in listed
    ]
    statuses = [data["toStatus"] for kind, _, data in seen if kind == "campaign"]
    assert statuses == ["SCHEDULED", "RUNNING", "COMPLETED"]
    sent = [data for kind, _, data in everything if kind == "webhook"]
    names = ("at", "attempt", "response", "status", "callId", "campaign")
    assert [[one[name] for name in names] for one in sent] == [
        [row[name] for name in names] for row in webhooks
    ]
    assert everything[: len(seen)] == seen
    assert all(data["id"] == id and data["type"] == kind for kind, id, data in everything)


def test_who_comes_back_is_told_what_was_missed() -> None:
    with served(SandboxCore(SKETCH.scenario())) as sandbox:
        with stream(sandbox.url) as events:  # from now on
            assert next(events)[0] == "clock"
            control(sandbox.url, "POST", "/clock/advance", {"by": "5s"})
            first = told(until(events, "clock", now="2026-01-05T02:00:05.000Z"))
        control(sandbox.url, "POST", "/clock/advance", {"until": "idle"})
        with stream(sandbox.url, last=first[-1][1]) as events:
            second = told(until(events, "campaign", toStatus="COMPLETED"))
        with stream(sandbox.url, after="0") as events:
            everything = told(until(events, "campaign", toStatus="COMPLETED"))
        assert [*first, *second] == everything[-len(first) - len(second) :]
        with stream(sandbox.url, after=everything[2][1]) as events:
            assert told(until(events, "campaign", toStatus="COMPLETED")) == everything[3:]


def test_a_stream_tells_of_a_reset_and_goes_on_with_the_new_run() -> None:
    with served(SandboxCore(SKETCH.scenario())) as sandbox:
        with stream(sandbox.url) as events:
            control(sandbox.url, "POST", "/clock/advance", {"by": "5s"})
            last = told(until(events, "clock", now="2026-01-05T02:00:05.000Z"))[-1][1]
            control(sandbox.url, "POST", "/reset")
            kind, _, data = until(events, "reset")[-1]
            assert (kind, data) == ("reset", {"now": "2026-01-05T02:00:00.000Z"})
            control(sandbox.url, "POST", "/clock/advance", {"by": "5s"})
            assert told(until(events, "clock", now="2026-01-05T02:00:05.000Z"))
        with stream(sandbox.url, last=last) as events:  # an id of the run that is given up
            assert next(events)[0] == "reset"


def test_slow_clients_hold_up_nobody() -> None:
    many = Sketch(lines=50).campaign("January", recipients={"count": 500})
    with served(SandboxCore(many.scenario())) as sandbox:
        request = b"GET /_dialsim/events?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        slow = [sandbox.connect() for _ in range(MOST_STREAMS - 1)]
        for client in slow:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.sendall(request)
            assert client.recv(12) == b"HTTP/1.1 200"
        with stream(sandbox.url, after="0") as events:
            refused = httpx.get(f"{sandbox.url}/_dialsim/events", headers=STREAM)
            assert (refused.status_code, refused.json()["code"]) == (503, "TOO_MANY_STREAMS")
            control(sandbox.url, "POST", "/clock/advance", {"until": "idle"})
            seen = told(until(events, "campaign", toStatus="COMPLETED"))
        assert len({id for _, id, _ in seen}) == len(seen) > 2_500
        for client in slow:
            client.close()


def test_a_request_for_the_head_ends_and_unknown_parameters_are_refused() -> None:
    client = Client(SandboxCore(SKETCH.scenario()))
    head, refused = (
        client.ask(method, f"/_dialsim/events{query}", HOME)
        for method, query in (("HEAD", ""), ("GET", "?since=0"))
    )
    assert head.headers["content-type"].startswith("text/event-stream")
    assert refused.json()["errors"] == ["property since should not exist"]


@pytest.mark.parametrize("identifier", ["x", "0-0", "-1", "-", "9" * 50])
def test_an_id_that_was_never_given_is_told_to_read_the_state_anew(identifier: str) -> None:
    with (
        served(SandboxCore(SKETCH.scenario())) as sandbox,
        stream(sandbox.url, after=identifier) as events,
    ):
        assert next(events)[0] == "reset"


def test_streams_that_begin_at_once_are_counted_and_end_with_their_clients() -> None:
    core = SandboxCore(SKETCH.scenario())
    request = b"GET /_dialsim/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with served(core) as sandbox:
        clients = [sandbox.connect() for _ in range(MOST_STREAMS + 20)]
        for client in clients:
            client.sendall(request)
        answers = [client.recv(12)[9:] for client in clients]
        assert answers.count(b"200") == MOST_STREAMS
        assert answers.count(b"503") == 20
        for client in clients:
            client.close()
        for _ in range(500):
            if (
                httpx.get(f"{sandbox.url}/_dialsim/clock").json()["status"]
                and not sandbox.connections
            ):
                break
            time.sleep(0.01)
        with stream(sandbox.url, after="0") as events:
            assert next(events)
