"""Forecasts of a sandbox: how it goes on, without a trace in it."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest
from tests.sandbox.serving import served

import dialsim
from dialsim.results.result import Result
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.live_engine import remaining_run
from dialsim.testing import Sketch

START = "2026-01-05T02:00:00Z"
JANUARY = Sketch(lines=4).campaign(
    "January", recipients={"count": 300}, max_attempts=3, retry_interval="30m"
)


def ask(url: str, method: str, path: str, body: object = None) -> Any:
    answer = httpx.request(method, f"{url}/_dialsim{path}", json=body, timeout=600)
    assert answer.is_success, answer.text
    return answer.json()


def everything(url: str) -> list[bytes]:
    """All that the control plane lists."""
    paths = ["clock", "campaigns", "organizations", "people", "faults", "webhooks", "snapshots"]
    for one in ask(url, "GET", "/campaigns"):
        paths += [f"campaigns/{one['id']}/{table}" for table in ("calls", "transitions")]
    return [httpx.get(f"{url}/_dialsim/{path}").content for path in paths]


@pytest.mark.slow
def test_a_forecast_is_made_while_others_are_answered_and_leaves_no_trace() -> None:
    core = SandboxCore(JANUARY.scenario())
    with served(core) as sandbox:
        url, answers = sandbox.url, list[Any]()
        ask(url, "POST", "/clock/advance", {"by": "1h"})
        before = everything(url)
        asked = threading.Thread(
            target=lambda: answers.append(ask(url, "POST", "/forecast", {"replications": 19}))
        )
        asked.start()
        while_it_runs = 0
        while not answers:
            assert everything(url) == before
            while_it_runs += not answers
        asked.join()
        assert while_it_runs
        assert everything(url) == before
        [forecast] = answers
        [january] = forecast["campaigns"]
        reached = int((Result(core.simulation.trace).calls.status == "COMPLETED").sum())
        assert (january["status"], january["people"], january["reached"]) == (
            "RUNNING", 300, reached,
        )  # fmt: skip
        assert {name: january[name] for name in forecast["overall"]} == forecast["overall"]
        assert forecast["at"] < january["finish"]["low"] <= january["finish"]["high"]
        assert reached < january["reach"]["low"] <= january["reach"]["high"] <= 300
        ask(url, "POST", "/clock/advance", {"until": "idle"})
        over = ask(url, "POST", "/forecast")
        assert over["overall"] is None
        assert over["sentences"] == ["Nothing is scheduled."]


def test_a_forecast_goes_on_from_how_the_sandbox_stands() -> None:
    with dialsim.Sandbox(JANUARY.scenario()) as sandbox:
        added = {"name": "Later", "agent": "Agent", "recipients": {"count": 200}}
        sandbox.add_campaign(added | {"schedule": {"startDateTime": START}})
        sandbox.add_campaign(added | {"name": "Draft"})
        sandbox.clock.advance(hours=1)
        plain = sandbox.forecast(19, jobs=1)
        sandbox.set_calling_allowed(False)  # what has begun goes on
        sandbox.set_concurrency(2)
        slower = sandbox.forecast(19, jobs=1)
        assert plain.figures is not None
        assert slower.figures is not None
        assert {name for _, name in plain.campaigns()} == {"January", "Later"}
        assert slower.figures.finish.half > plain.figures.finish.half
        assert slower.figures.reached == plain.figures.reached
        for name in ("January", "Later"):
            httpx.post(
                f"{sandbox.url}/api/campaign/{sandbox.campaign(name).id}/pause",
                headers={"X-API-Key": sandbox.api_key},
            )
        paused = sandbox.forecast(19, jobs=1)
        assert paused.figures is not None
        assert paused.figures.reach.high == paused.figures.reached
        assert paused.answer() == "Not done in 19 of 19 runs"


def test_histories_are_those_of_the_calls_that_have_ended() -> None:
    sketch = Sketch(lines=2).campaign(
        "January", "busy 1s; answered 5s 90s", "answered 5s 20s", "noAnswer 20s",
        max_attempts=3, retry_interval="10m",
    )  # fmt: skip
    core = SandboxCore(sketch.scenario())
    core.simulation.advance(minutes=1)
    [campaign] = remaining_run(core.simulation)().organizations[0].campaigns
    table: Any = campaign.recipients
    history = table.table.history
    calls = core.accounts[0].views[0].calls
    calls.update()
    assert {who: (past.call_attempt, past.latest_call_status) for who, past in history.items()} == {
        0: (1, "BUSY"), 1: (1, "COMPLETED"), 2: (1, "NO_ANSWER"),
    }  # fmt: skip
    # the retry that waits is not what counts, but the end of the call before it
    first = [calls.of(who)[0] for who in range(3)]
    assert [history[who].last_ended_at for who in range(3)] == [*calls.ended_at[first]]


@pytest.mark.slow
def test_in_most_cases_what_happens_lies_in_the_interval() -> None:
    finishes = reaches = 0
    for seed in range(10):
        core = SandboxCore(JANUARY.scenario(), seed + 100)
        core.simulation.advance(hours=1)
        found = dialsim.forecast(remaining_run(core.simulation)(), 39, jobs=1, seed=1)
        core.simulation.advance(until="idle")
        summary = dialsim.Result(core.simulation.trace).summary
        assert found.figures is not None
        assert summary.finish is not None
        finish, reach = found.figures.finish, found.figures.reach
        finishes += finish.low <= summary.finish.timestamp() * 1000 <= finish.high
        reaches += reach.low <= summary.people_reached <= reach.high
    assert min(finishes, reaches) >= 8
