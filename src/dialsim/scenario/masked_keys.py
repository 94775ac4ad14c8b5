"""Masks of API keys: a scenario as it may be shown to those who are not to have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dialsim.scenario.document import Cursor, parse_yaml
from dialsim.scenario.overrides import apply
from dialsim.scenario.problems import Problems

if TYPE_CHECKING:
    from dialsim.scenario.scenario import Origin, Scenario

_SECRET_LENGTH = 32


def with_masked_keys(scenario: Scenario) -> Scenario:
    """The scenario with the API keys that it gives masked, in the text that it came from as well.

    A mask has the prefix of the key, then `x` and the number of the organization, as keys must
    differ. The origin is left out if its text spells a key so that it can't be found.
    """
    masks = {
        organization.api_key: f"{organization.api_key[:-_SECRET_LENGTH]}{number:x>{_SECRET_LENGTH}}"
        for number, organization in enumerate(scenario.organizations, 1)
        if organization.api_key is not None
    }
    if not masks:
        return scenario
    organizations = tuple(
        block.model_copy(update={"api_key": masks.get(block.api_key or "")})
        for block in scenario.organizations
    )
    masked = scenario.model_copy(update={"organizations": organizations})
    origin = None if scenario.origin is None else _masked(scenario.origin, masks)
    if origin is not None and not _says(origin, masked):
        origin = None
    return masked.loaded(origin, scenario.remarks)


def _masked(origin: Origin, masks: Mapping[str, str]) -> Origin:
    text, overrides = origin.text, origin.overrides
    for key in sorted(masks, key=len, reverse=True):  # one may be the end of another
        text = text.replace(key, masks[key])
        overrides = tuple(override.replace(key, masks[key]) for override in overrides)
    return replace(origin, text=text, overrides=overrides)


def _says(origin: Origin, scenario: Scenario) -> bool:
    """Whether a text gives the keys that a scenario has."""
    problems = Problems(origin.name)
    document = parse_yaml(origin.text, origin.name, problems)
    apply(origin.overrides, document, problems)
    organizations = Cursor.root(document).at("organizations")
    return all(
        organizations.at(place, "apiKey").text == organization.api_key
        for place, organization in enumerate(scenario.organizations)
    )
