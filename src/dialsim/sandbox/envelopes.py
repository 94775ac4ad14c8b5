"""Envelopes: how successes and errors look on the wire (interface, section 2.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson
from starlette.responses import Response

from dialsim.interface.errors import Refused
from dialsim.interface.wire import WireModel

MEDIA_TYPE = "application/json"


def success(message: str, *data: bytes) -> bytes:
    """The success envelope around parts of JSON."""
    head = b'{"success":true,"message":%b,"data":' % orjson.dumps(message)
    return b"".join((head, *data, b"}"))


def bare(shown: WireModel | Sequence[WireModel], status: int = 200) -> Response:
    """A success of the control plane: what is shown, without an envelope."""
    content = [_plain(one) for one in shown] if isinstance(shown, Sequence) else _plain(shown)
    return Response(orjson.dumps(content), status, media_type=MEDIA_TYPE)


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
    return Response(body, refused.status, headers, MEDIA_TYPE)
