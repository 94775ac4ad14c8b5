"""Progress of long work: callbacks, and a bar in notebooks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from time import monotonic
from typing import Any, Literal

Progress = Callable[[int, int], object]
"""Callback with the work done and the total."""
Shown = Progress | Literal[False] | None
"""Callback; None for a bar in a notebook and nothing elsewhere; False for nothing at all."""

PATIENCE = 1.0  # seconds before a bar appears
PACE = 0.2  # seconds between two updates of the bar


@contextmanager
def followed(wanted: Shown, what: str, unit: str) -> Iterator[Progress | None]:
    """Yield the callback for the progress of `what`, counted in `unit`."""
    if wanted is not None or not _in_notebook():
        yield wanted or None
        return
    bar = _NotebookBar(what, unit)
    try:
        yield bar
    finally:
        bar.close()


def _in_notebook() -> bool:
    """Return True inside a Jupyter kernel; IPython on a terminal has none."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


class _NotebookBar:
    """Progress bar in plain HTML below a notebook's cell."""

    # tqdm and rich draw widgets: they need ipywidgets, and leave a broken widget in a notebook's
    # stored outputs.
    def __init__(self, what: str, unit: str) -> None:
        self._what = what
        self._unit = unit
        self._begin = self._drawn = monotonic()
        self._handle: Any = None

    def __call__(self, done: int, total: int) -> None:
        now = monotonic()
        wait = PATIENCE if self._handle is None else PACE
        if now - self._drawn < wait:
            return
        self._drawn = now
        left = (now - self._begin) * (total - done) / max(done, 1)
        self._draw(
            f'<progress max="{total}" value="{done}"></progress> {escape(self._what)}: '
            f"{done:,} of {total:,} {escape(self._unit)}, about {left:,.0f} s left"
        )

    def close(self) -> None:
        """Remove the bar."""
        if self._handle is not None:
            self._draw("")

    def _draw(self, html: str) -> None:
        from IPython.display import HTML, display

        shown = HTML(html)  # type: ignore[no-untyped-call]
        if self._handle is None:
            self._handle = display(shown, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(shown)
