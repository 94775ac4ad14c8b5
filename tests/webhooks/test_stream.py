"""The webhook stream over random scenarios, held to a plain reading of the same trace."""

from __future__ import annotations

import io
import json
import random
from collections import defaultdict
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import dialsim
from dialsim.engine.trace import CHANGES, Trace
from dialsim.interface.instants import parse_instant
from dialsim.interface.payload import mask_agent_params, mask_call_result, mask_tel
from dialsim.results.result import Result
from engine.readings import loaded
from oracle.scenarios import random_scenario
from webhooks.payload_rules import broken

FAST = range(20)
SEEDS = [*FAST, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 60))]
RATES = {
    "silent": 0.1,
    "agentError": 0.1,
    "notRecorded": 0.1,
    "analysisUnavailable": 0.2,
    "analysisFailed": 0.2,
    "lateResult": 0.5,
}
ANALYSIS = {
    "funnel": [{"step": "Greeted", "share": 0.9}, {"step": "Promised", "share": 0.4}],
    "fields": {"promise": {"type": "boolean", "values": {"true": 0.35, "false": 0.65}}},
}
ENDS = ("COMPLETED", "NO_ANSWER", "BUSY", "FAILED")
FLAWS = ("", "", " silent", " agentError", " notRecorded", " analysisUnavailable")
FLAWS += (" analysisFailed", " analysisFailedLate")


class Line(NamedTuple):
    at: int
    attempt: int | None
    response: int | str | None
    received: bool
    payload: dict[str, Any]


def troubled(seed: int) -> dict[str, Any]:
    """A nasty scenario with a receiver that fails, retention, flaws by script and by chance."""
    rng, scenario = random.Random(seed), random_scenario(seed)
    scenario.setdefault("engine", {})["webhookDelay"] = rng.choice(
        (0, 0, "1s", "45s", "5m", "302s", "11m", "2h")
    )
    for behaviour in scenario["behaviours"].values():
        behaviour["rates"] = RATES
        behaviour["analysisDelay"] = rng.choice(
            ("0s", "20s", {"dist": "exponential", "mean": "1m"})
        )
        behaviour["lateResultDelay"] = {"dist": "uniform", "low": "1m", "high": "1h"}
    for organization in scenario["organizations"]:
        latency = {"dist": "lognormal", "mean": rng.choice(("300ms", "6s")), "sd": "5s"}
        receiver = {"latency": latency, "errorRate": rng.choice((0.0, 0.2, 0.6))}
        if rng.random() < 0.85:
            organization["webhook"] = {"url": "https://example.test/hook", "receiver": receiver}
        spans = {"audio": "30s", "personalData": "2m", "output": "40s"}
        organization["retention"] = {k: v for k, v in spans.items() if rng.random() < 0.5}
        for agent in organization["agents"]:
            agent["analysis"] = ANALYSIS
        for campaign in organization["campaigns"]:
            _flaw(rng, campaign)
    return scenario


def _flaw(rng: random.Random, campaign: dict[str, Any]) -> None:
    for person in campaign["recipients"]:
        steps = [step.strip() for step in person["script"].split(";")]
        steps = [
            step + rng.choice(FLAWS) if step.startswith("answered") else step for step in steps
        ]
        person["script"] = "; ".join(steps)
        person["agentParams"] = {"amount": rng.randint(1, 9), "metadata__ref": "A-1"}


@cache
def run(seed: int) -> Result:
    """The run, with two re-analyses and two changes of the URL on the way."""
    rng = random.Random(seed)
    simulation = dialsim.Simulation(loaded(troubled(seed)))
    world = simulation.trace.world
    end = world.scenario.clock.end
    for _ in range(3):
        target = simulation.now + timedelta(minutes=rng.randint(1, 40))
        if end is not None and parse_instant(target.isoformat()) > end:
            break
        simulation.advance(to=target)
        for block in world.organizations:
            for campaign in block.campaigns:
                deleted = any(
                    (row.organization, row.campaign, row.cause)
                    == (block.position, campaign.position, "delete")
                    for row in simulation.trace.campaigns
                )
                if not deleted:
                    simulation.reanalyze(f"{block.name}/{campaign.name}", rng.choice((0.5, 1.0)))
        url = rng.choice((None, "https://example.test/other"))
        simulation.set_webhook_url(url, world.organizations[0].name)
    return Result(simulation.run())


@cache
def lines(seed: int) -> tuple[Line, ...]:
    read = [json.loads(line) for line in written(run(seed))]
    return tuple(
        Line(
            parse_instant(line["at"]),
            line["attempt"],
            line["response"],
            line["received"],
            line["body"]["payload"],
        )
        for line in read
    )


Call = tuple[int, int, int, int]
"""organization, campaign, recipient and number of a call"""


