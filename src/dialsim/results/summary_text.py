"""The summary in sentences and small tables, and as printed: the answer first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import IO, TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from dialsim.interface.instants import minute_text, ms_of
from dialsim.interface.phrases import brief_text, percent
from dialsim.language import ENGLISH, Language, templates
from dialsim.results.bottleneck import Bottleneck, held_back_text
from dialsim.results.compliance import COUNTS
from dialsim.results.figures import FIGURES, Figure, Figures, Table

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.results.summary import CampaignSummary, RefusedAction, Summary


@dataclass(frozen=True, slots=True)
class CampaignAnswer:
    """Answer for one campaign: finish, people reached, cause of delay."""

    campaign: str
    finish: str
    reach: str
    held_back: str


class ValueText(str):
    """Text of a number with its `value`, for sorting tables.

    `value` is NaN for a text without a number. Instants count from 1970, in any unit.
    """

    value: float

    def __new__(cls, text: str, value: float) -> ValueText:
        """Create the text with its value."""
        made = super().__new__(cls, text)
        made.value = value
        return made

    def __reduce__(self) -> tuple[type[ValueText], tuple[str, float]]:
        # Pickle the text with its value, for other processes.
        return ValueText, (str(self), self.value)


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Table of texts with a title; the first cell of a row is the name of its subject.

    `fixed` are rows that keep their positions when a reader sorts the table: a sum, a goal.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    fixed: frozenset[int] = frozenset()


class ExperimentResult:
    """Common part of the results of experiments: how they are printed, written and shown."""

    __slots__ = ()

    @property
    def title(self) -> str:
        """Heading of the printed answer."""
        raise NotImplementedError

    def printed(self) -> tuple[list[str], list[FigureTable]]:
        """Return the sentences and tables that a command prints."""
        raise NotImplementedError

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the output folder, by name."""
        return {}

    def __repr__(self) -> str:
        return brief_text(f"dialsim.{type(self).__name__} {self.title!r}", self.printed()[0])

    def _repr_html_(self) -> str:
        return fragment(self.title, *self.printed())


def headline(summary: Summary, texts: Language = ENGLISH) -> str:
    """Return the result of the whole run in one line."""
    reached, gettext = reach_text(summary, texts), texts.gettext
    if summary.finish is not None:
        when = texts.when(ms_of(summary.finish))
        return gettext("All done {when} Thai time. {reached}.", when=when, reached=reached)
    if not summary.unfinished:
        return gettext("Nothing was scheduled.")
    which = texts.ngettext(
        "{count} campaign is not finished", "{count} campaigns are not finished",
        len(summary.unfinished),
    )  # fmt: skip
    if summary.people_lost:
        lost = lost_text(summary.people_lost, texts)
        return gettext("{which}; {lost}. {reached}.", which=which, lost=lost, reached=reached)
    return gettext("{which}. {reached}.", which=which, reached=reached)


def answers(summary: Summary, texts: Language = ENGLISH) -> list[CampaignAnswer]:
    """Return an answer per campaign, in the order of the scenario."""
    return [
        CampaignAnswer(
            campaign=name,
            finish=_finish(campaign, summary, texts),
            reach=reach_text(campaign, texts),
            held_back=_held_back(campaign.held_back, texts),
        )
        for name, campaign in short_names(summary)
    ]


def _held_back(held: Bottleneck | None, texts: Language) -> str:
    # The English sentence has details that the messages of other languages leave to the page.
    return held_back_text(texts, held) if held is None or texts.code != "en" else held.sentence


def tables(summary: Summary) -> list[FigureTable]:
    """Return the tables of figures by campaign; with several campaigns the last row is for all.

    Empty columns are left out. If the first column is `all`, the others add up to it.
    """
    scopes: list[tuple[str, Figures]] = list(short_names(summary))
    if len(scopes) > 1:
        scopes.append(("all", summary))
    made = [_table(title, scopes) for title in Table]
    made = [table for table in made if table.columns]
    return [*made, *_reach_table(scopes), *_compliance_tables(summary)]


def reach_text(figures: Figures, texts: Language = ENGLISH) -> str:
    """Format reached people: `13,204 of 20,000 people reached (66 %)`."""
    if not figures.people:
        return texts.gettext("No people to reach")
    return texts.gettext(
        "{reached} of {people} people reached ({share})", reached=f"{figures.people_reached:,}",
        people=f"{figures.people:,}", share=texts.share(figures.people_reached / figures.people),
    )  # fmt: skip


def short_names(summary: Summary) -> list[tuple[str, CampaignSummary]]:
    """Return the campaigns with their shortest unambiguous names."""
    names = [campaign.name for campaign in summary.campaigns]
    return [
        (part.name if names.count(part.name) == 1 else f"{part.organization}/{part.name}", part)
        for part in summary.campaigns
    ]


