"""The journal: a file with every external event of a sandbox, so that the sandbox can resume.

The file is an SQLite database with the scenario, the files that the scenario names, and one entry
for every event that does not follow from earlier events: commands, steps of the clock, and
responses to POSTs. Entries are numbered without gaps. The checksum of each entry covers the entry
and the previous checksum, so changes by a disk or an editor are detected.

While a sandbox runs, the latest entries are in a second file, SQLite's write-ahead log (`-wal`). A
copy of the main file alone is a valid database that lacks the latest entries. A mark reveals such a
copy: the required number of entries. The mark of the main file is `N+`, more than the file
contains, until the journal is closed; read together with the log, the mark is `N`. Therefore no
checkpoint of SQLite's own may write the main file, because it would copy the wrong mark.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from zlib import crc32

from filelock import FileLock, Timeout

from dialsim import __version__
from dialsim.engine.chance import FormerSeed
from dialsim.errors import JournalError

APPLICATION_ID = 0x6469616C
"""Marks an SQLite file as a journal of dialsim: the letters `dial`."""
FORMAT = 3
"""Format of new journals. In format 2, ids have version 8 (see `FormerSeed`)."""
_OLDEST_FORMAT = 2

_SCHEMA = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE files (name TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE entries (n INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, "
    "body BLOB NOT NULL, sum INTEGER NOT NULL)",
)
_PUT = "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM entries WHERE n = ?"
_MARK = (  # entries are numbered without gaps
    "INSERT OR REPLACE INTO about SELECT 'entries', coalesce(max(n), 0) || ? FROM entries"
)

_SCENARIO = "the scenario in it, or a file that the scenario names,"
_PAGE_BYTES = 4096
_MOST_PAGES = 1_000  # approximate number of pages written to the log before it restarts
_BESIDE = ("-wal", "-shm", "-journal")  # files that SQLite creates beside a database


class EntryKind(StrEnum):
    """Kind of a journal entry."""

    COMMAND = "command"
    STEP = "step"  # the body is the size of the log, see `Trace.size`
    POSTS = "posts"


_KINDS = {kind.value: kind for kind in EntryKind}


class Entry(NamedTuple):
    """Journal entry: an event at an instant (ms); `body` depends on the kind."""

    at: int
    kind: EntryKind
    body: bytes


class _Row(NamedTuple):
    """Entry as stored in the file."""

    n: int
    at: int
    kind: str
    body: bytes
    sum: int


class _Tail(NamedTuple):
    """End of a journal; `step` is the last entry if that entry is a step just written."""

    n: int
    sum: int
    step: _Row | None = None
    before_step: int = 0  # the checksum before the step


_Statement = tuple[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a journal: a scenario as text, its files, and the settings of the run."""

    text: str
    name: str
    overrides: tuple[str, ...]
    seed: int
    digest: str
    files: Mapping[str, bytes]


