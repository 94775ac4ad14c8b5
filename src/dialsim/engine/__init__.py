"""Choice of the engine: SimPy, or the same rules over arrays, compiled by numba.

Both engines write the same trace. SimPy starts at once. The compiled engine is many times as fast,
but loading it takes as long as some 100,000 calls in SimPy, and each machine has to compile it
once.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from dialsim.engine.compiled import is_available, is_compiled

if TYPE_CHECKING:
    from dialsim.engine.trace import Trace
    from dialsim.engine.world import World
    from dialsim.scenario.scenario import Scenario

Engine = Literal["simpy", "compiled"]
Choice = Literal["auto", "simpy", "compiled"]
CHOICES: tuple[str, ...] = get_args(Choice)

_WORTH_LOADING = 100_000
"""Number of calls that SimPy simulates in the time of loading the compiled engine."""
_WORTH_COMPILING = 1_500_000
"""Number of calls that SimPy simulates in the time of compiling the compiled engine."""
_WORTH_A_RUN = 100
"""Number of calls that SimPy simulates while the compiled engine makes a run without calls."""
_COMPILING_SECONDS = 11  # on the servers of docs/speed.md
_CALLS_PER_PERSON = 2

log = logging.getLogger(__name__)


def choose(wanted: str, calls: int, runs: int = 1) -> Engine:
    """Return the engine to use; "auto" chooses the faster one.

    `calls` is the approximate number of calls in all runs together. Without numba the result is
    always SimPy, with a log message if the compiled engine was requested.
    """
    if wanted == "simpy":
        return "simpy"
    if not is_available():
        if wanted == "compiled":
            log.warning("numba is not installed: the SimPy engine runs, with the same results.")
        return "simpy"
    if wanted == "compiled":
        return "compiled"
    calls -= runs * _WORTH_A_RUN
    worth = calls > _WORTH_COMPILING or (calls > _WORTH_LOADING and is_compiled())
    return "compiled" if worth else "simpy"


def calls_of(scenario: Scenario) -> int:
    """Estimate the number of calls in a run of a scenario."""
    blocks = (block for one in scenario.organizations for block in one.campaigns)
    return _CALLS_PER_PERSON * sum(block.size for block in blocks)


@cache
def prepare(engine: Engine) -> None:
    """Compile the engine now if necessary, so that worker processes do not each compile it."""
    if engine == "compiled" and not is_compiled():
        text = "Compiling the engine: this takes some seconds, once."
        log.info(text, extra={"expected_seconds": _COMPILING_SECONDS})
        _compiled_run()
        log.info("The engine is compiled.", extra={"expected_seconds": 0})


def load(engine: Engine) -> None:
    """Load an engine before its first run."""
    if choose(engine, 0) == "compiled":
        _compiled_run()


def _compiled_run() -> Callable[[World, Callable[[int, int], object] | None], Trace]:
    """Return the run function of the compiled engine, loaded on first use."""
    # Loading creates a hundred thousand objects that all stay. The garbage collector would traverse
    # them repeatedly, which takes a seventh of the time in which a worker starts
    # (benchmarks/decision.py).
    was_on = gc.isenabled()
    gc.disable()
    try:
        from dialsim.engine.compiled.running import run
    finally:
        if was_on:
            gc.enable()
    return run


def run_world(
    world: World, engine: Engine, progress: Callable[[int, int], object] | None = None
) -> Trace:
    """Run a world to its end (T5).

    `progress(done, people)` is called occasionally with the number of settled recipients and of all
    recipients.
    """
    if choose(engine, 0) == "compiled":  # a worker on another machine may lack numba
        prepare("compiled")
        return _compiled_run()(world, progress)
    from dialsim.engine.simulation import Simulation

    return Simulation.of_world(world).run(progress)
