"""How quickly the sandbox answers, against a bare server, and how quickly it passes a day.

    python benchmarks/sandbox.py            # about four minutes
    python benchmarks/sandbox.py --json     # every single measurement too

Requests per second: `dialsim serve` against a bare Starlette application that answers the
same bytes from memory, on the same server program, asked by the same client over the same number
of connections, taking turns. The client is a process of its own; so is each server. A day:
processor time of a server that advances through it, against that of the batch run. A restart:
processor time of `dialsim serve --journal FILE` until it serves, against that of `dialsim run` of
the same scenario, with webhooks that were really sent and without. Exit status: 0 all targets are
met, 1 at least one is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from dialsim.testing.receiver import Receiver

BARE = Path(__file__).with_name("bare_server.py")
CONNECTIONS = 8
KEY = "sim_0123456789abcdef0123456789abcdef"
CALLS, MANY_PEOPLE, PATHS = 100_000, 1_000_000, 2_000
TURNS, SECONDS = 10, 0.5  # in each round; short ones, since a shared machine is not always as fast
DAY_PEOPLE, DAY_LINES = 30_000, 26
RESTART_PEOPLE, RESTART_LINES = 20_000, 4
SEED = 7
Sample = dict[str, float]
Rates = dict[str, list[float]]
SCENARIO = """
version: 1
seed: {seed}
clock: {{start: 2026-01-05T08:00:00+07:00}}
organizations:
  - name: Acme
    apiKey: {key}
    maxConcurrentCalls: {lines}
    {webhook}
    agents: [{{name: Caller}}]
    campaigns:
      - name: Big
        agent: Caller
        recipients: {{count: {people}}}
        schedule:
          startDateTime: 2026-01-05T08:00:00+07:00
          maxAttempts: 3
          retryInterval: 3600000
"""


def scenario_text(people: int, lines: int, webhook: str = "") -> str:
    """A scenario with one campaign."""
    return SCENARIO.format(people=people, lines=lines, key=KEY, seed=SEED, webhook=webhook)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was measured, and the least or the most that it may be."""

    what: str
    measured: float
    least: float | None = None
    most: float | None = None

    @property
    def met(self) -> bool:
        return (self.least is None or self.measured >= self.least) and (
            self.most is None or self.measured <= self.most
        )

    @property
    def verdict(self) -> str:
        bound = f"at least {self.least}" if self.most is None else f"at most {self.most}"
        return f"{bound:<14} {'PASS' if self.met else 'FAIL'}"


class Server:
    """A server in a process of its own."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=sys.stderr, text=True
        )
        assert self.process.stdout is not None
        line = next(line for line in self.process.stdout if "http://" in line)
        self.url = "http://" + line.split("http://")[1].split()[0]
        self.address = urlsplit(self.url).hostname, urlsplit(self.url).port

    def text(self, path: str) -> str:
        """The answer to a GET of the interface, as it stands."""
        connection = http.client.HTTPConnection(*self.address)
        connection.request("GET", path, headers={"X-API-Key": KEY})
        with connection.getresponse() as response:
            assert response.status == 200, (path, response.status)
            text = response.read().decode()
        connection.close()
        return text

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """One request to the control plane or the interface; the decoded answer."""
        connection = http.client.HTTPConnection(*self.address)
        headers = {"X-API-Key": KEY, "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        assert response.status < 300, (path, response.status, text)
        return json.loads(text)

    def processor_seconds(self) -> float:
        """What the process has used so far (Linux)."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(*command: str) -> Iterator[Server]:
    """A server for the length of a block."""
    started = Server(*command)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


