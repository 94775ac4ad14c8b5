"""What the sandbox takes: for a request, for a day that passes, and for a restart.

    python benchmarks/sandbox.py            # about five minutes
    python benchmarks/sandbox.py --json     # every single measurement too

Requests: processor time of each `GET /api/call/{id}` and each page of recipients of a campaign of
1,000,000 people, asked for over HTTP in one process, so that the client's share is in it, and the
peak memory of that process. A day: processor time of a server that advances through it, against
that of the batch run. A restart: processor time of `dialsim serve --journal FILE` until it serves,
against that of `dialsim run` of the same scenario, with webhooks that were really sent and without.
Webhooks: how long a week takes whose results go to a receiver in a process of its own that answers
at once, against the same without a URL, in turns; and how fast a clock really is that is to run
3600 times as fast as real time while 10 clients ask as fast as they are answered. `--webhooks`
measures only that. Ratios (`--ratios`): processor time of pages of the tables against that of a
bare server of the same bytes, of the 1,000th addition against that of the 10th, and of snapshots;
and how long a receiver takes that answers after 50 ms. Exit status: 0 all targets are met, 1 at
least one is missed.
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
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import dialsim
from dialsim.testing.receiver import Receiver

KEY = "sim_0123456789abcdef0123456789abcdef"
MANY_PEOPLE, MANY_LINES, ASKED = 1_000_000, 400, 100
DAY_PEOPLE, DAY_LINES = 30_000, 26
RESTART_PEOPLE, RESTART_LINES = 20_000, 4
HOOK_PEOPLE, HOOK_LINES = 5_890, 10
POLLING, SPEED, POLLED_SECONDS = 10, 3_600, 10
SEED = 7
Sample = dict[str, float]
Times = dict[str, list[float]]
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
def sandbox(people: int, lines: int, webhook: str = "") -> Iterator[Server]:
    """`dialsim serve` with one campaign."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "scenario.yaml"
        scenario.write_text(scenario_text(people, lines, webhook))
        with server("-m", "dialsim", "serve", str(scenario), "--port", "0") as started:
            yield started


class Client:
    """Asks a sandbox of this process, and says what each request takes, its connection included."""

    def __init__(self, sandbox: dialsim.Sandbox) -> None:
        self._address = urlsplit(sandbox.url).netloc
        self._headers = {"X-API-Key": sandbox.api_key}

    def ms(self, path: str) -> float:
        """Processor time of one GET, in ms: that of the whole process."""
        begin = time.process_time()
        # a connection that is kept is closed by the sandbox while a clock passes weeks
        connection = http.client.HTTPConnection(self._address)
        connection.request("GET", path, headers=self._headers)
        with connection.getresponse() as response:
            response.read()
        connection.close()
        taken = time.process_time() - begin
        assert response.status == 200, (path, response.status)
        return taken * 1_000


