"""The `dialsim` program, called in this process or run as a separate one."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from dialsim.cli import main

ROOT = Path(__file__).parents[2]
SCRIPTED = "scenarios/scripted.yaml"

Done = subprocess.CompletedProcess[str]


def dialsim(*arguments: str | Path, cwd: Path = ROOT) -> Done:
    """Call the program in this process; output is text, in 80 columns and without a terminal.

    A separate process takes a second for its imports alone: see `dialsim_process`.
    """
    out, error = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    status = 0
    argv = ["dialsim", *map(str, arguments)]
    with chdir(cwd), redirect_stdout(out), redirect_stderr(error), patch.object(sys, "argv", argv):
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
    return Done(argv, status, *(_text(stream) for stream in (out, error)))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue().decode("utf-8")


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "dialsim", *map(str, arguments)]


def dialsim_process(*arguments: str | Path, cwd: Path = ROOT, **environment: str) -> Done:
    """Run the program as a process, to its end: where its environment or its imports matter."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )
