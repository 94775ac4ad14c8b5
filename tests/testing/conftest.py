"""pytest inside pytest: a folder with tests that use the plugin."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import httpx
import pytest
import scipy.special  # noqa: F401 (a pytester forgets imports, and numpy is loaded once only)

import dialsim
from dialsim.testing import Receiver, Sketch, assert_no_violations, assert_sequence, trace_text

Outcome = pytest.RunResult
Inner = Callable[..., Outcome]


@pytest.fixture
def plugged() -> list[str]:
    """Options that make pytest load the plugin if it is not installed: run from src/."""
    found = entry_points(group="pytest11", name="dialsim")
    return [] if found else ["-p", "dialsim.testing.plugin"]


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Inner:
    """Run pytest in a separate folder: `inner("--dialsim-seeds", "3")`."""
    # other plugins would have their assertions rewritten anew in every one of these sessions
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugged = ("-p", "dialsim.testing.plugin")
    # a test file that is changed within a second would be taken for the compiled one
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return lambda *arguments: pytester.runpytest_inprocess(*plugged, *arguments)


@pytest.fixture
def outer_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes find dialsim where this one did, from whatever folder."""
    monkeypatch.setenv("PYTHONPATH", str(Path(dialsim.__file__).parents[1]))


@pytest.fixture(scope="session", autouse=True)
def _everything_imported() -> None:
    """Import what runs need for good: pytester forgets its own imports, numpy comes only once."""
    sketch = Sketch(1).campaign("A", "busy 0s").scenario()
    result = dialsim.run(sketch)
    assert_sequence(result, 0, "SCHEDULED QUEUED INITIATED BUSY")
    assert_no_violations(result)
    assert trace_text(result)
    assert result.summary.to_json()
    with Receiver() as receiver, dialsim.Sandbox(sketch, webhook_url=receiver.url) as sandbox:
        httpx.get(sandbox.url)  # loads httpcore, too: a second one's errors would not be httpx's
