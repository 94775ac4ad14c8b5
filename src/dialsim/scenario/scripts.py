"""Scripts: fixed ends of the attempts to reach a person, one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator

from dialsim.errors import DialsimError
from dialsim.interface.model import broken
from dialsim.interface.status import CallStatus
from dialsim.scenario.fields import PHONE_PATTERN, PHONE_TEXT, Text, phone_meant
from dialsim.scenario.units import format_duration, parse_duration

OUTCOMES: Mapping[str, CallStatus] = {
    "answered": CallStatus.COMPLETED,
    "noAnswer": CallStatus.NO_ANSWER,
    "busy": CallStatus.BUSY,
    "failed": CallStatus.FAILED,
}
ANALYSIS_WORDS = (
    "silent",
    "agentError",
    "notRecorded",
    "analysisUnavailable",
    "analysisFailed",
    "analysisFailedLate",
)


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One attempt: its end, after `ring` ms of ringing and, if answered, `talk` ms of talk.

    Recorded calls also set `setup`, in ms, in place of the behaviour's setup time, and `until`, the
    instant (ms) at which ringing ends, in place of `ring`. The text form of a script has neither.
    """

    outcome: CallStatus
    ring: int
    talk: int = 0
    analysis: str | None = None
    setup: int | None = None
    until: int | None = None


Script: TypeAlias = tuple[ScriptStep, ...]
"""Steps by attempt, from the first; the last one repeats."""


def parse_script(text: str) -> Script:
    """Parse steps such as `noAnswer 25s; answered 5s 90s silent`.

    Raises ValueError with a text that follows the name of the value.
    """
    parts = text.split(";")
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    return tuple(_step(part.split(), number) for number, part in enumerate(parts, start=1))


def _readable(value: object) -> object:
    if isinstance(value, str):
        try:
            parse_script(value)
        except ValueError as error:
            raise broken(str(error)) from None
    return value


ScriptText = Annotated[Text, BeforeValidator(_readable)]
"""Script in text form, for `parse_script`."""


def read_number_script(tel: str, text: str | None) -> Script | None:
    """Parse the script for the next calls to a phone number; None for no script.

    Raises DialsimError for an invalid number or script.
    """
    if not isinstance(tel, str) or not re.fullmatch(PHONE_PATTERN, tel):
        meant = phone_meant(tel) if isinstance(tel, str) else None
        hint = f": write {meant}" if meant else ""
        raise DialsimError(f"tel {PHONE_TEXT}, not {tel!r}{hint}")
    if text is None:
        return None
    if not isinstance(text, str):
        raise DialsimError(f"script must be text, not {text!r}")
    try:
        return parse_script(text)
    except ValueError as error:
        raise DialsimError(f"script {error}") from None


def format_script(script: Script) -> str:
    """Format steps in the notation of `parse_script`."""
    return "; ".join(map(_step_text, script))


def _step_text(step: ScriptStep) -> str:
    word = next(word for word, outcome in OUTCOMES.items() if outcome is step.outcome)
    times = [step.ring, step.talk] if step.outcome is CallStatus.COMPLETED else [step.ring]
    return " ".join(
        [word, *map(format_duration, times), *([step.analysis] if step.analysis else [])]
    )


def _step(words: list[str], number: int) -> ScriptStep:
    if not words:
        raise ValueError(f"has an empty step {number}: steps are separated by single semicolons")
    outcome, *rest = words
    if outcome not in OUTCOMES:
        near = get_close_matches(outcome, OUTCOMES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        known = ", ".join(OUTCOMES)
        raise ValueError(f'has "{outcome}" in step {number}, but steps are {known}{hint}')
    if outcome != "answered":
        if len(rest) != 1:
            raise ValueError(f"needs one duration in step {number}: {outcome} 25s (ring time)")
        return ScriptStep(OUTCOMES[outcome], _duration(rest[0], number))
    if len(rest) not in {2, 3}:
        raise ValueError(
            f"needs two durations in step {number}: answered 5s 90s (ring time, talk time)"
        )
    analysis = rest[2] if len(rest) == 3 else None
    if analysis is not None and analysis not in ANALYSIS_WORDS:
        raise ValueError(
            f'has "{analysis}" in step {number}, but an answered step may end with '
            f"{', '.join(ANALYSIS_WORDS)}"
        )
    return ScriptStep(
        CallStatus.COMPLETED, _duration(rest[0], number), _duration(rest[1], number), analysis
    )


def _duration(text: str, number: int) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ValueError(f"has a duration in step {number} that {error}") from None
