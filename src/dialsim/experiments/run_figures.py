"""The figures of one run as plain numbers, and what held it back: all that many runs keep.

A figure is named as in `finish`, `January.finish`, `Acme/January.people_reached`, `cost`. Many runs
make tables: a row per replication and scope, a column per figure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from difflib import get_close_matches
from functools import cached_property
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from dialsim.experiments.errors import ExperimentError
from dialsim.results.bottleneck import Bottleneck, Reason
from dialsim.results.figures import (
    BLOCKS,
    FUNNEL,
    INSTANTS,
    NUMBERS,
    REACH,
    Unit,
    attempt_of,
    exact_instant,
    is_instant,
    number_values,
    unit_of,
)
from dialsim.results.run_view import ProgressCurve

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd
    from numpy.typing import NDArray

    from dialsim.results.result import Result
    from dialsim.scenario.scenario import Scenario


Number = int | float

MARKS = 50
"""Into so many parts is the way to all people divided."""


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
    held_back: Bottleneck | None = None


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


def _held_back(kept: list[Any] | None) -> Bottleneck | None:
    if kept is None:
        return None
    campaign, reason, sentence, share, also = kept
    return Bottleneck(campaign, Reason(reason), sentence, share, tuple(map(Reason, also)))


def figures_of(result: Result) -> RunFigures:
    """The numbers of a result's summary, and its progress."""
    summary = result.summary
    starts = [_ms(part.start) for part in summary.campaigns if part.start is not None]
    scopes = []
    for place, part in summary.parts():
        scheduled = any(life.start is not None for life in part.part.lives)
        values = number_values(part)
        for name, value in values.items():
            if value is None:
                values[name] = inf if scheduled and name in INSTANTS else nan
            elif name in INSTANTS:
                values[name] = _ms(value)
        scopes.append(ScopeFigures(*place, values, part.held_back))
    progress = ProgressCurve.of(result.reading, result.reading.lives.values())
    return RunFigures(
        summary.replication, min(starts, default=None), tuple(scopes), progress.marks(MARKS)
    )


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class FigureName:
    """A figure of the whole run, of an organization, or of a campaign.

    `name` is a column of the frames; an instant is here in ms since 1970. `text` is as it was
    written.
    """

    text: str
    name: str
    organization: str | None
    campaign: str | None

    @property
    def unit(self) -> Unit:
        """What it is measured in."""
        return unit_of(self.name)

    @property
    def is_instant(self) -> bool:
        """Whether it is an instant, such as `finish`, and not a number."""
        return is_instant(self.name)

    @property
    def column(self) -> str:
        """The column of the tables that holds it; an instant counts in seconds there."""
        return f"{self.name}_seconds" if self.is_instant else self.name

    def of(self, runs: Sequence[RunFigures]) -> NDArray[np.float64]:
        """The figure in each of some runs; infinite where a run did not finish."""
        return np.array([self._in(run) for run in runs], dtype=np.float64)

    def _in(self, run: RunFigures) -> float:
        part = next(part for part in run.scopes if self._fits(part))
        last = attempt_of(self.name) or 0
        for attempt in range(last, 0, -1):  # where nobody needed it, that of the one before
            if f"{REACH}{attempt}" in part.values:
                return part.values[f"{REACH}{attempt}"]
        return part.values.get(self.name, 0)

    def _fits(self, part: ScopeFigures) -> bool:
        return (part.organization, part.campaign) == (self.organization, self.campaign)


def read_figure(text: str, scenario: Scenario) -> FigureName:
    """Read the name of a figure of a scenario's summary.

    Names are those of summary.json; `webhooks.lost` may also be written `webhooks_lost`. Raises
    ExperimentError if there is no such figure, campaign or organization.
    """
    known = _known(scenario)
    blocks = "|".join(filter(None, BLOCKS))
    plain = re.sub(rf"(^|\.)({blocks})\.(?=[a-z_0-9]+$)", r"\1\2_", text.strip())
    for start in [0, *(match.end() for match in re.finditer(r"\.", plain))]:
        name = plain[start:]
        if name in known or attempt_of(name):
            whose = plain[: max(start - 1, 0)]
            _check_cost(name, scenario)
            return FigureName(text.strip(), name, *_place(whose, text, scenario))
    last = plain.rpartition(".")[2]
    close = [name for name in known if len(last) > 3 and (last in name or name[:5] == last[:5])]
    close = close or get_close_matches(last, known)
    hint = f"; did you mean {' or '.join(close[:3])}?" if close else ""
    raise ExperimentError(f"there is no figure {text.strip() or '(nothing)'}{hint}")


def _known(scenario: Scenario) -> list[str]:
    """The figures of a summary of this scenario, but for reach_by_attempt."""
    names = [*NUMBERS]
    for organization in scenario.organizations:
        for agent in organization.agents:
            steps = (agent.analysis and agent.analysis.funnel) or ()
            names += [f"{FUNNEL}{agent.name}_{step.step}" for step in steps]
    return names


