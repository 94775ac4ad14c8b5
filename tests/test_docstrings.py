"""Examples in the docstrings of public names run, and give what they show."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import dialsim

SCENARIO = """
organizations:
  - name: Acme
    maxConcurrentCalls: 2
    agents: [{name: Reminder}]
    campaigns:
      - name: January
        agent: Reminder
        recipients: {count: 40, segments: {gold: 0.25, other: 0.75}}
        schedule: {startDateTime: 2026-01-05T02:00:00Z, maxAttempts: 2, retryInterval: 3600000}
costs: {perDial: 0.5}
"""

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples() -> Iterator[doctest.DocTest]:
    """Examples of every public name of dialsim, and of the names in them."""
    finder = doctest.DocTestFinder()
    for name in dialsim.__all__:
        value = getattr(dialsim, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            for found in finder.find(value, f"dialsim.{name}", module=False):
                if found.examples:
                    yield found


@pytest.mark.parametrize("example", [*examples()], ids=lambda example: str(example.name))
def test_an_example_gives_what_it_shows(
    example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.yaml").write_text(SCENARIO)
    scenario = dialsim.load("first.yaml")
    example.globs = {"dialsim": dialsim, "pd": pd, "scenario": scenario}
    if "result" in "".join(part.source for part in example.examples):
        example.globs["result"] = dialsim.run(scenario, seed=7)
    told: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(example, out=told.append)
    assert not told, "".join(told)


def test_every_public_name_is_on_the_page_with_an_example() -> None:
    page = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    shown = " ".join(example.name for example in examples())
    for name in dialsim.__all__:
        value = getattr(dialsim, name)
        if name == "__version__":
            continue
        assert f"::: dialsim.{name}\n" in page
        if not (inspect.isclass(value) and issubclass(value, Exception)):
            assert f"dialsim.{name}" in shown, f"{name} has no example"


def test_the_columns_of_calls_are_listed() -> None:
    text = dialsim.Result.calls.__doc__ or ""
    calls = dialsim.run(dialsim.loads(SCENARIO)).calls
    assert [name for name in calls.columns if f"`{name}`" not in text] == []
