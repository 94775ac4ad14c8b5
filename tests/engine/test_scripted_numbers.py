"""Numbers with a script, which the next calls to them follow (P6; see `rows`)."""

from __future__ import annotations

import pandas as pd
import pytest

from dialsim.engine.simulation import Simulation
from dialsim.errors import DialsimError
from dialsim.results.result import Result
from dialsim.scenario.behaviour import format_script, parse_script
from dialsim.testing import Sketch, assert_no_violations
from engine.chancy import chancy_scenario
from engine.readings import loaded
from engine.rows import START, calls, lines, rows

AT_ONCE = {"startDateTime": "2026-01-05T03:00:00Z"}
"""The body of a schedule request."""
RETRY = AT_ONCE | {"maxAttempts": 3, "retryInterval": 300_000}
TEL = "0811111111"


def person(script: str = "busy 1s", tel: str = TEL) -> dict[str, str]:
    return {"tel": tel, "script": script}


def ends(live: Simulation, of: str = "A") -> list[str]:
    """Return the endings of the calls of a campaign that runs to its end."""
    return [line for line in calls(live.run(), of) if line.endswith("ended")]


def draft(*people: dict[str, str]) -> Simulation:
    return Simulation(Sketch(5, start=START).campaign("A", *people, requested=None).scenario())


def test_p6_the_next_calls_follow_the_script_and_then_the_person_reacts_as_before() -> None:
    live = draft(person("noAnswer 9s"))
    live.script(TEL, "failed 0s; busy 3s")
    live.schedule("A", RETRY)
    assert ends(live) == lines("""
        2 0.1 INITIATED>FAILED ended
        307 0.2 INITIATED>BUSY ended
        618 0.3 INITIATED>NO_ANSWER ended""")
    assert_no_violations(live)


def test_p6_the_step_of_a_persons_own_script_is_that_of_the_attempt() -> None:
    live = draft(person("noAnswer 9s; busy 1s"))
    live.script(TEL, "failed 0s")
    live.schedule("A", RETRY | {"maxAttempts": 2})
    assert ends(live)[1] == "305 0.2 INITIATED>BUSY ended"


def test_p6_other_numbers_are_left_alone() -> None:
    live = draft(person("busy 1s"), person("busy 1s", "0822222222"))
    live.script("0822222222", "failed 4s")
    live.schedule("A", AT_ONCE)
    assert ends(live) == ["3 0.1 INITIATED>BUSY ended", "6 1.1 INITIATED>FAILED ended"]


def test_p6_whoever_dials_the_number_takes_the_next_step() -> None:
    live = Simulation(
        Sketch(1, start=START)
        .campaign("A", person())
        .campaign("B", person())
        .organization("Zeta", 1)
        .campaign("C", person(), requested=60)
        .scenario()
    )
    live.script(TEL, "failed 1s; noAnswer 2s")
    ended = [row.change.to_status for row in rows(live.run()) if row.change.cause == "ended"]
    assert ended == ["BUSY", "FAILED", "NO_ANSWER"]  # the first had been dialled before


@pytest.mark.parametrize("when", [0, 1])
def test_p5_a_withdrawn_dial_uses_up_no_step(when: float) -> None:
    live = draft(person("noAnswer 9s"))
    live.script(TEL, "failed 0s; busy 3s")
    live.schedule("A", RETRY | {"maxAttempts": 2})
    live.advance(seconds=when)
    assert live.scripts == {TEL: "busy 3s"}
    live.pause("A")
    assert live.scripts == {TEL: "failed 0s; busy 3s"}
    live.resume("A")
    live.advance(seconds=3)
    assert live.scripts == {TEL: "busy 3s"}
    assert ends(live)[0].endswith("0.1 INITIATED>FAILED ended")
    assert live.scripts == {}
    assert_no_violations(live)


def test_p5_several_withdrawn_dials_give_their_steps_back_in_order() -> None:
    live = draft(person(), person(), person())
    live.script(TEL, "failed 1s; busy 2s; noAnswer 3s; failed 4s")
    live.schedule("A", AT_ONCE)
    assert live.scripts == {TEL: "failed 4s"}
    live.cancel("A")
    assert live.scripts == {TEL: "failed 1s; busy 2s; noAnswer 3s; failed 4s"}


def test_p6_a_script_takes_the_place_of_an_earlier_one_and_none_of_all() -> None:
    live = draft(person("noAnswer 9s"))
    live.script(TEL, "failed 0s")
    live.script(TEL, "busy 3s; busy 4s")
    live.schedule("A", RETRY)
    live.script(TEL, None)
    assert live.scripts == {}
    live.pause("A")  # what this dial took does not come back
    assert live.scripts == {}
    live.resume("A")
    assert ends(live)[0] == "11 0.1 INITIATED>NO_ANSWER ended"


def test_p6_a_campaign_that_is_added_later_meets_the_script_too() -> None:
    live = draft()
    live.script(TEL, "busy 8s")
    added = {"name": "B", "agent": "Agent", "recipients": [person()], "schedule": AT_ONCE}
    live.add_campaign(added)
    assert ends(live, "B") == ["10 0.1 INITIATED>BUSY ended"]


