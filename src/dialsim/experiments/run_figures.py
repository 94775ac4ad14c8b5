"""The figures of one run as plain numbers, and what held it back: all that many runs keep."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from math import inf, nan
from typing import TYPE_CHECKING, Any

from dialsim.results.held_back import HeldBack, Reason
from dialsim.results.progress import Progress
from dialsim.results.summary import CampaignSummary, Figures, Summary, figure_rows

if TYPE_CHECKING:
    from datetime import datetime

    from dialsim.results.result import Result

Number = int | float

MARKS = 50
"""Into so many parts is the way to all people divided."""

INSTANTS = ("finish", "final_at")
"""The figures that are instants: in ms since 1970; tables have them in seconds as well."""

_NOT_NUMBERS = (
    "scope",
    "organization",
    "campaign",
    "currency",
    "held_back",
    "held_back_sentence",
)


@dataclass(frozen=True, slots=True)
class ScopeFigures:
    """The figures of the whole run, of an organization or of a campaign.

    `scope` is `run`, `organization` or `campaign`. `values` are the numeric figures of the summary
    by name, NaN where there is none. `finish` and `final_at` are in ms since 1970 (UTC): infinite
    where a scheduled campaign has none, NaN where nothing was scheduled. `held_back` is as in the
    summary.
    """

    scope: str
    organization: str | None
    campaign: str | None
    values: dict[str, Number]
    held_back: HeldBack | None = None


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of one replication; `start` is the earliest startAt in ms, None if none was.

    `reached` are the instants (ms) by which 1, 2, … `MARKS`-ths of all people were reached, as far
    as they were.
    """

    replication: int
    start: int | None
    scopes: tuple[ScopeFigures, ...]
    reached: tuple[int, ...] = ()

    def to_text(self) -> str:
        """One line of text, from which `from_text` makes the very same numbers."""
        scopes = [
            [s.scope, s.organization, s.campaign, s.values, s.held_back and astuple(s.held_back)]
            for s in self.scopes
        ]
        values = [self.replication, self.start, scopes, self.reached]
        return json.dumps(values, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> RunFigures:
        """Read what `to_text` wrote."""
        replication, start, scopes, reached = json.loads(text)
        parts = tuple(
            ScopeFigures(scope, organization, campaign, values, _held_back(held))
            for scope, organization, campaign, values, held in scopes
        )
        return cls(replication, start, parts, tuple(reached))


def _held_back(kept: list[Any] | None) -> HeldBack | None:
    if kept is None:
        return None
    campaign, reason, sentence, share, also = kept
    return HeldBack(campaign, Reason(reason), sentence, share, tuple(map(Reason, also)))


def figures_of(result: Result) -> RunFigures:
    """The numbers of a result's summary, and its progress."""
    summary = result.summary
    starts = [_ms(part.start) for part in summary.campaigns if part.start is not None]
    scopes = []
    for row, (figures, campaigns) in zip(figure_rows(summary), _parts(summary), strict=True):
        place = (row["scope"], row["organization"], row["campaign"])
        missing = inf if any(part.start is not None for part in campaigns) else nan
        values = {
            name: _instant(value, missing) if name in INSTANTS else nan if value is None else value
            for name, value in row.items()
            if name not in _NOT_NUMBERS
        }
        scopes.append(ScopeFigures(*place, values, figures.held_back))
    progress = Progress.of(result.reading, result.reading.lives.values())
    return RunFigures(
        summary.replication, min(starts, default=None), tuple(scopes), progress.marks(MARKS)
    )


def _parts(summary: Summary) -> Iterator[tuple[Figures, Sequence[CampaignSummary]]]:
    """The run, each organization and its campaigns, as `figure_rows` has them; their campaigns."""
    yield summary, summary.campaigns
    for owner in summary.organizations:
        yield owner, owner.campaigns
        for campaign in owner.campaigns:
            yield campaign, (campaign,)


def _instant(instant: datetime | None, missing: float) -> float:
    return missing if instant is None else _ms(instant)


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)
