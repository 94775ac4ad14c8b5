"""The pictures of one run on a page, with captions that say in numbers what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dialsim.report.page import Choice, Grid, Part, Picture, picture
from dialsim.results.bottleneck import percent
from dialsim.results.figures import Figures
from dialsim.results.plots.drawing import Scope
from dialsim.results.plots.outcomes import AnswerCounts, draw_funnel, funnels
from dialsim.results.result import Result
from dialsim.results.summary import CampaignSummary, OrganizationSummary, Summary
from dialsim.results.summary_text import reach_text, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_CAMPAIGNS, _MOST_OWNERS = 12, 6
"""So many have pictures of their own; there may be hundreds."""

_MOST_ATTEMPTS = 3
"""So many attempts have a map of answers."""

_Drawing = tuple[str, Callable[..., "Axes"], str]


@dataclass(frozen=True, slots=True)
class _Drawings:
    """Drawings of which the reader chooses one by its label."""

    asked: str
    options: tuple[tuple[str, _Drawing], ...]


def run_pictures(result: Result) -> list[Part]:
    """All pictures that have something to show, then which are left out, and how to get them."""
    summary = result.summary
    if summary.calls == 0:
        return []
    called = [owner for owner in summary.organizations if owner.calls]
    started = [
        (name, part)
        for name, part in short_names(summary)
        if part.start is not None and len(summary.campaigns) > 1
    ]
    drawings = [
        *_progress(result, summary, started[:_MOST_CAMPAIGNS]),
        *_slots(result, called[:_MOST_OWNERS]),
        *_calls(result, summary, called[:_MOST_OWNERS]),
        *_results(result, summary),
    ]
    shown: list[Part] = [
        Grid([_made(f"p{number}", drawing) for number, drawing in enumerate(drawings)])
    ]
    owners = [owner.name for owner in called]
    agents = [f"{funnel.agent} of {funnel.organization}" for funnel in funnels(summary.campaigns)]
    left_out = [
        _left_out(
            "campaigns", [name for name, _ in started], _MOST_CAMPAIGNS, "progress(CAMPAIGN)"
        ),
        _left_out("organizations", owners, _MOST_OWNERS, "occupancy(ORGANIZATION)"),
        _left_out("agents with a funnel", agents, _MOST_OWNERS, "funnel(CAMPAIGN)"),
    ]
    return [*shown, *(said for said in left_out if said)]


def _made(name: str, drawing: _Drawing | _Drawings) -> Picture | Choice:
    """A picture, or several to choose from; `name` is a word that no other has."""
    if isinstance(drawing, _Drawings):
        options = [
            (label, picture(f"{name}-{number}", draw, caption))
            for number, (label, (_, draw, caption)) in enumerate(drawing.options)
        ]
        return Choice(name, drawing.asked, options)
    kind, draw, caption = drawing
    return picture(f"{name}-{kind}", draw, caption)


def _left_out(kind: str, names: Sequence[str], most: int, drawing: str) -> str:
    """Which have no picture of their own, and how to get one; empty if all have."""
    if len(names) <= most:
        return ""
    return (
        f"The first {most} of {len(names)} {kind} have pictures of their own here. Not shown: "
        f"{', '.join(names[most:])}. In Python, dialsim.run(dialsim.load(FILE)).plot.{drawing} "
        "draws any of them."
    )


def _progress(
    result: Result, summary: Summary, campaigns: Sequence[tuple[str, CampaignSummary]]
) -> Iterator[_Drawing]:
    plot = result.plot
    yield (
        "progress",
        plot.progress,
        f"People reached and done with over time: {reach_text(summary)}.",
    )
    for name, part in campaigns:
        draw = partial(plot.progress, f"{part.organization}/{part.name}")
        yield "progress", draw, f"Progress of {name}: {reach_text(part)}."


def _slots(result: Result, owners: Sequence[OrganizationSummary]) -> Iterator[_Drawing]:
    for owner in owners:
        draw = partial(result.plot.occupancy, owner.name if len(owners) > 1 else None)
        yield "slots", draw, _slots_caption(owner, len(owners) > 1)
    for owner in owners:
        if owner.queue_wait_mean_seconds:
            draw = partial(result.plot.queue, owner.name if len(owners) > 1 else None)
            yield "queue", draw, _queue_caption(owner, len(owners) > 1)


def _slots_caption(owner: OrganizationSummary, named: bool) -> str:
    whose = f" of {owner.name}" if named else ""
    share = percent(owner.slots_capacity_share or 0)
    return (
        f"Slots{whose} in use against the limit: {owner.slots_in_use_mean or 0:.1f} on average "
        f"while windows were open, {share} of what was allowed; at most {owner.slots_in_use_peak}."
    )


def _queue_caption(owner: OrganizationSummary, named: bool) -> str:
    whose = f" of {owner.name}" if named else ""
    timeouts = f"; {owner.queue_timeouts:,} timed out" if owner.queue_timeouts else ""
    return (
        f"Calls in the queue{whose} and their wait: {owner.queue_wait_mean_seconds:,.0f} s on "
        f"average, 95 % within {owner.queue_wait_p95_seconds:,.0f} s{timeouts}."
    )


def _calls(
    result: Result, summary: Summary, owners: Sequence[OrganizationSummary]
) -> Iterator[_Drawing | _Drawings]:
    plot = result.plot
    ends = ", ".join(
        f"{percent(count / summary.attempts)} {name}"
        for name, count in (
            ("answered", summary.calls_completed),
            ("not answered", summary.calls_no_answer),
            ("busy", summary.calls_busy),
            ("failed", summary.calls_failed),
        )
        if count
    )
    if summary.attempts:
        yield "outcomes", plot.outcomes, f"Calls over time and how they ended: {ends}."
    for owner in owners:
        if maps := [*_answers(result, owner)]:
            yield maps[0][1] if len(maps) == 1 else _Drawings("Attempt", tuple(maps))
    reached = [*_reach_by_attempt(result, summary, owners)]
    if reached:
        yield reached[0][1] if len(reached) == 1 else _Drawings("Of", tuple(reached))


def _answers(result: Result, owner: OrganizationSummary) -> Iterator[tuple[str, _Drawing]]:
    """A map of when people answer for each of the first attempts."""
    scope = Scope.of_organization(result.reading, owner.name)
    for attempt in range(1, _MOST_ATTEMPTS + 1):
        found = AnswerCounts.of(scope, attempt)
        if not (dialled := int(found.attempts.sum())):
            return
        share = percent(int(found.answered.sum()) / dialled)
        which = "first attempts" if attempt == 1 else f"attempts no. {attempt}"
        caption = (
            f"Share of the {which} of {owner.name} that were answered, by weekday and hour, Thai "
            f"time: {share} of {dialled:,}."
        )
        draw = partial(result.plot.answers, organization=owner.name, attempt=attempt)
        yield str(attempt), ("answers", draw, caption)


def _reach_by_attempt(
    result: Result, summary: Summary, owners: Sequence[OrganizationSummary]
) -> Iterator[tuple[str, _Drawing]]:
    """The people reached by each attempt: by organization, and by campaign where there is one."""
    plot = result.plot
    parts: list[tuple[str, Figures, Callable[..., Axes]]] = [
        (owner.name, owner, partial(plot.reach, organization=owner.name)) for owner in owners
    ]
    if len(owners) == 1 and 1 < len(summary.campaigns) <= _MOST_CAMPAIGNS:
        parts += [
            (name, part, partial(plot.reach, f"{part.organization}/{part.name}"))
            for name, part in short_names(summary)
        ]
    for name, part, draw in parts:
        if part.reach_by_attempt:
            shares = ", ".join(percent(share) for share in part.reach_by_attempt[:8])
            whose = f" of {name}" if len(parts) > 1 else ""
            caption = f"Share of the people{whose} reached by attempt 1, 2, …: {shares}."
            yield name, ("reach", draw, caption)


def _results(result: Result, summary: Summary) -> Iterator[_Drawing]:
    webhooks = summary.webhooks
    if webhooks.results:
        caption = (
            f"Results sent to the webhook and what became of them: {webhooks.at_first_try:,} "
            f"delivered at first try, {webhooks.after_retries:,} after retries, "
            f"{webhooks.lost:,} lost."
        )
        yield "webhooks", result.plot.webhooks, caption
    found = funnels(summary.campaigns)
    for funnel in found[:_MOST_OWNERS]:
        (_, people), *_, (last, count) = funnel.steps
        whose = f"{funnel.agent} of {funnel.organization}"
        caption = (
            f"From the people whom {whose} calls to the steps of the conversation: {count:,} of "
            f"{people:,} came to {last}."
        )
        name = f"{funnel.organization}, {funnel.agent}" if len(found) > 1 else ""
        yield "funnel", partial(draw_funnel, [funnel], name), caption
