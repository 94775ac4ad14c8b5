from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, meta

from dialsim.scenario.document import parse_yaml
from dialsim.scenario.loading import load
from dialsim.scenario.problems import Problems
from dialsim.scenario.scenario import json_schema

from .files import FULL, SMALL

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"))
BAD = Path(__file__).parent / "bad"
VALIDATOR = Draft202012Validator(json_schema())


def faults(text: str) -> list[str]:
    document = parse_yaml(text, "x.yaml", Problems("x.yaml")).values
    return [f"{error.instance_path}: {error.message}" for error in VALIDATOR.iter_errors(document)]


def test_the_schema_names_its_dialect_and_is_valid() -> None:
    assert json_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    meta.validate(json_schema())


@pytest.mark.parametrize("text", [FULL, SMALL], ids=["every key", "smallest"])
def test_good_scenarios_pass(text: str) -> None:
    assert faults(text) == []


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_scenarios_load_and_pass(path: Path) -> None:
    assert load(path).source == path
    assert faults(path.read_text(encoding="utf-8")) == []


def test_yaml_examples_of_the_docs_that_are_scenarios_pass() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    blocks = [
        block
        for page in pages
        if page.exists()
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        if re.search(r"^organizations:", block, re.MULTILINE)
    ]
    assert [faults(block) for block in blocks] == [[] for _ in blocks]


@pytest.mark.parametrize(
    "name",
    [
        *("unknown-keys", "wrong-types", "wrong-choices", "numbers-out-of-range", "missing-keys"),
        *("duration-malformed", "duration-negative", "instant-without-offset", "distributions"),
        *("schedule-window-24-00", "schedule-max-attempts", "unquoted-phone-numbers", "timeline"),
        *("recipients-history", "params-schema", "answered-odds", "webhook", "no-organizations"),
    ],
)
def test_bad_scenarios_fail_in_an_editor_too(name: str) -> None:
    assert faults((BAD / f"{name}.yaml").read_text(encoding="utf-8"))


def properties(part: Any) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(part, list):
        return [found for item in part for found in properties(item)]
    if not isinstance(part, dict):
        return []
    own = part.get("properties", {}).items() if isinstance(part.get("properties"), dict) else []
    below = [
        found
        for key, value in part.items()
        if key not in ("default", "if", "then")
        for found in properties(value)
    ]
    return [*own, *below]


def test_every_key_says_what_it_is_and_shows_an_example_or_its_parts() -> None:
    kept_as_they_are = {"spell", "pronunciation_map"}
    for name, schema in properties(json_schema()):
        if "const" in schema or name == "action":
            continue
        assert schema.get("description"), name
        assert "$ref" in str(schema) or schema.get("examples") or name in kept_as_they_are, name


def test_defaults_are_written_as_a_planner_writes_them() -> None:
    engine = json_schema()["$defs"]["EngineSettings"]["properties"]
    assert engine["queueTimeout"]["default"] == "10m"
    assert engine["releaseInterval"]["default"] == "0s"
    ring = json_schema()["$defs"]["RingTime"]["properties"]
    assert ring["noAnswer"]["default"] == {"dist": "constant", "value": "28s"}
