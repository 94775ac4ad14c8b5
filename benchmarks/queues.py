"""The same M/M/c queue in dialsim, Ciw and salabim: Poisson arrivals, exponential service, c lines.

    pip install ciw salabim
    python benchmarks/queues.py                # customers, mean wait and time, and Erlang's mean

In dialsim the customers are people whose retry falls due when they arrive: their history says when
the call before ended. Loading the scenario is not on the clock. All three must come near the mean
wait of the formula, or they were not asked the same.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec

from job import clocked

SERVERS, SERVICE_S, LOAD = 30, 60.0, 0.9
ARRIVALS_S = SERVICE_S / SERVERS / LOAD  # from one to the next, on average
CUSTOMERS = 20_000

Sample = dict[str, float]


def erlang_wait() -> float:
    """The mean wait in seconds, by the Erlang C formula."""
    offered = SERVERS * LOAD
    blocked = 1.0  # Erlang B, by its recursion
    for servers in range(1, SERVERS + 1):
        blocked = offered * blocked / (servers + offered * blocked)
    waits = blocked / (1.0 - LOAD * (1.0 - blocked))
    return waits * SERVICE_S / (SERVERS * (1.0 - LOAD))


def in_dialsim(customers: int, seed: int, engine: str) -> Sample:
    """People with a history whose retries arrive; `engine` is that of dialsim."""
    from dialsim.engine import run_world
    from dialsim.engine.trace import DIALLED, RETRY
    from dialsim.engine.world import World
    from dialsim.scenario.loading import loads

    chance, arrival = random.Random(seed), 0.0
    midnight = datetime(2026, 1, 4, 17, tzinfo=UTC)  # in Thailand
    interval = timedelta(days=60)
    people = []
    for number in range(customers):
        arrival += chance.expovariate(1.0 / ARRIVALS_S)
        ended = midnight + timedelta(seconds=arrival) - interval
        last = {"callAttempt": 1, "latestCallStatus": "BUSY", "lastEndedAt": ended.isoformat()}
        people.append({"tel": f"08{number:08d}", "history": last})
    whole = [{"start": "00:00", "end": "23:59"}]
    every_day = [{"dayOfWeek": day, "time": whole} for day in range(1, 8)]
    request = {
        "startDateTime": midnight.isoformat(),
        "timeWindows": every_day,
        "maxAttempts": 2,
        "retryInterval": interval // timedelta(milliseconds=1),
    }
    campaign = {"name": "A", "agent": "R", "recipients": people, "schedule": request}
    owner = {"name": "O", "maxConcurrentCalls": SERVERS, "agents": [{"name": "R"}]}
    talk = {"dist": "exponential", "mean": f"{SERVICE_S:g}s"}
    spans = {"setupTime": "1ms", "ringTime": {"answered": 0, "noAnswer": 0}, "talkTime": talk}
    written = {
        "version": 1,
        "clock": {"start": midnight.isoformat()},
        "engine": {"queueTimeout": "2d"},
        "organizations": [owner | {"campaigns": [campaign]}],
        "behaviours": {"default": {"outcomes": {"answered": 1.0}} | spans},
    }
    scenario = loads(json.dumps(written))
    run_world(World(scenario), engine)  # warm
    trace, seconds = clocked(lambda: run_world(World(scenario, seed), engine))
    rows = trace.calls[0][0].rows()
    arrived, dialled = (rows.at[rows.kind == kind].sum() for kind in (RETRY, DIALLED))
    return {"cpu_s": seconds, "wait_s": (dialled - arrived) / 1000 / customers}


def in_ciw(customers: int, seed: int) -> Sample:
    """Ciw: https://ciw.readthedocs.io."""
    import ciw

    def run(count: int) -> list[float]:
        ciw.seed(seed)
        network = ciw.create_network(
            arrival_distributions=[ciw.dists.Exponential(1.0 / ARRIVALS_S)],
            service_distributions=[ciw.dists.Exponential(1.0 / SERVICE_S)],
            number_of_servers=[SERVERS],
        )
        simulation = ciw.Simulation(network)
        simulation.simulate_until_max_customers(count, method="Finish")
        return [record.waiting_time for record in simulation.get_all_records()]

    run(100)
    waits, seconds = clocked(lambda: run(customers))
    return {"cpu_s": seconds, "wait_s": math.fsum(waits) / len(waits)}


def in_salabim(customers: int, seed: int) -> Sample:
    """salabim: https://www.salabim.org."""
    import salabim

    salabim.yieldless(False)

    def run(count: int) -> list[float]:
        waits: list[float] = []
        environment = salabim.Environment(random_seed=seed)
        lines = salabim.Resource("lines", capacity=SERVERS)
        between, service = salabim.Exponential(ARRIVALS_S), salabim.Exponential(SERVICE_S)

        class Customer(salabim.Component):  # type: ignore[misc]
            def process(self) -> Iterator[None]:
                arrived = environment.now()
                yield self.request(lines)
                waits.append(environment.now() - arrived)
                yield self.hold(service.sample())

        class Source(salabim.Component):  # type: ignore[misc]
            def process(self) -> Iterator[None]:
                for _ in range(count):
                    yield self.hold(between.sample())
                    Customer()

        Source()
        environment.run()
        return waits

    run(100)
    waits, seconds = clocked(lambda: run(customers))
    return {"cpu_s": seconds, "wait_s": math.fsum(waits) / len(waits)}


QUEUES: dict[str, Callable[[int, int], Sample]] = {
    "dialsim, compiled": lambda customers, seed: in_dialsim(customers, seed, "compiled"),
    "dialsim, SimPy": lambda customers, seed: in_dialsim(customers, seed, "simpy"),
    "Ciw": in_ciw,
    "salabim": in_salabim,
}


def available() -> list[str]:
    """The programs that are installed."""
    return [name for name in QUEUES if name.startswith("dialsim") or find_spec(name.lower())]


def main() -> int:
    """Print a table; 1 if a mean wait is far from the formula's."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--customers", type=int, default=CUSTOMERS, help="default: 20000")
    parser.add_argument("--json", metavar="NAME", help="one program alone, as JSON")
    arguments = parser.parse_args()
    if arguments.json:
        print(json.dumps(QUEUES[arguments.json](arguments.customers, 1)))
        return 0
    taken = {name: QUEUES[name](arguments.customers, 1) for name in available()}
    wanted, near = erlang_wait(), True
    first = next(iter(taken.values()))["cpu_s"]
    print(
        f"M/M/{SERVERS}, load {LOAD:g}, {arguments.customers:,} customers; Erlang C: {wanted:.2f} s"
    )
    for name, sample in taken.items():
        per_customer = 1e6 * sample["cpu_s"] / arguments.customers
        near &= abs(sample["wait_s"] / wanted - 1.0) < 0.3  # such a run's mean is that uncertain
        print(
            f"{name:20}mean wait {sample['wait_s']:6.2f} s {per_customer:8.2f} µs a customer "
            f"{sample['cpu_s'] / first:8.1f} ×"
        )
    if missing := QUEUES.keys() - taken.keys():
        print(f"not installed: {', '.join(sorted(missing))}", file=sys.stderr)
    return 0 if near else 1


if __name__ == "__main__":
    raise SystemExit(main())
