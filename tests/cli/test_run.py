"""`dialsim run` as a planner uses it."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pandas as pd
import pytest

from cli.program import ROOT, SCRIPTED, command, dialsim, dialsim_process
from dialsim.cli import main

pytestmark = pytest.mark.usefixtures("pictures_undrawn")

TABLES = ("calls", "transitions", "recipients", "campaigns")


def digests(folder: Path) -> dict[str, str]:
    """Return digests of every file but the manifest, which contains the wall time."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name != "manifest.json"
    }


def test_the_summary_of_a_scenario_without_chance_is_this_text() -> None:
    done = dialsim("run", SCRIPTED)
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout == (ROOT / "tests/cli/scripted.txt").read_text(encoding="utf-8")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_warnings_are_told_by_every_command_that_reads_the_file() -> None:
    override = "organizations.0.campaigns.0.schedule.startDateTime=2026-01-05T09:00"
    said = "Warning: Without an offset an instant of a schedule is UTC"
    assert dialsim("validate", SCRIPTED, "--set", override).stderr.startswith(said)
    assert said in dialsim("run", SCRIPTED, "--set", override).stdout


def test_a_buddhist_year_ends_the_command_with_the_year_that_is_meant() -> None:
    override = "organizations.0.campaigns.0.schedule.startDateTime=2569-01-05T09:00"
    for name in ("validate", "run"):
        done = dialsim(name, SCRIPTED, "--set", override)
        assert (done.returncode, done.stdout) == (2, "")
        assert "2569 is 2026, so write 2026-01-05T09:00:00+07:00" in done.stderr


def test_both_engines_say_the_same_and_which_of_them_ran(tmp_path: Path) -> None:
    said = {}
    for engine in ("simpy", "compiled"):
        asked = ("--engine", engine, "--what-if", "2", "--jobs", "1")
        done = dialsim("run", SCRIPTED, *asked, "--out", tmp_path / engine)
        assert (done.returncode, done.stderr) == (0, "")
        said[engine] = done.stdout.replace(str(tmp_path / engine), "out")
        manifest = json.loads((tmp_path / engine / "manifest.json").read_bytes())
        assert manifest["engine"] == engine
        assert "numba" in manifest["libraries"]
    assert "(seed 1, SimPy)" in said["simpy"]
    assert said["compiled"] == said["simpy"].replace("SimPy", "compiled engine")
    one, other = digests(tmp_path / "simpy"), digests(tmp_path / "compiled")
    assert one == other


