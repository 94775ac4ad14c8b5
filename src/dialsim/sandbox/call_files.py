"""Files of calls: recordings and transcripts, behind links that expire in virtual time (6.4)."""

from __future__ import annotations

import hmac
import re

import numpy as np
import orjson

from dialsim.interface.errors import Refused
from dialsim.interface.identifiers import is_uuid
from dialsim.interface.instants import format_instant
from dialsim.interface.links import FileKind, signature
from dialsim.results.ledger import NEVER
from dialsim.results.stream.flaws import Flaw
from dialsim.results.stream.shown import AUDIO, PERSONAL_DATA
from dialsim.sandbox.call_book import NONE, CallEntry
from dialsim.sandbox.campaign_desk import CampaignDesk
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.recording import recording
from dialsim.sandbox.transcript import Transcript, turns

_EXPIRES = re.compile(r"[0-9]{10}")
_REMOVED_BY: dict[FileKind, int] = {"recordings": AUDIO, "transcripts": PERSONAL_DATA}


class CallFiles:
    """The files of all calls of an exchange, made when they are asked for, always the same.

    Methods take a call's id and what stands in the link, and raise Refused: 404 where there is no
    such file, 403 where the link was not made by this service, 410 where it has expired or the
    file was removed by retention (D1, D2) or with its campaign (C8).
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def recording(self, identifier: str, expires: str, signed: str) -> bytes:
        """A call's recording as WAV."""
        desk, call = self._find("recordings", identifier, expires, signed)
        entry = desk.entry(call)
        return recording(_name(desk, call), _talk_ms(entry), desk.flaw(call) is Flaw.SILENT)

    def transcript(self, identifier: str, expires: str, signed: str) -> bytes:
        """A call's transcript as JSON."""
        desk, call = self._find("transcripts", identifier, expires, signed)
        entry, said = desk.entry(call), desk.flaw(call) is not Flaw.SILENT
        shown = Transcript(
            call_id=_name(desk, call),
            session_id=desk.session_ids(np.array([call]))[0].decode(),
            duration_ms=_talk_ms(entry),
            turns=turns(_talk_ms(entry), self._is_male(entry)) if said else [],
        )
        return orjson.dumps(shown.model_dump(mode="json", by_alias=True))

    def _find(
        self, kind: FileKind, identifier: str, expires: str, signed: str
    ) -> tuple[CampaignDesk, int]:
        """The call whose file a link leads to."""
        desk, call = self._call(identifier)
        world, at = self._exchange.simulation.log.world, self._exchange.simulation.at
        known = _EXPIRES.fullmatch(expires) is not None
        if not known or not hmac.compare_digest(
            signature(kind, _name(desk, call), int(expires), world.seed).encode(), signed.encode()
        ):
            raise Refused(403, "INVALID_SIGNATURE", ["The link's signature is wrong"])
        if at >= int(expires) * 1_000:
            text = f"The link expired at {format_instant(int(expires) * 1_000)}"
            raise Refused(410, "LINK_EXPIRED", [text])
        if desk.expired(call, at) & _REMOVED_BY[kind]:
            raise Refused(410, "FILE_REMOVED", [f"The {kind[:-1]} was removed"])
        return desk, call

    def _call(self, identifier: str) -> tuple[CampaignDesk, int]:
        """A call that has something to be heard and read."""
        missing = Refused(404, "FILE_NOT_FOUND", ["File not found"])
        if not is_uuid(identifier):
            raise missing
        try:
            desk, call = self._exchange.call(identifier)
        except Refused:
            raise missing from None
        desk.catch_up()
        entry = desk.entry(call)
        if NEVER in (entry.started_at, entry.ended_at) or desk.flaw(call) is Flaw.NOT_RECORDED:
            raise missing
        return desk, call

    def _is_male(self, entry: CallEntry) -> bool:
        """Whether the agent spoke with a male voice; one that is not known is female."""
        world = self._exchange.simulation.log.world
        key = None if entry.voice == NONE else world.voice_keys[entry.voice]
        return any(
            voice.voice_key == key and voice.gender == "male" for voice in world.scenario.voices
        )


def _name(desk: CampaignDesk, call: int) -> str:
    """The call's id as links have it."""
    name: str = desk.call_ids(np.array([call]))[0].decode()
    return name


def _talk_ms(entry: CallEntry) -> int:
    return entry.ended_at - entry.started_at
