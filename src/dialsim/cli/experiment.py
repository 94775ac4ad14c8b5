"""What the commands of many runs share: going on after Ctrl-C, and printing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from dialsim.cli.options import INTERRUPTED


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


def print_json(document: object) -> None:
    """Print one JSON document."""
    import orjson

    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
