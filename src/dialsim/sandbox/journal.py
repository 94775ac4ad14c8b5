"""The journal: a file that keeps all that happened to a sandbox, so that it can be gone on with.

It is an SQLite database with the scenario, the files that the scenario names, and one entry for
everything that is not a consequence of what came before: commands, steps of the clock, and how
POSTs came out. Entries are numbered without gaps, and each carries a check sum over itself and the
one before, so that what a disk or an editor has changed is noticed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from dialsim.interface.errors import DialsimError
from dialsim.version import __version__

APPLICATION_ID = 0x6469616C
"""Marks an SQLite file as a journal of dialsim: the letters `dial`."""
FORMAT = 1

_SCHEMA = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE files (name TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE entries (n INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, "
    "body BLOB NOT NULL, sum INTEGER NOT NULL)",
)


class JournalError(DialsimError):
    """A journal that can't be used."""


class Kind(StrEnum):
    """What an entry tells."""

    COMMAND = "command"
    STEP = "step"  # the body is how long the log was, see `Trace.size`
    POSTS = "posts"


_KINDS = {kind.value: kind for kind in Kind}


class Entry(NamedTuple):
    """What happened at an instant (ms); `body` depends on the kind."""

    at: int
    kind: Kind
    body: bytes


class _Step(NamedTuple):
    at: int
    sum_before: int


@dataclass(frozen=True, slots=True)
class Subject:
    """What a journal is of: a scenario as text, the files it names, and how it was run."""

    text: str
    name: str
    overrides: tuple[str, ...]
    seed: int
    digest: str
    files: Mapping[str, bytes]


class Journal:
    """A journal that is open; one sandbox at a time writes to it.

    What `keep` is given is on file, and survives the end of the process at any moment, when
    `commit` returns.
    """

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        """For `create` and `reopen`."""
        self.path = path
        self._database = database
        self._count = 0
        self._sum = 0
        self._open = False  # whether something was kept and not committed
        self._step: _Step | None = None  # the last entry, if that is a step kept just now

    @classmethod
    def create(cls, path: Path, subject: Subject) -> Journal:
        """A new journal at a place where there is no file, or an empty one."""
        about = {
            "dialsim": __version__,
            "scenario": subject.text,
            "name": subject.name,
            "seed": str(subject.seed),
            "digest": subject.digest,
            **{f"override {n}": text for n, text in enumerate(subject.overrides)},
        }
        database = _connect(path)
        with _explained(path):
            database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {FORMAT}")
            database.execute("BEGIN")
            for statement in _SCHEMA:
                database.execute(statement)
            database.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            database.executemany("INSERT INTO files VALUES (?, ?)", subject.files.items())
            database.execute("COMMIT")
        _outlive_the_program(database)
        journal = cls(path, database)
        journal._sum = _sum_of(subject)
        return journal

    @classmethod
    def reopen(cls, path: Path) -> Journal:
        """The journal in a file.

        Raises JournalError, and changes nothing, if it is damaged, of another program, of a newer
        dialsim, or in use.
        """
        _check_header(path)
        database = _connect(path)
        try:
            _check_whole(path, database)
            _outlive_the_program(database)
        except BaseException:
            database.close()
            raise
        return cls(path, database)

    # -- reading ----------------------------------------------------------------------------------

    @property
    def subject(self) -> Subject:
        """What the journal is of."""
        with _explained(self.path):
            about = dict(self._database.execute("SELECT name, value FROM about"))
            files = dict(self._database.execute("SELECT name, content FROM files"))
        try:
            overrides = [about[name] for name in sorted(about, key=_place) if _place(name) >= 0]
            return Subject(
                text=about["scenario"],
                name=about["name"],
                overrides=tuple(overrides),
                seed=int(about["seed"]),
                digest=about["digest"],
                files=files,
            )
        except (KeyError, ValueError) as error:
            raise JournalError(f"{self.path} is damaged: {error} is missing or wrong") from None

    def entries(self) -> Iterator[Entry]:
        """All entries in the order in which things happened.

        Raises JournalError at the first that is not as it was written.
        """
        self._count, self._sum = 0, _sum_of(self.subject)
        rows = self._database.execute("SELECT n, at, kind, body, sum FROM entries ORDER BY n")
        with _explained(self.path):
            for n, at, kind, body, total in rows:
                self._sum = _sum(self._sum, at, kind, body)
                self._count += 1
                if n != self._count or total != self._sum or kind not in _KINDS:
                    raise JournalError(
                        f"{self.path} is damaged: entry {self._count} is not as it was written"
                    )
                yield Entry(at, _KINDS[kind], body)

    # -- writing ----------------------------------------------------------------------------------

    def keep(self, entry: Entry) -> None:
        """Write an entry behind the others; `entries` was read to its end before.

        It takes the place of a step right before it: that the clock came so far, it tells as well.
        """
        with _explained(self.path):
            self._begin()
            if self._step is not None and self._step.at <= entry.at:
                self._database.execute("DELETE FROM entries WHERE n = ?", (self._count,))
                self._count, self._sum = self._count - 1, self._step.sum_before
            self._step = _Step(entry.at, self._sum) if entry.kind is Kind.STEP else None
            self._count += 1
            self._sum = _sum(self._sum, entry.at, entry.kind, entry.body)
            row = self._count, entry.at, entry.kind, entry.body, self._sum
            self._database.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", row)

    def _begin(self) -> None:
        if not self._open:
            self._database.execute("BEGIN")
            self._open = True

    def commit(self) -> None:
        """Have everything on file that was given to `keep`."""
        if self._open:
            with _explained(self.path):
                self._database.execute("COMMIT")
            self._open = False

    def close(self) -> None:
        """Have everything on file, and close it."""
        self.commit()
        self._database.close()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says into what it means for the user of a journal."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise JournalError(f"{path} is in use: another sandbox goes on with it") from None
        raise JournalError(f"{path} can't be used: {error}") from None
    except sqlite3.DatabaseError as error:
        raise JournalError(f"{path} is damaged: {error}") from None


