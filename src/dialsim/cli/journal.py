"""`dialsim journal`: what can be done to the file that a sandbox is kept in."""

from __future__ import annotations

from pathlib import Path

import click


@click.group(
    short_help="Copy the file that a sandbox is kept in.",
    epilog="Example: dialsim journal copy team.journal backup.journal",
)
def journal() -> None:
    """What can be done to the file in which `dialsim serve --journal` keeps a sandbox."""


@journal.command(epilog="Example: dialsim journal copy team.journal backup.journal")
@click.argument("source", type=click.Path(path_type=Path, dir_okay=False), metavar="FROM")
@click.argument("target", type=click.Path(path_type=Path), metavar="TO")
def copy(source: Path, target: Path) -> None:
    """Copy a journal, also while a sandbox runs on it.

    The copy is one file, as of this moment, and is read once to make sure that it is whole. Copying
    the file by other means takes a sandbox that was stopped: what came last is in a second file.
    """
    from dialsim.sandbox.journal import copy_journal

    count = copy_journal(source, target)
    click.echo(f"Copied to {target}: {count:,} {'entry' if count == 1 else 'entries'}")
