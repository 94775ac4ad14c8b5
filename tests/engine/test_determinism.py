"""One seed decides everything: same bytes whatever happens around, same people in every variant."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pytest

from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import Trace
from dialsim.scenario.scenario import Scenario as Model
from dialsim.testing import Sketch
from dialsim.testing.sketch import NUMBERS
from engine.chancy import chancy_scenario
from engine.readings import loaded, run
from engine.rows import START, rows, tables
from oracle.scenarios import random_scenario

SEEDS = range(1000, 1004)


def digests() -> list[str]:
    """Return digests that another process must reproduce."""
    return [hashlib.sha256(bytes_of(loaded(chancy_scenario(seed)))).hexdigest() for seed in SEEDS]


def bytes_of(scenario: Model, *address: int) -> bytes:
    """The tables of a run, for a seed and a replication."""
    return tables(Simulation(scenario, *address).run())


def test_the_same_scenario_seed_and_replication_give_the_same_bytes() -> None:
    for seed in SEEDS:
        once, again = (loaded(chancy_scenario(seed)) for _ in range(2))
        assert bytes_of(once) == bytes_of(again)
        assert bytes_of(once, 5, 3) == bytes_of(again, 5, 3)


def test_the_bytes_are_the_same_in_another_process_with_another_hash_seed() -> None:
    code = "import json; from engine.test_determinism import digests; print(json.dumps(digests()))"
    own = os.environ.get("PYTHONHASHSEED")
    environment = os.environ | {
        "PYTHONHASHSEED": "4242" if own != "4242" else "0",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(found.stdout) == digests()


def shuffle_ties(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Shuffle events of one instant and step: SimPy breaks ties by its counter."""
    rng = random.Random(seed)

    def numbers() -> Iterator[int]:
        while True:
            yield rng.getrandbits(80)

    monkeypatch.setattr("simpy.core.count", numbers)


def assert_ties_change_nothing(scenario: Model, *shuffles: int) -> Trace:
    """Assert that shuffled ties give the same bytes as the usual order; returns them."""
    in_order = Simulation(scenario).run()
    expected = tables(in_order)
    for shuffle in shuffles:
        with pytest.MonkeyPatch.context() as monkeypatch:
            shuffle_ties(monkeypatch, shuffle)
            assert bytes_of(scenario) == expected, shuffle
    return in_order


def test_t4_shuffled_ties_change_no_byte_of_a_run_with_chance() -> None:
    shuffled_for = 0
    for seed in range(2000, 2010):
        trace = assert_ties_change_nothing(loaded(chancy_scenario(seed)), 1, 2)
        shuffled_for += len({row.at for row in rows(trace)}) < len(rows(trace)) // 3
    assert shuffled_for > 1  # in some of them much does happen at once


def test_t4_shuffled_ties_change_no_byte_of_a_run_without_chance() -> None:
    for seed in range(15):
        assert_ties_change_nothing(loaded(random_scenario(seed)), seed)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(20))
def test_t4_shuffled_ties_change_no_byte_of_many_more_runs(hundred: int) -> None:
    for seed in range(3000 + 100 * hundred, 3100 + 100 * hundred):
        assert_ties_change_nothing(loaded(chancy_scenario(seed, people=60)), seed)
        assert_ties_change_nothing(loaded(random_scenario(seed)), seed)


def test_shuffling_ties_does_change_the_order_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    # The tests above rely on ties: eight calls end at once, and the log shows the order.
    def logged() -> list[int]:
        trace = run(Sketch(8, start=START).campaign("A", *["busy 0s"] * 8))
        return trace.calls[0][0].rows().recipient[-8:].tolist()

    in_order = logged()
    shuffle_ties(monkeypatch, 1)
    assert sorted(logged()) == sorted(in_order)
    assert logged() != in_order


PEOPLE = 150
FLAT = {
    "outcomes": {"answered": 0.3, "noAnswer": 0.4, "busy": 0.2, "failed": 0.1},
    "answeredOdds": {"byAttempt": [1.0, 0.8], "bySegment": {"vip": 2.0}},
    "people": {"reachable": 0.9, "concentration": 6},
    "setupTime": {"dist": "uniform", "low": "1s", "high": "3s"},
    "ringTime": {"answered": {"dist": "gamma", "mean": "9s", "sd": "5s"}, "noAnswer": "25s"},
    "talkTime": {"dist": "lognormal", "mean": "60s", "sd": "60s"},
}

BODY = {
    "windows": "daily 00:00-23:59",
    "max_attempts": 3,
    "retry_interval": "5m",
    "caller_ids": NUMBERS,
}


def flat(limit: int = 20, **settings: Any) -> Sketch:
    """An organization whose people decide by chance, with the same odds at all hours."""
    return Sketch(limit, start=START, **settings).behaviour("default", **FLAT)


def chancy(sketch: Sketch, name: str = "A", count: int = PEOPLE, **keys: Any) -> Sketch:
    """The sketch with a campaign of three attempts for each, all day long."""
    people = {"count": count, "segments": {"vip": 0.3, "mass": 0.7}}
    return sketch.campaign(name, recipients=people, **(BODY | keys))


