"""Checks of a document as a whole: references, schedule requests, and remarks.

Names, ids and references are checked in the document as written. Schedule requests use the
interface's own checks (C9, C10); their failures get a file location. Remarks are warnings about
settings that are allowed but probably not intended: one per kind of thing, with its first
locations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from dialsim.errors import ValidationFailed
from dialsim.interface.agent import DEFAULT_VOICES
from dialsim.interface.instants import (
    DAY,
    LAST_INSTANT,
    MINUTE,
    THAI_OFFSET,
    format_instant,
    parse_instant_or_epoch,
)
from dialsim.interface.model import Fault
from dialsim.interface.phrases import counted, few, joined
from dialsim.interface.schedule import (
    LEAST_RETRY_INTERVAL,
    CallingAccount,
    ScheduleRequest,
    check_conditions,
    check_duplicate_alert,
    read_schedule,
)
from dialsim.scenario.calendar import DayClasses
from dialsim.scenario.campaign import (
    Campaign,
    Codes,
    GeneratedRecipients,
    Normalized,
    PeopleTable,
    RecipientsFile,
)
from dialsim.scenario.document import Cursor
from dialsim.scenario.error_text import behind, quoting, suggestion, unlike
from dialsim.scenario.fields import (
    CURLY_QUOTES,
    PLAUSIBLE_TEXT,
    is_curly_quoted,
    is_made_up,
    is_plausible,
    lacks_zero,
    national,
)
from dialsim.scenario.organization import Agent, Organization, check_fields
from dialsim.scenario.people import attributes_of, table_of, value_formulas, worth_of_people
from dialsim.scenario.problems import Problem, Problems, Remark, problem_at
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.units import (
    era_fault,
    has_offset,
    instant_meant,
    is_next_day,
    parse_duration,
)
from dialsim.scenario.week import week_of


def check_references(root: Cursor, problems: Problems) -> None:
    """Report names and ids that are not unique, and references to unknown names."""
    # In the document and not in the models, so that references are checked even if other parts are
    # invalid.
    organizations = list(root.at("organizations").items())
    if root.at("organizations").value == []:
        problems.add(root.at("organizations"), "must not be empty: one organization, at least")
    _check_unique(organizations, "name", problems)
    _check_unique(organizations, "apiKey", problems)
    for noun in ("", "agents", "campaigns"):
        blocks = [b for o in organizations for b in (o.at(noun).items() if noun else (o,))]
        # UUIDs are compared without regard to case (RFC 9562).
        _check_unique(blocks, "id", problems, same=str.lower)
    _check_unique(list(root.at("voices").items()), "voiceKey", problems)
    _check_value(root.at("value"), organizations, problems)
    owners = {*_texts(root, "organizations.*.name"), *_texts(root, "organizations.*.id")}
    for owner in root.each("service.faults.*.organization"):
        _check_known(owner, owners, "organization", problems)
    behaviours = {"default", *(name for name, _ in root.at("behaviours").entries())}
    voices = voice_keys(root)
    for organization in organizations:
        _check_organization(organization, behaviours, voices, problems)


def voice_keys(root: Cursor) -> frozenset[str]:
    """Return the keys of the document's voice catalog."""
    if not root.at("voices").exists:
        return frozenset(voice.voice_key for voice in DEFAULT_VOICES)
    return frozenset(_texts(root, "voices.*.voiceKey"))


def _check_organization(
    organization: Cursor, behaviours: Collection[str], voices: Collection[str], problems: Problems
) -> None:
    agents, campaigns = organization.at("agents"), organization.at("campaigns")
    for blocks in (agents, campaigns):
        _check_unique(list(blocks.items()), "name", problems)
    _check_unique(list(organization.at("sipAccounts").items()), "id", problems, same=str.lower)
    agent_names, campaign_names = _names(agents), _names(campaigns)
    for agent in agents.items():
        _check_known(agent.at("behaviour"), behaviours, "behaviour", problems)
        _check_known(agent.at("voiceKey"), voices, "voice", problems)
    for campaign in campaigns.items():
        _check_known(campaign.at("agent"), agent_names, "agent of this organization", problems)
        _check_value(campaign.at("value"), [organization], problems, campaign.at("agent").text)
    for action in organization.at("timeline").items():
        check_fields(action, problems)
        _check_known(
            action.at("campaign"), campaign_names, "campaign of this organization", problems
        )
        _check_known(action.at("agent"), agent_names, "agent of this organization", problems)
        _check_known(action.at("behaviour"), behaviours, "behaviour", problems)


