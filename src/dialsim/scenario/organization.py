"""Organizations: the accounts that call, with agents, webhooks and timelines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dialsim.interface.agent import ParamSchema
from dialsim.interface.model import broken, wrong
from dialsim.interface.schedule import CallingAccount, ScheduleRequest
from dialsim.scenario.calendar import Lines
from dialsim.scenario.campaign import Campaign
from dialsim.scenario.distribution import Distribution, distribution
from dialsim.scenario.document import Cursor
from dialsim.scenario.fields import (
    FixedId,
    Limit,
    Model,
    NotEmpty,
    Phone,
    Share,
    Shares,
    Switch,
    Text,
    Url,
    Uuid,
    patterned,
)
from dialsim.scenario.problems import Problems
from dialsim.scenario.units import Duration, Instant


class FunnelStep(Model):
    """Step of the conversation, and the share of conversations that reach it."""

    step: Text = Field(description="Name of the step.", examples=["Greeted"])
    share: Share = Field(description="Share of conversations that reach it.", examples=[1.0])


def _narrows(steps: tuple[FunnelStep, ...]) -> tuple[FunnelStep, ...]:
    seen: set[str] = set()
    for index, step in enumerate(steps):
        if step.step in seen:
            raise broken("is the name of an earlier step", index, "step")
        seen.add(step.step)
    # Shares are of all conversations, not of the previous step; a funnel can only narrow.
    for index, (before, step) in enumerate(pairwise(steps), start=1):
        if step.share > before.share:
            message = f"must not be greater than that of {before.step}, {before.share:g}"
            raise broken(message, index, "share")
    return steps


Funnel = Annotated[tuple[FunnelStep, ...], NotEmpty, AfterValidator(_narrows)]


class AnalysisField(Model):
    """Custom field of the analysis, and the frequency of its values."""

    type: Literal["string", "text", "number", "boolean", "enum"] = Field(
        description="The field's type.", examples=["boolean"]
    )
    required: Switch = Field(
        default=False, description="true: every analysis has the field.", examples=[True]
    )
    description: Text | None = Field(
        default=None, description="What the field means.", examples=["Promised"]
    )
    enum_variant: tuple[Text, ...] | None = Field(
        default=None, description="The values an enum may take.", examples=[["yes", "no"]]
    )
    values: Shares = Field(
        description="Share of each value; the shares sum to 1. Keys of a boolean field are true "
        "and false, keys of a number field are numbers.",
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
    """Results of the analyses of an agent's conversations."""

    version: Literal["v1", "v2"] = Field(
        default="v2", description="Version of the results' shape.", examples=["v2"]
    )
    funnel: Funnel | None = Field(
        default=None,
        description="The steps of conversations in order, each with the share of conversations "
        "that reach it.",
    )
    fields: dict[Text, AnalysisField] = Field(
        default_factory=dict, description="Custom fields by name."
    )


class Agent(Model):
    """Voice agent: its number, voice and parameters, and the behaviour of the people it calls."""

    name: Text = Field(
        description="The agent's name; unique in its organization.", examples=["Reminder"]
    )
    id: FixedId = None
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
        default=None, description="Results of the analyses of the agent's conversations."
    )


class Outage(Model):
    """Span in which the receiver refuses connections, or lets them hang (W5)."""

    from_: Instant = Field(
        alias="from", description="First instant of the outage.", examples=["2026-01-06T03:00:00Z"]
    )
    to: Instant = Field(
        description="Instant at which the outage is over.", examples=["2026-01-06T03:20:00Z"]
    )
    mode: Literal["refuse", "hang"] = Field(
        default="refuse", description="What happens to POSTs in the outage.", examples=["refuse"]
    )

    @field_validator("to")
    @classmethod
    def _is_after_from(cls, to: int, info: ValidationInfo) -> int:
        # An invalid `from` is missing in the data; it has its own error.
        if to <= info.data.get("from_", to - 1):
            raise broken("must be after from")
        return to


class ReceiverSettings(Model):
    """Simulated receiver of webhooks (W5)."""

    latency: Distribution = Field(
        default=distribution("200ms"),
        description="How long an answer takes.",
        examples=["300ms"],
    )
    error_rate: Share = Field(
        default=0.0, description="Share of POSTs that are answered by an error.", examples=[0.01]
    )
    outages: tuple[Outage, ...] = Field(
        default=(), description="Spans in which nothing is answered."
    )


