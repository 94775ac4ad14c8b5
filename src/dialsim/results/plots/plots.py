"""`result.plot`: the pictures of a run by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialsim.results.plots.scope import Scope

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
        from dialsim.results.plots.progress import draw_progress

        return draw_progress(self._scope(campaign), ax)

    def occupancy(self, organization: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Slots in use against the limit; open calling windows are shaded."""
        from dialsim.results.plots.occupancy import draw_occupancy

        return draw_occupancy(Scope.of_organization(self._result.reading, organization), ax)

    def outcomes(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Calls by the hour in which they were dialled (the day in long runs), and by end."""
        from dialsim.results.plots.outcomes import draw_outcomes

        return draw_outcomes(self._scope(campaign), ax)

    def queue(self, organization: str | None = None, *, ax: Axes | None = None) -> Axes:
        """The queue's length, and the wait of those who leave it."""
        from dialsim.results.plots.queue import draw_queue

        return draw_queue(Scope.of_organization(self._result.reading, organization), ax)

    def reach(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """The share of people reached by each attempt."""
        from dialsim.results.plots.reach import draw_reach

        return draw_reach(self._scope(campaign), ax)

    def answers(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """The share of dials answered by weekday and hour, as a heat map."""
        from dialsim.results.plots.answers import draw_answers

        return draw_answers(self._scope(campaign), ax)

    def story(self, recipient: int, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """One person's calls (position from 0): in the queue, dialling, ringing, talking."""
        from dialsim.results.plots.story import draw_story

        return draw_story(self._result.reading, recipient, campaign, ax)

    def webhooks(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Results sent to the webhook, by when and by what became of them."""
        from dialsim.results.plots.deliveries import draw_deliveries

        return draw_deliveries(self._scope(campaign), ax)

    def funnel(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """From people over those reached to the steps that conversations came to."""
        from dialsim.results.plots.funnel import draw_funnel

        summary = self._result.summary
        if campaign is None:
            return draw_funnel(summary, ax)
        life = self._result.reading.find(campaign)
        organization, place = life.position
        return draw_funnel(summary.organizations[organization].campaigns[place], ax)

    def _scope(self, campaign: str | None) -> Scope:
        return Scope.of_campaign(self._result.reading, campaign)
