"""The file that a sandbox is kept in: what is committed is there, and what is wrong is refused."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from dialsim.sandbox.journal import Entry, Journal, JournalError, Kind, Subject

SUBJECT = Subject(
    text="version: 1\nname: ทดสอบ\n",
    name="week.yaml",
    overrides=tuple(f"seed={n}" for n in range(12)),
    seed=2**63,
    digest="0f" * 32,
    files={"people.csv": b"tel\n0811111111\n", "../other.csv": b"\xef\xbb\xbfx"},
)
ENTRIES = [
    Entry(0, Kind.COMMAND, b"{}"),
    Entry(5, Kind.COMMAND, b'{"kind":"pause"}'),
    Entry(5, Kind.POSTS, bytes(range(256))),
    Entry(2**53, Kind.STEP, b"x" * 10_000),
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
    journal.keep(Entry(7, Kind.STEP, b"more"))
    journal.close()
    assert [*Journal.reopen(journal.path).entries()] == [*ENTRIES, Entry(7, Kind.STEP, b"more")]


def test_a_step_is_kept_until_something_else_tells_that_the_clock_came_so_far(
    tmp_path: Path,
) -> None:
    journal = Journal.create(tmp_path / "a.journal", SUBJECT)
    steps = [Entry(at, Kind.STEP, b"%d" % at) for at in range(5)]
    command, posts = Entry(4, Kind.COMMAND, b"{}"), Entry(3, Kind.POSTS, b"[]")
    for entry in (*steps, command, *steps[4:], posts):
        journal.keep(entry)
    journal.close()
    assert [*Journal.reopen(journal.path).entries()] == [command, steps[4], posts]


def test_what_is_committed_survives_a_kill_and_what_is_not_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    code = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from tests.sandbox.test_journal import ENTRIES, SUBJECT, Journal\n"
        f"journal = Journal.create(Path({str(path)!r}), SUBJECT)\n"
        "journal.keep(ENTRIES[0])\n"
        "journal.keep(ENTRIES[1])\n"
        "journal.commit()\n"
        "journal.keep(ENTRIES[2])\n"
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


def test_a_newer_journal_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.journal")
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 2")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    with pytest.raises(JournalError, match="format 2, made by a newer dialsim"):
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
