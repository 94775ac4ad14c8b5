"""Behaviours, which are reactions of people and lines to an agent's calls, and scripts.

A script fixes the outcome of each attempt to reach a person.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from dialsim.errors import DialsimError
from dialsim.interface import CallStatus
from dialsim.interface.arguments import checked
from dialsim.interface.model import broken
from dialsim.interface.phrases import kind_of
from dialsim.scenario.distribution import Constant, Distribution, distribution
from dialsim.scenario.fields import (
    PHONE_PATTERN,
    PHONE_TEXT,
    Amount,
    Model,
    NotEmpty,
    Number,
    Share,
    Text,
    phone_meant,
    sum_to_one,
)
from dialsim.scenario.sheet import frame_of
from dialsim.scenario.units import PositiveDuration, format_duration, parse_duration

if TYPE_CHECKING:
    import pandas as pd

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
    """One attempt: its outcome, after `ring` ms of ringing and, if answered, `talk` ms of talk.

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
    if not re.fullmatch(PHONE_PATTERN, tel):
        meant = phone_meant(tel)
        hint = f": write {meant}" if meant else ""
        raise DialsimError(f"tel {PHONE_TEXT}, not {tel!r}{hint}")
    if text is None:
        return None
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


def _key_from(least: int, most: int, noun: str) -> BeforeValidator:
    """Build the validator of a key that is a whole number, given as text."""

    def check(key: object) -> int:
        # isdigit() alone would accept Thai and other digits.
        if isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 3:
            number = int(key)
            if least <= number <= most:
                return number
        raise broken(f"is no {noun}")

    return BeforeValidator(check)


_Hour = Annotated[int, _key_from(0, 23, "hour of the day: hours are 0 to 23")]
_Day = Annotated[int, _key_from(1, 7, "day of the week: days are 1 (Monday) to 7 (Sunday)")]
_Odds = Annotated[Amount, Field(le=1_000_000)]


class Outcomes(Model):
    """Outcomes of attempts before any odds apply, as shares that sum to 1."""

    answered: Share = Field(default=0.0, description="Somebody answers.", examples=[0.35])
    no_answer: Share = Field(
        default=0.0, description="The phone rings, but nobody answers.", examples=[0.45]
    )
    busy: Share = Field(default=0.0, description="The line is engaged.", examples=[0.12])
    failed: Share = Field(default=0.0, description="The line or the number fails.", examples=[0.08])

    @model_validator(mode="after")
    def _sum_to_one(self) -> Outcomes:
        sum_to_one(dict(self))
        return self

    def others(self, dead_numbers: float) -> tuple[float, float, float]:
        """Return the shares of no answer, busy and failed without dead numbers (P7)."""
        return self.no_answer, self.busy, max(0.0, self.failed - dead_numbers)


class CallerIdUse(Model):
    """Fatigue of caller IDs: recent dials of a number make answers less likely."""

    per1000: Annotated[Number, Field(gt=0, le=10)] = Field(
        alias="per1000",
        description="Factor on the odds of an answer per 1,000 recent dials of the number.",
        examples=[0.95],
    )
    recovery: PositiveDuration = Field(
        description="Time constant of the exponential decay of dials; more than 0.",
        examples=["1d"],
    )


class AnsweredOdds(Model):
    """Factors on the odds of `answered`; the other outcomes keep their proportions."""

    by_hour: dict[_Hour, _Odds] = Field(
        default_factory=dict,
        description="By Thai hour, 0 to 23; an hour not listed is 1.",
        examples=[{"9": 0.8, "18": 1.4}],
        json_schema_extra={"propertyNames": {"pattern": "^(?:[0-9]|1[0-9]|2[0-3])$"}},
    )
    by_day: dict[_Day, _Odds] = Field(
        default_factory=dict,
        description="By day of the week, 1 = Monday to 7 = Sunday; a day not listed is 1.",
        examples=[{"6": 1.2, "7": 1.1}],
        json_schema_extra={"propertyNames": {"pattern": "^[1-7]$"}},
    )
    on_holiday: _Odds = Field(
        default=1.0,
        description="On holidays of the calendar, beside the factor of the day.",
        examples=[0.7],
    )
    by_attempt: Annotated[tuple[_Odds, ...], NotEmpty] = Field(
        default=(1.0,),
        description="By attempt, from the first; the last one repeats.",
        examples=[[1.0, 0.8, 0.6]],
        json_schema_extra={"minItems": 1},
    )
    by_segment: dict[Text, _Odds] = Field(
        default_factory=dict,
        description="By the recipient's segment; one not listed is 1.",
        examples=[{"vip": 1.5}],
    )
    by_caller_id_use: CallerIdUse | None = Field(
        default=None, description="By the number of recent dials of the caller ID."
    )


