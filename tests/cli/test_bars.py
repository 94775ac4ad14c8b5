"""The bar that the clock moves while the engine is compiled."""

from __future__ import annotations

import io
import logging
import time

import pytest
from rich.console import Console

from dialsim import engine as engines
from dialsim.cli.program import progress_bar


@pytest.mark.parametrize("terminal", [True, False])
def test_compiling_shows_a_bar_with_the_expected_time(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal, width=120)
    monkeypatch.setattr("rich.console.Console", lambda **_: console)
    monkeypatch.setattr(engines, "is_compiled", lambda: False)
    monkeypatch.setattr(engines, "_compiled_run", lambda: time.sleep(0.7))
    monkeypatch.setattr(engines, "_COMPILING_SECONDS", 1)
    engines.prepare.cache_clear()
    with progress_bar("Simulating"):
        engines.prepare("compiled")
        time.sleep(0.3)
        logging.getLogger("dialsim.engine").info("Another message.")
    engines.prepare.cache_clear()
    shown = written.getvalue()
    assert ("Compiling the engine: this takes some seconds, once." in shown) is terminal
    assert ("about 1 s" in shown) is terminal
    assert ("Another message." in shown) is terminal
    assert "The engine is compiled." not in shown
    # the last picture has lost the bar again
    assert "Compiling" not in shown[shown.rfind("Another message.") :]
