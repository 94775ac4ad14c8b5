"""Dials outside the scenario's compliance rules, by rule, campaign and person."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Breaches(NamedTuple):
    """Dials of an organization by a rule, in order of time, with flags for each kind of breach.

    The columns of `dials` are campaign (position), recipient, call, at (ms), answered, person, day
    (Thai days since 1970), outside, repeated, and repeated_answered.
    """

    rule: str
    organization: int
    dials: pd.DataFrame

    def counts(self, campaigns: Sequence[int]) -> dict[str, int]:
        """Return the counts of some campaigns of the organization."""
        own = self.dials[self.dials["campaign"].isin(campaigns)]
        return {
            "dials": len(own),
            "outside": int(own["outside"].sum()),
            "people_outside": own.loc[own["outside"], "person"].nunique(),
            "repeated": int(own["repeated"].sum()),
            "people_repeated": own.loc[own["repeated"], "person"].nunique(),
            "repeated_answered": int(own["repeated_answered"].sum()),
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

    columns = ["rule", "organization", "campaign", "recipient", "call", "initiated_at"]
    columns += ["outside", "repeated", "repeated_answered"]
    frames = []
    for breaches in reading.breaches:
        owner = reading.world.organizations[breaches.organization]
        names = np.array([campaign.name for campaign in owner.campaigns], dtype=object)
        chosen = breaches.dials[breaches.dials["outside"] | breaches.dials["repeated"]]
        frame = chosen.assign(
            rule=breaches.rule,
            organization=owner.name,
            campaign=names[chosen["campaign"]],
            initiated_at=pd.to_datetime(chosen["at"], unit="ms", utc=True),
        )
        frames.append(frame[columns])
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def find_breaches(reading: RunView) -> Iterator[Breaches]:
    """Yield the breaches of each rule in each organization."""
    rules = reading.world.scenario.compliance
    if not rules:
        return
    days = reading.world.scenario.days
    for owner in reading.world.organizations:
        dials = _dials(reading.of_organization(owner.position))
        answered = dials[dials["answered"]]
        for rule in rules:
            contact, most = rule.contact, len(dials) if rule.per_day is None else rule.per_day
            found = dials.assign(
                outside=False if contact is None else ~_inside(contact, dials, days),
                repeated=_nth_of_day(dials) >= most,
                repeated_answered=False,
            )
            found.loc[answered.index[_nth_of_day(answered) >= most], "repeated_answered"] = True
            yield Breaches(rule.name, owner.position, found)


def _nth_of_day(dials: pd.DataFrame) -> pd.Series[int]:
    """Return the position of each dial among those to its person on its day, from 0."""
    return dials.groupby(["person", "day"], sort=False).cumcount()


def _dials(campaigns: Sequence[CampaignResult]) -> pd.DataFrame:
    """Return the dials of an organization's campaigns, in order of time."""
    import pandas as pd

    frames = [_NO_DIALS]
    for own, people in zip(campaigns, _people(campaigns), strict=True):
        calls = own.engine_calls
        dialled = calls.initiated_at != NOT_HAPPENED
        recipient = calls.recipient[dialled]
        at = calls.initiated_at[dialled]
        frames.append({
            "campaign": np.full(len(at), own.block.position),
            "recipient": recipient.astype(np.int64),
            "call": calls.call[dialled].astype(np.int64),
            "at": at,
            "answered": calls.started_at[dialled] != NOT_HAPPENED,
            "person": people[recipient],
            "day": (at + THAI_OFFSET) // DAY,
        })  # fmt: skip
    columns = {name: np.concatenate([frame[name] for frame in frames]) for name in _NO_DIALS}
    order = ["at", "campaign", "recipient"]
    return pd.DataFrame(columns).sort_values(order, kind="stable", ignore_index=True)


_NO_DIALS: dict[str, NDArray[Any]] = {
    name: np.empty(0, np.bool_ if name == "answered" else np.int64)
    for name in ("campaign", "recipient", "call", "at", "answered", "person", "day")
}


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


def _inside(contact: DayClasses, dials: pd.DataFrame, days: Calendar) -> NDArray[np.bool_]:
    """Return True for dials in a contact time, whose end is excluded (T3)."""
    # Each day is classified once, not each dial.
    alike = defaultdict(list)
    for day in dials["day"].unique().tolist():
        # Days of one class share their contact times, so one comparison serves all of them.
        alike[contact.of(thai_date(day * DAY - THAI_OFFSET), days)].append(day)
    time = (dials["at"].to_numpy() + THAI_OFFSET) % DAY
    inside = np.zeros(len(dials), dtype=np.bool_)
    for spans, numbers in alike.items():
        on_these = dials["day"].isin(numbers).to_numpy()
        for start, end in spans:
            inside |= on_these & (time >= start * MINUTE) & (time < end * MINUTE)
    return inside