class Webhook(Model):
    """Destination of results (interface, section 6.1)."""

    url: Url = Field(
        description="The URL that results are sent to.", examples=["https://example.test/hook"]
    )
    receiver: ReceiverSettings = Field(default=ReceiverSettings(), description="How it answers.")


API_KEY_PATTERN = r"^\S*_[^\s_]{32}$"
API_KEY_TEXT = "must be a prefix that ends in an underscore, then 32 characters"


class SipCallerId(Model):
    """Number of a SIP account, by its id."""

    id: Uuid = Field(
        description="The id (UUID) that sipCallerId names.",
        examples=["c0a5b3d2-9c4e-4d6f-8a43-51d0f5b7e921"],
    )
    number: Text = Field(description="The phone number.", examples=["021000009"])


class SipAccount(Model):
    """SIP account and its numbers (legacy)."""

    id: Uuid = Field(
        description="The id (UUID) that sipAccountId names.",
        examples=["7b1f4c1e-52a8-4a55-9d0b-2f8f3b0f6a10"],
    )
    caller_ids: tuple[SipCallerId, ...] = Field(default=(), description="The account's numbers.")


class DuplicateCallAlert(Model):
    """Feature that finds people who were reached recently."""

    window: Duration = Field(
        description="Time before now in which a person counts as reached recently.",
        examples=["30d"],
    )


class Retention(Model):
    """Time that a call's data are kept after its end; data left out are kept for ever (D2)."""

    audio: Duration | None = Field(default=None, description="Recordings.", examples=["30d"])
    personal_data: Duration | None = Field(
        default=None, description="Names, numbers, parameters, transcripts.", examples=["90d"]
    )
    output: Duration | None = Field(
        default=None, description="Analysis results.", examples=["365d"]
    )


# -- the timeline ----------------------------------------------------------------------------------

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
"""Actions, each with its fields beside `at` and `action`."""

_OPTIONAL = ("share",)
_MAY_BE_NULL = ("url",)
_SWITCHES = ("setCallingAllowed",)


class TimelineAction(Model):
    """Action of a client or operator at an instant; the action determines the fields."""

    at: Instant = Field(description="Instant of the action.", examples=["2026-01-05T05:00:00Z"])
    action: Action = Field(description="Kind of action.", examples=["pause"])
    campaign: Text | None = Field(
        default=None, description="Name of the campaign.", examples=["January"]
    )
    value: (
        Annotated[
            Annotated[Limit, Tag("<limit>")] | Annotated[Switch, Tag("<switch>")],
            Discriminator(lambda value: "<switch>" if isinstance(value, bool) else "<limit>"),
        ]
        | None
    ) = Field(
        default=None,
        description="The new maxConcurrentCalls, or whether schedule requests are accepted from "
        "then on.",
        examples=[30, False],
    )
    body: ScheduleRequest | None = Field(default=None, description="The schedule request's body.")
    agent: Text | None = Field(
        default=None, description="Name of the agent.", examples=["Reminder"]
    )
    behaviour: Text | None = Field(
        default=None,
        description="Name of the agent's behaviour from then on.",
        examples=["holiday"],
    )
    share: Share = Field(
        default=1.0,
        description="The share of the campaign's delivered calls that is analyzed again.",
        examples=[0.5],
    )
    url: Url | None = Field(
        default=None,
        description="URL for the next results and all later ones; null: results are not sent.",
        examples=["https://example.test/hook/secret"],
    )

    @field_validator("value", mode="before")
    @classmethod
    def _is_of_the_actions_type(cls, value: object, info: ValidationInfo) -> object:
        switched = info.data.get("action") in _SWITCHES
        if switched and not isinstance(value, bool):
            raise wrong("must be true or false")
        # bool is an int in Python, so that True would pass as a limit of 1.
        if not switched and isinstance(value, bool):
            raise wrong("must be a whole number")
        return value


def check_fields(action: Cursor, problems: Problems) -> None:
    """Report missing and superfluous fields of an action, without looking at their values."""
    name = action.at("action").text
    takes = ACTIONS.get(name or "")
    if takes is None:
        return
    for field in takes:
        given = action.at(field)
        there = given.is_present if field in _MAY_BE_NULL else given.exists
        if not there and field not in _OPTIONAL:
            problems.add(action, f"needs {field}: {name} takes {', '.join(takes)}")
    for key, given in action.entries():
        known = key in TimelineAction.model_fields and key not in {"at", "action"}
        if known and key not in takes and given.exists:
            problems.add(given, f"is no field of {name}, which takes {', '.join(takes)}")


