"""Result of a run: tables, sequences, stories, summary; and `run`, which simulates a scenario.

Long work shows its progress by callbacks (`Progress`), or by a bar in notebooks.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from dialsim.engine import Choice, Engine, calls_of, choose, prepare, run_world
from dialsim.engine.trace import Trace
from dialsim.engine.world import World
from dialsim.errors import DialsimError, OutputError
from dialsim.interface.arguments import checked
from dialsim.results.run_view import RunView

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.results.plots import Plots
    from dialsim.results.story import Story
    from dialsim.results.summary import Summary
    from dialsim.scenario.scenario import Scenario

_OF_EVERY_LIST = frozenset((
    "organization", "campaign", "recipient", "recipient_id", "customer_name", "tel", "segment",
    "call_attempt", "latest_call_status", "reached_at", "state", "created_at", "updated_at",
))  # fmt: skip
"""Columns of `recipients` that are neither parameters nor additional columns of a list."""


@checked(OutputError)
class Result:
    """Result of a run. Tables are computed on first use, and kept.

    Each access to a table returns a copy, which costs no memory until it is changed: a change stays
    in the caller's variable, and the other tables, figures and files do not see it.

    `wall_seconds` is the wall-clock time of the run, if known. A result can be pickled.

    >>> result = dialsim.run(scenario, seed=7)
    >>> calls = result.calls
    >>> calls["minutes"] = calls.call_duration_ms / 60_000
    >>> "minutes" in result.calls
    False
    """

    def __init__(self, trace: Trace, wall_seconds: float | None = None) -> None:
        self._trace = trace
        self.wall_seconds = wall_seconds

    @cached_property
    def trace(self) -> Trace:
        """Finished run."""
        return self._trace

    @cached_property
    def reading(self) -> RunView:
        """Data that tables and plots share."""
        return RunView(self.trace)

    def __reduce__(self) -> tuple[type[Result], tuple[Trace, float | None]]:
        """Pickle the trace; everything else is computed from it."""
        return Result, (self.trace, self.wall_seconds)

    @cached_property
    def _tables(self) -> dict[str, pd.DataFrame]:
        return {}

    def _table(self, name: str) -> pd.DataFrame:
        if name not in self._tables:
            self._tables[name] = self._made(name)
        # pandas copies on write: the table that is kept does not see changes.
        return self._tables[name].copy(deep=False)

    def _made(self, name: str) -> pd.DataFrame:
        from dialsim.results import tables

        made: pd.DataFrame = getattr(tables, f"{name}_table")(self.reading)
        return made

    @property
    def calls(self) -> pd.DataFrame:
        """Table with one row per call, by organization, campaign, recipient and call.

        | column | content |
        |---|---|
        | `organization`, `campaign`, `segment` | names |
        | `recipient` | position of the recipient on the list, from 0 |
        | `call_id`, `session_id` | ids of the interface |
        | `call` | number of the recipient's call, from 1 |
        | `attempt` | number of the attempt; null for a call that was not dialled |
        | `status`, `agent_status` | as in the webhook |
        | `caller_id`, `voice_key` | of the newest dial |
        | `created_at`, `queued_at`, `initiated_at`, `ringing_at` | instants in UTC; null if never |
        | `call_started_at`, `call_ended_at` | instants of the answer and of the end |
        | `call_duration_ms` | length of the conversation in ms |
        | `analysis`, `funnel` | state of the analysis, and step of the funnel |
        | `cost` | in the currency of `costs`; null without costs |
        | `voice_engine` | generation of the voice engine, 1 or 2 |

        >>> int(result.calls.attempt.max())
        2
        """
        return self._table("calls")

    def calls_with(self, *columns: str) -> pd.DataFrame:
        """Return `calls` with columns of `recipients`, by default parameters and additional ones.

        Raises DialsimError for an unknown column.

        >>> people = pd.DataFrame({"tel": ["0812345678", "0891234567"], "branch": ["BKK", "CNX"]})
        >>> calls = dialsim.run(dialsim.scenario(people, attempts=1)).calls_with("branch")
        >>> calls.branch.tolist()
        ['BKK', 'CNX']
        """
        recipients, keys = self.recipients, ["organization", "campaign", "recipient"]
        own = [name for name in recipients if name not in _OF_EVERY_LIST]
        unknown = next((name for name in columns if name not in [*recipients]), None)
        if unknown is not None:
            known = ", ".join(recipients.columns)
            raise DialsimError(f"{unknown} is no column of recipients; there are {known}")
        added = [name for name in columns or own if name not in keys]
        # Columns that `calls` has as well, such as segment, are not added again.
        added = [name for name in added if name not in self.calls]
        return self.calls.merge(recipients[[*keys, *added]], on=keys, how="left")

    @property
    def transitions(self) -> pd.DataFrame:
        """Table with one row per change of a call: `at`, `organization`, `campaign`, `recipient`,
        `call`, `from_status`, `to_status`, `phase`, `cause`.

        >>> dialled = result.transitions.query("cause == 'dialled'")
        >>> bool(len(dialled) == result.calls.attempt.count())
        True
        """
        return self._table("transitions")

    @property
    def recipients(self) -> pd.DataFrame:
        """Table with one row per recipient, at the end of the run.

        `recipient` is the position on the list, from 0. Beside the columns of the list there are
        `recipient_id`, `call_attempt`, `latest_call_status`, `reached_at` (null for never),
        `state`, `created_at` and `updated_at`. Additional columns of the list are Float64 if all of
        their values are numbers, else text, even for dates and truth values.

        >>> len(result.recipients), sorted(result.recipients.state.unique())
        (40, ['exhausted', 'reached'])
        """
        return self._table("recipients")

    @property
    def campaigns(self) -> pd.DataFrame:
        """Table with one row per change of a campaign's status: `at`, `organization`, `campaign`,
        `from_status`, `to_status`, `cause`. `at` is an instant, all others are categories.

        >>> result.campaigns.to_status.tolist()
        ['SCHEDULED', 'RUNNING', 'COMPLETED']
        """
        return self._table("campaigns")

    @property
    def webhooks(self) -> pd.DataFrame:
        """Table with one row per POST of the webhook, in the order sent.

        `at` and `ready_at` are instants, `call_status` is the result's, `attempt` counts the POSTs
        of a result, `response` and `received` describe the outcome of the POST, and `body` is the
        payload.

        >>> [*result.webhooks.body[0]]
        ['type', 'payload']
        """
        return self._table("webhooks")

    @cached_property
    def compliance(self) -> pd.DataFrame:
        """Table with one row per dial outside a compliance rule.

        `rule`, `organization` and `campaign` are names, `initiated_at` is the dial. `outside` is
        True outside the rule's contact times, `repeated` beyond its contacts per day, and
        `repeated_answered` if such a dial was answered.

        >>> len(result.compliance)
        0
        """
        from dialsim.results.compliance import compliance_table

        return compliance_table(self.reading)

    def write_webhooks(self, file: BinaryIO) -> None:
        """Write the lines of `webhooks.jsonl`, one per POST, with little memory."""
        self.reading.stream.write(file)

    @cached_property
    def sequences(self) -> pd.Series[str]:
        """Status sequence of each recipient, as text with a bar between calls.

        >>> result.sequences.iloc[0]
        'SCHEDULED QUEUED INITIATED ...'
        """
        from dialsim.results.story import sequences

        return sequences(self.reading)

    @cached_property
    def summary(self) -> Summary:
        """All figures of the run, with `finish` as an aware datetime; `to_frame()`, `to_dict()`.

        >>> result.summary.people, result.summary.to_frame().scope.tolist()
        (40, ['run', 'organization', 'campaign'])
        """
        from dialsim.results.summary import sum_up

        return sum_up(self.reading)

    @cached_property
    def plot(self) -> Plots:
        """Plots of the run: `plot.progress()`, … Each draws on `ax=` and returns it.

        >>> result.plot.occupancy().get_ylabel()
        'lines'
        """
        from dialsim.results.plots import Plots

        return Plots(self)

    def story(self, recipient: int, campaign: str | None = None) -> Story:
        """Return everything that happened to a recipient (position from 0), with Thai times.

        `campaign` is required in runs with several: `January`, or `Acme/January` if the name is
        ambiguous. Raises DialsimError for an unknown recipient.

        >>> print(result.story(0))
        Recipient 0 of January (Acme)
        ...
        """
        from dialsim.results.story import story_of

        return story_of(self.reading, recipient, campaign)

    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        force: bool = False,
        also: Callable[[Path], object] | None = None,
        without: Sequence[str] = (),
    ) -> Path:
        """Write every table, the summary and the manifest to a new folder, and return its path.

        The folder appears when it is complete; `also` may write more files into it before.
        `without` are tables to leave out, such as webhooks. Raises ExistingOutput if the folder
        exists; `force` replaces a result of dialsim, and nothing else.

        >>> result.write("out/third", without=["webhooks"])
        PosixPath('out/third')
        """
        from dialsim.results.folder import write_result

        return write_result(self, folder, force, also, without)

    def to_excel(self, path: str | os.PathLike[str]) -> Path:
        """Write summary, campaigns, recipients and calls by hour as a workbook, in Thai time.

        An existing file is replaced; its name ends in .xlsx. For single tables there is
        `for_excel`. Raises OutputError if the file cannot be written.

        >>> result.to_excel("first.xlsx")
        PosixPath('first.xlsx')
        """
        from dialsim.results.excel import write_excel

        return write_excel(self, path)

    def __repr__(self) -> str:
        from dialsim.interface.instants import minute_text

        world, reading = self.trace.world, self.reading
        lives = reading.lives
        finishes = [own.finish for own in reading.campaigns.values()]
        people = sum(life.people for life in lives)
        if unfinished := len(reading.unfinished):
            state = f"{unfinished} unfinished at {minute_text(self.trace.end)} Thai time"
        elif finishes := [at for at in finishes if at is not None]:
            state = f"all done {minute_text(max(finishes))} Thai time"
        else:
            state = "none scheduled"
        return (
            f"<dialsim.Result {world.scenario.name!r} seed {world.seed}, "
            f"people: {people:,}, campaigns: {len(lives)}, {state}>"
        )

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()


@checked(DialsimError)
def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    replication: int = 0,
    engine: Choice = "auto",
    progress: Shown = None,
) -> Result:
    """Simulate a scenario to its end (T5) and return the result.

    `seed` defaults to the scenario's. `engine` is "simpy", "compiled", or "auto" for the faster
    one; the results are equal. `progress(done, people)` is called occasionally with the number of
    settled recipients and of all recipients.

    >>> dialsim.run(scenario, seed=7, engine="simpy").summary.people
    40
    """
    world = World(scenario, seed, replication)
    chosen = choose(engine, calls_of(scenario))
    with followed(progress, "people") as notify:
        result = result_of(world, chosen, notify)
    # The result keeps the world, but tables need no draws.
    world.forget_draws()
    return result


def result_of(world: World, engine: Engine, progress: Progress | None = None) -> Result:
    """Run a world with an engine, and return the result."""
    prepare(engine)  # before the clock starts: compilation is not part of the run
    begin = time.perf_counter()
    trace = run_world(world, engine, progress)
    return Result(trace, wall_seconds=round(time.perf_counter() - begin, 3))


class WrittenResult(Result):
    """Result in a folder: tables are read from its files, the rest is simulated again."""

    def __init__(self, folder: Path) -> None:
        from dialsim.results.folder import read_manifest

        self.folder = folder
        self._manifest = read_manifest(folder)
        if "experiment" in self._manifest:
            raise OutputError(
                f"{folder} is the folder of a {self._manifest['experiment']}, not of one run: "
                "dialsim.open reads folders of dialsim run and of Result.write"
            )
        self.wall_seconds = self._manifest["wall_seconds"]

    @cached_property
    def trace(self) -> Trace:
        """Trace of the same run. Raises DialsimError if its figures differ from the folder's."""
        from dialsim.results.folder import SUMMARY, read_source

        said = self._manifest
        made = run(read_source(self.folder), seed=said["seed"], replication=said["replication"])
        # Byte by byte: another version of a library may change a single draw.
        if made.summary.to_json() != (self.folder / SUMMARY).read_bytes():
            raise DialsimError(
                f"{self.folder} can't be repeated: its scenario gives other figures now than "
                f"with dialsim {said['dialsim']} and its libraries at that time"
            )
        return made.trace

    def _made(self, name: str) -> pd.DataFrame:
        file = self.folder / f"{name}.parquet"
        if not file.is_file():
            return super()._made(name)
        import pandas as pd

        made = pd.read_parquet(file)
        # Categories of a column that has none are read back with dtype object.
        empty = pd.CategoricalDtype(pd.Index([], dtype="str"))
        for column, dtype in made.dtypes.items():
            if isinstance(dtype, pd.CategoricalDtype) and not len(dtype.categories):
                made[column] = made[column].astype(empty)
        return made

    def __repr__(self) -> str:
        said = self._manifest
        return f"<dialsim.Result {said['scenario']!r} seed {said['seed']}, from {self.folder}>"


