"""Dials outside the scenario's compliance rules, by rule, campaign and person."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.log_reader import NOT_HAPPENED
from dialsim.interface.instants import DAY, MINUTE, THAI_OFFSET, thai_date
from dialsim.scenario.calendar import DayClasses, Days
from dialsim.scenario.fields import national
from dialsim.scenario.people import GeneratedPeople

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.results.campaigns import Position
    from dialsim.results.run_view import CampaignResult, RunView

COMPLIANCE = "compliance_"
"""Prefix of the figures of compliance rules: `compliance_<rule>_<count>`."""
COUNTS = ("dials", "outside", "people_outside", "repeated", "people_repeated", "repeated_answered")
"""The counts of each rule."""


def compliance_figure(rule: str, count: str) -> str:
    """Return the name of a figure of a rule, such as `compliance_one a day_repeated`."""
    return f"{COMPLIANCE}{rule}_{count}"


Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compliance:
    """Compliance of one campaign with one rule.

    Of `dials`, `outside` were made outside the contact times, to `people_outside`. `repeated`
    exceeded the contacts per day, to `people_repeated`; of these `repeated_answered` were answered
    although the limit had been answered before on that day. People are phone numbers, counted over
    all campaigns of the organization.
    """

    rule: str
    organization: str
    campaign: str
    dials: int
    outside: int
    people_outside: int
    repeated: int
    people_repeated: int
    repeated_answered: int


class _Dials(NamedTuple):
    """Dials of an organization's campaigns, in order of time."""

    campaign: Integers
    recipient: Integers
    call: Integers
    at: Integers
    answered: Flags
    person: Integers

    @property
    def day(self) -> Integers:
        """Thai days since 1970."""
        return (self.at + THAI_OFFSET) // DAY


class Breaches(NamedTuple):
    """Dials of an organization outside a rule, by kind of breach."""

    rule: str
    organization: int
    dials: _Dials
    outside: Flags
    repeated: Flags
    repeated_answered: Flags

    def counts(self, campaigns: Sequence[int]) -> dict[str, int]:
        """Return the counts of some campaigns of the organization."""
        own = np.isin(self.dials.campaign, campaigns)
        outside, repeated = own & self.outside, own & self.repeated
        person = self.dials.person
        return {
            "dials": int(own.sum()),
            "outside": int(outside.sum()),
            "people_outside": len(np.unique(person[outside])),
            "repeated": int(repeated.sum()),
            "people_repeated": len(np.unique(person[repeated])),
            "repeated_answered": int((own & self.repeated_answered).sum()),
        }


def compliance(reading: RunView) -> tuple[Compliance, ...]:
    """Return a row for each rule and campaign; nothing without rules."""
    return tuple(
        Compliance(
            rule=breaches.rule,
            organization=owner.name,
            campaign=campaign.name,
            **breaches.counts([campaign.position]),
        )
        for breaches in reading.breaches
        for owner in [reading.world.organizations[breaches.organization]]
        for campaign in owner.campaigns
    )


def compliance_figures(reading: RunView, positions: Sequence[Position]) -> dict[str, int]:
    """Return the counts of some campaigns together, by the names of their figures.

    People are counted once in each organization.
    """
    counted = Counter[str]()
    for breaches in reading.breaches:
        own = [campaign for owner, campaign in positions if owner == breaches.organization]
        counted.update(
            {compliance_figure(breaches.rule, name): count
             for name, count in breaches.counts(own).items()}
        )  # fmt: skip
    return dict(counted)