# -- the organization ------------------------------------------------------------------------------


class Organization(Model):
    """Account of the service: limit, numbers, agents, campaigns and timeline."""

    name: Text = Field(description="The organization's name; unique.", examples=["Acme"])
    id: FixedId = None
    max_concurrent_calls: Limit = Field(
        description="Lines: how many calls may be under way at once (Q1).", examples=[20]
    )
    lines: Lines = Field(
        default_factory=dict,
        description="Other values of maxConcurrentCalls by days, times of the day, holidays or "
        "dates, in Thai time.",
        examples=[{"Mon-Fri 13:00-18:00": 40, "2026-01-09": 10}],
    )
    calling_allowed: Switch = Field(
        default=True,
        description="true: the service accepts schedule requests of the organization.",
        examples=[True],
    )
    api_key: Annotated[str, patterned(API_KEY_PATTERN, API_KEY_TEXT)] | None = Field(
        default=None,
        description="A prefix that ends in an underscore, then 32 characters. Left out: derived "
        "from seed and name.",
        examples=["sim_0123456789abcdef0123456789abcdef"],
        json_schema_extra={"pattern": API_KEY_PATTERN},
    )
    caller_ids: tuple[Text, ...] = Field(
        default=(),
        description="Its phone numbers, in quotes.",
        examples=[["021000001", "021000002"]],
    )
    sip_accounts: tuple[SipAccount, ...] = Field(
        default=(), description="Its SIP accounts (legacy)."
    )
    duplicate_call_alert: DuplicateCallAlert | None = Field(
        default=None, description="Left out: the feature is off."
    )
    retention: Retention | None = Field(
        default=None, description="Left out: everything is kept for ever."
    )
    webhook: Webhook | None = Field(default=None, description="Left out: nothing is sent.")
    agents: tuple[Agent, ...] = Field(default=(), description="Its voice agents.")
    campaigns: tuple[Campaign, ...] = Field(
        default=(), description="Its campaigns, in the order in which they share lines."
    )
    timeline: tuple[TimelineAction, ...] = Field(
        default=(), description="Actions of clients and operators while the campaigns run."
    )
    _compiled_actions: tuple[TimelineAction, ...] = PrivateAttr(default=())

    @property
    def compiled_actions(self) -> tuple[TimelineAction, ...]:
        """Actions compiled from calling hours and lines, in order of time; they act after the
        timeline's.
        """
        return self._compiled_actions

    @property
    def actions(self) -> list[TimelineAction]:
        """Actions of the timeline and compiled ones, in order of time."""
        return sorted((*self.timeline, *self._compiled_actions), key=lambda action: action.at)

    @property
    def limit_changes(self) -> list[tuple[int, int]]:
        """Instants (ms) at which maxConcurrentCalls changes, in order, and its new values."""
        changes = (action for action in self.actions if action.action == "setConcurrency")
        return [(action.at, int(action.value or 0)) for action in changes]

    @property
    def limits(self) -> set[int]:
        """All values that maxConcurrentCalls ever has."""
        return {self.max_concurrent_calls, *(limit for _, limit in self.limit_changes)}

    def with_compiled_actions(self, actions: Iterable[TimelineAction]) -> Organization:
        """Return a copy with these compiled actions."""
        changed = self.model_copy()
        changed._compiled_actions = tuple(actions)
        return changed

    @model_validator(mode="after")
    def _has_the_lines_it_reserves(self) -> Self:
        reserving = [campaign for campaign in self.campaigns if campaign.reserved]
        reserved = sum(campaign.reserved for campaign in reserving)
        limits = [a.value for a in self.timeline if a.action == "setConcurrency"]
        limits += self.lines.values()
        most = max(int(limit or 0) for limit in (self.max_concurrent_calls, *limits))
        if reserved > most:
            whose = ", ".join(f"{campaign.name} {campaign.reserved}" for campaign in reserving)
            message = f"must not be less than {reserved}, which its campaigns reserve: {whose}"
            raise broken(message, "maxConcurrentCalls")
        return self

    def calling_account(self) -> CallingAccount:
        """Return the settings that schedule conditions refer to (interface, section 4.6)."""
        return CallingAccount(
            caller_ids=frozenset(self.caller_ids),
            sip_accounts={
                account.id.lower(): {
                    caller.id.lower(): caller.number for caller in account.caller_ids
                }
                for account in self.sip_accounts
            },
            duplicate_call_alert=self.duplicate_call_alert is not None,
        )
