"""Identifiers: what counts as a UUID where the interface asks for one."""

from __future__ import annotations

import re
from typing import TypeGuard

UUID_PATTERN = r"^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"
"""Five groups of hexadecimal digits in either case; version and variant are free."""

_UUID = re.compile(UUID_PATTERN[1:-1])


def is_uuid(value: object) -> TypeGuard[str]:
    """Whether `value` is a text in the form of a UUID (interface, section 4)."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None
