"""Checks of a log against a scenario: people, settings, numbers and pacing that it rules out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import orjson

from dialsim.conformance.calls import is_between_releases, least_gap
from dialsim.engine.world import CampaignBlock, OrganizationBlock, World
from dialsim.interface.agent import check_agent_params
from dialsim.logs.bodies import NO_INSTANT, Mark, Settings
from dialsim.logs.findings import Finding, LogColumns, week_text
from dialsim.logs.log import Campaign
from dialsim.scenario.scenario import Scenario


class Expected:
    """Scenario's view of the campaigns of a log.

    `blocks` has the scenario's campaign for each one of the log, None if there is none.
    """

    def __init__(self, scenario: Scenario, campaigns: tuple[Campaign, ...]) -> None:
        self.world = World(scenario)
        self.blocks = [self._block(one) for one in campaigns]

    def _block(self, one: Campaign) -> CampaignBlock | None:
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

    def named(self, campaigns: tuple[Campaign, ...]) -> tuple[Campaign, ...]:
        """Return campaigns of a log with the names and organizations of the scenario."""
        return tuple(
            one
            if block is None
            else replace(
                one, name=block.name, organization=self.world.organizations[block.organization].name
            )
            for one, block in zip(campaigns, self.blocks, strict=True)
        )

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

    def settings(self) -> dict[int, Settings]:
        """Return the settings of the log's campaigns that get one request, by the scenario."""
        start, found = self.world.scenario.clock.start, {}
        for code, block in enumerate(self.blocks):
            owner = self.owner(code)
            if block is None or owner is None or block.schedule is None:
                continue
            if any(
                action.action == "schedule" and action.campaign == block.name
                for action in owner.settings.timeline
            ):
                continue
            request = block.schedule
            asked = start if block.scheduled_at is None else block.scheduled_at
            found[code] = Settings(
                id=block.id,
                name=block.name,
                status=None,
                max_attempts=request.max_attempts,
                max_concurrent_calls=None,
                retry_interval=request.retry_interval,
                start_at=max(asked, request.start_date_time),
                end_at=request.end_date_time,
                windows=request.weekday_ranges,
                sip_account_id=None,
            )
        return found

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


def findings(view: LogColumns, expected: Expected) -> Iterator[Finding]:
    """Yield everything that speaks against the log following the scenario."""
    yield from _people(view, expected)
    yield from _settings(view, expected)
    yield from _parameters(view, expected)
    if view.log.columns:
        yield from _engine(view, expected)


def _people(view: LogColumns, expected: Expected) -> Iterator[Finding]:
    """Check that only campaigns of the scenario and people of their lists appear (C1)."""
    position = view.log.calls["position"].to_numpy(np.int64, na_value=-1)
    tels = view.log.calls["tel"].astype("str").fillna("").to_numpy()
    for code, one in enumerate(view.log.campaigns):
        here, block = view.campaign == code, expected.blocks[code]
        if block is None:
            yield from view.of_calls(
                "C1", np.flatnonzero(here)[:1], view.instants("ended_at"),
                f"the scenario has no campaign {one.name or one.id}",
            )  # fmt: skip
            continue
        listed = set(block.people.tels())
        known = here & ~view.log.calls["masked"].to_numpy() & (tels != "")
        strange = known & ~np.isin(tels, [*listed])
        yield from view.of_calls(
            "C1", strange, view.instants("ended_at"),
            lambda row: f"called {tels[row]}, whom the campaign does not list",
        )  # fmt: skip
        yield from view.of_calls(
            "C1", here & (position >= block.people.count), view.instants("ended_at"),
            lambda row, count=block.people.count: (  # type: ignore[misc]
                f"called recipient {position[row]} of a list of {count}, counted from 0"
            ),
        )  # fmt: skip


_OF_TYPE: dict[str, object] = {"text": "", "number": 0, "boolean": True, "null": None, "other": []}


def _parameters(view: LogColumns, expected: Expected) -> Iterator[Finding]:
    """Yield bodies whose agentParams do not fit the agent's paramsSchema (C1).

    Retention removes values, not keys, so those of masked people are left out.
    """
    if not len(view.log.bodies):
        return
    campaign, shape = view.body("campaign"), view.body("shape")
    masked = view.marked(Mark.PERSONAL_EXPIRED) | view.marked(Mark.TEL_MASKED)
    for code, block in enumerate(expected.blocks):
        if block is None or not block.agent.params_schema:
            continue
        here = (campaign == code) & ~masked
        for one in np.unique(shape[here]).tolist():
            params = {key: _OF_TYPE[kind] for key, kind in view.log.shapes[one]}
            faults = check_agent_params(block.agent.params_schema, params)
            if faults:
                text = "; ".join(f"agentParams: {fault.message}" for fault in faults)
                yield from view.of_bodies("C1", here & (shape == one), text)


