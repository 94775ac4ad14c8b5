"""All errors are in one module: exported, in the tree of its docstring, and able to be pickled."""

from __future__ import annotations

import inspect
import pickle
import pkgutil
import re
from importlib import import_module

import pytest

import dialsim
from dialsim import errors
from dialsim.errors import DialsimError
from dialsim.interface.model import Fault
from dialsim.scenario.problems import Problem

NAMES = [
    name
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, Exception)
]
ARGUMENTS: dict[str, tuple[object, ...]] = {
    "NotKept": (errors.JournalError("the disk is full"),),
    "Refused": (409, "INVALID_CAMPAIGN_STATE", ["first", "second"]),
    "ReplicationFailed": (7, 3, "cause", "dialsim run"),
    "ScenarioError": ([Problem("a.yaml", 1, 2, "name", "is required")],),
    "ValidationFailed": ([Fault(("maxAttempts",), "maxAttempts must not be less than 1")],),
}


def modules() -> list[str]:
    optional = ("dialsim.studio", "dialsim.sandbox", "dialsim.testing")  # need extras
    found = [each.name for each in pkgutil.walk_packages(dialsim.__path__, "dialsim.")]
    return [name for name in found if not name.startswith(optional) and "__main__" not in name]


@pytest.mark.parametrize("name", NAMES)
def test_an_error_is_exported_and_in_the_tree(name: str) -> None:
    assert getattr(dialsim, name) is getattr(errors, name)
    assert name in dialsim.__all__
    assert re.search(rf"^ .*\b{name}\b", errors.__doc__ or "", re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_an_error_survives_pickling(name: str) -> None:
    error = getattr(errors, name)(*ARGUMENTS.get(name, ("text",)))
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert {key: str(value) for key, value in vars(copy).items()} == {
        key: str(value) for key, value in vars(error).items()
    }


def test_the_tree_shows_each_parent_above_its_children() -> None:
    lines = [
        (len(match["indent"]), match["name"])
        for match in re.finditer(
            r"^(?P<indent>[ │├└]*)(?P<name>[A-Z]\w+)(?:  |$)", errors.__doc__ or "", re.MULTILINE
        )
        if match["name"] in NAMES
    ]
    assert [name for _, name in lines] == sorted({name for _, name in lines}, key=NAMES.index)
    parents: list[tuple[int, str]] = []
    for indent, name in lines:
        parents = [each for each in parents if each[0] < indent]
        base = getattr(errors, name).__base__.__name__
        assert base == (parents[-1][1] if parents else "Exception")
        parents.append((indent, name))


def test_no_other_module_defines_an_error_of_dialsim() -> None:
    for name in modules():
        import_module(name)
    elsewhere = [
        error
        for error in subclasses(DialsimError)
        if error.__module__.startswith("dialsim.") and error.__module__ != "dialsim.errors"
    ]
    assert not elsewhere


def subclasses(error: type[Exception]) -> list[type[Exception]]:
    return [each for child in error.__subclasses__() for each in (child, *subclasses(child))]


def test_public_docstrings_name_exported_errors() -> None:
    unknown = []
    for public in dialsim.__all__:
        thing = getattr(dialsim, public)
        members = [thing, *(vars(thing).values() if inspect.isclass(thing) else ())]
        for member in members:
            text = inspect.getdoc(member) or "" if callable(member) else ""
            raised = re.findall(r"\b[Rr]aises? `?([A-Z]\w+)", text)
            unknown += [
                (public, name)
                for name in raised
                if not hasattr(dialsim, name)
                and name not in ("AssertionError", "TypeError", "ValueError")
            ]
    assert not unknown
