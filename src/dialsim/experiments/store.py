"""The store: a file that keeps every finished replication, so that a killed experiment goes on.

It is an SQLite database, which a kill at any instant leaves whole. What it keeps is found again
only for the same scenario (its digest), seed and version of dialsim.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dialsim.experiments.case import Case
from dialsim.experiments.run_figures import RunFigures
from dialsim.interface.errors import DialsimError
from dialsim.version import __version__

NAME = "replications.sqlite"
_FIGURES = 5
"""The version of what is kept of a run."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS finished (
    version TEXT, scenario TEXT, seed INTEGER, replication INTEGER, figures TEXT NOT NULL,
    PRIMARY KEY (version, scenario, seed, replication)
) WITHOUT ROWID
"""


class StoreError(DialsimError):
    """A store that can't be used."""


class Store:
    """The finished replications under a folder; one experiment at a time writes there."""

    def __init__(self, folder: Path) -> None:
        """Open or create the store. Raises StoreError if it is in use, or is no store."""
        self.path = folder / NAME
        self._made_by = f"{__version__}, figures {_FIGURES}"
        self._database = sqlite3.connect(self.path, timeout=0.2, isolation_level=None)
        try:
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(_SCHEMA)
        except sqlite3.OperationalError as error:
            self._database.close()
            in_use = "locked" in str(error)
            why = "another experiment is writing to it" if in_use else str(error)
            raise StoreError(f"{self.path} can't be used: {why}") from None
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise StoreError(f"{self.path} is not a store of replications: {error}") from None

    def recall(self, case: Case, count: int) -> None:
        """Give a case those of its first `count` replications that are kept here."""
        rows = self._database.execute(
            "SELECT figures FROM finished WHERE version = ? AND scenario = ? AND seed = ? "
            "AND replication < ?",
            (self._made_by, case.digest, case.seed, count),
        )
        for (text,) in rows:
            figures = RunFigures.from_text(text)
            case.finished.setdefault(figures.replication, figures)

    def keep(self, case: Case, replication: int, text: str) -> None:
        """Keep a finished replication; when this returns, a killed program has not lost it."""
        self._database.execute(
            "INSERT OR REPLACE INTO finished VALUES (?, ?, ?, ?, ?)",
            (self._made_by, case.digest, case.seed, replication, text),
        )

    def close(self) -> None:
        """Close the file."""
        self._database.close()
