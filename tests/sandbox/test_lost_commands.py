"""Exactly the acknowledged commands are kept: on a full disk, and when the sandbox is stopped."""

from __future__ import annotations

import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.sandbox.failing_disks import Disk, LimitedFiles, failing_disk
from tests.sandbox.test_kills import Process, everything, scenario

from dialsim.testing import Sketch
from dialsim.testing.receiver import Answer, Receiver

Start = Callable[..., Process]


class Clients:
    """Clients that send commands continuously, each after its last response.

    Commands are numbered. `answered` were acknowledged; `unanswered` were refused or the connection
    broke. `statuses` are all that were received.
    """

    def __init__(self, process: Process, seed: int) -> None:
        self.answered: set[str] = set()
        self.unanswered: set[str] = set()
        self.statuses: set[int] = set()
        self._url = process.url
        self._over = threading.Event()
        commands = (self._script, self._script, self._campaign, self._advance)
        self._threads = [
            threading.Thread(target=self._go_on, args=(command, place, seed))
            for place, command in enumerate(commands)
        ]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_failure: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int) -> None:
        """Wait until this many more commands have finished, successfully or not."""
        enough, end = len(self.answered) + len(self.unanswered) + more, time.monotonic() + 600
        while len(self.answered) + len(self.unanswered) < enough:
            assert time.monotonic() < end, "nobody commands anything any more"
            time.sleep(0.001)

    def _go_on(self, command: Callable[[httpx.Client, str], int], place: int, seed: int) -> None:
        chance = random.Random(seed * 10 + place)
        with httpx.Client(base_url=f"{self._url}/_dialsim", timeout=600, verify=False) as client:
            for number in count(place * 1_000_000):
                if self._over.is_set():
                    return
                try:
                    status = command(client, f"{number:08d}")
                except httpx.TransportError:
                    self.unanswered.add(f"{number:08d}")
                    return
                self.statuses.add(status)
                if command != self._advance:
                    (self.answered if status < 300 else self.unanswered).add(f"{number:08d}")
                time.sleep(chance.choice((0, 0, 0.002)))

    def _script(self, client: httpx.Client, number: str) -> int:
        body = {"tel": f"09{number}", "script": "busy 3s"}
        return client.post("/people", json=body).status_code

    def _campaign(self, client: httpx.Client, number: str) -> int:
        body = {"organization": "Acme", "agent": "Caller", "name": f"No. {number}"}
        recipients = [{"tel": "0811111111"}]
        return client.post("/campaigns", json=body | {"recipients": recipients}).status_code

    def _advance(self, client: httpx.Client, _number: str) -> int:
        return client.post("/clock/advance", json={"by": "20m"}).status_code