class Journal:
    """Open journal; one sandbox at a time writes to the journal.

    An irreversible event that cannot be written stays pending: `note` and `take_back` never fail,
    and their entries are written before any other. `error` is the reason for the delay, or None if
    nothing is pending. `has_log`: the journal had not been closed when it was opened.
    """

    def __init__(self, path: Path, database: sqlite3.Connection, lock: FileLock | None) -> None:
        """Callers use `create`, `reopen` or `read` instead."""
        self.path = path
        self.error: str | None = None
        self.has_log = False
        self._database = database
        self._lock = lock
        self._writing = False
        self._tail = self._before = _Tail(0, 0)
        self._undo: _Statement | None = None  # statement that takes the last entry back
        self._owed: list[_Statement] = []
        self._pages = 0  # approximate number written to the log since it restarted
        self._more = False  # True if the mark may announce further entries

    @classmethod
    def create(cls, path: Path, subject: Subject) -> Journal:
        """Create a journal at a path without a file, or with an empty file."""
        is_new = not path.exists()
        lock = _lock(path)
        try:
            path.touch(0o600)
            # The file holds API keys and people. SQLite gives its own files beside it the same
            # mode.
            path.chmod(0o600)
            _write_subject(path, subject)
            journal = cls(path, _connect_to_read(path, has_log=False), lock)
            journal._tail = _Tail(0, _sum_of(subject))
            try:
                journal.write_pending()
            except BaseException:
                journal._database.close()
                raise
        except BaseException:
            _unlock(lock)
            if is_new:
                _remove(path)
            raise
        return journal

    @classmethod
    def reopen(cls, path: Path) -> Journal:
        """Open the journal in a file in order to continue it.

        Raises JournalError for a damaged or incomplete file, a file of another program or of a
        newer dialsim, and a journal in use. The file is not changed before the first entry or
        `write_pending`.
        """
        _check_header(path)
        lock = _lock(path)
        try:
            return cls._open(path, lock)
        except BaseException:
            _unlock(lock)
            raise

    @classmethod
    def read(cls, path: Path) -> Journal:
        """Open the journal in a file for reading, also while a sandbox writes to it.

        Raises JournalError as `reopen` does, except for a journal in use.
        """
        _check_header(path)
        return cls._open(path, None)

    @classmethod
    def _open(cls, path: Path, lock: FileLock | None) -> Journal:
        has_log = _has_log(path)
        database = _connect_to_read(path, has_log)
        try:
            journal = cls(path, database, lock)
            journal.has_log = has_log
            journal._check()
        except BaseException:
            database.close()
            raise
        return journal

    # -- reading ----------------------------------------------------------------------------------

    @property
    def subject(self) -> Subject:
        """Subject of the journal."""
        about = self._about()
        with _explained(self.path):
            listed = self._database.execute("SELECT name, content FROM files")
            files = {str(name): content for name, content in listed}
        try:
            overrides = [
                about[name]
                for name in sorted(about, key=_override_index)
                if _override_index(name) >= 0
            ]
            return Subject(
                text=about["scenario"],
                name=about["name"],
                overrides=tuple(overrides),
                seed=(int if self._format() == FORMAT else FormerSeed)(about["seed"]),
                digest=about["digest"],
                files={name: bytes(memoryview(content)) for name, content in files.items()},
            )
        except (KeyError, ValueError, TypeError):
            raise self._damaged(_SCENARIO) from None

    def entries(self) -> Iterator[Entry]:
        """Yield all entries in order.

        Raises JournalError at the first entry that was changed, and at the end if entries are
        missing.
        """
        self._tail = _Tail(0, _sum_of(self.subject))
        rows = self._database.execute("SELECT n, at, kind, body, sum FROM entries ORDER BY n")
        with _explained(self.path):
            for n, at, kind, body, total in rows:
                self._before, count = self._tail, self._tail.n + 1
                whole = kind in _KINDS and isinstance(body, bytes)
                if not whole or (n, total) != (count, _sum(self._tail.sum, at, kind, body)):
                    raise self._damaged(f"entry {count}")
                self._tail, self._undo = _Tail(count, total), (_REMOVE, (n,))
                yield Entry(at, _KINDS[kind], body)
        self._check_count(self._tail.n)

    def _about(self) -> dict[str, str]:
        with _explained(self.path):
            about = self._database.execute("SELECT name, value FROM about")
            return {str(name): str(value) for name, value in about}

    def _format(self) -> int:
        with _explained(self.path):
            [[version]] = self._database.execute("PRAGMA user_version").fetchall()
        return int(version)

    def _check(self) -> None:
        """Raise JournalError for a damaged file, as far as this can be seen without reading
        entries.
        """
        version = self._format()
        if not _OLDEST_FORMAT <= version <= FORMAT:
            age = "a newer" if version > FORMAT else "an older"
            raise JournalError(
                f"{self.path} is a journal of format {version}, made by {age} dialsim; this one, "
                f"{__version__}, reads formats {_OLDEST_FORMAT} to {FORMAT}"
            )
        with _explained(self.path):
            [[state]] = self._database.execute("PRAGMA quick_check(1)").fetchall()
        if state != "ok":
            raise JournalError(f"{self.path} is damaged: {state}")
        if self._about().get("sum") != str(_sum_of(self.subject)):
            raise self._damaged(_SCENARIO)
        if self._mark()[1] and not self.has_log:
            log = f"{self.path.name}-wal"
            raise JournalError(
                f"{self.path} lacks its end, which was in {log}, the file of a running sandbox's "
                "latest entries. Copy journals with `dialsim journal copy`"
            )

    def _damaged(self, part: str) -> JournalError:
        return JournalError(f"{self.path} is damaged: {part} is not as it was written")

    def _mark(self) -> tuple[int, bool]:
        """Return the required number of entries, and True if further entries must exist."""
        text = self._about().get("entries", "missing")
        count = text.removesuffix("+")
        if not (count.isascii() and count.isdecimal()):
            raise JournalError(f"{self.path} is damaged: its number of entries is {text}")
        return int(count), text.endswith("+")

    def _check_count(self, count: int) -> None:
        marked, _ = self._mark()
        if count != marked:
            what = "lacks its end" if count < marked else "is damaged"
            raise JournalError(
                f"{self.path} {what}: there must be {marked} entries, and there are {count}"
            )

    # -- writing ----------------------------------------------------------------------------------

    def keep(self, entry: Entry) -> None:
        """Append an entry to the file; `entries` must have been read to the end before.

        On return, the entry survives any termination of the program. The entry replaces a step
        right before, because every entry also records the position of the clock. Raises
        JournalError if the entry cannot be written; the journal does not contain the entry then.
        """
        self.write_pending()
        before = self._tail
        self._put(entry)
        try:
            self.write_pending()
        except JournalError:
            self._owed.clear()
            self._tail = before
            self.error = None
            raise

    def note(self, entry: Entry) -> None:
        """Append an entry for a past event; the entry stays pending if writing fails."""
        self._put(entry)
        with suppress(JournalError):
            self.write_pending()

    def take_back(self, instead: Entry | None = None) -> None:
        """Remove the last entry, whose command was refused.

        Restores a step that the entry replaced, or writes `instead`.
        """
        assert self._undo is not None  # the entry was written or read just now
        self._owed.append(self._undo)
        self._tail, self._undo = self._before, None
        if instead is not None:
            self._put(instead)
        with suppress(JournalError):
            self.write_pending()

    def write_pending(self) -> None:
        """Write all pending entries; raises JournalError if that fails."""
        try:
            with _explained(self.path, "written"):
                if not self._writing:
                    self._begin_to_write()
                if self._owed:
                    self._commit(*self._owed, (_MARK, ("",)))
                    self._more = False
        except JournalError as error:
            self.error = str(error) if self._owed else None
            raise
        self._owed.clear()
        self.error = None
        if self._pages > _MOST_PAGES:
            self._pages = 0
            with suppress(JournalError), _explained(self.path):
                # A checkpoint that fails loses nothing: all entries are in the log, and the next
                # one tries again.
                self._checkpoint()  # the log contains everything, so the next checkpoint can do it

    def close(self) -> None:
        """Write all entries into the main file and close the journal.

        Raises JournalError if a pending entry cannot be written.
        """
        try:
            if self._owed:
                self.write_pending()
        finally:
            if self._more:
                with suppress(JournalError), _explained(self.path):
                    self._commit((_MARK, ("",)))
                    self._more = False
            # the last connection to close removes the log; without the log, the mark `N+` would be
            # wrong
            reader = _connect_to_read(self.path, has_log=True) if self._more else None
            self._database.close()
            if reader is not None:
                reader.close()
            if self._lock is not None:
                # Unlocked last: until the connection is closed, SQLite may still write to the file.
                _unlock(self._lock)
                self._lock = None

    def _put(self, entry: Entry) -> None:
        tail = self._tail
        if tail.step is not None and tail.step.at <= entry.at:
            n, before, self._undo = tail.n, tail.before_step, (_PUT, tail.step)
        else:
            n, before, self._undo = tail.n + 1, tail.sum, (_REMOVE, (tail.n + 1,))
        row = _Row(n, *entry, _sum(before, *entry))
        self._owed.append((_PUT, row))
        self._before = tail
        self._tail = _Tail(n, row.sum, row if entry.kind is EntryKind.STEP else None, before)
        self._pages += 2 + len(entry.body) // _PAGE_BYTES

    def _commit(self, *statements: _Statement) -> None:
        """Carry out all statements, or none."""
        database = self._database
        try:
            database.execute("BEGIN IMMEDIATE")
            for statement in statements:
                database.execute(*statement)
            database.execute("COMMIT")
        except BaseException:
            # SQLite rolls back on some errors, such as a full disk; a second rollback
            # is an error.
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            raise

    def _begin_to_write(self) -> None:
        """Open the file for writing, and set the main file's mark to `N+`."""
        assert self._lock is not None  # it was opened to be continued
        self._database.close()
        self._database = _connect(self.path)
        # NORMAL flushes no single command: the end of the program loses nothing, a power failure
        # may lose the last moments. A flush for each command would take milliseconds.
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "wal_autocheckpoint = 0"):
            self._database.execute(f"PRAGMA {pragma}")
        self._checkpoint()
        self._writing = True

    def _checkpoint(self) -> None:
        """Move the log to the main file, with a mark that more entries follow."""
        self._more = True
        self._commit((_MARK, ("+",)))
        self._database.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._commit((_MARK, ("",)))
        self._more = False


