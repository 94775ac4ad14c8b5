"""Expressions of figures, such as `cost / people_reached` or `Debt.finish - VIP.finish`.

    sum       product (("+" | "-") product)*
    product   signed (("*" | "/") signed)*
    signed    "-" signed | "(" sum ")" | amount | figure
    amount    5000, 2h or 30 THB
    figure    (place ".")? name

An expression has a value in each run, and a measure derived from its parts: an instant, or powers
of units such as THB per person. Counts of different things, shares and plain numbers can be
combined. Times, money and instants can only be combined with their own kind. Places are campaigns
and organizations; `figure_names` has the names. Both may be quoted. They are matched against the
scenario, longest name first, so that names with blanks, dots and hyphens need no quotes. No text is
evaluated as Python.
"""

from __future__ import annotations

import operator
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from dialsim.errors import ExperimentError
from dialsim.experiments.intervals import Jump, Known
from dialsim.experiments.named_figures import (
    FigureName,
    FigureNames,
    facts,
    follows_answers,
    range_of,
)
from dialsim.results.figures import OWN_FIGURES, OwnFigure, Unit, declared
from dialsim.scenario.units import parse_duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dialsim.experiments.known_bounds import KnownBounds, Place
    from dialsim.experiments.run_figures import RunFigures
    from dialsim.results.result import Result
    from dialsim.scenario.scenario import Scenario


_SECONDS = {Unit.SECONDS: 1.0, Unit.MINUTES: 60.0}
_COMPOUND = {
    Unit.PER_PERSON: ((Unit.CURRENCY, 1), (Unit.PEOPLE, -1)),
    Unit.PER_CONVERSATION: ((Unit.CURRENCY, 1), (Unit.CONVERSATIONS, -1)),
}
_ONE_OF = {
    Unit.DAYS: "day",
    Unit.PEOPLE: "person",
    Unit.CALLS: "call",
    Unit.DIALS: "dial",
    Unit.ATTEMPTS: "attempt",
    Unit.LINES: "line",
    Unit.CONVERSATIONS: "conversation",
    Unit.RESULTS: "result",
}

FigureValues = dict[FigureName, "NDArray[np.float64]"]
Powers = tuple[tuple[Unit, int], ...]


_OF_INSTANTS = "an instant can only be moved by a time, such as 2h, or taken from another instant"


