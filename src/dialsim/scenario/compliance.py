"""Compliance rules, as data: when and how often people may be contacted.

They do not change the simulation. Validation warns about windows that exceed a rule, and the
summary counts the dials outside it.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from dialsim.interface.model import broken
from dialsim.scenario.calendar import DayClasses
from dialsim.scenario.fields import Model, Text, Whole


class ComplianceRule(Model):
    """Compliance rule: a missing `contact` allows any time, a missing `perDay` any number."""

    name: Text = Field(description="What the rule is called; unique.", examples=["House rule"])
    contact: DayClasses | None = Field(
        default=None, description="When people may be contacted, in Thai time."
    )
    per_day: Annotated[Whole, Field(ge=1, le=1000)] | None = Field(
        default=None,
        description="How often a person may be contacted on a day: a phone number, by whichever "
        "of the organization's campaigns.",
        examples=[1],
    )
    source: Text | None = Field(
        default=None, description="Where it is written.", examples=["Policy 12, page 3"]
    )

    @model_validator(mode="after")
    def _says_something(self) -> ComplianceRule:
        if self.contact is None and self.per_day is None:
            raise broken("needs contact, perDay, or both")
        return self


THAI_DEBT_COLLECTION = ComplianceRule.model_validate(
    {
        "name": "thai-debt-collection",
        "contact": {
            "weekday": "08:00-20:00",
            "saturday": "08:00-18:00",
            "sunday": "08:00-18:00",
            "holiday": "08:00-18:00",
        },
        "perDay": 1,
        "source": "Debt Collection Act B.E. 2558 (2015), section 9 (2) and (3), and the "
        "notification of the Debt Collection Supervisory Committee on the number of contacts, "
        "Royal Gazette of 23 August 2019",
    }
)
"""Thai debt collection rule, checked against press and law firms, not against the Gazette
itself.
"""

BUILT_IN_RULES = {rule.name: rule for rule in (THAI_DEBT_COLLECTION,)}


def _rule(value: object) -> object:
    """Return the built-in rule with this name; other values are returned for the model to
    validate.
    """
    if not isinstance(value, str) or value in BUILT_IN_RULES:
        return BUILT_IN_RULES[value] if isinstance(value, str) else value
    near = get_close_matches(value, BUILT_IN_RULES, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(BUILT_IN_RULES)}"
    raise broken(f'"{value}" is no built-in rule; {hint}')


def _unique(rules: tuple[ComplianceRule, ...]) -> tuple[ComplianceRule, ...]:
    names = [rule.name for rule in rules]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise broken(f'"{name}" must be unique, but an earlier rule has it too', index)
    return rules


class _OrByName:
    """Annotation of a rule: its JSON Schema also accepts the name of a built-in rule."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "enum": [*BUILT_IN_RULES]}, handler(schema)]}


ComplianceRules = Annotated[
    tuple[Annotated[ComplianceRule, BeforeValidator(_rule), _OrByName()], ...],
    AfterValidator(_unique),
]
"""Rules, given by the names of built-in ones or in full."""
