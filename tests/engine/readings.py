"""One scenario read three times: by both engines, and by the naive second reading (T to F).

Tests of engines and of the rule book run their sketches here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dialsim.engine import Engine, run_world
from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import CHANGES, Trace
from dialsim.engine.world import World
from dialsim.scenario.loading import loads
from dialsim.scenario.scenario import Scenario as Model
from dialsim.testing import Sketch, assert_no_violations
from oracle.given import Files
from oracle.records import Reading
from oracle.scenarios import Scenario
from oracle.second_reading import second_reading

ENGINES: tuple[Engine, ...] = ("simpy", "compiled")
Agree = Callable[..., Reading]
"""The type of the fixture `agreed`."""
AROUND = 6  # rows shown before and after the first that differs


def loaded(written: Scenario, files: Files | None = None) -> Model:
    """Load the text of a file, such as a random one, as a scenario."""
    contents = {name: text.encode() for name, text in (files or {}).items()}
    return loads(json.dumps(written), files=contents)


def first_look(written: Scenario) -> Trace:
    """The trace of a draft, which shows where something happens."""
    # Either engine would do: their traces are equal. The compiled one takes a tenth of the time.
    return run_world(World(loaded(written)), "compiled")


def run(sketch: Sketch, seed: int | None = None, replication: int = 0) -> Trace:
    """The trace of a sketch, which breaks no rule; with its own seed all readings say the same."""
    trace = Simulation(sketch.scenario(), seed, replication).run()
    assert_no_violations(trace)
    if seed is None and replication == 0:
        agreed(sketch)
    return trace


def agreed(
    written: Sketch | Scenario, whence: str = "a sketch", files: Files | None = None
) -> Reading:
    """Return the trace on which all readings agree: both engines', and the naive one if it applies.

    Tests have it as the fixture `agreed`.
    """
    scenario = json.loads(written.text) if isinstance(written, Sketch) else written
    read = loaded(scenario, files)
    first, second = (first_reading(run_world(World(read), name)) for name in ENGINES)
    scripted = files is not None or is_scripted(scenario)
    last = second_reading(scenario, files=files) if scripted else first
    for name, reading in zip(ENGINES, (first, second), strict=True):
        assert_both_agree(reading, last, f"{whence}, {name}")
    return last


def first_reading(trace: Trace) -> Reading:
    """An engine's trace, as the rows of tables."""
    names = [
        (organization.name, [campaign.name for campaign in organization.campaigns])
        for organization in trace.world.organizations
    ]
    return Reading(
        transitions=transitions(trace, names),
        campaigns=[
            (row.at, *name(names, row.organization, row.campaign), *map(str, row[3:6]))
            for row in sorted(trace.campaigns, key=lambda row: row[:3])
        ],
        stalled={name(names, *positions) for positions in trace.stalled},
        refused=[
            (row.at, *name(names, row.organization, row.campaign), *row[3:])
            for row in trace.refused
        ],
        removed={
            (*name(names, *place), recipient)
            for place, request in trace.requests.items()
            for recipient in request.removed
        },
    )


def transitions(trace: Trace, names: list[tuple[str, list[str]]]) -> list[Any]:
    rows = []
    for o, organization in enumerate(trace.calls):
        for c, log in enumerate(organization):
            columns = log.rows()
            for at, person, call, kind in zip(
                columns.at.tolist(),
                columns.recipient.tolist(),
                columns.call.tolist(),
                columns.kind.tolist(),
                strict=True,
            ):
                key = (at, o, c, person, call, len(rows))
                before, after, phase, cause = CHANGES[kind]
                change = (before and str(before), str(after), phase and str(phase), cause)
                rows.append((key, (at, *name(names, o, c), person, call, *change)))
    return [row for _, row in sorted(rows)]


def name(names: list[tuple[str, list[str]]], o: int, c: int | None) -> tuple[str, Any]:
    return names[o][0], None if c is None else names[o][1][c]


def is_scripted(scenario: Scenario) -> bool:
    """True if the second reading applies: it has no randomness."""
    everybody = (c["recipients"] for o in scenario["organizations"] for c in o["campaigns"])
    setups = (written.get("setupTime", "2s") for written in scenario["behaviours"].values())
    return all(isinstance(time, str) for time in setups) and all(
        isinstance(people, list) and all("script" in person for person in people)
        for people in everybody
    )


def assert_both_agree(engine: Reading, oracle: Reading, whence: str) -> None:
    for table in ("transitions", "campaigns", "refused"):
        found, wanted = getattr(engine, table), getattr(oracle, table)
        if found != wanted:
            pytest.fail(f"{whence}: {table} differ\n{difference(found, wanted)}", pytrace=False)
    assert engine.stalled == oracle.stalled, whence
    assert engine.removed == oracle.removed, whence


def difference(found: Sequence[Any], wanted: Sequence[Any]) -> str:
    """The first row that differs (>) and the rows around it, of both."""
    pairs = zip(found, wanted, strict=False)
    short = min(len(found), len(wanted))
    row = next((i for i, (one, other) in enumerate(pairs) if one != other), short)
    texts = []
    for title, rows in (("found", found), ("wanted", wanted)):
        texts.append(f"{title}, {len(rows)} rows:")
        for i in range(max(0, row - AROUND), min(len(rows), row + AROUND + 1)):
            texts.append(f"{'>' if i == row else ' '} {i}: {rows[i]}")
    return "\n".join(texts)
