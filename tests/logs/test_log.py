"""`read_log`: every form of a log gives the same calls; what can't be read is named."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dialsim
from dialsim.errors import LogError
from dialsim.logs.entries import LONGEST_LINE
from dialsim.logs.log import Log, read_log
from dialsim.logs.log_table import contents
from dialsim.logs.verify import check
from logs.good_log import Entry, entries, scenario, written

PLAIN = ["call_id", "recipient", "tel", "attempt", "status", "started_at", "ended_at",
         "call_duration_ms", "analysis", "funnel", "fields", "re_analyses", "masked"]  # fmt: skip


@pytest.fixture(scope="module")
def good() -> list[Entry]:
    return entries()


@pytest.fixture(scope="module")
def log(good: list[Entry], tmp_path_factory: pytest.TempPathFactory) -> Log:
    return read_log(written(tmp_path_factory.mktemp("log"), good))


def bodies(good: list[Entry]) -> list[Entry]:
    return [entry["body"] for entry in good]


def same_calls(one: Log, other: Log) -> None:
    pd.testing.assert_frame_equal(one.calls[PLAIN], other.calls[PLAIN])


def test_the_calls_are_those_of_the_run(log: Log) -> None:
    table = dialsim.run(scenario()).calls.set_index("call_id")
    told = log.calls.set_index("call_id")
    there = table.loc[told.index]
    assert (told["status"].astype(str) == there["status"].astype(str)).all()
    for name, own in {
        "attempt": "attempt", "started_at": "call_started_at", "ended_at": "call_ended_at",
        "call_duration_ms": "call_duration_ms",
    }.items():  # fmt: skip
        pd.testing.assert_series_equal(told[name], there[own], check_names=False)
    assert set(table.index) - set(told.index) == set(
        table.index[table["analysis"].isin(["not_analyzed", "failed"])]
    ) | set(table.index[table["call_ended_at"].isna()])


def test_people_are_told_apart_as_in_the_run(log: Log) -> None:
    table = dialsim.run(scenario()).calls.set_index("call_id").loc[log.calls["call_id"]]
    pairs = pd.DataFrame(
        {"own": table["recipient"].to_numpy(), "told": log.calls["recipient"].to_numpy()}
    ).drop_duplicates()
    assert pairs["own"].is_unique
    assert pairs["told"].is_unique


def test_the_best_result_of_a_call_counts(log: Log) -> None:
    assert log.duplicates > 0
    assert log.calls["re_analyses"].sum() > 0
    talked = log.calls[log.calls["status"] == "COMPLETED"]
    assert talked["analysis"].notna().all()
    assert talked.loc[talked["analysis"] == "analyzed", "fields"].notna().all()


def test_json_lines_of_bodies(good: list[Entry], log: Log, tmp_path: Path) -> None:
    same_calls(read_log(written(tmp_path, bodies(good))), log)


def test_a_packed_file(good: list[Entry], log: Log, tmp_path: Path) -> None:
    path = written(tmp_path, good)
    packed = tmp_path / "stored.log"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    same_calls(read_log(packed), log)


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_bodies(
    good: list[Entry], log: Log, tmp_path: Path, indent: int | None
) -> None:
    path = tmp_path / "bodies.json"
    path.write_text(json.dumps(bodies(good), ensure_ascii=False, indent=indent), encoding="utf-8")
    found = read_log(path)
    same_calls(found, log)
    assert found.form == "array"


@pytest.mark.parametrize("column", [None, "payload"])
def test_a_csv_with_a_column_of_bodies(
    good: list[Entry], log: Log, tmp_path: Path, column: str | None
) -> None:
    path = tmp_path / "stored.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "payload"])
        rows.writerows([n, json.dumps(body)] for n, body in enumerate(bodies(good)))
    same_calls(read_log(path, column=column), log)


@pytest.mark.parametrize("as_text", [True, False])
def test_a_parquet_file_with_a_column_of_bodies(
    good: list[Entry], log: Log, tmp_path: Path, as_text: bool
) -> None:
    path = tmp_path / "stored.parquet"
    texts = [orjson.dumps(body) for body in bodies(good)]
    column = [text.decode() for text in texts] if as_text else texts
    pd.DataFrame({"id": range(len(texts)), "body": column}).to_parquet(path)
    same_calls(read_log(path), log)


def test_a_folder_of_a_run_has_every_call(log: Log, tmp_path: Path) -> None:
    result = dialsim.run(scenario())
    result.write(tmp_path / "run")
    found = read_log(tmp_path / "run")
    assert found.has_dials
    assert len(found.calls) == len(result.calls)
    assert found.campaigns[0].organization == "Acme"
    told = found.calls[found.calls["bodies"] > 0].set_index("call_id").loc[log.calls["call_id"]]
    assert (told["tel"].to_numpy() == log.calls["tel"].to_numpy()).all()
    assert (told["setting"].to_numpy() == log.calls["setting"].to_numpy()).all()


def test_a_folder_without_webhooks_has_no_bodies(tmp_path: Path) -> None:
    result = dialsim.run(scenario())
    result.write(tmp_path / "run", without=("webhooks",))
    found = read_log(tmp_path / "run")
    assert len(found.calls) == len(result.calls)
    assert len(found.bodies) == 0
    assert contents(found).campaigns[0].people == 200


def test_old_results_and_other_campaigns_in_between(good: list[Entry], tmp_path: Path) -> None:
    mixed = bodies(entries())
    for body in mixed[::2]:
        payload = body["payload"]
        payload["campaign"] |= {"id": "00000000-0000-4000-8000-000000000009", "name": "Other"}
        payload["call"]["id"] = payload["call"]["id"].replace("-", "+", 1)
        if payload["callResult"] and payload["callResult"]["version"] == "v2":
            result = payload["callResult"]
            result["version"] = "v1"
            result["customizableAttr"] = result.pop("postCallAnalyticsResult")
    found = contents(read_log(written(tmp_path, mixed)))
    assert {one.name for one in found.campaigns} == {"January", "Other"}
    assert found.old_form > 0


def test_lost_attempts_are_counted_as_gaps(good: list[Entry], tmp_path: Path) -> None:
    kept = [e for e in good if e["body"]["payload"]["recipient"]["callAttempt"] != 2]
    (campaign,) = contents(read_log(written(tmp_path, kept))).campaigns
    (whole,) = contents(read_log(written(tmp_path, good, "all.jsonl"))).campaigns
    assert (campaign.gaps, whole.gaps) == (whole.by_attempt[3].get("COMPLETED", 0)
        + sum(n for s, n in whole.by_attempt[3].items() if s != "COMPLETED"), 0)  # fmt: skip


def one_body() -> bytes:
    return orjson.dumps(entries(1)[0]["body"])


def changed(**call: object) -> bytes:
    body = orjson.loads(one_body())
    body["payload"]["call"] |= call
    return orjson.dumps(body)


DAMAGES = {
    "a truncated last line": (one_body()[:300], "is no JSON ("),
    "no JSON": (b"hello", "is no JSON ("),
    "a number": (b"17", "is a number and no object"),
    "NUL bytes": (b"\0" * 100, "has NUL bytes: a piece of the file was never written"),
    "another encoding": ('{"ชื่อ": 1}'.encode("cp874"), "is no UTF-8 at byte 3"),
    "UTF-16": ("{}".encode("utf-16"), "is UTF-16: save the file as UTF-8"),
    "deep nesting": (b"[" * 5_000 + b"]" * 5_000, "is no JSON ("),
    "a huge line": (b'{"x": "' + b"a" * LONGEST_LINE + b'"}', "is longer than 16 MiB"),
    "another event": (b'{"type": "CALL_STARTED", "payload": {}}', "type: is 'CALL_STARTED' and no"),
    "no payload": (b'{"type": "CALL_RESULT"}', "has no payload"),
    "no call": (b'{"type": "CALL_RESULT", "payload": {}}', "payload.call: is missing and no obj"),
    "no id": (changed(id=None), "payload.call.id: is None and no id"),
    "no status": (changed(callStatus="RINGING"), "payload.call.callStatus: 'RINGING' is no status"),
    "a list for a status": (changed(callStatus=[]), "payload.call.callStatus: [] is no status"),
    "no instant": (
        changed(callEndedAt="yesterday"), "payload.call.callEndedAt: 'yesterday' is not an ISO"
    ),
    "a day that does not exist": (
        changed(callEndedAt="2026-02-30T10:00:00.000Z"),
        "payload.call.callEndedAt: '2026-02-30T10:00:00.000Z' names a day that does not exist",
    ),
    "no duration": (changed(callDuration="long"), "payload.call.callDuration: 'long' is no durat"),
    "an endless duration": (changed(callDuration="1e400"), "payload.call.callDuration: '1e400' is"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_what_cannot_be_read_is_named_and_skipped(
    name: str, good: list[Entry], tmp_path: Path
) -> None:
    line, reason = DAMAGES[name]
    path = written(tmp_path, good[:100])
    path.write_bytes(path.read_bytes() + line + b"\n" + orjson.dumps(good[100]) + b"\n")
    found = read_log(path)
    assert found.damaged == 1
    assert found.damages[0].line == 101
    assert found.damages[0].reason.startswith(reason)
    assert len(found.bodies) == 101


HOSTILE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5),
    st.just([]), st.just([[]]), st.just({}), st.just({"value": []}), st.just("9" * 400),
    st.just("9999-12-31T23:59:59.999-12:00"), st.just(["x"]), st.just("\x00"), st.just(2**63),
    st.just(2**70),
)  # fmt: skip


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths to everything in a body."""
    items = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
    for key, each in items:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from places(each, (*path, key))


