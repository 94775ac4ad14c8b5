"""Options of the suite. Being here also puts this folder on the path, for the package `oracle`."""

from __future__ import annotations

import datetime as dt
import gc
import os
import random
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("dialsim", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dialsim")

pytest_plugins = ["pytester"]

# A shell has what it starts in the background ignore Ctrl-C, and programs under test would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Otherwise a quarter of the time of a collection goes into looking for garbage.
gc.set_threshold(20_000)

# Threads for small matrices only wait for one another; NumPy asks when it is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The suite touches nothing outside the project's folder.
os.environ.setdefault(
    "MPLCONFIGDIR", str(Path(__file__).parents[1] / ".pytest_cache" / "matplotlib")
)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    if not pluginmanager.has_plugin("dialsim"):  # plugins are not loaded by their entry points
        pluginmanager.register(import_module("dialsim.testing.plugin"), "dialsim")
    parser.addoption(
        "--sample",
        type=int,
        metavar="N",
        help="of the tests selected run N, others every day, and none marked slow(minutes)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
    _put_compiled_engine_behind(items)
    yield  # to -m
    wanted = config.getoption("--sample")
    if wanted is None:
        return
    # A check has no minutes to spare: what is known to take some is never drawn
    drawn = sorted(item.nodeid for item in items if not _minutes(item))
    today = dt.datetime.now(tz=dt.UTC).date().toordinal()
    kept = {*random.Random(today).sample(drawn, min(wanted, len(drawn)))}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def _put_compiled_engine_behind(items: list[pytest.Item]) -> None:
    """Move the tests of the compiled engine after the other tests of engines.

    By then a test of the program has compiled it, which two processes would otherwise do at once.
    """
    places = [place for place, item in enumerate(items) if "engine" in item.path.parts]
    if places:
        engines = slice(places[0], places[-1] + 1)
        items[engines] = sorted(items[engines], key=lambda item: "compiled" in item.path.parts)


def _minutes(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("slow")
    return mark is not None and "minutes" in mark.kwargs


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Freeze the imported objects, so that full garbage collections skip them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n` the tests of a file go to one process: what its fixtures make is made once."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False  # the longest files come early as it is
    return LoadFileScheduling(config, log)


@pytest.fixture(scope="module", autouse=True)
def compiled_engine_counts_as_loaded() -> Iterator[None]:
    """Choose the faster engine without regard to the time of loading the compiled one.

    Every process of the suite loads it sooner or later. A program with so few calls would not.
    """
    from dialsim import engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_WORTH_LOADING", 0)
        yield


_CHROMIUM = ["--no-sandbox", "--disable-renderer-backgrounding"]
"""Chromium has no sandbox as root; a page in the background would be painted last."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's chromium, driven by playwright; an event loop runs for as long as it is open.

    Tests that use it are marked `browser`.
    """
    driver = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install '.[browser]'"
    )
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium is installed: apt-get install chromium")
    with driver.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=chromium, args=_CHROMIUM)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def agreed() -> Callable[..., Any]:
    """Run a sketch or a scenario text through all readings, and return their common trace."""
    from engine.readings import agreed

    return agreed


@pytest.fixture
def pictures_unrendered() -> Iterator[None]:
    """Pages are made without the outlines of their pictures; see `pictures.unrendered`."""
    from pictures import unrendered

    with unrendered():
        yield


@pytest.fixture
def pictures_undrawn() -> Iterator[None]:
    """Pages are made with empty pictures; see `pictures.undrawn`."""
    from pictures import undrawn

    with undrawn():
        yield
