"""A test's bench: a scenario of any kind in, a result, a simulation or a sandbox out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from dialsim.interface.errors import DialsimError
from dialsim.testing.replay import Replay

if TYPE_CHECKING:
    from dialsim.engine.simulation import Simulation
    from dialsim.results.result import Result
    from dialsim.sandbox.sandbox import Sandbox
    from dialsim.scenario.models import Scenario
    from dialsim.testing.sketch import Sketch


class Bench:
    """Where one test reads scenarios, which seed it was given, and what it has run so far.

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
        from dialsim.scenario.models import Scenario
        from dialsim.scenario.overrides import override_texts

        scenario = self._load(source, overrides)
        chosen = next(s for s in (seed, self.seed, scenario.seed) if s is not None)
        as_it_stands = scenario.source if not isinstance(source, Scenario) else None
        self.replays.append(Replay(as_it_stands, override_texts(overrides), chosen, replication))
        return scenario, chosen

    def _load(
        self, source: Scenario | Sketch | Path | str, overrides: str | Sequence[str]
    ) -> Scenario:
        from dialsim.scenario.loading import is_text, load, loads
        from dialsim.scenario.models import Scenario
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

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def __call__(
        self,
        source: Scenario | Sketch | Path | str,
        overrides: str | Sequence[str] = (),
        *,
        seed: int | None = None,
        replication: int = 0,
    ) -> Result:
        """Run it; `overrides` are texts `PATH=VALUE`, as for `dialsim run --set`."""
        from dialsim.results.runs import run

        scenario, chosen = self._bench.read(source, overrides, seed, replication)
        return run(scenario, seed=chosen, replication=replication)


class Stepper:
    """The fixture `dialsim_simulation`: a scenario to be stepped by hand; otherwise as `Runner`."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

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

        scenario, chosen = self._bench.read(source, overrides, seed, replication)
        return Simulation(scenario, chosen, replication)


class Host:
    """The fixture `dialsim_sandbox`: serves scenarios until the test is over.

    `source`, `overrides` and `seed` are those of `Runner`. Results are sent to `webhook_url`, by
    default to the URL of `dialsim_receiver` if the test has one, else as the scenario says.
    """

    def __init__(self, bench: Bench, webhook_url: str | None) -> None:
        self._bench = bench
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
        from dialsim.sandbox.sandbox import Sandbox

        scenario, chosen = self._bench.read(source, overrides, seed, replication=0)
        sandbox = Sandbox(scenario, seed=chosen, webhook_url=webhook_url or self._webhook_url)
        self._started.append(sandbox.start())
        return sandbox

    def stop(self) -> None:
        """Stop all of them, the last first; raises what any of them raises."""
        with ExitStack() as stack:
            for sandbox in self._started:
                stack.callback(sandbox.stop)
