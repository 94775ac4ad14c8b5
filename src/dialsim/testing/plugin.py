"""The pytest plugin: fixtures, options, and the commands that replay a failure.

pytest loads this module in every run of everybody who has dialsim installed, so nothing heavy is
imported here: what a fixture needs it imports when it is first used.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dialsim.testing.fixtures import Host, Runner, ScenarioReader, Stepper, Tenants
    from dialsim.testing.golden import Comparison, GoldenTraces
    from dialsim.testing.receiver import Receiver

_READER = pytest.StashKey["ScenarioReader"]()
_PROPERTY = "dialsim_golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, all named --dialsim-…"""
    group = parser.getgroup("dialsim", "regression tests of scheduling (dialsim)")
    group.addoption(
        "--dialsim-update",
        action="store_true",
        help="write the golden traces anew, instead of holding runs to them",
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
    """Refuse options that don't fit together."""
    seed, seeds = config.getoption("--dialsim-seed"), config.getoption("--dialsim-seeds")
    if seed is not None and seed < 0:
        raise pytest.UsageError("--dialsim-seed must be 0 or more")
    if seeds is not None and seeds < 1:
        raise pytest.UsageError("--dialsim-seeds must be 1 or more")
    if config.getoption("--dialsim-update") and not (seed is seeds is None):
        raise pytest.UsageError(
            "--dialsim-update writes traces of the scenarios' own seeds: leave the other seeds out"
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat the tests that depend on `dialsim_seed` as the options say."""
    seed = metafunc.config.getoption("--dialsim-seed")
    count = metafunc.config.getoption("--dialsim-seeds")
    if "dialsim_seed" in metafunc.fixturenames and not (seed is count is None):
        first = 1 if seed is None else seed
        seeds = range(first, first + (count or 1))
        metafunc.parametrize("dialsim_seed", seeds, indirect=True, ids=[f"seed{n}" for n in seeds])


@pytest.fixture
def dialsim_seed(request: pytest.FixtureRequest) -> int | None:
    """The seed of `--dialsim-seed` or of this turn of `--dialsim-seeds`; None: the scenario's."""
    return getattr(request, "param", None)


@pytest.fixture
def dialsim_run(request: pytest.FixtureRequest, dialsim_seed: int | None) -> Runner:  # noqa: ARG001
    """Run a scenario: `dialsim_run(path_or_text_or_sketch, overrides=(), *, seed=None)`."""
    from dialsim.testing.fixtures import Runner

    return Runner(_reader(request))


@pytest.fixture
def dialsim_simulation(request: pytest.FixtureRequest, dialsim_seed: int | None) -> Stepper:  # noqa: ARG001
    """A scenario to step by hand: `dialsim_simulation(…)`, with the arguments of `dialsim_run`."""
    from dialsim.testing.fixtures import Stepper

    return Stepper(_reader(request))


@pytest.fixture
def dialsim_receiver() -> Iterator[Receiver]:
    """A receiver of webhooks, to which the test's sandboxes send: `requests`, `answer(…)`."""
    from dialsim.testing.receiver import Receiver

    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def dialsim_sandbox(request: pytest.FixtureRequest, dialsim_seed: int | None) -> Iterator[Host]:  # noqa: ARG001
    """A scenario served over HTTP: `dialsim_sandbox(…)`, with the arguments of `dialsim_run`."""
    from dialsim.testing.fixtures import Host

    host = Host(_reader(request), _webhook_url(request))
    yield host
    host.stop()


@pytest.fixture
def dialsim_organization(request: pytest.FixtureRequest) -> Tenants:
    """An organization of the test's own in a shared sandbox: `dialsim_organization(sandbox)`."""
    from dialsim.testing.fixtures import Tenants

    return Tenants(request.node.name, _webhook_url(request))


def _webhook_url(request: pytest.FixtureRequest) -> str | None:
    """The URL of the test's receiver, if it has one."""
    if "dialsim_receiver" not in request.fixturenames:
        return None
    receiver: Receiver = request.getfixturevalue("dialsim_receiver")
    return receiver.url


@pytest.fixture
def dialsim_golden(request: pytest.FixtureRequest) -> GoldenTraces:
    """Hold a run to the trace kept beside the test: `dialsim_golden(result, name="")`."""
    from dialsim.testing.golden import GoldenTraces

    def note(comparison: Comparison) -> None:
        request.node.user_properties.append((_PROPERTY, comparison.value))

    _reader(request)  # so that a failure says how to run the same again
    name, seed = request.node.name, _seed_asked_for(request.node)
    if seed is not None:
        name = re.sub(rf"(?<=[\[-])seed{seed}(?=[]-])", "", name)  # one trace for all seeds
    update = request.config.getoption("--dialsim-update")
    return GoldenTraces(request.path.parent, f"{request.path.stem}.{name}", update, note)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Say below a failure how to run the same again."""
    report = yield
    reader = item.stash.get(_READER, None)
    if reader is not None and report.failed and hasattr(report.longrepr, "addsection"):
        from dialsim.testing.fixtures import commands, relative

        folder = item.config.invocation_params.dir
        node_id = "::".join([relative(item.path, folder), *item.nodeid.split("::")[1:]])
        text = "\n".join(commands(node_id, _seed_asked_for(item), reader.replays, folder))
        report.longrepr.addsection("dialsim: the same again", text, "-")
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the golden traces that were written, and those of other seeds."""
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
    """The test's reader of scenarios, made when a fixture first needs it."""
    from dialsim.testing.fixtures import ScenarioReader

    made: ScenarioReader | None = request.node.stash.get(_READER, None)
    if made is None:
        seed = request.getfixturevalue("dialsim_seed")
        made = ScenarioReader(request.path.parent, request.config.rootpath, seed)
        request.node.stash[_READER] = made
    return made


def _seed_asked_for(item: pytest.Item) -> int | None:
    """The seed with which the options repeat a test; None: they don't."""
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("dialsim_seed")
