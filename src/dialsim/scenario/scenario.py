"""The scenario: everything in a planner's file, its origin, and its JSON Schema."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, Literal, NoReturn, Self, TypeAlias
from weakref import WeakKeyDictionary

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator
from pydantic.json_schema import JsonSchemaValue

from dialsim.errors import DialsimError
from dialsim.interface.agent import DEFAULT_VOICES, Voice
from dialsim.interface.arguments import checked
from dialsim.interface.instants import day_number, day_start
from dialsim.interface.model import broken, wrong
from dialsim.language import templates
from dialsim.scenario.behaviour import BUILT_IN, Behaviour
from dialsim.scenario.calendar import Calendar, ComplianceRules
from dialsim.scenario.campaign import PeopleTable, RecipientsFile
from dialsim.scenario.document import NodePath
from dialsim.scenario.fields import Model, Text, Whole
from dialsim.scenario.organization import Organization
from dialsim.scenario.problems import Remark
from dialsim.scenario.service import ClockSettings, Costs, EngineSettings, Service, Values
from dialsim.scenario.units import DURATION_PATTERN, NEXT_CALLING_DAY, format_duration, value_text


@dataclass(frozen=True, slots=True)
class Origin:
    """Text that a scenario was read from.

    `name` replaces the file name in errors. `folder` is the base of CSV names. `file` is None for a
    text. `overrides` were applied in this order. `kept` holds files that are not read from the
    folder, by the names in the text; with `only_kept` no other file is read. `read` makes the
    scenario again, `write` writes it to a file (`Scenario.to_yaml`).
    """

    text: str = field(compare=False, repr=False)
    name: str = field(compare=False)
    folder: Path = field(compare=False)
    # The only field that is compared: scenarios with equal contents are equal in any notation.
    file: Path | None
    overrides: tuple[str, ...] = field(compare=False)
    read: Callable[[Origin], Scenario] = field(compare=False, repr=False)
    write: Callable[[Scenario, Path, bool], Path] = field(compare=False, repr=False)
    kept: Mapping[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    only_kept: bool = field(default=False, compare=False, repr=False)


Overrides: TypeAlias = str | Mapping[str, object] | Sequence[str]
"""Values to replace: a text `PATH=VALUE` or several, or values by path."""


def override_texts(overrides: Overrides) -> tuple[str, ...]:
    """Normalize overrides given in Python to texts `PATH=VALUE`."""
    if isinstance(overrides, str):
        return (overrides,)
    if isinstance(overrides, Mapping):
        return tuple(_override_text(path, value) for path, value in overrides.items())
    return tuple(overrides)


def _override_text(path: object, value: object) -> str:
    try:
        return f"{path}={value_text(value)}"
    except DialsimError as error:
        raise DialsimError(f"{path}: {error}") from None


def _version(value: object) -> object:
    # True == 1 in Python.
    if isinstance(value, bool) or value != 1:
        raise wrong("must be 1, the only version of the format so far")
    return 1


_FIRST_KEYS = ("name", "public_url", "shared_number")
"""Keys of the service in every digest.

