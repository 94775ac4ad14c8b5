"""The sandbox core: the state of a sandbox, and the only code that changes it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import NamedTuple, Self

from pydantic import TypeAdapter

from dialsim.errors import JournalError, NotKept
from dialsim.interface.model import invalid
from dialsim.interface.payload import Post
from dialsim.sandbox import failures as fail
from dialsim.sandbox.access import Destinations, KeyRing, derived_key, regenerated_key
from dialsim.sandbox.campaign_view import Account, CampaignView
from dialsim.sandbox.clock import VirtualClock
from dialsim.sandbox.commands import (
    Command,
    CountFaults,
    DropSnapshot,
    ResendWebhook,
    Restore,
    SetSpeed,
    TakeSnapshot,
)
from dialsim.sandbox.journal import Entry, EntryKind, Journal
from dialsim.sandbox.live_engine import LiveEngine
from dialsim.sandbox.orders import InjectedFault, InjectedFaults, Triggers, which_post
from dialsim.sandbox.outbox import Delivery, Outbox
from dialsim.sandbox.request_log import RequestLog
from dialsim.sandbox.sender import Sender, SilentSender
from dialsim.sandbox.tables import WebhookTable
from dialsim.scenario.additions import identifying_texts
from dialsim.scenario.organization import Organization
from dialsim.scenario.scenario import Scenario

POST: TypeAdapter[Post] = TypeAdapter(Post)
"""Serializer of the POSTs in the journal."""

_LOG = logging.getLogger("dialsim.sandbox")

PATIENCE = 0.01  # seconds that the clock works before other requests get their turn
_STEP = 60_000
"""Virtual time (ms) between two checks for waiting requests."""
NEXT_TRY = 0.25  # seconds until a journal that can't be written is tried again


class Record(NamedTuple):
    """External event at an instant (ms): a command or the response to a POST."""

    at: int
    what: Command | Post


class Snapshot(NamedTuple):
    """State of a sandbox at an instant (ms): its external events up to then, in order."""

    at: int
    records: tuple[Record, ...]


class SandboxCore:
    """State of a served scenario: simulation, accounts, API keys and clock.

    Every change is a command, executed by `carry_out`, or a clock step, executed by `work_on` and
    `move_to`. All consequences within the instant are complete on return (T4). Only POSTs may still
    be under way, with the `sender`.

    With a journal, every change is written to the journal. A command is written before its
    execution. A clock step and the response to a POST are known only afterwards; they are written
    before any consequence. While the journal cannot be written, the clock stands still, no POST
    leaves, and commands raise `NotKept`.

    `taken` are the texts that identify organizations and agents; additions must not repeat them.
    `named_urls` are the webhook URLs set by clients of the control plane. `records` are the
    external events in order. `snapshots` are the states that can be restored, by name. `epoch`
    counts restores and resets: a client that waits through one finds another run, but the same log
    of `requests`.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int | None = None,
        destinations: Destinations | None = None,
        *,
        silent: bool = False,
    ) -> None:
        """`seed` defaults to the scenario's, `destinations` to loopback addresses.

        If `silent`, no POST leaves: all count as answered.
        """
        self.epoch = 0
        self.destinations = destinations or Destinations()
        self.named_urls: set[str] = set()
        self._kept_urls: set[str] = set()  # already logged as kept
        self._silent = silent
        self.records: list[Record] = []
        self.snapshots: dict[str, Snapshot] = {}
        self._restoring = asyncio.Lock()
        self.simulation = LiveEngine(scenario, seed)
        world = self.simulation.log.world
        self.accounts = [Account(self.simulation, block) for block in world.organizations]
        self._read = (0, 0)  # state of the log that the views have read
        self.taken = {text for owner in self.settings for text in identifying_texts(owner)}
        self._regenerated = [0] * len(self.accounts)
        self.keys = KeyRing(self.api_key(position) for position in range(len(self.accounts)))
        self.faults = InjectedFaults(world.seed)
        for fault in scenario.service.faults:
            owner = None if fault.organization is None else self.organization(fault.organization)
            position = None if owner is None else owner.block.position
            self.faults.add(fault, position, None, scenario.clock.start)
        self.requests = RequestLog()
        self.triggers = Triggers()
        self.journal: Journal | None = None
        self._leaving: list[Delivery] = []  # POSTs that leave once the journal is written
        self._retrying: asyncio.Task[None] | None = None
        self.outbox = Outbox(self.simulation, self.accounts)
        self.webhooks = WebhookTable(self.simulation, self.outbox)
        self.sender = self._new_sender()
        self.clock = VirtualClock(self)

    @classmethod
    def replayed(
        cls,
        scenario: Scenario,
        seed: int | None,
        state: Snapshot,
        destinations: Destinations | None = None,
        *,
        silent: bool = False,
    ) -> Self:
        """Return a sandbox in the state of another sandbox with this scenario and seed."""
        core = cls(scenario, seed, destinations, silent=silent)
        for record in state.records:
            core.replay(record)
        core.finish_replay(state.at)
        return core

    @property
    def scenario(self) -> Scenario:
        """Served scenario."""
        return self.simulation.log.world.scenario

    def carry_out(self, command: Command) -> None:
        """Execute a command and its consequences within this instant (T4)."""
        # Written first: a kill after the execution but before the entry would lose an answered
        # command.
        self._keep(command)
        try:
            self.repeat(command)
        except BaseException:
            if self.journal is not None:
                self.journal.take_back()
                self._retry_if_pending(self.journal)
            raise
        self._record(command)
        if command.concerns_calling:
            self.outbox.collect()
            self._read_on()
        self._send_due()

    def repeat(self, command: Command) -> None:
        """Repeat a command during a replay: do not write it to the journal, and send no POSTs."""
        if command.concerns_calling:
            self.simulation.carry_out(lambda: command.carry_out(self))
        else:
            command.carry_out(self)

    def replay(self, record: Record) -> None:
        """Repeat the next event of a replay at its instant."""
        at, what = record
        # A POST changes no call, so the engine need not be moved to its instant first.
        if isinstance(what, Post):
            self.outbox.recorded(what)
            self.faults.ended(what)
            self.records.append(record)
        else:
            self.simulation.move_to(at)
            self.repeat(what)
            self._record(what)

    def finish_replay(self, at: int) -> None:
        """End a replay at an instant (ms); all earlier events have been replayed."""
        self.simulation.move_to(at)
        self.outbox.restore(self.faults.held_until)

    def open(self) -> None:
        """Continue in an event loop: send due POSTs, and run the clock if it was running."""
        self.outbox.collect()
        self._read_on()
        self._send_due()
        self.clock.go_on()

    async def close(self) -> None:
        """Stop the clock, and cancel POSTs under way."""
        if self._retrying is not None:
            self._retrying.cancel()
        try:
            self.clock.close()
        finally:
            await self.sender.close()

    # -- time -------------------------------------------------------------------------------------

    @property
    def at(self) -> int:
        """Current instant (ms); all events up to and including it have happened."""
        return self.simulation.at

    def next_event_at(self) -> int | None:
        """Next instant (ms) with an event; None without further events."""
        self.outbox.look_ahead()
        return self._ahead()

    def happened(self) -> int:
        """Counter that grows when a call, a campaign or a limit changes, or a result is due."""
        return self.simulation.log.size() + self.outbox.happened

    def work_on(self, last: int) -> bool:
        """Process events for a moment, up to an instant (ms), and send the POSTs that may leave."""
        self._require_journal()
        turn_ends = monotonic() + PATIENCE
        while (ahead := self._ahead()) is not None and ahead <= last:
            if ahead > self.outbox.limit:
                self._stepped()
                return True
            end = min(self.outbox.stretch(ahead), self.outbox.limit, last)
            stretch = ahead
            while True:
                stretch = min(stretch + _STEP, end)
                self.simulation.work_off(stretch)
                if stretch == end or monotonic() > turn_ends:
                    break
            # The engine stops at its last event, but results may fall due after it within the
            # stretch.
            due = self.outbox.last_due(stretch)
            if due is not None and due > self.at:
                self.simulation.move_to(due)
            self.outbox.collect()
            if self.outbox.is_due or monotonic() > turn_ends:
                self._stepped()
                return True
        self._stepped()
        return False

    @property
    def held(self) -> bool:
        """True if the clock must, or should, wait for POSTs.

        Waiting pays because bodies are made in batches.
        """
        if not self.outbox.is_due:
            return False
        ahead = self._ahead()
        too_far = ahead is not None and ahead > self.outbox.limit
        return too_far or self.at - self.outbox.front >= self.outbox.stride // 2

    def move_to(self, instant: int) -> None:
        """Move to an instant (ms) before which nothing is due; raises `NotKept` as `work_on`."""
        self._require_journal()
        self.simulation.move_to(instant)
        self.outbox.collect()
        self._stepped()

    def _ahead(self) -> int | None:
        """Return the next instant with work for the engine, a due result or another known event."""
        event, due = self.simulation.next_instant(), self.outbox.next_due()
        return event if due is None else due if event is None else min(event, due)

    def _read_on(self) -> None:
        """Update all views now, because a million calls are too much work for one request."""
        log = self.simulation.log
        state = log.call_changes(), len(log.reanalyses)
        # With a thousand idle campaigns, looking at each after every command takes longer than the
        # command.
        if state != self._read:
            self._read = state
            for account in self.accounts:
                account.catch_up()

    # -- what is sent and kept --------------------------------------------------------------------

    def strike_request(self, caller: int, path: str) -> InjectedFault | None:
        """Count the faults that a request of an organization, given its index, meets.

        Returns the fault that strikes the request, or None.
        """
        met, struck = self.faults.for_answer(caller, path, self.at)
        if met:
            number = None if struck is None else struck.number
            try:
                self.carry_out(CountFaults(met=met, struck=number, caller=caller))
            # A strike that is not in the journal could not be repeated: while it cannot be written,
            # none strikes.
            except NotKept:
                return None
        return struck

    def _send_due(self) -> None:
        """Send the due POSTs once the journal contains everything that led to them.

        Faults strike POSTs in the order in which they leave.
        """
        while self.journal is None or self.journal.error is None:
            leaving, self._leaving = self._leaving, []
            self.sender.take(leaving)
            delivery = self.outbox.next_to_leave()
            if delivery is None:
                return
            self._strike_post(delivery)

    def _strike_post(self, delivery: Delivery) -> None:
        """Count the faults that a POST meets before it leaves; then release the POST, or hold it
        back.
        """
        if not self.sends(delivery.url):
            self._log_kept(delivery.url)
            self._record_post(self.outbox.keep(delivery))
            return
        log, post = self.outbox.log, self.outbox.next_post(delivery)
        met, struck = self.faults.for_post(post, partial(log.before, post.key))
        if met:
            number = None if struck is None else struck.number
            count = CountFaults(met=met, struck=number, post=which_post(post), at=post.at)
            self.repeat(count)
            self._record(count)
            self._note(_entry_of(count, self.at))
        until = self.faults.held_until(which_post(post))
        if until is not None and until > post.at:
            self.outbox.hold(delivery, until)
            return
        delivery.fault = self.faults.fate(post)
        before = log.before(post.key) if delivery.fault == "stale" else None
        delivery.stale = None if before is None else self.webhooks.body(before)
        self.outbox.write_down(delivery, post)
        # The POST leaves once the journal is written: no receiver may see what a kill could undo.
        self._leaving.append(delivery)

    def sends(self, url: str) -> bool:
        """Return whether results for a URL leave the machine, rather than being kept."""
        return self._silent or self.destinations.sends(url, self.named_urls)

    def _log_kept(self, url: str) -> None:
        if url not in self._kept_urls:
            self._kept_urls.add(url)
            text = "Results for %s are kept, not sent: no option or client permits that URL"
            _LOG.warning(text, url)

    def _new_sender(self) -> Sender:
        kind = SilentSender if self._silent else Sender
        report = partial(self._came_back, self.epoch)
        return kind(self.scenario.service, self.destinations, report)

    def _came_back(self, epoch: int, delivery: Delivery, response: int) -> None:
        """Record the response to a POST and send the POSTs that waited for it."""
        # The POST belongs to a run that a reset or a restore has replaced.
        if epoch != self.epoch:
            return
        self.outbox.came_back(delivery, response)
        post = self.outbox.log.row(delivery.row)
        self.faults.ended(post)
        self._record_post(post)
        self._send_due()

    def _stepped(self) -> None:
        """Publish the current instant of the clock to views and the journal."""
        self._read_on()
        self._note(self.step())
        self._require_journal()
        self._send_due()

    # -- the journal ------------------------------------------------------------------------------

    def step(self) -> Entry:
        """Return the journal entry that records the current position of the clock."""
        return Entry(self.at, EntryKind.STEP, b"%d" % self.simulation.log.size())

    def _note(self, entry: Entry) -> None:
        """Record an event, now or as soon as the journal can be written."""
        if self.journal is not None:
            self.journal.note(entry)
            self._retry_if_pending(self.journal)

    def _retry_if_pending(self, journal: Journal) -> None:
        """Start to write the pending journal entries as soon as possible."""
        if journal.error is not None and (self._retrying is None or self._retrying.done()):
            self._retrying = asyncio.create_task(self._retry(journal))

    async def _retry(self, journal: Journal) -> None:
        """Retry to write pending entries to the journal until it succeeds, then send the waiting
        POSTs.
        """
        while journal.error is not None:
            await asyncio.sleep(NEXT_TRY)
            with suppress(JournalError):
                journal.write_pending()
        self._send_due()

    def catch_up(self) -> None:
        """Write pending entries to the journal, and send the POSTs that waited for it.

        Raises `NotKept`. Called before the clock moves, so that POSTs leave at the instant at which
        they were due.
        """
        self._require_journal()
        self._send_due()

    async def journal_written(self) -> None:
        """Wait until the journal contains all events so far."""
        if self._retrying is not None:
            await asyncio.wait([self._retrying])

    def _require_journal(self) -> None:
        """Raise `NotKept` unless the journal contains all events so far."""
        if self.journal is not None:
            try:
                self.journal.write_pending()
            except JournalError as error:
                raise NotKept(error) from None

    def _record_post(self, post: Post) -> None:
        self.records.append(Record(self.at, post))
        self._note(Entry(self.at, EntryKind.POSTS, POST.dump_json(post)))

    def _record(self, command: Command) -> None:
        self.records.append(Record(self.at, command.without_sources()))

    # -- snapshots --------------------------------------------------------------------------------

    @property
    def state(self) -> Snapshot:
        """Current state, as a snapshot without a name."""
        return Snapshot(self.at, (*self.records,))

    def take_snapshot(self, name: str) -> Snapshot:
        """Store the current state under a name; 409 for a taken name, or if there are too many
        snapshots.
        """
        if name in self.snapshots:
            text = f'There is a snapshot "{name}" already: delete it, or choose another name'
            raise fail.SNAPSHOT_EXISTS.refused(text)
        if len(self.snapshots) >= fail.MOST_SNAPSHOTS:
            raise fail.TOO_MANY_SNAPSHOTS.refused()
        self._keep(TakeSnapshot(name=name))
        self.snapshots[name] = self.state
        return self.snapshots[name]

    def snapshot(self, name: str) -> Snapshot:
        """Return the snapshot with a name; 404 for an unknown name."""
        if name not in self.snapshots:
            raise fail.NO_SNAPSHOT.refused()
        return self.snapshots[name]

    def drop_snapshot(self, name: str) -> None:
        """Delete a snapshot; 404 for an unknown name."""
        self.snapshot(name)
        self._keep(DropSnapshot(name=name))
        del self.snapshots[name]

    async def restore(self, name: str | None) -> None:
        """Restore the state of a snapshot, given its name (404 if unknown), or (None) the initial
        state. Other requests are answered during the replay; their changes are lost as well. POSTs
        under way are cancelled, an advance ends with 409, and the clock stands still.
        """
        async with self._restoring:
            state = self.snapshot(name) if name is not None else self.beginning
            seed = self.simulation.log.world.seed
            # Replayed beside the running sandbox: clients are answered meanwhile.
            other = await asyncio.to_thread(
                self.replayed, self.scenario, seed, state, self.destinations
            )
            # A client may have deleted the snapshot, or taken another one of the name, meanwhile.
            if name is not None and self.snapshot(name) is not state:
                raise fail.NO_SNAPSHOT.refused()
            self._keep(Restore(name=name))
            # Closed after the new run is in place: a POST under way is cancelled and reports to
            # neither run.
            given_up = self.sender
            self._become(other)
            self.open()
            await given_up.close()

    @property
    def beginning(self) -> Snapshot:
        """Initial state."""
        return Snapshot(self.scenario.clock.start, ())

    def _become(self, other: SandboxCore) -> None:
        """Replace the run by the run of another core, which is not used afterwards."""
        self.clock.give_up()
        self.epoch += 1
        self.simulation, self.accounts = other.simulation, other.accounts
        self._read = other._read
        self.keys, self._regenerated = other.keys, other._regenerated
        self.named_urls, self.taken = other.named_urls, other.taken
        self.faults, self.triggers = other.faults, other.triggers
        self.outbox, self.webhooks = other.outbox, other.webhooks
        self.records, self._leaving = other.records, []
        self.sender = self._new_sender()
        if other.clock.speed is not None:
            self._record(SetSpeed(speed=None))

    def _keep(self, command: Command) -> None:
        """Write a command to the journal, if any; raises `NotKept`."""
        if self.journal is not None:
            try:
                self.journal.keep(_entry_of(command, self.at))
            except JournalError as error:
                raise NotKept(error) from None

    # -- organizations and campaigns --------------------------------------------------------------

    def api_key(self, organization: int) -> str:
        """The key of an organization, by position."""
        world = self.simulation.log.world
        block, times = world.organizations[organization], self._regenerated[organization]
        first = block.settings.api_key or derived_key(world.seed, block.name)
        return regenerated_key(world.seed, block.name, first, times) if times else first

    def add_organization(self, settings: Organization) -> None:
        """Add an organization after the others; 400 if its key is taken."""
        key = settings.api_key
        if key is not None and self.keys.owner(key.encode()) is not None:
            raise invalid("apiKey must be unique, but another organization has it")
        block = self.simulation.add_organization(settings)
        self.accounts.append(Account(self.simulation, block))
        self._regenerated.append(0)
        self.keys.add(self.api_key(block.position))
        self.outbox.add_organization()
        self.taken |= identifying_texts(settings)

    @property
    def settings(self) -> list[Organization]:
        """Return the initial settings of all current organizations."""
        return [account.block.settings for account in self.accounts]

    def regenerate_key(self, organization: int) -> None:
        """Give an organization a new key; the old key is invalid at once (interface, section 5)."""
        self._regenerated[organization] += 1
        self.keys.replace(organization, self.api_key(organization))

    def organization(self, named: str) -> Account:
        """An organization by its id or its name; 404 if there is none."""
        identifier = named.lower()
        for account in self.accounts:
            if account.identifier.lower() == identifier:
                return account
        for account in self.accounts:
            if account.block.name == named:
                return account
        raise fail.NO_ORGANIZATION.refused()

    def webhook_url(self, organization: int) -> str | None:
        """Return the current webhook URL of an organization, given its index."""
        changes = reversed(self.simulation.log.urls)
        return next(row.url for row in changes if row.organization == organization)

    def where_results_go(self, account: Account) -> str:
        """Return the destination of an organization's results in words, for banner and page."""
        url = self.webhook_url(account.block.position)
        if url is None:
            return "kept, not sent (there is no webhook URL)"
        if self.sends(url):
            return f"sent to {url}"
        return f"kept, not sent to {url} (to send them, ask for it: --send-webhooks)"

    def url_to_send_to(self, organization: int) -> str:
        """Return the webhook URL of an organization; 409 if results are not sent anywhere."""
        url = self.webhook_url(organization)
        if url is None:
            raise fail.NO_WEBHOOK_URL.refused()
        if not self.sends(url):
            text = f"Results for {url} are kept, not sent: set the webhook URL to have them sent"
            raise fail.NO_WEBHOOK_URL.refused(text)
        return url

    def send_again(self, n: int) -> Delivery:
        """Send the result in row `n` (from 1) of the webhooks once more.

        404 if the row does not exist, 409 if results are not sent anywhere.
        """
        key = self.webhooks.key(n)
        self.url_to_send_to(key.organization)
        self.carry_out(ResendWebhook(**key._asdict()))
        return self.outbox.asked_last

    def campaign(self, identifier: str) -> tuple[Account, CampaignView]:
        """The campaign of any organization, also one that was deleted; 404 if there is none."""
        for account in self.accounts:
            for view in account.views:
                if view.identifier.lower() == identifier.lower():
                    return account, view
        raise fail.NO_CAMPAIGN.refused()

    def call(self, identifier: str) -> tuple[CampaignView, int]:
        """The campaign and position of a call of any organization; 404 if there is none."""
        for account in self.accounts:
            if (found := account.call(identifier)) is not None:
                return found
        raise fail.NO_CALL.refused()


def _entry_of(command: Command, at: int) -> Entry:
    return Entry(at, EntryKind.COMMAND, command.model_dump_json().encode())
