"""`dialsim report`: make the page of a result anew.

`dialsim run`: simulate a scenario, once or many times, print what came of it, write tables.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dialsim.cli.program import (
    dask_option,
    engine_option,
    force_option,
    format_option,
    jobs_option,
    optional_scenario_argument,
    seed_option,
    set_option,
    what_if_option,
)

if TYPE_CHECKING:
    from dialsim.engine.engines import Choice
    from dialsim.results.result import Result


@click.command(
    short_help="Make the page of a result anew.", epilog="Example: dialsim report out/first"
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@what_if_option
def report(folder: Path, what_if: int | None) -> None:
    """Make report.html anew in a folder that `dialsim … --out` wrote.

    A run is simulated again from the scenario in the folder, and must come to the same summary;
    many runs are taken from the folder as they are, those that measured what would help as well.
    """
    from dialsim.cli.program import progress_bar
    from dialsim.report.writing import rebuild

    with progress_bar("Making the page", "runs") as progress:
        page = rebuild(folder, what_if, progress)
    click.echo(f"Written to {page}")


@click.command(
    short_help="Simulate a scenario: when is it done, whom does it reach?",
    epilog="Example: dialsim run scenarios/first-campaign.yaml --out out/first "
    "--set organizations.Acme.maxConcurrentCalls=30",
)
@optional_scenario_argument
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write tables, summary, manifest and report.html to this folder; without it nothing is "
    "written. Many runs are kept there as they finish, and the same command goes on with a "
    "stopped one.",
)
@force_option
@click.option(
    "--from-journal",
    "journal",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Instead of simulating a SCENARIO: what happened in the sandbox that kept this journal.",
)
@seed_option
@click.option(
    "--replication",
    type=click.IntRange(min=0),
    metavar="N",
    help="Which replication of the seed to run; default: 0.",
)
@click.option(
    "--replications",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run so many, and print means, quantiles and how sure they are.",
)
@click.option(
    "--precision",
    metavar="FIGURE=PERCENT",
    help="Run as many as it takes to know a mean so well, such as finish=2%; several with commas.",
)
@click.option(
    "--max-replications",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="The most that --precision may take.",
)
@engine_option
@jobs_option
@dask_option
@what_if_option
@set_option
@format_option
def run(
    scenario: Path | None,
    out: Path | None,
    force: bool,
    journal: Path | None,
    seed: int | None,
    replication: int | None,
    replications: int | None,
    precision: str | None,
    max_replications: int,
    engine: Choice,
    jobs: int | None,
    dask: str | None,
    what_if: int | None,
    overrides: tuple[str, ...],
    form: str,
) -> None:
    """Simulate a scenario file and print when it is done, whom it reached and what held it back.

    With --out the tables of every call and every status change are written as well. With
    --replications or --precision it is run many times, and what is printed are the means and
    quantiles of all figures, with their 95 % intervals.
    """
    if journal is not None:
        others = seed, replication, replications, precision, what_if, overrides or None, scenario
        if any(other is not None for other in others):
            raise click.UsageError("--from-journal goes with --out, --force and --format alone")
        _from_journal(journal, out, force, form)
        return
    if scenario is None:
        raise click.UsageError("Missing argument 'SCENARIO'.")
    if replications is None and precision is None:
        _once(scenario, out, force, seed, replication or 0, engine, what_if, overrides, form)
        return
    if replication is not None:
        raise click.UsageError("--replication is for one run: it doesn't go with many")
    first = min(20, max_replications) if replications is None else replications
    _many(
        scenario, out, force, seed, first, precision, max_replications, engine, jobs, dask,
        what_if, overrides, form,
    )  # fmt: skip


def _once(
    scenario: Path,
    out: Path | None,
    force: bool,
    seed: int | None,
    replication: int,
    engine: Choice,
    what_if: int | None,
    overrides: tuple[str, ...],
    form: str,
) -> None:
    from dialsim.cli.program import progress_bar
    from dialsim.results.folder import check_place
    from dialsim.results.result import run as simulate
    from dialsim.scenario.loading import load

    if out is not None:
        check_place(out, force)
    loaded = load(scenario, overrides)
    with progress_bar("Simulating") as progress:
        result = simulate(
            loaded, seed=seed, replication=replication, engine=engine, progress=progress
        )
    _show(result, out, force, what_if, form, engine)


def _from_journal(journal: Path, out: Path | None, force: bool, form: str) -> None:
    from dialsim.results.folder import check_place
    from dialsim.sandbox.dependencies import require_extra

    if out is not None:
        check_place(out, force)
    require_extra("run --from-journal")
    from dialsim.sandbox.restart import read

    _show(read(journal), out, force, None, form)


def _show(
    result: Result,
    out: Path | None,
    force: bool,
    what_if: int | None,
    form: str,
    engine: Choice = "auto",
) -> None:
    from dialsim.cli.program import progress_bar
    from dialsim.results.summary_text import print_summary

    if out is not None:
        from dialsim.report.writing import write_run

        with progress_bar("What would help", "runs") as progress:
            write_run(result, out, force=force, pairs=what_if, progress=progress, engine=engine)
    if form == "json":
        click.echo(result.summary.to_json().decode())
        return
    print_summary(result.summary, result.trace.engine)
    if out is not None:
        click.echo(f"Written to {out}")


def _many(
    scenario: Path,
    out: Path | None,
    force: bool,
    seed: int | None,
    first: int,
    precision: str | None,
    most: int,
    engine: Choice,
    jobs: int | None,
    dask: str | None,
    what_if: int | None,
    overrides: tuple[str, ...],
    form: str,
) -> None:
    from dialsim.cli.experiment import print_json, resumable, write_page
    from dialsim.cli.program import progress_bar
    from dialsim.experiments import experiment_text
    from dialsim.experiments.experiment_text import print_experiment
    from dialsim.experiments.folder import ExperimentFolder, replications_document
    from dialsim.experiments.replications import precisions, replicate
    from dialsim.scenario.loading import load

    loaded = load(scenario, overrides)
    precisions(precision, loaded)
    arguments = {"what_if": what_if}
    folder = None if out is None else ExperimentFolder(out, "replications", loaded, seed, arguments)
    if folder is not None:
        folder.open(force)
    with resumable(out), progress_bar("Simulating", "runs") as progress:
        runs = replicate(
            loaded, first, seed=seed, precision=precision, max_replications=most,
            jobs=jobs, dask=dask, store=out, progress=progress, engine=engine,
        )  # fmt: skip
    document = replications_document(runs)
    if folder is not None:
        from dialsim.report.writing import replications_report

        tables = {"runs": runs.runs, "organizations": runs.organizations, "campaigns": runs.frame}
        write_page(folder.path, partial(replications_report, runs), what_if, jobs, dask, engine)
        folder.finish(tables | {"estimates": runs.intervals()}, document)
    if form == "json":
        print_json(document)
        return
    said = [experiment_text.replications_headline(runs), *experiment_text.lost_sentences(runs)]
    said += experiment_text.precision_sentences(runs)
    print_experiment(loaded.name, said, experiment_text.replications_tables(runs))
    if out is not None:
        click.echo(f"\nWritten to {out}")
