"""`dialsim people`: what a list is shown as, and the block that it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.program import dialsim
from scenario.workbooks import workbook

LIST = workbook(
    ("Phone", "ชื่อลูกค้า", "Balance", "Tier", "E-mail"),
    ("081-234-5678", "สมชาย ใจดี", "4,356", "gold", "a@example.test"),
    (812345679, "Somying", 12.5, "gold", None),
    ("021234567", "Somsak", 1, "mass", None),
    ("+66812345679", "Somsri", 2, "mass", None),
    ("1.23E+09", "Malee", 3, None, None),
    (None, "Manee", 4, None, None),
)

SHOWN = (Path(__file__).parent / "people.txt").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.xlsx").write_bytes(LIST)
    return tmp_path


def test_a_list_is_shown_with_its_columns_numbers_and_segments(folder: Path) -> None:
    done = dialsim(
        "people", "people.xlsx", "--column", "tel=Phone", "--column", "segment=Tier", cwd=folder
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.rstrip() for line in done.stdout.splitlines()] == SHOWN.splitlines()


def test_the_same_as_json(folder: Path) -> None:
    done = dialsim("people", "people.xlsx", "--format", "json", cwd=folder)
    (found,) = json.loads(done.stdout)["lists"]
    assert (found["people"], found["merged"], found["recipients"]) == (3, 1, None)
    assert found["aside"] == [
        {"sheet": "People", "row": 6, "reason": "rounded by the spreadsheet: 1.23E+09"},
        {"sheet": "People", "row": 7, "reason": "without a number"},
    ]
    uses = {column["name"]: column["used_as"] for column in found["columns"]}
    assert (uses["Phone"], uses["ชื่อลูกค้า"]) == ("tel", "customerName")
    assert uses["Balance"] == "agentParams.Balance"


def test_the_block_it_prints_reads_the_list(folder: Path) -> None:
    good = workbook(("Phone", "Name"), ("081-234-5678", "x"), ("0898765432", "y"))
    (folder / "people.xlsx").write_bytes(good)
    shown = dialsim("people", "people.xlsx", cwd=folder).stdout
    block = shown.split("To paste into the campaign:\n")[1].replace("\n", "\n        ")
    (folder / "plan.yaml").write_text(
        "organizations:\n  - name: Acme\n    maxConcurrentCalls: 2\n    agents: [{name: R}]\n"
        f"    campaigns:\n      - name: J\n        agent: R\n        {block}\n"
        "        schedule: {startDateTime: 2026-01-05T02:00:00Z}\n"
    )
    done = dialsim("validate", "plan.yaml", cwd=folder)
    assert done.stdout == "plan.yaml is good: 1 organization, 1 campaign, 2 recipients.\n"
    assert "1 cell in another spelling was read (normalize): 1 of tel" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--column", "tel"], "--column is OURS=THEIRS, such as tel=Phone, not 'tel'"),
        (["--column", "tel=A", "--column", "tel=B"], "--column tel is given twice"),
        (["--column", "tel=Fone"], '"Fone", for tel, heads no column; did you mean Phone?'),
        (["--encoding", "thay"], "--encoding must be the name of an encoding, such as cp874"),
        (["--encoding", "cp874"], "this is a workbook, which has no encoding: leave encoding out"),
        (["--delimiter", ";;"], "--delimiter must be one sign, such as"),
        (["--sheet", "Peopel"], 'there is no sheet "Peopel"; did you mean People?'),
    ],
)
def test_what_is_asked_wrongly_is_told(arguments: list[str], says: str, folder: Path) -> None:
    done = dialsim("people", "people.xlsx", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_files_without_numbers_and_without_a_list_are_told(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("a,b\n1,x\n")
    done = dialsim("people", "notes.csv", cwd=tmp_path)
    assert done.stderr == "Error: notes.csv: no column of this file holds phone numbers\n"
    (tmp_path / "bare.csv").write_text("0812345678,x\n0812345679,y\n")
    shown = dialsim("people", "bare.csv", cwd=tmp_path).stdout
    assert shown.splitlines()[-1] == (
        "To be called, the list needs cleaning: dialsim people bare.csv --clean clean.xlsx"
    )
    assert "there is no such file" in dialsim("people", "nobody.csv", cwd=tmp_path).stderr
