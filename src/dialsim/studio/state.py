"""The state of a studio: a scenario, its changes, and what can be changed.

States are immutable: a change makes a new one, so that pins, undo and links stay as they were.
Changes are texts as for `--set`.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shlex
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from hashlib import sha256
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dialsim.errors import DialsimError, ScenarioError, StudioError
from dialsim.experiments.variants import DRAWS, variants_in
from dialsim.interface.instants import (
    DAY,
    HOUR,
    day_start,
    format_instant,
    minute_text,
    thai,
    thai_date,
)
from dialsim.scenario.behaviour import BUILT_IN, Behaviour
from dialsim.scenario.calendar import (
    DAY_CLASSES,
    Calendar,
    DayClasses,
    line_time,
)
from dialsim.scenario.campaign import Campaign, GeneratedRecipients, RecipientsFile
from dialsim.scenario.distribution import Exponential, Gamma, Lognormal, Weibull
from dialsim.scenario.document import decoded, read_bytes
from dialsim.scenario.list_doctor import clean_list
from dialsim.scenario.loading import document_of, files_of, load, loads, long_path
from dialsim.scenario.organization import Agent, Organization
from dialsim.scenario.recipients import whole
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.units import (
    NEXT_CALLING_DAY,
    format_duration,
    is_next_day,
    parse_duration,
    parse_offset_instant,
)
from dialsim.scenario.week import (
    Week,
    instant_in_words,
    range_text,
    read_windows,
    week_of,
    week_text,
    windows_of,
)

M = TypeVar("M", bound=BaseModel)

MOST_STEPS = 200
"""Number of steps that can be undone."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A variant kept beside the current one."""

    name: str
    differences: tuple[str, ...]
    scenario: Scenario = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BehaviourDraws:
    """Plausible behaviours by name, the posterior draws that `dialsim pull` writes.

    `text` is the content of `draws.yaml`.
    """

    text: str
    behaviours: tuple[Mapping[str, Behaviour], ...]

    @classmethod
    def of(cls, text: str, base: Scenario) -> BehaviourDraws:
        """Parse a file of draws for a scenario. Raises StudioError unless it has behaviours
        only.
        """
        variants = variants_in(text, DRAWS)
        for path in (change.path for variant in variants for change in variant.changes):
            if not path.startswith("behaviours."):
                raise StudioError(f"{DRAWS}: a studio takes draws of behaviours, not of {path}")
        # Parsed in a scenario without people, whose lists would be read again for each draw
        nobody = {"version": 1, "organizations": [{"name": "Nobody", "maxConcurrentCalls": 1}]}
        written = document_of(base).get("behaviours") or {}
        kept = {} if base.origin is None else base.origin.kept
        alone = loads(json.dumps({**nobody, "behaviours": written}), name=DRAWS, files=kept)
        try:
            return cls(text, tuple(draw.of(alone).behaviours for draw in variants))
        except ScenarioError as error:
            raise StudioError(f"{DRAWS}: {str(error).removeprefix('--set ')}") from None


