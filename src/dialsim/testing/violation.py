"""The rules as a checker: what in a run breaks which of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dialsim.testing.bench import Traced, trace_of
from dialsim.testing.sketch import stamp

SHOWN = 20
"""How many violations a failing assertion prints."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of a rule of the rule book (`docs/rules.md`).

    `campaign`, `recipient` (position from 0) and `call` (from 1) are None where a breach concerns
    an organization's, a campaign's or a person's calls taken together; `at` is in ms, UTC.
    """

    rule: str
    organization: str
    campaign: str | None
    recipient: int | None
    call: int | None
    at: int
    text: str

    def __str__(self) -> str:
        who = self.organization if self.campaign is None else f"{self.organization}/{self.campaign}"
        if self.recipient is not None:
            who += f" recipient {self.recipient}"
        if self.call is not None:
            who += f" call {self.call}"
        return f"{self.rule} at {stamp(self.at)} (Thai time), {who}: {self.text}"


def violations(run: Traced) -> list[Violation]:
    """Every breach of a rule that a run shows, in order of time; empty for a sound one.

    Checked are T3, T5, C1 to C8, Q1 to Q6, P1 to P5, R1 to R3 and D3, each as far as a trace alone
    can show it: of Q3 the order inside a campaign. The time it takes is linear in the size of the
    trace.

    A result is checked as a run of its file from start to end. A `Simulation` may stand anywhere,
    and may have been given commands: what held in an instant before a command counts as well.
    """
    return sorted(_found(run), key=lambda violation: violation.at)


def assert_no_violations(run: Traced) -> None:
    """Raise AssertionError with the first breaches of rules that a run shows, if there are any."""
    __tracebackhide__ = True
    found = violations(run)
    if found:
        some = [str(violation) for violation in found[:SHOWN]]
        more = [f"… and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        rules = ", ".join(dict.fromkeys(violation.rule for violation in found))
        raise AssertionError("\n".join([f"the run breaks {rules}:", *some, *more]))


def _found(run: Traced) -> Iterator[Violation]:
    from dialsim.engine.simulation import Simulation
    from dialsim.testing.checks import calls, campaigns, numbers, order, retries, slots
    from dialsim.testing.checks.record import Run

    live = isinstance(run, Simulation)
    for organization in Run(trace_of(run), live).organizations():
        for campaign in organization.campaigns:
            yield from campaigns.violations(campaign)
            yield from calls.violations(campaign)
            yield from retries.violations(campaign)
            yield from numbers.violations(campaign)
            yield from order.violations(campaign)
        yield from slots.violations(organization)
