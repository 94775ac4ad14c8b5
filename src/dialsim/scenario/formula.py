"""Formulas over a recipient's parameters and segment, such as `0.11 * 0.30 * amount`.

The notation is Python's: numbers, texts in quotes, true and false, `+ - * /`, comparisons, `and`,
`or`, `not`, and `A if CONDITION else B`. A name is `segment` or a parameter; one with blanks stands
in backticks. A formula is a number, a text or a condition. It is parsed by Python, but evaluated
here: no text is executed. It is computed for all recipients at once, as Python would for each: what
`and`, `or` and `if` skip may be missing (C12).
"""

from __future__ import annotations

import ast
import operator
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from dialsim.interface.phrases import few

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.interface.agent import ParamSchema
    from dialsim.scenario.campaign import PeopleTable
    from dialsim.scenario.fields import ParamValue
    from dialsim.scenario.people import People

Kind = Literal["number", "text", "condition"]
SEGMENT = "segment"
_KINDS: Mapping[type, Kind] = {bool: "condition", int: "number", float: "number", str: "text"}
_TYPES: Mapping[str, Kind] = {"number": "number", "text": "text", "boolean": "condition"}
_SHOWN, _LONGEST = 10, 500


@dataclass(frozen=True, slots=True)
class Attributes:
    """Columns of a campaign's recipients: parameters and segments.

    A parameter that a recipient lacks has the `default` of `schema`, the agent's paramsSchema.
    `codes` are indices into `segments`, -1 for recipients without one, whose segment is the empty
    text; None if nobody has one.
    """

    params: Mapping[str, Sequence[ParamValue | None]]
    segments: Sequence[str]
    codes: Sequence[int] | NDArray[np.integer] | None
    schema: Mapping[str, ParamSchema]
    count: int

    @classmethod
    def of_table(cls, table: PeopleTable, schema: Mapping[str, ParamSchema] | None) -> Attributes:
        """Return the attributes of listed people."""
        segments = table.segments
        return cls(table.params, [*segments.texts], segments.codes, schema or {}, len(table.tels))

    @classmethod
    def of_people(cls, people: People, schema: Mapping[str, ParamSchema] | None) -> Attributes:
        """Return the attributes of the recipients of a run."""
        return cls(people.params, people.segments, people.segment, schema or {}, people.count)

    @property
    def names(self) -> list[str]:
        """Names that a formula may use."""
        return list(dict.fromkeys([SEGMENT, *self.params, *self.schema]))

    def kind(self, name: str) -> Kind:
        """Return the kind of a name's values.

        Raises ValueError for a parameter of several kinds.
        """
        if name == SEGMENT:
            return "text"
        if name in self.schema:
            return _TYPES[self.schema[name].type]
        types = {type(value) for value in self.params[name]} - {type(None)}
        if types <= {int, float}:
            return "number"
        if len(types) == 1:
            return "condition" if types == {bool} else "text"
        raise ValueError(
            f"{name} is a number for some recipients and a text or true or false for others: give "
            "it a type in the paramsSchema of the agent"
        )

    def column(self, name: str) -> _Values:
        """Return the values of a name by recipient, and a mask that is True for missing values."""
        if name == SEGMENT:
            texts = np.array([*self.segments, ""], dtype=object)
            codes = [-1] if self.codes is None else self.codes
            return texts[np.asarray(codes, dtype=np.intp)], np.array(False)
        entry, kind = self.schema.get(name), self.kind(name)
        values = self.params.get(name, (None,))
        default = None if entry is None else entry.default
        missing = np.array([default is None and value is None for value in values])
        filler = (
            {"number": 0.0, "text": "", "condition": False}[kind] if default is None else default
        )
        dtype = {"number": np.float64, "text": object, "condition": np.bool_}[kind]
        filled = [filler if value is None else value for value in values]
        return np.array(filled, dtype=dtype), missing

    def lacks_type(self, name: str) -> bool:
        """True for a parameter that the agent's paramsSchema does not name."""
        return name != SEGMENT and name not in self.schema


_Values = tuple["NDArray[Any]", "NDArray[np.bool_]"]
_Evaluator = Callable[["Attributes"], _Values]


@dataclass(frozen=True, slots=True)
class Formula:
    """Parsed formula; `names` are the names in it."""

    text: str
    kind: Kind
    evaluate: _Evaluator
    names: tuple[str, ...] = ()

    def values(
        self, people: Attributes, rows: NDArray[np.int64], location: Callable[[int], str]
    ) -> NDArray[Any]:
        """Return the formula's value for each recipient in `rows`.

        Raises ValueError if it has no value for some of them. `location` returns the location of a
        recipient for the error.
        """
        found, missing = self.evaluate(people)
        without = rows[np.broadcast_to(missing, people.count)[rows]]
        for name in self.names:
            lacking = without[np.broadcast_to(people.column(name)[1], people.count)[without]]
            if len(lacking):
                raise ValueError(
                    f"needs {name}, which is missing for {_whom(lacking, rows, location)}: fill it "
                    f"in, or give {name} a default in the paramsSchema of the agent"
                )
        if len(without):
            raise ValueError(f"divides by 0 for {_whom(without, rows, location)}")
        return np.broadcast_to(found, people.count)[rows]


