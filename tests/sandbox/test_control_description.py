"""The description of the control plane is complete and correct."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.routing import Route
from tests.sandbox.asking import Client, control, exchange_of_the_corpus
from tests.sandbox.described import (
    DOCUMENT,
    OF_THE_SANDBOX,
    OPERATIONS,
    operation_of,
    require_as_described,
)

from dialsim.results.result import Result
from dialsim.sandbox.access import ControlToken
from dialsim.sandbox.application import DESCRIPTION, application
from dialsim.sandbox.failures import MOST_FAULTS, MOST_SNAPSHOTS
from dialsim.sandbox.operation import MOST_CONTROL_BYTES

CAMPAIGN = "cccccccc-0000-4000-8000-000000000"
DRAFT, RUNNING, PAUSED, COMPLETED = (
    f"{CAMPAIGN}{number}" for number in ("001", "003", "004", "005")
)
NOBODY = f"{CAMPAIGN}999"
NEW = {"organization": "Acme", "name": "New", "agent": "Survey", "recipients": []}
AT_ONCE = {"schedule": {"startDateTime": "2026-01-05T02:00:00Z"}}
NOT_ALLOWED = NEW | AT_ONCE | {"organization": "Gamma", "agent": "Caller"}
FAULT = {"api": "error", "next": 1}
UNTIL = {"until": "status", "status": "COMPLETED"}
HOME = {"Host": "127.0.0.1:8400"}
JSON = {"Content-Type": "application/json"}
FILES = ("getRecording", "getTranscript")
STEERING = [name for name in OF_THE_SANDBOX if name not in FILES]
LINKS = ("recordUrl", "transcriptFileUrl")

GUARDED = {
    (401, "CONTROL_TOKEN_REQUIRED"),
    (401, "INVALID_CONTROL_TOKEN"),
    (403, "FORBIDDEN"),
}
BODIES = {(413, "PAYLOAD_TOO_LARGE"), (415, "UNSUPPORTED_MEDIA_TYPE")}


class Asked(NamedTuple):
    """A request, and the status and code that it is answered with; no code for a success."""

    method: str
    path: str
    body: Any
    status: int
    code: str | None = None


# asked one after the other; {call} is the delivered call of Completed, {failed} one of Running
ASKED = (
    Asked("GET", "/clock", None, 200),
    Asked("POST", "/clock/advance", {"by": "1s"}, 200),
    Asked("POST", "/clock/advance", {"by": 5}, 400, "VALIDATION_FAILED"),
    Asked("POST", "/clock/advance", {"until": "webhooks", "count": 1, "within": "1ms"}, 200),
    Asked("POST", "/clock/advance", UNTIL | {"campaign": COMPLETED}, 200),
    Asked("POST", "/clock/advance", UNTIL | {"campaign": NOBODY}, 404, "CAMPAIGN_NOT_FOUND"),
    Asked("POST", "/clock/advance", UNTIL | {"call": NOBODY}, 404, "CALL_NOT_FOUND"),
    Asked("PUT", "/clock", {"mode": "manual"}, 200),
    Asked("PUT", "/clock", {"mode": "manual", "speed": 5}, 400, "VALIDATION_FAILED"),
    Asked("GET", "/campaigns", None, 200),
    Asked("POST", "/campaigns", NEW, 201),
    Asked("POST", "/campaigns", NEW, 400, "VALIDATION_FAILED"),
    Asked("POST", "/campaigns", NOT_ALLOWED, 403, "CALLING_NOT_ALLOWED"),
    Asked("GET", f"/campaigns/{RUNNING}", None, 200),
    Asked("GET", "/campaigns/x", None, 400, "INVALID_ID"),
    Asked("GET", f"/campaigns/{NOBODY}", None, 404, "CAMPAIGN_NOT_FOUND"),
    Asked("POST", f"/campaigns/{PAUSED}/resume", None, 200),
    Asked("POST", f"/campaigns/{PAUSED}/resume", None, 409, "INVALID_CAMPAIGN_STATE"),
    Asked("POST", "/campaigns/x/resume", None, 400, "INVALID_ID"),
    Asked("POST", f"/campaigns/{NOBODY}/resume", None, 404, "CAMPAIGN_NOT_FOUND"),
    Asked("POST", f"/campaigns/{PAUSED}/cancel", None, 200),
    Asked("POST", f"/campaigns/{PAUSED}/cancel", None, 409, "INVALID_CAMPAIGN_STATE"),
    Asked("POST", "/campaigns/x/cancel", None, 400, "INVALID_ID"),
    Asked("POST", f"/campaigns/{NOBODY}/cancel", None, 404, "CAMPAIGN_NOT_FOUND"),
    Asked("GET", f"/campaigns/{RUNNING}/calls?page=1", None, 200),
    Asked("GET", f"/campaigns/{RUNNING}/calls?page=0", None, 400, "VALIDATION_FAILED"),
    Asked("GET", "/campaigns/x/calls", None, 400, "INVALID_ID"),
    Asked("GET", f"/campaigns/{NOBODY}/calls", None, 404, "CAMPAIGN_NOT_FOUND"),
    Asked("GET", f"/campaigns/{RUNNING}/transitions", None, 200),
    Asked("GET", f"/campaigns/{RUNNING}/transitions?page=x", None, 400, "VALIDATION_FAILED"),
    Asked("GET", "/campaigns/x/transitions", None, 400, "INVALID_ID"),
    Asked("GET", f"/campaigns/{NOBODY}/transitions", None, 404, "CAMPAIGN_NOT_FOUND"),
    Asked("POST", "/calls/{call}/reanalyze", None, 200),
    Asked("POST", "/calls/{failed}/reanalyze", None, 409, "INVALID_CALL_STATE"),
    Asked("POST", "/calls/x/reanalyze", None, 400, "INVALID_ID"),
    Asked("POST", f"/calls/{NOBODY}/reanalyze", None, 404, "CALL_NOT_FOUND"),
    Asked("GET", "/organizations", None, 200),
    Asked("GET", "/organizations/Acme", None, 200),
    Asked("GET", "/organizations/Delta", None, 404, "ORGANIZATION_NOT_FOUND"),
    Asked("POST", "/organizations", {"name": "New", "like": "Acme", "webhook": None}, 201),
    Asked("POST", "/organizations", {"name": "New"}, 400, "VALIDATION_FAILED"),
    Asked("POST", "/agents", {"organization": "New", "name": "Newest"}, 201),
    Asked("POST", "/agents", {"organization": "New", "name": "Newest"}, 400, "VALIDATION_FAILED"),
    Asked("PATCH", "/organizations/Acme", {"regenerateApiKey": True, "webhookUrl": None}, 200),
    Asked("PATCH", "/organizations/Acme", {}, 400, "VALIDATION_FAILED"),
    Asked("PATCH", "/organizations/Delta", {}, 404, "ORGANIZATION_NOT_FOUND"),
    Asked("POST", "/people", {"tel": "0810000004", "script": "busy 3s; answered 5s 90s"}, 200),
    Asked("POST", "/people", {"tel": "x"}, 400, "VALIDATION_FAILED"),
    Asked("GET", "/people", None, 200),
    *[Asked("POST", "/faults", FAULT | {"share": 0.5, "organization": "Acme"}, 201)] * MOST_FAULTS,
    Asked("POST", "/faults", FAULT, 409, "TOO_MANY_FAULTS"),
    Asked("POST", "/faults", {"api": "slow", "next": 1}, 400, "VALIDATION_FAILED"),
    Asked("GET", "/faults", None, 200),
    Asked("GET", "/faults/1", None, 200),
    Asked("DELETE", "/faults/1", None, 200),
    Asked("GET", "/faults/1", None, 404, "FAULT_NOT_FOUND"),
    Asked("DELETE", "/faults/1", None, 404, "FAULT_NOT_FOUND"),
    Asked("DELETE", "/faults", None, 200),
    Asked("DELETE", f"/campaigns/{COMPLETED}", None, 200),
    Asked("DELETE", f"/campaigns/{COMPLETED}", None, 404, "CAMPAIGN_NOT_FOUND"),
    Asked("DELETE", "/campaigns/x", None, 400, "INVALID_ID"),
    Asked("POST", "/calls/{call}/reanalyze", None, 404, "CAMPAIGN_NOT_FOUND"),
    Asked("GET", "/webhooks", None, 200),
    Asked("GET", "/webhooks?page=0", None, 400, "VALIDATION_FAILED"),
    Asked("GET", "/webhooks?status=late", None, 400, "VALIDATION_FAILED"),
    Asked("GET", "/webhooks?call=x", None, 400, "INVALID_ID"),
    Asked("POST", "/webhooks/0/resend", None, 404, "WEBHOOK_NOT_FOUND"),
    Asked("POST", "/webhooks/1/resend", None, 409, "NO_WEBHOOK_URL"),
    Asked("PATCH", "/organizations/Acme", {"webhookUrl": "http://127.0.0.1:9/"}, 200),
    Asked("POST", "/webhooks/1/resend", None, 200),
    Asked("POST", "/trigger", {"status": "BUSY", "organization": "Acme"}, 200),
    Asked("POST", "/trigger", {"status": "BUSY", "organization": "Beta"}, 409, "NO_WEBHOOK_URL"),
    Asked("POST", "/trigger", {"status": "BUSY"}, 400, "VALIDATION_FAILED"),
    Asked("GET", "/requests?method=get&path=/api/**&status=4xx&organization=Acme", None, 200),
    Asked("GET", "/requests?status=late", None, 400, "VALIDATION_FAILED"),
    Asked("DELETE", "/requests", None, 200),
    Asked("GET", "/export", None, 200),
    *[Asked("POST", "/snapshots", {}, 201)] * (MOST_SNAPSHOTS - 1),
    Asked("POST", "/snapshots", {"name": "before"}, 201),
    Asked("POST", "/snapshots", {"name": "before"}, 409, "SNAPSHOT_EXISTS"),
    Asked("POST", "/snapshots", {}, 409, "TOO_MANY_SNAPSHOTS"),
    Asked("POST", "/snapshots", {"name": "a b"}, 400, "VALIDATION_FAILED"),
    Asked("GET", "/snapshots", None, 200),
    Asked("POST", "/snapshots/before/restore", None, 200),
    Asked("POST", "/snapshots/after/restore", None, 404, "SNAPSHOT_NOT_FOUND"),
    Asked("DELETE", "/snapshots/before", None, 200),
    Asked("DELETE", "/snapshots/before", None, 404, "SNAPSHOT_NOT_FOUND"),
    Asked("POST", "/reset", None, 200),
)  # fmt: skip
FORECASTS = (
    Asked("POST", "/forecast", {"replications": 19}, 200),
    Asked("POST", "/forecast", {"replications": 18}, 400, "VALIDATION_FAILED"),
)
# what takes more than a request: test_control_plane, test_application, test_snapshots and
# test_unwritable_journal have their tests
TRIED_ELSEWHERE = {
    (409, "CLOCK_BUSY"),
    (409, "CLOCK_RUNNING"),
    (409, "NOT_IDLE"),
    (409, "STATE_REPLACED"),
    (500, "INTERNAL_ERROR"),
    (507, "NOT_KEPT"),
}


def refusals(operation: dict[str, Any]) -> set[tuple[int, str]]:
    """Return the statuses and codes of an operation's errors, as described."""
    return {
        (int(status), code)
        for status, answer in operation["responses"].items()
        if int(status) >= 400
        for code in answer["content"]["application/json"]["examples"]
    }


