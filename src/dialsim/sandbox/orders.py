"""Orders of an operator: injected faults, and triggered results.

A fault has its settings, its strikes so far, and the choice of its next targets. A triggered result
is one result of a chosen kind, now, from a call outside the simulation: the call is made in a
separate simulation with the same organization, agent and service, one person with a script, and a
clock set so that the result is sent at the sandbox's instant. So its body is made like every other
body. The calls, lines and random numbers of the sandbox are not affected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import ceil
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import ConfigDict, Field

from dialsim.engine.behaviour import durations
from dialsim.engine.chance import Purpose, agent_id, generator
from dialsim.interface.instants import format_instant
from dialsim.interface.model import Combined, given, invalid
from dialsim.interface.payload import Post, PostKey
from dialsim.results.run_view import RunView
from dialsim.sandbox import failures as fail
from dialsim.sandbox.campaign_view import Account, CampaignView
from dialsim.sandbox.live_engine import LiveEngine
from dialsim.scenario.behaviour import ScriptText
from dialsim.scenario.campaign import AgentParams
from dialsim.scenario.fields import Model, Phone, Switch, Text, Url
from dialsim.scenario.organization import Agent, Organization, Webhook
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.service import EngineSettings, FaultOrder, StandingFault, WebhookFault

WhichPost = tuple[int, ...]
"""Key of a webhook POST: the parts of the result's key, and the number (see `Post`)."""


@dataclass(slots=True, eq=False)
class InjectedFault:
    """Injected fault. `organization` and `campaign` are indexes that limit its targets.

    It strikes from the instant `begins` (ms). `buckets` holds the instant (ms) at which the bucket
    of a limit was, or will be, full, by organization.
    """

    number: int
    order: StandingFault
    begins: int
    organization: int | None
    campaign: int | None
    met: int = 0
    struck: int = 0
    buckets: dict[int, float] = field(default_factory=dict)

    @property
    def is_standing(self) -> bool:
        """True for a fault of the scenario, false for an order of an operator."""
        return not isinstance(self.order, FaultOrder)

    @property
    def until(self) -> int | None:
        """Instant (ms) at which the fault ends; None if no instant ends it."""
        order = self.order
        return None if order.lasts is None or order.every else self.begins + order.lasts

    @property
    def left(self) -> int | None:
        """Number of strikes left, or None if only time ends the fault."""
        return None if self.order.next is None else self.order.next - self.struck

    def is_over(self, at: int) -> bool:
        """True if the fault has ended at an instant (ms)."""
        return self.left == 0 or (self.until is not None and at >= self.until)

    def strikes_at(self, at: int) -> bool:
        """True if the fault may strike at an instant (ms)."""
        since, order = at - self.begins, self.order
        if since > 0 and order.every is not None:
            since %= order.every
        return self.left != 0 and since >= 0 and (order.lasts is None or since < order.lasts)

    def wait(self, organization: int, at: int) -> int:
        """Return the time (ms) until the bucket of a limit holds a token; 0 if it holds one."""
        full_at = self.buckets.get(organization, at)
        tokens_back = ((self.order.burst or 1) - 1) * self._token
        return max(ceil(round(full_at - tokens_back - at, 6)), 0)

    def take_token(self, organization: int, at: int) -> None:
        """Take a token out of the bucket of a limit at an instant (ms)."""
        # The instant at which the bucket is full stands for its content: it needs no update as time
        # passes.
        self.buckets[organization] = max(self.buckets.get(organization, at), at) + self._token

    @property
    def _token(self) -> float:
        return 1000 / (self.order.requests_per_second or 1)

    def may_strike_post(self, post: Post, follows: bool) -> bool:
        """True if the fault may strike this webhook POST.

        `follows`: an earlier result of the same recipient exists.
        """
        how, (organization, campaign) = self.order.webhooks, post.key[:2]
        return (
            how is not None
            and not (how == "delayed" and post.resent)
            and not (how == "stale" and not follows)
            and self.organization in (None, organization)
            and self.campaign in (None, campaign)
        )

    def may_strike_answer(self, organization: int, path: str) -> bool:
        """True if the fault may strike the answer to this request of an organization."""
        return (
            self.order.api is not None
            and self.organization in (None, organization)
            and (self.order.path is None or path.startswith(self.order.path))
        )


class Encounter(NamedTuple):
    """Faults that a webhook or a request met, by number, and the fault that struck it."""

    met: tuple[int, ...] = ()
    struck: InjectedFault | None = None


