"""Golden traces: written, upheld, and shown side by side where they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

import dialsim
from dialsim.testing import Sketch, trace_text
from dialsim.testing.assertions import describe, differences
from testing.conftest import Inner

GOLDEN = Path(__file__).parent / "golden"
TEST = """
import pytest
from dialsim.testing import Sketch

LIMIT = {limit}

def sketch():
    return Sketch(LIMIT).campaign("January", "busy 1s", "noAnswer 20s", "answered 3s 9s",
                                  windows="Mon 09:00-10:00")

def test_one(dialsim_run, dialsim_golden):
    dialsim_golden(dialsim_run(sketch()))

@pytest.mark.parametrize("seconds", [2, 30])
def test_two(dialsim_run, dialsim_golden, seconds):
    dialsim_golden(dialsim_run(sketch()), "before")
    result = dialsim_run(sketch().at(seconds, "pause", "January"))
    dialsim_golden(result, "after the pause")
"""
FILES = [
    "test_traces.test_one.txt",
    "test_traces.test_two-2-after-the-pause.txt",
    "test_traces.test_two-2-before.txt",
    "test_traces.test_two-30-after-the-pause.txt",
    "test_traces.test_two-30-before.txt",
]


def write(pytester: pytest.Pytester, limit: int) -> None:
    pytester.makepyfile(test_traces=TEST.format(limit=limit))


def test_golden_traces_are_written_and_then_upheld(pytester: pytest.Pytester, inner: Inner) -> None:
    write(pytester, limit=1)
    missing = inner()
    missing.assert_outcomes(failed=3)
    missing.stdout.fnmatch_lines(["*there is no golden/test_traces.test_one.txt yet: *-update*"])
    assert not pytester.path.joinpath("golden").exists()

    written = inner("--dialsim-update")
    written.assert_outcomes(passed=3)
    written.stdout.fnmatch_lines(["dialsim: 5 golden traces written, 0 unchanged"])
    assert sorted(file.name for file in pytester.path.joinpath("golden").iterdir()) == FILES
    inner().assert_outcomes(passed=3)

    again = inner("--dialsim-update")
    again.stdout.fnmatch_lines(["dialsim: 0 golden traces written, 5 unchanged"])


def test_a_single_golden_trace_is_told_in_the_singular(
    pytester: pytest.Pytester, inner: Inner
) -> None:
    write(pytester, limit=1)
    written = inner("--dialsim-update", "-k", "test_one")
    written.stdout.fnmatch_lines(["dialsim: 1 golden trace written, 0 unchanged"])
    seeds = inner("--dialsim-seeds", "2", "-k", "test_one")
    seeds.stdout.fnmatch_lines(["dialsim: 1 golden trace is of another seed: not compared"])


def test_an_update_makes_a_failing_comparison_pass(pytester: pytest.Pytester, inner: Inner) -> None:
    write(pytester, limit=1)
    inner("--dialsim-update")
    write(pytester, limit=2)
    inner().assert_outcomes(failed=3)
    inner("--dialsim-update").assert_outcomes(passed=3)
    inner().assert_outcomes(passed=3)


def test_a_renamed_test_has_no_trace_and_an_update_keeps_that_of_its_old_name(
    pytester: pytest.Pytester, inner: Inner
) -> None:
    write(pytester, limit=1)
    inner("--dialsim-update")
    pytester.makepyfile(test_traces=TEST.format(limit=1).replace("test_one", "test_renamed"))
    renamed = inner()
    renamed.assert_outcomes(passed=2, failed=1)
    renamed.stdout.fnmatch_lines(["*there is no golden/test_traces.test_renamed.txt yet: *"])

    written = inner("--dialsim-update")
    written.stdout.fnmatch_lines(["dialsim: 1 golden trace written, 4 unchanged"])
    files = [file.name for file in pytester.path.joinpath("golden").iterdir()]
    assert sorted(files) == sorted([*FILES, "test_traces.test_renamed.txt"])
    inner().assert_outcomes(passed=3)  # the trace that no test uses fails nothing


def test_a_failing_comparison_shows_the_traces_and_the_command(
    pytester: pytest.Pytester, inner: Inner
) -> None:
    write(pytester, limit=1)
    inner("--dialsim-update")
    write(pytester, limit=2)
    result = inner("-k", "test_one")
    result.assert_outcomes(failed=1, deselected=2)
    begin = next(i for i, line in enumerate(result.outlines) if "the run differs" in line)
    shown = [line.removeprefix("E").rstrip() for line in result.outlines[begin:]]
    end = next(i for i, line in enumerate(shown) if line.startswith("pytest "))
    text = "\n".join(line.removeprefix("   ") for line in shown[: end + 1])
    assert text + "\n" == (GOLDEN / "failing.txt").read_text()


def test_one_trace_serves_all_seeds_and_is_compared_with_its_own(
    pytester: pytest.Pytester, inner: Inner
) -> None:
    write(pytester, limit=1)
    inner("--dialsim-update")
    seeds = inner("--dialsim-seeds", "3")
    seeds.assert_outcomes(passed=9)
    seeds.stdout.fnmatch_lines(["dialsim: 10 golden traces are of another seed: not compared"])
    write(pytester, limit=2)
    changed = inner("--dialsim-seeds", "3")
    changed.assert_outcomes(passed=6, failed=3)


def test_two_traces_of_one_test_need_names(pytester: pytest.Pytester, inner: Inner) -> None:
    pytester.makepyfile(
        """