def check_calling_hours(root: Cursor, problems: Problems) -> None:
    """Report calling hours, lines and odds that lack a key or conflict with another one."""
    if not root.at("calendar").exists:
        for setting in _of_holidays(root):
            problems.add(setting, "needs holidays: write calendar: {holidays: TH} at the top level")
    for organization in root.at("organizations").items():
        actions = list(organization.at("timeline").items())
        if organization.at("lines").exists:
            for action in actions:
                if action.at("action").text == "setConcurrency":
                    message = "can't stand beside lines: write the change there, under its date"
                    problems.add(action.at("action"), message)
        for campaign in organization.at("campaigns").items():
            if not campaign.at("callingHours").exists:
                continue
            schedule = campaign.at("schedule")
            if not schedule.exists:
                problems.add(
                    campaign.at("callingHours"), "needs a schedule beside it, whose windows it sets"
                )
            elif schedule.at("timeWindows").exists:
                message = "can't stand beside callingHours, which replace them"
                problems.add(schedule.at("timeWindows"), message)
            name = campaign.at("name").text
            for action in actions:
                body = action.at("body")
                if body.exists and action.at("campaign").text == name:
                    problems.add(
                        body, f"can't stand beside the callingHours of {name}, which it would undo"
                    )


def _of_holidays(root: Cursor) -> Iterator[Cursor]:
    """Yield the settings for holidays; compliance rules are left out."""
    yield from root.each("behaviours.*.answeredOdds.onHoliday")
    for organization in root.at("organizations").items():
        lines = organization.at("lines").entries()
        yield from (count for key, count in lines if key.split(" ")[0] == "holiday")
        yield from organization.each("campaigns.*.callingHours.holiday")


def _texts(block: Cursor, pattern: str) -> Iterator[str]:
    return (found.text for found in block.each(pattern) if found.text is not None)


def _names(blocks: Cursor) -> frozenset[str] | None:
    """Return the names of blocks; None if a name is missing or not a text."""
    items = list(blocks.items())
    names = frozenset(_texts(blocks, "*.name"))
    # None, so that references to the block with the faulty name are not reported as well.
    listed = isinstance(blocks.value, list) or not blocks.exists
    return names if listed and all(item.at("name").text for item in items) else None


def _check_known(
    reference: Cursor, known: Collection[str] | None, noun: str, problems: Problems
) -> None:
    name = reference.text
    if name is None or known is None or name in known:
        return
    near = get_close_matches(name, known, n=1)
    if near:
        hint = f"; did you mean {near[0]}?"
    else:
        hint = f"; known here: {', '.join(sorted(known))}" if known else "; there is none"
    problems.add(reference, f'"{name}" is no {noun}{hint}')


def _check_value(
    value: Cursor,
    organizations: Sequence[Cursor],
    problems: Problems,
    agent: str | None = None,
) -> None:
    """Report keys of a value that no agent's analysis can produce; `agent` limits the agents to
    one.
    """
    if value.value == {}:
        problems.add(value, f"must not be empty: {_VALUES}")
    known = ["reached"]
    for each in (each for organization in organizations for each in organization.each("agents.*")):
        if agent in (None, each.at("name").text):
            analysis = each.at("analysis")
            known += [f"funnel.{step}" for step in _texts(analysis, "funnel.*.step")]
            known += [
                f"field.{name}.{found}"
                for name, field in analysis.at("fields").entries()
                for found, _ in field.at("values").entries()
            ]
    whose = f"agent {agent}" if agent else "any agent"
    for key, amount in value.entries():
        if key in known:
            continue
        near = get_close_matches(key, known, n=1, cutoff=0.75)
        what, _, rest = key.partition(".")
        # Nesting the keys is the obvious mistake in YAML.
        if isinstance(amount.value, dict) and what in ("funnel", "field"):
            example = known[1] if len(known) > 1 else "funnel.STEP"
            hint = f"must not be nested: write one key, such as {example}: 80"
        elif near:
            hint = f"is no result of {whose}; did you mean {near[0]}?"
        elif what not in ("funnel", "field") or not rest:
            hint = f"is no result: {_VALUES}"
        else:
            hint = f"is no result of {whose}; known here: {', '.join(dict.fromkeys(known))}"
        problems.add(amount, hint)


