"""Recorded calls as scripts of a scenario's people, and the calls that the model makes from them.

The people react as in the log, so that all differences come from scheduling. In folders of runs,
which have instants of dials, a call takes as long from its dial as in the log. Bodies of the
webhook have no instants of dials: there ringing ends at the recorded instant, whenever the model
dials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dialsim.engine import Engine, run_world
from dialsim.engine.log_reader import TIMES_OUT, Calls, ColumnTable, past_of
from dialsim.engine.rules import ENDINGS
from dialsim.engine.world import CampaignBlock, World
from dialsim.errors import ReplayError
from dialsim.interface import CallStatus
from dialsim.interface.arguments import checked
from dialsim.interface.instants import duration_text
from dialsim.logs.bodies import NO_INSTANT
from dialsim.logs.log import Log
from dialsim.logs.log_table import Expected, LogTable, outcomes_of
from dialsim.scenario.behaviour import Script, ScriptStep
from dialsim.scenario.campaign import GeneratedRecipients
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.service import EngineSettings

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

MOST_UNKNOWN = 0.01
"""Largest share of the calls that may be missing or masked for a log to be replayed."""
_UNKNOWN_RING_MS, _UNKNOWN_TALK_MS = 20_000, 60_000
"""Times of calls that the log lacks, if it has no similar ones to take them from."""
_RECIPIENT_BITS, _ATTEMPT_BITS, _LOST_BITS = 24, 10, 13
BITS_OF_CALL = _ATTEMPT_BITS + _LOST_BITS
"""Bits of a key below the bits of campaign and recipient."""
_NEEDED = {"created_at", "queued_at", "initiated_at", "status", "ended_at"}
"""Columns that a table of calls needs for a comparison of dials to the ms."""
_WEBHOOK_MS = 120_000
"""Allowance (ms), beside the longest conversation, for setup, ringing and the webhook."""

ANSWERED = ENDINGS.index(CallStatus.COMPLETED)
_NO_ANSWER = ENDINGS.index(CallStatus.NO_ANSWER)
NO_ENDING = -1


@dataclass(frozen=True, slots=True)
class CallTimes(ColumnTable):
    """Calls, a row each, sorted by `key`; instants in ms, `NO_INSTANT` if missing.

    `key` identifies the call: `campaign` (index among all campaigns), `recipient` (index in the
    list), `attempt` (the one it is, or would have been), and how many calls of this attempt were
    lost in the queue before. `queued` is the latest release, `lost` the queue timeout, `over` the
    end of ringing, answered or not. `ending` is an index into `ENDINGS`. `setup` and `talk` are
    spans (ms), 0 in a model's calls: only recorded calls become scripts.
    """

    key: Integers
    campaign: Integers
    recipient: Integers
    attempt: Integers
    created: Integers
    queued: Integers
    dialled: Integers
    lost: Integers
    over: Integers
    ended: Integers
    ending: Integers
    setup: Integers
    talk: Integers

    def up_to(self, instant: int) -> CallTimes:
        """Return the calls that had begun by an instant, without their later dials and losses.

        A call keeps its end, even if it came later, because its script needs it.
        """

        def cut(column: Integers) -> Integers:
            return np.where(column <= instant, column, NO_INSTANT)

        created, queued, lost = cut(self.created), cut(self.queued), cut(self.lost)
        begun = np.max([created, queued, lost, cut(self.over)], axis=0) != NO_INSTANT
        dialled = cut(self.dialled)
        return replace(self, created=created, queued=queued, lost=lost, dialled=dialled)[begun]


class _Past(NamedTuple):
    """Attempts in the histories of all campaigns' people, and each campaign's first index."""

    first: Integers
    attempts: Integers

    def of(self, campaign: Integers, recipient: Integers) -> Integers:
        """Return the number of attempts in the history of each of these people."""
        found: Integers = self.attempts[self.first[campaign] + recipient]
        return found


@checked(ReplayError)
class RecordedCalls:
    """Recorded calls of a scenario's people.

    `calls` has the calls whose person is known. `has_dials` is True if instants of releases and
    dials are known. `until` is the last instant (ms) of the log; up to `horizon` the log is
    complete, except for calls without a webhook. `blocks` are all campaigns of the scenario;
    `notes` are sentences on what the log lacks.

    >>> log = dialsim.read_log(result.write("out/log"))
    >>> len(dialsim.RecordedCalls(log, scenario).calls) == len(result.calls)
    True
    """

    def __init__(self, log: Log, scenario: Scenario) -> None:
        """Raise ReplayError if log and scenario don't belong together, or too many calls are
        missing.
        """
        self.scenario = scenario
        self.source = log.source
        expected = Expected(scenario, log.campaigns)
        owners = expected.world.organizations
        self.blocks = [block for owner in owners for block in owner.campaigns]
        self.has_dials = log.columns >= _NEEDED
        self.notes: list[str] = []
        self.calls = self._read(log, self._campaigns(log, expected))
        columns = (self.calls.created, self.calls.queued, self.calls.dialled, self.calls.ended)
        self.until = int(max(column.max() for column in columns))
        self.horizon = self._horizon()
        self._world: World | None = None

    def __repr__(self) -> str:
        return f"<dialsim.RecordedCalls of {self.source}, calls: {len(self.calls):,}>"

    def up_to(self, instant: int) -> RecordedCalls:
        """Return what had been recorded by an instant."""
        # A shallow copy: scenario and people are shared, only the calls are cut.
        earlier = copy(self)
        earlier.calls = self.calls.up_to(instant)
        earlier.until, earlier._world = instant, None
        earlier.horizon = min(self.horizon, instant)
        return earlier

    # -- reading ----------------------------------------------------------------------------------

    def _campaigns(self, log: Log, expected: Expected) -> Integers:
        """Return the index in `blocks` of each campaign of the log."""
        names = ", ".join(block.name for block in self.blocks) or "none"
        for one, block in zip(log.campaigns, expected.blocks, strict=True):
            if block is None:
                raise ReplayError(
                    f"{log.source}: its campaign {one.name or one.id} is none of the scenario's, "
                    f"which are {names}: give the scenario that the calls were made by"
                )
        found = [self.blocks.index(block) for block in expected.blocks if block is not None]
        for index, count in Counter(found).items():
            if count > 1:
                raise ReplayError(
                    f"{log.source}: {count} campaigns of the log are called "
                    f"{self.blocks[index].name}; give them their ids in the scenario"
                )
        for index, block in enumerate(self.blocks):
            if index not in found and block.schedule is not None:
                self.notes.append(f"the log has no call of campaign {block.name}")
        return np.array(found, dtype=np.int64)

    def _read(self, log: Log, campaigns: Integers) -> CallTimes:
        table = LogTable(log)
        recipient = self._recipients(log, table, campaigns)
        lost, ending = table.is_lost, outcomes_of(log)
        started, ended = table.started, table.ended
        over = np.where(started != NO_INSTANT, started, np.where(lost, NO_INSTANT, ended))
        # A call without an instant of ringing rang for 0 ms (P1)
        rings = np.where(table.ringing == NO_INSTANT, over, table.ringing)
        setup = np.where(table.initiated == NO_INSTANT, 1, rings - table.initiated)
        talk = np.where((started != NO_INSTANT) & (ended != NO_INSTANT), ended - started, 0)
        times = {
            "created": table.created,
            "queued": table.queued,
            "dialled": table.initiated,
            "lost": np.where(lost, ended, NO_INSTANT),
            "over": over,
            "ended": ended,
            "ending": ending,
            "setup": np.maximum(setup, 1),
            "talk": np.maximum(talk, 0),
        }
        order = np.arange(len(ended))
        # Without dials the order of the ends is the only order of a person's calls.
        if not self.has_dials:
            order = np.lexsort((log.calls["line"].to_numpy(), ended))
        known = recipient >= 0
        order = order[known[order]]
        # A folder has every call, so attempts are counted exactly. Bodies may be missing, but show
        # the number of the attempt.
        attempt = table.attempt if not self.has_dials else np.zeros(len(ended), np.int64)
        calls = _numbered(
            campaigns[table.campaign][order], recipient[order], (ending != NO_ENDING)[order],
            lost[order], attempt[order], self._past,
            {name: values[order] for name, values in times.items()},
        )  # fmt: skip
        self._count_unknown(log, calls, int((~known).sum()))
        return calls

    def _recipients(self, log: Log, table: LogTable, campaigns: Integers) -> Integers:
        """Return the index of each call's person in the campaign's list, -1 if unknown."""
        recipient = log.calls["position"].to_numpy(dtype=np.int64, na_value=-1)
        has_positions = "position" in log.columns
        tels = log.calls["tel"].astype("str").fillna("").to_numpy()
        masked = log.calls["masked"].to_numpy()
        for code, campaign in enumerate(campaigns.tolist()):
            block, here = self.blocks[campaign], table.campaign == code
            if has_positions:
                over = here & (recipient >= block.people.count)
                if over.any():
                    raise ReplayError(
                        f"{log.source}: {block.name} has calls of person number "
                        f"{int(recipient[over].max()) + 1}, but lists "
                        f"{block.people.count} people in the scenario"
                    )
                if isinstance(self._written(block).recipients, GeneratedRecipients):
                    # Generated phone numbers depend on the seed, but the index in the list
                    # identifies people
                    continue
            listed = block.people.tels()
            seen = here & ~masked & (tels != "")
            strange = seen & ~np.isin(tels, listed)
            if strange.any():
                raise ReplayError(_stranger(log.source, self._written(block), tels, strange))
            if has_positions:
                continue
            index = pd.Index(listed)
            if not index.is_unique:
                twice = index[index.duplicated()][0]
                raise ReplayError(
                    f"{log.source}: {block.name} lists {twice} twice, and bodies of the webhook "
                    "don't say which of both was called; a folder of `dialsim run` would"
                )
            recipient[seen] = index.get_indexer(tels[seen])
        return recipient

    def _written(self, block: CampaignBlock) -> Any:
        return self.scenario.organizations[block.organization].campaigns[block.position]

    @cached_property
    def _past(self) -> _Past:
        attempts = [past_of(block.people).attempts.astype(np.int64) for block in self.blocks]
        return _Past(np.cumsum([0, *map(len, attempts)]), np.concatenate(attempts))

    def _count_unknown(self, log: Log, calls: CallTimes, masked: int) -> None:
        """Raise ReplayError if too many calls are missing."""
        counted = calls[calls.ending != NO_ENDING]
        person = counted.campaign << _RECIPIENT_BITS | counted.recipient
        _, first = np.unique(person, return_index=True)
        gone = 0
        if len(counted):
            # Attempts are numbered without gaps, so that the largest number shows how many calls
            # are missing.
            most = np.maximum.reduceat(counted.attempt, first)
            past = self._past.of(counted.campaign[first], counted.recipient[first])
            gone = int((most - past).sum()) - len(counted)
        everything = len(calls) + gone + masked
        if not len(counted) or gone + masked > MOST_UNKNOWN * everything:
            missing = [f"{gone:,} attempts are missing"] if gone else []
            missing += [f"{masked:,} calls don't show whom they reached"] if masked else []
            why = " and ".join(missing) or "no call in it has ended"
            raise ReplayError(
                f"{log.source}: {why} (of {everything:,}): a replay needs a log "
                "with all calls of its campaigns"
            )
        if gone + masked:
            self.notes.append(
                f"{gone + masked:,} calls are missing or masked; they are taken as unanswered"
            )

    def _horizon(self) -> int:
        """Return the instant (ms) up to which all calls that began have ended within the log."""
        if self.has_dials:
            return self.until
        latest = self.calls[np.diff(self.calls.key >> BITS_OF_CALL, append=-1) != 0]
        most = [0 if one.schedule is None else one.schedule.max_attempts for one in self.blocks]
        done = (latest.ending == ANSWERED) | (latest.attempt >= np.array(most)[latest.campaign])
        done &= latest.ending != NO_ENDING
        people = sum(block.people.count for block in self.blocks)
        if done.all() and len(latest) == people:
            return self.until
        longest = int(self.calls.talk.max(initial=0)) + _WEBHOOK_MS
        self.notes.append(
            f"the last {duration_text(longest)} of the log are not compared: calls that go on "
            "at its end have no webhook yet"
        )
        return self.until - longest

    # -- what it shows of queues and lines --------------------------------------------------------

    @cached_property
    def release_grid(self) -> int:
        """Longest release interval (ms) that fits all releases, counted from startAt (Q2).

        Without known releases it is derived from the calls lost in the queue, each of which was
        released one queue timeout before (Q5). 0 if all calls were released at startAt, or nothing
        is known.
        """
        grid = 0
        for begins, calls in self._scheduled():
            if self.has_dials:
                since = calls.queued[calls.queued != NO_INSTANT] - begins
            else:
                since = np.diff(np.sort(calls.lost[calls.lost != NO_INSTANT]))
            grid = int(np.gcd.reduce(since, initial=grid))
        return grid

    @cached_property
    def longest_wait(self) -> int:
        """Longest queue timeout (ms) consistent with the calls that were lost (Q5).

        No recipient is released before the startAt of the campaign. 0 if no call was lost.
        """
        waits = [
            int(calls.lost[calls.lost != NO_INSTANT].min()) - begins
            for begins, calls in self._scheduled()
            if (calls.lost != NO_INSTANT).any()
        ]
        return min(waits, default=0)

    def _scheduled(self) -> Iterator[tuple[int, CallTimes]]:
        """Yield the startAt (ms) and the calls of each campaign that is scheduled."""
        for index, block in enumerate(self.blocks):
            if block.schedule is not None:
                begins = max(block.schedule.start_date_time, block.scheduled_at or 0)
                yield begins, self.calls[self.calls.campaign == index]

    def longest_queue(self, organization: int) -> int:
        """Return the largest number of calls queued at once, counted at the ends of instants (T4).

        A call that leaves the queue in the instant in which it joined does not count.
        """
        calls = self.calls_of(organization)
        leaves = np.where(calls.dialled != NO_INSTANT, calls.dialled, calls.lost)
        released = (calls.queued != NO_INSTANT) & (leaves > calls.queued)
        return _most_at_once(calls.queued[released], leaves[released])

    def most_at_once(self, organization: int) -> int:
        """Return the largest number of lines in use at once (Q1)."""
        calls = self.calls_of(organization)
        begins = calls.dialled[calls.dialled != NO_INSTANT]
        return _most_at_once(begins, calls.ended[calls.ended > calls.dialled])

    def calls_of(self, organization: int) -> CallTimes:
        """Return the calls of an organization's campaigns."""
        own = [index for index, one in enumerate(self.blocks) if one.organization == organization]
        return self.calls[np.isin(self.calls.campaign, own)]

    # -- playing ----------------------------------------------------------------------------------

    @property
    def typical(self) -> ScriptStep:
        """An unanswered call of typical length, for calls that the log knows nothing about."""
        calls = self.calls
        known = (calls.ending > ANSWERED) & (calls.dialled != NO_INSTANT)
        rung = (calls.over - calls.dialled - calls.setup)[known]
        ring = int(np.median(rung)) if len(rung) else _UNKNOWN_RING_MS
        return ScriptStep(ENDINGS[_NO_ANSWER], ring)

    @property
    def _next(self) -> ScriptStep:
        """Assumed call after a person's last one in the log.

        With bodies it is a conversation, because bodies lack conversations that are not analyzed
        (A2, A4). Folders have all calls, so there it is an unanswered call.
        """
        if self.has_dials:
            return self.typical
        talked = self.calls.talk[self.calls.ending == ANSWERED]
        talk = int(np.median(talked)) if len(talked) else _UNKNOWN_TALK_MS
        return replace(self.typical, outcome=ENDINGS[ANSWERED], talk=talk)

    @property
    def world(self) -> World:
        """World of the scenario, with the recorded calls as the scripts of its people."""
        if self._world is None:
            world = World(self.scenario)
            blocks = [block for owner in world.organizations for block in owner.campaigns]
            unknown, following = self.typical, self._next
            codes = [np.zeros(block.people.count, dtype=np.int32) for block in blocks]
            scripts: list[list[Script]] = [[(following,)] for _ in blocks]
            for (campaign, recipient), steps in self._steps().items():
                # Attempts without a call in the log get the typical call.
                most = max(steps)
                script = [steps.get(attempt, unknown) for attempt in range(1, most + 1)]
                # An answered person is not called again (R3).
                if steps[most].outcome is not ENDINGS[ANSWERED]:
                    script.append(following)
                codes[campaign][recipient] = len(scripts[campaign])
                scripts[campaign].append(tuple(script))
            for block, code, listed in zip(blocks, codes, scripts, strict=True):
                block.people = copy(block.people)
                block.people.scripts, block.people.script = tuple(listed), code
            self._world = world
        return self._world

    def _steps(self) -> dict[tuple[int, int], dict[int, ScriptStep]]:
        """Return each recorded call as a step of a script, by person and attempt."""
        calls, typical = self.calls, self.typical
        found: dict[tuple[int, int], dict[int, ScriptStep]] = {}
        known = calls.dialled != NO_INSTANT if self.has_dials else calls.ending != NO_ENDING
        columns = (calls.campaign, calls.recipient, calls.attempt, calls.ending, calls.dialled,
                   calls.over, calls.setup, calls.talk)  # fmt: skip
        for campaign, recipient, attempt, ending, dialled, over, setup, talk in zip(
            *(column[known].tolist() for column in columns), strict=True
        ):
            # A call in progress when the log ends must still ring then, as it did in the log.
            if ending == NO_ENDING:
                step = replace(typical, ring=max(typical.ring, self.until - dialled + 1))
            elif self.has_dials:
                step = ScriptStep(ENDINGS[ending], over - dialled - setup, talk, setup=setup)
            else:
                step = ScriptStep(ENDINGS[ending], 0, talk, setup=setup, until=over)
            found.setdefault((campaign, recipient), {})[attempt] = step
        return found

    def played(self, engine: EngineSettings, which: Engine) -> CallTimes:
        """Return the calls that the model makes under settings of the engine."""
        clock = self.scenario.clock
        end = max(self.until, clock.start + 1)
        if clock.end is not None:
            end = min(end, clock.end)
        # model_copy does not validate: the settings tried may be combinations that a file could not
        # have.
        scenario = self.scenario.model_copy(
            update={"engine": engine, "clock": clock.model_copy(update={"end": end})}
        )
        # `like` shares people and scripts, which are most of the cost of a world.
        trace = run_world(World(scenario, like=self.world), which)
        parts = []
        for index, block in enumerate(self.blocks):
            calls = Calls(trace.campaign(block.organization, block.position))
            lost = TIMES_OUT[calls.last_kind]
            times = {
                "created": calls.created_at,
                "queued": calls.queued_at,
                "dialled": calls.initiated_at,
                "lost": np.where(lost, calls.ended_at, NO_INSTANT),
                "over": calls.started_at,
                "ended": calls.ended_at,
                "ending": np.full(len(calls), NO_ENDING, dtype=np.int64),
                **dict.fromkeys(("setup", "talk"), np.zeros(len(calls), dtype=np.int64)),
            }
            attempt = calls.attempts_before.astype(np.int64) + 1
            campaign = np.full(len(calls), index, dtype=np.int64)
            recipient = calls.recipient.astype(np.int64)
            parts.append(
                _numbered(campaign, recipient, calls.counted, lost, attempt, self._past, times)
            )
        return CallTimes.joined(parts)


