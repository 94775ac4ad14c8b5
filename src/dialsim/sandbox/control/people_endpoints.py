"""People over HTTP: what the next calls to a number do, step by step (P6)."""

from __future__ import annotations

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dialsim.interface.wire import WireModel
from dialsim.sandbox.commands import ScriptNumber
from dialsim.sandbox.control.routes import MOST_BYTES, route
from dialsim.sandbox.control_guard import PREFIX
from dialsim.sandbox.envelopes import bare
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.request_body import read_json
from dialsim.sandbox.shapes import read_shape
from dialsim.scenario.fields import Phone
from dialsim.scenario.scripts import ScriptText


class ScriptedNumber(WireModel):
    """A phone number and its script."""

    tel: Phone = Field(description="Written as in the recipients.", examples=["0812345678"])
    script: ScriptText | None = Field(
        description="The steps that are left, as for a recipient of a scenario file; null: none.",
        examples=["busy 3s; answered 5s 90s"],
    )


class PeopleEndpoints:
    """Gives numbers their scripts, and lists what is left of them."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        return [route(f"{PREFIX}/people", body=["post"], get=self._list, post=self._script)]

    async def _list(self, _request: Request) -> Response:
        scripts = self._exchange.simulation.scripts
        return bare([ScriptedNumber(tel=tel, script=scripts[tel]) for tel in sorted(scripts)])

    async def _script(self, request: Request) -> Response:
        asked = read_shape(ScriptedNumber, await read_json(request, MOST_BYTES))
        self._exchange.carry_out(ScriptNumber(tel=asked.tel, script=asked.script))
        left = self._exchange.simulation.scripts.get(asked.tel)
        return bare(ScriptedNumber(tel=asked.tel, script=left))
