"""Experiments printed: the answer first, then tables, in 80 columns or as wide as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from rich.console import Console
from rich.text import Text

from dialsim.results.printed import WIDTH, rich_table
from dialsim.results.wording import FigureTable

_WIDEST, _NAMES = 200, 60


def print_experiment(
    title: str, said: Sequence[str], tables: Sequence[FigureTable], file: IO[str] | None = None
) -> None:
    """Print sentences and tables to a stream (default: standard output)."""
    console = Console(file=file, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = _WIDEST
        widths = [console.measure(rich_table(table, _NAMES)).maximum for table in tables]
        console.width = max([WIDTH, *widths])
    console.print(Text(title, style="bold"))
    for sentence in said:
        console.print(Text(sentence, style="yellow" if sentence.startswith("Warning") else ""))
    for table in tables:
        console.print()
        console.print(rich_table(table, _NAMES))
