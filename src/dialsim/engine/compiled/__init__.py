"""Availability of numba, and the folder of compiled code."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_ENGINE = Path(__file__).parents[1]


def is_available() -> bool:
    """Return True if numba is installed; it has no wheels for some platforms."""
    return find_spec("numba") is not None


@cache
def folder() -> Path:
    """Return the folder of compiled code: under NUMBA_CACHE_DIR, else in the user's cache."""
    from platformdirs import user_cache_path

    given = os.environ.get("NUMBA_CACHE_DIR")
    path = Path(given) if given else user_cache_path("dialsim", appauthor=False)
    return path / f"compiled-{source_digest([*_ENGINE.rglob('*.py')])[:16]}"


def source_digest(files: Iterable[Path]) -> str:
    """Return the SHA-256 of the contents of source files, in the order of their paths."""
    # numba detects changes only in the file of the cached function, not in functions that are
    # compiled into it. So the folder's name contains a hash of the engine's whole source.
    source = hashlib.sha256()
    for file in sorted(files):
        source.update(file.read_bytes())
    return source.hexdigest()


def is_compiled() -> bool:
    """Return True if compiled code of this version exists; otherwise compilation takes some
    seconds.
    """
    return any(folder().rglob("*.nbc"))


@contextmanager
def numba_keeps_code() -> Iterator[bool]:
    """Make numba cache the functions decorated inside; yields False if the folder is not
    writable.
    """
    import numba

    path, before = folder(), numba.config.CACHE_DIR
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        yield False
        return
    if not os.access(path, os.W_OK):
        yield False
        return
    numba.config.CACHE_DIR = str(path)
    try:
        yield True
    finally:
        numba.config.CACHE_DIR = before