@dataclass(frozen=True, slots=True)
class StudioState:
    """A base scenario and its differences, `PATH=VALUE` each; `scenario` is both together.

    `past` and `future` are the states for `undo` and `redo`, the nearest last. `draws` are
    behaviours that runs are spread over. `deadline` is the one that the studio began with, in ms.
    """

    base: Scenario
    differences: tuple[str, ...]
    scenario: Scenario = field(compare=False, repr=False)
    pins: tuple[Pin, ...] = ()
    past: tuple[tuple[tuple[str, ...], Scenario], ...] = field(
        default=(), compare=False, repr=False
    )
    future: tuple[tuple[tuple[str, ...], Scenario], ...] = field(
        default=(), compare=False, repr=False
    )
    draws: BehaviourDraws | None = field(default=None, compare=False, repr=False)
    deadline: int | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls, scenario: str | os.PathLike[str] | Scenario, draws: str | None = None
    ) -> StudioState:
        """Start with a scenario file or a loaded scenario.

        Lists of people are kept in memory from then on, so that their files may vanish. `draws` is
        the text of a file of plausible behaviours; by default that of `draws.yaml` beside the
        scenario, if `dialsim pull` wrote one. Raises ScenarioError for a file with problems,
        DialsimError for a scenario built in Python.
        """
        base = scenario if isinstance(scenario, Scenario) else load(scenario)
        origin = base.origin
        if origin is None:
            raise StudioError("only scenarios from dialsim.load or dialsim.loads can be varied")
        kept = replace(origin, kept=files_of(base))
        beside = None if origin.file is None else origin.file.parent / DRAWS
        if draws is None and beside is not None and beside.is_file():
            draws = decoded(read_bytes(beside, str(beside)), str(beside))
        base = base.loaded(kept, base.remarks)
        drawn = None if draws is None else BehaviourDraws.of(draws, base)
        return cls(base, (), base, draws=drawn)

    @classmethod
    def begin(cls, asked: NewScenario, content: bytes | None = None) -> StudioState:
        """Begin with a few answers, and with `content`, the bytes of a list of people as exported.

        Raises StudioError for answers that cannot be read, ScenarioError for a list with problems.
        """
        files = {}
        if content is not None:
            name, content, params = cleaned(Path(asked.listed or "people.csv").name, content)
            asked, files = replace(asked, listed=name, params=params), {name: content}
        begun = cls.of(loads(asked.text(), name="new scenario", files=files))
        return replace(begun, deadline=new_deadline(asked.deadline, new_instant(asked.start)))

    def without_files(self) -> StudioState:
        """Return the same state for a guest of a server, who may not read local files.

        Lists already loaded stay; a change that names another file is refused.
        """
        origin = self.base.origin
        assert origin is not None
        if origin.only_kept:
            return self
        base = self.base.loaded(replace(origin, only_kept=True), self.base.remarks)
        # Undo is cut off: earlier states could still read files.
        scenario = base.with_(*self.differences) if self.differences else base
        return replace(self, base=base, scenario=scenario, past=(), future=())

    def drawn(self, scenario: Scenario) -> tuple[Scenario, ...]:
        """Return a scenario of this state once with each of the plausible behaviours.

        Empty if the behaviour was changed: then that one applies to all runs.
        """
        draws = self._draws_of(scenario)
        return tuple(
            scenario.model_copy(update={"behaviours": behaviours})
            for behaviours in (draws.behaviours if draws else ())
        )

    def _draws_of(self, scenario: Scenario) -> BehaviourDraws | None:
        return self.draws if scenario.behaviours == self.base.behaviours else None

    # -- changes ----------------------------------------------------------------------------------

    def set(self, path: str, text: str) -> StudioState:
        """Replace the value at a path, full or short; `PATH+` adds to a list, `PATH-` removes.

        Raises ScenarioError, with the reason if the scenario refuses the value.
        """
        return self.with_lines(f"{path}={text}")

    def with_lines(self, *lines: str) -> StudioState:
        """Return the state after several changes, which are one step for `undo`."""
        differences = self.differences
        for line in lines:
            path, equals, text = line.partition("=")
            change = path.rstrip()[-1:] if path.rstrip()[-1:] in ("+", "-") else ""
            # Full paths, so that short and long forms of one setting replace each other.
            full = self._full(path)
            # `+=` and `-=` add up; `=` replaces what was set there before.
            if not change:
                differences = tuple(old for old in differences if not self._replaces(full, old))
            differences = (*differences, f"{full}{change}{equals}{text}")
        return self._changed(differences)

    def reset(self, path: str) -> StudioState:
        """Undo all changes at a path: its value is again the one in the file."""
        return self._changed(
            tuple(old for old in self.differences if not self._replaces(path, old))
        )

    def without(self, line: str) -> StudioState:
        """Remove one of the differences."""
        return self._changed(tuple(old for old in self.differences if old != line))

    def clear(self) -> StudioState:
        """Remove all differences."""
        return self._changed(())

    def undo(self) -> StudioState:
        """Return the state before the last change; the same one if there is none."""
        if not self.past:
            return self
        *past, (differences, scenario) = self.past
        future = (*self.future, (self.differences, self.scenario))
        return replace(
            self, differences=differences, scenario=scenario, past=tuple(past), future=future
        )

    def redo(self) -> StudioState:
        """Return the state before the last `undo`; the same one if there is none."""
        if not self.future:
            return self
        *future, (differences, scenario) = self.future
        past = (*self.past, (self.differences, self.scenario))
        return replace(
            self, differences=differences, scenario=scenario, past=past, future=tuple(future)
        )

    def in_one_step_with(self, before: StudioState) -> StudioState:
        """Return this state, merged with the change before it into one step for `undo`."""
        return self if self is before else replace(self, past=before.past)

    def _changed(self, differences: tuple[str, ...]) -> StudioState:
        # A click that changes nothing must not become a step of undo.
        if differences == self.differences:
            return self
        scenario = self.base.with_(*differences) if differences else self.base
        # Scenarios are kept with the steps: undo must not read a list of people again.
        past = (*self.past, (self.differences, self.scenario))[-MOST_STEPS:]
        return replace(self, differences=differences, scenario=scenario, past=past, future=())

    def _replaces(self, path: str, line: str) -> bool:
        """True if a difference is about this path."""
        old, _, _ = line.partition("=")
        return self._full(path) == self._full(old)

    def _full(self, path: str) -> str:
        path = path.strip().rstrip("+-").strip()
        try:
            return _with_item_names(long_path(self.scenario, path), self.scenario)
        except DialsimError:
            # The scenario refuses this path, or a removed difference had added what it leads to
            return path

    # -- particular changes -----------------------------------------------------------------------

    def turn(self, lever: Lever, text: str) -> StudioState:
        """Set a lever: like `set`, but also for a share of answers and for a mean time.

        Raises ScenarioError if the scenario refuses the value.
        """
        if lever.kind == "lines" and not text.strip():
            return self.reset(lever.path)
        if lever.kind == "hours":
            text = json.dumps(new_hours(text)) if text.strip() else "null"
        if lever.kind not in ("answers", "talk"):
            return self.set(lever.path, text)
        name = lever.path.split(".", 1)[1].rpartition(".")[0]
        written = document_of(self.scenario).get("behaviours") or {}
        lines = []
        if name not in written:
            # A written behaviour lacks the people of the built-in one, so they are written with it
            people = BUILT_IN.model_dump(mode="json", by_alias=True)["people"]
            shown = {key: people[key] for key in ("deadNumbers", "concentration")}
            lines.append(f"behaviours.{name}={json.dumps({'people': shown})}")
        behaviour = self.scenario.behaviours[name]
        if lever.kind == "answers":
            changed: Any = _outcomes(behaviour, text)
        else:
            talk = behaviour.talk_time
            changed = talk.model_dump(mode="json", by_alias=True, exclude_none=True)
            changed |= {"mean": text}
            # The coefficient of variation stays
            if isinstance(talk, Lognormal | Gamma | Weibull):
                share = _milliseconds(text, lever.value) / lever.value
                changed["sd"] = format_duration(round(talk.sd * share))
        return self.with_lines(*lines, f"{lever.path}={json.dumps(changed)}")

    def pause(self, campaign: Position, since: str, until: str) -> StudioState:
        """Pause a campaign for a while; instants such as `Tue 12:00`, or in ISO 8601.

        `without` removes the new difference. Raises ScenarioError.
        """
        name = campaign_at(self.scenario, campaign).name
        actions = [
            {"at": at, "action": action, "campaign": name}
            for at, action in ((since, "pause"), (until, "resume"))
        ]
        path = path_to_organization(self.scenario, campaign[0])
        return self.set(f"{path}.timeline+", json.dumps(actions, ensure_ascii=False))

    def add_campaign(self, name: str, people: int, like: Position = (0, 0)) -> StudioState:
        """Add a campaign with made-up people and the schedule of another one of its organization.

        Raises ScenarioError.
        """
        model = campaign_at(self.scenario, like)
        block: dict[str, Any] = {"name": name, "agent": model.agent}
        block["recipients"] = {"count": people}
        if isinstance(model.recipients, GeneratedRecipients) and model.recipients.agent_params:
            block["recipients"]["agentParams"] = model.recipients.agent_params
        if model.schedule is not None:
            hours = model.calling_hours
            block["schedule"] = model.schedule.model_dump(
                mode="json",
                by_alias=True,
                exclude_none=True,
                # Compiled from the calling hours
                exclude=None if hours is None else {"time_windows"},
            )
            if hours is not None:
                block["callingHours"] = hours.model_dump(mode="json", exclude_none=True)
        path = path_to_organization(self.scenario, like[0])
        return self.set(f"{path}.campaigns+", json.dumps([block], ensure_ascii=False))

    # -- pins -------------------------------------------------------------------------------------

    def pin(self, name: str = "") -> StudioState:
        """Keep the current scenario under a name, by default `variant 1` and so on."""
        taken = {pin.name for pin in self.pins}
        if not name:
            name = next(n for k in range(1, len(taken) + 2) if (n := f"variant {k}") not in taken)
        kept = tuple(pin for pin in self.pins if pin.name != name)
        return replace(self, pins=(*kept, Pin(name, self.differences, self.scenario)))

    def unpin(self, name: str) -> StudioState:
        """Remove a pin."""
        return replace(self, pins=tuple(pin for pin in self.pins if pin.name != name))

    def restore(self, name: str) -> StudioState:
        """Return to a pin, as a change that can be undone. Raises StudioError if there is none."""
        pin = next((pin for pin in self.pins if pin.name == name), None)
        if pin is None:
            raise StudioError(f"there is no pin {name}")
        return self._changed(pin.differences)

    # -- telling it on ----------------------------------------------------------------------------

    def set_lines(self) -> list[str]:
        """Return the differences as options to paste after a command."""
        return [f"--set {shlex.quote(line)}" for line in self.differences]

    def command(self) -> str:
        """Return the command that makes the same runs."""
        origin = self.base.origin
        assert origin is not None
        # `forecast` shares its runs over the draws beside the file, as the studio does.
        verb = "forecast" if self._draws_of(self.scenario) else "run"
        words = ["dialsim", verb, str(origin.file or origin.name)]
        for line in (*origin.overrides, *self.differences):
            words += ["--set", line]
        return shlex.join(words)

    def text(self) -> tuple[str, dict[str, bytes]]:
        """Return the scenario as one file, and the files that belong beside it, by name.

        These are its lists, and `draws.yaml`. The differences are merged in; comments stay with
        what they are about.
        """
        origin = self.base.origin
        assert origin is not None
        # Saved files lie side by side in one archive, wherever the lists were.
        names = {name: Path(name).name for name in origin.kept}
        beside = {names[name]: content for name, content in origin.kept.items()}
        if draws := self._draws_of(self.scenario):
            beside[DRAWS] = draws.text.encode()
        bare = self.base.loaded(replace(origin, overrides=()), ())
        old, new = document_of(bare), _with_names(document_of(self.scenario), names)
        # An unchanged scenario keeps its text to the byte.
        if old == new:
            return origin.text, beside
        if _is_json(origin.text):
            return f"{json.dumps(new, ensure_ascii=False, indent=2)}\n", beside
        text = _merged(origin.text, old, new)
        # The merge is checked by reading its result.
        if document_of(loads(text, files={**origin.kept, **beside})) != new:
            # A merge fails on anchors, for instance, if only one of their uses was changed
            import yaml

            text = yaml.safe_dump(new, allow_unicode=True, sort_keys=False, width=100)
        return text, beside

    def link(self) -> str:
        """Return the differences and pins, encoded for the fragment of a URL."""
        origin = self.base.origin
        assert origin is not None
        file = None if origin.file is None else str(origin.file.absolute())
        content = {
            "file": origin.name if origin.only_kept else file,
            "overrides": origin.overrides,
            "digest": self._digest,
            "set": self.differences,
            "pins": [[pin.name, pin.differences] for pin in self.pins],
        }
        packed = zlib.compress(json.dumps(content, ensure_ascii=False).encode(), 9)
        return base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @property
    def _digest(self) -> str:
        """Digest of the scenario and the draws."""
        if self.draws is None:
            return self.base.digest
        return sha256(f"{self.base.digest}\n{self.draws.text}".encode()).hexdigest()

    @classmethod
    def from_link(cls, link: str, opened: StudioState | None = None) -> StudioState:
        """Restore the state of a link, whose file must be unchanged.

        With `opened` the link must be to the scenario opened there, and no file is read: guests of
        a server must not name files. Raises StudioError if the link is invalid, or its scenario was
        changed or removed, ScenarioError for a file with problems.
        """
        content = _unpacked(link)
        base = _base_of(content, opened)
        if base._digest != content.digest:
            raise StudioError(
                f"{content.file or 'the scenario'} or a list that it names has changed since this "
                "link was made, so its figures can't be shown again"
            )
        state = base.with_lines(*content.set) if content.set else base
        for name, differences in content.pins:
            pinned = base.with_lines(*differences).scenario if differences else base.scenario
            state = replace(state, pins=(*state.pins, Pin(name, tuple(differences), pinned)))
        return replace(state, past=(), future=())


