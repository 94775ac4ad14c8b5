"""Common parts of the commands: their group, arguments and options, and the progress bar."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import reduce, wraps
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import click
from typing_extensions import override

from dialsim.language import LANGUAGES

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from dialsim.engine import Choice
    from dialsim.experiments.goal import Goal
    from dialsim.scenario.scenario import Scenario


_Command = TypeVar("_Command", bound=Callable[..., Any])


class _Notes(logging.Handler):
    """Handler that shows log messages on a terminal, and only warnings elsewhere.

    A message with `expected_seconds` is the text of a bar that moves with time for so many seconds.
    A message with `expected_seconds` 0 removes the bar.
    """

    def __init__(self, progress: Progress) -> None:
        # In a log file of a build only warnings matter.
        super().__init__(logging.INFO if progress.console.is_terminal else logging.WARNING)
        self._progress = progress
        self._over = Event()

    @override
    def emit(self, record: logging.LogRecord) -> None:
        seconds: float | None = getattr(record, "expected_seconds", None)
        text = record.getMessage()
        if seconds is None:
            self._progress.console.print(text, markup=False, highlight=False)
        elif seconds:
            self._over.clear()
            task = self._progress.add_task(text, total=seconds, done=f"about {seconds:.0f} s")
            # A separate thread, because the compiler keeps the main one busy; a daemon, because
            # the program does not wait for its bar at the end.
            Thread(target=self._move, args=(task, seconds), daemon=True).start()
        else:
            self._over.set()

    def _move(self, task: TaskID, seconds: float) -> None:
        begin = monotonic()
        while not self._over.wait(0.2):
            self._progress.update(task, completed=min(monotonic() - begin, seconds))
        self._progress.remove_task(task)


@contextmanager
def _noted(progress: Progress) -> Iterator[None]:
    logger, notes = logging.getLogger("dialsim"), _Notes(progress)
    level = logger.level
    logger.addHandler(notes)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(notes)
        # Restored, because tests and programs call commands in their own process.
        logger.setLevel(level)


class ProgressBar:
    """Progress bar: `bar(done, total)` moves it, `bar.say(text)` changes its text."""

    def __init__(self, progress: Progress, what: str, unit: str) -> None:
        self._progress = progress
        self._unit = unit
        self._task = progress.add_task(what, total=None, done="")

    def __call__(self, done: int, total: int) -> None:
        """Move the bar; a total of 0 means unknown."""
        of = f" of {total:,}" if total else ""
        text = f"{done:,}{of} {self._unit}"
        self._progress.update(self._task, completed=done, total=total or None, done=text)

    def say(self, text: str) -> None:
        """Set the text before the bar."""
        self._progress.update(self._task, description=text)


@contextmanager
def progress_bar(what: str, unit: str = "people") -> Iterator[ProgressBar]:
    """Yield a bar on standard error that disappears at the end. Log messages stay above it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    # Standard output is for results, which may be piped.
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(),
    )
    # In a log file each step of a bar would be a line.
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with bar as progress, _noted(progress):
        yield ProgressBar(progress, what, unit)


# Shells report 128 plus the number of the signal that ended a program.
INTERRUPTED = 130  # status of a program ended by Ctrl-C, as shells report it
PIPE_CLOSED = 141  # status of a program that wrote to a closed pipe

scenario_argument = click.argument(
    "scenario", type=click.Path(path_type=Path, dir_okay=True), metavar="SCENARIO"
)

optional_scenario_argument = click.argument(
    "scenario", type=click.Path(path_type=Path, dir_okay=True), metavar="[SCENARIO]", required=False
)


def file_option(
    name: str, help_text: str, *, metavar: str = "FILE", **more: Any
) -> Callable[[_Command], _Command]:
    """Return an option for a file; with `exists=True` the file must exist."""
    path = click.Path(path_type=Path, dir_okay=False, exists=more.pop("exists", False))
    return click.option(name, type=path, metavar=metavar, help=help_text, **more)


def replace_option(what: str) -> Callable[[_Command], _Command]:
    """Return the option `--force` of a command that writes `what`."""
    return click.option("--force", is_flag=True, help=f"Replace {what} if it is there.")


def require_free(file: Path | None, *, force: bool) -> None:
    """Raise an error for an existing file without `force`, and for a missing folder."""
    if file is not None and file.exists() and not force:
        raise click.UsageError(f"{file} is there already: --force replaces it")
    if file is not None and not file.absolute().parent.is_dir():
        raise click.UsageError(f"{file}: there is no folder {file.parent}")


def listen_options(port: int, token: str) -> Callable[[_Command], _Command]:
    """Return the options for a server's address and access.

    `port` is the default port, and `token` is the help text on the control token.
    """

    return together(
        click.option(
            "--port",
            type=click.IntRange(0, 65_535),
            default=port,
            show_default=True,
            metavar="N",
            help="The port to listen on; 0 takes a free one and prints it.",
        ),
        click.option(
            "--host",
            default="127.0.0.1",
            show_default=True,
            metavar="ADDRESS",
            help="The address to listen on; one that other machines reach needs a control token.",
        ),
        click.option(
            "--control-token",
            envvar="DIALSIM_CONTROL_TOKEN",
            show_envvar=True,
            metavar="TOKEN",
            help=f"{token} Others can read the command line: prefer the variable.",
        ),
    )


