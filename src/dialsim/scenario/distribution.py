"""Distributions of durations: what a planner may draw times from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    TypeAdapter,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import TypeAliasType

from dialsim.scenario.fields import Model, broken, wrong
from dialsim.scenario.units import DURATION_SCHEMA, Duration

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


class Clipped(Model):
    """What every distribution may add: draws below `min` are `min`, above `max` are `max`."""

    min: Duration | None = Field(
        default=None, description="Smaller draws become this.", examples=["2s"]
    )
    max: Duration | None = Field(
        default=None, description="Larger draws become this.", examples=["10m"]
    )

    @model_validator(mode="after")
    def _min_is_not_above_max(self) -> Clipped:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise broken("must not be greater than max", "min")
        return self


class Constant(Clipped):
    """Always the same duration; a plain duration says the same."""

    dist: Literal["constant"]
    value: Duration = Field(description="The duration.", examples=["30s"])


class Uniform(Clipped):
    """Any duration from `low` to `high`, all alike."""

    dist: Literal["uniform"]
    low: Duration = Field(description="The shortest.", examples=["1s"])
    high: Duration = Field(description="The longest; not below low.", examples=["3s"])

    @model_validator(mode="after")
    def _in_order(self) -> Uniform:
        if self.low > self.high:
            raise broken("must not be greater than high", "low")
        return self


class Exponential(Clipped):
    """Exponential with the given mean (ms)."""

    dist: Literal["exponential"]
    mean: Duration = Field(description="The mean; more than 0.", examples=["60s"])

    @model_validator(mode="after")
    def _mean_is_positive(self) -> Exponential:
        if self.mean == 0:
            raise broken("must be greater than 0", "mean")
        return self


class _Spread(Clipped):
    mean: Duration = Field(
        description="The mean, before min and max; more than 0.", examples=["75s"]
    )
    sd: Duration = Field(
        description="The standard deviation, before min and max; at most 100 times the mean.",
        examples=["60s"],
    )

    @model_validator(mode="after")
    def _mean_and_sd_make_sense(self) -> _Spread:
        if self.mean == 0:
            raise broken("must be greater than 0", "mean")
        if self.sd > 100 * self.mean:
            raise broken("must not be greater than 100 times the mean", "sd")
        return self


class Lognormal(_Spread):
    """Log-normal with the given mean and standard deviation (ms) of the duration itself."""

    dist: Literal["lognormal"]


class Gamma(_Spread):
    """Gamma with the given mean and standard deviation (ms)."""

    dist: Literal["gamma"]


class Weibull(_Spread):
    """Weibull with the given mean and standard deviation (ms)."""

    dist: Literal["weibull"]


class Triangular(Clipped):
    """Triangular from `low` to `high` with its peak at `mode`."""

    dist: Literal["triangular"]
    low: Duration = Field(description="The shortest.", examples=["5s"])
    mode: Duration = Field(description="The most likely; from low to high.", examples=["12s"])
    high: Duration = Field(description="The longest; not below mode.", examples=["30s"])

    @model_validator(mode="after")
    def _in_order(self) -> Triangular:
        if self.low > self.mode:
            raise broken("must not be greater than mode", "low")
        if self.mode > self.high:
            raise broken("must not be greater than high", "mode")
        return self


def _values_or_file(schema: dict[str, Any]) -> None:
    schema["properties"] |= {
        "file": {
            "type": "string",
            "description": "A CSV of measured durations, relative to the scenario file.",
        },
        "column": {"type": "string", "description": "Its column that holds them."},
    }
    schema["required"] = ["dist"]
    schema["oneOf"] = [{"required": ["values"]}, {"required": ["file", "column"]}]


class Empirical(Clipped, json_schema_extra=_values_or_file):
    """One of the measured durations, all alike; listed, or read from a CSV's column."""

    dist: Literal["empirical"]
    values: tuple[Duration, ...] = Field(
        description="Measured durations.", examples=[["40s", "75s", "2m"]]
    )

    @model_validator(mode="after")
    def _has_values(self) -> Empirical:
        if not self.values:
            raise broken("must not be empty", "values")
        return self


@dataclass(frozen=True, slots=True)
class _OrPlainDuration:
    """Shows in the JSON Schema that a plain duration is a distribution too."""

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
    """A plain duration as the constant that it is; the rest as it stands, its `dist` checked."""
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
    """The distribution that is so written, `30s` or `{"dist": "uniform", "low": "1s", …}`.

    Raises pydantic.ValidationError.
    """
    return _ADAPTER.validate_python(written)