def carried_out(process: Process) -> set[str]:
    """Return the numbers of the clients' commands that a sandbox shows."""
    scripts = [one["tel"][2:] for one in process.ask("GET", "/_dialsim/people")]
    names = [one["name"] for one in process.ask("GET", "/_dialsim/campaigns")]
    return {*scripts, *(name[4:] for name in names if name.startswith("No. "))}


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver(otherwise=Answer(200)) as started:
        yield started


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts sandboxes, which are ended with the test."""
    started: list[Process] = []

    def started_one(*arguments: str | Path) -> Process:
        started.append(Process(*map(str, arguments)))
        return started[-1]

    yield started_one
    for process in started:
        process.close()
        process.kill()


# -- the disk is full ------------------------------------------------------------------------------


@contextmanager
def disk_of_a_process(kind: str, folder: Path) -> Iterator[Disk]:
    limited = LimitedFiles(folder)
    with nullcontext(limited) if kind == "limited" else failing_disk(kind, folder) as disk:
        yield disk


def hold_though_the_disk_is_full(
    start: Start, kind: str, folder: Path, receiver: Receiver, seed: int, how: signal.Signals
) -> None:
    chance = random.Random(seed)
    with disk_of_a_process(kind, folder) as disk:
        journal = disk.folder / "a.journal"
        process = start(scenario(folder, receiver, people=100), "--journal", journal)
        if isinstance(disk, LimitedFiles):
            disk.pid = process.pid
        with Clients(process, seed) as clients:
            clients.wait_for(chance.randrange(1, 60))
            disk.fail()
            clients.wait_for(chance.randrange(5, 60))
            disk.recover()
            clients.wait_for(10)
        assert clients.statuses >= {200, 507}
        wait_until_kept(process)
        told, done = everything(process), carried_out(process)
        process.end(how)
        again = start("--journal", journal)
        assert everything(again) == told
        assert carried_out(again) == done == clients.answered
        assert clients.unanswered


def wait_until_kept(process: Process) -> None:
    while process.ask("GET", "/_dialsim/clock")["heldByJournal"] is not None:
        time.sleep(0.05)


@pytest.mark.parametrize("kind", ["limited", pytest.param("full", marks=pytest.mark.slow)])
def test_a_disk_that_is_full_for_a_while_loses_nothing_and_carries_out_nothing_unanswered(
    start: Start, tmp_path: Path, receiver: Receiver, kind: str
) -> None:
    hold_though_the_disk_is_full(start, kind, tmp_path, receiver, seed=1, how=signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 52))
def test_a_disk_filled_at_a_random_command_loses_nothing_and_carries_out_nothing_unanswered(
    start: Start, tmp_path: Path, receiver: Receiver, seed: int
) -> None:
    how = signal.SIGTERM if seed % 2 else signal.SIGKILL
    hold_though_the_disk_is_full(start, "full", tmp_path, receiver, seed, how)


@pytest.mark.slow
def test_a_momentarily_full_disk_of_200_kib_does_not_destroy_the_journal(
    start: Start, tmp_path: Path
) -> None:
    """As it was found: a PATCH on the full disk, and two when it was freed."""
    file = tmp_path / "small.yaml"
    file.write_text(Sketch(1).text)
    with failing_disk("full", tmp_path, kilobytes=200) as disk:
        journal = disk.folder / "a.journal"
        process = start(file, "--journal", journal)

        def patch(value: int) -> httpx.Response:
            url = f"{process.url}/_dialsim/organizations/Acme"
            return httpx.patch(url, json={"maxConcurrentCalls": value})

        disk.fail()
        answer = patch(2).json()
        assert (answer["statusCode"], answer["code"]) == (507, "NOT_KEPT")
        assert answer["message"].endswith("can't be written: database or disk is full")
        assert limit(process) == 1
        disk.recover()
        assert patch(3).status_code == 200
        assert patch(4).status_code == 200
        assert process.end(signal.SIGINT) == 0
        assert limit(start("--journal", journal)) == 4


def limit(process: Process) -> Any:
    return process.ask("GET", "/_dialsim/organizations/Acme")["maxConcurrentCalls"]


# -- the sandbox is stopped ------------------------------------------------------------------------


def hold_though_it_is_terminated(start: Start, folder: Path, receiver: Receiver, seed: int) -> None:
    """The copy of the one file that is left is the whole journal."""
    chance = random.Random(seed)
    journal, copy = folder / "a.journal", folder / "b.journal"
    process = start(scenario(folder, receiver), "--journal", journal)
    process.ask("POST", "/_dialsim/faults", {"api": "slow", "next": 1_000, "delay": "5ms"})
    with Clients(process, seed) as clients:
        time.sleep(chance.uniform(0, 0.8))
        assert process.end(signal.SIGTERM) == 0
    assert [file.name for file in folder.glob("a.journal*")] == ["a.journal"]
    shutil.copy(journal, copy)
    assert carried_out(start("--journal", copy)) == clients.answered


@pytest.mark.slow
def test_sigterm_loses_nothing_and_leaves_one_file(
    start: Start, tmp_path: Path, receiver: Receiver
) -> None:
    hold_though_it_is_terminated(start, tmp_path, receiver, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 52))
def test_sigterm_at_a_random_moment_loses_nothing_and_carries_out_nothing_unanswered(
    start: Start, tmp_path: Path, receiver: Receiver, seed: int
) -> None:
    hold_though_it_is_terminated(start, tmp_path, receiver, seed)
