"""Traces written by hand: a few lines of text become the trace of a small run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from dialsim.engine.chance import Draws, campaign_id
from dialsim.engine.trace import (
    CHANGES,
    CallLog,
    CampaignChange,
    LimitChange,
    ScheduledCampaign,
    Trace,
    call_key,
    kind,
)
from dialsim.interface import CallStatus, CampaignStatus
from dialsim.interface.instants import parse_instant
from dialsim.interface.schedule import read_schedule
from dialsim.scenario.behaviour import BUILT_IN
from dialsim.scenario.organization import Agent
from dialsim.scenario.service import Costs, EngineSettings, Service

NINE = parse_instant("2026-01-05T02:00:00Z")
"""Monday, 5 January 2026, 09:00 Thai time: the zero of the times in a hand-written log."""

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
ALWAYS = [{"dayOfWeek": day, "time": [{"start": "00:00", "end": "23:59"}]} for day in range(1, 8)]


_AGENT = Agent.model_validate({"name": "Reminder"})


class HandPeople:
    """A few people without script; every second one is `vip` where segments are wanted."""

    scripts: tuple[Any, ...] = ()
    script = None
    history: Mapping[int, Any] = MappingProxyType({})
    params: Mapping[str, Any] = MappingProxyType({})
    beside: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, count: int, segments: bool = False) -> None:
        self.count = count
        self.segments = ("vip",) if segments else ()
        self.segment = np.arange(count, dtype=np.int16) % 2 - 1 if segments else None

    def tels(self, who: np.ndarray | None = None) -> list[str]:
        return [f"08{position:08}" for position in self._of(who)]

    def customer_names(self, who: np.ndarray | None = None) -> list[str | None]:
        return [None if position % 3 == 2 else f"คุณ {position}" for position in self._of(who)]

    def _of(self, who: np.ndarray | None) -> list[int]:
        return [*range(self.count)] if who is None else who.tolist()

    def agent_params(self, position: int) -> dict[str, object]:
        return {}

    def tel(self, position: int) -> str:
        return self.tels()[position]

    def customer_name(self, position: int) -> str | None:
        return self.customer_names()[position]

    @property
    def fixed_ids(self) -> dict[int, str]:
        return {3: "7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"} if self.count > 3 else {}


@dataclass
class HandCampaign:
    """One campaign: `log` has lines `ms recipient call cause-or-end-status [number voice]`.

    `life` has lines `ms status cause`; times count from `NINE`.
    """

    log: str
    people: int = 1
    name: str = "January"
    life: str = ""
    body: dict[str, Any] | None = field(default_factory=dict)
    start: int = 0
    segments: bool = False
    stalled: bool = False


def hand_trace(
    *organizations: list[HandCampaign],
    limits: list[tuple[int, int, int]] | None = None,
    end: int | None = None,
    cut: bool = False,
    costs: Costs | None = None,
    engine: EngineSettings | None = None,
    names: tuple[str, ...] = ("Acme", "Bolt", "Coda"),
) -> Trace:
    """The trace of organizations Acme, Bolt, …; `limits` are (ms, organization, limit)."""
    world = SimpleNamespace(
        scenario=SimpleNamespace(
            name="By hand",
            origin=None,
            clock=SimpleNamespace(start=NINE, end=None),
            compliance=(),
            costs=costs,
            warnings=(),
            engine=engine or EngineSettings(),
            behaviours={"default": BUILT_IN},
            service=Service(),
            digest="0" * 64,
        ),
        seed=1,
        replication=0,
        numbers=[],
        voice_keys=[],
        behaviours=("default",),
        warnings=(),
        organizations=[
            SimpleNamespace(
                position=o,
                name=names[o],
                settings=SimpleNamespace(
                    compiled_actions=(),
                    webhook=None,
                    retention=None,
                    agents=(_AGENT,),
                ),
                campaigns=[
                    SimpleNamespace(
                        organization=o,
                        position=c,
                        name=campaign.name,
                        id=campaign_id(1, o, c),
                        created_at=NINE,
                        agent=_AGENT,
                        value=None,
                        people=HandPeople(campaign.people, campaign.segments),
                        draws=Draws(1, 0, (o, c), campaign.people),
                    )
                    for c, campaign in enumerate(campaigns)
                ],
            )
            for o, campaigns in enumerate(organizations)
        ],
    )
    trace = Trace(world=world, calls=[])
    for o, campaigns in enumerate(organizations):
        trace.calls.append([_log(world, campaign.log) for campaign in campaigns])
        for c, campaign in enumerate(campaigns):
            _live(trace, (o, c), campaign)
    trace.limits = [
        LimitChange(NINE + at, o, limit)
        for at, o, limit in limits or [(0, o, 2) for o in range(len(organizations))]
    ]
    last = [int(log.rows().at.max(initial=NINE)) for logs in trace.calls for log in logs]
    last += [change.at for change in trace.campaigns]
    trace.end = NINE + end if end is not None else max(last, default=NINE)
    trace.cut = cut
    trace.idle = end is None and not cut
    return trace


def _live(trace: Trace, position: tuple[int, int], campaign: HandCampaign) -> None:
    status = CampaignStatus.DRAFT
    for line in campaign.life.strip().splitlines():
        at, to_status, cause = line.split()
        change = CampaignChange(NINE + int(at), *position, status, CampaignStatus(to_status), cause)
        trace.campaigns.append(change)
        status = change.to_status
    if campaign.body is not None:
        body = {"startDateTime": "2026-01-05T02:00:00Z", "timeWindows": ALWAYS} | campaign.body
        request = ScheduledCampaign(read_schedule(body), NINE, NINE + campaign.start)
        trace.requests[position] = request
    if campaign.stalled:
        trace.stalled |= {position}


def _log(world: Any, text: str) -> CallLog:
    log = CallLog()
    status: dict[tuple[int, int], CallStatus] = {}
    for line in filter(str.strip, text.splitlines()):
        at, recipient, call, word, *dial = line.split()
        which = int(recipient), int(call)
        change = _kind(status.get(which), word)
        status[which] = CHANGES[change].to_status
        log.append(NINE + int(at), call_key(*which) | change)
        if word == "dialled":
            log.dial_numbers.append(_index(world.numbers, dial[0] if dial else "021000001"))
            log.dial_behaviours.append(0)
            log.dial_voices.append(_index(world.voice_keys, dial[1]) if len(dial) > 1 else -1)
    return log


def _kind(status: CallStatus | None, word: str) -> int:
    if word.isupper():
        return kind(status, CallStatus(word), "ended")
    fitting = [
        index
        for index, change in enumerate(CHANGES)
        if change.cause == word and change.from_status == status
    ]
    assert len(fitting) == 1, (status, word)
    return fitting[0]


def _index(texts: list[str], text: str) -> int:
    if text not in texts:
        texts.append(text)
    return texts.index(text)
