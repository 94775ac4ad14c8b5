"""Plain tables of calls or of events: read like logs, and checked as far as their columns go."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import dialsim
from dialsim.errors import LogError
from dialsim.testing import Sketch
from engine.breadth import broad_scenario
from engine.chancy import chancy_scenario
from engine.readings import loaded

PAUSED = (
    Sketch(lines=1)
    .campaign("January", "busy 1s; answered 5s 90s", "noAnswer 20s", "answered 0s 0s",
              max_attempts=2, retry_interval="5m")
    .at("Mon 09:00:04", "pause", "January")
    .at("Mon 09:01", "resume", "January")
    .at("Mon 09:02", "cancel", "January")
)  # fmt: skip
COMPARED = ["campaign", "recipient", "call_no", "status", "created_at", "queued_at",
            "initiated_at", "ringing_at", "started_at", "ended_at"]  # fmt: skip


def calls_of(source: object) -> list[list[str]]:
    log = dialsim.read_log(source)
    calls = log.calls.assign(campaign=[str(log.campaigns[code]) for code in log.calls["campaign"]])
    calls["recipient"] = calls["position"]
    rows: list[list[str]] = calls[COMPARED].astype(str).to_numpy().tolist()
    return sorted(rows)


def polars(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("polars").from_pandas(frame)


@pytest.mark.parametrize("form", [lambda frame: frame, pa.Table.from_pandas, polars])
def test_frames_of_pandas_arrow_and_polars_are_the_log_that_the_folder_is(
    form: Any, tmp_path: Path
) -> None:
    result = dialsim.run(PAUSED.scenario())
    result.calls.to_parquet(tmp_path / "calls.parquet")
    assert calls_of(form(result.calls)) == calls_of(tmp_path)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz"])
def test_files_are_the_log_that_the_frame_is(suffix: str, tmp_path: Path) -> None:
    calls = dialsim.run(PAUSED.scenario()).calls
    path = tmp_path / f"table.{suffix}"
    if suffix == "parquet":
        calls.to_parquet(path)
    else:
        calls.to_csv(path, index=False)
    assert calls_of(path) == calls_of(calls)
    assert calls_of(str(path)) == calls_of(calls)


def test_phone_numbers_in_a_csv_keep_their_zero(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("recipient,call,status\n0811111111,1,BUSY\n")
    assert dialsim.read_log(tmp_path / "own.csv").calls["tel"].tolist() == ["0811111111"]


@pytest.mark.parametrize("make", [chancy_scenario, broad_scenario])
@pytest.mark.parametrize("part", [range(3), pytest.param(range(3, 60), marks=pytest.mark.slow)])
def test_events_and_calls_of_good_runs_are_one_log_without_findings(make: Any, part: range) -> None:
    for seed in part:
        followed = loaded(make(seed))
        result = dialsim.run(followed)
        if not len(result.calls):
            continue
        assert calls_of(result.transitions) == calls_of(result.calls), seed
        for frame in (result.calls, result.transitions):
            assert dialsim.check(frame, followed).findings == (), seed
            assert dialsim.check(frame).findings == (), seed


@pytest.mark.parametrize(
    "without",
    ["created_at", "queued_at", "initiated_at", "call_ended_at", "status", "caller_id",
     "campaign", "organization"],
)  # fmt: skip
def test_a_missing_column_leaves_no_false_finding_and_is_named(without: str) -> None:
    scenario = PAUSED.scenario()
    calls = dialsim.run(scenario).calls
    whole, found = (
        dialsim.check(frame, scenario) for frame in (calls, calls.drop(columns=without))
    )
    assert found.findings == ()
    lost = {*whole.checked} - {*found.checked}
    named = {rule for rules, why in found.unseen if "has no column" in why
             for rule in rules.split(", ")}  # fmt: skip
    assert lost <= named
    if without in ("campaign", "organization"):
        assert not lost
    else:
        assert any(without in why for _, why in found.unseen)


ONE = Sketch(lines=1).campaign("A", "busy 1s; answered 5s 90s", max_attempts=2, retry_interval="5m",
                               windows="Mon 09:00-10:00", caller_ids=["021000001"])  # fmt: skip


def test_attempts_are_counted_where_the_table_has_none() -> None:
    calls = dialsim.run(ONE.scenario()).calls
    counted = dialsim.read_log(calls.drop(columns="attempt")).calls["attempt"]
    assert counted.tolist() == dialsim.read_log(calls).calls["attempt"].tolist()
    assert 2 in counted.tolist()


def broken(**changes: object) -> pd.DataFrame:
    """The calls of a run, with values of its last call (a retry that was answered) changed."""
    calls = dialsim.run(ONE.scenario()).calls
    calls = calls[["recipient", "call", "initiated_at", "call_ended_at", "status", "caller_id"]]
    for name, value in changes.items():
        calls[name] = calls[name].astype(object)
        calls.loc[calls.index[-1], name] = value
    return calls


@pytest.mark.parametrize(("changes", "rule"), [
    ({"initiated_at": pd.Timestamp("2026-01-05T02:05:02Z")}, "R2"),
    ({"initiated_at": pd.Timestamp("2026-01-05T03:00:00Z"),
      "call_ended_at": pd.Timestamp("2026-01-05T03:02:00Z")}, "T3"),
    ({"initiated_at": pd.Timestamp("2026-01-05T01:59:59Z"),
      "call_ended_at": pd.Timestamp("2026-01-05T02:00:00Z")}, "C1"),
    ({"caller_id": "029999999"}, "P3"),
    ({"recipient": 1}, "C1"),
    ({"status": "RINGING"}, "P2"),
])  # fmt: skip
def test_a_broken_rule_is_found_in_a_small_table(changes: dict[str, object], rule: str) -> None:
    found = dialsim.check(broken(**changes).astype({"recipient": int}), ONE.scenario())
    assert rule in {finding.rule for finding in found.findings}, found.findings


def test_a_longer_stay_in_the_queue_and_a_strange_voice_are_found() -> None:
    voices = Sketch(1).campaign("A", "busy 1s", tts_voice_keys=["malee"]).scenario()
    calls = dialsim.run(voices).calls
    assert dialsim.check(calls, voices).findings == ()
    early = calls.assign(queued_at=calls["queued_at"] - pd.Timedelta(minutes=11))
    assert "Q5" in {finding.rule for finding in dialsim.check(early, voices).findings}
    (found,) = dialsim.check(calls.assign(voice_key="narin"), voices).findings
    assert (found.rule, found.organization, found.campaign) == ("P4", "Acme", "A")
    assert (found.recipient, found.call) == (0, 1)


@pytest.mark.parametrize(("frame", "said"), [
    (3, "source of a log must be a folder, a file or a table of calls, not 3"),
    (pd.DataFrame({"call": [1]}), "no column 'recipient'; it has call"),
    (pd.DataFrame({"recipient": [0]}), "no column 'call'"),
    (pd.DataFrame({"recipient": [0], "call": [1]}), "none of the columns status, created_at"),
    (pd.DataFrame({"recipient": [0], "call": [1], "initiated_at": [pd.Timestamp("2026-01-05")]}),
     "initiated_at has no time zone"),
    (pd.DataFrame({"recipient": [0], "call": [1], "initiated_at": ["noon"]}),
     "row 1: initiated_at"),
    (pd.DataFrame({"recipient": [0], "call": [1], "initiated_at": [0.5]}),
     "initiated_at has no instants (double)"),
    (pd.DataFrame({"recipient": [811111111], "call": [1], "status": ["BUSY"]}),
     "row 1: recipient 811111111 is no position in a list; phone numbers are texts"),
    (pd.DataFrame({"recipient": [0, 0], "call": [1, 1], "status": ["BUSY", "BUSY"]}),
     "call 1 of 0 is in the table twice"),
    (pd.DataFrame({"recipient": ["x", None], "call": [1, 1], "status": ["BUSY", "BUSY"]}),
     "row 2: recipient is missing"),
    (pd.DataFrame({"recipient": [0], "call": ["one"], "status": ["BUSY"]}),
     "call has no whole numbers"),
    (pd.DataFrame({"recipient": [0], "call": [None], "status": ["BUSY"]}), "row 1: no number"),
])  # fmt: skip
def test_what_is_no_table_of_calls_is_refused_with_the_place(frame: object, said: str) -> None:
    with pytest.raises(LogError, match=re.escape(said)):
        dialsim.read_log(frame)


def test_a_table_of_calls_can_be_replayed_to_the_millisecond() -> None:
    scenario = PAUSED.scenario()
    for frame in (dialsim.run(scenario).calls, dialsim.run(scenario).transitions):
        record = dialsim.RecordedCalls(dialsim.read_log(frame), scenario)
        replayed = dialsim.replay(record)
        assert record.has_dials
        assert replayed.first_mismatch is None
        assert replayed.agree == replayed.calls == len(dialsim.run(scenario).calls)


def test_the_example_of_a_companys_own_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf-8")
    own = page[page.index("## Use a log of your own") : page.index("## Use logs in Python")]
    files = {"csv": "dialler.csv", "yaml": "reminders.yaml"}
    block = dict(re.findall(r"^```(\w+)\n(.*?)^```$", own, re.M | re.S))
    for kind, name in files.items():
        (tmp_path / name).write_text(block[kind], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(block["python"], {})
    assert printed.getvalue() == block["text"]


def test_caller_ids_that_a_table_lacks_are_not_the_same() -> None:
    two = Sketch(lines=1).campaign("A", "busy 1s", max_attempts=3, retry_interval="5m",
                                   caller_ids=["021000001", "021000002"]).scenario()  # fmt: skip
    calls = dialsim.run(two).calls
    assert dialsim.check(calls.drop(columns="caller_id"), two).findings == ()
    assert dialsim.check(dialsim.run(two).transitions, two).findings == ()
    same = dialsim.check(calls.assign(caller_id="021000001"), two)
    assert {finding.rule for finding in same.findings} == {"P3"}
