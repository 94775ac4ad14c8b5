"""`dialsim run`: simulates a scenario, once or many times; `dialsim report`: makes a page again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dialsim.cli.experiment import figure_option
from dialsim.cli.program import (
    Options,
    announce,
    dask_option,
    engine_option,
    excel_option,
    force_option,
    format_option,
    jobs_option,
    language_option,
    optional_scenario_argument,
    progress_bar,
    seed_option,
    set_option,
    what_if_option,
    with_options,
)
from dialsim.language import LANGUAGES

if TYPE_CHECKING:
    from dialsim.results.result import Result


@click.command(
    short_help="Make the page of a result anew.", epilog="Example: dialsim report out/first"
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@what_if_option
@click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    help="The language of sheet.html; default: the one it has.",
)
@click.option(
    "--methods",
    is_flag=True,
    help="Write methods.md instead: how the study was made, and how it is repeated.",
)
def report(folder: Path, what_if: int | None, language: str | None, methods: bool) -> None:
    """Rebuild report.html and sheet.html in a folder that `dialsim … --out` wrote.

    A run is simulated again from the scenario in the folder, and must give the same summary. The
    results of many runs are read from the folder, including the measured improvements.

    With --methods the folder gets a statement of methods in the order of STRESS-DES.
    """
    if methods:
        from dialsim.report.methods import NAME
        from dialsim.report.methods import methods as statement
        from dialsim.results.folder import replace_file

        # Refused rather than ignored: the runs that it asks for would not be made.
        if what_if is not None:
            raise click.UsageError("--what-if is for the page: it doesn't go with --methods")
        text = statement(folder).encode()
        replace_file(folder / NAME, lambda file: file.write(text))
        click.echo(f"Written to {folder / NAME}")
        return
    from dialsim.report.writing import rebuild

    with progress_bar("Making the page", "runs") as progress:
        page = rebuild(folder, what_if, progress, language)
    click.echo(f"Written to {page}")


@click.command(
    short_help="Simulate a scenario: when is it done, whom does it reach?",
    epilog="Example: dialsim run scenarios/first-campaign.yaml --out out/first --set lines=30",
)
@optional_scenario_argument
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write tables, summary, manifest, report.html and sheet.html to this folder; without it "
    "nothing is written. Many runs are kept there as they finish, and the same command "
    "continues a stopped one.",
)
@force_option
@click.option(
    "--from-journal",
    "journal",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Instead of simulating a SCENARIO, read the run of the sandbox that kept this journal.",
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
    help="Run this many replications, and print means and quantiles with their 95 % intervals.",
)
@click.option(
    "--precision",
    metavar="FIGURE=PERCENT",
    help="Run replications until the mean of FIGURE is known to within PERCENT, such as "
    "finish=2%; separate several by commas.",
)
@click.option(
    "--max-replications",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Upper limit of replications for --precision.",
)
@figure_option
@engine_option
@jobs_option
@dask_option
@what_if_option
@language_option
@excel_option
@click.option(
    "--without",
    type=click.Choice(["calls", "transitions", "recipients", "campaigns", "webhooks"]),
    multiple=True,
    help="Leave a table, such as webhooks, out of DIR; for a single run; may be repeated.",
)
@set_option
@format_option
@with_options
def run(
    scenario: Path | None,
    journal: Path | None,
    replication: int | None,
    replications: int | None,
    precision: str | None,
    max_replications: int,
    without: tuple[str, ...],
    figures: tuple[str, ...],
    options: Options,
) -> None:
    """Simulate a scenario file and print when it is done, whom it reached and what held it back.

    With --out the tables of every call and every status change are written as well. With
    --replications or --precision the scenario is run many times, and the means and quantiles of all
    figures are printed with their 95 % intervals.
    """
    if without and options.out is None:
        raise click.UsageError("--without leaves out files: it goes with --out")
    if journal is not None:
        others = (options.seed, replication, replications, precision, options.what_if, scenario,
                  options.overrides or None, figures or None)  # fmt: skip
        if any(other is not None for other in others):
            raise click.UsageError(
                "--from-journal goes with --out, --force, --excel, --without and --format alone"
            )
        _from_journal(journal, options, without)
        return
    if scenario is None:
        raise click.UsageError("Missing argument 'SCENARIO'.")
    if replications is None and precision is None:
        if figures:
            raise click.UsageError("--figure is for many runs: give --replications as well")
        _once(scenario, replication or 0, options, without)
        return
    if without:
        raise click.UsageError("--without is for one run: it doesn't go with many")
    if replication is not None:
        raise click.UsageError("--replication is for one run: it doesn't go with many")
    # --precision alone begins with 20 runs, from which it estimates how many more it takes.
    first = min(20, max_replications) if replications is None else replications
    _many(scenario, first, precision, max_replications, figures, options)


def _once(scenario: Path, replication: int, options: Options, without: tuple[str, ...]) -> None:
    from dialsim.results.folder import check_place
    from dialsim.results.result import run as simulate
    from dialsim.scenario.loading import load

    # Checked first: a long run must not end with an error about its folder.
    if options.out is not None:
        check_place(options.out, options.force)
    loaded = load(scenario, overrides=options.overrides)
    # The estimate exists in English only, and is left out before a Thai answer.
    announce(loaded, options.form, estimated=options.language == "en")
    with progress_bar("Simulating") as progress:
        result = simulate(
            loaded, seed=options.seed, replication=replication, engine=options.engine,
            progress=progress,
        )  # fmt: skip
    _show(result, options, without)


def _from_journal(journal: Path, options: Options, without: tuple[str, ...]) -> None:
    from dialsim.results.folder import check_place
    from dialsim.sandbox.access import require_extra

    if options.out is not None:
        check_place(options.out, options.force)
    # Before the import that needs the extra, whose ImportError would not say how to install it.
    require_extra("run --from-journal")
    from dialsim.sandbox.restart import read

    _show(read(journal), options, without)


def _show(result: Result, options: Options, without: tuple[str, ...]) -> None:
    from dialsim.language import language
    from dialsim.results.summary_text import print_summary

    out = options.out
    if out is not None:
        from dialsim.report.writing import write_run

        with progress_bar("What would help", "runs") as progress:
            write_run(
                result, out, force=options.force, pairs=options.what_if, progress=progress,
                engine=options.engine, without=without, excel=options.excel,
                language=options.language,
            )  # fmt: skip
    if options.form == "json":
        click.echo(result.summary.to_json().decode())
        return
    print_summary(result.summary, result.trace.engine, texts=language(options.language))
    if out is not None:
        click.echo(f"Written to {out}")


def _many(
    scenario: Path,
    first: int,
    precision: str | None,
    most: int,
    figures: tuple[str, ...],
    options: Options,
) -> None:
    from dialsim.cli.experiment import Experiment
    from dialsim.experiments.replications import replicate
    from dialsim.scenario.loading import load

    loaded = load(scenario, overrides=options.overrides)
    experiment = Experiment("replications", [loaded], options, {"figures": list(figures)})
    announce(loaded, options.form, estimated=options.language == "en")
    with experiment.running() as (_, settings):
        runs = replicate(
            loaded, first, precision=precision, max_replications=most, figures=figures,
            seed=options.seed, **settings,
        )  # fmt: skip
    experiment.deliver(runs)
