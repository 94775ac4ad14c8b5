"""The runs and pages that several tests look at, made once."""

from __future__ import annotations

import pytest

import dialsim
from dialsim.report.writing import run_report
from dialsim.results.result import Result
from pictures import unrendered
from report.pages import ACME, KINDS, clients, make


@pytest.fixture(scope="session")
def pages() -> dict[str, str]:
    """A page of every kind; its pictures are not rendered."""
    with unrendered():
        return {kind: make(kind) for kind in KINDS}


@pytest.fixture(scope="session")
def acme_run() -> Result:
    """The run of `ACME`."""
    return dialsim.run(ACME.scenario())


@pytest.fixture(scope="session")
def eighteen_run() -> Result:
    """The run of the eighteen campaigns of `clients`."""
    return dialsim.run(clients().scenario())


@pytest.fixture(scope="session")
def eighteen(eighteen_run: Result) -> str:
    """Its page; the pictures are not rendered."""
    with unrendered():
        return run_report(eighteen_run, pairs=0)
