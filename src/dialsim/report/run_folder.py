"""The page of one run, made from its result, and written with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dialsim.report.page import NAME
from dialsim.report.run_page import run_page
from dialsim.report.what_if import WhatIf, affordable_pairs, check_pairs, measure
from dialsim.results.result import Result

Progress = Callable[[int, int], object]


def run_report(result: Result, pairs: int | None = None, progress: Progress | None = None) -> str:
    """The page of a run as HTML.

    What would help is measured by `pairs` runs of each lever (0: not at all; None: as many as a
    page takes without being asked). `progress(done, total)` counts them. Raises DialsimError.
    """
    return run_page(result, what_would_help(result, pairs, progress)).html()


def what_would_help(result: Result, pairs: int | None, progress: Progress | None) -> WhatIf | None:
    """The levers of a run, measured as `run_report` says; None if none were."""
    if pairs is None:
        pairs = affordable_pairs(result)
    check_pairs(pairs)
    return measure(result, pairs, progress) if pairs else None


def write_run(
    result: Result,
    folder: str | os.PathLike[str],
    *,
    force: bool = False,
    pairs: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write a result with its page; the folder appears when it is complete (`Result.write`)."""
    page = run_report(result, pairs, progress)
    return result.write(folder, force=force, also=lambda draft: put(page, draft))


def put(page: str, folder: Path) -> Path:
    """Write a page into a folder in one step; returns its path."""
    draft = folder / f".{NAME}"
    draft.write_text(page, encoding="utf-8")
    return draft.replace(folder / NAME)