def compliance_table(reading: RunView) -> pd.DataFrame:
    """Return a table with a row for each dial outside a rule."""
    import pandas as pd

    frames = []
    for breaches in reading.breaches:
        chosen = np.flatnonzero(breaches.outside | breaches.repeated)
        owner, dials = reading.world.organizations[breaches.organization], breaches.dials
        names = np.array([campaign.name for campaign in owner.campaigns], dtype=object)
        frames.append(
            pd.DataFrame(
                {
                    "rule": breaches.rule,
                    "organization": owner.name,
                    "campaign": names[dials.campaign[chosen]],
                    "recipient": dials.recipient[chosen],
                    "call": dials.call[chosen],
                    "initiated_at": pd.to_datetime(dials.at[chosen], unit="ms", utc=True),
                    "outside": breaches.outside[chosen],
                    "repeated": breaches.repeated[chosen],
                    "repeated_answered": breaches.repeated_answered[chosen],
                }
            )
        )
    columns = ["rule", "organization", "campaign", "recipient", "call", "initiated_at"]
    columns += ["outside", "repeated", "repeated_answered"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def find_breaches(reading: RunView) -> Iterator[Breaches]:
    """Yield the breaches of each rule in each organization."""
    rules = reading.world.scenario.compliance
    if not rules:
        return
    days = Days(reading.world.scenario.calendar)
    for owner in reading.world.organizations:
        dials = _dials(reading.of_organization(owner.position))
        for rule in rules:
            nothing = np.zeros(len(dials.at), dtype=np.bool_)
            outside = nothing if rule.contact is None else ~_inside(rule.contact, dials, days)
            repeated = repeated_answered = nothing
            if rule.per_day is not None:
                repeated = _beyond(dials, np.ones_like(nothing), rule.per_day)
                repeated_answered = _beyond(dials, dials.answered, rule.per_day)
            yield Breaches(rule.name, owner.position, dials, outside, repeated, repeated_answered)


def _dials(campaigns: Sequence[CampaignResult]) -> _Dials:
    parts = []
    for own, people in zip(campaigns, _people(campaigns), strict=True):
        calls = own.engine_calls
        dialled = calls.initiated_at != NOT_HAPPENED
        recipient = calls.recipient[dialled].astype(np.int64)
        parts.append(
            (
                np.full(len(recipient), own.block.position, dtype=np.int64),
                recipient,
                calls.call[dialled].astype(np.int64),
                calls.initiated_at[dialled],
                calls.started_at[dialled] != NOT_HAPPENED,
                people[recipient],
            )
        )
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else []
    if not columns:
        columns = [np.empty(0, dtype=np.int64)] * 6
    # The last key of `lexsort` counts most: by instant, then campaign, then recipient.
    order = np.lexsort((columns[1], columns[0], columns[3]))
    return _Dials(*(column[order] for column in columns))


def _people(campaigns: Sequence[CampaignResult]) -> list[Integers]:
    """Return, by campaign, a number for each recipient, equal for equal phone numbers."""
    import pandas as pd

    people = [own.block.people for own in campaigns]
    if len(people) == 1 and isinstance(people[0], GeneratedPeople):
        # Generated numbers are distinct, so comparing them is unnecessary.
        return [np.arange(people[0].count)]
    tels = [[national(tel) for tel in each.tels()] for each in people]
    codes, _ = pd.factorize(np.array([tel for listed in tels for tel in listed], dtype=object))
    ends = np.cumsum([len(listed) for listed in tels])
    return [codes[end - len(listed) : end].astype(np.int64)
            for listed, end in zip(tels, ends, strict=True)]  # fmt: skip


def _inside(contact: DayClasses, dials: _Dials, days: Days) -> Flags:
    """Return True for dials in a contact time, whose end is excluded (T3)."""
    # Each day is classified once, not each dial.
    numbers, of_day = np.unique(dials.day, return_inverse=True)
    alike = defaultdict(list)
    for index, number in enumerate(numbers.tolist()):
        # Days of one class share their contact times, so one comparison serves all of them.
        alike[contact.of(thai_date(number * DAY - THAI_OFFSET), days)].append(index)
    time = (dials.at + THAI_OFFSET) % DAY
    inside = np.zeros(len(dials.at), dtype=np.bool_)
    for spans, indexes in alike.items():
        on_these = np.isin(of_day, indexes)
        for start, end in spans:
            inside |= on_these & (time >= start * MINUTE) & (time < end * MINUTE)
    return inside


def _beyond(dials: _Dials, counts: Flags, most: int) -> Flags:
    """Return True for dials beyond the number that a person may get on a day, in order of time."""
    rows = np.flatnonzero(counts)
    # Sorted by person, then day; `rows` are in order of time.
    order = rows[np.lexsort((rows, dials.day[rows], dials.person[rows]))]
    person, day = dials.person[order], dials.day[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (person[1:] != person[:-1]) | (day[1:] != day[:-1])
    begins = np.flatnonzero(first)
    # Position of each dial among the person's dials of that day, from 0.
    rank = np.arange(len(order)) - np.repeat(begins, np.diff([*begins, len(order)]))
    beyond = np.zeros(len(dials.at), dtype=np.bool_)
    beyond[order[rank >= most]] = True
    return beyond
