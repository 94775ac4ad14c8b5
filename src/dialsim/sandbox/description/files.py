"""The operations behind the links of webhooks: recordings and transcripts."""

from __future__ import annotations

from typing import Any

from dialsim.sandbox.description import failures as fail
from dialsim.sandbox.description.operation import Operation, identifier
from dialsim.sandbox.transcript import Transcript

_LINK: tuple[dict[str, Any], ...] = (
    identifier("id", "call"),
    {
        "name": "expires",
        "in": "query",
        "required": True,
        "description": "The second since 1970, of virtual time, up to which the link is good.",
        "schema": {"type": "string", "pattern": "^[0-9]{10}$"},
        "example": "1767582000",
    },
    {
        "name": "signature",
        "in": "query",
        "required": True,
        "description": "What shows that the sandbox has made the link.",
        "schema": {"type": "string"},
    },
)
_FAILURES = (fail.NO_FILE, fail.WRONG_SIGNATURE, fail.EXPIRED, fail.OUR_FAULT)

FILE_OPERATIONS = (
    Operation(
        "get",
        "/files/recordings/{id}.wav",
        "getRecording",
        "Get a recording",
        "Where recordUrl of a result leads: WAV, mono, 16 bits, 8 kHz. The form is the sandbox's.",
        media="audio/wav",
        parameters=_LINK,
        failures=(*_FAILURES, fail.REMOVED),
    ),
    Operation(
        "get",
        "/files/transcripts/{id}.json",
        "getTranscript",
        "Get a transcript",
        "Where transcriptFileUrl of a result leads. The form is the sandbox's.",
        answer=Transcript,
        parameters=_LINK,
        failures=(*_FAILURES, fail.REMOVED._replace(text="The transcript was removed")),
    ),
)
