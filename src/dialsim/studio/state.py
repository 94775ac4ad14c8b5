"""The state of a studio: a scenario and its changes, its links and its file.

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
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from dialsim.errors import DialsimError, ScenarioError, StudioError
from dialsim.experiments.variants import DRAWS, variants_in
from dialsim.scenario.behaviour import BUILT_IN, Behaviour
from dialsim.scenario.campaign import GeneratedRecipients
from dialsim.scenario.distribution import Gamma, Lognormal, Weibull
from dialsim.scenario.document import decoded, read_bytes
from dialsim.scenario.loading import document_of, files_of, load, loads, long_path
from dialsim.scenario.new_scenario import NewScenario, cleaned, new_deadline, new_hours, new_instant
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.units import format_duration, parse_duration
from dialsim.studio.levers import Lever, Position, campaign_at, named_path, path_to_organization

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
        """Create a state from answers to the first questions and `content`, the bytes of an
        exported list.

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
                differences = self._others(full, differences)
            differences = (*differences, f"{full}{change}{equals}{text}")
        return self._changed(differences)

    def reset(self, path: str) -> StudioState:
        """Undo all changes at a path: its value is again the one in the file."""
        return self._changed(self._others(self._full(path), self.differences))

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

    def _others(self, full: str, differences: tuple[str, ...]) -> tuple[str, ...]:
        """Return the differences whose path is not the given one, which is a full path."""
        return tuple(old for old in differences if self._full(old.partition("=")[0]) != full)

    def _full(self, path: str) -> str:
        path = path.strip().rstrip("+-").strip()
        try:
            return named_path(long_path(self.scenario, path), self.scenario)
        except DialsimError:
            # The scenario refuses the path, or a removed difference had added its target
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
            # A behaviour in the file lacks the `people` of the built-in one: they are added
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

    # -- saving and sharing ------------------------------------------------------------------------

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
