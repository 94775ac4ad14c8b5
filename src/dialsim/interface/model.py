"""Base class of all models, and the errors of a request body in class-validator's words (C10).

A model declares names, types, texts and order of its fields once. Requests from files and from HTTP
are checked against the model, and the JSON Schema is generated from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Self, TypeGuard, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

from dialsim.errors import ValidationFailed
from dialsim.interface.instants import format_instant, ms_of, parse_instant, utc

UUID_PATTERN = r"^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"
"""Pattern of a UUID in either case; any version and variant is accepted."""

_UUID = re.compile(UUID_PATTERN[1:-1])


def is_uuid(value: object) -> TypeGuard[str]:
    """Return True for a text in the form of a UUID (interface, section 4)."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


_STRICT_UUID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)


def is_strict_uuid(text: str) -> bool:
    """Return True for a UUID of RFC 9562 in lower case, which every validator accepts."""
    return _STRICT_UUID.fullmatch(text) is not None


MOST_EXACT = 2**53 - 1
"""Largest integer that every JSON reader represents exactly (RFC 8259, section 6)."""
UuidText = Annotated[
    str, WithJsonSchema({"type": "string", "format": "uuid", "pattern": UUID_PATTERN})
]
"""UUID in an answer."""
_INSTANT = WithJsonSchema(
    {
        "type": "string",
        "format": "date-time",
        "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
        "examples": ["2026-01-05T02:00:06.000Z"],
    }
)
InstantText = Annotated[str, _INSTANT]
"""Instant in an answer: UTC, to the millisecond."""
Moment = Annotated[
    datetime,
    BeforeValidator(lambda at: utc(parse_instant(at)) if isinstance(at, str) else at),
    PlainSerializer(lambda at: format_instant(ms_of(at))),
    _INSTANT,
]
"""Instant in an answer that Python reads as a datetime."""


@dataclass(frozen=True, slots=True)
class NullAsAbsent:
    """Annotation of a field with a default: its JSON Schema also accepts null, which counts as
    absent (C9).
    """

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"type": "null"}]}


def given(name: str) -> dict[str, Any]:
    """Build the JSON Schema of an object in which property `name` is present and not null."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


class WireModel(BaseModel):
    """Frozen model with snake_case attributes; keys on the wire and in files are in camelCase."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        # Answers have all their keys, also those with a default.
        json_schema_serialization_defaults_required=True,
        # Pydantic's own titles would be words, `Max Attempts`, which nobody finds in a request.
        field_title_generator=lambda name, _: to_camel(name),
    )


class Combined(WireModel):
    """Model with conditions on several properties together."""

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """Yield one text per conflict between properties, or for missing ones.

        `given` maps wire names to values as sent, before validation.
        """
        raise NotImplementedError

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for message in self.conflicts(self.model_dump(by_alias=True, exclude_unset=True)):
            raise PydanticCustomError(_CONFLICT, "{message}", {"message": message})
        return self


def broken(message: str, *path: str | int) -> PydanticCustomError:
    """Build the error of a condition on several fields; `path` leads from this model to the
    field at fault.
    """
    return PydanticCustomError("broken", "{message}", {"message": message, "path": path})


def wrong(message: str) -> PydanticCustomError:
    """Build the error of a value of the wrong type. Messages for files append the value itself."""
    return PydanticCustomError("wrong", "{message}", {"message": message})


def wrong_item(index: int, message: str) -> PydanticCustomError:
    """Build the error of a list for its first invalid item; later items add no errors."""
    return PydanticCustomError(
        _ITEM, "{message}", {"message": f"must be {message}", "index": index}
    )


@dataclass(frozen=True, slots=True)
class Fault:
    """One failure of a check: path of the field in the body, and the exact text on the wire.

    A nested field's message starts with the path of its parent (C10).
    """

    path: tuple[str | int, ...]
    message: str


def invalid(*texts: str) -> ValidationFailed:
    """Build a 400 error from texts that concern the request as a whole."""
    return ValidationFailed(Fault((), text) for text in texts)


