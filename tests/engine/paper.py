"""Scenarios small enough to be worked out on paper.

Time is written in seconds after Monday 10:00 in Thailand, which is when the clock starts and the
window of these campaigns opens (until 11:00). The setup time is 2 s.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dialsim.engine.simulation import Simulation, run_trace
from dialsim.engine.trace import Trace
from dialsim.interface.instants import format_instant, parse_instant
from dialsim.scenario.loading import loads

ZERO = parse_instant("2026-01-05T03:00:00Z")
WEEK_S = 7 * 24 * 3600
NUMBERS = ("021000001", "021000002", "021000003")
Written = dict[str, Any]
Act = tuple[float, str] | tuple[float, str, str | int | Written]


def at(seconds: float) -> str:
    """The instant so many seconds after Monday 10:00."""
    return format_instant(ZERO + round(seconds * 1000))


def windows(*ranges: str, days: Iterable[int] = (1,)) -> list[Written]:
    """Time windows such as `10:00-10:05`, on Mondays unless other days are given."""
    times = [dict(zip(("start", "end"), text.split("-"), strict=True)) for text in ranges]
    return [{"dayOfWeek": day, "time": times} for day in days]


def campaign(
    name: str, *scripts: str, requested: float | None = 0, agent: str = "Agent", **body: Any
) -> Written:
    """One campaign, a person per script; `requested` None leaves it DRAFT."""
    people = [{"tel": f"08000000{i:02d}", "script": text} for i, text in enumerate(scripts)]
    written: Written = {"name": name, "agent": agent, "recipients": people}
    if requested is not None:
        written["schedule"] = request(**body)
        written["scheduledAt"] = at(requested)
    return written


def request(**body: Any) -> Written:
    """The body of a schedule request."""
    return {"startDateTime": at(0), "timeWindows": windows("10:00-11:00"), **body}


def organization(
    name: str, *campaigns: Written, limit: int = 1, timeline: Iterable[Act] = (), **more: Any
) -> Written:
    """An organization; `timeline` has entries such as (2.5, "pause", "A")."""
    return {
        "name": name,
        "maxConcurrentCalls": limit,
        "callerIds": list(NUMBERS),
        "agents": [{"name": "Agent"}, {"name": "Other"}],
        "campaigns": list(campaigns),
        "timeline": [_action(*act) for act in timeline],
        **more,
    }


def _action(seconds: float, name: str, what: Any = None, body: Written | None = None) -> Written:
    action = {"at": at(seconds), "action": name}
    match name:
        case "setConcurrency":
            return action | {"value": what}
        case "setBehaviour":
            return action | {"agent": "Agent", "behaviour": what}
        case "schedule":
            return action | {"campaign": what, "body": body or request()}
    return action | {"campaign": what}


def scenario(
    *campaigns: Written,
    limit: int = 1,
    timeline: Iterable[Act] = (),
    end: float | None = None,
    **engine: Any,
) -> Written:
    """A scenario with one organization, Acme; `engine` are the settings of its engine block."""
    acme = organization("Acme", *campaigns, limit=limit, timeline=timeline)
    return service(acme, end=end, **engine)


def service(*organizations: Written, end: float | None = None, **engine: Any) -> Written:
    """A scenario with several organizations."""
    return {
        "name": "On paper",
        "clock": {"start": at(0)} | ({} if end is None else {"end": at(end)}),
        "engine": engine,
        "organizations": list(organizations),
        "behaviours": {"default": {"setupTime": "2s"}, "slow": {"setupTime": "5s"}},
    }


def run(written: Written, seed: int | None = None, replication: int = 0) -> Trace:
    """The trace of a scenario."""
    return run_trace(loads(json.dumps(written)), seed, replication)


def simulation(written: Written) -> Simulation:
    """A scenario to be stepped by hand."""
    return Simulation(loads(json.dumps(written)))
