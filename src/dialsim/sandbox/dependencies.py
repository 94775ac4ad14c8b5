"""The packages that a sandbox or a studio needs beyond dialsim's own."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from dialsim.interface.errors import DialsimError

PACKAGES = ("starlette", "uvicorn", "httpx", "httptools", "jinja2")


def require_extra(what: str, packages: Sequence[str] = PACKAGES, extra: str = "sandbox") -> None:
    """Raise DialsimError, with how to install them, if packages that `what` needs are missing."""
    missing = [package for package in packages if find_spec(package.partition(".")[0]) is None]
    if missing:
        names = " and ".join([", ".join(missing[:-1]), missing[-1]] if missing[1:] else missing)
        raise DialsimError(
            f"{what} needs {names}: pip install '.[{extra}]' in the folder of dialsim"
        )