def _check_header(path: Path) -> None:
    """Look at the first bytes of a file, which don't change, before anything is opened."""
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise JournalError(f"{path} can't be read: {error.strerror}") from None
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        raise JournalError(f"{path} is not a journal of dialsim")
    version, application = (int.from_bytes(header[at : at + 4]) for at in (60, 68))
    if application != APPLICATION_ID:
        raise JournalError(f"{path} is a database, but not a journal of dialsim")
    if version > FORMAT:
        raise JournalError(
            f"{path} is a journal of format {version}, made by a newer dialsim; this one, "
            f"{__version__}, reads formats up to {FORMAT}"
        )


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file for one program alone."""
    with _explained(path):
        database = sqlite3.connect(path, timeout=0.2, isolation_level=None, check_same_thread=False)
        try:
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("BEGIN EXCLUSIVE")
            database.execute("COMMIT")
        except BaseException:
            database.close()
            raise
        return database


def _check_whole(path: Path, database: sqlite3.Connection) -> None:
    with _explained(path):
        [[state]] = database.execute("PRAGMA quick_check(1)").fetchall()
    if state != "ok":
        raise JournalError(f"{path} is damaged: {state}")


def _outlive_the_program(database: sqlite3.Connection) -> None:
    """What is committed from now on survives the end of the program at any moment."""
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")


def _sum_of(subject: Subject) -> int:
    """The check sum that the first entry's is built on: nothing of a subject may change either."""
    facts = subject.text, subject.name, subject.overrides, subject.seed, subject.digest
    total = crc32(repr(facts).encode())
    for name, content in sorted(subject.files.items()):
        total = crc32(content, crc32(name.encode(), total))
    return total


def _sum(before: int, at: int, kind: str, body: bytes) -> int:
    return crc32(body, crc32(f"{at} {kind} ".encode(), before))


def _place(name: str) -> int:
    """The place of an override among the others; -1 for what is none."""
    head, _, number = name.partition(" ")
    return int(number) if head == "override" else -1
