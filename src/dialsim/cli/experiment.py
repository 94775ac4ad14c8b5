"""What the commands of many runs share: going on after Ctrl-C, and printing.

`dialsim sweep`: run variants of a scenario and compare them.

`dialsim plan`: find the value that meets a goal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dialsim.cli.program import (
    INTERRUPTED,
    dask_option,
    engine_option,
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
    from dialsim.engine.engines import Choice
    from dialsim.experiments.plan import Objective
    from dialsim.experiments.sweep import Adjustment
    from dialsim.experiments.variants import Variant
    from dialsim.report.what_if import FurtherRuns
    from dialsim.scenario.scenario import Scenario


@contextmanager
def resumable(out: Path | None) -> Iterator[None]:
    """Say after Ctrl-C what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing was written."
        if out is not None:
            kept = f"finished replications are kept in {out}; the same command goes on from there."
        click.echo(f"Interrupted: {kept}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None


def write_page(
    out: Path,
    report: Callable[[FurtherRuns], str],
    pairs: int | None,
    jobs: int | None,
    dask: str | None,
    engine: Choice,
) -> None:
    """Write report.html; the runs that it takes are kept with the others."""
    from dialsim.cli.program import progress_bar
    from dialsim.report.what_if import FurtherRuns
    from dialsim.report.writing import put

    with resumable(out), progress_bar("What would help", "runs") as progress:
        put(report(FurtherRuns(pairs, jobs, dask, out, progress, engine)), out)


def check_variants(variants: Sequence[Variant], scenario: Scenario) -> None:
    """Raise an error that names the first variant that a scenario can't have."""
    from dialsim.experiments.errors import ExperimentError
    from dialsim.scenario.problems import ScenarioError

    for variant in variants:
        try:
            variant.of(scenario)
        except ScenarioError as error:
            said = str(error).removeprefix("--set ")
            raise ExperimentError(f"variant {variant.name}: {said}") from None


def print_json(document: object) -> None:
    """Print one JSON document."""
    import orjson

    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(
    short_help="Compare variants of a scenario: what would change, and is it real?",
    epilog="""\b
Example: dialsim sweep scenarios/first-campaign.yaml --out out/lines \\
    --vary organizations.Acme.maxConcurrentCalls=8..14:2

\b
A file for --variants:
    as it is: []
    two lines more: [organizations.Acme.maxConcurrentCalls=12]
    retries sooner:
      - organizations.Acme.campaigns.January.schedule.retryInterval=1800000

\b
A file for --design; an empty cell leaves a value as it is:
    variant,organizations.Acme.maxConcurrentCalls,seed
    as it is,,
    more lines,12,
    another seed,,2
""",
)
@scenario_argument
@click.option(
    "--vary",
    multiple=True,
    metavar="PATH=VALUES",
    help="Values to try, as 10,20,30 or 10..60:5; several are crossed.",
)
@click.option(
    "--design",
    type=_FILE,
    metavar="FILE.csv",
    help="A CSV with a path in each head cell and a variant in each row; see below.",
)
@click.option(
    "--variants",
    type=_FILE,
    metavar="FILE.yaml",
    help="Named what-ifs as YAML: under each name a list of PATH=VALUE; see below.",
)
@click.option(
    "--replications",
    type=click.IntRange(min=2),
    default=50,
    show_default=True,
    metavar="N",
    help="How often each variant is run.",
)
@click.option("--baseline", metavar="NAME", help="The variant to compare with; default: the first.")
@click.option(
    "--adjust",
    type=click.Choice(["bonferroni", "holm"]),
    help="Guard against chance findings among many comparisons.",
)
@click.option("--unpaired", is_flag=True, help="Ignore that the variants met the same chance.")
@experiment_out_option
@force_option
@seed_option
@engine_option
@jobs_option
@dask_option
@what_if_option
@set_option
@format_option
def sweep(
    scenario: Path,
    vary: tuple[str, ...],
    design: Path | None,
    variants: Path | None,
    replications: int,
    baseline: str | None,
    adjust: Adjustment | None,
    unpaired: bool,
    out: Path | None,
    force: bool,
    seed: int | None,
    engine: Choice,
    jobs: int | None,
    dask: str | None,
    what_if: int | None,
    overrides: tuple[str, ...],
    form: str,
) -> None:
    """Run variants of a scenario and print their figures, and what differs from the baseline.

    All variants call the same people, who react alike, so that little luck is left in a
    difference: it is real where its 95 % interval excludes 0.
    """
    from dialsim.cli.program import progress_bar
    from dialsim.experiments import experiment_text
    from dialsim.experiments.estimates import check_baseline
    from dialsim.experiments.experiment_text import print_experiment
    from dialsim.experiments.folder import ExperimentFolder, sweep_document
    from dialsim.experiments.sweep import sweep as run_all
    from dialsim.scenario.loading import load

    loaded = load(scenario, overrides)
    listed = _variants(vary, design, variants)
    base = check_baseline([variant.name for variant in listed], baseline)
    check_variants(listed, loaded)
    arguments = {"paired": not unpaired, "what_if": what_if}
    folder = None if out is None else ExperimentFolder(out, "sweep", loaded, seed, arguments)
    if folder is not None:
        folder.open(force)
    with resumable(out), progress_bar("Simulating", "runs") as progress:
        found = run_all(
            loaded, listed, replications,
            seed=seed, jobs=jobs, dask=dask, store=out, progress=progress, engine=engine,
        )  # fmt: skip
    compared = found.differences(base, paired=not unpaired, adjust=adjust)
    used = loaded.seed if seed is None else seed
    document = sweep_document(found, compared, base, used, adjust)
    if folder is not None:
        from dialsim.report.writing import sweep_report

        tables = {
            "runs": found.runs,
            "organizations": found.organizations,
            "campaigns": found.frame,
            "estimates": found.intervals(),
            "differences": compared,
        }
        report = partial(sweep_report, found, compared, base, seed)
        write_page(folder.path, report, what_if, jobs, dask, engine)
        folder.finish(tables, document)
    if form == "json":
        print_json(document)
        return
    said = [experiment_text.sweep_headline(found)]
    print_experiment(loaded.name, said, experiment_text.sweep_tables(found, compared, base))
    if out is not None:
        click.echo(f"\nWritten to {out}")


def _variants(vary: tuple[str, ...], design: Path | None, variants: Path | None) -> list[Variant]:
    from dialsim.experiments.variants import crossed, read_design, read_variants, read_vary

    if (len(vary) > 0) + (design is not None) + (variants is not None) != 1:
        raise click.UsageError("say what to try: one of --vary, --design and --variants")
    if design is not None:
        return read_design(design)
    if variants is not None:
        return read_variants(variants)
    pairs = [read_vary(text) for text in vary]
    for path, _ in pairs:
        if [other for other, _ in pairs].count(path) > 1:
            raise click.UsageError(f"--vary {path} is given twice: put its values into one")
    return crossed(dict(pairs))


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
@engine_option
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
    engine: Choice,
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
    from dialsim.cli.program import progress_bar
    from dialsim.experiments import experiment_text
    from dialsim.experiments.experiment_text import print_experiment
    from dialsim.experiments.folder import ExperimentFolder
    from dialsim.experiments.goal import read_goal
    from dialsim.experiments.plan import plan as find
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
            store=out, progress=progress, engine=engine,
        )  # fmt: skip
    document = answer.to_dict()
    if folder is not None:
        from dialsim.report.writing import plan_report

        report = partial(plan_report, answer, loaded, seed)
        write_page(folder.path, report, what_if, jobs, dask, engine)
        folder.finish({}, document)
    if form == "json":
        print_json(document)
    else:
        warnings = (f"Warning: {text}." for text in answer.warnings)
        said = [
            experiment_text.plan_headline(answer),
            *experiment_text.plan_sentences(answer),
            *warnings,
        ]
        print_experiment(loaded.name, said, experiment_text.plan_tables(answer))
        if out is not None:
            click.echo(f"\nWritten to {out}")
    if not answer.met:
        raise click.exceptions.Exit(1)
