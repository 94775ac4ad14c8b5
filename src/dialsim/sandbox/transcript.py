"""Transcripts: what agent and customer may have said in calls; form and words are ours."""

from __future__ import annotations

from typing import Literal

from dialsim.interface.wire import UuidText, WireModel

_TURN_MS = 6_000
_MOST_TURNS = 40
_GREETING = "สวัสดี{end} ติดต่อจากระบบโทรอัตโนมัติ ขอเวลาสักครู่นะ{ask}"
_FAREWELL = "ขอบคุณสำหรับเวลา{end} สวัสดี{end}"
_AGENT = ("รับทราบ{end} ขอยืนยันข้อมูลอีกครั้งนะ{ask}", "สะดวกให้ข้อมูลเพิ่มเติมไหม{ask}")
_CUSTOMER = ("ได้ครับ", "สะดวกครับ", "ขอคิดดูก่อนครับ")


class Turn(WireModel):
    """What one of the two said; times are ms from the answer."""

    speaker: Literal["agent", "customer"]
    start_ms: int
    end_ms: int
    text: str


class Transcript(WireModel):
    """A conversation as text; no turns where nobody spoke."""

    call_id: UuidText
    session_id: str
    language: Literal["th"] = "th"
    duration_ms: int
    turns: list[Turn]


def turns(talk_ms: int, male: bool) -> list[Turn]:
    """Turns that fill a conversation, the agent's first; `male` is the agent's voice."""
    end, ask = ("ครับ", "ครับ") if male else ("ค่ะ", "คะ")
    count = min(max(1, talk_ms // _TURN_MS), _MOST_TURNS)
    bounds = [talk_ms * number // count for number in range(count + 1)]
    return [
        Turn(
            speaker="customer" if number % 2 else "agent",
            start_ms=bounds[number],
            end_ms=bounds[number + 1],
            text=_text(number, count).format(end=end, ask=ask),
        )
        for number in range(count)
    ]


def _text(number: int, count: int) -> str:
    if number == 0:
        return _GREETING
    if number % 2:
        return _CUSTOMER[number // 2 % len(_CUSTOMER)]
    return _FAREWELL if number >= count - 2 else _AGENT[number // 2 % len(_AGENT)]
