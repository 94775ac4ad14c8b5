"""Write reports as HTML, with the further runs that they need; rebuild the report of a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import orjson

from dialsim.engine import Choice
from dialsim.errors import DialsimError
from dialsim.experiments.forecast import KIND, Forecast, ForecastFigures, Widening, forecast
from dialsim.experiments.optimum import Optimum, optimize
from dialsim.experiments.plan import Plan, plan
from dialsim.experiments.replications import Precision, Replications, replicate
from dialsim.experiments.run_figures import figures_of
from dialsim.experiments.sweep import Sweep, compare, sweep
from dialsim.experiments.variants import SettingChange, Variant, read_vary
from dialsim.report.page import NAME
from dialsim.report.plan_page import optimum_page, plan_page, setting_text
from dialsim.report.replications_page import forecast_page, replications_page
from dialsim.report.run_page import run_page
from dialsim.report.sheet import NAME as SHEET
from dialsim.report.sheet import sheet_of
from dialsim.report.sweep_page import frontier, sweep_page
from dialsim.report.what_if import (
    AS_IT_IS,
    FurtherRuns,
    Help,
    NotMeasured,
    StudiedVariant,
    WhatIf,
    against_goal,
    asked_of,
    what_would_help,
)
from dialsim.results.excel import NAME as WORKBOOK
from dialsim.results.folder import FILE, SUMMARY, read_manifest, read_source
from dialsim.results.result import Progress, Result, WrittenResult, run
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.units import value_text


def run_report(
    result: Result,
    pairs: int | None = None,
    progress: Progress | None = None,
    engine: Choice = "auto",
) -> str:
    """Return the report of a run as HTML.

    What would help is measured by `pairs` runs of each lever (0: not at all; None: as many as the
    default budget allows). It is not measured for a run that its scenario alone does not reproduce:
    one that is not over, or received commands or campaigns from outside. `progress(done, total)`
    counts the runs. Raises DialsimError.
    """
    world = result.trace.world
    further = FurtherRuns(pairs, progress=progress, engine=engine)
    if not _went_as_written(result):
        return run_page(result, _NOT_COMPARABLE).html()
    studied = [StudiedVariant(AS_IT_IS, [figures_of(result)])]
    (what_if,) = what_would_help(world.scenario, world.seed, studied, further)
    return run_page(result, what_if).html()


_NOT_COMPARABLE = NotMeasured(
    "This run did not go as its scenario says: it was given commands from outside or is not over, "
    "so that runs of the scenario can't be compared with it"
)


def _went_as_written(result: Result) -> bool:
    """True if a run is over and received no command from outside."""
    trace = result.trace
    end = trace.world.scenario.clock.end
    over = trace.idle if end is None else trace.end == end
    # Each of these would make a rerun of the scenario another run.
    return over and trace.turn == 0 and not trace.world.has_added_campaigns


def write_run(
    result: Result,
    folder: str | os.PathLike[str],
    *,
    force: bool = False,
    pairs: int | None = None,
    progress: Progress | None = None,
    engine: Choice = "auto",
    without: Sequence[str] = (),
    excel: bool = False,
    language: str = "en",
) -> Path:
    """Write a result with its report and the manager's sheet; the folder appears when it is
    complete (`Result.write`).

    `without` are tables to leave out; with `excel` a workbook is added. `language` is the sheet's.
    """
    # Before the folder is made, so that an error leaves nothing behind.
    page, sheet = run_report(result, pairs, progress, engine), sheet_of(result, language).html()

    def also(draft: Path) -> None:
        put(page, draft)
        put(sheet, draft, SHEET)
        if excel:
            result.to_excel(draft / WORKBOOK)

    return result.write(folder, force=force, also=also, without=without)


def put(page: str, folder: Path, name: str = NAME) -> Path:
    """Write a page into a folder atomically and return its path."""
    draft = folder / f".{name}"
    draft.write_text(page, encoding="utf-8")
    # Replaced in one step: a browser that reloads never sees half a page.
    return draft.replace(folder / name)


Outcome = Replications | Forecast | Sweep | Plan | Optimum
"""Result of an experiment."""
_NONE_OF_ITS_OWN = FurtherRuns()


def replications_report(runs: Replications, further: FurtherRuns = _NONE_OF_ITS_OWN) -> str:
    """Return the report of replications; replication 0 is run again for its figures."""
    return replications_page(runs, *_first_and_help(runs, further)).html()


def forecast_report(found: Forecast, further: FurtherRuns = _NONE_OF_ITS_OWN) -> str:
    """Return the report of a forecast."""
    return forecast_page(found, *_first_and_help(found.runs, further)).html()


def _first_and_help(runs: Replications, further: FurtherRuns) -> tuple[Result, Help]:
    studied = [StudiedVariant(AS_IT_IS, runs.figures)]
    (what_if,) = what_would_help(runs.scenario, runs.seed, studied, further)
    return run(runs.scenario, seed=runs.seed, replication=0), what_if


def sweep_report(found: Sweep, further: FurtherRuns = _NONE_OF_ITS_OWN) -> str:
    """Return the report of a sweep.

    What would help is measured for the baseline and for the variant that the page recommends.
    """
    # A dict, because both may be the same variant.
    named = dict.fromkeys([found.baseline, frontier(found).recommended])
    variants = dict(zip(found.names, found.variants, strict=True))
    studied = [StudiedVariant(variants[name], found.by_name[name].runs) for name in named]
    listed = what_would_help(found.scenario, found.given_seed, studied, further)
    return sweep_page(found, dict(zip(named, listed, strict=True))).html()


def plan_report(
    answer: Plan, scenario: Scenario, seed: int | None, further: FurtherRuns = _NONE_OF_ITS_OWN
) -> str:
    """Return the report of a plan for a scenario, which is run once with the value found.

    `seed` is the one given to the plan, None if each variant used its own. What else would help is
    measured at that value.
    """
    value = Variant(setting_text(answer), (SettingChange(answer.path, str(answer.estimate.value)),))
    varied = value.of(scenario)
    answer = _with_all_figures(answer, varied, seed, further)
    studied = [StudiedVariant(value, answer.estimate.runs, asked_of(answer)[0])]
    (what_if,) = what_would_help(scenario, seed, studied, further)
    measured = against_goal(answer, what_if) if isinstance(what_if, WhatIf) else what_if
    return plan_page(answer, run(varied, seed=seed), measured).html()


def _with_all_figures(
    answer: Plan, varied: Scenario, seed: int | None, further: FurtherRuns
) -> Plan:
    """Return the plan with all figures of its runs; without a store they are run again for that."""
    part = answer.estimate
    # A plan without a store asks for the figures of its goal only, which is quicker.
    if all(run.asked is None for run in part.runs):
        return answer
    runs = replicate(
        varied,
        part.replications,
        seed=seed,
        jobs=further.jobs,
        dask=further.dask,
        progress=further.progress,
        engine=further.engine,
    )
    return replace(answer, estimate=replace(part, runs=runs.figures))


def optimum_report(answer: Optimum, scenario: Scenario, seed: int | None) -> str:
    """Return the report of an optimum for a scenario, which is run once with the best values."""
    pairs = zip(answer.paths, answer.best.values, strict=True)
    changes = tuple(SettingChange(path, value_text(value)) for path, value in pairs)
    best = Variant(answer.best.name, changes).of(scenario)
    return optimum_page(answer, run(best, seed=seed)).html()


def experiment_report(
    found: Outcome,
    scenario: Scenario,
    seed: int | None,
    further: FurtherRuns = _NONE_OF_ITS_OWN,
) -> str:
    """Return the report of an experiment with a scenario; `seed` is as in `plan_report`."""
    match found:
        case Replications():
            return replications_report(found, further)
        case Forecast():
            return forecast_report(found, further)
        case Sweep():
            return sweep_report(found, further)
        case Plan():
            return plan_report(found, scenario, seed, further)
        case _:
            return optimum_report(found, scenario, seed)


def rebuild(
    folder: Path,
    pairs: int | None = None,
    progress: Progress | None = None,
    language: str | None = None,
) -> Path:
    """Rebuild the report and the sheet in the folder of a result; return the path of the report.

    A run is simulated again from the scenario in the folder; the runs of an experiment and of its
    levers come from its store. `pairs` and `progress` are as in `run_report`, but an experiment
    keeps the number of pairs it was made with. Without a `language` the sheet keeps its own. Raises
    DialsimError if the folder is not a finished result, its scenario was changed, or the run gives
    another summary.
    """
    # The manifest does not name the language; the sheet does.
    written = folder / SHEET
    kept_language = _LANGUAGE.search(written.read_text("utf-8")) if written.is_file() else None
    code = language or (kept_language[1] if kept_language else "en")
    said = read_manifest(folder)
    if "experiment" not in said:
        result = WrittenResult(folder)
        page = run_report(result, pairs, progress)
        put(sheet_of(result, code).html(), folder, SHEET)
        return put(page, folder)
    # Its runs are incomplete, and the command would have to know its options to continue.
    if not said["finished"]:
        raise DialsimError(f"{folder} is not finished; the command that made it goes on with it")
    scenario, seed = read_source(folder), int(said["seed"])
    # An experiment that was not given a seed lets each variant use its own.
    given = None if seed == scenario.seed else seed
    arguments = dict(said["arguments"])
    # The number of pairs belongs to the page; the experiment itself does not take it.
    kept = arguments.pop("what_if", None)
    summary = orjson.loads((folder / SUMMARY).read_bytes())
    found = _repeated(folder, scenario, said["experiment"], given, arguments, summary)
    further = FurtherRuns(kept if pairs is None else pairs, store=folder, progress=progress)
    page = experiment_report(found, scenario, given, further)
    put(sheet_of(found, code, scenario=scenario, seed=given).html(), folder, SHEET)
    return put(page, folder)


_LANGUAGE = re.compile('<html lang="([a-z]+)"')


def _repeated(
    folder: Path,
    scenario: Scenario,
    kind: str,
    seed: int | None,
    arguments: dict[str, Any],
    summary: dict[str, Any],
) -> Outcome:
    """Return the experiment of a folder, with the runs in its store.

    `arguments` are the further inputs in its manifest, `summary` is its content for programs.
    """
    if kind == "plan":
        path, values = read_vary(arguments.pop("vary"), scenario.first_day)
        return plan(scenario, {path: values}, seed=seed, store=folder, **arguments)
    if kind == "optimum":
        return optimize(scenario, arguments.pop("vary"), seed=seed, store=folder, **arguments)
    count, shown = summary["replications"], arguments.get("figures", ())
    if kind == KIND:
        return forecast(
            scenario, count, seed=seed, store=folder,
            draws=[Variant.read(name, texts) for name, texts in arguments["draws"].items()],
            earlier=[ForecastFigures.from_dict(part) for part in arguments["earlier"]],
            notes=arguments.get("notes", ()),
            widening=Widening(*arguments.get("widening") or ()),
        )  # fmt: skip
    if kind == "replications":
        runs = replicate(scenario, count, seed=seed, store=folder, figures=shown)
        reached = [
            Precision(**part | {"reached": nan if part["reached"] is None else part["reached"]})
            for part in summary["precision"]
        ]
        return Replications(scenario, runs.seed, runs.figures, reached, runs.expressions)
    asked = {"baseline": summary["baseline"], "adjust": summary["adjustment"], "figures": shown}
    if decided := summary.get("decided"):
        count = decided["most"]
        asked |= {"decide": decided["figure"], "indifference": decided["indifference"]}
    if kind == "sweep":
        variants = [Variant.read(part["variant"], part["changes"]) for part in summary["variants"]]
        return sweep(scenario, variants, count, seed=seed, store=folder, **asked)
    names = [part["variant"] for part in summary["variants"]]
    folders = (folder / f"{FILE}{number}" for number in range(2, len(names) + 1))
    files = dict(zip(names, [scenario, *map(read_source, folders)], strict=True))
    return compare(files, count, seed=seed, store=folder, **asked)
