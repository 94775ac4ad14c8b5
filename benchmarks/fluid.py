"""Error of the first estimate (`dialsim.experiments.fluid`), on random scenarios.

    python benchmarks/fluid.py                    # 200 scenarios: some minutes
    python benchmarks/fluid.py --scenarios 1000 --seed 7

Each scenario has random people, lines, attempts, retry intervals, windows, odds, segments, prices,
and at times two campaigns, lines by time, a pace or an end date. Its estimate is compared with the
means of several runs, the finish with their median. The share of scenarios that finish on the
estimated day counts where more than half of the runs agree on a day.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import defaultdict
from statistics import median
from typing import Any

import numpy as np

import dialsim
from dialsim.experiments.fluid import first_estimate
from dialsim.interface.instants import DAY, HOUR, THAI_OFFSET

FIGURES = ("people_reached", "dials", "talk_minutes", "cost", "cost_per_reached")
SIZES = (300, 3_000, 30_000)
RUNS = 8


def scenario(draw: random.Random, people: int) -> dict[str, Any]:
    """A random scenario, as the content of a file."""
    answered = draw.uniform(0.2, 0.8)
    dead = draw.choice([0.0, 0.05])
    odds: dict[str, Any] = {"byAttempt": [1.0, draw.uniform(0.5, 1.2)]}
    if draw.random() < 0.5:
        odds["byHour"] = {str(hour): draw.uniform(0.5, 2.0) for hour in range(8, 20)}
    if draw.random() < 0.3:
        odds["byDay"] = {"6": draw.uniform(0.5, 1.5), "1": draw.uniform(0.5, 1.5)}
    behaviour: dict[str, Any] = {
        "outcomes": {
            "answered": answered,
            "noAnswer": (0.9 - answered),
            "busy": 0.04,
            "failed": 0.06,
        },
        "answeredOdds": odds,
        "talkTime": {"dist": "lognormal", "mean": draw.uniform(20, 180), "sd": 60, "max": 600},
    }
    for key in ("mean", "sd", "max"):
        behaviour["talkTime"][key] = f"{behaviour['talkTime'][key]:.0f}s"
    if draw.random() < 0.7:
        behaviour["people"] = {"deadNumbers": dead, "concentration": draw.uniform(1.5, 12)}
    count = draw.choice([1, 1, 2])
    shares = [1.0] if count == 1 else [0.4, 0.6]
    campaigns = []
    # Line time of one round of calls, so that campaigns last from an hour to some days.
    lines = max(2, round(people * draw.uniform(60, 120) / 3600 / draw.choice([1.5, 6, 20])))
    for number, share in enumerate(shares):
        schedule: dict[str, Any] = {
            "startDateTime": f"2026-01-05T{draw.choice([2, 4, 7]):02}:00:00Z",
            "maxAttempts": draw.randint(1, 5),
            "timeWindows": draw.choice([None, windows(draw)]),
        }
        if schedule["maxAttempts"] > 1:
            minutes = draw.choice([10, 30, 60, 240, 780, 1440])
            schedule["retryInterval"] = minutes * 60_000
        if draw.random() < 0.1:
            schedule["endDateTime"] = "2026-01-07T05:00:00Z"
        recipients: dict[str, Any] = {"count": round(people * share)}
        if draw.random() < 0.3:
            recipients["segments"] = {"vip": 0.3, "mass": 0.7}
            odds["bySegment"] = {"vip": draw.uniform(0.5, 2.0)}
        campaigns.append(
            {
                "name": f"C{number}",
                "agent": "A",
                "recipients": recipients,
                "schedule": {key: value for key, value in schedule.items() if value is not None},
            }
        )
    owner: dict[str, Any] = {"name": "Acme", "maxConcurrentCalls": lines, "agents": [{"name": "A"}]}
    if draw.random() < 0.2:
        owner["lines"] = {"Mon-Fri 12:00-13:00": max(1, lines // 3)}
    content: dict[str, Any] = {
        "name": "random",
        "seed": draw.randrange(10**6),
        "clock": {"start": "2026-01-05T01:00:00Z"},
        "costs": {
            "perDial": draw.choice([0, 0.2]),
            "perMinute": 1.5,
            "billingIncrement": draw.choice(["1s", "60s"]),
            "perLineDay": draw.choice([0, 35]),
        },
        "behaviours": {"default": behaviour},
        "organizations": [owner | {"campaigns": campaigns}],
    }
    if draw.random() < 0.1:
        content["engine"] = {"callsPerSecond": max(0.05, lines / 60)}
    return content


def windows(draw: random.Random) -> list[dict[str, Any]]:
    """Windows of working days, with a break at times."""
    times = [{"start": "09:00", "end": "18:00"}]
    if draw.random() < 0.5:
        times = [{"start": "09:00", "end": "12:00"}, {"start": "13:30", "end": "19:00"}]
    return [{"dayOfWeek": day, "time": times} for day in range(1, 7)]


def errors(content: dict[str, Any]) -> dict[str, float] | None:
    """Relative errors of one scenario's estimate, and of the finish in hours."""
    loaded = dialsim.loads(json.dumps(content))
    begin = time.perf_counter()
    found = first_estimate(loaded)
    seconds = time.perf_counter() - begin
    if found is None:
        return None
    runs = dialsim.replicate(loaded, RUNS, jobs=1).runs
    estimated, start = found.scopes[-1].values, found.start or 0
    result = {"seconds": seconds}
    for name in FIGURES:
        measured = runs[name].mean()
        if np.isfinite(measured) and measured:
            result[name] = estimated[name] / measured - 1
    finish = runs["finish_seconds"].median() * 1000
    if np.isfinite(finish) and np.isfinite(estimated["finish"]):
        result["finish"] = (estimated["finish"] - start - finish) / HOUR
        days = (runs["finish_seconds"].to_numpy() * 1000 + start + THAI_OFFSET) // DAY
        values, counts = np.unique(days, return_counts=True)
        if counts.max() > 0.75 * RUNS:
            mine = (estimated["finish"] + THAI_OFFSET) // DAY
            result["day"] = float(mine == values[counts.argmax()])
    elif np.isfinite(finish) != np.isfinite(estimated["finish"]):
        result["day"] = 0.0
    return result


