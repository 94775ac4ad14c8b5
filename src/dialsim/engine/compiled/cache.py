"""Whether rules can be compiled, and where compiled code is kept between runs."""

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
    """Whether numba is there; it has no wheels for some platforms."""
    return find_spec("numba") is not None


@cache
def folder() -> Path:
    """Where compiled code is kept: in NUMBA_CACHE_DIR, else in the user's cache.

    numba looks for changes only in the file of the function that is kept, and not in those of
    what is compiled into it. So all of the engine's source has a part in the folder's name.
    """
    from platformdirs import user_cache_path

    given = os.environ.get("NUMBA_CACHE_DIR")
    place = Path(given) if given else user_cache_path("dialsim", appauthor=False)
    return place / f"compiled-{source_digest([*_ENGINE.rglob('*.py')])[:16]}"


def source_digest(files: Iterable[Path]) -> str:
    """Return the SHA-256 of the contents of source files, in the order of their paths."""
    source = hashlib.sha256()
    for file in sorted(files):
        source.update(file.read_bytes())
    return source.hexdigest()


def is_compiled() -> bool:
    """Whether compiled code of this version is there; else compiling takes some seconds."""
    return any(folder().rglob("*.nbc"))


@contextmanager
def numba_keeps_code() -> Iterator[bool]:
    """Have numba keep what is decorated in `folder`; yields whether that can be written."""
    import numba

    place, before = folder(), numba.config.CACHE_DIR
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        yield False
        return
    if not os.access(place, os.W_OK):
        yield False
        return
    numba.config.CACHE_DIR = str(place)
    try:
        yield True
    finally:
        numba.config.CACHE_DIR = before
