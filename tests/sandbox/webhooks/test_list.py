"""The list of webhooks under /_dialsim, and sending again."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.sandbox.asking import Client, control
from tests.sandbox.webhooks.receiving import Steered, sending

from dialsim.sandbox.core import SandboxCore
from dialsim.testing import Answer, Receiver, Sketch

TWO = Sketch(lines=1).campaign("January", "busy 1s").campaign("May", "answered 1s 5s", "busy 1s")
MANY = Sketch(lines=50).campaign("January", *["busy 1s"] * 250)


def numbers(sandbox: Steered, **filters: Any) -> list[int]:
    """The rows that filters leave."""
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    return [row["n"] for row in sandbox.ask("GET", f"/webhooks?{query}")["webhooks"]]


def refused(sandbox: Steered, method: str, path: str) -> tuple[int, str, str]:
    url = f"{sandbox.url}/_dialsim{path}"
    answer = httpx.request(method, url, trust_env=False, verify=False).json()
    return answer["statusCode"], answer["code"], answer["message"]


def test_rows_are_found_by_call_campaign_status_and_response() -> None:
    with Receiver() as receiver, sending(TWO, receiver.url) as sandbox:
        receiver.answer(Answer(500), Answer(404), Answer(), Answer())
        sandbox.advance(until="idle")
        sandbox.ask("PATCH", "/organizations/Acme", {"webhookUrl": None})
        answered = next(row for row in sandbox.webhooks if row["body"]["payload"]["callResult"])
        sandbox.ask("POST", f"/calls/{answered['callId']}/reanalyze")
        sandbox.advance(until="idle")
        rows = sandbox.webhooks
        assert [row["n"] for row in rows] == [*range(1, len(rows) + 1)]
        for name in ("callId", "campaignId"):
            for wanted in {row[name] for row in rows}:
                same = [row["n"] for row in rows if row[name] == wanted]
                assert numbers(sandbox, **{name.removesuffix("Id"): wanted}) == same
        for status in ("delivered", "failed", "kept", "underWay"):
            same = [row["n"] for row in rows if row["status"] == status]
            assert numbers(sandbox, status=status) == same
            assert bool(same) == (status != "underWay")
        for response in (200, 404, 500):
            same = [row["n"] for row in rows if row["response"] == response]
            assert numbers(sandbox, status=response) == same != []
        assert numbers(sandbox, status=503) == numbers(sandbox, status="timeout") == []
        campaigns = sorted({row["campaignId"] for row in rows})
        call = answered["callId"]
        both = [numbers(sandbox, campaign=campaign, call=call) for campaign in campaigns]
        assert sorted(map(bool, both)) == [False, True]
        nobody = "00000000-0000-4000-8000-000000000000"
        assert numbers(sandbox, call=nobody) == numbers(sandbox, campaign=nobody) == []


def test_rows_come_a_hundred_a_page_and_stay_where_they_are() -> None:
    with sending(MANY, None) as sandbox:
        sandbox.advance(until="idle")
        pages = [sandbox.ask("GET", f"/webhooks?page={page}") for page in (1, 2, 3, 4)]
        assert [len(page["webhooks"]) for page in pages] == [100, 100, 50, 0]
        assert {(page["total"], page["totalPages"]) for page in pages} == {(250, 3)}
        assert [page["page"] for page in pages] == [1, 2, 3, 4]
        listed = [row for page in pages for row in page["webhooks"]]
        assert [row["n"] for row in listed] == [*range(1, 251)]
        assert {row["status"] for row in listed} == {"kept"}
        instants = [row["at"] for row in listed]
        assert instants == sorted(instants)
        sandbox.advance(by="1h")
        assert sandbox.ask("GET", "/webhooks?page=2") == pages[1]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("page=0", "page must be an integer of 1 or more"),
        ("status=lost", "status must be delivered, failed, kept, underWay, timeout, refused, "),
        ("status=99", "status must be delivered"),
        ("call=x", "call must be a valid UUID"),
        ("campaign=", "campaign must be a valid UUID"),
        ("limit=5", "property limit should not exist"),
        ("status=kept&status=failed", "status must be"),
    ],
)
def test_what_makes_no_sense_is_refused(query: str, text: str) -> None:
    answer = control(Client(SandboxCore(TWO.scenario())), "GET", f"/webhooks?{query}")
    assert answer.status_code == answer.json()["statusCode"] == 400
    assert text in answer.json()["message"]


def test_a_post_that_is_under_way_is_listed_without_a_response() -> None:
    seen: list[dict[str, Any]] = []
    one = Sketch(lines=1).campaign("January", "busy 1s")
    with Receiver() as receiver, sending(one, receiver.url) as sandbox:
        receiver.answer(Answer(first=lambda _: seen.extend(sandbox.webhooks)))
        sandbox.advance(until="idle")
        [before], [after] = seen, sandbox.webhooks
    assert (before["status"], before["response"], before["attempt"]) == ("underWay", None, 1)
    assert after == before | {"status": "delivered", "response": 200, "received": True}


# -- sending again ---------------------------------------------------------------------------------


def test_a_result_is_sent_again_once_as_it_was() -> None:
    one = Sketch(lines=1).campaign("January", "busy 1s")
    with Receiver() as receiver, sending(one, receiver.url) as sandbox:
        receiver.answer(Answer(500), Answer(500), Answer(500), Answer(503), Answer(200))
        sandbox.advance(until="idle")
        sandbox.advance(by="1h")
        campaign = sandbox.webhooks[0]["campaignId"]
        sandbox.ask("DELETE", f"/campaigns/{campaign}")
        fourth, fifth = (sandbox.ask("POST", "/webhooks/1/resend") for _ in range(2))
        rows = sandbox.webhooks
        assert (fourth, fifth) == (rows[3], rows[4])
        assert [row["attempt"] for row in rows] == [1, 2, 3, 4, 5]
        assert [row["response"] for row in rows] == [500, 500, 500, 503, 200]
        assert [row["resent"] for row in rows] == [False, False, False, True, True]
        assert fourth["at"] == fifth["at"] == sandbox.ask("GET", "/clock")["now"]
        assert sandbox.ask("GET", "/clock")["nextEventAt"] is None  # no retries of these
    assert len({request.body for request in receiver.requests}) == 1
    assert len(receiver.requests) == 5


def test_a_kept_result_is_sent_to_the_url_of_now() -> None:
    with Receiver() as receiver, sending(TWO, None) as sandbox:
        sandbox.advance(until="idle")
        assert refused(sandbox, "POST", "/webhooks/2/resend") == (
            409,
            "NO_WEBHOOK_URL",
            "The organization has no webhook URL",
        )
        sandbox.ask("PATCH", "/organizations/Acme", {"webhookUrl": receiver.url})
        row = sandbox.ask("POST", "/webhooks/2/resend")
        kept = sandbox.webhooks[1]
        assert (row["n"], row["attempt"], row["url"], row["resent"]) == (4, 1, receiver.url, True)
        assert row["body"] == kept["body"] == receiver.requests[0].json
        assert kept["url"] is None
        for n in ("0", "5", "x", "-1", "1" * 30):
            assert refused(sandbox, "POST", f"/webhooks/{n}/resend")[1] == "WEBHOOK_NOT_FOUND"


def test_a_result_sent_again_between_its_tries_takes_none_of_them() -> None:
    one = Sketch(lines=1).campaign("January", "busy 1s")
    with Receiver() as receiver, sending(one, receiver.url) as sandbox:
        receiver.answer(Answer(500), Answer(501), Answer(502), Answer(503))
        while not sandbox.webhooks:
            sandbox.advance(until="nextEvent")
        assert sandbox.ask("POST", "/webhooks/1/resend")["response"] == 501
        sandbox.advance(until="idle")
        assert sandbox.posts() == [(0, 1, 500), (0, 2, 501), (1, 3, 502), (3, 4, 503)]
        assert [row["resent"] for row in sandbox.webhooks] == [False, True, False, False]
