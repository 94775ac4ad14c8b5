"""Addresses that are known only when a scenario is served: the server's own, and a receiver's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from dialsim.interface.errors import DialsimError
from dialsim.scenario.organization import Webhook

if TYPE_CHECKING:
    from dialsim.scenario.scenario import Scenario


def address_url(host: str, port: int, scheme: str = "http") -> str:
    """The URL at which a server is reached."""
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def with_public_url(scenario: Scenario, url: str) -> Scenario:
    """The scenario with links to files that lead to the server, unless it says another place."""
    service = scenario.service
    if "public_url" in service.model_fields_set:
        return scenario
    changed = scenario.model_copy(
        update={"service": service.model_copy(update={"public_url": url})}
    )
    return _as_overridden(changed, [f"service.publicUrl={url}"])


def with_webhook_url(scenario: Scenario, url: str) -> Scenario:
    """The scenario with the results of all its organizations sent to one URL.

    Raises DialsimError if it is none.
    """
    try:
        webhook = Webhook.model_validate({"url": url})
    except ValidationError as error:
        raise DialsimError(f"webhook_url {url!r} {error.errors()[0]['msg']}") from None
    organizations = tuple(
        block.model_copy(
            update={
                "webhook": block.webhook.model_copy(update={"url": url})
                if block.webhook
                else webhook
            }
        )
        for block in scenario.organizations
    )
    changed = scenario.model_copy(update={"organizations": organizations})
    overrides = [f"organizations.{place}.webhook.url={url}" for place in range(len(organizations))]
    return _as_overridden(changed, overrides)


def _as_overridden(scenario: Scenario, overrides: list[str]) -> Scenario:
    """The same scenario, saying of itself that it has these overrides too."""
    origin = scenario.origin
    if origin is None:
        return scenario
    overridden = replace(origin, overrides=(*origin.overrides, *overrides))
    return scenario.loaded(overridden, scenario.remarks)
