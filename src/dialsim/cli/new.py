"""`dialsim new`: a commented scenario file from a few questions, or from options."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

T = TypeVar("T")

_FIELDS = ("name", "people", "listed", "lines", "start", "windows", "attempts", "interval",
           "caller_ids", "deadline")  # fmt: skip


@dataclass(slots=True)
class _Answers:
    """What is known of the scenario, as it was written; None where nothing was said."""

    name: str | None
    people: int | None
    listed: Path | None
    lines: int | None
    start: str | None
    windows: str | None
    attempts: int | None
    interval: str | None
    caller_ids: str | None
    deadline: str | None

    def ask(self) -> None:
        """Ask for what was not said; an answer that can't be read is asked for again."""
        if self.name is None:
            self.name = click.prompt("What is the campaign called?", default=_NAME)
        if self.people is None and self.listed is None:
            says = "How many people, or which list (a CSV or Excel file)?"
            whom = click.prompt(says, default=str(_PEOPLE), value_proc=_whom)
            self.people, self.listed = whom
        if self.lines is None:
            self.lines = click.prompt("How many lines?", default=_LINES, type=click.IntRange(0))
        if self.start is None:
            says = f"When does it start? (Thai time, such as {_START})"
            self.start = click.prompt(says, default=_START, value_proc=_tried(_instant))
        if self.windows is None:
            self.windows = click.prompt("When may people be called?", default=_WINDOWS,
                                        value_proc=_tried(_windows))  # fmt: skip
        if self.attempts is None:
            self.attempts = click.prompt("How many calls for a person at most?", default=_ATTEMPTS,
                                         type=click.IntRange(1))  # fmt: skip
        if self.deadline is None:
            begin = _instant(self.start)
            says = "By when should it be done? (such as Fri 18:00; nothing for no deadline)"
            self.deadline = click.prompt(
                says, default="", show_default=False,
                value_proc=_tried(lambda text: _deadline(text, begin)),
            )  # fmt: skip


_NAME, _PEOPLE, _LINES, _START, _ATTEMPTS, _INTERVAL = "January", 1000, 10, "Mon 09:00", 3, "1h"
_WINDOWS = "Mon-Fri 09:00-19:00; Sat-Sun 10:00-19:00"


def _whom(text: str) -> tuple[int | None, Path | None]:
    """A number of people, or a list of them."""
    plain = text.replace(",", "").strip()
    if plain.isdigit() and plain.isascii():
        return int(plain), None
    if not Path(text).is_file():
        raise click.UsageError(f'"{text}" is neither a number nor a file that is there')
    return None, Path(text)


def _tried(read: Callable[[str], object]) -> Callable[[str], str]:
    """The check of an answer, which is kept as it was written."""

    def check(text: str) -> str:
        read(text)
        return text

    return check


def _asked(read: Callable[[], T]) -> T:
    """What is read of an answer; one that can't be read is a wrong use of the command."""
    from dialsim.studio.state import StudioError

    try:
        return read()
    except StudioError as error:
        raise click.UsageError(str(error)) from None


def _instant(text: str) -> int:
    from dialsim.studio.state import new_instant

    return _asked(lambda: new_instant(text))


def _deadline(text: str, begin: int) -> int | None:
    from dialsim.studio.state import new_deadline

    return _asked(lambda: new_deadline(text, begin))


def _windows(text: str) -> list[dict[str, object]]:
    from dialsim.studio.state import new_windows

    return _asked(lambda: new_windows(text))


@click.command(
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
    help="So many made-up people.",
)
@click.option(
    "--list",
    "listed",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="The people in this CSV or Excel workbook, with a column tel.",
)
@click.option("--lines", type=click.IntRange(min=0), metavar="N", help=f"Lines; default: {_LINES}.")
@click.option(
    "--start",
    metavar="WHEN",
    help=f"Such as 'Mon 09:00' (the next one) or '2026-01-05 09:00', Thai time; default: {_START}.",
)
@click.option(
    "--windows",
    metavar="WINDOWS",
    help=f"When people may be called; default: {_WINDOWS}.",
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Calls for a person at most; default: {_ATTEMPTS}.",
)
@click.option(
    "--retry-interval",
    "interval",
    metavar="DURATION",
    help=f"From a call in vain to the next; default: {_INTERVAL}.",
)
@click.option("--caller-ids", metavar="NUMBERS", help="Numbers to call from, with commas.")
@click.option(
    "--deadline",
    metavar="WHEN",
    help="When it should be done: the file then says with which command to plan for it.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("campaign.yaml"),
    show_default=True,
    metavar="FILE",
    help="The file to write.",
)
@click.option("--yes", is_flag=True, help="Ask nothing: what is not said gets its default.")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
def new(out: Path, yes: bool, force: bool, **given: Any) -> None:
    """Write a commented scenario file, ready to run and to be changed by hand.

    On a terminal it asks for what the options don't say.
    """
    from dialsim.scenario.loading import loads

    answers = _Answers(**{field: given[field] for field in _FIELDS})
    if out.exists() and not force:
        raise click.UsageError(f"{out} is there already: --force replaces it")
    if answers.people is not None and answers.listed is not None:
        raise click.UsageError("say whom to call once: --people or --list")
    if sys.stdin.isatty() and not yes:
        answers.ask()
    if answers.people is None and answers.listed is None:
        raise click.UsageError("say whom to call: --people 6000, or --list people.csv")
    text = _text(answers, out)
    scenario = loads(text, name=str(out), folder=out.parent)
    out.write_text(text, encoding="utf-8")
    for warning in scenario.warnings:
        click.echo(f"Warning: {warning}", err=True)
    click.echo(f"Written to {out}. Simulate it: dialsim run {out}")


def _text(answers: _Answers, out: Path) -> str:
    """The scenario file."""
    from dialsim.studio.state import NewScenario

    listed = answers.listed and os.path.relpath(answers.listed, out.parent)
    numbers = [part.strip() for part in (answers.caller_ids or "").split(",") if part.strip()]
    said = {
        "name": answers.name,
        "people": answers.people,
        "listed": listed,
        "lines": answers.lines,
        "start": answers.start,
        "windows": answers.windows,
        "attempts": answers.attempts,
        "interval": answers.interval,
        "caller_ids": tuple(numbers),
        "deadline": answers.deadline,
    }
    # an empty answer means the default, but 0 lines are 0 lines
    given: dict[str, Any] = {key: value for key, value in said.items() if value not in (None, "")}
    return _asked(lambda: NewScenario(**given).text(str(out)))
