"""Variants of a scenario: crossed values, the rows of a design, or named what-ifs.

Values may be an evenly spaced range of a number, a duration or an instant, such as `10..60:5`.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING

from dialsim.errors import ExperimentError, ScenarioError
from dialsim.interface.instants import duration_text, format_instant, short_text
from dialsim.scenario.units import (
    NEXT_CALLING_DAY,
    format_duration,
    is_next_day,
    looks_like_date,
    parse_duration,
    parse_offset_instant,
    value_text,
)
from dialsim.scenario.week import instant_in_words

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.scenario.scenario import Scenario


class AmountKind(StrEnum):
    """Kind of an amount; durations and instants are whole milliseconds."""

    WHOLE = "whole number"
    DECIMAL = "decimal number"
    DURATION = "duration"
    INSTANT = "instant"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, a duration or an instant; the last two in ms."""

    kind: AmountKind
    value: Decimal

    @property
    def text(self) -> str:
        """Amount as in a scenario file."""
        if self.kind is AmountKind.DURATION:
            return format_duration(int(self.value))
        if self.kind is AmountKind.INSTANT:
            return format_instant(int(self.value))
        return f"{self.value.normalize():f}"

    @property
    def plain(self) -> int | float | str:
        """Amount as in Python and JSON; durations and instants are text."""
        if self.kind in (AmountKind.DURATION, AmountKind.INSTANT):
            return self.text
        return int(self.value) if self.kind is AmountKind.WHOLE else float(self.value)


def read_amount(text: str, first_day: int | None = None) -> Amount:
    """Parse `40`, `0.5`, `50%`, `1h30m` or `2026-01-05T02:00:00Z`.

    With `first_day`, the origin of days of the week, also `Fri 18:00` and the like, in Thai
    time. Raises ExperimentError for other texts.
    """
    text = text.strip().strip("\"'")
    if text.endswith("%"):
        share = read_amount(text.removesuffix("%"))
        if share.kind in (AmountKind.WHOLE, AmountKind.DECIMAL):
            return Amount(AmountKind.DECIMAL, share.value / 100)
    try:
        number = Decimal(text)
        # Decimal accepts nan and inf, which no setting can have.
        if number.is_finite():
            # 2.0 stays a decimal: a range 1.0..2.0 must not have integer steps.
            whole = number == number.to_integral_value() and "." not in text
            return Amount(AmountKind.WHOLE if whole else AmountKind.DECIMAL, number)
    except InvalidOperation:
        pass
    if first_day is not None:
        try:
            instant = instant_in_words(text, first_day)
        except ValueError as error:
            raise ExperimentError(f"{text} {error}") from None
        if instant is not None:
            return Amount(AmountKind.INSTANT, Decimal(instant))
    for kind, parse in (
        (AmountKind.DURATION, parse_duration),
        (AmountKind.INSTANT, parse_offset_instant),
    ):
        try:
            return Amount(kind, Decimal(parse(text)))
        except ValueError as error:
            # For a text with the shape of a date its own error is more precise than the general
            # one.
            if kind is AmountKind.INSTANT and looks_like_date(text):
                raise ExperimentError(f"{text} {error}") from None
    words = "" if first_day is None else "Fri 18:00, 2026-01-05 09:00 or "
    raise ExperimentError(
        f"{text or '(nothing)'} is not a number, a duration such as 30m or an instant such as "
        f"{words}2026-01-05T02:00:00Z"
    )


_MOST = 50_000
"""Values that a range may have."""
_STEPS = {AmountKind.WHOLE: 1, AmountKind.DURATION: 60_000, AmountKind.INSTANT: 3_600_000}


