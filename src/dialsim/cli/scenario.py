"""Commands on scenario files and lists of people, without simulation.

`dialsim new` writes a scenario file, `dialsim validate` checks one, `dialsim schema` prints the
JSON Schema of such files, and `dialsim people` shows a list of people.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from typing_extensions import override

from dialsim.cli.program import (
    file_option,
    format_option,
    print_json,
    replace_option,
    require_free,
    say_back,
    scenario_argument,
    set_option,
)

if TYPE_CHECKING:
    from dialsim.errors import ScenarioError
    from dialsim.scenario.campaign import RecipientsFile
    from dialsim.scenario.list_doctor import CleanList
    from dialsim.scenario.new_scenario import FirstQuestion
    from dialsim.scenario.problems import Problem
    from dialsim.scenario.scenario import Scenario


@click.command(
    short_help="Print the JSON Schema of scenario files.",
    epilog="Example: dialsim schema > scenario.schema.json",
)
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors to complete and check them.

    Name it in the first line of a scenario file:

    \b
      # yaml-language-server: $schema=scenario.schema.json
    """
    from dialsim.scenario.scenario import json_schema

    print_json(json_schema())


@click.command(
    short_help="Check a scenario file without running it.",
    epilog="Example: dialsim validate scenarios/songkran.yaml --compiled",
)
@scenario_argument
@click.option(
    "--compiled",
    is_flag=True,
    help="Show what callingHours and lines are compiled to: timeWindows of the schedule, pauses "
    "and resumes, and changes of maxConcurrentCalls, as requests to the service.",
)
@set_option
@format_option
def validate(scenario: Path, compiled: bool, overrides: tuple[str, ...], form: str) -> None:
    """Check a scenario file, its recipients' files included, without running it.

    Reports every problem at once with file, line, column and path; exit status 2 if there is any.
    The holidays of a calendar are listed.
    """
    from dialsim.errors import ScenarioError
    from dialsim.scenario.loading import load

    try:
        loaded = load(scenario, overrides=overrides)
    except ScenarioError as error:
        if form == "json":
            print_json({"valid": False, "problems": error.problems, "warnings": ()})
            raise click.exceptions.Exit(2) from error
        # Advice on cleaning is printed with the problems; JSON has the problems alone.
        raise ScenarioError([*error.problems, *_cleaning(error)]) from None
    from dialsim.scenario.checks import unused_caller_ids
    from dialsim.scenario.compiled_hours import closed_starts

    notes = [*closed_starts(loaded), *unused_caller_ids(loaded)]
    if form == "json":
        from dialsim.scenario.compiled_hours import compiled_hours, holidays_listed

        parts = compiled_hours(loaded) if compiled else []
        hours = [part.to_dict() for part in parts if part.campaign is not None]
        lines = [part.to_dict() for part in parts if part.campaign is None]
        made = {"compiled": {"campaigns": hours, "lines": lines}} if compiled else {}
        named = {str(day): name for day, name in holidays_listed(loaded).items()}
        listed = {} if loaded.calendar is None else {"holidays": named}
        warnings = (*notes, *loaded.warnings)
        print_json({"valid": True, "problems": (), "warnings": warnings, **listed, **made})
        return
    for warning in loaded.warnings:
        # On standard error, because other programs may parse standard output.
        click.echo(f"Warning: {warning}", err=True)
    say_back(loaded)
    for note in notes:
        click.echo(note)
    click.echo(f"{scenario} is good: {_contents(loaded)}.")
    for line in (*_holidays(loaded), *(_compiled(loaded) if compiled else ())):
        click.echo(line)


def _cleaning(error: ScenarioError) -> Iterator[Problem]:
    """Yield advice, in the form of a problem, on how to clean each list that has problems."""
    from dialsim.scenario.problems import Problem

    for file in dict.fromkeys(problem.file for problem in error.problems):
        if Path(file).suffix.lower() in {".csv", ".xlsx"}:
            command = f"dialsim people {file} --clean clean.xlsx"
            yield Problem(file, None, None, "", f"to have the list cleaned: {command}")


def _holidays(scenario: Scenario) -> Iterator[str]:
    """Yield the holidays in the years of the run."""
    from dialsim.interface.instants import date_text, midnight
    from dialsim.scenario.compiled_hours import holidays_listed

    if scenario.calendar is None:
        return
    listed = holidays_listed(scenario)
    yield "Holidays in the years of the run:" if listed else "Holidays: none"
    yield from (f"  {date_text(midnight(day))}  {name}" for day, name in listed.items())
    for day in sorted(scenario.calendar.closed):
        yield f"Closed: {date_text(midnight(day))}"


