"""Which engine runs a world: the same rules in SimPy, or over arrays, compiled by numba.

Both leave the same trace. SimPy begins at once. The compiled engine is many times as quick, but
has to be loaded first, which takes as long as some 100,000 calls in SimPy, and to be compiled once
on each machine.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from dialsim.engine.compiled.cache import is_available, is_compiled
from dialsim.errors import DialsimError

if TYPE_CHECKING:
    from dialsim.engine.trace import Trace
    from dialsim.engine.world import World
    from dialsim.scenario.scenario import Scenario

Engine = Literal["simpy", "compiled"]
Choice = Literal["auto", "simpy", "compiled"]
CHOICES: tuple[str, ...] = get_args(Choice)

_WORTH_LOADING = 100_000
"""Calls that SimPy makes in the time in which the compiled engine is loaded."""
_WORTH_COMPILING = 1_500_000
"""And in that in which it is compiled."""
_CALLS_PER_PERSON = 2

log = logging.getLogger(__name__)


def choose(wanted: str, calls: int) -> Engine:
    """The engine that is wanted; for "auto" the one that is done first with about so many calls.

    Without numba it is SimPy in any case, and that is logged if the other was wanted. Raises
    DialsimError for an engine that doesn't exist.
    """
    if wanted not in CHOICES:
        raise DialsimError(f"there is no engine {wanted!r}; there are: {', '.join(CHOICES)}")
    if wanted == "simpy":
        return "simpy"
    if not is_available():
        if wanted == "compiled":
            log.warning("numba is not installed: the SimPy engine runs, with the same results.")
        return "simpy"
    if wanted == "compiled":
        return "compiled"
    worth = calls > _WORTH_COMPILING or (calls > _WORTH_LOADING and is_compiled())
    return "compiled" if worth else "simpy"


def calls_of(scenario: Scenario) -> int:
    """About how many calls a run of a scenario makes."""
    blocks = (block for one in scenario.organizations for block in one.campaigns)
    return _CALLS_PER_PERSON * sum(block.size for block in blocks)


@cache
def prepare(engine: Engine) -> None:
    """Compile what is to be compiled: before many processes at once would do it."""
    if engine == "compiled" and not is_compiled():
        log.info("Compiling the engine: this takes some seconds, once.")
        _compiled_run()


def load(engine: Engine) -> None:
    """Load an engine ahead of its first run."""
    if choose(engine, 0) == "compiled":
        _compiled_run()


def _compiled_run() -> Callable[[World, Callable[[int, int], object] | None], Trace]:
    """The compiled engine, loaded where it is not yet.

    Python looks for no garbage meanwhile: loading makes a hundred thousand objects which all stay,
    and to go through them again and again takes a seventh of a worker's start
    (benchmarks/decision.py).
    """
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
    """Work a world off to its end (T5).

    `progress(done, people)` is called now and then with how many of all people are final.
    """
    if choose(engine, 0) == "compiled":  # a worker elsewhere may be without numba
        prepare("compiled")
        return _compiled_run()(world, progress)
    from dialsim.engine.simulation import Simulation

    return Simulation.of_world(world).run(progress)
