"""The pictures of one run, with captions that say in numbers what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dialsim.report.inline import picture
from dialsim.report.page import Part, Pictures, Text
from dialsim.results.held_back import percent
from dialsim.results.plots.answers import Answers
from dialsim.results.plots.funnel import draw_funnel, funnels
from dialsim.results.plots.scope import Scope
from dialsim.results.result import Result
from dialsim.results.summary import CampaignSummary, OrganizationSummary, Summary
from dialsim.results.wording import reach_text, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_CAMPAIGNS, _MOST_OWNERS = 12, 6
"""So many have pictures of their own; there may be hundreds."""

_Drawing = tuple[str, Callable[..., "Axes"], str]


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
        Pictures(
            [
                picture(f"p{number}-{name}", draw, caption)
                for number, (name, draw, caption) in enumerate(drawings)
            ]
        )
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
    return [*shown, *(Text(said) for said in left_out if said)]


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
) -> Iterator[_Drawing]:
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
        found = Answers.of(Scope.of_organization(result.reading, owner.name), 1)
        if dialled := int(found.attempts.sum()):
            share = percent(int(found.answered.sum()) / dialled)
            caption = (
                f"Share of the first attempts of {owner.name} that were answered, by weekday and "
                f"hour, Thai time: {share} of {dialled:,}."
            )
            yield "answers", partial(plot.answers, organization=owner.name), caption
    if summary.reach_by_attempt:
        shares = ", ".join(percent(share) for share in summary.reach_by_attempt[:8])
        yield "reach", plot.reach, f"Share of people reached by attempt 1, 2, …: {shares}."


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
