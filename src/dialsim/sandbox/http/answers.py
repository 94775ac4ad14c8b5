"""Envelopes of answers (interface, section 2.1), and the bodies and queries of requests."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from email.message import Message

import orjson
from starlette.requests import Request
from starlette.responses import Response

from dialsim.errors import Refused
from dialsim.interface.model import WireModel, invalid

JSON = "application/json"
BINARY = "application/octet-stream"  # media type of files from generated clients
MOST_BYTES = 1_048_576
"""The most that a request under /api may carry."""

Answer = tuple[int, str]
"""Status and code of a refusal."""
UNSUPPORTED: Answer = (415, "UNSUPPORTED_MEDIA_TYPE")

_READ = ("utf-8", "ascii")  # charsets, as codecs names them: the second is part of the first
_NOTHING = (b"", b"{}")
_MOST_DIGITS = 9


def success(message: str, data: object) -> bytes:
    """The success envelope around plain values."""
    return orjson.dumps({"success": True, "message": message, "data": data})


def bare(shown: WireModel | Sequence[WireModel], status: int = 200) -> Response:
    """Return a success of the control plane: the data without an envelope."""
    content = [_plain(one) for one in shown] if isinstance(shown, Sequence) else _plain(shown)
    return Response(orjson.dumps(content), status, media_type=JSON)


def _plain(shown: WireModel) -> dict[str, object]:
    return shown.model_dump(mode="json", by_alias=True)


def failure(refused: Refused, headers: Mapping[str, str] | None = None) -> Response:
    """An error in the error envelope."""
    body = orjson.dumps(
        {
            "success": False,
            "statusCode": refused.status,
            "code": refused.code,
            "message": refused.message,
            "errors": refused.errors,
        }
    )
    return Response(body, refused.status, headers, JSON)


async def read_bytes(request: Request, most: int = MOST_BYTES) -> bytes:
    """Return the whole body; 413 as soon as it exceeds `most` bytes."""
    declared = request.headers.get("content-length", "")
    # The declared length is refused at once; a length that is not declared is found out by reading.
    if declared.isdecimal() and int(declared[:18]) > most:
        raise _too_large(most)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


async def read_json(
    request: Request, most: int = MOST_BYTES, unsupported: Answer = UNSUPPORTED
) -> object:
    """Return the decoded body; a missing body is an empty object.

    A body with another type than JSON is refused with `unsupported`. NaN, infinities and text that
    is not UTF-8 are no JSON.
    """
    body = await read_bytes(request, most)
    if not body:
        return {}
    require_media_type(request, JSON, unsupported=unsupported)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Refused(400, "VALIDATION_FAILED", ["body must be valid JSON"]) from None


def require_media_type(request: Request, *known: str, unsupported: Answer = UNSUPPORTED) -> str:
    """Return the type of the body; any type not in `known` is refused by name.

    The type is never guessed: it is required, text is UTF-8, and packed bodies are refused.
    """
    header, types = request.headers.get("content-type", ""), " or ".join(known)
    said = Message()
    said["content-type"] = header
    kind, charset = said.get_content_type(), said.get_content_charset("utf-8")
    packed = request.headers.get("content-encoding", "identity")
    if not header.strip():
        wrong = f"Content-Type must be {types}, but there is none"
    elif kind not in known:
        wrong = f'Content-Type must be {types}, not "{header}"'
    elif not _is_read(charset):
        wrong = f'charset must be utf-8, not "{charset}"'
    elif packed.lower() != "identity":
        wrong = f'Content-Encoding must be left out, not "{packed}"'
    else:
        return kind
    raise Refused(*unsupported, [wrong])


async def refuse_body(request: Request) -> None:
    """Refuse an unexpected body; an empty object counts as no body."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if not any(nothing.startswith(body) for nothing in _NOTHING):
            break
    if body not in _NOTHING:
        raise Refused(400, "VALIDATION_FAILED", ["body must be left out"])


def _is_read(charset: str) -> bool:
    try:
        return codecs.lookup(charset).name in _READ
    except (LookupError, ValueError):
        return False


def _too_large(most: int) -> Refused:
    text = f"The request body must not be larger than {most} bytes"
    return Refused(413, "PAYLOAD_TOO_LARGE", [text])


def query_of(request: Request) -> dict[str, str]:
    """Return the parameters of a query; a repeated parameter is read as one value with commas."""
    query = request.query_params
    return {name: ",".join(query.getlist(name)) for name in query}


def refuse_query(request: Request) -> None:
    """Refuse unexpected query parameters, with the text for unknown properties."""
    if request.query_params:
        raise invalid(*(f"property {name} should not exist" for name in request.query_params))


def is_number(text: str) -> bool:
    """True if a text of an address is a whole number of moderate length."""
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