def _compiled(scenario: Scenario) -> Iterator[str]:
    """Yield the compiled calling hours and lines, in Thai time."""
    from dialsim.interface.instants import minute_text
    from dialsim.scenario.compiled_hours import compiled_hours
    from dialsim.scenario.week import week_lines, week_of

    made = compiled_hours(scenario)
    for part in made:
        what = "Lines" if part.campaign is None else f"Campaign {part.campaign}"
        until = f"{minute_text(part.horizon.at)} Thai time ({part.horizon.source})"
        yield f"{what} of {part.organization}, up to {until}:"
        if part.campaign is not None:
            yield from (f"  {line}" for line in week_lines(week_of(part.time_windows)))
        for act in part.actions:
            value = "" if act.value is None else f" {act.value}"
            yield f"  {minute_text(act.at)}  {act.action}{value}"
    if not made:
        yield "Nothing is to be compiled: there are no callingHours, and no lines by time."


def _contents(scenario: Scenario) -> str:
    from dialsim.interface.phrases import counted

    campaigns = [c for organization in scenario.organizations for c in organization.campaigns]
    parts = (
        (len(scenario.organizations), "organization"),
        (len(campaigns), "campaign"),
        (sum(campaign.size for campaign in campaigns), "recipient"),
    )
    return ", ".join(counted(*part) for part in parts)


_SHOWN = 5


@click.command(
    short_help="Look at a list of people: columns, numbers, duplicates, segments.",
    epilog="""\b
Examples:
    dialsim people people.xlsx --sheet Customers --column tel=Phone
    dialsim people export.xlsx --clean clean.xlsx
""",
)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--sheet", metavar="NAME", help="The sheet of a workbook; default: the first.")
@click.option("--encoding", metavar="NAME", help="The encoding of a CSV, such as cp874.")
@click.option("--delimiter", metavar="SIGN", help='The delimiter of a CSV, such as ";" or tab.')
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="OURS=THEIRS",
    help="A column of the file by its name in dialsim, such as tel=Phone; may be repeated.",
)
@file_option(
    "--clean",
    "Write a workbook that can be read as it is and uploaded to the service: sheets with the "
    "same heads joined, numbers in one spelling, duplicates merged. Rows without a usable number "
    "and duplicates are on sheets of their own.",
    metavar="OUT",
)
@click.option(
    "--both-numbers",
    is_flag=True,
    help="With --clean: call both numbers of a row that has two, the second behind the first.",
)
@replace_option("OUT")
@format_option
def people(
    file: Path,
    sheet: str | None,
    encoding: str | None,
    delimiter: str | None,
    columns: tuple[str, ...],
    clean: Path | None,
    both_numbers: bool,
    force: bool,
    form: str,
) -> None:
    """Show what is in a CSV or Excel list of people, and how a scenario reads it.

    Shows the columns and their uses, numbers that cannot be called, duplicates and segments.
    Columns with other names than dialsim's are guessed, except those that --column names.
    """
    from dialsim.scenario.document import read_bytes
    from dialsim.scenario.list_doctor import clean_list

    options = {
        "file": str(file),
        "sheet": sheet,
        "encoding": encoding,
        "delimiter": delimiter,
        "columns": _named(columns),
    }
    block = _block(options)
    found = clean_list(
        read_bytes(file, str(file)), str(file), block.form, named=block.columns, both=both_numbers
    )
    if clean is not None:
        _clean(found, clean, force, form)
    elif form == "json":
        print_json({"lists": [_document(found, found.block())]})
    else:
        _print_list(found, found.block())


def _clean(found: CleanList, out: Path, force: bool, form: str) -> None:
    """Write the cleaned workbook of a list, and print what was done."""
    from dialsim.scenario.list_doctor import SHEETS

    require_free(out, force=force)
    _write_workbook(found.workbook(), out)
    if form == "json":
        print_json({"clean": str(out), "summary": found.summary()})
        return
    for line in found.summary():
        click.echo(line)
    click.echo(f"Written to {out}: sheets {', '.join(SHEETS[:-1])} and {SHEETS[-1]}.")


def _write_workbook(content: bytes, out: Path) -> None:
    from dialsim.results.folder import replace_file

    replace_file(out, lambda file: file.write(content))


def _named(columns: tuple[str, ...]) -> dict[str, str] | None:
    named: dict[str, str] = {}
    for text in columns:
        ours, equals, theirs = (part.strip() for part in text.partition("="))
        if not equals or not ours or not theirs:
            raise click.UsageError(f"--column is OURS=THEIRS, such as tel=Phone, not {text!r}")
        if ours in named:
            raise click.UsageError(f"--column {ours} is given twice")
        named[ours] = theirs
    return named or None


