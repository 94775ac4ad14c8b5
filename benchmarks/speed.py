"""The speeds that dialsim promises, as ratios measured in one run.

    python benchmarks/speed.py            # a table; about four minutes
    python benchmarks/speed.py --json     # every single measurement too

Each measurement is a process of its own; those that are compared take turns, and medians are
compared. Simulations are measured in processor time, whole programs by the clock. Exit status: 0
all targets are met, 1 at least one is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

JOB = Path(__file__).with_name("job.py")
PEOPLE, MANY_PEOPLE, CSV_ROWS = 200_000, 1_000_000, 100_000
HELP = ("-c", "import sys; from dialsim.cli import main; sys.exit(main())", "--help")
IMPORT = ("-c", "import click")

Sample = dict[str, float]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was measured, and the most or the least that it may be (None: nothing is promised)."""

    what: str
    measured: float
    target: float | None = None
    unit: str = "×"
    least: float | None = None

    @property
    def met(self) -> bool:
        return (self.target is None or self.measured <= self.target) and (
            self.least is None or self.measured >= self.least
        )

    @property
    def promise(self) -> str:
        """The bound, and whether it is kept; empty if nothing is promised."""
        if self.target is None and self.least is None:
            return ""
        bound = f"≤ {self.target:g}" if self.least is None else f"≥ {self.least:g}"
        return f"{f'{bound} {self.unit}':>12}  {'PASS' if self.met else 'FAIL'}"


def job(name: str, size: int) -> Sample:
    """Run one job in a new process."""
    done = subprocess.run(
        [sys.executable, str(JOB), name, str(size)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def program(*arguments: str) -> Sample:
    """Run Python with these arguments, from start to exit."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return {"wall_s": time.perf_counter() - begin}


def measure(rounds: int) -> dict[str, list[Sample]]:
    """All measurements, those to compare taking turns."""
    taken: dict[str, list[Sample]] = {}

    def note(name: str, sample: Sample) -> None:
        taken.setdefault(name, []).append(sample)
        print(f"{name}: {sample}", file=sys.stderr)

    for _ in range(rounds):
        note("naive", job("naive", PEOPLE))
        note("engine", job("engine", PEOPLE))
        note("engine, many people", job("engine", MANY_PEOPLE))
        note("write", job("write", PEOPLE))
        note("load", job("load", CSV_ROWS))
    for arguments in (HELP, IMPORT):  # compiles what isn't compiled yet
        program(*arguments)
    for _ in range(5 * rounds):
        note("help", program(*HELP))
        note("import click", program(*IMPORT))
    return taken


def findings(taken: dict[str, list[Sample]]) -> list[Finding]:
    """The ratios of medians, each with its target."""

    def middle(name: str, figure: str) -> float:
        return median(sample[figure] for sample in taken[name])

    def per_call(name: str) -> float:
        return median(sample["cpu_s"] / sample["calls"] for sample in taken[name])

    return [
        Finding(
            f"engine / naive model, {PEOPLE:,} people",
            middle("engine", "cpu_s") / middle("naive", "cpu_s"),
            1.0,
        ),
        Finding(
            f"time per call, {MANY_PEOPLE:,} / {PEOPLE:,} people",
            per_call("engine, many people") / per_call("engine"),
            1.25,
        ),
        Finding(
            f"peak memory, {MANY_PEOPLE:,} people",
            max(sample["peak_mib"] for sample in taken["engine, many people"]),
            2048,
            "MiB",
        ),
        Finding(
            "dialsim --help / python -c 'import click'",
            middle("help", "wall_s") / middle("import click", "wall_s"),
            3,
        ),
        Finding(
            f"writing the tables / simulating, {PEOPLE:,} people",
            middle("write", "tables_cpu_s") / middle("write", "simulation_cpu_s"),
            1,
        ),
        Finding(
            "the same with all webhook bodies",
            middle("write", "cpu_s") / middle("write", "simulation_cpu_s"),
            None,
        ),
        Finding(f"loading a CSV of {CSV_ROWS:,} rows", middle("load", "cpu_s"), 1.5, "s"),
    ]


def table(found: list[Finding]) -> str:
    """The findings for people to read."""
    lines = [f"{'':60}{'measured':>12}{'promised':>12}"]
    for finding in found:
        measured = f"{finding.measured:.3g} {finding.unit}"
        lines.append(f"{finding.what:60}{measured:>12}{finding.promise}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement; default: 3")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
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
