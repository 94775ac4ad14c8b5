"""`dialsim sweep`: run variants of a scenario and compare them."""

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
    from dialsim.experiments.sweep import Adjustment
    from dialsim.experiments.variants import Variant

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
    from dialsim.cli.experiment import check_variants, print_json, resumable, write_page
    from dialsim.cli.progress import progress_bar
    from dialsim.experiments import wording
    from dialsim.experiments.differences import check_baseline
    from dialsim.experiments.documents import sweep_document
    from dialsim.experiments.folder import ExperimentFolder
    from dialsim.experiments.printed import print_experiment
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
            seed=seed, jobs=jobs, dask=dask, store=out, progress=progress,
        )  # fmt: skip
    compared = found.differences(base, paired=not unpaired, adjust=adjust)
    used = loaded.seed if seed is None else seed
    document = sweep_document(found, compared, base, used, adjust)
    if folder is not None:
        from dialsim.report.experiment_reports import sweep_report

        tables = {
            "runs": found.runs,
            "organizations": found.organizations,
            "campaigns": found.frame,
            "estimates": found.intervals(),
            "differences": compared,
        }
        report = partial(sweep_report, found, compared, base, seed)
        write_page(folder.path, report, what_if, jobs, dask)
        folder.finish(tables, document)
    if form == "json":
        print_json(document)
        return
    said = [wording.sweep_headline(found)]
    print_experiment(loaded.name, said, wording.sweep_tables(found, compared, base))
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
