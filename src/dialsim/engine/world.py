"""The world: a scenario compiled into plain numbers, one block per organization and campaign.

`Continuation` is the state in which people with a history enter a campaign (C1), for both engines.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import inf
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dialsim.engine.behaviour import Chances, Reactions
from dialsim.engine.chance import Draws, campaign_id
from dialsim.engine.rules import ENDINGS, LOST_IN_QUEUE, REACHED, calls_again, retry_due
from dialsim.errors import DialsimError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dialsim.interface.schedule import ScheduleRequest
    from dialsim.scenario.additions import Surroundings
    from dialsim.scenario.campaign import Campaign, Past, Recipients
    from dialsim.scenario.organization import Agent, Organization
    from dialsim.scenario.people import People
    from dialsim.scenario.problems import Remark
    from dialsim.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class CampaignShare:
    """A campaign's share of the lines of its organization (Q7 to Q11)."""

    priority: float
    weight: int
    reserved: int
    at_most: float
    counts_lines: bool

    @classmethod
    def of(cls, campaign: Campaign) -> CampaignShare:
        """Read the settings of a campaign; without `priority` it comes last, without `atMost` it
        has no limit.
        """
        return cls(
            priority=inf if campaign.priority is None else campaign.priority,
            weight=campaign.weight,
            reserved=campaign.reserved,
            at_most=inf if campaign.at_most is None else campaign.at_most,
            counts_lines=campaign.counts_lines,
        )


@dataclass(slots=True)
class CampaignBlock:
    """One campaign: recipients (`people`, in upload order), agent and random draws.

    `id` is fixed or derived from the seed. `created_at` is the instant (ms) of the upload:
    clock.start for the scenario's campaigns (F2). `continues` is True if first calls may be due
    before the scenario begins, because this or another campaign of the organization in the file has
    histories (C1). `value` is the value of a result by outcome, a number or a formula. `worth` has
    the results of the formulas: by outcome, a value per recipient. `remarks` are the warnings about
    an added campaign; warnings about campaigns of the file are in the scenario.
    """

    organization: int
    position: int
    name: str
    id: str
    created_at: int
    agent: Agent
    people: People
    draws: Draws
    schedule: ScheduleRequest | None
    scheduled_at: int | None
    share: CampaignShare
    continues: bool
    value: Mapping[str, float | str] | None = None
    worth: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()


@dataclass(slots=True)
class OrganizationBlock:
    """One organization and its campaigns."""

    position: int
    name: str
    settings: Organization
    campaigns: list[CampaignBlock]


_MOST_SHARED = 256 << 20
"""Maximum size (bytes) of values that variants with different behaviours share."""
_MOST_BEHAVIOURS = 4
"""Maximum number of behaviours per campaign whose values variants share."""