def test_without_numba_simpy_runs_and_says_so() -> None:
    # numba has no wheels for some platforms; None in sys.modules makes its import fail
    code = (
        "import sys, importlib.util as util\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'numba' else real(name, *rest)\n"
        "sys.modules['numba'] = None\n"
        "from dialsim.cli import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", SCRIPTED, "--engine", "compiled"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "(seed 1, SimPy)" in done.stdout
    assert "numba is not installed: the SimPy engine runs" in " ".join(done.stderr.split())


def test_every_table_is_written_and_the_folder_is_named(tmp_path: Path) -> None:
    done = dialsim("run", SCRIPTED, "--what-if", "0", "--out", tmp_path / "out")
    assert done.returncode == 0
    assert done.stdout.endswith(f"Written to {tmp_path / 'out'}\n")
    for table in TABLES:
        assert len(pd.read_parquet(tmp_path / "out" / f"{table}.parquet")) > 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "nothing temporary is left"


def test_format_json_prints_the_summary_that_is_written(tmp_path: Path) -> None:
    asked = ("--what-if", "0", "--out", tmp_path / "out", "--format", "json")
    done = dialsim("run", SCRIPTED, *asked)
    assert json.loads(done.stdout) == json.loads((tmp_path / "out/summary.json").read_text())


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    scenario = "scenarios/people-from-a-file.yaml"
    for number in (1, 2):
        dialsim_process(
            *("run", scenario, "--what-if", "0", "--out", tmp_path / str(number)),
            PYTHONHASHSEED=str(number),
        )
    assert digests(tmp_path / "1") == digests(tmp_path / "2")
    dialsim("run", scenario, "--what-if", "0", "--seed", "2", "--out", tmp_path / "3")
    assert digests(tmp_path / "3")["calls.parquet"] != digests(tmp_path / "1")["calls.parquet"]


def test_an_override_counts_as_if_it_stood_in_the_file() -> None:
    setting = "organizations.Acme.maxConcurrentCalls=0"
    done = dialsim("run", SCRIPTED, "--set", setting, "--format", "json")
    assert json.loads(done.stdout)["people_stalled"] == 4


def test_an_existing_folder_is_refused_before_anything_is_simulated(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert dialsim("run", SCRIPTED, "--what-if", "0", "--out", out).returncode == 0
    before = digests(out)
    done = dialsim("run", SCRIPTED, "--what-if", "0", "--out", out, "--set", "seed=5")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (f"Error: {out} exists already; choose another folder, or use --force\n")
    assert digests(out) == before
    assert dialsim("run", SCRIPTED, "--what-if", "0", "--out", out, "--force").returncode == 0


def test_force_does_not_replace_a_folder_that_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    done = dialsim("run", SCRIPTED, "--out", tmp_path, "--force")
    assert done.returncode == 2
    assert (tmp_path / "precious.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("run",), "Missing argument 'SCENARIO'"),
        (("run", SCRIPTED, "--seed", "-1"), "Invalid value for '--seed'"),
        (("run", SCRIPTED, "--frmat", "json"), "Did you mean '--format'?"),
        (("run", "scenarios/no-such-file.yaml"), "scenarios/no-such-file.yaml: "),
        (("run", "scenarios"), "scenarios: "),
        (("run", SCRIPTED, "--set", "organizations.Nobody.name=X"), "--set organizations.Nobody"),
        (("runn", SCRIPTED), "No such command 'runn'"),
    ],
)
def test_wrong_use_is_status_2_with_a_reason_and_no_traceback(
    arguments: tuple[str, ...], reason: str
) -> None:
    done = dialsim(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_a_single_problem_stands_in_its_line_as_one_of_many_does(tmp_path: Path) -> None:
    (tmp_path / "bare.yaml").write_text("name: Bare\n")
    done = dialsim("run", "bare.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "bare.yaml:1:1: organizations is required\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("schema",),
        pytest.param(("validate", SCRIPTED), marks=pytest.mark.slow),
        pytest.param(("run", SCRIPTED), marks=pytest.mark.slow),
    ],
)
def test_output_that_the_system_refuses_is_told_without_a_traceback(
    arguments: tuple[str, ...],
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command(*arguments),
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "Error: the system says: [Errno 28] No space left on device\n"


OTHERS = [
    ("run", SCRIPTED), ("run", SCRIPTED, "--format", "json"), ("run", "--help"),
    ("schema",), ("validate", SCRIPTED),
    ("plan", SCRIPTED, "--vary", "organizations.Acme.maxConcurrentCalls=1..3",
     "--goal", "mean(people_reached) >= 4", "--replications", "2", "--jobs", "1"),
]  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        *(pytest.param(other, marks=pytest.mark.slow) for other in OTHERS),
    ],
)
def test_a_reader_who_stops_reading_ends_it_quietly(arguments: tuple[str, ...]) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(command(*arguments), cwd=ROOT, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()
    assert (process.returncode, said) == (141, b"")


def test_what_is_written_to_a_folder_is_there_whoever_reads_the_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("run", SCRIPTED, "--what-if", "0", "--out", str(tmp_path / "out"))
    read, written = os.pipe()
    os.close(read)
    monkeypatch.setattr("sys.argv", ["dialsim", *run])
    monkeypatch.setattr("dialsim.cli.program.drop_output", lambda: None)  # not of this process
    monkeypatch.chdir(ROOT)
    with (
        os.fdopen(written, "w") as nobody,
        redirect_stdout(nobody),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert (ended.value.code, capsys.readouterr().err) == (141, "")
    assert (tmp_path / "out" / "summary.json").is_file()


def test_names_in_thai_are_no_failure_where_the_output_knows_no_thai(tmp_path: Path) -> None:
    text = (ROOT / SCRIPTED).read_text(encoding="utf-8").replace("On paper", "มกราคม")
    (tmp_path / "thai.yaml").write_text(text, encoding="utf-8")
    done = dialsim_process("run", tmp_path / "thai.yaml", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 of 4 people reached" in done.stdout


def test_an_interrupted_run_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dialsim.report.writing.run_page", interrupt)
    done = dialsim("run", SCRIPTED, "--what-if", "0", "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (130, "\nInterrupted: nothing was written.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_ctrl_c_ends_a_run_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    people = "organizations.Acme.campaigns.January.recipients.count=150000"
    arguments = ("run", "scenarios/first-campaign.yaml", "--set", people)
    terminal, its_end = pty.openpty()
    process = subprocess.Popen(
        command(*arguments, "--out", tmp_path / "out"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=its_end,
    )
    os.close(its_end)
    shown = b""
    while b"000 people" not in shown:  # the progress bar: it simulates
        shown += os.read(terminal, 4096)
    process.send_signal(signal.SIGINT)
    while b"Interrupted: nothing was written." not in shown:
        shown += os.read(terminal, 4096)
    os.close(terminal)
    stdout, _ = process.communicate(timeout=600)
    assert process.returncode == 130
    # stdout contains the bound printed before, and nothing else
    assert stdout.startswith(b"150,000 people need at least ")
    assert stdout.count(b"\n") == 1
    assert b"Traceback" not in shown
    assert list(tmp_path.iterdir()) == []


def test_a_folder_has_a_workbook_and_lacks_tables_as_asked(tmp_path: Path) -> None:
    place = tmp_path / "out"
    options = ("--what-if", "0", "--excel", "--without", "webhooks", "--without", "transitions")
    done = dialsim("run", SCRIPTED, "--out", place, *options)
    assert (done.returncode, done.stderr) == (0, "")
    held = {path.name for path in place.iterdir()}
    assert "results.xlsx" in held
    assert held.isdisjoint({"webhooks.jsonl", "transitions.parquet"})
    manifest = json.loads((place / "manifest.json").read_bytes())
    assert manifest["without"] == ["transitions", "webhooks"]
    before = (place / "report.html").read_bytes()
    assert dialsim("report", place, "--what-if", "0").returncode == 0
    assert (place / "report.html").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--excel"], "--excel writes a file: it goes with --out"),
        (["--excel", "--replications", "2"], "--excel writes a file: it goes with --out"),
        (["--without", "calls"], "it goes with --out"),
        (["--without", "calls", "--out", "x", "--replications", "2"], "it doesn't go with many"),
        (["--without", "summary", "--out", "x"], "is not one of 'calls', 'transitions', 'recip"),
    ],
)
def test_what_is_written_of_one_run_goes_with_a_folder(options: list[str], says: str) -> None:
    done = dialsim("run", SCRIPTED, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in " ".join(done.stderr.replace("│", "").split())


def test_a_language_is_that_of_the_first_answer_and_the_sheet_and_stays(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = dialsim("run", SCRIPTED, "--language", "th", "--what-if", "0", "--out", folder)
    assert done.returncode == 0
    assert "First estimate" not in done.stdout
    assert "โทรเสร็จวัน" in done.stdout
    assert "2569 เวลา" in done.stdout
    sheet = (folder / "sheet.html").read_text("utf-8")
    assert '<html lang="th"' in sheet
    assert dialsim("report", folder, "--what-if", "0").returncode == 0
    assert (folder / "sheet.html").read_text("utf-8") == sheet
    assert dialsim("report", folder, "--what-if", "0", "--language", "en").returncode == 0
    assert '<html lang="en"' in (folder / "sheet.html").read_text("utf-8")


def test_an_unknown_language_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    done = dialsim("run", SCRIPTED, "--language", "xx", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "'xx' is not one of 'en', 'th'" in done.stderr
    assert not (tmp_path / "out").exists()


def test_many_runs_print_the_decision_in_the_language(tmp_path: Path) -> None:
    arguments = ("--replications", "2", "--what-if", "0", "--out", tmp_path / "out")
    done = dialsim("run", SCRIPTED, "--language", "th", *arguments)
    assert done.returncode == 0
    assert "ตามแผนนี้" in done.stdout.splitlines()[1]
    assert "ตามแผนนี้" in (tmp_path / "out" / "sheet.html").read_text("utf-8")
