"""A progress bar on a terminal, nothing in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str, unit: str = "people") -> Iterator[Callable[[int, int], None]]:
    """Yield `report(done, total)`; the bar goes to standard error and vanishes at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(what, total=None, done="")

        def report(done: int, total: int) -> None:
            text = f"{done:,} of {total:,} {unit}"
            progress.update(task, completed=done, total=total, done=text)

        yield report