@given(st.lists(st.tuples(st.integers(0, 10_000), HOSTILE), min_size=1, max_size=4))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_value_anywhere_breaks_the_reader_or_verify(
    tmp_path: Path, changes: list[tuple[int, object]]
) -> None:
    log = entries(30)
    for number, value in changes:
        for entry in log[::3]:
            paths = [*places(entry)]
            *way, last = paths[number % len(paths)]
            part: Any = entry
            for key in way:
                part = part[key]
            part[last] = deepcopy(value)
    for form, data in (("a.jsonl", log), ("b.jsonl", [e.get("body", e) for e in log])):
        try:
            path = tmp_path / form
            path.write_bytes(
                b"".join(json.dumps(entry).encode(errors="replace") + b"\n" for entry in data)
            )
            found = read_log(path)
        except LogError:
            continue
        check(found)
        contents(found)


def test_a_weekday_beyond_64_bits_damages_its_body_alone(tmp_path: Path) -> None:
    log = entries(30)
    windows = log[3]["body"]["payload"]["campaign"]["scheduleDateTimeWindow"]
    windows[0]["dayOfWeek"] = 2**70
    path = written(tmp_path, log[:3])
    path.write_bytes(path.read_bytes() + json.dumps(log[3]).encode() + b"\n")  # orjson refuses it
    assert read_log(path).damaged == 1


