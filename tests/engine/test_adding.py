"""Campaigns that are added while a simulation runs (C11; see `rows`)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pandas as pd
import pytest

from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import Trace
from dialsim.errors import Refused, ScenarioError
from dialsim.interface import CampaignStatus
from dialsim.results.result import Result
from dialsim.testing import Sketch, assert_no_violations
from engine.chancy import chancy_scenario
from engine.readings import loaded
from engine.rows import START, calls, dials, life, lines, refusals
from oracle.given import clock_start
from oracle.scenarios import Scenario, iso

TABLES = ("calls", "transitions", "webhooks", "recipients", "campaigns")
AT_ONCE = {"startDateTime": "2026-01-05T03:00:00Z"}
"""The body of a schedule request."""


def block(name: str = "B", *scripts: str, **keys: Any) -> dict[str, Any]:
    """A campaign's block with a person per script."""
    people = [
        {"tel": f"0899{index:06d}", "script": script}
        for index, script in enumerate(scripts or ("busy 1s",))
    ]
    return {"name": name, "agent": "Agent", "recipients": people, **keys}


def one_running(slots: int = 1, **engine: Any) -> Simulation:
    """Campaign A with one person: setup until 2, ringing until 5, BUSY."""
    return Simulation(Sketch(slots, start=START, **engine).campaign("A", "busy 3s").scenario())


def tables(trace: Trace) -> dict[str, pd.DataFrame]:
    result = Result(trace)
    return {name: getattr(result, name).astype(object) for name in TABLES}


def halves(seed: int) -> tuple[Scenario, Scenario, int, Scenario]:
    """A nasty scenario with its last campaign and without; its organization, and the request.

    No action of the file schedules the campaign.
    """
    whole = chancy_scenario(seed)
    whole["clock"] = {"start": iso(clock_start(whole)), **whole.get("clock", {})}
    position = seed % len(whole["organizations"])
    owner = whole["organizations"][position]
    last = owner["campaigns"][-1]
    body = last.pop("schedule", None) or {"startDateTime": whole["clock"]["start"]}
    last.pop("scheduledAt", None)
    owner["timeline"] = [
        action for action in owner.get("timeline", []) if action.get("campaign") != last["name"]
    ]
    without = json.loads(json.dumps(whole))
    del without["organizations"][position]["campaigns"][-1]
    return whole, without, position, body


@pytest.mark.parametrize("seed", range(15))
def test_c11_an_added_campaign_is_to_the_row_what_it_would_be_in_the_file(seed: int) -> None:
    whole, without, position, body = halves(seed)
    owner = whole["organizations"][position]
    name = f"{owner['name']}/{owner['campaigns'][-1]['name']}"
    from_file, added = Simulation(loaded(whole)), Simulation(loaded(without))
    added.add_campaign(owner["campaigns"][-1], owner["name"])
    for live in (from_file, added):
        with suppress(Refused):
            live.schedule(name, body)
    expected, found = tables(from_file.run()), tables(added.run())
    assert_no_violations(added)
    for table in TABLES:
        pd.testing.assert_frame_equal(found[table], expected[table])
    summaries = [Result(live.trace).summary for live in (from_file, added)]
    assert summaries[0].to_json() == summaries[1].to_json()


def test_c11_it_is_a_draft_until_it_is_scheduled() -> None:
    live = one_running(2)
    live.advance(seconds=1)
    live.add_campaign(block())
    assert live.status("B") is CampaignStatus.DRAFT
    live.advance(seconds=1)
    live.schedule("B", AT_ONCE)
    live.run()
    assert_no_violations(live)
    assert dials(live.trace) == ["0 A 0.1", "2 B 0.1"]
    assert life(live.trace)[-3:] == lines("""
        2 B SCHEDULED>RUNNING start
        5 A RUNNING>COMPLETED all_final
        5 B RUNNING>COMPLETED all_final""")


def test_c11_its_own_request_is_made_at_once() -> None:
    live = one_running(2)
    live.advance(seconds=1)
    live.add_campaign(block(schedule=AT_ONCE))
    assert live.status("B") is CampaignStatus.RUNNING
    assert dials(live.trace) == ["0 A 0.1", "1 B 0.1"]


def test_c11_or_at_its_scheduled_at() -> None:
    live = one_running(2)
    live.add_campaign(block(schedule=AT_ONCE, scheduledAt="2026-01-05T03:00:07Z"))
    live.run()
    assert dials(live.trace) == ["0 A 0.1", "7 B 0.1"]
    assert_no_violations(live)


