"""The stream that keeps a tab up to date: server-sent events, only of what has changed.

The routes of the page: the document, its files, its stream, and the commands of its buttons.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib.resources import files
from time import monotonic
from urllib.parse import parse_qsl

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from dialsim.interface.errors import Refused
from dialsim.interface.model import read_model
from dialsim.interface.status import CallStatus
from dialsim.sandbox.commands import (
    CancelCampaign,
    ClearFaults,
    PauseCampaign,
    ResendWebhook,
    ResumeCampaign,
)
from dialsim.sandbox.control.clock import Mode, MoveJson
from dialsim.sandbox.control.faults import injection
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.faults import FaultOrder
from dialsim.sandbox.http.answers import read_bytes
from dialsim.sandbox.http.operation import read_number
from dialsim.sandbox.page.rows import KINDS, SHARES, body_of, find_webhook, number_of, view_at
from dialsim.sandbox.page.sections import OWN, Sections, render
from dialsim.sandbox.page.view import PATH, Place, View

INTERVAL = 0.25
"""Seconds between looks at what is new."""

_HEARTBEAT = 15  # seconds after which a silent stream says that it is alive
_SHARE = 4  # a tab waits this many times as long as its rendering took, so that others have a turn
_LONGEST = 2  # seconds


class LiveStreams:
    """Streams to any number of tabs; a slow tab is sent less, and nothing piles up for it."""

    def __init__(self, sections: Sections) -> None:
        self._sections = sections

    async def events(self, view: View) -> AsyncIterator[bytes]:
        """The sections of a view, all of them first and then each that changed, as events."""
        yield b"retry: 1000\n\n"
        sent = dict[str, str]()
        spoke = monotonic()
        while True:
            began = monotonic()
            sections = self._sections.render(view)
            took = monotonic() - began
            for name, html in sections.items():
                if sent.get(name) != html:
                    sent[name] = html
                    spoke = monotonic()
                    yield _event(name, html)
            if monotonic() - spoke > _HEARTBEAT:
                spoke = monotonic()
                yield b": alive\n\n"
            await asyncio.sleep(min(max(INTERVAL, _SHARE * took), _LONGEST))


def _event(name: str, html: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in html.splitlines())
    return f"event: {name}\n{lines}\n".encode()


_ASSETS = {
    "htmx.min.js": "text/javascript",
    "htmx-sse.min.js": "text/javascript",
    "idiomorph.min.js": "text/javascript",
    "page.js": "text/javascript",
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
    "LICENSES.txt": "text/plain",
}
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
    ("1 minute", "by", "1m", "Advance by 1 minute"),
    ("1 hour", "by", "1h", "Advance by 1 hour"),
    ("1 day", "by", "1d", "Advance by 1 day"),
    ("Next event", "until", "nextEvent", "Advance to the next event"),
    ("Until idle", "until", "idle", "Advance until idle"),
)
_LINKS = (("Export the run so far", f"{PREFIX}/export"), ("API description", "/openapi.json"))
_SPEEDS = {
    1: "real time",
    60: "1 minute a second",
    600: "10 minutes a second",
    3_600: "1 hour a second",
    86_400: "1 day a second",
}
_Steering = PauseCampaign | ResumeCampaign | CancelCampaign
_COMMANDS: dict[str, type[_Steering]] = {
    "pause": PauseCampaign,
    "resume": ResumeCampaign,
    "cancel": CancelCampaign,
}
_MOST_LISTED = 500  # campaigns to choose from


class Page:
    """Serves the page; whatever its buttons do is a command or a move of the control plane's clock.

    They are answered with what is to be said of them, as HTML: why they were refused, say.
    """

    def __init__(self, core: SandboxCore) -> None:
        self._core = core
        self._sections = Sections(core)
        self._streams = LiveStreams(self._sections)

    def routes(self) -> list[BaseRoute]:
        """The routes, and redirects to the page."""
        return [
            Route("/", _to_the_page),
            Route(PREFIX, _to_the_page),
            Route(PATH, self._document),
            Route(f"{OWN}/events", self._events),
            Route(f"{OWN}/clock", self._move, methods=["POST"]),
            Route(f"{OWN}/clock/run", self._run, methods=["POST"]),
            Route(f"{OWN}/clock/stop", self._stop, methods=["POST"]),
            *(
                Route(f"{OWN}/campaigns/{{id}}/{name}", self._steering(command), methods=["POST"])
                for name, command in _COMMANDS.items()
            ),
            Route(f"{OWN}/calls/{{place}}", self._call),
            Route(f"{OWN}/webhooks/{{place}}", self._webhook),
            Route(f"{OWN}/webhooks/{{place}}/again", self._send_again, methods=["POST"]),
            Route(f"{OWN}/faults", self._add_fault, methods=["POST"]),
            Route(f"{OWN}/faults/{{id}}/clear", self._clear_fault, methods=["POST"]),
            Route(f"{OWN}/{{name}}", _asset),
        ]

    async def _document(self, request: Request) -> Response:
        view = View.read(request.query_params)
        if view.find and not view.person:
            found = self._sections.look_up(view.find)
            if len(found) == 1:
                person = ".".join(map(str, found[0]))
                return RedirectResponse(f"{view.url(find='', person=person)}#person-title", 303)
        listed = [
            (
                f"{account.block.position}.{place}",
                account.block.name,
                campaign_view.campaign.block.name,
            )
            for account in self._core.accounts
            for place, campaign_view in enumerate(account.views)
        ]
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
                campaigns=listed[:_MOST_LISTED],
                statuses=[*CallStatus],
                organizations=[account.block.name for account in self._core.accounts],
                fault_kinds=KINDS,
                fault_shares=SHARES,
                links=_LINKS,
            )
        )

    async def _events(self, request: Request) -> Response:
        events = self._streams.events(View.read(request.query_params))
        return StreamingResponse(events, media_type="text/event-stream", headers=_HEADERS)

    async def _move(self, request: Request) -> Response:
        try:
            arrived = await read_model(MoveJson, await _form(request)).carry_out(self._core.clock)
        except Refused as refused:
            return _said(refused)
        return _html(render("moved", now=self._core.simulation.at, arrived=arrived))

    async def _run(self, request: Request) -> Response:
        speeds = {name: number_of(text) for name, text in (await _form(request)).items()}
        return self._set(speeds | {"mode": "running"})

    async def _stop(self, _request: Request) -> Response:
        return self._set({"mode": "manual"})

    def _set(self, mode: Mapping[str, object]) -> Response:
        try:
            read_model(Mode, mode).carry_out(self._core.clock)
        except Refused as refused:
            return _said(refused)
        return _html("")

    async def _add_fault(self, request: Request) -> Response:
        try:
            self._core.carry_out(
                injection(read_model(FaultOrder, body_of(await _form(request))), self._core)
            )
        except Refused as refused:
            return _said(refused)
        return _html("")

    async def _clear_fault(self, request: Request) -> Response:
        try:
            self._core.carry_out(ClearFaults(number=read_number(request.path_params["id"])))
        except Refused as refused:
            return _said(refused)
        return _html("")

    def _steering(self, command: type[_Steering]) -> Callable[[Request], Awaitable[Response]]:
        """What answers a button that has a campaign carry out a command."""

        async def steer(request: Request) -> Response:
            try:
                _, campaign_view = self._core.campaign(request.path_params["id"])
                self._core.carry_out(command(**campaign_view.place))
            except Refused as refused:
                return _said(refused)
            return _html("")

        return steer

    async def _call(self, request: Request) -> Response:
        place = Place.read(request.path_params["place"], 3)
        campaign_view = None if place is None else view_at(self._core, place)
        if campaign_view is not None:
            campaign_view.catch_up()
        if place is None or campaign_view is None or place.number >= campaign_view.calls:
            return _said(Refused(404, "CALL_NOT_FOUND", ["Call not found"]))
        answer = campaign_view.call(place.number, self._core.simulation.at)
        return _html(
            render(
                "call",
                json=_indented(answer),
                person=place._replace(number=campaign_view.entry(place.number).recipient),
                view=View.read(request.query_params),
            )
        )

    async def _webhook(self, request: Request) -> Response:
        place = request.path_params["place"]
        try:
            row = find_webhook(self._core, place)
        except Refused as refused:
            return _said(refused)
        return _html(render("webhook", row=row, place=place, json=_indented(row.body)))

    async def _send_again(self, request: Request) -> Response:
        try:
            row = find_webhook(self._core, request.path_params["place"])
            key = self._core.webhooks.key(row.n)
            self._core.carry_out(ResendWebhook(**key._asdict()))
        except Refused as refused:
            return _said(refused)
        return _html(render("sent_again"))


def _indented(answer: object) -> str:
    return orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode()


async def _form(request: Request) -> dict[str, str]:
    return dict(parse_qsl((await read_bytes(request)).decode("utf-8", "replace")))


async def _to_the_page(_request: Request) -> Response:
    return RedirectResponse(PATH)


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        raise Refused(404, "NOT_FOUND", [f"Cannot GET {request.scope['path']}"])
    content = (files("dialsim.sandbox.page") / "assets" / name).read_bytes()
    return Response(content, media_type=_ASSETS[name], headers=_HEADERS)


def _said(refused: Refused) -> Response:
    return _html(render("refused", refused=refused), refused.status)


def _html(text: str, status: int = 200) -> Response:
    return Response(text, status, _HEADERS, "text/html")
