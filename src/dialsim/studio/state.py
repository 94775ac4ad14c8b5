"""The state of a studio: a scenario, what was changed of it, and what can be changed.

A state is a value: changes make a new one, so that what is shown, pinned, undone and linked can't
be changed behind anybody's back. Changes are texts as `--set` takes them.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import shlex
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dialsim.interface.errors import DialsimError
from dialsim.interface.instants import format_instant
from dialsim.scenario.behaviour import Behaviour
from dialsim.scenario.campaign import Campaign, GeneratedRecipients
from dialsim.scenario.loading import files_of, load, long_path
from dialsim.scenario.organization import Organization
from dialsim.scenario.scenario import Scenario
from dialsim.scenario.units import format_duration
from dialsim.scenario.week import week_text

MOST_STEPS = 200
"""So many steps can be undone."""


class StudioError(DialsimError):
    """Something that a studio can't do, such as open a link to a file that has changed."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A variant that is kept beside the one being changed."""

    name: str
    differences: tuple[str, ...]
    scenario: Scenario = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StudioState:
    """A base scenario and its differences, `PATH=VALUE` each; `scenario` is both together.

    `past` and `future` are what `undo` and `redo` go back and on to, the nearest last.
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

    @classmethod
    def of(cls, scenario: str | os.PathLike[str] | Scenario) -> StudioState:
        """Begin with a scenario file, or with a scenario from `dialsim.load` or `dialsim.loads`.

        The lists of people are kept from then on, so that a file that vanishes hurts nobody. Raises
        ScenarioError for a file with problems, DialsimError for a scenario made by hand.
        """
        base = scenario if isinstance(scenario, Scenario) else load(scenario)
        origin = base.origin
        if origin is None:
            raise StudioError("only scenarios from dialsim.load or dialsim.loads can be varied")
        kept = replace(origin, kept=files_of(base))
        return cls(base.loaded(kept, base.remarks), (), base.loaded(kept, base.remarks))

    # -- changes ----------------------------------------------------------------------------------

    def set(self, path: str, text: str) -> StudioState:
        """Replace the value at a path, long or short; `PATH+` adds to a list, `PATH-` takes away.

        Raises ScenarioError, whose text says why, for a value that the scenario can't have.
        """
        return self.with_lines(f"{path}={text}")

    def with_lines(self, *lines: str) -> StudioState:
        """The state after several changes at once, which one `undo` takes back."""
        differences = self.differences
        for line in lines:
            path, _, _ = line.partition("=")
            if not path.rstrip().endswith(("+", "-")):
                differences = tuple(old for old in differences if not self._replaces(path, old))
            differences = (*differences, line)
        return self._changed(differences)

    def reset(self, path: str) -> StudioState:
        """Take every change of a path back: the value is again the one of the file."""
        return self._changed(
            tuple(old for old in self.differences if not self._replaces(path, old))
        )

    def without(self, line: str) -> StudioState:
        """Take one of the differences back."""
        return self._changed(tuple(old for old in self.differences if old != line))

    def clear(self) -> StudioState:
        """Take all differences back."""
        return self._changed(())

    def undo(self) -> StudioState:
        """The state before the last change; the same one if there is none."""
        if not self.past:
            return self
        *past, (differences, scenario) = self.past
        future = (*self.future, (self.differences, self.scenario))
        return replace(
            self, differences=differences, scenario=scenario, past=tuple(past), future=future
        )

    def redo(self) -> StudioState:
        """The state before the last `undo`; the same one if there is none."""
        if not self.future:
            return self
        *future, (differences, scenario) = self.future
        past = (*self.past, (self.differences, self.scenario))
        return replace(
            self, differences=differences, scenario=scenario, past=past, future=tuple(future)
        )

    def _changed(self, differences: tuple[str, ...]) -> StudioState:
        if differences == self.differences:
            return self
        scenario = self.base.with_(*differences) if differences else self.base
        past = (*self.past, (self.differences, self.scenario))[-MOST_STEPS:]
        return replace(self, differences=differences, scenario=scenario, past=past, future=())

    def _replaces(self, path: str, line: str) -> bool:
        """Whether a difference is about the same path."""
        old, _, _ = line.partition("=")
        return self._full(path) == self._full(old)

    def _full(self, path: str) -> str:
        path = path.strip().rstrip("+-").strip()
        try:
            return long_path(self.base, path)
        except DialsimError:
            return path  # of something that the differences add

    # -- pins -------------------------------------------------------------------------------------

    def pin(self, name: str = "") -> StudioState:
        """Keep the scenario as it is now under a name, `variant 1` and so on by default."""
        taken = {pin.name for pin in self.pins}
        if not name:
            name = next(n for k in range(1, len(taken) + 2) if (n := f"variant {k}") not in taken)
        kept = tuple(pin for pin in self.pins if pin.name != name)
        return replace(self, pins=(*kept, Pin(name, self.differences, self.scenario)))

    def unpin(self, name: str) -> StudioState:
        """Forget a pin."""
        return replace(self, pins=tuple(pin for pin in self.pins if pin.name != name))

    def restore(self, name: str) -> StudioState:
        """Go back to a pin, as a change that can be undone. Raises StudioError without one."""
        pin = next((pin for pin in self.pins if pin.name == name), None)
        if pin is None:
            raise StudioError(f"there is no pin {name}")
        return self._changed(pin.differences)

    # -- telling it on ----------------------------------------------------------------------------

    def set_lines(self) -> list[str]:
        """The differences as options that can be pasted behind a command."""
        return [f"--set {shlex.quote(line)}" for line in self.differences]

    def command(self, replications: int | None = None) -> str:
        """The command that makes the same runs."""
        origin = self.base.origin
        assert origin is not None
        words = ["dialsim", "run", str(origin.file or origin.name)]
        for line in (*origin.overrides, *self.differences):
            words += ["--set", line]
        if replications is not None:
            words += ["--replications", str(replications)]
        return shlex.join(words)

    def link(self) -> str:
        """The differences and pins in a form that a URL's fragment can have."""
        origin = self.base.origin
        assert origin is not None
        content = {
            "file": None if origin.file is None else str(origin.file.absolute()),
            "overrides": origin.overrides,
            "digest": self.base.digest,
            "set": self.differences,
            "pins": [[pin.name, pin.differences] for pin in self.pins],
        }
        packed = zlib.compress(json.dumps(content, ensure_ascii=False).encode(), 9)
        return base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def from_link(cls, link: str, opened: StudioState | None = None) -> StudioState:
        """Restore the state of a link, whose file must say what it said then.

        With `opened` the link must be to the scenario that is open there, and no file is read; that
        is for servers, whose guests must not name files. Raises StudioError for a link that can't
        be read, or whose scenario has changed or vanished, ScenarioError for a file with problems.
        """
        content = _unpacked(link)
        base = _base_of(content, opened)
        if base.base.digest != content["digest"]:
            name = content["file"] or "the scenario"
            raise StudioError(
                f"{name} or a list that it names has changed since this link was made, so its "
                "figures can't be shown again"
            )
        state = base.with_lines(*content["set"]) if content["set"] else base
        for name, differences in content["pins"]:
            pinned = base.with_lines(*differences).scenario if differences else base.scenario
            state = replace(state, pins=(*state.pins, Pin(name, tuple(differences), pinned)))
        return replace(state, past=(), future=())


