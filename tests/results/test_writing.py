from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import pandas as pd
import pytest

import dialsim
from dialsim.errors import ExistingOutput, OutputError
from dialsim.results.folder import TABLES, check_place, replacing
from dialsim.results.result import Result
from results.test_summary import COSTS, JANUARY
from results.traces import HandCampaign, hand_trace

FILES = {
    *(f"{name}.parquet" for name in TABLES),
    *("webhooks.jsonl", "summary.json", "manifest.json"),
}


def hand_result() -> Result:
    voiced = HandCampaign(
        "0 0 1 scheduled\n0 0 1 released\n0 0 1 dialled 021000002 malee",
        people=3,
        name="Voiced",
        segments=True,
    )
    return Result(hand_trace([JANUARY, voiced], costs=COSTS), wall_seconds=1.5)


def held(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_result_is_written_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    place = hand_result().write(tmp_path / "deep" / "run")
    assert place == tmp_path / "deep" / "run"
    assert held(place) == FILES
    assert held(place.parent) == {"run"}


@pytest.mark.parametrize("name", TABLES)
def test_tables_come_back_from_parquet_as_they_were(name: str, tmp_path: Path) -> None:
    result = hand_result()
    place = result.write(tmp_path / "run")
    pd.testing.assert_frame_equal(pd.read_parquet(place / f"{name}.parquet"), getattr(result, name))


def test_the_summary_and_the_manifest_say_what_the_result_says(tmp_path: Path) -> None:
    result = hand_result()
    place = result.write(tmp_path / "run")
    assert (place / "summary.json").read_bytes() == result.summary.to_json()
    manifest = json.loads((place / "manifest.json").read_text())
    assert manifest["dialsim"] == dialsim.__version__
    assert (manifest["seed"], manifest["replication"], manifest["engine"]) == (1, 0, "simpy")
    assert (manifest["scenario_sha256"], manifest["wall_seconds"]) == ("0" * 64, 1.5)
    assert set(manifest["libraries"]) >= {"numpy", "pandas", "pyarrow", "simpy"}


def test_an_existing_folder_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    place = hand_result().write(tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in place.iterdir()}
    with pytest.raises(ExistingOutput, match="choose another folder, or use force=True"):
        hand_result().write(place)
    assert {path: path.stat().st_mtime_ns for path in place.iterdir()} == before


def test_force_replaces_a_result_or_an_empty_folder(tmp_path: Path) -> None:
    place = hand_result().write(tmp_path / "run")
    (place / "report.html").write_text("of the old run")
    hand_result().write(place, force=True)
    assert held(place) == FILES
    (tmp_path / "empty").mkdir()
    assert held(hand_result().write(tmp_path / "empty", force=True)) == FILES
    assert held(tmp_path) == {"run", "empty"}


def test_force_never_removes_what_is_not_a_result(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").write_text("dear")
    (tmp_path / "file").write_text("dear too")
    os.symlink(tmp_path / "photos", tmp_path / "link")
    with pytest.raises(ExistingOutput, match=r"has no manifest\.json, so it is not a result"):
        hand_result().write(tmp_path / "photos", force=True)
    for name in ("file", "link"):
        with pytest.raises(ExistingOutput, match="is not a folder; it is left alone"):
            hand_result().write(tmp_path / name, force=True)
    assert (tmp_path / "photos" / "one.jpg").read_text() == "dear"
    assert held(tmp_path) == {"photos", "file", "link"}


def test_a_place_below_a_file_is_an_error_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"cannot be written: .*file is not a folder"):
        check_place(tmp_path / "file" / "run", force=False)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_in_the_midst_leaves_the_old_result_and_no_half_one(
    error: BaseException, tmp_path: Path
) -> None:
    place = hand_result().write(tmp_path / "run")
    before = (place / "manifest.json").read_bytes()
    raised = OutputError if isinstance(error, OSError) else KeyboardInterrupt

    def fail(draft: Path) -> None:
        (draft / "calls.parquet").write_text("half")
        raise error

    with pytest.raises(raised), replacing(place, force=True) as draft:
        fail(draft)
    assert (place / "manifest.json").read_bytes() == before
    assert held(tmp_path) == {"run"}


def test_an_interrupt_between_the_two_renames_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, rename = hand_result().write(tmp_path / "run"), Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing(place, force=True):
        pass
    assert held(place) == FILES
    assert held(tmp_path) == {"run"}


def test_what_a_run_replaces_is_gone_with_all_its_files(tmp_path: Path) -> None:
    place = hand_result().write(tmp_path / "run")
    (place / "old").write_text("")
    hand_result().write(place, force=True)
    assert held(place) == FILES
    assert held(tmp_path) == {"run"}


def test_what_a_killed_run_left_is_removed_but_not_what_another_run_is_writing(
    tmp_path: Path,
) -> None:
    (tmp_path / ".run.dialsim-0123456789ab").mkdir()
    (tmp_path / ".run.dialsim-0123456789ab" / "calls.parquet").write_text("half")
    with replacing(tmp_path / "run") as draft:
        hand_result().write(tmp_path / "run")
        assert held(tmp_path) == {"run", draft.parent.name}
        (tmp_path / "run" / "manifest.json").unlink()
        for path in (tmp_path / "run").iterdir():
            path.unlink()
        (tmp_path / "run").rmdir()
    assert held(tmp_path) == {"run"}


WRITER = """
import sys
from pathlib import Path
from dialsim.results.folder import replacing
for generation in range(1_000_000):
    with replacing(Path(sys.argv[1]), force=True) as draft:
        for name in sys.argv[2:]:
            (draft / name).write_text(f"{generation} " * 50_000)
    print("written", flush=True)
"""


def start(script: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    source = Path(dialsim.__file__).parent.parent
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(source)} | environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def scenario_file(name: str) -> Path:
    return Path(__file__).parents[2] / "scenarios" / f"{name}.yaml"


def kill_writer(place: Path, generations: int, delay: float) -> None:
    """Kill a process that writes a folder over and over."""
    with start(WRITER, place, *sorted(FILES)) as writer:
        assert writer.stdout is not None
        for _ in range(generations):
            assert writer.stdout.readline() == "written\n"
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)


