"""What a test may hand over as a run: a result, a simulation under way, or a trace."""

from __future__ import annotations

from dialsim.engine.simulation import Simulation
from dialsim.engine.trace import Trace
from dialsim.results.result import Result

Traced = Result | Simulation | Trace
"""Anything with a trace."""


def trace_of(run: Traced) -> Trace:
    """The trace of a run."""
    return run if isinstance(run, Trace) else run.trace