_LONGEST_LINK = 200_000


def _unpacked(link: str) -> dict[str, Any]:
    """What a link says."""
    broken = StudioError("this link is not one of a studio, or a part of it is missing")
    try:
        padded = link.strip().lstrip("#") + "=" * (-len(link.strip().lstrip("#")) % 4)
        packed = base64.b64decode(padded, altchars=b"-_", validate=True)
        unzip = zlib.decompressobj()
        content = json.loads(unzip.decompress(packed, _LONGEST_LINK))
        texts = [*content["set"], *content["overrides"], content["digest"]]
        texts += [text for name, lines in content["pins"] for text in (name, *lines)]
        sound = all(isinstance(text, str) for text in texts)
        sound &= isinstance(content["file"], str | None)
    except (binascii.Error, zlib.error, ValueError, KeyError, TypeError):
        raise broken from None
    if not sound:
        raise broken
    return dict(content)


def _base_of(content: Mapping[str, Any], opened: StudioState | None) -> StudioState:
    file = content["file"]
    if opened is not None:
        return replace(opened, differences=(), scenario=opened.base, pins=(), past=(), future=())
    if file is None:
        raise StudioError("this link is to a scenario that was never saved: open its file instead")
    if not Path(file).is_file():
        raise StudioError(f"{file} is not there any more, so this link can't be opened")
    return StudioState.of(load(file, content["overrides"]))


