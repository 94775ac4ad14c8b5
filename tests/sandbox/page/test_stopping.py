"""`dialsim serve` stopped while the page is open in a tab."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.sandbox.asking import WORLD

import dialsim


@pytest.mark.slow
def test_an_open_page_does_not_keep_the_server_from_stopping() -> None:
    command = [sys.executable, "-m", "dialsim", "serve", str(WORLD), "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(Path(dialsim.__file__).parents[1])}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            line = next(line for line in server.stdout if line.startswith("Serving on "))
            url = line.split()[2]
            with httpx.stream("GET", f"{url}/_dialsim/page/events") as events:
                lines = events.iter_lines()
                assert next(line for line in lines if line == "event: clock")
                server.send_signal(signal.SIGINT)
                for _ in lines:  # the server ends the stream
                    pass
            assert server.wait(timeout=600) == 0
            assert server.stderr is not None
            assert server.stderr.read() == ""
        finally:
            server.kill()