def requests() -> dict[str, Any]:
    """Single requests anywhere in a campaign of 1,000,000 people, from the first one on."""
    import numpy as np

    from dialsim.engine.chance import call_ids

    chance = np.random.default_rng(1)
    with dialsim.Sandbox(scenario_text(100, MANY_LINES)) as sandbox:
        sandbox.clock.advance(to="2026-01-05T03:00:00Z")  # calls are made, all code is warm
        client = Client(sandbox)
        some = sandbox.campaign("Big").id
        client.ms(f"/api/campaign/{some}/recipients")
        client.ms(f"/api/call/{call_ids(SEED, 0, 0, np.array([3]), np.array([1]))[0].decode()}")
        campaign = {"name": "Many", "agent": "Caller", "recipients": {"count": MANY_PEOPLE}}
        pages = f"/api/campaign/{sandbox.add_campaign(campaign)}/recipients?page="

        def call() -> str:
            who = chance.integers(MANY_PEOPLE, size=1)
            return f"/api/call/{call_ids(SEED, 0, 1, who, np.ones(1, np.int64))[0].decode()}"

        def page() -> str:
            return f"{pages}{chance.integers(MANY_PEOPLE // 100) + 1}"

        def several(name: str) -> Times:
            again = call(), page()
            return {
                f"calls, {name}": [client.ms(call()) for _ in range(ASKED)],
                f"the same call, {name}": [client.ms(again[0]) for _ in range(ASKED)],
                f"pages, {name}": [client.ms(page()) for _ in range(ASKED)],
                f"the same page, {name}": [client.ms(again[1]) for _ in range(ASKED)],
            }

        taken = {"the first page, just added": [client.ms(f"{pages}1")]}
        schedule = {"startDateTime": "2026-01-05T03:00:00Z", "maxAttempts": 3}
        sandbox.schedule("Many", {**schedule, "retryInterval": 3_600_000})
        taken["the first call, just scheduled"] = [client.ms(call())]
        taken |= several("just scheduled")
        sandbox.clock.advance(hours=3)
        taken["the first call, three hours later"] = [client.ms(call())]
        taken |= several("three hours later")
        sandbox.clock.advance(until="idle")
        taken |= several("when all is over")
    return {"ms": taken, "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024}


def measured(what: str) -> dict[str, Any]:
    """What this file measures in a process of its own."""
    command = [sys.executable, __file__, what]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def day(rounds: int) -> dict[str, list[float]]:
    """Processor seconds of advancing by a day of some 20,000 calls, and of the same in batch."""
    taken: dict[str, list[float]] = {"sandbox": [], "batch": [], "calls": []}
    for _ in range(rounds):
        batch = measured("--batch")
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


class Prompt(asyncio.Protocol):
    """A receiver's connection: every request is answered after the same latency (s)."""

    latency = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._read = transport, b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        while (end := self._read.find(b"\r\n\r\n") + 4) > 3:
            [length] = [
                int(line.partition(b":")[2])
                for line in self._read[:end].split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            ]
            if len(self._read) < end + length:
                return
            self._read = self._read[end + length :]
            reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
            asyncio.get_running_loop().call_later(self.latency, self._transport.write, reply)


async def receive(latency: float) -> None:
    """Answer whatever comes in, until killed; the first line printed is the URL."""
    Prompt.latency = latency
    server = await asyncio.get_running_loop().create_server(Prompt, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", flush=True)
    await server.serve_forever()


def poll(url: str) -> None:
    """Ask for the clock and for a page of recipients, one after the other, until killed."""
    address = urlsplit(url).netloc
    connection = http.client.HTTPConnection(address)
    connection.request("GET", "/_dialsim/campaigns")
    [campaign] = json.loads(connection.getresponse().read())
    print(f"polling {url}", flush=True)
    while True:
        for path in ("/_dialsim/clock", f"/api/campaign/{campaign['id']}/recipients"):
            connection.request("GET", path, headers={"X-API-Key": KEY})
            connection.getresponse().read()


def webhooks(rounds: int) -> dict[str, list[float]]:
    """Seconds of a week with a receiver and without, and the speeds that a clock reaches."""
    taken: dict[str, list[float]] = {
        name: [] for name in ("with", "without", "results", "cpu", "alone", "polled")
    }
    with server(__file__, "--receive") as receiver:
        hook = f"webhook: {{url: '{receiver.url}'}}"
        for _ in range(rounds):
            for name, webhook in (("without", ""), ("with", hook)):
                with sandbox(HOOK_PEOPLE, HOOK_LINES, webhook) as asked:
                    asked.ask("POST", "/_dialsim/clock/advance", {"by": "62m"})  # code is warm
                    used, begun = asked.processor_seconds(), time.perf_counter()
                    asked.ask("POST", "/_dialsim/clock/advance", {"until": "idle"})
                    taken[name].append(time.perf_counter() - begun)
                    if webhook:
                        found = asked.ask("GET", "/_dialsim/webhooks")
                        results = found["total"]
                        taken["results"].append(results)
                        used = asked.processor_seconds() - used
                        taken["cpu"].append(used / results * 1_000)
            for name, clients in (("alone", 0), ("polled", POLLING)):
                with sandbox(HOOK_PEOPLE, HOOK_LINES, hook) as asked:
                    asked.ask("POST", "/_dialsim/clock/advance", {"by": "62m"})
                    taken[name].append(speed_reached(asked, clients))
    return taken


def speed_reached(asked: Server, clients: int) -> float:
    """How many times as fast as real time the clock runs while clients poll."""
    polling = [Server(__file__, "--poll", asked.url) for _ in range(clients)]
    try:
        asked.ask("PUT", "/_dialsim/clock", {"mode": "running", "speed": SPEED})
        time.sleep(1)
        stood = [(asked.ask("GET", "/_dialsim/clock")["now"], time.perf_counter())]
        time.sleep(POLLED_SECONDS)
        stood += [(asked.ask("GET", "/_dialsim/clock")["now"], time.perf_counter())]
    finally:
        for client in polling:
            client.process.kill()
            client.process.wait()
    (start, began), (end, ended) = stood
    passed = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return passed.total_seconds() / (ended - began)


@contextmanager
def bare(content: bytes) -> Iterator[str]:
    """A server of the sandbox's kind that answers every request with the same bytes."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    from dialsim.sandbox.server import Server as BareServer
    from dialsim.sandbox.server import listening

    async def answer(_request: object) -> Response:
        return Response(content, media_type="application/json")

    up = threading.Event()
    with listening("127.0.0.1", 0) as listener:
        served = BareServer(Starlette(routes=[Route("/", answer)]), up, log_config=None)
        thread = threading.Thread(target=served.run, kwargs={"sockets": [listener]})
        thread.start()
        up.wait()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        served.wind_up()
        thread.join()


def fetched(place: str, path: str) -> tuple[float, bytes]:
    """Processor seconds of one GET on a connection of its own, and the body."""
    begun = time.process_time()
    connection = http.client.HTTPConnection(place)
    connection.request("GET", path)
    content = connection.getresponse().read()
    connection.close()
    return time.process_time() - begun, content


def ratios() -> list[Finding]:
    """Pages against a bare server, in turns; adding; snapshots; and a receiver of 50 ms."""
    found = []
    with dialsim.Sandbox(scenario_text(3_000, 40)) as sandbox:
        sandbox.clock.advance(until="idle")
        place, campaign = urlsplit(sandbox.url).netloc, sandbox.campaign("Big").id
        pages = {
            "calls": (f"/_dialsim/campaigns/{campaign}/calls?page=7", 0.15),
            "webhooks": ("/_dialsim/webhooks?page=7", 0.1),
        }
        for name, (path, least) in pages.items():
            with bare(fetched(place, path)[1]) as other:
                turns = [(fetched(place, path)[0], fetched(other, "/")[0]) for _ in range(60)]
            own, others = (median(times) for times in zip(*turns, strict=True))
            what = f"a bare server of the same bytes / a page of {name}"
            found.append(Finding(what, others / own, least=least))
    for kind in ("campaigns", "organizations", "agents"):
        text = scenario_text(10, 4)
        with dialsim.Sandbox(text) as small, dialsim.Sandbox(text) as large:
            for number in range(980):
                added(large, kind, number)
            turns = [(added(small, kind, n), added(large, kind, 980 + n)) for n in range(25)]
            few, many = (median(times[5:]) for times in zip(*turns, strict=True))
            found.append(Finding(f"the 1,000th of the {kind} / the 10th", many / few, most=2))
    with dialsim.Sandbox(scenario_text(10, 4)) as sandbox:
        for number in range(400):
            added(sandbox, "organizations", number)
        begun = time.process_time()
        sandbox.restore(sandbox.snapshot())
        seconds = time.process_time() - begun
        what = "snapshot and restore of 400 organizations, processor time, s"
        found.append(Finding(what, seconds, most=0.3))
    with server(__file__, "--receive", "--latency", "0.05") as receiver:
        hook = f"webhook: {{url: '{receiver.url}'}}"
        text = scenario_text(500, HOOK_LINES, hook)
        with dialsim.Sandbox(text, ["service.webhookConcurrency=50"]) as sandbox:
            begun = time.perf_counter()
            sandbox.clock.advance(until="idle")
            seconds = time.perf_counter() - begun
            one_by_one = len(sandbox.webhooks) * 0.05
            what = "results of 50 ms, 50 at once / one after the other, time"
            found.append(Finding(what, seconds / one_by_one, most=0.2))
    return found


def added(sandbox: dialsim.Sandbox, kind: str, number: int) -> float:
    """Processor seconds of adding one campaign, organization or agent."""
    begun, name = time.process_time(), f"Added {number}"
    if kind == "campaigns":
        person = {"tel": "0812345678"}
        sandbox.add_campaign({"name": name, "agent": "Caller", "recipients": [person]})
    elif kind == "organizations":
        sandbox.add_organization({"name": name}, like="Acme")
    else:
        sandbox.add_agent({"name": name})
    return time.process_time() - begun


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
    """What is promised: the worst request of a round, and ratios; medians of the rounds."""

    def worst(kind: str) -> float:
        """The longest of the requests of a kind, in a median round."""
        rounds = [
            [ms for name, times in one["ms"].items() if kind in name for ms in times]
            for one in taken["requests"]
        ]
        return median(map(max, rounds))

    return [
        Finding("GET /api/call/{id} of 1,000,000 people, the longest, ms", worst("call"), most=10),
        Finding("a page of 1,000,000 people, the longest, ms", worst("page"), most=10),
        Finding(
            "peak memory of the process that serves them, MiB",
            median(one["mib"] for one in taken["requests"]),
            most=1_024,
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
                most=1.6,
            )
            for name in ("nothing sent", "webhooks sent")
        ),
        *webhook_findings(taken["webhooks"]),
    ]


def webhook_findings(taken: Times) -> list[Finding]:
    """What is promised of webhooks."""
    return [
        Finding(
            f"{median(taken['results']):,.0f} results sent / the same without a URL, time",
            median(taken["with"]) / median(taken["without"]),
            most=15,
        ),
        Finding("a result, processor time of the server, ms", median(taken["cpu"]), most=1),
        Finding(f"speed reached of {SPEED}, nobody asks", median(taken["alone"]), least=1_000),
        Finding(
            f"speed reached of {SPEED}, {POLLING} clients poll",
            median(taken["polled"]),
            least=1_000,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement; default: 3")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--batch", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--requests", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--webhooks", action="store_true", help="measure webhooks only")
    parser.add_argument("--ratios", action="store_true", help="measure pages and adding only")
    parser.add_argument("--receive", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--latency", type=float, default=0.0, help=argparse.SUPPRESS)
    parser.add_argument("--poll", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.receive:
        asyncio.run(receive(arguments.latency))
    if arguments.poll:
        poll(arguments.poll)
    if arguments.batch:
        print(json.dumps(batch_day()))
        return 0
    if arguments.requests:
        print(json.dumps(requests()))
        return 0
    taken: dict[str, Any] = {}
    if not arguments.ratios:
        taken["webhooks"] = webhooks(arguments.rounds)
    if arguments.ratios:
        found = ratios()
    elif arguments.webhooks:
        found = webhook_findings(taken["webhooks"])
    else:
        taken["requests"] = [measured("--requests") for _ in range(arguments.rounds)]
        taken["day"] = day(arguments.rounds)
        taken["nothing sent"] = restart(arguments.rounds, None)
        with Receiver() as receiver:
            taken["webhooks sent"] = restart(arguments.rounds, receiver)
        found = [*findings(taken), *ratios()]
    if arguments.json:
        rows = [{**asdict(one), "met": one.met} for one in found]
        print(json.dumps({"findings": rows, "measurements": taken}, indent=2))
    else:
        for one in found:
            print(f"{one.what:<64} {one.measured:7.2f}   {one.verdict}")
    return 0 if all(one.met for one in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
