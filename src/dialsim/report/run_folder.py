"""The page of one run, made from its result, and written with it."""

from __future__ import annotations

import os
from pathlib import Path

from dialsim.experiments.run_figures import figures_of
from dialsim.report.levers import AS_IT_IS
from dialsim.report.page import NAME
from dialsim.report.run_page import run_page
from dialsim.report.what_if import (
    FurtherRuns,
    NotMeasured,
    Place,
    Progress,
    what_would_help,
)
from dialsim.results.result import Result


def run_report(result: Result, pairs: int | None = None, progress: Progress | None = None) -> str:
    """The page of a run as HTML.

    What would help is measured by `pairs` runs of each lever (0: not at all; None: as many as a
    page takes without being asked), but not of a run that its scenario alone would not bring back:
    one that is not over, or was given commands or campaigns from outside. `progress(done, total)`
    counts them. Raises DialsimError.
    """
    world = result.trace.world
    further = FurtherRuns(pairs, progress=progress)
    if not _went_as_written(result):
        return run_page(result, _NOT_COMPARABLE if pairs != 0 else None).html()
    places = [Place(AS_IT_IS, [figures_of(result)])]
    (what_if,) = what_would_help(world.scenario, world.seed, places, further)
    return run_page(result, what_if).html()


_NOT_COMPARABLE = NotMeasured(
    "This run did not go as its scenario says: it was given commands from outside or is not over, "
    "so that runs of the scenario can't be compared with it"
)


def _went_as_written(result: Result) -> bool:
    """Whether a run is over, and nobody gave it a command from outside."""
    trace = result.trace
    end = trace.world.scenario.clock.end
    over = trace.idle if end is None else trace.end == end
    return over and trace.turn == 0 and not trace.world.has_added_campaigns


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
