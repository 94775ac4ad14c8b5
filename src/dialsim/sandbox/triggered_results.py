"""Triggered results: one result of a chosen kind, now, from a call outside the simulation.

The call is made in a separate simulation: the same organization, agent and service, one person with
a script, and a clock set so that the result is sent at the sandbox's instant. So its body is made
like every other body. The calls, lines and random numbers of the sandbox are not affected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson
from pydantic import ConfigDict, Field

from dialsim.engine.chance import agent_id
from dialsim.interface.instants import format_instant
from dialsim.interface.model import Combined, given, invalid
from dialsim.interface.payload import PostKey
from dialsim.results.run_view import RunView
from dialsim.sandbox.campaign_view import Account, CampaignView
from dialsim.sandbox.live_engine import LiveEngine
from dialsim.scenario.behaviour import ScriptText
from dialsim.scenario.campaign import AgentParams
from dialsim.scenario.fields import Model, Phone, Switch, Text, Url
from dialsim.scenario.organization import Agent, Organization, Webhook
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.service import EngineSettings

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
_DELIVERY = 60_000  # ms until it is
_ROUNDS = 4  # attempts to set the clock: a window may postpone a call by its minute without calls


class TriggeredPerson(Model):
    """The person of a triggered result."""

    tel: Phone = Field(default=_TEL, description="Phone number.", examples=["0812345678"])
    customer_name: str | None = Field(
        default=None, description="The person's name.", examples=["สมชาย ใจดี"]
    )
    agent_params: AgentParams | None = Field(
        default=None,
        description="What the agent's paramsSchema asks for; left out: a value for each.",
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
        default=None, description="Its id or name; the only one need not be named."
    )
    agent: Text | None = Field(
        default=None, description="The agent's name; left out: the organization's first."
    )
    recipient: TriggeredPerson | None = Field(
        default=None, description="Whom the call was to; left out: a made-up person."
    )
    is_re_analysis: Switch | None = Field(
        default=None, description="Whether it is another result of the call, by a re-analysis."
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
    """A result that was triggered, the `n`th, to be sent at an instant (ms).

    `view` shows its call, and `key` names it there.
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
            raise invalid("of such a call no result is sent")
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
