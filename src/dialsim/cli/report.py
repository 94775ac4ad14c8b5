"""`dialsim report`: make the page of a result anew."""

from __future__ import annotations

from pathlib import Path

import click

from dialsim.cli.options import what_if_option


@click.command(
    short_help="Make the page of a result anew.",
    epilog="Example: dialsim report out/first",
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@what_if_option
def report(folder: Path, what_if: int | None) -> None:
    """Make report.html anew in a folder that `dialsim … --out` wrote.

    A run is simulated again from the scenario in the folder, and must come to the same summary;
    many runs are taken from the folder as they are, those that measured what would help as well.
    """
    from dialsim.cli.progress import progress_bar
    from dialsim.report.rebuilding import rebuild

    with progress_bar("Making the page", "runs") as progress:
        page = rebuild(folder, what_if, progress)
    click.echo(f"Written to {page}")