@contextmanager
def sandbox(people: int, lines: int) -> Iterator[Server]:
    """`dialsim serve` with one campaign."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "scenario.yaml"
        scenario.write_text(scenario_text(people, lines))
        with server("-m", "dialsim", "serve", str(scenario), "--port", "0") as started:
            yield started


class Asking(asyncio.Protocol):
    """One connection that asks for one path after the other, each when the last is answered."""

    def __init__(self, host: str, paths: Sequence[str], done: asyncio.Future[None]) -> None:
        head = f" HTTP/1.1\r\nHost: {host}\r\nX-API-Key: {KEY}\r\n\r\n"
        self._requests = [f"GET {path}{head}".encode() for path in paths]
        self._done = done
        self._asked = 0
        self._received = b""
        self._expected: int | None = None
        self.answers = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._transport.write(self._requests[self._asked % len(self._requests)])
        self._asked += 1

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._expected is None:
            head, found, _ = self._received.partition(b"\r\n\r\n")
            if not found:
                return
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            self._expected = len(head) + 4 + length
        if len(self._received) >= self._expected:
            self._received, self._expected = b"", None
            self.answers += 1
            self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(error or ConnectionError("the server closed the connection"))


async def load(url: str, paths: Sequence[str], seconds: float) -> float:
    """Requests answered per second."""
    loop, parts = asyncio.get_running_loop(), urlsplit(url)
    assert parts.hostname is not None
    done: asyncio.Future[None] = loop.create_future()
    shares = [paths[place::CONNECTIONS] or paths for place in range(CONNECTIONS)]
    asking = []
    for share in shares:
        made = await loop.create_connection(
            lambda share=share: Asking(parts.netloc, share, done), parts.hostname, parts.port
        )
        asking.append(made[1])
    begin, before = time.perf_counter(), sum(one.answers for one in asking)
    await asyncio.wait([done], timeout=seconds)
    if done.done():
        done.result()
    answered, wall = sum(one.answers for one in asking) - before, time.perf_counter() - begin
    done.cancel()
    for one in asking:
        one._transport.abort()
    return answered / wall


@contextmanager
def bare(known: dict[str, str]) -> Iterator[Server]:
    """The bare server, with these bodies by path."""
    with tempfile.TemporaryDirectory() as folder:
        bodies = Path(folder) / "bodies.json"
        bodies.write_text(json.dumps(known), "utf-8")
        with server(str(BARE), str(bodies)) as started:
            yield started


def compare(
    asked: Server,
    paths: Sequence[str],
    rounds: int,
    before: object = None,
    after: object = None,
) -> Rates:
    """Requests per second of a sandbox and of a bare server with the same answers, in turns.

    `before` and `after` are how the sandbox's clock is set for its turns.
    """
    known = {path: asked.text(path) for path in paths}
    rates: Rates = {"sandbox": [], "bare": []}
    with bare(known) as other:
        for _ in range(rounds * TURNS):
            if before is not None:
                asked.ask("PUT", "/_dialsim/clock", before)
            rates["sandbox"].append(asyncio.run(load(asked.url, paths, SECONDS)))
            if after is not None:
                asked.ask("PUT", "/_dialsim/clock", after)
            rates["bare"].append(asyncio.run(load(other.url, paths, SECONDS)))
    return rates


def each_once(asked: Server, paths: Sequence[str]) -> Rates:
    """Requests per second when no page is asked for twice, in turns until all have been read."""
    some = paths[:100]
    rates: Rates = {"sandbox": [], "bare": []}
    with bare({path: asked.text(path) for path in some}) as other:
        unread = paths[100:]
        while len(unread) > len(paths) // 4:
            rate = asyncio.run(load(asked.url, unread, SECONDS / 2))
            rates["sandbox"].append(rate)
            rates["bare"].append(asyncio.run(load(other.url, some, SECONDS / 2)))
            unread = unread[int(rate * SECONDS / 2) + 2 * CONNECTIONS :]
    return rates


def calls(rounds: int) -> Rates:
    """GET /api/call/{id} among 100,000 calls while the clock runs at 3600 times real time."""
    import numpy as np

    from dialsim.engine.identity import call_ids

    with sandbox(CALLS, 50) as asked:
        asked.ask("POST", "/_dialsim/clock/advance", {"by": "75m"})  # the window is open by then
        chosen = np.random.default_rng(1).choice(CALLS, PATHS, replace=False)
        ids = call_ids(SEED, 0, 0, chosen, np.ones(PATHS, dtype=np.int64))
        paths = [f"/api/call/{identifier.decode()}?" for identifier in ids]
        running = {"mode": "running", "speed": 3600}
        return compare(asked, paths, rounds, before=running, after={"mode": "manual"})


def pages(rounds: int) -> dict[str, Rates]:
    """Pages of 1,000,000 recipients: each for the first time, and again; the first and the last."""
    from dialsim.engine.identity import campaign_id

    path = f"/api/campaign/{campaign_id(SEED, 0, 0)}/recipients?page="
    last = MANY_PEOPLE // 100
    with sandbox(MANY_PEOPLE, 400) as asked:
        asked.ask("POST", "/_dialsim/clock/advance", {"by": "3h"})
        numbers = {"first pages": range(1, 101), "last pages": range(last - 99, last + 1)}
        found = {
            name: compare(asked, [f"{path}{page}" for page in chosen], rounds)
            for name, chosen in numbers.items()
        }
    with sandbox(MANY_PEOPLE, 400) as asked:
        asked.ask("POST", "/_dialsim/clock/advance", {"by": "3h"})
        asked.text(f"{path}1")  # makes up a million names
        found["every page once"] = each_once(
            asked, [f"{path}{page}" for page in range(2, last + 1)]
        )
    return found


def day(rounds: int) -> dict[str, list[float]]:
    """Processor seconds of advancing by a day of some 20,000 calls, and of the same in batch."""
    taken: dict[str, list[float]] = {"sandbox": [], "batch": [], "calls": []}
    for _ in range(rounds):
        done = subprocess.run(
            [sys.executable, __file__, "--batch"], check=True, capture_output=True, text=True
        )
        batch = json.loads(done.stdout)
        taken["batch"].append(batch["cpu_s"])
        taken["calls"].append(batch["calls"])
        with sandbox(DAY_PEOPLE, DAY_LINES) as asked:
            # an hour before the window opens, and a minute of calls that imports what is needed
            asked.ask("POST", "/_dialsim/clock/advance", {"by": "61m"})
            used = asked.processor_seconds()
            asked.ask("POST", "/_dialsim/clock/advance", {"by": "23h"})
            taken["sandbox"].append(asked.processor_seconds() - used)
    return taken


def restart(rounds: int, receiver: Receiver | None) -> dict[str, list[float]]:
    """Processor seconds until a journal of 30 days is served, and of the batch run, in turns."""
    taken: dict[str, list[float]] = {"sandbox": [], "batch": []}
    with tempfile.TemporaryDirectory() as folder:
        scenario, journal = Path(folder) / "scenario.yaml", Path(folder) / "a.journal"
        webhook = "" if receiver is None else f"webhook: {{url: {receiver.url}}}"
        scenario.write_text(scenario_text(RESTART_PEOPLE, RESTART_LINES, webhook))
        serve = "-m", "dialsim", "serve", "--port", "0", "--journal", str(journal)
        with server(*serve, str(scenario)) as asked:
            for _ in range(30):
                asked.ask("POST", "/_dialsim/clock/advance", {"by": "1d"})
        for _ in range(rounds):
            used = children()
            command = [sys.executable, "-m", "dialsim", "run", str(scenario)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            taken["batch"].append(children() - used)
            with server(*serve) as asked:
                taken["sandbox"].append(asked.processor_seconds())
    return taken


def children() -> float:
    """Processor seconds of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def batch_day() -> Sample:
    """The batch run of the same day: processor seconds, and how many calls were dialled."""
    from dialsim.engine.simulation import Simulation
    from dialsim.scenario.loading import loads

    Simulation(loads(scenario_text(100, 5))).run()  # imports what is needed
    scenario = loads(scenario_text(DAY_PEOPLE, DAY_LINES))
    begin = time.process_time()
    simulation = Simulation(scenario)
    simulation.advance(days=1)
    dialled = len(simulation.trace.calls[0][0].dial_numbers)
    return {"cpu_s": time.process_time() - begin, "calls": dialled}


