"""Forecasts of campaigns whose truth is not known to the forecaster, from half of their records.

    python benchmarks/trust.py              # 30 truths; some minutes
    python benchmarks/trust.py --truths 5 --json

Each truth is a behaviour, settings of the engine, windows and lines drawn at random. A sandbox runs
its campaign up to half of the time that it takes. From then on nothing is known of it but the
webhooks that were received (`--log`), what the interface tells over HTTP (`dialsim pull`), and the
campaign as it was started. Two forecasts are made of it, one with the behaviour calibrated from
that half and the engine's settings that `dialsim replay` finds in it, one with the built-in
defaults, and compared with what then happens in the sandbox. Exit status: 0 the truth lies in the
90 % interval of the calibrated forecast in at least 24 of 30, for finish and reach, and neither has
a bias beyond two standard errors; 1 not so.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import dialsim
from dialsim.evidence.engine_settings import estimate
from dialsim.evidence.log import Log, read_log
from dialsim.evidence.pull import pull
from dialsim.evidence.pulled import DRAWS
from dialsim.evidence.record import RecordedCalls
from dialsim.evidence.service import ServiceClient
from dialsim.experiments.variants import read_variants
from dialsim.interface.instants import parse_instant

KEY = "bench_0123456789abcdef0123456789abcdef"
ENOUGH = 0.8
"""The share of truths that must lie in the interval: 24 of 30."""
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Row:
    """One forecast: the mean of its runs minus the truth, and whether the interval holds that."""

    truth: int
    behaviour: str
    finish_held: bool
    finish_error_h: float
    reach_held: bool
    reach_error: float


def random_truth(number: int, usual: bool = False) -> dict[str, Any]:
    """A scenario with a behaviour, windows, lines and an engine of its own.

    Of a `usual` engine only the order is its own.
    """
    chance = np.random.default_rng([2026, number])
    people = int(chance.integers(1200, 2400))
    # How people differ is drawn from what calibration assumes of it before it has seen a log: half
    # a log with hardly a second attempt can't tell, so the forecast rests on what is assumed
    never = min(0.3, float(np.exp(chance.normal(-4.0, 2.0))))
    dead = float(chance.uniform(0.01, 0.08))
    concentration = float(np.clip(np.exp(chance.normal(np.log(2.8), 0.8)), 0.8, 12.0))
    answered = float(chance.uniform(0.2, 0.6))
    rest = chance.dirichlet([6.0, 3.0, 0.5]) * (1 - answered - dead)
    opens = int(chance.integers(8, 12))
    closes = opens + int(chance.integers(5, 9))
    attempts = int(chance.integers(2, 5))
    behaviour = {
        "outcomes": {
            "answered": answered, "noAnswer": rest[0], "busy": rest[1], "failed": rest[2] + dead,
        },
        "people": {
            "concentration": concentration,
            "deadNumbers": dead,
            "reachable": (1 - dead) * (1 - never),
        },
        "answeredOdds": {
            "byHour": {hour: float(np.exp(chance.normal(0, 0.25))) for hour in range(opens, closes)}
        },
        "talkTime": {
            "dist": "lognormal", "mean": f"{int(chance.integers(40, 120))}s",
            "sd": f"{int(chance.integers(30, 90))}s", "min": "3s",
        },
    }  # fmt: skip
    # The lines that need about three days for everybody's attempts, at a minute each
    lines = max(2, round(people * attempts * 0.6 / (60 * (closes - opens) * 3)))
    windows = [
        {"dayOfWeek": day, "time": [{"start": f"{opens:02}:00", "end": f"{closes:02}:00"}]}
        for day in range(1, 8)
    ]
    schedule = {
        "startDateTime": "2026-01-05T01:00:00Z", "maxAttempts": attempts,
        "retryInterval": int(chance.integers(1, 9)) * HOUR_MS // 2, "timeWindows": windows,
        "callerIds": ["021000001", "021000002"],
    }  # fmt: skip
    campaign = {
        "name": "January", "agent": "Reminder", "recipients": {"count": people},
        "schedule": schedule,
    }  # fmt: skip
    organization = {
        "name": "Acme", "apiKey": KEY, "maxConcurrentCalls": lines,
        "callerIds": schedule["callerIds"], "agents": [{"name": "Reminder"}],
        "campaigns": [campaign],
    }  # fmt: skip
    engine: dict[str, Any] = {
        "order": ["due", "freshFirst", "retriesFirst"][int(chance.integers(3))],
    }
    queue = {
        "queueTimeout": f"{int(chance.integers(2, 21))}m",
        "releaseInterval": f"{int(chance.integers(1, 61))}s",
        "queueLimit": int(chance.integers(lines, 4 * lines + 1)),
        "callsPerSecond": float(chance.uniform(0.5, 3.0)),
    }
    return {
        "name": f"Truth {number}", "clock": {"start": "2026-01-05T01:00:00Z"},
        "engine": engine if usual else engine | queue,
        "behaviours": {"default": behaviour}, "organizations": [organization],
    }  # fmt: skip


def forecasts(number: int, folder: Path, runs: int, usual: bool = False) -> Iterator[Row]:
    """The two forecasts of one truth."""
    truth = random_truth(number, usual)
    organization = truth["organizations"][0]
    schedule = organization["campaigns"][0]["schedule"]
    (folder / "request.json").write_text(json.dumps(schedule))
    with dialsim.Sandbox(json.dumps(truth), seed=number) as sandbox:
        whole = dialsim.run(dialsim.loads(json.dumps(truth)), seed=number).summary
        assert whole.finish is not None
        start = parse_instant(schedule["startDateTime"])
        half = (whole.finish.timestamp() * 1000 - start) / 2
        sandbox.clock.advance(milliseconds=int(half))
        now = parse_instant(sandbox.clock.now.isoformat())
        (folder / "log.jsonl").write_text(
            "".join(json.dumps(hook.body) + "\n" for hook in sandbox.webhooks)
        )
        log = read_log(folder / "log.jsonl")
        for calibrated in (True, False):
            out = folder / ("calibrated" if calibrated else "default")
            with ServiceClient(sandbox.url, KEY, rate=1e6) as client:
                pull(
                    client, [sandbox.campaigns[0].id], out, now=now, log=log,
                    calibrated=calibrated, lines=organization["maxConcurrentCalls"],
                )  # fmt: skip
        sandbox.clock.advance(days=60)
        after = sandbox.result().summary
    engine = [] if usual else learned_engine(log, truth, number)
    for kind in ("calibrated", "default"):
        settings = engine if kind == "calibrated" else []
        scenario = dialsim.load(folder / kind / "scenario.yaml", settings)
        file = folder / kind / DRAWS
        draws = read_variants(file) if file.is_file() else []
        made = dialsim.forecast(scenario, runs, draws=draws, seed=number, jobs=1)
        found = made.figures
        assert found is not None
        of_runs = [run.scopes[0].values for run in made.runs.figures]
        assert after.finish is not None
        finish = after.finish.timestamp() * 1000
        yield Row(
            number, kind,
            bool(found.finish.low <= finish <= found.finish.high),
            (float(np.mean([values["finish"] for values in of_runs])) - finish) / HOUR_MS,
            bool(found.reach.low <= after.people_reached <= found.reach.high),
            float(np.mean([values["people_reached"] for values in of_runs])) - after.people_reached,
        )  # fmt: skip


def learned_engine(log: Log, truth: dict[str, Any], number: int) -> list[str]:
    """What `dialsim replay` finds of the engine in a log, as overrides; nothing if nothing fits.

    The order of calls is left out: `pull` has seen how they are ordered from now on.
    """
    asked = {name: truth[name] for name in ("name", "clock", "organizations")} | {"seed": number}
    found = estimate(RecordedCalls(log, dialsim.loads(json.dumps(asked))))
    return [
        f"engine.{one.name}={one.value}"
        for one in found.estimates
        if found.fits and one.value is not None and one.name not in {"order", "sharing"}
    ]


def bias(errors: list[float]) -> tuple[float, float]:
    """The mean error and its standard error."""
    return float(np.mean(errors)), float(np.std(errors, ddof=1) / sqrt(len(errors)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--truths", type=int, default=30, help="default: 30")
    parser.add_argument("--first", type=int, default=0, help="the first of them; default: 0")
    parser.add_argument("--runs", type=int, default=100, help="of each forecast; default: 100")
    parser.add_argument(
        "--usual-engine", action="store_true", help="the engine's settings but order are the usual"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    rows = []
    for number in range(arguments.first, arguments.first + arguments.truths):
        with TemporaryDirectory() as folder:
            found = [*forecasts(number, Path(folder), arguments.runs, arguments.usual_engine)]
        rows += found
        print(number, *found, file=sys.stderr)
    table, met = [], True
    for kind in ("calibrated", "default"):
        chosen = [row for row in rows if row.behaviour == kind]
        for figure, held, errors in (
            ("finish", [r.finish_held for r in chosen], [r.finish_error_h for r in chosen]),
            ("reach", [r.reach_held for r in chosen], [r.reach_error for r in chosen]),
        ):
            mean, error = bias(errors)
            spread = float(np.mean(np.abs(errors)))
            table.append((kind, figure, sum(held), len(held), mean, error, spread))
            if kind == "calibrated":
                met &= sum(held) >= ENOUGH * len(held) and abs(mean) <= 2 * error
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "met": met}, indent=2))
        return 0 if met else 1
    print("| behaviour | figure | truth in the interval | mean error | mean size of the error |")
    print("|---|---|---|---|---|")
    for kind, figure, held, count, mean, error, spread in table:
        unit = "h" if figure == "finish" else "people"
        print(
            f"| {kind} | {figure} | {held} of {count} | {mean:+.2f} ± {error:.2f} {unit} "
            f"| {spread:.2f} {unit} |"
        )
    print("PASS" if met else "FAIL")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
