"""Injected faults: the order of an operator, how often a fault struck, and what it strikes next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field, model_validator

from dialsim.engine.chance import Purpose, generator
from dialsim.engine.post_log import Post
from dialsim.interface.errors import Refused
from dialsim.interface.model import Combined, NullAsAbsent, broken, given
from dialsim.scenario.fields import Number, Text, Whole, patterned
from dialsim.scenario.units import PositiveDuration, format_duration

MOST_FAULTS = 100

WhichPost = tuple[int, ...]
"""What tells POSTs of the webhook apart: the parts of the key, and the number (see `Post`)."""


@dataclass(slots=True, eq=False)
class InjectedFault:
    """One fault. `organization` and `campaign`, by position, are the only ones it strikes.

    `met` is how many it could have struck by now, `struck` how many of them it did.
    """

    number: int
    order: FaultOrder
    organization: int | None
    campaign: int | None
    met: int = 0
    struck: int = 0

    @property
    def left(self) -> int:
        """How many it is still to strike."""
        return self.order.next - self.struck

    def may_strike_post(self, organization: int, campaign: int) -> bool:
        """Whether it strikes webhooks, those of this campaign among them."""
        return (
            self.order.webhooks is not None
            and self.organization in (None, organization)
            and self.campaign in (None, campaign)
        )

    def may_strike_answer(self, organization: int, path: str) -> bool:
        """Whether it strikes answers, those to this request of an organization among them."""
        return (
            self.order.api is not None
            and self.organization in (None, organization)
            and (self.order.path is None or path.startswith(self.order.path))
        )


class Encounter(NamedTuple):
    """What a webhook or a request has to face: the faults it meets, and the one that strikes it."""

    met: tuple[int, ...] = ()
    struck: InjectedFault | None = None


class InjectedFaults:
    """All faults that were asked for and not cleared, the oldest first, spent ones too.

    One that could strike meets the faults in that order, until one of them strikes. Whether a fault
    does so is a matter of the sandbox's seed, the fault's number, and how many it has met before.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._faults: dict[int, InjectedFault] = {}
        self._fates: dict[WhichPost, WebhookFault | None] = {}  # of POSTs under way
        self._last = 0

    def __iter__(self) -> Iterator[InjectedFault]:
        return iter(self._faults.values())

    def add(self, order: FaultOrder, organization: int | None, campaign: int | None) -> None:
        """Take an order; 409 where there are too many faults already."""
        if len(self._faults) >= MOST_FAULTS:
            text = f"There are {MOST_FAULTS} faults already: clear some of them"
            raise Refused(409, "TOO_MANY_FAULTS", [text])
        self._last += 1
        self._faults[self._last] = InjectedFault(self._last, order, organization, campaign)

    def find(self, number: int) -> InjectedFault:
        """The fault of a number, from 1 on; 404 if there is none, or it was cleared."""
        if number not in self._faults:
            raise Refused(404, "FAULT_NOT_FOUND", ["Fault not found"])
        return self._faults[number]

    def newest(self) -> InjectedFault:
        """The one that was added last."""
        return self._faults[self._last]

    def clear(self, number: int | None) -> None:
        """Forget a fault, by number, or all of them. Their numbers are not used again."""
        if number is None:
            self._faults.clear()
        else:
            del self._faults[self.find(number).number]

    def for_post(self, post: Post) -> Encounter:
        """What a POST of the webhook has to face; nothing is counted yet.

        One that is under way has faced it already.
        """
        if which_post(post) in self._fates:
            return Encounter()
        organization, campaign = post.key[:2]
        return self._encounter(lambda fault: fault.may_strike_post(organization, campaign))

    def fate(self, post: Post) -> WebhookFault | None:
        """What happens to a POST under way, however often it is begun; None: nothing special."""
        return self._fates.get(which_post(post))

    def ended(self, post: Post) -> None:
        """A POST is not under way any more."""
        self._fates.pop(which_post(post), None)

    def for_answer(self, organization: int, path: str) -> Encounter:
        """What the answer to a request of an organization has to face; nothing is counted yet."""
        return self._encounter(lambda fault: fault.may_strike_answer(organization, path))

    def count(self, met: tuple[int, ...], struck: int | None, post: WhichPost | None) -> None:
        """Count an encounter, by the numbers of the faults; a POST's fate is sealed by it."""
        for number in met:
            self._faults[number].met += 1
        if struck is not None:
            self._faults[struck].struck += 1
        if post is not None:
            self._fates[post] = None if struck is None else self._faults[struck].order.webhooks

    def _encounter(self, may_strike: Callable[[InjectedFault], bool]) -> Encounter:
        met: list[int] = []
        for fault in self:
            if fault.left and may_strike(fault):
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
    """What tells a POST from all others, also after a restart."""
    return (*post.key, post.number)


WebhookFault = Literal["timeout", "refuse", "late", "twice"]
"""What may happen to a POST of the webhook.

`timeout`: nothing reaches the receiver, and the service waits in vain; `refuse`: the connection is
refused; `late`: the receiver gets the POST, but its answer counts as too late; `twice`: the
receiver gets it twice.
"""
ApiFault = Literal["error", "slow"]
"""What may happen to an answer: an error in its place, or the same answer later."""
ErrorStatus = Literal[500, 502, 503, 504]

MOST_STRIKES = 1_000_000
LONGEST_DELAY = 60_000
"""The most (ms, of real time) by which an answer is delayed."""


def _bearable(delay: int) -> int:
    if delay > LONGEST_DELAY:
        raise broken(f"must not be longer than {format_duration(LONGEST_DELAY)}")
    return delay


ApiPath = Annotated[str, patterned(r"/api(/\S*)?", "must be a path that begins with /api")]
_GOES_WITH = {
    "campaign": "webhooks",
    "path": "api",
    "status": "api error",
    "delay": "api slow",
}
_KINDS = {"webhooks", "api error", "api slow"}


class FaultOrder(Combined):
    """A fault of webhooks or of API answers: how often it strikes, and whom."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [given("webhooks"), given("api")]})

    webhooks: WebhookFault | None = Field(
        default=None, description="What happens to POSTs of the webhook."
    )
    api: ApiFault | None = Field(
        default=None, description="What happens to answers under /api, the key being right."
    )
    next: Annotated[Whole, Field(ge=1, le=MOST_STRIKES)] = Field(
        description="How many it strikes.", examples=[3]
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
        default=None, description="The status of an error, 503 if none is given."
    )
    delay: Annotated[PositiveDuration, AfterValidator(_bearable)] | None = Field(
        default=None, description="By how much an answer is slow, in real time.", examples=["2s"]
    )

    @model_validator(mode="before")
    @classmethod
    def _null_means_left_out(cls, order: Any) -> Any:
        if isinstance(order, Mapping):
            return {name: value for name, value in order.items() if value is not None}
        return order

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """There is one kind of fault, with what belongs to it."""
        named = {name for name, value in given.items() if value is not None}
        if len(named & {"webhooks", "api"}) != 1:
            yield "one of webhooks and api must be given"
            return
        kinds = {"webhooks"} if "webhooks" in named else {"api", f"api {given['api']}"}
        if kinds.isdisjoint(_KINDS):  # of what is no kind of answer, anything might go with it
            kinds |= _KINDS - {"webhooks"}
        for name, kind in _GOES_WITH.items():
            if name in named and kind not in kinds:
                yield f"{name} goes with {kind} alone"
        if given.get("api") == "slow" and "delay" not in named:
            yield "delay is required where api is slow"
