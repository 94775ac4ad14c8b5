"""The pages that several files look at, made once."""

from __future__ import annotations

import pytest

from report.pages import KINDS, make


@pytest.fixture(scope="session")
def pages() -> dict[str, str]:
    """A page of every kind."""
    return {kind: make(kind) for kind in KINDS}
