"""Tests of engines run the engine that a program would choose."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def compiled_engine_counts_as_loaded() -> None:
    """Replace the fixture of the other rooms: here loading the compiled engine counts."""
