"""A sandbox killed at any moment goes on from its journal as if nothing had happened."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.sandbox.serving import EVERY_RESULT

from dialsim.testing import Sketch
from dialsim.testing.receiver import Answer, Receiver

KEY = {"X-API-Key": "sim_0123456789abcdef0123456789abcdef"}
INSTANTS = [
    f"2026-01-05T{hour:02}:{minute:02}:00Z" for hour in range(2, 8) for minute in (0, 20, 45)
]


class Process:
    """`dialsim serve` in a separate process."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "dialsim", "serve", *arguments, "--port", "0"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = next(line for line in self._process.stdout if line.startswith("Serving on"))
        self.url = line.split()[2]
        self._client = httpx.Client(base_url=self.url, headers=KEY, timeout=600, verify=False)
        self.campaigns = [one["id"] for one in self.ask("GET", "/_dialsim/campaigns")]

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self.end(signal.SIGKILL)

    def end(self, how: signal.Signals) -> int:
        """Send it a signal that ends it, and return its exit status."""
        self._process.send_signal(how)
        status = self._process.wait(timeout=600)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """Hang up; from the thread that asks."""
        self._client.close()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        reply = self._client.request(method, path, json=body)
        assert reply.status_code < 300, reply.text
        return reply.json()


class Readers:
    """Clients that ask for something all the time, for the length of a block."""

    def __init__(self, process: Process, count: int = 3) -> None:
        self._process = process
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._read) for _ in range(count)]

    def _read(self) -> None:
        [one, *_] = self._process.campaigns
        path = f"/api/campaign/{one}/recipients"
        with (
            suppress(httpx.TransportError),
            httpx.Client(base_url=self._process.url, verify=False) as client,
        ):
            while not self._over.is_set():
                client.get(path, headers=KEY)
                client.get("/_dialsim/clock")

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_failure: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