def check_worth(
    campaign: Campaign,
    agent: Agent | None,
    default: Mapping[str, float | str] | None,
    value: Cursor,
    problems: Problems,
) -> None:
    """Report formulas of the campaign's `value` that are faulty or fail for a recipient.

    `agent` is the campaign's agent. `default` is the scenario's value, for a campaign without its
    own. Problems are located at `value`.
    """
    schema = None if agent is None else agent.params_schema
    for key, formula in value_formulas(campaign.value or default, agent).items():
        amount = value.at(key)
        with problems.at(amount if amount.exists else value):
            worth_of_people(formula, attributes_of(campaign, schema), _places(campaign))


_VALUES = "write reached, funnel.STEP or field.NAME.VALUE, each with what it is worth"


def _check_unique(
    blocks: list[Cursor],
    key: str,
    problems: Problems,
    same: Callable[[str], str] = str,
) -> None:
    first: dict[str, Cursor] = {}
    for block in blocks:
        text = block.at(key).text
        if text is None:
            continue
        earlier = first.setdefault(same(text), block)
        if earlier is not block:
            path = ".".join(map(str, earlier.path))
            problems.add(block.at(key), f'"{text}" must be unique, but {path} has it too')


_UNKNOWN = re.compile(r"(?:[\w.]*\.)?property .* should not exist", re.DOTALL)
_OWN_PATH = re.compile(r"(?:each value in )?[a-z][\w.]* (?:must|should not) ")
_DATE = "must be a valid ISO 8601 date string"
_EXAMPLE = "2026-01-05T09:00:00+07:00"
_EXAMPLES = (("must be HH:MM", "09:00"), (_DATE, "2026-01-05T02:00:00Z"))
INSTANTS = ("startDateTime", "endDateTime")
"""Fields of a schedule request that hold instants."""


def read_schedules(
    root: Cursor, problems: Problems
) -> Iterator[tuple[Cursor, ScheduleRequest | None]]:
    """Yield each schedule request of a document with the position of its body.

    Bodies that fail steps 1 or 4 of the interface's checks are reported, and yielded as None.
    """
    voices = voice_keys(root)
    for organization in root.at("organizations").items():
        account = _account(organization)
        for _, body in _bodies(organization):
            yield body, _read(body, account, voices, root, problems)


def _bare_instants(root: Cursor) -> Iterator[tuple[str, int]]:
    """Yield each instant without an offset in a schedule request of a valid document.

    Its name comes with its reading as UTC (ms). Instants before 1970 are left out: they are in the
    past in either time zone.
    """
    for organization in root.at("organizations").items():
        for campaign, body in _bodies(organization):
            for field in INSTANTS:
                text = body.at(field).text
                at = 0 if text is None or has_offset(text) else parse_instant_or_epoch(text)
                if at > 0:
                    owner = organization.at("name").text
                    yield f"{field} {text} of campaign {campaign} of {owner}", at


def _bodies(organization: Cursor) -> Iterator[tuple[str, Cursor]]:
    """Yield each schedule request of an organization with the name of its campaign."""
    for key, pattern in (("name", "campaigns.*.schedule"), ("campaign", "timeline.*.body")):
        for body in organization.each(pattern):
            owner = organization.at(*body.path[len(organization.path) : -1])
            yield owner.at(key).text or "", body


def _account(organization: Cursor) -> CallingAccount:
    """Return the settings that schedule requests refer to, as far as the block is readable."""
    numbers = frozenset(_texts(organization, "callerIds.*"))
    accounts = {
        account.at("id").text or "": {
            caller.at("id").text or "": caller.at("number").text or ""
            for caller in account.at("callerIds").items()
        }
        for account in organization.at("sipAccounts").items()
    }
    alert = organization.at("duplicateCallAlert").exists
    return CallingAccount(numbers, accounts, alert)