from dialsim.testing import Sketch

def test_it(dialsim_run, dialsim_golden):
    result = dialsim_run(Sketch(1).campaign("A", "busy 0s"))
    dialsim_golden(result)
    dialsim_golden(result)
"""
    )
    inner("--dialsim-update").stdout.fnmatch_lines(["*this test has a golden trace '' already*"])


def page(*people: str, limit: int = 1) -> str:
    sketch = Sketch(limit, start="Mon 10:00").campaign("A", *people)
    return trace_text(dialsim.run(sketch.scenario()))


def test_a_trace_reads_as_it_happened(dialsim_run: dialsim.testing.Runner) -> None:
    sketch = (
        Sketch(1, start="Mon 10:00", queue_timeout="20s")
        .having(agents=[{"name": "Agent", "voiceKey": "malee"}])
        .campaign("A", "busy 3s", "answered 1s 9s", max_attempts=2, retry_interval="5m")
        .campaign("B", "busy 0s", "busy 0s", requested=None)
        .at("Mon 10:01", "setConcurrency", 0)
        .at("Mon 10:02", "resume", "A")
    )
    assert trace_text(dialsim_run(sketch)) == (GOLDEN / "trace.txt").read_text()


def test_a_file_that_is_no_trace_is_refused() -> None:
    with pytest.raises(ValueError, match="first line of a trace"):
        differences("something else\n", page("busy 3s"))


def test_equal_traces_have_no_differences() -> None:
    assert differences(page("busy 3s"), page("busy 3s")) == []


def test_differences_come_first_things_first() -> None:
    # Person 1 differs from 10:00:06 on, person 0 from 10:00:05 on, and both before the campaign.
    parted = differences(page("busy 3s", "busy 9s"), page("busy 4s", "busy 9s"))
    assert [part.title for part in parted] == [
        "Acme/A recipient 0",
        "Acme/A recipient 1",
        "Acme/A",
    ]
    assert parted[0].first == "Mon 5 Jan 2026 10:00:05.000"
    assert [line for line in parted[0].lines if line.startswith("  +")] == [
        "  + Mon 5 Jan 2026 10:00:06.000  call 1  BUSY                 ended"
    ]


def test_people_who_are_in_one_trace_alone_are_shown() -> None:
    parted = differences(page("busy 3s", "busy 9s", limit=2), page("busy 3s", limit=2))
    assert [part.title for part in parted] == ["Acme/A recipient 1", "Acme/A"]
    assert all(line.startswith("  - ") for line in parted[0].lines)
    back = differences(page("busy 3s", limit=2), page("busy 3s", "busy 9s", limit=2))
    assert all(line.startswith("  + ") for line in back[0].lines)


def test_of_many_differences_the_first_are_shown_and_some_more_named() -> None:
    people = 30
    text = describe(differences(page(*["busy 3s"] * people), page(*["busy 4s"] * people)), "x.txt")
    assert text.startswith(
        "the run differs from x.txt in 31 places, first at Mon 5 Jan 2026 10:00:"
    )
    assert "Acme/A recipient 3\n" in text
    assert "\nAcme/A recipient 4\n" not in text
    assert "… and in Acme/A recipient 4, Acme/A recipient 5," in text
    assert text.endswith(", and 17 more")


def test_a_stall_is_told_at_last() -> None:
    stalled = Sketch(0, start="Mon 10:00").campaign("A", "busy 0s")
    assert "\n  stalled: nothing can ever happen again\n" in trace_text(
        dialsim.run(stalled.scenario())
    )
