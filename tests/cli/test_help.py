"""Help texts, versions and the two small commands."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import dialsim as package
from cli.program import ROOT, SCRIPTED, dialsim


@pytest.mark.parametrize(
    "command",
    ["run", "people", "validate", "schema", "journal", "log", "verify", "pull", "forecast"],
)
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = dialsim(command, "--help")
    assert done.returncode == 0
    assert f"dialsim {command} " in re.split(r"Examples?:", done.stdout)[1]
    assert command in dialsim("--help").stdout


def test_the_version_is_the_package_s() -> None:
    assert dialsim("--version").stdout == f"dialsim, version {package.__version__}\n"


def test_help_and_import_load_nothing_heavy() -> None:
    script = (
        "import sys, dialsim, dialsim.cli\n"
        "heavy = {'numpy', 'pandas', 'scipy', 'pyarrow', 'pydantic', 'yaml', 'rich', 'simpy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_runs_that_write_nothing_draw_nothing_and_no_picture_touches_pyplot() -> None:
    script = (
        "import sys, dialsim, dialsim.cli\n"
        "run = [*sys.argv]\n"
        "for many in [], ['--replications', '2', '--jobs', '1']:\n"
        "    sys.argv = [*run, *many]\n"
        "    try: dialsim.cli.main()\n"
        "    except SystemExit as ended: assert not ended.code\n"
        "loaded = ['matplotlib' in sys.modules]\n"
        "plot = dialsim.run(dialsim.load(run[-1])).plot\n"
        "plot.progress(), plot.answers()\n"
        "loaded += ['matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules]\n"
        "sys.stderr.write(str(loaded))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "run", SCRIPTED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "[False, True, False]"


def test_validate_says_what_a_good_file_holds() -> None:
    done = dialsim("validate", SCRIPTED)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{SCRIPTED} is good: 1 organization, 1 campaign, 4 recipients.\n"


def test_validate_lists_every_problem_and_exits_2(tmp_path_factory: pytest.TempPathFactory) -> None:
    bad = tmp_path_factory.mktemp("bad") / "bad.yaml"
    bad.write_text("organizations:\n  - name: Acme\n    maxConcurentCalls: 3\n    maxAttempts: 1\n")
    done = dialsim("validate", bad)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{bad}:3:5: " in done.stderr
    assert "maxConcurrentCalls" in done.stderr
    assert f"{bad}:4:5: " in done.stderr
    listed = dialsim("validate", bad, "--format", "json")
    document = json.loads(listed.stdout)
    assert (listed.returncode, document["valid"]) == (2, False)
    assert {problem["line"] for problem in document["problems"]} >= {3, 4}


def test_the_published_schema_is_what_the_command_prints() -> None:
    published = (ROOT / "scenarios/scenario.schema.json").read_text(encoding="utf-8")
    assert dialsim("schema").stdout == published
