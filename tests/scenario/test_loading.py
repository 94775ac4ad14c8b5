from __future__ import annotations

import json
import pickle
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialsim.errors import DialsimError, ScenarioError
from dialsim.scenario.behaviour import BUILT_IN
from dialsim.scenario.document import parse_yaml
from dialsim.scenario.loading import load, loads
from dialsim.scenario.problems import Problem, Problems

from .files import FULL, SMALL

START = 1_767_574_800_000  # 2026-01-05T01:00:00Z
HOUR = 3_600_000


def with_behaviours(text: str) -> Any:
    return loads(SMALL + "behaviours:\n" + text).behaviours


def test_every_key_of_the_format_is_read() -> None:
    scenario = loads(FULL)
    organization = scenario.organizations[0]
    assert (scenario.seed, scenario.clock.start) == (3, START)
    assert scenario.clock.end == START + 167 * HOUR
    assert scenario.engine.queue_timeout == 600_000
    assert (scenario.engine.order, scenario.engine.sharing) == ("freshFirst", "fifo")
    assert scenario.costs is not None
    assert scenario.costs.billing_increment == 60_000
    assert organization.retention is not None
    assert organization.retention.personal_data == 90 * 24 * HOUR
    assert organization.agents[0].params_schema is not None
    assert organization.agents[0].params_schema["amount"].required
    assert organization.campaigns[0].scheduled_at == START + HOUR // 2
    assert organization.campaigns[1].schedule is None
    assert [action.action for action in organization.timeline] == [
        *("pause", "resume", "setConcurrency", "setBehaviour", "setCallingAllowed"),
        *("setWebhookUrl", "schedule", "reanalyze", "setWebhookUrl", "cancel", "delete"),
    ]
    body = organization.timeline[6].body
    assert body is not None
    assert body.remove_duplicates
    assert body.start_date_time == START - HOUR
    odds = scenario.behaviours["default"].answered_odds
    assert odds.by_hour == {9: 0.8, 12: 0.7, 18: 1.4}
    assert odds.by_caller_id_use is not None
    assert odds.by_caller_id_use.recovery == 24 * HOUR


def test_json_is_a_scenario_too() -> None:
    text = json.dumps(parse_yaml(FULL, "x", Problems("x")).values, indent="\t", ensure_ascii=True)
    assert loads(text) == loads(FULL)


def test_what_is_left_out_has_the_documented_defaults() -> None:
    scenario = loads(SMALL)
    assert (scenario.version, scenario.seed, scenario.costs) == (1, 1, None)
    assert scenario.engine.queue_limit is None
    assert scenario.engine.queue_timeout == 600_000
    assert scenario.service.shared_number == "020000000"
    assert scenario.behaviours == {"default": BUILT_IN}
    assert scenario.organizations[0].calling_allowed
    assert scenario.warnings == ()


def test_null_counts_as_left_out() -> None:
    text = SMALL + "costs:\nengine: {queueLimit: ~, order: }\nbehaviours:\n  default:\n"
    assert loads(text) == loads(SMALL)


def test_the_clock_starts_at_the_earliest_instant_of_the_file() -> None:
    assert loads(SMALL).clock.start == START + HOUR
    assert loads(SMALL).organizations[0].campaigns[0].scheduled_at == START + HOUR
    earlier = SMALL + "        scheduledAt: 2026-01-05T01:00:00Z\n"
    assert loads(earlier).clock.start == START
    action = "    timeline: [{at: 2026-01-05T08:00:00+07:00, action: pause, campaign: January}]\n"
    assert loads(SMALL + action).clock.start == START


def test_start_date_time_may_lie_before_the_clocks_start() -> None:
    scenario = loads(SMALL + "clock: {start: 2026-01-06T01:00:00Z}\n")
    assert scenario.clock.start == START + 24 * HOUR
    assert scenario.organizations[0].campaigns[0].scheduled_at == START + 24 * HOUR


def test_a_behaviour_takes_times_and_outcomes_from_the_files_default() -> None:
    behaviours = with_behaviours(
        "  default: {outcomes: {answered: 1}, talkTime: 5s, ringTime: {busy: 3s},"
        " people: {reachable: 1}, rates: {silent: 0.5}, answeredOdds: {byDay: {1: 2}}}\n"
        "  other: {ringTime: {failed: 4s}}\n"
    )
    other = behaviours["other"]
    assert other.outcomes.answered == 1
    assert other.talk_time.value == 5000
    assert (other.ring_time.busy.value, other.ring_time.failed.value) == (3000, 4000)
    assert other.ring_time.no_answer == BUILT_IN.ring_time.no_answer
    assert other.people is None
    assert other.rates.silent == 0
    assert other.answered_odds.by_day == {}