def _whom(some: NDArray[np.int64], rows: NDArray[np.int64], location: Callable[[int], str]) -> str:
    many = f"{len(some):,} of {len(rows):,} recipients"
    return f"{many}, the first in {location(int(some[0]))}"


def read_formula(text: str, people: Attributes, wanted: Kind | None = None) -> Formula:
    """Parse a formula.

    Raises ValueError for a faulty one, and for one of another kind than `wanted`.
    """
    found = _Reader(text, people).read()
    if wanted not in (None, found.kind):
        examples = {"number": "0.3 * amount", "condition": "amount > 5000"}
        such = f"must be a {wanted}, such as {examples[str(wanted)]}"
        raise ValueError(f"{such}, and {found.text} is a {found.kind}")
    return found


_COMPARE: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.LtE: operator.le, ast.GtE: operator.ge,
    ast.Lt: operator.lt, ast.Gt: operator.gt,
}  # fmt: skip
_COMPUTE: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


_ADVICE = {
    "[“”‘’]": "texts have straight quotes, 'gold'",
    "=>|=<|[≥≤]": "write >= or <=",
    "[×÷]": "write * and /",
    "%": "write 0.1 for 10 %",
    r"(?i)\bTHB\b|บาท|฿": "amounts have no currency",
    "agentParams[.]": "parameters are written without agentParams",
    r"(?i)\bbetween\b": "write 1 <= amount <= 2",
    r"(?i)\bin\b": "write segment == 'a' or segment == 'b'",
    r"(?i)\b(?:asc|desc)\b": "a minus puts the highest first, -amount",
    r"\b(?:AND|OR|NOT)\b|[&|]": "write and, or, not",
    "[0-9],[0-9]": "numbers have no commas",
    "[^=!<>]=[^=]": "compare with ==",
}
"""Advice on common mistakes, by pattern of the text."""


