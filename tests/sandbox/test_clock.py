"""The running clock, and events that stop it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from tests.engine.rows import tables
from tests.sandbox.asking import WORLD, Client
from tests.sandbox.asking import control as ask
from tests.sandbox.webhooks.receiving import Steered, sending

import dialsim
from dialsim.engine.simulation import Simulation
from dialsim.errors import Refused
from dialsim.interface.instants import parse_instant
from dialsim.sandbox import clock
from dialsim.sandbox.clock import MOST_SPEED
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.outbox import Outbox
from dialsim.sandbox.restart import begin, resume
from dialsim.testing import Answer, Receiver, Sketch

HOUR = 3_600_000
ENDLESS = Sketch(lines=1).campaign("January", recipients={"count": 40_000})
QUIET = Sketch(lines=1).campaign("January", "busy 1s", requested=None)


@pytest.fixture
def client() -> Client:
    return Client(SandboxCore(dialsim.load(WORLD)))


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ({}, ["mode is required"]),
        ({"mode": "fast"}, ["mode must be manual or running"]),
        ({"mode": "running", "speed": 0}, ["speed must be greater than 0"]),
        ({"mode": "running", "speed": -5}, ["speed must be greater than 0"]),
        ({"mode": "running", "speed": MOST_SPEED + 1}, ["speed must not be greater than 1000000"]),
        ({"mode": "running", "speed": "600"}, None),
        ({"mode": "running", "speed": True}, None),
        ({"mode": "manual", "speed": 5}, ["speed must be left out where mode is manual"]),
        ({"mode": "running", "pace": 5}, ["property pace should not exist"]),
        ([], ["body must be an object"]),
    ],
)
def test_a_mode_that_makes_no_sense_is_refused(
    client: Client, body: Any, texts: list[str] | None
) -> None:
    answer = ask(client, "PUT", "/clock", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "VALIDATION_FAILED")
    if texts is not None:
        assert [text.strip() for text in answer.json()["errors"]] == texts
    assert ask(client, "GET", "/clock").json()["mode"] == "manual"


def test_a_clock_that_stands_still_may_be_told_so_again(client: Client) -> None:
    before = ask(client, "GET", "/clock").json()
    assert ask(client, "PUT", "/clock", {"mode": "manual"}).json() == before


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something is so, ten minutes at the most."""
    for _ in range(60_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


def test_a_running_clock_comes_to_the_run_of_the_file_and_stops_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = dialsim.load(WORLD, overrides=["clock.end=2026-01-12T00:00:00Z"])
    core, _ = _counted(monkeypatch, scenario=scenario)

    async def scene() -> None:
        core.clock.run(MOST_SPEED)
        await until(lambda: core.clock.speed is None)
        await core.close()

    asyncio.run(scene())
    assert core.at == scenario.clock.end
    assert tables(core.simulation.trace) == tables(Simulation(scenario).run())


@pytest.mark.parametrize(("speed", "long", "tolerance"), [(7.5, 40, 7_500 * 0.1), (0.001, 10, 1.1)])
def test_the_speed_is_what_was_asked_for_also_a_slow_one(
    monkeypatch: pytest.MonkeyPatch, speed: float, long: float, tolerance: float
) -> None:
    core, seconds = _counted(monkeypatch)

    async def scene() -> None:
        core.clock.run(speed)
        await until(lambda: seconds[0] > long)
        core.clock.stop()

    start = core.at
    asyncio.run(scene())
    assert abs(core.at - start - 1_000 * speed * seconds[0]) <= tolerance


def test_who_was_busy_for_long_does_not_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    core, seconds = _counted(monkeypatch, per_look=5.0)
    start = core.at

    async def scene() -> None:
        core.clock.run(100)
        await until(lambda: seconds[0] > 50)
        core.clock.stop()

    asyncio.run(scene())
    assert 0 < core.at - start <= 100 * 100 * (seconds[0] / 5)


@pytest.mark.parametrize(("speed", "busy"), [(100, 0.02), (1_000, 1.0)])
def test_the_speed_that_is_reached_is_told(
    monkeypatch: pytest.MonkeyPatch, speed: float, busy: float
) -> None:
    core, _ = _counted(monkeypatch, per_look=busy)

    async def scene() -> None:
        assert core.clock.speed_reached is None
        core.clock.run(speed)
        await until(lambda: core.at > start + 100_000)
        reached = core.clock.speed_reached
        core.clock.stop()
        assert core.clock.speed_reached is None
        # who is busy for a second at every look makes up for a tenth of one
        longest = speed if busy < 0.1 else speed * 0.1
        assert reached is not None
        assert 0.3 * longest < reached <= longest * 1.01

    start = core.at
    asyncio.run(scene())


def _counted(
    monkeypatch: pytest.MonkeyPatch,
    per_look: float = 0.02,
    scenario: dialsim.Scenario | None = None,
) -> tuple[SandboxCore, list[float]]:
    """A sandbox for whose clock some time has passed at every look at the time of the day."""
    seconds = [0.0]

    def look() -> float:
        seconds[0] += per_look
        return seconds[0]

    monkeypatch.setattr(clock, "monotonic", look)
    monkeypatch.setattr(clock, "TICK", 0)
    return SandboxCore(scenario or QUIET.scenario()), seconds


@contextmanager
def running(sketch: Sketch, url: str | None, speed: float) -> Iterator[Steered]:
    with sending(sketch, url) as sandbox:
        state = sandbox.ask("PUT", "/clock", {"mode": "running", "speed": speed})
        assert (state["mode"], state["speed"], state["status"]) == ("running", speed, "advancing")
        yield sandbox


def test_requests_are_answered_while_the_clock_runs_and_it_is_stopped_anywhere() -> None:
    with running(ENDLESS, None, 5_000) as sandbox:
        campaign = sandbox.core.accounts[0].views[0].identifier
        path = f"{sandbox.url}/api/campaign/{campaign}/recipients"
        headers = {"X-API-Key": sandbox.core.api_key(0)}
        seen = set()
        while len(seen) < 10:
            seen.add(sandbox.ask("GET", "/clock")["now"])
            assert (
                httpx.get(path, headers=headers, trust_env=False, verify=False).status_code == 200
            )
        assert sandbox.ask("PUT", "/clock", {"mode": "running", "speed": 2})["speed"] == 2
        stopped = sandbox.ask("PUT", "/clock", {"mode": "manual"})
        assert (stopped["mode"], stopped["speed"], stopped["status"]) == ("manual", None, "ready")
        time.sleep(0.1)
        assert sandbox.ask("GET", "/clock") == stopped
        later = sandbox.ask("POST", "/clock/advance", {"by": "1h"})["now"]
        assert parse_instant(later) - parse_instant(stopped["now"]) == HOUR


def test_a_running_clock_is_not_advanced_and_an_advanced_one_is_not_set_running() -> None:
    with running(QUIET, None, 1) as sandbox:
        answer = httpx.post(
            f"{sandbox.url}/_dialsim/clock/advance", json={"by": "1h"}, trust_env=False
        )
        assert (answer.status_code, answer.json()["code"]) == (409, "CLOCK_RUNNING")
        assert answer.json()["message"] == "The clock runs by itself; set its mode to manual first"
    core = SandboxCore(ENDLESS.scenario())

    async def scene() -> None:
        moving = asyncio.create_task(core.clock.advance_to_idle())
        await asyncio.sleep(0)
        with pytest.raises(Refused) as refused:
            core.clock.run(5)
        assert (refused.value.status, refused.value.code) == (409, "CLOCK_BUSY")
        moving.cancel()
        await asyncio.wait([moving])
        assert not core.clock.advancing
        core.clock.run(5)
        await core.close()

    asyncio.run(scene())


def test_in_order_a_running_clock_stands_still_while_results_are_under_way() -> None:
    seen: list[tuple[int, int]] = []
    sketch = Sketch(lines=1).campaign("January", *["busy 1s"] * 5)
    with Receiver() as receiver, sending(sketch, receiver.url, in_order=True) as sandbox:

        def linger(_request: object) -> None:
            before = sandbox.core.at
            time.sleep(0.1)
            seen.append((before, sandbox.core.at))

        receiver.otherwise = Answer(first=linger)
        sandbox.ask("PUT", "/clock", {"mode": "running", "speed": 100})
        receiver.wait_for(5)
        sandbox.ask("PUT", "/clock", {"mode": "manual"})
        rows = sandbox.webhooks
    assert len(seen) >= 4
    assert all(before == after for before, after in seen)
    instants = [parse_instant(row["at"]) for row in rows]
    gaps = [later - earlier for earlier, later in pairwise(instants)]
    assert gaps == [3_000] * (len(rows) - 1)


def test_in_order_a_receiver_may_stop_the_clock_while_it_handles_a_result() -> None:
    sketch = Sketch(lines=1).campaign("January", *["busy 1s"] * 5)
    with Receiver() as receiver, sending(sketch, receiver.url, in_order=True) as sandbox:
        receiver.answer(Answer(first=lambda _: sandbox.ask("PUT", "/clock", {"mode": "manual"})))
        sandbox.ask("PUT", "/clock", {"mode": "running", "speed": 1_000})
        receiver.wait_for(1)
        while sandbox.webhooks[0]["status"] == "underWay":
            time.sleep(0.01)
        [row] = sandbox.webhooks
        state = sandbox.ask("GET", "/clock")
        assert (state["mode"], state["now"], row["status"]) == ("manual", row["at"], "delivered")


def test_strides_are_long_where_nobody_waits_for_results(monkeypatch: pytest.MonkeyPatch) -> None:
    stops = 0
    collect = Outbox.collect

    def counted(outbox: Outbox) -> None:
        nonlocal stops
        stops += 1
        collect(outbox)

    monkeypatch.setattr(Outbox, "collect", counted)
    sketch = Sketch(lines=20).campaign("January", recipients={"count": 2_000})
    core = SandboxCore(sketch.scenario())
    asyncio.run(core.clock.advance_by(9 * HOUR))
    assert core.simulation.log.size() > 10_000
    assert stops <= 9 * 60 + 2


def test_a4_a_failed_analysis_is_waited_for_too() -> None:
    sketch = Sketch(lines=1).campaign("January", "answered 1s 5s analysisFailed")
    with sending(sketch, None) as sandbox:
        ended_at = parse_instant(sandbox.advance(until="idle")) - 20_000
        campaign = sandbox.ask("GET", "/campaigns")[0]["id"]
        [call] = sandbox.ask("GET", f"/campaigns/{campaign}/calls")["calls"]
        assert (call["status"], parse_instant(call["callEndedAt"])) == ("ANALYSIS_FAILED", ended_at)


def test_nothing_is_waited_for_twice_however_often_somebody_looks_ahead() -> None:
    core = SandboxCore(Sketch(lines=1).campaign("January", "answered 1s 5s").scenario())

    async def scene() -> list[int]:
        seen = []
        while (ahead := core.next_event_at()) is not None:
            assert ahead == core.next_event_at()
            await core.clock.advance_to_next_event()
            seen.append(core.at)
        await core.clock.advance_to_idle()
        return [*seen, core.at]

    *seen, idle = asyncio.run(scene())
    assert seen == sorted(set(seen))
    assert idle == seen[-1]
    assert idle == core.simulation.log.campaigns[-1].at + 20_000  # the analysis


def test_a_clock_that_was_running_goes_on_when_its_journal_is_resumed(tmp_path: Path) -> None:
    core = begin(tmp_path / "journal", ENDLESS.scenario())

    async def scene(core: SandboxCore) -> None:
        core.open()
        start = core.at
        if core.clock.speed is None:
            core.clock.run(50_000)
        await until(lambda: core.at > start + HOUR)
        assert core.clock.speed == 50_000
        await core.close()
        assert core.journal is not None
        core.journal.close()

    asyncio.run(scene(core))
    again = resume(tmp_path / "journal")
    assert (again.at, again.clock.speed) == (core.at, 50_000)
    asyncio.run(scene(again))


# -- an advance that is stopped --------------------------------------------------------------------


class Advance:
    """An advance requested in another thread; `state` is the response."""

    def __init__(self, sandbox: Steered, **move: str) -> None:
        self.state: Any = None
        self._sandbox = sandbox
        self._thread = Thread(target=self._ask, args=(move,))
        self._thread.start()
        while not sandbox.core.clock.advancing:
            time.sleep(0.001)

    def _ask(self, move: dict[str, str]) -> None:
        self.state = self._sandbox.ask("POST", "/clock/advance", move)

    def join(self) -> Any:
        """Wait for the response and return it."""
        self._thread.join(timeout=600)
        assert not self._thread.is_alive()
        return self.state


def test_an_advance_is_stopped_on_the_way_and_says_how_far_it_came() -> None:
    with sending(ENDLESS, None) as sandbox:
        start = sandbox.ask("GET", "/clock")["now"]
        for move in ({"until": "idle"}, {"by": "300d"}, {"to": "2026-12-24T00:00:00Z"}):
            advance = Advance(sandbox, **move)
            while sandbox.ask("GET", "/clock")["now"] == start:
                pass
            stopped = sandbox.ask("PUT", "/clock", {"mode": "manual"})
            assert (stopped["mode"], stopped["status"]) == ("manual", "ready")
            assert advance.join() == stopped | {"ended": "stopped"}
            time.sleep(0.1)
            assert sandbox.ask("GET", "/clock") == stopped
            start = stopped["now"]
        later = sandbox.ask("POST", "/clock/advance", {"by": "1h"})
        assert later["ended"] == "there"
        assert parse_instant(later["now"]) - parse_instant(start) == HOUR


def test_a_stopped_advance_has_done_what_one_up_to_there_does() -> None:
    sketch = ENDLESS.having(webhook={"url": "http://127.0.0.1:9/nobody"})

    async def scene(core: SandboxCore) -> bool:
        moving = asyncio.create_task(core.clock.advance_to_idle())
        await until(lambda: core.at > start + HOUR)
        core.clock.stop()
        assert not core.clock.advancing
        arrived = await moving
        await core.sender.settled()
        await core.close()
        return arrived

    stopped, whole = SandboxCore(sketch.scenario()), SandboxCore(sketch.scenario())
    start = stopped.at
    assert asyncio.run(scene(stopped)) is False
    assert asyncio.run(whole.clock.advance_to(stopped.at)) is True
    assert tables(stopped.simulation.trace) == tables(whole.simulation.trace)
    assert [*map(stopped.outbox.log.row, range(len(stopped.outbox.log)))] == [
        *map(whole.outbox.log.row, range(len(whole.outbox.log)))
    ]


def test_a_stopped_advance_does_not_wait_for_results_that_are_under_way() -> None:
    sketch = Sketch(lines=1).campaign("January", *["busy 1s"] * 5)
    go_on = Event()
    with Receiver() as receiver, sending(sketch, receiver.url, in_order=True) as sandbox:
        receiver.answer(Answer(first=lambda _: go_on.wait(30)))
        advance = Advance(sandbox, until="idle")
        receiver.wait_for(1)
        stopped = sandbox.ask("PUT", "/clock", {"mode": "manual"})
        assert advance.join() == stopped | {"ended": "stopped"}
        [row] = sandbox.webhooks
        assert (row["status"], row["at"]) == ("underWay", stopped["now"])
        go_on.set()
        sandbox.advance(until="idle")  # waits for it first
        assert [row["status"] for row in sandbox.webhooks] == ["delivered"] * 5


def test_in_order_a_receiver_may_stop_an_advance_while_it_handles_a_result() -> None:
    sketch = Sketch(lines=1).campaign("January", *["busy 1s"] * 5)
    with Receiver() as receiver, sending(sketch, receiver.url, in_order=True) as sandbox:
        receiver.answer(Answer(first=lambda _: sandbox.ask("PUT", "/clock", {"mode": "manual"})))
        state = sandbox.ask("POST", "/clock/advance", {"until": "idle"})
        assert (state["ended"], len(receiver.requests)) == ("stopped", 1)


def test_an_advance_that_was_stopped_is_where_it_was_after_a_restart(tmp_path: Path) -> None:
    core = begin(tmp_path / "journal", ENDLESS.scenario())

    async def scene() -> None:
        start = core.at
        moving = asyncio.create_task(core.clock.advance_to_idle())
        await until(lambda: core.at > start + HOUR)
        core.clock.stop()
        await moving

    asyncio.run(scene())
    assert core.journal is not None
    core.journal.close()
    again = resume(tmp_path / "journal")
    assert again.at == core.at
    assert again.journal is not None
    again.journal.close()
