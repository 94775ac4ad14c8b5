"""Changed URLs (W6), and receivers that call back while they handle what they got."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier
from typing import Any

import httpx
from tests.sandbox.webhooks.receiving import sending

from dialsim.interface.instants import parse_instant
from dialsim.testing import Answer, Receiver, Sketch

ONE = Sketch(lines=1).campaign("January", "busy 1s")
TWO = Sketch(lines=1).campaign("January", "busy 1s", "busy 1s")
FOUR = Sketch(lines=1).campaign("January", *["busy 1s"] * 4)
THREE = Sketch(lines=3).campaign("January", "busy 1s", "busy 1s", "busy 1s")


# -- where and when --------------------------------------------------------------------------------


def test_w6_a_changed_url_holds_for_the_next_result_and_not_for_a_retry() -> None:
    with Receiver() as old, Receiver() as new, sending(TWO, old.url) as sandbox:
        old.answer(Answer(500), Answer(500))
        while not old.requests:
            sandbox.advance(until="nextEvent")
        sandbox.ask("PATCH", "/organizations/Acme", {"webhookUrl": new.url})
        sandbox.advance(until="idle")
        assert (len(old.requests), len(new.requests)) == (3, 1)
        rows = sandbox.webhooks
        assert [row["url"] for row in rows] == [old.url, old.url, old.url, new.url]
        assert old.requests[0].body != new.requests[0].body


def test_w6_without_a_url_results_are_kept_and_not_sent_later() -> None:
    with Receiver() as receiver, sending(TWO, receiver.url) as sandbox:
        sandbox.ask("PATCH", "/organizations/Acme", {"webhookUrl": None})
        while not sandbox.webhooks:
            sandbox.advance(until="nextEvent")
        sandbox.ask("PATCH", "/organizations/Acme", {"webhookUrl": receiver.url})
        sandbox.advance(until="idle")
        kept, sent = sandbox.webhooks
        assert [kept[name] for name in ("status", "attempt", "url", "response")] == [
            "kept",
            None,
            None,
            None,
        ]
        assert (sent["status"], sent["attempt"]) == ("delivered", 1)
        assert [request.json for request in receiver.requests] == [sent["body"]]


def test_w6_a_url_that_the_file_sets_later_gets_what_falls_due_from_then_on() -> None:
    with Receiver() as receiver:
        told_later = FOUR.at(5, "setWebhookUrl", receiver.url)
        with sending(told_later, url=None) as sandbox:
            sandbox.advance(by="1h")
            statuses = [row["status"] for row in sandbox.webhooks]
        assert statuses == ["kept", "delivered", "delivered", "delivered"]
        assert len(receiver.requests) == 3


def test_posts_of_one_instant_are_under_way_together() -> None:
    together = Barrier(3)
    with Receiver() as receiver, sending(THREE, receiver.url) as sandbox:
        receiver.otherwise = Answer(first=lambda _: together.wait(timeout=600))
        sandbox.advance(until="idle")
        assert not together.broken
        assert sandbox.posts() == [(0, 1, 200)] * 3


# -- calling back ----------------------------------------------------------------------------------


def handling(deed: Callable[[dict[str, Any]], object]) -> Answer:
    """An answer before which the receiver does something with the payload."""
    return Answer(first=lambda request: deed(request.json["payload"]))


def test_t4_in_order_what_a_receiver_commands_happens_at_that_very_instant() -> None:
    states: list[dict[str, Any]] = []
    with Receiver() as receiver, sending(FOUR, receiver.url, in_order=True) as sandbox:
        campaign = sandbox.core.accounts[0].views[0].identifier
        headers = {"X-API-Key": sandbox.core.api_key(0)}

        def pause(_payload: dict[str, Any]) -> None:
            path = f"{sandbox.url}/api/campaign/{campaign}/pause"
            httpx.post(path, headers=headers, trust_env=False, timeout=600).raise_for_status()
            states.append(sandbox.ask("GET", "/clock"))

        receiver.answer(handling(pause))
        sandbox.advance(by="1h")
        [row] = sandbox.webhooks
        [state] = states
        assert (state["now"], state["status"]) == (row["at"], "advancing")
        assert row["body"]["payload"]["campaign"]["status"] == "RUNNING"
        assert len(receiver.requests) == 1  # no call after the pause
        change = sandbox.core.simulation.log.campaigns[-1]
        assert (change.cause, change.at) == ("pause", parse_instant(row["at"]))


def test_a_receiver_that_moves_the_clock_is_told_that_it_moves() -> None:
    codes: list[str] = []
    with Receiver() as receiver, sending(ONE, receiver.url) as sandbox:

        def move(_payload: dict[str, Any]) -> None:
            path = f"{sandbox.url}/_dialsim/clock/advance"
            answer = httpx.post(path, json={"by": "1h"}, trust_env=False, timeout=600)
            codes.append(answer.json()["code"])

        receiver.answer(handling(move))
        sandbox.advance(until="idle")
        assert codes == ["CLOCK_BUSY"]
        assert sandbox.posts() == [(0, 1, 200)]


def test_a5_in_order_a_reanalysis_asked_for_meanwhile_is_sent_before_time_goes_on() -> None:
    at_once = Sketch(lines=1).campaign("January", "answered 1s 5s", "busy 1s")
    at_once = at_once.behaviour("default", setup_time="2s", analysis_delay="0s")
    with Receiver() as receiver, sending(at_once, receiver.url, in_order=True) as sandbox:

        def reanalyze(payload: dict[str, Any]) -> None:
            if payload["callResult"] and not payload["isReAnalysis"]:
                sandbox.ask("POST", f"/calls/{payload['call']['id']}/reanalyze")

        receiver.otherwise = handling(reanalyze)
        sandbox.advance(until="idle")
        first, again, last = sandbox.webhooks
    assert first["callId"] == again["callId"] != last["callId"]
    assert first["at"] == again["at"] < last["at"]
    assert [row["result"] for row in (first, again)] == [0, 1]
    assert again["body"]["payload"]["isReAnalysis"]
