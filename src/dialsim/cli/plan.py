"""`dialsim plan`: find the value that meets a goal."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dialsim.cli.options import (
    dask_option,
    experiment_out_option,
    force_option,
    format_option,
    jobs_option,
    scenario_argument,
    seed_option,
    set_option,
    what_if_option,
)

if TYPE_CHECKING:
    from dialsim.experiments.plan import Objective


@click.command(
    short_help="Find the smallest value that meets a goal.",
    epilog="""\b
Example: dialsim plan scenarios/first-campaign.yaml --out out/plan \\
    --vary organizations.Acme.maxConcurrentCalls=1..60 \\
    --goal "p95(finish) <= 2026-01-06T05:00:00Z"
""",
)
@scenario_argument
@click.option(
    "--vary",
    "varied",
    required=True,
    multiple=True,
    metavar="PATH=LOW..HIGH",
    help="What to vary, and between which numbers, durations or instants; :STEP may follow.",
)
@click.option(
    "--goal",
    required=True,
    metavar="GOAL",
    help="Such as: p95(finish) <= 2026-01-09T12:00:00Z and mean(cost) <= 5000; "
    "also prob(January.finish <= 5d) >= 0.95.",
)
@click.option(
    "--objective",
    type=click.Choice(["smallest", "largest", "cheapest"]),
    default="smallest",
    show_default=True,
    help="Which of the values that meet the goal.",
)
@click.option(
    "--replications",
    type=click.IntRange(min=2),
    default=25,
    show_default=True,
    metavar="N",
    help="How often each value is run at first.",
)
@click.option(
    "--max-replications",
    type=click.IntRange(min=2),
    default=400,
    show_default=True,
    metavar="N",
    help="How often a value in doubt is run at most.",
)
@experiment_out_option
@force_option
@seed_option
@jobs_option
@dask_option
@what_if_option
@set_option
@format_option
def plan(
    scenario: Path,
    varied: tuple[str, ...],
    goal: str,
    objective: Objective,
    replications: int,
    max_replications: int,
    out: Path | None,
    force: bool,
    seed: int | None,
    jobs: int | None,
    dask: str | None,
    what_if: int | None,
    overrides: tuple[str, ...],
    form: str,
) -> None:
    """Find the smallest (or largest, or cheapest) value of a setting that meets a goal.

    Prints the evidence for the value and for its neighbour. Exit status 1 if nothing meets the
    goal; what comes closest is printed then.
    """
    from dialsim.cli.experiment import check_variants, print_json, resumable, write_page
    from dialsim.cli.progress import progress_bar
    from dialsim.experiments import wording
    from dialsim.experiments.folder import ExperimentFolder
    from dialsim.experiments.goal import read_goal
    from dialsim.experiments.plan import plan as find
    from dialsim.experiments.printed import print_experiment
    from dialsim.experiments.variants import ends, read_span
    from dialsim.scenario.loading import load

    if len(varied) > 1:
        raise click.UsageError(
            f"--vary is given {len(varied)} times: a plan varies one setting; dialsim sweep "
            "crosses several"
        )
    (vary,) = varied
    loaded = load(scenario, overrides)
    path, span = read_span(vary)
    check_variants(ends(path, span), loaded)
    read_goal(goal, loaded)
    most = max(replications, max_replications)
    arguments: dict[str, object] = {
        "vary": vary,
        "goal": goal,
        "objective": objective,
        "replications": replications,
        "max_replications": most,
        "what_if": what_if,
    }
    folder = None if out is None else ExperimentFolder(out, "plan", loaded, seed, arguments)
    if folder is not None:
        folder.open(force)
    with resumable(out), progress_bar("Simulating", "runs") as progress:
        answer = find(
            loaded, path, span, goal, objective=objective, replications=replications,
            max_replications=most, seed=seed, jobs=jobs, dask=dask,
            store=out, progress=progress,
        )  # fmt: skip
    document = answer.to_dict()
    if folder is not None:
        from dialsim.report.experiment_reports import plan_report

        report = partial(plan_report, answer, loaded, seed)
        write_page(folder.path, report, what_if, jobs, dask)
        folder.finish({}, document)
    if form == "json":
        print_json(document)
    else:
        warnings = (f"Warning: {text}." for text in answer.warnings)
        said = [wording.plan_headline(answer), *wording.plan_sentences(answer), *warnings]
        print_experiment(loaded.name, said, wording.plan_tables(answer))
        if out is not None:
            click.echo(f"\nWritten to {out}")
    if not answer.met:
        raise click.exceptions.Exit(1)
