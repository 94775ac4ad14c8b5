"""Results as workbooks: results.xlsx, `for_excel`, and what a folder may do without."""

from __future__ import annotations

import gzip
import io
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

import dialsim
from dialsim.errors import OutputError
from dialsim.results import excel, folder
from dialsim.results.folder import PARTS
from dialsim.results.result import Result
from results.test_summary import COSTS, JANUARY
from results.traces import HandCampaign, hand_trace

THAI = timedelta(hours=7)
TABLES = ("calls", "transitions", "recipients", "campaigns", "webhooks")


@pytest.fixture(scope="module")
def result() -> Result:
    path = Path(__file__).parents[2] / "scenarios" / "first-campaign.yaml"
    small = ["organizations.Acme.campaigns.January.recipients.count=60"]
    return dialsim.run(dialsim.load(path, overrides=small))


@pytest.fixture
def hand() -> Result:
    voiced = HandCampaign(
        "0 0 1 scheduled\n0 0 1 released\n0 0 1 dialled 021000002 malee",
        people=3,
        name="Voiced",
        segments=True,
    )
    return Result(hand_trace([JANUARY, voiced], costs=COSTS), wall_seconds=1.5)


def sheets(path: Path) -> dict[str, list[list[Any]]]:
    book = openpyxl.load_workbook(path)
    return {
        sheet.title: [[cell.value for cell in row] for row in sheet.iter_rows()] for sheet in book
    }


def test_the_workbook_has_the_run_in_thai_time(result: Result, tmp_path: Path) -> None:
    written = sheets(result.to_excel(tmp_path / "results.xlsx"))
    assert list(written) == ["summary", "campaigns", "recipients", "calls by hour"]
    header, *rows = written["recipients"]
    assert header == list(result.recipients.columns)
    assert len(rows) == len(result.recipients)
    first = dict(zip(header, rows[0], strict=True))
    real = result.recipients.iloc[0]
    assert (first["tel"], first["customer_name"]) == (real["tel"], real["customer_name"])
    assert isinstance(first["reached_at"], datetime | None)
    reached = result.recipients["reached_at"].dropna()
    shown = [row[header.index("reached_at")] for row in rows]
    assert [value for value in shown if value is not None] == [
        pytest.approx(instant.tz_localize(None).to_pydatetime() + THAI, abs=timedelta(seconds=1))
        for instant in reached
    ]
    said = dict(row[:2] for row in written["summary"][1:])
    assert said["Times"] == "Thai time (UTC+7)"
    assert "people reached" in said["Answer"]


def test_numbers_have_formats_and_headers_are_frozen(result: Result, tmp_path: Path) -> None:
    book = openpyxl.load_workbook(result.to_excel(tmp_path / "results.xlsx"))
    assert {sheet.freeze_panes for sheet in book} == {"A2"}
    campaigns = book["campaigns"]
    formats = {
        cell.value: below.number_format for cell, below in zip(*campaigns["1:2"], strict=True)
    }
    assert formats["reach_share"] == "0.0%"
    assert formats["finish"] == "yyyy-mm-dd hh:mm:ss"
    assert formats["people"] == "#,##0"
    assert formats["cost"] == "#,##0.00"


def test_calls_by_hour_add_up_to_the_dials_of_the_summary(result: Result) -> None:
    hours = excel.calls_by_hour(result)
    assert hours["dials"].sum() == result.summary.dials - result.summary.dials_withdrawn
    assert hours["answered"].sum() == result.summary.calls_completed
    ends = hours[["answered", "no_answer", "busy", "failed", "not_ended"]]
    assert (ends.sum(axis=1) == hours["dials"]).all()
    assert (hours["not_ended"] == 0).all()
    first = result.calls["initiated_at"].min().tz_localize(None) + THAI
    assert hours["hour"].min() == first.floor("h")


def test_equal_runs_write_equal_workbooks(hand: Result, tmp_path: Path) -> None:
    one, other = (hand.to_excel(tmp_path / name).read_bytes() for name in ("a.xlsx", "b.xlsx"))
    assert one == other
    assert {path.name for path in tmp_path.iterdir()} == {"a.xlsx", "b.xlsx"}


def test_a_place_that_is_none_is_told(hand: Result, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"nowhere/a\.xlsx cannot be written: No such file or"):
        hand.to_excel(tmp_path / "nowhere" / "a.xlsx")