def findings(taken: dict[str, Any]) -> list[Finding]:
    """The ratios, of two turns after each other or of medians, each with its bound."""

    def share(rates: Rates) -> float:
        turns = zip(rates["sandbox"], rates["bare"], strict=True)
        return median(ours / theirs for ours, theirs in turns)

    first, last = taken["first pages"], taken["last pages"]
    return [
        Finding("GET /api/call/{id}, clock at 3600x / bare", share(taken["calls"]), least=0.5),
        Finding("first recipients pages / bare", share(first), least=0.5),
        Finding("last recipients pages / bare", share(last), least=0.5),
        Finding("every recipients page once / bare", share(taken["every page once"]), least=0.5),
        Finding(
            "first pages / last pages, each / bare",
            share(first) / share(last),
            most=1.25,
        ),
        Finding(
            f"a day of {median(taken['day']['calls']):,.0f} calls / batch, processor time",
            median(taken["day"]["sandbox"]) / median(taken["day"]["batch"]),
            most=1.5,
        ),
        *(
            Finding(
                f"a restart after 30 days, {name} / batch, processor time",
                median(taken[name]["sandbox"]) / median(taken[name]["batch"]),
                most=1.3,
            )
            for name in ("nothing sent", "webhooks sent")
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement; default: 3")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--batch", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.batch:
        print(json.dumps(batch_day()))
        return 0
    taken: dict[str, Any] = {"day": day(arguments.rounds), "calls": calls(arguments.rounds)}
    taken.update(pages(arguments.rounds))
    taken["nothing sent"] = restart(arguments.rounds, None)
    with Receiver() as receiver:
        taken["webhooks sent"] = restart(arguments.rounds, receiver)
    found = findings(taken)
    if arguments.json:
        rows = [{**asdict(one), "met": one.met} for one in found]
        print(json.dumps({"findings": rows, "measurements": taken}, indent=2))
    else:
        for one in found:
            print(f"{one.what:<64} {one.measured:7.2f}   {one.verdict}")
    return 0 if all(one.met for one in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
