"""`verify` on logs that surprise: what a scenario adds, folders without webhooks, odd good logs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dialsim
from dialsim.errors import LogError
from dialsim.interface.instants import format_instant, parse_instant
from dialsim.logs.log import Log, read_log
from dialsim.logs.verify import Verified, check
from dialsim.testing import Sketch
from logs.good_log import Entry, entries, scenario, written

HOUR = pd.Timedelta(hours=1)


def rules(found: Verified) -> set[str]:
    return {finding.rule for finding in found.findings}


# -- folders without webhooks ----------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    dialsim.run(scenario()).calls.to_parquet(tmp_path / "calls.parquet")
    return tmp_path


def changed(folder: Path, change: Any) -> Log:
    """The folder's log, its table changed."""
    table = pd.read_parquet(folder / "calls.parquet")
    change(table).to_parquet(folder / "calls.parquet")
    return read_log(folder)


INSTANTS = ["created_at", "queued_at", "initiated_at", "ringing_at", "call_started_at",
            "call_ended_at"]  # fmt: skip


def retry_early(table: pd.DataFrame) -> pd.DataFrame:
    row = table.index[(table["attempt"] == 2) & (table["status"] == "NO_ANSWER")][0]
    table.loc[row, INSTANTS] = table.loc[row, INSTANTS] - pd.Timedelta(minutes=20)
    return table


def at_night(table: pd.DataFrame) -> pd.DataFrame:
    row = table.index[table["attempt"] == 3][-1]
    table.loc[row, INSTANTS] = table.loc[row, INSTANTS] + 12 * HOUR
    return table


def once_more(table: pd.DataFrame) -> pd.DataFrame:
    row = table[(table["attempt"] == 3) & (table["status"] == "NO_ANSWER")].iloc[[0]].copy()
    row[INSTANTS] = row[INSTANTS] + 0.5 * HOUR
    row["call_id"], row["attempt"], row["call"] = "00000000-0000-4000-8000-1", 4, 4
    return pd.concat([table, row], ignore_index=True)


def last_retries_gone(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(table.index[table["attempt"] == 3][:3])


def people_gone(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["recipient"] >= 3]


def first_calls_gone(table: pd.DataFrame) -> pd.DataFrame:
    several = table["recipient"].isin(table.loc[table["call"] > 1, "recipient"])
    return table.drop(table.index[several & (table["call"] == 1)][:3])


def unknown_status(table: pd.DataFrame) -> pd.DataFrame:
    table["status"] = table["status"].astype(str)
    table.loc[10, "status"] = "VOICEMAIL"
    return table


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (retry_early, "R2"), (at_night, "T3"), (once_more, "R1"), (last_retries_gone, "R1"),
        (people_gone, "W1"), (first_calls_gone, "W1"), (unknown_status, "P2"),
    ],
)  # fmt: skip
def test_a_table_of_calls_is_held_to_the_settings_of_a_scenario(
    change: Any, rule: str, folder: Path
) -> None:
    assert check(read_log(folder), scenario()).findings == ()
    log = changed(folder, change)
    for plan in [scenario()] + [None] * (change in (first_calls_gone, unknown_status)):
        found = check(log, plan)
        assert rule in found.checked
        assert rule in rules(found), found.findings[:3]


