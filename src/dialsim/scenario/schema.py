"""The JSON Schema of a scenario file: for editors, and for what keys are known where."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic.json_schema import JsonSchemaValue

from dialsim.scenario.document import NodePath
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.units import DURATION_PATTERN, format_duration

DIALECT = "https://json-schema.org/draft/2020-12/schema"


_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum"}


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the file as a planner writes it, as plain values.

    Each key has a description with its unit and an example. What only a look at the whole file
    can tell (references, order of instants, sums) is not in it; `load` checks that.
    """
    schema = tidied(Scenario.model_json_schema())
    # the models have both once they are read; a file may leave them out
    schema["required"].remove("clock")
    del schema["$defs"]["Clock"]["required"]
    about = {
        "title": "Dialsim scenario",
        "description": "What a simulation of dialsim starts from.",
    }
    return {"$schema": DIALECT, **schema, **about}


def tidied(part: Any) -> Any:
    """A part of pydantic's schema: bounds in JSON Schema's words, durations as they are written.

    Defaults of null, which say no more than that a key may be left out, are dropped.
    """
    if isinstance(part, list):
        return [tidied(item) for item in part]
    if not isinstance(part, dict):
        return part
    plain = {
        _BOUNDS.get(key, key) if isinstance(below, int | float) else key: tidied(below)
        for key, below in part.items()
        if below is not None
    }
    if plain.get("pattern") == DURATION_PATTERN and isinstance(plain.get("default"), int):
        plain["default"] = format_duration(plain["default"])
    return plain


def known_keys(path: NodePath, values: object) -> list[str]:
    """The keys that may stand in the block at `path` of a document with these plain values."""
    return list(dict.fromkeys(_keys(_schema(), path, values)))


@cache
def _schema() -> dict[str, Any]:
    return json_schema()


def _keys(schema: JsonSchemaValue, path: NodePath, values: object) -> Iterator[str]:
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
    """A schema and its alternatives, references resolved: those that fit the values, else all."""
    if "$ref" in schema:
        schema = _schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    yield schema
    alternatives = [
        form
        for alternative in (*schema.get("oneOf", ()), *schema.get("anyOf", ()))
        for form in _forms(alternative, values)
    ]
    yield from [form for form in alternatives if _fits(form, values)] or alternatives


def _fits(form: JsonSchemaValue, values: object) -> bool:
    """Whether the values have the texts that tell this alternative from the others."""
    properties = form.get("properties", {}).items()
    constants = {key: below["const"] for key, below in properties if "const" in below}
    return all(_value(values, key) == constant for key, constant in constants.items())


def _value(values: object, key: str | int) -> object:
    if isinstance(values, dict):
        return values.get(key)
    if isinstance(values, list) and isinstance(key, int) and key < len(values):
        return values[key]
    return None
