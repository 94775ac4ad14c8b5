"""Report of one run: its finish, its bottleneck, what would help, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import inf, isfinite, nan
from typing import TYPE_CHECKING

from dialsim import __version__
from dialsim.interface.instants import minute_text, ms_of
from dialsim.interface.phrases import counted, percent
from dialsim.report.effects import (
    effect_table,
    finish_effect,
    not_allowed_notes,
    number_effect,
    spread,
)
from dialsim.report.page import (
    Choice,
    Fact,
    Grid,
    Notes,
    Part,
    Picture,
    ReportPage,
    Section,
    picture,
)
from dialsim.report.what_if import (
    MOST_PAIRS,
    SHORTER_RETRIES,
    Help,
    MeasuredLever,
    NotMeasured,
    WhatIf,
    as_good,
    best,
    dear,
)
from dialsim.results.figures import COST_PARTS, Figures, cost_parts
from dialsim.results.plots.drawing import Scope
from dialsim.results.plots.outcomes import AnswerCounts, draw_funnel, funnels
from dialsim.results.result import Result
from dialsim.results.summary import CampaignSummary, OrganizationSummary, Summary
from dialsim.results.summary_text import (
    FigureTable,
    ValueText,
    answers,
    lost_text,
    reach_text,
    short_names,
    tables,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def run_page(result: Result, measured: Help) -> ReportPage:
    """Return the report of a run; `measured` are its levers, or why they were not measured."""
    summary = result.summary
    facts = [
        _finish(summary),
        _sure(summary, measured),
        _reach(summary),
        _held_back(summary),
        *([help_fact(measured)] if measured else []),
        *_cost(summary),
    ]
    return ReportPage(
        title=summary.scenario,
        lead=_lead(result),
        answer=_answer(summary),
        facts=facts,
        sections=[*_sections(result, measured)],
        made_from=_made_from(result),
    )


def _lead(result: Result) -> str:
    described = result.trace.world.scenario.description
    return f"{described}." if described and not described.endswith(".") else described or ""


def _answer(summary: Summary) -> str:
    """Return the answer in one sentence."""
    if not any(part.start for part in summary.campaigns):
        return "Nothing was scheduled"
    if summary.finish is None:
        which = counted(len(summary.unfinished), "campaign does", "campaigns do")
        which = "It does" if len(summary.campaigns) == 1 else which
        lost = f", {lost_text(summary.people_lost)}" if summary.people_lost else ""
        return f"{which} not finish{lost}; {_reached(summary)}"
    return f"Done {_when(summary.finish)}; {_reached(summary)}"


def _reached(summary: Summary) -> str:
    return f"{percent(summary.reach_share or 0)} of the people reached"


def _when(instant: datetime) -> str:
    return f"{minute_text(ms_of(instant))} Thai time"


_NAMED = 6
"""Unfinished campaigns listed by name, at most; the table below has all."""


def _finish(summary: Summary) -> Fact:
    if summary.finish is None:
        said = zip(summary.campaigns, answers(summary), strict=True)
        missing = [
            f"{answer.campaign}: {answer.finish}" if len(summary.campaigns) > 1 else answer.finish
            for part, answer in said
            if f"{part.organization}/{part.name}" in summary.unfinished or not summary.unfinished
        ]
        more = len(missing) - _NAMED
        rest = [f"and {more} more"] if more > 0 else []
        lost = f": {lost_text(summary.people_lost)}" if summary.people_lost else ""
        return Fact("Will it finish?", f"No{lost}", f"{'; '.join([*missing[:_NAMED], *rest])}.")
    # A cancelled campaign may have finished as well: everybody was settled before.
    completed = {part.status for part in summary.campaigns if part.start} == {"COMPLETED"}
    every = "every campaign is completed" if completed else "nobody was lost"
    yes = f"Yes: {every}" if len(summary.campaigns) > 1 or not completed else "Yes"
    days = counted(summary.calling_days, "calling day")
    return Fact("Will it finish?", yes, f"{_when(summary.finish)}, {days}.")


def _sure(summary: Summary, measured: Help) -> Fact:
    question = "How sure is that?"
    # Runs without a lever were made only to measure levers; without them one run is all there is.
    if not isinstance(measured, WhatIf):
        return Fact(
            question,
            "One run",
            f"Seed {summary.seed}. Other chance gives other figures: dialsim run --replications "
            "tells how much.",
        )
    said = spread(measured)
    runs = f"{measured.pairs} runs with different chance"
    return Fact(question, runs, f"{said[0].upper()}{said[1:]}.")


def _reach(summary: Summary) -> Fact:
    left = [
        ("were not reached in any of their attempts", summary.people_exhausted),
        ("expired", summary.people_expired),
        ("were cancelled", summary.people_cancelled),
        ("are still to be called", summary.people_pending + summary.people_stalled),
        ("were never scheduled", summary.people_unscheduled),
    ]
    said = ", ".join(f"{count:,} {what}" for what, count in left if count)
    return Fact("Whom does it reach?", reach_text(summary), f"{said}." if said else "")


def _held_back(summary: Summary) -> Fact:
    """Return the fact on the bottleneck of a run."""
    held = summary.held_back
    if held is None:
        return Fact("What holds it back?", "Nothing")
    head, colon, rest = held.sentence.partition(": ")
    if not colon:
        return Fact("What holds it back?", held.sentence)
    rest = rest[0].upper() + rest[1:]
    which = f" ({held.campaign})" if len(summary.campaigns) > 1 else ""
    return Fact("What holds it back?", f"{head}{which}", rest)


def help_fact(measured: WhatIf | NotMeasured, which: str = "") -> Fact:
    """Return the fact on the best lever of a run or a variant; too few pairs name none."""
    whose = f": {which}?" if which else "?"
    question = f"What would help{whose}"
    if isinstance(measured, NotMeasured):
        return Fact(question, "Not measured", measured.said)
    lever = best(measured)
    # No lever helps without a loss; trade-offs are named instead, since a planner may want one.
    if lever is None:
        prices = [f"{traded.name[0].upper()}{traded.name[1:]}: {_effects(traded, measured)}"
                  for traded in dear(measured)]  # fmt: skip
        what = "helps without a price" if prices else "makes a difference beyond chance"
        tried = f"None of {len(measured.levers)} small changes {what}."
        few = [too_few(measured.pairs)] if measured.pairs < MOST_PAIRS else []
        return Fact(question, "Nothing that was tried", " ".join([tried, *prices, *few]))
    rivals = [other.name for other in as_good(measured, lever)]
    # "Most" is claimed only if the lever is significantly better than all others.
    if not rivals and measured.pairs >= MOST_PAIRS:
        question = f"What would help most{whose}"
    said = [_effects(lever, measured)]
    if measured.pairs < MOST_PAIRS:
        said.append(f"That is the best of {measured.pairs} pairs of runs, which are few.")
    elif rivals:
        said.append(f"Not surely worse: {', '.join(rivals)}.")
    if lever.shortens_retries:
        said.append(SHORTER_RETRIES)
    return Fact(question, lever.name[0].upper() + lever.name[1:], " ".join(said))


def _effects(lever: MeasuredLever, what_if: WhatIf) -> str:
    """Return the effects of a lever on finish and reach."""
    finish, reached = finish_effect(lever, what_if), number_effect(lever.reached)
    return f"Finish: {finish}. People reached: {reached}."


def _cost(summary: Summary) -> Iterator[Fact]:
    if summary.cost is None:
        return
    per_person, net = summary.cost_per_reached, summary.net_value
    each = "Nobody was reached for it." if per_person == inf else ""
    if per_person is not None and isfinite(per_person):
        each = f"{per_person:,.2f} {summary.currency} per person reached."
    if net is not None:
        worth = f"The results are worth {summary.value:,.2f} {summary.currency}"
        each = f"{each} {worth}: {net:+,.2f} {summary.currency} net.".lstrip()
    parts = cost_parts({name: getattr(summary, name) for name in ("cost", *COST_PARTS)})
    detail = f"{each} {cost_split(parts, '{:,.2f}'.format)}".strip()
    yield Fact("What does it cost?", f"{summary.cost:,.2f} {summary.currency}", detail)


def cost_split(parts: Mapping[str, float], text: Callable[[float], str]) -> str:
    """Return the parts of a cost: `Dials 1.00, minutes 2.00, lines 3.00, fixed 4.00.`"""
    said = ", ".join(f"{name} {text(part)}" for name, part in parts.items() if part >= LEAST_PART)
    return f"{said[0].upper()}{said[1:]}." if said else ""


LEAST_PART = 0.005  # smaller parts would be printed as 0.00


def _sections(result: Result, measured: Help) -> Iterator[Section]:
    summary = result.summary
    if len(summary.campaigns) > 1:
        yield Section("Campaign by campaign", [_by_campaign(summary)])
    remarks = [*summary.warnings, *(f"{p.action}: {p.message}" for p in summary.refused)]
    if remarks:
        yield Section("Remarks", [Notes(remarks)])
    if measured is not None:
        yield Section("What would help", help_parts(measured, summary.currency))
    pictures = run_pictures(result)
    if pictures:
        yield Section("How it goes", pictures)
    yield Section("Figures", [Grid([_upright(table) for table in tables(summary)])])


def help_parts(measured: WhatIf | NotMeasured, currency: str | None) -> list[Part]:
    """Return how the levers were measured, and the table of their effects."""
    if isinstance(measured, NotMeasured):
        return [measured.said]
    said = how_measured("the scenario as it is", [measured])
    notes = [*not_allowed_notes([measured]), *retry_notes([measured])]
    return [said, effect_table(measured, currency), *notes]


def retry_notes(measured: Iterable[WhatIf]) -> list[Part]:
    """Return the note for a table in which a shorter retry interval helps."""
    levers = [lever for what_if in measured for lever in what_if.levers if lever.helps]
    return [SHORTER_RETRIES] if any(lever.shortens_retries for lever in levers) else []


def how_measured(against: str, measured: Sequence[WhatIf]) -> str:
    """Return the paragraph above tables of effects."""
    pairs, runs = measured[0].pairs, sum(what_if.runs for what_if in measured)
    said = (
        f"Each change alone, against {against}, in {pairs} pairs of runs that meet the same chance "
        f"({runs} runs in all). Finishes are compared by the median difference, with its 95 % "
        "interval in brackets; of other figures, after ± stands half the width of the interval of "
        "the mean difference. Where the pairs are too few, too alike or too skewed for one, it "
        "says in how many of them the change was seen."
    )
    if pairs >= MOST_PAIRS:
        return said
    return f"{said} {too_few(pairs)}"


def too_few(pairs: int) -> str:
    """Return how many pairs would be significant."""
    return (
        f"{pairs} pairs that agree may do so by chance, {MOST_PAIRS} may not: dialsim report DIR "
        f"--what-if {MOST_PAIRS} makes as many, DIR being the folder of this page."
    )


def _by_campaign(summary: Summary) -> FigureTable:
    """Return a table with a row per campaign, and its organization if there are several."""
    parts = [*zip(summary.campaigns, answers(summary), strict=True)]
    columns = {
        "organization": [part.organization for part, _ in parts],
        "finish": [ValueText(answer.finish, _finish_value(part)) for part, answer in parts],
        "reach": [ValueText(answer.reach, part.people_reached) for part, answer in parts],
        "cost": [_cost_text(part) for part, _ in parts],
        "held back by": [answer.held_back for _, answer in parts],
    }
    if len(summary.organizations) == 1:
        del columns["organization"]
    if summary.currency is None:
        del columns["cost"]
    names = [part.name for part, _ in parts]
    return FigureTable(
        "Campaign", tuple(columns), tuple(zip(names, *columns.values(), strict=True))
    )


def _finish_value(part: CampaignSummary) -> float:
    if part.start is None:
        # Sorts behind all others: it was never scheduled.
        return nan
    return inf if part.finish is None else part.finish.timestamp()


def _cost_text(part: CampaignSummary) -> str:
    if part.cost is None:
        return ""
    return ValueText(f"{part.cost:,.2f}\N{NO-BREAK SPACE}{part.currency}", part.cost)


def _upright(table: FigureTable) -> FigureTable:
    """Transpose a table of few rows, so that it fits on a narrow screen."""
    if len(table.rows) > 3:
        return table
    names, *columns = zip(*table.rows, strict=True)
    heads = names if len(names) > 1 else ("",)
    rows = tuple((label, *cells) for label, cells in zip(table.columns, columns, strict=True))
    return FigureTable(table.title, heads, rows, fixed=frozenset(range(len(rows))))


def _made_from(result: Result) -> str:
    world = result.trace.world
    which = f"seed {world.seed}, replication {world.replication}"
    return made_from(world.scenario.name, which)


def made_from(scenario: str, which: str) -> str:
    """Return the footer of a page."""
    return (
        f"Made by dialsim {__version__} from the scenario “{scenario}”, {which}. All "
        "instants are Thai time (UTC+7). A simulation answers for its assumptions only: how people "
        "behave is the scenario's guess."
    )


_MOST_CAMPAIGNS, _MOST_OWNERS = 12, 6
"""Campaigns and organizations with separate figures, at most; there may be hundreds."""

_MOST_ATTEMPTS = 3
"""Attempts with a heat map of answers, at most."""

_Drawing = tuple[str, Callable[..., "Axes"], str]


@dataclass(frozen=True, slots=True)
class _Drawings:
    """Figures for the reader to choose from by label."""

    asked: str
    options: tuple[tuple[str, _Drawing], ...]


def run_pictures(result: Result) -> list[Part]:
    """Return all figures that are not empty, then which are omitted and how to get them."""
    summary = result.summary
    if summary.calls == 0:
        return []
    called = [owner for owner in summary.organizations if owner.calls]
    started = [
        (name, part)
        for name, part in short_names(summary)
        if part.start is not None and len(summary.campaigns) > 1
    ]
    # Limits come before drawing: each figure takes a moment and adds to the file.
    drawings = [
        *_progress(result, summary, started[:_MOST_CAMPAIGNS]),
        *_lines(result, called[:_MOST_OWNERS]),
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
    """Draw a figure, or several to choose from; `name` must be unique in the page."""
    if isinstance(drawing, _Drawings):
        options = [
            (label, picture(f"{name}-{number}", draw, caption))
            for number, (label, (_, draw, caption)) in enumerate(drawing.options)
        ]
        return Choice(name, drawing.asked, options)
    kind, draw, caption = drawing
    return picture(f"{name}-{kind}", draw, caption)


def _left_out(kind: str, names: Sequence[str], most: int, drawing: str) -> str:
    """Return a note on the parts without a figure and how to get one; empty if all have one."""
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
    if summary.value_by_day:
        days = [f"{summary.value_by_day[day]:,.0f}" for day in range(len(summary.value_by_day))[:3]]
        caption = f"until the end of day 1, 2, …: {', '.join(days)}"
        yield "value", plot.value, f"Value of results by day; {caption} {summary.currency or ''}."
    for name, part in campaigns:
        draw = partial(plot.progress, f"{part.organization}/{part.name}")
        yield "progress", draw, f"Progress of {name}: {reach_text(part)}."


def _lines(result: Result, owners: Sequence[OrganizationSummary]) -> Iterator[_Drawing]:
    for owner in owners:
        draw = partial(result.plot.occupancy, owner.name if len(owners) > 1 else None)
        yield "slots", draw, _lines_caption(owner, len(owners) > 1)
    for owner in owners:
        if owner.queue_wait_mean_seconds:
            draw = partial(result.plot.queue, owner.name if len(owners) > 1 else None)
            yield "queue", draw, _queue_caption(owner, len(owners) > 1)


def _lines_caption(owner: OrganizationSummary, named: bool) -> str:
    whose = f" of {owner.name}" if named else ""
    share = percent(owner.lines_capacity_share or 0)
    return (
        f"Lines{whose} in use against the limit: {owner.lines_in_use_mean or 0:.1f} on average "
        f"while windows were open, {share} of what was allowed; at most {owner.lines_in_use_peak}."
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
    """Yield a heat map of answers for each of the first attempts."""
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
    """Yield people reached by attempt: by organization or, if there is only one, by campaign."""
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
