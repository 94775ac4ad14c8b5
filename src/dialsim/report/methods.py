"""Methods statement of a result: what a reader needs to repeat and judge the study.

It follows the order of STRESS-DES (Monks et al. 2019) and is filled in from the scenario and the
manifest of the folder. The text stands in `templates/methods.md`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import yaml

from dialsim.errors import DialsimError
from dialsim.experiments.forecast import KIND
from dialsim.experiments.variants import DRAWS
from dialsim.interface.instants import date_text, midnight, minute_text
from dialsim.interface.phrases import counted
from dialsim.language import templates
from dialsim.results.figures import FIGURES
from dialsim.results.folder import FILE, SOURCE, SUMMARY, read_manifest, read_source
from dialsim.scenario.behaviour import BUILT_IN
from dialsim.scenario.campaign import Campaign, GeneratedRecipients, RecipientsFile
from dialsim.scenario.compiled_hours import holidays_listed
from dialsim.scenario.loading import files_of, with_masked_keys
from dialsim.scenario.scenario import Origin, Scenario
from dialsim.scenario.units import format_duration
from dialsim.scenario.week import week_lines, week_of

NAME = "methods.md"
_VARIANTS = "variants.yaml"
_SEARCH = ("objective", "maximize", "minimize", "indifference", "replications", "max_replications",
           "within")  # fmt: skip

_ASSUMPTIONS = (
    ("Q1", "A line is held from the dial to the end of the call, setup and ringing included."),
    ("Q2, Q3", "How calls enter the queue, and which goes first, is assumed, not stated."),
    ("Q5, R2", "A call that times out in the queue is made again after the retry interval."),
    ("R2", "The chance of an answer does not depend on the time since the attempt before."),
    ("R3", "Everybody who answers counts as reached, voicemail included."),
    ("C3", "A campaign is over when its last call is; analyses are not waited for."),
    ("P7", "People differ in their chance to answer; attempts depend on each other by it alone."),
    ("", "Times to set up, ring and talk are independent of each other, the hour and the person."),
    ("", "Nobody calls back or blocks a number, and lines never fail together."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Study:
    """Facts of one kind of experiment: its aim, its command, and further files of the command."""

    aim: str
    command: list[str]
    estimation: list[str]
    files: dict[str, str]
    variants: str = "none; the scenario as it is."
    figures: list[str] = field(default_factory=list)
    engine: str = "both engines, SimPy and compiled, give the same results"


def methods(folder: Path) -> str:
    """Return the methods statement of a result's folder, as Markdown.

    Raises DialsimError if the folder is not a finished result, or its scenario or lists changed.
    """
    said = read_manifest(folder)
    if not said.get("finished", True):
        raise DialsimError(f"{folder} is not finished; the command that made it goes on with it")
    scenario, origin = read_source(folder), _origin(folder)
    found = orjson.loads((folder / SUMMARY).read_bytes())
    study = _study(said, found, folder)
    own_seeds = said.get("experiment") in ("sweep", "plan", "optimum")
    # A variant may name a seed, which an option would override.
    seed = [] if own_seeds and said["seed"] == scenario.seed else ["--seed", str(said["seed"])]
    sets = [word for text in origin.overrides for word in ("--set", text)]
    command = shlex.join(["dialsim", *study.command, *seed, *sets])
    named = [c for organization in scenario.organizations for c in organization.campaigns]
    # Markdown would show HTML entities as they are.
    made = templates("dialsim.report").overlay(autoescape=False)
    text = made.get_template(NAME).render(
        scenario=scenario,
        said={"machine": None, "wall_seconds": None, **said},
        study=study,
        command=command,
        figures=[
            (figure.name, figure.unit, _LINK.sub("", figure.meaning))
            for figure in FIGURES
            if figure.label or figure.name == "finish"
        ],
        engine=scenario.engine,
        release=_release(scenario.engine.release_interval),
        people=sum(campaign.size for campaign in named),
        campaigns=[_campaign(campaign) for campaign in named],
        holidays=_holidays(scenario),
        lists={name: sha256(file).hexdigest() for name, file in files_of(scenario).items()},
        processing=" ".join(_processing(named)) or "none.",
        behaviours=_behaviours(scenario),
        assumptions=[*_unknown_behaviour(scenario), *_ASSUMPTIONS],
        start=f"{minute_text(scenario.clock.start)} Thai time",
        initial=_initial(named),
        length=_length(scenario),
        libraries=", ".join(f"{name} {version}" for name, version in said["libraries"].items()),
        counted=counted,
        duration=format_duration,
        fenced=_fenced,
    )
    # Parts that a scenario lacks leave blank lines in the template.
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


_LINK = re.compile(r", see \[below\]\([^)]*\)")  # to another part of the page of figures


def _origin(folder: Path) -> Origin:
    """Return the text of a folder's scenario and its overrides, without API keys."""
    origin = with_masked_keys(read_source(folder)).origin
    if origin is None:
        raise DialsimError(f"{folder / SOURCE} has an API key in a form that can't be masked")
    return origin


