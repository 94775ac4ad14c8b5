"""The log of requests over HTTP: what clients asked for, filtered and paged, and cleared."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue, WithJsonSchema

from dialsim.interface.instants import format_instant
from dialsim.interface.model import InstantText, WireModel, wrong
from dialsim.sandbox.control.campaigns import TablePage, organization_of, page_head
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.http.answers import is_number
from dialsim.sandbox.http.operation import Operations, PageQuery, operation
from dialsim.sandbox.request_log import LoggedRequest, chosen
from dialsim.scenario.fields import Text, patterned

_STATUS_PATTERN = r"^(none|[1-5]xx|[1-5][0-9]{2})$"
_STATUS_TEXT = "must be an HTTP status, or 1xx to 5xx, or none"


def _number(value: object) -> int:
    if not is_number(str(value)):
        raise wrong("must be a whole number of 0 or more")
    return int(str(value))


class RequestRow(WireModel):
    """A request of a client, and what it was answered. Secrets are masked."""

    n: int = Field(description="Its number, from 1; it stays.")
    at: InstantText = Field(description="When it came, in virtual time.")
    received_at: InstantText = Field(description="When it came, in real time.")
    took_ms: float | None = Field(description="How long it took; null while it is under way.")
    organization: str | None = Field(description="Whose key came along, by name; null: nobody's.")
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: JsonValue = Field(
        description="What was sent, as far as it was read: JSON as it is, anything else as a text, "
        "null for nothing or what is no text."
    )
    body_bytes: int
    body_cut: bool = Field(description="Whether only the beginning is kept, as a text.")
    status: int | None = Field(
        description="null while it is under way, and where the connection was dropped."
    )
    answer: JsonValue = Field(description="What was answered, as body.")
    answer_bytes: int
    answer_cut: bool = Field(description="Whether only the beginning is kept, as a text.")
    fault: int | None = Field(description="The number of the fault that struck it.")

    @classmethod
    def of(cls, request: LoggedRequest) -> RequestRow:
        """A request as it stands."""
        return cls(
            n=request.n,
            at=format_instant(request.at),
            received_at=format_instant(request.received_at),
            took_ms=None if request.took is None else round(request.took * 1000, 3),
            organization=request.organization,
            method=request.method,
            path=request.path,
            query=request.query,
            headers=request.headers,
            body=request.body.shown(),
            body_bytes=request.body.size,
            body_cut=request.body.cut,
            status=request.status,
            answer=request.answer.shown(),
            answer_bytes=request.answer.size,
            answer_cut=request.answer.cut,
            fault=request.fault,
        )


class RequestQuery(PageQuery):
    """Which requests are wanted; filters hold together."""

    method: Text | None = Field(
        default=None, description="Only those of a method.", examples=["POST"]
    )
    path: Text | None = Field(
        default=None,
        description="Only those to a path, without its query; * or a name in braces stands for "
        "any text without a slash, ** for any text.",
        examples=["/api/campaign/{id}/schedule"],
    )
    status: (
        Annotated[
            str,
            patterned(_STATUS_PATTERN, _STATUS_TEXT),
            WithJsonSchema({"type": "string", "pattern": _STATUS_PATTERN}),
        ]
        | None
    ) = Field(
        default=None,
        description="Only those answered with a status, with one of a class, or not at all.",
        examples=["4xx"],
    )
    organization: Text | None = Field(
        default=None,
        description="Only those with the key of an organization, by its id or name.",
        examples=["Acme"],
    )
    after: Annotated[
        int, BeforeValidator(_number), WithJsonSchema({"type": "integer", "minimum": 0})
    ] = Field(default=0, description="Only those behind this number.", examples=[0])


class RequestPage(TablePage):
    """A page of requests, the oldest first."""

    forgotten: int = Field(
        description="How many older ones, of whatever kind, were forgotten for want of room."
    )
    requests: list[RequestRow]


class ClearedRequests(WireModel):
    """What became of the log."""

    cleared: int = Field(description="How many requests were in it.")


class RequestOperations(Operations):
    """Reads and clears the log of requests."""

    @operation("GET", f"{PREFIX}/requests")
    def list_requests(self, query: RequestQuery) -> RequestPage:
        """List the requests of clients.

        All but those to /_dialsim, the page and the description: the latest 2,000, the oldest
        first, 100 a page.
        """
        core, owner = self.core, None
        if query.organization is not None:
            owner = organization_of(query.organization, core).block.name
        found = chosen(
            core.requests,
            method=query.method,
            path=query.path,
            status=query.status,
            organization=owner,
            after=query.after,
        )
        return RequestPage(
            **page_head(query.page, len(found)),
            forgotten=core.requests.forgotten,
            requests=[RequestRow.of(one) for one in found[query.page.rows]],
        )

    @operation("DELETE", f"{PREFIX}/requests", kept=False)
    def clear_requests(self) -> ClearedRequests:
        """Clear the log of requests.

        Numbers are not used again. The sandbox itself is left as it is.
        """
        return ClearedRequests(cleared=self.core.requests.clear())
