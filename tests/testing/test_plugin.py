"""The plugin, by pytest's own pytester."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from dialsim.testing import Sketch
from testing.conftest import Inner

TWO_CALLS = """
from dialsim.testing import Sketch, assert_no_violations, assert_sequence

SKETCH = Sketch(lines=1).campaign("January", "busy 1s; answered 5s 90s", max_attempts=2)
"""
FILE = Sketch(2, seed=5, setup_time=None).campaign("January", recipients={"count": 40}).text


def test_loading_the_plugin_imports_nothing_heavy(outer_path: None) -> None:
    heavy = {"numpy", "pandas", "pydantic", "yaml", "simpy", "scipy", "pyarrow", "click", "rich"}
    code = "import sys, dialsim.testing.plugin; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "dialsim.testing.plugin" in loaded
    assert loaded & heavy == set()
    ours = {name for name in loaded if name.split(".")[0] == "dialsim"}
    # The checks of arguments need only what pytest itself has loaded.
    checks = {"dialsim.interface", "dialsim.interface.arguments", "dialsim.interface.phrases"}
    plugin = {"dialsim", "dialsim.errors", "dialsim.testing", "dialsim.testing.plugin"}
    assert ours == plugin | checks


def test_pytest_finds_its_way_without_a_warning(
    pytester: pytest.Pytester, plugged: list[str], outer_path: None
) -> None:
    pytester.makepyfile(
        TWO_CALLS
        + """
def test_it(dialsim_run):
    result = dialsim_run(SKETCH)
    assert_sequence(result, 0, "SCHEDULED QUEUED INITIATED BUSY |"
                               "SCHEDULED QUEUED INITIATED COMPLETED")
    assert_no_violations(result)
"""
    )
    # other plugins that are installed take longer to load than all of this
    others = {found.name for found in entry_points(group="pytest11")} - {"dialsim"}
    alone = [option for name in sorted(others) for option in ("-p", f"no:{name}")]
    pytester.runpytest_subprocess(*plugged, *alone, "-W", "error").assert_outcomes(passed=1)


def test_dialsim_run_takes_a_file_a_text_a_sketch_and_a_scenario(
    pytester: pytest.Pytester, inner: Inner
) -> None:
    pytester.mkpydir("deep")
    pytester.path.joinpath("deep", "beside.yaml").write_text(FILE)
    pytester.path.joinpath("root.yaml").write_text(FILE)
    pytester.path.joinpath("deep", "test_sources.py").write_text(
        TWO_CALLS
        + f"""
from pathlib import Path
import dialsim

FILE = '''{FILE}'''

def test_sources(dialsim_run):
    folder = Path(__file__).parent
    runs = [dialsim_run(source) for source in
            ("beside.yaml", Path("beside.yaml"), "root.yaml", folder / "beside.yaml", FILE,
             dialsim.loads(FILE))]
    assert {{run.summary.calls for run in runs}} == {{40}}
    assert {{run.trace.world.seed for run in runs}} == {{5}}
    assert len(dialsim_run(SKETCH).calls) == 2

def test_overrides_and_seed(dialsim_run):
    run = dialsim_run("beside.yaml", ["organizations.Acme.maxConcurrentCalls=7"], seed=8,
                      replication=2)
    assert run.trace.limits[0].limit == 7
    one = dialsim_run("beside.yaml", "organizations.Acme.maxConcurrentCalls=7")
    assert one.trace.limits[0].limit == 7
    assert (run.trace.world.seed, run.trace.world.replication) == (8, 2)
    assert len(dialsim_run(SKETCH, ["organizations.Acme.campaigns.January.schedule.maxAttempts=1"]
                           ).calls) == 1

def test_a_loaded_scenario_has_no_overrides(dialsim_run):
    import pytest
    with pytest.raises(dialsim.DialsimError, match="before a scenario is read"):
        dialsim_run(dialsim.loads(FILE), ["seed=3"])

def test_what_is_not_there(dialsim_run):
    import pytest
    with pytest.raises(dialsim.ScenarioError, match="nowhere.yaml"):
        dialsim_run("nowhere.yaml")
"""
    )
    inner().assert_outcomes(passed=4)


def test_dialsim_simulation_is_stepped_by_hand(pytester: pytest.Pytester, inner: Inner) -> None:
    pytester.makepyfile(
        TWO_CALLS
        + """