class World:
    """Scenario, seed and replication in the form that engines work on.

    Campaigns can be added to those of the scenario. The trace's dials refer to `numbers`,
    `voice_keys` and `behaviours` by index. `holidays` are days since 1970, sorted; `chances` serve
    the compiled engine.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int | None = None,
        replication: int = 0,
        like: World | None = None,
    ) -> None:
        """`seed` defaults to the scenario's; seed and replication are integers of 0 or more.

        Recipients and draws of the world `like` are reused if they would be equal, so that variants
        of a scenario share them. Raises DialsimError for any other seed or replication.
        """
        self.scenario = scenario
        self.seed = count_of("seed", scenario.seed if seed is None else seed)
        self.replication = count_of("replication", replication)
        self.behaviours = tuple(scenario.behaviours)
        self.numbers: list[str] = []
        self.voice_keys: list[str] = []
        self._number_index: dict[str, int] = {}
        self._voice_index: dict[str, int] = {}
        self.organizations = [
            OrganizationBlock(position, organization.name, organization, [])
            for position, organization in enumerate(scenario.organizations)
        ]
        for owner in self.organizations:
            for campaign in owner.settings.campaigns:
                self._append(owner, campaign, scenario.clock.start, like)
            continues = any(block.continues for block in owner.campaigns)
            for block in owner.campaigns:
                block.continues = continues
        self.holidays = tuple(scenario.holidays)
        self._reactions: dict[tuple[Draws, str, ScheduleRequest | None], Reactions] = {}
        self.chances = Chances()
        if like is not None:
            self._share_draws(like)

    def __getstate__(self) -> dict[str, object]:
        """Return what a pickle holds: everything but the draws."""
        return self.__dict__ | {"_reactions": {}, "chances": Chances()}

    def forget_draws(self) -> None:
        """Release the draws, which take more memory than the log of a run; a further run of this
        world makes them again.
        """
        self._reactions, self.chances = {}, Chances()

    @property
    def has_added_campaigns(self) -> bool:
        """True if campaigns were added after loading the scenario."""
        return any(
            len(owner.campaigns) > len(owner.settings.campaigns) for owner in self.organizations
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about settings that are allowed but probably not intended."""
        blocks = (campaign for owner in self.organizations for campaign in owner.campaigns)
        remarks = sum((block.remarks for block in blocks), self.scenario.remarks)
        # Remarks about an added campaign stand where they would if it were in the file.
        return tuple(remark.text for remark in sorted(remarks, key=lambda r: r.organization))

    def add_campaign(self, organization: int, campaign: Campaign, now: int) -> CampaignBlock:
        """Add a campaign, uploaded now (ms), behind those of an organization.

        It gets the recipients and draws of a campaign at this position of the scenario (C11).
        """
        from dialsim.scenario.checks import remarks_on_campaign
        from dialsim.scenario.problems import Remark

        owner = self.organizations[organization]
        self._append(owner, campaign, now)
        block = owner.campaigns[-1]
        texts = remarks_on_campaign(self.scenario, owner.settings, campaign)
        block.remarks = tuple(Remark(text, organization) for text in texts)
        return block

    def add_organization(self, settings: Organization) -> OrganizationBlock:
        """Add an organization without campaigns after all other organizations."""
        block = OrganizationBlock(len(self.organizations), settings.name, settings, [])
        self.organizations.append(block)
        return block

    def surroundings(self, organization: int, now: int) -> Surroundings:
        """Return the context against which a campaign added now (ms) is checked."""
        from dialsim.scenario.additions import Surroundings

        campaigns = [(*owner.campaigns,) for owner in self.organizations]
        blocks = (block for there in campaigns for block in there)
        present = tuple(owner.settings for owner in self.organizations)
        return Surroundings(
            scenario=self.scenario.model_copy(update={"organizations": present}),
            organization=organization,
            campaigns=campaigns,
            recipient_ids=(fixed for block in blocks for fixed in block.people.fixed_ids.values()),
            now=now,
        )

    def number(self, text: str) -> int:
        """Return the index of a caller ID in `numbers`."""
        return _index(text, self.numbers, self._number_index)

    def voice(self, key: str) -> int:
        """Return the index of a voice in `voice_keys`."""
        return _index(key, self.voice_keys, self._voice_index)

    def snapshot(self) -> World:
        """Return a copy that later additions of campaigns, caller IDs and voices do not change."""
        world = copy(self)
        world.numbers, world.voice_keys = [*self.numbers], [*self.voice_keys]
        world.organizations = [
            replace(block, campaigns=[*block.campaigns]) for block in self.organizations
        ]
        return world

    def reactions(
        self, block: CampaignBlock, behaviour: str, request: ScheduleRequest
    ) -> Reactions:
        """Return the reactions of a campaign's recipients under a behaviour and a schedule
        request.
        """
        # The request matters only to histories (P8). Leaving it out of the key lets variants with
        # other requests share the draws.
        key = block.draws, behaviour, request if block.people.history else None
        if key not in self._reactions:
            self._reactions[key] = Reactions(
                self.scenario.behaviours[behaviour],
                self.behaviours.index(behaviour),
                block.draws,
                block.people,
                request,
                self.holidays,
            )
        return self._reactions[key]

    def _share_draws(self, like: World) -> None:
        """Use the values that another world computed from the same draws."""
        own, others = (
            [campaign.draws for owner in world.organizations for campaign in owner.campaigns]
            for world in (self, like)
        )
        if own != others:
            return
        settings = [
            ([*world.scenario.behaviours.items()], world.holidays) for world in (self, like)
        ]
        if settings[0] == settings[1]:
            self._reactions, self.chances = like._reactions, like.chances
        # Values of behaviours that no variant uses any more would pile up over many changes.
        elif (
            like.chances.reactions < _MOST_BEHAVIOURS * len(own)
            and like.chances.values.nbytes <= _MOST_SHARED
        ):
            self.chances = like.chances

    def _append(
        self,
        owner: OrganizationBlock,
        campaign: Campaign,
        created_at: int,
        like: World | None = None,
    ) -> None:
        from dialsim.scenario.formula import Attributes
        from dialsim.scenario.people import people, value_formulas, worth_of_people

        position = owner.position, len(owner.campaigns)
        agent = next(agent for agent in owner.settings.agents if agent.name == campaign.agent)
        twin = self._twin(like, position, campaign.recipients, agent)
        if twin is None:
            listed = people(campaign.recipients, self.seed, self.replication, *position)
        else:
            listed = twin.people
        draws = Draws(self.seed, self.replication, position, listed.count, listed.rows)
        if twin is not None and like is not None and like.replication == self.replication:
            draws = twin.draws
        value = self.scenario.value if campaign.value is None else campaign.value
        if twin is not None and twin.value == value:
            worth = twin.worth
        else:
            attributes = Attributes.of_people(listed, agent.params_schema)
            formulas = value_formulas(value, agent).items()
            place = "recipients.{}".format
            worth = {k: worth_of_people(text, attributes, place) for k, text in formulas}
        block = CampaignBlock(
            organization=owner.position,
            position=position[1],
            name=campaign.name,
            id=campaign.id or campaign_id(self.seed, *position),
            created_at=created_at,
            agent=agent,
            people=listed,
            draws=draws,
            schedule=campaign.schedule,
            scheduled_at=campaign.scheduled_at,
            share=CampaignShare.of(campaign),
            continues=bool(listed.history),
            value=value,
            worth=worth,
        )
        owner.campaigns.append(block)

    def _twin(
        self, like: World | None, position: tuple[int, int], recipients: Recipients, agent: Agent
    ) -> CampaignBlock | None:
        """Return the campaign of another world whose recipients would be equal to this one's, or
        None.
        """
        from dialsim.scenario.campaign import GeneratedRecipients
        from dialsim.scenario.people import same_people

        organization, campaign = position
        if like is None or like.seed != self.seed or organization >= len(like.organizations):
            return None
        owner = like.organizations[organization]
        if campaign >= len(owner.settings.campaigns):
            return None
        block, model = owner.campaigns[campaign], owner.settings.campaigns[campaign]
        alike = block.agent.params_schema == agent.params_schema
        if isinstance(recipients, GeneratedRecipients):
            # segments of generated people are drawn per replication
            alike &= like.replication == self.replication
        return block if alike and same_people(model.recipients, recipients) else None


