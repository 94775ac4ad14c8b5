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
from dialsim.report.run_folder import Progress, put, run_report
from dialsim.results.runs import run
from dialsim.results.source import read_manifest, read_source


def rebuild(folder: Path, pairs: int | None = None, progress: Progress | None = None) -> Path:
    """Make the page of a result's folder anew, and return its path.

    A run is simulated again from the scenario in the folder; many runs come from its store, as
    they are. `pairs` and `progress` are as in `run_report`. Raises DialsimError if the folder is
    no finished result, its scenario was changed, or the run comes to another summary.
    """
    said = read_manifest(folder)
    if "experiment" not in said:
        return put(_run(folder, said, pairs, progress), folder)
    if not said["finished"]:
        raise DialsimError(f"{folder} is not finished; the command that made it goes on with it")
    found = orjson.loads((folder / "summary.json").read_bytes())
    if said["experiment"] == "replications":
        page = _replications(folder, said, found, pairs, progress)
    elif said["experiment"] == "sweep":
        page = _sweep(folder, said, found)
    else:
        page = _plan(folder, said)
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
    folder: Path,
    said: dict[str, Any],
    found: dict[str, Any],
    pairs: int | None,
    progress: Progress | None,
) -> str:
    scenario, seed = read_source(folder), said["seed"]
    runs = replicate(scenario, found["replications"], seed=seed, store=folder)
    reached = [
        Precision(**part | {"reached": nan if part["reached"] is None else part["reached"]})
        for part in found["precision"]
    ]
    told = Replications(scenario, seed, runs.figures, reached)
    return replications_report(told, pairs, progress)


def _sweep(folder: Path, said: dict[str, Any], found: dict[str, Any]) -> str:
    variants = [
        Variant(part["variant"], tuple(Change(*text.split("=", 1)) for text in part["changes"]))
        for part in found["variants"]
    ]
    count = found["replications"]
    swept = sweep(read_source(folder), variants, count, seed=said["seed"], store=folder)
    compared = swept.differences(
        found["baseline"], paired=said["arguments"]["paired"], adjust=found["adjustment"]
    )
    return sweep_report(swept, compared, found["baseline"], said["seed"])


def _plan(folder: Path, said: dict[str, Any]) -> str:
    scenario, arguments = read_source(folder), dict(said["arguments"])
    path, span = read_span(arguments.pop("vary"))
    goal = arguments.pop("goal")
    answer = plan(scenario, path, span, goal, seed=said["seed"], store=folder, **arguments)
    return plan_report(answer, scenario, said["seed"])
