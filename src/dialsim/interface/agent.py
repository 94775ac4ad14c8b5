"""Agents' `paramsSchema`, the check of `agentParams`, and the catalog of voices.

Sections 2.2, 2.3 and 4.7 of the interface.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue

from dialsim.interface.model import Fault, WireModel


class ParamSchema(WireModel):
    """One parameter of an agent's `paramsSchema` (interface, section 2.2)."""

    type: Literal["text", "number", "boolean"] = Field(
        description="What the value is", examples=["number"]
    )
    required: bool = Field(
        default=False,
        strict=True,
        description="Whether every recipient's agentParams must carry the key",
        examples=[True],
    )
    description: str | None = Field(
        default=None, description="What the parameter means", examples=["Amount due"]
    )
    default: JsonValue = Field(
        default=None,
        description="The value the agent uses where agentParams lacks the key",
        examples=[0],
    )
    spell: JsonValue = Field(default=None, description="How the value is spelled out; kept as is")
    # In snake_case on the wire, unlike all other keys of the interface.
    pronunciation_map: JsonValue = Field(
        default=None,
        alias="pronunciation_map",
        description="How the value is pronounced; kept as is",
    )


_TYPE_TEXTS = {"text": "a string", "number": "a number", "boolean": "a boolean value"}


def check_agent_params(
    schema: Mapping[str, ParamSchema] | None, params: Mapping[str, object]
) -> list[Fault]:
    """Check a recipient's `agentParams` against the agent's `paramsSchema`.

    A required key must be present even if it has a default. A value must have the type of its
    entry; null counts as absent. Paths and messages of the faults start at the parameter.
    """
    # Keys that the schema does not name are accepted: the interface forbids none.
    faults = []
    for name, entry in (schema or {}).items():
        value = params.get(name)
        if value is None:
            if entry.required:
                faults.append(Fault((name,), f"{name} is required"))
        elif not _is_of_type(value, entry.type):
            faults.append(Fault((name,), f"{name} must be {_TYPE_TEXTS[entry.type]}"))
    return faults


def _is_of_type(value: object, kind: Literal["text", "number", "boolean"]) -> bool:
    if kind == "text":
        return isinstance(value, str)
    # In Python a bool is an int, but true is no number in JSON.
    if kind == "boolean" or isinstance(value, bool):
        return kind == "boolean" and isinstance(value, bool)
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


class Voice(WireModel):
    """Voice of the catalog, which an agent can use in calls (interface, section 2.3)."""

    voice_key: str = Field(
        min_length=1, description="The value to name in ttsVoiceKeys", examples=["malee"]
    )
    display_name: str = Field(description="Name shown to people", examples=["Malee"])
    gender: Literal["female", "male"] = Field(
        description="A male voice ends the service's own sentences the male way",
        examples=["female"],
    )
    is_native: bool = Field(
        strict=True, description="false: speaks Thai with a foreign accent", examples=[True]
    )


class SampleSentence(WireModel):
    """Sentence of the voice preview, worded for a female and for a male voice."""

    sentence_id: str
    text_female: str
    text_male: str


class VoiceCategory(WireModel):
    """Group of sample sentences (interface, section 4.7)."""

    category_key: str
    label: str
    sentences: tuple[SampleSentence, ...]


def _voice(key: str, name: str, gender: Literal["female", "male"], native: bool = True) -> Voice:
    return Voice(voice_key=key, display_name=name, gender=gender, is_native=native)


DEFAULT_VOICES = (
    _voice("malee", "Malee", "female"),
    _voice("kanya", "Kanya", "female"),
    _voice("duangjai", "Duangjai", "female"),
    _voice("arthit", "Arthit", "male"),
    _voice("thanakorn", "Thanakorn", "male"),
    _voice("narin", "Narin", "male", native=False),
)
"""Voice catalog of a scenario without `voices`, in display order. All voices are invented."""


def _sentence(number: str, stem: str) -> SampleSentence:
    """Build a sentence for both voices; `{0}` in `stem` is where the polite particle goes."""
    return SampleSentence(
        sentence_id=number, text_female=stem.format("ค่ะ"), text_male=stem.format("ครับ")
    )


SAMPLE_CATEGORIES = (
    VoiceCategory(
        category_key="greeting",
        label="Greetings",
        sentences=(
            _sentence("greeting-1", "สวัสดี{0} ติดต่อจากฝ่ายบริการลูกค้า{0}"),
            _sentence("greeting-2", "ขอบคุณที่รับสาย{0} ขออนุญาตรบกวนเวลาสักครู่{0}"),
        ),
    ),
    VoiceCategory(
        category_key="reminder",
        label="Reminders",
        sentences=(
            _sentence("reminder-1", "ขออนุญาตแจ้งว่าใบแจ้งหนี้จะครบกำหนดชำระวันศุกร์นี้{0}"),
            _sentence("reminder-2", "ขอยืนยันนัดหมายวันจันทร์ เวลาสิบโมงเช้า{0}"),
        ),
    ),
    VoiceCategory(
        category_key="closing",
        label="Closings",
        sentences=(_sentence("closing-1", "ขอบคุณที่สละเวลา{0} สวัสดี{0}"),),
    ),
)
"""Sample sentences of the catalog's `categories`."""
