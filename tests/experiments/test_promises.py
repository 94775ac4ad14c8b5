"""The program that measures what docs/speed.md promises writes the tables of that page."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from cli.program import ROOT


@pytest.fixture
def promises(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    known = {*sys.modules}
    yield import_module("promises")
    for name in {*sys.modules} - known:
        if Path(str(getattr(sys.modules[name], "__file__", ""))).parent == ROOT / "benchmarks":
            del sys.modules[name]


def test_a_promise_is_a_row_with_its_verdict(promises: Any) -> None:
    finding = promises.Finding
    rows = [
        promises.line(one)
        for one in (
            finding("a", 3.94, 4.0), finding("b", 4.2, 4.0), finding("c", 120, least=100),
            finding("d", 698.4, 700.0, "MiB"), finding("e", 2.5),
        )
    ]  # fmt: skip
    assert rows == [
        "| a | 3.9 × | at most 4 | PASS |",
        "| b | 4.2 × | at most 4 | FAIL |",
        "| c | 120 × | at least 100 | PASS |",
        "| d | 698 MiB | at most 700 | PASS |",
        "| e | 2.5 × |  |  |",
    ]


def test_the_tables_of_the_page_are_replaced_and_nothing_else(
    promises: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "speed.md"
    page.write_text(promises.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(promises, "PAGE", page)
    measured = promises.Measured(quick=False)
    measured.tables = {name: [f"| {name} |"] for name in ("promises", "runs", "decisions")}
    promises.write(measured)
    text = page.read_text(encoding="utf-8")
    for name in measured.tables:
        assert f"<!-- table {name} -->\n\n| {name} |\n\n<!-- end of table -->" in text
    assert text.count("<!-- end of table -->") == 3
    before = promises.Path(ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert text.rpartition("<!-- end")[2] == before.rpartition("<!-- end")[2]
    measured.tables = {"other": []}
    with pytest.raises(SystemExit, match="0 places for the table other"):
        promises.write(measured)


def test_a_program_that_fails_ends_the_measurement(promises: Any) -> None:
    with pytest.raises(SystemExit, match="ended with 3"):
        promises.spent_by("-c", "raise SystemExit(3)")
    sample = promises.spent_by("-c", "pass")
    assert 0 < sample["cpu_s"] < sample["wall_s"] * 64
    assert sample["peak_mib"] > 1
