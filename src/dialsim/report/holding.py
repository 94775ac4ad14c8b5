"""What holds many runs back: the reason that most of them have, with the words of one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dialsim.experiments.run_figures import RunFigures
from dialsim.report.page import Fact
from dialsim.results.held_back import HeldBack


@dataclass(frozen=True, slots=True)
class Holding:
    """What `count` of `runs` runs are held back by; `example` is what the first of them says."""

    example: HeldBack
    count: int
    runs: int

    @property
    def reason(self) -> str:
        """The reason in a word or two: `Slots`, `Slots and pacing`."""
        return self.example.sentence.partition(": ")[0]

    @property
    def how_often(self) -> str:
        """`in all 50 runs`, `in 48 of 50 runs`."""
        if self.count == self.runs:
            return f"in all {self.runs} runs"
        return f"in {self.count} of {self.runs} runs"

    @property
    def said(self) -> str:
        """What the example says of it."""
        return self.example.sentence.partition(": ")[2]

    @property
    def detail(self) -> str:
        """How often, and in the words of one run."""
        often = f"{self.how_often[0].upper()}{self.how_often[1:]}"
        return f"{often}; in the first of them {self.said}"


def holding(
    runs: Sequence[RunFigures], organization: str | None = None, campaign: str | None = None
) -> Holding | None:
    """What holds back most runs, or a part of them; None where nothing was to be called.

    Without names that is the campaign that finishes last.
    """
    listed = [
        part.held_back
        for run in runs
        for part in run.scopes
        if part.held_back is not None
        and (part.organization, part.campaign) == (organization, campaign)
    ]
    causes = [frozenset({held.reason, *held.also}) for held in listed]
    if not causes:
        return None
    most, count = Counter(causes).most_common(1)[0]
    return Holding(listed[causes.index(most)], count, len(listed))


def holding_fact(question: str, found: Holding | None, campaigns: int) -> Fact:
    """The answer; it names the campaign where there are several."""
    if found is None:
        return Fact(question, "Nothing")
    which = f" ({found.example.campaign})" if campaigns > 1 else ""
    return Fact(question, f"{found.reason}{which}", found.detail)
