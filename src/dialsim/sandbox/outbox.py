"""The outbox: schedule of the POSTs of results, and their responses (rules W, T4 step 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count, groupby
from typing import NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from dialsim.engine.log_reader import NOT_HAPPENED
from dialsim.engine.trace import Trace
from dialsim.interface.payload import NOT_SENT, WAITS_MS, Post, PostKey, PostLog, accepted
from dialsim.results.run_view import RunView
from dialsim.sandbox.campaign_view import Account, CampaignView
from dialsim.sandbox.live_engine import LiveEngine
from dialsim.sandbox.orders import WhichPost
from dialsim.scenario.service import WebhookFault
from dialsim.webhooks.bodies import Bodies, visible_state
from dialsim.webhooks.deliveries import CampaignStream, has_url, next_post_at, unfinished, urls
from dialsim.webhooks.messages import FOREVER, Messages, sequence

_MOST_AT_ONCE = 65_536


class Promises(NamedTuple):
    """Scheduled events: results, and the instants (ms) of other changes by analyses."""

    messages: Messages
    changes: NDArray[np.int64]


class CampaignOutbox:
    """Results of one campaign for its organization's receiver.

    Calls are identified by index.
    """

    def __init__(self, trace: Trace, view: CampaignView) -> None:
        self.view = view
        self._trace = trace
        self._bodies = Bodies(trace, view.campaign.block)
        self._ends_seen = 0
        self._reanalyses_seen = 0
        self._rows_of_reanalyses = 0

    def has_news(self) -> bool:
        """True if new results may have been scheduled since the last call."""
        calls = self.view.calls
        return (
            calls.ends > self._ends_seen
            or len(self._trace.reanalyses) > self._rows_of_reanalyses
            or calls.has_ends_ahead()
        )

    def news(self) -> Promises:
        """Return the results scheduled since the last call, from ended calls and re-analyses.

        The batch of ended calls is limited; `has_news` is true while calls remain.
        """
        self.view.catch_up()
        calls, analyses = self.view.calls, self.view.analyses
        # without a receiver, a million calls may have ended since the last batch
        ended = calls.ended(self._ends_seen)[:_MOST_AT_ONCE]
        first = analyses.firsts(ended)
        messages = first[first.ready_at != NOT_HAPPENED]
        changes = [analyses.failures(ended)]
        if analyses.reanalyses > self._reanalyses_seen:
            messages = Messages.joined([messages, analyses.repeated(self._reanalyses_seen)])
        if self._trace.world.scenario.engine.webhook_delay:
            changes.append(messages.ready_at)
        self._ends_seen += len(ended)
        self._reanalyses_seen = analyses.reanalyses
        self._rows_of_reanalyses = len(self._trace.reanalyses)
        return Promises(messages, np.concatenate(changes))

    def due(self, promised: Sequence[tuple[int, int]]) -> Messages:
        """Return the results, by call and result number, that are still to be sent.

        A later re-analysis may have made a result superfluous: a fallback never replaces a good
        one.
        """
        self.view.catch_up()
        analyses = self.view.analyses
        first = analyses.firsts(np.array([c for c, number in promised if not number], np.int64))
        repeats = [(analyses.again(call), number) for call, number in promised if number]
        again = (messages[messages.result == number] for messages, number in repeats)
        return Messages.joined([first, *again])

    def key(self, call: int, result: int) -> PostKey:
        """The key of a result."""
        calls = self.view.calls
        person, number = int(calls.recipient[call]), int(calls.call[call])
        return PostKey(*self.view.position, person, number, result)

    def bodies(self, messages: Messages) -> list[bytes]:
        """Return the bodies of results whose first POSTs are due, each as of the end of its instant
        (W4). The `update` that read these results read all later events as well, so changes after
        the instant are left out here.
        """
        calls = self.view.calls
        shown = visible_state(self._trace, calls, messages, self._statuses)
        return [*map(orjson.dumps, self._bodies.of(messages, calls, shown))]

    def _statuses(self, calls: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return the statuses of calls at instants (ms), even if later changes have been read."""
        known = self.view.calls
        status = self.view.analyses.standing(calls, at).status
        later = np.flatnonzero(known.changed_at[calls] > at)
        if len(later):
            status[later] = known.status_before_next(calls[later], at[later])
        return status