class Persons(Model):
    """Differences between people; `outcomes` are averages over all people."""

    dead_numbers: Share = Field(
        default=0.0,
        description="Share of people whose number fails on every attempt; part of outcomes.failed.",
        examples=[0.05],
    )
    reachable: Annotated[Share, Field(gt=0)] = Field(
        default_factory=lambda people: 1.0 - people.get("dead_numbers", 0.0),
        description="Share of people who ever answer. Left out: all but those with dead numbers.",
        examples=[0.9],
    )
    concentration: Annotated[Number, Field(gt=0, le=1_000_000)] | None = Field(
        default=None,
        description="Sum of the parameters a and b of the Beta distribution from which each "
        "reachable person's chance to answer is drawn. The smaller it is, the more people "
        "differ. Left out: all are alike.",
        examples=[6],
    )

    @model_validator(mode="after")
    def _dead_numbers_answer_nobody(self) -> Persons:
        # Decimal shares are not exact in binary: 1 - 0.9 is less than 0.1.
        if self.reachable > 1 - self.dead_numbers + 1e-9:
            message = f"must be at most {1 - self.dead_numbers:.10g}, which deadNumbers leaves"
            raise broken(message, "reachable")
        return self


class RingTime(Model):
    """Ring time before each outcome; the default behaviour fills in what is left out."""

    answered: Distribution = Field(
        default=distribution(
            {"dist": "lognormal", "mean": "12s", "sd": "4.5s", "min": "1s", "max": "28s"}
        ),
        description="Ring time until somebody answers.",
        examples=["9s"],
    )
    no_answer: Distribution = Field(
        default=distribution("28s"),
        description="Ring time until the service gives up.",
        examples=["30s"],
    )
    busy: Distribution = Field(
        default=distribution("1s"),
        description="Ring time until the line is found engaged.",
        examples=["1s"],
    )
    failed: Distribution = Field(
        default=distribution("0s"), description="Ring time until the line fails.", examples=[0]
    )


class Rates(Model):
    """Shares of answered calls by failure; a call has at most one failure."""

    silent: Share = Field(default=0.0, description="Nobody speaks.", examples=[0.02])
    agent_error: Share = Field(
        default=0.0, description="The agent stops with an error.", examples=[0.005]
    )
    not_recorded: Share = Field(
        default=0.0, description="There is no recording and no transcript.", examples=[0.0]
    )
    analysis_unavailable: Share = Field(
        default=0.0, description="The analysis could not run.", examples=[0.01]
    )
    analysis_failed: Share = Field(
        default=0.0, description="The analysis failed.", examples=[0.005]
    )
    late_result: Share = Field(
        default=0.0,
        description="Share of the failed analyses that still yield a result later.",
        examples=[0.5],
    )

    @model_validator(mode="after")
    def _fit_into_one_draw(self) -> Rates:
        total = sum(share for name, share in self if name != "late_result")
        if total > 1 + 1e-9:
            raise broken(f"must sum to at most 1 (lateResult apart), but sums to {total:.10g}")
        return self


