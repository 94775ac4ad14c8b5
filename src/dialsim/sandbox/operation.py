"""Operations: methods of paths, each declared once, and their OpenAPI description.

A method of an `Operations` class that is marked by `@operation` is an operation. Its route, the
check of its requests and its part of the OpenAPI description follow from the declaration: name and
texts from the method's name and docstring, the request from the parameters, the answer from the
return type. Parameters are checked in their order, so that the first wrong one is reported:

- `caller`: the index of the organization that the API key belongs to;
- `query`: a model of the query's parameters;
- `body`: a model of the JSON body, and `sent`: that body as received;
- `request`: the request itself, for input without a model;
- any other: a part of the path, its type annotated with a `PathParameter`.

FastAPI was rejected. It would need the same declarations, but the texts of errors, their order, and
the refusal of unexpected bodies and parameters are prescribed here: each of its own would have to
be replaced, and FastAPI would be one more dependency.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeVar, get_type_hints

import orjson
from pydantic import BeforeValidator, Field, TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic.json_schema import GenerateJsonSchema, WithJsonSchema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dialsim import __version__
from dialsim.errors import Refused
from dialsim.interface.model import (
    UUID_PATTERN,
    WireModel,
    is_strict_uuid,
    is_uuid,
    read_model,
    wrong,
)
from dialsim.sandbox import failures as fail
from dialsim.sandbox.access import is_control
from dialsim.sandbox.answers import (
    JSON,
    CallResult,
    Failure,
    bare,
    is_number,
    named,
    query_of,
    read_bytes,
    read_json,
    refuse_body,
    refuse_query,
    success,
)
from dialsim.sandbox.failures import FailureKind
from dialsim.sandbox.tables import PageNumber, read_page
from dialsim.scenario.scenario import tidied

if TYPE_CHECKING:
    from dialsim.sandbox.core import SandboxCore

MOST_CONTROL_BYTES = 268_435_456
"""Maximum size (bytes) of the body of a request under /_dialsim."""

Handler = TypeVar("Handler", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class PathParameter:
    """A part of a path: its description, and how its text is read.

    `read` is given the sandbox, the parameter's name and its text; it raises one of `failures`.
    `convertor` is Starlette's, such as `:path`.
    """

    about: str
    schema: dict[str, Any]
    read: Callable[[SandboxCore, str, str], Any]
    failures: tuple[FailureKind, ...] = ()
    convertor: str = ""


class Success(NamedTuple):
    """Answer of an operation that has more than one message."""

    message: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    `answer` is the model of a success, by default the handler's return type. It describes the
    envelope's `data` if `messages` (the envelope's texts) are given, else the whole body; it is
    None for an answer of the media type `media` that is not JSON. A request body may have the type
    `other_media` instead of JSON; it may be omitted unless `body_required`. `links` are OpenAPI
    links of a success by name, `described` parameters that the handler reads. `kept`: the journal
    records the changes. `guessed`: the interface names the operation without an example, so its
    request and answer are guesses.
    """

    method: str
    path: str
    handler: Callable[..., Any]
    answer: Any = None
    media: str = JSON
    status: int = 200
    messages: tuple[str, ...] = ()
    described: tuple[dict[str, Any], ...] = ()
    body: type[WireModel] | None = None
    body_required: bool = True
    other_media: str | None = None
    own_failures: tuple[FailureKind, ...] = ()
    links: dict[str, Any] | None = None
    query: type[WireModel] | None = None
    in_path: dict[str, PathParameter] = field(default_factory=dict)
    kept: bool = True
    guessed: bool = False

    @property
    def name(self) -> str:
        """The `operationId`."""
        return to_camel(self.handler.__name__)

    @cached_property
    def texts(self) -> tuple[str, str]:
        """Summary and description."""
        summary, _, about = inspect.cleandoc(self.handler.__doc__ or "").partition("\n")
        return summary.removesuffix("."), " ".join(about.split())

    @property
    def of_the_interface(self) -> bool:
        """True for operations of the real service, false for operations of the sandbox alone."""
        return self.path.startswith(("/api/", "/voice-demo/"))

    @property
    def has_key(self) -> bool:
        """True if a request needs an API key."""
        return self.path.startswith("/api/")

    @property
    def is_control(self) -> bool:
        """True for control operations, which refuse everything that they do not expect."""
        return is_control(self.path)

    @property
    def failures(self) -> list[FailureKind]:
        """Possible failures: of the request's parts, of recording a change, of this operation."""
        kinds: list[FailureKind] = []
        if self.has_key:
            kinds += fail.KEYED
        elif self.is_control:
            kinds += fail.GUARDED
            kinds += fail.BODY if self.body else ()
        else:
            kinds.append(fail.OUR_FAULT)
        for parameter in self.in_path.values():
            kinds += parameter.failures
        if self.query is not None and "page" in self.query.model_fields:
            kinds.append(fail.INVALID_PAGE)
        if self.has_key and self.method == "POST":
            kinds += [fail.INVALID_BODY] if self.body else []
            kinds.append(fail.TOO_LARGE)
        if self.method != "GET" and self.kept:
            kinds.append(fail.NOT_KEPT)
        return [*kinds, *self.own_failures]

    async def serve(self, owner: Operations, request: Request) -> Response:
        """Answer a request; raises Refused."""
        handler = getattr(owner, self.handler.__name__)
        result = handler(**await self._read(owner.core, request))
        if inspect.isawaitable(result):
            result = await result
        if isinstance(result, Response):
            return result
        if self.messages:
            result = success(
                *(result if isinstance(result, Success) else (self.messages[0], result))
            )
        elif isinstance(result, dict):
            result = orjson.dumps(result)
        if isinstance(result, bytes):
            return Response(result, media_type=self.media)
        return bare(result, self.status)

    async def _read(self, core: SandboxCore, request: Request) -> dict[str, Any]:
        """Return the arguments of the handler."""
        names = [*inspect.signature(self.handler).parameters][1:]
        strict = self.has_key and core.scenario.service.strict
        if (self.is_control or strict) and "request" not in names:
            if self.query is None:
                refuse_query(request)
            if self.body is None:
                await refuse_body(request)
        given: dict[str, Any] = {}
        body: object = None
        # In the order of the signature, because the first wrong part is reported (C9).
        for name in names:
            if name == "caller":
                given[name] = request.scope["organization"]
            elif name == "request":
                given[name] = request
            elif name == "query":
                given[name] = self._read_query(request, strict)
            elif name == "body":
                body = await self._read_body(request)
                given[name] = read_model(self.body, body) if self.body else body
            elif name == "sent":
                given[name] = body
            else:
                wire = to_camel(name)
                text = request.path_params[wire]
                if strict and not is_strict_uuid(text):
                    raise fail.invalid_id(wire).refused()
                given[name] = self.in_path[wire].read(core, wire, text)
        if self.has_key and self.method == "POST" and self.body is None:
            # The interface ignores a body where it expects none, but its limit of size holds for
            # any body.
            await read_bytes(request)
        return given

    def _read_query(self, request: Request, strict: bool) -> WireModel:
        assert self.query is not None
        query = query_of(request)
        if strict:
            # Section 4.3 of the interface says in words that `limit` is ignored, so a strict
            # service ignores it, too.
            query.pop("limit", None)
            if query.get("page", "1").startswith("0"):
                raise fail.INVALID_PAGE.refused()
        # Unlike the control plane, the interface ignores unknown parameters.
        elif not self.is_control:
            known = {one.alias for one in self.query.model_fields.values()}
            query = {name: text for name, text in query.items() if name in known}
        return read_model(self.query, query)

    async def _read_body(self, request: Request) -> object:
        if self.is_control:
            return await read_json(request, MOST_CONTROL_BYTES)
        # the interface has no 415 (section 7)
        return await read_json(request, unsupported=(400, "VALIDATION_FAILED"))


