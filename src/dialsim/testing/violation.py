"""A breach of a rule, as the checks report it."""

from __future__ import annotations

from dataclasses import dataclass

from dialsim.testing.sketch import stamp


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
