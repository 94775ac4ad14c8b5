"""Organizations over HTTP: how they stand, and changes of their settings.

People over HTTP: what the next calls to a number do, step by step (P6).
"""

from __future__ import annotations

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from dialsim.interface.model import UuidText, WireModel, read_model
from dialsim.sandbox.commands import ChangeOrganization, ScriptNumber
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.control.routes import MOST_BYTES, route
from dialsim.sandbox.core import SandboxCore
from dialsim.sandbox.http.answers import bare, read_json
from dialsim.sandbox.organization import Account, OrganizationChanges
from dialsim.scenario.fields import Phone
from dialsim.scenario.scripts import ScriptText


class OrganizationState(WireModel):
    """An organization as it stands. Its API key is not shown."""

    id: UuidText
    name: str
    max_concurrent_calls: int
    slots_in_use: int = Field(description="Calls INITIATED: dialling, ringing or talking.")
    queue_length: int = Field(description="Calls QUEUED.")
    calling_allowed: bool
    webhook_url: str | None


class ChangedOrganization(OrganizationState):
    """An organization after a change."""

    api_key: str | None = Field(
        description="The new key, where it was regenerated. It is not shown again."
    )


class OrganizationEndpoints:
    """Reads and changes organizations, each found by its id or its name."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        organizations = f"{PREFIX}/organizations"
        return [
            route(organizations, get=self._list),
            # a name may have a slash in it
            route(
                f"{organizations}/{{id:path}}", body=["patch"], get=self._show, patch=self._change
            ),
        ]

    async def _list(self, _request: Request) -> Response:
        return bare([self._state(account) for account in self._core.accounts])

    async def _show(self, request: Request) -> Response:
        return bare(self._state(self._core.organization(request.path_params["id"])))

    async def _change(self, request: Request) -> Response:
        account = self._core.organization(request.path_params["id"])
        body = await read_json(request, MOST_BYTES)
        changes = read_model(OrganizationChanges, body)
        assert isinstance(body, dict)  # anything else was refused
        position = account.block.position
        self._core.carry_out(ChangeOrganization(organization=position, changes=body))
        key = self._core.api_key(position) if changes.regenerate_api_key else None
        return bare(ChangedOrganization(**self._state(account).model_dump(), api_key=key))

    def _state(self, account: Account) -> OrganizationState:
        position = account.block.position
        dialler = self._core.simulation.dialler(position)
        changes = self._core.simulation.log.urls
        return OrganizationState(
            id=account.identifier,
            name=account.block.name,
            max_concurrent_calls=dialler.limit,
            slots_in_use=dialler.slots_in_use,
            queue_length=dialler.queue_length,
            calling_allowed=dialler.calling_allowed,
            webhook_url=next(row.url for row in reversed(changes) if row.organization == position),
        )


class ScriptedNumber(WireModel):
    """A phone number and its script."""

    tel: Phone = Field(description="Written as in the recipients.", examples=["0812345678"])
    script: ScriptText | None = Field(
        description="The steps that are left, as for a recipient of a scenario file; null: none.",
        examples=["busy 3s; answered 5s 90s"],
    )


class PeopleEndpoints:
    """Gives numbers their scripts, and lists what is left of them."""

    def __init__(self, core: SandboxCore) -> None:
        self._core = core

    def routes(self) -> list[BaseRoute]:
        """The routes."""
        return [route(f"{PREFIX}/people", body=["post"], get=self._list, post=self._script)]

    async def _list(self, _request: Request) -> Response:
        scripts = self._core.simulation.scripts
        return bare([ScriptedNumber(tel=tel, script=scripts[tel]) for tel in sorted(scripts)])

    async def _script(self, request: Request) -> Response:
        asked = read_model(ScriptedNumber, await read_json(request, MOST_BYTES))
        self._core.carry_out(ScriptNumber(tel=asked.tel, script=asked.script))
        left = self._core.simulation.scripts.get(asked.tel)
        return bare(ScriptedNumber(tel=asked.tel, script=left))
