"""Identifiers: what counts as a UUID where the interface asks for one.

How the interface's objects look in JSON: camelCase names, and no field but the named ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, TypeGuard

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

UUID_PATTERN = r"^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"
"""Five groups of hexadecimal digits in either case; version and variant are free."""

_UUID = re.compile(UUID_PATTERN[1:-1])


def is_uuid(value: object) -> TypeGuard[str]:
    """Whether `value` is a text in the form of a UUID (interface, section 4)."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


MOST_EXACT = 2**53 - 1
"""The largest whole number that every reader of JSON takes as it is (RFC 8259, section 6)."""
UuidText = Annotated[
    str, WithJsonSchema({"type": "string", "format": "uuid", "pattern": UUID_PATTERN})
]
"""A UUID as it is answered."""
InstantText = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
            "examples": ["2026-01-05T02:00:06.000Z"],
        }
    ),
]
"""An instant as it is answered: UTC, to the millisecond."""


@dataclass(frozen=True, slots=True)
class NullAsAbsent:
    """Lets the JSON Schema of a field with a default show that null counts as absent (C9)."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"type": "null"}]}


def given(name: str) -> dict[str, Any]:
    """The JSON Schema of an object that has a property, null counting as left out."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


class WireModel(BaseModel):
    """A frozen object of the interface: attributes in snake_case, on the wire in camelCase."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_serialization_defaults_required=True,
        field_title_generator=lambda name, _: to_camel(name),
    )
