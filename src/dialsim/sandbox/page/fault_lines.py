"""Faults as the page lists them, and the form by which one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.fault_order import FaultOrder
from dialsim.sandbox.injected_faults import InjectedFault
from dialsim.scenario.units import format_duration

KINDS = {
    "api=error&status=503": "API answers: 503 in their place",
    "api=error&status=500": "API answers: 500 in their place",
    "api=slow&delay=2s": "API answers: 2 s late",
    "api=slow&delay=15s": "API answers: 15 s late",
    "webhooks=timeout": "Webhooks: lost on the way, no answer",
    "webhooks=refuse": "Webhooks: connection refused",
    "webhooks=late": "Webhooks: received, answer too late",
    "webhooks=twice": "Webhooks: received twice",
}
"""What can be asked for by the form; the control plane takes any status, delay and path."""

SHARES = {"": "each of them", "0.5": "every other, by chance", "0.1": "one in ten, by chance"}

_POSTS = {
    "timeout": "webhooks are lost on the way",
    "refuse": "the webhook's connection is refused",
    "late": "webhooks are received and answered too late",
    "twice": "webhooks are received twice",
}


@dataclass(frozen=True, slots=True)
class FaultLine:
    """One fault: what it does to whom, and what became of it."""

    number: int
    text: str
    struck: int
    met: int
    next: int

    @classmethod
    def of(cls, exchange: Exchange, fault: InjectedFault) -> FaultLine:
        """A fault as it stands now."""
        return cls(
            number=fault.number,
            text=f"{_what(fault.order)}{_whose(exchange, fault)}",
            struck=fault.struck,
            met=fault.met,
            next=fault.order.next,
        )

    @property
    def spent(self) -> bool:
        """Whether it strikes nobody any more."""
        return self.struck == self.next


def body_of(form: Mapping[str, str]) -> dict[str, object]:
    """A form as the body of a request for a fault; what is no number is left for the check."""
    fields = {name: value for name, value in form.items() if value and name != "kind"}
    fields |= dict(parse_qsl(form.get("kind", "")))
    return {
        name: number_of(value) if name in ("next", "share", "status") else value
        for name, value in fields.items()
    }


def number_of(text: str) -> object:
    """The number that a field of a form holds; what is none stays a text."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


def _what(order: FaultOrder) -> str:
    if order.webhooks is not None:
        what = _POSTS[order.webhooks]
    else:
        answers = "API answers" + (f" of {order.path}…" if order.path else "")
        done = f"are {order.status or 503}"
        if order.delay is not None:
            done = f"come {format_duration(order.delay)} late"
        what = f"{answers} {done}"
    return what if order.share == 1 else f"{what}, with a chance of {order.share:.0%}"


def _whose(exchange: Exchange, fault: InjectedFault) -> str:
    if fault.organization is None:
        return ""
    account = exchange.accounts[fault.organization]
    if fault.campaign is None:
        return f", {account.block.name} alone"
    return f", {account.desks[fault.campaign].campaign.block.name} ({account.block.name}) alone"
