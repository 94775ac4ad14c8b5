"""The timeline: what somebody does to an organization's campaigns while they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from dialsim.interface.schedule import ScheduleRequest
from dialsim.scenario.fields import Limit, Model, Text, broken
from dialsim.scenario.problems import Problems
from dialsim.scenario.tree import Cursor
from dialsim.scenario.units import Instant

Action = Literal[
    "pause", "resume", "cancel", "delete", "schedule", "setConcurrency", "setBehaviour"
]
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "pause": ("campaign",),
    "resume": ("campaign",),
    "cancel": ("campaign",),
    "delete": ("campaign",),
    "schedule": ("campaign", "body"),
    "setConcurrency": ("value",),
    "setBehaviour": ("agent", "behaviour"),
}
"""The actions, each with the fields it needs beside `at` and `action`."""

NOT_YET = ("reanalyze", "setWebhookUrl", "setCallingAllowed")
"""Actions of the format that this version does not simulate."""


def _one_form_per_action(schema: dict[str, Any]) -> None:
    fields = schema["properties"]
    forms = [
        {
            "properties": {"at": fields["at"], "action": {"const": action}}
            | {name: _needed(fields[name]) for name in needs},
            "required": ["at", "action", *needs],
            "additionalProperties": False,
        }
        for action, needs in ACTIONS.items()
    ]
    schema.clear()
    schema |= {
        "description": "What somebody does at an instant; each action has exactly its own fields.",
        "type": "object",
        "properties": {"action": {"enum": list(ACTIONS)}},
        "oneOf": forms,
    }


def _needed(field: dict[str, Any]) -> dict[str, Any]:
    """The schema of an optional field where it is not optional."""
    form, _null = field["anyOf"]
    return {**form, "description": field["description"], "examples": field.get("examples", [])}


class TimelineAction(Model, json_schema_extra=_one_form_per_action):
    """One action; it has exactly the fields that `ACTIONS` names, the others are None."""

    at: Instant = Field(description="When it is done.", examples=["2026-01-05T05:00:00Z"])
    action: Action = Field(description="What is done.", examples=["pause"])
    campaign: Text | None = Field(
        default=None, description="Name of the campaign.", examples=["January"]
    )
    value: Limit | None = Field(
        default=None, description="The new maxConcurrentCalls.", examples=[30]
    )
    body: ScheduleRequest | None = Field(default=None, description="The schedule request's body.")
    agent: Text | None = Field(
        default=None, description="Name of the agent.", examples=["Reminder"]
    )
    behaviour: Text | None = Field(
        default=None,
        description="Name of the behaviour that holds for it from then on.",
        examples=["holiday"],
    )

    @model_validator(mode="before")
    @classmethod
    def _is_supported(cls, block: Any) -> Any:
        action = block.get("action") if isinstance(block, dict) else None
        if action in NOT_YET:
            known = ", ".join(ACTIONS)
            raise broken(f'"{action}" is not supported yet; the actions are {known}', "action")
        return block


def check_fields(action: Cursor, problems: Problems) -> None:
    """Note which fields an action lacks or doesn't take; the fields' values are not looked at."""
    name = action.at("action").text
    needs = ACTIONS.get(name or "")
    if needs is None:
        return
    for field in needs:
        if not action.at(field).exists:
            problems.add(action, f"needs {field}: {name} takes {', '.join(needs)}")
    for key, given in action.entries():
        known = key in TimelineAction.model_fields and key not in {"at", "action"}
        if known and key not in needs and given.exists:
            problems.add(given, f"is no field of {name}, which takes {', '.join(needs)}")