def test_a_packed_file_that_breaks_off_is_read_up_to_there(
    good: list[Entry], tmp_path: Path
) -> None:
    path = tmp_path / "webhooks.jsonl.gz"
    packed = gzip.compress(written(tmp_path, good).read_bytes())
    path.write_bytes(packed[: len(packed) * 2 // 3])
    found = read_log(path)
    assert 0 < len(found.calls) < len(good)
    assert "breaks off" in found.damages[-1].reason


@pytest.mark.parametrize(
    ("huge", "ends"),
    [
        pytest.param(huge, ends, marks=[pytest.mark.slow] * slow)
        for huge, ends, slow in (
            (90_000, b"", False),
            (9_000, b"\n", False),
            (90_000, b"\n", True),
            (40_000, b"\n", True),
            (40_000, b"", True),
            (9_000, b"", True),
        )
    ],
)
def test_lines_have_the_same_numbers_however_many_are_read_at_once(
    good: list[Entry], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, huge: int, ends: bytes
) -> None:
    lines = written(tmp_path, good[:60]).read_bytes().splitlines()
    wrong = {3: b"{", 4: b"", 17: b'{"x": "' + b"a" * huge, 18: b"[]", 41: b"a" * huge, 58: b"{}"}
    for number, line in wrong.items():
        lines.insert(number - 1, line)
    path, packed = tmp_path / "stored.jsonl", tmp_path / "stored.jsonl.gz"
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines) + ends)
    packed.write_bytes(gzip.compress(path.read_bytes()))
    monkeypatch.setattr("dialsim.logs.entries.LONGEST_LINE", 30_000)
    at_once = read_log(path)
    assert [damage.line for damage in at_once.damages] == [3, 17, 18, 41, 58]
    assert ("longer" in at_once.damages[1].reason) == (huge > 30_000)
    assert at_once.bodies["line"].tolist() == [n for n in range(1, 67) if n not in wrong]
    monkeypatch.setattr("dialsim.logs.log.FIRST", 1_000)
    for piece in (700, 5_000, 20_000):
        monkeypatch.setattr("dialsim.logs.entries.PIECE", piece)
        for source in (path, packed):
            found = read_log(source)
            assert found.damages == at_once.damages
            pd.testing.assert_frame_equal(found.bodies, at_once.bodies)


def test_an_array_that_breaks_off_is_read_up_to_there(good: list[Entry], tmp_path: Path) -> None:
    path = tmp_path / "bodies.json"
    text = json.dumps(bodies(good[:50]))
    path.write_text(text[: len(text) // 2])
    found = read_log(path)
    assert 20 < len(found.bodies) < 30
    assert found.damaged == 1


def test_unknown_fields_are_counted(good: list[Entry], tmp_path: Path) -> None:
    log = bodies(entries())
    log[3]["payload"]["mood"] = "good"
    found = read_log(written(tmp_path, log))
    assert found.unknown_fields == {"mood": 1}
    assert found.damaged == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no body of a CALL_RESULT webhook in it"),
        (b"\n\n", "no body of a CALL_RESULT webhook in it"),
        (b"{}\n", "line 1: has no payload"),
        (b"[]", "no body of a CALL_RESULT webhook in it"),
        (b"PAR1 and more", "is no complete Parquet file"),
        (b"\x1f\x8b broken", "can't be read"),
    ],
)
def test_what_is_no_log_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "what.csv"
    path.write_bytes(content)
    with pytest.raises(LogError, match=reason):
        read_log(path)


def test_a_missing_file_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="No such file"):
        read_log(tmp_path / "none.jsonl")
    with pytest.raises(LogError, match=r"neither calls\.parquet nor webhooks\.jsonl"):
        read_log(tmp_path)


def test_several_processes_read_the_same(
    good: list[Entry], log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialsim.logs.log.FIRST", 0)
    monkeypatch.setattr("dialsim.logs.entries.PIECE", 400_000)
    found = read_log(written(tmp_path, good))
    pd.testing.assert_frame_equal(found.calls, log.calls)
    assert found.settings == log.settings
