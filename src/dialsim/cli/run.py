"""`dialsim run`: simulate a scenario, print what came of it, write the tables."""

from __future__ import annotations

from pathlib import Path

import click

from dialsim.cli.options import format_option, scenario_argument, seed_option, set_option


@click.command(
    short_help="Simulate a scenario: when is it done, whom does it reach?",
    epilog="Example: dialsim run scenarios/first-campaign.yaml --out out/first "
    "--set organizations.Acme.maxConcurrentCalls=30",
)
@scenario_argument
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write tables, summary and manifest to this folder; without it nothing is written.",
)
@click.option("--force", is_flag=True, help="Replace DIR if it holds an earlier result.")
@seed_option
@click.option(
    "--replication",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Which replication of the seed.",
)
@set_option
@format_option
def run(
    scenario: Path,
    out: Path | None,
    force: bool,
    seed: int | None,
    replication: int,
    overrides: tuple[str, ...],
    form: str,
) -> None:
    """Simulate a scenario file and print when it is done, whom it reached and what held it back.

    With --out the tables of every call and every status change are written as well.
    """
    from dialsim.cli.progress import progress_bar
    from dialsim.results.output_folder import check_place
    from dialsim.results.printed import print_summary
    from dialsim.results.runs import run as simulate
    from dialsim.scenario.loading import load

    if out is not None:
        check_place(out, force)
    loaded = load(scenario, overrides)
    with progress_bar("Simulating") as progress:
        result = simulate(loaded, seed=seed, replication=replication, progress=progress)
    if out is not None:
        result.write(out, force=force)
    if form == "json":
        click.echo(result.summary.to_json().decode())
        return
    print_summary(result.summary)
    if out is not None:
        click.echo(f"Written to {out}")