class InjectedFaults:
    """Faults that were not cleared, including expired ones: the scenario's first, then by age."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._faults: dict[int, InjectedFault] = {}
        self._fates: dict[WhichPost, WebhookFault | None] = {}  # faults of POSTs under way
        self._held: dict[WhichPost, int] = {}  # departures (ms) of delayed POSTs
        self._last = 0

    def __iter__(self) -> Iterator[InjectedFault]:
        return iter(self._faults.values())

    def add(
        self, order: StandingFault, organization: int | None, campaign: int | None, at: int
    ) -> None:
        """Add a fault at an instant (ms); 409 if there are too many faults."""
        if len(self._faults) >= fail.MOST_FAULTS:
            raise fail.TOO_MANY_FAULTS.refused()
        self._last += 1
        begins = at if order.at is None else order.at
        self._faults[self._last] = InjectedFault(self._last, order, begins, organization, campaign)

    def find(self, number: int) -> InjectedFault:
        """Return the fault with a number, from 1; 404 for an unknown or cleared fault."""
        if number not in self._faults:
            raise fail.NO_FAULT.refused()
        return self._faults[number]

    def newest(self) -> InjectedFault:
        """Fault that was added last."""
        return self._faults[self._last]

    def clear(self, number: int | None) -> None:
        """Remove a fault, given its number, or all faults. Their numbers are not used again."""
        if number is None:
            self._faults.clear()
        else:
            del self._faults[self.find(number).number]

    def for_post(self, post: Post, before: Callable[[], PostKey | None]) -> Encounter:
        """Return the faults of a webhook POST without counting a strike.

        A POST under way has met its faults already. `before` returns the key of the previous result
        of the same recipient, or None; it is called only for faults that need the key.
        """
        # The faults of a POST under way are decided: if the POST is made again after a restart, it
        # must not meet faults twice.
        if which_post(post) in self._fates:
            return Encounter()

        def may_strike(fault: InjectedFault) -> bool:
            follows = fault.order.webhooks == "stale" and before() is not None
            return fault.may_strike_post(post, follows)

        return self._encounter(may_strike, post.at)

    def fate(self, post: Post) -> WebhookFault | None:
        """Return the fault of a POST under way, the same for each attempt to send it, or None."""
        return self._fates.get(which_post(post))

    def held_until(self, post: WhichPost) -> int | None:
        """Return the departure (ms) of a delayed POST, or None."""
        return self._held.get(post)

    def ended(self, post: Post) -> None:
        """Forget the faults of a POST that is no longer under way."""
        self._fates.pop(which_post(post), None)
        self._held.pop(which_post(post), None)

    def for_answer(self, organization: int, path: str, at: int) -> Encounter:
        """Return the faults of an answer to an organization's request without counting a strike."""

        def may_strike(fault: InjectedFault) -> bool:
            return fault.may_strike_answer(organization, path)

        return self._encounter(may_strike, at, organization)

    def count(
        self,
        met: tuple[int, ...],
        struck: int | None,
        at: int,
        *,
        post: WhichPost | None = None,
        caller: int | None = None,
    ) -> None:
        """Count an encounter at an instant (ms), by the numbers of the faults.

        Fixes the fault of a POST, or takes tokens of the caller of a request, given its index.
        """
        for number in met:
            fault = self._faults[number]
            fault.met += 1
            if caller is not None and number != struck and fault.order.api == "limit":
                fault.take_token(caller, at)
        striker = None if struck is None else self._faults[struck]
        if striker is not None:
            striker.struck += 1
        if post is not None:
            self._fates[post] = None if striker is None else striker.order.webhooks
            if striker is not None and striker.order.webhooks == "delayed":
                self._held[post] = at + self.delay(striker)

    def delay(self, fault: InjectedFault) -> int:
        """Return the delay (ms) of the request or webhook that a fault has just struck."""
        order = fault.order
        if order.delay is None:
            return 0
        # The first uniform decided whether the fault strikes, the second decides how long it
        # delays.
        delays = durations(order.delay, self._draws(fault, fault.met - 1)[1:])
        return min(int(delays[0]), order.longest_delay)

    def _encounter(
        self, may_strike: Callable[[InjectedFault], bool], at: int, caller: int | None = None
    ) -> Encounter:
        met: list[int] = []
        # Orders of operators come before the faults of the scenario; sorting is stable, so age
        # decides among equals.
        for fault in sorted(self, key=lambda fault: fault.is_standing):
            if fault.strikes_at(at) and may_strike(fault):
                met.append(fault.number)
                if caller is not None and fault.order.api == "limit" and not fault.wait(caller, at):
                    continue
                if fault.order.share == 1 or self._draws(fault, fault.met)[0] < fault.order.share:
                    return Encounter(tuple(met), fault)
        return Encounter(tuple(met))

    def _draws(self, fault: InjectedFault, met: int) -> NDArray[np.float64]:
        """Return two uniforms of an encounter: for the share, and for the delay."""
        # The draws have their own address, so other faults and replays do not change them.
        key = (Purpose.INJECTED_FAULT, fault.number, met)
        return np.random.Generator(generator(self._seed, key)).random(2)


