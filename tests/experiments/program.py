"""The `dialsim` program under way: started, watched and killed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from cli.program import ROOT, command

PATIENCE_S = 600
"""Timeout (s): nothing takes so long, even beside busy processes, unless it hangs."""


def start(*arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
    """Start the program in a separate session, as a terminal would."""
    return subprocess.Popen(
        command(*arguments),
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until(happened: Callable[[], bool], program: subprocess.Popen[str] | None = None) -> None:
    begin = time.monotonic()
    while not happened():
        assert time.monotonic() - begin < PATIENCE_S, "it never happened"
        assert program is None or program.poll() is None, "the program has ended"
        time.sleep(0.02)


def session(leader: int) -> list[int]:
    """The processes of a session that are alive, the leader apart."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != leader:
            try:
                state, _, _, sid = (entry / "stat").read_text().rpartition(") ")[2].split()[:4]
            except OSError:
                continue
            if int(sid) == leader and state != "Z":
                found.append(int(entry.name))
    return found


def workers(leader: int) -> list[int]:
    """The worker processes of a program."""
    return [pid for pid in session(leader) if b"--process-name" in _command_line(pid)]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def writes(folder: Path, size: int) -> Callable[[], bool]:
    """True if the store of a running program has grown to a number of bytes."""
    log = folder / "replications.sqlite-wal"
    return lambda: log.exists() and log.stat().st_size > size


def kept(folder: Path) -> dict[int, str]:
    """Return the replications in a store that is not in use: figures by number."""
    with closing(sqlite3.connect(folder / "replications.sqlite")) as store:
        return dict(store.execute("SELECT replication, figures FROM finished"))
