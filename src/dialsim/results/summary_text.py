"""The summary in words and small tables of text, for the terminal and for notebooks alike.

The printed summary: the answer first, then the figures, in 80 columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import fill
from typing import IO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dialsim.results.bottleneck import percent
from dialsim.results.summary import CampaignSummary, Figures, RefusedAction, Summary
from dialsim.results.thai_time import duration_text, minute_text

Cell = Callable[[Figures], str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a planner asked of one campaign: done when, reached whom, held back by what."""

    campaign: str
    finish: str
    reach: str
    held_back: str


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A titled table of texts; the first cell of a row is the name of what it is about."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def headline(summary: Summary) -> str:
    """The whole run in one line."""
    reached = reach_text(summary)
    if summary.finish is not None:
        return f"All done {minute_text(_ms(summary.finish))} Thai time. {reached}."
    if summary.unfinished:
        count = len(summary.unfinished)
        which = "1 campaign is" if count == 1 else f"{count} campaigns are"
        lost = f"; {lost_text(summary.people_lost)}" if summary.people_lost else ""
        return f"{which} not finished{lost}. {reached}."
    return "Nothing was scheduled."


def answers(summary: Summary) -> list[Answer]:
    """An answer per campaign, in the order of the scenario."""
    return [
        Answer(
            campaign=name,
            finish=_finish(campaign, summary),
            reach=reach_text(campaign),
            held_back=campaign.held_back.sentence if campaign.held_back else "",
        )
        for name, campaign in short_names(summary)
    ]


def tables(summary: Summary) -> list[FigureTable]:
    """The figures of every campaign, with a last row for all where there are several.

    A column without anything in it is left out. Where the first column is `all`, the others of its
    table add up to it.
    """
    scopes: list[tuple[str, Figures]] = list(short_names(summary))
    if len(scopes) > 1:
        scopes.append(("all", summary))
    made = [_table(title, columns, scopes) for title, columns in _TABLES.items()]
    return [*(table for table in made if table.columns), *_reach_table(scopes)]


def reach_text(figures: Figures) -> str:
    """`13,204 of 20,000 people reached (66 %)`."""
    if not figures.people:
        return "No people to reach"
    share = percent(figures.people_reached / figures.people)
    return f"{figures.people_reached:,} of {figures.people:,} people reached ({share})"


def short_names(summary: Summary) -> list[tuple[str, CampaignSummary]]:
    """The campaigns by the shortest name that is not ambiguous."""
    names = [campaign.name for campaign in summary.campaigns]
    return [
        (
            part.name if names.count(part.name) == 1 else f"{part.organization}/{part.name}",
            part,
        )
        for part in summary.campaigns
    ]


def _finish(campaign: CampaignSummary, summary: Summary) -> str:
    if campaign.start is None and campaign.final_at is None:
        return "never scheduled"
    if campaign.final_at is None:
        full_name = f"{campaign.organization}/{campaign.name}"
        why = "stalled" if full_name in summary.stalled else "cut by clock.end"
        return f"not finished: {campaign.status}, {why}"
    ended = f"{campaign.status.lower()} {minute_text(_ms(campaign.final_at))} Thai time"
    if campaign.start is None:
        return f"{ended}, never scheduled"
    if campaign.finish is None:
        lost = campaign.people_lost
        return f"not finished: {ended}, {lost_text(lost) if lost else 'cut by clock.end'}"
    days = f"{campaign.calling_days} calling day{'s' * (campaign.calling_days != 1)}"
    return f"{ended}, {days}"


def lost_text(people: int) -> str:
    """`1,204 people lost`: they were still to be called when their campaign ended."""
    return "1 person lost" if people == 1 else f"{people:,} people lost"


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def _table(
    title: str, columns: dict[str, Cell], scopes: Sequence[tuple[str, Figures]]
) -> FigureTable:
    cells = {name: [cell(figures) for _, figures in scopes] for name, cell in columns.items()}
    kept = {name: column for name, column in cells.items() if any(column)}
    names = [name for name, _ in scopes]
    return FigureTable(title, tuple(kept), tuple(zip(names, *kept.values(), strict=True)))


def _reach_table(scopes: Sequence[tuple[str, Figures]]) -> list[FigureTable]:
    """Share of people reached by each attempt; the later ones are left out where they abound."""
    attempts = min(max((len(figures.reach_by_attempt) for _, figures in scopes), default=0), 8)
    if attempts < 2:
        return []
    rows = [
        (name, *(percent(share) for share in figures.reach_by_attempt[:attempts]))
        for name, figures in scopes
    ]
    return [
        FigureTable(
            "Reached by attempt",
            tuple(str(number) for number in range(1, attempts + 1)),
            tuple((*row, *[""] * (attempts + 1 - len(row))) for row in rows),
        )
    ]


