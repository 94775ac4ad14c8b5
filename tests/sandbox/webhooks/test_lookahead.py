"""Results of later instants leave while POSTs are under way: what that may change, and what not."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.sandbox.asking import Client
from tests.sandbox.webhooks.receiving import sending
from tests.sandbox.webhooks.sending import NoNetwork, lines

import dialsim
from dialsim.interface.payload import BROKEN, REFUSED, TIMED_OUT, WAITS_MS
from dialsim.results.result import Result
from dialsim.sandbox.access import Destinations
from dialsim.sandbox.commands import InjectFault
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.outbox import STRIDE, Delivery
from dialsim.sandbox.restart import begin, resume
from dialsim.sandbox.sender import Sender
from dialsim.scenario.service import FaultOrder
from dialsim.testing import Answer, Receiver, Sketch
from engine.readings import loaded
from webhooks.test_stream import troubled

IN_ORDER = "service.inOrder=true"
MANY = Sketch(lines=20).campaign("January", recipients={"count": 100}, max_attempts=2)
WITH_URL = MANY.having(webhook={"url": "http://127.0.0.1:9/"})


class SlowNetwork:
    """Replaces HTTP: the response depends on the POST alone, its duration is random.

    `under_way` has, for each POST sent, the instants of the POSTs in progress.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int, success: float) -> None:
        self.bodies: list[bytes] = []
        self.under_way: list[tuple[Delivery, list[tuple[int, int]]]] = []
        now: dict[int, tuple[int, int]] = {}
        rng = random.Random(seed)

        async def post(_sender: Sender, delivery: Delivery) -> int:
            self.bodies.append(delivery.body)
            self.under_way.append((delivery, [*now.values()]))
            now[delivery.row] = delivery.at, delivery.tries
            for _ in range(rng.randrange(6)):
                await asyncio.sleep(0)
            del now[delivery.row]
            own = random.Random(f"{seed} {delivery.key} {delivery.tries}")
            return 200 if own.random() < success else own.choice((500, TIMED_OUT, REFUSED, BROKEN))

        monkeypatch.setattr(Sender, "post", post)
        monkeypatch.setattr(Destinations, "sends", lambda *_: True)  # nothing leaves anyway


def told(core: SandboxCore) -> list[Any]:
    """All rows of the list."""
    return core.webhooks.rows(np.arange(len(core.webhooks)))