@pytest.mark.parametrize("seed", [2, 5, 9, 10, 17, 20, 21, 23, 34, 35, 40])
def test_p6_nobody_else_reacts_otherwise(seed: int) -> None:
    written = chancy_scenario(seed)
    written["engine"] = {"queueLimit": "unlimited"}
    for owner in written["organizations"]:
        owner["maxConcurrentCalls"], owner["timeline"] = 10_000, []
        for block in owner["campaigns"]:  # with limits per campaign others wait for the dial (Q10)
            block.pop("atMost", None)
            block.pop("reserved", None)
    for behaviour in written["behaviours"].values():
        behaviour.get("answeredOdds", {}).pop("byCallerIdUse", None)  # one dial more tires it
    plain, scripted = Simulation(loaded(written)), Simulation(loaded(written))
    tel = Result(plain.trace).recipients.tel.iloc[0]
    scripted.script(tel, "failed 77s; answered 77s 77s")
    expected, found = others(plain, tel), others(scripted, tel)
    assert_no_violations(scripted)
    assert len(expected) > 20
    assert scripted.scripts != {tel: "failed 1m17s; answered 1m17s 1m17s"}
    pd.testing.assert_frame_equal(expected, found)


def others(live: Simulation, tel: str) -> pd.DataFrame:
    """The calls to all other numbers, when a simulation has gone on to its end."""
    result, place = Result(live.run()), ["organization", "campaign", "recipient"]
    tels = result.recipients.set_index(place).tel
    rows = result.calls.set_index(place).index.map(tels) != tel
    return result.calls[rows].reset_index(drop=True).astype(object)


ANALYZED = (
    Sketch(9, start="Mon 10:00", setup_time=None)
    .agent(analysis={"funnel": [{"step": "Greeted", "share": 1}]})
    .behaviour("default", outcomes={"answered": 1}, talk_time="10s", rates={"notRecorded": 1})
    .campaign("A", "answered 1s 1s agentError", {}, {}, {}, "answered 1s 1s", requested=10)
).scenario()


def test_a1_the_flaw_of_a_step_spoils_the_analysis_and_without_one_it_is_sound() -> None:
    live = Simulation(ANALYZED)
    live.script("0800000000", "answered 1s 1s")
    live.script("0800000001", "answered 1s 1s silent")
    live.script("0800000002", "answered 1s 1s analysisFailed")
    live.advance(minutes=5)
    live.reanalyze("A")
    result = Result(live.run())
    expected = ["analyzed", "no_conversation", "failed", "not_analyzed", "analyzed"]
    assert result.calls.analysis.tolist() == expected
    sent = result.webhooks[["recipient", "result"]].values.tolist()
    assert sorted(sent) == [[0, 0], [0, 1], [1, 0], [1, 1], [4, 0], [4, 1]]


def test_a_copy_of_the_trace_says_what_the_scripts_said() -> None:
    live = Simulation(ANALYZED)
    live.script("0800000001", "answered 1s 1s silent")
    live.advance(minutes=5)
    taken = Result(live.trace.snapshot())
    live.script("0800000001", None)
    assert taken.calls.analysis.tolist()[1] == "no_conversation"


@pytest.mark.parametrize(
    ("tel", "script", "says"),
    [
        ("12 34", "busy 1s", "tel must be a phone number of at most 20 digits"),
        (5, "busy 1s", "tel must be a text, not 5"),
        (TEL, "bussy 1s", 'script has "bussy" in step 1, but steps are .* did you mean busy?'),
        (TEL, "", "script has an empty step 1"),
        (TEL, 3, "script must be a text, not 3"),
    ],
)
def test_what_is_no_number_or_no_script_is_refused(tel: str, script: str, says: str) -> None:
    live = draft()
    with pytest.raises(DialsimError, match=says):
        live.script(tel, script)
    assert live.scripts == {}


@pytest.mark.parametrize(
    "text", ["busy 0s", "failed 1m30s; answered 5s 90s", "answered 0s 1s silent"]
)
def test_a_script_is_written_as_it_is_read(text: str) -> None:
    steps = parse_script(text)
    assert parse_script(format_script(steps)) == steps


def test_generated_people_are_found_by_their_numbers() -> None:
    live = Simulation(GENERATED.scenario())
    people = live.trace.world.organizations[0].campaigns[0].people
    tels = people.tels()
    assert [people.tel(index) for index in range(people.count)] == tels
    live.script(tels[7], "answered 1s 2s")
    assert ends(live) == [
        "6 7.1 INITIATED>COMPLETED ended" if index == 7 else f"33 {index}.1 INITIATED>BUSY ended"
        for index in (7, *range(7), *range(8, 40))
    ]


GENERATED = (
    Sketch(40, start="Mon 10:00")
    .behaviour("default", outcomes={"busy": 1}, ring_time={"busy": "30s"})
    .campaign("A", recipients={"count": 40}, requested=1)
)
