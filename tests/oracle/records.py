"""State of the second reading: calls, people, campaigns, organizations, and a log of changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from oracle.given import Past, Schedule, Share, Step

Transition = tuple[int, str, str, int, int, str | None, str, str | None, str]
CampaignRow = tuple[int, str, str, str, str, str]
Refused = tuple[int, str, str | None, str, str, str]

FINAL = ("COMPLETED", "CANCELLED", "EXPIRED")


@dataclass(eq=False)
class Call:
    """One call of one person; `moves_at` is its next automatic transition, only while INITIATED."""

    person: Person
    number: int
    due: int
    status: str = "SCHEDULED"
    phase: str | None = None
    queued_at: int = -1
    released: int = -1  # Q4: the how-manieth release of the run this was
    moves_at: int = -1
    step: Step | None = None

    @property
    def waiting(self) -> bool:
        """Not yet ringing (C4)."""
        return self.status in ("SCHEDULED", "QUEUED") or self.phase == "dialling"


@dataclass(eq=False)
class Person:
    """One recipient: `attempts` counts as P5 does; `retry_due` is the time of a scheduled retry
    (R2).

    `answered_until` is the end of the conversation, in the scenario or before it began (D3).
    """

    campaign: Campaign
    index: int
    tel: str
    script: list[Step]
    past: Past | None = None
    attempts: int = 0
    reached: bool = False
    answered_until: int | None = None
    retry_due: int | None = None
    calls: list[Call] = field(default_factory=list)

    @property
    def next_step(self) -> Step:
        """The script's step is the attempt's number, the last one repeating (P5)."""
        return self.script[min(self.attempts, len(self.script) - 1)]


@dataclass(eq=False)
class Campaign:
    """One campaign; its schedule request sets `schedule` and the instants."""

    organization: Organization
    position: int
    name: str
    agent: str
    people: list[Person] = field(default_factory=list)
    status: str = "DRAFT"
    schedule: Schedule | None = None
    start_at: int = 0
    first_due: int = 0
    has_run: bool = False
    deleted: bool = False
    share: Share = field(default_factory=Share)

    @property
    def final(self) -> bool:
        return self.status in FINAL

    def calls(self, *statuses: str) -> list[Call]:
        """Its calls in these statuses, in upload order."""
        return [c for person in self.people for c in person.calls if c.status in statuses]

    def waiting(self) -> list[Call]:
        """Its calls not yet ringing (C4)."""
        return [call for person in self.people for call in person.calls if call.waiting]

    @property
    def lines(self) -> int:
        """Its calls that are queued or under way (Q8, Q10)."""
        return len(self.calls("QUEUED", "INITIATED"))

    def held(self, now: int) -> int:
        """The lines that are kept for it, for the people who are not settled yet (Q11)."""
        open_statuses = ("SCHEDULED", "QUEUED", "INITIATED")
        left = sum(
            person.retry_due is not None or any(c.status in open_statuses for c in person.calls)
            for person in self.people
        )
        runs = self.status == "RUNNING" and self.inside_window(now)
        return min(self.share.reserved, left) if runs else 0

    def inside_window(self, now: int) -> bool:
        return self.schedule is not None and self.schedule.windows.open(now)

    def past_end(self, now: int) -> bool:
        end = self.schedule.end if self.schedule else None
        return end is not None and now >= end

    def may_run(self, now: int) -> bool:
        """True if C2's conditions hold."""
        return now >= self.start_at and self.inside_window(now) and not self.past_end(now)


@dataclass(eq=False)
class Organization:
    """One organization: its limit, its agents' setup times, and what Q3 and Q4 remember."""

    position: int
    name: str
    limit: int
    allowed: bool
    setup: dict[str, int]
    duplicate_window: int
    campaigns: list[Campaign] = field(default_factory=list)
    released_last: dict[float, int] = field(default_factory=dict)  # by priority, a position
    dialled_last: int | None = None  # instant

    def calls(self, status: str) -> list[Call]:
        return [call for campaign in self.campaigns for call in campaign.calls(status)]


@dataclass
class Reading:
    """Result of the second reading of a scenario; rows are ordered as T4 orders tables.

    A transition is (at, organization, campaign, recipient, call, from, to, phase, cause), a
    campaign's row (at, organization, campaign, from, to, cause), a refusal (at, organization,
    campaign, action, code, message); `stalled` holds (organization, campaign) (T5), `removed`
    (organization, campaign, recipient) (D3).
    """

    transitions: list[Transition]
    campaigns: list[CampaignRow]
    stalled: set[tuple[str, str]]
    refused: list[Refused]
    removed: set[tuple[str, str, int]]


class Book:
    """Log in which every change is made and recorded at once."""

    def __init__(self) -> None:
        self.organizations: list[Organization] = []
        self.refused: list[Refused] = []
        self.removed: set[tuple[str, str, int]] = set()
        self._transitions: list[tuple[tuple[int, ...], Transition]] = []
        self._campaign_rows: list[tuple[tuple[int, ...], CampaignRow]] = []

    def campaigns(self) -> list[Campaign]:
        return [campaign for o in self.organizations for campaign in o.campaigns]

    def create(self, person: Person, due: int, cause: str, now: int) -> None:
        """A new call of this person, SCHEDULED."""
        call = Call(person, len(person.calls) + 1, due)
        person.calls.append(call)
        self._write(call, None, cause, now)

    def move(self, call: Call, to: str, phase: str | None, cause: str, now: int) -> None:
        """A call's change of status or phase."""
        before, call.status, call.phase = call.status, to, phase
        self._write(call, before, cause, now)

    def _write(self, call: Call, before: str | None, cause: str, now: int) -> None:
        campaign, index = call.person.campaign, call.person.index
        organization, occurrence = campaign.organization, len(self._transitions)
        key = (now, organization.position, campaign.position, index, call.number, occurrence)
        names = (organization.name, campaign.name)
        change = (before, call.status, call.phase, cause)
        self._transitions.append((key, (now, *names, index, call.number, *change)))

    def turn(self, campaign: Campaign, to: str, cause: str, now: int) -> None:
        """A campaign's change of status; only a deletion may leave it as it is (C8)."""
        organization = campaign.organization
        key = (now, organization.position, campaign.position, len(self._campaign_rows))
        row = (now, organization.name, campaign.name, campaign.status, to, cause)
        self._campaign_rows.append((key, row))
        campaign.status = to
        campaign.has_run = campaign.has_run or to == "RUNNING"

    def reading(self, cut: bool) -> Reading:
        """Return all records; a run that clock.end cut off has no stalled campaigns (T5)."""
        left = [c for c in self.campaigns() if not c.final and c.status != "DRAFT" and not cut]
        return Reading(
            transitions=[row for _, row in sorted(self._transitions)],
            campaigns=[row for _, row in sorted(self._campaign_rows)],
            stalled={(campaign.organization.name, campaign.name) for campaign in left},
            refused=self.refused,
            removed=self.removed,
        )
