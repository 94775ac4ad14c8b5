"""Scenarios small enough to be worked out on paper, as sketches (see `dialsim.testing`).

Time is written in seconds after Monday 10:00 in Thailand, which is when the clock starts and the
window of these campaigns opens (until 11:00). The setup time is 2 s.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import Trace
from dialsim.interface.instants import format_instant, parse_instant
from dialsim.scenario.loading import loads
from dialsim.scenario.scenario import Scenario
from dialsim.testing import Sketch, assert_no_violations
from engine.readings import agreed

ZERO = parse_instant("2026-01-05T03:00:00Z")
WEEK_S = 7 * 24 * 3600
NUMBERS = ("021000001", "021000002", "021000003")
Written = dict[str, Any]
Act = tuple[float, str] | tuple[float, str, str | int | Written]


class Campaign(NamedTuple):
    """A campaign of a sketch: the arguments of `Sketch.campaign`."""

    name: str
    people: tuple[str | Written, ...]
    keys: Written


class Organization(NamedTuple):
    """An organization of a sketch, with what somebody does while it runs."""

    name: str
    campaigns: tuple[Campaign, ...]
    limit: int
    acts: tuple[Act, ...]
    keys: Written


def at(seconds: float) -> str:
    """The instant so many seconds after Monday 10:00."""
    return format_instant(ZERO + round(seconds * 1000))


def windows(*ranges: str, days: Iterable[int] = (1,)) -> list[Written]:
    """Time windows such as `10:00-10:05`, on Mondays unless other days are given."""
    times = [dict(zip(("start", "end"), text.split("-"), strict=True)) for text in ranges]
    return [{"dayOfWeek": day, "time": times} for day in days]


def campaign(name: str, *people: str | Written, **keys: Any) -> Campaign:
    """One campaign, a person per script; `requested` None leaves it DRAFT."""
    return Campaign(name, people, {"timeWindows": windows("10:00-11:00"), **keys})


def request(**body: Any) -> Written:
    """The body of a schedule request."""
    return {"startDateTime": at(0), "timeWindows": windows("10:00-11:00"), **body}


def organization(
    name: str, *campaigns: Campaign, limit: int = 1, timeline: Iterable[Act] = (), **keys: Any
) -> Organization:
    """An organization; `timeline` has entries such as (2.5, "pause", "A")."""
    agents = {"agents": [{"name": "Agent"}, {"name": "Other"}]}
    return Organization(name, campaigns, limit, tuple(timeline), agents | keys)


def scenario(
    *campaigns: Campaign, limit: int = 1, timeline: Iterable[Act] = (), **settings: Any
) -> Sketch:
    """A scenario with one organization, Acme; `settings` are those of `Sketch`."""
    return service(organization("Acme", *campaigns, limit=limit, timeline=timeline), **settings)


def service(*organizations: Organization, **settings: Any) -> Sketch:
    """A scenario with several organizations."""
    sketch = Sketch(start=at(0), **settings).behaviour("slow", setup_time="5s")
    for name, campaigns, limit, acts, keys in organizations:
        sketch = sketch.organization(name, limit, **keys)
        for own in campaigns:
            sketch = sketch.campaign(own.name, *own.people, **own.keys)
        for when, action, *what in acts:
            sketch = sketch.at(when, action, *what[:1], **(what[1] if what[1:] else {}))
    return sketch


def loaded(written: Sketch | Written) -> Scenario:
    """A sketch, or what a file says, as a scenario."""
    return written.scenario() if isinstance(written, Sketch) else loads(json.dumps(written))


def run(written: Sketch | Written, seed: int | None = None, replication: int = 0) -> Trace:
    """The trace of a scenario, which breaks no rule; all readings of a sketch say the same."""
    trace = Simulation(loaded(written), seed, replication).run()
    assert_no_violations(trace)
    if isinstance(written, Sketch) and seed is None and replication == 0:
        agreed(written)
    return trace


def simulation(written: Sketch | Written) -> Simulation:
    """A scenario to be stepped by hand."""
    return Simulation(loaded(written))
