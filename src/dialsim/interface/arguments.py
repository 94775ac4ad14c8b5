"""Checks of arguments by annotations: errors name the wrong argument and what is right.

A new parameter of a decorated function is checked as soon as it has a type.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache, wraps
from importlib import import_module
from inspect import Parameter, getsource, isclass, isfunction, signature
from math import isfinite
from numbers import Integral, Real
from os import PathLike
from types import NoneType, UnionType
from typing import (
    Any,
    BinaryIO,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
)

from dialsim.errors import DialsimError
from dialsim.interface.phrases import article, counted, joined, kind_of

_T = TypeVar("_T", bound=Callable[..., Any])


def checked(error: type[DialsimError]) -> Callable[[_T], _T]:
    """Return a decorator of functions and classes that raises `error` for wrong arguments.

    In a class, the constructor, `__call__` and public methods are checked. Unknown or too many
    arguments raise TypeError, as in Python, with the public name of the function.
    """

    def decorate(target: _T) -> _T:
        if not isclass(target):
            return cast(_T, _checking(target, error))
        for name, member in [*vars(target).items()]:
            if name in ("__init__", "__call__") or not name.startswith("_"):
                if isfunction(member):
                    setattr(target, name, _checking(member, error))
                elif isinstance(member, classmethod):
                    setattr(target, name, classmethod(_checking(member.__func__, error)))
        return target

    return decorate


def _checking(function: Any, error: type[DialsimError]) -> Any:
    expected = signature(function)
    name = function.__qualname__.removesuffix(".__init__")
    # Evaluated on the first call: annotations name classes of packages that are slow to import.
    types = cache(lambda: _types(function, expected.parameters))

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        # Makes pytest hide this frame: a failed assertion of the kit is shown at the line of the
        # test.
        __tracebackhide__ = True
        try:
            bound = expected.bind(*args, **kwargs)
        except TypeError as fault:
            raise TypeError(f"{name}() {fault}") from None
        for key, value in _by_name(bound.arguments, expected.parameters):
            if key not in types():
                # Python's own text, with the public name in place of the inner function's
                raise TypeError(f"{name}() got an unexpected keyword argument {key!r}")
            misfit = _misfit(value, types()[key], key)
            if misfit is not None:
                raise error(misfit.text(name))
        return function(*args, **kwargs)

    return call


def _by_name(
    bound: Mapping[str, Any], parameters: Mapping[str, Parameter]
) -> Iterator[tuple[str, object]]:
    """Yield name and value of each argument, also of each key of `**settings: Unpack[Settings]`."""
    for key, value in bound.items():
        if "Unpack" in str(parameters[key].annotation):
            yield from value.items()
        else:
            yield key, value


# -- annotations -----------------------------------------------------------------------------------


def _types(function: Any, parameters: Mapping[str, Parameter]) -> dict[str, object]:
    """Return the type of each argument by name."""
    module = function.__globals__["__name__"]
    types: dict[str, object] = {}
    for key, parameter in parameters.items():
        declared = parameter.annotation
        hint = object if declared is Parameter.empty else _evaluated(declared, module)
        if parameter.kind is Parameter.VAR_POSITIONAL:
            types[key] = tuple[hint, ...]  # type: ignore[valid-type]
        elif get_origin(hint) is Unpack:
            [settings] = get_args(hint)
            types |= {
                name: _evaluated(part.__forward_arg__, settings.__module__)
                for name, part in settings.__annotations__.items()
            }
        else:
            types[key] = object if parameter.kind is Parameter.VAR_KEYWORD else hint
    return types


def _evaluated(annotation: Any, module: str) -> object:
    if not isinstance(annotation, str):
        return annotation
    return eval(annotation, vars(sys.modules[module]), _TypeImports(module))


class _TypeImports(dict[str, object]):
    """Names that a module imports under `if TYPE_CHECKING`, each imported when it is looked up."""

    def __init__(self, module: str) -> None:
        super().__init__()
        self._lines = _type_imports(module)

    def __missing__(self, name: str) -> object:
        module, attribute = self._lines[name]
        return getattr(import_module(module), attribute) if attribute else import_module(module)


@cache
def _type_imports(module: str) -> dict[str, tuple[str, str]]:
    """Return (module, attribute) by name for the imports under `if TYPE_CHECKING`.

    The attribute is empty for `import module`.
    """
    names: dict[str, tuple[str, str]] = {}
    for block in ast.parse(getsource(sys.modules[module])).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom):
                    source = str(line.module)
                    names |= {one.asname or one.name: (source, one.name) for one in line.names}
                elif isinstance(line, ast.Import):
                    names |= {one.asname or one.name: (one.name, "") for one in line.names}
    return names


# -- values ----------------------------------------------------------------------------------------


class _Misfit(NamedTuple):
    """Value of a wrong type; `where` names the argument or its item, `wanted` is the right type."""

    where: str
    value: object
    wanted: object

    def text(self, function: str) -> str:
        """Return the text of the error that `function` raises."""
        own, common = _WANTED.get(f"{function}({self.where})"), _WANTED.get(self.where)
        right = own or common or _name_of(self.wanted)
        return f"{self.where} must be {right}, not {kind_of(self.value)}"


def _misfit(value: object, wanted: Any, where: str) -> _Misfit | None:
    """Return the value, or its first item, that is not of the type `wanted`; None if all are."""
    kind, parts = get_origin(wanted) or wanted, get_args(wanted)
    if kind in (Union, UnionType):
        found = [_misfit(value, part, where) for part in parts]
        if None in found:
            return None
        # A list with a wrong item: to name the item helps more than to list all types of the union.
        items = (one for one in found if one is not None and one.where != where)
        return next(items, _Misfit(where, value, wanted))
    if not _is(value, kind, parts):
        return _Misfit(where, value, wanted)
    checks = (_misfit(*one) for one in _items(value, kind, parts, where))
    return next((misfit for misfit in checks if misfit is not None), None)


def _items(
    value: Any, kind: Any, parts: tuple[Any, ...], where: str
) -> Iterator[tuple[object, object, str]]:
    """Yield each item of a value with the type that it must have and its name in errors."""
    # Not the items of iterators, which can be read only once, nor the characters of texts.
    listed = isinstance(value, Collection) and not isinstance(value, str | bytes)
    if not (listed and parts and isclass(kind) and issubclass(kind, Iterable)):
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key, parts[0], f"each key of {where}"
            # Counter has a type parameter for its keys only; its values are ints.
            yield item, parts[1] if len(parts) > 1 else int, f"{where}[{key!r:.40}]"
    elif kind is tuple and Ellipsis not in parts:
        for index, (item, part) in enumerate(zip(value, parts, strict=True)):
            yield item, part, f"{where}[{index}]"
    else:
        yield from ((item, parts[0], f"{where}[{index}]") for index, item in enumerate(value))


_SIMPLE: Mapping[Any, Callable[[Any], bool]] = {
    Any: lambda _: True,
    object: lambda _: True,
    None: lambda value: value is None,
    NoneType: lambda value: value is None,
    # isinstance(True, int) is true, and numpy's integers are no int: both would be wrong here.
    int: lambda value: isinstance(value, Integral) and not isinstance(value, bool),
    float: lambda value: (
        isinstance(value, Real)
        and not isinstance(value, bool)
        and (isinstance(value, Integral) or isfinite(value))
    ),
    BinaryIO: lambda value: hasattr(value, "write"),
}
"""Checks by type, for types where isinstance alone fails or gives the wrong answer."""


def _is(value: object, kind: Any, parts: tuple[Any, ...]) -> bool:
    """Return True if a value has the type `kind[parts]`; its items are not checked."""
    if kind in _SIMPLE:
        return _SIMPLE[kind](value)
    if kind is Literal:
        return any(isinstance(value, type(part)) and value == part for part in parts)
    if kind is Callable:
        return callable(value) and _takes(value, parts)
    if kind is tuple and Ellipsis not in parts:
        return isinstance(value, tuple) and len(value) == len(parts)
    if isinstance(value, str | bytes) and kind not in (str, bytes, Iterable):
        # A str is a sequence of str in Python, and would pass as a list of texts.
        return not issubclass(kind, Collection) and isinstance(value, kind)
    return getattr(kind, "_is_protocol", False) or isinstance(value, kind)


def _takes(function: Any, parts: tuple[Any, ...]) -> bool:
    """Return True if a function accepts as many arguments as its annotation `Callable` lists."""
    if not parts or parts[0] is Ellipsis:
        return True
    try:
        signature(function).bind(*parts[0])
    except TypeError:
        return False
    except ValueError:  # some functions written in C have no signature
        return True
    return True


# -- texts -----------------------------------------------------------------------------------------

_POSITION = "a position on the list, from 0, as in the column recipient of every table"
_WANTED = {
    "Plots.story(recipient)": _POSITION,
    "Result.story(recipient)": _POSITION,
    "assert_sequence(recipient)": _POSITION,
    "between": "the ends of a range such as (1, 200)",
    "compare(files)": 'files or scenarios, such as ["a.yaml", "b.yaml"], or scenarios by name',
    "each key of vary": "the path of a setting, such as lines",
    "figures": "expressions such as cost / people_reached, or functions by name",
    "folder": "the name of a folder",
    "goal": "a text such as p95(finish) <= Fri 18:00",
    "load(source)": "the name of a file, or a dict (dialsim.scenario takes a list of people)",
    "overrides": 'texts PATH=VALUE, such as "seed=7", or values by path, such as {"seed": 7}',
    "precision": "a share by figure, such as finish=2%",
    "progress": "a function of two counts, or False",
    "scenario(columns)": 'names of columns, such as {"segment": "grade"}',
    "store": "the name of a folder",
    "vary": 'values of settings, such as {"lines": range(10, 60, 5)}',
    "windows": 'a text such as "Mon-Fri 09:00-19:00"',
}
"""Right values in words, where a type says too little.