def _finish(campaign: CampaignSummary, summary: Summary, texts: Language) -> str:
    gettext = texts.gettext
    if campaign.final_at is None and campaign.start is None:
        return gettext("never scheduled")
    if campaign.final_at is None:
        stalled = f"{campaign.organization}/{campaign.name}" in summary.stalled
        cut = gettext("not finished: {status}, cut by clock.end")
        message = gettext("not finished: {status}, stalled") if stalled else cut
        return message.format(status=campaign.status)
    messages = {
        "COMPLETED": gettext("completed {when} Thai time"),
        "CANCELLED": gettext("cancelled {when} Thai time"),
        "EXPIRED": gettext("expired {when} Thai time"),
    }
    ended = messages[campaign.status].format(when=texts.when(ms_of(campaign.final_at)))
    lost, days = lost_text(campaign.people_lost, texts), campaign.calling_days
    if campaign.start is None:
        message = gettext("{ended}, never scheduled")
    elif campaign.finish is not None:
        message = texts.ngettext("{ended}, {count} calling day", "{ended}, {count} calling days",
                                 days, ended=ended)  # fmt: skip
    elif campaign.people_lost:
        message = gettext("not finished: {ended}, {lost}")
    else:
        message = gettext("not finished: {ended}, cut by clock.end")
    return message.format(ended=ended, lost=lost)


def lost_text(people: int, texts: Language = ENGLISH) -> str:
    """Format the people who were still to be called when their campaign ended: `1,204 people
    lost`.
    """
    return texts.ngettext("{count} person lost", "{count} people lost", people)


def _table(title: Table, scopes: Sequence[tuple[str, Figures]]) -> FigureTable:
    """Return the table with a title: the figures declared for it, without empty columns.

    In People and in Calls, a column has the sum of the figures that the next table details.
    """
    cells: dict[str, list[str]] = {}
    for figure in _FIGURES[title]:
        assert figure.column is not None
        cells[figure.column.head] = [_cell(figure, part) for _, part in scopes]
    if title in _REST:
        head, other = _REST[title]
        sums = (sum(figure.of(part) for figure in _FIGURES[other]) for _, part in scopes)
        cells[head] = [ValueText(f"{count:,}", count) if count else "" for count in sums]
    kept = {head: column for head, column in cells.items() if any(column)}
    names = [name for name, _ in scopes]
    rows = tuple(zip(names, *kept.values(), strict=True))
    return FigureTable(title, tuple(kept), rows, _last_of_all(scopes))


def _last_of_all(scopes: Sequence[tuple[str, Figures]]) -> frozenset[int]:
    """Return the index of the row for all campaigns, if there is one."""
    return frozenset({len(scopes) - 1}) if len(scopes) > 1 else frozenset()


_FIGURES = {
    title: [f for f in FIGURES if f.column and f.column.head and f.column.table is title]
    for title in Table
}
_REST = {Table.PEOPLE: ("left", Table.PEOPLE_LEFT), Table.CALLS: ("other", Table.OTHER_CALLS)}
"""Tables whose last column has the sums of another table: its heading, and the other table."""


def _cell(figure: Figure, part: Figures) -> str:
    """Format a figure; empty if its block has no content."""
    analyses, webhooks = part.analyses, part.webhooks
    if figure.block == "analyses":
        # If every conversation was analyzed, the table has only equal numbers; it is shown if an
        # analysis failed, or if the scenario has funnels or re-analyses.
        plain = analyses.analyzed == analyses.conversations
        if plain and not analyses.funnel and not analyses.reanalyses:
            return ""
    if figure.block == "webhooks" and not webhooks.results:
        return ""
    assert figure.column is not None
    value = figure.of(part)
    text = figure.column.cell(value)
    priced = figure.unit.is_money and part.currency and text[-1:].isdigit()
    said = f"{text} {part.currency}" if priced else text
    return ValueText(said, value) if text and isinstance(value, int | float) else said


_ATTEMPTS = 8  # attempts that fit side by side on a line of the printed summary


def _reach_table(scopes: Sequence[tuple[str, Figures]]) -> list[FigureTable]:
    """Return the tables of reach by attempt: one for every eight attempts."""
    attempts = max((len(figures.reach_by_attempt) for _, figures in scopes), default=0)
    if attempts < 2:
        return []
    return [
        FigureTable(
            "Reached by attempt",
            tuple(str(index + 1) for index in columns),
            tuple(
                (name, *(_reach_cell(part, index) for index in columns)) for name, part in scopes
            ),
            _last_of_all(scopes),
        )
        for first in range(0, attempts, _ATTEMPTS)
        for columns in [range(first, min(first + _ATTEMPTS, attempts))]
    ]


