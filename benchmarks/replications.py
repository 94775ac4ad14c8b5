"""How well many runs use the processors: 64 replications of a campaign of 20,000 people.

    python benchmarks/replications.py            # about a minute and a half on two processors
    python benchmarks/replications.py --json     # every single measurement too

Efficiency is the time of one process, divided by the time of all of them and by their number, by
the clock, with the start of Python and of the workers. The two take turns, each in a program of its
own. The machine must have nothing else to do; on a busy one the processor times at least say what
coordination costs. Exit status: 0 the target is met, 1 it is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from statistics import median

Sample = dict[str, float]

PEOPLE, REPLICATIONS, TARGET = 20_000, 64, 0.85


def simulate(jobs: int) -> None:
    """What is measured: replicate, down to the table of figures."""
    from workload import workload

    from dialsim import replicate

    print(replicate(workload(PEOPLE), REPLICATIONS, jobs=jobs).runs["attempts"].sum())


def processor_seconds() -> float:
    """Of all programs that have ended, their workers included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(jobs: int) -> tuple[Sample, str]:
    """The time of a program with so many jobs, and the result that it prints."""
    begin, used = time.perf_counter(), processor_seconds()
    done = subprocess.run(
        [sys.executable, __file__, "--simulate", str(jobs)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},  # compiling at each start is no work
    )
    wall, cpu = time.perf_counter() - begin, processor_seconds() - used
    return {"wall_s": wall, "cpu_s": cpu}, done.stdout


def middle(samples: list[Sample]) -> Sample:
    """The medians."""
    return {name: median(sample[name] for sample in samples) for name in samples[0]}


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
    taken: dict[int, list[Sample]] = {1: [], arguments.jobs: []}
    results = set()
    for _ in range(arguments.rounds):
        for jobs, samples in taken.items():
            sample, result = measure(jobs)
            samples.append(sample)
            results.add(result)
    assert len(results) == 1, "the number of jobs changed the result"
    alone, together = (middle(taken[jobs]) for jobs in (1, arguments.jobs))
    efficiency = alone["wall_s"] / together["wall_s"] / arguments.jobs
    found = {
        "efficiency": efficiency,
        "target": TARGET,
        "met": efficiency >= TARGET,
        "jobs": arguments.jobs,
        "load_before": load,
        "processor_time_ratio": alone["cpu_s"] / together["cpu_s"],
        "measurements": taken,
    }
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        verdict = "PASS" if found["met"] else "FAIL"
        print(f"{REPLICATIONS} replications of {PEOPLE:,} people, load before: {load:.1f}")
        for jobs, sample in ((1, alone), (arguments.jobs, together)):
            print(f"{jobs} at work: {sample['wall_s']:.1f} s, processor {sample['cpu_s']:.1f} s")
        print(f"efficiency {efficiency:.2f}, at least {TARGET}: {verdict}")
    return 0 if found["met"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
