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
from dialsim.scenario.calendar import Calendar, DayClasses
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Compliance:
    """Compliance of one campaign with one rule.

    Of `dials`, `outside` were made outside the contact times, to `people_outside`. `repeated`
    exceeded the contacts per day, to `people_repeated`; of these, `repeated_answered` were answered
    after as many answered dials of that day as the limit allows. People are phone numbers, counted
    over all campaigns of the organization.
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


class DialTable(NamedTuple):
    """Dials of an organization in order of time, as columns.

    `day` counts Thai days since 1970. `nth` is the position of a dial among those to its person on
    its day, from 0, and `nth_answered` its position among the answered ones, -1 if it was not
    answered.
    """

    # Arrays and not a table: pandas takes milliseconds for each count, for each of many runs.
    campaign: NDArray[np.int64]
    recipient: NDArray[np.int64]
    call: NDArray[np.int64]
    at: NDArray[np.int64]
    person: NDArray[np.int64]
    day: NDArray[np.int64]
    nth: NDArray[np.int64]
    nth_answered: NDArray[np.int64]


class Breaches(NamedTuple):
    """Dials of an organization, and which of them break a rule."""

    rule: str
    organization: int
    dials: DialTable
    outside: NDArray[np.bool_]
    repeated: NDArray[np.bool_]
    repeated_answered: NDArray[np.bool_]

    def counts(self, campaigns: Sequence[int]) -> dict[str, int]:
        """Return the counts of some campaigns of the organization."""
        own = np.isin(self.dials.campaign, campaigns)
        outside, repeated = own & self.outside, own & self.repeated
        return {
            "dials": int(np.count_nonzero(own)),
            "outside": int(np.count_nonzero(outside)),
            "people_outside": len(np.unique(self.dials.person[outside])),
            "repeated": int(np.count_nonzero(repeated)),
            "people_repeated": len(np.unique(self.dials.person[repeated])),
            "repeated_answered": int(np.count_nonzero(own & self.repeated_answered)),
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


_DTYPES = {
    **dict.fromkeys(("rule", "organization", "campaign"), "str"),
    **dict.fromkeys(("recipient", "call"), "int32"),
    "initiated_at": "datetime64[ms, UTC]",
    **dict.fromkeys(("outside", "repeated", "repeated_answered"), "bool"),
}
"""Types of the columns, also for a table without rows."""


def compliance_table(reading: RunView) -> pd.DataFrame:
    """Return a table with a row for each dial outside a rule."""
    import pandas as pd

    frames = []
    for found in reading.breaches:
        owner, dials = reading.world.organizations[found.organization], found.dials
        names = np.array([campaign.name for campaign in owner.campaigns], dtype=object)
        chosen = found.outside | found.repeated
        frame = pd.DataFrame({
            "rule": found.rule,
            "organization": owner.name,
            "campaign": names[dials.campaign[chosen]],
            "recipient": dials.recipient[chosen],
            "call": dials.call[chosen],
            "initiated_at": pd.to_datetime(dials.at[chosen], unit="ms", utc=True),
            "outside": found.outside[chosen],
            "repeated": found.repeated[chosen],
            "repeated_answered": found.repeated_answered[chosen],
        })  # fmt: skip
        frames.append(frame)
    empty = pd.DataFrame(columns=[*_DTYPES])
    return (pd.concat(frames, ignore_index=True) if frames else empty).astype(_DTYPES)


def find_breaches(reading: RunView) -> Iterator[Breaches]:
    """Yield the breaches of each rule in each organization."""
    rules = reading.world.scenario.compliance
    if not rules:
        return
    days = reading.world.scenario.days
    for owner in reading.world.organizations:
        dials = _dials(reading.of_organization(owner.position))
        for rule in rules:
            contact, most = rule.contact, len(dials.at) if rule.per_day is None else rule.per_day
            inside = contact is None or _inside(contact, dials, days)
            yield Breaches(
                rule.name,
                owner.position,
                dials,
                outside=np.broadcast_to(np.logical_not(inside), len(dials.at)),
                repeated=dials.nth >= most,
                repeated_answered=dials.nth_answered >= most,
            )


def _dials(campaigns: Sequence[CampaignResult]) -> DialTable:
    """Return the dials of an organization's campaigns, in order of time."""
    columns = [np.empty((6, 0), dtype=np.int64)]
    for own, people in zip(campaigns, _people(campaigns), strict=True):
        calls = own.engine_calls
        dialled = calls.initiated_at != NOT_HAPPENED
        recipient = calls.recipient[dialled]
        columns.append(
            np.array([
                calls.initiated_at[dialled],
                np.full(len(recipient), own.block.position),
                recipient,
                calls.call[dialled],
                people[recipient],
                calls.started_at[dialled] != NOT_HAPPENED,
            ], dtype=np.int64)
        )  # fmt: skip
    together = np.concatenate(columns, axis=1)
    in_order = np.lexsort(together[2::-1])  # by instant, then campaign, then recipient
    at, campaign, recipient, call, person, answered = together[:, in_order]
    day = (at + THAI_OFFSET) // DAY
    nth_answered = np.full(len(at), -1)
    talked = np.flatnonzero(answered)
    nth_answered[talked] = _nth_of_day(person[talked], day[talked])
    return DialTable(
        campaign, recipient, call, at, person, day, _nth_of_day(person, day), nth_answered
    )


def _nth_of_day(person: NDArray[np.int64], day: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each dial among those to its person on its day, from 0."""
    if len(person) == 0:
        return np.empty(0, dtype=np.int64)
    # The sort is stable, so the dials of a person and a day stay in order of time.
    order = np.lexsort((day, person))
    person, day = person[order], day[order]
    differs = (person[1:] != person[:-1]) | (day[1:] != day[:-1])
    first = np.concatenate([[0], np.flatnonzero(differs) + 1])
    nth = np.empty(len(order), dtype=np.int64)
    nth[order] = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    return nth


def _people(campaigns: Sequence[CampaignResult]) -> list[NDArray[np.int64]]:
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


def _inside(contact: DayClasses, dials: DialTable, days: Calendar) -> NDArray[np.bool_]:
    """Return True for dials in a contact time, whose end is excluded (T3)."""
    # Each day is classified once, not each dial.
    alike = defaultdict(list)
    for day in np.unique(dials.day).tolist():
        # Days of one class share their contact times, so one comparison serves all of them.
        alike[contact.of(thai_date(day * DAY - THAI_OFFSET), days)].append(day)
    time = (dials.at + THAI_OFFSET) % DAY
    inside = np.zeros(len(dials.at), dtype=np.bool_)
    for spans, numbers in alike.items():
        on_these = np.isin(dials.day, numbers)
        for start, end in spans:
            inside |= on_these & (time >= start * MINUTE) & (time < end * MINUTE)
    return inside