class UnitMismatch(ValueError):
    """Measures that cannot be combined; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Unit of an expression: powers of units, or an instant; `currency` names the money."""

    powers: Powers = ()
    is_instant: bool = False
    currency: str | None = field(default=None, compare=False)

    @classmethod
    def of(cls, unit: Unit, currency: str | None = None) -> Measure:
        """Return the measure of a figure."""
        powers = () if unit is Unit.INSTANT else _COMPOUND.get(unit, ((unit, 1),))
        return cls(powers, unit is Unit.INSTANT, currency)

    @property
    def unit(self) -> Unit:
        """Unit of a figure with this measure; NO_NUMBER if there is none."""
        if self.is_instant:
            return Unit.INSTANT
        if len(self.powers) == 1 and self.powers[0][1] == 1:
            return self.powers[0][0]
        same = (u for u, powers in _COMPOUND.items() if dict(powers) == dict(self.powers))
        return next(same, Unit.NO_NUMBER)

    @property
    def label(self) -> str:
        """Label such as `THB per person`, `s` or `people`; empty for plain numbers and instants."""
        money = self.currency or "money"
        above = [_power(unit, power, money) for unit, power in self.powers if power > 0]
        below = [
            _power(unit, -power, money, of_one=True) for unit, power in self.powers if power < 0
        ]
        return " per ".join([" × ".join(above) or "1", *below]) if self.powers else ""

    @property
    def is_plain(self) -> bool:
        """True for plain numbers and counts of anything; False for times, money and instants."""
        return not self.is_instant and self._dimension == (0, 0)

    @property
    def ms(self) -> int | None:
        """Milliseconds in one unit of a time, or of a time per thing; None for other measures."""
        time = self._time if self._dimension == (1, 0) else None
        return None if time is None else round(1000 * _SECONDS[time])

    @property
    def is_share(self) -> bool:
        """True if percentages suit it: a share, or a number of things per thing."""
        share = self.powers == ((Unit.SHARE, 1),)
        return share or (self._is_ratio and self.is_plain)

    @property
    def kind(self) -> str:
        """Kind of measure in words for errors, such as `money`."""
        if self.is_instant:
            return "an instant"
        if self.powers == ((Unit.SHARE, 1),):
            return "a share"
        if len(self.powers) == 1 and self.powers[0][0] in _ONE_OF:
            return f"a number of {self.powers[0][0]}"
        named = {(0, 0): "a number", (1, 0): "a time", (0, 1): "money"}
        known = named.get(self._dimension)
        return known if known and not self._is_ratio else self.label

    @property
    def _is_ratio(self) -> bool:
        return any(power < 0 for _, power in self.powers)

    @property
    def _dimension(self) -> tuple[int, int]:
        """Powers of time and of money."""
        powers = dict(self.powers)
        return sum(powers.get(unit, 0) for unit in _SECONDS), powers.get(Unit.CURRENCY, 0)

    @property
    def _time(self) -> Unit | None:
        return next((unit for unit, _ in self.powers if unit in _SECONDS), None)

    def times(self, other: Measure, sign: int) -> tuple[Measure, float]:
        """Return the measure of a product (sign 1) or quotient (−1), and the factor for the
        second value.
        """
        if self.is_instant or other.is_instant:
            raise UnitMismatch(_OF_INSTANTS)
        factor, powers = _converted(other, self._time)
        total = dict(self.powers)
        for unit, power in powers.items():
            total[unit] = total.get(unit, 0) + sign * power
        # A share is a plain number: people × share are people.
        left = {unit: power for unit, power in total.items() if power and unit is not Unit.SHARE}
        # A quotient of equal units is a share, so that it can be compared with a percentage.
        alike = sign < 0 and self.powers and dict(self.powers) == powers
        shares = not left and total.get(Unit.SHARE, 0) > 0
        if alike or shares:
            return Measure.of(Unit.SHARE), factor
        return Measure(tuple(left.items()), currency=self.currency or other.currency), factor

    def plus(self, other: Measure, sign: int) -> tuple[Measure, float, float]:
        """Return the measure of a sum (sign 1) or difference (−1), and the factors for both
        values.
        """
        if self.is_instant or other.is_instant:
            return self._moved(other, sign)
        if self._dimension != other._dimension:
            raise UnitMismatch("")
        factor, powers = _converted(other, self._time)
        if dict(self.powers) == powers:
            return self, 1.0, factor
        # Calls plus people is a number of nothing in particular; only times and money must agree.
        common = [part for part in self.powers if part[0] not in (*_ONE_OF, Unit.SHARE)]
        return Measure(tuple(common), currency=self.currency), 1.0, factor

    def _moved(self, other: Measure, sign: int) -> tuple[Measure, float, float]:
        """Return the measure and factors of a sum with instants, which are in ms."""
        if self.is_instant and other.is_instant:
            if sign > 0:
                raise UnitMismatch("two instants can't be added; their difference is a time")
            # Instants are in ms, other times in seconds or minutes.
            return Measure.of(Unit.SECONDS), 0.001, 0.001
        time, instant = (other, self) if self.is_instant else (self, other)
        if time._dimension != (1, 0) or time._is_ratio or (sign < 0 and instant is other):
            raise UnitMismatch(_OF_INSTANTS)
        factor = 1000.0 * _converted(time, Unit.SECONDS)[0]
        return instant, *((1.0, factor) if instant is self else (factor, 1.0))


NUMBER = Measure()


