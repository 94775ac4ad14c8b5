"""Methods statement: facts of the scenario and the manifest, and a study that it repeats alone."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

import dialsim
from cli.program import ROOT
from cli.program import dialsim as program
from dialsim.report.methods import _ASSUMPTIONS, methods
from dialsim.results.figures import FIGURES
from report.pages import ACME, LINES
from scenario.workbooks import workbook

pytestmark = pytest.mark.usefixtures("pictures_undrawn")

FEW = ("--jobs", "1", "--what-if", "0")
PLAN = ("--replications", "2", "--max-replications", "4", *FEW)
STUDIES = {
    "run": ("run", "scenario.yaml", "--replication", "2", "--what-if", "0"),
    "replications": (
        *("run", "scenario.yaml", "--precision", "people_reached=20%", "--max-replications", "4"),
        *("--figure", "cost / people_reached", *FEW),
    ),
    "sweep": (
        *("sweep", "scenario.yaml", "--vary", f"{LINES}=4,6", "--replications", "2"),
        *("--adjust", "bonferroni", *FEW),
    ),
    "decided": (
        *("sweep", "scenario.yaml", "--vary", f"{LINES}=4,5", "--replications", "8", *FEW),
        *("--decide", "finish - 1h", "--indifference", "0.02", "--baseline", "5 lines"),
    ),
    "comparison": ("compare", "scenario.yaml", "other.yaml", "--replications", "2", *FEW),
    "plan": (
        "plan",
        "scenario.yaml",
        "--vary",
        f"{LINES}=2..6",
        "--goal",
        "p95(finish) <= 4h",
        *PLAN,
    ),
    "optimum": (
        *("plan", "scenario.yaml", "--vary", f"{LINES}=4,6", "--goal", "mean(cost) <= 900"),
        *("--maximize", "mean(people_reached)", *PLAN),
    ),
    "forecast": ("forecast", "scenario.yaml", "--draws", "two.yaml", "--replications", "19", *FEW),
}
DRAWS = {f"draw {n}": [f"behaviours.default.people.deadNumbers=0.0{n}"] for n in (2, 4)}
BLOCK = re.compile(r"(?:`([^`\n]+)`:\n\n)?^(`{3,})(\w+)\n(.*?)\n\2$", re.MULTILINE | re.DOTALL)


def made(kind: str, folder: Path, *more: str) -> Path:
    """Folder of a study that takes the overrides `seed=8` and `more`."""
    (folder / "scenario.yaml").write_text(ACME.text, encoding="utf-8")
    (folder / "other.yaml").write_text(ACME.also(seed=5, description="x").text, encoding="utf-8")
    (folder / "two.yaml").write_text(yaml.safe_dump(DRAWS))
    sets = [word for text in ("seed=8", *more) for word in ("--set", text)]
    done = program(*STUDIES[kind], "--out", "out", *sets, cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    return folder / "out"


def repeated(statement: str, folder: Path) -> Path:
    """Folder of the study that a reader makes with the statement and nothing else."""
    blocks = [*BLOCK.finditer(statement)]
    for name, _, _, text in (block.groups() for block in blocks):
        if name is not None:
            (folder / name).write_text(text + "\n", encoding="utf-8")
    (command,) = (text for _, _, language, text in (b.groups() for b in blocks) if language == "sh")
    first, *words = shlex.split(command)
    assert first == "dialsim"
    done = program(*words, "--out", "again", "--what-if", "0", cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    return folder / "again"


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=[pytest.mark.slow] * (k not in ("run", "sweep"))) for k in STUDIES],
)
def test_a_study_is_repeated_from_its_statement_alone(kind: str, tmp_path: Path) -> None:
    out = made(kind, tmp_path)
    done = program("report", "out", "--methods", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Written to out/methods.md\n")
    statement = (out / "methods.md").read_text(encoding="utf-8")
    place = tmp_path / "elsewhere"
    place.mkdir()
    again = repeated(statement, place)
    figures = [json.loads((place / "summary.json").read_bytes()) for place in (again, out)]
    for summary in figures:
        summary.pop("precision", None)  # the runs have been counted, so that none is added
    assert figures[0] == figures[1]
    ran, said = (json.loads((p / "manifest.json").read_bytes()) for p in (again, out))
    assert (ran["scenario_sha256"], ran["seed"]) == (said["scenario_sha256"], said["seed"])


def test_facts_are_those_of_the_scenario_and_the_manifest(tmp_path: Path) -> None:
    out = made("run", tmp_path, "calendar.holidays=TH", "engine.queueTimeout=5m")
    statement, said = methods(out), json.loads((out / "manifest.json").read_bytes())
    scenario = dialsim.load(tmp_path / "scenario.yaml")
    facts = (
        f"# Methods: {scenario.name}\n",
        f"Purpose: {scenario.description}",
        "160 people in 2 campaigns",
        "มกราคม: 120 made-up people, others in each replication. At most 2 attempts, 1h",
        "Second: 40 made-up people",
        "Acme: 5 lines",
        "that waits longer than 5m is cancelled (Q5)",
        "Mon 13 Apr 2026 Songkran Festival",
        "The system is empty",
        "one run, replication 2.",
        f"dialsim {said['dialsim']} in Python {said['python']}",
        f"numpy {said['libraries']['numpy']}",
        f"the run was made by the engine {said['engine']}",
        "with keys, seed 8.",
        f"Hardware: {said['machine']}; the run took",
        f"`{said['scenario_sha256']}`",
        "--set seed=8 --set calendar.holidays=TH --set engine.queueTimeout=5m",
    )
    assert [fact for fact in facts if fact not in statement] == []
    behaviours = next(
        text
        for name, _, kind, text in map(re.Match.groups, BLOCK.finditer(statement))
        if kind == "yaml" and name is None
    )
    assert yaml.safe_load(behaviours)["default"]["outcomes"]["answered"] == (
        scenario.behaviours["default"].outcomes.answered
    )
    assert "](#" not in statement
    assert all(f"  - {f.name} (" in statement for f in FIGURES if f.label)


def test_estimation_names_replications_precision_and_adjustment(tmp_path: Path) -> None:
    statement = methods(made("sweep", tmp_path))
    assert "2 replications of each variant, all with the same chance" in statement
    assert "adjusted by the method of Bonferroni" in statement
    assert "Variants: 4 lines, 6 lines; section 6 lists what they change." in statement


@pytest.mark.slow
def test_the_rule_that_stopped_the_runs_is_named(tmp_path: Path) -> None:
    statement = methods(made("replications", tmp_path))
    assert "4 independent replications" in statement
    assert (
        "interval of the mean of people_reached was within 20 % of it, which was met" in statement
    )
    assert "`cost / people_reached`" in statement


def test_lists_have_their_digests_and_histories_are_initial_conditions(tmp_path: Path) -> None:
    rows = (
        ("0812345678", 1, "NO_ANSWER", "2026-01-05T01:00:00Z"),
        ("081-234-5679", None, None, None),
    )
    heads = ("tel", *(f"history.{k}" for k in ("callAttempt", "latestCallStatus", "lastEndedAt")))
    (tmp_path / "people.xlsx").write_bytes(workbook(heads, *rows))
    listed = "organizations.0.campaigns.1.recipients={file: people.xlsx, normalize: true}"
    statement = methods(made("run", tmp_path, listed))
    assert "Second: 2 people of `people.xlsx`" in statement
    assert re.search(r"- list `people.xlsx`, SHA-256 `[0-9a-f]{64}`", statement)
    assert "List of Second: normalize `true`. 1 cell of tel rewritten." in statement
    assert "1 person has a history of calls before that (C1, P8)" in statement


def test_keys_are_masked_and_fences_are_longer_than_those_of_texts(tmp_path: Path) -> None:
    key = "sim_0123456789abcdef0123456789abcdef"
    out = made("run", tmp_path, f"organizations.0.apiKey={key}", "description=a ```` b")
    statement = methods(out)
    assert key not in statement
    assert "`````sh\n" in statement


def test_assumptions_cite_rules_that_are_not_the_services() -> None:
    rules = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    cited = [rule for rules_, _ in _ASSUMPTIONS for rule in rules_.split(", ") if rule]
    assert [
        rule for rule in cited if not re.search(rf"^### {rule} .* (Ours|Mixed)$", rules, re.M)
    ] == []


def test_a_statement_takes_a_finished_result_and_no_options_of_the_page(tmp_path: Path) -> None:
    done = program("report", ".", "--methods", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not a result of dialsim" in done.stderr
    done = program("report", ".", "--methods", "--what-if", "2", cwd=tmp_path)
    assert "it doesn't go with --methods" in done.stderr
    assert [*tmp_path.iterdir()] == []
