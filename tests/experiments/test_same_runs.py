"""Variants that share a run against separate runs."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dialsim
from dialsim.engine.trace import RETRY
from dialsim.experiments.run_figures import figures_of
from dialsim.experiments.run_spec import MadeRun, Relatives, RunSpec, Slack, run_tasks
from dialsim.results.figures import NUMBERS
from dialsim.results.result import Result
from dialsim.scenario.scenario import Scenario

SCHEDULE = "organizations.Acme.campaigns.January.schedule"
ALL = frozenset(NUMBERS) | {"reach_by_attempt_1"}


def random_scenario(chance: random.Random) -> Scenario:
    """One campaign, mostly with far fewer lines than people, and anything that moves its calls."""
    pick = chance.choice
    engine = {
        "order": pick(["due", "due", "freshFirst", "retriesFirst"]),
        "queueLimit": pick([None, None, 2, 30, "unlimited"]),
        "queueTimeout": pick(["10m", "2h"]),
        "callsPerSecond": pick([None, None, 0.5]),
        "releaseInterval": pick([0, 0, "1m"]),
    }
    windows = pick(["", "timeWindows: [{dayOfWeek: 1, time: [{start: '09:00', end: '10:30'}]},"
                    " {dayOfWeek: 2, time: [{start: '09:00', end: '17:00'}]}],"])  # fmt: skip
    end = pick(["", "", "endDateTime: 2026-01-05T03:07:00Z"])
    actions = [
        f"{{at: 2026-01-05T0{pick([2, 3])}:{chance.randrange(10, 60)}:00Z, {action}}}"
        for action in chance.sample(
            ["action: pause, campaign: January", "action: resume, campaign: January",
             "action: setConcurrency, value: 2", "action: setConcurrency, value: 9",
             "action: cancel, campaign: January"], pick([0, 0, 1, 2])
        )
    ]  # fmt: skip
    listed = ", ".join(
        f'{{tel: "08{chance.randrange(10**8):08}", history: {{callAttempt: 1, '
        "latestCallStatus: BUSY, lastEndedAt: 2026-01-05T01:50:00Z}}"
        for _ in range(8)
    )
    recipients = f"{{count: {pick([3, 40, 90])}}}" if chance.random() < 0.9 else f"[{listed}]"
    shown = ", ".join(f"{k}: {v}" for k, v in engine.items() if v is not None)
    return dialsim.loads(f"""
version: 1
seed: {chance.randrange(99)}
engine: {{{shown}}}
costs: {{currency: THB, perDial: 1, perMinute: 2, perLineDay: 5}}
behaviours:
  default:
    outcomes: {{answered: 0.3, noAnswer: 0.4, busy: 0.3}}
    talkTime: {{dist: exponential, mean: 40s}}
organizations:
  - name: Acme
    maxConcurrentCalls: {pick([1, 3, 6, 50])}
    agents: [{{name: Reminder}}]
    timeline: [{", ".join(sorted(actions))}]
    campaigns:
      - name: January
        agent: Reminder
        recipients: {recipients}
        schedule: {{startDateTime: 2026-01-05T02:00:00Z, maxAttempts: {pick([1, 2, 3, 4])},
          retryInterval: {pick([300_000, 600_000, 1_500_000])}, {windows} {end}}}
