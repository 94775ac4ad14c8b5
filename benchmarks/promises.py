"""Everything that docs/speed.md promises: PASS or FAIL per line, and the tables of that page.

    python benchmarks/promises.py            # three rounds: some ten minutes on two idle processors
    python benchmarks/promises.py --write    # writes the tables into docs/speed.md as well
    python benchmarks/promises.py --quick    # one round with few people, to try the program itself

Programs to compare take turns, and medians of the rounds are compared. Long measurements without a
counterpart are made once: the naive model, which runs beside others on a processor of its own,
5,000,000 people with figures, and `calibrate`. Exit status: 0 all promises are kept, 1 one is not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import compiled
import decision
from speed import Finding, Sample
from workload import MANY_SLOTS, scenario_text

import logs
import studio

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "speed.md"
LINES = decision.LINES
SCHEDULE = f"{decision.JANUARY}.schedule"
COMBINED = [
    str(decision.FIRST),
    *("--set", f"{decision.JANUARY}.recipients.count=46000"),
    *("--set", f"{LINES}=60", "--set", "costs.perLineDay=150"),
]
STARTS = "2026-01-05T02:00:00Z,2026-01-05T06:00:00Z"
OF_THREE = [
    *("--vary", f"{SCHEDULE}.maxAttempts=2..5", "--vary", f"{SCHEDULE}.retryInterval=1h,4h,13h"),
    *("--vary", f"{SCHEDULE}.startDateTime={STARTS}"),
    *("--goal", "p95(finish) <= 6d", "--minimize", "mean(cost_per_reached)"),
]
SIMPY, SIMPY_46 = "`dialsim run --engine simpy`", "the same, 46,000 people, 60 lines"
MANY = "`dialsim run --replications 200`"
PLAN = "`dialsim plan`, lines 1..200, `p95(finish) <= 4d`"
OPTIMUM = "`dialsim plan`, 24 combinations of 3 settings, 46,000 people, `perLineDay`"
COMMANDS = {
    SIMPY: decision.ONE,
    SIMPY_46: ["run", *COMBINED, "--engine", "simpy"],
    MANY: decision.COMMANDS["200 replications"],
    PLAN: decision.COMMANDS["plan"],
    OPTIMUM: ["plan", *COMBINED, *OF_THREE],
}
RATIOS = {MANY: (SIMPY, 5.0), PLAN: (SIMPY, 6.0), OPTIMUM: (SIMPY_46, 4.0)}
MIB = {1_000_000: 700.0, 5_000_000: 2867.0}


@dataclass
class Measured:
    """Samples by name, and what they come to."""

    quick: bool
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    found: list[Finding] = field(default_factory=list)
    tables: dict[str, list[str]] = field(default_factory=dict)

    def note(self, name: str, sample: Sample) -> None:
        self.samples.setdefault(name, []).append(sample)
        print(f"{name}: {sample}", file=sys.stderr, flush=True)

    def middle(self, name: str, figure: str = "cpu_s") -> float:
        return median(sample[figure] for sample in self.samples[name])

    def scaled(self, people: int) -> int:
        return people // 20 if self.quick else people


def spent_by(*arguments: str) -> Sample:
    """Processor time, wall time and peak memory of one program, its ended workers included."""
    begin = time.perf_counter()
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL) as program:
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
    if program.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {program.returncode}")
    return {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": time.perf_counter() - begin,
        "peak_mib": usage.ru_maxrss / 1024,  # Linux counts in KiB
    }


def runs(measured: Measured, rounds: int) -> None:
    """The cost of a run, by people and by lines, against a bare loop and the naive model."""
    people = measured.scaled(compiled.PEOPLE)
    sizes = {measured.scaled(size): f"{size:,} people" for size in compiled.SIZES}
    with ThreadPoolExecutor(1) as beside:
        naive: Future[Sample] = beside.submit(compiled.job, "naive", people)
        for _ in range(rounds):
            measured.note("loop", compiled.job("heap_loop", people))
            for size in sizes:
                measured.note(f"{size} people", compiled.job("engine", size))
            for slots in compiled.SLOTS:
                measured.note(f"{slots} lines", compiled.job("engine", people, slots))
        measured.note("naive", naive.result())
    with TemporaryDirectory() as folder:
        for size in MIB:
            file = Path(folder, f"{size}.yaml")
            count = measured.scaled(size)
            file.write_text(scenario_text(f"{{count: {count}}}", MANY_SLOTS), encoding="utf-8")
            command = ["-m", "dialsim", "run", str(file), "--engine", "compiled"]
            measured.note(f"{count} people, figures", spent_by(*command))
    engine = f"{people} people"
    loop, alone = measured.middle("loop"), measured.middle(engine)
    measured.found += [
        Finding("naive SimPy model ÷ engine", measured.middle("naive") / alone, least=100),
        Finding("bare heapq loop ÷ engine, both with draws", loop / alone, least=3),
    ]
    slots = [f"{count} lines" for count in compiled.SLOTS]
    for what, names in (("people", [f"{n} people" for n in sizes]), ("lines", [engine, *slots])):
        costs = [measured.middle(n) / measured.middle(n, "calls") for n in names]
        says = f"time per call: dearest ÷ cheapest number of {what}"
        measured.found.append(Finding(says, max(costs) / min(costs), 2))
    for size, most in MIB.items():
        peak = measured.middle(f"{measured.scaled(size)} people, figures", "peak_mib")
        says = f"peak memory of `dialsim run`, {size:,} people"
        measured.found.append(Finding(says, peak, most, "MiB"))
    rows = [(f"{n} people", n, MANY_SLOTS) for n in sizes]
    rows += [(f"{count} lines", people, count) for count in compiled.SLOTS]
    measured.tables["runs"] = [
        "| people | lines | calls | seconds | a call | peak memory | with all figures |",
        "|---|---|---|---|---|---|---|",
        *(_run_row(measured, *row) for row in rows),
    ]


def _run_row(measured: Measured, name: str, people: int, slots: int) -> str:
    seconds, calls = measured.middle(name), measured.middle(name, "calls")
    with_figures = f"{people} people, figures"
    peak = ""
    if with_figures in measured.samples and slots == MANY_SLOTS:
        peak = f"{measured.middle(with_figures, 'peak_mib'):,.0f} MiB"
    return (
        f"| {people:,} | {slots:,} | {calls:,.0f} | {seconds:.2g} | {1e6 * seconds / calls:.2f} µs "
        f"| {measured.middle(name, 'peak_mib'):,.0f} MiB | {peak} |"
    )


def decisions(measured: Measured, rounds: int) -> None:
    """Whole commands, with the start of all their processes, against one SimPy run."""
    decision.measured(["run", str(decision.FIRST), "--engine", "compiled"])  # compiles if need be
    few = ["--set", f"{decision.JANUARY}.recipients.count=4000"] if measured.quick else []
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            jobs = [] if "simpy" in command else ["--jobs", str(decision.PROCESSORS)]
            begin = time.perf_counter()
            spent, _ = decision.measured([*command, *few, *jobs])
            measured.note(name, {"cpu_s": spent, "wall_s": time.perf_counter() - begin})
    rows = []
    for name in COMMANDS:
        shared = 1 if name in (SIMPY, SIMPY_46) else decision.PROCESSORS
        against = RATIOS.get(name, (name, None))[0]
        ratio = measured.middle(name) / shared / measured.middle(against)
        if name in RATIOS:
            measured.found.append(Finding(f"{name} ÷ one SimPy run", ratio, RATIOS[name][1]))
        rows.append(f"| {name} | {measured.middle(name) / shared:.1f} | {ratio:.1f} |")
    head = "| 80,000 people, 4 attempts, if not said otherwise | seconds | ÷ one SimPy run |"
    measured.tables["decisions"] = [head, "|---|---|---|", *rows]


def answers(measured: Measured, rounds: int) -> None:
    """How soon a studio answers, and how long logs take."""
    people, changes = measured.scaled(500_000), 8 if measured.quick else 24
    people = 6_000 if measured.quick else people
    command = [str(HERE / "studio.py"), "--json", "--sizes", str(people), "--changes", str(changes)]
    command += ["--memory-changes", "0", "--sessions", "0"]
    for _ in range(rounds):
        done = subprocess.run(
            [sys.executable, *command], check=True, capture_output=True, text=True
        )  # fmt: skip
        latency = json.loads(done.stdout)["latency"][str(people)]
        (first, _), (half, late) = latency[studio.BEFORE], latency["all"]
        measured.note("studio", {"first_s": first, "p50_s": half, "p95_s": late})
    first, half = measured.middle("studio", "first_s"), measured.middle("studio", "p50_s")
    studio_of = "studio, 500,000 people"
    before = f"{studio_of}: estimate before any run, median"
    measured.found.append(Finding(before, 1000 * first, 100, "ms"))
    measured.found.append(Finding(f"{studio_of}: first run, median", 1000 * half, 700, "ms"))
    with TemporaryDirectory() as folder:
        seconds = {}
        for bodies in (20_000, 100_000):
            file = Path(folder, f"{bodies}.jsonl")
            logs.write(file, bodies)
            bad = file.read_bytes().replace(b'"callDuration":null', b'"callDuration":"1.000"')
            file.write_bytes(bad)
            done = subprocess.run(
                [sys.executable, __file__, "--verify", str(file)],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            seconds[bodies] = float(done.stdout)
            measured.note(f"verify {bodies}", {"cpu_s": seconds[bodies]})
        grows = seconds[100_000] / seconds[20_000] / 5
        measured.found.append(
            Finding("verify: time per body, 100,000 ÷ 20,000 with findings", grows, 1.5)
        )
        file, out = Path(folder, "calls.jsonl"), Path(folder, "behaviour.yaml")
        logs.write(file, measured.scaled(1_000_000))
        spent = spent_by("-m", "dialsim", "calibrate", str(file), "--out", str(out))
    measured.note("calibrate", spent)
    measured.found.append(Finding("calibrate, 1,000,000 bodies", spent["wall_s"], 240, "s"))


def verify(file: Path) -> None:
    """Print the processor time that the findings of a log take."""
    from job import clocked

    from dialsim.logs.log import read_log
    from dialsim.logs.verify import check

    log = read_log(file)
    print(clocked(lambda: check(log))[1])


def line(finding: Finding) -> str:
    """A promise as a row of the page's table."""
    bound = finding.target if finding.least is None else finding.least
    promise = ""
    if bound is not None:
        promise = f"at {'most' if finding.least is None else 'least'} {bound:,.12g}"
    verdict = ("PASS" if finding.met else "FAIL") if promise else ""
    digits = ",.0f" if finding.measured >= 100 else ".3g" if finding.measured >= 10 else ".2g"
    return (
        f"| {finding.what} | {finding.measured:{digits}} {finding.unit} | {promise} | {verdict} |"
    )


