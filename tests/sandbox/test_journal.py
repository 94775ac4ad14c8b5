"""The journal of a sandbox: committed entries are kept, and invalid files are refused."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from tests.sandbox.failing_disks import Disk, failing_disk

from dialsim.errors import JournalError
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.journal import FORMAT, Entry, EntryKind, Journal, Subject, copy_journal
from dialsim.sandbox.restart import begin, resume
from dialsim.testing import Sketch

SUBJECT = Subject(
    text="version: 1\nname: ทดสอบ\n",
    name="week.yaml",
    overrides=tuple(f"seed={n}" for n in range(12)),
    seed=2**63,
    digest="0f" * 32,
    files={"people.csv": b"tel\n0811111111\n", "../other.csv": b"\xef\xbb\xbfx"},
)
ENTRIES = [
    Entry(0, EntryKind.COMMAND, b"{}"),
    Entry(5, EntryKind.COMMAND, b'{"kind":"pause"}'),
    Entry(5, EntryKind.POSTS, bytes(range(256))),
    Entry(2**53, EntryKind.STEP, b"x" * 10_000),
]


def written(path: Path) -> Path:
    journal = Journal.create(path, SUBJECT)
    for entry in ENTRIES:
        journal.keep(entry)
    journal.close()
    return path


def test_a_journal_gives_back_what_it_was_given(tmp_path: Path) -> None:
    journal = Journal.reopen(written(tmp_path / "a.journal"))
    assert journal.subject == SUBJECT
    assert [*journal.entries()] == ENTRIES
    journal.keep(Entry(7, EntryKind.STEP, b"more"))
    journal.close()
    assert [*Journal.reopen(journal.path).entries()] == [
        *ENTRIES,
        Entry(7, EntryKind.STEP, b"more"),
    ]


def test_a_step_is_kept_until_something_else_tells_that_the_clock_came_so_far(
    tmp_path: Path,
) -> None:
    journal = Journal.create(tmp_path / "a.journal", SUBJECT)
    steps = [Entry(at, EntryKind.STEP, b"%d" % at) for at in range(5)]
    command, posts = Entry(4, EntryKind.COMMAND, b"{}"), Entry(3, EntryKind.POSTS, b"[]")
    for entry in (*steps, command, *steps[4:], posts):
        journal.keep(entry)
    journal.close()
    assert [*Journal.reopen(journal.path).entries()] == [command, steps[4], posts]


def test_what_is_kept_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    code = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from tests.sandbox.test_journal import ENTRIES, SUBJECT, Journal\n"
        f"journal = Journal.create(Path({str(path)!r}), SUBJECT)\n"
        "journal.keep(ENTRIES[0])\n"
        "journal.keep(ENTRIES[1])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == -9
    assert [*Journal.reopen(path).entries()] == ENTRIES[:2]


def test_a_journal_in_use_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.journal")
    first = Journal.reopen(path)
    with pytest.raises(JournalError, match="in use"):
        Journal.reopen(path)
    first.close()
    Journal.reopen(path).close()


def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("This is no journal.\n" * 50)
    other = tmp_path / "other.sqlite"
    database = sqlite3.connect(other)
    database.execute("CREATE TABLE entries (n INTEGER)")
    database.close()
    for path, says in ((text, "is not a journal"), (other, "a database, but not a journal")):
        before = path.read_bytes()
        with pytest.raises(JournalError, match=says):
            Journal.reopen(path)
        assert path.read_bytes() == before
    with pytest.raises(JournalError, match="No such file"):
        Journal.reopen(tmp_path / "nowhere")


@pytest.mark.parametrize(("version", "age"), [(1, "an older"), (FORMAT + 1, "a newer")])
def test_a_newer_or_far_older_journal_is_refused(tmp_path: Path, version: int, age: str) -> None:
    path = written(tmp_path / "a.journal")
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {version}")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    with pytest.raises(JournalError, match=f"format {version}, made by {age} dialsim"):
        Journal.reopen(path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET at = at + 1 WHERE n = 2",
        "UPDATE entries SET kind = 'step' WHERE n = 2",
        "UPDATE entries SET kind = 'other' WHERE n = 2",
        "UPDATE entries SET body = x'00' WHERE n = 3",
        "DELETE FROM entries WHERE n = 2",
        "UPDATE entries SET n = -n WHERE n = 1",
    ],
)
def test_an_entry_that_was_changed_is_noticed(tmp_path: Path, change: str) -> None:
    path = written(tmp_path / "a.journal")
    database = sqlite3.connect(path)
    database.execute(change)
    database.commit()
    database.close()
    journal = Journal.reopen(path)
    with pytest.raises(JournalError, match="is damaged: entry"):
        list(journal.entries())
    journal.close()


def test_a_changed_byte_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    content = written(tmp_path / "a.journal").read_bytes()
    chance, path, noticed = random.Random(1), tmp_path / "b.journal", 0
    for _ in range(60):
        changed = bytearray(content)
        changed[chance.randrange(len(content))] ^= chance.randrange(1, 256)
        path.write_bytes(changed)
        try:
            journal = Journal.reopen(path)
            try:
                assert ([*journal.entries()], journal.subject) == (ENTRIES, SUBJECT)
            finally:
                journal.close()
        except JournalError:
            noticed += 1
    assert noticed > 20


def test_a_truncated_journal_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.journal")
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(JournalError, match="damaged"):
        list(Journal.reopen(path).entries())


# -- a journal that is not whole -------------------------------------------------------------------


def entries_of(path: Path) -> list[Entry]:
    with closing(Journal.read(path)) as journal:
        return [*journal.entries()]


def test_the_main_file_of_an_open_journal_is_refused_without_its_log(tmp_path: Path) -> None:
    """However much of the log has been moved to the main file: it is begun anew several times."""
    (tmp_path / "copy").mkdir()
    path, copy, chance = tmp_path / "a.journal", tmp_path / "copy" / "a.journal", random.Random(2)
    journal = Journal.create(path, SUBJECT)
    log_sizes, kept = set(), []
    for n in range(3_000):
        kept.append(Entry(n, EntryKind.COMMAND, b"{}" + b" " * chance.randrange(2_000)))
        journal.keep(kept[-1])
        if chance.random() < 0.02 or n in (0, 2_999):
            log_sizes.add(_log(path).stat().st_size)
            shutil.copy(path, copy)
            with pytest.raises(JournalError, match=r"lacks its end, which was in a\.journal-wal"):
                Journal.reopen(copy)
            with pytest.raises(JournalError, match="`dialsim journal copy`"):
                Journal.read(copy)
    assert max(log_sizes) < 10 * 2**20  # it doesn't grow for ever
    journal.close()
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["a.journal"]
    shutil.copy(path, copy)
    assert entries_of(copy) == kept


def test_a_journal_that_another_program_has_looked_at_after_a_kill_is_whole(tmp_path: Path) -> None:
    """The last program to close a database, `sqlite3` for instance, merges its log and removes
    it.
    """
    path, killed = tmp_path / "a.journal", tmp_path / "b.journal"
    journal = Journal.create(path, SUBJECT)
    for entry in ENTRIES:
        journal.keep(entry)
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{killed}{suffix}")
    journal.close()
    with closing(sqlite3.connect(killed)) as database:
        database.execute("SELECT count(*) FROM entries").fetchall()
    assert not _log(killed).exists()
    assert entries_of(killed) == ENTRIES


@pytest.mark.parametrize("lost", [1, 2, 4])
def test_a_journal_without_its_last_entries_is_refused(tmp_path: Path, lost: int) -> None:
    path = written(tmp_path / "a.journal")
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"DELETE FROM entries WHERE n > {4 - lost}")
        database.commit()
    says = f"lacks its end: there must be 4 entries, and there are {4 - lost}"
    with pytest.raises(JournalError, match=says):
        entries_of(path)


@pytest.mark.parametrize("part", ["ทดสอบ".encode(), b"0811111111", b"seed=7", b"week.yaml"])
def test_a_flipped_bit_in_the_scenario_is_damage_and_named_so(tmp_path: Path, part: bytes) -> None:
    written(tmp_path / "a.journal")
    content = (tmp_path / "a.journal").read_bytes()
    place, path, chance = content.index(part), tmp_path / "b.journal", random.Random(3)
    for _ in range(20):
        changed = bytearray(content)
        changed[place + chance.randrange(len(part))] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(JournalError, match=f"{path} is damaged: the scenario in it, or"):
            Journal.reopen(path)


# -- formats and modes -----------------------------------------------------------------------------


def mode_of(file: Path) -> int:
    return file.stat().st_mode & 0o777


def test_nobody_else_may_read_a_journal_or_what_is_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.journal").touch(0o644)
    journal = Journal.create(tmp_path / "a.journal", SUBJECT)
    journal.keep(ENTRIES[0])
    names = {file.name: mode_of(file) for file in tmp_path.iterdir()}
    files = ("a.journal", "a.journal-wal", "a.journal-shm", "a.journal.lock")
    assert names == dict.fromkeys(files, 0o600)
    journal.close()
    copy_journal(tmp_path / "a.journal", tmp_path / "b.journal")
    assert mode_of(tmp_path / "b.journal") == 0o600


# -- reading and copying ---------------------------------------------------------------------------


def test_a_journal_is_read_and_copied_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    journal = Journal.create(path, SUBJECT)
    journal.keep(ENTRIES[0])
    with closing(Journal.read(path)) as reading:
        journal.keep(ENTRIES[1])
        assert [*reading.entries()] == ENTRIES[:1]  # all is of the moment at which it was opened
        assert reading.subject == SUBJECT
    assert copy_journal(path, tmp_path / "b.journal") == 2
    with (
        closing(sqlite3.connect(path)) as source,
        closing(sqlite3.connect(tmp_path / "c.journal")) as target,
    ):
        source.backup(target)  # what `.backup` does in the program `sqlite3`
    assert entries_of(tmp_path / "c.journal") == ENTRIES[:2]
    journal.keep(ENTRIES[2])
    assert entries_of(tmp_path / "b.journal") == ENTRIES[:2]
    assert entries_of(path) == ENTRIES[:3]
    assert not _log(tmp_path / "b.journal").exists()
    again = Journal.reopen(tmp_path / "b.journal")
    assert [*again.entries()] == ENTRIES[:2]
    again.keep(ENTRIES[3])
    again.close()
    journal.close()


def test_reading_changes_nothing_of_what_a_kill_has_left(tmp_path: Path) -> None:
    (tmp_path / "killed").mkdir()
    journal = Journal.create(tmp_path / "a.journal", SUBJECT)
    for entry in ENTRIES:
        journal.keep(entry)
    names = ("a.journal", "a.journal-wal")
    for name in names:
        shutil.copy(tmp_path / name, tmp_path / "killed" / name)
    journal.close()
    path = tmp_path / "killed" / "a.journal"
    before = [(tmp_path / "killed" / name).read_bytes() for name in names]
    assert entries_of(path) == ENTRIES
    copy_journal(path, tmp_path / "b.journal")
    assert [(tmp_path / "killed" / name).read_bytes() for name in names] == before
    assert entries_of(tmp_path / "b.journal") == ENTRIES


def test_a_copy_takes_the_place_of_nothing_and_none_is_made_of_a_damaged_journal(
    tmp_path: Path,
) -> None:
    path, target = written(tmp_path / "a.journal"), tmp_path / "b.journal"
    target.write_text("mine")
    with pytest.raises(JournalError, match=f"{target} is there already"):
        copy_journal(path, target)
    assert target.read_text() == "mine"
    target.unlink()
    with pytest.raises(JournalError, match="can't be written: No such file"):
        copy_journal(path, tmp_path / "nowhere" / "b.journal")
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE entries SET at = at + 1 WHERE n = 2")
        database.commit()
    with pytest.raises(JournalError, match="is damaged: entry 2"):
        copy_journal(path, target)
    assert not target.exists()


# -- what can't be written -------------------------------------------------------------------------


@pytest.fixture(params=["full", "failing fsync", "read-only"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    with failing_disk(request.param, tmp_path) as disk:
        yield disk


def test_what_can_t_be_written_is_not_in_the_journal_and_what_comes_later_is(disk: Disk) -> None:
    path = disk.folder / "a.journal"
    journal = Journal.create(path, SUBJECT)
    journal.keep(ENTRIES[0])
    disk.fail()
    for _ in range(3):
        with pytest.raises(JournalError, match=f"{path} can't be written: {disk.says}"):
            journal.keep(ENTRIES[3])
    assert journal.error is None  # nothing is owed
    assert entries_of(path) == ENTRIES[:1]
    disk.recover()
    journal.keep(ENTRIES[1])
    assert entries_of(path) == ENTRIES[:2]
    journal.close()
    assert entries_of(path) == ENTRIES[:2]


def test_what_has_happened_is_owed_and_comes_before_what_is_kept_next(disk: Disk) -> None:
    path = disk.folder / "a.journal"
    journal = Journal.create(path, SUBJECT)
    step = Entry(3, EntryKind.STEP, b"3")
    journal.keep(step)
    refused = Entry(4, EntryKind.COMMAND, b"x" * 5_000)
    journal.keep(refused)  # takes the place of the step
    disk.fail()
    journal.take_back()
    assert journal.error is not None
    posts = Entry(3, EntryKind.POSTS, b"y" * 5_000)
    journal.note(posts)
    assert disk.says in journal.error
    with pytest.raises(JournalError, match="can't be written"):
        journal.keep(ENTRIES[3])
    with pytest.raises(JournalError, match="can't be written"):
        journal.write_pending()
    assert entries_of(path) == [refused]
    disk.recover()
    journal.keep(ENTRIES[3])
    assert journal.error is None
    assert entries_of(path) == [posts, ENTRIES[3]]
    journal.close()


def test_a_command_that_is_taken_back_leaves_what_was_there_before(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "a.journal", SUBJECT)
    step, command = Entry(3, EntryKind.STEP, b"3"), Entry(4, EntryKind.COMMAND, b"{}")
    for before in ([], [step], [command]):
        for entry in before:
            journal.keep(entry)
        kept = entries_of(journal.path)
        journal.keep(command)
        journal.take_back()
        assert entries_of(journal.path) == kept
    journal.close()
    assert entries_of(journal.path) == [command]


def test_what_is_owed_when_it_is_closed_is_told(disk: Disk) -> None:
    journal = Journal.create(disk.folder / "a.journal", SUBJECT)
    journal.keep(ENTRIES[0])
    disk.fail()
    journal.note(Entry(2**53, EntryKind.POSTS, b"y" * 5_000))
    with pytest.raises(JournalError, match="can't be written"):
        journal.close()
    disk.recover()
    assert entries_of(journal.path) == ENTRIES[:1]


@pytest.mark.parametrize("recovers", [False, True])
def test_a_log_that_can_t_be_moved_to_the_main_file_stays_and_is_all_of_the_journal(
    tmp_path: Path, recovers: bool
) -> None:
    path, kept = tmp_path / "a.journal", []
    with failing_disk("failing fsync of the main file", tmp_path) as disk:
        journal = Journal.create(path, SUBJECT)
        disk.fail()
        with pytest.raises(JournalError, match="can't be written: disk I/O error"):
            keep_on(journal, kept)
        assert len(kept) > 300
        assert entries_of(path) == kept
        if recovers:
            disk.recover()
            kept.append(Entry(2**53, EntryKind.COMMAND, b"{}"))
            journal.keep(kept[-1])
            disk.fail()
        journal.close()
        assert _log(path).exists() != recovers
        disk.recover()
        assert entries_of(path) == kept
        again = Journal.reopen(path)
        assert [*again.entries()] == kept
        again.close()
        assert entries_of(path) == kept


def keep_on(journal: Journal, kept: list[Entry]) -> None:
    while True:
        entry = Entry(len(kept), EntryKind.COMMAND, b"{}")
        journal.keep(entry)
        kept.append(entry)


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def test_where_a_journal_can_t_be_made_nothing_is_left(tmp_path: Path) -> None:
    with failing_disk("full", tmp_path) as disk:
        disk.fail()
        with pytest.raises(JournalError, match="can't be written: database or disk is full"):
            Journal.create(disk.folder / "a.journal", SUBJECT)
        assert not [*disk.folder.glob("a.journal*")]


def test_a_journal_that_may_not_be_written_is_read_but_not_gone_on_with(tmp_path: Path) -> None:
    with failing_disk("read-only from the start", tmp_path) as disk:
        path = written(disk.folder / "a.journal")
        disk.fail()
        with pytest.raises(JournalError, match=r"can't be written: (Read-only|Permission)"):
            Journal.reopen(path)
        assert entries_of(path) == ENTRIES
        assert copy_journal(path, tmp_path / "b.journal") == len(ENTRIES)
        disk.recover()


def test_a_journal_of_an_earlier_version_goes_on_with_its_ids(tmp_path: Path) -> None:
    path, scenario = tmp_path / "a.journal", Sketch(lines=1).campaign("January", "busy 1s")

    def ids(core: SandboxCore) -> list[str]:
        [account] = core.accounts
        [view] = account.views
        [agent] = account.agents
        view.catch_up()
        listed = [view.call(0, core.at)[name] for name in ("id", "sessionId")]
        return [account.identifier, view.identifier, str(agent["id"]), *map(str, listed)]

    new = begin(path, scenario.scenario())
    new.simulation.move_to(new.at + 1)
    found = ids(new)
    assert new.journal is not None
    new.journal.close()
    assert {UUID(one).version for one in found} == {4}
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA user_version = 2")
    former = resume(path)
    former.simulation.move_to(former.at + 1)
    assert ids(former) == [one[:14] + "8" + one[15:] for one in found]
    assert former.journal is not None
    former.journal.close()
    assert Journal.read(path)._format() == 2  # and so next time
