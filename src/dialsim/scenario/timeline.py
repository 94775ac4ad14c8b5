"""The timeline: what somebody does to an organization's campaigns while they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator

from dialsim.interface.model import wrong
from dialsim.interface.schedule import ScheduleRequest
from dialsim.scenario.document import Cursor
from dialsim.scenario.fields import Limit, Model, Share, Switch, Text, Url
from dialsim.scenario.problems import Problems
from dialsim.scenario.units import Instant

Action = Literal[
    "pause",
    "resume",
    "cancel",
    "delete",
    "schedule",
    "reanalyze",
    "setConcurrency",
    "setBehaviour",
    "setWebhookUrl",
    "setCallingAllowed",
]
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "pause": ("campaign",),
    "resume": ("campaign",),
    "cancel": ("campaign",),
    "delete": ("campaign",),
    "schedule": ("campaign", "body"),
    "reanalyze": ("campaign", "share"),
    "setConcurrency": ("value",),
    "setBehaviour": ("agent", "behaviour"),
    "setWebhookUrl": ("url",),
    "setCallingAllowed": ("value",),
}
"""The actions, each with the fields it takes beside `at` and `action`."""

_OPTIONAL = ("share",)
_MAY_BE_NULL = ("url",)
_SWITCHES = ("setCallingAllowed",)


def _one_form_per_action(schema: dict[str, Any]) -> None:
    fields = schema["properties"]
    forms = [
        {
            "properties": {"at": fields["at"], "action": {"const": action}}
            | {name: _form(fields[name], name, action) for name in takes},
            "required": ["at", "action", *(name for name in takes if name not in _OPTIONAL)],
            "additionalProperties": False,
        }
        for action, takes in ACTIONS.items()
    ]
    schema.clear()
    schema |= {
        "description": "What somebody does at an instant; each action has exactly its own fields.",
        "type": "object",
        "properties": {"action": {"enum": list(ACTIONS)}},
        "oneOf": forms,
    }


def _form(field: dict[str, Any], name: str, action: str) -> dict[str, Any]:
    """The schema of a field where an action takes it: not null, and of its one type there."""
    if "anyOf" not in field or name in _MAY_BE_NULL:
        return field
    form, _null = field["anyOf"]
    about = _VALUES.get(action) or {
        "description": field["description"],
        "examples": field.get("examples", []),
    }
    if name == "value":
        limit, switch = form["oneOf"]
        form = switch if action in _SWITCHES else limit
    return {**form, **about}


_VALUES: Mapping[str, dict[str, Any]] = {
    "setConcurrency": {"description": "The new maxConcurrentCalls.", "examples": [30]},
    "setCallingAllowed": {
        "description": "Whether schedule requests are accepted from then on.",
        "examples": [False],
    },
}


class TimelineAction(Model, json_schema_extra=_one_form_per_action):
    """One action; it has the fields that `ACTIONS` names, the others are as if left out."""

    at: Instant = Field(description="When it is done.", examples=["2026-01-05T05:00:00Z"])
    action: Action = Field(description="What is done.", examples=["pause"])
    campaign: Text | None = Field(
        default=None, description="Name of the campaign.", examples=["January"]
    )
    value: (
        Annotated[
            Annotated[Limit, Tag("<limit>")] | Annotated[Switch, Tag("<switch>")],
            Discriminator(lambda value: "<switch>" if isinstance(value, bool) else "<limit>"),
        ]
        | None
    ) = None
    body: ScheduleRequest | None = Field(default=None, description="The schedule request's body.")
    agent: Text | None = Field(
        default=None, description="Name of the agent.", examples=["Reminder"]
    )
    behaviour: Text | None = Field(
        default=None,
        description="Name of the behaviour that holds for it from then on.",
        examples=["holiday"],
    )
    share: Share = Field(
        default=1.0,
        description="The share of the campaign's delivered calls that is analyzed again.",
        examples=[0.5],
    )
    url: Url | None = Field(
        default=None,
        description="Where results are sent from the next one on; null for nowhere.",
        examples=["https://example.test/hook/secret"],
    )

    @field_validator("value", mode="before")
    @classmethod
    def _is_of_the_actions_type(cls, value: object, info: ValidationInfo) -> object:
        switched = info.data.get("action") in _SWITCHES
        if switched and not isinstance(value, bool):
            raise wrong("must be true or false")
        if not switched and isinstance(value, bool):
            raise wrong("must be a whole number")
        return value


def check_fields(action: Cursor, problems: Problems) -> None:
    """Note which fields an action lacks or doesn't take; the fields' values are not looked at."""
    name = action.at("action").text
    takes = ACTIONS.get(name or "")
    if takes is None:
        return
    for field in takes:
        given = action.at(field)
        there = given.node is not None if field in _MAY_BE_NULL else given.exists
        if not there and field not in _OPTIONAL:
            problems.add(action, f"needs {field}: {name} takes {', '.join(takes)}")
    for key, given in action.entries():
        known = key in TimelineAction.model_fields and key not in {"at", "action"}
        if known and key not in takes and given.exists:
            problems.add(given, f"is no field of {name}, which takes {', '.join(takes)}")
