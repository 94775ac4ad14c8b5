"""The OpenAPI document, put together from operations and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from dialsim.sandbox.description.failures import failures
from dialsim.sandbox.description.operations import OPERATIONS, Operation
from dialsim.sandbox.description.shapes import Failure
from dialsim.sandbox.description.webhook import CallResult
from dialsim.version import __version__

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLACE = "#/components/schemas/{model}"
_ABOUT = (
    "Outbound calls by voice agents, simulated by dialsim on a virtual clock. What clients may "
    "rely on is here; how the clock is moved is not part of the interface."
)

Schemas = Mapping[Any, dict[str, Any]]


class _Untitled(GenerateJsonSchema):
    """Leaves out titles of properties, which only repeat their names."""

    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False


def document() -> dict[str, Any]:
    """The OpenAPI 3.1 description of the interface, as plain values."""
    shapes = [(operation.answer, "serialization") for operation in OPERATIONS]
    shapes += [(operation.body, "validation") for operation in OPERATIONS if operation.body]
    shapes += [(Failure, "serialization"), (CallResult, "serialization")]
    schemas, components = _schemas(shapes)
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": _DIALECT,
        "info": {
            "title": "Voice agent outbound calling, simulated",
            "version": __version__,
            "description": _ABOUT,
        },
        "servers": [{"url": "/"}],
        "paths": _paths(OPERATIONS, schemas),
        "webhooks": {"CALL_RESULT": {"post": _webhook(schemas[CallResult])}},
        "components": {
            "schemas": components,
            "securitySchemes": {
                "apiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-API-Key",
                    "description": "The one key of the organization.",
                }
            },
        },
    }


def _schemas(shapes: Iterable[tuple[Any, Any]]) -> tuple[Schemas, dict[str, Any]]:
    """The schema of each shape, and the components that they refer to."""
    adapters = [(shape, mode, TypeAdapter(shape)) for shape, mode in shapes]
    found, definitions = TypeAdapter.json_schemas(
        adapters, ref_template=_PLACE, schema_generator=_Untitled
    )
    return {shape: schema for (shape, _), schema in found.items()}, definitions["$defs"]


def _paths(operations: Iterable[Operation], schemas: Schemas) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for operation in operations:
        described = _described(operation, schemas)
        paths.setdefault(operation.path, {})[operation.method] = described
    return paths


def _described(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.about,
        "security": [{"apiKey": []}] if operation.path.startswith("/api/") else [],
        "parameters": list(operation.parameters),
        "responses": {"200": _success(operation, schemas[operation.answer])},
    }
    described["responses"] |= failures(operation.failures)
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": _json(schemas[operation.body])}
    return described


def _success(operation: Operation, schema: dict[str, Any]) -> dict[str, Any]:
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
    success = {"description": "Done as asked.", "content": _json(schema)}
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
    return {"application/json": {"schema": schema}}
