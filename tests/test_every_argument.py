"""Every public callable meets every kind of wrong argument, as an opponent would give it.

Callables and parameters are read from signatures, so that a new one is covered by itself. A call
works, where the annotation permits the value, or raises an error of dialsim (TypeError for an
unknown argument) that names the argument and what would be right.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import pandas as pd
import pytest

import dialsim
import dialsim.testing.plugin
from dialsim import testing
from dialsim.experiments.replications import RunSettings
from dialsim.testing import Sketch

# -- right values ----------------------------------------------------------------------------------

SCENARIO = dialsim.scenario(20, lines=2, attempts=3, behaviour=0.4, costs={"perDial": 1})
SKETCH = Sketch(1).campaign("Campaign", "busy 1s; answered 5s 90s", max_attempts=2)
MANY = SCENARIO.with_(people=120, lines=12)
RESULT = dialsim.run(SCENARIO)
GOAL = "mean(people_reached) >= 5"
SWEEP = dialsim.sweep(SCENARIO, {"lines": [1, 2]}, 2, jobs=1)


@cache
def _log() -> Any:
    return dialsim.read_log(dialsim.run(MANY).calls)


class _Lines:
    def step(self, *_: object) -> list[object]:
        return []


SERVED = {
    "Sandbox": cache(lambda: dialsim.Sandbox(SCENARIO).start()),
    "Receiver": cache(testing.Receiver),
}
ANSWERS: Mapping[str, Callable[[], Any]] = {
    "Calibration": cache(lambda: dialsim.calibrate(_log())),
    "Comparison": cache(lambda: dialsim.compare({"a": SCENARIO, "b": SCENARIO}, 2, jobs=1)),
    "Forecast": cache(lambda: dialsim.forecast(SCENARIO, 19, jobs=1)),
    "Log": _log,
    "LogComparison": cache(
        lambda: dialsim.compare_log(_log(), _log(), MANY, replications=40, progress=False)
    ),
    "Optimum": cache(
        lambda: dialsim.optimize(
            SCENARIO, {"lines": [1, 2]}, GOAL, replications=2, max_replications=4, jobs=1
        )
    ),
    "OwnFigure": lambda: dialsim.OwnFigure(lambda _: 1.0, name="own"),
    "Plan": cache(
        lambda: dialsim.plan(
            SCENARIO, {"lines": [1, 2]}, GOAL, replications=2, max_replications=4, jobs=1
        )
    ),
    "RecordedCalls": cache(lambda: dialsim.RecordedCalls(_log(), MANY)),
    "Replayed": cache(lambda: dialsim.replay(ANSWERS["RecordedCalls"]())),
    "Replications": cache(lambda: dialsim.replicate(SCENARIO, 2, jobs=1)),
    "Result": lambda: RESULT,
    "Scenario": lambda: SCENARIO,
    "Simulation": lambda: dialsim.Simulation(SCENARIO),
    "Sweep": lambda: SWEEP,
    "Verified": cache(lambda: dialsim.check(_log(), MANY)),
    "Plots": lambda: RESULT.plot,
    "ReplicationPlots": lambda: ANSWERS["Replications"]().plot,
    "SweepPlots": lambda: SWEEP.plot,
    "PlanPlots": lambda: ANSWERS["Plan"]().plot,
    "OptimumPlots": lambda: ANSWERS["Optimum"]().plot,
    "CalibrationPlots": lambda: ANSWERS["Calibration"]().plot,
    "Sketch": lambda: SKETCH,
    "Violation": lambda: testing.Violation("Q1", "Acme", "A", 0, 1, 0, "text"),
    "Breach": lambda: testing.Breach("Q1", 0, 0, "text", SKETCH),
    "Sandbox": SERVED["Sandbox"],
    "RemoteClock": lambda: ANSWERS["Sandbox"]().clock,
    "RemoteFaults": lambda: ANSWERS["Sandbox"]().faults,
    "RemoteRequests": lambda: ANSWERS["Sandbox"]().requests,
    "Receiver": SERVED["Receiver"],
    "GoldenTraces": lambda: testing.GoldenTraces(Path(), "test", False, lambda _: None),
}
"""Value of each class whose methods are called, or whose constructor is given its own parts."""

RIGHT: Mapping[str, Any] = {
    "action": "pause",
    "agent": "Agent",
    "allowed": True,
    "at": 1,
    "attempts": 2,
    "baseline": "1 line",
    "behaviour": "default",
    "body": {},
    "campaign": "Campaign",
    "caller_ids": ("020000000",),
    "columns": "segment",
    "count": 0,
    "engine": "auto",
    "expected": "SCHEDULED QUEUED INITIATED BUSY | SCHEDULED QUEUED INITIATED COMPLETED",
    "examples": 1,
    "figures": ["people_reached"],
    "file": BytesIO(),
    "files": {"a": SCENARIO, "b": SCENARIO},
    "folder": "out",
    "frame": RESULT.calls,
    "goal": GOAL,
    "jobs": 1,
    "keys": {},
    "kind": "window_opened",
    "lines": 12,
    "log": _log,
    "max_attempts": 2,
    "max_replications": 4,
    "method": "GET",
    "name": "other",
    "organization": 0,
    "overrides": ["seed=3"],
    "path": "path",
    "people": 20,
    "rates": 0.4,
    "real": _log,
    "recipient": 0,
    "recipients": 3,
    "record": ANSWERS["RecordedCalls"],
    "replications": 2,
    "condition": {"call": "x"},
    "within": None,
    "filters": {},
    "how": "timeout",
    "instant": 0,
    "test": "test",
    "update": False,
    "note": lambda _: None,
    "reader": testing.plugin.ScenarioReader.__new__(testing.plugin.ScenarioReader),
    "url": None,
    "headers": {},
    "n": 1,
    "call": "x",
    "result": RESULT,
    "retry_interval": 300_000,
    "rule": "Q1",
    "run": cache(lambda: dialsim.run(SKETCH.scenario())),
    "scenario": SCENARIO,
    "seconds": 0.01,
    "simulated": _log,
    "sketch": SKETCH,
    "source": RESULT.calls,
    "tel": "0812345678",
    "text": "name: other",
    "trace": RESULT.trace,
    "value": 3,
    "vary": {"lines": [1, 2]},
    "also": None,
    "webhook_url": "keep",
    "when": "Mon 10:00",
}
"""Right value of each argument, or a function that makes it."""

RIGHT_HERE: Mapping[str, Mapping[str, Any]] = {
    "RemoteClock.advance_while": {"is_missing": lambda: False},
    "Scenario.loaded": {"origin": None, "remarks": ()},
    "Scenario.with_own_figures": {"figures": ()},
    "RecordedCalls": {"scenario": MANY},
    "RecordedCalls.played": {"engine": MANY.engine, "which": "simpy"},
    "Simulation.script": {"script": "busy 3s"},
    "Sandbox.script": {"script": "busy 3s"},
    "CalibrationPlots": {"calibration": ANSWERS["Calibration"]},
    "PlanPlots": {"answer": ANSWERS["Plan"]},
    "OptimumPlots": {"answer": ANSWERS["Optimum"]},
    "ReplicationPlots": {"runs": ANSWERS["Replications"]},
    "SweepPlots": {"found": SWEEP},
    "loads": {"text": "organizations: [{name: Acme, maxConcurrentCalls: 3}]"},
    "optimize": {"goal": GOAL, "max_replications": 4},
    "plan": {"goal": GOAL, "max_replications": 4},
    "Event": {"campaign": "", "recipient": 1, "status": "BUSY"},
    "Sandbox.add_campaign": {
        "campaign": {"name": "New", "agent": "Agent", "recipients": {"count": 2}},
    },
    "Sandbox.schedule": {"campaign": "Nobody"},
    "Simulation.add_campaign": {
        "campaign": {"name": "New", "agent": "Agent", "recipients": {"count": 2}},
    },
    "Sketch.campaign": {"people": "busy 1s"},
    "Sketch.scenario": {"overrides": ()},
    "Comparison.breaches": {"baseline": "a"},
    "Sandbox.add_agent": {"agent": {"name": "Second"}},
    "Sandbox.add_organization": {"organization": {"name": "Second"}},
    "Sandbox.advance_until": {"call": "x", "status": "BUSY"},
    "Sandbox.export": {"file": "run.zip"},
    "Sandbox.forecast": {"replications": 19},
    "Receiver.wait_for": {"seconds": 0.01},
    "ReceivedRequest": {"body": b""},
    "RemoteRequests.assert_called": {"times": None},
    "RemoteFaults.strike_api": {"how": "drop"},
    "at": {"text": "Mon 09:00"},
    "conformance": {"scheduler": _Lines, "sketches": Sketch(1)},
    "forecast": {"replications": 19},
    "compare_log": {"scenario": MANY, "replications": 40, "progress": False},
    "Calibration.forecast": {"replications": 19},
    "load": {"source": {"organizations": [{"name": "Acme", "maxConcurrentCalls": 3}]}},
}


# -- wrong values ----------------------------------------------------------------------------------


class _Other:
    """Class that has nothing to do with dialsim."""


WRONG: Mapping[str, Any] = {
    "int": 3,
    "negative": -1,
    "nan": float("nan"),
    "huge": 1e300,
    "bool": True,
    "text": "nonsense",
    "bytes": b"x",
    "None": None,
    "list": [],
    "set": {3},
    "object": object(),
    "function": lambda *_: 3,
    "function of none": lambda: 3,
    "class": _Other,
    "frame": pd.DataFrame({"x": [1]}),
    "list of wrong items": [object()],
    "mapping of wrong items": {"lines": object()},
    "mapping of wrong names": {3: 3},
}
PERMITTED: Mapping[str, str] = {
    "int": r"\bint\b|float|When|SettingValue",
    "negative": r"\bint\b|float|When|SettingValue",
    "huge": r"float|When|SettingValue",
    "bool": r"\bbool\b",
    "text": r"\bstr\b|When|Instant|Source|SettingValue|Overrides|Figures",
    "bytes": r"bytes",
    "mapping of wrong items": r"object\b",
    "function of none": r"Callable\[\[\]",
    "None": r"None|Shown",
    "list": r"Sequence|Iterable|Overrides|Figures",
    "function": r"Callable|Shown|Progress",
    "class": r"Callable\[(\.\.\.|\[\])",
    "frame": r"DataFrame",
}
"""Annotations that permit a kind of value, as a pattern; every other value must raise an error."""
OBJECTS: Mapping[str, tuple[str, ...]] = {
    "people": ("int", "frame"),
    "behaviour": ("None",),
    "rates": (),
    "source": ("text",),
    "log": ("text",),
}
"""Kinds of values that arguments of the type `object` permit; others are checked with a file."""
NAMED_AS: Mapping[str, tuple[str, ...]] = {
    "source": ("the table", "folder"),
    "log": ("the table", "folder"),
    "values": ("other",),
    "is_missing": ("advance_until: ",),
    "vary": ("between",),
    "baseline": ("no variant",),
    **dict.fromkeys(("days", "hours", "minutes", "seconds", "milliseconds"), ("advance: ",)),
}
"""Words for an argument in texts about its content."""
SLOW = ("Calibration.forecast", "Sandbox.export", "Sandbox.forecast", "explore")
"""Callables whose right calls take seconds: they are made elsewhere."""
IN_FILES = ("mapping of wrong items", "mapping of wrong names")
RETURNED = ("Comparison", "Forecast", "Replications", "Sweep", "Plots", "Remote")
"""Classes that only dialsim makes, of what it has computed; parts of their names."""


class Target(NamedTuple):
    """Public callable: its name, and how to get it."""

    name: str
    make: Callable[[], Callable[..., Any]]
    signature: inspect.Signature
    parts: Callable[[], Any] | None
    """Value whose parts are right for the constructor of its class."""


def _targets() -> Iterator[Target]:
    for module in (dialsim, testing):
        for name in module.__all__:
            public = getattr(module, name)
            if inspect.isclass(public) and not issubclass(public, Exception):
                yield from _of_class(public)
            elif inspect.isfunction(public):
                yield Target(name, partial(getattr, module, name), inspect.signature(public), None)
    # By their modules, as a value would start a sandbox while tests are collected.
    for room in ("results.plots", "experiments.plots", "logs.calibrate", "sandbox.session"):
        module = import_module(f"dialsim.{room}")
        for name in ANSWERS:
            if re.search("Plots$|^Remote", name) and hasattr(module, name):
                yield from _of_class(getattr(module, name))


def _of_class(public: type) -> Iterator[Target]:
    made = ANSWERS.get(public.__name__)
    of_dialsim = any(part in public.__name__ for part in RETURNED)
    is_made = not of_dialsim and not hasattr(public, "model_fields")
    if is_made and not getattr(public, "_is_protocol", False):
        yield Target(public.__name__, lambda: public, inspect.signature(public), made)
    for name in dir(public):
        method = inspect.getattr_static(public, name)
        ours = str(getattr(method, "__module__", "")).startswith("dialsim")
        if name.startswith("_") or not inspect.isfunction(method) or not ours:
            continue
        if made is not None:
            own = inspect.signature(method)
            bare = own.replace(parameters=[*own.parameters.values()][1:])
            bound = partial(lambda made, name: getattr(made(), name), made, name)
            yield Target(f"{public.__name__}.{name}", bound, bare, None)


TARGETS = [*_targets()]


@pytest.fixture(scope="module", autouse=True)
def _served() -> Iterator[None]:
    """Stop the sandbox and the receiver behind the last test."""
    yield
    for name in ("Sandbox", "Receiver"):
        if SERVED[name].cache_info().currsize:
            SERVED[name]().stop()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write files of calls that work to a folder of this test."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])
def test_a_wrong_argument_is_named(target: Target) -> None:
    assert [*_faults(target)] == []


def _parameters(target: Target) -> Iterator[tuple[str, str]]:
    """Yield the arguments of a target, those in `**settings` too, with their annotations."""
    for name, parameter in target.signature.parameters.items():
        settings = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
        if settings is None:
            yield name, str(parameter.annotation)
        else:
            assert settings[1] == RunSettings.__name__
            for key, hint in RunSettings.__annotations__.items():
                yield key, hint.__forward_arg__


def _faults(target: Target) -> Iterator[str]:
    for name, annotation in _parameters(target):
        for kind, value in WRONG.items():
            fault = _fault(target, name, kind, value, annotation)
            if fault is not None:
                yield f"{target.name}({name}={kind}): {fault}"
    kinds = {str(one.annotation): one.kind for one in target.signature.parameters.values()}
    if all(kind is not inspect.Parameter.VAR_KEYWORD or "Unpack" in hint
           for hint, kind in kinds.items()):  # fmt: skip
        with pytest.raises(TypeError, match="unknown_argument"):
            _called(target, {"unknown_argument": 3})


def _fault(target: Target, name: str, kind: str, value: object, annotation: str) -> str | None:
    """Return what is wrong about a call with one wrong argument."""
    permitted = re.search(PERMITTED.get(kind, "$^"), annotation) is not None
    permitted |= annotation == "object" and kind in OBJECTS.get(name, [*WRONG])
    if permitted and target.name in SLOW:
        return None
    for made in Path().iterdir():
        rmtree(made) if made.is_dir() else made.unlink()
    fault = None if permitted else "no error"
    try:
        _called(target, {name: value})
    except dialsim.Refused:
        fault = None  # the service's own texts
    except AssertionError:
        pass  # the answer of an assertion of the kit
    except dialsim.DialsimError as error:
        # A value of a right type may be named by its content, such as a file that is not there.
        words = [name, *NAMED_AS.get(name, ()), *(["lines"] if kind in IN_FILES else [])]
        words += [str(value)] if permitted else []
        is_named = any(word in str(error) for word in words)
        fault = None if is_named else f"names no argument: {type(error).__name__}: {error}"
    except Exception as error:
        fault = f"raw {type(error).__name__}: {error}"
    return fault


def _called(target: Target, given: Mapping[str, object]) -> object:
    """Call a target with right arguments where none are given."""
    positional: list[object] = []
    named: dict[str, object] = dict(given)
    parameters = target.signature.parameters
    lists = [one.name for one in parameters.values() if one.kind is one.VAR_POSITIONAL]
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            if name in named:
                named |= {"other": named.pop(name)}
            continue
        optional = parameter.default is not parameter.empty or name in lists
        here = RIGHT_HERE.get(target.name, {})
        if name not in named and optional and name not in (*here, "jobs", "replications"):
            continue
        value = named.pop(name) if name in named else _right(target, name)
        before_list = parameter.kind is parameter.POSITIONAL_OR_KEYWORD and lists
        if before_list or name in lists:
            positional.append(value)
        else:
            named[name] = value
    if any("Unpack" in str(one.annotation) for one in parameters.values()):
        named.setdefault("jobs", 1)
    return target.make()(*positional, **named)


def _right(target: Target, name: str) -> object:
    here = RIGHT_HERE.get(target.name, {})
    if name in here:
        return here[name]
    if target.parts is not None:
        whole = target.parts()
        for attribute in (name, f"_{name}"):
            if hasattr(whole, attribute):
                return getattr(whole, attribute)
    value = RIGHT[name]
    return value() if inspect.isfunction(value) or hasattr(value, "cache_info") else value
