"""Result of a run: tables, sequences, stories, summary; and `run`, which simulates a scenario."""

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
    """Result of a run. Tables are computed on first use, and kept.

    `trace` is the finished run, `wall_seconds` its wall-clock time, if known. `reading` is the data
    that tables and plots share.
    """

    def __init__(self, trace: Trace, wall_seconds: float | None = None) -> None:
        self.trace = trace
        self.wall_seconds = wall_seconds
        self.reading = RunView(trace)

    @cached_property
    def calls(self) -> pd.DataFrame:
        """Table with one row per call; see `dialsim.results.tables`."""
        from dialsim.results.tables import calls_table

        return calls_table(self.reading)

    @cached_property
    def transitions(self) -> pd.DataFrame:
        """Table with one row per change of a call; see `dialsim.results.tables`."""
        from dialsim.results.tables import transitions_table

        return transitions_table(self.reading)

    @cached_property
    def recipients(self) -> pd.DataFrame:
        """Table with one row per recipient, at the end of the run; see `dialsim.results.tables`."""
        from dialsim.results.tables import recipients_table

        return recipients_table(self.reading)

    @cached_property
    def campaigns(self) -> pd.DataFrame:
        """Table with one row per change of a campaign's status; see `dialsim.results.tables`."""
        from dialsim.results.tables import campaigns_table

        return campaigns_table(self.reading)

    @cached_property
    def webhooks(self) -> pd.DataFrame:
        """Table with one row per POST of the webhook, in the order sent; see
        `dialsim.results.tables`.
        """
        from dialsim.results.tables import webhooks_table

        return webhooks_table(self.reading)

    @cached_property
    def compliance(self) -> pd.DataFrame:
        """Table with one row per dial outside a compliance rule; see
        `dialsim.results.compliance`.
        """
        from dialsim.results.compliance import compliance_table

        return compliance_table(self.reading)

    def write_webhooks(self, file: BinaryIO) -> None:
        """Write the lines of `webhooks.jsonl`, one per POST, with little memory."""
        self.reading.stream.write(file)

    @cached_property
    def sequences(self) -> pd.Series[str]:
        """Status sequence of each recipient, as text; see `dialsim.results.story`."""
        from dialsim.results.story import sequences

        return sequences(self.reading)

    @cached_property
    def part(self) -> RunPart:
        """Data behind the figures; see `dialsim.results.parts`."""
        from dialsim.results.parts import RunPart

        return RunPart(self.reading)

    @cached_property
    def summary(self) -> Summary:
        """Finish, people reached and cause of delay; see `dialsim.results.summary`."""
        from dialsim.results.summary import sum_up

        return sum_up(self.part)

    @cached_property
    def plot(self) -> Plots:
        """Plots of the run: `plot.progress()`, …; see `dialsim.results.plots.plots`."""
        from dialsim.results.plots.plots import Plots

        return Plots(self)

    def story(self, recipient: int, campaign: str | None = None) -> Story:
        """Return everything that happened to a recipient (position from 0), with Thai times.

        `campaign` is required in runs with several: `January`, or `Acme/January` if the name is
        ambiguous. Raises DialsimError for an unknown recipient.
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

        The folder appears when it is complete; `also` may write more files into it before.
        `without` are tables to leave out, such as webhooks. Raises ExistingOutput if the folder
        exists; `force` replaces a result of dialsim, and nothing else.
        """
        from dialsim.results.folder import write_result

        return write_result(self, folder, force, also, without)

    def to_excel(self, path: str | os.PathLike[str]) -> Path:
        """Write summary, campaigns, recipients and calls by hour as a workbook, in Thai time.

        An existing file is replaced. See `dialsim.results.excel`; for single tables, `for_excel`.
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
    settled recipients and of all recipients. Raises DialsimError for an unknown engine.
    """
    world = World(scenario, seed, replication)
    chosen = choose(engine, calls_of(scenario))
    with followed(progress, "Simulating", "people") as told:
        result = result_of(world, chosen, told)
    # The result keeps the world, but tables need no draws.
    world.forget_draws()
    return result


def result_of(world: World, engine: Engine, progress: Progress | None = None) -> Result:
    """Run a world with an engine, and return the result."""
    prepare(engine)  # before the clock starts: compilation is not part of the run
    begin = time.perf_counter()
    trace = run_world(world, engine, progress)
    return Result(trace, wall_seconds=round(time.perf_counter() - begin, 3))