def _milliseconds(text: str, otherwise: int) -> int:
    """Parse a duration; `otherwise` if it is invalid, for the scenario to refuse."""
    try:
        return parse_duration(text)
    except ValueError:
        return otherwise


def _is_json(text: str) -> bool:
    """True if the text of a scenario is JSON."""
    return text.lstrip()[:1] == "{"


def _outcomes(behaviour: Behaviour, text: str) -> dict[str, float] | str:
    """Return outcomes with another share of answers; the share of failures stays.

    The remaining outcomes are scaled. A text that is no share is returned for the scenario to
    refuse.
    """
    now = behaviour.outcomes
    try:
        percent = text.strip().removesuffix("%").strip()
        answered = float(percent) / (100 if percent != text.strip() else 1)
    except ValueError:
        return text
    in_vain = now.no_answer + now.busy
    rest = 1 - answered - now.failed
    busy = rest * now.busy / in_vain if in_vain else 0.0
    shares = {"answered": answered, "busy": round(busy, 9), "failed": now.failed}
    return {**shares, "noAnswer": round(1 - sum(shares.values()), 12)}


_LONGEST_LINK = 200_000


class _Link(BaseModel):
    """Content of a link, which comes from anywhere: no type is trusted."""

    model_config = ConfigDict(strict=True)

    file: str | None
    overrides: list[str]
    digest: str
    set: list[str]
    pins: list[tuple[str, list[str]]]