def test_t4_its_request_comes_after_what_the_file_does_in_that_instant() -> None:
    sketch = Sketch(1, start=START).campaign("A", "busy 3s").at(7, "setCallingAllowed", False)
    live = Simulation(sketch.scenario())
    live.add_campaign(block(schedule=AT_ONCE, scheduledAt="2026-01-05T03:00:07Z"))
    live.run()
    assert refusals(live.trace) == [
        "7 B schedule CALLING_NOT_ALLOWED: Your organization is not allowed to make calls."
    ]
    assert live.status("B") is CampaignStatus.DRAFT


def test_c11_where_its_request_is_refused_at_once_nothing_is_added() -> None:
    live = one_running()
    live.set_calling_allowed(False)
    twice = {"tel": "0811111111", "script": "busy 1s"}
    keys = {"recipients": [twice, twice], "schedule": AT_ONCE}
    with pytest.raises(Refused, match="not allowed"):
        live.add_campaign(block(**keys))
    assert Result(live.trace).summary.warnings == ()
    live.set_calling_allowed(True)
    live.add_campaign(block(**keys))
    assert [part.name for part in Result(live.trace).summary.campaigns] == ["A", "B"]
    assert len(Result(live.trace).summary.warnings) == 1
    live.run()
    assert_no_violations(live)


def test_c11_its_people_follow_a_behaviour_that_was_set_before_it_came() -> None:
    live = Simulation(
        Sketch(2, start=START)
        .behaviour("slow", setup_time="5s")
        .campaign("A", "busy 3s")
        .scenario()
    )
    live.set_behaviour("Agent", "slow")
    live.add_campaign(block(schedule=AT_ONCE))
    live.run()
    assert calls(live.trace, "B")[-2:] == lines("""
        5 0.1 INITIATED>ringing ringing
        6 0.1 INITIATED>BUSY ended""")


def test_d3_whom_its_history_reached_counts_as_reached() -> None:
    live = Simulation(
        Sketch(1, start=START)
        .having(duplicate_call_alert={"window": "1d"})
        .campaign("A", {"tel": "0800000001", "script": "busy 1s"}, requested=None)
        .scenario()
    )
    ended = "2026-01-05T02:59:00Z"
    history = {"callAttempt": 1, "latestCallStatus": "COMPLETED", "lastEndedAt": ended}
    live.add_campaign(block(recipients=[{"tel": "0800000001", "history": history}]))
    with pytest.raises(Refused, match="All recipients are duplicates"):
        live.schedule("A", AT_ONCE | {"removeDuplicates": True})


def test_f2_its_recipients_are_created_when_it_is_added() -> None:
    live = one_running(2)
    live.advance(seconds=1.5)
    live.add_campaign(block())
    table = Result(live.trace).recipients
    assert table["created_at"].astype(str).tolist() == [
        "2026-01-05 03:00:00.000+00:00",
        "2026-01-05 03:00:01.500+00:00",
    ]


def test_its_id_is_the_one_it_fixes_or_that_of_its_place() -> None:
    fixed = "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"
    live, in_file = one_running(), Sketch(1, start=START).campaign("A").campaign("B")
    derived = live.add_campaign(block())
    assert derived == Simulation(in_file.scenario()).trace.world.organizations[0].campaigns[1].id
    assert live.add_campaign(block("C", id=fixed)) == fixed


def test_recipients_come_from_a_csv() -> None:
    live = one_running(3)
    csv = "tel,script\n0811111111,busy 1s\n0822222222,busy 2s\n"
    for name, content in (("B", csv), ("C", csv.encode())):
        live.add_campaign({"name": name, "agent": "Agent"}, csv=content)
    assert Result(live.trace).recipients["tel"].tolist()[1:] == ["0811111111", "0822222222"] * 2


def test_files_are_read_from_the_folder_given(tmp_path: Any) -> None:
    (tmp_path / "people.csv").write_text("tel\n0811111111\n", encoding="utf-8")
    live = one_running()
    live.add_campaign(block(recipients={"file": "people.csv"}), folder=tmp_path)
    assert Result(live.trace).recipients["tel"].tolist()[-1] == "0811111111"


