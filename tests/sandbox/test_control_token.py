"""Access control of a sandbox that other machines can reach."""

from __future__ import annotations

import hmac
import logging
import re

import httpx
import pytest
from tests.sandbox.asking import Client, exchange_of_the_corpus, key
from tests.sandbox.serving import served

from dialsim.errors import DialsimError
from dialsim.sandbox.access import ControlToken

TOKEN = "correct-horse-battery-staple"
WRONG = "correct-horse-battery-stapler"
CLOCK = "/_dialsim/clock"
HOST = "sandbox.example:8400"
AWAY = {"Host": HOST}
BEARER = AWAY | {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(exchange_of_the_corpus(), ControlToken(TOKEN))


def refusal(answer: httpx.Response) -> tuple[int, str]:
    if answer.status_code == 401:
        assert answer.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in answer.text
    return answer.status_code, answer.json()["code"]


def cookie(client: Client) -> str:
    """Return the cookie of a browser that logged in."""
    answer = client.ask("GET", f"/_dialsim/?token={TOKEN}", AWAY)
    return answer.headers["set-cookie"].partition(";")[0]


def test_with_the_token_any_name_will_do(client: Client) -> None:
    assert client.ask("GET", CLOCK, BEARER).status_code == 200
    assert client.ask("GET", CLOCK, BEARER | {"Authorization": f"bearer {TOKEN}"}).is_success


@pytest.mark.parametrize("path", [CLOCK, "/_dialsim", "/_dialsim/", "/_dialsim/nothing"])
@pytest.mark.parametrize("host", [HOST, "127.0.0.1:8400"])
def test_without_the_token_nothing_is_told_and_nothing_done(
    client: Client, path: str, host: str
) -> None:
    for method in ("GET", "POST", "PUT", "DELETE"):
        answer = client.ask(method, path, {"Host": host})
        assert refusal(answer) == (401, "CONTROL_TOKEN_REQUIRED")


@pytest.mark.parametrize(
    "offered", [f"Bearer {WRONG}", f"Bearer {TOKEN[:-1]}", "Bearer", "Bearer ", "Bearer \xe9"]
)
def test_a_wrong_token_is_none(client: Client, offered: str) -> None:
    headers = [(b"host", HOST.encode()), (b"authorization", offered.encode("latin-1"))]
    answer = client.ask("GET", CLOCK, httpx.Headers(headers))
    assert refusal(answer) == (401, "INVALID_CONTROL_TOKEN")


def test_an_api_key_is_no_token_and_a_token_no_api_key(client: Client) -> None:
    for headers in ({"Authorization": f"Bearer {key('Acme')}"}, {"X-API-Key": TOKEN}):
        assert client.ask("GET", CLOCK, AWAY | headers).status_code == 401
    answer = client.ask("GET", "/api/agent/list", BEARER)
    assert (answer.status_code, answer.json()["code"]) == (401, "API_KEY_REQUIRED")


@pytest.mark.parametrize("path", ["/api/agent/list", "/voice-demo/catalog", "/openapi.json"])
def test_the_interface_needs_no_token(client: Client, path: str) -> None:
    headers = AWAY | {"X-API-Key": key("Acme")}
    assert client.ask("GET", path, headers).status_code == 200


@pytest.mark.parametrize("origin", ["http://elsewhere.test", "null", "http://sandbox.example:9999"])
def test_a_page_from_elsewhere_steers_nothing_even_with_the_token(
    client: Client, origin: str
) -> None:
    answer = client.ask("GET", CLOCK, BEARER | {"Origin": origin})
    assert refusal(answer) == (403, "FORBIDDEN")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_page_of_the_sandbox_itself_may_steer(client: Client, scheme: str) -> None:
    headers = BEARER | {"Origin": f"{scheme}://{HOST}"}
    assert client.ask("GET", CLOCK, headers).status_code == 200


# -- the page's cookie -----------------------------------------------------------------------------


def test_the_page_takes_the_token_once_and_leaves_a_cookie_that_scripts_cannot_read(
    client: Client,
) -> None:
    answer = client.ask("GET", f"/_dialsim/?token={TOKEN}", AWAY)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/_dialsim/"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    pair, *attributes = answer.headers["set-cookie"].split("; ")
    assert {name.lower() for name in attributes} == {
        "httponly",
        "path=/_dialsim",
        "samesite=strict",
    }
    assert TOKEN not in pair
    assert re.fullmatch(r"dialsim_control_\w+=[0-9a-f]{64}", pair)
    assert client.ask("GET", CLOCK, AWAY | {"Cookie": pair}).status_code == 200


@pytest.mark.parametrize("query", [f"token={WRONG}", "token=", "token=%F0%28"])
def test_the_page_takes_no_wrong_token(client: Client, query: str) -> None:
    answer = client.ask("GET", f"/_dialsim/?{query}", AWAY)
    assert refusal(answer) == (401, "INVALID_CONTROL_TOKEN")
    assert "set-cookie" not in answer.headers


def test_no_other_address_takes_the_token(client: Client) -> None:
    for method, path in (("GET", CLOCK), ("POST", "/_dialsim/"), ("GET", "/_dialsim")):
        answer = client.ask(method, f"{path}?token={TOKEN}", AWAY)
        assert refusal(answer) == (401, "CONTROL_TOKEN_REQUIRED")


@pytest.mark.parametrize(
    ("method", "headers", "counts"),
    [
        ("GET", {"Sec-Fetch-Site": "same-origin"}, True),
        ("POST", {"Sec-Fetch-Site": "same-origin", "Origin": f"http://{HOST}"}, True),
        ("GET", {"Sec-Fetch-Site": "none"}, True),
        ("GET", {"Sec-Fetch-Site": "same-site"}, False),
        ("GET", {"Sec-Fetch-Site": "cross-site"}, False),
        ("POST", {"Origin": f"http://{HOST}"}, True),
        ("GET", {}, True),
        ("POST", {}, False),
        ("DELETE", {}, False),
    ],
)
def test_the_cookie_counts_for_requests_of_the_sandboxs_own_pages(
    client: Client, method: str, headers: dict[str, str], counts: bool
) -> None:
    answer = client.ask(method, CLOCK, AWAY | headers | {"Cookie": cookie(client)})
    assert (answer.status_code == 401) is not counts


def test_a_wrong_cookie_counts_for_nothing(client: Client) -> None:
    name = cookie(client).partition("=")[0]
    for value in ("0" * 64, "", TOKEN):
        answer = client.ask("GET", CLOCK, AWAY | {"Cookie": f"{name}={value}"})
        assert refusal(answer) == (401, "CONTROL_TOKEN_REQUIRED")


# -- the token itself ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "short", "fifteen-letters", "has a blank in it", "ünsägbar" * 3]
)
def test_a_token_that_cannot_do_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(DialsimError, match="at least 16 characters") as refused:
        ControlToken(text)
    assert not text or text not in str(refused.value)


