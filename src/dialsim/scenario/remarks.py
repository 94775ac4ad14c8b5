"""Remarks on a scenario: what is allowed, but may not be what its writer means.

There is one sentence for each kind of thing, with the first places, however often it occurs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches

from dialsim.interface.instants import LAST_INSTANT, format_instant
from dialsim.scenario.agent import Agent
from dialsim.scenario.campaign import Campaign, GeneratedRecipients, RecipientsFile
from dialsim.scenario.corrections import CURLY_QUOTES, is_curly_quoted
from dialsim.scenario.models import Scenario
from dialsim.scenario.organization import Organization
from dialsim.scenario.people_table import PeopleTable
from dialsim.scenario.phones import PLAUSIBLE_TEXT, is_plausible, lacks_zero, national
from dialsim.scenario.problems import Remark
from dialsim.scenario.schedules import bare_instants
from dialsim.scenario.tree import Cursor, Node, Path, Scalar
from dialsim.scenario.tree import Sequence as Items
from dialsim.scenario.wording import few

_THAI_MS = 7 * 3_600_000
_SHOWN = 3


def remarks_on(scenario: Scenario, root: Cursor) -> tuple[Remark, ...]:
    """Plain sentences on a good scenario and the document that it was read from."""
    owned = (
        Remark(text, position)
        for position, organization in enumerate(scenario.organizations)
        for text in _on_organization(scenario, organization)
    )
    return (*map(Remark, _on_document(root)), *owned)


def remarks_on_campaign(
    scenario: Scenario, organization: Organization, campaign: Campaign
) -> Iterator[str]:
    """Plain sentences on a good campaign, its recipients above all."""
    where = f"Campaign {campaign.name} of {organization.name}"
    agent = next(agent for agent in organization.agents if agent.name == campaign.agent)
    yield from _on_params(where, campaign, agent)
    yield from _on_segments(where, scenario, organization, campaign)
    recipients = campaign.recipients
    if isinstance(recipients, GeneratedRecipients):
        return
    if isinstance(recipients, RecipientsFile):
        tels: Sequence[str] = recipients.table.tels
    else:
        tels = [person.tel for person in recipients]
    place = _places(campaign)
    yield from _on_duplicates(where, tels)
    yield from _on_spellings(where, tels, place)
    if isinstance(recipients, RecipientsFile):
        yield from _on_dropped_zeros(where, tels)
        yield from _on_curly_cells(where, recipients.table, place)
    yield from _on_numbers(where, tels, isinstance(recipients, RecipientsFile), place)


# -- the document ---------------------------------------------------------------------------------


def _on_document(root: Cursor) -> Iterator[str]:
    bare = list(bare_instants(root))
    if bare:
        readings = [
            f"{one.field} {one.text} of campaign {one.campaign} is "
            f"{_time(one.at + _THAI_MS)} in Thai time, not {_time(one.at)}"
            for one in bare[:_SHOWN]
        ]
        example = format_instant(bare[0].at).replace(".000Z", "Z").replace("Z", "+07:00")
        yield (
            "Without an offset an instant of a schedule is UTC, as in the interface: "
            f"{few(readings, len(bare), '; ')}. For Thai time write +07:00 behind it: {example}."
        )
    curly = [
        f"{text} ({'.'.join(map(str, path))})"
        for text, path in _texts(root.node, ())
        if is_curly_quoted(text)
    ]
    if curly:
        yield (
            f"Curly quotes are part of {few(curly[:_SHOWN], len(curly))}: what is meant as quotes "
            'in YAML must be straight, ".'
        )


def _time(instant: int) -> str:
    """`2026-01-05 09:00`, with seconds where there are any."""
    date, time = format_instant(min(instant, LAST_INSTANT)).removesuffix("Z").split("T")
    return f"{date} {time.removesuffix('.000').removesuffix(':00')}"


def _texts(node: Node | None, path: Path) -> Iterator[tuple[str, Path]]:
    """Every text of a document, keys included, and where it stands."""
    if node is None:
        return
    if isinstance(node, Scalar):
        if isinstance(node.value, str):
            yield node.value, path
    elif isinstance(node, Items):
        for index, item in enumerate(node.items):
            yield from _texts(item, (*path, index))
    else:
        for key, entry in node.entries.items():
            yield key, (*path, key)
            yield from _texts(entry.node, (*path, key))


# -- organizations and agents ---------------------------------------------------------------------


def _on_organization(scenario: Scenario, organization: Organization) -> Iterator[str]:
    for agent in organization.agents:
        yield from _on_agent(organization, agent)
    for campaign in organization.campaigns:
        yield from remarks_on_campaign(scenario, organization, campaign)


def _on_agent(organization: Organization, agent: Agent) -> Iterator[str]:
    where = f"Agent {agent.name} of {organization.name}"
    if agent.caller_id is not None and agent.caller_id not in organization.caller_ids:
        yield (
            f"{where} calls from {agent.caller_id}, "
            "which is not among the organization's callerIds."
        )
    analysis = agent.analysis
    if analysis is not None and analysis.version == "v2" and "error" in analysis.fields:
        yield (
            f"{where} has an analysis field error: clients know by a field of that name that there "
            "was no analysis, and take each of its results for a fallback result (A3)."
        )


# -- campaigns ------------------------------------------------------------------------------------


def _on_params(where: str, campaign: Campaign, agent: Agent) -> Iterator[str]:
    unknown = [
        name
        for name in _param_names(campaign)
        if agent.params_schema is not None
        and name not in agent.params_schema
        and not name.startswith("metadata__")
    ]
    if unknown:
        yield (
            f"{where} has agentParams that the paramsSchema of {agent.name} does not name: "
            f"{', '.join(unknown)}."
        )


def _param_names(campaign: Campaign) -> Sequence[str]:
    recipients = campaign.recipients
    if isinstance(recipients, RecipientsFile):
        return list(recipients.table.params)
    if isinstance(recipients, GeneratedRecipients):
        return list(recipients.agent_params)
    return list(dict.fromkeys(name for person in recipients for name in person.agent_params))


def _on_segments(
    where: str, scenario: Scenario, organization: Organization, campaign: Campaign
) -> Iterator[str]:
    """Segments that the agent's behaviours do not name, where they, or others, name any.

    Where nobody names them, segments are there for the tables.
    """
    own = _behaviours(organization, campaign)
    known = [name for key in own for name in scenario.behaviours[key].answered_odds.by_segment]
    others = {
        name: key
        for key, behaviour in scenario.behaviours.items()
        for name in behaviour.answered_odds.by_segment
    }
    unknown = [
        name for name in _segments(campaign) if name not in known and (known or name in others)
    ]
    if not unknown:
        return
    told = []
    for name in unknown[:_SHOWN]:
        hint = _nearest(name, known)
        if name in others:
            hint = f"; behaviour {others[name]} does"
        told.append(f"{name} ({_size(name, campaign)}{hint})")
    yield (
        f"{where}: bySegment of behaviour {few(own, len(own))} does not name "
        f"{few(told, len(unknown))}; they answer as if they had no segment. If "
        f"that is meant, say so there: {unknown[0]}: 1."
    )


def _nearest(name: str, known: Sequence[str]) -> str:
    plain = {other.strip().casefold(): other for other in known}
    near = get_close_matches(name.strip().casefold(), plain, n=1)
    return f"; did you mean {plain[near[0]]}?" if near else ""


def _behaviours(organization: Organization, campaign: Campaign) -> list[str]:
    """The behaviours that a campaign's agent has at some time."""
    agent = next(agent for agent in organization.agents if agent.name == campaign.agent)
    later = [
        action.behaviour
        for action in organization.timeline
        if action.action == "setBehaviour" and action.agent == agent.name and action.behaviour
    ]
    return list(dict.fromkeys([agent.behaviour, *later]))