from dialsim.testing import at

def test_a_pause_in_time(dialsim_simulation):
    simulation = dialsim_simulation(SKETCH)
    simulation.advance(to=at("Mon 09:00:01"))
    simulation.pause("January")
    assert_sequence(simulation, 0, "SCHEDULED QUEUED INITIATED SCHEDULED")
    assert_no_violations(simulation)
    simulation.advance(hours=1)
    simulation.resume("January")
    simulation.advance(until="idle")
    assert_no_violations(simulation)
    assert simulation.now == at("Mon 11:01:41")
"""
    )
    inner().assert_outcomes(passed=1)


SEEDS = """
def test_own(dialsim_seed, dialsim_run):
    result = dialsim_run("file.yaml")
    print("own", dialsim_seed, result.trace.world.seed)

def test_no_seed():
    print("none")
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["own None 5", "none"]),
        (["--dialsim-seed", "3"], ["own 3 3", "none"]),
        (["--dialsim-seeds", "2"], ["own 1 1", "own 2 2", "none"]),
        (["--dialsim-seed", "7", "--dialsim-seeds", "2"], ["own 7 7", "own 8 8", "none"]),
    ],
)
def test_the_seed_options_repeat_the_tests_that_run_scenarios(
    pytester: pytest.Pytester, inner: Inner, arguments: list[str], expected: list[str]
) -> None:
    pytester.path.joinpath("file.yaml").write_text(FILE)
    pytester.makepyfile(SEEDS)
    result = inner("-s", "-q", *arguments)
    result.assert_outcomes(passed=len(expected))
    said = [
        line.lstrip(".") for line in result.outlines if line.lstrip(".").startswith(("own", "none"))
    ]
    assert said == expected


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--dialsim-seed", "-1"], "--dialsim-seed must be 0 or more"),
        (["--dialsim-seeds", "0"], "--dialsim-seeds must be 1 or more"),
        (["--dialsim-update", "--dialsim-seed", "2"], "traces of the scenarios' own seeds"),
        (["--dialsim-update", "--dialsim-seeds", "2"], "traces of the scenarios' own seeds"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    pytester: pytest.Pytester, inner: Inner, arguments: list[str], error: str
) -> None:
    result = inner(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *{error}*"])


def test_a_failure_says_how_to_run_the_same_again(pytester: pytest.Pytester, inner: Inner) -> None:
    pytester.path.joinpath("a file.yaml").write_text(FILE)
    pytester.makepyfile(
        test_again="""
import pytest

@pytest.mark.parametrize("limit", [3])
def test_it(dialsim_run, limit):
    dialsim_run("a file.yaml", [f"organizations.Acme.maxConcurrentCalls={limit}"], replication=4)
    dialsim_run("a file.yaml")
    dialsim_run("a file.yaml")
    assert not limit

def test_without_a_scenario():
    assert False
"""
    )
    result = inner("--dialsim-seed", "9")
    result.assert_outcomes(failed=2)
    again = result.outlines.index(next(li for li in result.outlines if "to repeat the runs" in li))
    assert result.outlines[again + 1 : again + 4] == [
        "pytest 'test_again.py::test_it[seed9-3]' --dialsim-seed 9",
        "dialsim run 'a file.yaml' --seed 9 --replication 4 "
        "--set organizations.Acme.maxConcurrentCalls=3",
        "dialsim run 'a file.yaml' --seed 9",
    ]
    assert sum("to repeat the runs" in line for line in result.outlines) == 1
    once_more = inner("test_again.py::test_it[seed9-3]", "--dialsim-seed", "9")
    once_more.assert_outcomes(failed=1)
    plain = inner("test_again.py::test_it")
    plain.stdout.fnmatch_lines(["pytest 'test_again.py::test_it[[]3]'", "dialsim run * --seed 5 *"])


def test_the_command_is_for_the_folder_where_pytest_was_started(
    pytester: pytest.Pytester, inner: Inner, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]")
    deep = pytester.mkdir("deep")
    Path(deep, "test_there.py").write_text(
        TWO_CALLS + "\n\ndef test_it(dialsim_run):\n    assert not dialsim_run(SKETCH)\n"
    )
    monkeypatch.chdir(deep)
    inner("test_there.py").stdout.fnmatch_lines(["pytest test_there.py::test_it"])
