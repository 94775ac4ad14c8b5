"""How well many runs use the processors: 64 replications of a campaign of 20,000 people.

    python benchmarks/replications.py            # about a minute and a half on two processors
    python benchmarks/replications.py --json     # every single measurement too

Efficiency is the time of one process, divided by the time of all of them and by their number, both
by the clock, with the start of Python and of the workers. The two take turns, each in a program of
its own. Exit status: 0 the target is met, 1 it is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from statistics import median

PEOPLE, REPLICATIONS, TARGET = 20_000, 64, 0.85


def simulate(jobs: int) -> None:
    """What is measured: replicate, down to the table of figures."""
    from workload import workload

    from dialsim import replicate

    print(replicate(workload(PEOPLE), REPLICATIONS, jobs=jobs).runs["attempts"].sum())


def measure(jobs: int) -> tuple[float, str]:
    """Seconds by the clock of a program with so many jobs, and the result that it prints."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, "--simulate", str(jobs)],
        check=True,
        capture_output=True,
        text=True,
    )
    return time.perf_counter() - begin, done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes to compare with one")
    parser.add_argument("--rounds", type=int, default=1, help="of each measurement; default: 1")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--simulate", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.simulate:
        simulate(arguments.simulate)
        return 0
    load = os.getloadavg()[0]
    taken: dict[int, list[float]] = {1: [], arguments.jobs: []}
    results = set()
    for _ in range(arguments.rounds):
        for jobs, seconds in taken.items():
            measured, result = measure(jobs)
            seconds.append(measured)
            results.add(result)
    assert len(results) == 1, "the number of jobs changed the result"
    efficiency = median(taken[1]) / median(taken[arguments.jobs]) / arguments.jobs
    found = {
        "efficiency": efficiency,
        "target": TARGET,
        "met": efficiency >= TARGET,
        "jobs": arguments.jobs,
        "load_before": load,
        "seconds": taken,
    }
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        verdict = "PASS" if found["met"] else "FAIL"
        print(f"{REPLICATIONS} replications of {PEOPLE:,} people, load before: {load:.1f}")
        print(f"one process {median(taken[1]):.1f} s, {arguments.jobs} processes "
              f"{median(taken[arguments.jobs]):.1f} s")  # fmt: skip
        print(f"efficiency {efficiency:.2f}, at least {TARGET}: {verdict}")
    return 0 if found["met"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