def variant(limit: int = 20, acts: Iterable[Any] = (), **engine: Any) -> Trace:
    """The run of one such campaign."""
    sketch = chancy(flat(limit, **engine))
    for act in acts:
        sketch = sketch.at(*act)
    return run(sketch)


Met = dict[tuple[int, int], tuple[Any, ...]]


def met(trace: Trace, organization: int = 0, position: int = 0) -> Met:
    """Return the result of each attempt by (recipient, attempt) number: voice, end and times."""
    calls: dict[tuple[int, int], dict[str, Any]] = {}
    attempts: dict[int, int] = {}
    found: Met = {}
    for row in rows(trace):
        if (row.organization, row.campaign) != (organization, position):
            continue
        call = calls.setdefault((row.recipient, row.call), {})
        call[row.change.cause] = row.at
        if row.change.cause == "dialled":
            call["number"] = row.number
        if row.change.cause == "ended":
            attempt = attempts[row.recipient] = attempts.get(row.recipient, 0) + 1
            times = [
                call[cause] - call["dialled"] if cause in call else None
                for cause in ("ringing", "answered", "ended")
            ]
            found[row.recipient, attempt] = (call["number"], row.change.to_status, *times)
    return found


@cache
def met_by_default() -> Met:
    """Return the result of each attempt in the run that variants are compared with."""
    return met(variant())


def same_where_both_met(one: Met, other: Met, at_least: int) -> None:
    common = one.keys() & other.keys()
    assert len(common) >= at_least
    assert {key: one[key] for key in common} == {key: other[key] for key in common}


PAUSES = [
    (30, "pause", "A"),
    (90, "resume", "A"),
    (95, "pause", "A"),
    (99, "resume", "A"),
]


@pytest.mark.parametrize(
    "other",
    [
        {"limit": 1},
        {"limit": 3},
        {"limit": PEOPLE},
        {"callsPerSecond": 0.5},
        {"order": "freshFirst"},
        {"order": "retriesFirst", "limit": 7},
        {"releaseInterval": "1m", "queueLimit": "unlimited"},
        {"queueTimeout": "30s", "queueLimit": "unlimited"},
        {"acts": PAUSES},
        {"acts": [(60, "setConcurrency", 2), (600, "setConcurrency", 50)]},
    ],
    ids=str,
)
def test_every_person_meets_the_same_draws_at_the_same_attempt_in_every_variant(other: Any) -> None:
    # Common random numbers; the odds are the same at all hours here and no number tires.
    baseline = met_by_default()
    assert len(baseline) > 2 * PEOPLE
    same_where_both_met(baseline, met(variant(**other)), at_least=len(baseline))


def test_other_hours_and_a_later_start_leave_draws_alone() -> None:
    baseline = met_by_default()
    bodies: list[dict[str, Any]] = [{"start": 5000}, {"windows": "Mon 10:05-10:30 13:00-14:00"}]
    for body in bodies:
        same_where_both_met(baseline, met(run(chancy(flat(), **body))), at_least=PEOPLE)


def test_fewer_attempts_and_a_longer_wait_leave_the_others_alone() -> None:
    shorter = run(chancy(flat(), max_attempts=2, retry_interval="15m"))
    same_where_both_met(met_by_default(), met(shorter), at_least=PEOPLE)


def test_more_people_leave_those_before_them_alone() -> None:
    more = run(chancy(flat(), count=2 * PEOPLE))
    same_where_both_met(met_by_default(), met(more), at_least=2 * PEOPLE)


def test_a_campaign_after_another_changes_nothing_of_the_first_ones_draws() -> None:
    baseline = variant()
    for limit in (20, 3 * PEOPLE):
        trace = run(chancy(chancy(flat(limit)), "B"))
        same_where_both_met(met(baseline), met(trace), at_least=2 * PEOPLE)
        assert met(trace, position=1) != met(trace)  # it has its own


def test_an_organization_after_another_changes_no_row_of_the_first_one() -> None:
    acme = chancy(flat(9))
    one, both = run(acme), run(chancy(acme.organization("Bravo", 9)))
    assert [row for row in rows(both) if row.organization == 0] == rows(one)
    assert met(both, organization=1) != met(both)


def test_seed_and_replication_change_the_draws_and_default_to_the_scenarios() -> None:
    written = chancy(flat(seed=77))
    default = tables(run(written))
    assert default == tables(run(written, 77)) == tables(run(written, 77, 0))
    runs = {
        default,
        tables(run(written, 78)),
        tables(run(written, 77, 1)),
        tables(run(written, 78, 1)),
    }
    assert len(runs) == 4


def test_without_chance_every_seed_gives_the_same_values() -> None:
    for seed in range(12):
        written = loaded(random_scenario(seed))  # which of several numbers is shown stays a choice
        without, *found = (
            [row._replace(number=None) for row in rows(Simulation(written, *address).run())]
            for address in ((), (9, 0), (1, 7))
        )
        assert found == [without, without]


def test_a_request_by_the_timeline_meets_the_same_draws_as_one_of_the_file() -> None:
    filed = chancy(flat(), requested=60)
    timed = chancy(flat(), requested=None).at(60, "schedule", "A", **BODY)
    assert rows(run(timed)) == rows(run(filed))
