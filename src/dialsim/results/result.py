"""The result of a run: tables, sequences, stories, the summary; `run` makes one of a scenario."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from dialsim.engine.engines import Choice, Engine, calls_of, choose, prepare, run_world
from dialsim.engine.trace import Trace
from dialsim.engine.world import World
from dialsim.results.progress import Progress, Shown, followed
from dialsim.results.run_view import RunView

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.results.parts import RunPart
    from dialsim.results.plots.plots import Plots
    from dialsim.results.story import Story
    from dialsim.results.summary import Summary
    from dialsim.scenario.scenario import Scenario


class Result:
    """What came of a run. Tables are made when first asked for, and kept.

    `trace` is the finished run, `wall_seconds` how long it took to simulate, if that is known;
    `reading` is what tables and pictures have in common.
    """

    def __init__(self, trace: Trace, wall_seconds: float | None = None) -> None:
        self.trace = trace
        self.wall_seconds = wall_seconds
        self.reading = RunView(trace)

    @cached_property
    def calls(self) -> pd.DataFrame:
        """One row per call; see `dialsim.results.tables`."""
        from dialsim.results.tables import calls_table

        return calls_table(self.reading)

    @cached_property
    def transitions(self) -> pd.DataFrame:
        """One row per change of a call; see `dialsim.results.tables`."""
        from dialsim.results.tables import transitions_table

        return transitions_table(self.reading)

    @cached_property
    def recipients(self) -> pd.DataFrame:
        """One row per recipient, as it stands at the end; see `dialsim.results.tables`."""
        from dialsim.results.tables import recipients_table

        return recipients_table(self.reading)

    @cached_property
    def campaigns(self) -> pd.DataFrame:
        """One row per change of a campaign's status; see `dialsim.results.tables`."""
        from dialsim.results.tables import campaigns_table

        return campaigns_table(self.reading)

    @cached_property
    def webhooks(self) -> pd.DataFrame:
        """One row per POST of the webhook, in the order sent; see `dialsim.results.tables`."""
        from dialsim.results.tables import webhooks_table

        return webhooks_table(self.reading)

    @cached_property
    def compliance(self) -> pd.DataFrame:
        """One row per dial outside a compliance rule; see `dialsim.results.compliance`."""
        from dialsim.results.compliance import compliance_table

        return compliance_table(self.reading)

    def write_webhooks(self, file: BinaryIO) -> None:
        """Write the lines of `webhooks.jsonl`, one per POST; a million take little memory."""
        self.reading.stream.write(file)

    @cached_property
    def sequences(self) -> pd.Series[str]:
        """The status sequence of each recipient, as text; see `dialsim.results.story`."""
        from dialsim.results.story import sequences

        return sequences(self.reading)

    @cached_property
    def part(self) -> RunPart:
        """What its figures are made of; see `dialsim.results.parts`."""
        from dialsim.results.parts import RunPart

        return RunPart(self.reading)

    @cached_property
    def summary(self) -> Summary:
        """When it is done, whom it reached, what held it back; see `dialsim.results.summary`."""
        from dialsim.results.summary import sum_up

        return sum_up(self.part)

    @cached_property
    def plot(self) -> Plots:
        """The pictures of the run: `plot.progress()`, …; see `dialsim.results.plots.plots`."""
        from dialsim.results.plots.plots import Plots

        return Plots(self)

    def story(self, recipient: int, campaign: str | None = None) -> Story:
        """Everything that happened to a recipient (position from 0), with Thai times.

        `campaign` is needed where the run has several: `January`, or `Acme/January` where the name
        alone is ambiguous. Raises DialsimError if there is no such recipient.
        """
        from dialsim.results.story import tell

        return tell(self.reading, recipient, campaign)

    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        force: bool = False,
        also: Callable[[Path], object] | None = None,
        without: Sequence[str] = (),
    ) -> Path:
        """Write every table, the summary and the manifest to a new folder, and return its path.

        The folder appears when it is complete; `also` may write more files into it before, and
        `without` are the tables to leave out, such as webhooks. Raises ExistingOutput if it exists;
        with `force` a result that stands there is replaced, anything else never.
        """
        from dialsim.results.folder import write_result

        return write_result(self, folder, force, also, without)

    def to_excel(self, path: str | os.PathLike[str]) -> Path:
        """Write summary, campaigns, recipients and calls by hour as a workbook, in Thai time.

        A file that is there is replaced. See `dialsim.results.excel`; for tables, `for_excel`.
        """
        from dialsim.results.excel import write_excel

        return write_excel(self, path)

    def __repr__(self) -> str:
        from dialsim.interface.instants import minute_text

        world, reading = self.trace.world, self.reading
        lives = reading.lives.values()
        people = sum(life.people for life in lives)
        if unfinished := len(reading.unfinished):
            state = f"{unfinished} unfinished at {minute_text(self.trace.end)} Thai time"
        elif finishes := [at for at in reading.finishes.values() if at is not None]:
            state = f"all done {minute_text(max(finishes))} Thai time"
        else:
            state = "none scheduled"
        return (
            f"<dialsim.Result {world.scenario.name!r} seed {world.seed}, "
            f"people: {people:,}, campaigns: {len(lives)}, {state}>"
        )

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()


def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    replication: int = 0,
    engine: Choice = "auto",
    progress: Shown = None,
) -> Result:
    """Simulate a scenario to its end (T5) and return what came of it.

    `seed` defaults to the scenario's. `engine` is "simpy", "compiled", or "auto" for the one that
    is done first; the results are the same. `progress(done, people)` is called now and then with
    how many people are final. Raises DialsimError for an engine that doesn't exist.
    """
    world = World(scenario, seed, replication)
    chosen = choose(engine, calls_of(scenario))
    with followed(progress, "Simulating", "people") as told:
        return result_of(world, chosen, told)


def result_of(world: World, engine: Engine, progress: Progress | None = None) -> Result:
    """Work a world off with an engine, and return what came of it."""
    prepare(engine)  # takes no part in how long the run takes
    begin = time.perf_counter()
    trace = run_world(world, engine, progress)
    return Result(trace, wall_seconds=round(time.perf_counter() - begin, 3))