def _most_at_once(begins: Integers, ends: Integers) -> int:
    """Return the largest number of overlapping spans [begin, end)."""
    at = np.concatenate([begins, ends])
    change = np.repeat([1, -1], [len(begins), len(ends)])
    # Ends sort before begins: a line that is freed can be used in the same ms (T4)
    order = np.lexsort((change, at))
    return int(np.cumsum(change[order]).max(initial=0))


def _stranger(source: str, campaign: Any, tels: NDArray[Any], strange: Mask) -> str:
    text = f"{source}: {campaign.name} called {tels[strange][0]}, whom the scenario does not list"
    if isinstance(campaign.recipients, GeneratedRecipients):
        return f"{text}; its people are made up by the seed: give the run's, such as --set seed=2"
    return f"{text}: give the list that the calls were made from"


def _numbered(
    campaign: Integers,
    recipient: Integers,
    counted: Mask,
    lost: Mask,
    attempt: Integers,
    past: _Past,
    times: dict[str, Any],
) -> CallTimes:
    """Return calls with their keys.

    The input has each person's calls in chronological order. An `attempt` of 0 is unknown; it is
    counted from the person's earlier calls.
    """
    person = campaign << _RECIPIENT_BITS | recipient
    order = np.argsort(person, kind="stable")
    begins = np.diff(person[order], prepend=-1) != 0
    first = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    own, counts = attempt[order], counted[order]
    before: Integers = np.cumsum(counts) - counts
    before = before - before[first] if len(order) else before
    start = past.of(campaign, recipient)[order]
    number = np.where(own > 0, own, start + before + 1)
    # A lost call belongs to the attempt that it would have been: the one after the last counted
    # attempt
    following = np.where(counts & (own > 0), own + 1, 0)
    for index in np.flatnonzero(lost[order] & (own == 0) & ~begins).tolist():
        before_it = following[first[index] : index]
        if before_it.any():
            number[index] = before_it.max()
    group = (person[order] << _ATTEMPT_BITS) | np.minimum(number, 2**_ATTEMPT_BITS - 1)
    fresh = np.diff(group, prepend=-1) != 0
    since = np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    missed = np.minimum(np.arange(len(order)) - since, 2**_LOST_BITS - 1)
    key = group << _LOST_BITS | missed
    by_key = np.argsort(key, kind="stable")
    rows = order[by_key]
    columns = {name: np.asarray(values, dtype=np.int64)[rows] for name, values in times.items()}
    return CallTimes(
        key=key[by_key], campaign=campaign[rows], recipient=recipient[rows],
        attempt=number[by_key], **columns,
    )  # fmt: skip
