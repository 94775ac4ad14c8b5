"""Scenarios of full breadth: everything that a file can say, with chance, at the worst moment.

Drafts are the oracle's; people decide for themselves, and every action, end date and clock.end is
placed where a first run shows that something happens, or 1 ms beside.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from dialsim.interface.instants import thai_date
from dialsim.scenario.calendar import DAY_CLASSES
from engine.chancy import VOICES, add_trouble
from engine.readings import first_look
from engine.rows import Row, rows
from oracle.given import clock_start
from oracle.scenarios import NUMBERS, Draft, Scenario, clock_face, iso

SIP_ACCOUNT = "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"
SIP_CALLER = "c0a5b3d2-9c4e-4d6f-8a43-51d0f5b7e921"
SEGMENTS = ("vip", "mass", "staff")
BLOCK = 4096  # of people, whose draws are made together


def broad_scenario(seed: int, people: int = 25) -> Scenario:
    """The scenario of this seed, with up to so many people in most campaigns."""
    return broad(random.Random(f"broad {seed}"), people)


def broad_scenarios() -> st.SearchStrategy[Scenario]:
    """Broad scenarios for hypothesis, which shrinks them choice by choice."""
    return st.randoms(use_true_random=False).map(broad)


def broad(rng: random.Random, people: int = 25) -> Scenario:
    """A scenario without trouble, then up to three rounds of it."""
    draft = Draft(rng)
    scenario = draft.scenario()
    scenario["seed"] = rng.randrange(1000)
    scenario["organizations"] += more_organizations(rng, draft)
    scenario["behaviours"] = {
        name: behaviour(rng, draft.unit) for name in ("default", "slow", "odd")
    }
    if rng.random() < 0.15:
        del scenario["behaviours"]["default"]  # the built-in one
    for organization in scenario["organizations"]:
        fill(rng, draft, organization, people, clock_start(scenario))
    if any(count(campaign) >= BLOCK - 1 for campaign in campaigns(scenario)):
        scenario["engine"]["queueTimeout"] = "10m"  # with a short one they have millions of calls
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        add_trouble(rng, scenario, first_look(scenario))
    if rng.random() < 0.5:
        trace = first_look(scenario)
        dials = [row for row in rows(trace) if row.change.cause == "dialled"]
        if rng.random() < 0.6:
            withdraw_dials(rng, scenario, dials)
        if rng.random() < 0.6:
            change_behaviours(rng, scenario, dials)
    add_calling_hours(random.Random(scenario["seed"]), scenario, draft.minute)
    return scenario


def add_calling_hours(rng: random.Random, scenario: Scenario, minute: int) -> None:
    """At times a calendar, hours and lines about a minute of the day (T6), and odds on holidays."""
    if rng.random() < 0.5:
        return
    first = thai_date(clock_start(scenario))
    dates = [str(first + timedelta(days=ahead)) for ahead in range(4)]
    scenario["calendar"] = {
        "ownHolidays": {date: "Holiday" for date in dates if rng.random() < 0.5},
        "closed": [str(first + timedelta(days=rng.choice((5, 8))))],
    }
    for written in scenario["behaviours"].values():
        if rng.random() < 0.7:
            written.setdefault("answeredOdds", {})["onHoliday"] = rng.choice((0.0, 0.3, 1.0, 4.0))
    for organization in scenario["organizations"]:
        by_action = {entry.get("campaign") for entry in organization["timeline"] if "body" in entry}
        for campaign in organization["campaigns"]:
            if "schedule" in campaign and campaign["name"] not in by_action and rng.random() < 0.7:
                campaign["schedule"].pop("timeWindows", None)
                days = DAY_CLASSES if rng.random() < 0.8 else DAY_CLASSES[:-1]
                campaign["callingHours"] = {name: times(rng, minute) for name in days}
        limits = [entry["action"] == "setConcurrency" for entry in organization["timeline"]]
        if not any(limits) and rng.random() < 0.5:
            times_of_day = times(rng, minute)
            organization["lines"] = {
                f"{days} {span}": rng.choice((0, 1, 2, 7))
                for days in ("Mon-Thu", "holiday", dates[0])
                for span in times_of_day
            }


def times(rng: random.Random, minute: int) -> list[str]:
    """Some ranges, apart, at and after a minute of the day."""
    ranges, at = [], max(0, minute - rng.choice((0, 0, 1, 2)))
    for _ in range(rng.choice((1, 2, 3))):
        end = min(at + rng.choice((1, 2, 5, 60)), 24 * 60 - 1)
        if end <= at:
            break
        ranges.append(f"{clock_face(at)}-{clock_face(end)}")
        at = end + rng.choice((1, 2, 10))
    return ranges


def withdraw_dials(rng: random.Random, scenario: Scenario, dials: list[Row]) -> None:
    """Pauses while lines are being set up, and what comes soon after them (C4, P5)."""
    for row in rng.sample(dials, min(len(dials), 3)):
        organization = scenario["organizations"][row.organization]
        name = organization["campaigns"][row.campaign]["name"]
        for action, later in (("pause", rng.choice((1, 1, 500))), ("resume", 1000)):
            at = iso(row.at + later)
            organization["timeline"].append({"at": at, "action": action, "campaign": name})


def change_behaviours(rng: random.Random, scenario: Scenario, dials: list[Row]) -> None:
    """Other behaviours, set before campaigns are scheduled and at dials (P8)."""
    start, instants = clock_start(scenario), [row.at for row in dials]
    for organization in scenario["organizations"]:
        for at in (start, *rng.sample(instants, min(len(instants), 2))):
            change = {
                "at": iso(at),
                "action": "setBehaviour",
                "agent": rng.choice(organization["agents"])["name"],
                "behaviour": rng.choice(sorted(scenario["behaviours"])),
            }
            organization["timeline"].append(change)


def campaigns(scenario: Scenario) -> list[Scenario]:
    """All campaigns."""
    return [campaign for owner in scenario["organizations"] for campaign in owner["campaigns"]]


def count(campaign: Scenario) -> int:
    """Number of people of a campaign."""
    listed = campaign["recipients"]
    return len(listed) if isinstance(listed, list) else int(listed["count"])


def more_organizations(rng: random.Random, draft: Draft) -> list[Scenario]:
    """One more at times; what they have in common are the behaviours."""
    added = [draft.organization(0) for _ in range(rng.choice((0, 0, 0, 1)))]
    for organization in added:
        organization["name"] = "Charlie"
    return added


def fill(rng: random.Random, draft: Draft, organization: Scenario, people: int, start: int) -> None:
    """People, numbers, voices and agents in place of the scripts of a draft."""
    organization["sipAccounts"] = [
        {"id": SIP_ACCOUNT, "callerIds": [{"id": SIP_CALLER, "number": "021000009"}]}
    ]
    organization["agents"] = [
        {"name": "Reminder", "voiceKey": rng.choice(VOICES)},
        {"name": "Survey", "behaviour": "slow", "callerId": "021000008"},
    ]
    if rng.random() < 0.3:
        organization["agents"][0]["behaviour"] = "odd"
    for campaign in organization["campaigns"]:
        scripted = campaign["recipients"]
        campaign["recipients"] = recipients(rng, scripted, people)
    if rng.random() < 0.5:
        lists = [c for c in organization["campaigns"] if isinstance(c["recipients"], list)]
        draft.add_past({"campaigns": lists}, start)
    duplicates = rng.random() < 0.4
    if duplicates:
        window = rng.choice((draft.unit, 20 * draft.unit, 3_600_000, 30 * 86_400_000))
        organization["duplicateCallAlert"] = {"window": f"{window}ms"}
        share_numbers(organization)
    for entry in (*organization["campaigns"], *organization["timeline"]):
        body = entry.get("schedule") or entry.get("body")
        if body is not None:
            body.pop("removeDuplicates", None)
            choices(rng, body)
            if duplicates and rng.random() < 0.6:
                body["removeDuplicates"] = True


def choices(rng: random.Random, body: Scenario) -> None:
    """Numbers and voices of a request."""
    body.pop("callerIds", None)
    kind = rng.random()
    if kind < 0.5:
        body["callerIds"] = [rng.choice(NUMBERS) for _ in range(rng.choice((1, 2, 3, 4)))]
    elif kind < 0.65:
        body |= {"sipAccountId": SIP_ACCOUNT, "sipCallerId": SIP_CALLER}
    if rng.random() < 0.4:
        body["ttsVoiceKeys"] = [rng.choice(VOICES) for _ in range(rng.choice((1, 2, 3)))]


def share_numbers(organization: Scenario) -> None:
    """The people of all campaigns have the same phone numbers."""
    for campaign in organization["campaigns"]:
        if isinstance(campaign["recipients"], list):
            for index, person in enumerate(campaign["recipients"]):
                person["tel"] = f"0899{index % 17:06d}"


def recipients(rng: random.Random, scripted: list[Scenario], people: int) -> Any:
    """Listed or made up, some with a segment, some with a script."""
    count = rng.choice((0, 1, 3, people, people, rng.choice((people, people, 8 * people))))
    if rng.random() < 0.005:
        count = BLOCK + rng.choice((-1, 0, 1, 1000))
    if rng.random() < 0.4 or count > 1000:
        made: Scenario = {"count": count}
        if rng.random() < 0.6:
            made["segments"] = {"vip": 0.25, "mass": 0.75}
        return made
    listed = []
    for i in range(count):
        person: Scenario = {"tel": f"0810{i:06d}"}
        if rng.random() < 0.5:
            person["segment"] = rng.choice(SEGMENTS)
        if scripted and rng.random() < 0.25:
            person["script"] = rng.choice(scripted)["script"]
        listed.append(person)
    return listed


def behaviour(rng: random.Random, unit: int) -> Scenario:
    """A random behaviour; many of its fields are left out at times."""
    answered = rng.choice((0.0, 0.1, 0.3, 0.5, 0.8, 1.0))
    rest = round(1.0 - answered, 6)
    split = rng.choice(((0.5, 0.25, 0.25), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.2, 0.8, 0.0)))
    written: Scenario = {
        "outcomes": {"answered": answered}
        | dict(zip(("noAnswer", "busy", "failed"), (rest * s for s in split), strict=True)),
        "answeredOdds": odds(rng, unit),
        "setupTime": span(rng, unit, least=1),
        "ringTime": {end: span(rng, unit) for end in ("answered", "noAnswer", "busy", "failed")},
        "talkTime": span(rng, unit, most=4),
    }
    if rng.random() < 0.6:
        reachable = rng.choice((1.0, max(answered, 0.05), round((answered + 1.0) / 2, 6)))
        written["people"] = {"reachable": reachable}
        if rng.random() < 0.7:
            written["people"]["concentration"] = rng.choice((0.05, 0.5, 2.3, 6, 1000))
        if rng.random() < 0.4:
            failed = written["outcomes"]["failed"]  # dead numbers alone may fail more often
            written["people"]["deadNumbers"] = min(failed, 1.0 - reachable) * rng.choice((0.3, 1.0))
    often_left_out = ("answeredOdds", "setupTime", "ringTime", "talkTime", "outcomes")
    return {
        key: value
        for key, value in written.items()
        if key not in often_left_out or rng.random() < 0.85 or "people" in written
    }


def odds(rng: random.Random, unit: int) -> Scenario:
    """Factors of every kind, or some of them."""
    every: Scenario = {
        "byHour": {str(hour): rng.choice((0.0, 0.5, 1.0, 2.0, 7.5)) for hour in range(8, 20)},
        "byDay": {str(day): rng.choice((0.1, 1.0, 1.7)) for day in range(1, 8)},
        "byAttempt": [rng.choice((0.0, 0.3, 0.9, 1.0, 3.0)) for _ in range(rng.choice((1, 2, 5)))],
        "bySegment": {name: rng.choice((0.0, 0.4, 1.0, 5.0)) for name in SEGMENTS},
        "byCallerIdUse": {
            "per1000": rng.choice((0.5, 1e-9, 1e-300, 10)),  # one dial may halve the odds
            "recovery": f"{unit * rng.choice((1, 20, 500))}ms",
        },
    }
    return {key: value for key, value in every.items() if rng.random() < 0.6}


def span(rng: random.Random, unit: int, least: int = 0, most: int = 2) -> Any:
    """A time of any family, in units so that things meet; at times with bounds."""
    mean = f"{unit * rng.randint(1, most)}ms"
    families: tuple[Any, ...] = (
        mean,
        mean,
        {"dist": "constant", "value": f"{unit}ms"},
        {"dist": "uniform", "low": f"{least}ms", "high": f"{2 * unit}ms"},
        {"dist": "exponential", "mean": mean},
        {"dist": "lognormal", "mean": mean, "sd": f"{unit}ms"},
        {"dist": "gamma", "mean": mean, "sd": f"{2 * unit}ms"},
        {"dist": "weibull", "mean": mean, "sd": f"{unit // 2}ms"},
        {"dist": "triangular", "low": "0ms", "mode": f"{unit // 3}ms", "high": f"{unit}ms"},
        {"dist": "empirical", "values": [f"{unit}ms", f"{2 * unit}ms", f"{3 * unit}ms"]},
    )
    chosen = rng.choice(families if least else (*families, 0, "0ms"))
    if isinstance(chosen, dict) and rng.random() < 0.3:
        chosen = chosen | {"min": f"{unit}ms", "max": f"{unit * rng.choice((1, 3))}ms"}
    return chosen