def no_zone(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(call_ended_at=table["call_ended_at"].dt.tz_localize(None))


@pytest.mark.parametrize(
    ("change", "says"),
    [(lambda table: table.drop(columns="caller_id"), "is no table of calls: it lacks caller_id"),
     (no_zone, "call_ended_at has no time zone")],
)  # fmt: skip
def test_a_table_that_is_no_table_of_calls_is_refused(change: Any, says: str, folder: Path) -> None:
    with pytest.raises(LogError, match=rf"calls\.parquet: {says}"):
        changed(folder, change)
    (folder / "calls.parquet").write_text("nonsense")
    with pytest.raises(LogError, match="no table of calls"):
        read_log(folder)


def test_without_settings_the_rules_that_rest_on_them_are_not_looked_at(folder: Path) -> None:
    found = check(read_log(folder))
    assert found.findings == ()
    assert not {"R1", "R2", "T3", "C1", "C7", "Q6"} & {*found.checked}
    assert "C1, C7, Q6, R1, R2, T3" in dict(found.unseen)


# -- what a scenario adds --------------------------------------------------------------------------


def with_parameters(**params: Any) -> Sketch:
    agent = {"name": "R", "paramsSchema": {"amount": {"type": "number", "required": True}}}
    people = [{"tel": f"08{n:08}", "agentParams": {"amount": n}} for n in range(8)]
    people[3]["agentParams"] = params
    return Sketch(2).having(agents=[agent]).campaign("A", recipients=people, agent="R")


@pytest.mark.parametrize("amount", [None, "5", True])
def test_parameters_that_do_not_fit_the_schema_are_found(amount: Any, tmp_path: Path) -> None:
    made = dialsim.run(with_parameters(amount=3).scenario())
    with (tmp_path / "log.jsonl").open("wb") as file:
        made.write_webhooks(file)
    plan = with_parameters(amount=3).scenario()
    assert check(read_log(tmp_path / "log.jsonl"), plan).findings == ()
    text = (tmp_path / "log.jsonl").read_bytes()
    value = {None: b"", "5": b'"amount":"5"', True: b'"amount":true'}[amount]
    assert b'"amount":3' in text
    (tmp_path / "log.jsonl").write_bytes(text.replace(b'"amount":3', value))
    found = check(read_log(tmp_path / "log.jsonl"), plan).findings
    assert {one.rule for one in found} == {"C1"}
    assert "agentParams: amount " in found[0].text


def test_first_attempts_that_are_missing_are_found(tmp_path: Path) -> None:
    tel = min(body_of(e)["tel"] for e in entries() if body_of(e)["callAttempt"] == 2)
    left = [e for e in entries() if (body_of(e)["tel"], body_of(e)["callAttempt"]) != (tel, 1)]
    found = check(read_log(written(tmp_path, left)), scenario()).findings
    assert [one.rule for one in found] == ["W1"]
    assert found[0].text.endswith("but the log lacks 1 of the attempts before")


def body_of(entry: Entry) -> dict[str, Any]:
    recipient: dict[str, Any] = entry["body"]["payload"]["recipient"]
    return recipient


def test_recipients_of_the_list_without_a_call_are_found(tmp_path: Path) -> None:
    gone = {f"{entry['body']['payload']['recipient']['tel']}" for entry in entries(260)[::3]}
    log = [e for e in entries() if e["body"]["payload"]["recipient"]["tel"] not in gone]
    found = check(read_log(written(tmp_path, log)), scenario())
    assert [one.rule for one in found.findings] == ["W1"]
    assert " of the scenario's list no call at all" in found.findings[0].text


def test_two_organizations_with_two_constant_limits_are_both_looked_at(tmp_path: Path) -> None:
    lines = b""
    for lines_of_it, name in ((2, "A"), (3, "B")):
        made = dialsim.run(
            Sketch(lines_of_it, seed=lines_of_it, setup_time=None)
            .campaign(
                name,
                recipients={"count": 30},
                id=f"0000000{lines_of_it}-0000-4000-8000-000000000000",
            )
            .scenario()
        )
        with (tmp_path / "log.jsonl").open("wb") as file:
            made.write_webhooks(file)
        text = (tmp_path / "log.jsonl").read_text()
        lines += text.replace('"agent":{"id":"', f'"agent":{{"id":"{name}').encode()
    (tmp_path / "log.jsonl").write_bytes(lines)
    found = check(read_log(tmp_path / "log.jsonl"))
    assert "Q1" in found.checked
    assert not [rule for rule, _ in found.unseen if rule.startswith("Q1")]


# -- odd logs of good campaigns --------------------------------------------------------------------


def shuffled(log: list[Entry], chance: random.Random) -> list[Entry]:
    return chance.sample(log, len(log))


def late(log: list[Entry], chance: random.Random) -> list[Entry]:
    for entry in chance.sample(log, len(log) // 10):
        entry["at"] = format_instant(parse_instant(entry["at"]) + chance.randint(1, 9) * 3_600_000)
    return log


def first_half(log: list[Entry], chance: random.Random) -> list[Entry]:
    return log[: chance.randint(len(log) // 4, len(log) // 2)]


def second_half(log: list[Entry], chance: random.Random) -> list[Entry]:
    return log[chance.randint(len(log) // 4, len(log) // 2) :]


def bare(log: list[Entry], chance: random.Random) -> list[Entry]:
    return [entry["body"] for entry in log]


ODD = (shuffled, late, first_half, second_half, bare)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "part", [range(1), pytest.param(range(1, 28), marks=pytest.mark.slow)]
)  # fmt: skip
def test_nothing_is_found_in_odd_logs_of_good_campaigns(
    odd: Any, part: range, tmp_path: Path
) -> None:
    """140 logs: 28 campaigns, each in five ways."""
    for seed in part:
        chance = random.Random(seed)
        plan = scenario() if seed % 2 else _other(seed)
        log = entries() if seed % 2 else _log_of(seed, tmp_path)
        path = written(tmp_path, odd(log, chance))
        assert check(read_log(path)).findings == (), seed
        assert check(read_log(path), plan).findings == (), seed


def _other(seed: int) -> Any:
    chance = random.Random(seed)
    return (
        Sketch(chance.randint(2, 9), seed=seed, setup_time=None)
        .campaign(
            "A", recipients={"count": chance.randint(50, 150)}, max_attempts=chance.randint(1, 4),
            retry_interval=f"{chance.randint(5, 50)}m",
        )
        .scenario()
    )  # fmt: skip


def _log_of(seed: int, folder: Path) -> list[Entry]:
    import orjson

    with (folder / "made.jsonl").open("wb") as file:
        dialsim.run(_other(seed)).write_webhooks(file)
    return [orjson.loads(line) for line in (folder / "made.jsonl").read_bytes().splitlines()]