def _read(
    body: Cursor,
    account: CallingAccount,
    voices: Collection[str],
    root: Cursor,
    problems: Problems,
) -> ScheduleRequest | None:
    # Corrected first, so that a Buddhist year gives one error and not a second about the order of
    # dates.
    values, sound = _in_common_era(body, problems)
    on_next_day = is_next_day(body.at("retryInterval").value)
    if on_next_day:
        # The windows must be read before the interval can be computed. A day is always long enough.
        values = {**values, "retryInterval": DAY}
    try:
        request = read_schedule(values)
    except ValidationFailed as rejected:
        _note(rejected, body, root, problems)
        return None
    if on_next_day:
        hours = root.at(*body.path[:-1], "callingHours").value
        # A strict service refuses a single attempt that has an interval.
        interval = _next_day_interval(request, hours) if request.max_attempts > 1 else 0
        request = request.model_copy(update={"retry_interval": interval})
    strict = root.at("service", "strict").value is True
    try:
        check_conditions(request, account, voices, strict=strict)
    except ValidationFailed as rejected:
        _note(rejected, body, root, problems)
        sound = False
    try:
        check_duplicate_alert(request, account)
    except ValidationFailed as rejected:
        _note(rejected, body, root, problems)
        sound = False
    # A request with a corrected year is only read to find its other faults.
    return request if sound else None


def _next_day_interval(request: ScheduleRequest, hours: object) -> int:
    """Return the smallest retry interval that leads past the last window of every day, in ms.

    A call may end right after it was dialled in the first minute of a day, so the interval is the
    time from the first opening of a day to its last closing, on the day where this is longest.
    """
    days = [*week_of(request.time_windows).values()]
    if hours is not None:
        try:
            classes = DayClasses.model_validate(hours)
        except ValidationError:
            # The models report the faults of the calling hours.
            return DAY
        days = [*classes.week.values(), classes.holiday or ()]
    longest = max((day[-1][1] - day[0][0] for day in days if day), default=0)
    return max(longest * MINUTE, LEAST_RETRY_INTERVAL)


def _note(rejected: ValidationFailed, body: Cursor, root: Cursor, problems: Problems) -> None:
    for fault in rejected.faults:
        problems.note(_problem(fault, body, root))


def _in_common_era(body: Cursor, problems: Problems) -> tuple[Any, bool]:
    """Return the body with Buddhist years corrected, and True if there were none.

    Each Buddhist year is reported. All other checks then use the corrected year.
    """
    corrected = {}
    for name, message in era_faults(body.value):
        written = body.at(name)
        problems.add(written, message)
        corrected[name] = instant_meant(written.text or "") or written.text
    return {**body.value, **corrected} if corrected else body.value, not corrected


def era_faults(body: object) -> Iterator[tuple[str, str]]:
    """Yield each field of a schedule request with a Buddhist year, and the text of the fault."""
    for name in INSTANTS:
        text = body.get(name) if isinstance(body, Mapping) else None
        message = era_fault(text) if isinstance(text, str) else None
        if message is not None:
            yield name, message


def _problem(fault: Fault, body: Cursor, root: Cursor) -> Problem:
    """Convert a fault of a request body into a problem with the path of the body (C10)."""
    # Texts that begin with a field's path are joined by a point, as in class-validator's nested
    # messages; texts of conditions, which name no field, by a colon.
    culprit = body.at(*fault.path)
    if not fault.path:
        return problem_at(body.location, body.path, unlike("must be a mapping of keys", body))
    unknown = _UNKNOWN.fullmatch(fault.message) is not None
    where = ".".join(map(str, body.path))
    join = "." if unknown or _OWN_PATH.match(fault.message) else ": "
    hint = suggestion(culprit.path, root) if unknown else _advice(fault, culprit)
    return behind(where + join, fault.message + hint, culprit, is_key=unknown)