def operation(
    method: str,
    path: str,
    *failures: FailureKind,
    body: type[WireModel] | None = None,
    **more: Any,
) -> Callable[[Handler], Handler]:
    """Declare a method as an operation; see `Operation` for `more`."""

    def declare(handler: Handler) -> Handler:
        hints = get_type_hints(handler, include_extras=True)
        answer = hints.get("return")
        more.setdefault("answer", None if answer in (Response, bytes) else answer)
        handler.__dict__["operation"] = Operation(
            method,
            path,
            handler,
            body=body or hints.get("body"),
            query=hints.get("query"),
            in_path={
                to_camel(name): part
                for name, hint in hints.items()
                for part in getattr(hint, "__metadata__", ())
                if isinstance(part, PathParameter)
            },
            own_failures=failures,
            **more,
        )
        return handler

    return declare


class Operations:
    """Operations on one sandbox; their methods may be called without HTTP, too."""

    declared: ClassVar[tuple[Operation, ...]] = ()

    def __init_subclass__(cls) -> None:
        # Without inherited members: operations of a subclass are served beside those of its base.
        members = (vars(member) for member in vars(cls).values() if inspect.isfunction(member))
        cls.declared = tuple(one["operation"] for one in members if "operation" in one)

    def __init__(self, core: SandboxCore) -> None:
        self.core = core

    def routes(self) -> list[BaseRoute]:
        """Return one route per path, so that 405 names all its methods; GET answers HEAD too."""
        paths: dict[str, dict[str, Operation]] = {}
        for one in self.declared:
            paths.setdefault(one.path, {})[one.method] = one
        return [self._route(path, methods) for path, methods in paths.items()]

    def _route(self, path: str, methods: dict[str, Operation]) -> Route:
        async def serve(request: Request) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            return await methods[method].serve(self, request)

        for one in methods.values():
            for name, parameter in one.in_path.items():
                path = path.replace(f"{{{name}}}", f"{{{name}{parameter.convertor}}}")
        return Route(path, serve, methods=[*methods])


