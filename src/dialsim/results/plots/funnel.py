"""The funnel: how far the conversations came, by the steps that an agent's analysis names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from dialsim.results.held_back import percent
from dialsim.results.plots.ink import BLUE, GREY, ORANGE, TEXT, families
from dialsim.results.plots.picture import canvas, dress, note
from dialsim.results.summary import CampaignSummary

_GAP = 0.9
"""Between the bars of two agents, in bars."""


@dataclass(frozen=True, slots=True)
class Funnel:
    """The people of the campaigns of one agent, and how many came how far.

    `steps` are names and counts: of the people, of those reached, and of the conversations analyzed
    that came to each step of the agent's funnel.
    """

    organization: str
    agent: str
    steps: tuple[tuple[str, int], ...]


def funnels(campaigns: Iterable[CampaignSummary]) -> list[Funnel]:
    """One for each agent that has a funnel: whoever is called by another agent is in none."""
    by_agent: dict[tuple[str, str], list[CampaignSummary]] = {}
    for campaign in campaigns:
        if campaign.analyses.funnel:
            agent = campaign.analyses.funnel[0].agent
            by_agent.setdefault((campaign.organization, agent), []).append(campaign)
    return [Funnel(*place, _steps(parts)) for place, parts in by_agent.items()]


def _steps(campaigns: Sequence[CampaignSummary]) -> tuple[tuple[str, int], ...]:
    steps = zip(*(campaign.analyses.funnel for campaign in campaigns), strict=True)
    return (
        ("people", sum(campaign.people for campaign in campaigns)),
        ("reached", sum(campaign.people_reached for campaign in campaigns)),
        *((counts[0].step, sum(count.reached for count in counts)) for counts in steps),
    )


def draw_funnel(shown: Sequence[Funnel], name: str, ax: Axes | None = None) -> Axes:
    """Bars from the people of each agent down to its last step; `name` ends the title."""
    ax = canvas(ax)
    most = max((count for funnel in shown for _, count in funnel.steps), default=1) or 1
    place, ticks = 0.0, {}
    for funnel in shown:
        if len(shown) > 1:
            _write(ax, 0, place, f"{funnel.organization}, {funnel.agent}", weight="bold")
            place += 1
        people = funnel.steps[0][1]
        for number, (step, count) in enumerate(funnel.steps):
            ax.barh(place, count, 0.7, color=(GREY, BLUE, ORANGE)[min(number, 2)])
            share = f" ({percent(count / people)})" if people else ""
            _write(ax, count + most * 0.01, place, f"{count:,}{share}")
            ticks[place] = step
            place += 1
        place += _GAP
    ax.set_yticks([*ticks], [*ticks.values()])
    ax.set_ylim(max(place - _GAP, 1) - 0.4, -0.6)
    ax.grid(visible=False)
    ax.set_xlim(0, most * 1.25)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if not shown:
        note(ax, "No agent has a funnel.")
    title = f"Funnel: {name}" if name else "Funnel"
    return dress(ax, title, "people, and conversations analyzed", "")


def _write(ax: Axes, x: float, y: float, text: str, weight: str = "normal") -> None:
    ax.text(
        x,
        y,
        text,
        va="center",
        family=list(families()),
        fontsize=8.5,
        fontweight=weight,
        color=TEXT,
    )