def _settings(view: LogColumns, expected: Expected) -> Iterator[Finding]:
    """Check that the settings in bodies equal the request (F3)."""
    setting = view.body("setting") if len(view.log.bodies) else np.empty(0, dtype=np.int32)
    campaign = view.body("campaign") if len(view.log.bodies) else setting
    _, first = np.unique(setting, return_index=True)
    wrong: list[tuple[int, str]] = []
    for row in np.sort(first).tolist():
        code = int(campaign[row])
        owner = expected.owner(code)
        if owner is None:
            continue
        one, block = view.log.settings[setting[row]], expected.blocks[code]
        if one.max_concurrent_calls not in {None, *expected.lines(owner)}:
            text = (
                f"maxConcurrentCalls is {one.max_concurrent_calls}, in the scenario "
                f"{', '.join(map(str, sorted(expected.lines(owner))))}"
            )
            wrong.append((row, text))
        for name, (shown, said) in _differences(one, block, owner).items():
            wrong.append((row, f"{name} is {shown}, in the scenario {said}"))
    yield from view.of_texts("F3", wrong)


def _differences(
    one: Settings, block: CampaignBlock | None, owner: OrganizationBlock
) -> Mapping[str, tuple[object, object]]:
    """Return what a body shows other than the campaign's request; empty if it gets several
    requests.
    """
    requests = [
        action.body
        for action in owner.settings.timeline
        if block is not None and action.action == "schedule" and action.campaign == block.name
    ]
    if block is None or block.schedule is None or requests:
        return {}
    request = block.schedule
    pairs: dict[str, tuple[object, object]] = {
        "maxAttempts": (one.max_attempts, request.max_attempts),
        "retryInterval": (one.retry_interval, request.retry_interval),
        "scheduleEndAt": (one.end_at, request.end_date_time),
        "sipAccountId": (one.sip_account_id, request.sip_account_id),
    }
    if one.windows is not None:
        pairs["scheduleDateTimeWindow"] = (
            week_text(one.windows),
            week_text(request.weekday_ranges),
        )
    absent = ("scheduleEndAt", "sipAccountId")
    return {
        name: pair
        for name, pair in pairs.items()
        if pair[0] != pair[1] and (pair[0] is not None or name in absent)
    }


def _engine(view: LogColumns, expected: Expected) -> Iterator[Finding]:
    """Check the settings of the engine, which a table of calls shows (P3, Q2, Q4, Q5)."""
    engine = expected.world.scenario.engine
    queued, ended = view.instants("queued_at"), view.instants("ended_at")
    initiated = view.instants("initiated_at")
    waited = ended - queued
    yield from view.of_calls(
        "Q5",
        view.is_queue_timeout & (queued != NO_INSTANT) & (waited != engine.queue_timeout), ended,
        lambda row: f"lost after {waited[row]} ms in the queue; queueTimeout is "
        f"{engine.queue_timeout} ms",
    )  # fmt: skip
    start = view.setting(lambda one: one.start_at, -1)
    for code, block in enumerate(expected.blocks):
        if block is not None and block.continues:  # C1
            asked = block.schedule
            start[view.campaign == code] = -1 if asked is None else asked.start_date_time
    if engine.release_interval:
        off = (queued != NO_INSTANT) & (start >= 0)
        off &= is_between_releases(queued, start, engine.release_interval)
        yield from view.of_calls(
            "Q2", off, queued,
            f"released between release instants, which are {engine.release_interval} ms apart",
        )  # fmt: skip
    for owner in expected.world.organizations:
        codes = [c for c, b in enumerate(expected.blocks) if b and b.organization == owner.position]
        if engine.calls_per_second is None:
            continue
        gap = least_gap(engine.calls_per_second)
        rows = np.flatnonzero(np.isin(view.campaign, codes) & (initiated != NO_INSTANT))
        rows = rows[np.argsort(initiated[rows], kind="stable")]
        near = rows[1:][np.diff(initiated[rows]) < gap]
        yield from view.of_calls(
            "Q4", near, initiated, f"dialled less than {gap} ms after the dial before"
        )
    numbers = view.log.calls["caller_id"].astype("str").fillna("").to_numpy()
    for code, block in enumerate(expected.blocks):
        if block is None or block.schedule is None or not block.schedule.caller_ids:
            continue
        mine = (view.campaign == code) & (numbers != "")
        yield from view.of_calls(
            "P3", mine & ~np.isin(numbers, block.schedule.caller_ids), initiated,
            lambda row: f"dialled from {numbers[row]}, which is none of callerIds",
        )  # fmt: skip