def _segments(campaign: Campaign) -> Iterable[str]:
    """The segments of a campaign, in order of appearance."""
    recipients = campaign.recipients
    if isinstance(recipients, GeneratedRecipients):
        return recipients.segments or ()
    if isinstance(recipients, RecipientsFile):
        return recipients.table.segments.texts
    return dict.fromkeys(person.segment for person in recipients if person.segment is not None)


def _size(segment: str, campaign: Campaign) -> str:
    """How many people are in a segment of a campaign, and where the first one is."""
    recipients = campaign.recipients
    if isinstance(recipients, GeneratedRecipients):
        return f"a share of {(recipients.segments or {})[segment]:g}"
    if isinstance(recipients, RecipientsFile):
        code, codes = recipients.table.segments.texts[segment], recipients.table.segments.codes
        count, first = codes.count(code), codes.index(code)
    else:
        column = [person.segment for person in recipients]
        count, first = column.count(segment), column.index(segment)
    people = "1 recipient" if count == 1 else f"{count:,} recipients, the first"
    return f"{people} in {_places(campaign)(first)}"


# -- recipients -----------------------------------------------------------------------------------


def _places(campaign: Campaign) -> Callable[[int], str]:
    """How the recipient at an index is found: `people.csv:5`, or `recipients.3` in the scenario."""
    recipients = campaign.recipients
    if isinstance(recipients, RecipientsFile):
        file, lines = recipients.file, recipients.table.lines
        return lambda row: f"{file}:{lines[row]}"
    return lambda row: f"recipients.{row}"


