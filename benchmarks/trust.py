"""Forecasts of campaigns whose truth is not known to the forecaster, from half of their records.

    python benchmarks/trust.py                 # 40 truths of each row
    python benchmarks/trust.py --row phones    # one row; some 10 minutes
    python benchmarks/trust.py --row usual --truths 5 --json

| row | the truth |
|---|---|
| usual | dialsim's recipients and engine, with the usual settings but the order of calls |
| engine | the same with queue, releases and pace of its own, which `dialsim replay` estimates |
| phones | dialsim's recipients and engine; setup takes 0 to 8 s, phones ring for 15 to 45 s |
| others | dialler, recipients and phones that are not dialsim's (`tests/logs`) |
| rhythms | the same, and recipients answer at the hours of their lives |
| outage | as others; on the first day 60 % of the calls fail, and it is known that it is over |

In `usual` and `engine` a sandbox runs half of the campaign; nothing is known of it but the webhooks
that were received, what the interface returns over HTTP (`dialsim pull`), and the campaign as it
was started. In the other rows half of the webhooks are known, and a planner's scenario of lines,
list and schedule. `widened` are the same forecasts with intervals as wide as a backtest on the
known half finds (`dialsim forecast --backtest`). Exit status: 0 if the truth lies in the 90 %
interval of the calibrated, and there the widened, forecast in at least 34 of 40, for finish and
reach; 1 if not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import dialsim
from dialsim.experiments.variants import read_variants
from dialsim.interface.instants import parse_instant
from dialsim.logs.backtest import PastForecast, backtest, forecast_held_out
from dialsim.logs.engine_settings import estimate
from dialsim.logs.log import Log, read_log
from dialsim.logs.pull import ServiceClient, pull
from dialsim.logs.pulled import DRAWS
from dialsim.logs.recorded_calls import RecordedCalls
from dialsim.testing import Sketch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from logs.other_service import MONDAY, Service

KEY = "bench_0123456789abcdef0123456789abcdef"
ENOUGH = 0.85
"""Share of truths that must lie in the interval: 34 of 40."""
HOUR_MS = 3_600_000
OTHER = 10_000
"""Distance of the seed that cuts a truth from the seed that makes it."""
ROWS = ("usual", "engine", "phones", "others", "rhythms", "outage")
CUTS = 4
"""Earlier forecasts of a backtest; half a log is short."""


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
    # Half of another run of the campaign: half of this one would tell when it will be done
    other = dialsim.run(dialsim.loads(json.dumps(truth)), seed=OTHER + number).summary
    assert other.finish is not None
    half = (other.finish.timestamp() * 1000 - parse_instant(schedule["startDateTime"])) / 2
    with dialsim.Sandbox(json.dumps(truth), seed=number) as sandbox:
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
        scenario = dialsim.load(folder / kind / "scenario.yaml", overrides=settings)
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


def phones(number: int) -> Sketch:
    """A campaign whose phones ring as they like."""
    chance = np.random.default_rng([2027, number])
    setup, answered = float(chance.uniform(0.1, 4.0)), float(chance.uniform(0.25, 0.5))
    longest = setup + float(chance.uniform(0.1, 4.0))
    dead = float(chance.uniform(0.01, 0.1))
    rest = chance.dirichlet([6.0, 1.0, 0.5]) * (1.0 - answered - dead)
    return (
        Sketch(4, setup_time=None)
        .having(agents=[{"name": "Reminder"}])
        .behaviour(
            "default",
            outcomes={
                "answered": answered, "noAnswer": rest[0], "busy": rest[1],
                "failed": rest[2] + dead,
            },
            people={"concentration": float(chance.uniform(1.5, 8.0)), "deadNumbers": dead},
            setup_time={"dist": "uniform", "low": f"{setup:.3f}s", "high": f"{longest:.3f}s"},
            ring_time={"noAnswer": f"{chance.uniform(15.0, 45.0):.3f}s"},
            talk_time={"dist": "lognormal", "mean": "70s", "sd": f"{chance.uniform(40, 150):.0f}s"},
        )
        .campaign(
            "January", recipients={"count": int(chance.integers(900, 1500))}, agent="Reminder",
            windows="daily 09:00-17:00", max_attempts=3, retry_interval="4h",
        )
    )  # fmt: skip


def service(number: int, row: str) -> Service:
    """A service that is not dialsim's."""
    if row == "outage":  # one line, so that the campaign goes on for days after it
        return Service.drawn(number, outage=0, people=1200, attempts=3, lines=1)
    return Service.drawn(number, rhythm=1.0 if row == "rhythms" else 0.0)


