"""Deliveries: outages, errors and slow receivers, on paper and against closed forms."""

from __future__ import annotations

import copy
import json
import pickle
from math import sqrt
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dialsim
from dialsim.results.figures import WebhookFigures
from dialsim.results.result import Result
from dialsim.testing import Sketch, at
from dialsim.testing.sketch import When

PEOPLE = 5_000
NINE = pd.Timestamp("2026-01-05T02:00:00Z")


HOOK = "https://example.test/hook"


def sketch(receiver: dict[str, Any], end: When | None = None, **engine: Any) -> Sketch:
    """A line for each person, and a receiver."""
    engine = {"queue_limit": "unlimited", "queue_timeout": "2d", **engine}
    return (
        Sketch(PEOPLE, end=end, **engine)
        .behaviour("default", outcomes={"noAnswer": 1})
        .having(webhook={"url": HOOK, "receiver": receiver})
    )


def run(sketch: Sketch) -> Result:
    return dialsim.run(sketch.scenario())


def many(receiver: dict[str, Any]) -> WebhookFigures:
    """One result for each of many people, none of whom answers."""
    everybody = sketch(receiver).campaign("January", recipients={"count": PEOPLE})
    figures = run(everybody).summary.webhooks
    assert figures.results == PEOPLE
    return figures


def close(count: int, share: float) -> bool:
    """True if a count is within four standard errors of its expectation."""
    return abs(count - PEOPLE * share) <= 4 * sqrt(PEOPLE * share * (1 - share))


def one(receiver: dict[str, Any], end: When | None = None) -> list[tuple[float, object, bool]]:
    """The POSTs of one busy call that ends at 09:00:03: seconds after nine, response, received."""
    table = run(sketch(receiver, end).campaign("January", "busy 1s")).webhooks
    seconds = (table["at"] - NINE).dt.total_seconds()
    return [*zip(seconds, table.response, table.received, strict=True)]


@pytest.mark.parametrize("error_rate", [0.05, 0.3, 0.7])
def test_w2_independent_errors_lose_their_cube_and_pass_the_rest_at_once(error_rate: float) -> None:
    figures = many({"latency": "300ms", "errorRate": error_rate})
    assert close(figures.at_first_try, 1 - error_rate)
    assert close(figures.lost, error_rate**3)
    assert close(figures.after_retries, error_rate - error_rate**3)
    assert figures.duplicated == figures.received_though_lost == figures.pending == 0


@pytest.mark.parametrize("mean", [5, 20])
def test_w5_replies_after_ten_seconds_are_duplicates_as_received(mean: int) -> None:
    # An exponential latency is late with probability q = exp(-10 s / mean), POST by POST. All POSTs
    # arrive: more than once where the first is late, and lost all the same where all three are.
    from math import exp

    late = exp(-10 / mean)
    figures = many({"latency": {"dist": "exponential", "mean": f"{mean}s"}})
    assert close(figures.at_first_try, 1 - late)
    assert close(figures.duplicated, late)
    assert close(figures.lost, late**3)
    assert figures.received_though_lost == figures.lost


def test_w5_a_receiver_that_is_always_late_gets_everything_three_times() -> None:
    figures = many({"latency": "10001ms"})
    assert (figures.lost, figures.duplicated, figures.received_though_lost) == (PEOPLE,) * 3


def test_w2_a_reply_at_ten_seconds_is_in_time() -> None:
    assert one({"latency": "10s"}) == [(3.0, "200", True)]


def test_w2_an_error_is_tried_again_a_second_and_then_two_after_the_failure() -> None:
    assert one({"latency": "300ms", "errorRate": 1}) == [
        (3.0, "500", False),
        (4.3, "500", False),
        (6.6, "500", False),
    ]


def test_w2_the_whole_window_of_timeouts_is_thirty_three_seconds_and_three_posts() -> None:
    late = {"latency": "15s"}
    assert one(late) == [(3.0, "timeout", True), (14.0, "timeout", True), (26.0, "timeout", True)]


