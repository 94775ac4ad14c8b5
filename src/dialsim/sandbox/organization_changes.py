"""Changes of an organization's settings, as an operator asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import ConfigDict, Field

from dialsim.engine.dialler import Dialler
from dialsim.interface.wire import given
from dialsim.sandbox.shapes import Combined
from dialsim.scenario.fields import Limit, Switch, Url


class OrganizationChanges(Combined):
    """What is to be changed; what is left out stays, and null is no value but for the URL."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                given("maxConcurrentCalls"),
                given("callingAllowed"),
                given("regenerateApiKey"),
                {"required": ["webhookUrl"]},
            ]
        }
    )

    max_concurrent_calls: Limit | None = Field(
        default=None, description="A lower limit hangs up nobody.", examples=[20]
    )
    calling_allowed: Switch | None = Field(
        default=None, description="Whether campaigns may be started."
    )
    webhook_url: Url | None = Field(
        default=None,
        description="Where results are sent from the next one on; null: nowhere.",
        examples=["http://127.0.0.1:9000/hook"],
    )
    regenerate_api_key: Switch | None = Field(
        default=None, description="true makes a new key; the old one is wrong at once."
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """Something is to be changed; null is a value of the URL alone."""
        known = [field.alias or "" for field in cls.model_fields.values()]
        if "webhookUrl" not in given and all(given.get(name) is None for name in known):
            yield f"at least one of {', '.join(known)} must be given"

    def make(self, dialler: Dialler) -> None:
        """Make the changes that the engine knows of; none of them can fail."""
        if self.max_concurrent_calls is not None:
            dialler.set_limit(self.max_concurrent_calls)
        if self.calling_allowed is not None:
            dialler.set_calling_allowed(self.calling_allowed)
        if "webhook_url" in self.model_fields_set:
            dialler.set_webhook_url(self.webhook_url)