def test_texts_that_look_like_formulas_are_texts(tmp_path: Path) -> None:
    frame = pd.DataFrame({"name": ["=1+1", "http://example.test", "x" * 40_000]})
    excel.write_workbook(tmp_path / "x.xlsx", "=1+1", [], {"names": frame})
    _, *rows = sheets(tmp_path / "x.xlsx")["names"]
    assert [row[0] for row in rows] == ["=1+1", "http://example.test", "x" * 32_767]


def test_what_a_sheet_cannot_hold_goes_on_in_the_next_one_and_is_said(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excel, "MOST_ROWS", 25)
    written = sheets(result.to_excel(tmp_path / "results.xlsx"))
    assert [name for name in written if name.startswith("recipients")] == [
        *("recipients", "recipients 2", "recipients 3")
    ]
    positions = [
        row[2] for name in written if name.startswith("recip") for row in written[name][1:]
    ]
    assert positions == list(range(60))
    said = dict(row[:2] for row in written["summary"][1:])
    assert said["recipients"] == "60 rows, in 3 sheets: Excel holds 25"


@pytest.mark.parametrize("name", TABLES)
def test_every_table_survives_to_excel(name: str, hand: Result, tmp_path: Path) -> None:
    frame = getattr(hand, name)
    made = dialsim.for_excel(frame)
    made.to_excel(tmp_path / "table.xlsx", index=False)
    back = pd.read_excel(tmp_path / "table.xlsx", dtype={"tel": "str"}, engine="openpyxl")
    assert list(back.columns) == list(frame.columns)
    assert len(back) == len(frame)
    for column in frame.select_dtypes("datetimetz"):
        expected = frame[column].dt.tz_localize(None) + THAI
        shown = pd.to_datetime(back[column])
        assert (shown.isna() == expected.isna()).all()
        assert (shown - expected).dropna().abs().le(pd.Timedelta("1ms")).all()


def test_frames_of_experiments_survive_too(result: Result, tmp_path: Path) -> None:
    scenario = result.trace.world.scenario
    runs = dialsim.replicate(scenario, 2, jobs=1)
    for number, frame in enumerate((runs.frame, runs.intervals(), result.summary.to_frame())):
        dialsim.for_excel(frame).to_excel(tmp_path / f"{number}.xlsx")


def test_bodies_are_json_and_infinite_numbers_null() -> None:
    frame = pd.DataFrame({"x": [1.0, np.inf]})
    assert dialsim.for_excel(frame)["x"].isna().tolist() == [False, True]
    assert frame["x"].tolist() == [1.0, np.inf]


def test_bodies_of_webhooks_are_written_as_json(result: Result) -> None:
    made = dialsim.for_excel(result.webhooks.head(2))
    assert json.loads(made["body"].iloc[0]) == result.webhooks["body"].iloc[0]


@pytest.mark.parametrize("name", PARTS)
def test_a_folder_may_do_without_any_table(name: str, hand: Result, tmp_path: Path) -> None:
    place = hand.write(tmp_path / "run", without=[name])
    left = {path.name.split(".")[0] for path in place.iterdir()} & set(PARTS)
    assert left == set(PARTS) - {name}
    assert json.loads((place / "manifest.json").read_bytes())["without"] == [name]


def test_a_table_that_is_none_is_refused_before_anything_is_written(
    hand: Result, tmp_path: Path
) -> None:
    with pytest.raises(OutputError, match='"webhook" can\'t be left out; known here: calls, trans'):
        hand.write(tmp_path / "run", without=["webhook"])
    assert not (tmp_path / "run").exists()


def test_many_webhooks_are_packed_and_read_back_alike(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = io.BytesIO()
    result.write_webhooks(lines)
    monkeypatch.setattr(folder, "MOST_PLAIN", lines.getvalue().count(b"\n"))
    plain = result.write(tmp_path / "plain") / "webhooks.jsonl"
    assert plain.read_bytes() == lines.getvalue()
    monkeypatch.setattr(folder, "MOST_PLAIN", 10)
    packed = result.write(tmp_path / "packed") / "webhooks.jsonl.gz"
    assert not packed.with_suffix("").exists()
    assert gzip.decompress(packed.read_bytes()) == lines.getvalue()
    again = result.write(tmp_path / "again") / "webhooks.jsonl.gz"
    assert again.read_bytes() == packed.read_bytes()
    frame = pd.read_json(packed, lines=True)
    assert frame["body"].tolist() == result.webhooks["body"].tolist()
