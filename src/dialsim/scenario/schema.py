"""The JSON Schema of a scenario file: for editors, and for what keys are known where."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from dialsim.scenario.models import Scenario
from dialsim.scenario.tree import Path

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _FileSchema(GenerateJsonSchema):
    """Pydantic's schema, but for what the models need once read and a file may leave out."""

    schema_dialect = DIALECT


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the file as a planner writes it, as plain values.

    Each key has a description with its unit and an example. What only a look at the whole file
    can tell (references, order of instants, sums) is not in it; `load` checks that.
    """
    schema = Scenario.model_json_schema(schema_generator=_FileSchema)
    schema["required"].remove("clock")
    return {"$schema": DIALECT, **schema, "title": "Dialsim scenario"}


def known_keys(path: Path, values: object) -> list[str]:
    """The keys that may stand in the block at `path` of a document with these plain values."""
    return list(dict.fromkeys(_keys(_schema(), path, values)))


@cache
def _schema() -> dict[str, Any]:
    return json_schema()


def _keys(schema: JsonSchemaValue, path: Path, values: object) -> Iterator[str]:
    for form in _forms(schema, values):
        properties = form.get("properties", {})
        if not path:
            yield from properties
            continue
        key, *rest = path
        below = properties.get(key, form.get("additionalProperties"))
        if isinstance(key, int):
            below = form.get("items")
        if isinstance(below, dict):
            yield from _keys(below, tuple(rest), _value(values, key))


def _forms(schema: JsonSchemaValue, values: object) -> Iterator[JsonSchemaValue]:
    """The alternatives of a schema, references resolved, whose constants fit the values."""
    if "$ref" in schema:
        schema = _schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    alternatives = [*schema.get("oneOf", ()), *schema.get("anyOf", ())]
    for alternative in alternatives:
        yield from _forms(alternative, values)
    constants = {
        key: below["const"]
        for key, below in schema.get("properties", {}).items()
        if "const" in below and isinstance(below["const"], str)
    }
    if all(_value(values, key) == constant for key, constant in constants.items()):
        yield schema


def _value(values: object, key: str | int) -> object:
    if isinstance(values, dict):
        return values.get(key)
    if isinstance(values, list) and isinstance(key, int) and key < len(values):
        return values[key]
    return None
