"""Holidays and closed days: charts, shares of capacity and first lines leave them out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import dialsim
from cli.program import ROOT
from cli.program import dialsim as command
from dialsim.experiments.goal import read_goal
from dialsim.results.campaigns import minus, union
from dialsim.scenario.compiled_hours import closed_deadlines, closed_starts

SONGKRAN = ROOT / "scenarios/songkran.yaml"
FEW = ("Debt.people=1250", "organizations.Acme.lines={holiday: 1}", "lines=1")


def callable_minutes(start: datetime, end: datetime) -> np.ndarray:
    """The minutes (since 1970) of the scenario's calling hours, worked out from its words."""
    minutes = []
    at = start.replace(second=0, microsecond=0)
    while at < end:
        local = at + timedelta(hours=7)
        if local.date().isoformat() in ("2026-04-13", "2026-04-14", "2026-04-15"):
            hours = (10, 16)
        elif local.date().isoformat() == "2026-04-16" or local.isoweekday() == 7:
            hours = (0, 0)
        else:
            hours = (8, 18) if local.isoweekday() == 6 else (8, 20)
        if hours[0] <= local.hour < hours[1]:
            minutes.append(int(at.timestamp()) // 60)
        at += timedelta(minutes=1)
    return np.array(minutes)


def test_the_share_of_capacity_counts_no_closed_day_and_charts_shade_none() -> None:
    result = dialsim.run(dialsim.load(SONGKRAN, overrides=FEW), engine="simpy")
    (part,) = result.summary.campaigns
    assert part.start is not None
    assert part.finish is not None
    assert part.finish > datetime(2026, 4, 14, 4, tzinfo=UTC)  # a holiday with special hours
    minutes = callable_minutes(part.start, part.finish)
    reading = result.reading
    scope = reading.part("Debt")
    shaded = np.concatenate([np.arange(a // 60_000, -(-b // 60_000)) for a, b in scope.open])
    assert set(minutes) == set(shaded)
    used = reading.lines[0].busy
    busy = sum(used.integral(np.array([[m * 60_000, (m + 1) * 60_000]])) for m in minutes)
    share = busy / (60_000 * len(minutes))  # one line
    assert part.lines_capacity_share == pytest.approx(share, rel=0.01)


def test_time_without_other_time() -> None:
    spans = np.array([[0, 10], [20, 30]])
    assert minus(spans, np.array([[5, 22], [29, 40]])).tolist() == [[0, 5], [22, 29]]
    assert minus(spans, np.empty((0, 2), np.int64)).tolist() == spans.tolist()
    assert minus(np.empty((0, 2), np.int64), spans).tolist() == []
    chance = np.random.default_rng(1)
    for _ in range(50):
        one, two = (union([np.sort(chance.integers(0, 60, (4, 2)), axis=1)]) for _ in range(2))
        inside, out = ({at for a, b in part if a < b for at in range(a, b)} for part in (one, two))
        found = {at for a, b in minus(one, two) for at in range(a, b)}
        assert found == inside - out


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ("2026-04-16 09:00", "Thu 16 Apr 2026 09:00, a day on which the calendar is closed: its "
         "first calls are on Fri 17 Apr 2026 08:00."),
        ("2026-04-13 09:00", "Mon 13 Apr 2026 09:00, a holiday (Songkran Festival): it calls from "
         "10:00 to 16:00 on that day."),
        ("2026-04-12 09:00", "Sun 12 Apr 2026 09:00, outside the calling windows: its first calls "
         "are on Mon 13 Apr 2026 10:00."),
        ("2026-04-10 20:30", "Fri 10 Apr 2026 20:30, outside the calling windows: its first calls "
         "are on Sat 11 Apr 2026 08:00."),
    ],
)  # fmt: skip
def test_a_start_on_a_closed_day_is_said_at_once(start: str, said: str) -> None:
    line = f"Campaign Debt of Acme starts {said}"
    options = ["--set", "Debt.people=30", "--set", f"Debt.start={start}"]
    checked = command("validate", SONGKRAN, *options)
    assert line in checked.stdout.splitlines()[:3]
    ran = command("run", SONGKRAN, *options, "--engine", "simpy")
    assert line in ran.stdout.splitlines()[:3]
    assert [*closed_starts(dialsim.load(SONGKRAN))] == []


def test_a_goal_on_a_closed_day_is_said_at_once() -> None:
    goal = "p95(finish) <= 2026-04-16 18:00 and mean(Debt.finish) <= Mon 13 Apr 12:00"
    scenario = dialsim.load(SONGKRAN)
    assert [*closed_deadlines(scenario, read_goal(goal, scenario).deadlines)] == [
        "The goal's day, Thu 16 Apr 2026, is a day on which the calendar is closed: the last calls "
        "before it are until Wed 15 Apr 2026 16:00.",
        "The goal's day, Mon 13 Apr 2026, is a holiday (Songkran Festival): calls are made on it "
        "from 10:00 to 16:00.",
    ]
    for good in ("p95(finish) <= Fri 17 Apr 18:00", "p95(finish) <= 3d", "mean(people) <= 3"):
        assert [*closed_deadlines(scenario, read_goal(good, scenario).deadlines)] == []
    asked = ["plan", str(SONGKRAN), "--set", "Debt.people=30", "--vary", "lines=1..2",
             "--goal", goal, "--max-replications", "8", "--engine", "simpy"]  # fmt: skip
    printed = command(*asked).stdout.splitlines()
    assert printed[1].startswith("The goal's day, Thu 16 Apr 2026, is a day")
