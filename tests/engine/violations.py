"""What a trace may never show: every rule that can be checked on a trace alone, chance or not.

The checks share no code with the engine but the names of a trace's parts and its windows. They are
for traces of a file: a command from outside comes after an instant's work, which they don't expect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dialsim.engine.trace import Trace
from dialsim.interface.instants import format_instant


class Violation(NamedTuple):
    """One breach: of which rule, when, by which campaign or call, and how."""

    rule: str
    at: int
    who: str
    how: str

    def __str__(self) -> str:
        return f"{self.rule} at {format_instant(self.at)}, {self.who}: {self.how}"


def violations(trace: Trace) -> Iterator[Violation]:
    """Every breach in a trace."""
    from engine import call_checks, campaign_checks, slot_checks
    from engine.records import records

    for organization in records(trace):
        for campaign in organization.campaigns:
            yield from campaign_checks.violations(campaign)
            yield from call_checks.violations(campaign)
        yield from slot_checks.violations(organization)


def assert_no_violations(trace: Trace) -> None:
    """Raise AssertionError with the first breaches, if there are any."""
    found = [str(violation) for violation, _ in zip(violations(trace), range(20), strict=False)]
    assert not found, "\n".join(["", *found])
