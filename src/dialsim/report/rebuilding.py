"""Rebuilding: the page of a folder made anew from what the folder holds."""

from __future__ import annotations

from math import nan
from pathlib import Path
from typing import Any

import orjson

from dialsim.experiments.plan import plan
from dialsim.experiments.precision import Precision
from dialsim.experiments.replications import Replications, replicate
from dialsim.experiments.sweep import sweep
from dialsim.experiments.variants import Change, Variant, read_span
from dialsim.interface.errors import DialsimError
from dialsim.report.experiment_reports import plan_report, replications_report, sweep_report
from dialsim.report.run_folder import put, run_report
from dialsim.report.what_if import FurtherRuns, Progress
from dialsim.results.runs import run
from dialsim.results.source import read_manifest, read_source
from dialsim.scenario.models import Scenario


def rebuild(folder: Path, pairs: int | None = None, progress: Progress | None = None) -> Path:
    """Make the page of a result's folder anew, and return its path.

    A run is simulated again from the scenario in the folder; many runs come from its store, as
    they are, and so do those that measured what would help. `pairs` and `progress` are as in
    `run_report`, but many runs have as many pairs as they were made with. Raises DialsimError if
    the folder is no finished result, its scenario was changed, or the run comes to another summary.
    """
    said = read_manifest(folder)
    if "experiment" not in said:
        return put(_run(folder, said, pairs, progress), folder)
    if not said["finished"]:
        raise DialsimError(f"{folder} is not finished; the command that made it goes on with it")
    found = orjson.loads((folder / "summary.json").read_bytes())
    kept = said["arguments"].pop("what_if", None)
    further = FurtherRuns(kept if pairs is None else pairs, store=folder, progress=progress)
    if said["experiment"] == "replications":
        page = _replications(folder, said, found, further)
    elif said["experiment"] == "sweep":
        page = _sweep(folder, said, found, further)
    else:
        page = _plan(folder, said, further)
    return put(page, folder)


def _run(folder: Path, said: dict[str, Any], pairs: int | None, progress: Progress | None) -> str:
    result = run(read_source(folder), seed=said["seed"], replication=said["replication"])
    if result.summary.to_json() != (folder / "summary.json").read_bytes():
        raise DialsimError(
            f"{folder} can't be brought back: its scenario comes to other figures now than with "
            f"dialsim {said['dialsim']} and the libraries of then"
        )
    return run_report(result, pairs, progress)


def _replications(
    folder: Path, said: dict[str, Any], found: dict[str, Any], further: FurtherRuns
) -> str:
    scenario, seed = read_source(folder), said["seed"]
    runs = replicate(scenario, found["replications"], seed=seed, store=folder)
    reached = [
        Precision(**part | {"reached": nan if part["reached"] is None else part["reached"]})
        for part in found["precision"]
    ]
    return replications_report(Replications(scenario, seed, runs.figures, reached), further)


def _sweep(folder: Path, said: dict[str, Any], found: dict[str, Any], further: FurtherRuns) -> str:
    variants = [
        Variant(part["variant"], tuple(Change(*text.split("=", 1)) for text in part["changes"]))
        for part in found["variants"]
    ]
    scenario = read_source(folder)
    seed = _given_seed(scenario, said)
    swept = sweep(scenario, variants, found["replications"], seed=seed, store=folder)
    compared = swept.differences(
        found["baseline"], paired=said["arguments"]["paired"], adjust=found["adjustment"]
    )
    return sweep_report(swept, compared, found["baseline"], seed, further)


def _plan(folder: Path, said: dict[str, Any], further: FurtherRuns) -> str:
    scenario, arguments = read_source(folder), dict(said["arguments"])
    path, span = read_span(arguments.pop("vary"))
    goal = arguments.pop("goal")
    seed = _given_seed(scenario, said)
    answer = plan(scenario, path, span, goal, seed=seed, store=folder, **arguments)
    return plan_report(answer, scenario, seed, further)


def _given_seed(scenario: Scenario, said: dict[str, Any]) -> int | None:
    """The seed, but None where it is the scenario's: then a variant may have another."""
    return None if said["seed"] == scenario.seed else int(said["seed"])
