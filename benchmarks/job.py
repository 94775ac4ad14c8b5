"""One measurement in a process of its own; `speed.py` starts it and reads the line it prints.

python benchmarks/job.py engine 200000
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from naive import NaiveModel, tally_of
from workload import scenario_text, workload, write_people

import dialsim
from dialsim.engine.simulation import Simulation

WARM_UP = 100  # people of a small run that goes before, so that nothing is imported on the clock
T = TypeVar("T")


def naive(people: int) -> dict[str, float]:
    """The naive model, from the scenario's models to the end of the last call."""
    NaiveModel(workload(WARM_UP)).run()
    scenario = workload(people)
    tally, seconds = clocked(lambda: NaiveModel(scenario).run())
    return {"cpu_s": seconds, "calls": tally.calls, "reached": tally.reached}


def engine(people: int) -> dict[str, float]:
    """The engine, from the scenario's models to the whole trace; the process's peak memory."""
    Simulation(workload(WARM_UP)).run()
    scenario = workload(people)
    trace, seconds = clocked(lambda: Simulation(scenario).run())
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts in KiB
    tally = tally_of(trace)
    return {
        "cpu_s": seconds,
        "calls": tally.calls,
        "reached": tally.reached,
        "rows": len(trace.calls[0][0]),
        "peak_mib": peak_mib,
    }


def write(people: int) -> dict[str, float]:
    """The simulation, and then everything that `dialsim run --out` writes of it.

    The webhooks are written a second time alone: what that takes, taken off the whole, leaves at
    least what the tables take.
    """
    with tempfile.TemporaryDirectory() as folder:
        dialsim.run(workload(WARM_UP)).write(Path(folder, "warm-up"))
        scenario = workload(people)
        result, simulated = clocked(lambda: dialsim.run(scenario))
        _, seconds = clocked(lambda: result.write(Path(folder, "result")))
        with Path(folder, "webhooks.jsonl").open("wb") as file:
            _, webhooks = clocked(lambda: result.write_webhooks(file))
    return {
        "cpu_s": seconds,
        "tables_cpu_s": seconds - webhooks,
        "webhooks_cpu_s": webhooks,
        "simulation_cpu_s": simulated,
    }


def load(rows: int) -> dict[str, float]:
    """A scenario whose recipients are a CSV of so many rows."""
    with tempfile.TemporaryDirectory() as folder:
        write_people(Path(folder, "people.csv"), rows)
        path = Path(folder, "scenario.yaml")
        path.write_text(scenario_text("{file: people.csv}"), encoding="utf-8")
        workload(WARM_UP)
        _, seconds = clocked(lambda: dialsim.load(path))
    return {"cpu_s": seconds}


def clocked(task: Callable[[], T]) -> tuple[T, float]:
    """What the task yields, and the processor seconds that it took over all threads."""
    begin = time.process_time()
    result = task()
    return result, time.process_time() - begin


JOBS = {job.__name__: job for job in (naive, engine, write, load)}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](int(sys.argv[2]))))