def _unknown_behaviour(scenario: Scenario) -> Iterator[tuple[str, str]]:
    if BUILT_IN in scenario.behaviours.values():
        yield "", "How people answer is the built-in default: no figures of Thailand are known."


def _study(said: Mapping[str, Any], found: Mapping[str, Any], folder: Path) -> _Study:
    kind, asked = said.get("experiment", "run"), said.get("arguments", {})
    files = {SOURCE: _origin(folder).text}
    shown = list(asked.get("figures", ()))
    options = [word for text in shown for word in ("--figure", text)]
    if kind == "run":
        number, engine = str(said["replication"]), said["engine"]
        command = ["run", SOURCE, "--replication", number, "--engine", engine]
        only = f"one run, replication {number}. It tells nothing of how far chance moves a figure."
        ran = f"the run was made by the engine {engine}; both engines give the same results"
        return _Study("simulate the scenario once.", command, [only], files, engine=ran)
    if kind in ("replications", KIND):
        count = found["replications"]
        command = ["run", SOURCE, "--replications", str(count), *options]
        aim = "estimate the figures of the scenario, and how far chance moves them."
        estimation = [f"{count} independent replications, numbered from 0.", *_precision(found)]
        if kind == KIND:
            aim = "forecast running campaigns from the instant at which the clock starts."
            command[0] = "forecast"
            if asked["draws"]:
                files[DRAWS] = _yaml(asked["draws"])
                command += ["--draws", DRAWS]
                count = len(asked["draws"])
                estimation.append(f"They share out {count} behaviours that may be true.")
        return _Study(aim, command, [*estimation, _INTERVALS], files, figures=shown)
    if kind in ("sweep", "comparison"):
        return _sweep(kind, found, files, folder, options, shown)
    goals = [asked["goal"]] if isinstance(asked["goal"], str) else asked["goal"]
    varied = asked["vary"]
    values = [varied]
    if not isinstance(varied, str):
        values = [f"{path}={','.join(listed)}" for path, listed in varied.items()]
    command = ["plan", SOURCE]
    for option, texts in (("--vary", values), ("--goal", goals)):
        command += [word for text in texts for word in (option, text)]
    for name in _SEARCH:
        if asked.get(name) is not None:
            # The manifest has seconds, the option takes a length of time with its unit.
            unit = "s" if name == "within" else ""
            command += [f"--{name.replace('_', '-')}", f"{asked[name]}{unit}"]
    wanted = [f"meet {' and '.join(goals)}"] if goals else []
    wanted += [f"{name} {asked[name]}" for name in ("maximize", "minimize") if asked.get(name)]
    wanted += [f"take the {asked['objective']} such value"] if "objective" in asked else []
    runs, most = asked["replications"], asked["max_replications"]
    estimation = [
        f"each value of the settings is run {runs} times at first, in doubt up to {most} times.",
        "Whether it meets the goal is decided at 95 % confidence; not every value is tried.",
        _INTERVALS,
    ]
    aim = f"find the setting that serves to {', and '.join(wanted)}."
    return _Study(aim, command, estimation, files, f"{', '.join(f'`{v}`' for v in values)}.")


