"""Operations: one method of one path, as the description tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dialsim.interface.identifiers import UUID_PATTERN
from dialsim.sandbox.description.failures import FailureKind

JSON = "application/json"
PAGE: dict[str, Any] = {
    "name": "page",
    "in": "query",
    "description": "The page's number, from 1; a page beyond the last is empty.",
    "schema": {"type": "integer", "minimum": 1, "default": 1},
    "example": 1,
}
"""The parameter that names a page of a list."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    `answer` is the shape of a success: of its `data` where `messages`, the texts beside it, are
    given, else of the whole body; None for one that is no JSON but of the type `media`. Where
    there is a `body`, one of the type `other_media` may come in its place. `links` are OpenAPI
    links of a success by name.
    """

    method: str
    path: str
    name: str
    summary: str
    about: str
    answer: Any = None
    media: str = JSON
    status: int = 200
    messages: tuple[str, ...] = ()
    parameters: tuple[dict[str, Any], ...] = ()
    body: type | None = None
    other_media: str | None = None
    failures: tuple[FailureKind, ...] = ()
    links: dict[str, Any] | None = None

    @property
    def of_the_interface(self) -> bool:
        """Whether the service has it, too; the others are the sandbox's own."""
        return self.path.startswith(("/api/", "/voice-demo/"))

    @property
    def security(self) -> list[dict[str, list[str]]]:
        """What must come with a request, as OpenAPI says it; an empty object stands for nothing."""
        if self.path.startswith("/api/"):
            return [{"apiKey": []}]
        return [{}, {"controlToken": []}] if self.path.startswith("/_dialsim/") else []


def identifier(name: str, noun: str) -> dict[str, Any]:
    """The parameter of a path that is the id of something."""
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": f"The {noun}'s id.",
        "schema": {"type": "string", "format": "uuid", "pattern": UUID_PATTERN},
    }


def query(name: str, about: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    """A parameter of the query that may be left out."""
    return {
        "name": name,
        "in": "query",
        "description": about,
        "schema": schema,
        "example": example,
    }


def link(operation: str, parameter: str, place: str) -> dict[str, Any]:
    """An OpenAPI link: where in the answer's body a parameter of an operation is found."""
    return {"operationId": operation, "parameters": {parameter: f"$response.body#/{place}"}}