# Our own code builds models without this context and may pass values in internal form, such as
# instants as integers.
SENT = {"sent": True}
"""Validation context of input from clients and planners."""

_CONFLICT = "conflict"
_ITEM = "item"
# Not reported as faults of a field: conflicts, which `read_model` appends, and a default that could
# not be computed because the field that it depends on is invalid.
_LEFT_OUT = (_CONFLICT, "default_factory_not_called")
_UNKNOWN = "extra_forbidden"
_NO_OBJECT = ("model_type", "model_attributes_type", "dict_type")
_TEXTS = {
    "missing": "is required",
    "string_type": "must be a string",
    "bool_type": "must be a boolean value",
    "greater_than_equal": "must not be less than {ge}",
    "less_than_equal": "must not be greater than {le}",
    "greater_than": "must be greater than {gt:g}",
    **dict.fromkeys(_NO_OBJECT, "must be an object"),
}

ModelT = TypeVar("ModelT", bound=WireModel)


def read_model(model: type[ModelT], body: object) -> ModelT:
    """Validate a decoded body, or the parameters of a query, against a model.

    Raises ValidationFailed with every failure: unknown properties in the order sent, then fields in
    the order of the model, then conflicts between fields. Nested objects use the same order (C10).
    """
    if not isinstance(body, Mapping):
        raise invalid("body must be an object")
    try:
        # By alias alone: the interface does not know the names of fields in Python.
        return model.model_validate(body, by_alias=True, by_name=False, context=SENT)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    faults = [_fault(one) for one in _in_order(found) if one["type"] not in _LEFT_OUT]
    if issubclass(model, Combined):
        faults += [Fault((), message) for message in model.conflicts(body)]
    raise ValidationFailed(faults)


def _in_order(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Sort pydantic's errors into the order of C10.

    Within a list: the first item that is no object, then unknown properties of any item, then the
    rest. Further items that are no objects are left out.
    """
    # Pydantic reports unknown properties last, and every invalid item of a list.
    first: dict[tuple[int | str, ...], int] = {}
    for number, error in enumerate(errors):
        for depth in range(len(error["loc"])):
            first.setdefault(error["loc"][: depth + 1], number)

    def key(error: ErrorDetails) -> list[tuple[int, int]]:
        loc, is_unknown = error["loc"], error["type"] == _UNKNOWN
        ranks = []
        for depth, part in enumerate(loc):
            below = len(loc) - depth - 1
            rank = 2 if below else 0
            if is_unknown and below == isinstance(part, int):
                rank = 1
            elif isinstance(part, str):
                rank = 2
            ranks.append((rank, first[loc[: depth + 1]]))
        return ranks

    ordered, lists = [], set()
    for error in sorted(errors, key=key):
        parent = error["loc"][:-1]
        if _is_item(error):
            if parent in lists:
                continue
            lists.add(parent)
        ordered.append(error)
    return ordered


def _is_item(error: ErrorDetails) -> bool:
    return error["type"] in _NO_OBJECT and isinstance(error["loc"][-1], int)


def _fault(error: ErrorDetails) -> Fault:
    kind, context = error["type"], error.get("ctx", {})
    path = error["loc"]
    if kind == _ITEM:
        path = (*path, context["index"])
    # only our own templates are filled in: a text may quote braces that a client sent
    template = _TEXTS.get(kind)
    message: str = context.get("message") or error["msg"]
    if template is not None:
        message = template.format_map(context)
    if kind in ("literal_error", "enum"):
        message = f"must be {context['expected'].replace(chr(39), '')}"
    # pydantic's names for the alternatives of a union stand in angle brackets
    *parents, name = (key for key in path if not str(key).startswith("<") or key == path[-1])
    text = f"{name} {message}"
    if kind == _UNKNOWN:
        text = f"property {name} should not exist"
    elif kind == _ITEM or _is_item(error):
        *parents, listed, _ = path
        text = f"each value in {listed} {message}"
    return Fault(path, "".join(f"{key}." for key in parents) + text)
