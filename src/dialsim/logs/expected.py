"""Campaigns of a log as the scenario has them that the log should follow."""

from __future__ import annotations

from collections import Counter

import orjson

from dialsim.engine.world import CampaignBlock, OrganizationBlock, World
from dialsim.interface.schedule import ScheduleRequest
from dialsim.logs.log import CampaignOfLog
from dialsim.scenario.scenario import Scenario


class Expected:
    """Campaigns of a scenario, found for the campaigns of a log.

    `blocks` has the scenario's campaign for each one of the log, None if there is none.
    """

    def __init__(self, scenario: Scenario, campaigns: tuple[CampaignOfLog, ...]) -> None:
        self.world = World(scenario)
        self.blocks = [self._block(one) for one in campaigns]

    def _block(self, one: CampaignOfLog) -> CampaignBlock | None:
        """Find a campaign by id, else by name if only one campaign has that name."""
        all_of_them = [block for owner in self.world.organizations for block in owner.campaigns]
        named = [
            block
            for block in all_of_them
            if one.name in {None, block.name}
            and one.organization in {None, self.world.organizations[block.organization].name}
        ]
        by_id = [block for block in all_of_them if block.id == one.id]
        found = by_id or named
        return found[0] if len(found) == 1 else None

    def owner(self, code: int) -> OrganizationBlock | None:
        """Return the organization of a campaign of the log."""
        block = self.blocks[code]
        return None if block is None else self.world.organizations[block.organization]

    def most_lines(self, code: int) -> int:
        """Return the most lines that the organization of a campaign ever has, 0 if unknown."""
        owner = self.owner(code)
        return 0 if owner is None else max(self.lines(owner))

    def lines(self, owner: OrganizationBlock) -> set[int]:
        """Return every value that maxConcurrentCalls of an organization ever has."""
        actions = (*owner.settings.timeline, *owner.settings.compiled_actions)
        values = {one.value for one in actions if one.action == "setConcurrency"}
        numbers = {int(value) for value in values if value is not None}
        return numbers | {owner.settings.max_concurrent_calls}

    def request(self, code: int) -> ScheduleRequest | None:
        """Return the request of a campaign of the log, None if the scenario makes several."""
        block, owner = self.blocks[code], self.owner(code)
        if block is None or owner is None:
            return None
        others = [
            action for action in owner.settings.timeline
            if action.action == "schedule" and action.campaign == block.name
        ]  # fmt: skip
        return None if others else block.schedule

    def start_at(self, code: int) -> int | None:
        """Return the effective start of a campaign of the log (C1)."""
        block, request = self.blocks[code], self.request(code)
        if block is None or request is None:
            return None
        asked = (
            self.world.scenario.clock.start if block.scheduled_at is None else block.scheduled_at
        )
        return max(asked, request.start_date_time)

    def without_twins(self) -> list[int]:
        """Return the campaigns of the log that list no two people with the same values."""
        codes = range(len(self.blocks))
        return [code for code in codes if self.blocks[code] and not self.lists_twice(code)]

    def lists_twice(self, code: int) -> bool:
        """True if a campaign of the log may list two people with equal values."""
        block = self.blocks[code]
        if block is None:
            return True
        seen: Counter[bytes] = Counter(
            orjson.dumps(
                (tel, name, dict(block.people.agent_params(row))), option=orjson.OPT_SORT_KEYS
            )
            for row, (tel, name) in enumerate(
                zip(block.people.tels(), block.people.customer_names(), strict=True)
            )
        )
        return any(count > 1 for count in seen.values())