""")


def rows_but_creations(result: Result) -> list[tuple[int, ...]]:
    """Rows in a fixed order: calls that are dropped together are so in the order of a heap."""
    rows = result.reading.campaigns[0, 0].engine_calls.rows
    kept = rows.kind != RETRY
    columns = (rows.at, rows.recipient, rows.call, rows.kind)
    return sorted(zip(*(column[kept].tolist() for column in columns), strict=True))


def test_a_run_that_is_shared_is_the_run_of_the_other_variant() -> None:
    """Of some hundred random pairs every shared one has the same rows and figures."""
    chance, shared, pairs = random.Random(20260105), 0, 0
    for _ in range(150):
        scenario = random_scenario(chance)
        request = scenario.organizations[0].campaigns[0].schedule
        assert request is not None
        variants = [scenario] + [
            scenario.with_(
                f"{SCHEDULE}.maxAttempts={chance.choice([request.max_attempts, 2, 3, 5])}",
                f"{SCHEDULE}.retryInterval={request.retry_interval + longer}",
            )
            for longer in (1, 60_000, 600_000, 3_000_000)
        ]
        result = dialsim.run(scenario, engine="simpy")
        own = Relatives(scenario)
        made = MadeRun.of(result, own.family, own, "")
        for variant in variants:
            other = Relatives(variant)
            assert other.family == own.family
            pairs += 1
            if not made.is_shared_by(other.family, other.settings):
                continue
            shared += other.settings != own.settings
            theirs = dialsim.run(variant, engine="simpy")
            assert rows_but_creations(theirs) == rows_but_creations(result)
            assert repr(figures_of(theirs, ALL)) == repr(figures_of(result, ALL))
    assert 40 < shared < pairs / 2


def test_a_family_differs_in_the_two_settings_of_a_lone_campaign_only() -> None:
    scenario = random_scenario(random.Random(1))
    family = Relatives(scenario).family
    alike = scenario.with_(f"{SCHEDULE}.maxAttempts=9", f"{SCHEDULE}.retryInterval=7200000")
    assert Relatives(alike).family == family
    assert Relatives(scenario.with_("seed=123")).family != family
    assert Relatives(scenario.with_("organizations.Acme.maxConcurrentCalls=77")).family != family
    two = dialsim.load("scenarios/shared-slots.yaml")
    assert Relatives(two).places == []


def test_people_with_histories_share_no_run() -> None:
    result = dialsim.run(dialsim.load("scenarios/forecast-from-the-middle.yaml"))
    for own in result.reading.campaigns.values():
        calls = own.engine_calls
        assert Slack.of(calls, result.trace.end).spare == 0


@pytest.mark.parametrize("asked", [frozenset({"cost", "finish"}), None])
def test_a_worker_shares_runs_of_some_figures_only(
    asked: frozenset[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds: list[int] = []
    chance = random.Random(7)
    scenario = random_scenario(chance).with_(
        "organizations.Acme.maxConcurrentCalls=1", "organizations.Acme.timeline=[]",
        "engine={}", "behaviours.default.outcomes={busy: 1}",
        "organizations.Acme.campaigns.January.recipients={count: 900}",
        f"{SCHEDULE}.maxAttempts=2",
    )  # fmt: skip
    specs = [RunSpec(scenario.with_(f"{SCHEDULE}.retryInterval={ms}")) for ms in (300_000, 400_000)]
    tasks = [spec.task(index, 0, "simpy", asked) for index, spec in enumerate(specs)]
    alone = [run_tasks([task], dialsim.__version__, None)[0] for task in tasks]
    from dialsim import engine as engines

    counted = engines.run_world

    def counting(*given: object) -> object:
        worlds.append(1)
        return counted(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("dialsim.results.result.run_world", counting)
    together = run_tasks(tasks, dialsim.__version__, None)
    assert together == alone
    assert len(worlds) == (1 if asked else 2)
    strangers = [replace(tasks[0], family="one"), replace(tasks[1], family="two")]
    assert run_tasks(strangers, dialsim.__version__, None) == alone
    assert len(worlds) == (3 if asked else 4)


def test_the_spare_time_of_retries_is_that_of_the_first_release() -> None:
    """Of calls that leave the queue and are released again, the first release counts."""
    chance = random.Random(3)
    for _ in range(20):
        result = dialsim.run(random_scenario(chance), engine="simpy")
        calls = result.reading.campaigns[0, 0].engine_calls
        rows = [*zip(calls.rows.at.tolist(), calls.row_call.tolist(), calls.rows.kind.tolist(),
                     strict=True)]  # fmt: skip
        waits = []
        for index, (at, call, kind) in enumerate(rows):
            if kind == RETRY:
                later = [a for a, c, _ in rows[index + 1 :] if c == call]
                waits.append((later[0] if later else result.trace.end) - at)
        if (calls.past_status >= 0).any():
            waits.append(0)
        expected = min(waits, default=int(np.iinfo(np.int64).max))
        assert Slack.of(calls, result.trace.end).spare == expected


def scarce() -> Scenario:
    """Far more calls than lines: no retry interval of minutes changes a run."""
    return random_scenario(random.Random(7)).with_(
        "organizations.Acme.maxConcurrentCalls=1", "organizations.Acme.timeline=[]", "engine={}",
        "behaviours.default.outcomes={answered: 0.3, busy: 0.7}",
        "organizations.Acme.campaigns.January.recipients={count: 250}",
    )  # fmt: skip


def optimum(**more: object) -> dict[str, object]:
    levers = {f"{SCHEDULE}.maxAttempts": "2,3", f"{SCHEDULE}.retryInterval": "300000,600000"}
    return dialsim.optimize(
        scarce(), levers, minimize="mean(cost)", replications=4, max_replications=6,
        **more,  # type: ignore[arg-type]
    ).to_dict()  # fmt: skip


def test_an_optimum_of_shared_runs_does_not_depend_on_engine_or_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, shared = MadeRun.is_shared_by, []

    def counting(*given: object) -> bool:
        shared.append(counted(*given))  # type: ignore[arg-type]
        return shared[-1]

    monkeypatch.setattr(MadeRun, "is_shared_by", counting)
    one = optimum(jobs=1, engine="simpy")
    assert any(shared)
    shared.clear()
    assert optimum(jobs=1, engine="compiled") == one
    # A store keeps all figures, so its runs are shared by none; then they are read again.
    for _ in range(2):
        assert optimum(jobs=1, store=tmp_path) == one


@pytest.mark.slow
def test_an_optimum_of_shared_runs_does_not_depend_on_processes() -> None:
    assert optimum(jobs=1) == optimum(jobs=2) == optimum(jobs=3)
