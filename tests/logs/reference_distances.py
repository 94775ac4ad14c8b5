"""Shared cases for distances, and the values of the reference package.

The package is `log-distance-measures` 2.2.0 by D. Chapela de la Campa, from PyPI. It needs another
version of pandas than dialsim, so that it has a separate virtual environment:

    python tests/logs/reference_distances.py cases FOLDER        # where dialsim is
    pip install log-distance-measures==2.2.0                         # in the other environment
    python tests/logs/reference_distances.py values FOLDER > tests/logs/distances.json
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from dialsim.logs.distances import Events

HOUR = 3_600_000
MONDAY = 1_767_546_000_000  # 5 January 2026, 00:00 in Thailand


def some_events(
    seed: int, people: int, *, opens: float = 9.0, days: int = 3, talk: float = 60.0
) -> Events:
    """Calls by chance: up to three per person, some past midnight in Thailand."""
    from dialsim.logs.distances import Events

    chance = np.random.default_rng(seed)
    columns: list[tuple[int, int, int, int, int]] = []
    for person in range(people):
        at = MONDAY + int(chance.integers(days) * 24 * HOUR + (opens + chance.random() * 6) * HOUR)
        for attempt in range(1, 1 + int(chance.integers(1, 4))):
            outcome = int(chance.choice(4, p=[0.4, 0.3, 0.1, 0.2]))
            end = at + (int(chance.exponential(talk) * 1000) + 1 if outcome == 0 else 0)
            columns.append((person, outcome, attempt, at, end))
            at = end + int(chance.integers(1, 10 * HOUR))
            if outcome == 0:
                break
    person, outcome, attempt, started, ended = map(np.array, zip(*columns, strict=True))
    return Events.of(person, outcome.astype(np.int8), attempt, started, ended)


def cases() -> dict[str, tuple[Events, Events]]:
    """Pairs of logs, by the difference between them."""
    base = some_events(1, 150)
    return {
        "chance": (base, some_events(2, 150)),
        "two hours later": (base, some_events(1, 150, opens=11.0)),
        "longer talks": (base, some_events(1, 150, talk=72.0)),
        "fewer people": (base, some_events(3, 40)),
        "other days": (base, some_events(4, 80, days=6)),
        "few calls": (some_events(5, 2), some_events(6, 3)),
        "equal": (base, base),
    }


def reference(one: pd.DataFrame, other: pd.DataFrame) -> dict[str, float]:
    """The distances of the package, in the units of `distances.METRICS`."""
    from log_distance_measures.absolute_event_distribution import (
        absolute_event_distribution_distance,
    )
    from log_distance_measures.case_arrival_distribution import (
        case_arrival_distribution_distance,
        inter_arrival_distribution_distance,
    )
    from log_distance_measures.circadian_event_distribution import (
        circadian_event_distribution_distance,
    )
    from log_distance_measures.config import EventLogIDs
    from log_distance_measures.cycle_time_distribution import cycle_time_distribution_distance
    from log_distance_measures.n_gram_distribution import n_gram_distribution_distance
    from log_distance_measures.relative_event_distribution import (
        relative_event_distribution_distance,
    )

    ids = EventLogIDs("person", "outcome", "start", "end", "resource")
    pair = one, ids, other, ids
    ms = timedelta(milliseconds=1)
    return {
        "nGram": n_gram_distribution_distance(*pair),
        "absolute": absolute_event_distribution_distance(*pair),
        "circadian": circadian_event_distribution_distance(*pair),
        "relative": relative_event_distribution_distance(*pair),
        "arrivals": case_arrival_distribution_distance(*pair),
        "interArrivals": inter_arrival_distribution_distance(*pair, ms) / 1_000,
        "cycleTime": cycle_time_distribution_distance(*pair, ms) / 60_000,
    }


def _write_cases(folder: Path) -> None:
    for name, pair in cases().items():
        for side, events in enumerate(pair):
            columns: dict[str, Any] = {
                "person": events.person, "outcome": events.outcome,
                "start": events.started, "end": events.ended,
            }  # fmt: skip
            pd.DataFrame(columns).to_csv(folder / f"{name}.{side}.csv", index=False)


def _values(folder: Path) -> dict[str, dict[str, float]]:
    found = {}
    for file in sorted(folder.glob("*.0.csv")):
        pair = []
        for side in (file, file.with_name(file.name.replace(".0.", ".1."))):
            events = pd.read_csv(side)
            for name in ("start", "end"):
                at = pd.to_datetime(events[name], unit="ms", utc=True)
                events[name] = at.dt.tz_convert("Asia/Bangkok")
            pair.append(events)
        found[file.name.removesuffix(".0.csv")] = reference(*pair)
    return found


if __name__ == "__main__":
    what, folder = sys.argv[1:]
    if what == "cases":
        _write_cases(Path(folder))
    else:
        print(json.dumps(_values(Path(folder)), indent=2))