STRIDE = 300_000
"""Greatest lead (ms of virtual time) of the engine over results that have not left.

Bodies are made for a stretch of time at once: with stretches of one minute, a result takes half as
much time again. The lead is longer where more POSTs than the default may be under way at once.
"""
IN_ORDER_AT_ONCE = 5
"""Most POSTs under way at once without retries being overtaken by later results.

As many connections as a plain `http.server` lets wait for being accepted.
"""
_NO_CALL = -1


class _ResultIndex(NamedTuple):
    """Position of a result: organization, campaign, call index and result number."""

    organization: int
    campaign: int
    call: int
    result: int


class _Entry(NamedTuple):
    """Scheduled result, or (without a call) another scheduled change."""

    at: int
    result: _ResultIndex


@dataclass(slots=True)
class Delivery:
    """Delivery of a result to a URL. `tries` of its POSTs (W2) have failed so far.

    The next POST is due at `at` (ms), and `turn` is as in `Post`. `row` is the row of the newest
    POST in the log. A `resent` delivery was requested by a client and is tried once. `fault` is the
    injected fault of its POST; `stale` is the body sent after the POST then. `over`: no POST
    follows.
    """

    key: PostKey
    url: str
    body: bytes
    turn: int
    at: int
    resent: bool = False
    tries: int = 0
    row: int = -1
    fault: WebhookFault | None = None
    stale: bytes | None = None
    over: bool = False


