"""Check requests and responses against the OpenAPI description."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import httpx
from jsonschema_rs import Draft202012Validator

from dialsim.sandbox.application import description

DOCUMENT = description()
GUESSED = description(guessed=True)
OPERATIONS = {
    operation["operationId"]: operation
    for methods in DOCUMENT["paths"].values()
    for operation in methods.values()
}
OF_THE_SANDBOX = [name for name, one in OPERATIONS.items() if one["tags"] == ["sandbox"]]
# the longest first: an organization's name in a path may have a slash in it
_TEMPLATES = sorted(DOCUMENT["paths"], key=len, reverse=True)
_UNROUTED = {(404, "NOT_FOUND"), (405, "METHOD_NOT_ALLOWED")}


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    whole = {"components": DOCUMENT["components"], "allOf": [schema]}
    return Draft202012Validator(whole, validate_formats=True)


def body_of(described: dict[str, Any]) -> Draft202012Validator:
    return validator(described["content"]["application/json"]["schema"])


def operation_of(method: str, path: str) -> dict[str, Any] | None:
    """The operation that a request means; None for one that there is not."""
    for template in _TEMPLATES:
        pattern = re.sub(r"\\\{\w+\\\}", ".+", re.escape(template))
        if re.fullmatch(pattern, path.partition("?")[0]):
            operation: dict[str, Any] | None = DOCUMENT["paths"][template].get(method.lower())
            return operation
    return None


def require_as_described(method: str, path: str, response: httpx.Response) -> None:
    """Fail if a response differs from the description."""
    status, media = response.status_code, response.headers.get("content-type")
    operation = operation_of(method, path)
    if status >= 400 and (status, response.json()["code"]) in _UNROUTED:
        _body("", "").validate(response.json())
        return
    assert operation is not None, f"{method} {path} is not described"
    described = operation["responses"].get(str(status))
    assert described is not None, f"{method} {path} is answered {status} {response.text[:200]}"
    # the type of a file stands in the text: generators of clients know no other than JSON
    named = media in described.get("content", [described["description"][8:-1]])
    assert named, f"{method} {path} is answered with {media}"
    if media == "application/json":
        _body(operation["operationId"], str(status)).validate(response.json())


@cache
def _body(name: str, status: str) -> Draft202012Validator:
    """Return the check of an operation's responses; without a name, of errors of all kinds."""
    if not name:
        return validator({"$ref": "#/components/schemas/Failure"})
    return body_of(OPERATIONS[name]["responses"][status])