def test_w3_first_posts_leave_webhook_delay_after_the_result_and_wait_for_no_other() -> None:
    delayed = sketch({"latency": "9s"}, webhook_delay="7s").campaign("January", *["busy 1s"] * 2)
    table = run(delayed).webhooks
    assert table.ready_at.tolist() == [NINE + pd.Timedelta("3s")] * 2
    assert table["at"].tolist() == [NINE + pd.Timedelta("10s")] * 2


@pytest.mark.parametrize(
    ("flaw", "agent_status"), [("notRecorded", "COMPLETED"), ("agentError", "ERROR")]
)
def test_a2_what_is_not_recorded_or_not_sound_is_not_analyzed_and_sends_nothing(
    flaw: str, agent_status: str
) -> None:
    result = run(sketch({"latency": "1s"}).campaign("January", f"answered 1s 9s {flaw}"))
    assert len(result.webhooks) == 0
    call = result.calls.iloc[0]
    assert (call.status, call.agent_status, call.analysis) == (
        "COMPLETED",
        agent_status,
        "not_analyzed",
    )


def test_w5_a_refused_connection_fails_at_once() -> None:
    outage = {"from": at("Mon 09:00"), "to": at("Mon 09:00:04"), "mode": "refuse"}
    assert one({"latency": "200ms", "outages": [outage]}) == [
        (3.0, "refused", False),
        (4.0, "200", True),  # the outage is over at its `to`
    ]


def test_w5_a_connection_that_hangs_times_out_and_nothing_is_received() -> None:
    outage = {"from": at("Mon 09:00:03"), "to": at("Mon 09:00:15"), "mode": "hang"}
    assert one({"latency": "200ms", "outages": [outage]}) == [
        (3.0, "timeout", False),
        (14.0, "timeout", False),
        (26.0, "200", True),
    ]


def test_posts_after_the_end_of_the_clock_do_not_leave() -> None:
    receiver = {"latency": "300ms", "errorRate": 1}
    assert one(receiver, end=5) == [(3.0, "500", False), (4.3, "500", False)]
    figures = run(sketch(receiver, end=5).campaign("January", "busy 1s")).summary.webhooks
    assert (figures.results, figures.pending, figures.lost) == (1, 1, 0)


def test_results_overtaken_by_newer_ones_of_the_same_person_are_counted() -> None:
    # One line for two people: while one talks, the other's calls time out every two seconds, and
    # what has to be tried again arrives after its successors.
    crowded = sketch({"latency": "100ms", "errorRate": 0.4}, queue_timeout="2s")
    crowded = crowded.having(max_concurrent_calls=1)
    result = run(crowded.campaign("January", "answered 5s 5m", "noAnswer 25s"))
    taken = result.webhooks[result.webhooks.received]
    firsts = taken.groupby(["recipient", "call"]).agg(ready=("ready_at", "min"), at=("at", "min"))
    overtaken = sum(
        any((whose == person) & (firsts.ready > row.ready) & (firsts["at"] < row["at"]))
        for (person, _), row in firsts.iterrows()
        for whose in [firsts.index.get_level_values("recipient")]
    )
    assert overtaken > 10
    assert result.summary.webhooks.out_of_order == overtaken


def test_w6_the_url_is_looked_up_when_each_result_is_sent() -> None:
    # Two busy calls, five minutes apart; meanwhile the URL changes, or is set for the first time.
    retried = sketch({"latency": "200ms"}).campaign(
        "January", "busy 1s", max_attempts=2, retry_interval="5m"
    )
    for first, second in ((HOOK, None), (None, "https://example.test/new")):
        given = retried if first is not None else retried.having(webhook=None)
        simulation = dialsim.Simulation(given.scenario())
        simulation.advance(minutes=1)
        simulation.set_webhook_url(second)
        table = Result(simulation.run()).webhooks
        assert table.attempt.isna().tolist() == [first is None, second is None]
        assert table.received.tolist() == [first is not None, second is not None]