KNOWN = {
    "tel": "0811111111",
    "id": "7B1F4C1E-52a8-4a55-9d0b-2f8f3b0f6a10",
    "agentParams": {"amount": 1},
}
AMOUNT = {"amount": {"type": "number", "required": True}}
BILLING = (
    Sketch(1, start="Mon 10:00")
    .having(caller_ids=["021000001"], agents=[{"name": "Billing", "paramsSchema": AMOUNT}])
    .campaign("A", KNOWN, agent="Billing", requested=None)
)
PERSON = {"tel": "0811111112", "agentParams": {"amount": 1}}


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"name": "A"}, 'name "A" must be unique, but organizations.0.campaigns.0 has it too'),
        ({"name": 5}, 'name must be text: put it in quotes, "5"'),
        ({"agent": "Biling"}, 'agent "Biling" is no agent of this organization; did you mean B'),
        ({"recipients": None}, "recipients is required"),
        ({"recipients": [{"tel": "1"}]}, "recipients.0.agentParams.amount is required"),
        ({"recipients": {"count": 1}}, "recipients.agentParams.amount is required"),
        ({"recipients": {"file": "/etc/hosts"}}, "recipients.file can't be used: no files are"),
        ({"recipients": [PERSON | {"script": "x"}]}, 'recipients.0.script has "x" in step 1'),
        ({"colour": "red"}, "colour is not a known key"),
        ({"schedule": {"startDateTime": "x"}}, "schedule.startDateTime must be a valid ISO 8601"),
        (
            {"schedule": {"startDateTime": "2026-01-05", "callerIds": ["1"]}},
            "schedule: Unknown caller ID: 1",
        ),
        (
            {"scheduledAt": "2026-01-05T02:00:00Z", "schedule": {"startDateTime": "2026-01-05"}},
            "scheduledAt must not be before now, 2026-01-05T03:00:00Z",
        ),
        (
            {"recipients": [PERSON | {"id": "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"}]},
            "recipients have the id 7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10 twice; ids must be unique",
        ),
    ],
)
def test_what_is_wrong_with_a_block_is_told_as_load_tells_it(
    keys: dict[str, Any], says: str
) -> None:
    live = Simulation(BILLING.scenario())
    with pytest.raises(ScenarioError) as error:
        live.add_campaign({"name": "B", "agent": "Billing", "recipients": [PERSON]} | keys)
    assert str(error.value).startswith(f"campaign: {says}")
    assert len(Result(live.trace).summary.campaigns) == 1


def test_q10_an_added_campaign_that_counts_lines_does_not_fit_a_release_interval() -> None:
    live = one_running(release_interval="1m")
    says = "campaign: reserved can't stand beside engine.releaseInterval: lines would be idle"
    with pytest.raises(ScenarioError) as error:
        live.add_campaign(block(reserved=1))
    assert str(error.value).startswith(says)


def test_q10_lines_are_counted_from_when_a_campaign_is_added_that_counts_them() -> None:
    # Until 10 A's calls fill the queue; from then on B, with one line of two, keeps it.
    talk = "answered 0s 58s"
    live = Simulation(Sketch(2, start=START).campaign("A", *[talk] * 8).scenario())
    live.advance(seconds=10)
    live.add_campaign(block("B", talk, talk, reserved=1, schedule=AT_ONCE))
    live.run()
    assert_no_violations(live)
    told = [entry for entry in dials(live.trace) if " B " in entry]
    # two of A stand in the queue before it; they go at 60, and at 120 B takes the line it holds
    assert told == ["120 B 0.1", "180 B 1.1"]


@pytest.mark.parametrize(
    ("csv", "says"),
    [
        ("", "recipients.csv:1:1: there is nothing in this file"),
        ("tel\n1\n", "recipients.csv:1:1: the column agentParams.amount is missing"),
        ("tel,agentParams.amount\n1,x\n", "recipients.csv:2:3: agentParams.amount must be a nu"),
        (
            "tel,agentParams.amount,history.callAttempt,history.latestCallStatus,"
            "history.lastEndedAt\n1,1,1,BUSY,2026-01-06T00:00:00Z\n",
            "recipients.csv:2:12: history.lastEndedAt must not be after now, 2026-01-05T03:00:00Z",
        ),
    ],
)
def test_what_is_wrong_with_a_csv_is_told_by_line_and_column(csv: str, says: str) -> None:
    with pytest.raises(ScenarioError) as error:
        Simulation(BILLING.scenario()).add_campaign({"name": "B", "agent": "Billing"}, csv=csv)
    assert str(error.value).startswith(says)


def test_a_csv_and_recipients_are_not_given_together() -> None:
    live = one_running()
    with pytest.raises(ScenarioError, match="recipients can't stand beside a CSV"):
        live.add_campaign(block(), csv="tel\n1\n")