def _unpacked(link: str) -> _Link:
    """Decode a link."""
    try:
        padded = link.strip().lstrip("#") + "=" * (-len(link.strip().lstrip("#")) % 4)
        packed = base64.b64decode(padded, altchars=b"-_", validate=True)
        # Limited, because a short link may decompress to gigabytes.
        return _Link.model_validate_json(zlib.decompressobj().decompress(packed, _LONGEST_LINK))
    except (binascii.Error, zlib.error, ValueError):
        raise StudioError("this link is not one of a studio, or a part of it is missing") from None


def _base_of(link: _Link, opened: StudioState | None) -> StudioState:
    if opened is not None:
        return replace(opened, differences=(), scenario=opened.base, pins=(), past=(), future=())
    if link.file is None:
        raise StudioError("this link is to a scenario that was never saved: open its file instead")
    if not Path(link.file).is_file():
        raise StudioError(f"{link.file} is not there any more, so this link can't be opened")
    return StudioState.of(load(link.file, overrides=link.overrides))


# -- levers ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lever:
    """A setting that can be changed, and its range.

    `kind` is number, lines, share, duration, instant, windows, hours, list or text. `value` is a
    number (a duration in ms, an instant in ms since 1970), a week `{day: ((first, last minute),
    …)}` with days from 1, a tuple of texts, or a text; None if unset. `text` is the same as for
    `--set`; a number without text is unset, and `value` is the one in force. `low`, `high` and
    `step` are the range of a slider, beyond which other values are possible. `choices` are
    proposed values.
    """

    path: str
    label: str
    group: str
    kind: str
    unit: str
    value: Any
    text: str
    low: float | None = None
    high: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()


Position = tuple[int, int]
"""Indices of an organization and of a campaign in it."""


def campaigns(scenario: Scenario) -> Iterator[tuple[Position, str, int]]:
    """Yield each campaign: position, name (with the organization's if there are several), size."""
    several = len(scenario.organizations) > 1
    for o, organization in enumerate(scenario.organizations):
        for c, campaign in enumerate(organization.campaigns):
            name = f"{organization.name}/{campaign.name}" if several else campaign.name
            yield (o, c), name, campaign.size


def levers(scenario: Scenario, campaign: Position = (0, 0)) -> list[Lever]:
    """Return the levers of a campaign, of its organization, and of its people's behaviour.

    Only those that the scenario has: without a campaign those of the organization.
    """
    o, c = campaign
    if o >= len(scenario.organizations):
        return []
    organization = scenario.organizations[o]
    found = [*_of_organization(organization, path_to_organization(scenario, o))]
    if c < len(organization.campaigns):
        block = organization.campaigns[c]
        path = path_to_campaign(scenario, campaign)
        found += _of_campaign(block, organization, path)
        found += _of_behaviour(scenario, block, organization)
    return found


def path_to_organization(scenario: Scenario, organization: int) -> str:
    """Return the full path of an organization, as for `--set`."""
    return _part("organizations", scenario.organizations[organization].name, organization)


def path_to_campaign(scenario: Scenario, campaign: Position) -> str:
    """Return the full path of a campaign, as for `--set`."""
    o, c = campaign
    name = campaign_at(scenario, campaign).name
    return f"{path_to_organization(scenario, o)}.{_part('campaigns', name, c)}"


def campaign_at(scenario: Scenario, position: Position) -> Campaign:
    """Return the campaign at a position. Raises StudioError if there is none."""
    o, c = position
    found = scenario.organizations[o].campaigns if o < len(scenario.organizations) else ()
    if c >= len(found):
        raise StudioError("there is no campaign any more; undo takes the last change back")
    return found[c]


def _with_item_names(path: str, scenario: Scenario) -> str:
    """Return the path with names of organizations and campaigns instead of indices."""
    found = re.match(r"organizations\.(\d{1,6})(?:\.campaigns\.(\d{1,6}))?(?=\.|$)", path)
    if found is None or int(found[1]) >= len(scenario.organizations):
        return path
    o = int(found[1])
    head, end = path_to_organization(scenario, o), found.end(1)
    if found[2] is not None and int(found[2]) < len(scenario.organizations[o].campaigns):
        head, end = path_to_campaign(scenario, (o, int(found[2]))), found.end(2)
    return head + path[end:]


