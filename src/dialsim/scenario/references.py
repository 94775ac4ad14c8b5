"""What the parts of a scenario say of each other: names, ids, and references to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from difflib import get_close_matches

from dialsim.interface.voices import DEFAULT_VOICES
from dialsim.scenario.problems import Problems
from dialsim.scenario.timeline import check_fields
from dialsim.scenario.tree import Cursor, Sequence


def check_references(root: Cursor, problems: Problems) -> None:
    """Note names and ids that are not unique, and references to what is not there.

    Looks at the document as written, so that it can be done whatever else is wrong with it.
    """
    organizations = list(root.at("organizations").items())
    if root.at("organizations").value == []:
        problems.add(root.at("organizations"), "must not be empty: one organization, at least")
    _check_unique(organizations, "name", problems)
    _check_unique(organizations, "apiKey", problems)
    for noun in ("", "agents", "campaigns"):
        blocks = [b for o in organizations for b in (o.at(noun).items() if noun else (o,))]
        _check_unique(blocks, "id", problems, same=str.lower)
    _check_unique(list(root.at("voices").items()), "voiceKey", problems)
    behaviours = {"default", *(name for name, _ in root.at("behaviours").entries())}
    voices = voice_keys(root)
    for organization in organizations:
        _check_organization(organization, behaviours, voices, problems)


def voice_keys(root: Cursor) -> frozenset[str]:
    """The keys of the document's voice catalog."""
    if not root.at("voices").exists:
        return frozenset(voice.voice_key for voice in DEFAULT_VOICES)
    return frozenset(_texts(root.at("voices"), "voiceKey"))


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
    for action in organization.at("timeline").items():
        check_fields(action, problems)
        _check_known(
            action.at("campaign"), campaign_names, "campaign of this organization", problems
        )
        _check_known(action.at("agent"), agent_names, "agent of this organization", problems)
        _check_known(action.at("behaviour"), behaviours, "behaviour", problems)


def _texts(blocks: Cursor, key: str) -> Iterator[str]:
    for block in blocks.items():
        text = block.at(key).text
        if text is not None:
            yield text


def _names(blocks: Cursor) -> frozenset[str] | None:
    """The names of blocks; None if they can't be known, as a name is missing or no text."""
    items = list(blocks.items())
    names = frozenset(_texts(blocks, "name"))
    listed = isinstance(blocks.node, Sequence) or not blocks.exists
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
