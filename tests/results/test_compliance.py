"""Dials outside compliance rules, counted by hand and naively."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

import dialsim
from dialsim.results.compliance import Compliance
from dialsim.testing import Sketch

# Fri 10 April 2026, 19:58 in Thailand; Mon 13 is a holiday
WEEKDAY = {"weekday": "20:00-21:00"}


def two(start: str = "10 Apr 2026 19:58", survey: Mapping[str, str] = WEEKDAY) -> Sketch:
    """Two campaigns; the second one may call only a little later."""
    return (
        Sketch(9, start=start, end="13 Apr 2026 21:00")
        .also(
            calendar={"holidays": "TH"},
            compliance=["thai-debt-collection", {"name": "Twice", "perDay": 2}],
        )
        .campaign(
            "Debt",
            {"tel": "0812345670", "script": "noAnswer 20s"},
            {"tel": "0812345671", "script": "answered 5s 60s"},
            calling_hours={"weekday": "19:50-21:00", "holiday": "17:50-18:10"},
            max_attempts=9,
            retry_interval="5m",
        )
        .campaign(
            "Survey",
            {"tel": "+66812345671", "script": "answered 5s 60s"},
            calling_hours=dict(survey),
        )
    )


def test_dials_outside_are_counted_by_rule_campaign_and_person() -> None:
    """The first person is dialled at 19:58:00 and then every 5 min 22 s, nine times.

    The first is inside; the other eight begin after 20:00, and are beyond the first of the day. The
    second is answered at 19:58, and again in the other campaign at 20:00:00, which is outside.
    """
    result = dialsim.run(two().scenario())
    assert result.summary.compliance == (
        row("thai-debt-collection", "Debt", (10, 8, 1, 8, 1, 0)),
        row("thai-debt-collection", "Survey", (1, 1, 1, 1, 1, 1)),
        row("Twice", "Debt", (10, 0, 0, 7, 1, 0)),
        row("Twice", "Survey", (1, 0, 0, 0, 0, 0)),
    )
    table = result.compliance
    assert len(table) == 8 + 1 + 7
    assert table.iloc[0].to_dict() == {
        "rule": "thai-debt-collection",
        "organization": "Acme",
        "campaign": "Survey",
        "recipient": 0,
        "call": 1,
        "initiated_at": pd.Timestamp("2026-04-10T13:00:00Z"),
        "outside": True,
        "repeated": True,
        "repeated_answered": True,
    }


def row(rule: str, campaign: str, counts: tuple[int, ...]) -> Compliance:
    names = (
        "dials",
        "outside",
        "people_outside",
        "repeated",
        "people_repeated",
        "repeated_answered",
    )
    return Compliance(
        rule=rule, organization="Acme", campaign=campaign, **dict(zip(names, counts, strict=True))
    )


def test_holidays_have_their_own_hours() -> None:
    survey = {"weekday": "19:00-20:00", "holiday": "18:00-18:10"}
    result = dialsim.run(two("13 Apr 2026 17:50", survey).scenario())
    # 17:50:00, 17:55:22, then 18:00:44 and 18:06:06 are outside
    assert [(r.dials, r.outside, r.repeated) for r in result.summary.compliance[:2]] == [
        (5, 2, 3),
        (1, 1, 1),
    ]


def test_summaries_without_rules_say_nothing_of_them() -> None:
    plain = dialsim.run(two().scenario("compliance=")).summary
    assert "compliance" not in plain.to_dict()
    told: dict[str, Any] = json.loads(dialsim.run(two().scenario()).summary.to_json())
    assert told["compliance"][0]["outside"] == 8
    assert plain.compliance == ()


def test_counts_are_those_of_a_naive_reading_with_chance() -> None:
    sketch = (
        Sketch(5, start="10 Apr 2026 07:00", setup_time=None)
        .also(calendar={"holidays": "TH"}, compliance=["thai-debt-collection"])
        .campaign(
            "A",
            recipients={"count": 700},
            calling_hours={
                "weekday": "07:00-21:00",
                "sunday": "07:00-19:00",
                "holiday": "17:00-19:00",
            },
            max_attempts=6,
            retry_interval="30m",
        )
    )
    result = dialsim.run(sketch.scenario())
    calls = result.calls[result.calls["initiated_at"].notna()]
    at = calls["initiated_at"].dt.tz_convert("Asia/Bangkok")
    outside = repeated = 0
    seen: Counter[tuple[int, object]] = Counter()
    for who, moment in sorted(zip(calls["recipient"], at, strict=True), key=lambda pair: pair[1]):
        short = moment.weekday() >= 5 or (moment.month, moment.day) in {(4, 13), (4, 14), (4, 15)}
        outside += not 8 <= moment.hour < (18 if short else 20)
        seen[who, moment.date()] += 1
        repeated += seen[who, moment.date()] > 1
    (counted,) = result.summary.compliance
    assert (counted.outside, counted.repeated) == (outside, repeated)
    assert outside > 50
    assert repeated > 50
