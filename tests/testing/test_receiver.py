"""The receiver of webhooks for tests: it records requests and responds as configured."""

from __future__ import annotations

import socket
import subprocess
import sys

import httpx
import pytest

from dialsim.errors import DialsimError
from dialsim.testing.receiver import Answer, ReceivedRequest, Receiver


def test_what_comes_in_is_kept_and_answered_with_200() -> None:
    with Receiver() as receiver:
        reply = httpx.post(receiver.url, json={"n": 1}, headers={"X-Mark": "a"})
        assert (reply.status_code, reply.content) == (200, b"")
        [request] = receiver.wait_for(1)
        assert (request.method, request.path, request.json) == ("POST", "/webhook", {"n": 1})
        assert request.headers["X-Mark"] == "a"


def test_answers_are_given_in_order_and_then_the_usual_one() -> None:
    with Receiver(otherwise=Answer(202)) as receiver:
        receiver.answer(Answer(500, body="no"), Answer(302, headers={"Location": "/other"}))
        replies = [httpx.post(receiver.url) for _ in range(4)]
        assert [reply.status_code for reply in replies] == [500, 302, 202, 202]
        assert replies[0].text == "no"


def test_a_reply_may_take_long_break_off_or_never_end() -> None:
    with Receiver() as receiver:
        receiver.answer(Answer(delay=600), Answer(then="reset"), Answer(then="endless"))
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(receiver.url, timeout=httpx.Timeout(600, read=0.05))
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            httpx.post(receiver.url)
        with httpx.stream("POST", receiver.url) as reply:
            taken = 0
            for chunk in reply.iter_raw():
                taken += len(chunk)
                if taken > 100_000:
                    break
        assert receiver.wait_for(3)


def test_it_refuses_connections_and_accepts_them_again_at_the_same_address() -> None:
    with Receiver() as receiver:
        receiver.refuse()
        with pytest.raises(httpx.ConnectError):
            httpx.post(receiver.url)
        receiver.accept()
        assert httpx.post(receiver.url).status_code == 200


def test_something_can_be_done_before_the_answer() -> None:
    seen: list[bytes] = []

    def note(request: ReceivedRequest) -> None:
        seen.append(request.body)

    with Receiver(otherwise=Answer(first=note)) as receiver:
        httpx.post(receiver.url, content=b"x")
    assert seen == [b"x"]


def test_waiting_for_what_does_not_come_says_what_came() -> None:
    with Receiver() as receiver, pytest.raises(DialsimError, match=r"0 requests came in 0\.01"):
        receiver.wait_for(1, seconds=0.01)


def test_a_request_that_breaks_off_has_not_come_in() -> None:
    with Receiver() as receiver:
        port = int(receiver.url.split(":")[2].split("/")[0])
        head = b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(head + b"half")
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
        httpx.post(receiver.url, content=b"whole")
        assert [request.body for request in receiver.requests] == [b"whole"]


def test_a_port_that_is_taken_is_named() -> None:
    with Receiver() as receiver:
        port = int(receiver.url.split(":")[2].split("/")[0])
        with pytest.raises(DialsimError, match=f"port {port} of 127.0.0.1 is not available"):
            Receiver(port)


def test_it_runs_in_a_process_of_its_own() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "dialsim.testing.receiver"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        httpx.put(url.replace("/webhook", "/-/answers"), json=[{"status": 503}])
        assert httpx.post(url, content=b"1").status_code == 503
        assert httpx.post(url, content=b"2").status_code == 200
        told = httpx.get(url.replace("/webhook", "/-/requests")).json()
        assert [request["body"] for request in told] == ["1", "2"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
