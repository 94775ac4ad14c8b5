"""The pictures of one run, with captions that say in numbers what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from dialsim.report.inline import picture
from dialsim.report.page import Picture
from dialsim.results.held_back import percent
from dialsim.results.result import Result
from dialsim.results.summary import Figures, OrganizationSummary, Summary
from dialsim.results.wording import reach_text, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 6
"""Pictures of one kind; there may be hundreds of campaigns."""

_Drawing = tuple[str, Callable[..., "Axes"], str]


def run_pictures(result: Result) -> list[Picture]:
    """All pictures that have something to show."""
    summary = result.summary
    if summary.calls == 0:
        return []
    drawings = [
        *_progress(result, summary),
        *_slots(result, summary),
        *_calls(result, summary),
        *_results(result, summary),
    ]
    return [
        picture(f"p{number}-{name}", draw, caption)
        for number, (name, draw, caption) in enumerate(drawings)
    ]


def _progress(result: Result, summary: Summary) -> Iterator[_Drawing]:
    plot = result.plot
    yield (
        "progress",
        plot.progress,
        f"People reached and done with over time: {reach_text(summary)}.",
    )
    if len(summary.campaigns) == 1:
        return
    for (name, part), life in zip(
        short_names(summary)[:_MOST], result.reading.lives.values(), strict=False
    ):
        if part.start is not None:
            draw = partial(plot.progress, life.full_name)
            yield "progress", draw, f"Progress of {name}: {reach_text(part)}."


def _slots(result: Result, summary: Summary) -> Iterator[_Drawing]:
    owners = [owner for owner in summary.organizations if owner.calls][:_MOST]
    for owner in owners:
        draw = partial(result.plot.occupancy, owner.name if len(owners) > 1 else None)
        yield "slots", draw, _slots_caption(owner, len(owners) > 1)
    waited = [owner for owner in owners if owner.queue_wait_mean_seconds]
    for owner in waited:
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


def _calls(result: Result, summary: Summary) -> Iterator[_Drawing]:
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
        yield "answers", plot.answers, _answers_caption(summary)
    if summary.reach_by_attempt:
        shares = ", ".join(percent(share) for share in summary.reach_by_attempt[:8])
        yield "reach", plot.reach, f"Share of people reached by attempt 1, 2, …: {shares}."


def _answers_caption(summary: Figures) -> str:
    share = percent(summary.calls_completed / summary.attempts)
    return f"Share of dials answered by weekday and hour, Thai time: {share} over all of them."


def _results(result: Result, summary: Summary) -> Iterator[_Drawing]:
    webhooks, steps = summary.webhooks, summary.analyses.funnel
    if webhooks.results:
        caption = (
            f"Results sent to the webhook and what became of them: {webhooks.at_first_try:,} "
            f"delivered at first try, {webhooks.after_retries:,} after retries, "
            f"{webhooks.lost:,} lost."
        )
        yield "webhooks", result.plot.webhooks, caption
    if steps:
        last = steps[-1]
        caption = f"From people to steps of the conversation: {last.reached:,} came to {last.step}."
        yield "funnel", result.plot.funnel, caption
