"""Warnings about settings without an effect, and about effects against a rule."""

from __future__ import annotations

from pathlib import Path

import pytest

import dialsim
from dialsim.scenario.checks import unused_caller_ids
from dialsim.scenario.loading import loads
from dialsim.testing import Sketch

ODDS = {"bySegment": {"vip": 2, "old": 0.5}}
SEGMENTS = "Campaign January of Acme: bySegment of behaviour default names vip and old, and no"


def sketch(**more: object) -> Sketch:
    return Sketch(4, start="5 Jan 2026 09:00").campaign(
        "January", **{"recipients": {"count": 20}} | more
    )


@pytest.mark.parametrize("key", ["customerName", "segment"])
def test_odds_by_segment_of_a_list_without_segments_are_pointed_out(
    key: str, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("tel,group\n0812345678,vip\n0812345679,old\n")
    recipients = {"file": "people.csv", "columns": {"tel": "tel", key: "group"}}
    listed = sketch(recipients=recipients).behaviour("default", answeredOdds=ODDS)
    warnings = loads(listed.text, folder=tmp_path).warnings
    assert [warning.startswith(SEGMENTS) for warning in warnings] == [True] * (key != "segment")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ((), True),
        (('January.callerIds=["021000001"]',), False),
        (("organizations.Acme.agents.0.callerId='021000001'",), False),
    ],
)
def test_caller_ids_that_no_call_shows_are_pointed_out(
    changes: tuple[str, ...], said: bool
) -> None:
    owned = sketch().scenario('organizations.Acme.callerIds=["021000001", "021000002"]')
    text = "Acme has 2 callerIds, and none of them is used"
    found = [*unused_caller_ids(owned.with_(*changes))]
    assert [warning.startswith(text) for warning in found] == [True] * said


@pytest.mark.parametrize(
    ("windows", "said"),
    [("09:00-20:00", True), ("09:00-19:50", True), ("09:00-19:45", False), ("09:00-18:00", False)],
)
def test_windows_that_end_with_the_time_of_contact_are_pointed_out(
    windows: str, said: bool
) -> None:
    rule = {"name": "evening", "contact": {"weekday": "08:00-20:00", "saturday": "00:00-23:59"}}
    scenario = sketch(windows=f"Mon-Fri {windows}", end="9 Jan 2026 21:00").also(
        compliance=[rule]
    ).scenario()  # fmt: skip
    late = [text for text in scenario.warnings if "calls may end after it" in text]
    assert [text.partition("after it: ")[2] for text in late] == (
        ["on weekdays 20:00 (first 2026-01-05). End the windows some minutes earlier if "
         "conversations count, too."] * said
    )  # fmt: skip


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ("mean(people_reached) >= 21", "21 people be reached, but there are only 20"),
        (
            "mean(January.people_reached) > 20",
            "more than 20 people be reached, but there are only 20",
        ),
        ("prob(reach_share >= 1.5) >= 0.5", "30 people be reached, but there are only 20"),
        ("mean(people_reached) >= 20", None),
        ("mean(people_reached) <= 21", None),
        ("mean(people_reached / dials) >= 30", None),
    ],
)
def test_a_goal_of_more_people_than_there_are_is_pointed_out(goal: str, said: str | None) -> None:
    lines = "organizations.Acme.maxConcurrentCalls"
    asked = {"jobs": 1, "max_replications": 8}
    warnings = dialsim.plan(sketch().scenario(), lines, "1..2", goal, **asked).warnings
    found = [text for text in warnings if "there are only" in text]
    assert found == ([f"{goal} asks that {said}"] if said else [])
    if said:
        best = dialsim.optimize(sketch().scenario(), {lines: [1]}, goal, **asked)
        assert f"{goal} asks that {said}" in best.warnings
