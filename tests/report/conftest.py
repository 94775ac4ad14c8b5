"""The pages that several files look at, made once."""

from __future__ import annotations

import pytest

from pictures import unrendered
from report.pages import KINDS, make


@pytest.fixture(scope="session")
def pages() -> dict[str, str]:
    """A page of every kind; its pictures are not rendered."""
    with unrendered():
        return {kind: make(kind) for kind in KINDS}
