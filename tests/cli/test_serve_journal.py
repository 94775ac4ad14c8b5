"""`dialsim serve --journal` and `dialsim run --from-journal` as separate processes."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.sandbox.failing_disks import LimitedFiles, failing_disk

from cli.program import ROOT, command, dialsim

pytestmark = pytest.mark.usefixtures("pictures_undrawn")

SCENARIO = Path(__file__).parents[2] / "scenarios" / "scripted.yaml"


class Server:
    """`dialsim serve` on a free port; its output until it serves is in `said`."""

    def __init__(self, *arguments: str | Path) -> None:
        self.journal = arguments[-1]
        self.process = subprocess.Popen(
            command("serve", *arguments, "--port", "0"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        assert self.process.stdout is not None
        self.said = ""
        while "Serving on" not in self.said:
            line = self.process.stdout.readline()
            assert line, self.process.communicate()
            self.said += line
        self.url = self.said.split("Serving on ")[1].split()[0]
        self.began: str = httpx.get(f"{self.url}/_dialsim/clock").json()["now"]

    def advance(self, span: str) -> str:
        """Move the clock on, and say where it stands."""
        move = httpx.post(f"{self.url}/_dialsim/clock/advance", json={"by": span}, timeout=600)
        now: str = move.json()["now"]
        return now

    def stop(self, how: signal.Signals) -> tuple[int, str, str]:
        """Stop it by a signal; returns its exit status and the rest of its output."""
        self.process.send_signal(how)
        said, complained = self.process.communicate(timeout=600)
        return self.process.returncode, said, complained

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the journal of a sandbox that was killed after an hour."""
    folder = tmp_path_factory.mktemp("killed")
    server = Server(SCENARIO, "--journal", folder / "team.journal")
    server.advance("1h")
    server.end()
    return folder


@pytest.fixture
def journal(tmp_path: Path, killed: Path) -> Path:
    """Return a copy of that journal, with the files that a kill leaves beside it."""
    for file in killed.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path / "team.journal"


