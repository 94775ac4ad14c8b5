"""Remarks on a scenario: what is allowed, but may not be what its writer means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dialsim.scenario.agent import Agent
from dialsim.scenario.campaign import Campaign, GeneratedRecipients, RecipientsFile
from dialsim.scenario.models import Scenario
from dialsim.scenario.organization import Organization


def remarks_on(scenario: Scenario) -> tuple[str, ...]:
    """Plain sentences on a good scenario."""
    return tuple(_on_organizations(scenario))


def _on_organizations(scenario: Scenario) -> Iterator[str]:
    for organization in scenario.organizations:
        for agent in organization.agents:
            yield from _on_agent(organization, agent)
        for campaign in organization.campaigns:
            yield from remarks_on_campaign(organization, campaign)


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


def remarks_on_campaign(organization: Organization, campaign: Campaign) -> Iterator[str]:
    """Plain sentences on the recipients of a good campaign."""
    where = f"Campaign {campaign.name} of {organization.name}"
    agent = next(agent for agent in organization.agents if agent.name == campaign.agent)
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
    yield from _on_duplicates(where, _tels(campaign))
    if isinstance(campaign.recipients, RecipientsFile):
        yield from _on_dropped_zeros(where, campaign.recipients.table.tels)


def _param_names(campaign: Campaign) -> Sequence[str]:
    recipients = campaign.recipients
    if isinstance(recipients, RecipientsFile):
        return list(recipients.table.params)
    if isinstance(recipients, GeneratedRecipients):
        return list(recipients.agent_params)
    return list(dict.fromkeys(name for person in recipients for name in person.agent_params))


def _tels(campaign: Campaign) -> Sequence[str]:
    recipients = campaign.recipients
    if isinstance(recipients, RecipientsFile):
        return recipients.table.tels
    if isinstance(recipients, GeneratedRecipients):
        return ()
    return [person.tel for person in recipients]


def _on_dropped_zeros(where: str, tels: Sequence[str]) -> Iterator[str]:
    """Thai numbers have 9 or 10 digits, the first of them 0, which spreadsheets take away."""
    bare = [tel for tel in tels if tel[0] not in "0+" and len(tel) in (8, 9)]
    if bare:
        yield (
            f"{where} calls {bare[0]}{f' and {len(bare) - 1:,} more' if bare[1:] else ''}: has a "
            "spreadsheet dropped the 0 in front? It keeps the 0 in a column of text."
        )


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
