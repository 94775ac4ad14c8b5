"""Distributions of durations, written out or measured in a column of a CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    TypeAdapter,
    ValidationInfo,
    field_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import TypeAliasType

from dialsim.errors import ScenarioError
from dialsim.interface.model import broken, wrong
from dialsim.scenario.document import Cursor, SourceFolder
from dialsim.scenario.fields import Model, NotEmpty
from dialsim.scenario.problems import Problem, Problems
from dialsim.scenario.sheet import Sheet
from dialsim.scenario.units import DURATION_SCHEMA, Duration, PositiveDuration, parse_duration


def read_measurements(
    root: Cursor, folder: SourceFolder, problems: Problems
) -> Iterator[tuple[Cursor, dict[str, object]]]:
    """Yield each distribution that names a file and a column, with its values read from the file.

    Invalid durations are reported with file, line and column.
    """
    for cursor in root.walk():
        if cursor.at("dist").text != "empirical" or not cursor.at("file").exists:
            continue
        written = {key: part.value for key, part in cursor.entries()}
        file, column = written.pop("file"), written.pop("column", None)
        if "values" in written:
            problems.add(cursor.at("values"), "can't stand beside file: write one of the two")
        elif not isinstance(file, str) or not isinstance(column, str):
            problems.add(cursor, "needs file and column as texts: {file: talk.csv, column: talk}")
        else:
            written["values"] = _read(cursor, folder, file, column, problems)
        # A stand-in where reading failed: a missing or empty list would be reported as a second
        # problem.
        yield cursor, {"values": ["1s"], **written}


def _read(
    cursor: Cursor, folder: SourceFolder, file: str, column: str, problems: Problems
) -> list[str]:
    try:
        source = Sheet.read(folder, file, problems)
    except ScenarioError as error:
        problems.refer(cursor.at("file"), error)
        return ["1s"]
    if column not in source.header:
        near = get_close_matches(column, source.header, n=1)
        hint = f"did you mean {near[0]}?" if near else f"columns are {', '.join(source.header)}"
        problems.add(cursor.at("column"), f'"{column}" is no column of {source.file}; {hint}')
        return ["1s"]
    index = source.header.index(column)
    source.check_names(range(len(source.header)), problems)
    try:
        source.load([index], problems)
    except ScenarioError as error:
        problems.refer(cursor.at("file"), error)
    good = []
    for row, cell in enumerate(source.column(index)):
        try:
            parse_duration(cell)
            good.append(cell)
        except ValueError as error:
            source.note_cell(problems, row, index, str(error) if cell else "must not be empty")
    if not source.lines:
        problems.note(Problem(source.file, 1, 1, column, f"{column} has no values"))
    return good or ["1s"]


DISTRIBUTIONS = (
    "constant",
    "uniform",
    "exponential",
    "lognormal",
    "gamma",
    "weibull",
    "triangular",
    "empirical",
)


def not_below(earlier: str) -> Callable[[int | None, ValidationInfo], int | None]:
    """Build the validator that a field is not less than an earlier field of the same block."""

    def check(value: int | None, info: ValidationInfo) -> int | None:
        least = info.data.get(earlier)
        if value is not None and least is not None and value < least:
            raise broken(f"must not be less than {earlier}")
        return value

    return check


_DIST = "Kind of distribution; its times are durations such as 75s."


class Clipped(Model):
    """Limits of any distribution: draws below `min` become `min`, above `max` become `max`."""

    min: Duration | None = Field(
        default=None, description="Smaller draws become this.", examples=["2s"]
    )
    max: Duration | None = Field(
        default=None, description="Larger draws become this.", examples=["10m"]
    )

    _clips_in_order = field_validator("max")(not_below("min"))


class Constant(Clipped):
    """A fixed duration; a plain duration means the same."""

    dist: Literal["constant"] = Field(description=_DIST, examples=["constant"])
    value: Duration = Field(description="The duration.", examples=["30s"])


class Uniform(Clipped):
    """Uniform distribution of durations from `low` to `high`."""

    dist: Literal["uniform"] = Field(description=_DIST, examples=["uniform"])
    low: Duration = Field(description="The shortest.", examples=["1s"])
    high: Duration = Field(description="The longest; not below low.", examples=["3s"])

    _in_order = field_validator("high")(not_below("low"))


class Exponential(Clipped):
    """Exponential distribution with the given mean (ms)."""

    dist: Literal["exponential"] = Field(description=_DIST, examples=["exponential"])
    mean: PositiveDuration = Field(description="The mean; more than 0.", examples=["60s"])


class _Spread(Clipped):
    mean: PositiveDuration = Field(
        description="The mean before min and max clip durations; more than 0.", examples=["75s"]
    )
    sd: Duration = Field(
        description="The standard deviation before min and max clip durations; at most 100 times "
        "the mean.",
        examples=["60s"],
    )

    @field_validator("sd")
    @classmethod
    def _is_not_absurd(cls, value: int, info: ValidationInfo) -> int:
        mean = info.data.get("mean")
        if mean is not None and value > 100 * mean:
            raise broken("must not be greater than 100 times the mean")
        return value


class Lognormal(_Spread):
    """Log-normal distribution; mean and standard deviation (ms) are of the duration itself."""

    dist: Literal["lognormal"] = Field(description=_DIST, examples=["lognormal"])


class Gamma(_Spread):
    """Gamma distribution with the given mean and standard deviation (ms)."""

    dist: Literal["gamma"] = Field(description=_DIST, examples=["gamma"])


class Weibull(_Spread):
    """Weibull distribution with the given mean and standard deviation (ms)."""

    dist: Literal["weibull"] = Field(description=_DIST, examples=["weibull"])


class Triangular(Clipped):
    """Triangular distribution from `low` to `high` with its peak at `mode`."""

    dist: Literal["triangular"] = Field(description=_DIST, examples=["triangular"])
    low: Duration = Field(description="The shortest.", examples=["5s"])
    mode: Duration = Field(description="The most likely; from low to high.", examples=["12s"])
    high: Duration = Field(description="The longest; not below mode.", examples=["30s"])

    _mode_in_order = field_validator("mode")(not_below("low"))
    _high_in_order = field_validator("high")(not_below("mode"))


def _values_or_file(schema: dict[str, Any]) -> None:
    # The model never sees these keys, as `read_measurements` replaces them by values, but editors
    # check what people write.
    schema["properties"] |= {
        "file": {
            "type": "string",
            "description": "A CSV of measured durations, relative to the scenario file.",
            "examples": ["talk.csv"],
        },
        "column": {
            "type": "string",
            "description": "Column of the file with the durations.",
            "examples": ["talk"],
        },
    }
    schema["required"] = ["dist"]
    schema["oneOf"] = [{"required": ["values"]}, {"required": ["file", "column"]}]


class Empirical(Clipped, json_schema_extra=_values_or_file):
    """Measured durations, all equally likely; listed, or read from a CSV's column."""

    dist: Literal["empirical"] = Field(description=_DIST, examples=["empirical"])
    values: Annotated[tuple[Duration, ...], NotEmpty] = Field(
        description="Measured durations.", examples=[["40s", "75s", "2m"]]
    )


