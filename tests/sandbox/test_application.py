"""Cases beyond the golden requests: internal errors, streams of bytes, keys, headers."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.sandbox.asking import Client, exchange_of_the_corpus, key

from dialsim.sandbox.access import KeyRing, derived_key
from dialsim.sandbox.application import application
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.service import InterfaceOperations
from dialsim.testing import Sketch

SCHEDULE = "/api/campaign/cccccccc-0000-4000-8000-000000000001/schedule"


@pytest.fixture
def client() -> Client:
    return Client(exchange_of_the_corpus())


def test_a_fault_of_ours_is_500_in_the_envelope_and_tells_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_service: InterfaceOperations, caller: int) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(InterfaceOperations, "list_agents", broken)
    response = client.ask("GET", "/api/agent/list", {"X-API-Key": key("Acme")})
    assert response.status_code == 500
    assert response.json() == {
        "success": False,
        "statusCode": 500,
        "code": "INTERNAL_ERROR",
        "message": "Internal server error",
        "errors": ["Internal server error"],
    }


def test_head_answers_as_get_without_the_body(client: Client) -> None:
    headers = {"X-API-Key": key("Acme")}
    got, head = (client.ask(method, "/api/agent/list", headers) for method in ("GET", "HEAD"))
    assert head.status_code == 200
    assert head.headers == got.headers


def test_the_voice_catalog_needs_no_key_has_no_envelope_and_no_cors(client: Client) -> None:
    response = client.ask("GET", "/voice-demo/catalog", {"Origin": "https://elsewhere.test"})
    assert response.status_code == 200
    assert list(response.json()) == ["voices", "categories"]
    assert response.json()["voices"] == [
        {"voiceKey": "malee", "displayName": "Malee", "gender": "female", "isNative": True},
        {"voiceKey": "narin", "displayName": "Narin", "gender": "male", "isNative": False},
    ]
    for category in response.json()["categories"]:
        assert list(category) == ["categoryKey", "label", "sentences"]
        for sentence in category["sentences"]:
            assert list(sentence) == ["sentenceId", "textFemale", "textMale"]
    assert not [name for name in response.headers if name.startswith("access-control-")]


def test_a_body_without_a_length_is_cut_off_at_one_mebibyte(client: Client) -> None:
    chunks: Iterator[bytes] = iter([b" " * 65_536] * 100)
    read = 0

    async def receive() -> dict[str, Any]:
        nonlocal read
        read += 65_536
        return {"type": "http.request", "body": next(chunks), "more_body": True}

    status, _ = asyncio.run(_raw(client, receive, [(b"x-api-key", key("Acme").encode())]))
    assert status == 413
    assert read <= 1_048_576 + 65_536


def test_a_key_sent_twice_is_no_key(client: Client) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    header = (b"x-api-key", key("Acme").encode())
    status, body = asyncio.run(_raw(client, receive, [header, header]))
    assert status == 401
    assert json.loads(body)["code"] == "INVALID_API_KEY"


async def _raw(
    client: Client, receive: Any, headers: list[tuple[bytes, bytes]]
) -> tuple[int, bytes]:
    """The status and body of a schedule request as bare ASGI messages."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "path": SCHEDULE,
        "raw_path": SCHEDULE.encode(), "query_string": b"", "root_path": "", "scheme": "http",
        "headers": headers, "server": ("sandbox.test", 80), "client": ("127.0.0.1", 1),
    }  # fmt: skip
    await application(client.core)(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


def test_derived_keys_have_the_form_of_keys_and_differ_by_seed_and_name() -> None:
    keys = {derived_key(seed, name) for seed in range(5) for name in ("Acme", "Beta", "อัคมี")}
    assert len(keys) == 15
    assert all(re.fullmatch(r"[a-z]+_[0-9a-f]{32}", made) for made in keys)
    assert derived_key(1, "Acme") == derived_key(1, "Acme")


def test_an_organization_without_a_key_in_the_file_is_reached_by_its_derived_key() -> None:
    client = Client(SandboxCore(Sketch(1, seed=9).having(agents=[]).scenario()))
    response = client.ask("GET", "/api/agent/list", {"X-API-Key": derived_key(9, "Acme")})
    assert response.json()["data"] == []


def test_every_known_key_is_compared_whichever_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = KeyRing([key(name) for name in ("Acme", "Beta", "Gamma")])
    compared = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(len(one) == len(other))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert [ring.owner(key(name).encode()) for name in ("Acme", "Beta", "Gamma")] == [0, 1, 2]
    assert ring.owner(b"short") is None
    assert compared == [True] * 12


def test_a_refused_schedule_request_changes_nothing(client: Client) -> None:
    headers = {"X-API-Key": key("Acme"), "Content-Type": "application/json"}
    path = SCHEDULE.replace("000000000001/", "000000000009/")  # all its people are duplicates
    body = json.dumps({"startDateTime": "2026-01-05T04:00:00Z", "removeDuplicates": True}).encode()
    before = client.core.simulation.log.size()
    for _ in range(2):
        refused = client.ask("POST", path, headers, body)
        assert refused.json()["message"].startswith("All recipients are duplicates")
    assert client.core.simulation.log.size() == before


def test_c4_pausing_twice_says_so_and_changes_nothing(client: Client) -> None:
    headers = {"X-API-Key": key("Acme")}
    path = "/api/campaign/cccccccc-0000-4000-8000-000000000003/pause"
    messages = [client.ask("POST", path, headers).json()["message"]]
    size = client.core.simulation.log.size()
    messages.append(client.ask("POST", path, headers).json()["message"])
    assert messages == [
        "Campaign status updated to PAUSED successfully",
        "Campaign is already PAUSED",
    ]
    assert client.core.simulation.log.size() == size


def test_d3_the_dropped_leave_the_list(client: Client) -> None:
    headers = {"X-API-Key": key("Acme"), "Content-Type": "application/json"}
    path = "/api/campaign/cccccccc-0000-4000-8000-000000000010"
    body = json.dumps({"startDateTime": "2026-01-06T02:00:00Z", "removeDuplicates": True}).encode()
    assert client.ask("POST", f"{path}/schedule", headers, body).json()["data"] == {
        "id": "cccccccc-0000-4000-8000-000000000010",
        "status": "SCHEDULED",
        "removedRecipients": 1,
    }
    page = client.ask("GET", f"{path}/recipients", headers).json()["data"]
    assert page["totalRecipients"] == 1
    assert [person["tel"] for person in page["recipients"]] == ["0810000099"]
    dropped = client.ask("GET", "/api/recipient/eeeeeeee-0000-4000-8000-000000001001", headers)
    assert dropped.json()["code"] == "RECIPIENT_NOT_FOUND"