class Deeds:
    """Actions of a client, each repeated unless it was carried out."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._todo = [*self._deeds()]

    def _deeds(self) -> Iterator[tuple[str, Any]]:
        for place, instant in enumerate(INSTANTS):
            yield "advance", instant
            match self._chance.randrange(5):
                case 0:
                    yield "limit", 3 + place
                case 1:
                    yield "pause", None
                    yield "advance", instant.replace(":00Z", ":30Z")
                    yield "resume", None
                case 2:
                    yield "create", f"Added {place}"
                case 3:
                    yield "script", f"08{place:08d}"
        yield "advance", "2026-01-05T09:00:00Z"

    def carry_on(self, process: Process) -> None:
        """Do what is left, from the first thing that is not known to be done."""
        while self._todo:
            name, value = self._todo[0]
            getattr(self, name)(process, value)
            self._todo.pop(0)

    def advance(self, process: Process, instant: str) -> None:
        process.ask("POST", "/_dialsim/clock/advance", {"to": instant})

    def limit(self, process: Process, value: int) -> None:
        if process.ask("GET", "/_dialsim/organizations/Acme")["maxConcurrentCalls"] != value:
            process.ask("PATCH", "/_dialsim/organizations/Acme", {"maxConcurrentCalls": value})

    def pause(self, process: Process, _value: None) -> None:
        one = self._one(process)
        if one["status"] == "RUNNING":
            process.ask("POST", f"/api/campaign/{one['id']}/pause")

    def resume(self, process: Process, _value: None) -> None:
        one = self._one(process)
        if one["status"] == "PAUSED":
            process.ask("POST", f"/_dialsim/campaigns/{one['id']}/resume")

    def create(self, process: Process, name: str) -> None:
        if all(one["name"] != name for one in process.ask("GET", "/_dialsim/campaigns")):
            body = {"organization": "Acme", "agent": "Agent", "name": name}
            people = [{"tel": f"06{name[-1]}{n:07d}"} for n in range(30)]
            schedule = {"startDateTime": "2026-01-05T02:00:00Z"}
            process.ask(
                "POST", "/_dialsim/campaigns", {**body, "recipients": people, "schedule": schedule}
            )

    def script(self, process: Process, tel: str) -> None:
        process.ask("POST", "/_dialsim/people", {"tel": tel, "script": "busy 3s"})

    def _one(self, process: Process) -> Any:
        return next(
            one for one in process.ask("GET", "/_dialsim/campaigns") if one["name"] == "One"
        )


def everything(process: Process) -> list[Any]:
    """Every answer that a client can get about what has happened."""
    told: list[Any] = [process.ask("GET", "/_dialsim/clock")]
    for campaign in process.ask("GET", "/_dialsim/campaigns"):
        told.append(campaign)
        for what in ("calls", "transitions"):
            path = f"/_dialsim/campaigns/{campaign['id']}/{what}"
            for page in count(1):
                answer = process.ask("GET", f"{path}?page={page}")
                told.append(answer)
                if page >= answer["totalPages"]:
                    break
    told.append(process.ask("GET", "/_dialsim/people"))
    told.append(process.ask("GET", "/api/agent/list"))
    return told


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver(otherwise=Answer(200)) as started:
        yield started


def undisturbed(
    folder: Path, receiver: Receiver, seed: int, people: int
) -> tuple[list[Any], Counter[bytes]]:
    """Return the state and the webhooks of a run without kills."""
    receiver.requests.clear()
    process = Process(str(scenario(folder, receiver, people)))
    Deeds(seed).carry_on(process)
    told = everything(process)
    process.kill()
    process.close()
    return told, Counter(request.body for request in receiver.requests)


def scenario(folder: Path, receiver: Receiver, people: int = 260) -> Path:
    """A file of two campaigns with so many people each."""
    file = folder / "kills.yaml"
    sketch = (
        Sketch(seed=11, start="Mon 08:00", end="20 Jan 2026 07:00", setup_time=None)
        .also(service={"publicUrl": "https://voicely.example"})
        .behaviour("default", **EVERY_RESULT)
        .organization("Acme", 6, api_key=KEY["X-API-Key"], webhook={"url": receiver.url})
        .campaign(
            "One", recipients={"count": people}, start="Mon 09:00", max_attempts=3,
            retry_interval="30m",
        )
        .organization("Quiet", 4)
        .campaign(
            "Two", recipients={"count": people}, start="Mon 09:30", max_attempts=2,
            retry_interval="1h",
        )
    )  # fmt: skip
    file.write_text(sketch.text, encoding="utf-8")
    return file


def killed_at_random(
    folder: Path, receiver: Receiver, seed: int, kills: int, people: int
) -> tuple[list[Any], Counter[bytes]]:
    """The same, with a number of kills at random moments."""
    receiver.requests.clear()
    journal, chance, deeds = folder / "kills.journal", random.Random(seed), Deeds(seed)
    process = Process(str(scenario(folder, receiver, people)), "--journal", str(journal))
    for _ in range(kills):
        timer = threading.Timer(chance.uniform(0.0, 0.8), process.kill)
        with Readers(process), suppress(httpx.TransportError):
            timer.start()
            deeds.carry_on(process)
        timer.join()
        process.close()
        process = Process("--journal", str(journal))
    deeds.carry_on(process)
    told = everything(process)
    process.kill()
    process.close()
    return told, Counter(request.body for request in receiver.requests)


def hold(tmp_path: Path, receiver: Receiver, seed: int, kills: int, people: int) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    told, sent = undisturbed(tmp_path / "a", receiver, seed, people)
    told_after, sent_after = killed_at_random(tmp_path / "b", receiver, seed, kills, people)
    assert told_after == told
    assert sent.keys() == sent_after.keys()  # none is missing, and none is another
    twice = sum((sent_after - sent).values())
    assert twice <= 20 * kills  # what was under way at a kill may be sent again


def test_a_killed_sandbox_goes_on_as_if_nothing_had_happened(
    tmp_path: Path, receiver: Receiver
) -> None:
    hold(tmp_path, receiver, seed=1, kills=1, people=50)


@pytest.mark.slow(minutes=2)
@pytest.mark.parametrize("seed", range(2, 7))
def test_ten_kills_each_at_random_moments_lose_nothing(
    tmp_path: Path, receiver: Receiver, seed: int
) -> None:
    hold(tmp_path, receiver, seed, kills=10, people=260)
