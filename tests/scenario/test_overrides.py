from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialsim.errors import DialsimError, ScenarioError
from dialsim.scenario.loading import load, loads
from dialsim.scenario.problems import Problem

from .files import FULL, SMALL


@pytest.mark.parametrize(
    "path", ["organizations.0.maxConcurrentCalls", "organizations.Acme.maxConcurrentCalls"]
)
def test_a_path_names_items_by_index_or_by_name(path: str) -> None:
    assert loads(SMALL, overrides=[f"{path}=40"]).organizations[0].max_concurrent_calls == 40


def test_a_name_may_contain_dots() -> None:
    text = SMALL.replace("name: Acme", "name: Acme Co. Ltd.")
    scenario = loads(
        text, overrides=["organizations.Acme Co. Ltd..campaigns.January.recipients.count=3"]
    )
    assert scenario.organizations[0].campaigns[0].recipients.count == 3  # type: ignore[union-attr]


def test_missing_keys_are_created_on_the_way() -> None:
    scenario = loads(SMALL, overrides=["engine.queueLimit=unlimited", "costs.perDial=0.5"])
    assert scenario.engine.queue_limit == "unlimited"
    assert scenario.costs is not None
    assert scenario.costs.per_dial == 0.5


def test_a_value_is_yaml() -> None:
    override = "behaviours.default.talkTime={dist: uniform, low: 5s, high: 10s}"
    talk_time = loads(SMALL, overrides=[override]).behaviours["default"].talk_time
    assert (talk_time.dist, talk_time.low, talk_time.high) == ("uniform", 5000, 10000)  # type: ignore[union-attr]


def test_a_value_may_hold_equals_signs() -> None:
    assert loads(SMALL, overrides=["description=a=b"]).description == "a=b"


def test_later_overrides_win() -> None:
    assert loads(SMALL, overrides=["seed=4", "seed=5"]).seed == 5


def test_an_empty_value_leaves_the_key_out() -> None:
    assert loads(FULL, overrides=["costs="]).costs is None