def assert_whole(place: Path) -> None:
    """Assert that all files exist, are complete, and belong to the same version."""
    assert held(place) == FILES
    assert len({(place / name).read_text() for name in FILES}) == 1
    assert (place / "manifest.json").read_text().count(" ") == 50_000


@pytest.mark.parametrize("kills", [2, pytest.param(150, marks=pytest.mark.slow)])
def test_kill_9_at_any_moment_leaves_the_old_folder_or_the_new_one(
    kills: int, tmp_path: Path
) -> None:
    place = tmp_path / "run"
    for number in range(kills):
        kill_writer(place, generations=1, delay=0.05 * number / kills)
        assert_whole(place)
    with replacing(place, force=True) as draft:
        (draft / "manifest.json").write_text("")
    assert held(tmp_path) == {"run"}  # whatever the killed ones left is gone


@pytest.mark.slow
def test_kill_9_before_the_first_folder_is_complete_leaves_none(tmp_path: Path) -> None:
    found = set()
    for number in range(60):
        place = tmp_path / str(number)
        kill_writer(place, generations=0, delay=0.2 * number / 60)
        found.add(place.exists())
        if place.exists():
            assert_whole(place)
    assert False in found


WRITING = "import sys, dialsim; dialsim.run(dialsim.load(sys.argv[1])).write(sys.argv[2])"


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name != "manifest.json"
    }


@pytest.mark.parametrize(
    "name", ["shared-slots", pytest.param("caller-id-fatigue", marks=pytest.mark.slow)]
)
def test_the_bytes_are_the_same_in_every_process_and_for_every_hash_seed(
    name: str, tmp_path: Path
) -> None:
    # The hash seed of this process is another one
    here = dialsim.run(dialsim.load(scenario_file(name))).write(tmp_path / "here")
    there = tmp_path / "there"
    with start(WRITING, scenario_file(name), there, PYTHONHASHSEED="4242") as writer:
        pass
    assert writer.returncode == 0
    assert digests(here) == digests(there)
    assert set(digests(here)) == FILES - {"manifest.json"} | {"scenario.yaml"}


