"""How the interface's objects look in JSON: camelCase names, and no field but the named ones."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class WireModel(BaseModel):
    """A frozen object of the interface: attributes in snake_case, on the wire in camelCase."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        field_title_generator=lambda name, _: to_camel(name),
    )
