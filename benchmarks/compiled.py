"""The compiled engine, as ratios measured in one run on one core.

    python benchmarks/compiled.py            # a table; about ten minutes
    python benchmarks/compiled.py --json     # every single measurement too

One campaign of 1,000,000 people, 3 attempts, 300 slots and the default behaviour and windows is
simulated, draws included, after a small run that loads the compiled code. It is compared with the
naive SimPy model (`naive.py`), which runs in full, but once, and with a bare loop over heapq
(`heap_loop.py`) of the same people.

Each measurement is a process of its own and is measured in processor time; those that are compared
take turns, and medians are compared. Exit status: 0 all targets are met, 1 at least one is missed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from statistics import median

from job import WARM_UP, clocked
from speed import Finding, Sample, table
from workload import MANY_SLOTS, workload

PEOPLE = 1_000_000
SIZES = (10_000, 100_000, 1_000_000, 5_000_000)
SLOTS = (10, 100, 1_000, 10_000)
WORTH_TIMING = 500_000  # people of all runs of a sample; smaller scenarios run several times


def naive(people: int, slots: int) -> Sample:
    """The naive SimPy model."""
    from naive import NaiveModel

    NaiveModel(workload(WARM_UP, slots)).run()
    scenario = workload(people, slots)
    tally, seconds = clocked(lambda: NaiveModel(scenario).run())
    return {"cpu_s": seconds, "calls": tally.calls}


def heap_loop(people: int, slots: int) -> Sample:
    """The bare loop, and before it the draws of its calls."""
    from heap_loop import HeapLoop

    loop = HeapLoop(workload(people, slots))
    _, draws = clocked(loop.draw)
    tally, seconds = clocked(loop.run)
    return {"cpu_s": draws + seconds, "loop_cpu_s": seconds, "calls": tally.calls}


def engine(people: int, slots: int) -> Sample:
    """The compiled engine: from the scenario's models to the whole trace.

    Then once more with the draws of the first run, as a variant of the same replication has them.
    """
    from dialsim.engine import run_world
    from dialsim.engine.world import World

    run_world(World(workload(WARM_UP, slots)), "compiled")
    scenario, runs = workload(people, slots), max(1, WORTH_TIMING // people)
    calls = rows = 0
    seconds = drawn_seconds = peak_mib = 0.0
    for replication in range(runs):
        world = World(scenario, replication=replication)
        trace, spent = clocked(lambda world=world: run_world(world, "compiled"))
        seconds += spent
        calls += len(trace.calls[0][0].dial_numbers)
        rows += len(trace.calls[0][0])
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux: in KiB
        del trace
        twin = World(scenario, replication=replication, like=world)
        _, spent = clocked(lambda twin=twin: run_world(twin, "compiled"))
        drawn_seconds += spent
    return {
        "cpu_s": seconds / runs,
        "drawn_cpu_s": drawn_seconds / runs,
        "calls": calls / runs,
        "rows": rows / runs,
        "peak_mib": peak_mib,
    }


JOBS: dict[str, Callable[[int, int], Sample]] = {
    job.__name__: job for job in (naive, heap_loop, engine)
}


def job(name: str, people: int, slots: int = MANY_SLOTS) -> Sample:
    """Run one job in a new process."""
    command = [sys.executable, __file__, "--job", name, str(people), str(slots)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def measure(rounds: int) -> dict[str, list[Sample]]:
    """All measurements, those to compare taking turns."""
    taken: dict[str, list[Sample]] = {}

    def note(name: str, sample: Sample) -> None:
        taken.setdefault(name, []).append(sample)
        print(f"{name}: {sample}", file=sys.stderr)

    note("naive", job("naive", PEOPLE))
    for _ in range(rounds):
        note("heap loop", job("heap_loop", PEOPLE))
        note("engine", job("engine", PEOPLE))
        for people in SIZES:
            if people != PEOPLE:
                note(f"engine, {people} people", job("engine", people))
        for slots in SLOTS:
            note(f"engine, {slots} slots", job("engine", PEOPLE, slots))
    return taken


def findings(taken: dict[str, list[Sample]]) -> list[Finding]:
    """The ratios of medians, each with its target."""

    def middle(name: str, figure: str = "cpu_s") -> float:
        return median(sample[figure] for sample in taken[name])

    def per_call(name: str, figure: str = "cpu_s") -> float:
        return median(sample[figure] / sample["calls"] for sample in taken[name])

    found = [
        Finding("naive model / engine", middle("naive") / middle("engine"), least=100),
        Finding(
            "heapq loop / engine, both with their draws",
            middle("heap loop") / middle("engine"),
            least=3,
        ),
        Finding(
            "heapq loop / engine, neither with draws",
            middle("heap loop", "loop_cpu_s") / middle("engine", "drawn_cpu_s"),
        ),
        Finding(
            "heapq loop without draws / engine with draws",
            middle("heap loop", "loop_cpu_s") / middle("engine"),
        ),
        Finding(
            f"peak memory, {PEOPLE:,} people",
            max(sample["peak_mib"] for sample in taken["engine"]),
            700,
            "MiB",
        ),
    ]
    for what, names in (
        ("people", ["engine", *(name for name in taken if name.endswith(" people"))]),
        ("slots", ["engine", *(name for name in taken if name.endswith(" slots"))]),
    ):
        costs = [per_call(name) for name in names]
        found.append(
            Finding(
                f"time per call, dearest / cheapest number of {what}", max(costs) / min(costs), 2
            )
        )
    for name in taken:
        if name.startswith("engine"):
            found.append(Finding(f"time per call, {name}", 1e9 * per_call(name), unit="ns"))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement; default: 3")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        name, people, slots = arguments.job
        print(json.dumps(JOBS[name](int(people), int(slots))))
        return 0
    taken = measure(arguments.rounds)
    found = findings(taken)
    if arguments.json:
        promises = [asdict(finding) | {"met": finding.met} for finding in found]
        print(json.dumps({"findings": promises, "measurements": taken}, indent=2))
    else:
        print(table(found))
    return 0 if all(finding.met for finding in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
