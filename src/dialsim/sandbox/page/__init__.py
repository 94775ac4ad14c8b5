"""The routes of the page: the document, its files, its stream, and the commands of its buttons."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import Literal
from urllib.parse import parse_qsl

import orjson
from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from dialsim.errors import Refused
from dialsim.interface.instants import format_instant
from dialsim.interface.model import invalid, read_model
from dialsim.sandbox import failures as fail
from dialsim.sandbox.access import PREFIX
from dialsim.sandbox.answers import MOST_BYTES, read_bytes
from dialsim.sandbox.commands import (
    ClearFaults,
    OrganizationChanges,
    ScheduleCampaign,
    SteerCampaign,
)
from dialsim.sandbox.control.clock import Mode, MoveJson
from dialsim.sandbox.control.organizations import (
    CampaignOperations,
    OrganizationOperations,
    ScriptedNumber,
)
from dialsim.sandbox.control.run import ForecastOrder, NewSnapshot, RunOperations
from dialsim.sandbox.control.traffic import RequestRow, injection
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.operation import MOST_CONTROL_BYTES, number_in
from dialsim.sandbox.page.sections import OPTION_LABELS, OWN, Sections, render
from dialsim.sandbox.page.view import PATH, PagePosition, View, find_webhook, view_at
from dialsim.scenario.service import FaultOrder

_ASSETS = {
    "htmx.min.js": "text/javascript",
    "htmx-sse.min.js": "text/javascript",
    "idiomorph.min.js": "text/javascript",
    "page.js": "text/javascript",
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
    "LICENSES.txt": "text/plain",
}
# The page loads nothing from other hosts, and no text of a scenario can become a script.
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_MOVES = (
    ("Advance by 1 minute", "by", "1m"),
    ("Advance by 1 hour", "by", "1h"),
    ("Advance by 1 day", "by", "1d"),
    ("Advance to the next event", "until", "nextEvent"),
    ("Advance until idle", "until", "idle"),
)
_LINKS = (("Export the run so far", f"{PREFIX}/export"), ("API description", "/openapi.json"))
_SPEEDS = {
    1: "real time",
    60: "1 minute a second",
    600: "10 minutes a second",
    3_600: "1 hour a second",
    86_400: "1 day a second",
}
KINDS = {
    "api=error&status=503": "API answers: replaced by 503",
    "api=error&status=500": "API answers: replaced by 500",
    "api=slow&delay=2s": "API answers: 2 s late",
    "api=error&status=503&executed=true": "API answers: replaced by 503, request carried out",
    "api=error&status=429&retryAfter=5s": "API answers: replaced by 429, with a retry after 5 s",
    "api=limit&requestsPerSecond=1&burst=10": "API answers: 429 beyond 1 a second, 10 at once",
    "api=error&status=401": "API answers: replaced by 401, as for a wrong key",
    "api=drop": "API answers: connection dropped",
    "api=drop&executed=true": "API answers: connection dropped, request carried out",
    "api=slow&delay=15s": "API answers: 15 s late",
    "api=slowBody&delay=15s": "API answers: in pieces, over 15 s",
    "webhooks=timeout": "Webhooks: lost on the way, no answer",
    "webhooks=refuse": "Webhooks: connection refused",
    "webhooks=late": "Webhooks: received, answer too late",
    "webhooks=twice": "Webhooks: received twice",
    "webhooks=stale": "Webhooks: followed by the person's previous result",
    "webhooks=delayed&delay=5m": "Webhooks: 5 min late, overtaken by others",
}
"""Faults that the form offers; the control plane accepts any status, delay and path."""

SHARES = {"": "each of them", "0.5": "every other, by chance", "0.1": "one in ten, by chance"}

_SCRIPTS = (
    "answered 5s 90s",
    "noAnswer 25s",
    "busy 3s; answered 5s 90s",
    "failed 0s",
    "answered 5s 60s silent",
)
"""Suggested scripts of a number."""

_SWITCHES = ("callingAllowed", "executed")
_NUMBERS = (
    *("maxConcurrentCalls", "maxAttempts", "retryInterval", "speed"),
    *("next", "share", "status", "requestsPerSecond", "burst"),
)

Handler = Callable[[Request], Awaitable[str]]


class PageRoutes:
    """Routes of the page; its buttons use the commands and the clock of the control plane.

    Answers are HTML messages, such as the reason for a refusal.
    """

    def __init__(self, core: SandboxCore) -> None:
        self._core = core
        self._sections = Sections(core)
        self._campaigns = CampaignOperations(core)
        self._organizations = OrganizationOperations(core)
        self._run_operations = RunOperations(core)

    def routes(self) -> list[BaseRoute]:
        """The routes, and redirects to the page."""
        return [
            Route("/", _to_the_page),
            Route(PREFIX, _to_the_page),
            Route(PATH, self._document),
            Route(f"{OWN}/events", self._events),
            _part("clock", self._move, "POST"),
            _part("clock/run", self._run, "POST"),
            _part("clock/stop", self._stop, "POST"),
            _part("reset", self._reset, "POST"),
            _part("snapshots", self._take_snapshot, "POST"),
            _part("snapshots/{name}/restore", self._restore, "POST"),
            _part("snapshots/{name}/delete", self._delete_snapshot, "POST"),
            _part("forecast", self._forecast, "POST"),
            _part("campaigns", self._add_campaign, "POST"),
            _part("campaigns/{id}/start", self._start, "POST"),
            _part("campaigns/{id}/pause", partial(self._steer, "pause"), "POST"),
            _part("campaigns/{id}/resume", partial(self._steer, "resume"), "POST"),
            _part("campaigns/{id}/cancel", partial(self._steer, "cancel"), "POST"),
            _part("organizations", self._add_organization, "POST"),
            _part("organizations/{id}", self._change_organization, "POST"),
            _part("agents", self._add_agent, "POST"),
            _part("scripts", self._script, "POST"),
            _part("scripts/end", self._end_script, "POST"),
            _part("calls/{position}", self._call),
            _part("webhooks/{n}", self._webhook),
            _part("webhooks/{n}/again", self._send_again, "POST"),
            _part("requests/{n}", self._request),
            _part("faults", self._add_fault, "POST"),
            _part("faults/{id}/clear", self._clear_fault, "POST"),
            Route(f"{OWN}/{{name}}", _asset),
        ]

    async def _document(self, request: Request) -> Response:
        view = View.read(request.query_params)
        if view.find and not view.person:
            found = self._sections.look_up(view.find)
            # A search with one match redirects to that person, an address that can be bookmarked.
            if len(found) == 1:
                person = ".".join(map(str, found[0]))
                return RedirectResponse(f"{view.url(find='', person=person)}#person-title", 303)
        return _html(
            render(
                "page",
                title=self._core.scenario.name or "dialsim",
                view=view,
                path=PATH,
                sections=self._sections.render(view),
                moves=_MOVES,
                speeds=_SPEEDS,
                speed=self._core.clock.speed or 600,
                option_labels=OPTION_LABELS,
                scripts=_SCRIPTS,
                fault_kinds=KINDS,
                fault_shares=SHARES,
                links=_LINKS,
            )
        )

    async def _events(self, request: Request) -> Response:
        events = self._sections.events(View.read(request.query_params))
        return StreamingResponse(events, media_type="text/event-stream", headers=_HEADERS)

    async def _move(self, request: Request) -> str:
        move = read_model(MoveJson, await _form(request))
        arrived = await move.carry_out(self._core) == "there"
        return render("moved", now=self._core.simulation.at, arrived=arrived)

    async def _run(self, request: Request) -> str:
        mode = _block(await _form(request)) | {"mode": "running"}
        read_model(Mode, mode).carry_out(self._core.clock)
        return ""

    async def _stop(self, _request: Request) -> str:
        self._core.clock.stop()
        return ""

    async def _reset(self, _request: Request) -> str:
        await self._core.restore(None)
        return render("said", text="The sandbox is reset to its start.")

    async def _take_snapshot(self, request: Request) -> str:
        name = (await _form(request)).get("name", "").strip()
        taken = self._run_operations.take_snapshot(
            read_model(NewSnapshot, {"name": name} if name else {})
        )
        return render("said", text=f"The current state is kept as {taken.name}.")

    async def _restore(self, request: Request) -> str:
        name = request.path_params["name"]
        await self._core.restore(name)
        return render("said", text=f"The sandbox is as it was in {name}; the clock stands still.")

    async def _delete_snapshot(self, request: Request) -> str:
        name = request.path_params["name"]
        self._core.drop_snapshot(name)
        return render("said", text=f"The snapshot {name} is deleted.")

    async def _forecast(self, _request: Request) -> str:
        return render("forecast", forecast=await self._run_operations.forecast_run(ForecastOrder()))

    async def _steer(self, kind: Literal["pause", "resume", "cancel"], request: Request) -> str:
        _, view = self._core.campaign(request.path_params["id"])
        self._core.carry_out(SteerCampaign(**view.position._asdict(), kind=kind))
        return ""

    async def _start(self, request: Request) -> str:
        _, view = self._core.campaign(request.path_params["id"])
        body = _block(await _form(request))
        body.setdefault("startDateTime", format_instant(self._core.at))
        self._core.carry_out(ScheduleCampaign(**view.position._asdict(), body=body))
        return ""

    async def _add_campaign(self, request: Request) -> str:
        form = await _form(request, MOST_CONTROL_BYTES)
        people = form.pop("recipients", "").strip()
        block, csv = _block(form | dict(parse_qsl(form.pop("calls", "")))), None
        # JSON instead of a CSV: the header of a CSV begins with neither character.
        if people.startswith(("{", "[")):
            block["recipients"] = _json("recipients", people)
        elif people:
            csv = people.encode()
        added = await self._campaigns.add(block, csv)
        _, view = self._core.campaign(added.id)
        return render(
            "said",
            text=f"Added {added.name}: {added.status}, people: {added.total_recipients:,}.",
            link=self._sections.where(view),
        )

    async def _add_organization(self, request: Request) -> str:
        added = self._organizations.add(_block(await _form(request)))
        text = f"Added {added.name}. Its API key, which is not shown again:"
        return render("said", text=text, secret=added.api_key)

    async def _change_organization(self, request: Request) -> str:
        account = self._core.organization(request.path_params["id"])
        changes: dict[str, JsonValue] = {
            name: None if name == "webhookUrl" and not text else _value(name, text)
            for name, text in (await _form(request)).items()
        }
        body = read_model(OrganizationChanges, changes)
        self._organizations.change_organization(account, body, changes)
        return ""

    async def _add_agent(self, request: Request) -> str:
        added = self._organizations.add_agent(_block(await _form(request)))
        return render("said", text=f"Added {added.name} to {added.organization}.")

    async def _script(self, request: Request) -> str:
        given = self._organizations.script_number(read_model(ScriptedNumber, await _form(request)))
        return render("said", text=f"The next calls to {given.tel}: {given.script}.")

    async def _end_script(self, request: Request) -> str:
        ended = read_model(ScriptedNumber, await _form(request) | {"script": None})
        self._organizations.script_number(ended)
        return ""

    async def _call(self, request: Request) -> str:
        position = PagePosition.read(request.path_params["position"], 3)
        view = None if position is None else view_at(self._core, position)
        if view is not None:
            view.catch_up()
        if position is None or view is None or position.number >= len(view.calls):
            raise fail.NO_CALL.refused()
        return render(
            "call",
            json=_indented(view.call(position.number, self._core.simulation.at)),
            person=position._replace(number=view.calls[position.number].recipient),
            view=View.read(request.query_params),
        )

    async def _webhook(self, request: Request) -> str:
        row = find_webhook(self._core, number_in(request.path_params["n"]))
        return render("webhook", row=row, json=_indented(row["body"]))

    async def _send_again(self, request: Request) -> str:
        self._core.send_again(number_in(request.path_params["n"]))
        return render("sent_again")

    async def _request(self, request: Request) -> str:
        found = self._core.requests.find(number_in(request.path_params["n"]))
        if found is None:
            raise Refused(404, "REQUEST_NOT_FOUND", ["The request is no longer in the log"])
        row = RequestRow.of(found)
        return render("request", row=row, body=_readable(row.body), answer=_readable(row.answer))

    async def _add_fault(self, request: Request) -> str:
        form = await _form(request)
        order = _block(form | dict(parse_qsl(form.pop("kind", ""))))
        self._core.carry_out(injection(read_model(FaultOrder, order), self._core))
        return ""

    async def _clear_fault(self, request: Request) -> str:
        self._core.carry_out(ClearFaults(number=number_in(request.path_params["id"])))
        return ""


def _part(path: str, handler: Handler, method: str = "GET") -> Route:
    """Return a route that answers with a part of the page, or with the reason for a refusal."""

    async def serve(request: Request) -> Response:
        try:
            return _html(await handler(request))
        except Refused as refused:
            return _html(render("refused", refused=refused), refused.status)

    return Route(f"{OWN}/{path}", serve, methods=[method])


def _block(form: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return a form as a request body: its non-empty fields, and the fields of `more`."""
    block = {name: _value(name, text) for name, text in form.items() if text and name != "more"}
    more = _json("the JSON", form["more"]) if form.get("more", "").strip() else {}
    if not isinstance(more, dict):
        raise invalid("the JSON must be an object")
    if twice := block.keys() & more.keys():
        raise invalid(*(f"{name} is given twice: in its field and in the JSON" for name in twice))
    return block | more


def _json(name: str, text: str) -> JsonValue:
    try:
        value: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise invalid(f"{name} must be valid JSON: {error}") from None
    return value


def _value(name: str, text: str) -> JsonValue:
    """Parse a field; text that is not a number is left to validation."""
    if name in _SWITCHES:
        return text == "true"
    if name not in _NUMBERS:
        return text
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


def _indented(answer: object) -> str:
    return orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode()


def _readable(body: object) -> str:
    """Return a body from the log as text; empty for no body."""
    if body is None or isinstance(body, str):
        return body or ""
    return _indented(body)


async def _form(request: Request, most: int = MOST_BYTES) -> dict[str, str]:
    text = (await read_bytes(request, most)).decode("utf-8", "replace")
    return dict(parse_qsl(text, keep_blank_values=True))


async def _to_the_page(_request: Request) -> Response:
    return RedirectResponse(PATH)


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        raise Refused(404, "NOT_FOUND", [f"Cannot GET {request.scope['path']}"])
    content = (files("dialsim.sandbox.page") / "assets" / name).read_bytes()
    return Response(content, media_type=_ASSETS[name], headers=_HEADERS)


def _html(text: str, status: int = 200) -> Response:
    return Response(text, status, _HEADERS, "text/html")
