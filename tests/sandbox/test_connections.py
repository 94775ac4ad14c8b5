"""Clients that are slow, talk nonsense, or are too many, over real sockets."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
import pytest
from starlette.responses import Response
from tests.sandbox.asking import WORLD, exchange_of_the_corpus, key
from tests.sandbox.serving import Served, served

import dialsim
from dialsim.sandbox.server import Connection, Patience
from dialsim.sandbox.service import InterfaceOperations

CAMPAIGN = "/api/campaign/cccccccc-0000-4000-8000-000000000001"
KEY = f"X-API-Key: {key('Acme')}\r\n"
HOST = "Host: 127.0.0.1\r\n"
CATALOG = f"GET /voice-demo/catalog HTTP/1.1\r\n{HOST}\r\n".encode()


class Hasty(Connection):
    """Has timeouts of a second or less, so that tests are quick."""

    patience = Patience(idle=1, head=0.5, pause=0.5, body=1.5, linger=0.5, answer=1)


class Strict(Connection):
    """Patient with bodies, but not with those that are refused."""

    patience = Patience(pause=20, body=60, linger=0.5)


class Steady(Connection):
    """Has timeouts long enough for slow clients, also beside busy processes.

    Socket buffers are small: data that a client has not read waits in the server.
    """

    patience = Patience(idle=60, head=2, pause=2, body=60, answer=2)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        super().connection_made(transport)


class Few(Connection):
    most = 2


@pytest.fixture(scope="module")
def hasty() -> Iterator[Served]:
    with served(exchange_of_the_corpus(), connection=Hasty) as running:
        yield running


@pytest.fixture(scope="module")
def steady() -> Iterator[Served]:
    with served(exchange_of_the_corpus(), connection=Steady) as running:
        yield running


def post(path: str, *headers: str) -> bytes:
    """The head of a request whose body is still to come."""
    lines = "".join(f"{header}\r\n" for header in headers)
    kind = "Content-Type: application/json\r\n"
    return f"POST {path} HTTP/1.1\r\n{HOST}{KEY}{kind}{lines}\r\n".encode()


def trickle(client: socket.socket, piece: bytes = b"x") -> None:
    """Send a piece at a time until the other side hangs up."""
    with suppress(ConnectionError):
        for _ in range(1_000):
            client.sendall(piece)
            time.sleep(0.02)
        pytest.fail("nobody hangs up")


def wait_until(holds: Callable[[], bool]) -> None:
    """Give the server its time, ten minutes at the most."""
    for _ in range(30_000):
        if holds():
            return
        time.sleep(0.02)
    pytest.fail("it doesn't happen")


def heard(client: socket.socket) -> bytes:
    """All that comes until the other side hangs up."""
    said = b""
    try:
        while piece := client.recv(65_536):
            said += piece
    except ConnectionResetError:
        pass
    return said


def one_answer(client: socket.socket) -> tuple[int, bytes]:
    """The status and the body of the next answer."""
    stream = client.makefile("rb")
    status = int(stream.readline().split()[1])
    length = 0
    while (line := stream.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return status, stream.read(length)


def refusal(said: bytes) -> tuple[int, str]:
    """The status and the code of an answer that is the last of its connection."""
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    assert b"content-type: application/json" in head.lower()
    envelope = json.loads(body)
    assert envelope["message"] == envelope["errors"][0]
    assert envelope["statusCode"] == int(head.split()[1])
    return envelope["statusCode"], envelope["code"]


# -- slow clients ----------------------------------------------------------------------------------


def says_nothing(hasty: Served) -> None:
    with hasty.connect() as client:
        assert heard(client) == b""


def never_ends_its_head(hasty: Served) -> None:
    with hasty.connect() as client:
        client.sendall(f"GET / HTTP/1.1\r\n{HOST}X-Slow: ".encode())
        trickle(client)
        assert heard(client) == b""


def never_ends_its_second_head(hasty: Served) -> None:
    with hasty.connect() as client:
        client.sendall(CATALOG)
        assert one_answer(client)[0] == 200
        client.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        trickle(client)
        assert heard(client) == b""


def stops_in_its_body(hasty: Served) -> None:
    with hasty.connect() as client:
        client.sendall(post(f"{CAMPAIGN}/schedule", "Content-Length: 100") + b"{")
        assert heard(client) == b""


def sends_its_body_drop_by_drop(hasty: Served) -> None:
    with hasty.connect() as client:
        client.sendall(post(f"{CAMPAIGN}/schedule", "Content-Length: 1000000"))
        trickle(client)
        assert heard(client) == b""


def goes_on_after_being_refused(strict: Served) -> None:
    with strict.connect() as client:
        client.sendall(post(f"{CAMPAIGN}/schedule", "Content-Length: 1000000000"))
        assert one_answer(client)[0] == 413
        trickle(client, b" " * 1_000)


def takes_nothing_of_its_answers(hasty: Served) -> None:
    with hasty.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.setblocking(False)
        request = f"GET /openapi.json HTTP/1.1\r\n{HOST}\r\n".encode() * 400

        def is_hung_up() -> bool:
            try:
                client.send(request)
            except BlockingIOError:
                return False
            except ConnectionError:
                return True
            return False

        wait_until(is_hung_up)


def does_not_use_its_connection(hasty: Served) -> None:
    with hasty.connect() as client:
        client.sendall(CATALOG)
        assert one_answer(client)[0] == 200
        assert heard(client) == b""


TOO_SLOW = (
    says_nothing,
    never_ends_its_head,
    never_ends_its_second_head,
    stops_in_its_body,
    sends_its_body_drop_by_drop,
    takes_nothing_of_its_answers,
    does_not_use_its_connection,
)


async def takes_us_long(_service: InterfaceOperations, **_asked: object) -> Response:
    await asyncio.sleep(1.5)
    return Response(b"at last")


def waits_for_its_answer(hasty: Served) -> None:
    with hasty.connect() as client:
        client.sendall(f"GET /api/agent/list HTTP/1.1\r\n{HOST}{KEY}\r\n".encode())
        assert one_answer(client) == (200, b"at last")


def sends_its_body_slowly_but_steadily(steady: Served) -> None:
    body = b'{"startDateTime": "soon"}'
    with steady.connect() as client:
        client.sendall(post(f"{CAMPAIGN}/schedule", f"Content-Length: {len(body)}"))
        for start in range(len(body)):
            client.sendall(body[start : start + 1])
            time.sleep(0.1)  # in all more than the longest pause
        status, answer = one_answer(client)
    assert (status, json.loads(answer)["message"]) == (
        400,
        "startDateTime must be a valid ISO 8601 date string",
    )


def begins_its_second_head_late(steady: Served) -> None:
    with steady.connect() as client:
        client.sendall(CATALOG)
        assert one_answer(client)[0] == 200
        time.sleep(Steady.patience.head + 0.2)
        client.sendall(CATALOG[:20])
        time.sleep(0.1)
        client.sendall(CATALOG[20:])
        assert one_answer(client)[0] == 200


def takes_its_answers_slowly(steady: Served) -> None:
    """In all it takes longer than a client may take nothing."""
    answers = 0
    with steady.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        client.sendall(f"GET /openapi.json HTTP/1.1\r\n{HOST}\r\n".encode() * 15)
        tail = b""
        while answers < 15:
            time.sleep(0.02)
            said = client.recv(32_768)
            assert said
            answers += (tail + said).count(b"HTTP/1.1 200 OK")
            tail = said[-14:]
    assert answers == 15


SLOW_ENOUGH = (
    sends_its_body_slowly_but_steadily,
    begins_its_second_head_late,
    takes_its_answers_slowly,
)


def test_clients_that_are_too_slow_are_dropped_and_others_are_served(
    hasty: Served,
    steady: Served,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """All of them at once, so that they wait for their limits together; none is a fault of ours."""
    monkeypatch.setattr(InterfaceOperations, "list_agents", takes_us_long)
    clients = [
        *((client, hasty) for client in (*TOO_SLOW, waits_for_its_answer)),
        *((client, steady) for client in SLOW_ENOUGH),
    ]
    with served(exchange_of_the_corpus(), connection=Strict) as strict:
        clients.append((goes_on_after_being_refused, strict))
        with ThreadPoolExecutor(len(clients)) as threads:
            ends = [threads.submit(client, server) for client, server in clients]
    for end in ends:
        end.result()
    wait_until(lambda: hasty.connections == 0)
    assert caplog.records == []


# -- too much, and nonsense ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        pytest.param("X-Long: " + "x" * 20_000 + "\r\n", id="one long header"),
        pytest.param("X-Short: 1\r\n" * 120, id="many headers"),
        pytest.param("X-Long: " + "x" * 200_000 + "\r\n", id="a very long header"),
    ],
)
def test_a_head_that_is_too_large_is_refused(hasty: Served, head: str) -> None:
    with hasty.connect() as client:
        client.sendall(f"GET /voice-demo/catalog HTTP/1.1\r\n{HOST}{head}\r\n".encode())
        assert refusal(heard(client)) == (431, "HEADERS_TOO_LARGE")


def test_a_head_that_is_too_large_is_refused_before_it_ends(hasty: Served) -> None:
    with hasty.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 17_000)
        assert refusal(heard(client)) == (431, "HEADERS_TOO_LARGE")


def test_an_address_that_is_too_long_is_refused(hasty: Served) -> None:
    with hasty.connect() as client:
        client.sendall(f"GET /{'x' * 17_000} HTTP/1.1\r\n{HOST}\r\n".encode())
        assert refusal(heard(client)) == (431, "HEADERS_TOO_LARGE")


@pytest.mark.parametrize(
    "said",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello, TLS\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # without a Host
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(hasty: Served, said: bytes) -> None:
    with hasty.connect() as client:
        client.sendall(said)
        assert refusal(heard(client)) == (400, "BAD_REQUEST")


@pytest.mark.parametrize(
    "framing",
    [
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 7\r\n",
        "content-length: 0\r\ntransfer-encoding: Chunked\r\n",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_body_whose_length_is_said_in_two_ways_is_refused(
    hasty: Served, framing: str, method: str
) -> None:
    """Two readers might see different requests in it: one could be smuggled past a proxy."""
    smuggled = f"GET /voice-demo/catalog HTTP/1.1\r\n{HOST}\r\n"
    with hasty.connect() as client:
        head = f"{method} /voice-demo/catalog HTTP/1.1\r\n{HOST}{framing}\r\n"
        client.sendall(f"{head}0\r\n\r\n{smuggled}".encode())
        said = heard(client)
    assert said.count(b"HTTP/1.1") == 1
    assert refusal(said) == (400, "BAD_REQUEST")


def test_chunks_are_refused_of_a_client_that_speaks_http_1_0(hasty: Served) -> None:
    with hasty.connect() as client:
        head = f"POST /voice-demo/catalog HTTP/1.0\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n"
        client.sendall(f"{head}0\r\n\r\n".encode())
        assert refusal(heard(client)) == (400, "BAD_REQUEST")


def test_a_body_that_stops_making_sense_is_refused_and_is_no_fault_of_ours(
    steady: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with steady.connect() as client:
        client.sendall(post(f"{CAMPAIGN}/schedule", "Transfer-Encoding: chunked"))
        client.sendall(b"2\r\n{}\r\n")
        time.sleep(0.1)
        client.sendall(b"nonsense\r\n")
        assert refusal(heard(client)) == (400, "BAD_REQUEST")
    assert {record.levelno for record in caplog.records} <= {logging.WARNING}


def test_nonsense_after_a_question_is_no_fault_of_ours(
    hasty: Served, caplog: pytest.LogCaptureFixture
) -> None:
    chunked = f"{HOST}Transfer-Encoding: chunked\r\n\r\n"
    with hasty.connect() as client:
        client.sendall(f"GET /voice-demo/catalog HTTP/1.1\r\n{chunked}nonsense\r\n".encode())
        assert refusal(heard(client)) == (400, "BAD_REQUEST")
    with hasty.connect() as client:
        client.sendall(f"POST {CAMPAIGN}/schedule HTTP/1.1\r\n{chunked}2\r\n{{}}\r\n".encode())
        assert one_answer(client)[0] == 401  # before its body has ended
        client.sendall(b"nonsense\r\n")
        assert heard(client) == b""
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_connections_beyond_the_most_there_may_be_are_refused() -> None:
    with ExitStack() as open_clients, served(exchange_of_the_corpus(), connection=Few) as sandbox:
        clients = []
        for connected in range(1, 5):
            clients.append(open_clients.enter_context(sandbox.connect()))
            wait_until(lambda connected=connected: sandbox.connections == connected)
        first, _, third, fourth = clients
        with sandbox.connect() as far_too_many:
            assert heard(far_too_many) == b""
        third.sendall(CATALOG)
        assert refusal(heard(third)) == (503, "TOO_MANY_CONNECTIONS")
        first.sendall(CATALOG)
        assert one_answer(first)[0] == 200
        fourth.close()
        wait_until(lambda: sandbox.connections == 2)
        first.close()
        wait_until(lambda: sandbox.connections == 1)
        with sandbox.connect() as again:
            again.sendall(CATALOG)
            assert one_answer(again)[0] == 200


def test_a_slow_fault_takes_no_connection_from_the_control_plane() -> None:
    """As many clients as the real server takes wait for answers that are held back."""
    with ExitStack() as waiting, dialsim.Sandbox(WORLD) as sandbox:
        sandbox.faults.strike_api("slow", 1_000, delay="1m")
        host, _, port = sandbox.url.removeprefix("http://").partition(":")
        request = f"GET /api/agent/list HTTP/1.1\r\n{HOST}{KEY}\r\n".encode()
        for _ in range(Connection.most):
            client = socket.create_connection((host, int(port)), timeout=600)
            waiting.enter_context(client).sendall(request)
        with httpx.Client(base_url=sandbox.url, timeout=600) as control:
            while control.get("/_dialsim/faults/1").json()["struck"] < Connection.most:
                time.sleep(0.01)
            assert control.post("/_dialsim/clock/advance", json={"by": "1h"}).is_success
            assert control.get("/_dialsim/").is_success
            assert control.delete("/_dialsim/faults").is_success
        refused = httpx.get(f"{sandbox.url}/api/agent/list", headers={"X-API-Key": key("Acme")})
        assert (refused.status_code, refused.json()["code"]) == (503, "TOO_MANY_CONNECTIONS")
        waiting.close()
        assert sandbox.clock.advance(hours=1)
        while httpx.get(f"{sandbox.url}/voice-demo/catalog").status_code == 503:
            time.sleep(0.01)


def test_a_connection_of_the_control_plane_serves_the_others_once_there_is_room() -> None:
    clock = f"GET /_dialsim/clock HTTP/1.1\r\n{HOST}\r\n".encode()
    with ExitStack() as open_clients, served(exchange_of_the_corpus(), connection=Few) as sandbox:
        clients = []
        for connected in range(1, 4):
            clients.append(open_clients.enter_context(sandbox.connect()))
            wait_until(lambda connected=connected: sandbox.connections == connected)
        first, _, third = clients
        third.sendall(clock)
        assert one_answer(third)[0] == 200
        first.close()
        wait_until(lambda: sandbox.connections == 2)
        third.sendall(CATALOG + clock)
        assert one_answer(third)[0] == 200


def test_a_request_that_has_come_when_the_sandbox_is_stopped_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with served(exchange_of_the_corpus()) as sandbox, sandbox.connect() as client:

        async def stop(_service: InterfaceOperations) -> Response:
            sandbox.server.wind_up()
            return Response(b"the last one")

        monkeypatch.setattr(InterfaceOperations, "list_voices", stop)
        client.sendall(CATALOG * 2)  # the second is read as the first has been answered
        said = heard(client)
    assert re.findall(rb"HTTP/1.1 (\d+)", said) == [b"200", b"503"]
    assert b"STOPPED" in said


# -- what is said of it ----------------------------------------------------------------------------


def test_a_fault_of_ours_is_told_to_the_log_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: object, **_named: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr("dialsim.sandbox.service.InterfaceOperations.list_agents", broken)
    headers = {"X-API-Key": key("Acme")}
    with served(exchange_of_the_corpus()) as sandbox, caplog.at_level(logging.DEBUG):
        answer = httpx.get(f"{sandbox.url}/api/agent/list", headers=headers)
        assert httpx.get(f"{sandbox.url}/voice-demo/catalog").status_code == 200
    assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL_ERROR")
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert "RuntimeError: a secret of the inside" in caplog.text
    assert key("Acme") not in caplog.text


def test_keys_are_never_logged(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = key("Acme")[:-1] + "0"
    with served(exchange_of_the_corpus()) as sandbox, caplog.at_level(1):
        for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
            caplog.set_level(1, name)
        with httpx.Client(base_url=sandbox.url) as client:
            for secret in (key("Acme"), wrong):
                headers = {"X-API-Key": secret}
                client.get("/api/agent/list", headers=headers)
                client.get(f"/api/agent/{secret}", headers=headers)
                client.post(f"{CAMPAIGN}/schedule", headers=headers, json={"startDateTime": 5})
                client.put(f"{CAMPAIGN}/schedule", headers=headers)
        with sandbox.connect() as raw:
            raw.sendall(f"GET / HTTP/1.1\r\n{KEY}nonsense\r\n\r\n".encode())
            heard(raw)
    logs = [record for record in caplog.records if not record.name.startswith("http")]
    assert any("Invalid HTTP" in record.getMessage() for record in logs)
    printed = capfd.readouterr()
    for secret in (key("Acme"), wrong):
        assert not [record for record in logs if secret in record.getMessage()]
        assert secret not in printed.out + printed.err


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (CATALOG, 200),
        (f"GET /_dialsim/clock HTTP/1.1\r\n{HOST}\r\n".encode(), 200),
        (f"GET /api/agent/list HTTP/1.1\r\n{HOST}\r\n".encode(), 401),
        (b"nonsense\r\n\r\n", 400),
        (f"GET /{'x' * 17_000} HTTP/1.1\r\n{HOST}\r\n".encode(), 431),
    ],
)
def test_every_answer_says_when_it_was_made(hasty: Served, said: bytes, status: int) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    with hasty.connect() as client:
        client.sendall(said)
        head = client.recv(65_536).partition(b"\r\n\r\n")[0].decode()
    assert head.startswith(f"HTTP/1.1 {status} ")
    [date] = re.findall(r"^date: (.*?)\r?$", head, re.MULTILINE | re.IGNORECASE)
    assert date.endswith(" GMT")
    assert before <= parsedate_to_datetime(date) <= datetime.now(UTC)


@pytest.mark.parametrize("path", ["/", "/openapi.json", "/api/agent/list", "/voice-demo/catalog"])
def test_no_page_of_another_site_is_let_in(hasty: Served, path: str) -> None:
    headers = {"Origin": "https://elsewhere.test", "Access-Control-Request-Method": "GET"}
    for method in ("OPTIONS", "GET"):
        answer = httpx.request(method, hasty.url + path, headers=headers)
        assert not [name for name in answer.headers if name.startswith("access-control")]