def sample(count: int, seed: int, people: int) -> dict[str, list[float]]:
    """Errors of random scenarios with so many people, by figure."""
    draw, found = random.Random(f"{seed} {people}"), defaultdict(list)
    for _ in range(count):
        measured = errors(scenario(draw, people))
        for name, value in (measured or {}).items():
            found[name].append(value)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scenarios", type=int, default=200, help="default: 200")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    arguments = parser.parse_args()
    samples = {size: sample(arguments.scenarios // 3, arguments.seed, size) for size in SIZES}
    print("| error of the first estimate, half of the scenarios / 95 % within |", end="")
    print(" | ".join(f" {size:,} people" for size in SIZES), "|")
    print("|---" * (1 + len(SIZES)), "|", sep="")
    for name in (*FIGURES, "finish"):
        unit = "hours" if name == "finish" else "%"
        cells = []
        for found in samples.values():
            values = np.abs(found[name]) * (1 if unit == "hours" else 100)
            cells.append(f"{np.quantile(values, 0.5):.2g} / {np.quantile(values, 0.95):.2g} {unit}")
        print(f"| `{name}` | {' | '.join(cells)} |")
    days = [f"{np.mean(found['day']):.0%}" for found in samples.values()]
    print(f"| the day of the finish is right | {' | '.join(days)} |")
    times = [f"{1000 * median(found['seconds']):.0f} ms" for found in samples.values()]
    print(f"| time of an estimate | {' | '.join(times)} |")


if __name__ == "__main__":
    main()
