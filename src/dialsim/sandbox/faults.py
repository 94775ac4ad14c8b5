"""Injected faults: the order of an operator, how often a fault struck, and what it strikes next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np
from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from dialsim.engine.chance import Purpose, generator
from dialsim.engine.post_log import Post, PostKey
from dialsim.errors import Refused
from dialsim.interface.model import Combined, NullAsAbsent, broken, given
from dialsim.scenario.error_text import joined
from dialsim.scenario.fields import Number, Switch, Text, Whole, patterned
from dialsim.scenario.units import PositiveDuration, format_duration

MOST_FAULTS = 100

WhichPost = tuple[int, ...]
"""Key of a webhook POST: the parts of the result's key, and the number (see `Post`)."""


@dataclass(slots=True, eq=False)
class InjectedFault:
    """Injected fault. `organization` and `campaign` are indexes that limit its targets."""

    number: int
    order: FaultOrder
    organization: int | None
    campaign: int | None
    until: int | None = None
    met: int = 0
    struck: int = 0

    @property
    def left(self) -> int | None:
        """Number of strikes left, or None if only time ends the fault."""
        return None if self.order.next is None else self.order.next - self.struck

    def is_over(self, at: int) -> bool:
        """True if the fault has ended at an instant (ms)."""
        return self.left == 0 or (self.until is not None and at >= self.until)

    def may_strike_post(self, post: Post, follows: bool) -> bool:
        """True if the fault may strike this webhook POST.

        `follows`: an earlier result of the same recipient exists.
        """
        how, (organization, campaign) = self.order.webhooks, post.key[:2]
        return (
            how is not None
            and not (how == "delayed" and post.resent)
            and not (how == "stale" and not follows)
            and self.organization in (None, organization)
            and self.campaign in (None, campaign)
        )

    def may_strike_answer(self, organization: int, path: str) -> bool:
        """True if the fault may strike the answer to this request of an organization."""
        return (
            self.order.api is not None
            and self.organization in (None, organization)
            and (self.order.path is None or path.startswith(self.order.path))
        )


class Encounter(NamedTuple):
    """Faults that a webhook or a request meets, and the fault that strikes it."""

    met: tuple[int, ...] = ()
    struck: InjectedFault | None = None


class InjectedFaults:
    """All faults not cleared, including used-up faults, oldest first."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._faults: dict[int, InjectedFault] = {}
        self._fates: dict[WhichPost, WebhookFault | None] = {}  # of POSTs under way
        self._held: dict[WhichPost, int] = {}  # when (ms) POSTs leave that are delayed
        self._last = 0

    def __iter__(self) -> Iterator[InjectedFault]:
        return iter(self._faults.values())

    def add(
        self, order: FaultOrder, organization: int | None, campaign: int | None, at: int
    ) -> None:
        """Take an order at an instant (ms); 409 where there are too many faults already."""
        if len(self._faults) >= MOST_FAULTS:
            text = f"There are {MOST_FAULTS} faults already: clear some of them"
            raise Refused(409, "TOO_MANY_FAULTS", [text])
        self._last += 1
        until = None if order.lasts is None else at + order.lasts
        self._faults[self._last] = InjectedFault(self._last, order, organization, campaign, until)

    def find(self, number: int) -> InjectedFault:
        """Return the fault with a number, from 1; 404 for an unknown or cleared fault."""
        if number not in self._faults:
            raise Refused(404, "FAULT_NOT_FOUND", ["Fault not found"])
        return self._faults[number]

    def newest(self) -> InjectedFault:
        """Fault that was added last."""
        return self._faults[self._last]

    def clear(self, number: int | None) -> None:
        """Forget a fault, by number, or all of them. Their numbers are not used again."""
        if number is None:
            self._faults.clear()
        else:
            del self._faults[self.find(number).number]

    def for_post(self, post: Post, before: Callable[[], PostKey | None]) -> Encounter:
        """Return the faults of a webhook POST without counting a strike.

        A POST under way has met its faults already. `before` returns the key of the previous result
        of the same recipient, or None; it is called only for faults that need the key.
        """
        if which_post(post) in self._fates:
            return Encounter()

        def may_strike(fault: InjectedFault) -> bool:
            follows = fault.order.webhooks == "stale" and before() is not None
            return fault.may_strike_post(post, follows)

        return self._encounter(may_strike, post.at)

    def fate(self, post: Post) -> WebhookFault | None:
        """Return the fault of a POST under way, the same for each attempt to send it, or None."""
        return self._fates.get(which_post(post))

    def held_until(self, post: WhichPost) -> int | None:
        """Return the departure (ms) of a delayed POST, or None."""
        return self._held.get(post)

    def ended(self, post: Post) -> None:
        """A POST is not under way any more."""
        self._fates.pop(which_post(post), None)
        self._held.pop(which_post(post), None)

    def for_answer(self, organization: int, path: str, at: int) -> Encounter:
        """Return the faults of an answer to an organization's request without counting a strike."""
        return self._encounter(lambda fault: fault.may_strike_answer(organization, path), at)

    def count(
        self, met: tuple[int, ...], struck: int | None, post: WhichPost | None, at: int
    ) -> None:
        """Count an encounter at an instant (ms), by the numbers of the faults.

        A POST's fate is sealed by it.
        """
        for number in met:
            self._faults[number].met += 1
        if struck is not None:
            self._faults[struck].struck += 1
        if post is not None:
            order = None if struck is None else self._faults[struck].order
            self._fates[post] = None if order is None else order.webhooks
            if order is not None and order.webhooks == "delayed":
                self._held[post] = at + (order.delay or 0)

    def _encounter(self, may_strike: Callable[[InjectedFault], bool], at: int) -> Encounter:
        met: list[int] = []
        for fault in self:
            if not fault.is_over(at) and may_strike(fault):
                met.append(fault.number)
                if self._strikes(fault):
                    return Encounter(tuple(met), fault)
        return Encounter(tuple(met))

    def _strikes(self, fault: InjectedFault) -> bool:
        if fault.order.share == 1:
            return True
        key = (Purpose.INJECTED_FAULT, fault.number, fault.met)
        draw = np.random.Generator(generator(self._seed, key)).random()
        return bool(draw < fault.order.share)


