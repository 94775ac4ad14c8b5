"""The pytest plugin: fixtures and the objects that they return, options, and commands to repeat
a failure.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dialsim.errors import DialsimError
from dialsim.interface.arguments import checked

if TYPE_CHECKING:
    from dialsim.engine.simulation import Simulation
    from dialsim.results.result import Result
    from dialsim.sandbox.client import Sandbox
    from dialsim.sandbox.control.organizations import CreatedOrganization
    from dialsim.scenario.scenario import Overrides, Scenario
    from dialsim.testing.assertions import GoldenTraces
    from dialsim.testing.receiver import Receiver
    from dialsim.testing.sketch import Sketch


_READER = pytest.StashKey["ScenarioReader"]()
_PROPERTY = "dialsim_golden"


# pytest loads this module in every run of everyone who has dialsim installed, so heavy modules are
# imported by the fixtures that need them.
def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, all with the prefix --dialsim-."""
    group = parser.getgroup("dialsim", "regression tests of scheduling (dialsim)")
    group.addoption(
        "--dialsim-update",
        action="store_true",
        help="write the golden traces anew instead of comparing runs with them",
    )
    group.addoption(
        "--dialsim-seed",
        type=int,
        metavar="N",
        help="run scenarios with this seed, instead of their own",
    )
    group.addoption(
        "--dialsim-seeds",
        type=int,
        metavar="N",
        help="repeat every test that runs a scenario with N seeds, "
        "counted from --dialsim-seed or 1",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Reject options that contradict one another."""
    seed, seeds = config.getoption("--dialsim-seed"), config.getoption("--dialsim-seeds")
    if seed is not None and seed < 0:
        raise pytest.UsageError("--dialsim-seed must be 0 or more")
    if seeds is not None and seeds < 1:
        raise pytest.UsageError("--dialsim-seeds must be 1 or more")
    if config.getoption("--dialsim-update") and not (seed is seeds is None):
        raise pytest.UsageError(
            "--dialsim-update writes traces of the scenarios' own seeds: leave out the seed options"
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize the tests that depend on `dialsim_seed` by the options."""
    seed = metafunc.config.getoption("--dialsim-seed")
    count = metafunc.config.getoption("--dialsim-seeds")
    if "dialsim_seed" in metafunc.fixturenames and not (seed is count is None):
        first = 1 if seed is None else seed
        seeds = range(first, first + (count or 1))
        metafunc.parametrize("dialsim_seed", seeds, indirect=True, ids=[f"seed{n}" for n in seeds])


@pytest.fixture
def dialsim_seed(request: pytest.FixtureRequest) -> int | None:
    """Seed given by `--dialsim-seed` or `--dialsim-seeds`; None for the scenario's own seed."""
    return getattr(request, "param", None)


@pytest.fixture
def dialsim_run(request: pytest.FixtureRequest, dialsim_seed: int | None) -> Runner:  # noqa: ARG001
    """Run a scenario: `dialsim_run(path_or_text_or_sketch, overrides=(), *, seed=None)`."""

    return Runner(_reader(request))


@pytest.fixture
def dialsim_simulation(request: pytest.FixtureRequest, dialsim_seed: int | None) -> Stepper:  # noqa: ARG001
    """Create a simulation to step: `dialsim_simulation(…)`, with the arguments of `dialsim_run`."""

    return Stepper(_reader(request))


@pytest.fixture
def dialsim_receiver() -> Iterator[Receiver]:
    """Receiver of webhooks for the test's sandboxes: `requests`, `answer(…)`."""
    from dialsim.testing.receiver import Receiver

    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def dialsim_sandbox(request: pytest.FixtureRequest, dialsim_seed: int | None) -> Iterator[Host]:  # noqa: ARG001
    """Serve a scenario over HTTP: `dialsim_sandbox(…)`, with the arguments of `dialsim_run`."""

    host = Host(_reader(request), _webhook_url(request))
    yield host
    host.stop()


@pytest.fixture
def dialsim_organization(request: pytest.FixtureRequest) -> Tenants:
    """Add an organization for the test to a shared sandbox: `dialsim_organization(sandbox)`."""

    return Tenants(request.node.name, _webhook_url(request))


def _webhook_url(request: pytest.FixtureRequest) -> str | None:
    """Return the URL of the test's receiver, if it has one."""
    if "dialsim_receiver" not in request.fixturenames:
        return None
    receiver: Receiver = request.getfixturevalue("dialsim_receiver")
    return receiver.url


@pytest.fixture
def dialsim_golden(request: pytest.FixtureRequest) -> GoldenTraces:
    """Compare a run with the trace stored beside the test: `dialsim_golden(result, name="")`."""
    from dialsim.testing.assertions import GoldenTraces

    def note(outcome: str) -> None:
        # User properties survive the transport from xdist's workers to the summary.
        request.node.user_properties.append((_PROPERTY, outcome))

    _reader(request)  # so that a failure prints the command to repeat it
    name, seed = request.node.name, _seed_asked_for(request.node)
    if seed is not None:
        name = re.sub(rf"(?<=[\[-])seed{seed}(?=[]-])", "", name)  # one trace for all seeds
    update = request.config.getoption("--dialsim-update")
    return GoldenTraces(request.path.parent, f"{request.path.stem}.{name}", update, note)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Append the commands to repeat a failed test to its report."""
    report = yield
    reader = item.stash.get(_READER, None)
    # Errors of collection have a plain text as longrepr.
    if reader is not None and report.failed and hasattr(report.longrepr, "addsection"):
        file = os.path.relpath(item.path, item.config.invocation_params.dir)
        again = ["pytest", "::".join([file, *item.nodeid.split("::")[1:]])]
        seed = _seed_asked_for(item)
        if seed is not None:
            again += ["--dialsim-seed", str(seed)]
        text = "\n".join([shlex.join(again), *reader.commands])
        report.longrepr.addsection("dialsim: to repeat the runs", text, "-")
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the numbers of golden traces written, or of those with other seeds."""
    reports = (r for key in ("passed", "failed") for r in terminalreporter.getreports(key))
    noted = [
        value
        for report in reports
        if report.when == "call"
        for name, value in report.user_properties
        if name == _PROPERTY
    ]
    if terminalreporter.config.getoption("--dialsim-update"):
        written, same = noted.count("written"), noted.count("same")
        terminalreporter.write_line(f"dialsim: {_traces(written)} written, {same} unchanged")
    elif others := noted.count("of another seed"):
        are = "is" if others == 1 else "are"
        terminalreporter.write_line(
            f"dialsim: {_traces(others)} {are} of another seed: not compared"
        )


def _traces(count: int) -> str:
    return "1 golden trace" if count == 1 else f"{count} golden traces"


def _reader(request: pytest.FixtureRequest) -> ScenarioReader:
    """Return the test's scenario reader, created on first use."""

    # All fixtures of a test share the reader, which collects the commands to repeat it.
    made: ScenarioReader | None = request.node.stash.get(_READER, None)
    if made is None:
        seed = request.getfixturevalue("dialsim_seed")
        made = ScenarioReader(request, seed)
        request.node.stash[_READER] = made
    return made


def _seed_asked_for(item: pytest.Item) -> int | None:
    """Return the seed that the options give to a test, or None."""
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("dialsim_seed")


class ScenarioReader:
    """Reader of one test's scenarios, which applies the test's seed.

    A relative path is resolved against the test's folder first and then against pytest's root.
    `commands` are the command lines that repeat the runs of files, for a shell in the folder in
    which pytest was started.
    """

    def __init__(self, request: pytest.FixtureRequest, seed: int | None) -> None:
        """`seed` None means the scenario's own."""
        self.folder = request.path.parent
        self.root = request.config.rootpath
        self.seed = seed
        self.commands: list[str] = []
        self._shell = request.config.invocation_params.dir

    def read(
        self,
        source: Scenario | Sketch | Path | str,
        overrides: Overrides,
        seed: int | None,
        replication: int,
    ) -> tuple[Scenario, int]:
        """Return the scenario, and the seed to run it with: from the call, the test or the
        scenario.
        """
        from dialsim.scenario.scenario import Scenario

        scenario = self._load(source, overrides)
        chosen = next(s for s in (seed, self.seed, scenario.seed) if s is not None)
        # A loaded `Scenario` may differ from its file: no command repeats its run.
        if scenario.source is not None and not isinstance(source, Scenario):
            self._record(scenario.source, overrides, chosen, replication)
        return scenario, chosen

    def _record(self, file: Path, overrides: Overrides, seed: int, replication: int) -> None:
        from dialsim.scenario.scenario import override_texts

        words = ["dialsim", "run", os.path.relpath(file, self._shell), "--seed", str(seed)]
        if replication:
            words += ["--replication", str(replication)]
        for override in override_texts(overrides):
            words += ["--set", override]
        command = shlex.join(words)
        if command not in self.commands:
            self.commands.append(command)

    def _load(self, source: Scenario | Sketch | Path | str, overrides: Overrides) -> Scenario:
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
        return load(self._find(Path(source)), overrides=overrides)

    def _find(self, path: Path) -> Path:
        beside = self.folder / path
        return beside if beside.exists() else self.root / path


@checked(DialsimError)
class Runner:
    """Fixture `dialsim_run`: runs a scenario to its end.

    `source` is a scenario file's path (relative to the test's folder or to pytest's root), its
    text, a `Sketch` or a loaded `Scenario`. The seed is `seed`, else from `--dialsim-seed`, else
    the scenario's. Raises ScenarioError for a file with problems.

    ```python
    def test_two_lines_are_enough(dialsim_run):
        result = dialsim_run("january.yaml", ["lines=2"], seed=3)
        assert result.summary.people_lost == 0
    ```
    """

    def __init__(self, reader: ScenarioReader) -> None:
        self._reader = reader

    def __call__(
        self,
        source: Scenario | Sketch | Path | str,
        overrides: Overrides = (),
        *,
        seed: int | None = None,
        replication: int = 0,
    ) -> Result:
        """Run the scenario; `overrides` are texts `PATH=VALUE`, as for `dialsim run --set`."""
        from dialsim.results.result import run

        scenario, chosen = self._reader.read(source, overrides, seed, replication)
        return run(scenario, seed=chosen, replication=replication)


@checked(DialsimError)
class Stepper:
    """Fixture `dialsim_simulation`: creates a simulation to step; otherwise like `Runner`.

    ```python
    def test_a_cancellation(dialsim_simulation):
        simulation = dialsim_simulation("january.yaml")
        simulation.advance(hours=2)
        simulation.cancel("January")
    ```
    """

    def __init__(self, reader: ScenarioReader) -> None:
        self._reader = reader

    def __call__(
        self,
        source: Scenario | Sketch | Path | str,
        overrides: Overrides = (),
        *,
        seed: int | None = None,
        replication: int = 0,
    ) -> Simulation:
        """Return the simulation at clock.start."""
        from dialsim.engine.simulation import Simulation

        scenario, chosen = self._reader.read(source, overrides, seed, replication)
        return Simulation(scenario, chosen, replication)


@checked(DialsimError)
class Host:
    """Fixture `dialsim_sandbox`: serves scenarios until the end of the test.

    `source`, `overrides` and `seed` are as for `Runner`. Results are sent to `webhook_url`, by
    default to the URL of `dialsim_receiver` if the test has one. Otherwise they are sent to the
    scenario's URLs on this machine, and kept for all others.

    ```python
    def test_my_client(dialsim_sandbox, dialsim_receiver):
        sandbox = dialsim_sandbox("january.yaml")
        MyClient(sandbox.url, sandbox.api_key).schedule("January")
        sandbox.clock.advance(hours=1)
        assert dialsim_receiver.requests
    ```
    """

    def __init__(self, reader: ScenarioReader, webhook_url: str | None) -> None:
        self._reader = reader
        self._webhook_url = webhook_url
        self._started: list[Sandbox] = []

    def __call__(
        self,
        source: Scenario | Sketch | Path | str,
        overrides: Overrides = (),
        *,
        seed: int | None = None,
        webhook_url: str | None = None,
    ) -> Sandbox:
        """Start a sandbox with its clock at clock.start."""
        from dialsim.sandbox.client import Sandbox

        scenario, chosen = self._reader.read(source, overrides, seed, replication=0)
        sandbox = Sandbox(scenario, seed=chosen, webhook_url=webhook_url or self._webhook_url)
        self._started.append(sandbox.start())
        return sandbox

    def stop(self) -> None:
        """Stop all sandboxes, the last one first; raises their errors."""
        with ExitStack() as stack:
            for sandbox in self._started:
                stack.callback(sandbox.stop)


class Tenants:
    """Fixture `dialsim_organization`: adds an organization for one test.

    For a sandbox that several tests share. The organization is named after the test, and its
    results are sent to `webhook_url`, if given.
    """

    def __init__(self, name: str, webhook_url: str | None) -> None:
        self._name = name
        self._webhook_url = webhook_url

    def __call__(
        self, sandbox: Sandbox, like: str | None = None, **settings: object
    ) -> CreatedOrganization:
        """Add the organization as a copy of an existing one, by default the first.

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
