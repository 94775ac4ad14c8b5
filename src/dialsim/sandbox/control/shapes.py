"""Requests and answers of the control plane as shapes: how one is read, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from starlette.responses import Response

from dialsim.interface.errors import Refused
from dialsim.interface.wire import WireModel
from dialsim.sandbox.envelopes import MEDIA_TYPE

Shape = TypeVar("Shape", bound=WireModel)

_KINDS = {
    "missing": "is required",
    "string_type": "must be a string",
    "bool_type": "must be a boolean value",
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


def answer(shown: WireModel | Sequence[WireModel], status: int = 200) -> Response:
    """A success: the shape itself, without an envelope."""
    content = [_plain(one) for one in shown] if isinstance(shown, Sequence) else _plain(shown)
    return Response(orjson.dumps(content), status, media_type=MEDIA_TYPE)


def _plain(shown: WireModel) -> dict[str, object]:
    return shown.model_dump(mode="json", by_alias=True)


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
    return says
