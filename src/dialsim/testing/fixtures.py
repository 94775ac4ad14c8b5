"""What the pytest fixtures hand out: callables that take a scenario of any kind and run it.

With the commands that run again what a test ran, for the text below a failure.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dialsim.interface.errors import DialsimError

if TYPE_CHECKING:
    from dialsim.engine.simulation import Simulation
    from dialsim.results.result import Result
    from dialsim.sandbox.client.records import OrganizationRecord
    from dialsim.sandbox.client.sandbox import Sandbox
    from dialsim.scenario.scenario import Scenario
    from dialsim.testing.sketch import Sketch


@dataclass(frozen=True, slots=True)
class Replay:
    """One run of a test; `file` is None where the scenario is no file as it stands."""

    file: Path | None
    overrides: tuple[str, ...]
    seed: int
    replication: int

    def command(self, folder: Path) -> str | None:
        """The command line, for a shell in `folder`, that runs the same; None without a file."""
        if self.file is None:
            return None
        words = ["dialsim", "run", relative(self.file, folder), "--seed", str(self.seed)]
        if self.replication:
            words += ["--replication", str(self.replication)]
        for override in self.overrides:
            words += ["--set", override]
        return shlex.join(words)


def commands(node_id: str, seed: int | None, replays: Sequence[Replay], folder: Path) -> list[str]:
    """The command that runs the test again, with the seed it was given, then those of its runs."""
    words = ["pytest", node_id]
    if seed is not None:
        words += ["--dialsim-seed", str(seed)]
    runs = (replay.command(folder) for replay in replays)
    return [shlex.join(words), *dict.fromkeys(run for run in runs if run is not None)]


def relative(path: Path, folder: Path) -> str:
    """The path as a shell in `folder` would write it."""
    return os.path.relpath(path, folder)


class ScenarioReader:
    """Reads the scenarios of one test, with the seed it was given, and notes what it has run.

    A relative path is looked for beside the test first and then in `root`.
    """

    def __init__(self, folder: Path, root: Path, seed: int | None) -> None:
        """`seed` None means the scenario's own."""
        self.folder = folder
        self.root = root
        self.seed = seed
        self.replays: list[Replay] = []

    def read(
        self,
        source: Scenario | Sketch | Path | str,
        overrides: str | Sequence[str],
        seed: int | None,
        replication: int,
    ) -> tuple[Scenario, int]:
        """The scenario, and the seed to run it with: that of the call, the test or the scenario."""
        from dialsim.scenario.scenario import Scenario, override_texts

        scenario = self._load(source, overrides)
        chosen = next(s for s in (seed, self.seed, scenario.seed) if s is not None)
        as_it_stands = scenario.source if not isinstance(source, Scenario) else None
        self.replays.append(Replay(as_it_stands, override_texts(overrides), chosen, replication))
        return scenario, chosen

    def _load(
        self, source: Scenario | Sketch | Path | str, overrides: str | Sequence[str]
    ) -> Scenario:
        from dialsim.scenario.loading import is_text, load, loads
        from dialsim.scenario.scenario import Scenario
        from dialsim.testing.sketch import Sketch

        match source:
            case Scenario():
                if overrides:
                    raise DialsimError(
                        "overrides replace values before a scenario is read: "
                        "give the file, its text or the sketch"
                    )
                return source
            case Sketch():
                return source.scenario(overrides)
            case str() if is_text(source):
                return loads(source, folder=self.folder, overrides=overrides)
        return load(self._find(Path(source)), overrides)

    def _find(self, path: Path) -> Path:
        beside = self.folder / path
        return beside if beside.exists() else self.root / path


class Runner:
    """The fixture `dialsim_run`: runs a scenario to its end.

    `source` is a scenario file's path (relative to the test's folder or to pytest's root), the text
    of one, a `Sketch` or a loaded `Scenario`. The seed is `seed`, else that of `--dialsim-seed`,
    else the scenario's.
    """

    def __init__(self, reader: ScenarioReader) -> None:
        self._reader = reader

    def __call__(
        self,
        source: Scenario | Sketch | Path | str,
        overrides: str | Sequence[str] = (),
        *,
        seed: int | None = None,
        replication: int = 0,
    ) -> Result:
        """Run it; `overrides` are texts `PATH=VALUE`, as for `dialsim run --set`."""
        from dialsim.results.result import run

        scenario, chosen = self._reader.read(source, overrides, seed, replication)
        return run(scenario, seed=chosen, replication=replication)


class Stepper:
    """The fixture `dialsim_simulation`: a scenario to be stepped by hand; otherwise as `Runner`."""

    def __init__(self, reader: ScenarioReader) -> None:
        self._reader = reader

    def __call__(
        self,
        source: Scenario | Sketch | Path | str,
        overrides: str | Sequence[str] = (),
        *,
        seed: int | None = None,
        replication: int = 0,
    ) -> Simulation:
        """The simulation at clock.start."""
        from dialsim.engine.simulation import Simulation

        scenario, chosen = self._reader.read(source, overrides, seed, replication)
        return Simulation(scenario, chosen, replication)


class Host:
    """The fixture `dialsim_sandbox`: serves scenarios until the test is over.

    `source`, `overrides` and `seed` are those of `Runner`. Results are sent to `webhook_url`, by
    default to the URL of `dialsim_receiver` if the test has one, else as the scenario says.
    """

    def __init__(self, reader: ScenarioReader, webhook_url: str | None) -> None:
        self._reader = reader
        self._webhook_url = webhook_url
        self._started: list[Sandbox] = []

    def __call__(
        self,
        source: Scenario | Sketch | Path | str,
        overrides: str | Sequence[str] = (),
        *,
        seed: int | None = None,
        webhook_url: str | None = None,
    ) -> Sandbox:
        """A sandbox that has been started, with its clock at clock.start."""
        from dialsim.sandbox.client.sandbox import Sandbox

        scenario, chosen = self._reader.read(source, overrides, seed, replication=0)
        sandbox = Sandbox(scenario, seed=chosen, webhook_url=webhook_url or self._webhook_url)
        self._started.append(sandbox.start())
        return sandbox

    def stop(self) -> None:
        """Stop all of them, the last first; raises what any of them raises."""
        with ExitStack() as stack:
            for sandbox in self._started:
                stack.callback(sandbox.stop)


class Tenants:
    """The fixture `dialsim_organization`: an organization of the test's own.

    It is for a sandbox that several tests share. It is named after the test, and its results are
    sent to `webhook_url`, if there is one.
    """

    def __init__(self, name: str, webhook_url: str | None) -> None:
        self._name = name
        self._webhook_url = webhook_url

    def __call__(
        self, sandbox: Sandbox, like: str | None = None, **settings: object
    ) -> OrganizationRecord:
        """Add it, like an organization of the sandbox, by default the first one.

        `settings` are keys of an organization in a scenario file, such as `maxConcurrentCalls=5`.
        """
        there = [*sandbox.api_keys]
        name, count = self._name, 1
        while name in there:
            count += 1
            name = f"{self._name} {count}"
        if self._webhook_url is not None:
            settings = {"webhook": {"url": self._webhook_url}} | settings
        return sandbox.add_organization(
            {"name": name} | settings, there[0] if like is None else like
        )
