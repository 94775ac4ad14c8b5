"""The page of one run, made from its result, and written with it."""

from __future__ import annotations

import os
from pathlib import Path

from dialsim.experiments.run_figures import figures_of
from dialsim.report.levers import AS_IT_IS
from dialsim.report.page import NAME
from dialsim.report.run_page import run_page
from dialsim.report.what_if import FurtherRuns, Place, Progress, what_would_help
from dialsim.results.result import Result


def run_report(result: Result, pairs: int | None = None, progress: Progress | None = None) -> str:
    """The page of a run as HTML.

    What would help is measured by `pairs` runs of each lever (0: not at all; None: as many as a
    page takes without being asked), but not of a run with campaigns that its scenario's text
    doesn't have. `progress(done, total)` counts them. Raises DialsimError.
    """
    world = result.trace.world
    further = FurtherRuns(pairs, progress=progress)
    if world.has_added_campaigns:
        return run_page(result, None).html()
    places = [Place(AS_IT_IS, [figures_of(result)])]
    (what_if,) = what_would_help(world.scenario, world.seed, places, further)
    return run_page(result, what_if).html()


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
