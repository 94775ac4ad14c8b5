"""A view: what one tab of the page looks at, as its address says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import NamedTuple, Self
from urllib.parse import urlencode

from dialsim.interface.status import CallStatus
from dialsim.sandbox.control.guard import PREFIX
from dialsim.sandbox.http.answers import is_number

PATH = f"{PREFIX}/"


class Span(NamedTuple):
    """How much virtual time the charts show: `columns` of so many minutes."""

    label: str
    minutes: int
    columns: int


SPANS = {
    "2h": Span("2 hours", 1, 120),
    "24h": Span("24 hours", 10, 144),
    "7d": Span("7 days", 60, 168),
}


def fitting_span(elapsed: int) -> str:
    """The span to show where none is chosen, after so much virtual time (ms)."""
    return "2h" if elapsed <= 7_200_000 else "24h"


class PagePlace(NamedTuple):
    """A campaign by positions from 0, and one of its recipients or calls."""

    organization: int
    campaign: int
    number: int = 0

    @classmethod
    def read(cls, text: str, parts: int) -> PagePlace | None:
        """`0.2` or `0.2.17`, of so many parts; None if it isn't that."""
        numbers = text.split(".")
        if len(numbers) != parts or not all(is_number(number) for number in numbers):
            return None
        return cls(*map(int, numbers))


@dataclass(frozen=True, slots=True)
class View:
    """What is chosen; a text that is empty chooses nothing.

    `span` is a key of SPANS, or empty for the one that fits; `campaigns` the page of the list, from
    1; `campaign` (a place of two parts) and `status` say which calls are shown; `person` is a place
    of three parts, `find` what somebody looks for.
    """

    span: str = ""
    campaigns: int = 1
    campaign: str = ""
    status: str = ""
    person: str = ""
    find: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """The view of an address; what makes no sense in it is as if it were not there."""
        page = query.get("campaigns", "")
        status = query.get("status", "")
        span = query.get("span", "")
        campaign, person = query.get("campaign", ""), query.get("person", "")
        return cls(
            span=span if span in SPANS else "",
            campaigns=int(page) if is_number(page) and int(page) else 1,
            campaign=campaign if PagePlace.read(campaign, 2) else "",
            status=status if status in CallStatus.__members__ else "",
            person=person if PagePlace.read(person, 3) else "",
            find=query.get("find", "").strip()[:100],
        )

    def query(self, **changes: object) -> str:
        """The query of this view's address, with some choices changed; empty for the usual one."""
        changed = replace(self, **changes)  # type: ignore[arg-type]
        usual = {field.name: field.default for field in fields(self)}
        chosen = {name: v for name, v in asdict(changed).items() if v != usual[name]}
        return f"?{urlencode(chosen)}" if chosen else ""

    def url(self, **changes: object) -> str:
        """The address of this view, with some choices changed."""
        return PATH + self.query(**changes)

    def others(self, *names: str) -> dict[str, str]:
        """What a form that chooses `names` must carry along."""
        usual = {field.name: field.default for field in fields(self)}
        carried = {name: v for name, v in asdict(self).items() if name not in names}
        return {name: str(v) for name, v in carried.items() if v != usual[name]}
