"""The OpenAPI 3.1 document of operations, made from their declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from dialsim import __version__
from dialsim.interface.model import WireModel
from dialsim.sandbox.http.answers import JSON
from dialsim.sandbox.http.failures import responses
from dialsim.sandbox.http.models import CallResult, Failure, named
from dialsim.sandbox.http.operation import Operation
from dialsim.scenario.scenario import tidied

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLACE = "#/components/schemas/{model}"
_ABOUT = (
    "Outbound calls by voice agents, simulated by dialsim on a virtual clock. What clients may "
    "rely on at the real service is tagged `interface`; what is tagged `sandbox` steers and shows "
    "the simulation, and the service has nothing of it."
)
_TAGS = {
    "interface": "What the service offers, and its sandbox just so.",
    "sandbox": "What only the sandbox has: its control plane, and the files behind its links. "
    "Successes have no envelope.",
}
_GUESSED = (
    "Named by the interface, which does not show them: paths, answers and errors are guesses. "
    "The service may have them otherwise."
)
_KEY = {
    "type": "apiKey",
    "in": "header",
    "name": "X-API-Key",
    "description": "The one key of the organization.",
}
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "The control token, asked for only where the sandbox was started with one "
    "(--control-token); else programs and pages of the same machine are answered without.",
}

Schemas = Mapping[tuple[Any, Any], dict[str, Any]]


class _Schemas(GenerateJsonSchema):
    """Leaves out titles of properties, which only repeat their names, and suffixes of models."""

    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False

    def normalize_name(self, name: str) -> str:
        return named(super().normalize_name(name))


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The description of these operations, and of the webhook, as plain values."""
    models = [(one.answer, "serialization") for one in operations if one.answer is not None]
    models += [(one.body, "validation") for one in operations if one.body is not None]
    models += [(Failure, "serialization"), (CallResult, "serialization")]
    queries = {one.query for one in operations if one.query is not None}
    schemas, components = _schemas([*models, *((query, "validation") for query in queries)])
    tags = _TAGS | ({"guessed": _GUESSED} if any(one.guessed for one in operations) else {})
    parameters = {query: _parameters(query, components.pop(query.__name__)) for query in queries}
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": _DIALECT,
        "info": {
            "title": "Voice agent outbound calling, simulated",
            "version": __version__,
            "description": _ABOUT,
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": about} for name, about in tags.items()],
        "paths": _paths(operations, schemas, parameters),
        "webhooks": {
            "CALL_RESULT": {"post": _webhook(schemas[CallResult, "serialization"])},
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"apiKey": _KEY, "controlToken": _TOKEN},
        },
    }


def _schemas(models: Iterable[tuple[Any, Any]]) -> tuple[Schemas, dict[str, Any]]:
    """The schema of each model, and the components that they refer to."""
    adapters = [(model, mode, TypeAdapter(model)) for model, mode in models]
    found, definitions = TypeAdapter.json_schemas(
        adapters, ref_template=_PLACE, schema_generator=_Schemas
    )
    return tidied(found), tidied(definitions["$defs"])


def _parameters(query: type[WireModel], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The parameters of a query; all of them may be left out."""
    return [
        {
            "name": field.alias,
            "in": "query",
            "description": field.description,
            "schema": _bare(schema["properties"][field.alias]),
            "example": (field.examples or [None])[0],
        }
        for field in query.model_fields.values()
    ]


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a property, null left out, which no query can carry."""
    if "anyOf" in schema and {"type": "null"} in schema["anyOf"]:
        schema = schema["anyOf"][0]
    return {key: value for key, value in schema.items() if key not in _SAID}


_SAID = ("title", "description", "examples")  # beside the schema

Parameters = Mapping[type[WireModel], list[dict[str, Any]]]


def _paths(
    operations: Iterable[Operation], schemas: Schemas, parameters: Parameters
) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for one in operations:
        described = _described(one, schemas, parameters)
        paths.setdefault(one.path, {})[one.method.lower()] = described
    return paths


def _described(operation: Operation, schemas: Schemas, parameters: Parameters) -> dict[str, Any]:
    summary, about = operation.texts
    in_path = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": parameter.about,
            "schema": parameter.schema,
        }
        for name, parameter in operation.in_path.items()
    ]
    in_query = parameters[operation.query] if operation.query is not None else operation.described
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": summary,
        "description": f"{about} (A guess.)" if operation.guessed else about,
        "tags": [_tag(operation)],
        "security": _security(operation),
        "parameters": [*in_path, *in_query],
        "responses": {str(operation.status): _success(operation, schemas)},
    }
    described["responses"] |= responses(operation.failures)
    if operation.body is not None:
        content = _json(schemas[operation.body, "validation"])
        if operation.other_media is not None:
            content |= {operation.other_media: {"schema": {"type": "string"}}}
        described["requestBody"] = {"required": operation.body_required, "content": content}
    return described


def _tag(operation: Operation) -> str:
    if operation.guessed:
        return "guessed"
    return "interface" if operation.of_the_interface else "sandbox"


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    """What must come with a request, as OpenAPI says it; an empty object stands for nothing."""
    if operation.has_key:
        return [{"apiKey": []}]
    return [{}, {"controlToken": []}] if operation.is_control else []


def _success(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done as asked."}
    if operation.answer is None:
        return success | {"content": {operation.media: {}}}
    schema = schemas[operation.answer, "serialization"]
    if operation.messages:
        schema = {
            "type": "object",
            "additionalProperties": False,
            "required": ["success", "message", "data"],
            "properties": {
                "success": {"const": True},
                "message": {"enum": list(operation.messages)},
                "data": schema,
            },
        }
    success["content"] = _json(schema)
    return success if operation.links is None else success | {"links": operation.links}


def _webhook(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "operationId": "receiveCallResult",
        "summary": "Receive the result of a call",
        "description": "Sent to the organization's webhook URL as soon as a result is there: up to "
        "three POSTs, 1 s and 2 s apart, until one is answered with 2xx within 10 s. Redirects are "
        "not followed. Order is not kept and results may come twice: upsert on payload.call.id.",
        "requestBody": {"required": True, "content": _json(schema)},
        "responses": {"2XX": {"description": "Received. Any other answer counts as none."}},
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {JSON: {"schema": schema}}
