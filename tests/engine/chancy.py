"""Nasty scenarios with chance: the oracle's drafts, with people who decide for themselves.

What may meet in one instant still does: actions and end dates are placed where calls move, as a
first run of the same scenario shows.
"""

from __future__ import annotations

import random
from typing import Any

from dialsim.engine.trace import Trace
from engine.readings import first_look
from engine.rows import rows
from oracle.given import clock_start
from oracle.scenarios import NUMBERS, Draft, Scenario, Trouble, iso

VOICES = ["malee", "kanya", "narin"]


def chancy_scenario(seed: int, people: int = 25) -> Scenario:
    """The scenario of this seed, with up to so many people in a campaign."""
    rng = random.Random(f"chancy {seed}")
    draft = Draft(rng)
    scenario = draft.scenario()
    scenario["seed"] = seed
    scenario["behaviours"] = {name: behaviour(rng, draft.unit) for name in ("default", "slow")}
    for organization in scenario["organizations"]:
        for campaign in organization["campaigns"]:
            campaign["recipients"] = recipients(rng, campaign["recipients"], people)
        for entry in (*organization["campaigns"], *organization["timeline"]):
            body = entry.get("schedule") or entry.get("body") or {}
            if rng.random() < 0.6:
                body["callerIds"] = NUMBERS[: rng.choice((1, 2, 3))]
            if rng.random() < 0.3:
                body["ttsVoiceKeys"] = VOICES[: rng.choice((1, 2, 3))]
        if rng.random() < 0.4:
            lists = [c for c in organization["campaigns"] if isinstance(c["recipients"], list)]
            draft.add_past({"campaigns": lists}, clock_start(scenario))
    for _ in range(rng.choice((0, 1, 2))):
        add_trouble(rng, scenario, first_look(scenario))
    return scenario


def recipients(rng: random.Random, scripted: list[Scenario], people: int) -> Any:
    """People without scripts, listed or generated, some of them with a segment or a script."""
    count = rng.choice((0, 1, 3, people, people))
    if rng.random() < 0.4:
        return {"count": count, "segments": {"vip": 0.25, "mass": 0.75}}
    listed = []
    for i in range(count):
        person: Scenario = {"tel": f"0810{i:06d}"}
        if rng.random() < 0.5:
            person["segment"] = rng.choice(("vip", "mass", "staff"))
        if scripted and rng.random() < 0.2:
            person["script"] = rng.choice(scripted)["script"]
        listed.append(person)
    return listed


def behaviour(rng: random.Random, unit: int) -> Scenario:
    """Every kind of chance there is, at times none of it."""
    answered = rng.choice((0.0, 0.2, 0.5, 1.0))
    rest = round(1 - answered, 6)
    written: Scenario = {
        "outcomes": {
            "answered": answered,
            "noAnswer": rest / 2,
            "busy": rest / 4,
            "failed": rest / 4,
        },
        "answeredOdds": {
            "byHour": {"9": 0.5, "10": 2.0, "12": 0.7},
            "byDay": {"1": 1.2, "7": 0.1},
            "byAttempt": [1.0, 0.7],
            "bySegment": {"vip": 3.0},
            "byCallerIdUse": {"per1000": rng.choice((0.5, 1e-9)), "recovery": f"{unit * 20}ms"},
        },
        "setupTime": {"dist": "uniform", "low": "0ms", "high": f"{2 * unit}ms"},
        "ringTime": {
            "answered": {"dist": "exponential", "mean": f"{unit}ms"},
            "noAnswer": f"{unit}ms",
            "busy": {"dist": "empirical", "values": ["0ms", f"{unit}ms"]},
            "failed": 0,
        },
        "talkTime": {"dist": "lognormal", "mean": f"{3 * unit}ms", "sd": f"{3 * unit}ms"},
    }
    if rng.random() < 0.5:
        written["people"] = rng.choice(
            ({"concentration": 0.5}, {"concentration": 6, "deadNumbers": rest / 8})
        )
    if rng.random() < 0.3:  # many things in one instant
        written["setupTime"], written["talkTime"] = f"{unit}ms", f"{2 * unit}ms"
        written["ringTime"]["answered"] = rng.choice((0, f"{unit}ms"))
    return written if rng.random() < 0.9 else {"setupTime": f"{unit}ms"}


def add_trouble(rng: random.Random, scenario: Scenario, trace: Trace) -> None:
    """Actions, end dates and a clock.end where something happens in a trace, or 1 ms beside."""
    start = trace.world.scenario.clock.start
    scenario.setdefault("clock", {"start": iso(start)})
    moved = rows(trace)
    for position, organization in enumerate(scenario["organizations"]):
        trouble = Trouble(rng, organization, start)
        for row in moved:
            if row.organization == position:
                name = organization["campaigns"][row.campaign]["name"]
                trouble.note(row.at, name, row.change.cause)
        for _ in range(rng.choice((0, 1, 2))):
            trouble.add_action()
        if rng.random() < 0.3:
            trouble.add_end()
        if rng.random() < 0.06:
            scenario["clock"]["end"] = iso(max(start + 1, trouble.moment()[0]))
