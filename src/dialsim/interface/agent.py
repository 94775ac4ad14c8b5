"""What an agent asks of its recipients: `paramsSchema`, and the check of `agentParams`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue

from dialsim.interface.faults import Fault
from dialsim.interface.wire import WireModel


class ParamSchema(WireModel):
    """An entry of an agent's `paramsSchema`: one parameter (interface, section 2.2)."""

    type: Literal["text", "number", "boolean"] = Field(
        description="What the value is", examples=["number"]
    )
    required: bool = Field(
        default=False,
        strict=True,
        description="Whether every recipient's agentParams must carry the key",
        examples=[True],
    )
    description: str | None = Field(
        default=None, description="What the parameter means", examples=["Amount due"]
    )
    default: JsonValue = Field(
        default=None,
        description="The value the agent uses where agentParams lacks the key",
        examples=[0],
    )
    spell: JsonValue = Field(default=None, description="How the value is spelled out; kept as is")
    pronunciation_map: JsonValue = Field(
        default=None,
        alias="pronunciation_map",
        description="How the value is pronounced; kept as is",
    )


_TYPE_TEXTS = {"text": "a string", "number": "a number", "boolean": "a boolean value"}


def check_agent_params(
    schema: Mapping[str, ParamSchema] | None, params: Mapping[str, object]
) -> list[Fault]:
    """Check a recipient's `agentParams` against the agent's `paramsSchema`.

    Required keys must be there, whatever their default, and values must have the type of their
    entry; null counts as absent. Keys that the schema doesn't name are allowed, as the interface
    forbids none, and without a schema everything is. Paths and messages start at the parameter.
    """
    faults = []
    for name, entry in (schema or {}).items():
        value = params.get(name)
        if value is None:
            if entry.required:
                faults.append(Fault((name,), f"{name} is required"))
        elif not _is_of_type(value, entry.type):
            faults.append(Fault((name,), f"{name} must be {_TYPE_TEXTS[entry.type]}"))
    return faults


def _is_of_type(value: object, kind: Literal["text", "number", "boolean"]) -> bool:
    if kind == "text":
        return isinstance(value, str)
    if kind == "boolean" or isinstance(value, bool):
        return kind == "boolean" and isinstance(value, bool)
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
