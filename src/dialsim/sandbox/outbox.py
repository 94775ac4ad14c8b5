"""The outbox: which POSTs of results leave when, and what comes of them (rules W, T4 step 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby
from typing import NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from dialsim.engine.calls import NEVER
from dialsim.engine.dialler import Dialler
from dialsim.engine.post_log import Post, PostKey, PostLog
from dialsim.engine.trace import Trace
from dialsim.interface.errors import Refused
from dialsim.results.run_view import RunView
from dialsim.sandbox.campaign_view import CampaignView
from dialsim.sandbox.faults import WebhookFault, WhichPost
from dialsim.sandbox.live_engine import LiveEngine
from dialsim.sandbox.organization import Account
from dialsim.webhooks.bodies import Bodies
from dialsim.webhooks.deliveries import has_url, next_post_at, unfinished, urls
from dialsim.webhooks.messages import Messages, sequence
from dialsim.webhooks.stream import CampaignStream
from dialsim.webhooks.visible_state import Setting, VisibleState

_MOST_AT_ONCE = 65_536


class Promises(NamedTuple):
    """What is to come by itself: results, and the instants (ms) of other changes by analyses."""

    messages: Messages
    changes: NDArray[np.int64]


class CampaignOutbox:
    """What one campaign has to tell its organization's receiver.

    Calls are told apart by their positions.
    """

    def __init__(self, trace: Trace, view: CampaignView, dialler: Dialler) -> None:
        self.view = view
        self._trace = trace
        self._dialler = dialler
        self._bodies = Bodies(trace, view.campaign.block)
        self._ends_seen = 0
        self._reanalyses_seen = 0
        self._rows_of_reanalyses = 0

    def has_news(self) -> bool:
        """Whether any result may have been promised since the last time."""
        calls = self.view.calls
        return (
            calls.ends > self._ends_seen
            or len(self._trace.reanalyses) > self._rows_of_reanalyses
            or calls.has_ends_ahead()
        )

    def news(self) -> Promises:
        """What has been promised since the last time, by calls that ended, and by re-analyses.

        There may be more by calls that ended; `has_news` says so.
        """
        self.view.catch_up()
        calls, analyses = self.view.calls, self.view.analyses
        # where nobody waits for results, a million calls may have ended by then
        ended = calls.ended(self._ends_seen)[:_MOST_AT_ONCE]
        first = analyses.firsts(ended)
        messages = first[first.ready_at != NEVER]
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
        """The results, by call and number of the result, that are still to be told of.

        A later re-analysis may have taken one back: a fallback doesn't overwrite a good result.
        """
        self.view.catch_up()
        analyses = self.view.analyses
        first = analyses.firsts(np.array([c for c, number in promised if not number], np.int64))
        repeats = [(analyses.again(call), number) for call, number in promised if number]
        again = (messages[messages.result == number] for messages, number in repeats)
        return Messages.joined([first, *again])

    def key(self, call: int, result: int) -> PostKey:
        """The key of a result."""
        block, entry = self.view.campaign.block, self.view.calls[call]
        return PostKey(block.organization, block.position, entry.recipient, entry.call, result)

    def call(self, key: PostKey) -> int:
        """The position of the call of a key."""
        return self.view.calls.of(key.recipient)[key.call - 1]

    def bodies(self, messages: Messages, at: int) -> list[bytes]:
        """The bodies of results whose first POSTs leave now, at the end of an instant (W4)."""
        shown = self._shown(messages, at)
        return [*map(orjson.dumps, self._bodies.of(messages, self.view.calls, shown))]

    def _shown(self, messages: Messages, at: int) -> VisibleState:
        """What the payloads show of recipients and campaign: the state of now."""
        view, calls = self.view, self.view.calls
        who = calls.recipient[messages.call]
        return VisibleState(
            call_attempt=calls.attempts_of(who),
            latest_call_status=view.analyses.standing(calls.newest[who], at).status,
            setting=np.zeros(len(messages), dtype=np.int64),
            expired=view.flags(calls.ended_at[messages.call], at),
            settings=[Setting(at, view.campaign.status, self._dialler.limit)],
        )


_STRIDE = 60_000  # virtual ms worked off in one go where nobody waits for results
_NO_CALL = -1


class _Place(NamedTuple):
    """Where a result belongs: a call by its position."""

    organization: int
    campaign: int
    call: int
    result: int


class _Entry(NamedTuple):
    """A POST that is due, or (without a call) another change that comes by itself."""

    at: int
    place: _Place


@dataclass(slots=True)
class Delivery:
    """A result on its way to a URL. `tries` of its POSTs (W2) have failed by now.

    `turn` is as in `Post`. `row` is that of the newest POST in the log. A delivery without a
    `place` is of a result that somebody has had sent again. `fault` is what happens to its POST
    on purpose; `stale` is the body that comes behind it then.
    """

    key: PostKey
    url: str
    body: bytes
    turn: int
    place: _Place | None = None
    tries: int = 0
    row: int = -1
    fault: WebhookFault | None = None
    stale: bytes | None = None

    @property
    def resent(self) -> bool:
        """Whether somebody asked for this POST: it is made once."""
        return self.place is None


class Outbox:
    """The results of all organizations, from when they are promised until they are told of.

    Campaigns of an organization that has a URL are followed instant by instant. What the others
    have to tell is looked at only when somebody asks: their payloads are kept, which is to say that
    they can be made at any time. `happened` counts what has fallen due, `changes` what was written
    to the log, `told` the POSTs that have left and the payloads that were seen to be kept, by
    campaign.
    """

    def __init__(self, simulation: LiveEngine, accounts: Sequence[Account]) -> None:
        self.happened = 0
        self.told: Counter[tuple[int, int]] = Counter()
        self.changes = 0
        self.log = simulation.log.posts = PostLog()
        self._simulation = simulation
        self._accounts = accounts
        self._boxes: list[list[CampaignOutbox]] = [[] for _ in accounts]
        self._entries: list[_Entry] = []  # a heap
        self._failed: dict[_Place, Delivery] = {}
        self._asked_for: list[Delivery] = []
        self._sent_again: set[PostKey] = set()
        self._urls: list[str | None] = [None] * len(accounts)
        self._urls_read = 0
        timelines = (account.block.settings.timeline for account in accounts)
        changes = [deed for deeds in timelines for deed in deeds if deed.action == "setWebhookUrl"]
        self._url_changes = sorted(deed.at for deed in changes)

    def add_organization(self) -> None:
        """Take in that there is one more account."""
        self._boxes.append([])
        self._urls.append(None)

    # -- what lies ahead --------------------------------------------------------------------------

    def next_due(self) -> int | None:
        """The next instant (ms) at which something is due, of what is known to be promised."""
        return self._entries[0].at if self._entries else None

    def look_ahead(self) -> None:
        """Learn of everything that is promised, also to organizations without a URL."""
        for organization in range(len(self._accounts)):
            self._learn(organization)

    def stretch(self, ahead: int) -> int:
        """Up to where (ms) the engine may work, whose next event is at `ahead`, without a look."""
        self._read_urls()
        if any(url is not None for url in self._urls):
            return ahead
        change = next((at for at in self._url_changes if at >= ahead), ahead + _STRIDE)
        return min(ahead + _STRIDE, change)

    # -- what leaves ------------------------------------------------------------------------------

    def collect(self) -> list[Delivery]:
        """The POSTs that may leave now, everything else on this instant being done (T4 step 9).

        Their bodies are made before any of them leaves. Each is then written down, or held.
        """
        self._read_urls()
        for organization, url in enumerate(self._urls):
            if url is not None:
                self._learn(organization)
        leaving, self._asked_for = self._asked_for, []
        now, due = self._simulation.at, []
        while self._entries and self._entries[0].at <= now:
            due.append(heappop(self._entries).place)
        if due:
            self.happened += len(due)
            leaving += sorted(self._deliveries(due), key=lambda delivery: delivery.key)
        return leaving

    def next_post(self, delivery: Delivery) -> Post:
        """The POST of a delivery that may leave now."""
        counted = delivery.key in self._sent_again
        number = self.log.count(delivery.key) + 1 if counted else delivery.tries + 1
        return Post(delivery.key, number, self._simulation.at, delivery.turn, delivery.resent)

    def write_down(self, delivery: Delivery, post: Post) -> None:
        """Have a POST in the log, as under way."""
        delivery.row = self.log.append(post)
        self.told[delivery.key[:2]] += 1
        self.changes += 1

    def hold(self, delivery: Delivery, until: int) -> None:
        """Have a delivery leave later (ms), as it is, unless somebody asked for it."""
        assert delivery.place is not None
        self._try_again(delivery, delivery.place, until)

    def send_again(self, key: PostKey, body: bytes) -> None:
        """Have a result that was sent or kept before leave once more, with the next `collect`.

        It goes to the organization's URL of now; refused with 409 if there is none.
        """
        self._read_urls()
        url = self._urls[key.organization]
        if url is None:
            text = "The organization has no webhook URL"
            raise Refused(409, "NO_WEBHOOK_URL", [text])
        self._sent_again.add(key)
        self._asked_for.append(Delivery(key, url, body, self._simulation.log.turn))

    def came_back(self, delivery: Delivery, response: int) -> None:
        """Note what came of the POST under way, an HTTP status or a code in its place (W2).

        A failed one is made again, at the same URL and with the same body, while tries remain.
        """
        self.log.answer(delivery.row, response)
        self.changes += 1
        if delivery.place is None:
            return
        delivery.tries += 1
        tries, left_at = np.array([delivery.tries]), np.array([self.log.row(delivery.row).at])
        [due] = next_post_at(tries, left_at, np.array([response], dtype=np.int16)).tolist()
        if due != NEVER:
            self._try_again(delivery, delivery.place, due)

    # -- going on with a journal ------------------------------------------------------------------

    def recorded(self, post: Post) -> None:
        """Take in a POST that was made, and its outcome."""
        self.log.append(post)
        self.changes += 1
        if post.resent:
            self._sent_again.add(post.key)
            asked = next(delivery for delivery in self._asked_for if delivery.key == post.key)
            self._asked_for.remove(asked)

    def restore(self, held_until: Callable[[WhichPost], int | None]) -> None:
        """Go on where what was recorded ends: no result is forgotten, none told of too often.

        `held_until` is when (ms) a POST leaves that a fault delays.
        """
        self._read_urls()
        for organization in range(len(self._accounts)):
            self._learn(organization, overdue=False)
        trace = self._simulation.trace
        if any(change.url is not None for change in trace.urls):
            for place, stream in RunView(trace).streams.items():
                self._restore_campaign(trace, place, stream, held_until)

    # -- the rest ---------------------------------------------------------------------------------

    def _restore_campaign(
        self,
        trace: Trace,
        position: tuple[int, int],
        stream: CampaignStream,
        held_until: Callable[[WhichPost], int | None],
    ) -> None:
        """Put what was due by now, and is not over, among the entries again."""
        box, calls, messages = (
            self._boxes[position[0]][position[1]],
            stream.calls,
            stream.messages,
        )
        to = urls(trace, position[0], sequence(trace, messages.sent_at, messages.turn))
        due, tries = unfinished(messages, stream.posts)
        for row in np.flatnonzero(due != NEVER).tolist():
            if (url := to[row]) is None:
                continue
            call, result = int(messages.call[row]), int(messages.result[row])
            key = PostKey(*position, int(calls.recipient[call]), int(calls.call[call]), result)
            place = _Place(*position, box.call(key), result)
            body = orjson.dumps(next(stream.bodies(np.array([row]))))
            turn = int(messages.turn[row])
            delivery = Delivery(key, url, body, turn, place, int(tries[row]))
            held = held_until((*key, delivery.tries + 1))
            self._try_again(delivery, place, int(due[row]) if held is None else held)

    def _read_urls(self) -> None:
        changes = self._simulation.log.urls
        for change in changes[self._urls_read :]:
            self._urls[change.organization] = change.url
        self._urls_read = len(changes)

    def _learn(self, organization: int, *, overdue: bool = True) -> None:
        """Take in what an organization has been promised since the last time.

        `overdue`: also what was due before now, or is now.
        """
        simulation, boxes = self._simulation, self._boxes[organization]
        for view in self._accounts[organization].views[len(boxes) :]:
            boxes.append(CampaignOutbox(simulation.log, view, simulation.dialler(organization)))
        for box in boxes:
            while box.has_news():
                self._enter(organization, box, overdue)

    def _enter(self, organization: int, box: CampaignOutbox, overdue: bool) -> None:
        """Put what is due later, or now, among the entries. What was due earlier was kept (W6)."""
        now, trace = self._simulation.at, self._simulation.log
        campaign = box.view.campaign.block.position
        messages, changes = box.news()
        wanted = messages.sent_at > now
        if overdue and not wanted.all():
            sent = sequence(trace, messages.sent_at, messages.turn)
            wanted |= has_url(trace, organization, sent)
        self.told[organization, campaign] += len(wanted) - int(np.count_nonzero(wanted))
        chosen = messages[wanted]
        columns = (chosen.sent_at, chosen.call, chosen.result)
        for at, call, result in zip(*(column.tolist() for column in columns), strict=True):
            heappush(self._entries, _Entry(at, _Place(organization, campaign, call, result)))
        for at in changes[changes > now].tolist():
            heappush(self._entries, _Entry(at, _Place(organization, campaign, _NO_CALL, 0)))

    def _deliveries(self, due: Sequence[_Place]) -> list[Delivery]:
        """What leaves of the things due: POSTs that failed before, and first ones."""
        deliveries = [self._failed.pop(place) for place in due if place in self._failed]
        tried = {delivery.place for delivery in deliveries}
        first = sorted(place for place in due if place.call != _NO_CALL and place not in tried)
        for (organization, campaign), places in groupby(first, key=lambda place: place[:2]):
            deliveries += self._first_deliveries(self._boxes[organization][campaign], [*places])
        return deliveries

    def _first_deliveries(self, box: CampaignOutbox, places: Sequence[_Place]) -> list[Delivery]:
        """Results of one campaign to be told of now; without a URL they are kept (W6)."""
        trace, place = self._simulation.log, places[0]
        messages = box.due([(place.call, place.result) for place in places])
        sent = sequence(trace, messages.sent_at, messages.turn)
        to = urls(trace, place.organization, sent)
        chosen = np.array([row for row, url in enumerate(to) if url is not None], dtype=np.int64)
        self.told[place[:2]] += len(to) - len(chosen)
        if not len(chosen):
            return []
        bodies = box.bodies(messages[chosen], self._simulation.at)
        deliveries = []
        for row, body in zip(chosen.tolist(), bodies, strict=True):
            call, result, url = int(messages.call[row]), int(messages.result[row]), to[row]
            assert url is not None  # such rows were chosen
            target = _Place(place.organization, place.campaign, call, result)
            turn = int(messages.turn[row])
            deliveries.append(Delivery(box.key(call, result), url, body, turn, target))
        return deliveries

    def _try_again(self, delivery: Delivery, place: _Place, at: int) -> None:
        self._failed[place] = delivery
        heappush(self._entries, _Entry(at, place))