def _converted(measure: Measure, time: Unit | None) -> tuple[float, Mapping[Unit, int]]:
    """Return powers with times in another unit of time, and the factor for values."""
    factor, powers = 1.0, dict[Unit, int]()
    for unit, power in measure.powers:
        if time is not None and unit in _SECONDS:
            factor *= (_SECONDS[unit] / _SECONDS[time]) ** power
            unit = time  # noqa: PLW2901 (what it is converted to)
        powers[unit] = powers.get(unit, 0) + power
    return factor, powers


def _power(unit: Unit, power: int, money: str, of_one: bool = False) -> str:
    name = money if unit is Unit.CURRENCY else str(unit)
    if of_one and power == 1:
        name = _ONE_OF.get(unit, name)
    return name + {1: "", 2: "²", 3: "³"}.get(power, f"^{power}")


_Operation = Callable[["NDArray[np.float64]", "NDArray[np.float64]"], "NDArray[np.float64]"]
_OPERATIONS: Mapping[str, _Operation] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@dataclass(frozen=True, slots=True)
class Expression:
    """Formula with a value in each run; `text` is its notation.

    It is a `figure`, an `amount` (a number, a time in seconds, or money), or an operation, such as
    `/`, on two `sides`, each with a factor that converts both to equal units. With `by_mean` an
    instant is summarized by its mean instead of its median.
    """

    # One class for all kinds, with the operator as text: a Plan with expressions is pickled for
    # other processes, which functions in place of operators would prevent.
    text: str
    measure: Measure
    figure: FigureName | None = None
    amount: float = 0.0
    operation: str = ""
    sides: tuple[Expression, ...] = ()
    factors: tuple[float, ...] = ()
    by_mean: bool = False

    @property
    def name(self) -> str:
        """Name: the figure's name, or the text."""
        return self.text if self.figure is None else self.figure.name

    @property
    def label(self) -> str:
        """Name in printed tables and plots: the label of a figure by a function, or the text."""
        own = OWN_FIGURES.get(self.text)
        return self.text if own is None else own.label or self.text

    @property
    def is_figure(self) -> bool:
        """True if the expression is a single figure."""
        return self.figure is not None and not self.by_mean

    @property
    def unit(self) -> Unit:
        """Unit of a figure with the same measure; NO_NUMBER if there is none."""
        return self.measure.unit

    @property
    def is_instant(self) -> bool:
        """True for an instant in ms since 1970."""
        return self.measure.is_instant

    @property
    def by_median(self) -> bool:
        """True if the expression is compared by its median: an instant without `by_mean`."""
        return self.is_instant and not self.by_mean

    @property
    def column(self) -> str:
        """Name in tables of estimates, where instants are in seconds."""
        return self.figure.column if self.figure is not None and self.is_figure else self.text

    @property
    def figures(self) -> tuple[FigureName, ...]:
        """Figures in the expression."""
        if self.figure is not None:
            return (self.figure,)
        return tuple(figure for side in self.sides for figure in side.figures)

    @property
    def place(self) -> Place:
        """Organization and campaign that all figures share; None where they differ."""
        places = {(figure.organization, figure.campaign) for figure in self.figures}
        if len(places) == 1:
            return places.pop()
        owners = {organization for organization, _ in places}
        return (owners.pop(), None) if len(owners) == 1 else (None, None)

    def of(self, runs: Sequence[RunFigures]) -> NDArray[np.float64]:
        """Return the value in each run; infinite or NaN after division by zero."""
        return self.evaluate({figure: figure.of(runs) for figure in self.figures}, len(runs))

    def evaluate(self, values: FigureValues, count: int) -> NDArray[np.float64]:
        """Return `count` values of the expression, given the values of its figures."""
        if self.figure is not None:
            return values[self.figure]
        if not self.sides:
            return np.full(count, self.amount)
        left, right = (
            side.evaluate(values, count) * factor
            for side, factor in zip(self.sides, self.factors, strict=True)
        )
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return _OPERATIONS[self.operation](left, right)

    def in_tables(self, runs: Sequence[RunFigures], origin: int | None) -> NDArray[np.float64]:
        """Return the values for tables: instants in seconds from `origin` (ms)."""
        values = self.of(runs)
        return (values - (origin or 0)) / 1000 if self.is_instant else values

    def bounds(self) -> tuple[float, float]:
        """Return the smallest and the greatest possible value, as far as they are known."""
        if self.figure is not None:
            return range_of(self.figure)
        if not self.sides:
            return self.amount, self.amount
        (least, most), (low, high) = (side.bounds() for side in self.sides)
        if self.operation in "*/":
            return (0.0 if least >= 0 and low >= 0 else -inf), inf
        if any(side.is_instant for side in self.sides):
            return -inf, inf
        first, second = self.factors
        if self.operation == "-":
            # Subtracting swaps the limits.
            low, high = -high, -low
        return least * first + low * second, most * first + high * second

    def facts(self, runs: Sequence[RunFigures], bounds: KnownBounds) -> Known:
        """Return the facts about the expression in some runs, besides its values.

        The effect of jumps is computed in each run.
        """
        if self.figure is not None and self.is_figure:
            return facts(self.figure, runs, bounds)
        known = {figure: facts(figure, runs, bounds) for figure in self.figures}
        with np.errstate(invalid="ignore"):  # of infinite values only the certainty is known
            return self._facts(known, runs, bounds)

    def _facts(
        self,
        known: Mapping[FigureName, Known],
        runs: Sequence[RunFigures],
        bounds: KnownBounds,
    ) -> Known:
        values = {figure: figure.of(runs) for figure in known}
        count, (least, most) = len(runs), self.bounds()
        whole, levels = self.evaluate(values, count), None
        if any(part.levels is not None for part in known.values()):
            rests = {figure: known[figure].rest(value) for figure, value in values.items()}
            levels = whole - self.evaluate(rests, count)
        up, down = list[Jump](), list[Jump]()
        for figure, part in known.items():
            for jump, sign in [(jump, 1) for jump in part.up] + [(jump, -1) for jump in part.down]:
                moved = values | {figure: values[figure] + sign * jump.size}
                moves = self.evaluate(moved, count) - whole
                for side, size in ((up, moves.max()), (down, -moves.min())):
                    if not size <= 0:
                        side.append(replace(jump, size=float(size)))
        return Known(
            all(part.certain for part in known.values()),
            least,
            most,
            self._surplus(values, known, bounds),
            bounds.uncut,
            all(part.certain or part.settled for part in known.values()),
            levels,
            tuple(up),
            tuple(down),
        )

    def _surplus(
        self, values: FigureValues, known: Mapping[FigureName, Known], bounds: KnownBounds
    ) -> NDArray[np.float64] | None:
        """Return the excess of each run over its expectation, computed from the surplus of figures.

        The excess is exact in each run if the expression is linear in the figures with a surplus,
        and if talk times cannot change its other figures. Otherwise it is the linear part at the
        means of all figures, which serves as a control variate.
        """
        given = {figure: part.surplus for figure, part in known.items() if part.surplus is not None}
        if not given:
            return None
        count = len(next(iter(given.values())))
        whole, less, more = (
            self.evaluate(values | {name: values[name] + k * given[name] for name in given}, count)
            for k in (0, -1, 1)
        )
        others = [figure for figure in values if figure not in given]
        linear = np.allclose(less + more, 2 * whole, equal_nan=True)
        if linear and all(follows_answers(figure, bounds) for figure in others):
            return whole - less
        slopes = [self._slope(values, figure) * surplus for figure, surplus in given.items()]
        total: NDArray[np.float64] = np.sum(slopes, axis=0)
        return total

    def _slope(self, values: FigureValues, figure: FigureName) -> float:
        """Return the derivative by a figure, at the means of all figures."""
        means = {name: np.array([value.mean()]) for name, value in values.items()}
        step = max(abs(float(means[figure][0])), 1.0) / 1024
        ends = [
            float(self.evaluate(means | {figure: means[figure] + end}, 1)[0])
            for end in (-step, step)
        ]
        return (ends[1] - ends[0]) / (2 * step)

    def facts_in_tables(self, runs: Sequence[RunFigures], bounds: KnownBounds) -> Known:
        """Return the facts about its values in tables, where instants are in seconds."""
        known = self.facts(runs, bounds)
        return known.scaled(0.001) if self.is_instant else known