def _part(key: str, name: str, index: int) -> str:
    """Return the part of a path for an item of a list: its name if it needs no escaping."""
    # Names of digits would be read as indices, and one with = would end the path.
    plain = name.strip() == name and name and not (set(name) & set("=\n")) and not name.isdigit()
    return f"{key}.{name if plain and name[-1] not in '+-' else index}"


def _number(path: str, label: str, group: str, unit: str, value: int, low: int, high: int) -> Lever:
    return Lever(path, label, group, "number", unit, value, str(value), low, max(high, value), 1)


_EVENING = "17:00-24:00"


def _of_organization(organization: Organization, path: str) -> Iterator[Lever]:
    lines = organization.max_concurrent_calls or 0
    most = max(20, 4 * lines)
    yield _number(f"{path}.maxConcurrentCalls", "Lines", "Lines", "lines", lines, 0, most)
    for span, count in organization.lines.items():
        label = "Evening lines" if span == _EVENING else f"Lines, {span}"
        yield Lever(f"{path}.lines.{span}", label, "Lines", "lines", "lines", count, str(count),
                    0, max(most, count), 1)  # fmt: skip
    evening = line_time(_EVENING)
    if not any(line_time(span).meets(evening) for span in organization.lines):
        yield Lever(f"{path}.lines.{_EVENING}", "Evening lines", "Lines", "lines", "from 17:00",
                    lines, "", 0, most, 1)  # fmt: skip


def _of_campaign(campaign: Campaign, organization: Organization, path: str) -> Iterator[Lever]:
    if isinstance(campaign.recipients, GeneratedRecipients):
        people = campaign.recipients.count
        yield _number(f"{path}.recipients.count", "People", "People", "people", people, 0,
                      max(1000, 4 * people))  # fmt: skip
    if isinstance(campaign.recipients, RecipientsFile):
        yield from _of_list(campaign, organization, f"{path}.recipients")
    request = campaign.schedule
    if request is None:
        return
    below = f"{path}.schedule"
    start, end = request.start_date_time, request.end_date_time
    yield Lever(f"{below}.startDateTime", "Start", "When", "instant", "Thai time", start,
                format_instant(start), start - 7 * DAY, start + 28 * DAY, HOUR / 4)  # fmt: skip
    yield Lever(f"{below}.endDateTime", "End", "When", "instant", "Thai time", end,
                "" if end is None else format_instant(end), start, start + 56 * DAY,
                HOUR / 4)  # fmt: skip
    if campaign.calling_hours is None:
        week = week_of(request.time_windows)
        yield Lever(f"{below}.timeWindows", "Windows", "When", "windows", "Thai time", week,
                    week_text(week))  # fmt: skip
    else:
        for name, label in zip(DAY_CLASSES, _DAY_LABELS, strict=True):
            spans = getattr(campaign.calling_hours, name)
            text = None if spans is None else ", ".join(map(range_text, spans)) or "closed"
            yield Lever(f"{path}.callingHours.{name}", label, "When", "hours", "Thai time", text,
                        text or "")  # fmt: skip
    attempts = request.max_attempts
    yield _number(f"{below}.maxAttempts", "Attempts", "Attempts", "calls a person", attempts, 1,
                  max(10, 2 * attempts))  # fmt: skip
    interval = request.retry_interval
    yield Lever(f"{below}.retryInterval", "Retry interval", "Attempts", "duration", "ms", interval,
                format_duration(interval), 0, max(2 * DAY, 2 * interval), 5 * 60_000)  # fmt: skip
    numbers = request.caller_ids or ()
    yield Lever(f"{below}.callerIds", "Caller IDs", "Caller IDs", "list", "numbers", numbers,
                json.dumps(list(numbers)) if numbers else "",
                choices=organization.caller_ids)  # fmt: skip


_DAY_LABELS = ("Hours Mon-Fri", "Hours on Saturdays", "Hours on Sundays", "Hours on holidays")


def _of_list(campaign: Campaign, organization: Organization, path: str) -> Iterator[Lever]:
    recipients = campaign.recipients
    assert isinstance(recipients, RecipientsFile)
    schema = _agent_of(campaign, organization).params_schema or {}
    amounts = [name for name, declared in schema.items() if declared.type == "number"]
    choices = (*(f"-{name}" for name in amounts), *amounts)
    yield Lever(f"{path}.sort", "Sort", "People", "list", "a minus: highest first",
                recipients.sort, ", ".join(recipients.sort or ()), choices=choices)  # fmt: skip
    most, first = len(whole(recipients.table).tels), recipients.first
    yield Lever(f"{path}.first", "First of the list", "People", "number", "people", first or most,
                "" if first is None else str(first), 1, max(most, 2), 1)  # fmt: skip


def _of_behaviour(
    scenario: Scenario, campaign: Campaign, organization: Organization
) -> Iterator[Lever]:
    name = _agent_of(campaign, organization).behaviour
    behaviour, path, group = scenario.behaviours[name], f"behaviours.{name}", "Behaviour"
    outcomes, people = behaviour.outcomes, behaviour.people
    reachable = people.reachable if people else 1.0
    yield Lever(f"{path}.outcomes", "Answered", group, "answers", "share of attempts",
                outcomes.answered, f"{outcomes.answered:g}", 0.01,
                round(min(reachable, 1 - outcomes.failed), 3), 0.01)  # fmt: skip
    talk = behaviour.talk_time
    if isinstance(talk, Lognormal | Gamma | Weibull | Exponential):
        mean = talk.mean
        yield Lever(f"{path}.talkTime", "Mean talk time", group, "talk", "ms", mean,
                    format_duration(mean), 5_000, max(300_000, 2 * mean), 5_000)  # fmt: skip