def which_post(post: Post) -> WhichPost:
    """Return the key of a POST, which stays the same after a restart."""
    return (*post.key, post.number)


MOST_TRIGGERED = 100
"""Number of triggered results whose calls can be read; older ones are dropped."""

CAMPAIGN = "Triggered"
"""The name of the campaign of a triggered result."""

_SCRIPTS = {
    "COMPLETED": "answered 5s 60s",
    "NO_ANSWER": "noAnswer 25s",
    "BUSY": "busy 2s",
    "FAILED": "failed 1s",
    "CANCELLED": "busy 2s",  # the call waits in the queue, and is never dialled
}
_TEL = "0812345678"
_IN_THE_WAY = "0899999999"
_WINDOWS = [{"dayOfWeek": day, "time": [{"start": "00:00", "end": "23:59"}]} for day in range(1, 8)]
_VALUES = {"text": "text", "number": 1, "boolean": True}
_PACE = 0.0001  # calls a second
_LONGEST_WAIT = 3_600_000  # ms, less than between two dials at that pace
_ANYWHERE = "http://127.0.0.1/"  # a result without a URL is not delivered
_DELIVERY = 60_000  # ms until a result is delivered
_ROUNDS = 4  # attempts to set the clock: no window has 23:59, so a call may be postponed


class TriggeredPerson(Model):
    """The person of a triggered result."""

    tel: Phone = Field(default=_TEL, description="Phone number.", examples=["0812345678"])
    customer_name: str | None = Field(
        default=None, description="The person's name.", examples=["สมชาย ใจดี"]
    )
    agent_params: AgentParams | None = Field(
        default=None,
        description="Parameters of the agent's paramsSchema; left out: a default for each.",
        examples=[{"amount": 100}],
    )


