"""Files of calls: recordings and transcripts, behind links that expire in virtual time (6.4).

Their content is made up, and always the same for the same call: a recording is a tone, a transcript
has sentences that fit any call. The interface names no format; these are dialsim's.
"""

from __future__ import annotations

import hmac
import io
import re
import wave
from typing import Literal

import numpy as np
import orjson

from dialsim.interface.instants import format_instant
from dialsim.interface.model import UuidText, WireModel, is_uuid
from dialsim.interface.payload import FileKind, links, signature
from dialsim.sandbox import failures as fail
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.core import SandboxCore
from dialsim.webhooks.analysis import AnalysisOutcome
from dialsim.webhooks.bodies import AUDIO, PERSONAL_DATA

LONGEST_MS = 5_000
"""Longest recording (ms), however long the conversation was."""

RATE = 8_000  # samples per second, as on the telephone
_LOUDNESS = 6_000
_SHORTEST_PERIOD, _PITCHES = 16, 32  # in samples: frequencies from 170 to 500 Hz


def recording(call_id: str, talk_ms: int, silent: bool) -> bytes:
    """Return a call's recording: WAV, mono, 16 bits, 8 kHz.

    The recording is as long as the conversation, up to `LONGEST_MS`: one tone per call, or silence
    if neither side spoke.
    """
    count = min(talk_ms, LONGEST_MS) * RATE // 1_000
    samples = np.zeros(count, dtype="<i2") if silent else _tone(call_id, count)
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(samples.tobytes())
    return file.getvalue()


def _tone(call_id: str, count: int) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    """A triangle wave, in whole numbers: the same bytes everywhere."""
    period = _SHORTEST_PERIOD + int(call_id[:8], 16) % _PITCHES
    ramp = np.arange(count, dtype=np.int64) % period * 2
    wave_form = np.abs(ramp - period) * 2 - period
    return (wave_form * _LOUDNESS // period).astype("<i2")


_TURN_MS = 6_000
_MOST_TURNS = 40
_TEXTS = ("สวัสดีค่ะ ขอเวลาสักครู่นะคะ", "ได้ครับ")
"""Sentences that fit any call: the agent's, and the customer's."""


class Turn(WireModel):
    """Turn of the agent or the customer; times are ms from the answer."""

    speaker: Literal["agent", "customer"]
    start_ms: int
    end_ms: int
    text: str


class Transcript(WireModel):
    """Text of a conversation, without turns if neither side spoke."""

    call_id: UuidText
    session_id: str
    language: Literal["th"] = "th"
    duration_ms: int
    turns: list[Turn]


def turns(talk_ms: int) -> list[Turn]:
    """Turns that fill a conversation, the agent's first."""
    count = min(max(1, talk_ms // _TURN_MS), _MOST_TURNS)
    bounds = [talk_ms * number // count for number in range(count + 1)]
    return [
        Turn(
            speaker="customer" if number % 2 else "agent",
            start_ms=bounds[number],
            end_ms=bounds[number + 1],
            text=_TEXTS[number % 2],
        )
        for number in range(count)
    ]


_EXPIRES = re.compile(r"[0-9]{10}")
_REMOVED_BY: dict[FileKind, int] = {"recordings": AUDIO, "transcripts": PERSONAL_DATA}


class CallFiles:
    """Files of all calls of a core, generated on request and always the same."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core

    def recording(self, identifier: str, expires: str, signed: str) -> bytes:
        """A call's recording as WAV."""
        view, call = self._find("recordings", identifier, expires, signed)
        entry = view.calls[call]
        return recording(
            _name(view, call), entry.talk_ms, view.analyses.outcome(call) is AnalysisOutcome.SILENT
        )

    def transcript(self, identifier: str, expires: str, signed: str) -> bytes:
        """A call's transcript as JSON."""
        view, call = self._find("transcripts", identifier, expires, signed)
        entry, said = view.calls[call], view.analyses.outcome(call) is not AnalysisOutcome.SILENT
        shown = Transcript(
            call_id=_name(view, call),
            session_id=view.session_ids(np.array([call]))[0].decode(),
            duration_ms=entry.talk_ms,
            turns=turns(entry.talk_ms) if said else [],
        )
        return orjson.dumps(shown.model_dump(mode="json", by_alias=True))

    def _find(
        self, kind: FileKind, identifier: str, expires: str, signed: str
    ) -> tuple[CampaignView, int]:
        """Return the call of a file link; raises Refused for an invalid or expired link."""
        view, call = self._call(identifier)
        world, at = view.part.trace.world, self._core.simulation.at
        # Checked before the signature is compared: `int` accepts spaces, signs and underscores.
        known = _EXPIRES.fullmatch(expires) is not None
        if not known or not hmac.compare_digest(
            signature(kind, _name(view, call), int(expires), world.seed).encode(), signed.encode()
        ):
            raise fail.WRONG_SIGNATURE.refused()
        if at >= int(expires) * 1_000:
            text = f"The link expired at {format_instant(int(expires) * 1_000)}"
            raise fail.EXPIRED.refused(text)
        if view.expired(call, at) & _REMOVED_BY[kind]:
            raise fail.REMOVED.refused(f"The {kind[:-1]} was removed")
        return view, call

    def _call(self, identifier: str) -> tuple[CampaignView, int]:
        """Return a call that has files; raises Refused for any other."""
        # An id that is none gets the answer of an unknown one, so that ids cannot be probed.
        if not is_uuid(identifier):
            raise fail.NO_FILE.refused()
        accounts, triggers = self._core.accounts, self._core.triggers
        calls = (
            one.call(identifier) or triggers.call(one.block.position, identifier)
            for one in accounts
        )
        found = next((call for call in calls if call is not None), None)
        if found is None or not has_recording(*found):
            raise fail.NO_FILE.refused()
        return found


def has_recording(view: CampaignView, call: int) -> bool:
    """True if a call has a recording, or had one before its removal."""
    view.catch_up()
    recorded = view.analyses.outcome(call) is not AnalysisOutcome.NOT_RECORDED
    return bool(view.calls[call].has_talked and recorded)


def record_url(view: CampaignView, call: int, at: int) -> str | None:
    """Return a link to a call's recording, created at an instant (ms); None without a recording.

    A webhook sent at that instant would contain the same link.
    """
    if not has_recording(view, call) or view.expired(call, at) & AUDIO:
        return None
    world, who = view.part.trace.world, np.array([call])
    public_url = world.scenario.service.public_url
    [url] = links(public_url, "recordings", view.call_ids(who), np.array([at]), world.seed)
    return str(url)


def _name(view: CampaignView, call: int) -> str:
    """Return the call's id as links contain it."""
    name: str = view.call_ids(np.array([call]))[0].decode()
    return name
