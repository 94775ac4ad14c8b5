"""`dialsim check-receiver`: what a receiver did, as a table and an exit status."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest

from cli.program import dialsim
from dialsim.sandbox import receiver_check

SECRET = "/hooks/secret"


@contextmanager
def receiving(judge: Callable[[str, dict[str, Any]], int]) -> Iterator[str]:
    """Serve a receiver that answers with the status that `judge` gives a path and a body."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                status = judge(self.path, orjson.loads(content))
            except ValueError:
                return
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}{SECRET}"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _is_not_so_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_check, "_PIECE_SECONDS", 0.01)


def table(url: str, *options: str) -> tuple[int, dict[str, str]]:
    """Return the exit status and the verdict of each situation that failed."""
    done = dialsim("check-receiver", url, *options)
    rows = [line for line in done.stdout.splitlines() if line[:4] in ("PASS", "FAIL")]
    assert len(rows) == 11, done.stderr
    return done.returncode, {
        re.split(r"\s{2,}", row)[1]: row for row in rows if row.startswith("FAIL")
    }


def test_a_good_receiver_passes() -> None:
    seen: list[dict[str, Any]] = []

    def judge(path: str, body: dict[str, Any]) -> int:
        seen.append(body)
        return 200 if path == SECRET else 404

    with receiving(judge) as url:
        assert table(url) == (0, {})
    payloads = [body["payload"] for body in seen]
    assert {one["call"]["callStatus"] for one in payloads} >= {"COMPLETED", "BUSY", "NO_ANSWER"}
    assert {one["isReAnalysis"] for one in payloads} == {True, False}
    assert any(one["dataExpired"]["personalData"] for one in payloads)
    assert any("sentBy" in body for body in seen)


@pytest.mark.parametrize(
    ("situation", "dislikes"),
    [
        ("a wrong secret in the path", lambda _path, _body: False),
        (
            "masked fields",
            lambda path, body: path != SECRET or body["payload"]["dataExpired"]["personalData"],
        ),
        ("unknown fields", lambda path, body: path != SECRET or "sentBy" in body),
        (
            "a re-analysis with another body",
            lambda path, body: (
                path != SECRET or "Another summary" in str(body["payload"]["callResult"])
            ),
        ),
    ],
)
def test_a_receiver_that_fails_in_one_situation_is_found_out(
    situation: str, dislikes: Callable[[str, dict[str, Any]], bool]
) -> None:
    with receiving(lambda path, body: 500 if dislikes(path, body) else 204) as url:
        status, failed = table(url)
    assert (status, [*failed]) == (1, [situation])


def test_a_result_that_is_refused_the_second_time_fails() -> None:
    seen: list[dict[str, Any]] = []

    def judge(path: str, body: dict[str, Any]) -> int:
        seen.append(body)
        return 409 if path != SECRET or seen.count(body) > 1 else 200

    with receiving(judge) as url:
        status, failed = table(url)
    assert status == 1
    assert "409" in failed["the same result twice"]


def test_other_machines_need_a_yes_and_nothing_is_sent_where_nothing_listens() -> None:
    elsewhere = dialsim("check-receiver", "https://hooks.example.test/x")
    assert (elsewhere.returncode, "--yes" in elsewhere.stderr) == (2, True)
    assert dialsim("check-receiver", "hooks").returncode == 2
    nobody = dialsim("check-receiver", "http://127.0.0.1:9/x")
    assert (nobody.returncode, "nothing listens there" in nobody.stderr) == (2, True)