def _advice(fault: Fault, culprit: Cursor) -> str:
    """Return advice for a fault whose interface text does not suffice in a file."""
    if fault.message.endswith("must be a string"):
        return quoting(culprit)
    if isinstance(culprit.value, int | float):
        for text, example in _EXAMPLES:
            if text in fault.message:
                return f'; put it in quotes, such as "{example}"'
    if _DATE in fault.message and culprit.text is not None:
        meant = instant_meant(culprit.text)
        return f"; write {meant}" if meant else f", such as {_EXAMPLE}"
    if culprit.path[-1] == "dayOfWeek":
        return "; it is a whole number from 1, Monday, to 7, Sunday"
    if culprit.path[-1] == "retryInterval" and culprit.text is not None:
        try:
            return f"; it is in milliseconds, here {parse_duration(culprit.text)}"
        except ValueError:
            pass
    return ""


_SHOWN = 3


def remarks_on(scenario: Scenario, root: Cursor) -> tuple[Remark, ...]:
    """Return the warnings about a valid scenario and its document."""
    # Remarks keep the position of the organization that they are about.
    owned = (
        Remark(text, position)
        for position, organization in enumerate(scenario.organizations)
        for text in _on_organization(scenario, organization)
    )
    return (*map(Remark, _on_document(root)), *owned)


def unused_caller_ids(scenario: Scenario) -> Iterator[str]:
    """Yield a sentence for each organization with caller IDs that none of its campaigns shows."""
    for owner in scenario.organizations:
        agents = {agent.name: agent for agent in owner.agents}
        requests = [part.schedule for part in owner.campaigns if part.schedule is not None]
        bodies = [action.body for action in owner.timeline if action.body is not None]
        named = any(each.caller_ids or each.sip_caller_id for each in (*requests, *bodies))
        of_agents = any(agents[part.agent].caller_id for part in owner.campaigns)
        if owner.caller_ids and requests and not named and not of_agents:
            yield (
                f"{owner.name} has {counted(len(owner.caller_ids), 'callerId')}, and none of them "
                "is used: neither the schedule of a campaign (callerIds) nor its agent (callerId) "
                "names one, so calls come from the shared number."
            )


def remarks_on_campaign(
    scenario: Scenario, organization: Organization, campaign: Campaign
) -> Iterator[str]:
    """Yield the warnings about a valid campaign, most of them about its recipients."""
    where = f"Campaign {campaign.name} of {organization.name}"
    agent = next(agent for agent in organization.agents if agent.name == campaign.agent)
    yield from _on_share(where, scenario, campaign)
    recipients = campaign.recipients
    if isinstance(recipients, GeneratedRecipients):
        table, params = PeopleTable(), [*recipients.agent_params]
    else:
        table = table_of(recipients)
        params = [*table.params]
    yield from _on_params(where, params, agent)
    yield from _on_segments(where, scenario, organization, campaign, table)
    tels, location = table.tels, _places(campaign)
    yield from _on_same_numbers(where, tels, location)
    is_file = isinstance(recipients, RecipientsFile)
    if isinstance(recipients, RecipientsFile):
        yield from _on_normalized(where, table.normalized, recipients.file)
        yield from _on_dropped_zeros(where, tels)
        yield from _on_curly_cells(where, table, location)
    yield from _on_numbers(where, tels, is_file, location)


# -- the document ---------------------------------------------------------------------------------


def _on_document(root: Cursor) -> Iterator[str]:
    bare = list(_bare_instants(root))
    if bare:
        readings = [
            f"{name} is {_time(at + THAI_OFFSET)} in Thai time, not {_time(at)}"
            for name, at in bare[:_SHOWN]
        ]
        example = format_instant(bare[0][1]).replace(".000Z", "Z").replace("Z", "+07:00")
        yield (
            "Without an offset an instant of a schedule is UTC, as in the interface: "
            f"{few(readings, len(bare), between='; ')}. For Thai time write +07:00 behind it: "
            f"{example}."
        )
    curly = [
        f"{text} ({'.'.join(map(str, part.path))})"
        for part in root.walk()
        for text in (*part.path[-1:], part.text)
        if isinstance(text, str) and is_curly_quoted(text)
    ]
    if curly:
        yield (
            f"Curly quotes are part of {few(curly[:_SHOWN], len(curly))}: in YAML only straight "
            'quotes (") enclose a text.'
        )


def _time(instant: int) -> str:
    """Format an instant as `2026-01-05 09:00`, with seconds if not zero."""
    date, time = format_instant(min(instant, LAST_INSTANT)).removesuffix("Z").split("T")
    return f"{date} {time.removesuffix('.000').removesuffix(':00')}"


