"""What a decision takes, next to one run: 80,000 people, 4 attempts, lines from 1 to 200.

    python benchmarks/decision.py            # a table; some minutes
    python benchmarks/decision.py --json     # every single measurement too

`dialsim plan` for `p95(finish) <= 4d` with the default settings, and 200 replications, against one
run by SimPy. Each is a program of its own, and takes turns with the others; measured is processor
time, workers included, of which two processors share the work. Of the plan's it is also measured
which share its draws and its rules take, that is, everything but to start programs, to set runs up,
to make their figures, and to search and to say what was found. Exit status: 0 the targets are met,
1 one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

WATCH = Path(__file__).with_name("engine_time")
FIRST = Path(__file__).parents[1] / "scenarios/first-campaign.yaml"
LINES = "organizations.Acme.maxConcurrentCalls"
JANUARY = "organizations.Acme.campaigns.January"
SCENARIO = [
    str(FIRST),
    *("--set", f"{JANUARY}.recipients.count=80000"),
    *("--set", f"{JANUARY}.schedule.maxAttempts=4"),
]
ONE = ["run", *SCENARIO, "--set", f"{LINES}=54", "--engine", "simpy"]
COMMANDS = {
    "plan": ["plan", *SCENARIO, "--vary", f"{LINES}=1..200", "--goal", "p95(finish) <= 4d"],
    "200 replications": ["run", *SCENARIO, "--set", f"{LINES}=54", "--replications", "200"],
}
TARGETS = {"plan": 10.0, "200 replications": 6.0}
LEAST_SHARE = 0.6
PROCESSORS = 2


def measured(arguments: list[str]) -> tuple[float, float]:
    """The processor time of a program and its workers (s), and that of its draws and rules."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with TemporaryDirectory() as folder:
        paths = [str(WATCH), *filter(None, [os.environ.get("PYTHONPATH")])]
        watched = {"ENGINE_TIME": folder, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", "dialsim", *arguments]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | watched)
        noted = [file.read_text().split() for file in Path(folder).iterdir()]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, sum(float(part) for parts in noted for part in parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    measured(["run", str(FIRST), "--engine", "compiled"])  # which compiles it, if it never was
    samples: dict[str, list[float]] = {"one run, SimPy": [], **{name: [] for name in COMMANDS}}
    shares: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(arguments.rounds):
        samples["one run, SimPy"].append(measured(ONE)[0])
        for name, command in COMMANDS.items():
            spent, inside = measured([*command, "--jobs", str(PROCESSORS)])
            samples[name].append(spent / PROCESSORS)
            shares[name].append(inside / spent)
    one = median(samples["one run, SimPy"])
    ratios = {name: median(samples[name]) / one for name in COMMANDS}
    share = median(shares["plan"])
    met = share >= LEAST_SHARE and all(ratios[name] <= most for name, most in TARGETS.items())
    if arguments.json:
        found = {"samples_s": samples, "ratios": ratios, "shares": shares, "met": met}
        print(json.dumps(found, indent=2))
    else:
        print("| against one SimPy run | measured | at most |\n|---|---|---|")
        for name, ratio in ratios.items():
            print(f"| {name} | {ratio:.1f} | {TARGETS[name]:.0f} |")
        print("\n| a plan | measured | at least |\n|---|---|---|")
        print(f"| draws and rules ÷ all processor time | {share:.0%} | {LEAST_SHARE:.0%} |")
        print("PASS" if met else "FAIL")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