def copy_journal(path: Path, target: Path) -> int:
    """Copy a journal to one file, also while a sandbox writes to it; return the entry count."""
    journal = Journal.read(path)
    with closing(journal):
        try:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise JournalError(f"{target} is there already; name a new file") from None
        except OSError as error:
            raise JournalError(f"{target} can't be written: {error.strerror}") from None
        try:
            with _explained(target, "written"), closing(_connect(target)) as database:
                journal._database.backup(database)
                # the copied mark may announce further entries in the log
                database.execute(
                    "UPDATE about SET value = rtrim(value, '+') WHERE name = 'entries'"
                )
            with closing(Journal.read(target)) as copied:
                return sum(1 for _ in copied.entries())
        except BaseException:
            _remove(target)
            raise


@contextmanager
def _explained(path: Path, purpose: str = "used") -> Iterator[None]:
    """Translate SQLite errors into errors for users of a journal."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise JournalError(f"{path} is in use: another program writes to it") from None
        raise JournalError(f"{path} can't be {purpose}: {error}") from None
    except sqlite3.ProgrammingError as error:  # the journal was closed before
        raise JournalError(f"{path} can't be {purpose}: {error}") from None
    except sqlite3.DatabaseError as error:
        raise JournalError(f"{path} is damaged: {error}") from None


def _check_header(path: Path) -> None:
    """Check the first bytes of a file, which never change, before opening it as a database."""
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise JournalError(f"{path} can't be read: {error.strerror}") from None
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        raise JournalError(f"{path} is not a journal of dialsim")
    if int.from_bytes(header[68:72]) != APPLICATION_ID:
        raise JournalError(f"{path} is a database, but not a journal of dialsim")


def _lock(path: Path) -> FileLock:
    """Lock a journal for one sandbox; other processes may read it.

    The lock is a separate file, because on some systems a lock on the journal itself interferes
    with SQLite's own locks.
    """
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        missing = "No such file or directory" if not path.parent.exists() else "Permission denied"
        raise JournalError(f"{path} can't be written: {missing}")
    lock = FileLock(path.with_name(f"{path.name}.lock"), mode=0o600)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise JournalError(f"{path} is in use: another sandbox writes to it") from None
    except OSError as error:
        raise JournalError(f"{path} can't be written: {error.strerror}") from None
    return lock


def _unlock(lock: FileLock) -> None:
    # Windows cannot remove an open file; there, filelock removes it after the release.
    if os.name != "nt":
        # Removed before the release: a process that locks the removed file sees that it is gone and
        # tries again.
        Path(lock.lock_file).unlink(missing_ok=True)
    lock.release()


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in _BESIDE]


def _has_log(path: Path) -> bool:
    """True if a write-ahead log exists; SQLite leaves none after a journal was closed."""
    log, *_ = _beside(path)
    return log.exists() and log.stat().st_size > 0


def _remove(path: Path) -> None:
    for file in (path, *_beside(path)):
        file.unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0.2, isolation_level=None, check_same_thread=False)


def _connect_to_read(path: Path, has_log: bool) -> sqlite3.Connection:
    """Open a file for reading at one moment, unchanged also by closing.

    Without a log, no process writes to the file. The file is then opened as immutable, which works
    also in read-only folders.
    """
    how = "mode=ro" if has_log else "mode=ro&immutable=1"
    with _explained(path, "read"):
        database = sqlite3.connect(
            f"file:{quote(str(path))}?{how}",
            uri=True,
            timeout=0.2,
            isolation_level=None,
            check_same_thread=False,
        )
        # a flipped bit may have produced invalid UTF-8: check sums detect it
        database.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
        try:
            database.execute("BEGIN")
            database.execute("SELECT 1 FROM sqlite_master").fetchall()
        except BaseException:
            database.close()
            raise
        return database


def _write_subject(path: Path, subject: Subject) -> None:
    about = {
        "dialsim": __version__,
        "scenario": subject.text,
        "name": subject.name,
        "seed": str(subject.seed),
        "digest": subject.digest,
        **{f"override {n}": text for n, text in enumerate(subject.overrides)},
        "sum": str(_sum_of(subject)),
        "entries": "0",
    }
    with _explained(path, "written"), closing(_connect(path)) as database:
        database.execute("BEGIN")
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {FORMAT}")
        for statement in _SCHEMA:
            database.execute(statement)
        database.executemany("INSERT INTO about VALUES (?, ?)", about.items())
        database.executemany("INSERT INTO files VALUES (?, ?)", subject.files.items())
        database.execute("COMMIT")


def _sum_of(subject: Subject) -> int:
    """Return the checksum before the first entry; it covers the subject, which may not change
    either.
    """
    facts = subject.text, subject.name, subject.overrides, subject.seed, subject.digest
    total = crc32(repr(facts).encode())
    for name, content in sorted(subject.files.items()):
        total = crc32(content, crc32(name.encode(errors="surrogateescape"), total))
    return total


def _sum(before: int, at: int, kind: str, body: bytes) -> int:
    return crc32(body, crc32(f"{at} {kind} ".encode(errors="surrogateescape"), before))


def _override_index(name: str) -> int:
    """Return the index of an override; -1 for any other name."""
    head, _, number = name.partition(" ")
    return int(number) if head == "override" else -1
