"""The printed summary: the answer first, then the figures, in 80 columns."""

from __future__ import annotations

from textwrap import fill
from typing import IO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dialsim.results.summary import RefusedAction, Summary
from dialsim.results.thai_time import minute_text
from dialsim.results.wording import Answer, FigureTable, answers, headline, tables

WIDTH = 80


def print_summary(summary: Summary, file: IO[str] | None = None) -> None:
    """Print a summary to a stream (default: standard output); in colour on a terminal only.

    Sentences fit a terminal that is narrower; tables don't: a figure is never cut.
    """
    console = Console(file=file, highlight=False, emoji=False, markup=False)
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    console.width = WIDTH
    console.print(Text(summary.scenario, style="bold"), Text(f"(seed {summary.seed})", style="dim"))
    said = answers(summary)
    if len(said) != 1:
        console.print(headline(summary))
    for answer in said:
        console.print()
        _print_answer(answer, console, width)
    for table in tables(summary):
        console.print()
        _print_table(table, console)
    _print_remarks(summary, console)


def _print_answer(answer: Answer, console: Console, width: int) -> None:
    """A campaign's name, and what became of it."""
    console.print(Text(answer.campaign, style="bold cyan"))
    for line, style in ((answer.finish, "bold"), (answer.reach, ""), (answer.held_back, "")):
        text = fill(line, width, initial_indent="  ", subsequent_indent="  ")
        console.print(Text(text, style=style))


_NAMES, _FEWEST, _WIDEST = 22, 8, 200


def _print_table(table: FigureTable, console: Console) -> None:
    """A table in 80 columns, or in more where its figures alone take them."""

    def width(made: Table) -> int:
        return console.measure(made, options=console.options.update(max_width=_WIDEST)).maximum

    over = max(0, width(rich_table(table, _NAMES)) - WIDTH)
    made = rich_table(table, max(_NAMES - over, _FEWEST))
    console.width = max(WIDTH, width(made))
    console.print(made)
    console.width = WIDTH


def rich_table(table: FigureTable, names: int) -> Table:
    """A table as rich prints it; only the first column is cut, where it exceeds `names` signs."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    made.add_column(
        Text(table.title, style="bold"), max_width=names, overflow="ellipsis", no_wrap=True
    )
    for column in table.columns:
        made.add_column(Text(column, style="dim"), justify="right")
    for name, *cells in table.rows:
        made.add_row(Text(name), *(Text(cell) for cell in cells))
    return made


def _print_remarks(summary: Summary, console: Console) -> None:
    """Warnings, and what the engine refused to do."""
    remarks = [f"Warning: {warning}" for warning in summary.warnings]
    remarks += [_refusal(refused) for refused in summary.refused]
    if remarks:
        console.print()
    for remark in remarks:
        console.print(Text(remark, style="yellow"))


def _refusal(refused: RefusedAction) -> str:
    when = minute_text(round(refused.at.timestamp() * 1000))
    whom = f" {refused.campaign}" if refused.campaign else f" {refused.organization}"
    return f"Refused: {when} Thai time, {refused.action}{whom}: {refused.message} ({refused.code})"
