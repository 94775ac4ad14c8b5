"""The summary: what a planner wants to know of a run, of each organization, and each campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dialsim.interface.instants import in_thai_time, utc
from dialsim.results.bottleneck import CampaignBounds, held_back
from dialsim.results.campaigns import CampaignTimeline, Position, listed, union
from dialsim.results.compliance import Compliance, compliance
from dialsim.results.counts import (
    Counts,
    attempts_of_exhausted,
    count_campaign,
    fixed_shares,
    line_shares,
    value_of,
)
from dialsim.results.figures import (
    FIGURES,
    INSTANTS,
    REACH,
    Figures,
    Part,
    follows_calls,
    number_values,
)
from dialsim.results.run_view import RunView
from dialsim.results.time_use import Occupancy, TimeUse

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSummary(Figures):
    """One campaign; `start` is its effective startAt (F3), None if it was never scheduled."""

    organization: str
    name: str
    status: str
    start: datetime | None


@dataclass(frozen=True, slots=True)
class Limit:
    """maxConcurrentCalls from an instant on."""

    at: datetime
    max_concurrent_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationSummary(Figures):
    """One organization, its limits over time, and its campaigns."""

    name: str
    limits: tuple[Limit, ...]
    campaigns: tuple[CampaignSummary, ...]


@dataclass(frozen=True, slots=True)
class RefusedAction:
    """What the file asked in vain, and the interface's answer."""

    at: datetime
    organization: str
    campaign: str | None
    action: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Figures):
    """The whole run.

    `end` is the last instant simulated, `cut` says that clock.end came before all was done.
    `unfinished` names the campaigns (`Organization/Name`) that were scheduled and have no finish:
    they are not final, or lost people. `stalled` names those for which nothing could ever happen
    again (T5). `compliance` has a row for each of the scenario's rules and each campaign.
    """

    scenario: str
    seed: int
    replication: int
    end: datetime
    cut: bool
    unfinished: tuple[str, ...]
    stalled: tuple[str, ...]
    refused: tuple[RefusedAction, ...]
    compliance: tuple[Compliance, ...]
    warnings: tuple[str, ...]
    organizations: tuple[OrganizationSummary, ...]

    @property
    def campaigns(self) -> tuple[CampaignSummary, ...]:
        """All campaigns, in the order of the scenario."""
        return tuple(part for owner in self.organizations for part in owner.campaigns)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values: instants as text in UTC, and beside it in Thai time."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def to_json(self) -> bytes:
        """The bytes of `summary.json`."""
        import orjson

        return orjson.dumps(self.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def parts(self) -> Iterator[tuple[PartName, Figures]]:
        """The run, then each organization followed by its campaigns."""
        yield PartName("run"), self
        for owner in self.organizations:
            yield PartName("organization", owner.name), owner
            for campaign in owner.campaigns:
                yield PartName("campaign", owner.name, campaign.name), campaign

    def to_frame(self) -> pd.DataFrame:
        """A row for the run, for each organization, and for each campaign; a column per figure.

        `reach_by_attempt` is a column per attempt, and `held_back` its reason and sentence. The
        figures of `analyses` and `webhooks` have these words in front; of the funnel there is a
        column per step, of fields one per value.
        """
        import pandas as pd

        frame = pd.DataFrame([place._asdict() | _row(part) for place, part in self.parts()])
        frame = frame.astype(dict.fromkeys(INSTANTS, pd.DatetimeTZDtype("ms", "UTC")))
        frame["currency"] = frame["currency"].astype("str")
        return frame.astype({figure.name: "float64" for figure in FIGURES if figure.is_float})

    def _repr_html_(self) -> str:
        from dialsim.results.summary_text import summary_html

        return summary_html(self)


class PartName(NamedTuple):
    """Whose figures: those of the run, of an organization, or of a campaign."""

    scope: str
    organization: str | None = None
    campaign: str | None = None


def _row(part: Figures) -> dict[str, Any]:
    """The figures as one row of a table."""
    numbers, held = number_values(part), part.held_back
    calls = {name: numbers.pop(name) for name in [*numbers] if not follows_calls(name)}
    return {
        **{name: value for name, value in calls.items() if not name.startswith(REACH)},
        "currency": part.currency,
        **{name: value for name, value in calls.items() if name.startswith(REACH)},
        "held_back": held.reason.value if held else None,
        "held_back_sentence": held.sentence if held else None,
        **numbers,
    }


def _plain(value: Any) -> Any:
    """A value of the summary as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        plain = {}
        for name, is_instant in _ordered(value):
            part = getattr(value, name)
            plain[name] = _plain(part)
            if is_instant:
                plain[f"{name}_thai"] = _text(in_thai_time(part)) if part else None
        return plain
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, datetime):
        return _text(value.astimezone(UTC))
    return value.value if isinstance(value, StrEnum) else value


def _ordered(value: Any) -> list[tuple[str, bool]]:
    """The fields with whether they are instants: what it is, then its figures, then its parts."""
    listed = [(part.name, "datetime" in str(part.type)) for part in fields(value)]
    if not isinstance(value, Figures):
        return [part for part in listed if part[0] != "part"]
    figures = [part for part in listed if part[0] in _FIGURES]
    left_out = () if getattr(value, "compliance", ()) else ("compliance",)
    own = [part for part in listed if part[0] not in (*_FIGURES, *left_out, "part")]
    parts = [part for part in own if isinstance(getattr(value, part[0]), tuple)]
    return [*(part for part in own if part not in parts), *figures, *parts]


_FIGURES = [figure.name for figure in FIGURES if not figure.block]


def _text(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sum_up(reading: RunView) -> Summary:
    """The summary of a run."""
    trace, scenario = reading.trace, reading.world.scenario
    wholes, organizations = [], []
    shared = _shared_costs(reading)
    for block in reading.world.organizations:
        campaigns, occupancy = _campaigns(reading, block.position, shared)
        wholes.append(_together(reading, campaigns, occupancy))
        organizations.append(
            OrganizationSummary(
                part=wholes[-1],
                name=block.name,
                limits=tuple(
                    Limit(utc(row.at), row.limit) for row in trace.limits_of(block.position)
                ),
                campaigns=tuple(map(_campaign, campaigns)),
            )
        )
    occupancy = Occupancy.total(part.occupancy for part in wholes)
    return Summary(
        part=_together(reading, wholes, occupancy),
        scenario=scenario.name,
        seed=trace.world.seed,
        replication=trace.world.replication,
        end=utc(trace.end),
        cut=trace.cut,
        unfinished=tuple(life.full_name for life in reading.unfinished),
        stalled=tuple(life.full_name for life in reading.lives.values() if life.stalled),
        refused=_refused(reading),
        compliance=compliance(reading),
        warnings=reading.world.warnings,
        organizations=tuple(organizations),
    )


def _shared_costs(reading: RunView) -> dict[Position, float]:
    """What each campaign has to pay of what lines, and the run as a whole, cost."""
    costs, positions = reading.world.scenario.costs, [*reading.lives]
    people = [int(np.count_nonzero(listed(reading.states[position]))) for position in positions]
    scheduled = [reading.lives[position].request is not None for position in positions]
    shared = dict(zip(positions, fixed_shares(costs, people, scheduled).tolist(), strict=True))
    for block in reading.world.organizations:
        own = [position for position in positions if position[0] == block.position]
        shares = line_shares(
            costs,
            [reading.calls[position] for position in own],
            [reading.busy[position] for position in own],
            reading.slots[block.position].allowed,
            reading.trace.end,
        )
        for position, share in zip(own, shares.tolist(), strict=True):
            shared[position] += share
    return shared


def _campaigns(
    reading: RunView, organization: int, shared: Mapping[Position, float]
) -> tuple[list[Part], Occupancy]:
    """The campaigns of an organization, and its use of slots as a whole."""
    slots, costs = reading.slots[organization], reading.world.scenario.costs
    parts = []
    for position, life in reading.lives.items():
        if position[0] != organization:
            continue
        calls, states = reading.calls[position], reading.states[position]
        stream, verdicts = reading.streams[position], reading.verdicts[position]
        agent = reading.block(position).agent
        counts = count_campaign(calls, states, costs, stream, verdicts, agent)
        use, exhausted = reading.time_uses[position], attempts_of_exhausted(calls, states)
        bounds = _bounds(reading, life, use)
        parts.append(
            Part(
                lives=(life,),
                finish=_last(life, reading.finishes[position]),
                final_at=_last(life, life.final_at),
                counts=counts,
                occupancy=Occupancy.of(reading.busy[position], slots.allowed, life.open),
                held_back=held_back(life, use, counts.people, exhausted, bounds),
                costs=costs,
                shared_cost=shared[position],
                value=value_of(reading.block(position).value, counts),
            )
        )
    opened = union(part.occupancy.open for part in parts)
    return parts, Occupancy.of(slots.busy, slots.allowed, opened)


def _bounds(reading: RunView, life: CampaignTimeline, use: TimeUse) -> CampaignBounds:
    """What bounded a campaign while it ran."""
    slots, own = reading.slots[life.position[0]], reading.busy[life.position]
    start = life.end if life.start is None else min(life.start, life.end)
    inside = slots.allowed.at[(slots.allowed.at > start) & (slots.allowed.at < life.end)]
    limits = slots.allowed(np.append(inside, start))
    of_all = slots.busy.integral(use.slot_spans)
    return CampaignBounds(
        least_limit=int(limits.min()),
        most_limit=int(limits.max()),
        last_limit=int(slots.allowed(np.array([life.end]))[0]),
        mostly_others=2 * own.integral(use.slot_spans) < of_all,
        engine=reading.world.scenario.engine,
    )


def _together(reading: RunView, parts: Sequence[Part], occupancy: Occupancy) -> Part:
    """Several campaigns or organizations as one; held back as the one that finished last."""
    scheduled = [part for part in parts if any(life.request for life in part.lives)]
    last = max(scheduled or parts, key=lambda part: (part.finish, part.final_at), default=None)
    values = [part.value for part in parts if part.value is not None]
    return Part(
        lives=tuple(life for part in parts for life in part.lives),
        finish=max((part.finish for part in parts), default=-inf),
        final_at=max((part.final_at for part in parts), default=-inf),
        counts=Counts.total(part.counts for part in parts),
        occupancy=occupancy,
        held_back=last.held_back if last else None,
        costs=reading.world.scenario.costs,
        shared_cost=sum(part.shared_cost for part in parts),
        value=sum(values) if values else None,
    )


def _last(life: CampaignTimeline, instant: int | None) -> float:
    """An instant of a campaign, by which the last of several is found."""
    if instant is not None:
        return instant
    return -inf if life.request is None else inf


def _campaign(part: Part) -> CampaignSummary:
    (life,) = part.lives
    return CampaignSummary(
        part=part,
        organization=life.organization,
        name=life.name,
        status=life.status.value,
        start=None if life.start is None else utc(life.start),
    )


def _refused(reading: RunView) -> tuple[RefusedAction, ...]:
    organizations = reading.world.organizations
    return tuple(
        RefusedAction(
            at=utc(row.at),
            organization=organizations[row.organization].name,
            campaign=None
            if row.campaign is None
            else organizations[row.organization].campaigns[row.campaign].name,
            action=row.action,
            code=row.code,
            message=row.message,
        )
        for row in reading.trace.refused
    )