class _Reader:
    """Reader of the tree of a formula."""

    def __init__(self, text: str, people: Attributes) -> None:
        self._text = text.strip()
        self._people = people
        # Python normalizes identifiers, Thai ones among them.
        self._names = {unicodedata.normalize("NFKC", name): name for name in people.names}

    def read(self) -> Formula:
        if not self._text:
            raise ValueError("must not be empty")
        if len(self._text) > _LONGEST:
            raise ValueError(f"must have at most {_LONGEST} characters")
        try:
            tree = ast.parse(re.sub("`([^`]*)`", self._stand_in, self._text), mode="eval")
            return replace(self._read(tree.body), text=self._text)
        except SyntaxError as error:
            # Python counts from 1; its 0 means that something is missing at the end.
            where = f"at character {error.offset}" if error.offset else "at the end"
            self._refuse(f"{error.msg} {where}: {self._text}{self._advice()}")
        except (RecursionError, MemoryError, OverflowError):
            self._refuse("it has too many brackets or digits")

    def _stand_in(self, quoted: re.Match[str]) -> str:
        """Return an identifier for a name in backticks."""
        name = f"_{len(self._names)}_"
        self._names[name] = quoted[1]
        return name

    def _read(self, node: ast.expr) -> Formula:  # noqa: PLR0911 (one return per kind of node)
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                number = _KINDS[type(value)] == "number"
                constant = _array(float(value) if number else value)
                return self._made(node, _KINDS[type(value)], lambda _: (constant, _NONE))
            case ast.Name(id="true" | "false" as word):
                return self._read(ast.Constant(word == "true"))
            case ast.Name(id=word):
                return self._column(self._names.get(word, word))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self._read(ast.BinOp(ast.Constant(-0.0), ast.Sub(), inner))
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                part = self._needs("condition", "not", self._read(inner))
                return self._computed(node, "condition", lambda one, _: ~one, part, part)
            case ast.BinOp(left=first, op=sign, right=second) if type(sign) in _COMPUTE:
                parts = [
                    self._needs("number", "arithmetic", self._read(n)) for n in (first, second)
                ]
                return self._computed(node, "number", _COMPUTE[type(sign)], *parts)
            case ast.Compare(left=first, ops=signs, comparators=rest):
                return self._compared(node, [first, *rest], signs)
            case ast.BoolOp(op=sign, values=inner):
                word = "and" if isinstance(sign, ast.And) else "or"
                parts = [self._needs("condition", word, self._read(one)) for one in inner]
                return self._joined(node, parts, isinstance(sign, ast.And))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._choice(node, self._read(test), self._read(body), self._read(orelse))
        return self._refuse(
            f"{self._shown(node)} is not possible: a formula has numbers, 'texts', names, + - * /, "
            f"comparisons, and, or, not, if and else{self._advice()}"
        )

    def _advice(self) -> str:
        """Return how to write what the text probably means; empty if unclear."""
        for pattern, advice in _ADVICE.items():
            if re.search(pattern, self._text):
                return f"; {advice}"
        spaced = [name for name in self._people.names if " " in name and name in self._text]
        return f"; a name with a space is written `{spaced[0]}`" if spaced else ""

    def _column(self, name: str) -> Formula:
        if name not in self._people.names:
            names = [one if one.isidentifier() else f"`{one}`" for one in self._people.names]
            folded = {one.casefold(): one for one in self._people.names}
            near = get_close_matches(name.casefold(), folded, n=1)
            hint = f"known here: {few(names[:_SHOWN], len(names))}"
            if near:
                hint = f"did you mean {folded[near[0]]}?"
            elif name in self._people.segments:
                hint = f"a text is written '{name}'"
            self._refuse(f"no recipient has {name}; {hint}")
        try:
            kind = self._people.kind(name)
        except ValueError as error:
            self._refuse(str(error))
        return Formula(name, kind, operator.methodcaller("column", name), (name,))

    def _compared(
        self, node: ast.expr, nodes: Sequence[ast.expr], signs: Sequence[ast.cmpop]
    ) -> Formula:
        parts, pairs = [*map(self._read, nodes)], []
        for left, sign, right in zip(parts, signs, parts[1:], strict=False):
            if type(sign) not in _COMPARE:
                self._refuse("comparisons are == != < <= > and >=")
            if left.kind != right.kind:
                self._refuse(f"{self._differ(left, right)}, which can't be compared")
            compare = _COMPARE[type(sign)]
            pairs.append(self._computed(node, "condition", compare, left, right))
        return pairs[0] if len(pairs) == 1 else self._joined(node, pairs, True)

    def _joined(self, node: ast.expr, parts: Sequence[Formula], is_and: bool) -> Formula:
        def evaluate(people: Attributes) -> _Values:
            found, missing = _array(is_and), _NONE
            for part in parts:
                other, unknown = part.evaluate(people)
                # As in Python, a part is not evaluated for recipients for whom earlier parts
                # decide.
                missing = missing | (unknown & (found == is_and))
                found = found & other if is_and else found | other
            return found, missing

        return self._made(node, "condition", evaluate, *parts)

    def _choice(self, node: ast.expr, test: Formula, one: Formula, other: Formula) -> Formula:
        self._needs("condition", "if", test)
        if one.kind != other.kind:
            self._refuse(f"{self._differ(one, other)}: if and else need the same kind")

        def evaluate(people: Attributes) -> _Values:
            chosen, unknown = test.evaluate(people)
            (first, no_first), (second, no_second) = one.evaluate(people), other.evaluate(people)
            return np.where(chosen, first, second), unknown | np.where(chosen, no_first, no_second)

        return self._made(node, one.kind, evaluate, test, one, other)

    def _computed(
        self,
        node: ast.expr,
        kind: Kind,
        compute: Callable[[Any, Any], Any],
        left: Formula,
        right: Formula,
    ) -> Formula:
        def evaluate(people: Attributes) -> _Values:
            (one, no_one), (other, no_other) = left.evaluate(people), right.evaluate(people)
            missing = no_one | no_other
            if compute is operator.truediv:
                missing = missing | (other == 0)
            with np.errstate(all="ignore"):
                found = np.asarray(compute(one, other))
            return found.astype(np.bool_) if kind == "condition" else found, missing

        return self._made(node, kind, evaluate, left, right)

    def _needs(self, kind: Kind, word: str, part: Formula) -> Formula:
        if part.kind != kind:
            self._refuse(
                f"{part.text} is a {part.kind}, and {word} needs a {kind}{self._hint(part)}"
            )
        return part

    def _differ(self, left: Formula, right: Formula) -> str:
        hints = self._hint(left) or self._hint(right)
        return f"{left.text} is a {left.kind} and {right.text} a {right.kind}{hints}"

    def _hint(self, part: Formula) -> str:
        alone = part.kind == "text" and part.names == (part.text,)
        if not alone or not self._people.lacks_type(part.text):
            return ""
        example = f"{part.text}: {{type: number}}"
        return f" (the paramsSchema of the agent can make a number of it: {example})"

    def _made(self, node: ast.expr, kind: Kind, evaluate: _Evaluator, *parts: Formula) -> Formula:
        names = dict.fromkeys(name for part in parts for name in part.names)
        return Formula(self._shown(node), kind, evaluate, (*names,))

    def _shown(self, node: ast.expr) -> str:
        return re.sub(
            "_[0-9]+_", lambda found: self._names.get(found[0], found[0]), ast.unparse(node)
        )

    def _refuse(self, message: str) -> NoReturn:
        raise ValueError(f"has a fault: {message}")


_NONE = np.array(False)


def _array(value: object) -> NDArray[Any]:
    return np.array(value, dtype=object if isinstance(value, str) else None)
