"""Ten analyses with public names are typed, and give what they should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import analyses

SCRIPT = Path(analyses.__file__)


@pytest.mark.slow
def test_ten_analyses_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    analyses.main()
    polars = pytest.importorskip("polars")
    assert len(polars.read_parquet(tmp_path / "out" / "calls.parquet")) > 0


@pytest.mark.slow(minutes=2)
def test_ten_analyses_are_typed() -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", str(SCRIPT)]
    checked = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=SCRIPT.parents[1]
    )
    assert checked.returncode == 0, checked.stdout
