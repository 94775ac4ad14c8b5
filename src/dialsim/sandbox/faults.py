"""Injected faults: their settings, their strikes so far, and the choice of their next targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.behaviour import durations
from dialsim.engine.chance import Purpose, generator
from dialsim.interface.payload import Post, PostKey
from dialsim.sandbox import failures as fail
from dialsim.scenario.service import FaultOrder, StandingFault, WebhookFault

WhichPost = tuple[int, ...]
"""Key of a webhook POST: the parts of the result's key, and the number (see `Post`)."""


@dataclass(slots=True, eq=False)
class InjectedFault:
    """Injected fault. `organization` and `campaign` are indexes that limit its targets.

    It strikes from the instant `begins` (ms). `buckets` holds the instant (ms) at which the bucket
    of a limit was, or will be, full, by organization.
    """

    number: int
    order: StandingFault
    begins: int
    organization: int | None
    campaign: int | None
    met: int = 0
    struck: int = 0
    buckets: dict[int, float] = field(default_factory=dict)

    @property
    def is_standing(self) -> bool:
        """True for a fault of the scenario, false for an order of an operator."""
        return not isinstance(self.order, FaultOrder)

    @property
    def until(self) -> int | None:
        """Instant (ms) at which the fault ends; None if no instant ends it."""
        order = self.order
        return None if order.lasts is None or order.every else self.begins + order.lasts

    @property
    def left(self) -> int | None:
        """Number of strikes left, or None if only time ends the fault."""
        return None if self.order.next is None else self.order.next - self.struck

    def is_over(self, at: int) -> bool:
        """True if the fault has ended at an instant (ms)."""
        return self.left == 0 or (self.until is not None and at >= self.until)

    def strikes_at(self, at: int) -> bool:
        """True if the fault may strike at an instant (ms)."""
        since, order = at - self.begins, self.order
        if since > 0 and order.every is not None:
            since %= order.every
        return self.left != 0 and since >= 0 and (order.lasts is None or since < order.lasts)

    def wait(self, organization: int, at: int) -> int:
        """Return the time (ms) until the bucket of a limit holds a token; 0 if it holds one."""
        full_at = self.buckets.get(organization, at)
        tokens_back = ((self.order.burst or 1) - 1) * self._token
        return max(ceil(round(full_at - tokens_back - at, 6)), 0)

    def take_token(self, organization: int, at: int) -> None:
        """Take a token out of the bucket of a limit at an instant (ms)."""
        # The instant at which the bucket is full stands for its content: it needs no update as time
        # passes.
        self.buckets[organization] = max(self.buckets.get(organization, at), at) + self._token

    @property
    def _token(self) -> float:
        return 1000 / (self.order.requests_per_second or 1)

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
    """Faults that a webhook or a request met, by number, and the fault that struck it."""

    met: tuple[int, ...] = ()
    struck: InjectedFault | None = None


class InjectedFaults:
    """Faults that were not cleared, including expired ones: the scenario's first, then by age."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._faults: dict[int, InjectedFault] = {}
        self._fates: dict[WhichPost, WebhookFault | None] = {}  # of POSTs under way
        self._held: dict[WhichPost, int] = {}  # when (ms) POSTs leave that are delayed
        self._last = 0

    def __iter__(self) -> Iterator[InjectedFault]:
        return iter(self._faults.values())

    def add(
        self, order: StandingFault, organization: int | None, campaign: int | None, at: int
    ) -> None:
        """Add a fault at an instant (ms); 409 if there are too many faults."""
        if len(self._faults) >= fail.MOST_FAULTS:
            raise fail.TOO_MANY_FAULTS.refused()
        self._last += 1
        begins = at if order.at is None else order.at
        self._faults[self._last] = InjectedFault(self._last, order, begins, organization, campaign)

    def find(self, number: int) -> InjectedFault:
        """Return the fault with a number, from 1; 404 for an unknown or cleared fault."""
        if number not in self._faults:
            raise fail.NO_FAULT.refused()
        return self._faults[number]

    def newest(self) -> InjectedFault:
        """Fault that was added last."""
        return self._faults[self._last]

    def clear(self, number: int | None) -> None:
        """Remove a fault, given its number, or all faults. Their numbers are not used again."""
        if number is None:
            self._faults.clear()
        else:
            del self._faults[self.find(number).number]

    def for_post(self, post: Post, before: Callable[[], PostKey | None]) -> Encounter:
        """Return the faults of a webhook POST without counting a strike.

        A POST under way has met its faults already. `before` returns the key of the previous result
        of the same recipient, or None; it is called only for faults that need the key.
        """
        # The fate of a POST under way is sealed: a retry of the same number after a restart must
        # not meet the faults twice.
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
        """Forget the faults of a POST that is no longer under way."""
        self._fates.pop(which_post(post), None)
        self._held.pop(which_post(post), None)

    def for_answer(self, organization: int, path: str, at: int) -> Encounter:
        """Return the faults of an answer to an organization's request without counting a strike."""

        def may_strike(fault: InjectedFault) -> bool:
            return fault.may_strike_answer(organization, path)

        return self._encounter(may_strike, at, organization)

    def count(
        self,
        met: tuple[int, ...],
        struck: int | None,
        at: int,
        *,
        post: WhichPost | None = None,
        caller: int | None = None,
    ) -> None:
        """Count an encounter at an instant (ms), by the numbers of the faults.

        Fixes the fault of a POST, or takes tokens of the caller of a request, given its index.
        """
        for number in met:
            fault = self._faults[number]
            fault.met += 1
            if caller is not None and number != struck and fault.order.api == "limit":
                fault.take_token(caller, at)
        striker = None if struck is None else self._faults[struck]
        if striker is not None:
            striker.struck += 1
        if post is not None:
            self._fates[post] = None if striker is None else striker.order.webhooks
            if striker is not None and striker.order.webhooks == "delayed":
                self._held[post] = at + self.delay(striker)

    def delay(self, fault: InjectedFault) -> int:
        """Return the delay (ms) of the request or webhook that a fault has just struck."""
        order = fault.order
        if order.delay is None:
            return 0
        # The first uniform decided whether the fault strikes, the second decides how long it
        # delays.
        delays = durations(order.delay, self._draws(fault, fault.met - 1)[1:])
        return min(int(delays[0]), order.longest_delay)

    def _encounter(
        self, may_strike: Callable[[InjectedFault], bool], at: int, caller: int | None = None
    ) -> Encounter:
        met: list[int] = []
        # Orders of operators come before the faults of the scenario; sorting is stable, so age
        # decides among equals.
        for fault in sorted(self, key=lambda fault: fault.is_standing):
            if fault.strikes_at(at) and may_strike(fault):
                met.append(fault.number)
                if caller is not None and fault.order.api == "limit" and not fault.wait(caller, at):
                    continue
                if fault.order.share == 1 or self._draws(fault, fault.met)[0] < fault.order.share:
                    return Encounter(tuple(met), fault)
        return Encounter(tuple(met))

    def _draws(self, fault: InjectedFault, met: int) -> NDArray[np.float64]:
        """Return two uniforms of an encounter: for the share, and for the delay."""
        key = (Purpose.INJECTED_FAULT, fault.number, met)
        return np.random.Generator(generator(self._seed, key)).random(2)


def which_post(post: Post) -> WhichPost:
    """Return the key of a POST, which stays the same after a restart."""
    return (*post.key, post.number)
