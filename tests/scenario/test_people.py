from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from dialsim.interface import CallStatus
from dialsim.scenario.behaviour import ScriptStep, parse_script
from dialsim.scenario.campaign import GeneratedRecipients, Past
from dialsim.scenario.loading import loads
from dialsim.scenario.people import People, people
from dialsim.testing import Sketch

from .files import FULL


def generated(
    count: int, seed: int = 1, replication: int = 0, organization: int = 0, campaign: int = 0
) -> People:
    recipients = GeneratedRecipients.model_validate(
        {"count": count, "agentParams": {"amount": 100}, "segments": {"vip": 0.1, "mass": 0.9}}
    )
    return people(recipients, seed, replication, organization, campaign)


def test_generated_numbers_are_thai_mobile_numbers_and_unique() -> None:
    tels = generated(100_000).tels()
    assert len(set(tels)) == 100_000
    assert all(re.fullmatch(r"0[689]\d{8}", tel) for tel in tels)
    assert {tel[:2] for tel in tels} == {"06", "08", "09"}


def test_generated_people_are_the_same_however_many_there_are() -> None:
    few, many = generated(10), generated(5000)
    assert few.tels() == many.tels()[:10]
    assert few.customer_names() == many.customer_names()[:10]
    assert few.segment is not None
    assert many.segment is not None
    assert few.segment.tolist() == many.segment[:10].tolist()


@pytest.mark.parametrize("index", [0, 1, 2, 3, 4, 5, 1023, 4999])
def test_one_generated_person_is_the_same_as_among_all(index: int) -> None:
    crowd = generated(5000)
    assert crowd.tel(index) == crowd.tels()[index]
    assert crowd.customer_name(index) == crowd.customer_names()[index]


def test_some_generated_people_are_those_they_are_among_all() -> None:
    crowd, who = generated(10_000), np.array([9_999, 4_096, 0, 4_095, 4_096, 5_000])
    tels, names = crowd.tels(), crowd.customer_names()
    assert crowd.tels(who) == [tels[index] for index in who]
    assert crowd.customer_names(who) == [names[index] for index in who]
    assert crowd.tels(who[:0]) == crowd.customer_names(who[:0]) == []


def test_generated_people_depend_on_seed_and_position_alone() -> None:
    first = generated(20).tels()
    assert generated(20).tels() == first
    others = [generated(20, seed=2), generated(20, organization=1), generated(20, campaign=1)]
    assert all(other.tels() != first for other in others)


def test_generated_people_are_pinned_to_their_values() -> None:
    crowd = generated(3)
    assert crowd.tels() == ["0826273218", "0874309765", "0922346312"]
    assert crowd.customer_names() == ["วิทยา ธรรมดี", "เกียรติศักดิ์ ทวีทรัพย์", "ลัดดา ชื่นใจ"]


def test_p7_segments_are_drawn_anew_in_each_replication_and_numbers_and_names_are_not() -> None:
    crowds = [generated(1000, replication=replication) for replication in range(4)]
    assert all(crowd.tels() == crowds[0].tels() for crowd in crowds)
    assert all(crowd.customer_names() == crowds[0].customer_names() for crowd in crowds)
    drawn = {tuple(crowd.segment.tolist()) for crowd in crowds if crowd.segment is not None}
    assert len(drawn) == 4
    again = generated(1000, replication=3).segment
    assert again is not None
    assert tuple(again.tolist()) in drawn


def test_p7_people_who_are_listed_keep_their_segments_in_every_replication() -> None:
    listed = loads(FULL).organizations[0].campaigns[1].recipients
    found = [people(listed, 1, replication, 0, 1).segment for replication in range(4)]
    assert [None if codes is None else codes.tolist() for codes in found] == [[0]] * 4


def test_segments_have_their_shares() -> None:
    crowd = generated(100_000)
    assert crowd.segments == ("vip", "mass")
    assert crowd.segment is not None
    # 4 standard errors of a share of 0.1 among 100,000
    assert abs(np.mean(crowd.segment == 0) - 0.1) < 4 * (0.1 * 0.9 / 100_000) ** 0.5
    assert crowd.agent_params(7) == {"amount": 100}