def test_a_url_set_on_the_instant_of_sending_holds_for_it() -> None:
    without = sketch({}).having(webhook=None).campaign("January", "busy 1s")
    assert run(without.at(3, "setWebhookUrl", HOOK)).webhooks.received.tolist() == [True]


def test_the_summary_has_the_figures_at_every_level_and_in_its_table() -> None:
    half = sketch({"latency": "200ms", "errorRate": 0.5})
    result = run(half.campaign("January", recipients={"count": 50}))
    plain, frame = result.summary.to_dict(), result.summary.to_frame()
    acme = plain["organizations"][0]
    assert plain["webhooks"] == acme["webhooks"] == acme["campaigns"][0]["webhooks"]
    assert plain["webhooks"]["results"] == 50
    assert sum(plain["webhooks"][key] for key in ("at_first_try", "after_retries", "lost")) == 50
    assert frame.webhooks_lost.tolist() == [plain["webhooks"]["lost"]] * 3
    assert frame.analyses_conversations.tolist() == [0, 0, 0]


def test_what_is_mapped_from_bodies_is_a_column_of_its_own_type() -> None:
    two = sketch({"latency": "200ms"}).campaign("January", "busy 1s", "failed 0s")
    bodies = run(two).webhooks.body
    statuses = bodies.map(lambda body: body["payload"]["call"]["callStatus"])
    assert sorted(statuses) == ["BUSY", "FAILED"]
    attempts = bodies.apply(lambda body: body["payload"]["recipient"]["callAttempt"])
    assert attempts.sum() == 2


def mixed() -> pd.DataFrame:
    """POSTs with every kind of response, one of them for a result without a URL."""
    outage = {"from": at("Mon 09:00"), "to": at("Mon 09:00:04"), "mode": "refuse"}
    latency = {"dist": "uniform", "low": "5s", "high": "15s"}
    given = sketch({"latency": latency, "errorRate": 0.4, "outages": [outage]})
    given = given.campaign("January", "busy 1s", "busy 5s", "busy 9s", "busy 5m")
    return run(given.at("Mon 09:05", "setWebhookUrl", None)).webhooks


def test_responses_are_words_that_can_be_counted_and_written() -> None:
    frame = mixed()
    assert frame.response.dropna().isin(["200", "500", "timeout", "refused"]).all()
    assert frame.response.cat.categories.dtype == "str"
    assert frame.response.nunique() == 4
    assert frame.response.isna().tolist() == [False] * (len(frame) - 1) + [True]


def test_a_pickled_table_has_its_bodies_with_it() -> None:
    frame = mixed()
    for again in (pickle.loads(pickle.dumps(frame)), copy.deepcopy(frame), frame.copy()):
        pd.testing.assert_frame_equal(again.drop(columns="body"), frame.drop(columns="body"))
        assert [*again.body] == [*frame.body]
    part = frame.body.iloc[[2, 0]].reindex([2, 0, 99])
    assert [*pickle.loads(pickle.dumps(part))] == [frame.body[2], frame.body[0], None]


def test_a_table_of_webhooks_is_written_to_parquet_with_bodies_as_text(tmp_path: Path) -> None:
    frame, path = mixed(), tmp_path / "webhooks.parquet"
    with pytest.raises(dialsim.DialsimError, match="make text of them first"):
        frame.to_parquet(path)
    frame.drop(columns="body").to_parquet(path)
    pd.testing.assert_frame_equal(pd.read_parquet(path), frame.drop(columns="body"))
    frame.assign(body=frame.body.map(json.dumps)).to_parquet(path)
    again = pd.read_parquet(path)
    assert [json.loads(text) for text in again.body] == [*frame.body]