def few() -> dialsim.Scenario:
    """The first campaign with a tenth of its people: pandas compares categories in Python."""
    return dialsim.load(scenario_file("first-campaign"), overrides=["people=600"])


def first_campaign() -> Result:
    return dialsim.run(few(), seed=7)


@pytest.mark.parametrize("name", [*TABLES, "webhooks"])
def test_a_changed_table_changes_neither_the_result_nor_its_files(
    name: str, tmp_path: Path
) -> None:
    result = first_campaign()
    before = getattr(result, name)
    taken = getattr(result, name)
    taken["recipient" if "recipient" in taken else "campaign"] = "changed"
    pd.testing.assert_frame_equal(getattr(result, name), before)
    other = first_campaign().write(tmp_path / "other")
    place = result.write(tmp_path / "run")
    for file in FILES - {"manifest.json"}:
        assert (place / file).read_bytes() == (other / file).read_bytes(), file


def test_a_cell_set_in_place_does_not_reach_the_result() -> None:
    result = first_campaign()
    calls = result.calls
    calls.loc[0, "call"] = 99
    assert result.calls.loc[0, "call"] == 1


def test_setting_a_column_of_the_property_warns() -> None:
    result = first_campaign()
    with pytest.warns(pd.errors.ChainedAssignmentError):
        result.calls["minutes"] = 1
    assert "minutes" not in result.calls


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_result_survives_pickling(engine: Literal["simpy", "compiled"]) -> None:
    result = dialsim.run(dialsim.load(scenario_file("people-from-a-file")), engine=engine)
    read = result.calls  # read tables must not stand in the way
    back = pickle.loads(pickle.dumps(result))
    pd.testing.assert_frame_equal(back.calls, read)
    assert back.summary.to_json() == result.summary.to_json()
    assert str(back.story(0)) == str(result.story(0))
    assert len(back.webhooks.body[0]) == len(result.webhooks.body[0])


def test_a_live_result_survives_pickling() -> None:
    result = Result(dialsim.Simulation(few()).run())
    back = pickle.loads(pickle.dumps(result))
    pd.testing.assert_frame_equal(back.calls, result.calls)


def test_a_written_folder_opens_as_a_result(tmp_path: Path) -> None:
    result = first_campaign()
    place = result.write(tmp_path / "run", without=["transitions"])
    opened = dialsim.open(place)
    for name in (*TABLES, "compliance"):
        pd.testing.assert_frame_equal(getattr(opened, name), getattr(result, name))
    assert opened.summary.to_json() == result.summary.to_json()
    assert opened.wall_seconds == result.wall_seconds
    assert "First campaign" in repr(opened)
    assert pickle.loads(pickle.dumps(opened)).calls.equals(result.calls)
    again = opened.write(tmp_path / "again")
    assert (again / "calls.parquet").read_bytes() == (place / "calls.parquet").read_bytes()


def test_tables_of_an_opened_folder_are_those_written(tmp_path: Path) -> None:
    place = first_campaign().write(tmp_path / "run")
    (place / "scenario.yaml").write_text("name: another")  # the tables do not need it
    assert dialsim.open(place).calls.equals(first_campaign().calls)
    with pytest.raises(dialsim.DialsimError, match=r"scenario\.yaml"):
        _ = dialsim.open(place).summary


def test_an_opened_folder_with_other_figures_says_so(tmp_path: Path) -> None:
    place = first_campaign().write(tmp_path / "run")
    (place / "summary.json").write_text("{}")
    with pytest.raises(dialsim.DialsimError, match="gives other figures now"):
        _ = dialsim.open(place).summary


def test_folders_that_are_no_run_do_not_open(tmp_path: Path) -> None:
    with pytest.raises(dialsim.DialsimError, match="is not a result of dialsim"):
        dialsim.open(tmp_path)
    (tmp_path / "manifest.json").write_text('{"scenario_sha256": "", "experiment": "sweep"}')
    with pytest.raises(OutputError, match="is the folder of a sweep, not of one run"):
        dialsim.open(tmp_path)