def test_whatever_is_routed_is_described_and_whatever_is_described_is_routed() -> None:
    routed = {
        (route.path.replace(":path}", "}"), method.lower())
        for route in application(exchange_of_the_corpus()).routes
        if isinstance(route, Route) and not is_of_the_page(route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    described = {
        (path, method) for path, methods in DOCUMENT["paths"].items() for method in methods
    }
    assert routed - {(DESCRIPTION, "get"), ("/_dialsim/events", "get")} == described


def is_of_the_page(route: Route) -> bool:
    """True if the operation belongs to the page, for people: documents, their parts, redirects."""
    return route.endpoint.__module__.startswith("dialsim.sandbox.page")


def test_parameters_of_a_path_are_those_of_the_description() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for operation in methods.values():
            named = [one["name"] for one in operation["parameters"] if one["in"] == "path"]
            assert [f"{{{name}}}" for name in named] == [
                part.partition(".")[0] for part in path.split("/") if part.startswith("{")
            ]


@pytest.mark.usefixtures("pictures_unrendered")  # of the export: most of the time went into them
def test_every_answer_that_is_described_is_given() -> None:
    require_all_answers([name for name in STEERING if name != "forecastRun"], ASKED)


@pytest.mark.slow
def test_every_answer_that_is_described_is_given_to_who_asks_for_a_forecast() -> None:
    require_all_answers(["forecastRun"], FORECASTS)


def require_all_answers(names: Sequence[str], asked: Sequence[Asked]) -> None:
    client = Client(exchange_of_the_corpus())
    call, failed = (
        next(
            row["callId"]
            for row in control(client, "GET", f"/campaigns/{campaign}/calls").json()["calls"]
            if row["status"] == status
        )
        for campaign, status in ((COMPLETED, "COMPLETED"), (RUNNING, "FAILED"))
    )
    given = set()
    for method, template, body, status, code in asked:
        path = template.format(call=call, failed=failed)
        response = control(client, method, path, body)
        assert response.status_code == status, (path, response.text)
        assert code is None or response.json()["code"] == code, path
        operation = operation_of(method, f"/_dialsim{path}")
        assert operation is not None
        given.add((operation["operationId"], status, code))
    for name in names:
        method, path = request_of(name)
        response = client.ask(method, f"{path.replace('/x', '/Acme')}?foo=1", HOME | JSON)
        given.add((name, response.status_code, response.json()["code"]))
    for name in names:
        operation = OPERATIONS[name]
        codes = {(status, code) for one, status, code in given if one == name and code}
        assert refusals(operation) - TRIED_ELSEWHERE - GUARDED - BODIES == codes, name
        assert any(one == name and code is None for one, _, code in given), name


@pytest.mark.parametrize("name", STEERING)
def test_the_guard_answers_as_is_described_for_every_operation(name: str) -> None:
    method, path = request_of(name)
    assert refusals(OPERATIONS[name]) >= GUARDED
    core = exchange_of_the_corpus()
    for client, headers, status in (
        (Client(core, ControlToken("correct-horse-battery-staple")), HOME, 401),
        (Client(core), {"Host": "elsewhere.test"}, 403),
    ):
        response = client.ask(method, path, headers)
        assert response.status_code == status
        require_as_described(method, path, response)


def request_of(name: str) -> tuple[str, str]:
    """Method and path of an operation, x for every id."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if operation["operationId"] == name:
                return method.upper(), path.replace("{id}", "x").replace("{n}", "1").replace(
                    "{name}", "x"
                )
    raise AssertionError(name)


def test_bodies_are_refused_as_is_described() -> None:
    client = Client(exchange_of_the_corpus())
    large = {"Content-Length": str(MOST_CONTROL_BYTES + 1), "Content-Type": "application/json"}
    for name in OF_THE_SANDBOX:
        refused = refusals(OPERATIONS[name]) & BODIES
        assert refused == (BODIES if "requestBody" in OPERATIONS[name] else set()), name
        method, path = request_of(name)
        if refused:
            at = path.replace("/x", "/Acme")
            response = client.ask(method, at, HOME | large, b"{}")
            assert response.status_code == 413
            require_as_described(method, at, response)
            response = client.ask(method, at, HOME | {"Content-Type": "text/plain"}, b"x")
            assert response.status_code == 415
            require_as_described(method, at, response)


def test_a_csv_may_come_in_the_place_of_the_body_with_the_rest_in_the_query() -> None:
    client = Client(exchange_of_the_corpus())
    create = OPERATIONS["createCampaign"]
    assert set(create["requestBody"]["content"]) == {"application/json", "application/octet-stream"}
    query = {
        "organization": "Acme",
        "name": "New",
        "agent": "Survey",
        "id": NOBODY,
        "schedule": '{"startDateTime": "2026-01-06T02:00:00Z"}',
        "scheduledAt": "2026-01-05T05:00:00Z",
        "priority": "1",
        "weight": "2",
        "atMost": "3",
        "reserved": "1",
    }
    assert set(query) == {parameter["name"] for parameter in create["parameters"]}
    path = str(httpx.URL("/_dialsim/campaigns", params=query))
    response = client.ask("POST", path, HOME | {"Content-Type": "text/csv"}, b"tel\n0890000001\n")
    assert response.status_code == 201
    require_as_described("POST", path, response)


@pytest.mark.parametrize(("name", "link"), [*zip(FILES, LINKS, strict=True)])
def test_files_are_answered_as_is_described(name: str, link: str) -> None:
    client = Client(exchange_of_the_corpus())
    posts = [post["payload"] for post in Result(client.core.simulation.trace).webhooks.body]
    links = {post["recipient"]["tel"]: post[link] for post in posts}
    good, expired = links["0810000009"], links["0830000001"]
    codes = {follow(client, url) for url in (good, expired, f"{good}0", good.replace("-", "_"))}
    control(client, "DELETE", f"/campaigns/{COMPLETED}")
    codes.add(follow(client, good))
    assert codes - {(200, None)} == refusals(OPERATIONS[name]) - TRIED_ELSEWHERE
    assert (200, None) in codes


def follow(client: Client, url: str) -> tuple[int, str | None]:
    """Return status and error code of a link's response, which is checked against the
    description.
    """
    link = urlsplit(url)
    response = client.ask("GET", f"{link.path}?{link.query}")
    require_as_described("GET", link.path, response)
    return response.status_code, None if response.is_success else response.json()["code"]
