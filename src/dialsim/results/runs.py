"""Running a scenario: from the file's models to a result."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from dialsim.interface.errors import DialsimError
from dialsim.results.result import Result

if TYPE_CHECKING:
    from dialsim.scenario.models import Scenario


def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    replication: int = 0,
    engine: Literal["auto", "simpy"] = "auto",
    progress: Callable[[int, int], object] | None = None,
) -> Result:
    """Simulate a scenario to its end (T5) and return what came of it.

    `seed` defaults to the scenario's. `engine` "auto" chooses; "simpy" is the only one.
    `progress(done, people)` is called now and then with how many people are final. Raises
    DialsimError for an engine that doesn't exist.
    """
    from dialsim.engine.simulation import run_trace

    if engine not in ("auto", "simpy"):
        raise DialsimError(f"there is no engine {engine!r}; there are: auto, simpy")
    begin = time.perf_counter()
    trace = run_trace(scenario, seed, replication, progress)
    return Result(trace, wall_seconds=round(time.perf_counter() - begin, 3))
