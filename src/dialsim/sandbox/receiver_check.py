"""Checks of a webhook receiver: POSTs as the service may send them, and their answers."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from copy import deepcopy
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from dialsim.errors import DialsimError
from dialsim.interface.payload import TIMEOUT_MS, accepted
from dialsim.results.result import run
from dialsim.scenario.loading import loads

_SCENARIO = """
version: 1
clock: {start: 2026-01-05T08:00:00+07:00}
organizations:
  - name: Receiver check
    maxConcurrentCalls: 4
    webhook: {url: http://127.0.0.1/}
    retention: {personalData: 2d, output: 2d, audio: 2d}
    agents:
      - name: Caller
        paramsSchema: {amount: {type: number, required: true}}
        analysis: {funnel: [{step: Greeted, share: 1}, {step: Agreed, share: 0.5}]}
    campaigns:
      - name: Check
        agent: Caller
        schedule: {startDateTime: 2026-01-05T08:00:00+07:00, maxAttempts: 2, retryInterval: 3600000}
        recipients:
          - {tel: "0810000001", agentParams: {amount: 1}, script: answered 5s 60s}
          - {tel: "0810000002", agentParams: {amount: 2}, script: busy 2s; answered 5s 60s}
          - {tel: "0810000003", agentParams: {amount: 3}, script: noAnswer 20s; failed 1s}
    timeline:
      - {at: 2026-01-06T08:00:00+07:00, action: reanalyze, campaign: Check}
      - {at: 2026-01-12T08:00:00+07:00, action: reanalyze, campaign: Check}
"""
_SLOW_PIECES, _PIECE_SECONDS = 4, 0.5

_TWICE = "the same result twice"

Body = dict[str, Any]


class PostAnswer(NamedTuple):
    """Answer to a POST: its status, or a word instead of a status, and its duration in seconds."""

    status: int | str
    seconds: float

    @property
    def is_taken(self) -> bool:
        """True if the service would count the result as delivered."""
        return isinstance(self.status, int) and bool(accepted(self.status))

    def __str__(self) -> str:
        return f"{self.status} in {self.seconds:.1f} s"


class Check(NamedTuple):
    """Behaviour of a receiver in one situation."""

    situation: str
    outcome: str
    passed: bool


class ReceiverClient:
    """Client of a webhook receiver, with the headers of the service."""

    def __init__(self, url: str, timeout: float = TIMEOUT_MS / 1000) -> None:
        self.url = url
        self._timeout = timeout

    def send(self, body: Body, *, url: str = "", slowly: bool = False) -> PostAnswer:
        """POST a body, optionally to another URL or piece by piece."""
        content, begun = json.dumps(body, ensure_ascii=False).encode(), time.monotonic()
        pieces = _slowly(content) if slowly else [content]
        try:
            with closing(self._post(url or self.url, pieces, len(content))) as connection:
                status: int | str = connection.getresponse().status
        except TimeoutError:
            status = "timeout"
        except ConnectionRefusedError:
            status = "refused"
        except (OSError, http.client.HTTPException):
            status = "broken"
        return PostAnswer(status, time.monotonic() - begun)

    def break_off(self, body: Body) -> None:
        """Send half of a body and hang up."""
        content = json.dumps(body).encode()
        self._post(self.url, [content[: len(content) // 2]], len(content)).close()

    def _post(self, url: str, pieces: Iterable[bytes], length: int) -> http.client.HTTPConnection:
        """Send a request whose body is announced to have `length` bytes."""
        parts = urlsplit(url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        connection = kind(parts.hostname or "", parts.port, timeout=self._timeout)
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(length),
            "User-Agent": "Dialsim-Webhook/1.0",
            "X-Dialsim-Event": "CALL_RESULT",
        }
        target = urlunsplit(("", "", parts.path or "/", parts.query, ""))
        connection.request("POST", target, pieces, headers)
        return connection


def _slowly(content: bytes) -> Iterator[bytes]:
    """Yield a body in pieces, each after a pause."""
    size = -(-len(content) // _SLOW_PIECES)
    for first in range(0, len(content), size):
        time.sleep(_PIECE_SECONDS)
        yield content[first : first + size]


def check_receiver(url: str) -> list[Check]:
    """Send a receiver the webhooks that the service may send, and return its behaviour."""
    receiver = ReceiverClient(url)
    bodies: list[Body] = [*run(loads(_SCENARIO, name="check")).webhooks.body]
    again = [body for body in bodies if body["payload"]["isReAnalysis"]]
    firsts = [body for body in bodies if not body["payload"]["isReAnalysis"]]
    results = {body["payload"]["call"]["callStatus"]: body for body in firsts}
    done, busy = results["COMPLETED"], results["BUSY"]
    # The second re-analysis comes a week later, when retention has removed the personal data (D1).
    masked = next(body for body in again if body["payload"]["dataExpired"]["personalData"])
    new_analysis = deepcopy(again[0])
    new_analysis["payload"]["callResult"]["fixedAttr"]["callSummary"] = "Another summary"
    unknown = deepcopy(done) | {"sentBy": "a later version"}
    unknown["payload"]["call"]["line"] = {"number": 1}
    first = receiver.send(done)
    if first.status == "refused":
        raise DialsimError(f"{url}: nothing listens there")
    later = [body for body in firsts if body["payload"]["recipient"]["tel"] == "0810000002"]
    situations: list[tuple[str, Callable[[], Sequence[PostAnswer]]]] = [
        ("a result", lambda: [first]),
        ("every status", lambda: [receiver.send(body) for body in results.values()]),
        (_TWICE, lambda: [receiver.send(done), receiver.send(done)]),
        ("attempt 2 before attempt 1", lambda: [receiver.send(one) for one in later[1::-1]]),
        ("a late result, behind newer ones", lambda: [receiver.send(busy), receiver.send(done)]),
        ("a re-analysis with another body", lambda: [receiver.send(new_analysis)]),
        ("masked fields", lambda: [receiver.send(masked)]),
        ("unknown fields", lambda: [receiver.send(unknown)]),
        ("a slow connection", lambda: [receiver.send(done, slowly=True)]),
        ("a connection that breaks, then a result", lambda: _after_a_break(receiver, done)),
    ]
    checks = []
    for situation, send in situations:
        answers = send()
        taken = sum(answer.is_taken for answer in answers)
        good = "took twice" if situation == _TWICE else "acknowledged"
        word = good if taken == len(answers) else "failed"
        shown = ", ".join(map(str, dict.fromkeys(answers)))
        checks.append(Check(situation, f"{word} ({shown})", taken == len(answers)))
    elsewhere = receiver.send(done, url=_with_wrong_secret(url))
    word = "failed: acknowledged" if elsewhere.is_taken else "rejected"
    shown = f"{word} ({elsewhere})"
    return [*checks, Check("a wrong secret in the path", shown, not elsewhere.is_taken)]


def _after_a_break(receiver: ReceiverClient, body: Body) -> list[PostAnswer]:
    receiver.break_off(body)
    return [receiver.send(body)]


def _with_wrong_secret(url: str) -> str:
    """Return a URL whose path differs at its end, where the secret is."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}-wrong-secret"))