def figure_of(name: str, place: Place = (None, None)) -> Expression:
    """Return a figure of the whole run, or of an organization or campaign, as an expression."""
    figure = FigureName(name, *place)
    return Expression(name, Measure.of(figure.unit), figure)


def read_expression(
    text: str, scenario: Scenario, within: str | None = None, at: int = 0
) -> Expression:
    """Parse an expression over the figures of a scenario's summary.

    `within` is a larger text that contains `text` at index `at`, for locations in errors. Raises
    ExperimentError with the location, the fault, and a correction.
    """
    whole = text if within is None else within
    return _Reader(whole, at, at + len(text), FigureNames(scenario)).read()


def read_shown(text: str, scenario: Scenario) -> Expression:
    """Read an expression to be shown; `mean(…)` around the whole asks for the mean of an instant.

    Raises ExperimentError as `read_expression` does.
    """
    asked = re.fullmatch(r"\s*mean\s*\((.*)\)\s*", text)
    if asked is None:
        return read_expression(text, scenario)
    inner = read_expression(asked[1], scenario, text, asked.start(1))
    return replace(inner, text=text.strip(), by_mean=True)


OwnFigures = Mapping[str, Callable[["Result"], float] | OwnFigure]
ShownFigures = str | OwnFigures | Sequence[str | OwnFigures]
"""Expressions, and functions of a `Result` by the names of their figures."""