# -- organizations and agents ---------------------------------------------------------------------


def _on_organization(scenario: Scenario, organization: Organization) -> Iterator[str]:
    for agent in organization.agents:
        yield from _on_agent(organization, agent)
    for campaign in organization.campaigns:
        yield from remarks_on_campaign(scenario, organization, campaign)
        used = campaign.schedule.caller_ids if campaign.schedule is not None else None
        made_up = [number for number in used or () if is_made_up(number)]
        if made_up:
            yield (
                f"Campaign {campaign.name} of {organization.name} calls from "
                f"{few(made_up[:_SHOWN], len(made_up))}, which {_are(len(made_up))}, to be "
                "rented in addition to those in the file."
            )


def _are(count: int) -> str:
    return "is a made-up caller ID" if count == 1 else "are made-up caller IDs"


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
            f"{where} has an analysis field error: a field of that name tells clients that there "
            "was no analysis, so they take every result for a fallback result (A3)."
        )


# -- campaigns ------------------------------------------------------------------------------------


def _on_share(where: str, scenario: Scenario, campaign: Campaign) -> Iterator[str]:
    """Warn about a priority or weight that the setting of sharing ignores."""
    sharing = scenario.engine.sharing
    for key, value, wanted in (
        ("priority", campaign.priority, "priority"),
        ("weight", campaign.weight if campaign.weight > 1 else None, "weighted"),
    ):
        if value is not None and sharing != wanted:
            yield (
                f"{where} has {key} {value}, which counts only where engine.sharing is {wanted}; "
                f"it is {sharing}."
            )


def _on_params(where: str, names: Sequence[str], agent: Agent) -> Iterator[str]:
    unknown = [
        name
        for name in names
        if agent.params_schema is not None
        and name not in agent.params_schema
        and not name.startswith("metadata__")
    ]
    if unknown:
        yield (
            f"{where} has agentParams that the paramsSchema of {agent.name} does not name: "
            f"{', '.join(unknown)}."
        )


def _on_segments(
    where: str,
    scenario: Scenario,
    organization: Organization,
    campaign: Campaign,
    table: PeopleTable,
) -> Iterator[str]:
    """Warn about segments that the agent's behaviours do not name."""
    # If no behaviour names any segment, segments only serve the tables, and need no warning.
    own = _behaviours(organization, campaign)
    known = [name for key in own for name in scenario.behaviours[key].answered_odds.by_segment]
    others = {
        name: key
        for key, behaviour in scenario.behaviours.items()
        for name in behaviour.answered_odds.by_segment
    }
    drawn: Mapping[str, float] = {}
    if isinstance(campaign.recipients, GeneratedRecipients):
        drawn = campaign.recipients.segments or {}
    segments = [*(drawn or table.segments.texts)]
    if known and not segments and isinstance(campaign.recipients, RecipientsFile):
        names = few(known[:_SHOWN], len(known))
        yield (
            f"{where}: bySegment of behaviour {joined(own)} names {names}, and no recipient "
            "has a segment, so it changes nothing. Name the column that has them: "
            "columns: {segment: …}."
        )
    unknown = [name for name in segments if name not in known and (known or name in others)]
    if not unknown:
        return
    shown = []
    for name in unknown[:_SHOWN]:
        hint = _nearest(name, known)
        if name in others:
            hint = f"; behaviour {others[name]} does"
        size = f"a share of {drawn[name]:g}" if drawn else _size(name, campaign, table.segments)
        shown.append(f"{name} ({size}{hint})")
    yield (
        f"{where}: bySegment of behaviour {joined(own)} does not name "
        f"{few(shown, len(unknown))}; their people answer as if they had no "
        f"segment. If that is intended, write there: {unknown[0]}: 1."
    )


def _nearest(name: str, known: Sequence[str]) -> str:
    plain = {other.strip().casefold(): other for other in known}
    near = get_close_matches(name.strip().casefold(), plain, n=1)
    return f"; did you mean {plain[near[0]]}?" if near else ""


