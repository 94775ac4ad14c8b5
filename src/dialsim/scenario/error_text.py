"""Validation errors of the models as problems: short texts with locations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dialsim.interface.phrases import joined
from dialsim.scenario.document import Cursor, NodePath
from dialsim.scenario.fields import PHONE_TEXT, Model, number_meant, phone_meant
from dialsim.scenario.problems import Problem, Problems, problem_at
from dialsim.scenario.scenario import RENAMED_KEYS, known_keys

_KINDS = {
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of keys",
    "model_type": "must be a mapping of keys",
    "model_attributes_type": "must be a mapping of keys",
    "string_too_short": "must not be empty",
}
_BOUNDS = {
    "greater_than": ("must be greater than", "gt"),
    "greater_than_equal": ("must not be less than", "ge"),
    "less_than_equal": ("must not be greater than", "le"),
}
_CHOICES = ("literal_error", "enum")
_ALTERNATIVE = re.compile(r"<[a-z]+>")
_LONGEST_SHOWN = 40


_ModelT = TypeVar("_ModelT", bound=Model)


def validated(
    model: type[_ModelT], values: object, root: Cursor, problems: Problems, part: NodePath = ()
) -> _ModelT:
    """Validate the values of a document, or of its part at a path.

    Raises ScenarioError with all problems so far if the model rejects them.
    """
    try:
        return model.model_validate(values, by_alias=True, by_name=False)
    except ValidationError as error:
        for problem in problems_of(error, root, part):
            problems.note(problem)
        problems.raise_if_any()
        # Reached only if `problems_of` described nothing: the error must not get lost.
        block = root.at(*part)
        problems.fail(problem_at(block.location, block.path, str(error)))


def problems_of(error: ValidationError, root: Cursor, part: NodePath = ()) -> Iterator[Problem]:
    """Yield the problems of a failed validation of a document, in no particular order.

    `part` is the path of the validated part, if not the whole document.
    """
    for details in error.errors(include_url=False, include_input=False):
        path = _path(details, root, part)
        parent = path[:-1] if details["type"] == "missing" else path
        if root.at(*parent).is_present:
            # A value that is not in the document at its path was inherited by a behaviour. Its
            # fault is reported at the original.
            yield _problem(details, path, root)


def _path(details: ErrorDetails, root: Cursor, part: NodePath) -> NodePath:
    """Return the path of an error without pydantic's names for alternatives of a union and for
    keys.

    It ends at a plain duration, which the models expand to a constant with a value.
    """
    path = part
    for key in details["loc"]:
        block = root.at(*path)
        if block.is_present and not isinstance(block.value, dict | list):
            break
        if key != "[key]" and not _ALTERNATIVE.fullmatch(str(key)):
            path = (*path, key)
    return path


def _problem(details: ErrorDetails, path: NodePath, root: Cursor) -> Problem:
    kind, context = details["type"], details.get("ctx", {})
    culprit = root.at(*path)
    if kind == "broken":
        culprit = culprit.at(*context.get("path", ()))
    is_key = kind == "extra_forbidden" or details["loc"][-1:] == ("[key]",)
    location = culprit.key_location if is_key else culprit.location
    return problem_at(location, culprit.path, _message(details, culprit, root))


def _message(details: ErrorDetails, culprit: Cursor, root: Cursor) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return _unknown_key(culprit, root)
    if kind in _BOUNDS:
        relation, bound = _BOUNDS[kind]
        return f"{relation} {context[bound]}"
    if kind in _CHOICES:
        return _none_of(context["expected"], culprit)
    message: str = context.get("message") or _KINDS.get(kind, details["msg"])
    return message if kind in ("broken", "conflict") else unlike(message, culprit)


def _unknown_key(culprit: Cursor, root: Cursor) -> str:
    key = str(culprit.path[-1])
    if key == "<<":
        return "is a merge key, which YAML 1.2 does not have: write the keys out"
    return f"is not a known key{suggestion(culprit.path, root)}"


def suggestion(path: NodePath, root: Cursor) -> str:
    """Suggest the key meant by the unknown key at the end of a path: `; did you mean …?`."""
    if path[-1] in known_keys(path[:-2], root.value):
        return f"; it belongs beside {path[-2]}, not in it"
    block = root.at(*path[:-1])
    known = known_keys(path[:-1], root.value)
    if RENAMED_KEYS.get(str(path[-1])) in known:
        return f"; it is called {RENAMED_KEYS[str(path[-1])]} now"
    present = {key for key, _ in block.entries()}
    free = [key for key in known if key not in present]
    near = [
        *get_close_matches(str(path[-1]), free, n=1, cutoff=0.6),
        *get_close_matches(str(path[-1]), known, n=1, cutoff=0.6),
    ]
    if near:
        return f"; did you mean {near[0]}?"
    return f"; known here: {', '.join(known)}" if known else ""


def _none_of(expected: str, culprit: Cursor) -> str:
    choices = expected.replace("'", "").replace(" or ", ", ").split(", ")
    message = unlike(f"must be {joined(choices, 'or')}", culprit)
    near = get_close_matches(culprit.text or "", choices, n=1)
    return f"{message}; did you mean {near[0]}?" if near else message


def unlike(message: str, culprit: Cursor) -> str:
    """Append the actual value to a text about the required value."""
    if isinstance(culprit.value, dict | list):
        kind = "mapping" if isinstance(culprit.value, dict) else "list"
        return message if message == "must not be empty" else f"{message}, not a {kind}"
    if culprit.value is None:
        return f"{message}; nothing is written here"
    shown = _short(culprit.written)
    if message == "must be text":
        return f'{message}: put it in quotes, "{shown}"'
    if culprit.text is not None:
        return f'{message}, not "{shown}"{_correction(message, culprit.text)}'
    return f"{message}, not {shown}"


def _correction(message: str, text: str) -> str:
    """Suggest a spelling for a number or phone number: `: write 4356`."""
    if message == PHONE_TEXT:
        tel = phone_meant(text)
        return f': write "{tel}"' if tel else ""
    if not message.startswith(("must be a number", "must be a whole number")):
        return ""
    number = number_meant(text)
    fits = number is not None and ("whole" not in message or "." not in number)
    return f": write {number}, without quotes" if fits else ""


def _short(text: str) -> str:
    shown = text.replace("\n", "\\n")
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[: _LONGEST_SHOWN - 3]}..."


def behind(where: str, message: str, culprit: Cursor, is_key: bool = False) -> Problem:
    """Prefix an interface error text with the path of its field (C10).

    With `is_key` the key itself is at fault, and not its value.
    """
    location = culprit.key_location if is_key else culprit.location
    return replace(problem_at(location, culprit.path, ""), message=where + message)


def quoting(culprit: Cursor) -> str:
    """Advise to put a text in quotes if YAML reads it as another type."""
    if isinstance(culprit.value, int | float):
        return f'; put it in quotes, "{_short(culprit.written)}"'
    return ""