@pytest.fixture(scope="module")
def gone_on(killed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A sandbox that goes on with such a copy."""
    folder = tmp_path_factory.mktemp("gone-on")
    shutil.copytree(killed, folder, dirs_exist_ok=True)
    server = Server("--journal", folder / "team.journal")
    yield server
    server.end()


def told_end(journal: Path) -> str:
    """Return the end of the run that a journal records."""
    told = dialsim("run", "--from-journal", journal, "--format", "json")
    end: str = json.loads(told.stdout)["end"]
    return end


def test_a_killed_sandbox_goes_on_with_its_journal_alone(gone_on: Server) -> None:
    assert f"Going on with {gone_on.journal} at {gone_on.began}" in gone_on.said
    assert gone_on.advance("1h") > gone_on.began


def test_no_other_scenario_may_be_named_again(journal: Path) -> None:
    other = dialsim("serve", SCENARIO, "--set", "seed=77", "--journal", journal, "--port", "0")
    assert other.returncode == 2
    assert f"{journal} is the journal of another scenario" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["serve"], "name a SCENARIO, or a journal to go on with: --journal FILE"),
        (["serve", "--journal", "{journal}", "--seed", "3"], "--seed and --set go with a SCENARIO"),
        (["serve", "--journal", "nowhere.journal"], "nowhere.journal can't be read: No such file"),
        (["run"], "Missing argument 'SCENARIO'"),
        (["run", "--from-journal", "{journal}", "--seed", "3"], "goes with --out, --force"),
        (["run", "--from-journal", __file__], "is not a journal of dialsim"),
        (
            ["journal", "copy", "nowhere.journal", "b"],
            "nowhere.journal can't be read: No such file",
        ),
        (["journal", "copy", __file__, "b"], "is not a journal of dialsim"),
        (["journal", "copy", "{journal}", __file__], f"{__file__} is there already"),
    ],
)
def test_what_makes_no_sense_is_said_and_ends_with_2(
    journal: Path, arguments: list[str], says: str
) -> None:
    done = dialsim(*(one.format(journal=journal) for one in arguments))
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_sandbox_on_one_journal_is_turned_away(gone_on: Server) -> None:
    second = dialsim("serve", "--journal", gone_on.journal, "--port", "0")
    assert second.returncode == 2
    assert f"{gone_on.journal} is in use" in second.stderr


@pytest.mark.parametrize(
    "how", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_sandbox_that_is_stopped_leaves_one_file_that_is_the_whole_journal(
    tmp_path: Path, how: signal.Signals
) -> None:
    server = Server(SCENARIO, "--journal", tmp_path / "team.journal")
    stood = server.advance("1h")
    assert server.stop(how) == (0, "", "")
    assert [file.name for file in tmp_path.iterdir()] == ["team.journal"]
    assert told_end((tmp_path / "team.journal").rename(tmp_path / "moved.journal")) == stood


def test_the_main_file_alone_of_a_killed_sandbox_is_refused(journal: Path) -> None:
    for beside in journal.parent.glob("team.journal-*"):
        beside.unlink()
    for words in (["serve", "--journal"], ["run", "--from-journal"], ["journal", "copy"]):
        done = dialsim(*words, journal, *(["other"] if "copy" in words else []))
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{journal} lacks its end, which was in team.journal-wal" in done.stderr
        assert "Traceback" not in done.stderr
    assert not (ROOT / "other").exists()


def test_a_journal_is_copied_after_a_kill(journal: Path) -> None:
    copy = journal.with_name("copy.journal")
    done = dialsim("journal", "copy", journal, copy)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Copied to {copy}: 1 entry\n"


@pytest.mark.slow
def test_a_journal_is_copied_while_the_sandbox_runs(gone_on: Server, tmp_path: Path) -> None:
    copy = tmp_path / "copy.journal"
    stood = gone_on.advance("1h")
    done = dialsim("journal", "copy", gone_on.journal, copy)
    assert (done.returncode, done.stderr) == (0, "")
    later = gone_on.advance("1h")
    assert later > stood
    assert told_end(gone_on.journal) == later  # also while the sandbox runs
    again = Server(SCENARIO, "--journal", copy)  # the same scenario may be named again
    assert again.said.startswith(f"Going on with {copy} at {stood}\n")
    again.end()


def test_a_sandbox_is_not_started_on_a_journal_that_it_may_not_write(
    journal: Path, tmp_path: Path
) -> None:
    with failing_disk("read-only from the start", tmp_path) as disk:
        copy = disk.folder / "team.journal"
        assert dialsim("journal", "copy", journal, copy).returncode == 0
        disk.fail()
        done = dialsim("serve", "--journal", copy, "--port", "0")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{copy} can't be written: " in done.stderr
        assert told_end(copy) == told_end(journal)


@pytest.mark.slow
def test_a_sandbox_that_can_t_write_its_journal_any_more_says_so_when_it_is_stopped(
    tmp_path: Path,
) -> None:
    journal, disk = tmp_path / "team.journal", LimitedFiles(tmp_path)
    server = Server(SCENARIO, "--journal", journal)
    stood = server.advance("1h")
    disk.pid = server.process.pid
    disk.fail()
    refused = httpx.post(f"{server.url}/_dialsim/clock/advance", json={"by": "1h"})
    assert (refused.status_code, refused.json()["code"]) == (507, "NOT_KEPT")
    says = f"Error: {journal} can't be written: disk I/O error\n"
    assert server.stop(signal.SIGTERM) == (2, "", says)
    assert told_end(journal) == stood


def test_a_sandbox_is_not_begun_where_there_is_no_room_for_a_journal(tmp_path: Path) -> None:
    with failing_disk("full", tmp_path) as disk:
        disk.fail()
        done = dialsim("serve", SCENARIO, "--journal", disk.folder / "team.journal", "--port", "0")
        assert (done.returncode, done.stdout) == (2, "")
        assert "team.journal can't be written: database or disk is full" in done.stderr
        assert not [*disk.folder.glob("team.journal*")]


def test_a_journal_is_read_as_the_run_that_it_tells_of(gone_on: Server, tmp_path: Path) -> None:
    gone_on.advance("400h")
    told = ("run", "--from-journal", gone_on.journal, "--format", "json")
    done = dialsim(*told, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    wanted = json.loads(dialsim("run", SCENARIO, "--format", "json").stdout)
    told = json.loads(done.stdout)
    figures = "finish", "people_reached", "calls", "webhooks"
    assert {name: told[name] for name in figures} == {name: wanted[name] for name in figures}
    assert (tmp_path / "out" / "report.html").is_file()
