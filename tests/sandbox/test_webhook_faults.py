"""Webhooks that go wrong on purpose, as a real receiver sees them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dialsim
from dialsim.sandbox.commands import ClearFaults, InjectFault
from dialsim.sandbox.journal import EntryKind
from dialsim.sandbox.restart import begin, resume
from dialsim.scenario.service import FaultOrder
from dialsim.testing import Answer, Receiver, Sketch

ONE = Sketch(lines=1).campaign("January", "busy 1s")
MANY = Sketch(lines=9).campaign("January", *["busy 1s"] * 60)
TWO = (
    Sketch(lines=1)
    .campaign("January", "busy 1s")
    .campaign("May", "busy 1s")
    .organization("Beta", 1)
    .campaign("June", "busy 1s")
)
SETTINGS = ["service.publicUrl=https://calls.test"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def sandbox_of(sketch: Sketch, receiver: Receiver, seed: int = 1) -> dialsim.Sandbox:
    return dialsim.Sandbox(sketch.text, SETTINGS, seed=seed, webhook_url=receiver.url)


def got(receiver: Receiver) -> list[bytes]:
    return [request.body for request in receiver.requests]


def posts(sandbox: dialsim.Sandbox) -> pd.DataFrame:
    """The POSTs so far; `at` in seconds from the first."""
    table = sandbox.result().webhooks
    seconds = (table["at"] - table["at"].iloc[0]).dt.total_seconds()
    return table.assign(at=seconds)


def story(sandbox: dialsim.Sandbox) -> list[tuple[float, str]]:
    table = posts(sandbox)
    return [*zip(table["at"], table["response"], strict=True)]


@pytest.mark.parametrize(
    ("how", "times", "told", "arrived"),
    [
        ("timeout", 1, [(0, "timeout"), (11, "200")], 1),
        ("timeout", 3, [(0, "timeout"), (11, "timeout"), (23, "timeout")], 0),
        ("refuse", 1, [(0, "refused"), (1, "200")], 1),
        ("refuse", 3, [(0, "refused"), (1, "refused"), (3, "refused")], 0),
        ("late", 1, [(0, "timeout"), (11, "200")], 2),
        ("late", 3, [(0, "timeout"), (11, "timeout"), (23, "timeout")], 3),
        ("twice", 1, [(0, "200")], 2),
    ],
)
def test_a_receiver_sees_what_was_asked_for(
    receiver: Receiver, how: Any, times: int, told: list[tuple[float, str]], arrived: int
) -> None:
    with sandbox_of(ONE, receiver) as sandbox:
        fault = sandbox.faults.strike_webhooks(how, times)
        sandbox.clock.advance(until="idle")
        assert story(sandbox) == told
        assert len(got(receiver)) == arrived
        assert len(set(got(receiver))) == min(arrived, 1)  # one body, however often it comes
        assert (sandbox.faults[fault.id].struck, sandbox.faults[fault.id].left) == (times, 0)


def test_a_late_answer_is_late_only_where_there_is_one() -> None:
    with dialsim.Sandbox(ONE.text, webhook_url="http://127.0.0.1:9/nobody") as sandbox:
        sandbox.faults.strike_webhooks("late", 2)
        sandbox.clock.advance(until="idle")
        assert [response for _, response in story(sandbox)] == ["refused"] * 3


def test_a_fault_may_be_for_one_organization_or_one_campaign(receiver: Receiver) -> None:
    with sandbox_of(TWO, receiver) as sandbox:
        acme = sandbox.faults.strike_webhooks("twice", 9, campaign="May")
        beta = sandbox.faults.strike_webhooks("refuse", 3, organization="Beta")
        sandbox.clock.advance(until="idle")
        told = [request.json["payload"]["campaignName"] for request in receiver.requests]
        assert told == ["January", "May", "May"]
        for fault, struck in ((acme, 1), (beta, 3)):
            now = sandbox.faults[fault.id]
            assert (now.met, now.struck) == (struck, struck)


def test_requests_and_webhooks_do_not_meet_each_others_faults(receiver: Receiver) -> None:
    with sandbox_of(ONE, receiver) as sandbox:
        sandbox.faults.strike_api("error", 5, path="/api")
        sandbox.clock.advance(until="idle")
        assert story(sandbox) == [(0, "200")]
        assert sandbox.faults[1].met == 0
        sandbox.faults.clear()
        sandbox.faults.strike_webhooks("refuse", 5)
        sandbox.add_campaign(
            {"name": "May", "agent": "Agent", "recipients": [{"tel": "0812345678"}]}
        )
        sandbox.schedule("May", {"startDateTime": "2026-01-05T02:00:00Z"})
        assert sandbox.faults[2].met == 0


def test_a_cleared_fault_strikes_no_more(receiver: Receiver) -> None:
    with sandbox_of(ONE, receiver) as sandbox:
        fault = sandbox.faults.strike_webhooks("refuse", 3)
        while not sandbox.faults[fault.id].struck:
            sandbox.clock.advance(until="nextEvent")
        sandbox.faults.clear(fault)
        sandbox.clock.advance(until="idle")
        assert story(sandbox) == [(0, "refused"), (1, "200")]


def test_a_share_strikes_the_same_webhooks_on_the_same_seed(receiver: Receiver) -> None:
    rounds = []
    for seed in (1, 1, 2):
        receiver.requests.clear()
        with sandbox_of(MANY, receiver, seed) as sandbox:
            fault = sandbox.faults.strike_webhooks("timeout", 1000, share=0.3)
            sandbox.clock.advance(until="idle")
            table = posts(sandbox)
            struck = table["response"] == "timeout"
            rounds.append([*zip(table["recipient"], table["at"], struck, strict=True)])
            now = sandbox.faults[fault.id]
            assert (now.met, now.struck) == (len(table), struck.sum())
            assert 10 < now.struck < 45  # 86 POSTs, 26 struck expected
            delivered = table.loc[table["response"] == "200", "recipient"]
            assert len(receiver.requests) == len(delivered) == delivered.nunique()
    assert rounds[0] == rounds[1]
    assert rounds[0] != rounds[2]


def test_once_a_fault_is_spent_webhooks_are_as_ever(receiver: Receiver) -> None:
    sketch = TWO.campaign("Next", "busy 1s; answered 5s 60s", start="Mon 09:10", max_attempts=2)
    sent = []
    for broken in (True, False):
        receiver.requests.clear()
        with sandbox_of(sketch, receiver) as sandbox:
            if broken:
                sandbox.faults.strike_webhooks("late", 2)
                sandbox.faults.strike_webhooks("timeout", 9, share=0.5)
            sandbox.clock.advance(minutes=5)
            if broken:
                sandbox.faults.clear()
            receiver.requests.clear()
            sandbox.clock.advance(until="idle")
            table = sandbox.result().webhooks
            after = table[table["campaign"] == "Next"].drop(columns="body")
            calls = sandbox.result().calls.to_csv()
            sent.append((got(receiver), after.to_csv(index=False), calls))
    assert sent[0] == sent[1]
    assert len(sent[0][0]) == 2


# -- out of order ----------------------------------------------------------------------------------

RETRIED = Sketch(lines=1).campaign(
    "January", "busy 1s; answered 5s 60s", max_attempts=2, retry_interval="5m"
)


def told(receiver: Receiver) -> list[tuple[str, str]]:
    """Return the webhooks received: status of the call and the person's newest status at the
    time.
    """
    payloads = [request.json["payload"] for request in receiver.requests]
    return [(one["call"]["callStatus"], one["recipient"]["latestCallStatus"]) for one in payloads]


def test_a_result_that_is_delayed_is_overtaken_and_out_of_date(receiver: Receiver) -> None:
    with sandbox_of(RETRIED, receiver) as sandbox:
        ordered = sandbox.faults.strike_webhooks("delayed", delay="20m")
        sandbox.clock.advance(minutes=15)
        assert told(receiver) == [("COMPLETED", "COMPLETED")]
        assert sandbox.clock.next_event_at is not None
        sandbox.clock.advance(until="idle")
        assert told(receiver) == [("COMPLETED", "COMPLETED"), ("BUSY", "BUSY")]
        assert sandbox.faults[ordered.id].left == 0
        late = sandbox.webhooks[-1]
        assert (late.status, late.attempt) == ("delivered", 1)
        assert late.body == receiver.requests[-1].json
        busy = sandbox.result().calls.iloc[0]["call_ended_at"]
        assert late.at - busy.to_pydatetime() == timedelta(minutes=20)


def test_a_result_that_is_delayed_is_tried_again_as_any_other(receiver: Receiver) -> None:
    with sandbox_of(ONE, receiver) as sandbox:
        sandbox.faults.strike_webhooks("delayed", delay="1h")
        receiver.answer(Answer(503), Answer(503))
        sandbox.clock.advance(until="idle")
        assert story(sandbox) == [(0, "503"), (1, "503"), (3, "200")]


def test_a_result_may_be_followed_by_the_one_before(receiver: Receiver) -> None:
    with sandbox_of(RETRIED, receiver) as sandbox:
        stale = sandbox.faults.strike_webhooks("stale")
        sandbox.clock.advance(until="idle")
        assert [status for status, _ in told(receiver)] == ["BUSY", "COMPLETED", "BUSY"]
        assert receiver.requests[2].body == receiver.requests[0].body
        # a first result has none before it
        assert (sandbox.faults[stale.id].met, sandbox.faults[stale.id].struck) == (1, 1)
        assert [post.response for post in sandbox.webhooks] == [200, 200]
        sandbox.faults.strike_webhooks("stale")
        sandbox.reanalyze_call(sandbox.webhooks[-1].call_id)
        sandbox.clock.advance(until="idle")
        again = [request.json["payload"]["isReAnalysis"] for request in receiver.requests[3:]]
        assert again == [True, False]


def test_a_delayed_result_leaves_when_it_was_to_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    text = ONE.having(webhook={"url": "http://127.0.0.1:9/"}).text
    core = begin(file, dialsim.loads(text))
    first = core.sender = _Stopped()  # type: ignore[assignment]
    order = FaultOrder.model_validate({"webhooks": "delayed", "next": 1, "delay": "1h"})
    core.carry_out(InjectFault(order=order))
    start = core.at
    core.work_on(start + 60_000)
    core.move_to(start + 60_000)
    due = core.next_event_at()
    assert first.given == []
    assert due is not None
    core.journal.close()  # type: ignore[union-attr]
    again = resume(file)
    second = again.sender = _Stopped()  # type: ignore[assignment]
    again.open()
    assert (second.given, again.next_event_at()) == ([], due)
    again.work_on(due)
    assert len(second.given) == 1
    again.journal.close()  # type: ignore[union-attr]


# -- after a restart -------------------------------------------------------------------------------


class _Stopped:
    """A sender that is stopped while all that it was given is under way."""

    busy = False

    def __init__(self) -> None:
        self.given: list[tuple[tuple[int, ...], str | None]] = []

    def take(self, deliveries: Any) -> None:
        self.given += [(delivery.key, delivery.fault) for delivery in deliveries]


def test_a_post_under_way_when_the_sandbox_was_killed_meets_the_same_fate_once(
    tmp_path: Path,
) -> None:
    file, text = tmp_path / "journal", MANY.having(webhook={"url": "http://127.0.0.1:9/"}).text
    core = begin(file, dialsim.loads(text))
    first = core.sender = _Stopped()  # type: ignore[assignment]
    for how, share in (("timeout", 0.4), ("late", 0.5)):
        order = FaultOrder.model_validate({"webhooks": how, "next": 50, "share": share})
        core.carry_out(InjectFault(order=order))
    while core.work_on(core.at + 10_000) or not first.given:
        pass
    counts = [(fault.met, fault.struck) for fault in core.faults]
    assert {fault for _, fault in first.given} == {"timeout", "late", None}
    core.carry_out(ClearFaults(number=1))
    core.journal.close()  # type: ignore[union-attr]
    again = resume(file)
    second = again.sender = _Stopped()  # type: ignore[assignment]
    again.open()
    assert [*second.given] == [*first.given]
    assert [(fault.met, fault.struck) for fault in again.faults] == counts[1:]
    again.journal.close()  # type: ignore[union-attr]


def test_without_faults_nothing_about_them_is_kept(tmp_path: Path) -> None:
    text = ONE.having(webhook={"url": "http://127.0.0.1:9/"}).text
    core = begin(tmp_path / "journal", dialsim.loads(text))
    stopped = core.sender = _Stopped()  # type: ignore[assignment]
    core.work_on(core.at + 10_000)
    assert [fault for _, fault in stopped.given] == [None]
    assert core.journal is not None
    assert {entry.kind for entry in core.journal.entries()} == {EntryKind.STEP}
    core.journal.close()
