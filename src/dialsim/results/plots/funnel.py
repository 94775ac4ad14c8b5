"""The funnel: how far the conversations came, by the steps that an agent's analysis names."""

from __future__ import annotations

from matplotlib.axes import Axes

from dialsim.results.held_back import percent
from dialsim.results.plots.ink import BLUE, GREY, ORANGE, TEXT, families
from dialsim.results.plots.picture import canvas, count_axis, dress, note
from dialsim.results.summary import CampaignSummary, Figures, Summary


def funnel_bars(figures: Figures) -> list[tuple[str, int]]:
    """Names and counts: people, people reached, then each step of the conversations analyzed.

    Where several agents have a funnel, their steps are named `Agent: step`.
    """
    steps = figures.analyses.funnel
    several = len({count.agent for count in steps}) > 1
    return [
        ("people", figures.people),
        ("reached", figures.people_reached),
        *(
            (f"{count.agent}: {count.step}" if several else count.step, count.reached)
            for count in steps
        ),
    ]


def draw_funnel(figures: Summary | CampaignSummary, ax: Axes | None) -> Axes:
    """Bars from all people down to the last step."""
    ax = canvas(ax)
    bars = funnel_bars(figures)
    places = range(len(bars))
    colors = [GREY, BLUE, *[ORANGE] * (len(bars) - 2)]
    ax.barh(places, [count for _, count in bars], 0.7, color=colors)
    most = max([count for _, count in bars] + [1])
    for place, (_, count) in enumerate(bars):
        share = percent(count / figures.people) if figures.people else ""
        ax.text(
            count + most * 0.01,
            place,
            f"{count:,} ({share})",
            va="center",
            family=list(families()),
            fontsize=8.5,
            color=TEXT,
        )
    count_axis(ax)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_yticks(list(places), [name for name, _ in bars])
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.grid(visible=False)
    ax.set_xlim(0, most * 1.25)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if len(bars) == 2:
        note(ax, "No agent has a funnel.")
    name = f": {figures.name}" if isinstance(figures, CampaignSummary) else ""
    return dress(ax, f"Funnel{name}", "people, and conversations analyzed", "")