def _on_duplicates(where: str, tels: Sequence[str]) -> Iterator[str]:
    repeats = len(tels) - len(set(tels))
    if not repeats:
        return
    tel, times = Counter(tels).most_common(1)[0]
    if repeats == times - 1:
        yield f"{where} has {tel} {times} times; each of these recipients is called."
    else:
        yield (
            f"{where} has {repeats:,} recipients whose number another recipient before them has "
            f"({tel} {times} times, for instance); each of them is called."
        )


def _on_spellings(where: str, tels: Sequence[str], place: Callable[[int], str]) -> Iterator[str]:
    if all(tel[0] == "0" for tel in tels):
        return
    spellings = dict.fromkeys(tels)
    foreign = {tel: number for tel in spellings if (number := national(tel)) != tel}
    ways = Counter(foreign.values())
    numbers = [number for number, count in ways.items() if count > 1 or number in spellings]
    if not numbers:
        return
    example = [tel for tel in spellings if foreign.get(tel, tel) == numbers[0]]
    shown = [f"{tel} ({place(tels.index(tel))})" for tel in example[:_SHOWN]]
    many = "a number" if len(numbers) == 1 else f"{len(numbers):,} numbers"
    yield (
        f"{where} has {many} in more than one spelling, such as {few(shown, len(example))}; each "
        "of these recipients is called."
    )


def _on_dropped_zeros(where: str, tels: Sequence[str]) -> Iterator[str]:
    """Thai numbers have 9 or 10 digits, the first of them 0, which spreadsheets take away."""
    bare = [tel for tel in tels if lacks_zero(tel)]
    if bare:
        yield (
            f"{where} calls {bare[0]}{f' and {len(bare) - 1:,} more' if bare[1:] else ''}: has a "
            "spreadsheet dropped the 0 in front? It keeps the 0 in a column of text."
        )


def _on_numbers(
    where: str, tels: Sequence[str], told: bool, place: Callable[[int], str]
) -> Iterator[str]:
    """Numbers that nobody can have; those that lack a 0 may have been `told` before."""
    odd = [
        row
        for row, tel in enumerate(tels)
        if not is_plausible(tel) and not (told and lacks_zero(tel))
    ]
    if odd:
        shown = [f"{tels[row]} ({place(row)})" for row in odd[:_SHOWN]]
        many = "a number" if len(odd) == 1 else f"{len(odd):,} numbers"
        yield (
            f"{where} calls {many} of no plausible length or prefix: {few(shown, len(odd))}. "
            f"{PLAUSIBLE_TEXT}."
        )


def _on_curly_cells(where: str, table: PeopleTable, place: Callable[[int], str]) -> Iterator[str]:
    columns: list[Sequence[object]] = [table.names, *table.params.values()]
    found = [
        (row, cell)
        for column in columns
        for row, cell in enumerate(column)
        if isinstance(cell, str) and cell[0] in CURLY_QUOTES and is_curly_quoted(cell)
    ]
    segments = table.segments
    found += [
        (segments.codes.index(code), text)
        for text, code in segments.texts.items()
        if is_curly_quoted(text)
    ]
    if found:
        cells = [f"{cell} ({place(row)})" for row, cell in sorted(found)[:_SHOWN]]
        yield (
            f"{where}: curly quotes are part of {few(cells, len(found))}: what is meant as quotes "
            'in a CSV must be straight, ".'
        )
