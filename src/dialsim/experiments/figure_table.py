"""Figures of many replications as tables: a row per replication and scope, a column per figure."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from dialsim.experiments.run_figures import INSTANTS, Number, RunFigures, ScopeFigures

if TYPE_CHECKING:
    import pandas as pd

PLACES = {
    "run": (),
    "organization": ("organization",),
    "campaign": ("organization", "campaign"),
}
"""What names a row of each scope."""

REACH = "reach_by_attempt_"


def is_share(figure: str) -> bool:
    """Whether a figure is a share, by its name."""
    return figure.endswith("_share") or figure.startswith(REACH)


def earliest_start(runs: Sequence[RunFigures]) -> int | None:
    """The earliest startAt (F3) in any of the runs, in ms; None if nothing was scheduled."""
    return min((run.start for run in runs if run.start is not None), default=None)


def figure_rows(runs: Sequence[RunFigures], scope: str, origin: int | None) -> list[dict[str, Any]]:
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