# -- levers ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lever:
    """Something that can be changed, and how.

    `kind` is number, share, duration, instant, windows or list. `value` is a number (a duration in
    ms, an instant in ms since 1970), a week `{day: ((first, last minute), …)}` with days from 1, or
    a tuple of texts; None where nothing is set. `text` is the same as `--set` takes it. `low`,
    `high` and `step` are what a slider offers, and not all that is possible.
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
"""The places of an organization and of a campaign in it, from 0."""


def campaigns(scenario: Scenario) -> Iterator[tuple[Position, str, int]]:
    """Each campaign: its position, its name (with the organization's where there are several), and
    how many people it has."""
    several = len(scenario.organizations) > 1
    for o, organization in enumerate(scenario.organizations):
        for c, campaign in enumerate(organization.campaigns):
            name = f"{organization.name}/{campaign.name}" if several else campaign.name
            yield (o, c), name, campaign.size


def levers(scenario: Scenario, campaign: Position = (0, 0)) -> list[Lever]:
    """The levers of a campaign, of its organization, and of the behaviour of its people.

    None of what the scenario doesn't have: without a campaign only those of the organization.
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
    """The full path of an organization, as `--set` takes it."""
    return _part("organizations", scenario.organizations[organization].name, organization)


def path_to_campaign(scenario: Scenario, campaign: Position) -> str:
    """The full path of a campaign, as `--set` takes it."""
    o, c = campaign
    name = scenario.organizations[o].campaigns[c].name
    return f"{path_to_organization(scenario, o)}.{_part('campaigns', name, c)}"


def _part(key: str, name: str, place: int) -> str:
    """The part of a path that leads to an item of a list: by its name, where that is plain."""
    plain = name.strip() == name and name and not (set(name) & set("=\n")) and not name.isdigit()
    return f"{key}.{name if plain and name[-1] not in '+-' else place}"


def _number(path: str, label: str, group: str, unit: str, value: int, low: int, high: int) -> Lever:
    return Lever(path, label, group, "number", unit, value, str(value), low, max(high, value), 1)


def _of_organization(organization: Organization, path: str) -> Iterator[Lever]:
    lines = organization.max_concurrent_calls or 0
    yield _number(
        f"{path}.maxConcurrentCalls", "Lines", "Lines", "lines", lines, 0, max(20, 4 * lines)
    )


_HOUR = 3_600_000
_DAY = 24 * _HOUR


def _of_campaign(campaign: Campaign, organization: Organization, path: str) -> Iterator[Lever]:
    if isinstance(campaign.recipients, GeneratedRecipients):
        people = campaign.recipients.count
        yield _number(f"{path}.recipients.count", "People", "People", "people", people, 0,
                      max(1000, 4 * people))  # fmt: skip
    request = campaign.schedule
    if request is None:
        return
    below = f"{path}.schedule"
    start, end = request.start_date_time, request.end_date_time
    yield Lever(f"{below}.startDateTime", "Start", "When", "instant", "Thai time", start,
                format_instant(start), start - 7 * _DAY, start + 28 * _DAY, _HOUR / 4)  # fmt: skip
    yield Lever(f"{below}.endDateTime", "End", "When", "instant", "Thai time", end,
                "" if end is None else format_instant(end), start, start + 56 * _DAY,
                _HOUR / 4)  # fmt: skip
    if campaign.plan is None:
        week = {
            day.day_of_week: tuple((span.start_minute, span.end_minute) for span in day.time)
            for day in request.time_windows
        }
        yield Lever(f"{below}.timeWindows", "Windows", "When", "windows", "Thai time", week,
                    week_text(week))  # fmt: skip
    attempts = request.max_attempts
    yield _number(f"{below}.maxAttempts", "Attempts", "Attempts", "calls a person", attempts, 1,
                  max(10, 2 * attempts))  # fmt: skip
    interval = request.retry_interval
    yield Lever(f"{below}.retryInterval", "Retry interval", "Attempts", "duration", "ms", interval,
                format_duration(interval), 0, max(2 * _DAY, 2 * interval), 5 * 60_000)  # fmt: skip
    numbers = request.caller_ids or ()
    yield Lever(f"{below}.callerIds", "Caller IDs", "Caller IDs", "list", "numbers", numbers,
                json.dumps(list(numbers)) if numbers else "",
                choices=organization.caller_ids)  # fmt: skip


def _of_behaviour(
    scenario: Scenario, campaign: Campaign, organization: Organization
) -> Iterator[Lever]:
    agent = next(agent for agent in organization.agents if agent.name == campaign.agent)
    name = agent.behaviour or "default"
    behaviour: Behaviour = scenario.behaviours[name]
    path = f"behaviours.{name}"
    answered = behaviour.outcomes.answered
    reachable = behaviour.people.reachable if behaviour.people else 1.0
    yield Lever(f"{path}.outcomes.answered", "Answered", "People's behaviour", "share",
                "share of attempts", answered, f"{answered:g}", 0.01,
                round(min(reachable, 1 - behaviour.outcomes.failed), 3), 0.01)  # fmt: skip