def _check_cost(name: str, scenario: Scenario) -> None:
    if name == "cost" and scenario.costs is None:
        raise ExperimentError("there is no figure cost: the scenario names no costs")


def _place(whose: str, text: str, scenario: Scenario) -> tuple[str | None, str | None]:
    """Organization and campaign that a figure is of."""
    if not whose:
        return None, None
    campaigns = [
        (organization.name, campaign.name)
        for organization in scenario.organizations
        for campaign in organization.campaigns
    ]
    found = [place for place in campaigns if whose in (place[1], f"{place[0]}/{place[1]}")]
    if len(found) == 1:
        return found[0]
    if found:
        names = " or ".join(f"{place[0]}/{place[1]}" for place in found)
        raise ExperimentError(f"{text}: campaign {whose} is ambiguous: write {names}")
    organizations = [organization.name for organization in scenario.organizations]
    if whose in organizations:
        return whose, None
    known = ", ".join([*(f"{place[0]}/{place[1]}" for place in campaigns), *organizations])
    raise ExperimentError(
        f"{text}: there is no campaign or organization {whose}; there are: {known}"
    )


PLACES = {"run": (), "organization": ("organization",), "campaign": ("organization", "campaign")}
"""What names a row of each scope."""


def earliest_start(runs: Sequence[RunFigures]) -> int | None:
    """The earliest startAt (F3) in any of the runs, in ms; None if nothing was scheduled."""
    return min((run.start for run in runs if run.start is not None), default=None)


def replication_rows(
    runs: Sequence[RunFigures], scope: str, origin: int | None
) -> list[dict[str, Any]]:
    """The rows of one scope: replication, its names, the instants, the rest.

    `finish` is in ms, None where there is none; `finish_seconds` counts from `origin`, and is
    infinite where a scheduled campaign did not finish; so are `final_at` and `final_at_seconds`.
    Every row has every figure: people reached by an attempt that nobody needed are those reached
    by the one before, and what a run did not count is 0.
    """
    listed = [(run, part) for run in runs for part in run.scopes if part.scope == scope]
    names = _names([part for _, part in listed])
    return [_row(run, part, names, origin) for run, part in listed]


def figure_frame(
    rows: Sequence[dict[str, Any]], scope: str, before: Sequence[str] = ()
) -> pd.DataFrame:
    """Rows as a table; counts are int64, other figures float64, instants are in UTC."""
    import pandas as pd

    columns = [*before, "replication", *PLACES[scope]]
    names = dict.fromkeys([*columns, *(c for n in INSTANTS for c in (n, f"{n}_seconds"))])
    names |= dict.fromkeys(name for row in rows for name in row)
    frame = pd.DataFrame(list(rows), columns=[*names])
    for name in INSTANTS:
        instants = pd.to_datetime(frame[name].astype("Int64"), unit="ms", utc=True)
        frame[name] = instants.astype(pd.DatetimeTZDtype("ms", "UTC"))
    return frame


def _names(parts: Sequence[ScopeFigures]) -> list[str]:
    """All figures of some parts; attempts in their order, behind one another."""
    names = dict.fromkeys(name for part in parts for name in part.values)
    reach = sorted((n for n in names if n.startswith(REACH)), key=lambda n: int(n[len(REACH) :]))
    rest = [name for name in names if not name.startswith(REACH)]
    return [*rest, *reach]


def _row(
    run: RunFigures, part: ScopeFigures, names: Sequence[str], origin: int | None
) -> dict[str, Any]:
    row: dict[str, Any] = {"replication": run.replication}
    row |= {name: getattr(part, name) for name in PLACES[part.scope]}
    for name in INSTANTS:
        at = part.values[name]
        row[name] = int(at) if isfinite(at) else None
        row[f"{name}_seconds"] = at if origin is None else (at - origin) / 1000
    reached: Number = 0
    for name in names:
        if name.startswith(REACH):
            row[name] = reached = part.values.get(name, reached)
        elif name not in INSTANTS:
            row[name] = part.values.get(name, 0)
    return row


class RunTables:
    """The figures of many runs as tables, with a row per run; a sweep has those of each variant.

    `finish` is an instant, NaT where there was none; `finish_seconds` counts from `origin`, and is
    infinite where a run did not finish (later than any instant).
    """

    def __init__(self, runs: Sequence[RunFigures]) -> None:
        self._start = earliest_start(runs)

    @property
    def origin(self) -> datetime | None:
        """The earliest startAt of all runs; None if nothing started."""
        return None if self._start is None else exact_instant(self._start)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row per run and campaign."""
        return self._table("campaign")

    @cached_property
    def organizations(self) -> pd.DataFrame:
        """A row per run and organization."""
        return self._table("organization")

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row per run."""
        return self._table("run")

    def _frames(self) -> dict[str, pd.DataFrame]:
        return {"run": self.runs, "organization": self.organizations, "campaign": self.frame}

    def _table(self, scope: str) -> pd.DataFrame:
        raise NotImplementedError