def _reach_cell(figures: Figures, index: int) -> str:
    if index >= len(figures.reach_by_attempt):
        return ""
    share = figures.reach_by_attempt[index]
    return ValueText(percent(share), share)


def _compliance_tables(summary: Summary) -> list[FigureTable]:
    """Return a table per compliance rule; zeros are shown."""
    names = {(part.organization, part.name): name for name, part in short_names(summary)}
    tables = []
    for rule in dict.fromkeys(row.rule for row in summary.compliance):
        rows = tuple(
            (names[row.organization, row.campaign],
             *(f"{getattr(row, name):,}" for name in COUNTS))
            for row in summary.compliance
            if row.rule == rule
        )  # fmt: skip
        heads = ("dials", "outside", "people", "repeated", "people", "answered")
        tables.append(FigureTable(rule, heads, rows))
    return tables


WIDTH = 80
_ENGINES = {"simpy": "SimPy", "compiled": "compiled engine"}


def print_summary(
    summary: Summary, engine: str, file: IO[str] | None = None, texts: Language = ENGLISH
) -> None:
    """Print a summary to a stream (default: standard output), in colour on terminals only.

    The text names the engine. Sentences are wrapped to narrow terminals; tables are not, so that no
    figure is cut. Only the sentences have other languages.
    """
    console = Console(file=file, highlight=False, emoji=False, markup=False)
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    # Tables have 80 columns also in wide terminals, so that output can be compared and pasted.
    console.width = WIDTH
    how = f"(seed {summary.seed}, {_ENGINES[engine]})"
    console.print(Text(summary.scenario, style="bold"), Text(how, style="dim"))
    said = answers(summary, texts)
    # The answer of a single campaign repeats the headline.
    if len(said) != 1:
        console.print(headline(summary, texts))
    for answer in said:
        console.print()
        _print_answer(answer, console, width)
    for table in tables(summary):
        console.print()
        _print_table(table, console)
    _print_remarks(summary, console)


def _print_answer(answer: CampaignAnswer, console: Console, width: int) -> None:
    """Print a campaign's name and its answer."""
    console.print(Text(answer.campaign, style="bold cyan"))
    for line, style in ((answer.finish, "bold"), (answer.reach, ""), (answer.held_back, "")):
        text = fill(line, width, initial_indent="  ", subsequent_indent="  ")
        console.print(Text(text, style=style))


_NAMES, _FEWEST, _WIDEST = 22, 8, 200


def _print_table(table: FigureTable, console: Console) -> None:
    """Print a table in 80 columns, or wider if its figures require it."""

    def width(made: RichTable) -> int:
        return console.measure(made, options=console.options.update(max_width=_WIDEST)).maximum

    # Names give way before numbers do: a cut number would be wrong, a cut name is only short.
    over = max(0, width(rich_table(table, _NAMES)) - WIDTH)
    made = rich_table(table, max(_NAMES - over, _FEWEST))
    console.width = max(WIDTH, width(made))
    console.print(made)
    console.width = WIDTH


def rich_table(table: FigureTable, names: int) -> RichTable:
    """Convert a table for rich; only the first column is cut, beyond `names` characters."""
    made = RichTable(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    made.add_column(
        Text(table.title, style="bold"), max_width=names, overflow="ellipsis", no_wrap=True
    )
    for column in table.columns:
        made.add_column(Text(column, style="dim"), justify="right")
    for name, *cells in table.rows:
        made.add_row(Text(name), *(Text(cell) for cell in cells))
    return made


def _print_remarks(summary: Summary, console: Console) -> None:
    """Print warnings, and requests that the engine refused."""
    remarks = [f"Warning: {warning}" for warning in summary.warnings]
    remarks += [_refusal(refused) for refused in summary.refused]
    if remarks:
        console.print()
    for remark in remarks:
        console.print(Text(remark, style="yellow"))


def _refusal(refused: RefusedAction) -> str:
    when = minute_text(ms_of(refused.at))
    whom = f" {refused.campaign}" if refused.campaign else f" {refused.organization}"
    return f"Refused: {when} Thai time, {refused.action}{whom}: {refused.message} ({refused.code})"


def summary_html(summary: Summary) -> str:
    """Return the summary as HTML for notebooks."""
    notes = [*summary.warnings, *(f"{part.action}: {part.message}" for part in summary.refused)]
    said, figures = [headline(summary)], tables(summary)
    return fragment(summary.scenario, said, figures, answers(summary), notes)


def fragment(
    title: str,
    sentences: Sequence[str],
    figures: Sequence[FigureTable],
    said: Sequence[CampaignAnswer] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return HTML without scripts or links."""
    return (
        templates("dialsim.results")
        .get_template("fragment.html")
        .render(title=title, sentences=sentences, tables=figures, answers=said, notes=notes)
    )
