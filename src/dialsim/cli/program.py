"""The group of all commands, which ends quietly when nobody reads what it prints any more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from typing_extensions import override

from dialsim.cli.options import PIPE_CLOSED


class Program(click.Group):
    """A group that, of a closed pipe (`dialsim run … | head -1`), says nothing but its status."""

    @override
    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        with _readers_may_leave():
            return super().make_context(*arguments, **settings)

    @override
    def invoke(self, ctx: click.Context) -> Any:
        with _readers_may_leave():
            return super().invoke(ctx)


@contextmanager
def _readers_may_leave() -> Iterator[None]:
    try:
        yield
    except (BrokenPipeError, SystemExit) as error:
        # rich makes a status of 1 of it, which means that an answer is no
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        drop_output()
        raise click.exceptions.Exit(PIPE_CLOSED) from None


def drop_output() -> None:
    """Have what is left of the standard output go nowhere: else it fails again at the exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