def _agent_of(campaign: Campaign, organization: Organization) -> Agent:
    return next(agent for agent in organization.agents if agent.name == campaign.agent)


def pauses(scenario: Scenario, campaign: Position) -> list[tuple[int, int | None]]:
    """Return the pauses of a campaign as instants (ms) of pause and resume; None if it stays
    paused.
    """
    name, found = campaign_at(scenario, campaign).name, list[tuple[int, int | None]]()
    actions = [a for a in scenario.organizations[campaign[0]].timeline if a.campaign == name]
    for action in sorted(actions, key=lambda action: action.at):
        is_open = bool(found) and found[-1][1] is None
        if action.action == "pause" and not is_open:
            found.append((action.at, None))
        elif action.action == "resume" and is_open:
            found[-1] = found[-1][0], action.at
    return found


def params_line(scenario: Scenario, campaign: Position, types: Mapping[str, str]) -> str:
    """Return the change that gives parameters with these types to the agent of a campaign."""
    owner = scenario.organizations[campaign[0]]
    agent = _agent_of(campaign_at(scenario, campaign), owner)
    schema = {name: {"type": kind} for name, kind in types.items()} | {
        name: declared.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name, declared in (agent.params_schema or {}).items()
    }
    part = _part("agents", agent.name, owner.agents.index(agent))
    path = f"{path_to_organization(scenario, campaign[0])}.{part}"
    return f"{path}.paramsSchema={json.dumps(schema, ensure_ascii=False)}"


# -- everything else -------------------------------------------------------------------------------

MOST_FOUND = 200


def complete(scenario: Scenario, prefix: str = "") -> list[str]:
    """Return paths that complete a prefix by one level.

    Of a list with thousands of items at most `MOST_FOUND` matches are returned.
    """
    above, _, begun = prefix.rpartition(".")
    value: object = scenario
    at = 0
    parts = above.split(".") if above else []
    while at < len(parts):
        step = _step(value, parts, at)
        if step is None:
            return []
        value, at = step
    found = (f"{above}.{name}" if above else name
             for name in _below(value) if name.lower().startswith(begun.lower()))  # fmt: skip
    return [*islice(found, MOST_FOUND)]


def _step(value: object, parts: Sequence[str], at: int) -> tuple[object, int] | None:
    """Descend by one name, which may contain dots; None if there is none."""
    names = _below(value)
    for end in range(len(parts), at, -1):
        name = ".".join(parts[at:end])
        if name in names:
            return names[name], end
        if isinstance(value, tuple) and name.isdigit() and int(name) < len(value):
            return value[int(name)], end
    return None


def _below(value: object) -> dict[str, object]:
    """Return what is below a value, by the names in paths."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        return {given.alias or name: getattr(value, name) for name, given in fields.items()}
    if isinstance(value, Mapping):
        return {str(key): below for key, below in value.items()}
    if not isinstance(value, tuple):
        return {}
    named = ((index, getattr(item, "name", None), item) for index, item in enumerate(value))
    return {_part("", name, index)[1:] if name else str(index): item for index, name, item in named}


# -- as a file -------------------------------------------------------------------------------------


def _with_names(value: Any, names: Mapping[str, str]) -> Any:
    """Return a document with files renamed."""
    if isinstance(value, dict):
        return {
            key: names.get(below, below)
            if key == "file" and isinstance(below, str)
            else _with_names(below, names)
            for key, below in value.items()
        }
    return [_with_names(item, names) for item in value] if isinstance(value, list) else value


def _merged(text: str, old: Any, new: Any) -> str:
    """Merge new values into the text of a document, keeping comments and order."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    # Long lines of the planner's file are not to be folded.
    yaml.width = 4096
    # ruamel.yaml has one style of lists per document; the style of the file is detected, so that
    # only changed lines differ.
    if re.search(r"^( *)[^ #\-].*:\s*\n\1  +- ", text, re.MULTILINE):
        yaml.indent(mapping=2, sequence=4, offset=2)
    tree = yaml.load(text)
    _merge(tree, old, new)
    out = StringIO()
    yaml.dump(tree, out)
    return out.getvalue()


def _merge(tree: Any, old: Any, new: Any) -> None:
    """Change a tree where a document has changed, and only there."""
    if isinstance(new, dict):
        for key in [key for key in tree if str(key) not in new]:
            del tree[key]
        keys = {str(key): key for key in tree}
        for name, below in new.items():
            _put(tree, keys.get(name, name), old.get(name), below, name not in old)
    else:
        # Lists are compared by position: that keeps comments of items that stay.
        del tree[len(new) :]
        tree.extend(new[len(tree) :])
        for index, below in enumerate(new[: len(old)]):
            _put(tree, index, old[index], below, False)


def _put(tree: Any, key: Any, old: Any, new: Any, is_new: bool) -> None:
    if not is_new and old == new:
        return
    alike = type(old) is type(new) and isinstance(new, dict | list) and tree[key] is not None
    if alike and not is_new:
        _merge(tree[key], old, new)
    else:
        tree[key] = new


# -- a new one -------------------------------------------------------------------------------------


def new_instant(text: str, first_day: int | None = None) -> int:
    """Parse an instant in words or ISO 8601; days of the week count from today or `first_day`.

    Raises StudioError for anything else.
    """
    day = day_start(int(time.time() * 1000)) if first_day is None else first_day
    try:
        found = instant_in_words(text, day)
        return parse_offset_instant(text.strip()) if found is None else found
    except ValueError as error:
        raise StudioError(f"{text} {error}") from None


