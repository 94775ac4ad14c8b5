"""The requests of clients as the sandbox logged them, for Python, and assertions about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any, NamedTuple, Self, overload
from urllib.parse import urlencode

from dialsim.sandbox.client.records import by_field
from dialsim.sandbox.client.remote import ControlClient
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.request_log import has_status, path_pattern

_REQUESTS = f"{PREFIX}/requests"
_NEAREST = 3  # near misses that are told


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A request of a client, and what it was answered; API keys and other secrets are masked.

    `at` is in virtual time, `received_at` in real time. `organization` is the name of the one whose
    key came along. `body` and `answer` are decoded JSON, or texts where they are none or are `cut`;
    None where there is nothing, or no text. `status` is None while the request is under way, and
    where the connection was dropped. `fault` is the id of the fault that struck it.
    """

    n: int
    at: datetime
    received_at: datetime
    took_ms: float | None
    organization: str | None
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: Any
    body_bytes: int
    body_cut: bool
    status: int | None
    answer: Any
    answer_bytes: int
    answer_cut: bool
    fault: int | None

    @classmethod
    def read(cls, row: dict[str, Any]) -> Self:
        """Read a row of the list as it is on the wire."""
        return cls(**by_field(row))

    def __str__(self) -> str:
        query = f"?{self.query}" if self.query else ""
        said = "not answered" if self.status is None else f"answered {self.status}"
        fault = "" if self.fault is None else f" by fault {self.fault}"
        return f"#{self.n} {self.method} {self.path}{query}, {said}{fault}"


class RemoteRequests(Sequence[RequestRecord]):
    """The log of requests, the oldest first; it is asked anew whenever it is looked at."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def filter(
        self,
        method: str | None = None,
        path: str | None = None,
        *,
        status: int | str | None = None,
        organization: str | None = None,
        body: object = None,
        after: int = 0,
    ) -> list[RequestRecord]:
        """The requests that are wanted; what is left out stands for all.

        `path` has no query; `*`, or a name in braces, stands for any text without a slash and `**`
        for any text. `status` is one such as 404, or "4xx", or "none". What a `body` that is a
        mapping names must be in the request's, where there may be more; anything else is equal to
        it. `after` is the `n` of a request.
        """
        wanted = {
            "method": method,
            "path": path,
            "status": status,
            "organization": organization,
            "after": after or None,
        }
        found = self._read({name: value for name, value in wanted.items() if value is not None})
        return [one for one in found if body is None or not [*differences(body, one.body)]]

    def clear(self) -> None:
        """Forget all requests, so that what comes next is counted alone."""
        self._client.ask("DELETE", _REQUESTS)

    def __len__(self) -> int:
        return int(self._client.ask("GET", _REQUESTS)["total"])

    def __iter__(self) -> Iterator[RequestRecord]:
        return iter(self._read({}))

    @overload
    def __getitem__(self, place: int) -> RequestRecord: ...
    @overload
    def __getitem__(self, place: slice) -> list[RequestRecord]: ...
    def __getitem__(self, place: int | slice) -> RequestRecord | list[RequestRecord]:
        return self._read({})[place]

    def __repr__(self) -> str:
        return f"<dialsim requests: {[str(one) for one in self]}>"

    def assert_called(self, wanted: Wanted, times: int | None) -> None:
        """Raise AssertionError, with the nearest misses, unless that was asked for so often."""
        everything = [*self]
        found = [one for one in everything if not [*wanted.misses(one)]]
        if (times is None and not found) or (times is not None and len(found) != times):
            raise AssertionError(_failure(wanted, times, found, everything))

    def _read(self, query: Mapping[str, object]) -> list[RequestRecord]:
        rows: list[RequestRecord] = []
        page = last = 1
        while page <= last:
            asked = urlencode({**query, "page": page})
            shown = self._client.ask("GET", f"{_REQUESTS}?{asked}")
            rows += map(RequestRecord.read, shown["requests"])
            page, last = page + 1, shown["totalPages"]
        return rows


class Wanted(NamedTuple):
    """What a request must be; None stands for anything (see `RemoteRequests.filter`)."""

    method: str
    path: str
    body: object = None
    status: int | str | None = None
    organization: str | None = None

    def __str__(self) -> str:
        lines = [f"{self.method.upper()} {self.path}"]
        if self.body is not None:
            lines.append(f"body: {self.body!r}")
        if self.status is not None:
            lines.append(f"status: {self.status}")
        if self.organization is not None:
            lines.append(f"organization: {self.organization}")
        return "\n".join(f"  {line}" for line in lines)

    def misses(self, request: RequestRecord) -> Iterator[str]:
        """What is otherwise about a request, in words; nothing for one that is wanted."""
        if request.method != self.method.upper():
            yield f"method is {request.method}, not {self.method.upper()}"
        if not path_pattern(self.path).fullmatch(request.path):
            yield f"path is {request.path}, not {self.path}"
        if self.organization not in (None, request.organization):
            yield f"organization is {request.organization}, not {self.organization}"
        if self.status is not None and not has_status(request.status, str(self.status)):
            yield f"status is {request.status}, not {self.status}"
        if self.body is not None:
            cut = " (only its beginning is kept)" if request.body_cut else ""
            yield from (f"{one}{cut}" for one in differences(self.body, request.body))

    def distance(self, request: RequestRecord) -> float:
        """How far a request is from what is wanted; a wrong path weighs most."""
        likeness = SequenceMatcher(None, self.path, request.path).ratio()
        path = 0 if path_pattern(self.path).fullmatch(request.path) else 2 + 6 * (1 - likeness)
        others = [miss for miss in self.misses(request) if not miss.startswith("path ")]
        return path + len(others)


_MISSING = object()


def differences(wanted: object, found: object, place: str = "body") -> Iterator[str]:
    """Where a value is not as wanted, in words; a mapping that is wanted is contained in it."""
    if isinstance(wanted, Mapping):
        if not isinstance(found, Mapping):
            yield f"{place} is {_shown(found)}, not an object"
            return
        for name, value in wanted.items():
            own = found.get(name, _MISSING)
            if own is _MISSING:
                yield f"{place}.{name} is missing"
            else:
                yield from differences(value, own, f"{place}.{name}")
    elif isinstance(wanted, list | tuple) and isinstance(found, list):
        if len(wanted) != len(found):
            yield f"{place} has {len(found)} items, not {len(wanted)}"
        for number, (value, own) in enumerate(zip(wanted, found, strict=False)):
            yield from differences(value, own, f"{place}.{number}")
    # in JSON true is no number
    elif wanted != found or isinstance(wanted, bool) is not isinstance(found, bool):
        yield f"{place} is {_shown(found)}, not {wanted!r}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _failure(
    wanted: Wanted, times: int | None, found: list[RequestRecord], everything: list[RequestRecord]
) -> str:
    """Why an assertion fails: what was wanted, what was found, and what nearly fits."""
    expected = "at least 1" if times is None else str(times)
    lines = [f"expected {expected}, found {len(found)} of:", str(wanted)]
    lines += [f"    {one}" for one in found]
    if times is not None and len(found) > times:
        return "\n".join(lines)
    others = sorted((one for one in everything if one not in found), key=wanted.distance)
    if not everything:
        lines.append("There are no requests in the log.")
    elif others:
        lines.append(f"Near misses, of {len(others)} other requests:")
    for one in others[:_NEAREST]:
        lines += [f"    {one}", *(f"        {miss}" for miss in wanted.misses(one))]
    return "\n".join(lines)
