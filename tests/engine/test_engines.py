"""Which engine runs: the one that is done first, or the one that is asked for."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dialsim
from dialsim import engine as engines
from dialsim.engine import calls_of, choose
from dialsim.errors import DialsimError
from dialsim.testing import Sketch

FEW, MANY, VERY_MANY = 1_000, 500_000, 5_000_000


def kept(monkeypatch: pytest.MonkeyPatch, is_kept: bool) -> None:
    monkeypatch.setattr(engines, "is_compiled", lambda: is_kept)


def test_few_calls_are_made_by_simpy_which_need_not_be_loaded() -> None:
    assert choose("auto", FEW) == "simpy"


def test_many_calls_are_made_by_the_compiled_engine_if_it_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept(monkeypatch, True)
    assert choose("auto", MANY) == "compiled"
    kept(monkeypatch, False)
    assert choose("auto", MANY) == "simpy"


def test_many_runs_of_few_calls_are_made_by_simpy(monkeypatch: pytest.MonkeyPatch) -> None:
    kept(monkeypatch, True)
    assert choose("auto", MANY, runs=100) == "compiled"
    assert choose("auto", MANY, runs=10_000) == "simpy"  # 50 calls a run


def test_very_many_calls_are_worth_compiling_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kept(monkeypatch, False)
    assert choose("auto", VERY_MANY) == "compiled"


@pytest.mark.parametrize("calls", [0, VERY_MANY])
def test_the_engine_asked_for_runs(calls: int) -> None:
    assert choose("simpy", calls) == "simpy"
    assert choose("compiled", calls) == "compiled"


def test_without_numba_simpy_runs_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engines, "is_available", lambda: False)
    assert choose("auto", VERY_MANY) == "simpy"
    assert caplog.records == []
    assert choose("compiled", FEW) == "simpy"
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "numba is not installed" in record.message


def test_an_engine_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(DialsimError, match="engine must be 'auto', 'simpy' or 'compiled', not 'fa"):
        dialsim.run(Sketch(1).campaign("A", "busy 1s").scenario(), engine="fast")  # type: ignore[arg-type]


def test_calls_are_reckoned_from_the_people_of_all_campaigns() -> None:
    sketch = Sketch(1).campaign("A", recipients={"count": 300}).campaign("B", "busy 1s", "busy 1s")
    assert calls_of(sketch.scenario()) == 2 * 302
    of_a_file = dialsim.load("scenarios/people-from-a-file.yaml")
    assert calls_of(of_a_file) > 100


def test_a_trace_says_which_engine_ran() -> None:
    written = Sketch(1).campaign("A", "busy 1s").scenario()
    assert dialsim.run(written).trace.engine == "simpy"
    assert dialsim.run(written, engine="compiled").trace.engine == "compiled"


def test_the_progress_of_the_compiled_engine_is_told() -> None:
    told: list[tuple[int, int]] = []
    written = Sketch(5).campaign("A", recipients={"count": 50}).scenario()
    dialsim.run(written, engine="compiled", progress=lambda done, all_: told.append((done, all_)))
    assert told[-1] == (50, 50)


def test_a_compiled_run_that_makes_draws_reports_progress_and_can_be_cancelled() -> None:
    told: list[int] = []
    long = dialsim.load("scenarios/first-campaign.yaml").with_("people=100000", "lines=100")
    dialsim.run(long, engine="compiled", progress=lambda done, _: told.append(done))
    assert any(0 < done < 50_000 for done in told)


def test_a_small_run_does_not_import_numba() -> None:
    # it stays quick
    code = (
        "import sys, dialsim\n"
        "from dialsim.cli import main\n"
        "dialsim.run(dialsim.load('scenarios/scripted.yaml')).summary\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=Path(__file__).parents[2],
        check=True,
    )