class Behaviour(Model):
    """Reactions of people and lines to an agent's calls.

    The fields' defaults apply to behaviours of a file; only the built-in one sets `people`.
    """

    outcomes: Outcomes = Field(
        default=Outcomes.model_validate(
            {"answered": 0.5, "noAnswer": 0.33, "busy": 0.05, "failed": 0.12}
        ),
        description="Outcomes of attempts before any odds apply, as shares that sum to 1; a "
        "share left out is 0. Left out as a whole: the default behaviour's.",
    )
    answered_odds: AnsweredOdds = Field(
        default=AnsweredOdds(), description="What makes an answer more or less likely."
    )
    people: Persons | None = Field(
        default=None, description="How people differ. Left out: all are alike."
    )
    setup_time: Distribution = Field(
        default=distribution({"dist": "uniform", "low": "1s", "high": "3s"}),
        description="Time to set up the line, before the phone rings; never below 1 ms.",
        examples=["2s"],
    )
    ring_time: RingTime = Field(default=RingTime(), description="How long the phone rings.")
    talk_time: Distribution = Field(
        default=distribution(
            {"dist": "lognormal", "mean": "75s", "sd": "88s", "min": "2s", "max": "10m"}
        ),
        description="How long an answered call lasts.",
        examples=[{"dist": "lognormal", "mean": "75s", "sd": "60s", "min": "2s", "max": "10m"}],
    )
    analysis_delay: Distribution = Field(
        default=distribution("20s"),
        description="Time from the end of a call to its analysis.",
        examples=["20s"],
    )
    rates: Rates = Field(default=Rates(), description="What goes wrong in answered calls.")
    late_result_delay: Distribution = Field(
        default=distribution("30m"),
        description="Time from a failed analysis to its late result.",
        examples=["30m"],
    )

    @field_validator("setup_time")
    @classmethod
    def _takes_time(cls, setup_time: Any) -> Any:
        if isinstance(setup_time, Constant) and setup_time.value == 0:
            raise broken("must not be a constant 0: setting up a line takes at least 1ms")
        return setup_time

    @field_validator("people")
    @classmethod
    def _reach_enough(cls, people: Persons | None, info: ValidationInfo) -> Persons | None:
        outcomes = info.data.get("outcomes")
        if people is None or outcomes is None:
            return people
        if people.dead_numbers > outcomes.failed:
            message = f"must not be more than outcomes.failed, which is {outcomes.failed:g}"
            raise broken(message, "deadNumbers")
        # Outcomes sum to 1 within this tolerance.
        if outcomes.answered > people.reachable + 1e-6:
            message = f"must not be less than outcomes.answered, which is {outcomes.answered:g}"
            raise broken(message, "reachable")
        return people


BUILT_IN = Behaviour.model_validate({"people": {"deadNumbers": 0.05, "concentration": 2.8}})
"""Default behaviour of a file without behaviours; docs/default-behaviour.md explains its
figures.
"""

_INHERITED = ("outcomes", "setupTime", "talkTime", "analysisDelay", "lateResultDelay")


def inherit(written: Mapping[str, object]) -> dict[str, object]:
    """Return behaviours by name, completed from the file's own `default`.

    Times and `outcomes` are inherited as a whole, ring times one by one. The models fill in what is
    still missing from the built-in default. A file without `default` gets the built-in one. Entries
    that are not mappings are returned unchanged, for the models to reject.
    """
    default = written.get("default")
    base = default if isinstance(default, dict) else {}
    inherited = {key: base[key] for key in _INHERITED if base.get(key) is not None}
    # Replaced below if the file has its own `default`.
    complete: dict[str, object] = {"default": BUILT_IN}
    for name, behaviour in written.items():
        if not isinstance(behaviour, dict) or behaviour is default:
            complete[name] = BUILT_IN if name == "default" and behaviour is None else behaviour
            continue
        own = {key: value for key, value in behaviour.items() if value is not None}
        # Ring times are merged by end, other values replaced: half a distribution means nothing.
        complete[name] = inherited | own | _ring_times(base.get("ringTime"), own.get("ringTime"))
    return complete


def _ring_times(base: object, own: object) -> dict[str, Any]:
    if not isinstance(base, dict):
        return {}
    if own is None:
        return {"ringTime": base}
    if not isinstance(own, dict):
        return {}
    return {"ringTime": base | {end: time for end, time in own.items() if time is not None}}


_RATE = "answered"
_LEAST_RATE = 1e-4
_MISFIT = 0.02


