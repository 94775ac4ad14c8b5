"""Summary of a run, of each organization, and of each campaign, for planners."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dialsim.interface.instants import in_thai_time, utc
from dialsim.results.compliance import Compliance, compliance
from dialsim.results.figures import (
    CUMULATIVE,
    FIGURES,
    INSTANTS,
    Figures,
    follows_calls,
    number_values,
)
from dialsim.results.run_view import PartName, RunPart, RunView

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSummary(Figures):
    """Summary of one campaign; `start` is its effective startAt (F3), None if never scheduled."""

    organization: str
    name: str
    status: str
    start: datetime | None


@dataclass(frozen=True, slots=True)
class Limit:
    """Value of maxConcurrentCalls from an instant on."""

    at: datetime
    max_concurrent_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationSummary(Figures):
    """Summary of one organization, with its limits over time and its campaigns."""

    name: str
    limits: tuple[Limit, ...]
    campaigns: tuple[CampaignSummary, ...]


@dataclass(frozen=True, slots=True)
class RefusedAction:
    """Refused request or action of the file, with the interface's answer."""

    at: datetime
    organization: str
    campaign: str | None
    action: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Figures):
    """Summary of the whole run.

    `end` is the last simulated instant. `cut` is True if clock.end came before the end of calling.
    `unfinished` has the campaigns (`Organization/Name`) that were scheduled and have no finish:
    they are not final, or lost people. `stalled` has those that can never change again (T5).
    `compliance` has a row for each rule and campaign.
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
        """Return plain values: instants as text in UTC, and also in Thai time."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def to_json(self) -> bytes:
        """Return the bytes of `summary.json`."""
        import orjson

        return orjson.dumps(self.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def parts(self) -> Iterator[tuple[PartName, Figures]]:
        """Yield the run, then each organization followed by its campaigns."""
        yield PartName("run"), self
        for owner in self.organizations:
            yield PartName("organization", owner.name), owner
            for campaign in owner.campaigns:
                yield PartName("campaign", owner.name, campaign.name), campaign

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for the run, each organization and each campaign.

        Columns are figures. `reach_by_attempt` has a column per attempt, `held_back` its reason and
        sentence. Figures of `analyses` and `webhooks` have these words as prefix; a funnel has a
        column per step, a field one per value.
        """
        import pandas as pd

        frame = pd.DataFrame([position._asdict() | _row(part) for position, part in self.parts()])
        frame = frame.astype(dict.fromkeys(INSTANTS, pd.DatetimeTZDtype("ms", "UTC")))
        frame["currency"] = frame["currency"].astype("str")
        return frame.astype({figure.name: "float64" for figure in FIGURES if figure.is_float})

    def __repr__(self) -> str:
        from dialsim.results.summary_text import headline

        return f"<dialsim.Summary {self.scenario!r} seed {self.seed}>\n{headline(self)}"

    def _repr_html_(self) -> str:
        from dialsim.results.summary_text import summary_html

        return summary_html(self)


def _row(part: Figures) -> dict[str, Any]:
    """Return the figures as one row of a table."""
    numbers, held = number_values(lambda figure: figure.of(part)), part.held_back
    calls = {name: numbers.pop(name) for name in [*numbers] if not follows_calls(name)}
    return {
        **{name: value for name, value in calls.items() if not name.startswith(CUMULATIVE)},
        "currency": part.currency,
        **{name: value for name, value in calls.items() if name.startswith(CUMULATIVE)},
        "held_back": held.reason.value if held else None,
        "held_back_sentence": held.sentence if held else None,
        **numbers,
    }


def _plain(value: Any) -> Any:
    """Convert a value of the summary to JSON types."""
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
    """Return names of fields in order (identification, figures, parts), with True for instants."""
    # Types of fields are texts here, because annotations are not evaluated.
    listed = [(part.name, "datetime" in str(part.type)) for part in fields(value)]
    if not isinstance(value, Figures):
        return listed
    figures = [part for part in listed if part[0] in _FIGURES]
    # Without rules summary.json has no `compliance`.
    left_out = () if getattr(value, "compliance", ()) else ("compliance",)
    own = [part for part in listed if part[0] not in (*_FIGURES, *left_out)]
    parts = [part for part in own if isinstance(getattr(value, part[0]), tuple)]
    return [*(part for part in own if part not in parts), *figures, *parts]


_FIGURES = [figure.name for figure in FIGURES if not figure.block]


def _text(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sum_up(reading: RunView) -> Summary:
    """Build the summary of a run."""
    trace, whole = reading.trace, reading.part()
    # These two need the most memory for a moment, so they are computed while little else is kept.
    _ = whole.held_back, whole.waits
    _return_freed_memory()
    _ = whole.deliveries
    organizations: list[tuple[RunPart, list[CampaignSummary]]] = []
    for part in reading.parts[1:]:
        if part.name.scope == "organization":
            organizations.append((part, []))
        else:
            organizations[-1][1].append(_campaign(part))
    return Summary(
        part=whole,
        scenario=reading.world.scenario.name,
        seed=trace.world.seed,
        replication=trace.world.replication,
        end=utc(trace.end),
        cut=trace.cut,
        unfinished=tuple(life.full_name for life in reading.unfinished),
        stalled=tuple(life.full_name for life in reading.lives if life.stalled),
        refused=_refused(reading),
        compliance=compliance(reading),
        warnings=reading.world.warnings,
        organizations=tuple(
            OrganizationSummary(
                part=part,
                name=block.name,
                limits=tuple(
                    Limit(utc(row.at), row.limit) for row in trace.limits_of(block.position)
                ),
                campaigns=tuple(campaigns),
            )
            for block, (part, campaigns) in zip(
                reading.world.organizations, organizations, strict=True
            )
        ),
    )


def _return_freed_memory() -> None:
    """Return freed memory to the system: glibc keeps columns of up to 32 MiB for later ones."""
    with suppress(AttributeError, OSError):  # elsewhere than on Linux
        ctypes.CDLL(None).malloc_trim(0)


def _campaign(part: RunPart) -> CampaignSummary:
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