def test_a_million_generated_people_cost_nothing_until_they_are_asked_for() -> None:
    crowd = people(GeneratedRecipients.model_validate({"count": 1_000_000}), 1, 0, 0, 0)
    assert crowd.count == 1_000_000
    assert crowd.segment is None
    assert crowd.script is None
    assert len(crowd.tel(999_999)) == 10


def test_listed_people_are_columns_in_the_files_order() -> None:
    crowd = people(loads(FULL).organizations[0].campaigns[1].recipients, 1, 0, 0, 1)
    assert crowd.tels() == ["0812345678"]
    assert crowd.customer_names() == ["สมชาย ใจดี"]
    assert crowd.agent_params(0) == {"amount": 12.5}
    assert crowd.fixed_ids[0] == "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a13"
    assert crowd.segments == ("vip",)
    assert crowd.segment is not None
    assert crowd.segment.tolist() == [0]
    assert crowd.script is not None
    assert crowd.script.tolist() == [0]
    assert crowd.scripts[0][0] == ScriptStep(CallStatus.NO_ANSWER, 25_000)


def listed(*listed_people: str | dict[str, Any]) -> People:
    """The people of a campaign: a script of each, or a recipient as in the file."""
    scenario = Sketch(2).campaign("January", *listed_people).scenario()
    return people(scenario.organizations[0].campaigns[0].recipients, 1, 0, 0, 0)


def test_people_without_a_script_have_code_minus_one_beside_those_with_one() -> None:
    crowd = listed({"tel": "1"}, "busy 1s", "busy 1s")
    assert crowd.script is not None
    assert crowd.script.tolist() == [-1, 0, 0]
    assert len(crowd.scripts) == 1
    assert crowd.segment is None


def test_a_script_reads_step_by_step() -> None:
    assert parse_script("noAnswer 25s; busy 1s;failed 0 ; answered 5s 1m30s agentError;") == (
        ScriptStep(CallStatus.NO_ANSWER, 25_000),
        ScriptStep(CallStatus.BUSY, 1000),
        ScriptStep(CallStatus.FAILED, 0),
        ScriptStep(CallStatus.COMPLETED, 5000, 90_000, "agentError"),
    )


ENDED_MS = 1_767_578_400_000
ENDED = {"lastEndedAt": "2026-01-05T02:00:00Z"}


def test_a_history_is_kept_by_recipient() -> None:
    crowd = listed(
        {"tel": "1"},
        {"tel": "2", "history": {"callAttempt": 2, "latestCallStatus": "BUSY", **ENDED}},
        {"history": {"latestCallStatus": "CANCELLED", **ENDED, "lastCallerId": "9"}},
    )
    assert crowd.history == {
        1: Past(2, CallStatus.BUSY, ENDED_MS),
        2: Past(0, CallStatus.CANCELLED, ENDED_MS, "9"),
    }


@pytest.mark.parametrize(
    "history",
    [
        None,
        {},
        {"callAttempt": 0, "latestCallStatus": None},
        {"callAttempt": 0, "latestCallStatus": "SCHEDULED", "lastEndedAt": None},
        {"latestCallStatus": "EXPIRED"},
    ],
    ids=[
        "null",
        "{}",
        "{callAttempt: 0, latestCallStatus: null}",
        "{callAttempt: 0, latestCallStatus: SCHEDULED, lastEndedAt: null}",
        "{latestCallStatus: EXPIRED}",
    ],
)
def test_who_had_no_call_has_no_history(history: dict[str, Any] | None) -> None:
    assert listed({"history": history}).history == {}


def test_somebody_whose_next_call_was_waiting_goes_on_from_the_last_that_ended() -> None:
    history = {"callAttempt": 1, "latestCallStatus": "SCHEDULED", **ENDED}
    (past,) = listed({"history": history}).history.values()
    assert (past.call_attempt, past.last_ended_at, past.reached) == (1, ENDED_MS, False)


@pytest.mark.parametrize("status", list(CallStatus))
def test_r3_reached_by_history_is_who_answered_whatever_the_analysis(status: CallStatus) -> None:
    answered = status in (CallStatus.COMPLETED, CallStatus.ANALYSIS_FAILED)
    assert Past(1, status, 0).reached == answered