def test_tokens_and_cookies_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    token, compared = ControlToken(TOKEN), []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(len(one) == len(other))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert token.is_token(TOKEN)
    assert not token.is_token("short")
    assert token.is_cookie(token.cookie)
    assert not token.is_cookie(TOKEN)
    assert compared == [True] * 4


def test_the_token_is_never_logged(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    token = ControlToken(TOKEN)
    with caplog.at_level(1), served(exchange_of_the_corpus(), token) as sandbox:
        for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
            caplog.set_level(1, name)
        with httpx.Client(base_url=sandbox.url) as client:
            client.get(CLOCK, headers={"Authorization": f"Bearer {TOKEN}"})
            client.put(CLOCK, headers={"Authorization": f"Bearer {TOKEN}"}, json={"mode": 5})
            answer = client.get(f"/_dialsim/?token={TOKEN}")
            assert answer.status_code == 303
            assert client.get(CLOCK).status_code == 200  # by the cookie
            client.cookies.clear()
            assert client.get(CLOCK).status_code == 401
        with sandbox.connect() as raw:
            raw.sendall(f"GET /_dialsim/?token={TOKEN} HTTP/9\r\n\r\n".encode())
            raw.recv(65_536)
    logs = [record for record in caplog.records if not record.name.startswith("http")]
    assert {record.levelno for record in logs} >= {logging.WARNING}
    printed = capfd.readouterr()
    for secret in (TOKEN, token.cookie):
        assert not [record for record in logs if secret in record.getMessage()]
        assert secret not in printed.out + printed.err
