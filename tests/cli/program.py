"""The `dialsim` program as a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPTED = "scenarios/scripted.yaml"


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "dialsim", *map(str, arguments)]


def dialsim(
    *arguments: str | Path, cwd: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run to the end; output is text, in 80 columns and without a terminal."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
