"""Progress: how many people are reached, and how many are done with, up to the finish."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from dialsim.results.campaign_life import CampaignLife
from dialsim.results.ledger import NEVER
from dialsim.results.person_state import PERSON_STATES, PersonState, listed
from dialsim.results.plots.grain import thinned
from dialsim.results.plots.ink import BLACK, BLUE, GREY, SKY, families
from dialsim.results.plots.picture import canvas, count_axis, dress, key
from dialsim.results.plots.scope import Scope, sorted_instants
from dialsim.results.plots.thai_axis import days, shade, time_axis
from dialsim.results.thai_time import minute_text

_DONE_BY_CALL = [PERSON_STATES.index(s) for s in (PersonState.REACHED, PersonState.EXHAUSTED)]
_DONE_BY_END = [PERSON_STATES.index(s) for s in (PersonState.EXPIRED, PersonState.CANCELLED)]


@dataclass(frozen=True, slots=True)
class Progress:
    """Sorted instants (ms) at which people of a scope were reached, and were done with.

    Someone reached is done with when the conversation ends, someone not reached when the last
    attempt ends or the campaign does. Who was reached before the scenario begins counts from the
    campaign's start. `people` are all on the lists.
    """

    people: int
    reached: NDArray[np.int64]
    done: NDArray[np.int64]

    @classmethod
    def of(cls, scope: Scope) -> Progress:
        """That of the campaigns in a scope."""
        parts = [_instants(scope, life) for life in scope.lives]
        on_lists = [listed(scope.reading.states[position]) for position in scope.positions]
        return cls(
            people=sum(int(part.sum()) for part in on_lists),
            reached=sorted_instants([reached for reached, _ in parts]),
            done=sorted_instants([done for _, done in parts]),
        )


def _instants(scope: Scope, life: CampaignLife) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When each person of a campaign was reached, and done with; who wasn't is left out."""
    ledger, states = scope.reading.ledgers[life.position], scope.reading.states[life.position]
    start = life.end if life.start is None else life.start
    before = (states == _DONE_BY_CALL[0]) & ledger.past_reached
    answered = ledger.started_at[ledger.started_at != NEVER]
    by_call = np.isin(states, _DONE_BY_CALL)
    # of a person without a call here, the history alone has settled it
    ended = ledger.of_newest(ledger.ended_at, start)[by_call]
    over = np.count_nonzero(np.isin(states, _DONE_BY_END))
    return (
        np.concatenate([np.full(np.count_nonzero(before), start), answered]),
        np.concatenate([ended[ended != NEVER], np.full(over, life.end)]),
    )


def draw_progress(scope: Scope, ax: Axes | None) -> Axes:
    """People reached and done with over time, of all that are on the lists."""
    progress = Progress.of(scope)
    ax = canvas(ax)
    shade(ax, scope.open)
    ax.axhline(progress.people, color=GREY, linewidth=1, linestyle=(0, (4, 3)), label="all people")
    _curve(ax, progress.done, scope, SKY, "done with")
    _curve(ax, progress.reached, scope, BLUE, "reached")
    _finish(ax, scope, progress)
    label = time_axis(ax, scope.start, scope.end)
    count_axis(ax)
    ax.set_ylim(0, max(progress.people, 1) * 1.12)
    dress(ax, scope.title("Progress"), label, "people")
    key(ax, 4)
    return ax


def _curve(ax: Axes, at: NDArray[np.int64], scope: Scope, color: str, label: str) -> None:
    """A count that goes up by one at each instant."""
    shown = thinned(len(at))
    x = np.concatenate([[scope.start], at[shown], [scope.end]])
    y = np.concatenate([[0], shown + 1, [len(at)]])
    ax.plot(days(x), y, drawstyle="steps-post", color=color, linewidth=2, label=label)


def _finish(ax: Axes, scope: Scope, progress: Progress) -> None:
    """Mark the instant of the last campaign's final status."""
    finishes = [life.finish for life in scope.lives if life.request is not None]
    if not finishes or None in finishes:
        return
    finish = max(at for at in finishes if at is not None)
    ax.plot([float(days(finish))], [len(progress.done)], "o", color=BLACK, markersize=5)
    ax.annotate(
        f"finish {minute_text(finish)}",
        (float(days(finish)), progress.people),
        xytext=(0, 5),
        textcoords="offset points",
        ha="right",
        family=list(families()),
        fontsize=8.5,
        color=BLACK,
    )