class Outbox:
    """Results of all organizations, from their scheduling to their delivery.

    Results never influence the calls. So the engine may run ahead: results that fall due meanwhile
    are collected when the engine stops, with bodies that show the state at each result's own
    instant. POSTs then leave in the order of their due instants, but not before it is certain that
    nothing is due earlier. A POST under way can cause only its own retry, after a known minimum
    wait (W2); up to that instant other POSTs may leave. This is conservative synchronization with a
    lookahead (Chandy and Misra 1979, Bryant 1977). So POSTs have the same instants, bodies and
    order as if the clock waited for each POST, which `in_order` does.

    The outbox follows campaigns of organizations with a URL. Results of other organizations are
    read only on request: their payloads are kept, that is, they can be made at any time. `happened`
    counts results that have fallen due, `changes` writes to the log, `webhook_counts` POSTs sent
    and payloads kept, by campaign.
    """

    def __init__(self, simulation: LiveEngine, accounts: Sequence[Account]) -> None:
        self.happened = 0
        self.webhook_counts: Counter[tuple[int, int]] = Counter()
        self.changes = 0
        self.log = simulation.log.posts = PostLog()
        self._simulation = simulation
        self._accounts = accounts
        self._boxes: list[list[CampaignOutbox]] = [[] for _ in accounts]
        service = simulation.log.world.scenario.service
        self._in_order = service.in_order
        # If POSTs waited for possible retries, at most the results of a second or two could leave
        # together: about one from a campaign of ten lines. So where many POSTs at once are wanted,
        # later results may overtake retries.
        self._overtakes = service.webhook_concurrency > IN_ORDER_AT_ONCE and not self._in_order
        self.stride = STRIDE * max(service.webhook_concurrency // IN_ORDER_AT_ONCE, 1)
        self._entries: list[_Entry] = []  # heap; so are the next three
        self._due: list[_Waiting] = []
        self._later: list[_Waiting] = []
        self._soonest: list[tuple[int, int]] = []  # earliest retry, row
        self._under_way: set[int] = set()  # rows of the log
        self._numbers = count()
        self._asked_for: list[Delivery] = []
        self._sent_again: set[PostKey] = set()
        # The current URLs: searching all changes would take longer with every change.
        self._urls: list[str | None] = [None] * len(accounts)
        self._urls_read = 0
        timelines = (account.block.settings.timeline for account in accounts)
        actions = (action for timeline in timelines for action in timeline)
        self._url_changes = sorted(one.at for one in actions if one.action == "setWebhookUrl")

    def add_organization(self) -> None:
        """Follow a new account."""
        self._boxes.append([])
        self._urls.append(None)

    # -- what lies ahead --------------------------------------------------------------------------

    def next_due(self) -> int | None:
        """Return the next due instant (ms) among the known results and retries."""
        entry = self._entries[0].at if self._entries else None
        retry = self._later[0].at if self._later else None
        return min((at for at in (entry, retry) if at is not None), default=None)

    def look_ahead(self) -> None:
        """Read all scheduled results, also of organizations without a URL."""
        for organization in range(len(self._accounts)):
            self._learn(organization)

    def stretch(self, ahead: int) -> int:
        """Return the instant (ms) up to which the engine may run; its next event is at `ahead`."""
        self._read_urls()
        if self._in_order and any(url is not None for url in self._urls):
            return ahead
        end = ahead + self.stride
        return min(end, next((at for at in self._url_changes if at >= ahead), end))

    # -- what leaves ------------------------------------------------------------------------------

    def last_due(self, last: int) -> int | None:
        """Return the last due instant (ms) up to `last`, once the engine has no more events."""
        self._catch_up()
        due = [each.at for heap in (self._entries, self._later) for each in heap if each.at <= last]
        return max(due, default=None)

    def collect(self) -> None:
        """Prepare all POSTs that are due by now (T4 step 9).

        All bodies are made before the first POST leaves.
        """
        self._catch_up()
        now, due = self._simulation.at, list[_ResultIndex]()
        while self._entries and self._entries[0].at <= now:
            due.append(heappop(self._entries).result)
        self.happened += len(due)
        first = sorted(result for result in due if result.call != _NO_CALL)
        for (organization, campaign), results in groupby(first, key=lambda result: result[:2]):
            self._first_deliveries(self._boxes[organization][campaign], [*results])
        while self._later and self._later[0].at <= now:
            self._wait(heappop(self._later).delivery)
        while self._asked_for:
            self._wait(self._asked_for.pop(0))

    def next_to_leave(self) -> Delivery | None:
        """Return the next delivery that may leave; the caller must write it down or hold it."""
        if self._due and self._due[0].at < self._certain():
            return heappop(self._due).delivery
        return None

    @property
    def is_due(self) -> bool:
        """True if a due POST has not left yet or is under way."""
        return bool(self._due or self._under_way)

    @property
    def front(self) -> int:
        """First instant (ms) at which a POST that is due by now may still leave."""
        due = self._due[0].at if self._due else self._simulation.at + 1
        return min(due, self._certain())

    @property
    def limit(self) -> int:
        """Last instant (ms) to which the clock may go before more POSTs leave or return."""
        if not self.is_due:
            return FOREVER
        return self._simulation.at if self._in_order else self.front + self.stride

    def next_post(self, delivery: Delivery) -> Post:
        """The POST of a delivery that may leave now."""
        counted = delivery.key in self._sent_again
        number = self.log.count(delivery.key) + 1 if counted else delivery.tries + 1
        return Post(delivery.key, number, delivery.at, delivery.turn, delivery.resent)

    def write_down(self, delivery: Delivery, post: Post) -> None:
        """Write a POST to the log, as under way."""
        delivery.row = self.log.append(post)
        self.webhook_counts[delivery.key[:2]] += 1
        self.changes += 1
        self.happened += 1
        self._under_way.add(delivery.row)
        if delivery.tries < len(WAITS_MS) and not delivery.resent:
            # A failed POST can be due again no earlier (W2), however soon its answer comes.
            soonest = delivery.at + WAITS_MS[delivery.tries]
            heappush(self._soonest, (soonest, delivery.row))

    def keep(self, delivery: Delivery) -> Post:
        """Record that a result is kept, not sent; it counts like a result without a URL (W6)."""
        kept = Post(delivery.key, 0, delivery.at, delivery.turn, delivery.resent, NOT_SENT)
        self.log.append(kept)
        self.webhook_counts[delivery.key[:2]] += 1
        self.changes += 1
        self.happened += 1
        delivery.over = True
        return kept

    def hold(self, delivery: Delivery, until: int) -> None:
        """Postpone a delivery to an instant (ms), unchanged."""
        delivery.at = until
        self._wait(delivery)

    def send_again(self, key: PostKey, body: bytes) -> None:
        """Send a result again with the next `collect`, to the organization's current URL."""
        self._read_urls()
        url = self._urls[key.organization]
        assert url is not None  # the core refuses requests for other results
        # From now on the log numbers the POSTs of this result: tries alone would repeat numbers.
        self._sent_again.add(key)
        log = self._simulation.log
        self.asked_last = Delivery(key, url, body, log.turn, self._simulation.at, resent=True)
        self._asked_for.append(self.asked_last)

    def came_back(self, delivery: Delivery, response: int) -> None:
        """Record the response to a POST: an HTTP status, or a code instead of a status (W2).

        A failed POST is repeated with the same URL and body while tries remain.
        """
        self.log.answer(delivery.row, response)
        self._under_way.remove(delivery.row)
        self.changes += 1
        delivery.tries += 1
        delivery.over = delivery.resent or accepted(response)
        if delivery.over:
            return
        tries, left_at = np.array([delivery.tries]), np.array([delivery.at])
        [due] = next_post_at(tries, left_at, np.array([response], dtype=np.int16)).tolist()
        delivery.over = due == NOT_HAPPENED
        if not delivery.over:
            delivery.at = due
            self._wait(delivery)

    # -- going on with a journal ------------------------------------------------------------------

    def recorded(self, post: Post) -> None:
        """Restore a POST and its outcome from the journal."""
        self.log.append(post)
        self.changes += 1
        if post.resent:
            self._sent_again.add(post.key)
            asked = next(delivery for delivery in self._asked_for if delivery.key == post.key)
            self._asked_for.remove(asked)

    def restore(self, held_until: Callable[[WhichPost], int | None]) -> None:
        """Restore the deliveries from the log: each result is delivered as often as required.

        `held_until` returns the departure (ms) of a POST that a fault delays.
        """
        self._read_urls()
        for organization in range(len(self._accounts)):
            self._learn(organization, overdue=False)
        trace = self._simulation.trace
        if any(change.url is not None for change in trace.urls):
            for position, own in RunView(trace).campaigns.items():
                self._restore_campaign(trace, position, own.stream, held_until)

    # -- the rest ---------------------------------------------------------------------------------

    def _restore_campaign(
        self,
        trace: Trace,
        position: tuple[int, int],
        stream: CampaignStream,
        held_until: Callable[[WhichPost], int | None],
    ) -> None:
        """Schedule the unfinished deliveries of a campaign again."""
        calls, messages = stream.calls, stream.messages
        to = urls(trace, position[0], sequence(trace, messages.sent_at, messages.turn))
        due, tries = unfinished(messages, stream.posts)
        for row in np.flatnonzero(due != NOT_HAPPENED).tolist():
            if (url := to[row]) is None:
                continue
            call, result = int(messages.call[row]), int(messages.result[row])
            key = PostKey(*position, int(calls.recipient[call]), int(calls.call[call]), result)
            body = orjson.dumps(next(stream.bodies(np.array([row]))))
            turn, at = int(messages.turn[row]), int(due[row])
            delivery = Delivery(key, url, body, turn, at, tries=int(tries[row]))
            held = held_until((*key, delivery.tries + 1))
            delivery.at = at if held is None else held
            self._wait(delivery)

    def _read_urls(self) -> None:
        changes = self._simulation.log.urls
        for change in changes[self._urls_read :]:
            self._urls[change.organization] = change.url
        self._urls_read = len(changes)

    def _catch_up(self) -> None:
        """Read the new scheduled results of organizations that have, or had, a URL."""
        had = [url is not None for url in self._urls]
        self._read_urls()
        for organization, url in enumerate(self._urls):
            if url is not None or had[organization]:
                self._learn(organization)

    def _learn(self, organization: int, *, overdue: bool = True) -> None:
        """Read the new scheduled results of an organization."""
        simulation, boxes = self._simulation, self._boxes[organization]
        for view in self._accounts[organization].views[len(boxes) :]:
            boxes.append(CampaignOutbox(simulation.log, view))
        for box in boxes:
            while box.has_news():
                self._enter(organization, box, overdue)

    def _enter(self, organization: int, box: CampaignOutbox, overdue: bool) -> None:
        """Queue the scheduled results that are due now or later; results without a URL were kept
        (W6).
        """
        now, trace = self._simulation.at, self._simulation.log
        campaign = box.view.campaign.block.position
        messages, changes = box.news()
        wanted = messages.sent_at > now
        if overdue and not wanted.all():
            sent = sequence(trace, messages.sent_at, messages.turn)
            wanted |= has_url(trace, organization, sent)
        self.webhook_counts[organization, campaign] += len(wanted) - int(np.count_nonzero(wanted))
        chosen = messages[wanted]
        columns = (chosen.sent_at, chosen.call, chosen.result)
        for at, call, result in zip(*(column.tolist() for column in columns), strict=True):
            heappush(self._entries, _Entry(at, _ResultIndex(organization, campaign, call, result)))
        for at in changes[changes > now].tolist():
            heappush(self._entries, _Entry(at, _ResultIndex(organization, campaign, _NO_CALL, 0)))

    def _first_deliveries(self, box: CampaignOutbox, results: Sequence[_ResultIndex]) -> None:
        """Schedule the first POSTs of one campaign's results; without a URL, keep them (W6)."""
        trace, first = self._simulation.log, results[0]
        messages = box.due([(one.call, one.result) for one in results])
        sent = sequence(trace, messages.sent_at, messages.turn)
        to = urls(trace, first.organization, sent)
        chosen = np.array([row for row, url in enumerate(to) if url is not None], dtype=np.int64)
        self.webhook_counts[first[:2]] += len(to) - len(chosen)
        if not len(chosen):
            return
        bodies = box.bodies(messages[chosen])
        for row, body in zip(chosen.tolist(), bodies, strict=True):
            key, url = box.key(int(messages.call[row]), int(messages.result[row])), to[row]
            assert url is not None  # the rows with a URL were chosen
            turn, at = int(messages.turn[row]), int(messages.sent_at[row])
            self._wait(Delivery(key, url, body, turn, at))

    def _wait(self, delivery: Delivery) -> None:
        """Queue a delivery for its instant and its turn."""
        turns, at = self._simulation.log.turns, delivery.at
        # turns matter only within the instant of a command
        turn = delivery.turn if delivery.turn and turns[delivery.turn - 1] >= at else 0
        heap = self._due if at <= self._simulation.at else self._later
        heappush(heap, _Waiting(at, turn, delivery.key, next(self._numbers), delivery))

    def _certain(self) -> int:
        """Return the first instant (ms) at which a POST under way may be due again.

        FOREVER if other POSTs need not wait for retries.
        """
        if self._overtakes:
            return FOREVER
        while self._soonest and self._soonest[0][1] not in self._under_way:
            heappop(self._soonest)
        return self._soonest[0][0] if self._soonest else FOREVER


class _Waiting(NamedTuple):
    """Queue entry of a delivery, in order of departure; `number` breaks ties."""

    at: int
    turn: int
    key: PostKey
    number: int
    delivery: Delivery
