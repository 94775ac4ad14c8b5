"""Notes how much processor time the draws and the rules of runs take, in every process of a plan.

Python imports this as it starts where this folder is on PYTHONPATH, in workers too. With
`ENGINE_TIME` naming a folder, each process that runs the compiled engine keeps a file there, with
the seconds of all its runs so far: those of draws and those of the compiled rules. Setting runs up,
loading code, and reading the log are in neither.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_RULES = "dialsim.engine.compiled.organization"
_RUNS = "dialsim.engine.compiled.running"
_spent = {"draws": 0.0, "rules": 0.0}


def _timed(function: Callable[..., Any], part: str) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        start = time.process_time()
        try:
            return function(*arguments)
        finally:
            _spent[part] += time.process_time() - start

    return timed


def _noting(run: Callable[..., Any]) -> Callable[..., Any]:
    def noting(*arguments: Any) -> Any:
        trace = run(*arguments)
        seconds = f"{_spent['draws']} {_spent['rules']}"
        Path(os.environ["ENGINE_TIME"], str(os.getpid())).write_text(seconds)
        return trace

    return noting


def _watch(module: Any) -> None:
    if module.__name__ == _RUNS:
        module.run = _noting(module.run)
        return
    import scipy.special  # noqa: F401 (or the first draw would import it)

    module.work_off = _timed(module.work_off, "rules")
    module.carry_out = _timed(module.carry_out, "rules")
    module.CompiledOrganization._draw = _timed(module.CompiledOrganization._draw, "draws")


class _Finder(MetaPathFinder):
    """Finds the two modules as usual, and has them watched once they are imported."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name not in (_RULES, _RUNS):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_watch(module: ModuleType) -> None:
            execute(module)
            _watch(module)

        spec.loader.exec_module = execute_and_watch  # type: ignore[method-assign]
        return spec


if "ENGINE_TIME" in os.environ:
    sys.meta_path.insert(0, _Finder())
