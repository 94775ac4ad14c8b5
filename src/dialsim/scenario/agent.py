"""Agents: who speaks, what they ask of recipients, and what their conversations yield."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from dialsim.interface.agent import ParamSchema
from dialsim.interface.model import broken
from dialsim.scenario.fields import Model, NotEmpty, Phone, Share, Shares, Switch, Text, Uuid


class FunnelStep(Model):
    """A step of the conversation and the share of conversations that reach it."""

    step: Text = Field(description="Name of the step.", examples=["Greeted"])
    share: Share = Field(description="Share of conversations that reach it.", examples=[1.0])


def _narrows(steps: tuple[FunnelStep, ...]) -> tuple[FunnelStep, ...]:
    seen: set[str] = set()
    for index, step in enumerate(steps):
        if step.step in seen:
            raise broken("is the name of an earlier step", index, "step")
        seen.add(step.step)
    for index, (before, step) in enumerate(pairwise(steps), start=1):
        if step.share > before.share:
            says = f"must not be greater than that of {before.step}, {before.share:g}"
            raise broken(says, index, "share")
    return steps


Funnel = Annotated[tuple[FunnelStep, ...], NotEmpty, AfterValidator(_narrows)]


class AnalysisField(Model):
    """A custom field of the analysis, and how often it takes which value."""

    type: Literal["string", "text", "number", "boolean", "enum"] = Field(
        description="The field's type.", examples=["boolean"]
    )
    required: Switch = Field(
        default=False, description="Whether every analysis has it.", examples=[True]
    )
    description: Text | None = Field(
        default=None, description="What the field means.", examples=["Promised"]
    )
    enum_variant: tuple[Text, ...] | None = Field(
        default=None, description="The values an enum may take.", examples=[["yes", "no"]]
    )
    values: Shares = Field(
        description="Share of each value; they sum to 1. Keys of a boolean are true and false, "
        "of a number its values.",
        examples=[{"true": 0.35, "false": 0.65}],
    )

    @field_validator("values")
    @classmethod
    def _fit_the_type(cls, values: dict[str, float], info: ValidationInfo) -> dict[str, float]:
        kind, variants = info.data.get("type"), info.data.get("enum_variant")
        for value in values:
            if kind == "boolean" and value not in {"true", "false"}:
                raise broken("is no value of a boolean field: true and false are", value)
            if kind == "number" and not _is_number(value):
                raise broken("is no value of a number field", value)
            if variants is not None and value not in variants:
                raise broken("is not among enumVariant", value)
        return values


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


class Analysis(Model):
    """What the analyses of an agent's conversations say."""

    version: Literal["v1", "v2"] = Field(
        default="v2", description="Version of the results' shape.", examples=["v2"]
    )
    funnel: Funnel | None = Field(
        default=None,
        description="The steps in order, each with the share of conversations reaching it.",
    )
    fields: dict[Text, AnalysisField] = Field(
        default_factory=dict, description="Custom fields by name."
    )


class Agent(Model):
    """A voice agent: its number, voice and parameters, and how people behave towards it."""

    name: Text = Field(
        description="The agent's name; unique in its organization.", examples=["Reminder"]
    )
    id: Uuid | None = Field(
        default=None,
        description="A fixed id (UUID). Left out: derived from the seed.",
        examples=["7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"],
    )
    caller_id: Phone | None = Field(
        default=None,
        description="The agent's own number. Left out: the service's shared number.",
        examples=["021000001"],
    )
    voice_key: Text | None = Field(
        default=None, description="The agent's voice, from the voice catalog.", examples=["malee"]
    )
    params_schema: dict[Text, ParamSchema] | None = Field(
        default=None,
        description="The parameters that recipients carry, by name.",
        examples=[{"amount": {"type": "number", "required": True}}],
    )
    behaviour: Text = Field(
        default="default", description="A name under behaviours.", examples=["default"]
    )
    analysis: Analysis | None = Field(
        default=None, description="What the analyses of its conversations say."
    )
