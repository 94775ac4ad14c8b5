"""Levers: the settings of a scenario that a studio can change, and the paths to them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pydantic import BaseModel

from dialsim.errors import StudioError
from dialsim.interface.instants import (
    DAY,
    HOUR,
    format_instant,
)
from dialsim.scenario.calendar import (
    DAY_CLASSES,
    line_time,
)
from dialsim.scenario.campaign import Campaign, GeneratedRecipients, RecipientsFile
from dialsim.scenario.distribution import Exponential, Gamma, Lognormal, Weibull
from dialsim.scenario.organization import Agent, Organization
from dialsim.scenario.recipients import whole
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.units import (
    format_duration,
)
from dialsim.scenario.week import (
    range_text,
    week_of,
    week_text,
)


@dataclass(frozen=True, slots=True)
class Lever:
    """A setting that can be changed, and its range.

    `kind` is number, lines, share, duration, instant, windows, hours, list or text. `value` is a
    number (a duration in ms, an instant in ms since 1970), a week `{day: ((first, last minute),
    …)}` with days from 1, a tuple of texts, or a text; None if unset. `text` is the same as for
    `--set`; if it is empty, the setting is unset, and a number has the value in force as `value`.
    `low`, `high` and `step` are the range of a slider, beyond which other values are possible.
    `choices` are proposed values.
    """

    path: str
    label: str
    group: str
    kind: str
    unit: str
    value: Any
    text: str
    low: float | None = None
    high: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()


Position = tuple[int, int]
"""Indices of an organization and of a campaign in it."""


def campaigns(scenario: Scenario) -> Iterator[tuple[Position, str, int]]:
    """Yield each campaign: position, name (with the organization's if there are several), size."""
    several = len(scenario.organizations) > 1
    for o, organization in enumerate(scenario.organizations):
        for c, campaign in enumerate(organization.campaigns):
            name = f"{organization.name}/{campaign.name}" if several else campaign.name
            yield (o, c), name, campaign.size


def levers(scenario: Scenario, campaign: Position = (0, 0)) -> list[Lever]:
    """Return the levers of a campaign, of its organization, and of its people's behaviour.

    Settings that the scenario lacks have no lever; without a campaign only those of its
    organization do.
    """
    o, c = campaign
    if o >= len(scenario.organizations):
        return []
    organization = scenario.organizations[o]
    found = [*_of_organization(organization, path_to_organization(scenario, o))]
    if c < len(organization.campaigns):
        block = organization.campaigns[c]
        path = path_to_campaign(scenario, campaign)
        found += _of_campaign(block, organization, path)
        found += _of_behaviour(scenario, block, organization)
    return found


def path_to_organization(scenario: Scenario, organization: int) -> str:
    """Return the full path of an organization, as for `--set`."""
    return _part("organizations", scenario.organizations[organization].name, organization)


def path_to_campaign(scenario: Scenario, campaign: Position) -> str:
    """Return the full path of a campaign, as for `--set`."""
    o, c = campaign
    name = campaign_at(scenario, campaign).name
    return f"{path_to_organization(scenario, o)}.{_part('campaigns', name, c)}"


def campaign_at(scenario: Scenario, position: Position) -> Campaign:
    """Return the campaign at a position. Raises StudioError if there is none."""
    o, c = position
    found = scenario.organizations[o].campaigns if o < len(scenario.organizations) else ()
    if c >= len(found):
        raise StudioError("there is no campaign any more; undo takes the last change back")
    return found[c]


def named_path(path: str, scenario: Scenario) -> str:
    """Return the path with names of organizations and campaigns instead of indices."""
    found = re.match(r"organizations\.(\d{1,6})(?:\.campaigns\.(\d{1,6}))?(?=\.|$)", path)
    if found is None or int(found[1]) >= len(scenario.organizations):
        return path
    o = int(found[1])
    head, end = path_to_organization(scenario, o), found.end(1)
    if found[2] is not None and int(found[2]) < len(scenario.organizations[o].campaigns):
        head, end = path_to_campaign(scenario, (o, int(found[2]))), found.end(2)
    return head + path[end:]


def _part(key: str, name: str, index: int) -> str:
    """Return the part of a path for an item of a list: its name if it needs no escaping."""
    # Names of digits would be read as indices, and one with = would end the path.
    plain = name.strip() == name and name and not (set(name) & set("=\n")) and not name.isdigit()
    return f"{key}.{name if plain and name[-1] not in '+-' else index}"


def _number(path: str, label: str, group: str, unit: str, value: int, low: int, high: int) -> Lever:
    return Lever(path, label, group, "number", unit, value, str(value), low, max(high, value), 1)


_EVENING = "17:00-24:00"


def _of_organization(organization: Organization, path: str) -> Iterator[Lever]:
    lines = organization.max_concurrent_calls or 0
    most = max(20, 4 * lines)
    yield _number(f"{path}.maxConcurrentCalls", "Lines", "Lines", "lines", lines, 0, most)
    for span, count in organization.lines.items():
        label = "Evening lines" if span == _EVENING else f"Lines, {span}"
        yield Lever(f"{path}.lines.{span}", label, "Lines", "lines", "lines", count, str(count),
                    0, max(most, count), 1)  # fmt: skip
    evening = line_time(_EVENING)
    if not any(line_time(span).meets(evening) for span in organization.lines):
        yield Lever(f"{path}.lines.{_EVENING}", "Evening lines", "Lines", "lines", "from 17:00",
                    lines, "", 0, most, 1)  # fmt: skip


def _of_campaign(campaign: Campaign, organization: Organization, path: str) -> Iterator[Lever]:
    if isinstance(campaign.recipients, GeneratedRecipients):
        people = campaign.recipients.count
        yield _number(f"{path}.recipients.count", "People", "People", "people", people, 0,
                      max(1000, 4 * people))  # fmt: skip
    if isinstance(campaign.recipients, RecipientsFile):
        yield from _of_list(campaign, organization, f"{path}.recipients")
    request = campaign.schedule
    if request is None:
        return
    below = f"{path}.schedule"
    start, end = request.start_date_time, request.end_date_time
    yield Lever(f"{below}.startDateTime", "Start", "When", "instant", "Thai time", start,
                format_instant(start), start - 7 * DAY, start + 28 * DAY, HOUR / 4)  # fmt: skip
    yield Lever(f"{below}.endDateTime", "End", "When", "instant", "Thai time", end,
                "" if end is None else format_instant(end), start, start + 56 * DAY,
                HOUR / 4)  # fmt: skip
    if campaign.calling_hours is None:
        week = week_of(request.time_windows)
        yield Lever(f"{below}.timeWindows", "Windows", "When", "windows", "Thai time", week,
                    week_text(week))  # fmt: skip
    else:
        for name, label in zip(DAY_CLASSES, _DAY_LABELS, strict=True):
            spans = getattr(campaign.calling_hours, name)
            text = None if spans is None else ", ".join(map(range_text, spans)) or "closed"
            yield Lever(f"{path}.callingHours.{name}", label, "When", "hours", "Thai time", text,
                        text or "")  # fmt: skip
    attempts = request.max_attempts
    yield _number(f"{below}.maxAttempts", "Attempts", "Attempts", "calls a person", attempts, 1,
                  max(10, 2 * attempts))  # fmt: skip
    interval = request.retry_interval
    yield Lever(f"{below}.retryInterval", "Retry interval", "Attempts", "duration", "ms", interval,
                format_duration(interval), 0, max(2 * DAY, 2 * interval), 5 * 60_000)  # fmt: skip
    numbers = request.caller_ids or ()
    yield Lever(f"{below}.callerIds", "Caller IDs", "Caller IDs", "list", "numbers", numbers,
                json.dumps(list(numbers)) if numbers else "",
                choices=organization.caller_ids)  # fmt: skip


_DAY_LABELS = ("Hours Mon-Fri", "Hours on Saturdays", "Hours on Sundays", "Hours on holidays")


def _of_list(campaign: Campaign, organization: Organization, path: str) -> Iterator[Lever]:
    recipients = campaign.recipients
    assert isinstance(recipients, RecipientsFile)
    schema = _agent_of(campaign, organization).params_schema or {}
    amounts = [name for name, declared in schema.items() if declared.type == "number"]
    choices = (*(f"-{name}" for name in amounts), *amounts)
    yield Lever(f"{path}.sort", "Sort", "People", "list", "a minus: highest first",
                recipients.sort, ", ".join(recipients.sort or ()), choices=choices)  # fmt: skip
    most, first = len(whole(recipients.table).tels), recipients.first
    yield Lever(f"{path}.first", "First of the list", "People", "number", "people", first or most,
                "" if first is None else str(first), 1, max(most, 2), 1)  # fmt: skip


def _of_behaviour(
    scenario: Scenario, campaign: Campaign, organization: Organization
) -> Iterator[Lever]:
    name = _agent_of(campaign, organization).behaviour
    behaviour, path, group = scenario.behaviours[name], f"behaviours.{name}", "Behaviour"
    outcomes, people = behaviour.outcomes, behaviour.people
    reachable = people.reachable if people else 1.0
    yield Lever(f"{path}.outcomes", "Answered", group, "answers", "share of attempts",
                outcomes.answered, f"{outcomes.answered:g}", 0.01,
                round(min(reachable, 1 - outcomes.failed), 3), 0.01)  # fmt: skip
    talk = behaviour.talk_time
    if isinstance(talk, Lognormal | Gamma | Weibull | Exponential):
        mean = talk.mean
        yield Lever(f"{path}.talkTime", "Mean talk time", group, "talk", "ms", mean,
                    format_duration(mean), 5_000, max(300_000, 2 * mean), 5_000)  # fmt: skip


def _agent_of(campaign: Campaign, organization: Organization) -> Agent:
    return next(agent for agent in organization.agents if agent.name == campaign.agent)


def pauses(scenario: Scenario, campaign: Position) -> list[tuple[int, int | None]]:
    """Return the pauses of a campaign as instants (ms) of pause and resume; None if it stays
    paused.
    """
    name, found = campaign_at(scenario, campaign).name, list[tuple[int, int | None]]()
    actions = [a for a in scenario.organizations[campaign[0]].timeline if a.campaign == name]
    for action in sorted(actions, key=lambda action: action.at):
        is_open = bool(found) and found[-1][1] is None
        if action.action == "pause" and not is_open:
            found.append((action.at, None))
        elif action.action == "resume" and is_open:
            found[-1] = found[-1][0], action.at
    return found


def params_line(scenario: Scenario, campaign: Position, types: Mapping[str, str]) -> str:
    """Return the change that gives parameters with these types to the agent of a campaign."""
    owner = scenario.organizations[campaign[0]]
    agent = _agent_of(campaign_at(scenario, campaign), owner)
    schema = {name: {"type": kind} for name, kind in types.items()} | {
        name: declared.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name, declared in (agent.params_schema or {}).items()
    }
    part = _part("agents", agent.name, owner.agents.index(agent))
    path = f"{path_to_organization(scenario, campaign[0])}.{part}"
    return f"{path}.paramsSchema={json.dumps(schema, ensure_ascii=False)}"


MOST_FOUND = 200


def complete(scenario: Scenario, prefix: str = "") -> list[str]:
    """Return paths that complete a prefix by one level.

    Of a list with thousands of items at most `MOST_FOUND` matches are returned.
    """
    above, _, begun = prefix.rpartition(".")
    value: object = scenario
    at = 0
    parts = above.split(".") if above else []
    while at < len(parts):
        step = _step(value, parts, at)
        if step is None:
            return []
        value, at = step
    found = (f"{above}.{name}" if above else name
             for name in _below(value) if name.lower().startswith(begun.lower()))  # fmt: skip
    return [*islice(found, MOST_FOUND)]


def _step(value: object, parts: Sequence[str], at: int) -> tuple[object, int] | None:
    """Return the value below one name of a path, which may contain dots; None if there is none."""
    names = _below(value)
    for end in range(len(parts), at, -1):
        name = ".".join(parts[at:end])
        if name in names:
            return names[name], end
        if isinstance(value, tuple) and name.isdigit() and int(name) < len(value):
            return value[int(name)], end
    return None


def _below(value: object) -> dict[str, object]:
    """Return the parts of a value by the names that paths use."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        return {given.alias or name: getattr(value, name) for name, given in fields.items()}
    if isinstance(value, Mapping):
        return {str(key): below for key, below in value.items()}
    if not isinstance(value, tuple):
        return {}
    named = ((index, getattr(item, "name", None), item) for index, item in enumerate(value))
    return {_part("", name, index)[1:] if name else str(index): item for index, name, item in named}