def test_a_file_without_default_inherits_the_built_in_one() -> None:
    behaviours = with_behaviours("  other: {talkTime: 5s}\n")
    assert behaviours["default"] == BUILT_IN
    assert behaviours["other"].outcomes == BUILT_IN.outcomes
    assert behaviours["other"].people is None


def test_outcomes_left_out_one_by_one_are_zero() -> None:
    outcomes = with_behaviours("  default: {outcomes: {answered: 0.4, busy: 0.6}}\n")[
        "default"
    ].outcomes
    assert (outcomes.no_answer, outcomes.failed) == (0, 0)


def test_a_plain_duration_is_a_constant_and_a_measured_column_is_empirical(tmp_path: Path) -> None:
    (tmp_path / "talk.csv").write_text("call,talk\n1,30s\n2,1m\n\n", encoding="utf-8")
    text = (
        SMALL
        + "behaviours: {default: {talkTime: {dist: empirical, file: talk.csv, column: talk}}}\n"
    )
    talk_time = loads(text, folder=tmp_path).behaviours["default"].talk_time
    assert talk_time.values == (30_000, 60_000)  # type: ignore[union-attr]


def test_a_scenario_that_uses_every_key_is_loaded_without_remarks() -> None:
    assert loads(FULL).warnings == ()


def test_a_reanalyze_without_a_share_is_of_all_calls() -> None:
    action = "{at: 2026-01-05T05:00:00Z, action: reanalyze, campaign: January}"
    (read,) = loads(f"{SMALL}    timeline: [{action}]\n").organizations[0].timeline
    assert read.share == 1.0


def test_a_url_of_null_is_a_url_taken_away_and_not_one_left_out() -> None:
    action = "{at: 2026-01-05T05:00:00Z, action: setWebhookUrl, url: null}"
    (read,) = loads(f"{SMALL}    timeline: [{action}]\n").organizations[0].timeline
    assert (read.action, read.url) == ("setWebhookUrl", None)


def test_the_value_of_an_action_is_of_the_actions_type() -> None:
    actions = ", ".join(
        f"{{at: 2026-01-05T05:00:00Z, action: {action}, value: {value}}}"
        for action, value in [("setConcurrency", "2.0"), ("setCallingAllowed", "false")]
    )
    read = loads(f"{SMALL}    timeline: [{actions}]\n").organizations[0].timeline
    assert [(type(action.value), action.value) for action in read] == [(int, 2), (bool, False)]


def test_the_same_number_twice_is_kept_with_a_warning() -> None:
    people = '[{tel: "0812345678"}, {tel: "0812345678"}, {tel: "0812345679"}]'
    scenario = loads(SMALL.replace("{count: 10}", people))
    assert len(scenario.organizations[0].campaigns[0].recipients) == 3  # type: ignore[arg-type]
    assert scenario.warnings == (
        "Campaign January of Acme has a recipient with the number of an earlier recipient, such "
        "as 0812345678 (recipients.0) and 0812345678 (recipients.1); each is called.",
    )


def test_an_agents_number_of_nobody_and_unknown_parameters_are_told() -> None:
    text = SMALL.replace(
        "{name: Reminder}", '{name: Reminder, callerId: "02999", paramsSchema: {a: {type: text}}}'
    ).replace("{count: 10}", "{count: 10, agentParams: {b: x, metadata__c: y}}")
    number, params = loads(text).warnings
    assert "02999" in number
    assert params.endswith("does not name: b.")


@pytest.mark.parametrize(("version", "told"), [("v2", True), ("v1", False)])
def test_a3_a_field_by_which_clients_know_fallback_results_is_told(
    version: str, told: bool
) -> None:
    field = "error: {type: string, values: {none: 1}}"
    agent = f"{{name: Reminder, analysis: {{version: {version}, fields: {{{field}}}}}}}"
    warnings = loads(SMALL.replace("{name: Reminder}", agent)).warnings
    assert [text.split(":")[0] for text in warnings] == (
        ["Agent Reminder of Acme has an analysis field error"] if told else []
    )