def link(name: str, parameter: str, path: str) -> dict[str, Any]:
    """Return an OpenAPI link: an operation's parameter, and its location in the answer's body."""
    return {"operationId": name, "parameters": {parameter: f"$response.body#/{path}"}}


# -- what many operations take --------------------------------------------------------------------


def require_uuid(name: str, text: str) -> str:
    """Refuse an identifier that has not the form of a UUID (section 4)."""
    if not is_uuid(text):
        raise fail.invalid_id(name).refused()
    return text


def identifier(noun: str, name: str = "id", *failures: FailureKind) -> PathParameter:
    """Return the path parameter for an id, without a check that the object exists."""
    return PathParameter(
        f"The {noun}'s id.",
        {"type": "string", "format": "uuid", "pattern": UUID_PATTERN},
        lambda _core, name, text: require_uuid(name, text),
        (fail.invalid_id(name), *failures),
    )


CampaignId = Annotated[str, identifier("campaign", "id", fail.NO_CAMPAIGN)]


def number(about: str, *failures: FailureKind) -> PathParameter:
    """Return the path parameter for a number from 1; other texts become 0, an unused number."""
    schema = {"type": "integer", "minimum": 1}
    return PathParameter(about, schema, lambda _core, _name, text: number_in(text), failures)


def number_in(text: str) -> int:
    """Return the number in a path, 0 for other texts."""
    return int(text) if is_number(text) else 0


def _page(value: object) -> PageNumber:
    try:
        return read_page(str(value))
    except Refused:
        raise wrong("must be an integer of 1 or more") from None


class PageQuery(WireModel):
    """Requested page of a list; pages have 100 rows."""

    page: Annotated[
        PageNumber, BeforeValidator(_page), WithJsonSchema({"type": "integer", "minimum": 1})
    ] = Field(
        default=1,
        validate_default=True,
        description="The page's number, from 1; a page beyond the last is empty.",
        examples=[1],
    )