def together(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Return a decorator that adds several options, in the order in which help lists them."""

    # Decorators apply from the last to the first, and click lists options as they were applied.
    def decorated(command: Any) -> Any:
        return reduce(lambda made, option: option(made), reversed(options), command)

    return decorated


set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="PATH=VALUE",
    help="Override a value of the scenario; may be repeated. Such as lines=40, "
    "January.maxAttempts=3, 'January.windows+=Sun 09:00-18:00', or a full path: "
    "organizations.Acme.maxConcurrentCalls=40.",
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="The seed of all random numbers; default: the scenario's.",
)

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text for people, one JSON document for programs.",
)

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of worker processes; default: one per processor. Results are the same.",
)

dask_option = click.option(
    "--dask",
    metavar="SCHEDULER",
    help="Run on this Dask cluster instead, such as tcp://10.0.0.1:8786.",
)

engine_option = click.option(
    "--engine",
    type=click.Choice(["auto", "simpy", "compiled"]),
    default="auto",
    show_default=True,
    help="What carries out the rules: SimPy, which starts at once, or machine code, which is "
    "many times as fast and has to be compiled once. Results are the same.",
)

experiment_out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep finished replications and write the results to this folder; the same command "
    "continues a stopped one.",
)

force_option = click.option(
    "--force", is_flag=True, help="Replace DIR if it holds an earlier result."
)


def _enough(_: click.Context, __: click.Parameter, pairs: int | None) -> int | None:
    # One pair has no spread, so that every difference would look real.
    if pairs == 1:
        raise click.BadParameter("1 run cannot show a difference; write 2 or more, or 0")
    return pairs


what_if_option = click.option(
    "--what-if",
    type=click.IntRange(min=0),
    callback=_enough,
    metavar="N",
    help="For report.html: measure what would help with N runs of each small change; 0 for none. "
    "Default: 6, with many runs up to 25; fewer or none with many people.",
)


excel_option = click.option(
    "--excel", is_flag=True, help="Write results.xlsx to DIR as well, in Thai time."
)


language_option = click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    default="en",
    show_default=True,
    help="The language of sheet.html and of the printed answer.",
)


@dataclass(frozen=True, slots=True)
class Options:
    """Options that `run`, `sweep` and `plan` share; some commands lack some of them."""

    out: Path | None
    force: bool
    excel: bool
    seed: int | None
    engine: Choice
    jobs: int | None
    dask: str | None
    what_if: int | None
    overrides: tuple[str, ...]
    form: str
    language: str


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Pack the shared options of a command into its argument `options`."""

    # One object, so that a further shared option does not change the signature of each command.
    @wraps(command)
    def packed(**given: Any) -> None:
        shared = Options(**{part.name: given.pop(part.name) for part in fields(Options)})
        if shared.excel and shared.out is None:
            raise click.UsageError("--excel writes a file: it goes with --out")
        command(**given, options=shared)

    return packed


experiment_options = together(
    experiment_out_option, force_option, excel_option, seed_option, engine_option, jobs_option,
    dask_option, what_if_option, language_option, set_option, format_option,
)  # fmt: skip
"""All shared options of commands with many runs."""


def print_json(document: object, default: Callable[[Any], object] | None = None) -> None:
    """Print a document for programs; `default` converts values that JSON lacks."""
    import orjson

    # The standard library would write NaN and Infinity, which are no JSON; orjson writes null.
    click.echo(orjson.dumps(document, default, orjson.OPT_INDENT_2).decode())


def say_back(scenario: Scenario) -> None:
    """Print how overrides were understood: full paths, and dates for days of the week."""
    from dialsim.interface.instants import minute_text
    from dialsim.interface.phrases import few
    from dialsim.scenario.loading import understood

    for one in understood(scenario):
        said = [one.path]
        said += [f"{text} is {minute_text(at)}, Thai time" for text, at in one.instants.items()]
        said += [f"open {one.windows}"] if one.windows else []
        numbers = one.caller_ids
        said += [f"from {few(numbers[:5], len(numbers))}"] if numbers else []
        click.echo(f"--set {one.override}: {'; '.join(said)}")


def announce(
    scenario: Scenario, form: str, goal: Goal | None = None, *, estimated: bool = True
) -> None:
    """Print, for people, what is known before the simulation.

    That is the reading of overrides, a start or a goal on a closed day, unused caller IDs, and with
    `estimated` the first estimate.
    """
    from dialsim.experiments.fluid import estimate_text
    from dialsim.scenario.checks import unused_caller_ids
    from dialsim.scenario.compiled_hours import closed_deadlines, closed_starts

    # Programs read one JSON document from standard output, and nothing else.
    if form != "text":
        return
    say_back(scenario)
    # Before hours of simulation, because a day off is the usual reason for a surprising answer.
    deadlines = () if goal is None else goal.deadlines
    said = [*closed_starts(scenario), *closed_deadlines(scenario, deadlines)]
    for text in (*said, *unused_caller_ids(scenario)):
        click.echo(text)
    estimate = estimate_text(scenario) if estimated else None
    if estimate is not None:
        click.echo(estimate)


class Program(click.Group):
    """Command group that exits silently with a status on a closed pipe (`dialsim run … | head
    -1`).
    """

    @override
    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        # Help is printed while the context is made, and may be piped to head as well.
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
        # rich turns this into status 1, which would mean that the answer is no.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        drop_output()
        raise click.exceptions.Exit(PIPE_CLOSED) from None


def drop_output() -> None:
    """Redirect the rest of standard output to the null device."""
    # Python flushes standard output at exit, which would fail again on the closed pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