A key is an argument of any function, or `function(argument)`.
"""

_NAMES: Mapping[Any, tuple[str, str]] = {
    object: ("a value", "values"),
    str: ("a text", "texts"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("True or False", "truth values"),
    bytes: ("bytes", "bytes"),
    PathLike: ("the name of a file", "names of files"),
    datetime: ("an aware datetime", "aware datetimes"),
    BinaryIO: ("a file that is open for bytes", "files"),
    Callable: ("a function", "functions"),
    Mapping: ("a mapping", "mappings"),
}
"""Names of types in error texts: singular and plural."""

_MAKERS = {
    "Scenario": ", from dialsim.load or dialsim.scenario",
    "Log": ", from dialsim.read_log",
    "RecordedCalls": ", made of a log and a scenario",
    "Widening": ", from the file of a calibration",
}
"""Sources of objects of dialsim's own classes, as error texts name them."""


def _name_of(wanted: Any, several: bool = False) -> str:
    """Return the name of a type in error texts; in the plural with `several`."""
    kind, parts = get_origin(wanted) or wanted, get_args(wanted)
    if kind in (Union, UnionType):
        # str beside PathLike is the name of a file as well, and is not listed twice.
        is_file = any(get_origin(part) is PathLike for part in parts)
        named = [part for part in parts if part is not NoneType and not (is_file and part is str)]
        return joined([*dict.fromkeys(_name_of(part, several) for part in named)], "or")
    if kind is Literal:
        return joined([*map(repr, parts)], "or")
    if kind is Callable and parts and parts[0] is not Ellipsis:
        return f"{_NAMES[kind][several]} of {counted(len(parts[0]), 'argument')}"
    if issubclass(kind, Iterable) and parts and kind not in _NAMES:
        return f"{'lists' if several else 'a list'} of {_name_of(parts[0], several=True)}"
    name = kind.__name__
    one = f"{article(name)} {name}{_MAKERS.get(name, '')}"
    return _NAMES.get(kind, (one, f"{name} objects"))[several]