def _block(options: dict[str, Any]) -> RecipientsFile:
    from pydantic import ValidationError

    from dialsim.scenario.campaign import RecipientsFile

    try:
        return RecipientsFile.model_validate(options, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option, says = first["loc"][0], first.get("ctx", {}).get("message", first["msg"])
        raise click.UsageError(f"--{option} {says}, not {options[str(option)]!r}") from None


def _document(found: CleanList, block: RecipientsFile | None) -> dict[str, object]:
    """Return the contents of a list of people as plain values, for `--format json`."""
    aside = [{"sheet": row.sheet, "row": row.line, "reason": said} for row, said in found.aside]
    return {
        "file": found.file,
        "sheets": found.sheets,
        "people": len(found.cells),
        "columns": [*found.column_uses()],
        "aside": aside,
        "merged": len(found.merged),
        "segments": found.segments,
        "summary": found.summary(),
        "recipients": None if block is None else _plain_block(block),
    }


def _print_list(found: CleanList, block: RecipientsFile | None) -> None:
    from dialsim.experiments.experiment_text import print_experiment
    from dialsim.results.summary_text import FigureTable

    # Without the last line of the summary, whose columns the table shows.
    title, *lines, _ = found.summary()
    for row, reason in found.aside[:_SHOWN]:
        where = f"{row.sheet} row" if row.sheet else "row"
        lines.append(f"  {where} {row.line}: {reason}")
    rows = tuple(
        (one.name, one.used_as or "not used", f"{one.filled:,}", f"{one.different:,}", one.example)
        for one in found.column_uses()
    )
    heads = ("read as", "filled", "different", "such as")
    print_experiment(title, lines, [FigureTable("column", heads, rows)])
    if block is None:
        command = f"dialsim people {found.file} --clean clean.xlsx"
        click.echo(f"\nTo be called, the list needs cleaning: {command}")
        return
    click.echo("\nTo paste into the campaign:")
    click.echo(_yaml(block), nl=False)


def _plain_block(block: RecipientsFile) -> dict[str, Any]:
    said = block.model_dump(by_alias=True, exclude_defaults=True)
    # As a word, since a tab in YAML is hard to see and to copy.
    if said.get("delimiter") == "\t":
        said["delimiter"] = "tab"
    return said


def _yaml(block: RecipientsFile) -> str:
    import yaml

    said = {"recipients": _plain_block(block)}
    written: str = yaml.safe_dump(said, allow_unicode=True, sort_keys=False)
    return written


T = TypeVar("T")

_NAME, _PEOPLE = "January", 1000


def _ask(answers: dict[str, Any], listed: Path | None) -> Path | None:
    """Prompt for missing answers until each is valid. Returns the file of the list, if any."""
    from dialsim.scenario.new_scenario import FIRST_QUESTIONS

    if "name" not in answers:
        answers["name"] = click.prompt("What is the campaign called?", default=_NAME)
    if "people" not in answers and listed is None:
        says = "How many people, or which list (a CSV or Excel file)?"
        people, listed = click.prompt(says, default=str(_PEOPLE), value_proc=_whom)
        answers |= {} if people is None else {"people": people}
    for question in FIRST_QUESTIONS:
        if question.field not in answers:
            says = f"{question.label} ({question.hint})"
            shown = question.default != ""
            read = _number(question) or _tried(question, answers)
            answers[question.field] = click.prompt(
                says, default=question.default, show_default=shown, value_proc=read
            )
    return listed


def _number(question: FirstQuestion) -> click.IntRange | None:
    return None if question.least is None else click.IntRange(min=question.least)


def _whom(text: str) -> tuple[int | None, Path | None]:
    """Parse a number of people, or the name of a list."""
    plain = text.replace(",", "").strip()
    if plain.isdigit() and plain.isascii():
        return int(plain), None
    if not Path(text).is_file():
        raise click.UsageError(f'"{text}" is neither a number nor an existing file')
    return None, Path(text)


def _tried(question: FirstQuestion, answers: dict[str, Any]) -> Callable[[str], str]:
    """Return a function that checks an answer and returns it as written."""

    def check(text: str) -> str:
        _asked(lambda: question.read(text, answers))
        return text

    return check


def _asked(read: Callable[[], T]) -> T:
    """Call `read`, and raise UsageError for an invalid answer."""
    from dialsim.errors import StudioError

    try:
        return read()
    except StudioError as error:
        raise click.UsageError(str(error)) from None


class _New(click.Command):
    """Command with an option for each of the first questions."""

    @override
    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        # Here, since the questions import pydantic, which takes its time in every command.
        from dialsim.scenario.new_scenario import FIRST_QUESTIONS

        options = [
            click.Option(
                [f"--{question.field.replace('_', '-')}"],
                type=_number(question),
                metavar="TEXT" if question.least is None else "N",
                help=f"{question.label}: {question.hint}"
                f"{'; default: ' if question.default else ''}{question.default}.",
            )
            for question in FIRST_QUESTIONS
        ]
        return [*options, *super().get_params(ctx)]


@click.command(
    cls=_New,
    short_help="Write a scenario file from a few questions.",
    epilog="""\b
Examples:
    dialsim new
    dialsim new --people 6000 --lines 20 --start "Mon 09:00" --deadline "Fri 18:00" \\
        --out my.yaml --yes
    dialsim new --list people.csv --windows "Mon-Fri 09:00-19:00" --out my.yaml
""",
)
@click.option("--name", metavar="NAME", help=f"What the campaign is called; default: {_NAME}.")
@click.option(
    "--people",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of made-up people to call.",
)
@click.option(
    "--list",
    "listed",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A CSV or Excel workbook of people, as exported. If it needs repair, a repaired "
    "workbook is written beside the scenario.",
)
@click.option("--sheet", metavar="NAME", help="With --list: the only sheet to read.")
@click.option("--caller-ids", metavar="NUMBERS", help="Numbers to call from, with commas.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("campaign.yaml"),
    show_default=True,
    metavar="FILE",
    help="The file to write.",
)
@click.option(
    "--yes", is_flag=True, help="Ask nothing: options that are not given get their defaults."
)
@replace_option("FILE")
def new(
    out: Path, yes: bool, force: bool, listed: Path | None, sheet: str | None, **given: Any
) -> None:
    """Write a commented scenario file that runs at once and can be edited.

    On a terminal, the command asks for values that the options do not set.
    """
    from dialsim.interface.instants import date_text, midnight
    from dialsim.scenario.document import read_bytes
    from dialsim.scenario.list_doctor import clean_list
    from dialsim.scenario.loading import loads
    from dialsim.scenario.new_scenario import NewScenario, proposed_holidays
    from dialsim.scenario.sheet import FileForm

    # The options of the questions arrive as keywords, because the studio declares the questions.
    answers = {field: value for field, value in given.items() if value is not None}
    require_free(out, force=force)
    if "people" in answers and listed is not None:
        raise click.UsageError("give only one of --people and --list")
    # A script cannot be asked.
    if sys.stdin.isatty() and not yes:
        listed = _ask(answers, listed)
    if "people" not in answers and listed is None:
        raise click.UsageError("say whom to call: --people 6000, or --list people.csv")
    beside: Path | None = None
    if listed is not None:
        form = FileForm(sheet)
        found = clean_list(read_bytes(listed, str(listed)), str(listed), form)
        found.require_people()
        # A list that needs no repair is not copied: the scenario then follows later changes of it.
        if not found.is_as_written:
            beside = listed = out.with_name(f"{out.stem}-people.xlsx")
            require_free(beside, force=force)
        answers |= {"listed": os.path.relpath(listed, out.parent), "params": found.types}
    numbers = answers.pop("caller_ids", "").split(",")
    answers["caller_ids"] = tuple(part.strip() for part in numbers if part.strip())
    # An empty answer means the default, but 0 lines means 0 lines.
    said = {field: value for field, value in answers.items() if value != ""}
    asked = NewScenario(**said)
    text = _asked(lambda: asked.text(str(out)))
    files = {} if beside is None else {beside.name: found.csv()}
    # Checked before anything is written. The scenario is not kept: large lists take memory twice.
    warnings = loads(text, name=str(out), folder=out.parent, files=files).warnings
    files.clear()
    if beside is not None:
        _write_workbook(found.workbook(), beside)
    out.write_text(text, encoding="utf-8")
    if listed is not None:
        for line in found.summary():
            click.echo(line)
    if asked.deadline and (named := proposed_holidays(asked.start, asked.deadline, asked.holidays)):
        days = ", ".join(f"{date_text(midnight(day))} ({name})" for day, name in named.items())
        click.echo(f"Holidays until the deadline, {asked.holiday_hours}: {days}")
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)
    written = str(out) if beside is None else f"{out} and {beside}"
    click.echo(f"Written to {written}. Simulate it: dialsim run {out}")