def new_deadline(text: str, begin: int) -> int | None:
    """Parse a deadline in words, None if empty. Raises StudioError unless it is after `begin`."""
    if not text.strip():
        return None
    end = new_instant(text, day_start(begin))
    if end <= begin:
        raise StudioError(
            f"{text} is {minute_text(end)}, which is not after the start, {minute_text(begin)}"
        )
    return end


def new_week(text: str) -> Week:
    """Parse windows in words. Raises StudioError."""
    try:
        return read_windows(text)
    except ValueError as error:
        raise StudioError(f"windows {error}") from None


def new_holidays(text: str) -> str | None:
    """Parse the code of a country; None for `none`. Raises StudioError for an unknown country."""
    if text.strip().casefold() in ("", "none"):
        return None
    _validated(Calendar, {"holidays": text.strip()})
    return text.strip()


def new_hours(text: str) -> list[str]:
    """Parse hours such as `09:00-12:00, 13:00-18:00`, or `closed`. Raises StudioError."""
    spans = [part.strip() for part in text.split(",")]
    closed = spans in (["closed"], [""])
    try:
        hours = _validated(DayClasses, {"holiday": [] if closed else spans}).holiday
    except StudioError as error:
        raise StudioError(f"hours {error}") from None
    return [*map(range_text, hours or ())]


def class_hours(week: Week, holiday_hours: str) -> dict[str, list[str]]:
    """Return the hours of each class of day. Raises StudioError if weekdays differ."""
    if any(week.get(day) != week.get(1) for day in range(2, 6)):
        raise StudioError(
            "windows must be the same from Mon to Fri where holidays count, not "
            f"{week_text(week)}: write none as the country of the holidays"
        )
    hours = [[*map(range_text, week.get(day, ()))] for day in (1, 6, 7)]
    return dict(zip(DAY_CLASSES, (*hours, new_hours(holiday_hours)), strict=True))


def _validated(model: type[M], given: dict[str, Any]) -> M:
    """Return a part of a scenario. Raises StudioError for an invalid one."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        says = str(first.get("ctx", {}).get("message", first["msg"]))
        raise StudioError(says) from None


def proposed_holidays(start: str, deadline: str, holidays: str) -> dict[date, str]:
    """Return the holidays between start and deadline, or of five weeks, with their names.

    Empty while the answers cannot be read.
    """
    try:
        begin, code = new_instant(start), new_holidays(holidays)
        end = new_deadline(deadline, begin) or begin + 35 * DAY
    except DialsimError:
        return {}
    calendar = Calendar(holidays=code)
    calendar.resolve(range(thai(begin).year, thai(end).year + 1))
    first, last = thai_date(begin), thai_date(end)
    # Without the other names of a day that has several
    return {d: n.partition(";")[0] for d, n in calendar.names.items() if first <= d <= last}


def new_interval(text: str) -> int | str:
    """Parse a retry interval to ms; `next calling day` stays. Raises StudioError otherwise."""
    if is_next_day(text):
        return NEXT_CALLING_DAY
    try:
        return parse_duration(text)
    except ValueError as error:
        raise StudioError(f"the retry interval {error}") from None


class FirstQuestion(NamedTuple):
    """Question that a new scenario begins with; `field` is a field of `NewScenario`.

    `read` raises StudioError for an answer that cannot be read beside the earlier answers. `least`
    is the smallest whole number, None for an answer that is a text.
    """

    field: str
    label: str
    hint: str
    default: str
    read: Callable[[str, Mapping[str, Any]], object] = lambda text, _: text
    least: int | None = None


FIRST_QUESTIONS = (
    FirstQuestion("lines", "Lines", "calls at a time", "10", least=0),
    FirstQuestion("start", "Start", "Thai time, such as 2026-01-05 09:00", "Mon 09:00",
                  lambda text, _: new_instant(text)),
    FirstQuestion("windows", "Calling hours", "Thai time",
                  "Mon-Fri 09:00-19:00; Sat-Sun 10:00-19:00",
                  lambda text, _: new_week(text)),
    FirstQuestion("holidays", "Holidays", "those of a country by its code, or none", "TH",
                  lambda text, answers: new_holidays(text) and class_hours(
                      new_week(answers["windows"]), "closed")),
    FirstQuestion("holiday_hours", "Hours on holidays", "such as 10:00-16:00, or closed", "closed",
                  lambda text, _: new_hours(text)),
    FirstQuestion("attempts", "Attempts", "calls for a person at most", "3", least=1),
    FirstQuestion("retry_interval", "Retry interval",
                  "from a call in vain to the next, or 'next calling day'", "1h",
                  lambda text, _: new_interval(text)),
    FirstQuestion("deadline", "Deadline", "such as Fri 18:00; may be left out", "",
                  lambda text, answers: new_deadline(text, new_instant(answers["start"]))),
    FirstQuestion("value", "Value of a person reached",
                  "money, or a formula of the list's columns such as 0.1 * amount; may be left out",
                  ""),
)  # fmt: skip
"""Questions of `dialsim new` and of a studio without a scenario, in their order."""
_DEFAULTS = {question.field: question.default for question in FIRST_QUESTIONS}


@dataclass(frozen=True, slots=True)
class NewScenario:
    """Answers for a commented scenario file; instants and times in words.

    `listed` is the name of a clean list, and `params` are the types of the parameters in the list,
    by name. Without a list, `people` are made up. `holidays` is the code of a country or `none`;
    the holidays of `ordinary` count as other days. `deadline` stands in a comment of the file.
    """

    name: str = "January"
    people: int = 1000
    listed: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    lines: int = int(_DEFAULTS["lines"])
    start: str = _DEFAULTS["start"]
    windows: str = _DEFAULTS["windows"]
    holidays: str = _DEFAULTS["holidays"]
    ordinary: tuple[str, ...] = ()
    holiday_hours: str = _DEFAULTS["holiday_hours"]
    attempts: int = int(_DEFAULTS["attempts"])
    retry_interval: str = _DEFAULTS["retry_interval"]
    caller_ids: tuple[str, ...] = ()
    deadline: str = ""
    value: str = ""

    def text(self, file: str = "campaign.yaml") -> str:
        """Return the scenario file, to be named `file`. Raises StudioError for invalid answers."""
        begin = new_instant(self.start)
        end = new_deadline(self.deadline, begin)
        numbers = json.dumps(self.caller_ids)
        own = f"\n    callerIds: {numbers} # numbers to call from" if self.caller_ids else ""
        used = f"          callerIds: {numbers}\n" if self.caller_ids else ""
        goal = "" if end is None else (
            f"# It should be done by {minute_text(end)}, Thai time. How many lines are enough?\n"
            f"#   dialsim plan {file} --vary lines=1..{max(10, 4 * self.lines)} "
            f'--goal "p95(finish) <= {thai(end):%Y-%m-%d %H:%M}"\n'
        )  # fmt: skip
        retry = new_interval(self.retry_interval) if self.attempts > 1 else 0
        calendar, hours, windows = self._when()
        return f"""\
