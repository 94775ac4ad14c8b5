"""Bodies of requests: how much is read, and what counts as JSON."""

from __future__ import annotations

import orjson
from starlette.requests import Request

from dialsim.interface.errors import Refused

MOST_BYTES = 1_048_576
"""The most that a request under /api may carry."""


async def read_bytes(request: Request, most: int = MOST_BYTES) -> bytes:
    """The whole body; 413 as soon as it is known to be longer than `most` bytes."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:18]) > most:
        raise _too_large(most)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def media_type(request: Request) -> str:
    """The body's type, in lower case and without parameters; "" where none is said."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_json(request: Request, most: int = MOST_BYTES) -> object:
    """The decoded body; a body of another content type, or none at all, is an empty object.

    NaN and infinities are no JSON, and neither is anything but UTF-8.
    """
    body = await read_bytes(request, most)
    if not body or media_type(request) != "application/json":
        return {}
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Refused(400, "VALIDATION_FAILED", ["body must be valid JSON"]) from None


def _too_large(most: int) -> Refused:
    text = f"The request body must not be larger than {most} bytes"
    return Refused(413, "PAYLOAD_TOO_LARGE", [text])
