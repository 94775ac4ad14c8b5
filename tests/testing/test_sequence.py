"""assert_sequence: what it accepts, and what it shows where it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

import dialsim
from dialsim.testing import Sketch, assert_sequence

FILE = Path(__file__).parent / "golden" / "sequence.txt"
SKETCH = Sketch(1).campaign("A", "busy 1s; answered 5s 90s", "noAnswer 9s", max_attempts=2)


@pytest.fixture
def result() -> dialsim.Result:
    return dialsim.run(SKETCH.scenario())


def test_a_sequence_may_be_written_with_any_blanks(result: dialsim.Result) -> None:
    assert_sequence(
        result,
        0,
        """SCHEDULED QUEUED INITIATED BUSY|
           SCHEDULED QUEUED INITIATED COMPLETED""",
    )


def test_a_trace_and_a_simulation_have_sequences_too(result: dialsim.Result) -> None:
    twice = "SCHEDULED QUEUED INITIATED NO_ANSWER | SCHEDULED QUEUED INITIATED NO_ANSWER"
    assert_sequence(result.trace, 1, twice)
    simulation = dialsim.Simulation(SKETCH.scenario())
    assert_sequence(simulation, 1, "SCHEDULED QUEUED")
    simulation.advance(until="idle")
    assert_sequence(simulation, 1, twice)


def test_a_difference_is_shown_with_its_place_and_the_story(result: dialsim.Result) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_sequence(result, 0, "SCHEDULED QUEUED INITIATED BUSY | SCHEDULED QUEUED CANCELLED")
    assert f"{caught.value}\n" == FILE.read_text()


@pytest.mark.parametrize(
    ("expected", "says"),
    [
        ("SCHEDULED", "call 1: the end expected, QUEUED found"),
        ("", "call 1: the end expected, SCHEDULED found"),
        (
            "SCHEDULED QUEUED INITIATED BUSY | SCHEDULED QUEUED INITIATED COMPLETED | SCHEDULED",
            "call 2: | expected, the end found",
        ),
    ],
)
def test_a_sequence_that_ends_elsewhere_differs(
    result: dialsim.Result, expected: str, says: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_sequence(result, 0, expected)
    assert says in str(caught.value)


def test_what_is_no_status_is_said(result: dialsim.Result) -> None:
    with pytest.raises(dialsim.DialsimError, match="NOANSWER: no status of a call; there are: SCH"):
        assert_sequence(result, 0, "SCHEDULED QUEUED NOANSWER")


def test_the_campaign_must_be_named_where_there_are_several() -> None:
    two = dialsim.run(SKETCH.campaign("B", "busy 0s").scenario())
    assert_sequence(two, 0, "SCHEDULED QUEUED INITIATED BUSY", campaign="B")
    with pytest.raises(dialsim.DialsimError, match="say which campaign"):
        assert_sequence(two, 0, "SCHEDULED")
    with pytest.raises(dialsim.DialsimError, match="there is no recipient 1"):
        assert_sequence(two, 1, "SCHEDULED", campaign="Acme/B")
