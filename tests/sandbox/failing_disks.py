"""Disks that can't be written for a while, as far as this machine lets a test have them."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
from typing_extensions import override


class Disk(ABC):
    """A folder whose files can't be written from `fail` to `recover`; SQLite reports `says`."""

    says: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def fail(self) -> None:
        """Make writes fail."""

    @abstractmethod
    def recover(self) -> None:
        """Make writes succeed again."""


class SmallDisk(Disk):
    """A file system in memory, which another file fills up."""

    says = "database or disk is full"

    @override
    def fail(self) -> None:
        other = os.open(self.folder / "other", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with suppress(OSError):
            while True:
                os.write(other, bytes(4_096))
        os.close(other)

    @override
    def recover(self) -> None:
        (self.folder / "other").unlink()


class ReadOnlyDisk(Disk):
    """A file system in memory that is read-only from `fail` on; no file may be open then."""

    says = "attempt to write a readonly database"

    @override
    def fail(self) -> None:
        _mount("-o", "remount,ro", str(self.folder))

    @override
    def recover(self) -> None:
        _mount("-o", "remount,rw", str(self.folder))


class BadDisk(Disk):
    """A folder in which the system reports to SQLite that writes did not reach the disk."""

    says = "disk I/O error"

    @override
    def fail(self) -> None:
        _Connection.fault = self.says

    @override
    def recover(self) -> None:
        _Connection.fault = None


class DiskThatGoesBad(BadDisk):
    """A bad disk that is found out as such only when SQLite moves its log to the main file."""

    @override
    def fail(self) -> None:
        _Connection.goes_bad = True

    @override
    def recover(self) -> None:
        _Connection.goes_bad = False
        super().recover()


class ReadOnlyFile(Disk):
    """A folder whose databases SQLite takes for read-only."""

    says = "attempt to write a readonly database"

    @override
    def fail(self) -> None:
        _Connection.read_only = True

    @override
    def recover(self) -> None:
        _Connection.read_only = False


class LimitedFiles(Disk):
    """A folder in which a process can't write: no file of it may have more than a byte."""

    says = "disk I/O error"
    pid = 0

    @override
    def fail(self) -> None:
        self._limit(1)

    @override
    def recover(self) -> None:
        self._limit(None)

    def _limit(self, most: int | None) -> None:
        _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
        soft = hard if most is None else most
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (soft, hard))


class _Connection(sqlite3.Connection):
    """A connection to a database on a disk that fails.

    SQLite takes back a transaction whose commit fails, as it does in earnest when `ROLLBACK` comes.
    """

    fault: ClassVar[str | None] = None
    goes_bad: ClassVar[bool] = False
    read_only: ClassVar[bool] = False

    @override
    def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
        if "wal_checkpoint(" in sql and self.goes_bad:
            _Connection.fault = BadDisk.says
        if (sql == "COMMIT" or "wal_checkpoint(" in sql) and self.fault is not None:
            raise sqlite3.OperationalError(self.fault)
        if sql.startswith("BEGIN"):
            super().execute(f"PRAGMA query_only = {self.read_only:d}")
        return super().execute(sql, *given)


@contextmanager
def failing_disk(kind: str, folder: Path, kilobytes: int = 6_000) -> Iterator[Disk]:
    """A disk of a kind, in the folder or in its stead; skips the test where it can't be had."""
    if kind in ("full", "read-only from the start"):
        small = folder / "small"
        small.mkdir()
        with _mounted(small, kilobytes):
            yield SmallDisk(small) if kind == "full" else ReadOnlyDisk(small)
        return
    connect = sqlite3.connect

    def connected(*given: Any, **named: Any) -> sqlite3.Connection:
        return connect(*given, factory=_Connection, **named)

    kinds: dict[str, type[Disk]] = {
        "failing fsync": BadDisk,
        "failing fsync of the main file": DiskThatGoesBad,
        "read-only": ReadOnlyFile,
    }
    disk = kinds[kind](folder)
    with patch.object(sqlite3, "connect", connected):
        try:
            yield disk
        finally:
            disk.recover()


@contextmanager
def _mounted(folder: Path, kilobytes: int) -> Iterator[None]:
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("only root can mount the small file system that this test fills")
    try:
        _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no small file system can be mounted here: {error.stderr.strip()}")
    try:
        yield
    finally:
        # what a failed test has left open there doesn't matter
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True, text=True)
