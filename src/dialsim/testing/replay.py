"""The commands that run again what a test ran."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Replay:
    """One run of a test; `file` is None where the scenario is no file as it stands."""

    file: Path | None
    overrides: tuple[str, ...]
    seed: int
    replication: int

    def command(self, folder: Path) -> str | None:
        """The command line, for a shell in `folder`, that runs the same; None without a file."""
        if self.file is None:
            return None
        words = ["dialsim", "run", relative(self.file, folder), "--seed", str(self.seed)]
        if self.replication:
            words += ["--replication", str(self.replication)]
        for override in self.overrides:
            words += ["--set", override]
        return shlex.join(words)


def commands(node_id: str, seed: int | None, replays: Sequence[Replay], folder: Path) -> list[str]:
    """The command that runs the test again, with the seed it was given, then those of its runs."""
    words = ["pytest", node_id]
    if seed is not None:
        words += ["--dialsim-seed", str(seed)]
    runs = (replay.command(folder) for replay in replays)
    return [shlex.join(words), *dict.fromkeys(run for run in runs if run is not None)]


def relative(path: Path, folder: Path) -> str:
    """The path as a shell in `folder` would write it."""
    return os.path.relpath(path, folder)
