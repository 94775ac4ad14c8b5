"""`dialsim validate` lists holidays, and shows what plans and lines are compiled to."""

from __future__ import annotations

import json

from cli.program import ROOT, dialsim

SONGKRAN = ROOT / "scenarios/songkran.yaml"
COMPILED = """\
Closed: Thu 16 Apr 2026
Campaign Debt of Acme, up to Fri 24 Apr 2026 20:00 Thai time (endDateTime):
  Mon-Fri 08:00-20:00
  Sat 08:00-18:00
  Sun closed
  Mon 13 Apr 2026 08:00  pause
  Mon 13 Apr 2026 10:00  resume
  Mon 13 Apr 2026 16:00  pause
  Tue 14 Apr 2026 10:00  resume
  Tue 14 Apr 2026 16:00  pause
  Wed 15 Apr 2026 10:00  resume
  Wed 15 Apr 2026 16:00  pause
  Thu 16 Apr 2026 20:00  resume
Lines of Acme, up to Sun 26 Apr 2026 07:00 Thai time (clock.end):
  Thu 9 Apr 2026 13:00  setConcurrency 8
"""


def test_the_holidays_of_the_years_of_the_run_are_listed() -> None:
    done = dialsim("validate", SONGKRAN)
    assert done.returncode == 0
    (warning,) = done.stderr.splitlines()
    assert "calls may end after it: on weekdays 20:00 (first 2026-04-10)" in warning
    lines = done.stdout.splitlines()
    assert lines[1] == "Holidays in the years of the run:"
    assert "  Mon 13 Apr 2026  Songkran Festival" in lines
    assert not any("2027" in line for line in lines)
    assert "pause" not in done.stdout


def test_what_is_compiled_is_shown() -> None:
    assert COMPILED in dialsim("validate", SONGKRAN, "--compiled").stdout


def test_what_is_compiled_is_json_in_the_words_of_the_interface() -> None:
    document = json.loads(dialsim("validate", SONGKRAN, "--compiled", "--format", "json").stdout)
    assert document["holidays"]["2026-04-13"] == "Songkran Festival"
    (campaign,) = document["compiled"]["campaigns"]
    assert campaign["timeWindows"][-1] == {
        "dayOfWeek": 6,
        "time": [{"start": "08:00", "end": "18:00"}],
    }
    assert campaign["timeline"][0] == {
        "at": "2026-04-13T01:00:00.000Z",
        "action": "pause",
        "campaign": "Debt",
    }
    assert document["compiled"]["lines"][0]["timeline"][0] == {
        "at": "2026-04-09T06:00:00.000Z",
        "action": "setConcurrency",
        "value": 8,
    }


def test_a_file_without_plans_says_that_there_is_nothing_to_compile() -> None:
    done = dialsim("validate", ROOT / "scenarios/first-campaign.yaml", "--compiled")
    assert done.stdout.splitlines()[1:] == [
        "Nothing is to be compiled: there are no callingHours, and no lines by time."
    ]
