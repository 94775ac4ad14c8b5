"""Learning from records: `dialsim calibrate` estimates a behaviour from a log."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    short_help="Estimate a behaviour from a log of calls.",
    epilog="""Examples:

    \b
      dialsim calibrate out/first --out behaviour.yaml
      dialsim calibrate webhooks.jsonl --by agent --hold-out 0.3 --out behaviour.yaml
    """,
)
@click.argument("log", type=click.Path(path_type=Path), metavar="LOG")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="Write the behaviours to this file, as a block of a scenario.",
)
@click.option(
    "--by",
    type=click.Choice(["agent", "campaign", "segment"]),
    help="Estimate a behaviour for each of them, named after it; default: one for all calls.",
)
@click.option(
    "--hold-out",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    metavar="SHARE",
    help="Forecast the last calls, such as 0.3 of all, from those before, and say how well.",
)
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="HTML",
    help="Write a page with pictures of the estimates against the log.",
)
@click.option("--column", metavar="NAME", help="The column of bodies in a CSV or Parquet file.")
@click.option("--force", is_flag=True, help="Replace FILE and HTML if they exist.")
def calibrate(
    log: Path,
    out: Path,
    by: str | None,
    hold_out: float | None,
    page: Path | None,
    column: str | None,
    force: bool,
) -> None:
    """Estimate from a log who answers, how long calls take, and what goes wrong.

    LOG is a folder of `dialsim run`, or the webhooks that a receiver stored. The file is the block
    `behaviours:` of a scenario. Each number in it has its standard error and the count that it
    rests on; what the log can't tell is said and left at its default.
    """
    from dialsim.cli.program import progress_bar
    from dialsim.evidence.behaviour_text import summary_lines, yaml_text
    from dialsim.evidence.calibrate import calibrate as estimate
    from dialsim.evidence.log import read_log

    for file in (out, page):
        if file is not None and file.exists() and not force:
            raise click.UsageError(f"{file} exists; --force replaces it")
        if file is not None and not file.absolute().parent.is_dir():
            raise click.UsageError(f"{file}: there is no folder {file.parent}")
    with progress_bar("Reading", "bytes") as bar:
        read = read_log(log, column=column, progress=bar)
    found = estimate(read, by, hold_out)  # type: ignore[arg-type]
    html = None
    if page is not None:
        from dialsim.report.calibration_page import calibration_page

        html = calibration_page(found).html()
    out.write_text(yaml_text(found), encoding="utf-8")
    if page is not None and html is not None:
        page.write_text(html, encoding="utf-8")
    for line in summary_lines(found):
        click.echo(line)
    if read.damaged:
        click.echo(f"{read.damaged:,} lines of the log could not be read and were skipped.")
    click.echo(f"Written: {out}{'' if page is None else f', {page}'}")