class TriggerOrder(Combined):
    """Order for a result sent now: the end of its call, its recipient and its URL."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [given("status"), given("script")]})

    status: Literal["COMPLETED", "NO_ANSWER", "BUSY", "FAILED", "CANCELLED"] | None = Field(
        default=None, description="How the call ended. CANCELLED: it waited too long in the queue."
    )
    script: ScriptText | None = Field(
        default=None,
        description="How the call went, as the first step of a script of a recipient.",
        examples=["answered 5s 90s silent"],
    )
    organization: Text | None = Field(
        default=None,
        description="Organization's id or name; may be left out if there is only one.",
    )
    agent: Text | None = Field(
        default=None, description="The agent's name; left out: the organization's first."
    )
    recipient: TriggeredPerson | None = Field(
        default=None, description="Whom the call was to; left out: a made-up person."
    )
    is_re_analysis: Switch | None = Field(
        default=None,
        description="Whether the result is one of a re-analysis.",
    )
    url: Url | None = Field(
        default=None,
        description="Where it goes; left out: to the organization's webhook URL.",
        examples=["http://127.0.0.1:9000/hook"],
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, object]) -> Iterator[str]:
        """Yield an error unless exactly one setting gives the end of the call."""
        if (given.get("status") is None) == (given.get("script") is None):
            yield "one of status and script must be given"


class Triggered(NamedTuple):
    """Triggered result number `n`, to be sent at an instant (ms).

    `view` shows its call; `key` identifies the result in the view.
    """

    n: int
    at: int
    organization: int
    key: PostKey
    view: CampaignView
    call_id: str
    body: bytes


class Triggers:
    """The latest triggered results; `count` is the number of results ever triggered."""

    def __init__(self) -> None:
        self.count = 0
        self._latest: deque[Triggered] = deque(maxlen=MOST_TRIGGERED)

    def add(self, order: TriggerOrder, account: Account, engine: LiveEngine) -> None:
        """Create the ordered result for an account of the sandbox with this engine.

        Raises Refused for an unknown agent and for a call without a result, ScenarioError for a
        person that does not fit the agent.
        """
        made = _made(order, account, engine, self.count + 1)
        self.count += 1
        self._latest.append(made)

    def newest(self) -> Triggered:
        """Result that was created last."""
        return self._latest[-1]

    def call(self, organization: int, identifier: str) -> tuple[CampaignView, int] | None:
        """The campaign and position of a call of an organization, by its id."""
        for one in self._of(organization):
            if (call := one.view.call_position(identifier)) is not None:
                return one.view, call
        return None

    def recipient(self, organization: int, identifier: str) -> tuple[CampaignView, int] | None:
        """The campaign and number of a recipient of an organization, by its id."""
        for one in self._of(organization):
            if (recipient := one.view.recipient_position(identifier)) is not None:
                return one.view, recipient
        return None

    def _of(self, organization: int) -> Iterator[Triggered]:
        return (one for one in self._latest if one.organization == organization)


def _made(order: TriggerOrder, account: Account, engine: LiveEngine, n: int) -> Triggered:
    world, at, organization = engine.log.world, engine.at, account.block.position
    settings = _settings(account, world.seed, max(engine.dialler(organization).limit, 1))
    block, pace = _campaign(settings, order), _PACE if order.status == "CANCELLED" else None
    about = world.scenario.engine
    rules = EngineSettings().model_copy(
        update={
            "queue_timeout": min(about.queue_timeout, _LONGEST_WAIT),
            "webhook_delay": about.webhook_delay,
            "calls_per_second": pace,
        }
    )
    around = world.scenario.model_copy(update={"organizations": (settings,), "engine": rules})
    number = int.from_bytes(sha256(f"trigger {n}, seed {world.seed}".encode()).digest()[:7])
    # A `FormerSeed` leads to ids of the former form, which a continued journal must keep.
    seed = type(world.seed)(number)
    start = at
    # When the result is sent depends on draws by the instant of the call, so the start is adjusted
    # by the error of each round.
    for _ in range(_ROUNDS):
        own = LiveEngine(_beginning(around, start), seed)
        asked = {"startDateTime": format_instant(start), "timeWindows": _WINDOWS}
        own.add_campaign({**block, "schedule": asked})
        if pace is None:
            own.run()
        else:
            own.advance(milliseconds=2 * rules.queue_timeout + rules.webhook_delay - 1)
        # Only a result that was delivered can be analyzed again (A5), so its delivery comes first.
        if order.is_re_analysis:
            [made] = RunView(own.trace).campaigns.values()
            own.move_to(int(made.stream.owed.sent_at.max(initial=own.at)) + _DELIVERY)
            own.reanalyze(CAMPAIGN)
            own.run()
        [made] = RunView(own.trace).campaigns.values()
        stream = made.stream
        messages = stream.messages
        whose = stream.calls.recipient[messages.call] == len(block["recipients"]) - 1
        found = np.flatnonzero(whose & (messages.result == bool(order.is_re_analysis)))[:1]
        if not len(found):
            raise invalid("no result is sent for such a call")
        sent_at = int(messages.sent_at[found[0]])
        if sent_at == at:
            break
        start += at - sent_at
    view = CampaignView(own.log, own.campaign(0, 0))
    view.catch_up()
    call = messages.call[found]
    key = PostKey(0, 0, int(stream.calls.recipient[call[0]]), 1, int(messages.result[found[0]]))
    [body] = stream.bodies(found)
    [call_id] = view.call_ids(call).tolist()
    return Triggered(n, at, organization, key, view, call_id.decode(), orjson.dumps(body))


def _settings(account: Account, seed: int, limit: int) -> Organization:
    """Return the organization's current settings, with its ids and without campaigns."""
    block = account.block
    agents = tuple(
        agent.model_copy(update={"id": agent.id or agent_id(seed, block.position, index)})
        for index, agent in enumerate(block.settings.agents)
    )
    changes = {
        "id": account.identifier,
        "agents": agents,
        "campaigns": (),
        "timeline": (),
        "lines": {},
        "calling_allowed": True,
        "max_concurrent_calls": limit,
        "webhook": Webhook(url=_ANYWHERE),
    }
    return block.settings.model_copy(update=changes).with_compiled_actions(())


def _beginning(scenario: Scenario, start: int) -> Scenario:
    clock = scenario.clock.model_copy(update={"start": start, "end": None})
    return scenario.model_copy(update={"clock": clock})


def _campaign(settings: Organization, order: TriggerOrder) -> dict[str, Any]:
    """Return the campaign's block; the target person comes last."""
    known = [agent.name for agent in settings.agents]
    if not known:
        raise invalid("the organization has no agent")
    if order.agent not in (None, *known):
        raise invalid(f'agent "{order.agent}" is not known; known here: {", ".join(known)}')
    agent = next(one for one in settings.agents if order.agent in (None, one.name))
    person = order.recipient or TriggeredPerson()
    params = _params(agent) if person.agent_params is None else person.agent_params
    script = order.script or _SCRIPTS[order.status or "COMPLETED"]
    block = {"tel": person.tel, "agentParams": params, "script": script}
    if person.customer_name is not None:
        block["customerName"] = person.customer_name
    people = [block]
    # Another recipient holds the only line so long that the call waits until its queue timeout.
    if order.status == "CANCELLED":
        people = [{"tel": _IN_THE_WAY, "agentParams": params, "script": script}, block]
    return {"name": CAMPAIGN, "agent": agent.name, "recipients": people}


def _params(agent: Agent) -> dict[str, Any]:
    """Return a value for each parameter: the agent's value, else one of its type."""
    schema = agent.params_schema or {}
    return {
        name: _VALUES[one.type] if one.default is None else one.default
        for name, one in schema.items()
        if one.required or one.default is None
    }