@checked(OutputError)
def open(folder: str | os.PathLike[str]) -> Result:
    """Read a folder of `dialsim run --out` or `Result.write` as a result.

    Tables are read from the folder's files, as they were written. Everything else (summary, plots,
    stories, webhooks) is simulated again on first use from the scenario in the folder, and checked
    against its summary. Raises DialsimError for another folder, and on first use if the scenario's
    lists have changed since, or if the run now has other figures.

    >>> folder = result.write("out/first")
    >>> dialsim.open(folder).calls.equals(result.calls)
    True
    """
    return WrittenResult(Path(folder))


Progress = Callable[[int, int], object]
"""Callback that is called with the work done and the total work."""
Shown = Progress | Literal[False] | None
"""Progress callback; None for a bar in notebooks only; False for nothing at all.
"""

PATIENCE = 1.0  # seconds before a bar appears
PACE = 0.2  # seconds between two updates of the bar


@contextmanager
def followed(wanted: Shown, unit: str) -> Iterator[Progress | None]:
    """Yield the callback for the progress of simulations, counted in `unit`."""
    if wanted is not None or not _in_notebook():
        yield wanted or None
        return
    bar = _NotebookBar(unit)
    try:
        yield bar
    finally:
        bar.close()


def _in_notebook() -> bool:
    """Return True inside a Jupyter kernel; IPython on a terminal has none."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


class _NotebookBar:
    """Progress bar in plain HTML below a notebook's cell."""

    # tqdm and rich draw widgets: they need ipywidgets, and leave a broken widget in a notebook's
    # stored outputs.
    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._begin = self._drawn = monotonic()
        self._handle: Any = None

    def __call__(self, done: int, total: int) -> None:
        now = monotonic()
        wait = PATIENCE if self._handle is None else PACE
        if now - self._drawn < wait:
            return
        self._drawn = now
        left = (now - self._begin) * (total - done) / max(done, 1)
        self._draw(
            f'<progress max="{total}" value="{done}"></progress> Simulating: '
            f"{done:,} of {total:,} {self._unit}, about {left:,.0f} s left"
        )

    def close(self) -> None:
        """Remove the bar."""
        if self._handle is not None:
            self._draw("")

    def _draw(self, html: str) -> None:
        from IPython.display import HTML, display

        shown = HTML(html)  # type: ignore[no-untyped-call]
        if self._handle is None:
            self._handle = display(shown, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(shown)
