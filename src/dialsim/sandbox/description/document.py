"""The OpenAPI document, put together from operations and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from dialsim.sandbox.description.control import CONTROL_OPERATIONS
from dialsim.sandbox.description.operation import JSON, Operation, failures
from dialsim.sandbox.description.service import FILE_OPERATIONS, OPERATIONS, CallResult
from dialsim.sandbox.description.shapes import Failure
from dialsim.scenario.schema import tidied
from dialsim.version import __version__

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


class _Untitled(GenerateJsonSchema):
    """Leaves out titles of properties, which only repeat their names."""

    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False


def document() -> dict[str, Any]:
    """The OpenAPI 3.1 description of interface and control plane, as plain values."""
    operations = (*OPERATIONS, *CONTROL_OPERATIONS, *FILE_OPERATIONS)
    shapes = [(one.answer, "serialization") for one in operations if one.answer is not None]
    shapes += [(one.body, "validation") for one in operations if one.body is not None]
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
        "tags": [{"name": name, "description": about} for name, about in _TAGS.items()],
        "paths": _paths(operations, schemas),
        "webhooks": {
            "CALL_RESULT": {"post": _webhook(schemas[CallResult, "serialization"])},
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"apiKey": _KEY, "controlToken": _TOKEN},
        },
    }


def _schemas(shapes: Iterable[tuple[Any, Any]]) -> tuple[Schemas, dict[str, Any]]:
    """The schema of each shape, and the components that they refer to."""
    adapters = [(shape, mode, TypeAdapter(shape)) for shape, mode in shapes]
    found, definitions = TypeAdapter.json_schemas(
        adapters, ref_template=_PLACE, schema_generator=_Untitled
    )
    return tidied(found), tidied(definitions["$defs"])


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
        "tags": ["interface" if operation.of_the_interface else "sandbox"],
        "security": operation.security,
        "parameters": list(operation.parameters),
        "responses": {str(operation.status): _success(operation, schemas)},
    }
    described["responses"] |= failures(operation.failures)
    if operation.body is not None:
        content = _json(schemas[operation.body, "validation"])
        if operation.other_media is not None:
            content |= {operation.other_media: {"schema": {"type": "string"}}}
        described["requestBody"] = {"required": True, "content": content}
    return described


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