async def to_idle(core: SandboxCore) -> None:
    core.open()
    end = core.simulation.end
    await (core.clock.advance_to_idle() if end is None else core.clock.advance_to(end))
    await core.close()


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 2))])
def test_w2_instants_order_and_bodies_are_those_of_a_clock_that_waits(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = loaded(troubled(seed))
    seen = []
    for order in (scenario, scenario.with_(IN_ORDER)):
        core, network = SandboxCore(order), SlowNetwork(monkeypatch, seed, 0.5)
        asyncio.run(to_idle(core))
        seen.append((told(core), Counter(network.bodies), core.at))
    assert seen[0] == seen[1]


FAULTS: tuple[dict[str, Any], ...] = (
    {"webhooks": "delayed", "delay": "20s", "share": 0.3},
    {"webhooks": "stale", "share": 0.5},
    {"webhooks": "twice", "share": 0.5},
)


@pytest.mark.parametrize(
    "seed", [5, 6, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1, 2, 8))]
)
def test_faults_strike_the_same_posts_as_with_a_clock_that_waits(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = loaded(troubled(seed))
    seen = []
    for order in (scenario, scenario.with_(IN_ORDER)):
        core, network = SandboxCore(order), SlowNetwork(monkeypatch, seed, 0.7)
        for fault in FAULTS:
            order_of = FaultOrder.model_validate(fault | {"next": 1000})
            core.carry_out(InjectFault(order=order_of))
        asyncio.run(to_idle(core))
        struck = [(fault.met, fault.struck) for fault in core.faults]
        seen.append((told(core), Counter(network.bodies), core.at, struck))
    assert seen[0] == seen[1]
    assert all(struck for _, struck in seen[0][-1])


def test_nothing_leaves_before_what_a_post_under_way_may_bring_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core, network = SandboxCore(WITH_URL.scenario()), SlowNetwork(monkeypatch, 3, 0.5)
    asyncio.run(to_idle(core))
    left = [delivery.key for delivery, _ in network.under_way]
    assert len(left) > 150
    together = 0
    posts = map(core.outbox.log.row, range(len(core.outbox.log)))
    for post, (_, others) in zip(posts, network.under_way, strict=True):
        for at, tries in others:
            together += at < post.at
            if tries < len(WAITS_MS):
                assert post.at < at + WAITS_MS[tries]
    assert together  # others of later instants were sent meanwhile


def test_the_engine_is_ahead_of_results_by_five_minutes_at_the_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core, ahead = SandboxCore(WITH_URL.scenario()), list[int]()

    async def post(_sender: Sender, delivery: Delivery) -> int:
        ahead.append(core.at - delivery.at)
        await asyncio.sleep(0.0001)
        return 200

    monkeypatch.setattr(Sender, "post", post)

    async def scene() -> None:
        core.clock.run(100_000)
        while core.next_event_at() is not None:
            await asyncio.sleep(0)
        await core.close()

    asyncio.run(scene())
    assert 0 < max(ahead) <= STRIDE


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("overrides", [(), (IN_ORDER,)])
def test_a_journal_that_is_resumed_amid_posts_loses_none_in_either_mode(
    seed: int, overrides: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, chance = SlowNetwork(monkeypatch, seed, 0.6), random.Random(seed)
    scenario = WITH_URL.scenario(overrides)
    core = begin(tmp_path / "journal", scenario)

    async def scene(core: SandboxCore, turns: int) -> bool:
        """Go on for so many turns of the event loop, and stop whatever is under way then."""
        core.open()
        moving = asyncio.create_task(core.clock.advance_to_idle())
        for _ in range(turns):
            await asyncio.sleep(0)
        is_over = moving.done()
        moving.cancel()
        await asyncio.wait([moving])
        await core.close()
        assert core.journal is not None
        core.journal.close()
        return is_over

    stops = 0
    while not asyncio.run(scene(core, chance.randrange(30, 200))):
        stops += 1
        core = resume(tmp_path / "journal")
    assert stops > 3
    run = lines(dialsim.run(scenario))
    assert {*network.bodies} == {line.body for line in run}
    again = resume(tmp_path / "journal")
    assert again.journal is not None
    again.journal.close()
    undisturbed = SandboxCore(scenario)
    asyncio.run(to_idle(undisturbed))
    assert told(again) == told(undisturbed)


def test_a_payload_that_is_kept_is_listed_when_no_post_can_come_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quiet = Sketch(lines=20).campaign("January", recipients={"count": 60}, max_attempts=2)
    sketch = quiet.having(webhook={"url": "http://127.0.0.1:9/"}).at(30, "setWebhookUrl", None)
    sketch = sketch.at(60, "setWebhookUrl", "http://127.0.0.1:9/")
    core, before = SandboxCore(sketch.scenario()), list[Any]()
    rng = random.Random(1)

    async def post(_sender: Sender, _delivery: Delivery) -> int:
        nonlocal before
        await asyncio.sleep(0)
        if rng.random() < 0.2:
            rows = [(row["at"], row["callId"], row["attempt"]) for row in told(core)]
            assert rows[: len(before)] == before
            before = rows
        return rng.choice((200, 500))

    monkeypatch.setattr(Sender, "post", post)
    asyncio.run(to_idle(core))
    assert {"kept", "delivered", "failed"} == {row["status"] for row in told(core)}


def test_w4_a_payload_shows_its_own_instant_however_far_the_engine_is_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When a result is sent its person's next call is in progress; settings change, data
    expires.
    """
    sketch = Sketch(lines=5, webhook_delay="307s").campaign(
        "January", recipients={"count": 60}, max_attempts=3, retry_interval="5m"
    )
    sketch = sketch.having(
        webhook={"url": "http://127.0.0.1:9/"}, retention={"personalData": "309s", "output": "330s"}
    )
    sketch = sketch.at(331, "setConcurrency", 7).at(395, "pause", "January")
    sketch = sketch.at(421, "resume", "January")
    core, network = SandboxCore(sketch.scenario()), NoNetwork(monkeypatch, 1, 1.0)
    asyncio.run(to_idle(core))
    written = Counter(line.body for line in lines(dialsim.run(sketch.scenario())))
    assert Counter(network.bodies) == written
    assert Counter(line.body for line in lines(Result(core.simulation.trace))) == written


def test_a_receiver_that_calls_back_finds_a_clock_that_is_a_little_ahead() -> None:
    seen: list[tuple[Any, Any, Any]] = []
    sketch = Sketch(lines=1).campaign("January", *["busy 1s"] * 4)
    with Receiver() as receiver, sending(sketch, receiver.url) as sandbox:
        key = {"X-API-Key": sandbox.core.api_key(0)}

        def call_back(request: Any) -> None:
            payload = request.json["payload"]
            path = f"{sandbox.url}/api/campaign/{payload['campaign']['id']}/pause"
            paused = httpx.post(path, headers=key, trust_env=False, timeout=600)
            path = f"{sandbox.url}/api/call/{payload['call']['id']}"
            call = httpx.get(path, headers=key, trust_env=False, timeout=600).json()["data"]
            seen.append((paused.status_code, payload, call))

        receiver.answer(Answer(first=call_back))
        sandbox.advance(by="1h")
        rows = sandbox.webhooks
    [(status, payload, call)] = seen
    assert status == 409  # all four were called by then, and the campaign has completed
    assert call["callStatus"] == payload["call"]["callStatus"] == "BUSY"
    assert payload["campaign"]["status"] == "RUNNING"
    assert [row["status"] for row in rows] == ["delivered"] * 4


def test_requests_take_turns_with_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialsim.sandbox.core.PATIENCE", 0.0)  # each stretch is a turn
    core = SandboxCore(Sketch(lines=20).campaign("January", recipients={"count": 600}).scenario())
    client, order = Client(core), list[str]()
    work_on = core.work_on

    def noted(last: int) -> bool:
        order.append("clock")
        return work_on(last)

    core.work_on = noted  # type: ignore[method-assign]

    async def scene() -> None:
        transport = httpx.ASGITransport(client.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as polling:

            async def poll() -> None:
                while not moving.done():
                    assert (await polling.get("/_dialsim/clock")).status_code == 200
                    order.append("request")

            moving = asyncio.create_task(core.clock.advance_to_idle())
            await asyncio.gather(*(poll() for _ in range(20)))

    asyncio.run(scene())
    clock, requests = order.count("clock"), order.count("request")
    assert requests > 20  # all of them were answered while it moved
    assert clock > 3


def test_with_more_posts_at_once_a_slow_receiver_gets_the_same_results_all_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario, bodies = WITH_URL.scenario(), list[Any]()
    for at_once in (5, 50):
        wider = scenario.with_(f"service.webhookConcurrency={at_once}")
        core, network = SandboxCore(wider), SlowNetwork(monkeypatch, 3, 0.5)
        asyncio.run(to_idle(core))
        bodies.append((Counter(network.bodies), core.at, told(core)))
        most = max(len(others) for _, others in network.under_way)
        assert (most < 5) if at_once == 5 else (5 < most < 50)
    assert bodies[0] == bodies[1]