def _behaviours(organization: Organization, campaign: Campaign) -> list[str]:
    """Return the behaviours that a campaign's agent has at any time."""
    agent = next(agent for agent in organization.agents if agent.name == campaign.agent)
    later = [
        action.behaviour
        for action in organization.timeline
        if action.action == "setBehaviour" and action.agent == agent.name and action.behaviour
    ]
    return list(dict.fromkeys([agent.behaviour, *later]))


def _size(segment: str, campaign: Campaign, segments: Codes) -> str:
    """Describe the size of a segment in a campaign, and its first recipient."""
    code = segments.texts[segment]
    count, first = segments.codes.count(code), segments.codes.index(code)
    people = counted(count, "recipient", "recipients, the first")
    return f"{people} in {_places(campaign)(first)}"


# -- recipients -----------------------------------------------------------------------------------


def _places(campaign: Campaign) -> Callable[[int], str]:
    """Return a function from a recipient's index to a location: `people.csv:5`, or
    `recipients.3`.
    """
    recipients = campaign.recipients
    if isinstance(recipients, GeneratedRecipients):
        return lambda _: "count"
    if isinstance(recipients, RecipientsFile):
        file, lines = recipients.file, recipients.table.lines
        return lambda row: f"{file}:{lines[row]}"
    return lambda row: f"recipients.{row}"


def _on_same_numbers(
    where: str, tels: Sequence[str], location: Callable[[int], str]
) -> Iterator[str]:
    # The common case is quicker: in national form a number has one spelling only.
    numbers = tels if all(tel[0] == "0" for tel in tels) else [*map(national, tels)]
    repeats = len(numbers) - len(set(numbers))
    if not repeats:
        return
    number, times = Counter(numbers).most_common(1)[0]
    rows = [row for row, other in enumerate(numbers) if other == number][:_SHOWN]
    shown = [f"{tels[row]} ({location(row)})" for row in rows]
    recipients = "a recipient" if repeats == 1 else f"{repeats:,} recipients"
    yield (
        f"{where} has {recipients} with the number of an earlier recipient, such as "
        f"{few(shown, times)}; each is called."
    )


def _on_normalized(where: str, normalized: Sequence[Normalized], place: str) -> Iterator[str]:
    """Report normalized cells with their number, so that no change is silent."""
    if normalized:
        counts = [f"{column.count:,} of {column.column}" for column in normalized]
        first = normalized[0]
        total = sum(column.count for column in normalized)
        cells = "1 cell in another spelling was read"
        if total > 1:
            cells = f"{total:,} cells in other spellings were read"
        yield (
            f"{where}: {cells} (normalize): "
            f"{joined(counts)}, such as {first.written} as {first.read} "
            f"({place}:{first.line})."
        )


def _on_dropped_zeros(where: str, tels: Sequence[str]) -> Iterator[str]:
    """Warn about numbers whose leading 0 a spreadsheet has probably dropped."""
    bare = [tel for tel in tels if lacks_zero(tel)]
    if bare:
        yield (
            f"{where} calls {bare[0]}{f' and {len(bare) - 1:,} more' if bare[1:] else ''}: has a "
            "spreadsheet dropped the 0 in front? It keeps the 0 in a column of text."
        )


def _on_numbers(
    where: str, tels: Sequence[str], is_file: bool, location: Callable[[int], str]
) -> Iterator[str]:
    """Warn about impossible numbers; for files, dropped zeros have a warning of their own."""
    odd = [
        row
        for row, tel in enumerate(tels)
        if not is_plausible(tel) and not (is_file and lacks_zero(tel))
    ]
    if odd:
        shown = [f"{tels[row]} ({location(row)})" for row in odd[:_SHOWN]]
        many = "a number" if len(odd) == 1 else f"{len(odd):,} numbers"
        yield (
            f"{where} calls {many} of no plausible length or prefix: {few(shown, len(odd))}. "
            f"{PLAUSIBLE_TEXT}."
        )


def _on_curly_cells(
    where: str, table: PeopleTable, location: Callable[[int], str]
) -> Iterator[str]:
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
        cells = [f"{cell} ({location(row)})" for row, cell in sorted(found)[:_SHOWN]]
        yield (
            f"{where}: curly quotes are part of {few(cells, len(found))}: in a CSV only straight "
            'quotes (") enclose a cell.'
        )
