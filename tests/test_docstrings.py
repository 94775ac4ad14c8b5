"""Examples in the docstrings of public names run, and give what they show."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import dialsim
import dialsim.testing

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
    """Examples of every public name, and of the names in them."""
    finder = doctest.DocTestFinder()
    for package in (dialsim, dialsim.testing):
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                for found in finder.find(value, f"{package.__name__}.{name}", module=False):
                    if found.examples:
                        yield found


@pytest.mark.parametrize("example", [*examples()], ids=lambda example: str(example.name))
def test_an_example_gives_what_it_shows(
    example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.yaml").write_text(SCENARIO)
    scenario = dialsim.load("first.yaml")
    sketch = dialsim.testing.Sketch
    example.globs = {"dialsim": dialsim, "pd": pd, "scenario": scenario, "Sketch": sketch}
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


def test_every_name_of_the_kit_is_on_the_page_and_in_an_example() -> None:
    docs = Path(__file__).parents[1] / "docs"
    page = (docs / "python.md").read_text(encoding="utf-8")
    # The code of these pages is run in tests/testing/test_tutorials.py
    pages = ("regression-testing.md", "test-your-scheduler.md", "test-your-client.md")
    shown = "".join((docs / name).read_text(encoding="utf-8") for name in pages)
    shown += " ".join(part.source for example in examples() for part in example.examples)
    fixtures = {"Runner": "run", "Stepper": "simulation", "Host": "sandbox",
                "GoldenTraces": "golden"}  # fmt: skip
    answers = {"Violation": "violations(", "ReceivedRequest": ".requests", "Breach": ".breaches",
               "Event": "event.kind", "Order": "event.order", "Scheduler": "def step"}  # fmt: skip
    for name in dialsim.testing.__all__:
        assert f"::: dialsim.testing.{name}\n" in page
        fixture = f"dialsim_{fixtures[name]}" if name in fixtures else ""
        assert fixture or answers.get(name, name) in shown, name
        assert fixture in shown


def test_columns_and_dtypes_of_a_run_are_as_the_page_says() -> None:
    page = (Path(__file__).parents[1] / "docs" / "results.md").read_text(encoding="utf-8")
    result = dialsim.run(dialsim.loads(SCENARIO), seed=7)
    shared = {"organization": "category", "campaign": "category", "recipient": "int32",
              "call": "int32"}  # fmt: skip
    for name in ("calls", "transitions", "recipients"):
        section = page.split(f"\n### {name}\n")[1].split("\n### ")[0]
        listed = dict(shared)
        for row in re.findall(r"^\| (`.+?) \| (\w+) \| ", section, re.M):
            listed |= dict.fromkeys(re.findall(r"`(\w+)`", row[0]), row[1])
        frame = getattr(result, name)
        for column, dtype in frame.dtypes.items():
            said = listed[column].replace("instant", "datetime64[ms, UTC]")
            assert str(dtype) == said, (name, column)


def test_the_columns_of_calls_are_listed() -> None:
    text = dialsim.Result.calls.__doc__ or ""
    calls = dialsim.run(dialsim.loads(SCENARIO)).calls
    assert [name for name in calls.columns if f"`{name}`" not in text] == []
