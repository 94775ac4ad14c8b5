"""Report of one run: its finish, its bottleneck, what would help, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, NamedTuple

from dialsim import __version__
from dialsim.interface.instants import minute_text, ms_of
from dialsim.interface.phrases import counted
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
    NotMeasured,
    WhatIf,
    best,
    effect_table,
    effect_text,
    not_allowed_notes,
    spread,
)
from dialsim.results.figures import COST_PARTS, cost_parts
from dialsim.results.plots.outcomes import draw_funnel, funnels
from dialsim.results.result import Result
from dialsim.results.summary import CampaignSummary, OrganizationSummary, Summary
from dialsim.results.summary_text import (
    FigureTable,
    ValueText,
    answers,
    headline,
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
        answer=headline(summary).removesuffix("."),
        facts=facts,
        sections=[*_sections(result, measured)],
        made_from=_made_from(result),
    )


def _lead(result: Result) -> str:
    described = result.trace.world.scenario.description
    return f"{described}." if described and not described.endswith(".") else described or ""


def _when(instant: datetime) -> str:
    return f"{minute_text(ms_of(instant))} Thai time"


_NAMED = 6
"""Unfinished campaigns listed by name, at most; the table below has all."""


def _finish(summary: Summary) -> Fact:
    question = "Will it finish?"
    if summary.finish is not None:
        days = counted(summary.calling_days, "calling day")
        return Fact(question, "Yes", f"{_when(summary.finish)}, {days}.")
    said = [
        f"{answer.campaign}: {answer.finish}"
        for part, answer in zip(summary.campaigns, answers(summary), strict=True)
        if part.finish is None
    ]
    # A run may have thousands of campaigns, which would bury the other facts.
    if len(said) > _NAMED:
        said[_NAMED:] = [f"and {len(said) - _NAMED} more"]
    lost = f": {lost_text(summary.people_lost)}" if summary.people_lost else ""
    return Fact(question, f"No{lost}", f"{'; '.join(said)}.")


def _sure(summary: Summary, measured: Help) -> Fact:
    question = "How sure is that?"
    # Further runs were made only to measure levers. If none were measured, there is one run.
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
    held = summary.held_back
    head, _, rest = held.sentence.partition(": ") if held else ("Nothing", "", "")
    which = f" ({held.campaign})" if held and len(summary.campaigns) > 1 else ""
    return Fact("What holds it back?", f"{head}{which}", f"{rest[:1].upper()}{rest[1:]}")


def help_fact(measured: WhatIf | NotMeasured, which: str = "") -> Fact:
    """Return the fact on the best lever of a run or a variant."""
    question = f"What would help{f': {which}' if which else ''}?"
    if isinstance(measured, NotMeasured):
        return Fact(question, "Not measured", measured.said)
    # Fewer pairs may all agree by chance (sign test).
    few = [too_few(measured.pairs)] if measured.pairs < MOST_PAIRS else []
    lever = best(measured)
    if lever is None:
        tried = f"None of {len(measured.levers)} small changes surely helps without a loss."
        return Fact(question, "Nothing that was tried", " ".join([tried, *few]))
    finish = effect_text("finish", lever.finish)
    said = [f"Finish: {finish}. People: {effect_text('people_reached', lever.reached)}.", *few]
    if lever.shortens_retries:
        said.append(SHORTER_RETRIES)
    return Fact(question, lever.name[0].upper() + lever.name[1:], " ".join(said))


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
    levers = [lever for what_if in measured for lever in what_if.levers]
    helps = (lever.sooner or lever.reaches_more for lever in levers if lever.shortens_retries)
    return [SHORTER_RETRIES] if any(helps) else []


def how_measured(against: str, measured: Sequence[WhatIf]) -> str:
    """Return the paragraph above tables of effects."""
    pairs, runs = measured[0].pairs, sum(what_if.runs for what_if in measured)
    said = (
        f"Each change alone, against {against}, in {pairs} pairs of runs that meet the same chance "
        f"({runs} runs in all). {HOW_COMPARED}"
    )
    if pairs >= MOST_PAIRS:
        return said
    return f"{said} {too_few(pairs)}"


HOW_COMPARED = (
    "Finishes are compared by the median difference and by the probability of being done by the "
    "end of a day, with 95 % intervals in brackets. Of other figures, after ± stands half the "
    "width of the 95 % interval of the mean difference. Where the runs are too few, too alike or "
    "too skewed for one, the pairs that differ are counted."
)
"""Sentences on how to read differences in tables."""


def too_few(pairs: int) -> str:
    """Return the sentence on how many pairs of runs could be significant."""
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


class _Drawing(NamedTuple):
    """Figure with its caption; of several the reader chooses one by its label."""

    caption: str
    draws: Mapping[str, Callable[..., Axes]]
    asked: str = ""

    def made(self, name: str) -> Picture | Choice:
        """Draw the figure, or each of them; `name` must be unique in the page."""
        options = []
        for number, (label, draw) in enumerate(self.draws.items()):
            caption = (
                f"{self.asked} {label}: {self.caption}" if len(self.draws) > 1 else self.caption
            )
            options.append((label, picture(f"{name}-{number}", draw, caption)))
        return Choice(name, self.asked, options) if len(options) > 1 else options[0][1]


def run_pictures(result: Result) -> list[Part]:
    """Return all figures that are not empty, and how to get those left out."""
    summary = result.summary
    if summary.calls == 0:
        return []
    shown: list[Part] = [
        Grid([drawing.made(f"p{k}") for k, drawing in enumerate(_drawings(result, summary))])
    ]
    started = sum(part.start is not None for part in summary.campaigns)
    if started > _MOST_CAMPAIGNS or len(summary.organizations) > _MOST_OWNERS:
        shown.append(
            f"Up to {_MOST_CAMPAIGNS} campaigns and {_MOST_OWNERS} organizations have pictures of "
            "their own here. In Python, dialsim.run(dialsim.load(FILE)).plot draws any of them."
        )
    return shown


def _drawings(result: Result, summary: Summary) -> Iterator[_Drawing]:
    plot = result.plot
    # Limits come before drawing: each figure takes a moment and adds to the file.
    owners = [owner for owner in summary.organizations if owner.calls][:_MOST_OWNERS]
    campaigns = [(name, f"{part.organization}/{part.name}", part)
                 for name, part in short_names(summary)]  # fmt: skip
    yield _Drawing("People reached and done with over time.", {"": plot.progress})
    if summary.value_by_day:
        yield _Drawing("Value of the results by day of the conversation.", {"": plot.value})
    for name, full_name, _ in [c for c in campaigns if c[2].start][:_MOST_CAMPAIGNS]:
        if len(campaigns) > 1:
            draw = partial(plot.progress, full_name)
            yield _Drawing(f"Progress of {name}: people reached and done with.", {"": draw})
    for owner in owners:
        draw = partial(plot.occupancy, owner.name if len(owners) > 1 else None)
        yield _Drawing(f"Lines of {owner.name} in use against the limit.", {"": draw})
    for owner in owners:
        if owner.queue_wait_mean_seconds:
            draw = partial(plot.queue, owner.name if len(owners) > 1 else None)
            yield _Drawing(f"Calls of {owner.name} in the queue and their wait.", {"": draw})
    yield from _outcomes(result, owners, [full_name for _, full_name, _ in campaigns])
    if summary.webhooks.results:
        yield _Drawing("Results sent to the webhook, by their delivery.", {"": plot.webhooks})
    found = funnels(summary.campaigns)
    for funnel in found[:_MOST_OWNERS]:
        whose = f"{funnel.organization}, {funnel.agent}"
        draw = partial(draw_funnel, [funnel], whose if len(found) > 1 else "")
        yield _Drawing(f"From people to the steps of the conversation: {whose}.", {"": draw})


def _outcomes(
    result: Result, owners: Sequence[OrganizationSummary], campaigns: Sequence[str]
) -> Iterator[_Drawing]:
    """Yield figures of answers; the reader chooses between attempts and groups of people.

    Mixed in one figure, they would look like differences between hours.
    """
    plot = result.plot
    if result.summary.attempts:
        yield _Drawing("Calls over time and how they ended.", {"": plot.outcomes})
    for owner in owners:
        maps = {
            str(attempt): partial(plot.answers, organization=owner.name, attempt=attempt)
            for attempt in range(1, len(owner.reach_by_attempt[:_MOST_ATTEMPTS]) + 1)
        }
        if maps:
            said = f"share of attempts of {owner.name} answered, by weekday and hour, Thai time."
            yield _Drawing(said, maps, "Attempt")
    # A single organization is divided into its campaigns.
    reach = {owner.name: partial(plot.reach, organization=owner.name) for owner in owners}
    if len(owners) == 1 and 1 < len(campaigns) <= _MOST_CAMPAIGNS:
        reach |= {name: partial(plot.reach, name) for name in campaigns}
    if reach:
        yield _Drawing("share of the people reached by each attempt.", reach, "Of")