def _sweep(
    kind: str,
    found: Mapping[str, Any],
    files: dict[str, str],
    folder: Path,
    options: list[str],
    shown: list[str],
) -> _Study:
    names = [part["variant"] for part in found["variants"]]
    command, decided = ["sweep", SOURCE, "--variants", _VARIANTS], found.get("decided")
    if kind == "comparison":
        own = (folder / f"{FILE}{number}" for number in range(2, len(names) + 1))
        texts = [files[SOURCE], *(_origin(other).text for other in own)]
        files = dict(zip((f"{name}.yaml" for name in names), texts, strict=True))
        command = ["compare", *files]
    else:
        changes = {part["variant"]: part["changes"] for part in found["variants"]}
        files[_VARIANTS] = _yaml(changes)
    count = found["replications"] if decided is None else decided["most"]
    command += ["--replications", str(count), "--baseline", found["baseline"], *options]
    estimation = [
        f"{count} replications of each variant, all with the same chance; differences are of pairs."
    ]
    if found["adjustment"]:
        command += ["--adjust", found["adjustment"]]
        method = found["adjustment"].title()
        estimation.append(f"Intervals of differences are adjusted by the method of {method}.")
    if decided is not None:
        share = decided["indifference"]
        command += ["--decide", decided["figure"], "--indifference", f"{share!r}"]
        estimation.append(
            f"A variant gets no more runs once it surely differs from the baseline in "
            f"{decided['figure']}, or is alike within {100 * share:g} %."
        )
    aim = f"estimate how variants differ from {found['baseline']}."
    listed = f"{', '.join(names)}; section 6 lists what they change."
    return _Study(aim, command, [*estimation, _INTERVALS], files, listed, shown)


_INTERVALS = (
    "Intervals have 95 % confidence: of means Student's t, for positive figures on the scale of "
    "logarithms; of quantiles order statistics; of shares Clopper and Pearson."
)


def _precision(found: Mapping[str, Any]) -> Iterator[str]:
    for part in found.get("precision", ()):
        met = "met" if part["met"] else "not met"
        yield (
            f"Runs were added until the interval of the mean of {part['figure']} was within "
            f"{100 * part['wanted']:g} % of it, which was {met}."
        )


def _campaign(campaign: Campaign) -> dict[str, Any]:
    request, listed = campaign.schedule, campaign.recipients
    if isinstance(listed, GeneratedRecipients):
        made_up = counted(campaign.size, "made-up person", "made-up people")
        people = f"{made_up}, others in each replication"
    elif isinstance(listed, RecipientsFile):
        people = f"{counted(campaign.size, 'person', 'people')} of `{listed.file}`"
    else:
        people = f"{counted(campaign.size, 'person', 'people')} listed in the scenario"
    shown: dict[str, Any] = {"title": campaign.name, "people": people, "attempts": 0, "end": None}
    if request is None:
        later = "as the timeline of the scenario schedules it"
        return shown | {"interval": later, "hours": later, "start": "then on"}
    return shown | {
        "attempts": request.max_attempts,
        "interval": format_duration(request.retry_interval),
        "hours": "; ".join(week_lines(week_of(request.time_windows))),
        "start": minute_text(request.start_date_time),
        "end": request.end_date_time and minute_text(request.end_date_time),
    }


def _release(interval: int) -> str:
    return f"every {format_duration(interval)}" if interval else "whenever there is room"


def _holidays(scenario: Scenario) -> str:
    if scenario.calendar is None:
        return "no day counts as one."
    listed = holidays_listed(scenario).items()
    return ", ".join(f"{date_text(midnight(day))} {name}" for day, name in listed) or "none."


def _processing(campaigns: list[Campaign]) -> Iterator[str]:
    for campaign in campaigns:
        listed = campaign.recipients
        if not isinstance(listed, RecipientsFile):
            continue
        settings = listed.model_dump(by_alias=True, exclude_defaults=True, exclude={"file"})
        if settings:
            said = "; ".join(f"{key} `{_plain(value)}`" for key, value in settings.items())
            yield f"List of {campaign.name}: {said}."
        for cells in listed.table.normalized:
            yield f"{counted(cells.count, 'cell')} of {cells.column} rewritten."


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _initial(campaigns: list[Campaign]) -> str:
    tables = (c.recipients.table for c in campaigns if isinstance(c.recipients, RecipientsFile))
    known = sum(len(table.history) for table in tables)
    listed = (c.recipients for c in campaigns if isinstance(c.recipients, tuple))
    known += sum(person.history is not None for people in listed for person in people)
    if not known:
        return "The system is empty: nobody was called before."
    return f"{counted(known, 'person has', 'people have')} a history of calls before that (C1, P8)."


def _length(scenario: Scenario) -> str:
    if scenario.clock.end is not None:
        return f"to {minute_text(scenario.clock.end)} Thai time, or until nothing can change (T5)."
    return "until no call and no campaign can change any more (T5)."


def _behaviours(scenario: Scenario) -> str:
    plain = {
        name: behaviour.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name, behaviour in scenario.behaviours.items()
    }
    return _yaml(plain)


def _yaml(value: object) -> str:
    text: str = yaml.safe_dump(value, allow_unicode=True, sort_keys=False, width=1000)
    return text


def _fenced(language: str, text: str) -> str:
    """Return a block of code, in a fence that the text can't close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
