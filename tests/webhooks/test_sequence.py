"""Commands from outside come after what left on their instant, and never change it (T4)."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialsim
from dialsim.engine.trace import CallLog
from dialsim.engine.world import CampaignBlock
from dialsim.interface.instants import format_instant, parse_instant
from dialsim.results.result import Result
from dialsim.testing import Sketch
from engine.readings import loaded
from webhooks.test_stream import troubled

NINE = parse_instant("2026-01-05T02:00:00Z")
HOOK = "https://example.test/hook"
Command = Callable[[dialsim.Simulation], object]
Scenario = dict[str, Any]
RETRY = {"max_attempts": 2, "retry_interval": "5m"}


def iso(seconds: float) -> str:
    return format_instant(NINE + round(seconds * 1000))


def sketch(*scripts: str, receiver: Any = None, body: Any = None, **engine: Any) -> Sketch:
    """One campaign, all people called at once; analyses take 20 s."""
    webhook = {"url": HOOK, "receiver": {"latency": "200ms"} | (receiver or {})}
    everybody = Sketch(300, **engine).having(webhook=webhook)
    return everybody.campaign("January", *scripts, **(body or {}))


def lines(simulation: dialsim.Simulation) -> list[bytes]:
    """The POSTs of a run."""
    file = io.BytesIO()
    Result(simulation.trace).write_webhooks(file)
    return file.getvalue().splitlines()


def left(simulation: dialsim.Simulation) -> list[bytes]:
    """The POSTs that have left by now; where nothing is left to happen, others follow."""
    now = format_instant(milliseconds(simulation.now))
    return [line for line in lines(simulation) if json.loads(line)["at"] <= now]


def milliseconds(instant: datetime) -> int:
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def live(written: Sketch) -> dialsim.Simulation:
    return dialsim.Simulation(written.scenario())


def steered(written: Sketch, at: float, *commands: Command) -> list[Any]:
    """The POSTs of a run with commands given when the work of an instant is done."""
    simulation = live(written)
    simulation.advance(to=iso(at))
    for command in commands:
        command(simulation)
    simulation.run()
    return [json.loads(line) for line in lines(simulation)]


COMMANDS: dict[str, tuple[Command, Callable[[Any], bool]]] = {
    "pause": (
        lambda live: live.pause("January"),
        lambda line: line["body"]["payload"]["campaign"]["status"] == "PAUSED",
    ),
    "cancel": (
        lambda live: live.cancel("January"),
        lambda line: line["body"]["payload"]["campaign"]["status"] == "CANCELLED",
    ),
    "delete": (
        lambda live: live.delete("January"),
        lambda line: line["body"]["payload"]["dataExpired"]["personalData"],
    ),
    "set_concurrency": (
        lambda live: live.set_concurrency(7),
        lambda line: line["body"]["payload"]["campaign"]["maxConcurrentCalls"] == 7,
    ),
    "set_webhook_url-none": (
        lambda live: live.set_webhook_url(None),
        lambda line: line["response"] is None,
    ),
}


@pytest.mark.parametrize("verb", COMMANDS)
def test_w4_a_command_on_the_instant_of_a_post_holds_for_the_next_one(verb: str) -> None:
    # Busy: the POST leaves at 3 s. The other one is answered, and her result is ready at 117 s.
    command, shows = COMMANDS[verb]
    written = sketch("busy 1s", "answered 5s 90s")
    on_the_instant = steered(written, 3, command)
    assert [line["at"] for line in on_the_instant] == [iso(3), iso(117)]
    assert [shows(line) for line in on_the_instant] == [False, True]
    assert on_the_instant == steered(written, 3.001, command)
    assert on_the_instant[0] == steered(written, 3)[0]
    assert [shows(line) for line in steered(written, 2.999, command)] == [True, True]


@pytest.mark.parametrize("verb", COMMANDS)
def test_t4_what_the_file_does_on_the_instant_of_a_post_comes_before_it(verb: str) -> None:
    _, shows = COMMANDS[verb]
    actions: dict[str, tuple[str, Any]] = {
        "set_concurrency": ("setConcurrency", 7),
        "set_webhook_url-none": ("setWebhookUrl", None),
    }
    action = actions.get(verb, (verb, "January"))
    written = sketch("busy 1s", "answered 5s 90s").at(3, *action)
    # a command before, of no account, makes no difference
    touched = steered(written, 1, lambda live: live.set_calling_allowed(True))
    assert [shows(line) for line in touched] == [True, True]
    assert touched == steered(written, 1)


def test_w4_a_call_cancelled_on_the_instant_of_a_post_is_shown_as_it_was_before() -> None:
    # Busy at 3 s, called again from 303 s on, and the first result leaves at 304 s.
    written = sketch("busy 1s", body=RETRY, webhook_delay="301s")
    for at, shown in ((304, "INITIATED"), (303.999, "CANCELLED")):
        sent = steered(written, at, lambda live: live.cancel("January"))
        status = [line["body"]["payload"]["recipient"]["latestCallStatus"] for line in sent]
        assert status == [shown]


def test_t4_many_commands_on_one_instant_come_before_the_milliseconds_after_it() -> None:
    # The first result is ready at 3 s, the second a millisecond later.
    written = sketch("busy 1s", "busy 1.001s", "noAnswer 30s")
    commands = [lambda live, limit=limit: live.set_concurrency(limit) for limit in range(10, 20)]
    sent = steered(written, 3, *commands)
    limits = [line["body"]["payload"]["campaign"]["maxConcurrentCalls"] for line in sent]
    assert limits == [300, 19, 19]


def test_a4_an_analysis_that_fails_after_a_post_and_many_commands_is_not_shown_in_it() -> None:
    # The first result leaves at 403 s; the analysis of the second call, which ends at 383.004 s,
    # fails at 403.004 s.
    script = "busy 1s; answered 1s 77.004s analysisFailed"
    written = sketch(script, body=RETRY, webhook_delay="400s")
    commands = [lambda live: live.set_concurrency(7)] * 10
    sent = steered(written, 402.999, *commands)
    status = [line["body"]["payload"]["recipient"]["latestCallStatus"] for line in sent]
    assert status == ["COMPLETED"]


def test_w6_a_url_set_on_the_instant_of_a_result_is_too_late_for_it() -> None:
    written = sketch("busy 1s", "answered 5s 90s").having(webhook=None)
    sent = steered(written, 3, lambda live: live.set_webhook_url(HOOK))
    assert [line["response"] for line in sent] == [None, 200]


def test_w4_the_second_and_third_post_repeat_the_body_whatever_was_commanded_meanwhile() -> None:
    written = sketch("busy 1s", "noAnswer 30s", receiver={"errorRate": 1})
    sent = steered(written, 3, lambda live: live.pause("January"))
    assert [line["at"] for line in sent[:3]] == [iso(3), iso(4.2), iso(6.4)]
    assert [line["body"] for line in sent[:3]] == [sent[0]["body"]] * 3
    status = [line["body"]["payload"]["campaign"]["status"] for line in sent]
    assert status == ["RUNNING"] * 3 + ["PAUSED"] * 3


def test_a5_what_was_delivered_on_the_instant_of_the_command_is_analyzed_again() -> None:
    # Both conversations' results are ready, and sent, at 30 s: 2 + 1 + 7 + 20.
    written = sketch("answered 1s 7s", "answered 1s 7s")
    again = steered(written, 30, lambda live: live.reanalyze("January"))
    assert [line["at"] for line in again] == [iso(30)] * 2 + [iso(50)] * 2
    assert [line["body"]["payload"]["isReAnalysis"] for line in again] == [False] * 2 + [True] * 2
    early = steered(written, 29.999, lambda live: live.reanalyze("January"))
    assert [line["at"] for line in early] == [iso(30)] * 2
    assert len(steered(written.at(30, "reanalyze", "January", share=1), 30)) == 2


def test_a5_a_fallback_that_was_sent_stays_though_the_next_command_finds_a_good_result() -> None:
    written = sketch(body={"recipients": {"count": 100}}).behaviour(
        "default", outcomes={"answered": 1}, talk_time="7s", analysis_delay="0s",
        rates={"analysisUnavailable": 0.5},
    )  # fmt: skip
    simulation = live(written)
    simulation.advance(hours=1)
    sent = []
    for _ in range(4):
        simulation.reanalyze("January")
        sent.append(left(simulation))
    for before, after in pairwise(sent):
        assert after[: len(before)] == before
    payloads = [json.loads(line)["body"]["payload"] for line in sent[-1]]
    good, fallbacks_again = set(), 0
    for payload in payloads:
        call, found = payload["call"]["id"], payload["callResult"]["postCallAnalyticsResult"]
        if "error" in found:
            assert call not in good
            fallbacks_again += payload["isReAnalysis"]
        else:
            good.add(call)
    assert fallbacks_again > 20
    assert len(sent[0]) < len(sent[1]) < len(sent[3])


def test_posts_that_a_command_brings_about_come_behind_those_of_its_instant() -> None:
    # January's result is ready at 10 s, February's at 60 s; the former's re-analysis as well.
    later = {"tel": "0812345699", "script": "busy 58s"}
    written = sketch("answered 1s 7s").campaign("February", later)
    written = written.behaviour("default", analysis_delay="0s")
    sent = steered(written, 60, lambda live: live.reanalyze("January"))
    shown = [(line["at"], line["body"]["payload"]["campaign"]["name"]) for line in sent]
    assert shown == [(iso(10), "January"), (iso(60), "February"), (iso(60), "January")]


def test_a_log_that_is_made_after_some_turns_knows_the_turns_of_its_rows() -> None:
    simulation = live(sketch("busy 1s"))
    trace = simulation.trace
    for _ in range(2):
        simulation.set_calling_allowed(True)
    late = CallLog(trace.turns)
    trace.calls[0].append(late)
    late.append(NINE, 0)
    simulation.set_calling_allowed(True)
    late.append(NINE, 0)
    late.append(NINE, 0)
    assert trace.turn == 3
    assert late.turns(3).tolist() == [2, 3, 3]
    assert trace.calls[0][0].turns(1).tolist() == [0]


def random_command(simulation: dialsim.Simulation, rng: random.Random) -> None:
    """One command, which may be refused."""
    world = simulation.trace.world
    block = rng.choice(world.organizations)
    name = f"{block.name}/{rng.choice(block.campaigns).name}"
    commands: list[Callable[[], object]] = [
        lambda: simulation.pause(name),
        lambda: simulation.resume(name),
        lambda: simulation.reanalyze(name, rng.choice((0.5, 1.0))),
        lambda: simulation.reanalyze(name),
        lambda: simulation.set_concurrency(rng.randint(0, 5), block.name),
        lambda: simulation.set_webhook_url(rng.choice((None, HOOK)), block.name),
        lambda: simulation.add_campaign(added(block.campaigns, simulation.now), block.name),
        *([lambda: simulation.cancel(name), lambda: simulation.delete(name)][: rng.choice((0, 2))]),
    ]
    with suppress(dialsim.Refused):
        rng.choice(commands)()


def added(campaigns: list[CampaignBlock], now: datetime) -> Scenario:
    """A campaign like the organization's first, called at once."""
    people = [{"tel": f"08123456{n}", "script": "busy 1s; answered 1s 7s"} for n in (70, 71)]
    name = f"Added {len(campaigns)}"
    every = [
        {"dayOfWeek": day, "time": [{"start": "00:00", "end": "23:59"}]} for day in range(1, 8)
    ]
    schedule = {"startDateTime": now.isoformat(), "timeWindows": every}
    return {
        "name": name,
        "agent": campaigns[0].agent.name,
        "recipients": people,
        "schedule": schedule | {"maxAttempts": 2, "retryInterval": 300_000},
    }


@given(st.integers(0, 2000), st.randoms(use_true_random=False))
@settings(max_examples=8)
def test_t4_what_has_been_read_of_the_stream_never_changes(seed: int, rng: random.Random) -> None:
    scenario = loaded(troubled(seed))
    quiet = dialsim.Simulation(scenario)
    quiet.run()
    eventful = sorted({json.loads(line)["at"] for line in lines(quiet)})
    simulation, seen = dialsim.Simulation(scenario), list[bytes]()
    for target in sorted(rng.sample(eventful, min(len(eventful), 6))):
        if parse_instant(target) > milliseconds(simulation.now):
            simulation.advance(to=target)
        for _ in range(rng.choice((1, 1, 2))):
            random_command(simulation, rng)
            now = left(simulation)
            assert now[: len(seen)] == seen
            seen = now
        simulation.advance(until="nextEvent")
    simulation.run()
    assert lines(simulation)[: len(seen)] == seen
