"""Shapes: what a request of the control plane carries, read and checked, all of it at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Self, TypeVar

from pydantic import ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from dialsim.interface.errors import Refused
from dialsim.interface.wire import WireModel

if TYPE_CHECKING:
    from starlette.requests import Request

Shape = TypeVar("Shape", bound=WireModel)

_CONFLICT = "conflict"
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


class Combined(WireModel):
    """A shape whose properties must fit together, besides each being right in itself."""

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """What is wrong with properties that are given together, or with none being given.

        `given` is what was sent, by the names on the wire, and not checked yet.
        """
        raise NotImplementedError

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for says in self.conflicts(self.model_dump(by_alias=True, exclude_unset=True)):
            raise PydanticCustomError(_CONFLICT, "{says}", {"says": says})
        return self


def read_shape(shape: type[Shape], body: object) -> Shape:
    """A decoded body, or parameters of a query, as a shape.

    Raises Refused with all that is wrong with it: unknown properties first, as everywhere (C10),
    then each of the others, then what doesn't fit together.
    """
    if not isinstance(body, Mapping):
        raise invalid("body must be an object")
    try:
        return shape.model_validate(body, by_alias=True, by_name=False)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    unknown = [fault for fault in found if fault["type"] == "extra_forbidden"]
    known = [fault for fault in found if fault["type"] not in ("extra_forbidden", _CONFLICT)]
    raise invalid(
        *(f"property {_path(fault)} should not exist" for fault in unknown),
        *(f"{_path(fault)} {_says(fault)}".strip() for fault in known),
        *(shape.conflicts(body) if issubclass(shape, Combined) else ()),
    )


def query_of(request: Request) -> dict[str, str]:
    """The parameters of a query; one that is sent twice counts as one with a comma in it."""
    query = request.query_params
    return {name: ",".join(query.getlist(name)) for name in query}


def refuse_query(request: Request) -> None:
    """Refuse parameters of a query that nobody asks for, in the words for unknown properties."""
    if request.query_params:
        raise invalid(*(f"property {name} should not exist" for name in request.query_params))


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