Keys added later are in it if they differ from the default.
"""


class Scenario(Model):
    """Scenario for an engine: defaults filled in, references valid, people read.

    Instants and durations are integer milliseconds (T1). `behaviours` always has `default`, and
    every behaviour in it is complete.
    """

    version: Annotated[Literal[1], BeforeValidator(_version)] = Field(
        default=1, description="Version of this format.", examples=[1]
    )
    name: Text = Field(
        default="Scenario", description="What the scenario is called.", examples=["First campaign"]
    )
    description: str | None = Field(
        default=None, description="Purpose of the scenario.", examples=["One campaign, one week"]
    )
    seed: Annotated[Whole, Field(ge=0, le=2**63 - 1)] = Field(
        default=1,
        description="Seed of all random numbers: the same seed gives the same run.",
        examples=[1],
    )
    clock: ClockSettings = Field(description="When the simulated time begins and ends.")
    service: Service = Field(default=Service(), description="The service's name and addresses.")
    engine: EngineSettings = Field(
        default=EngineSettings(), description="How calls are queued, ordered and paced."
    )
    costs: Costs | None = Field(default=None, description="Left out: calls cost nothing.")
    value: Values | None = Field(
        default=None,
        description="What results are worth: each person reached by a call of the run, each "
        "conversation that reaches a step of a funnel or has a value in a field.",
        examples=[{"reached": 12, "funnel.Promised": 80, "field.wants_agent.true": -5}],
    )
    calendar: Calendar | None = Field(
        default=None, description="Holidays. Left out: no day is a holiday."
    )
    compliance: ComplianceRules = Field(
        default=(),
        description="Rules on when and how often people may be contacted; breaches are counted.",
        examples=[["thai-debt-collection"]],
    )
    voices: tuple[Voice, ...] = Field(
        default=DEFAULT_VOICES, description="The voice catalog. Left out: a small invented one."
    )
    organizations: tuple[Organization, ...] = Field(
        description="The accounts that call; at least one.", json_schema_extra={"minItems": 1}
    )
    behaviours: dict[Text, Behaviour] = Field(
        default={"default": BUILT_IN},
        description="How people and lines behave, by name; agents refer to these names.",
    )

    @model_validator(mode="after")
    def _counts_lines_at_any_instant(self) -> Self:
        for o, organization in enumerate(self.organizations):
            for c, campaign in enumerate(organization.campaigns):
                misfit = campaign.misfit(self.engine.release_interval)
                if misfit is not None:
                    key, message = misfit
                    raise broken(message, "organizations", o, "campaigns", c, key)
        return self

    _origin: Origin | None = PrivateAttr(default=None)
    _remarks: tuple[Remark, ...] = PrivateAttr(default=())
    _own_figures: tuple[Any, ...] = PrivateAttr(default=())

    @property
    def origin(self) -> Origin | None:
        """Source text and settings of loading; None for a scenario made in Python."""
        return self._origin

    @property
    def source(self) -> Path | None:
        """File that the scenario was loaded from; None for a text."""
        return self._origin.file if self._origin else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about settings that are allowed but probably not intended."""
        return tuple(remark.text for remark in self._remarks)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Warnings with their subjects."""
        return self._remarks

    @property
    def own_figures(self) -> tuple[Any, ...]:
        """Figures defined by Python functions (`results.figures.OwnFigure`), for experiments."""
        return self._own_figures

    @checked(DialsimError)
    def with_own_figures(self, figures: tuple[Any, ...]) -> Scenario:
        """Return a copy with these figures as `own_figures`."""
        copy = self.model_copy()
        copy._own_figures = figures
        return copy

    @property
    def holidays(self) -> list[int]:
        """Holidays as sorted days since 1970."""
        return [] if self.calendar is None else [*map(day_number, self.calendar.names)]

    @property
    def days(self) -> Calendar:
        """The calendar; without one, a calendar without holidays."""
        # Readers of dates then need no second path for scenarios without a calendar.
        return self.calendar or Calendar()

    @property
    def has_closed_dates(self) -> bool:
        """True if there are dates without any calling hours."""
        return self.calendar is not None and bool(self.calendar.closed)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of everything that is simulated: values, and people in the files."""
        # a journal holds the digest: keys that were added to the service must not change it
        added = {
            name
            for name, field in Service.model_fields.items()
            if name not in _FIRST_KEYS and getattr(self.service, name) == field.default
        }
        values = self.model_dump_json(by_alias=True, exclude={"service": added})
        # `plan` is the former name of callingHours: digests in existing journals must stay valid.
        values = values.replace('"callingHours":', '"plan":')
        content = hashlib.sha256(values.encode())
        for organization in self.organizations:
            for campaign in organization.campaigns:
                if isinstance(campaign.recipients, RecipientsFile):
                    content.update(campaign.recipients.table.digest)
        if self.calendar is not None:
            # Holidays change odds, and come from a package: the file's values do not show them.
            content.update(repr([*self.calendar.names]).encode())
        for own in self._own_figures:
            content.update(own.digest.encode())
        return content.hexdigest()

    @checked(DialsimError)
    def with_(self, *overrides: str | Mapping[str, object], **values: object) -> Scenario:
        """Return a copy with values replaced, like `--set`.

        Each override is a text `PATH=VALUE` or a mapping of paths to values; short paths may be
        names of arguments. Durations and instants may be texts, timedeltas and aware datetimes.
        They are applied after those of loading. Text and files are read again. Raises ScenarioError
        like `load`, and DialsimError for a scenario that was not made by `load` and the like.

        >>> later = scenario.with_("seed=7", {"January.retryInterval": "2h"}, lines=12)
        >>> later.organizations[0].max_concurrent_calls
        12
        """
        texts = tuple(text for part in (*overrides, values) for text in override_texts(part))
        origin = self._origin
        if origin is None:
            raise DialsimError("only scenarios from dialsim.load or dialsim.loads can be varied")
        varied = origin.read(replace(origin, overrides=(*origin.overrides, *texts)))
        return varied.with_own_figures(self._own_figures)

    @checked(DialsimError)
    def to_yaml(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the scenario as a file, with its lists of people beside it, and return its path.

        Overrides are written as values. An existing file with another content is kept, unless
        `force` is given. Raises ExistingOutput, and DialsimError like `with_`.

        >>> scenario.with_(lines=7).to_yaml("seven.yaml")
        PosixPath('seven.yaml')
        >>> dialsim.load("seven.yaml").organizations[0].max_concurrent_calls
        7
        """
        if self._origin is None:
            raise DialsimError("only scenarios from dialsim.load and the like can be written")
        return self._origin.write(self, Path(path), force)

    @property
    def calling_begins(self) -> int:
        """Earliest startDateTime of a schedule request, in ms; without one, clock.start."""
        requests = [
            request
            for organization in self.organizations
            for request in (
                *(campaign.schedule for campaign in organization.campaigns),
                *(action.body for action in organization.timeline),
            )
        ]
        starts = [request.start_date_time for request in requests if request is not None]
        return min(starts, default=self.clock.start)

    @property
    def first_day(self) -> int:
        """Midnight (ms) of the day on which calling begins; days of the week count from it."""
        return day_start(self.calling_begins)

    @checked(DialsimError)
    def loaded(self, origin: Origin | None, remarks: tuple[Remark, ...]) -> Scenario:
        """Return a copy with its origin and remarks."""
        # A copy, because models are frozen and may be shared with other scenarios.
        loaded = self.model_copy()
        loaded._origin = origin
        loaded._remarks = remarks
        return loaded

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        blocks = [block for organization in self.organizations for block in organization.campaigns]
        people = sum(block.size for block in blocks)
        return (
            f"<dialsim.Scenario {self.name!r}, organizations: {len(self.organizations)}, "
            f"campaigns: {len(blocks)}, people: {people:,}>"
        )

    def _repr_html_(self) -> str:
        return templates("dialsim.scenario").get_template("scenario.html").render(scenario=self)

    def __dir__(self) -> Iterable[str]:
        # Completion in notebooks lists the scenario's own names, without pydantic's methods.
        return sorted({*super().__dir__()} - {*dir(Model)})


def _made_by_hand(*_: object, **values: object) -> NoReturn:
    raise DialsimError(
        f"Scenario({', '.join(values)}): scenarios come from dialsim.load, dialsim.loads and "
        "dialsim.scenario"
    )


# Set after the class statement: pydantic would use an __init__ of the class for validation.
Scenario.__init__ = _made_by_hand  # type: ignore[method-assign]


DIALECT = "https://json-schema.org/draft/2020-12/schema"


_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum"}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of scenario files as plain values.

    Each key has a description with its unit and an example. Conditions on the whole file
    (references, order of instants, sums) are not in the schema; `load` checks them.
    """
    schema = tidied(Scenario.model_json_schema())
    # Required in the models after reading, optional in a file.
    schema["required"].remove("clock")
    del schema["$defs"]["ClockSettings"]["required"]
    # A file may also name the interval in words; a request on the wire may not.
    interval = schema["$defs"]["ScheduleRequest"]["properties"]["retryInterval"]
    interval["anyOf"].append({"const": NEXT_CALLING_DAY})
    about = {
        "title": "Dialsim scenario",
        "description": "Input of a simulation with dialsim.",
    }
    return {"$schema": DIALECT, **schema, **about}


def tidied(part: Any) -> Any:
    """Simplify a part of pydantic's schema: JSON Schema names of bounds, durations as written.

    Defaults of null are dropped: they only mean that a key is optional.
    """
    if isinstance(part, list):
        return [tidied(item) for item in part]
    if not isinstance(part, dict):
        return part
    plain = {
        _BOUNDS.get(key, key) if isinstance(below, int | float) else key: tidied(below)
        for key, below in part.items()
        if below is not None
    }
    if plain.get("pattern") == DURATION_PATTERN and isinstance(plain.get("default"), int):
        plain["default"] = format_duration(plain["default"])
    return plain


RENAMED_KEYS = {"plan": "callingHours"}
"""Keys by their former name."""


def known_keys(path: NodePath, values: object) -> list[str]:
    """Return the keys allowed in the block at `path` of a document with these plain values."""
    return list(dict.fromkeys(_keys(_schema(), path, values)))


@cache
def _schema() -> dict[str, Any]:
    return json_schema()


def _keys(schema: JsonSchemaValue, path: NodePath, values: object) -> Iterator[str]:
    for form in _forms(schema, values):
        properties = form.get("properties", {})
        if not path:
            yield from properties
            continue
        key, *rest = path
        below = properties.get(key, form.get("additionalProperties"))
        if isinstance(key, int):
            below = form.get("items")
        if isinstance(below, dict):
            yield from _keys(below, tuple(rest), _value(values, key))


def _forms(schema: JsonSchemaValue, values: object) -> Iterator[JsonSchemaValue]:
    """Yield a schema and its alternatives, references resolved: those that fit the values, else
    all.
    """
    if "$ref" in schema:
        schema = _schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    yield schema
    alternatives = [
        form
        for alternative in (*schema.get("oneOf", ()), *schema.get("anyOf", ()))
        for form in _forms(alternative, values)
    ]
    # An unfinished block fits no alternative yet; then all of them are offered.
    yield from [form for form in alternatives if _fits(form, values)] or alternatives


def _fits(form: JsonSchemaValue, values: object) -> bool:
    """Return True if the values have the constants that distinguish this alternative."""
    properties = form.get("properties", {}).items()
    constants = {key: below["const"] for key, below in properties if "const" in below}
    return all(_value(values, key) == constant for key, constant in constants.items())


def _value(values: object, key: str | int) -> object:
    if isinstance(values, dict):
        return values.get(key)
    if isinstance(values, list) and isinstance(key, int) and key < len(values):
        return values[key]
    return None


# -- scenarios as bytes for workers ----------------------------------------------------------------

# A scenario is packed without its lists of people, which each worker gets once. Variants share the
# lists read for one of them, so a variant takes a few kilobytes for any number of people.
_names: WeakKeyDictionary[PeopleTable, str] = WeakKeyDictionary()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.lists: dict[str, PeopleTable] = {}

    def persistent_id(self, obj: object) -> str | None:
        if not isinstance(obj, PeopleTable):
            return None
        name = _names.get(obj) or token_hex(8)
        _names[obj] = name
        self.lists[name] = obj
        return name


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, find: Callable[[str], PeopleTable]) -> None:
        super().__init__(file)
        self._find = find

    def persistent_load(self, pid: str) -> PeopleTable:
        return self._find(pid)


def pack(scenario: Scenario) -> tuple[bytes, dict[str, PeopleTable]]:
    """Return a scenario as bytes, without source text and lists, and its lists of people by name.

    A list has the same name in every call. The name is random, so that it is unique among
    processes.
    """
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(scenario.loaded(None, ()))
    return file.getvalue(), pickler.lists


def unpack(packed: bytes, find: Callable[[str], PeopleTable]) -> Scenario:
    """Return the scenario in bytes made by `pack`; `find` returns a list of people by its name."""
    scenario: Scenario = _Unpickler(io.BytesIO(packed), find).load()
    return scenario
