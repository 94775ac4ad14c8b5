"""Webhooks sent equal those of `dialsim run`, byte for byte, and the trace afterwards."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sandbox.webhooks.sending import Line, NoNetwork, lines

import dialsim
from dialsim.errors import Refused
from dialsim.results.result import Result
from dialsim.sandbox.commands import (
    ChangeOrganization,
    Command,
    ReanalyzeCall,
    ScheduleCampaign,
    SteerCampaign,
)
from dialsim.sandbox.core import SandboxCore
from dialsim.testing.receiver import Answer, Receiver
from engine.readings import loaded
from webhooks.test_stream import troubled

SCENARIOS = Path(__file__).parents[3] / "scenarios"
URL = "http://127.0.0.1:9/"


def seeds(first: int) -> list[Any]:
    """Sixty seeds, of which four run by default."""
    slow = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(first + 4, first + 60))
    return [*range(first, first + 4), *slow]


async def to_its_end(core: SandboxCore) -> None:
    """On to clock.end, else until nothing is left to happen."""
    end = core.simulation.end
    await (core.clock.advance_to_idle() if end is None else core.clock.advance_to(end))


@pytest.mark.parametrize("seed", seeds(0))
@pytest.mark.parametrize("success", [1.0, 0.4])
def test_w4_what_is_sent_and_kept_is_what_a_run_of_the_scenario_writes(
    seed: int, success: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = loaded(troubled(seed))
    core, network = SandboxCore(scenario), NoNetwork(monkeypatch, seed, success)
    asyncio.run(to_its_end(core))
    told = lines(Result(core.simulation.trace))
    written = lines(dialsim.run(scenario))
    sent = [line.body for line in told if line.attempt != b"null"]
    assert Counter(sent) == Counter(network.bodies)
    assert {line.body for line in told} == {line.body for line in written}
    assert [line.body for line in told if line.attempt == b"null"] == [
        line.body for line in written if line.attempt == b"null"
    ]


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("scripted", ()),
        ("retention", ("clock.end=2026-01-05T02:20:00Z", "engine.webhookDelay=5m")),
        ("queue-churn", ("clock.end=2026-01-05T02:20:00Z",)),
    ],
)
def test_w4_what_a_receiver_gets_over_http_is_what_a_run_writes(
    name: str, overrides: tuple[str, ...]
) -> None:
    path = SCENARIOS / f"{name}.yaml"
    with Receiver() as receiver:
        receiver.answer(*(Answer(status) for status in (500, 503, 302)))
        with dialsim.Sandbox(path, overrides, webhook_url=receiver.url) as sandbox:
            end = None if not overrides else overrides[0].partition("=")[2]
            sandbox.clock.advance(until="idle") if end is None else sandbox.clock.advance(to=end)
            told, here = lines(sandbox.result()), sandbox.url
        got = Counter(request.body for request in receiver.requests)
    run = dialsim.run(dialsim.load(path, overrides=[*overrides, f"service.publicUrl={here}"]))
    assert set(got) == {line.body for line in lines(run)} != set()
    assert got == Counter(line.body for line in told)


def command(core: SandboxCore, rng: random.Random) -> Command:
    """A random command, allowed or not."""
    account = rng.choice([one for one in core.accounts if one.views])
    view = rng.choice(account.views)
    view.catch_up()
    if len(view.calls) and rng.random() < 0.4:
        return ReanalyzeCall(**view.position._asdict(), call=rng.randrange(len(view.calls)))
    if rng.random() < 0.3:
        url = rng.choice((None, URL, f"{URL}other"))
        changes = rng.choice(({"webhookUrl": url}, {"maxConcurrentCalls": rng.randrange(4)}))
        return ChangeOrganization(organization=account.block.position, changes=changes)
    if rng.random() < 0.2:
        body = {"startDateTime": "2026-01-05T02:00:00Z", "maxAttempts": 2, "retryInterval": 300_000}
        return ScheduleCampaign(**view.position._asdict(), body=body)
    often, seldom = ("pause", "resume", "resume"), ("cancel", "delete")
    kind = rng.choice(seldom if rng.random() < 0.05 else often)
    return SteerCampaign(**view.position._asdict(), kind=kind)


@pytest.mark.parametrize("seed", seeds(100))
def test_t4_whatever_is_commanded_meanwhile_the_trace_tells_later_what_was_sent(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    core = SandboxCore(loaded(troubled(seed)))
    network, before = NoNetwork(monkeypatch, seed, 0.6), list[Line]()

    async def scene() -> None:
        nonlocal before
        for _ in range(40):
            with suppress(Refused):
                await (
                    core.clock.advance_to_next_event()
                    if rng.random() < 0.5
                    else core.clock.advance_by(
                        rng.choice((0, 700, 20_000, 20_000, 300_000, 1_000_000))
                    )
                )
            for _ in range(rng.randrange(4)):
                with suppress(Refused):
                    core.carry_out(command(core, rng))
            await core.sender.settled()
            told = lines(Result(core.simulation.trace.snapshot()))
            assert told[: len(before)] == before
            before = told
        await core.close()

    asyncio.run(scene())
    sent = [line.body for line in before if line.attempt != b"null"]
    assert Counter(sent) == Counter(network.bodies)
    listed = core.webhooks.rows(np.arange(len(before)))
    assert [row["body"] for row in listed] == [json.loads(line.body) for line in before]
    assert all(line.response != b"null" for line in before if line.attempt != b"null")
