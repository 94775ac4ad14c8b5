"""The golden requests: every row of the interface's error tables, and which of two faults wins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.sandbox.asking import Client, exchange_of_the_corpus, key

CASES = json.loads(Path(__file__).with_name("corpus.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def shared() -> Client:
    """A sandbox for all requests that are refused: a refusal changes nothing."""
    return Client(exchange_of_the_corpus())


def test_there_are_enough_cases_and_each_has_its_own_name() -> None:
    assert len(CASES) >= 150
    assert len({case["case"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_request_is_answered_exactly_so(case: dict[str, Any], shared: Client) -> None:
    request, expected = case["request"], case["response"]
    changes = request["method"] == "POST" and expected["status"] == 200
    client = Client(exchange_of_the_corpus()) if changes else shared
    headers, body = sent(request)
    response = client.ask(request["method"], request["path"], headers, body)
    assert response.content == envelope(expected)
    assert response.status_code == expected["status"]
    wanted = {"content-type": "application/json", "content-length": str(len(response.content))}
    if "allow" in expected:
        wanted["allow"] = expected["allow"]
    assert dict(response.headers) == wanted


def sent(request: dict[str, Any]) -> tuple[dict[str, str], bytes | None]:
    """The headers and body of a case's request; `size` stands for so many blanks."""
    headers = dict(request.get("headers", {}))
    if "key" in request:
        headers["X-API-Key"] = key(request["key"])
    if "json" in request:
        headers["Content-Type"] = "application/json"
        return headers, json.dumps(request["json"]).encode()
    if "size" in request:
        return headers, b" " * request["size"]
    return headers, request["text"].encode() if "text" in request else None


def envelope(expected: dict[str, Any]) -> bytes:
    """The whole body: of a success from `message` and `data`, of an error from code and errors."""
    if expected["status"] == 200:
        body = {"success": True, "message": expected["message"], "data": expected["data"]}
    else:
        body = {
            "success": False,
            "statusCode": expected["status"],
            "code": expected["code"],
            "message": expected["errors"][0],
            "errors": expected["errors"],
        }
    return orjson.dumps(body)
