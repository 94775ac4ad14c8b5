"""`.plot` of replications, sweeps and plans: their pictures by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dialsim.experiments.plan import Plan
    from dialsim.experiments.replications import Replications
    from dialsim.experiments.sweep import Sweep


class ReplicationPlots:
    """The pictures of replications, drawn on `ax` or on a new figure, as `Result.plot` does."""

    def __init__(self, runs: Replications) -> None:
        self._runs = runs

    def progress(self, *, ax: Axes | None = None) -> Axes:
        """The share of people reached over time, as a fan over all runs, and their finishes."""
        from dialsim.experiments.plots.pictures import draw_fan

        return draw_fan(self._runs, ax)

    def finish(self, *, ax: Axes | None = None) -> Axes:
        """The share of runs that are done by each instant."""
        from dialsim.experiments.plots.pictures import draw_finishes

        return draw_finishes(self._runs, ax)


class SweepPlots:
    """The pictures of a sweep, drawn on `ax` or on a new figure, as `Result.plot` does."""

    def __init__(self, found: Sweep) -> None:
        self._found = found

    def curve(
        self, figure: str = "finish", path: str | None = None, *, ax: Axes | None = None
    ) -> Axes:
        """A figure's mean against the values of a path (the first), with a band of runs.

        Raises ExperimentError for a figure that isn't there, or a path that doesn't vary.
        """
        from dialsim.experiments.plots.pictures import draw_curve

        return draw_curve(self._found, figure, path, ax)

    def cost(self, *, ax: Axes | None = None) -> Axes:
        """Mean cost against mean finish, a point per variant.

        Raises ExperimentError if the scenario names no costs.
        """
        from dialsim.experiments.plots.pictures import draw_cost

        return draw_cost(self._found, ax)


class PlanPlots:
    """The pictures of a plan, drawn on `ax` or on a new figure, as `Result.plot` does."""

    def __init__(self, answer: Plan) -> None:
        self._answer = answer

    def evidence(self, clause: int = 0, *, ax: Axes | None = None) -> Axes:
        """What each value tried came to, with its interval, against the bound of a clause."""
        from dialsim.experiments.plots.pictures import draw_evidence

        return draw_evidence(self._answer, clause, ax)
