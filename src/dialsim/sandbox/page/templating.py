"""Templates: the page's HTML, every text in it escaped, and how instants and numbers are told."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from dialsim.interface.instants import format_instant, parse_instant
from dialsim.results.thai_time import date_text, duration_text, thai, time_text
from dialsim.sandbox.control_guard import PREFIX

OWN = f"{PREFIX}/page"
"""Where everything lives that the page asks for."""


def render(template: str, **values: object) -> str:
    """A template of this package, filled in."""
    return _environment().get_template(f"{template}.html").render(own=OWN, **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dialsim.sandbox.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "instant": parse_instant,
        "utc": format_instant,
        "thai": _thai_text,
        "thai_short": _short_text,
        "thai_second": _second_text,
        "time": time_text,
        "duration": duration_text,
        "talk": _talk_text,
        "number": "{:,}".format,
        "dotted": _dotted,
        "dashed": _dashed,
    }
    return environment


def _thai_text(instant: int) -> str:
    return f"{date_text(instant)} {time_text(instant)}"


def _short_text(instant: int) -> str:
    """`5 Jan 09:00`."""
    _, day, month, _ = date_text(instant).split()
    return f"{day} {month} {thai(instant):%H:%M}"


def _second_text(instant: int) -> str:
    """`5 Jan 09:00:01`, cut off."""
    return f"{_short_text(instant)}:{thai(instant):%S}"


def _talk_text(seconds: str) -> str:
    """A `callDuration` of the interface."""
    return duration_text(round(float(seconds) * 1000))


def _dotted(place: tuple[int, ...]) -> str:
    return ".".join(map(str, place))


def _dashed(place: tuple[int, ...]) -> str:
    return "-".join(map(str, place))
