"""Shapes: what a request of the control plane carries, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dialsim.interface.errors import Refused
from dialsim.interface.wire import WireModel

Shape = TypeVar("Shape", bound=WireModel)

_KINDS = {
    "missing": "is required",
    "string_type": "must be a string",
    "bool_type": "must be a boolean value",
    "greater_than_equal": "must not be less than {ge}",
    "less_than_equal": "must not be greater than {le}",
    "greater_than": "must be greater than {gt:g}",
    "dict_type": "must be an object",
    "model_type": "must be an object",
}


def read_shape(shape: type[Shape], body: object) -> Shape:
    """A decoded body, or parameters of a query, as a shape.

    Raises Refused with all that is wrong with it: unknown properties first, as everywhere (C10).
    """
    if not isinstance(body, Mapping):
        raise invalid("body must be an object")
    try:
        return shape.model_validate(body, by_alias=True, by_name=False)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    unknown = [fault for fault in found if fault["type"] == "extra_forbidden"]
    known = [fault for fault in found if fault["type"] != "extra_forbidden"]
    raise invalid(
        *(f"property {_path(fault)} should not exist" for fault in unknown),
        *(f"{_path(fault)} {_says(fault)}".strip() for fault in known),
    )


def invalid(*texts: str) -> Refused:
    """A request that makes no sense: 400 with what is wrong with it."""
    return Refused(400, "VALIDATION_FAILED", texts)


def _path(fault: ErrorDetails) -> str:
    return ".".join(map(str, fault["loc"]))


def _says(fault: ErrorDetails) -> str:
    context = fault.get("ctx", {})
    if fault["type"] in ("literal_error", "enum"):
        return f"must be {context['expected'].replace(chr(39), '')}"
    says: str = context.get("says") or _KINDS.get(fault["type"], fault["msg"])
    return says.format_map(context)