def read_figures(figures: ShownFigures, scenario: Scenario) -> tuple[Scenario, list[Expression]]:
    """Read the argument `figures` of an experiment: expressions, and figures by functions.

    Returns the scenario with the figures by functions, and all as expressions. Raises
    ExperimentError as `read_expression` does.
    """
    listed = [figures] if isinstance(figures, str | Mapping) else figures
    functions = [part for part in listed if isinstance(part, Mapping)]
    own = declared({name: one for part in functions for name, one in part.items()})
    if own:
        both = {one.name: one for one in (*scenario.own_figures, *own)}
        scenario = scenario.with_own_figures((*both.values(),))
    texts = [[part] if isinstance(part, str) else [*part] for part in listed]
    return scenario, [read_shown(text, scenario) for part in texts for text in part]


_LONGEST, _DEEPEST = 2000, 50
_STATISTIC = re.compile(r"(mean|prob|p[0-9.]+)\s*\(")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+")
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s()+*/<>=,'"-])(?:"[^"]*"|'[^']*'|[^\s()+*<>=,'"])*""")


class _Reader:
    """Recursive-descent parser of expressions."""

    def __init__(self, whole: str, start: int, end: int, names: FigureNames) -> None:
        self._whole = whole
        self._at = self._start = start
        self._end = end
        self._names = names
        self._depth = 0

    def read(self) -> Expression:
        if self._end - self._start > _LONGEST:
            raise ExperimentError(f"an expression has at most {_LONGEST} characters")
        if not self._whole[self._start : self._end].strip():
            self._refuse("there is no figure (nothing)", self._start, self._end)
        found = self._sum()
        self._skip()
        if self._at < self._end:
            self._refuse_rest()
        if not found.figures:
            self._refuse(
                f"{found.text} names no figure, such as cost or people_reached",
                self._start,
                self._end,
            )
        return replace(found, text=self._whole[self._start : self._end].strip())

    def _sum(self) -> Expression:
        return self._chain("+-", self._product)

    def _product(self) -> Expression:
        return self._chain("*/", self._signed)

    def _chain(self, signs: str, part: Callable[[], Expression]) -> Expression:
        self._skip()
        start, found = self._at, part()
        while (sign := self._next()) and sign in signs:
            place = self._at
            self._at += 1
            found = self._combined(sign, found, part(), start, place)
        return found

    def _signed(self) -> Expression:
        sign = self._next()
        start = self._at
        if sign and sign in "-(":
            self._depth += 1
            if self._depth > _DEEPEST:
                self._refuse(f"there are more than {_DEEPEST} brackets and signs", start, start + 1)
            self._at += 1
            found = self._negated(start) if sign == "-" else self._inside(start)
            self._depth -= 1
            return found
        if sign and (sign.isdigit() or sign == "."):
            return self._amount()
        return self._figure()

    def _negated(self, start: int) -> Expression:
        part = self._signed()
        if part.is_instant:
            self._refuse(f"{part.text} is an instant, which has no negative", start, self._at)
        # Negative zero, so that the negative of 0 is -0 as in Python.
        zero = Expression("0", part.measure, amount=-0.0)
        return _combined(self._text(start), part.measure, "-", (zero, part))

    def _inside(self, start: int) -> Expression:
        found = self._sum()
        if self._next() != ")":
            if self._at < self._end:
                self._refuse_rest()
            self._refuse("this bracket is never closed", start, start + 1)
        self._at += 1
        return found

    def _amount(self) -> Expression:
        """Parse a number, a duration such as `1h30m`, or a number with its currency."""
        start = self._at
        match = re.compile(r"[0-9.]+(?:[a-zA-Z][0-9a-zA-Z.]*)?").match(
            self._whole, start, self._end
        )
        assert match is not None
        word = match[0]
        self._at = match.end()
        if not _NUMBER.fullmatch(word):
            try:
                duration = parse_duration(word)
            except ValueError:
                self._refuse(f"{word} is neither a number nor a time such as 90s or 1h30m", start)
            return Expression(word, Measure.of(Unit.SECONDS), amount=duration / 1000)
        currency, blank = self._names.currency, re.compile(r"[ \t]*").match(self._whole, self._at)
        assert blank is not None
        end = blank.end() + len(currency or "")
        if currency and self._whole[blank.end() : end] == currency and self._ends(end):
            self._at = end
            money = Measure.of(Unit.CURRENCY, currency)
            return Expression(self._text(start), money, amount=float(word))
        return Expression(word, NUMBER, amount=float(word))

    def _figure(self) -> Expression:
        start = self._at
        statistic = _STATISTIC.match(self._whole, start, self._end)
        if statistic is not None:
            name = statistic[1]
            self._refuse(
                f"{name}(…) is of many runs, and here is what each run has: one {name}(…) stands "
                "around the whole, such as mean(cost / people_reached)",
                start,
                start + len(name),
            )
        for found in self._names.at(self._whole, start, self._end):
            if self._ends(found.end):
                self._at = found.end
                if found.fault is not None:
                    self._refuse(found.fault, start)
                text, currency = self._text(start), self._names.currency
                parts = [
                    Expression(text, Measure.of(figure.unit, currency), figure)
                    for figure in found.figures
                ]
                # A step that several agents have is the sum of their figures.
                return reduce(lambda a, b: _combined(text, a.measure, "+", (a, b)), parts)
        if start >= self._end or self._whole[start] in "+*/)":
            said = "the expression ends" if start >= self._end else f"{self._whole[start]} stands"
            self._refuse(f"{said} where a figure or a number must be", start, start + 1)
        return self._refuse_name(start)

    def _refuse_name(self, start: int) -> NoReturn:
        behind = self._names.place_before(self._whole, start, self._end)
        match = _WORD.match(self._whole, behind, self._end)
        if match is None:
            sign = self._whole[start]
            quoted = sign in "'\""
            said = f"the quote {sign} is never closed" if quoted else f"{sign} means nothing here"
            self._refuse(said, start, start + 1)
        word, end = self._whole[start : match.end()], match.end()
        says, span = self._names.missing(word)
        # Not a campaign, but perhaps a quotient of two figures.
        if span is None and "/" in word:
            word = word.partition("/")[0]
            says, span = self._names.missing(word)
            end = start + len(word)
        begin, stop = (0, end - start) if span is None else span
        self._refuse(says, start + begin, start + stop)

    def _combined(
        self, sign: str, left: Expression, right: Expression, start: int, place: int
    ) -> Expression:
        text = self._text(start)
        try:
            if sign in "*/":
                measure, factor = left.measure.times(right.measure, 1 if sign == "*" else -1)
                factors = 1.0, factor
            else:
                sides = _same(left, right)
                measure, *both = sides[0].plus(sides[1], 1 if sign == "+" else -1)
                factors = both[0], both[1]
        except UnitMismatch as error:
            self._refuse(self._mismatch(str(error), left, right), place, place + 1)
        return _combined(text, measure, sign, (left, right), factors)

    def _mismatch(self, why: str, left: Expression, right: Expression) -> str:
        kinds = f"{left.text} is {left.measure.kind}, {right.text} is {right.measure.kind}"
        if why:
            return f"{kinds}: {why}"
        # Money without its currency is a plain number, and the most frequent mistake.
        money = f"; write money as 30 {self._names.currency}" if self._names.currency else ""
        return f"{kinds}: times, money and instants can only be combined with their own kind{money}"

    def _refuse_rest(self) -> NoReturn:
        sign = self._whole[self._at]
        if sign == ")":
            self._refuse("this bracket was never opened", self._at, self._at + 1)
        if sign == "," and self._whole[self._at - 1 : self._at].isdigit():
            self._refuse("write numbers without commas, such as 5000", self._at, self._at + 1)
        match = _WORD.match(self._whole, self._at, self._end)
        end = self._at + 1 if match is None else match.end()
        self._refuse(
            f"{self._whole[self._at : end]} stands where an operator must be: + - * or /",
            self._at,
            end,
        )

    def _skip(self) -> None:
        while self._at < self._end and self._whole[self._at].isspace():
            self._at += 1

    def _next(self) -> str:
        """Return the next character; empty at the end."""
        self._skip()
        return self._whole[self._at] if self._at < self._end else ""

    def _text(self, start: int) -> str:
        return self._whole[start : self._at].strip()

    def _ends(self, end: int) -> bool:
        """Return True if a name may end there: no letter, digit, mark or dot follows."""
        sign = self._whole[end : end + 1] if end < self._end else ""
        return not sign or not (
            sign.isalnum() or sign in "_." or unicodedata.category(sign).startswith("M")
        )

    def _refuse(self, says: str, start: int, end: int | None = None) -> NoReturn:
        raise ExperimentError(pointed(says, self._whole, start, self._at if end is None else end))


def _combined(
    text: str,
    measure: Measure,
    operation: str,
    sides: tuple[Expression, Expression],
    factors: tuple[float, float] = (1.0, 1.0),
) -> Expression:
    return Expression(text, measure, operation=operation, sides=sides, factors=factors)


def _same(left: Expression, right: Expression) -> tuple[Measure, Measure]:
    """Return the measures of the sides of a sum; a plain number takes the measure of the other
    side.
    """
    if not left.figures and left.measure == NUMBER and not right.is_instant:
        return right.measure, right.measure
    if not right.figures and right.measure == NUMBER and not left.is_instant:
        return left.measure, left.measure
    return left.measure, right.measure


def pointed(says: str, whole: str, start: int, end: int) -> str:
    """Return an error with the text below it; carets mark the location within the text."""
    from rich.cells import cell_len

    if not whole[:start].strip() and not whole[end:].strip():
        return says
    carets = "^" * max(1, cell_len(whole[start:end]))
    line = re.sub(r"\s", " ", whole)
    return f"{says}\n  {line}\n  {' ' * cell_len(line[:start])}{carets}"