@checked(DialsimError)
def behaviour(rates: object) -> dict[str, Any]:
    """Make a behaviour from answer rates, in the form of `behaviours` in a file.

    `rates` is the share of attempts that are answered, or a DataFrame with a column `answered` (a
    share) and `segment`, `attempt` (from 1) or both; a column `calls` weighs the rows. All people
    of a segment are alike, so that an attempt is answered at its rate. Odds of segments and
    attempts multiply: a table that differs is fitted, with a warning where a rate is off by more
    than 2 percentage points. The last attempt repeats. Raises DialsimError for other values.

    >>> rates = pd.DataFrame({"segment": ["gold", "other"], "answered": [0.5, 0.2]})
    >>> dialsim.behaviour(rates)["answeredOdds"]
    {'bySegment': {'gold': 1.0, 'other': 0.25}}
    """
    if isinstance(rates, int | float) and not isinstance(rates, bool) and 0 <= rates <= 1:
        return {"outcomes": _outcomes(float(rates))}
    frame = frame_of(rates)
    if frame is None:
        raise DialsimError(
            "rates must be a share of answered attempts such as 0.35, or a DataFrame of answer "
            f"rates, not {kind_of(rates)}"
        )
    names = [name for name in ("segment", "attempt") if name in frame]
    if not names or _RATE not in frame or not len(frame):
        raise DialsimError(
            "rates must have a column answered, and segment, attempt or both; there "
            f"are {', '.join(map(str, frame)) or 'none'}"
        )
    import pandas as pd

    shares = pd.to_numeric(frame[_RATE], errors="coerce").to_numpy(float)
    if not ((shares >= 0) & (shares <= 1)).all():
        raise DialsimError("answered must be shares from 0 to 1, such as 0.35")
    if frame.duplicated(names).any():
        raise DialsimError(f"the table has two rows of the same {' and '.join(names)}")
    levels = {name: [*dict.fromkeys(frame[name].tolist())] for name in names}
    attempts = sorted(levels.get("attempt", [1]))
    if attempts != [*range(1, len(attempts) + 1)]:
        raise DialsimError("attempt must count from 1 without a gap")
    if "attempt" in levels:
        levels["attempt"] = attempts
    return _fitted(frame, levels, shares)


def _fitted(frame: pd.DataFrame, levels: dict[str, list[Any]], shares: Any) -> dict[str, Any]:
    """Fit log odds, with a term per segment and attempt, by weighted least squares."""
    kept = np.clip(shares, _LEAST_RATE, 1 - _LEAST_RATE)
    # The first segment and the first attempt are the base.
    terms = [(name, level) for name, listed in levels.items() for level in listed[1:]]
    design = np.column_stack(
        [np.ones(len(frame)), *((frame[name] == level).to_numpy(float) for name, level in terms)]
    )
    # The variance of log odds is the reciprocal of calls × rate × (1 − rate).
    calls = frame["calls"].to_numpy(float) if "calls" in frame else np.ones(len(frame))
    weights = np.sqrt(calls * kept * (1 - kept))[:, None]
    found, *_ = np.linalg.lstsq(
        design * weights, np.log(kept / (1 - kept)) * weights[:, 0], rcond=None
    )
    made = 1 / (1 + np.exp(-design @ found))
    worst = int(np.abs(made - shares).argmax())
    if abs(made[worst] - shares[worst]) > _MISFIT:
        row = ", ".join(f"{name} {frame[name].iloc[worst]}" for name in levels)
        warnings.warn(
            f"answer rates: {shares[worst]:.1%} of {row} becomes {made[worst]:.1%}, because the "
            "odds of segments and attempts multiply",
            stacklevel=3,
        )
    factors = {
        term: round(float(np.exp(value)), 6) for term, value in zip(terms, found[1:], strict=True)
    }
    odds: dict[str, Any] = {}
    if "segment" in levels:
        listed = levels["segment"]
        odds["bySegment"] = {str(at): factors.get(("segment", at), 1.0) for at in listed}
    if "attempt" in levels:
        odds["byAttempt"] = [factors.get(("attempt", at), 1.0) for at in levels["attempt"]]
    return {"outcomes": _outcomes(float(1 / (1 + np.exp(-found[0])))), "answeredOdds": odds}


def _outcomes(answered: float) -> dict[str, float]:
    """Return the outcomes with a share of answers; the others have the built-in proportions."""
    others = BUILT_IN.outcomes.model_dump(by_alias=True, exclude={"answered"})
    total = sum(others.values())
    # `answered` is what the other shares leave, so that rounded shares sum to 1.
    shares = {key: round((1 - answered) * part / total, 6) for key, part in others.items()}
    return {"answered": round(1 - sum(shares.values()), 6), **shares}
