"""How soon a studio answers: from a change to its first answers, and what ten sessions wait.

The first answer is the estimate before any run, where it applies; the next one follows the first
run.

    python benchmarks/studio.py              # three tables; some minutes
    python benchmarks/studio.py --json

A change is another number of lines, attempts or share of answers, as `StudioState.turn` makes it,
so reading the scenario anew is part of the time. Before the first change the scenario has been
looked at for as long as its answer takes. Sessions share the workers, one per processor.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from threading import Thread

from dialsim.experiments.fluid import estimate_text
from dialsim.experiments.pool import Pool
from dialsim.studio.estimate import EstimateAnswer, Estimator
from dialsim.studio.levers import levers
from dialsim.studio.questions import Inquiry, fewest_lines
from dialsim.studio.state import StudioState

BEFORE = "any, to the estimate before any run"
FIRST = Path(__file__).parents[1] / "scenarios/first-campaign.yaml"
SIZES = (6_000, 80_000, 500_000)
LINES = {6_000: 10, 80_000: 60, 500_000: 300}


def changes(people: int) -> Iterator[tuple[str, str]]:
    """A label of a lever and its new value, again and again others."""
    for number in range(10**6):
        yield "Lines", str(LINES[people] + 1 + number % 20)
        yield "Attempts", str(2 + number % 3)
        yield "Lines", str(LINES[people] + 25 + number % 20)
        yield "Answered", f"{0.35 + number % 10 / 50:g}"


def opened(people: int) -> StudioState:
    return StudioState.of(FIRST).set("people", str(people)).set("lines", str(LINES[people]))


def turned(state: StudioState, label: str, text: str) -> StudioState:
    lever = next(lever for lever in levers(state.scenario) if lever.label == label)
    return state.turn(lever, text)


def first_estimates(pool: Pool, people: int, count: int, pause: float) -> dict[str, list[float]]:
    """Seconds from each change to its first run, by the lever that was changed; and to the estimate
    before it.
    """
    estimator, state = Estimator(pool, limit=8), opened(people)
    estimator.ask(state.scenario).final()
    found: dict[str, list[float]] = {}
    for (label, text), _ in zip(changes(people), range(count), strict=False):
        time.sleep(pause)
        begin = time.perf_counter()
        state = turned(state, label, text)
        answer = estimator.ask(state.scenario)
        if estimate_text(state.scenario) is not None:
            found.setdefault(BEFORE, []).append(time.perf_counter() - begin)
        next(iter(answer))
        found.setdefault(label, []).append(time.perf_counter() - begin)
    estimator.close()
    return found


def beside_plans(pool: Pool, sessions: int, count: int) -> list[float]:
    """The same where so many sessions of 6,000 people change something, and one plans meanwhile."""
    waits: list[float] = []
    plan = Inquiry(fewest_lines(opened(80_000), "Fri 18:00"))

    def session(number: int) -> None:
        estimator, state = Estimator(pool), opened(6_000).set("seed", str(number))
        for (label, text), _ in zip(changes(6_000), range(count), strict=False):
            begin = time.perf_counter()
            state = turned(state, label, text)
            next(iter(estimator.ask(state.scenario)))
            waits.append(time.perf_counter() - begin)
            time.sleep(1.0)
        estimator.close()

    threads = [Thread(target=session, args=(number,)) for number in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    plan.stop()
    return waits


def memory(pid: int) -> float:
    """Resident memory of a process in MiB; 0 where the system doesn't tell."""
    file = Path(f"/proc/{pid}/statm")
    pages = int(file.read_text().split()[1]) if file.is_file() else 0
    return pages * 4096 / 2**20


def memory_over_changes(pool: Pool, people: int, count: int) -> dict[int, list[float]]:
    """MiB of this process and of the workers after so many changes."""
    estimator, state, sizes = Estimator(pool, limit=2), opened(people), {}
    for number, (label, text) in enumerate(changes(people), 1):
        state = turned(state, label, text)
        answer: EstimateAnswer = estimator.ask(state.scenario)
        answer.final()
        if number in (count // 5, count // 2, count):
            sizes[number] = [memory(pid) for pid in (os.getpid(), *pool.processes)]
        if number == count:
            estimator.close()
            return sizes
    raise AssertionError


def middle_and_late(seconds: list[float]) -> tuple[float, float]:
    cut = quantiles(seconds, n=20, method="inclusive")
    return cut[9], cut[18]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--changes", type=int, default=40, help="of each size; default: 40")
    parser.add_argument("--memory-changes", type=int, default=500, help="default: 500")
    parser.add_argument("--sessions", type=int, default=10, help="0: none; default: 10")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    pool = Pool()
    waiting = Estimator(pool, limit=2)
    waiting.ask(opened(6_000).scenario).final()
    latency = {}
    for people in arguments.sizes:
        found = first_estimates(pool, people, arguments.changes, 0.2)
        runs = (part for label, part in found.items() if label != BEFORE)
        found["all"] = [seconds for part in runs for seconds in part]
        latency[people] = {label: middle_and_late(part) for label, part in found.items()}
    waits = beside_plans(pool, arguments.sessions, 6) if arguments.sessions else []
    sessions = middle_and_late(waits) if waits else None
    most = arguments.memory_changes
    sizes = memory_over_changes(pool, 80_000, most) if most else {}
    pool.close()
    if arguments.json:
        print(json.dumps({"latency": latency, "sessions": sessions, "memory": sizes}))
        return 0
    print("| people | changed | p50, ms | p95, ms |")
    print("|---|---|---|---|")
    for people, parts in latency.items():
        for label, (half, late) in parts.items():
            print(f"| {people:,} | {label} | {1000 * half:.0f} | {1000 * late:.0f} |")
    if sessions is not None:
        half, late = (1000 * seconds for seconds in sessions)
        print(
            f"| 6,000 in {arguments.sessions} sessions, a plan beside | {half:.0f} | {late:.0f} |"
        )
    for number, mebibytes in sizes.items():
        print(f"after {number} changes: {', '.join(f'{size:.0f}' for size in mebibytes)} MiB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
