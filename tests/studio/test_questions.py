"""Questions run in the background, report their progress, and can be stopped."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import dialsim
from dialsim.errors import DialsimError, ExperimentError
from dialsim.experiments.plan_text import plan_headline
from dialsim.studio.questions import (
    Inquiry,
    Question,
    answered,
    cheapest_reaching,
    fewest_lines,
    what_helps,
)
from dialsim.studio.state import StudioState

FIRST = Path(__file__).parents[2] / "scenarios/first-campaign.yaml"


@pytest.fixture(scope="module")
def small() -> StudioState:
    return StudioState.of(FIRST).set("people", "60")


def none(*_: object) -> None:
    pass


@pytest.mark.slow
def test_the_fewest_lines_are_those_of_a_plan(small: StudioState) -> None:
    question = fewest_lines(small, "Mon 12:00")
    assert question.command == (
        f"dialsim plan {FIRST} --set organizations.Acme.campaigns.January.recipients.count=60 "
        "--vary organizations.Acme.maxConcurrentCalls=1..40 --goal 'p95(finish) <= Mon 12:00'"
    )
    reply = answered(question, none, none)
    lines = "organizations.Acme.maxConcurrentCalls"
    plan = dialsim.plan(small.scenario, lines, "1..40", "p95(finish) <= Mon 12:00", jobs=1)
    assert reply.headline == plan_headline(plan)
    assert reply.result == plan
    assert small.with_lines(*reply.lines).scenario.organizations[0].max_concurrent_calls == (
        plan.value
    )
    assert [table.title for table in reply.tables][-1] == "Value tried"


def test_a_process_comes_back_with_the_answer_and_its_evidence(small: StudioState) -> None:
    progress = []
    inquiry = Inquiry(what_helps(small), lambda inquiry: progress.append(inquiry.progress))
    reply = inquiry.wait()
    assert inquiry.is_over
    assert progress[-1][0] == progress[-1][1] > 0
    assert reply.headline == answered(inquiry.question, none, none).headline
    assert [table.title for table in reply.tables] == ["Changed by"]
    if reply.lines:  # they can be taken over
        assert len(small.with_lines(*reply.lines).differences) == 1 + len(reply.lines)


@pytest.mark.slow
def test_the_cheapest_way_to_reach_a_share(small: StudioState) -> None:
    reply = answered(cheapest_reaching(small, 0.6), none, none)
    assert "smallest mean(cost)" in reply.headline
    assert [line.rpartition(".")[2].partition("=")[0] for line in reply.lines] == [
        "maxAttempts",
        "maxConcurrentCalls",
    ]
    # one attempt has no interval that a second could wait for
    once = small.set("maxAttempts", "1").set("retryInterval", "0")
    assert answered(cheapest_reaching(once, 0.5), none, none).result.met


def test_what_can_not_be_asked_says_why(small: StudioState) -> None:
    with pytest.raises(ExperimentError, match="someday"):
        fewest_lines(small, "someday")
    with pytest.raises(ExperimentError, match="more than 0 % and less than 100 %"):
        cheapest_reaching(small, 1.5)
    never = small.with_lines(
        "organizations.Acme.campaigns.January.schedule=", "clock.start=2026-01-05T02:00:00Z"
    )
    with pytest.raises(ExperimentError, match="never scheduled"):
        cheapest_reaching(never, 0.5)


def endless(state: StudioState) -> Question:
    return fewest_lines(state.set("people", "1000000"), "Fri 12:00")


def test_a_question_can_be_stopped(small: StudioState) -> None:
    inquiry = Inquiry(endless(small))
    inquiry.stop()
    with pytest.raises(DialsimError, match="stopped, as asked"):
        inquiry.wait()


def test_a_killed_process_is_told_of(small: StudioState) -> None:
    inquiry = Inquiry(endless(small))
    os.kill(inquiry.pid, signal.SIGKILL)
    with pytest.raises(DialsimError, match="was killed, perhaps for want of memory"):
        inquiry.wait()