class Plain:
    """The trace and the analyses' rows, call by call in plain Python."""

    def __init__(self, result: Result) -> None:
        self.trace: Trace = result.trace
        world = self.trace.world
        self.rows: defaultdict[Call, list[tuple[int, str, str]]] = defaultdict(list)
        names = {
            (block.name, campaign.name): (block.position, campaign.position)
            for block in world.organizations
            for campaign in block.campaigns
        }
        for row in result.transitions.itertuples():
            place = names[row.organization, row.campaign]
            call = (*place, row.recipient, row.call)
            self.rows[call].append((row.at.value // 10**6, row.to_status, row.cause))
        self.people: defaultdict[tuple[int, int, int], list[Call]] = defaultdict(list)
        for call in sorted(self.rows):
            self.people[call[:3]].append(call)
        self.ids = dict(
            zip(
                result.calls.call_id,
                (
                    (*names[o, c], r, n)
                    for o, c, r, n in zip(
                        result.calls.organization,
                        result.calls.campaign,
                        result.calls.recipient,
                        result.calls.call,
                        strict=True,
                    )
                ),
                strict=True,
            )
        )
        self.analysis = dict(zip(result.calls.call_id, result.calls.analysis, strict=True))

    def call_attempt(self, call: Call, at: int) -> int:
        """Return how many of the person's calls were dialled and had ended, including the
        history (P5).
        """
        campaign = self.trace.world.organizations[call[0]].campaigns[call[1]]
        past = campaign.people.history.get(call[2])
        return (0 if past is None else past.call_attempt) + sum(
            any(cause == "ended" and since <= at for since, _, cause in self.rows[other])
            for other in self.people[call[:3]]
        )

    def latest_status(self, call: Call, at: int) -> str:
        """The status of the person's newest call."""
        newest = [c for c in self.people[call[:3]] if self.rows[c][0][0] <= at][-1]
        return [status for since, status, _ in self.rows[newest] if since <= at][-1]

    def end(self, call: Call) -> tuple[int, str, str]:
        """The last change by the engine."""
        engine = {change.cause for change in CHANGES} - {"analysis_failed", "late_result"}
        return [row for row in self.rows[call] if row[2] in engine][-1]


@cache
def plain(seed: int) -> Plain:
    return Plain(run(seed))


def first_posts(seed: int) -> list[Line]:
    return [line for line in lines(seed) if line.attempt in (None, 1)]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_body_is_as_the_interface_says(seed: int) -> None:
    for line in lines(seed):
        assert broken({"type": "CALL_RESULT", "payload": line.payload}) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_w1_one_result_for_each_call_that_owes_one_and_for_no_other(seed: int) -> None:
    reading, sent = plain(seed), defaultdict(list)
    for line in first_posts(seed):
        if not line.payload["isReAnalysis"]:
            sent[reading.ids[line.payload["call"]["id"]]].append(line.payload["call"]["callStatus"])
    expected: dict[Call, list[str]] = {}
    pending = reading.trace.cut or run(seed).summary.unfinished
    for call_id, call in reading.ids.items():
        _, status, cause = reading.end(call)
        if cause == "queue_timeout" or (cause == "ended" and status != "COMPLETED"):
            expected[call] = [status]
        elif cause == "ended":
            verdict = reading.analysis[call_id]
            if verdict in ("analyzed", "no_conversation", "unavailable"):
                expected[call] = ["COMPLETED"]
    if pending:  # what webhookDelay holds back when the run ends is not sent
        expected = {call: status for call, status in expected.items() if call in sent}
    assert sent == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_w4_recipients_and_settings_are_shown_as_at_send_time(seed: int) -> None:
    reading = plain(seed)
    trace = reading.trace
    for line in first_posts(seed):
        payload, call = line.payload, reading.ids[line.payload["call"]["id"]]
        assert payload["recipient"]["callAttempt"] == reading.call_attempt(call, line.at)
        assert payload["recipient"]["latestCallStatus"] == reading.latest_status(call, line.at)
        status = [
            row.to_status
            for row in trace.campaigns
            if (row.organization, row.campaign) == call[:2] and row.at <= line.at
        ][-1]
        limit = [
            row.limit for row in trace.limits if row.organization == call[0] and row.at <= line.at
        ][-1]
        assert payload["campaign"]["status"] == status
        assert payload["campaign"]["maxConcurrentCalls"] == limit


@pytest.mark.parametrize("seed", SEEDS)
def test_w2_three_posts_at_most_with_the_stated_waits_and_the_same_body(seed: int) -> None:
    results: defaultdict[tuple[Any, ...], list[Line]] = defaultdict(list)
    table = run(seed).webhooks
    for line, result in zip(lines(seed), table.result, strict=True):
        results[line.payload["call"]["id"], result].append(line)
    for posts in results.values():
        if posts[0].attempt is None:
            assert [(post.response, post.received) for post in posts] == [(None, False)]
            continue
        assert [post.attempt for post in posts] == [*range(1, len(posts) + 1)]
        assert len(posts) <= 3
        assert all(post.payload == posts[0].payload for post in posts)
        assert all(post.response != 200 for post in posts[:-1])
        assert all(post.received for post in posts if post.response == 200)
        for before, after, wait in zip(posts, posts[1:], (1_000, 2_000), strict=False):
            longest = 10_000 if before.response == "timeout" else None
            passed = after.at - before.at - wait
            assert passed == longest if longest else 0 <= passed <= 10_000


@pytest.mark.parametrize("seed", SEEDS)
def test_lines_are_in_the_order_sent_and_the_table_shows_the_same(seed: int) -> None:
    table = run(seed).webhooks
    assert [line.at for line in lines(seed)] == sorted(line.at for line in lines(seed))
    assert (table["at"].astype("int64") == [line.at for line in lines(seed)]).all()
    assert [body["payload"] for body in table.body] == [line.payload for line in lines(seed)]
    responses = [None if pd.isna(value) else value for value in table.response]
    expected = [line.response for line in lines(seed)]
    assert responses == [str(value) if isinstance(value, int) else value for value in expected]


@pytest.mark.parametrize("seed", SEEDS)
def test_d2_flags_turn_true_their_span_after_the_end(seed: int) -> None:
    reading = plain(seed)
    for line in first_posts(seed):
        call = reading.ids[line.payload["call"]["id"]]
        retention = reading.trace.world.organizations[call[0]].settings.retention
        ended = parse_instant(line.payload["call"]["callEndedAt"])
        deleted = any(
            (row.organization, row.campaign) == call[:2]
            and row.cause == "delete"
            and row.at <= line.at
            for row in reading.trace.campaigns
        )
        for flag, span in zip(
            ("audio", "personalData", "output"),
            (retention.audio, retention.personal_data, retention.output),
            strict=True,
        ):
            due = span is not None and line.at >= ended + span
            assert line.payload["dataExpired"][flag] == (due or deleted)


@pytest.mark.parametrize("seed", SEEDS)
def test_a5_re_analyses_follow_a_delivery_and_never_replace_a_good_result(seed: int) -> None:
    results: defaultdict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for line in first_posts(seed):
        results[line.payload["call"]["id"]].append((line.at, line.payload))
    for payloads in results.values():
        assert [payload["isReAnalysis"] for _, payload in payloads] == [False] + [True] * (
            len(payloads) - 1
        )
        assert len({payload["call"]["sessionId"] for _, payload in payloads}) == 1
        good = False
        for _, payload in payloads:
            if payload["dataExpired"]["output"]:
                continue
            fallback = "error" in (payload["callResult"] or {}).get("postCallAnalyticsResult", {})
            assert not (good and fallback)
            good = good or not fallback


@pytest.mark.parametrize("seed", SEEDS)
def test_d1_masks_change_nothing_when_they_are_put_on_again(seed: int) -> None:
    for line in lines(seed):
        recipient, result = line.payload["recipient"], line.payload["callResult"]
        if line.payload["dataExpired"]["personalData"]:
            assert mask_tel(recipient["tel"]) == recipient["tel"]
            assert mask_agent_params(recipient["agentParams"]) == recipient["agentParams"]
            assert recipient["agentParams"]["metadata__ref"] == "A-1"
        if line.payload["dataExpired"]["output"] and result is not None:
            assert mask_call_result(result) == result


@pytest.mark.parametrize("seed", SEEDS)
def test_one_notice_alone_has_the_body_it_has_among_all(seed: int) -> None:
    reading = run(seed).reading
    for part in reading.stream.parts:
        together = [*part.bodies(np.arange(len(part.messages)))]
        alone = [next(part.bodies(np.array([row]))) for row in range(len(part.messages))]
        assert alone == together


@pytest.mark.parametrize("seed", range(12))
def test_a_simulation_stopped_at_an_instant_has_sent_what_the_whole_run_sends_by_then(
    seed: int,
) -> None:
    scenario = loaded(troubled(seed))
    whole = written(Result(dialsim.Simulation(scenario).run()))
    simulation = dialsim.Simulation(scenario)
    instants = sorted({line["at"] for line in map(json.loads, whole)})
    for instant in instants[:: 1 + len(instants) // 4]:
        if parse_instant(instant) > parse_instant(simulation.now.isoformat()):
            simulation.advance(to=instant)
        until = simulation.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        stopped = [line for line in written(Result(simulation.trace)) if sent(line) <= until]
        assert stopped == [line for line in whole if sent(line) <= until]


def sent(line: bytes) -> str:
    at: str = json.loads(line)["at"]
    return at


def written(result: Result) -> list[bytes]:
    file = io.BytesIO()
    result.write_webhooks(file)
    return file.getvalue().splitlines()


def test_the_random_scenarios_meet_every_kind_of_line() -> None:
    every = [line for seed in FAST for line in lines(seed)]
    assert {line.response for line in every} == {200, 500, "timeout", None}
    assert {line.payload["call"]["callStatus"] for line in every} == {*ENDS, "CANCELLED"}
    assert any(line.payload["isReAnalysis"] for line in every)
    assert {line.payload["recipient"]["latestCallStatus"] for line in every} >= {
        *ENDS,
        *("SCHEDULED", "INITIATED", "CANCELLED", "ANALYSIS_FAILED"),
    }
    for flag in ("audio", "personalData", "output"):
        assert {line.payload["dataExpired"][flag] for line in every} == {True, False}
