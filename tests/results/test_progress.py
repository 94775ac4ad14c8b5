"""The progress bar in notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import dialsim
from dialsim.results import result as progress
from dialsim.testing import Sketch

SMALL = Sketch(lines=1).campaign("January", "answered 5s 90s")

pytest.importorskip("IPython", reason="needs '.[notebooks]'")


class Display:
    """Output area of a notebook cell."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, html: Any) -> None:
        self.shown.append(html.data)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Display]:
    """A cell of a notebook, where every task is a long one."""
    import IPython

    display = Display()

    def show(html: Any, display_id: bool) -> Display:
        display.update(html)
        return display

    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr("IPython.display.display", show)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "PACE", 0.0)
    return display


def test_a_notebook_shows_a_bar_and_takes_it_away(cell: Display) -> None:
    dialsim.replicate(SMALL.scenario(), 3, jobs=1)
    assert 'max="3" value="1"></progress> Simulating: 1 of 3 runs' in cell.shown[0]
    assert cell.shown[-1] == ""


def test_nobody_is_told_who_does_not_want_it(cell: Display) -> None:
    told: list[tuple[int, int]] = []
    dialsim.replicate(SMALL.scenario(), 2, jobs=1, progress=False)
    dialsim.replicate(SMALL.scenario(), 2, jobs=1, progress=lambda *of: told.append(of))
    assert told == [(1, 2), (2, 2)]
    assert cell.shown == []


def test_the_bar_goes_when_the_work_fails(cell: Display) -> None:
    def fail() -> None:
        with progress.followed(None, "runs") as tell:
            assert tell is not None
            tell(1, 2)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert cell.shown[-1] == ""
    assert len(cell.shown) == 2