def which_post(post: Post) -> WhichPost:
    """Return the key of a POST, which stays the same after a restart."""
    return (*post.key, post.number)


WebhookFault = Literal["timeout", "refuse", "late", "twice", "delayed", "stale"]
"""Kinds of webhook faults.

`timeout`: nothing reaches the receiver, and the service waits in vain; `refuse`: the connection is
refused; `late`: the receiver gets the POST, but its answer counts as too late; `twice`: the
receiver gets the POST twice; `delayed`: the POST leaves later, unchanged, and other POSTs overtake
it; `stale`: the receiver gets the POST, and then the previous result of the same recipient again.
"""
ApiFault = Literal["error", "drop", "slow", "slowBody"]
"""Kinds of answer faults.

An error or a dropped connection replaces the answer, or the same answer arrives later, as a whole
or in pieces.
"""
ErrorStatus = Literal[401, 429, 500, 502, 503, 504]

MOST_STRIKES = 1_000_000
LONGEST_DELAY = 60_000
"""Longest delay of an answer (ms of real time)."""
LONGEST_HOLD = 86_400_000
"""Longest delay of a webhook (ms of virtual time)."""
_MAY_SAY_WHEN = (429, 503)  # statuses that allow Retry-After


ApiPath = Annotated[str, patterned(r"/api(/\S*)?", "must be a path that begins with /api")]
_GOES_WITH = {
    "campaign": ("webhooks",),
    "path": ("api",),
    "status": ("api error",),
    "retryAfter": ("api error",),
    "executed": ("api error", "api drop"),
    "delay": ("api slow", "api slowBody", "webhooks delayed"),
}
_KINDS = {"webhooks": get_args(WebhookFault), "api": get_args(ApiFault)}


class FaultOrder(Combined):
    """Order for a fault of webhooks or API answers: its number of strikes and its targets."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [given("webhooks"), given("api")],
            "anyOf": [given("next"), given("lasts")],
        }
    )

    webhooks: WebhookFault | None = Field(
        default=None, description="What happens to POSTs of the webhook."
    )
    api: ApiFault | None = Field(
        default=None, description="What happens to answers under /api, the key being right."
    )
    next: Annotated[Whole, Field(ge=1, le=MOST_STRIKES)] | None = Field(
        default=None, description="How many it strikes.", examples=[3]
    )
    lasts: PositiveDuration | None = Field(
        default=None, description="For how much virtual time it strikes.", examples=["10m"]
    )
    share: Annotated[Number, Field(gt=0, le=1), NullAsAbsent()] = Field(
        default=1, description="The chance, for each that it could strike, to be struck."
    )
    organization: Text | None = Field(
        default=None, description="The only one to be struck, by id or by name."
    )
    campaign: Text | None = Field(
        default=None, description="The only one whose webhooks are struck, by id."
    )
    path: ApiPath | None = Field(
        default=None, description="How the paths begin that are struck.", examples=["/api/call/"]
    )
    status: ErrorStatus | None = Field(
        default=None,
        description="The status of an error; left out: 429 with retryAfter, else 503.",
    )
    retry_after: PositiveDuration | None = Field(
        default=None,
        description="The Retry-After of a 429 or 503, rounded up to seconds.",
        examples=["2s"],
    )
    executed: Switch | None = Field(
        default=None,
        description="Whether the request is carried out before its answer is lost.",
    )
    delay: PositiveDuration | None = Field(
        default=None,
        description="By how much an answer is slow, in real time, at most a minute; or a webhook "
        "late, in virtual time, at most a day.",
        examples=["2s"],
    )

    @field_validator("delay")
    @classmethod
    def _is_bearable(cls, delay: int | None, info: ValidationInfo) -> int | None:
        longest = LONGEST_HOLD if info.data.get("webhooks") else LONGEST_DELAY
        if delay is not None and delay > longest:
            raise broken(f"must not be longer than {format_duration(longest)}")
        return delay

    @model_validator(mode="before")
    @classmethod
    def _null_means_left_out(cls, order: Any) -> Any:
        if isinstance(order, Mapping):
            return {name: value for name, value in order.items() if value is not None}
        return order

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """Yield an error unless exactly one kind of fault is given, with fitting settings."""
        named = {name for name, value in given.items() if value is not None}
        if not named & {"next", "lasts"}:
            yield "next or lasts must be given"
        if len(named & {"webhooks", "api"}) != 1:
            yield "one of webhooks and api must be given"
            return
        [what] = named & {"webhooks", "api"}
        how = given[what]
        # an unknown kind may be a misspelling of any kind
        meant = [how] if how in _KINDS[what] else _KINDS[what]
        fitting = {what, *(f"{what} {kind}" for kind in meant)}
        for name, kinds in _GOES_WITH.items():
            if name in named and not fitting & {*kinds}:
                yield f"{name} goes with {joined(kinds, 'or')} alone"
        if how in _DELAYED and "delay" not in named:
            yield f"delay is required where {what} is {how}"
        if "retryAfter" in named and given.get("status") not in (None, *_MAY_SAY_WHEN):
            yield "retryAfter goes with status 429 or 503 alone"


_DELAYED = ("slow", "slowBody", "delayed")