def write(measured: Measured) -> None:
    """Replace the tables of the page that stand between their marks."""
    text = PAGE.read_text(encoding="utf-8")
    for name, rows in measured.tables.items():
        table = "\n".join([f"<!-- table {name} -->", "", *rows, "", "<!-- end of table -->"])
        text, count = re.subn(
            rf"<!-- table {name} -->.*?<!-- end of table -->",
            lambda _, t=table: t,
            text,
            flags=re.S,
        )
        if count != 1:
            raise SystemExit(f"{PAGE} has {count} places for the table {name}, not 1")
    PAGE.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--quick", action="store_true", help="one round with few people")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/speed.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement to it")
    parser.add_argument("--verify", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.verify:
        verify(arguments.verify)
        return 0
    measured, rounds = Measured(arguments.quick), 1 if arguments.quick else arguments.rounds
    begin = time.perf_counter()
    runs(measured, rounds)
    decisions(measured, rounds)
    answers(measured, rounds)
    minutes = (time.perf_counter() - begin) / 60
    measured.tables["promises"] = [
        f"| {datetime.now(UTC).date()}, medians of {rounds} rounds | measured | promised | |",
        "|---|---|---|---|",
        *map(line, measured.found),
    ]
    print("\n".join(row for table in measured.tables.values() for row in [*table, ""]))
    print(f"{minutes:.1f} minutes")
    if arguments.write:
        write(measured)
    if arguments.json:
        found = [asdict(one) | {"met": one.met} for one in measured.found]
        arguments.json.write_text(json.dumps({"found": found, "samples": measured.samples}))
    return 0 if all(finding.met for finding in measured.found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