@dataclass(frozen=True, slots=True)
class _OrPlainDuration:
    """Annotation: the JSON Schema of a distribution also accepts a plain duration."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        shown = handler(schema)
        plain = dict(DURATION_SCHEMA)
        return {
            "description": "A duration such as 30s, or a distribution of durations.",
            "oneOf": [plain, *shown["oneOf"]],
        }


def _spelled_out(value: Any) -> Any:
    """Convert a plain duration into a constant distribution, and check the `dist` of others."""
    if isinstance(value, Clipped):
        return value
    if not isinstance(value, dict):
        if value is None or isinstance(value, bool | list):
            raise wrong("must be a duration such as 30s, or a distribution with its dist")
        return {"dist": "constant", "value": value}
    dist = value.get("dist")
    if dist is None:
        raise broken(f"needs dist, one of {', '.join(DISTRIBUTIONS)}")
    if dist not in DISTRIBUTIONS:
        raise broken(f'must be one of {", ".join(DISTRIBUTIONS)}, not "{dist}"', "dist")
    return value


def _tag(value: Any) -> str:
    # Angle brackets distinguish the tag from a key in the path of a pydantic error.
    return f"<{value['dist'] if isinstance(value, dict) else value.dist}>"


Distribution = TypeAliasType(
    "Distribution",
    Annotated[
        Annotated[
            Annotated[Constant, Tag("<constant>")]
            | Annotated[Uniform, Tag("<uniform>")]
            | Annotated[Exponential, Tag("<exponential>")]
            | Annotated[Lognormal, Tag("<lognormal>")]
            | Annotated[Gamma, Tag("<gamma>")]
            | Annotated[Weibull, Tag("<weibull>")]
            | Annotated[Triangular, Tag("<triangular>")]
            | Annotated[Empirical, Tag("<empirical>")],
            Discriminator(_tag),
        ],
        BeforeValidator(_spelled_out),
        _OrPlainDuration(),
    ],
)
"""Any of the distributions; all their numbers are milliseconds."""

_ADAPTER: TypeAdapter[Any] = TypeAdapter(Distribution)


def distribution(written: object) -> Any:
    """Build a distribution from its notation: `30s` or `{"dist": "uniform", "low": "1s", …}`.

    Raises pydantic.ValidationError.
    """
    return _ADAPTER.validate_python(written)