def _count(*names: str) -> Cell:
    """A count, or the sum of several; empty where it is 0."""

    def cell(figures: Figures) -> str:
        count = sum(getattr(figures, name) for name in names)
        return f"{count:,}" if count else ""

    return cell


def _seconds(name: str) -> Cell:
    def cell(figures: Figures) -> str:
        seconds = getattr(figures, name)
        if seconds is None:
            return ""
        return duration_text(1000 * round(seconds, 1 if seconds < 10 else 0))

    return cell


def _analyses(name: str) -> Cell:
    """A count of analyses; empty where all of them went well and have nothing to tell."""

    def cell(figures: Figures) -> str:
        part = figures.analyses
        plain = part.analyzed == part.conversations and not part.funnel and not part.reanalyses
        return "" if plain or not (value := getattr(part, name)) else f"{value:,}"

    return cell


def _webhooks(name: str) -> Cell:
    """A count of results; empty where none had a URL to go to."""

    def cell(figures: Figures) -> str:
        value = getattr(figures.webhooks, name)
        return f"{value:,}" if value and figures.webhooks.results else ""

    return cell


def _delay(name: str) -> Cell:
    def cell(figures: Figures) -> str:
        seconds = getattr(figures.webhooks, name)
        return "" if seconds is None else duration_text(1000 * round(seconds, 1))

    return cell


def _cost(figures: Figures) -> str:
    return "" if figures.cost is None else f"{figures.cost:,.2f} {figures.currency}"


_TABLES: dict[str, dict[str, Cell]] = {
    "People": {
        "all": _count("people"),
        "reached": _count("people_reached"),
        "exhausted": _count("people_exhausted"),
        "expired": _count("people_expired"),
        "cancelled": _count("people_cancelled"),
        "left": _count("people_stalled", "people_pending", "people_unscheduled"),
    },
    "People left": {
        "stalled": _count("people_stalled"),
        "pending": _count("people_pending"),
        "unscheduled": _count("people_unscheduled"),
    },
    "Duplicates": {"removed": _count("people_removed")},
    "Calls": {
        "all": _count("calls"),
        "completed": _count("calls_completed"),
        "no answer": _count("calls_no_answer"),
        "busy": _count("calls_busy"),
        "failed": _count("calls_failed"),
        "other": _count("queue_timeouts", "calls_cancelled", "calls_expired", "calls_unfinished"),
    },
    "Other calls": {
        "queue timeout": _count("queue_timeouts"),
        "cancelled": _count("calls_cancelled"),
        "expired": _count("calls_expired"),
        "unfinished": _count("calls_unfinished"),
    },
    "Attempts and cost": {
        "attempts": _count("attempts"),
        "per person": lambda figures: f"{figures.attempts_per_person_mean or 0:.2f}",
        "talk minutes": lambda figures: f"{figures.talk_minutes:,.0f}",
        "cost": _cost,
    },
    "Slots and queue": {
        "mean in use": lambda figures: f"{figures.slots_in_use_mean or 0:.1f}",
        "peak": lambda figures: str(figures.slots_in_use_peak),
        "of capacity": lambda figures: percent(figures.slots_capacity_share or 0),
        "mean wait": _seconds("queue_wait_mean_seconds"),
        "95 % within": _seconds("queue_wait_p95_seconds"),
    },
    "Analyses": {
        "analyzed": _analyses("analyzed"),
        "nobody spoke": _analyses("no_conversation"),
        "unavailable": _analyses("unavailable"),
        "not analyzed": _analyses("not_analyzed"),
        "failed": _analyses("failed"),
        "pending": _analyses("pending"),
        "again": _analyses("reanalyses"),
    },
    "Webhooks": {
        "all": _webhooks("results"),
        "first try": _webhooks("at_first_try"),
        "retried": _webhooks("after_retries"),
        "lost": _webhooks("lost"),
        "pending": _webhooks("pending"),
    },
    "Kept, not sent": {"results": _webhooks("without_url")},
    "At the receiver": {
        "duplicated": _webhooks("duplicated"),
        "out of order": _webhooks("out_of_order"),
        "mean delay": _delay("delay_mean_seconds"),
        "95 % within": _delay("delay_p95_seconds"),
    },
}


WIDTH = 80
_ENGINES = {"simpy": "SimPy", "compiled": "compiled engine"}


def print_summary(summary: Summary, engine: str, file: IO[str] | None = None) -> None:
    """Print a summary to a stream (default: standard output); in colour on a terminal only.

    It says which engine ran; the figures are the same.

    Sentences fit a terminal that is narrower; tables don't: a figure is never cut.
    """
    console = Console(file=file, highlight=False, emoji=False, markup=False)
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    console.width = WIDTH
    how = f"(seed {summary.seed}, {_ENGINES[engine]})"
    console.print(Text(summary.scenario, style="bold"), Text(how, style="dim"))
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
