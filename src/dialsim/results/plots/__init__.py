"""`result.plot`: the plots of a run by name, and the plot of one person's calls."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from dialsim.engine.trace import CHANGES, DIALLED
from dialsim.errors import DialsimError, OutputError
from dialsim.interface import CallStatus, Phase
from dialsim.interface.arguments import checked
from dialsim.interface.instants import date_text, duration_text, thai
from dialsim.results.plots.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    TEXT,
    canvas,
    dress,
    letters,
    note,
)
from dialsim.results.plots.outcomes import (
    draw_answers,
    draw_funnel,
    draw_outcomes,
    draw_reach,
    funnels,
)
from dialsim.results.plots.time import (
    draw_deliveries,
    draw_occupancy,
    draw_progress,
    draw_queue,
    draw_value,
)
from dialsim.results.run_view import CampaignResult, RunPart, RunView
from dialsim.results.story import PersonChange, check_recipient, person_changes

if TYPE_CHECKING:
    from dialsim.results.result import Result

COLORS = {"in the queue": ORANGE, "dialling": GREY, "ringing": SKY, "talking": GREEN}
_PHASES = {Phase.DIALLING: "dialling", Phase.RINGING: "ringing", Phase.TALKING: "talking"}
_LEAST_MS = 30_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """Time (ms) that a call spent in one state: `scheduled` or one of `COLORS`."""

    state: str
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class CallStory:
    """One call of a person: stretches, instant (ms) of its last dial, and status."""

    call: int
    stretches: tuple[Stretch, ...]
    dialled_at: int | None
    status: CallStatus
    end: int

    @property
    def zero(self) -> int:
        """Instant (ms) at 0 of the axis: the dial, or the end of a call without a dial."""
        return self.end if self.dialled_at is None else self.dialled_at


def call_stories(campaign: CampaignResult, recipient: int) -> list[CallStory]:
    """Return the calls of a recipient (position from 0). Raises DialsimError for an unknown one."""
    check_recipient(campaign.life, recipient)
    changes = person_changes(campaign.part.log, campaign.calls.rows, recipient)
    # Stable: changes of one call stay in the order of the log.
    by_call = groupby(sorted(changes, key=attrgetter("call")), key=attrgetter("call"))
    return [_call_story(call, [*own], campaign.run.trace.end) for call, own in by_call]


def _call_story(call: int, changes: list[PersonChange], now: int) -> CallStory:
    stretches = []
    over = [*(change.at for change in changes[1:]), now]
    for change, until in zip(changes, over, strict=True):
        state = _state(change.kind)
        if state is not None:
            stretches.append(Stretch(state, change.at, until))
    last = changes[-1]
    return CallStory(
        call=call,
        stretches=tuple(stretches),
        dialled_at=max((change.at for change in changes if change.kind == DIALLED), default=None),
        status=CHANGES[last.kind].to_status,
        end=last.at if _state(last.kind) is None else now,
    )


def _state(kind: int) -> str | None:
    """Return the state after a change; None if the call is over."""
    change = CHANGES[kind]
    if change.phase is not None:
        return _PHASES[change.phase]
    names = {CallStatus.SCHEDULED: "scheduled", CallStatus.QUEUED: "in the queue"}
    return names.get(change.to_status)


def draw_story(reading: RunView, recipient: int, campaign: str | None, ax: Axes | None) -> Axes:
    """Draw a row per call: waiting in the queue left of the dial, ringing and talking right of it.

    Long waits are cut off at the left and labelled with their duration.
    """
    own = reading.find(campaign)
    calls = call_stories(own, recipient)
    ax = canvas(ax, (6.4, 1.6 + 0.42 * len(calls)))
    name = own.block.people.customer_name(recipient)
    title = f"Recipient {recipient} of {own.life.name}" + (f": {name}" if name else "")
    if not calls:
        note(ax, "No call was ever created.")
        return dress(ax, title, "", "")
    right = max([_LEAST_MS, *(call.end - call.zero for call in calls)])
    waits = [call.zero - s.since for call in calls for s in call.stretches if _queued(s, call)]
    left = min(max([_LEAST_MS // 3, *waits]), right // 2)
    for row, call in enumerate(calls):
        _draw_call(ax, row, call, left)
    ax.axvline(0, color=TEXT, linewidth=0.8)
    ax.set_xlim(-left / 1000, right / 1000 * 1.28)
    ax.set_ylim(len(calls) - 0.4, -0.6)
    # An en dash for minus, which the fonts lack.
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "–"))
    ax.set_yticks(range(len(calls)), [_label(call) for call in calls])
    for state, color in COLORS.items():
        ax.fill_between([], [], color=color, label=state)
    return dress(ax, title, "seconds from the dial", "")


def _queued(stretch: Stretch, call: CallStory) -> bool:
    return stretch.state == "in the queue" and stretch.until == call.zero


def _label(call: CallStory) -> str:
    weekday, day, month, _ = date_text(call.zero).split()
    return f"call {call.call}, {weekday} {day} {month}\n{thai(call.zero):%H:%M:%S}"


def _draw_call(ax: Axes, row: int, call: CallStory, left: int) -> None:
    """Draw the bars of one call, its end, and the label of a cut-off wait."""
    for stretch in call.stretches:
        if stretch.state == "scheduled" or stretch.until < call.zero - left:
            continue
        since = max(stretch.since - call.zero, -left)
        until = stretch.until - call.zero
        ax.barh(row, (until - since) / 1000, 0.5, since / 1000, color=COLORS[stretch.state])
        if stretch.since - call.zero < -left:
            ax.text(
                -left / 1000 * 0.97,
                row,
                f"… {duration_text(round(stretch.until - stretch.since, -3))}",
                va="center",
                **letters(8, BLACK),
            )
    ax.annotate(
        call.status.value,
        ((call.end - call.zero) / 1000, row),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        **letters(8.5, BLUE if call.status is CallStatus.COMPLETED else TEXT),
    )


@checked(OutputError)
class Plots:
    """Plots of a run.

    Each is drawn on `ax` if given, else on a new figure, and returns the Axes, which a notebook
    shows. `campaign` is a campaign's name as in `Result.story`, `organization` an organization's;
    None means the whole run. Instants are Thai time. Colours suit colour-blind readers. Raises
    DialsimError for unknown names.
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def progress(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot people reached and settled over time, up to the finish."""
        return draw_progress(self._part(campaign), ax)

    def value(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot the value of results by day."""
        return draw_value(self._part(campaign), ax)

    def occupancy(self, organization: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot lines in use against the limit, with open calling windows shaded."""
        return draw_occupancy(self._part(organization=organization), ax)

    def outcomes(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot calls by the hour of their dial (the day in long runs), and by end."""
        return draw_outcomes(self._part(campaign), ax)

    def queue(self, organization: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot the queue's length, and the waits of calls that leave it."""
        return draw_queue(self._part(organization=organization), ax)

    def reach(
        self,
        campaign: str | None = None,
        organization: str | None = None,
        *,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot the share of people reached by each attempt, of a campaign, an organization, or
        all.
        """
        return draw_reach(self._part(campaign, organization), ax)

    def answers(
        self,
        campaign: str | None = None,
        organization: str | None = None,
        *,
        attempt: int = 1,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot the share of dials answered by weekday and hour, as a heat map.

        Only one attempt of each person counts, the first by default, because later ones go to
        people who are harder to reach. The plot is of one campaign or organization, which must be
        named if there are several: differences between their people would look like differences
        between hours.
        """
        if attempt < 1:
            raise DialsimError(f"attempt must be 1 or more, not {attempt}")
        owners = [block.name for block in self._result.reading.world.organizations]
        if campaign is None and organization is None and len(owners) > 1:
            raise DialsimError(f"say which organization: {', '.join(owners)}")
        return draw_answers(self._part(campaign, organization), attempt, ax)

    def story(self, recipient: int, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot one person's calls (position from 0): in the queue, dialling, ringing, talking."""
        return draw_story(self._result.reading, recipient, campaign, ax)

    def webhooks(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot results sent to the webhook, by time and outcome."""
        return draw_deliveries(self._part(campaign), ax)

    def funnel(self, campaign: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot people, people reached, and the steps that conversations reached.

        Each agent with a funnel has its own bars, for the people of its campaigns.
        """
        name = self._part(campaign).name
        parts = [
            part
            for part in self._result.summary.campaigns
            if campaign is None or (part.organization, part.name) == name[1:]
        ]
        return draw_funnel(funnels(parts), name.campaign or "", ax)

    def _part(self, campaign: str | None = None, organization: str | None = None) -> RunPart:
        return self._result.reading.part(campaign, organization)