def test_a_file_knows_its_source_and_reads_csvs_beside_it(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_bytes("﻿tel\n0812345678\n".encode())
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("{count: 10}", "{file: people.csv}").encode())
    scenario = load(path)
    assert scenario.source == path
    assert scenario.organizations[0].campaigns[0].recipients.table.tels == ["0812345678"]  # type: ignore[union-attr]


def test_the_digest_tells_scenarios_and_their_people_apart(tmp_path: Path) -> None:
    text = SMALL.replace("{count: 10}", "{file: people.csv}")
    digests = set()
    for number in ("0812345678", "0812345679"):
        (tmp_path / "people.csv").write_text(f"tel\n{number}\n", encoding="utf-8")
        digests.add(loads(text, folder=tmp_path).digest)
    assert len(digests) == 2
    assert loads(SMALL).digest == loads("# same\n" + SMALL).digest
    assert loads(SMALL).digest != loads(SMALL, overrides=["seed=2"]).digest


@pytest.mark.parametrize("switch", ["guessed", "inOrder"])
def test_switches_that_are_off_leave_the_digest_as_it_was_before_there_were_any(
    switch: str,
) -> None:
    assert loads(SMALL, overrides=[f"service.{switch}=false"]).digest == loads(SMALL).digest
    assert loads(SMALL, overrides=[f"service.{switch}=true"]).digest != loads(SMALL).digest
    before = "38543e78079d381c720166acbfeef70e1d6358096211605c3beac6911b60d405"
    assert loads(SMALL).digest == before  # another one: journals that were kept are refused


def test_a_scenario_survives_pickling(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("tel\n0812345678\n", encoding="utf-8")
    scenario = loads(SMALL.replace("{count: 10}", "{file: people.csv}"), folder=tmp_path)
    copy = pickle.loads(pickle.dumps(scenario))
    assert copy.digest == scenario.digest
    assert copy.warnings == scenario.warnings


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    for path, says in [(tmp_path / "none.yaml", "there is no such file"), (tmp_path, "a folder")]:
        with pytest.raises(ScenarioError, match=says) as raised:
            load(path)
        assert str(raised.value).startswith(f"{path}: ")


def test_errors_are_dialsim_errors_and_survive_pickling() -> None:
    with pytest.raises(DialsimError) as raised:
        loads("name: 3")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert str(copy) == str(raised.value)


BAD_VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 2.5, 10**30, float("nan"), float("inf"), -1e300),
    *("", "x", "5", "-5s", "NaN", "2026-01-05", "24:00", "default", "unlimited", "é" * 60),
    *([], [1], ["x"], [[]], {}, {"x": 1}, {"dist": "empirical"}, {"dist": 3}, {"file": 1}),
    *({"file": "none.csv"}, {"count": None}, {"dist": "lognormal", "mean": "1s", "sd": "9s"}),
]


def containers(value: Any) -> list[Any]:
    below = value.values() if isinstance(value, dict) else value
    here = [value] if isinstance(value, dict | list) and value else []
    return here + [
        found for part in below if isinstance(part, dict | list) for found in containers(part)
    ]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_whatever_is_wrong_it_is_told_in_plain_words(seed: int, wrong: int) -> None:
    hold_what_is_told(seed, wrong)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_whatever_is_wrong_it_is_told_in_plain_words_many_more(seed: int, wrong: int) -> None:
    hold_what_is_told(seed, wrong)


def hold_what_is_told(seed: int, wrong: int) -> None:
    chance = random.Random(seed)
    document: Any = parse_yaml(FULL, "x", Problems("x")).values
    for _ in range(wrong):
        container = chance.choice(containers(document))
        key = chance.choice(
            list(container) if isinstance(container, dict) else range(len(container))
        )
        if chance.random() < 0.2:
            container.pop(key)
        else:
            container[key] = deepcopy(chance.choice(BAD_VALUES))
    problems: tuple[Problem, ...] = ()
    try:
        loads(json.dumps(document).replace("NaN", ".nan").replace("Infinity", ".inf"))
    except ScenarioError as error:
        problems = error.problems
    for problem in problems:
        assert problem.line is not None
        for jargon in ("Input should", "pydantic", "NoneType", "Traceback", "validation error"):
            assert jargon not in problem.message
