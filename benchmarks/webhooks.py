"""How fast webhook bodies are written, against orjson with the dictionaries ready made.

Both sides write the same lines to a file: dialsim from a finished trace, everything included
(analyses, deliveries, state at send time, bodies), and orjson by dumping dictionaries that are
ready in memory. A sample of them is dumped over and over: a million would not fit.

    python benchmarks/webhooks.py --bodies 1000000
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from time import process_time

import orjson

from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import Trace
from dialsim.results.result import Result
from dialsim.scenario.loading import loads

SAMPLE = 10_000
MOST = 6.0
BODIES_PER_PERSON = 1.8
_SCENARIO = """
name: Webhooks
organizations:
  - name: Acme
    maxConcurrentCalls: 300
    retention: {{personalData: 90d}}
    webhook:
      url: https://example.test/hook
      receiver: {{latency: {{dist: lognormal, mean: 300ms, sd: 200ms}}, errorRate: 0.01}}
    agents:
      - name: Reminder
        paramsSchema: {{amount: {{type: number, required: true}}}}
        analysis:
          funnel: [{{step: Greeted, share: 1}}, {{step: Promised, share: 0.35}}]
          fields:
            promise: {{type: boolean, required: true, values: {{"true": 0.35, "false": 0.65}}}}
            mood: {{type: string, values: {{calm: 0.7, upset: 0.3}}}}
    campaigns:
      - name: January
        agent: Reminder
        recipients: {{count: {people}, agentParams: {{amount: 100}}}}
        schedule: {{startDateTime: 2026-01-05T02:00:00Z, maxAttempts: 3, retryInterval: 3600000}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bodies", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
    arguments = parser.parse_args()
    people = round(arguments.bodies / BODIES_PER_PERSON)
    trace = Simulation(loads(_SCENARIO.format(people=people), name="webhooks.yaml")).run()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "webhooks.jsonl"
        ours = best(arguments.rounds, lambda: write(trace, place))
        with place.open("rb") as file:
            ready = [orjson.loads(line) for line in islice(file, SAMPLE)]
            bodies = len(ready) + sum(1 for _ in file)
        theirs = best(arguments.rounds, lambda: dump(ready, bodies, place))
    print(f"bodies             {bodies:>12,}")
    print(f"dialsim, seconds   {ours:>12.2f}   {ours / bodies * 1e6:.2f} µs each")
    print(f"orjson, seconds    {theirs:>12.2f}   {theirs / bodies * 1e6:.2f} µs each")
    print(f"ratio              {ours / theirs:>12.2f}   promised: at most {MOST}")


def best(rounds: int, work: Callable[[], None]) -> float:
    """The least seconds of processor time that the work took."""
    seconds = []
    for _ in range(rounds):
        start = process_time()
        work()
        seconds.append(process_time() - start)
    return min(seconds)


def write(trace: Trace, place: Path) -> None:
    """Write the stream of a trace."""
    with place.open("wb") as file:
        Result(trace).write_webhooks(file)


def dump(ready: list[object], bodies: int, place: Path) -> None:
    """Dump and write as many bodies from ready dictionaries."""
    with place.open("wb") as file:
        for first in range(0, bodies, len(ready)):
            file.writelines(
                orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
                for line in ready[: bodies - first]
            )


if __name__ == "__main__":
    main()
