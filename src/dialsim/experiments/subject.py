"""The subject of an experiment: a scenario with a seed, and what its replications came to."""

from __future__ import annotations

import pickle
import shlex
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dialsim.experiments.prior import Prior, prior_of
from dialsim.experiments.run_figures import RunFigures

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.scenario.models import Scenario


class Subject:
    """A scenario that is replicated; `finished` are its replications so far, by number."""

    def __init__(self, scenario: Scenario, seed: int | None = None) -> None:
        """`seed` defaults to the scenario's."""
        self.scenario = scenario
        self.seed = scenario.seed if seed is None else seed
        self.digest = scenario.digest
        self.finished: dict[int, RunFigures] = {}

    @cached_property
    def prior(self) -> Prior:
        """What the scenario tells of its runs before any is made."""
        return prior_of(self.scenario)

    @cached_property
    def parcel(self) -> NDArray[np.uint8]:
        """The scenario as bytes; as an array, which workers on this machine share if it is big."""
        return np.frombuffer(pickle.dumps(self.scenario, protocol=5), dtype=np.uint8)

    def first(self, count: int) -> list[RunFigures]:
        """The first `count` replications, all of which must be finished, in order."""
        return [self.finished[replication] for replication in range(count)]

    def rerun(self, replication: int) -> str:
        """The command that runs one replication alone."""
        origin = self.scenario.origin
        words = ["dialsim", "run", origin.name if origin else self.scenario.name]
        words += ["--seed", str(self.seed), "--replication", str(replication)]
        for override in origin.overrides if origin else ():
            words += ["--set", override]
        return shlex.join(words)