def half_of_a_log(number: int, folder: Path, runs: int, row: str) -> Iterator[Row]:
    """The forecasts of one truth from the first half of its webhooks, as they are and widened."""
    plan = None
    if row == "phones":
        dialsim.run(phones(number).scenario(), seed=number).write(folder / "run")
        file = folder / "run" / "webhooks.jsonl"
    else:
        made = service(number, row)
        file = folder / "webhooks.jsonl"
        made.write(file, number)
        plan = dialsim.loads(json.dumps(made.scenario()))
    log = read_log(file)
    share = 0.5 if row != "outage" else after_outage(log, made)
    found = forecast_held_out(log, share, runs=runs, jobs=1, engine="compiled")
    if not found.campaigns:
        print(number, *found.missing, file=sys.stderr)
        return
    [one] = found.campaigns
    yield row_of(number, "calibrated", one)
    if plan is None:
        return
    ended = log.calls["ended_at"]
    known = replace(log, calls=log.calls[ended <= pd.Timestamp(found.cut, unit="ms", tz="UTC")])
    past = backtest(known, None, plan, cuts=CUTS, jobs=1, engine="compiled")
    yield row_of(number, "widened", one.widened(past.widening))


def after_outage(log: Log, made: Service) -> float:
    """The share of calls after the third hour of the second day; half of them, if that is less.

    Nobody can forecast how long an outage lasts that is still there.
    """
    third = pd.Timestamp(MONDAY + (24 + made.opens + 3) * HOUR_MS, unit="ms", tz="UTC")
    return min(0.5, float((log.calls["ended_at"] > third).mean()))


def row_of(number: int, kind: str, one: PastForecast) -> Row:
    """The row of a forecast that is held against the rest of its log."""
    finish, reach = one.figures
    return Row(
        number, kind,
        finish.held, (finish.span.half - finish.truth) / HOUR_MS,
        reach.held, reach.span.half - reach.truth,
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
    parser.add_argument("--row", choices=ROWS, action="append", help="default: all rows")
    parser.add_argument("--truths", type=int, default=40, help="default: 40")
    parser.add_argument("--first", type=int, default=0, help="the first of them; default: 0")
    parser.add_argument("--runs", type=int, default=100, help="of each forecast; default: 100")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    numbers = range(arguments.first, arguments.first + arguments.truths)
    document, met = {}, True
    for name in arguments.row or ROWS:
        rows: list[Row] = []
        for number in numbers:
            with TemporaryDirectory() as folder:
                if name in ("usual", "engine"):
                    made = forecasts(number, Path(folder), arguments.runs, name == "usual")
                else:
                    made = half_of_a_log(number, Path(folder), arguments.runs, name)
                found = [*made]
            rows += found
            print(name, *found, file=sys.stderr, flush=True)
        document[name] = [asdict(row) for row in rows]
        if not arguments.json:
            met &= print_table(name, rows)
    if arguments.json:
        print(json.dumps(document, indent=2))
    else:
        print("PASS" if met else "FAIL")
    return 0 if met else 1


def print_table(name: str, rows: list[Row]) -> bool:
    """Print a row of the page for each forecast and figure; True if all of them pass."""
    print(f"\n{name}: | forecast | figure | truth in the interval | mean error | mean size |")
    print("|---|---|---|---|---|")
    met = True
    for kind in dict.fromkeys(row.behaviour for row in rows):
        chosen = [row for row in rows if row.behaviour == kind]
        for figure, unit, held, errors in (
            ("finish", "h", [r.finish_held for r in chosen], [r.finish_error_h for r in chosen]),
            ("reach", "people", [r.reach_held for r in chosen], [r.reach_error for r in chosen]),
        ):
            mean, error = bias(errors)
            print(
                f"| {kind} | {figure} | {sum(held)} of {len(held)} | {mean:+.2f} ± {error:.2f} "
                f"{unit} | {float(np.mean(np.abs(errors))):.2f} {unit} |"
            )
            met &= kind == "default" or sum(held) >= ENOUGH * len(held)
    return met


if __name__ == "__main__":
    raise SystemExit(main())