def value_range(
    low: str, high: str, step: str | None = None, first_day: int | None = None
) -> list[Amount]:
    """Return the amounts `low`, `low + step`, … up to `high`; `first_day` is as in `read_amount`.

    The default step is 1, `1m` between durations, `1h` between instants, and a hundredth of the
    range between decimal numbers. Raises ExperimentError for amounts of different kinds.
    """
    ends = [read_amount(low, first_day), read_amount(high, first_day)]
    kind = _kind(ends, f"{low}..{high}")
    first, last = (end.value for end in ends)
    if last < first:
        raise ExperimentError(f"{low}..{high}: the range ends before it begins")
    width = _step(kind, step, last - first)
    count = int((last - first) // width) + 1
    if count > _MOST:
        raise ExperimentError(f"{count:,} values are too many; give a step")
    if kind in (AmountKind.WHOLE, AmountKind.DECIMAL) and width % 1:
        # A fractional step from whole ends, 1..2:0.5, makes decimals of all values.
        kind = AmountKind.DECIMAL
    return [Amount(kind, first + k * width) for k in range(count)]


def _kind(ends: Sequence[Amount], shown: str) -> AmountKind:
    """Return the kind of a range; 0 is a duration too, and a whole number can go with a decimal
    one.
    """
    kinds = {end.kind for end in ends}
    if AmountKind.DURATION in kinds and all(
        e.kind is AmountKind.DURATION or e.value == 0 for e in ends
    ):
        return AmountKind.DURATION
    if kinds == {AmountKind.WHOLE, AmountKind.DECIMAL}:
        return AmountKind.DECIMAL
    if len(kinds) > 1:
        raise ExperimentError(f"{shown}: a {ends[0].kind} and a {ends[1].kind} make no range")
    return kinds.pop()


def _step(kind: AmountKind, text: str | None, width: Decimal) -> Decimal:
    if text is None:
        return Decimal(_STEPS[kind]) if kind in _STEPS else (width / 100 or Decimal(1))
    step = read_amount(text)
    timed = kind in (AmountKind.DURATION, AmountKind.INSTANT)
    if (
        step.kind is AmountKind.INSTANT
        or (step.kind is AmountKind.DURATION) is not timed
        or step.value <= 0
    ):
        needed = "a duration such as 10m" if timed else "a number greater than 0"
        raise ExperimentError(f"step {text}: the step of this range is {needed}")
    return step.value


def read_range(text: str, first_day: int | None = None) -> list[Amount] | None:
    """Parse `10..60`, `10..60:5` or `10m..1h:10m`; None for a text that is no range.

    `first_day` is as in `read_amount`.
    """
    low, dots, rest = text.partition("..")
    if not dots:
        return None
    high, _, step = rest.rpartition(":")
    # A colon may also be part of an instant, 09:00; it separates a step only if both sides are
    # amounts.
    try:
        read_amount(high, first_day)
        read_amount(step)
    except ExperimentError:
        return value_range(low.strip(), rest.strip(), None, first_day)
    return value_range(low.strip(), high.strip(), step.strip(), first_day)


SettingValue = int | float | str


def sorting(frame: pd.DataFrame, paths: Iterable[str]) -> pd.DataFrame:
    """Return a table in which columns of texts among `paths` sort by their amounts.

    Durations sort by length and instants by time. Other texts come last, in their order in the
    table.
    """
    import pandas as pd

    for path in paths:
        texts = [value for value in frame[path].dropna().unique() if isinstance(value, str)]
        if not texts or len(texts) < frame[path].nunique():
            continue  # numbers
        frame[path] = pd.Categorical(frame[path], sorted(texts, key=_rank), ordered=True)
    return frame


def _rank(text: str) -> Decimal:
    try:
        return read_amount(text).value
    except ExperimentError:
        return Decimal("inf")


@dataclass(frozen=True, slots=True)
class SettingChange:
    """Value that a variant replaces; `text` is its notation in a scenario file."""

    path: str
    text: str

    @property
    def value(self) -> SettingValue:
        """Value for tables: a number if possible, else text."""
        try:
            return read_amount(self.text).plain
        except ExperimentError:
            return self.text


@dataclass(frozen=True, slots=True)
class Variant:
    """Variant of a scenario: its name and its changes.

    With `scenario` it is a separate scenario, changed by `changes`.
    """

    name: str
    changes: tuple[SettingChange, ...] = ()
    scenario: Scenario | None = field(default=None, compare=False, repr=False)

    @classmethod
    def read(cls, name: str, changes: Iterable[str]) -> Variant:
        """Build a variant from texts such as `lines=12`, each with an equals sign."""
        parts = (text.partition("=") for text in changes)
        return cls(
            name, tuple(SettingChange(key.strip(), value.strip()) for key, _, value in parts)
        )

    @property
    def texts(self) -> list[str]:
        """Changes in the notation of `read`."""
        return [f"{change.path}={change.text}" for change in self.changes]

    def of(self, scenario: Scenario) -> Scenario:
        """Return the scenario with the changes. Raises ScenarioError if it cannot have them."""
        base = scenario if self.scenario is None else self.scenario
        if not self.changes:
            return base  # without changes, its files need not be read again
        try:
            return base.with_(*self.texts)
        except ScenarioError as error:
            # No option --set was given, so the variant's name stands for the source of the value.
            raise ScenarioError(
                replace(problem, file=problem.file.replace("--set", f"variant {self.name}:", 1))
                for problem in error.problems
            ) from None


def check_variable(scenario: Scenario, paths: Iterable[str], seed: int | None) -> None:
    """Raise ExperimentError if a scenario or its files changed after loading."""
    # Variants are read from the scenario's source text, so they would miss such changes. A seed
    # argument would override the seed of a variant.
    if seed is not None and "seed" in paths:
        raise ExperimentError("the seed varies, so it can't be given as well")
    # Loading again without changes must give the same scenario.
    if scenario.with_().digest != scenario.digest:
        raise ExperimentError(
            "the scenario or a file that it names was changed after it was loaded; "
            "load it with overrides instead"
        )


def check_values(scenario: Scenario, path: str, texts: Sequence[str]) -> None:
    """Raise ScenarioError if a scenario cannot have the first or the last value of a setting."""
    # Not all of them: many values take long, and limits are passed at an end.
    for text in dict.fromkeys((texts[0], texts[-1])):
        Variant(setting_text(path, text), (SettingChange(path, text),)).of(scenario)


def variants_of(
    vary: str | Mapping[str, Iterable[object]] | Iterable[Variant], first_day: int
) -> list[Variant]:
    """Return the variants for an argument from Python; a text has the notation of `--vary`.

    Days of the week count from `first_day`, the scenario's.
    """
    if isinstance(vary, str):
        return crossed(dict([read_vary(vary, first_day)]))
    if isinstance(vary, Mapping):
        return crossed(vary, first_day)
    return distinct([*vary])


def crossed(values: Mapping[str, Iterable[object]], first_day: int | None = None) -> list[Variant]:
    """Return every combination of values of several paths, the last path changing fastest.

    Values may be a text, `10,20,30` or `10..60:5`. A path that adds to a list, or removes from it
    (`Debt.windows+`), starts with a variant that leaves it unchanged.
    """
    choices: list[list[tuple[SettingChange, ...]]] = []
    for path, listed in values.items():
        texts = [value_text(value) for value in _values(path, listed, first_day)]
        changes: list[tuple[SettingChange, ...]] = [(SettingChange(path, text),) for text in texts]
        if not changes:
            raise ExperimentError(f"{path}: there are no values to try")
        # Adding to a list is compared with not adding; a replaced value has no such neutral choice.
        choices.append([(), *changes] if path.endswith(("+", "-")) else changes)
    return distinct(_labelled([*chain(*parts)] for parts in product(*choices)))


def check_axis(path: str) -> None:
    """Raise ExperimentError for a path that adds to a list or removes from it."""
    if path.strip().endswith(("+", "-")):
        raise ExperimentError(
            f"{path}= adds to a list or takes away from it, which a plan does not vary: use "
            "dialsim sweep"
        )


def read_vary(text: str, first_day: int | None = None) -> tuple[str, list[str]]:
    """Parse `PATH=VALUES`, the values as `10,20,30`, `10..60:5` or both.

    Days of the week count from `first_day`, the scenario's.
    """
    path, equals, listed = text.partition("=")
    if not equals or not path.strip() or not listed.strip():
        raise ExperimentError(
            f"--vary {text}: write PATH=VALUES, such as lines=10,20,30 or lines=10..60:5"
        )
    try:
        return path.strip(), _read_values(listed, first_day)
    except ExperimentError as error:
        raise ExperimentError(f"--vary {text}: {error}") from None


def _values(path: str, listed: Iterable[object], first_day: int | None) -> Iterable[object]:
    """Return the values to try at a path."""
    if isinstance(listed, str):
        try:
            return _read_values(listed, first_day)
        except ExperimentError as error:
            raise ExperimentError(f"{path}: {error}") from None
    return listed


def _read_values(listed: str, first_day: int | None) -> list[str]:
    """Parse values such as `10,20,30`, `10..60:5` or both."""
    values: list[str] = []
    for part in _split(listed):
        # In quotes and brackets two dots are part of a text.
        is_range = ".." in part and not part.startswith(_OPENING)
        axis = read_range(part, first_day) if is_range else None
        values += [part] if axis is None else [amount.text for amount in axis]
    if not all(values):
        raise ExperimentError("a value is missing between two commas")
    return values


DRAWS = "draws.yaml"
"""File of plausible behaviours, beside the scenario of a running campaign."""
_OPENING = ("[", "{", '"', "'")


def _split(text: str) -> list[str]:
    """Split a text at commas outside of brackets and quotes."""
    depth, quote, parts = 0, "", [""]
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        else:
            depth += (sign in "[{") - (sign in "]}")
        if sign == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def read_design(path: Path) -> list[Variant]:
    """Read a CSV with a path in each head cell and a variant in each row; an empty cell means no
    change.

    A column `variant` has names. Raises ExperimentError for other files.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file, strict=True) if any(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ExperimentError(f"{path} can't be read: {error}") from None
    if len(rows) < 2:
        raise ExperimentError(f"{path}: a design is a row of paths and a row for each variant")
    head = [cell.strip() for cell in rows[0]]
    if not all(head) or len(set(head)) < len(head):
        raise ExperimentError(f"{path}:1: every column needs a path of its own")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(head):
            raise ExperimentError(f"{path}:{number}: {len(row)} cells for {len(head)} columns")
    listed = [dict(zip(head, row, strict=True)) for row in rows[1:]]
    names = [row.pop("variant", "").strip() for row in listed]
    changes = [
        [SettingChange(key, cell.strip()) for key, cell in row.items() if cell.strip()]
        for row in listed
    ]
    try:
        return distinct(_labelled(changes, names))
    except ExperimentError as error:
        raise ExperimentError(f"{path}: {error}") from None


def read_variants(path: Path) -> list[Variant]:
    """Read named what-ifs from a file, in the format of `variants_in`."""
    from dialsim.scenario.document import decoded, read_bytes

    return variants_in(decoded(read_bytes(path, str(path)), str(path)), str(path))


def variants_in(text: str, shown: str) -> list[Variant]:
    """Parse named what-ifs from YAML: under each name a list of `PATH=VALUE`, possibly empty.

    `shown` replaces the file name in errors. Raises ExperimentError, or ScenarioError for invalid
    YAML.
    """
    from dialsim.scenario.document import parse_yaml
    from dialsim.scenario.problems import Problems

    problems = Problems(shown)
    content = parse_yaml(text, shown, problems).values
    problems.raise_if_any()
    if not isinstance(content, dict) or not content:
        raise ExperimentError(
            f"{shown}: write a name and a list of PATH=VALUE for each variant, such as two lines "
            "more: [organizations.Acme.maxConcurrentCalls=12]"
        )
    variants = []
    for name, listed in content.items():
        changes = [listed] if isinstance(listed, str) else listed or []
        if not isinstance(changes, list) or not all(_is_change(text) for text in changes):
            raise ExperimentError(
                f"{shown}: {name} must be a list of texts PATH=VALUE, such as "
                "[organizations.Acme.maxConcurrentCalls=12]"
            )
        variants.append(Variant.read(str(name), changes))
    return variants


def _is_change(text: object) -> bool:
    return isinstance(text, str) and bool(text.partition("=")[0].strip()) and "=" in text


def _labelled(
    listed: Iterable[Sequence[SettingChange]], names: Sequence[str] | None = None
) -> list[Variant]:
    """Return variants named after their changes, by the last part of each path if unambiguous."""
    changes = [tuple(variant) for variant in listed]
    short = short_names(change.path for variant in changes for change in variant)
    made = [label_of(variant, short) for variant in changes]
    # Two ways to write one value have the same words, and still are two variants.
    often = Counter(label for label, _ in {*zip(made, changes, strict=True)})
    made = [
        label if often[label] == 1 else ", ".join(f"{c.path}={c.text}" for c in variant)
        for label, variant in zip(made, changes, strict=True)
    ]
    given = names or [""] * len(made)
    return [
        Variant(name or label or "as is", variant)
        for name, label, variant in zip(given, made, changes, strict=True)
    ]


COUNTED = {
    "maxConcurrentCalls": ("line", "lines"),
    "maxAttempts": ("attempt", "attempts"),
    "callerIds": ("caller ID", "caller IDs"),
    "callsPerSecond": ("dial a second", "dials a second"),
    "count": ("person", "people"),
}
"""Singular and plural of what a setting counts, by the last part of its path."""
_ALIASES = {
    "lines": "maxConcurrentCalls",
    "people": "count",
    "start": "startDateTime",
    "end": "endDateTime",
}
_WORDED = {
    "retryInterval": ("retry interval", "retries after"),
    "startDateTime": ("start", "starts"),
    "endDateTime": ("end", "ends"),
    "queueTimeout": ("queue timeout", "queue timeout of"),
    "queueLimit": ("queue limit", "queue limit of"),
}
"""Other settings: their noun, and the words before their value."""


def setting_key(path: str) -> str:
    """Return the last part of a path in full: `maxConcurrentCalls` for the short word `lines`."""
    key = path.rpartition(".")[2]
    return _ALIASES.get(key, key)


def setting_text(path: str, value: SettingValue) -> str:
    """Return a setting in a planner's words: `30 lines`, `ends Fri 18 Dec 20:00 Thai time`."""
    key = setting_key(path)
    said = amount_text(key, value)
    if is_next_day(value):
        return f"retries on the {NEXT_CALLING_DAY}"
    if key in COUNTED and said[:1].isdigit():
        return f"{said} {COUNTED[key][said != '1']}"
    return f"{_WORDED[key][1]} {said}" if key in _WORDED else f"{key}={value}"


def setting_noun(path: str) -> str:
    """Return the noun for a setting: `lines`, `retry interval`."""
    key = setting_key(path)
    if key in _WORDED:
        return _WORDED[key][0]
    return COUNTED[key][1] if key in COUNTED else key


def amount_text(key: str, value: SettingValue) -> str:
    """Return the value of a setting in a planner's words, given the last part of its path."""
    try:
        amount = read_amount(str(value))
    except ExperimentError:
        return str(value)
    if amount.kind is AmountKind.INSTANT:
        return f"{short_text(int(amount.value))} Thai time"
    if amount.kind is AmountKind.DURATION or key == "retryInterval":
        return duration_text(int(amount.value))
    return f"{amount.value:,}"


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Return a suffix for each path that distinguishes equal settings, such as ` of January`."""
    kept = dict.fromkeys(paths)
    often = Counter(path.rpartition(".")[2] for path in kept)
    return {path: "" if often[path.rpartition(".")[2]] == 1 else f" of {_owner(path)}"
            for path in kept}  # fmt: skip


def _owner(path: str) -> str:
    """Return the name of the campaign, organization or block that a setting belongs to."""
    parts = [part for part in path.split(".")[:-1] if part not in ("schedule", "recipients")]
    return parts[-1] if parts else path


def label_of(changes: Sequence[SettingChange], short: Mapping[str, str]) -> str:
    """Return a variant's changes, such as `8 lines, 3 attempts`; empty without changes."""
    return ", ".join(f"{setting_text(c.path, c.text)}{short[c.path]}" for c in changes)


def distinct(variants: list[Variant]) -> list[Variant]:
    """Return the variants. Raises ExperimentError if two have the same name."""
    counts = Counter(variant.name for variant in variants)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise ExperimentError(f"the variant {twice[0]} appears twice")
    return variants
