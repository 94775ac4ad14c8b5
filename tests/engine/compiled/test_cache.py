"""The folder of compiled code, and the messages if there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialsim.engine import compiled

ROOT = Path(__file__).parents[3]
MESSAGE = "Compiling the engine: this takes some seconds, once."
RUN = (
    "import logging, dialsim\n"
    "logging.basicConfig(level=logging.INFO, format='%(message)s')\n"
    "logging.getLogger('numba').setLevel(logging.ERROR)\n"
    "result = dialsim.run(dialsim.load('scenarios/scripted.yaml'), engine='compiled')\n"
    "assert result.trace.engine == 'compiled'\n"
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of one's own for compiled code."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    compiled.folder.cache_clear()
    yield tmp_path / "kept"
    compiled.folder.cache_clear()


def test_code_is_kept_where_the_user_says(place: Path) -> None:
    assert compiled.folder().parent == place
    assert not compiled.is_compiled()
    with compiled.numba_keeps_code() as is_kept:
        assert is_kept
    assert compiled.folder().is_dir()


def test_code_is_kept_in_the_users_cache_if_nothing_is_said(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    assert compiled.folder().name.startswith("compiled-")
    assert "dialsim" in compiled.folder().parts


def test_a_place_that_cannot_be_written_is_done_without(place: Path) -> None:
    place.write_text("no folder")
    with compiled.numba_keeps_code() as is_kept:
        assert not is_kept
    assert place.read_text() == "no folder"


@pytest.mark.slow(minutes=2)
def test_the_engine_is_compiled_once_and_says_so(tmp_path: Path) -> None:
    kept = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    assert MESSAGE in said(kept)
    assert MESSAGE not in said(kept)


@pytest.mark.slow(minutes=1)
def test_the_engine_runs_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("no folder")
    assert MESSAGE in said({"NUMBA_CACHE_DIR": str(tmp_path / "kept")})


def said(environment: dict[str, str]) -> str:
    """Return the log output of a run with the compiled engine."""
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(
        [sys.executable, "-c", RUN],
        env=os.environ | path | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stderr
