"""Experiments as plain values, for summary.json and `--format json`.

NaN and infinite numbers are null; `unfinished` counts the runs that make them infinite.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any

from dialsim.experiments.run_figures import INSTANTS
from dialsim.interface.instants import format_instant

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.replications import Replications
    from dialsim.experiments.sweep import Sweep

_ESTIMATES = ("mean", "p05", "p25", "p50", "p75", "p95")


def replications_document(runs: Replications) -> dict[str, object]:
    """Counts, wanted precision, and all estimates; instants beside their seconds."""
    return {
        "scenario": runs.scenario.name,
        "seed": runs.seed,
        "replications": len(runs),
        "origin": _instant(runs.origin),
        "confidence": 0.95,
        "precision": [
            {
                "figure": part.figure,
                "wanted": part.wanted,
                "reached": _plain(part.reached),
                "unfinished": part.unfinished,
                "met": part.met,
            }
            for part in runs.precision
        ],
        "estimates": _estimates(runs.intervals(), runs.origin),
    }


def sweep_document(
    found: Sweep, differences: pd.DataFrame, baseline: str, seed: int, adjust: str | None
) -> dict[str, object]:
    """The variants, their estimates, and the differences to the baseline."""
    return {
        "scenario": found.scenario.name,
        "seed": seed,
        "replications": found.replications,
        "origin": _instant(found.origin),
        "confidence": 0.95,
        "variants": [
            {
                "variant": variant.name,
                "changes": [f"{change.path}={change.text}" for change in variant.changes],
            }
            for variant in found.variants
        ],
        "estimates": _estimates(found.intervals().drop(columns=list(found.paths)), found.origin),
        "baseline": baseline,
        "adjustment": adjust,
        "differences": _records(differences),
    }


def _estimates(table: pd.DataFrame, origin: datetime | None) -> list[dict[str, object]]:
    rows = _records(table)
    for row in rows:
        instant = row["figure"].removesuffix("_seconds")
        if instant in INSTANTS and origin is not None:
            row |= {f"{instant}_{name}": _after(origin, row[name]) for name in _ESTIMATES}
    return rows


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    known = table.astype(object).where(table.notna(), None)
    columns = [[_plain(value) for value in known[name].tolist()] for name in table.columns]
    rows: Iterable[tuple[Any, ...]] = zip(*columns, strict=True)
    return [dict(zip(map(str, table.columns), row, strict=True)) for row in rows]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


def _after(origin: datetime, seconds: float | None) -> str | None:
    return None if seconds is None else _instant(origin + timedelta(seconds=seconds))


def _instant(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(round(instant.timestamp() * 1000))
