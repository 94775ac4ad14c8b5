"""A golden file per row of the interface's section 6.3, and per form that a payload can take.

Each holds the lines of `webhooks.jsonl` of a small scripted run. After a change that is meant,
`pytest --dialsim-update` writes them anew; read the difference.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dialsim
from dialsim.results.result import Result
from dialsim.testing import Sketch
from webhooks.payload_rules import broken

GOLDEN = Path(__file__).parent / "golden"
FUNNEL = [{"step": "Greeted", "share": 1}, {"step": "Identified", "share": 1}]
FIELDS = {
    "promise": {"type": "boolean", "required": True, "values": {"true": 1}},
    "amount": {"type": "number", "description": "Amount promised", "values": {"1500": 1}},
    "rate": {"type": "number", "values": {"0.5": 1}},
    "mood": {"type": "string", "enumVariant": ["calm", "upset"], "values": {"calm": 1}},
}
PERSON = {
    "tel": "0812345678",
    "customerName": "สมชาย ใจดี",
    "agentParams": {"amount": 1500, "metadata__ref": "A-1"},
}
WEBHOOK = {"url": "https://example.test/hook", "receiver": {"latency": "200ms"}}


def draft(
    script: str, *others: Any, analysis: Any = None, body: Any = None, **engine: Any
) -> Sketch:
    """One person with a script, one agent, one campaign, one receiver without chance."""
    agent = {
        "name": "Reminder",
        "paramsSchema": {"amount": {"type": "number", "required": True, "default": 0}},
        "analysis": {"funnel": FUNNEL, "fields": FIELDS} if analysis is None else analysis,
    }
    people = (PERSON | {"script": script}, *others)
    return (
        Sketch(1, start="Mon 08:00", **engine)
        .having(caller_ids=["021000001"], webhook=WEBHOOK, agents=[agent])
        .campaign("January", *people, agent="Reminder", start="Mon 09:00", **(body or {}))
    )


def lines(draft: Sketch, steer: Callable[[dialsim.Simulation], object] | None = None) -> Any:
    """The lines of a run, steered by hand if need be."""
    simulation = dialsim.Simulation(draft.scenario())
    if steer is not None:
        steer(simulation)
    file = io.BytesIO()
    Result(simulation.run()).write_webhooks(file)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def reanalyzed(simulation: dialsim.Simulation) -> None:
    simulation.advance(to="2026-01-05T03:00:00Z")
    simulation.reanalyze("January")


def cancelled(simulation: dialsim.Simulation) -> None:
    simulation.advance(to="2026-01-05T02:00:01Z")
    simulation.cancel("January")


def deleted(simulation: dialsim.Simulation) -> None:
    simulation.advance(to="2026-01-05T02:00:05Z")
    simulation.delete("January")


TALK = "answered 5s 90s"
CASES: dict[str, Any] = {
    "completed": (draft(TALK),),
    "completed-v1": (draft(TALK, analysis={"version": "v1", "fields": FIELDS}),),
    "completed-without-analysis-settings": (draft(TALK, analysis={}),),
    "completed-no-conversation": (draft(f"{TALK} silent"),),
    "completed-unavailable": (draft(f"{TALK} analysisUnavailable"),),
    "completed-late": (draft(f"{TALK} analysisFailedLate"),),
    "no-answer-busy-failed": (
        draft(
            "noAnswer 25s; busy 1s; failed 0s",
            body={
                "max_attempts": 3,
                "retry_interval": "5m",
                "end": "Mon 16:00",
                "windows": "Mon 09:00-12:00",
            },
        ),
    ),
    "queue-timeout": (
        draft(
            "answered 5s 90s",
            {"tel": "0812345679", "agentParams": {"amount": 1}, "script": "busy 1s"},
            queue_timeout="30s",
            queue_limit="unlimited",
        ),
    ),
    "re-analysis": (draft(TALK), reanalyzed),
    "re-analysis-of-a-fallback": (draft(f"{TALK} silent"), reanalyzed),
    "without-url": (draft(TALK).having(webhook=None),),
    "audio-expired": (draft(TALK).having(retention={"audio": "20s"}),),
    "personal-data-expired": (draft(TALK).having(retention={"personalData": "20s"}),),
    "output-expired": (draft(TALK).having(retention={"output": "20s"}),),
    "deleted-under-way": (draft(TALK), deleted),
    "cancelled-by-the-user": (draft(TALK), cancelled),
    "expired": (draft(TALK, body={"end": "Mon 09:00:01"}),),
    "agent-error": (draft(f"{TALK} agentError"),),
    "not-recorded": (draft(f"{TALK} notRecorded"),),
    "analysis-failed": (draft(f"{TALK} analysisFailed"),),
}
SILENT = {"cancelled-by-the-user", "expired", "agent-error", "not-recorded", "analysis-failed"}


@pytest.mark.parametrize("case", CASES)
def test_w1_the_lines_are_those_of_the_golden_file(case: str, pytestconfig: pytest.Config) -> None:
    found, file = lines(*CASES[case]), GOLDEN / f"{case}.json"
    if pytestconfig.getoption("--dialsim-update"):
        text = json.dumps(found, ensure_ascii=False, indent=2)
        file.write_text(f"{text}\n", encoding="utf-8")
    assert found == json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_w1_golden_bodies_are_as_the_interface_says_or_there_is_none(case: str) -> None:
    golden = json.loads((GOLDEN / f"{case}.json").read_text())
    assert bool(golden) == (case not in SILENT)
    assert [fault for line in golden for fault in broken(line["body"])] == []


def test_every_golden_file_belongs_to_a_case() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(CASES)
