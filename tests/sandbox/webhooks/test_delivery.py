"""Deliveries that go wrong in rarer ways (W2); the common ones are in `test_receivers`."""

from __future__ import annotations

import socket
from threading import Thread

import pytest
from tests.sandbox.webhooks.receiving import sending

from dialsim.sandbox.access import Destinations
from dialsim.testing import Answer, Receiver, Sketch

ONE = Sketch(lines=1).campaign("January", "busy 1s")
THREE = Sketch(lines=3).campaign("January", "busy 1s", "busy 1s", "busy 1s")


def test_w2_every_response_stands_in_the_list_with_its_tries() -> None:
    with Receiver() as receiver, sending(ONE, receiver.url) as sandbox:
        elsewhere = {"Location": receiver.url.replace("/webhook", "/elsewhere")}
        receiver.answer(Answer(304), Answer(302, headers=elsewhere), Answer(299))
        sandbox.advance(until="idle")
        assert sandbox.posts() == [(0, 1, 304), (1, 2, 302), (3, 3, 299)]
        assert {row["url"] for row in sandbox.webhooks} == {receiver.url}
        assert [row["received"] for row in sandbox.webhooks] == [False, False, True]
    assert [request.path for request in receiver.requests] == ["/webhook"] * 3


def test_w2_an_unknown_host_is_refused() -> None:
    url = "http://nobody.invalid/webhook"
    with sending(ONE, url, destinations=Destinations(url)) as sandbox:
        sandbox.advance(until="idle")
        assert [response for *_, response in sandbox.posts()] == ["refused"] * 3


def test_w2_a_receiver_that_comes_back_gets_the_next_try() -> None:
    with Receiver() as receiver, sending(ONE, receiver.url) as sandbox:
        receiver.refuse()
        while not sandbox.webhooks:
            sandbox.advance(until="nextEvent")
        receiver.accept()
        sandbox.advance(until="idle")
        assert sandbox.posts() == [(0, 1, "refused"), (1, 2, 200)]


def test_w2_a_reply_that_is_no_http_is_broken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def babble() -> None:
            for _ in range(3):
                connection, _ = listener.accept()
                connection.recv(100_000)
                connection.sendall(b"220 mail.test ready\r\n")
                connection.close()

        thread = Thread(target=babble)
        thread.start()
        with sending(ONE, f"http://127.0.0.1:{listener.getsockname()[1]}/") as sandbox:
            sandbox.advance(until="idle")
            assert [response for *_, response in sandbox.posts()] == ["broken"] * 3
        thread.join()


def test_w2_what_a_reply_without_an_end_says_at_its_beginning_does_not_count() -> None:
    with Receiver() as receiver, sending(ONE, receiver.url, timeout=0.5) as sandbox:
        receiver.answer(Answer(500, then="endless"), Answer(200, then="endless"))
        while len(sandbox.webhooks) < 2:
            sandbox.advance(until="nextEvent")
        sandbox.core.sender.timeout = 10  # for the one that is to be answered
        sandbox.advance(until="idle")
        assert sandbox.posts() == [(0, 1, "timeout"), (11, 2, "timeout"), (23, 3, 200)]


def test_w2_cookies_are_not_kept() -> None:
    with Receiver() as receiver, sending(THREE, receiver.url) as sandbox:
        receiver.otherwise = Answer(500, headers={"Set-Cookie": "who=me; Path=/"})
        sandbox.advance(until="idle")
    assert len(receiver.requests) == 9
    assert not any("Cookie" in request.headers for request in receiver.requests)


def test_w2_proxies_of_the_surroundings_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Receiver() as receiver, sending(ONE, receiver.url) as sandbox:
        sandbox.advance(until="idle")
        assert sandbox.posts() == [(0, 1, 200)]