def test_an_override_inside_an_alias_changes_only_its_own_place() -> None:
    text = SMALL.replace("{startDateTime", "&s {startDateTime") + (
        "      - {name: February, agent: Reminder, recipients: [], schedule: *s}\n"
    )
    override = "organizations.Acme.campaigns.February.schedule.maxAttempts=2"
    january, february = loads(text, overrides=[override]).organizations[0].campaigns
    assert january.schedule is not None
    assert february.schedule is not None
    assert (january.schedule.max_attempts, february.schedule.max_attempts) == (1, 2)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed", "--set seed: an override is PATH=VALUE, such as seed=7"),
        ("=3", "--set =3: an override is PATH=VALUE, such as seed=7"),
        ("seed=many", '--set seed=many: seed must be a whole number, not "many"'),
        ("sede=3", "--set sede=3: sede is not a known key; did you mean seed?"),
        (
            "organizations.0.maxConcurrentCall=3",
            "--set organizations.0.maxConcurrentCall=3: organizations.0.maxConcurrentCall is not a "
            "known key; did you mean maxConcurrentCalls?",
        ),
        (
            "organizations.Acmee.maxConcurrentCalls=3",
            "--set organizations.Acmee.maxConcurrentCalls=3: organizations has no item named "
            "Acmee; there are Acme",
        ),
        (
            "organizations.1.maxConcurrentCalls=3",
            "--set organizations.1.maxConcurrentCalls=3: organizations.1 is not there: "
            "organizations has items 0 to 0",
        ),
        (
            "organizations.0.name.first=3",
            "--set organizations.0.name.first=3: organizations.0.name is a single value: nothing "
            "is below it",
        ),
        (
            "engine={order: due",
            "--set engine={order: due: not valid YAML: a comma or the closing } of the mapping is "
            "missing before this",
        ),
        (
            "organizations.Acme.campaigns.January.schedule.maxAttempts=0",
            "--set organizations.Acme.campaigns.January.schedule.maxAttempts=0: "
            "organizations.0.campaigns.0.schedule.maxAttempts must not be less than 1",
        ),
    ],
)
def test_an_error_of_an_override_names_the_override(override: str, message: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        loads(SMALL, overrides=[override])
    assert str(raised.value) == message


def test_errors_of_the_file_come_before_those_of_overrides() -> None:
    text = SMALL.replace("maxConcurrentCalls: 2", "maxConcurrentCalls: two")
    with pytest.raises(ScenarioError) as raised:
        loads(text, name="x.yaml", overrides=["seed=x"])
    assert [problem.file for problem in raised.value.problems] == ["x.yaml", "--set seed=x"]


@given(st.text(alphabet="organizations.0Acme=[]{}:,\"' \n", max_size=40))
def test_any_override_is_applied_or_refused(override: str) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        loads(SMALL, overrides=[override])
    except ScenarioError as error:
        problems = error.problems
    assert all(problem.message for problem in problems)


def test_a_buddhist_year_in_an_override_is_an_error_that_proposes_the_year() -> None:
    override = "organizations.Acme.campaigns.January.schedule.startDateTime=2569-01-05T09:00+07:00"
    with pytest.raises(ScenarioError) as raised:
        loads(SMALL, overrides=[override])
    assert str(raised.value) == (
        f"--set {override}: organizations.0.campaigns.0.schedule.startDateTime must not count "
        "years in the Buddhist era: 2569 is 2026, so write 2026-01-05T09:00:00+07:00"
    )


def test_one_override_may_stand_alone(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL, encoding="utf-8")
    assert load(file, overrides="seed=7").seed == 7
    assert loads(SMALL, overrides="description=a=b").description == "a=b"
    varied = load(file, overrides="seed=7").with_("name=x")
    assert (varied.seed, varied.name) == (7, "x")
    assert varied.origin is not None
    assert varied.origin.overrides == ("seed=7", "name=x")


def test_one_override_that_can_not_be_applied_is_one_error() -> None:
    with pytest.raises(ScenarioError) as raised:
        loads(SMALL, overrides="seed")
    assert str(raised.value) == "--set seed: an override is PATH=VALUE, such as seed=7"


@pytest.mark.parametrize("overrides", [7, None, b"seed=7"])
def test_overrides_that_are_no_texts_are_one_error(overrides: Any) -> None:
    with pytest.raises(DialsimError) as raised:
        loads(SMALL, overrides=overrides)
    assert str(raised.value) == (
        'overrides must be texts PATH=VALUE, such as "seed=7", or values by path, such as '
        f'{{"seed": 7}}, not {"bytes" if overrides == b"seed=7" else overrides}'
    )
    with pytest.raises(DialsimError, match=r"overrides\[1\] must be a text, not 8"):
        loads(SMALL, overrides=["seed=7", 8])


def test_overrides_may_be_values_by_path() -> None:
    given = {"seed": 7, "default.answeredOdds": {"byHour": {"9": 0.5}}}
    made = loads(SMALL, overrides=given)
    assert made.seed == 7
    assert made.behaviours["default"].answered_odds.by_hour == {9: 0.5}
    assert loads(SMALL).with_(seed=7).digest == loads(SMALL, overrides="seed=7").digest


def test_a_key_with_dots_that_is_there_is_replaced() -> None:
    text = FULL + "value: {reached: 12, funnel.Promised: 80}\n"
    scenario = loads(text, overrides=["value.funnel.Promised=90", "value.reached=10"])
    assert scenario.value == {"reached": 10, "funnel.Promised": 90}


@pytest.mark.parametrize("override", ["0=[\n", "0='\n"])
def test_a_value_that_never_ends_is_refused_though_a_line_ends(override: str) -> None:
    with pytest.raises(ScenarioError, match="not valid YAML"):
        loads(SMALL, overrides=[override])
