"""One replication as a task for a worker, which may be another process or another machine."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dialsim.experiments.run_figures import figures_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dialsim.scenario.models import Scenario

_UNPACKED_AT_MOST = 8
_unpacked: dict[str, Scenario] = {}


@dataclass(frozen=True, slots=True)
class Task:
    """Replication `replication` of `seed` of the scenario in `parcel`; `index` names the task."""

    index: int
    digest: str
    parcel: NDArray[np.uint8]
    seed: int
    replication: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task: its figures as text (`RunFigures.to_text`), or the error it raised."""

    index: int
    figures: str | None
    failure: str | None


def carry_out(
    index: int, digest: str, parcel: NDArray[np.uint8] | bytes, seed: int, replication: int
) -> Outcome:
    """Simulate one replication; an error is an outcome too, so that it costs no other its run."""
    from dialsim.results.runs import run

    try:
        scenario = _scenario(digest, parcel)
        summary = run(scenario, seed=seed, replication=replication).summary
        return Outcome(index, figures_of(summary).to_text(), None)
    except Exception as error:
        return Outcome(index, None, f"{type(error).__name__}: {error}")


def _scenario(digest: str, parcel: NDArray[np.uint8] | bytes) -> Scenario:
    """The scenario in a parcel; a worker unpacks it once."""
    if digest not in _unpacked:
        if len(_unpacked) >= _UNPACKED_AT_MOST:
            _unpacked.clear()
        _unpacked[digest] = pickle.loads(bytes(parcel))
    return _unpacked[digest]