# A scenario of dialsim. All keys are explained in docs/scenario-format.md.
#   dialsim run {file} --out out/first
{goal}version: 1
name: {_quoted(self.name)}
{calendar}organizations:
  - name: Ours
    maxConcurrentCalls: {self.lines} # lines: how many calls at a time{own}
    agents:
      - name: Agent{self._params_schema()}
    campaigns:
      - name: {_quoted(self.name)}
        agent: Agent
        recipients: {self._recipients()}
{hours}        schedule:
          startDateTime: {thai(begin):%Y-%m-%dT%H:%M:%S}+07:00 # {minute_text(begin)}, Thai time
{windows}          maxAttempts: {self.attempts} # calls for a person at most, the first included
          retryInterval: {retry} # from a call in vain to the next; a number is in ms
{used}# What people do when they are called is assumed (docs/default-behaviour.md). To change it:
# behaviours:
#   default:
#     outcomes: {{answered: 0.5, noAnswer: 0.33, busy: 0.05, failed: 0.12}}
#     talkTime: {{dist: lognormal, mean: 75s, sd: 88s, min: 2s, max: 10m}}
# What calls cost, if that is to be counted:
# costs: {{currency: THB, perDial: 0.10, perMinute: 1.20, billingIncrement: 60s}}
{self._value()}"""

    def _when(self) -> tuple[str, str, str]:
        """Return the lines of the calendar, of callingHours and of timeWindows, one of both."""
        code, week = new_holidays(self.holidays), new_week(self.windows)
        said = week_text(week)
        if code is None:
            days = "".join(f"            - {_flow(day)}\n" for day in windows_of(week))
            return "", "", f"          timeWindows: # {said}\n{days}"
        hours = class_hours(week, self.holiday_hours)
        classes = "".join(
            f"          {name}: {json.dumps(spans) if spans else 'closed'}\n"
            for name, spans in hours.items()
        )
        but = f", open: {json.dumps(self.ordinary)}" if self.ordinary else ""
        return (
            f"calendar: {{holidays: {code}{but}}} # dialsim validate lists the holidays\n",
            f"        callingHours: # {said}\n{classes}",
            "",
        )

    def _value(self) -> str:
        if not self.value.strip():
            return ""
        return f"value: {{reached: {_quoted(self.value.strip())}}} # of each person reached\n"

    def _recipients(self) -> str:
        if self.listed is None:
            return f"{{count: {self.people}}} # made-up people; a list: {{file: people.csv}}"
        return f"{{file: {_quoted(self.listed)}}}"

    def _params_schema(self) -> str:
        if not self.params:
            return ""
        entries = (f"{_quoted(name)}: {{type: {kind}}}" for name, kind in self.params.items())
        return f"\n        paramsSchema: {{{', '.join(entries)}}} # columns of the list"


def cleaned(name: str, content: bytes) -> tuple[str, bytes, Mapping[str, str]]:
    """Return a list that can be read strictly: name, content, and the types of its parameters.

    An export that cannot is replaced by the workbook that the list doctor makes of it.
    """
    found = clean_list(content, name)
    if not found.is_as_written:
        name, content = f"{Path(name).stem}-clean.xlsx", found.workbook()
    return name, content, found.types


def faults_of(answers: Mapping[str, str], *, listed: bool) -> dict[str, str]:
    """Return the errors in the answers to the first questions, by field."""
    faults = {}
    people = FirstQuestion("people", "People", "", "1000", least=None if listed else 1)
    for name, _, _, example, read, least in (*FIRST_QUESTIONS, people):
        text = answers[name].replace(",", "").strip()
        # isdigit() alone would accept digits of all scripts.
        if least is not None and not (text.isascii() and text.isdigit() and int(text) >= least):
            faults[name] = f"must be a whole number from {least} on, such as {example}"
        try:
            read(answers[name], answers)
        except DialsimError as error:
            # A fault of an earlier answer is raised again; it is reported only with that answer.
            if str(error) not in faults.values():
                faults[name] = str(error)
    return faults


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _flow(day: dict[str, object]) -> str:
    """Return a day's windows in YAML flow style."""
    times = json.dumps(day["time"]).replace('"start"', "start").replace('"end"', "end")
    return f"{{dayOfWeek: {day['dayOfWeek']}, time: {times}}}"