def count_of(name: str, value: object) -> int:
    """Return an argument as an int. Raises DialsimError unless it is an integer of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise DialsimError(f"{name} {value!r} is not an integer of 0 or more")
    return value if isinstance(value, int) else int(value)  # a `FormerSeed` stays one


def _index(text: str, texts: list[str], index: dict[str, int]) -> int:
    if text not in index:
        index[text] = len(texts)
        texts.append(text)
    return index[text]


_Integers = NDArray[np.int64]
_NO_NUMBER = -1


@dataclass(frozen=True, slots=True)
class Continuation:
    """State of a campaign when its schedule request is accepted (C1).

    `first_due` is the due instant (ms) of first calls, and the origin of release instants (Q2).
    `recipients` are the people with a history, without those removed as duplicates. They have
    `attempts` (P5) and last saw the caller ID at the index `caller_ids` of `World.numbers`, -1 if
    it is not known. `called_again` are the recipients with a next call, in ascending order of its
    instant `due`, which may be in the past.
    """

    first_due: int
    recipients: _Integers
    attempts: _Integers
    caller_ids: _Integers
    called_again: _Integers
    due: _Integers

    @property
    def settled(self) -> int:
        """Number of people who were reached, or have no attempt left, by their history."""
        return len(self.recipients) - len(self.called_again)

    @classmethod
    def of(
        cls,
        world: World,
        block: CampaignBlock,
        request: ScheduleRequest,
        start_at: int,
        removed: Collection[int],
    ) -> Continuation:
        """Return the state of a campaign whose effective start is `start_at`."""
        gone, people = set(removed), list[tuple[int, int, int]]()
        next_calls = list[tuple[int, int]]()
        for recipient, past in block.people.history.items():
            if recipient in gone:
                continue
            number = past.last_caller_id
            shown = _NO_NUMBER if number is None else world.number(number)
            people.append((recipient, past.call_attempt, shown))
            ending = _ending(past)
            if calls_again(ending, past.call_attempt, request.max_attempts):
                due = retry_due(past.last_ended_at, request.retry_interval, ending)
                next_calls.append((due, recipient))
        recipients, attempts, caller_ids = _columns(people, 3)
        due, called_again = _columns(sorted(next_calls), 2)
        first_due = request.start_date_time if block.continues else start_at
        return cls(first_due, recipients, attempts, caller_ids, called_again, due)


def _ending(past: Past) -> int:
    """Return how the last call of a history ended, as an ending of `rules`."""
    if past.reached:
        return REACHED
    status = past.latest_call_status
    return ENDINGS.index(status) if status in ENDINGS else LOST_IN_QUEUE


def _columns(rows: Sequence[tuple[int, ...]], count: int) -> _Integers:
    return np.array(rows, dtype=np.int64).reshape(-1, count).T
