"""The timeline of a campaign: when it started, paused and ended, and when its windows were open.

Stretches of time are `Spans`: sorted, disjoint, half-open [start, end) pairs of ms; int64 of shape
(n, 2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.trace import CampaignChange, CampaignTrace, Trace
from dialsim.engine.windows import Windows
from dialsim.interface.schedule import ScheduleRequest
from dialsim.interface.status import CampaignStatus

Spans = NDArray[np.int64]


def no_spans() -> Spans:
    """No time at all."""
    return np.empty((0, 2), dtype=np.int64)


def union(parts: Iterable[Spans]) -> Spans:
    """The time that lies in at least one of the parts; touching spans become one."""
    pairs = np.concatenate([no_spans(), *parts])
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    if not len(pairs):
        return pairs
    reach = np.maximum.accumulate(pairs[:, 1])
    begins = np.append(True, pairs[1:, 0] > reach[:-1])
    return np.stack([pairs[begins, 0], reach[np.append(begins[1:], True)]], axis=1)


def length(spans: Spans) -> int:
    """The total length in ms."""
    return int((spans[:, 1] - spans[:, 0]).sum())


Position = tuple[int, int]
"""Of a campaign: (organization, campaign), positions in the scenario from 0."""


@dataclass(frozen=True, slots=True)
class CampaignTimeline:
    """What became of one campaign; instants in ms, None for what did not happen.

    `people` counts the recipients uploaded, `removed` are those of them (positions from 0) whom the
    request dropped (D3). `start` is the effective startAt (F3), `final_at` the instant of the first
    final status, `end` that or else the last instant of the run. `open` and `paused` are the spans,
    inside [start, end), in which its calling windows were open and in which it was PAUSED. Whether
    it finished is told by its people as well (`RunView.finishes`).
    """

    position: Position
    name: str
    organization: str
    people: int
    removed: tuple[int, ...]
    status: CampaignStatus
    request: ScheduleRequest | None
    start: int | None
    final_at: int | None
    end: int
    stalled: bool
    open: Spans
    paused: Spans

    @property
    def full_name(self) -> str:
        """The name that is never ambiguous: `Acme/January`."""
        return f"{self.organization}/{self.name}"


def read_lives(trace: Trace) -> dict[Position, CampaignTimeline]:
    """The life of every campaign, in the order of the scenario."""
    changes: dict[Position, list[CampaignChange]] = {
        (block.position, campaign.position): []
        for block in trace.world.organizations
        for campaign in block.campaigns
    }
    for row in trace.campaigns:  # once: with thousands of campaigns, one search each takes a minute
        changes[row.organization, row.campaign].append(row)
    return {position: _life(trace.campaign(*position), own) for position, own in changes.items()}


def _life(part: CampaignTrace, changes: list[CampaignChange]) -> CampaignTimeline:
    effective = part.scheduled
    final_at = next((change.at for change in changes if change.to_status.final), None)
    end = part.trace.end if final_at is None else final_at
    start = None if effective is None else effective.start_at
    return CampaignTimeline(
        position=(part.organization, part.campaign),
        name=part.block.name,
        organization=part.owner.name,
        people=part.block.people.count,
        removed=() if effective is None else effective.removed,
        status=changes[-1].to_status if changes else CampaignStatus.DRAFT,
        request=None if effective is None else effective.request,
        start=start,
        final_at=final_at,
        end=end,
        stalled=part.stalled,
        open=no_spans()
        if effective is None
        else Windows.of(effective.request.time_windows).open_spans(effective.start_at, end),
        paused=no_spans() if start is None else _paused(changes, start, end),
    )


def _paused(changes: list[CampaignChange], start: int, end: int) -> Spans:
    """The spans in [start, end) in which the newest change led to PAUSED."""
    upto = [*(change.at for change in changes), end]
    pairs = [
        (max(since, start), until)
        for change, (since, until) in zip(changes, pairwise(upto), strict=True)
        if change.to_status is CampaignStatus.PAUSED and max(since, start) < until
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
