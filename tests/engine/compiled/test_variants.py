"""A world that shares people and draws with another one has the same trace as without sharing."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from dialsim.engine import run_world
from dialsim.engine.world import World
from dialsim.scenario.scenario import Scenario as Model
from dialsim.testing import Sketch
from engine.breadth import broad_scenario, campaigns
from engine.readings import loaded
from engine.rows import told
from oracle.scenarios import Scenario


def variants(seed: int) -> list[Scenario]:
    """A scenario of full breadth, and some that differ from the one before in one respect."""
    rng, made = random.Random(f"variants {seed}"), [broad_scenario(seed)]
    for change in (limit, retry_interval, attempts, behaviour, people, limit):
        made.append(json.loads(json.dumps(made[-1])))
        change(rng, made[-1])
    return made


def limit(rng: random.Random, scenario: Scenario) -> None:
    for organization in scenario["organizations"]:
        reserved = sum(campaign.get("reserved", 0) for campaign in organization["campaigns"])
        organization["maxConcurrentCalls"] = max(reserved, rng.choice((1, 2, 5)))  # Q11


def requests(scenario: Scenario) -> list[Any]:
    """The bodies of all schedule requests."""
    filed = [campaign.get("schedule") for campaign in campaigns(scenario)]
    later = [entry.get("body") for o in scenario["organizations"] for entry in o["timeline"]]
    return [body for body in (*filed, *later) if body is not None]


def retry_interval(rng: random.Random, scenario: Scenario) -> None:
    # histories have the instants of attempts by the windows of the request (P8)
    for body in requests(scenario):
        body["retryInterval"] = rng.choice((300_000, 7_200_000))


def attempts(rng: random.Random, scenario: Scenario) -> None:
    for body in requests(scenario):
        body["maxAttempts"] = rng.choice((2, 4))
        body.setdefault("retryInterval", 300_000)


def behaviour(_rng: random.Random, scenario: Scenario) -> None:
    scenario["behaviours"]["slow"] = {
        "outcomes": {"answered": 0.5, "noAnswer": 0.5, "busy": 0, "failed": 0},
        "people": {"reachable": 0.7, "concentration": 2, "deadNumbers": 0},
    }


def people(_rng: random.Random, scenario: Scenario) -> None:
    listed = campaigns(scenario)[0]["recipients"]
    if isinstance(listed, list):
        listed.append({"tel": "0899999999"})
    else:
        listed["count"] += 1


def alone(model: Model, replication: int) -> dict[str, object]:
    return told(run_world(World(model, replication=replication), "compiled"))


@pytest.mark.parametrize("seed", range(4))
def test_variants_that_share_people_and_draws_go_as_they_do_alone(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4, 400, 11))
def test_hundreds_of_variants_go_as_they_do_alone(first: int) -> None:
    for seed in range(first, first + 11):
        check(seed)


def check(seed: int) -> None:
    latest = None
    for written in variants(seed):
        model = loaded(written)
        first, second = alone(model, 0), alone(model, 1)
        for replication, expected in ((0, first), (0, first), (1, second)):
            latest = World(model, replication=replication, like=latest)
            assert told(run_world(latest, "compiled")) == expected
    # and the SimPy engine, from a world whose chance the other one has made use of
    again = World(model, replication=1, like=latest)
    assert told(run_world(again, "simpy")) == second


def test_p8_variants_with_other_windows_read_histories_anew() -> None:
    # People who did not answer when nearly all do will hardly answer now; the windows imply when
    # that was
    past = {
        "callAttempt": 2,
        "latestCallStatus": "NO_ANSWER",
        "lastEndedAt": "2026-01-05T02:30:00Z",
    }
    odds = {"byHour": {"9": 0.05, "15": 50, "16": 50, "17": 50}}
    called = Sketch(500, start="Tue 09:00", setup_time=None).behaviour(
        "default",
        outcomes={"answered": 0.5, "noAnswer": 0.5, "busy": 0, "failed": 0},
        people={"deadNumbers": 0, "concentration": 1},
        answered_odds=odds,
    )
    models = [
        called.campaign(
            "A",
            *[{"history": past}] * 500,
            windows=windows,
            max_attempts=3,
            retry_interval="5m",
        ).scenario()
        for windows in ("daily 09:00-18:00", "daily 09:00-10:00")
    ]
    first = World(models[0])
    all_day = told(run_world(first, "compiled"))
    mornings = told(run_world(World(models[1], like=first), "compiled"))
    assert mornings == alone(models[1], 0)
    assert mornings["rows"] != all_day["rows"]
