"""Profiles of a service: limits, maintenance, latency and lag on the virtual clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.sandbox.asking import Client, control

import dialsim
from dialsim.errors import ScenarioError
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.page.sections import order_text
from dialsim.sandbox.restart import begin, resume
from dialsim.testing import Receiver, Sketch

AGENTS = "/api/agent/list"
LIMIT = {"api": "limit", "requestsPerSecond": 0.5, "burst": 3}
NIGHTLY = {
    "api": "error",
    "status": 503,
    "at": "2026-01-05T02:10:00Z",
    "lasts": "5m",
    "every": "1h",
    "retryAfter": "1m",
}
LAG = {"webhooks": "delayed", "delay": {"dist": "lognormal", "mean": "5m", "sd": "3m"}}


def sketch(*faults: dict[str, Any]) -> Sketch:
    return ONE.also(service={"faults": [*faults]})


ONE = Sketch(lines=1, seed=7).campaign("January", "answered 1s 20s")


def asked(client: Client, times: int = 1, organization: int = 0) -> list[int]:
    headers = {"X-API-Key": client.core.api_key(organization)}
    return [client.ask("GET", AGENTS, headers).status_code for _ in range(times)]


def advance(core: SandboxCore, seconds: float) -> None:
    core.simulation.move_to(core.at + round(seconds * 1000))


def test_a_token_bucket_lets_a_burst_pass_and_refills_in_virtual_time() -> None:
    client = Client(SandboxCore(sketch(LIMIT).scenario()))
    assert asked(client, 5) == [200, 200, 200, 429, 429]
    advance(client.core, 1.999)
    assert asked(client) == [429]
    advance(client.core, 0.001)
    assert asked(client, 2) == [200, 429]
    advance(client.core, 3600)
    assert asked(client, 4) == [200, 200, 200, 429]


def test_the_refusal_of_a_limit_names_the_wait_until_the_next_token() -> None:
    client = Client(SandboxCore(sketch(LIMIT).scenario()))
    headers = {"X-API-Key": client.core.api_key(0)}
    asked(client, 3)
    for passed, wait in ((0, "2"), (0.5, "2"), (0.6, "1")):
        advance(client.core, passed)
        refused = client.ask("GET", AGENTS, headers)
        assert (refused.status_code, refused.json()["code"]) == (429, "TOO_MANY_REQUESTS")
        assert refused.headers["Retry-After"] == wait
    advance(client.core, int(wait))
    assert asked(client) == [200]


def test_every_organization_has_a_bucket_of_its_own() -> None:
    two = sketch(LIMIT).organization("Beta", 1).agent("Other")
    client = Client(SandboxCore(two.scenario()))
    assert asked(client, 4) == [200, 200, 200, 429]
    assert asked(client, 4, organization=1) == [200, 200, 200, 429]
    alone = two.also(service={"faults": [LIMIT | {"organization": "Beta"}]})
    client = Client(SandboxCore(alone.scenario()))
    assert asked(client, 4) == [200] * 4
    assert asked(client, 4, organization=1) == [200, 200, 200, 429]


def test_maintenance_comes_again_and_again() -> None:
    client = Client(SandboxCore(sketch(NIGHTLY).scenario()))  # from 09:00 Thai time
    seen = {}
    for minute in range(0, 200, 5):
        seen[minute] = asked(client)[0]
        advance(client.core, 300)
    assert [minute for minute, status in seen.items() if status == 503] == [10, 70, 130, 190]


def test_what_a_limit_lets_pass_meets_the_next_fault_of_the_profile() -> None:
    client = Client(SandboxCore(sketch(LIMIT, {"api": "error", "status": 502}).scenario()))
    assert asked(client, 5) == [502, 502, 502, 429, 429]


def test_a_fault_that_an_operator_orders_goes_before_the_profile() -> None:
    client = Client(SandboxCore(sketch({"api": "error"}).scenario()))
    control(client, "POST", "/faults", {"api": "error", "status": 500, "next": 1})
    assert asked(client, 3) == [500, 503, 503]
    control(client, "DELETE", "/faults/1")
    assert asked(client) == [200]


def test_latency_is_drawn_from_a_distribution_and_the_seed_decides_it() -> None:
    slow = {"api": "slow", "delay": {"dist": "exponential", "mean": "2s"}}
    rounds = []
    for seed in (1, 1, 2):
        core, delays = SandboxCore(sketch(slow).scenario(), seed), []
        for _ in range(400):
            fault = core.strike_request(0, AGENTS)
            assert fault is not None
            delays.append(core.faults.delay(fault))
        assert 1_700 < sum(delays) / 400 < 2_300  # three standard errors
        rounds.append(delays)
    assert rounds[0] == rounds[1] != rounds[2]
    endless = {"api": "slow", "delay": {"dist": "uniform", "low": "2m", "high": "3m"}}
    core = SandboxCore(sketch(endless).scenario())
    fault = core.strike_request(0, AGENTS)
    assert fault is not None
    assert core.faults.delay(fault) == 60_000


def test_webhooks_lag_by_minutes_and_overtake_each_other() -> None:
    many = ONE.also(service={"faults": [LAG]}).campaign("May", *["answered 1s 5s"] * 20)
    lags = []
    for _ in range(2):
        with Receiver() as receiver, dialsim.Sandbox(many.scenario()) as sandbox:
            sandbox.set_webhook_url(receiver.url)
            sandbox.clock.advance(until="idle")
            ended = [r.json["payload"]["call"]["callEndedAt"] for r in receiver.requests]
            assert ended != sorted(ended)
            left = [hook.at for hook in sandbox.webhooks]
            lags.append([(left[n] - left[0]).total_seconds() for n in range(len(left))])
            assert [fault.struck for fault in sandbox.faults] == [21]
    assert lags[0] == lags[1]
    assert lags[0][-1] > 300


def test_a_profile_goes_on_after_a_restart_and_begins_anew_with_a_reset(tmp_path: Path) -> None:
    file, text = tmp_path / "journal", sketch(LIMIT, LAG).text
    core = begin(file, dialsim.loads(text))
    assert asked(Client(core), 4) == [200, 200, 200, 429]
    assert core.journal is not None
    core.journal.close()
    again = resume(file)
    assert asked(Client(again)) == [429]
    assert [fault.met for fault in again.faults] == [5, 0]
    assert control(Client(again), "POST", "/snapshots", {"name": "empty"}).status_code == 201
    advance(again, 60)
    assert asked(Client(again)) == [200]
    control(Client(again), "POST", "/snapshots/empty/restore")
    assert asked(Client(again)) == [429]
    control(Client(again), "POST", "/reset")
    assert asked(Client(again), 4) == [200, 200, 200, 429]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"api": "limit"}, "requestsPerSecond is required where api is limit"),
        ({}, "one of webhooks and api must be given"),
        ({"api": "error", "every": "1h"}, "every goes with lasts alone"),
        ({"api": "error", "lasts": "1h", "every": "1h"}, "must be longer than lasts"),
        ({"api": "limit", "requestsPerSecond": 0}, "must not be less than 0.0001"),
        ({"api": "limit", "requestsPerSecond": 1, "burst": 0}, "must not be less than 1"),
        ({"api": "slow", "delay": "2m"}, "must not be longer than 1m"),
        ({"api": "slow", "delay": {"dist": "gama"}}, 'not "gama"'),
        ({"api": "slow", "delay": {"dist": "gamma", "mean": "1s"}}, "delay.sd is required"),
        ({"api": "error", "at": "tonight"}, "must be an instant"),
        ({"api": "error", "organization": "Acne"}, '"Acne" is no organization; did you mean Acme?'),
        ({"api": "error", "campaign": "January"}, "is not a known key"),
    ],
)
def test_a_profile_that_makes_no_sense_is_refused_with_its_place(
    fault: dict[str, Any], says: str
) -> None:
    with pytest.raises(ScenarioError, match=r"service\.faults\.0") as refused:
        sketch(fault).scenario()
    assert says in str(refused.value)


def test_a_wrong_distribution_in_an_order_is_named_by_its_path() -> None:
    client = Client(SandboxCore(ONE.scenario()))
    order = {"api": "slow", "next": 1, "delay": {"dist": "gamma", "mean": "1s", "sd": 5}}
    answer = control(client, "POST", "/faults", order)
    assert answer.json()["errors"] == ["delay.sd needs a unit: 5s or 5ms, for instance"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"delay": {"dist": {}}}, "delay must be one of constant, uniform"),
        ({"delay": "{}"}, 'not "{}"'),
        ({"delay": "2s", "lasts": "{0.x}"}, 'not "{0.x}"'),
        ({"delay": {"dist": "gamma", "mean": "{", "sd": "1s"}}, "delay.mean must be a duration"),
    ],
)
def test_braces_in_an_order_are_told_as_they_were_sent(wrong: dict[str, Any], says: str) -> None:
    client = Client(SandboxCore(ONE.scenario()))
    answer = control(client, "POST", "/faults", {"api": "slow", "next": 1} | wrong)
    assert answer.status_code == 400
    assert says in answer.json()["message"]


def test_the_profile_of_the_documentation_is_a_profile() -> None:
    page = (Path(__file__).parents[2] / "docs/sandbox.md").read_text(encoding="utf-8")
    [block] = [part for part in page.split("```") if part.startswith("yaml\nservice:\n  faults:")]
    profile = yaml.safe_load(block.removeprefix("yaml\n"))["service"]["faults"]
    core = SandboxCore(sketch(*profile).scenario())
    assert [order_text(fault.order) for fault in core.faults] == [
        "api: limit, requestsPerSecond: 5.0, burst: 20",
        "api: error, at: 2026-01-10T19:00:00.000Z, lasts: 2h, every: 7d, status: 503, "
        "retryAfter: 10m",
        "api: slow, delay: (mean: 300ms, sd: 200ms, dist: lognormal)",
        "webhooks: delayed, delay: (mean: 4m, sd: 3m, dist: gamma)",
    ]
