"""`result.plot`: the pictures of a run by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialsim.interface.errors import DialsimError
from dialsim.results.plots.drawing import Scope
from dialsim.results.plots.outcomes import (
    draw_answers,
    draw_funnel,
    draw_outcomes,
    draw_reach,
    funnels,
)
from dialsim.results.plots.story import draw_story
from dialsim.results.plots.time import draw_deliveries, draw_occupancy, draw_progress, draw_queue

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dialsim.results.result import Result


class Plots:
    """The pictures of a run.

    Each is drawn on `ax` if one is given, else on a new figure of its own, and returns the Axes,
    which a notebook shows. `campaign` is a campaign's name as in `Result.story`, `organization` an
    organization's; None is the whole run. Instants are Thai time. Colours can be told apart by
    colour-blind people. Raises DialsimError for names that are not there.
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def progress(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """People reached and done with over time, up to the finish."""
        return draw_progress(self._scope(campaign), ax)

    def occupancy(self, organization: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Slots in use against the limit; open calling windows are shaded."""
        return draw_occupancy(Scope.of_organization(self._result.reading, organization), ax)

    def outcomes(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Calls by the hour in which they were dialled (the day in long runs), and by end."""
        return draw_outcomes(self._scope(campaign), ax)

    def queue(self, organization: str | None = None, *, ax: Axes | None = None) -> Axes:
        """The queue's length, and the wait of those who leave it."""
        return draw_queue(Scope.of_organization(self._result.reading, organization), ax)

    def reach(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """The share of people reached by each attempt."""
        return draw_reach(self._scope(campaign), ax)

    def answers(
        self,
        campaign: str | None = None,
        organization: str | None = None,
        *,
        attempt: int = 1,
        ax: Axes | None = None,
    ) -> Axes:
        """The share of dials answered by weekday and hour, as a heat map.

        Of one attempt of each person, the first by default, for later ones go to people who are
        harder to reach. Of a campaign or an organization, which must be named where there are
        several: whose people are called in an hour would look like what the hour does.
        """
        if campaign is not None:
            return draw_answers(self._scope(campaign), attempt, ax)
        owners = [block.name for block in self._result.reading.world.organizations]
        if organization is None and len(owners) > 1:
            raise DialsimError(f"say which organization: {', '.join(owners)}")
        scope = Scope.of_organization(self._result.reading, organization)
        return draw_answers(scope, attempt, ax)

    def story(self, recipient: int, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """One person's calls (position from 0): in the queue, dialling, ringing, talking."""
        return draw_story(self._result.reading, recipient, campaign, ax)

    def webhooks(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Results sent to the webhook, by when and by what became of them."""
        return draw_deliveries(self._scope(campaign), ax)

    def funnel(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """From people over those reached to the steps that conversations came to.

        For each agent that has a funnel, with the people of its campaigns alone.
        """
        named = {life.position for life in self._scope(campaign).lives}
        parts = [
            part
            for o, owner in enumerate(self._result.summary.organizations)
            for c, part in enumerate(owner.campaigns)
            if (o, c) in named
        ]
        return draw_funnel(funnels(parts), self._scope(campaign).name, ax)

    def _scope(self, campaign: str | None) -> Scope:
        return Scope.of_campaign(self._result.reading, campaign)