# -- the OpenAPI 3.1 description -------------------------------------------------------------------

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/components/schemas/{model}"
_ABOUT = (
    "Outbound calls by voice agents, simulated by dialsim on a virtual clock. Operations tagged "
    "`interface` exist at the real service, too. Operations tagged `sandbox` control and show the "
    "simulation; the real service has none of them."
)
_TAGS = {
    "interface": "Operations of the real service; the sandbox offers the same.",
    "sandbox": "What only the sandbox has: its control plane, and the files behind its links. "
    "Successes have no envelope.",
}
_GUESSED = (
    "Named by the interface without an example: paths, answers and errors are guesses. The real "
    "service may differ."
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
    "description": "The control token, required only if the sandbox was started with one "
    "(--control-token). Otherwise programs and pages of the same machine need none.",
}

Schemas = Mapping[tuple[Any, Any], dict[str, Any]]


class _Schemas(GenerateJsonSchema):
    """Schema generator without titles of properties, which repeat names, and suffixes of models."""

    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False

    def normalize_name(self, name: str) -> str:
        return named(super().normalize_name(name))


def openapi_document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The description of these operations, and of the webhook, as plain values."""
    models = [(one.answer, "serialization") for one in operations if one.answer is not None]
    models += [(one.body, "validation") for one in operations if one.body is not None]
    models += [(Failure, "serialization"), (CallResult, "serialization")]
    queries = {one.query for one in operations if one.query is not None}
    schemas, components = _schemas([*models, *((query, "validation") for query in queries)])
    tags = _TAGS | ({"guessed": _GUESSED} if any(one.guessed for one in operations) else {})
    parameters = {query: _parameters(query, components.pop(query.__name__)) for query in queries}
    document = {
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
    return _with_plain_names(document)


def _with_plain_names(document: dict[str, Any]) -> dict[str, Any]:
    """Rename the models that pydantic calls `Agent-Input` and `Agent-Output`.

    The two differ between requests and answers, but generators of clients would make one class of
    both.
    """
    text = orjson.dumps(document).decode().replace('-Output"', '"')
    renamed: dict[str, Any] = orjson.loads(re.sub(r'(\w+)-Input"', r'New\1"', text))
    for name, schema in renamed["components"]["schemas"].items():
        schema["title"] = name
    return renamed


def _schemas(models: Iterable[tuple[Any, Any]]) -> tuple[Schemas, dict[str, Any]]:
    """The schema of each model, and the components that they refer to."""
    adapters = [(model, mode, TypeAdapter(model)) for model, mode in models]
    found, definitions = TypeAdapter.json_schemas(
        adapters, ref_template=_REFERENCE, schema_generator=_Schemas
    )
    return tidied(found), tidied(definitions["$defs"])


def _parameters(query: type[WireModel], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters of a query; all of them are optional."""
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
    """Return the schema of a property without null, which a query cannot express."""
    if "anyOf" in schema and {"type": "null"} in schema["anyOf"]:
        schema = schema["anyOf"][0]
    return {key: value for key, value in schema.items() if key not in _BESIDE_THE_SCHEMA}


_BESIDE_THE_SCHEMA = ("title", "description", "examples")  # beside the schema

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
    described["responses"] |= fail.responses(operation.failures)
    if operation.body is not None:
        content = _json(schemas[operation.body, "validation"])
        if operation.other_media is not None:
            content |= {operation.other_media: {"schema": {"type": "string", "format": "binary"}}}
        described["requestBody"] = {"required": operation.body_required, "content": content}
    return described


def _tag(operation: Operation) -> str:
    if operation.guessed:
        return "guessed"
    return "interface" if operation.of_the_interface else "sandbox"


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    """Return the OpenAPI security of a request; an empty object allows requests without a key."""
    if operation.has_key:
        return [{"apiKey": []}]
    return [{}, {"controlToken": []}] if operation.is_control else []


def _success(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done as asked."}
    # Generators of clients know only JSON, and leave out operations with another media type.
    if operation.answer is None:
        return {"description": f"A file, {operation.media}."}
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
        "responses": {"2XX": {"description": "Received. Any other answer counts as a failure."}},
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {JSON: {"schema": schema}}
