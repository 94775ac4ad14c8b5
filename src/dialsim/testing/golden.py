"""Golden traces: what a run came to when somebody looked at it, kept beside the test."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dialsim.testing.traced import Traced

FOLDER = "golden"


class Upheld(Enum):
    """What came of holding a run to its golden trace."""

    SAME = "same"
    WRITTEN = "written"
    OTHER_SEED = "of another seed"


class GoldenTraces:
    """The fixture `dialsim_golden`: holds runs of one test to the traces kept for it.

    A trace is kept in the folder `golden` beside the test, in a file named after the test. Written
    only by `--dialsim-update`, and read by people.
    """

    def __init__(
        self, folder: Path, test: str, update: bool, note: Callable[[Upheld], None]
    ) -> None:
        """`test` is the test's name, its module's in front; `note` is told of each comparison."""
        self._folder = folder / FOLDER
        self._test = test
        self._update = update
        self._note = note
        self._names: set[str] = set()

    def __call__(self, run: Traced, name: str = "") -> None:
        """Hold a run to the golden trace; `name` tells several of one test apart.

        A golden trace is of one seed: under another there is nothing to compare. Raises
        AssertionError with both traces where they differ, or if there is no golden trace yet.
        """
        __tracebackhide__ = True
        from dialsim.testing.comparison import describe, differences
        from dialsim.testing.trace_page import TracePage

        assert name not in self._names, f"this test has a golden trace {name!r} already: name it"
        self._names.add(name)
        file, found = self._file(name), TracePage.of(run)
        shown = f"{FOLDER}/{file.name}"
        if self._update:
            self._write(file, found.text)
            return
        assert file.exists(), f"there is no {shown} yet: --dialsim-update writes it"
        golden = TracePage.parse(file.read_text(encoding="utf-8"))
        if golden.seed != found.seed:
            self._note(Upheld.OTHER_SEED)
            return
        parted = differences(golden, found)
        if parted:
            raise AssertionError(describe(parted, shown))
        self._note(Upheld.SAME)

    def _write(self, file: Path, text: str) -> None:
        if file.exists() and file.read_text(encoding="utf-8") == text:
            self._note(Upheld.SAME)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
        self._note(Upheld.WRITTEN)

    def _file(self, name: str) -> Path:
        plain = re.sub(r"[^\w.]+", "-", f"{self._test} {name}").strip("-")
        return self._folder / f"{plain}.txt"
