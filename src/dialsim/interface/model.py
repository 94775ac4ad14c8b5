"""The base of all models, and what is wrong with a body, in class-validator's words (C10).

A model declares names, types, texts and their order once: requests are checked by it wherever they
come from, and the JSON Schema of the description is made from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeGuard, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

from dialsim.errors import ValidationFailed

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
    """A frozen object: attributes in snake_case, on the wire and in files in camelCase."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_serialization_defaults_required=True,
        field_title_generator=lambda name, _: to_camel(name),
    )


class Combined(WireModel):
    """A model whose properties must fit together, besides each being right in itself."""

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


def broken(says: str, *path: str | int) -> PydanticCustomError:
    """The error of a rule between fields: a text behind the path of the culprit, below here."""
    return PydanticCustomError("broken", "{says}", {"says": says, "path": path})


def wrong(says: str) -> PydanticCustomError:
    """The error of a value of the wrong kind; files show what stands in its place behind it."""
    return PydanticCustomError("wrong", "{says}", {"says": says})


def wrong_item(index: int, says: str) -> PydanticCustomError:
    """The error of a list, told once: its first item that is not what each of them must be."""
    return PydanticCustomError(_ITEM, "{says}", {"says": f"must be {says}", "index": index})


@dataclass(frozen=True, slots=True)
class Fault:
    """One failure: the keys that lead from the body to the culprit, and the exact wire text.

    The message has the path of the culprit's parent in front where that is not the body (C10).
    """

    path: tuple[str | int, ...]
    message: str


def invalid(*texts: str) -> ValidationFailed:
    """A request that makes no sense, with what is wrong with it."""
    return ValidationFailed(Fault((), text) for text in texts)


SENT = {"sent": True}
"""The context of validation of what a client sent or a planner wrote, not of our own values."""

_CONFLICT = "conflict"
_ITEM = "item"
# conflicts are told in the end, and a default that depends on a wrong field is no failure
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
    """Read a decoded body, or the parameters of a query, which are not changed.

    Raises ValidationFailed with all that is wrong with it: unknown properties first, in the order
    in which they were sent, then the fields in the order of the model, then what doesn't fit
    together. The same order holds in each object inside (C10).
    """
    if not isinstance(body, Mapping):
        raise invalid("body must be an object")
    try:
        return model.model_validate(body, by_alias=True, by_name=False, context=SENT)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    told = [_fault(one) for one in _in_order(found) if one["type"] not in _LEFT_OUT]
    if issubclass(model, Combined):
        told += [Fault((), says) for says in model.conflicts(body)]
    raise ValidationFailed(told)


def _in_order(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Pydantic's errors in the order of C10; it tells unknown properties last, and each bad item.

    A list tells first that an item is no object, then what is unknown in any item, then the rest.
    """
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
    says: str = context.get("says") or _TEXTS.get(kind, error["msg"])
    if kind in ("literal_error", "enum"):
        says = f"must be {context['expected'].replace(chr(39), '')}"
    *parents, name = path
    text = f"{name} {says.format_map(context)}"
    if kind == _UNKNOWN:
        text = f"property {name} should not exist"
    elif kind == _ITEM or _is_item(error):
        *parents, listed, _ = path
        text = f"each value in {listed} {says}"
    return Fault(path, "".join(f"{key}." for key in parents) + text)
