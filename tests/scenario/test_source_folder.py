"""Files that a scenario names may come from elsewhere than the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialsim.errors import DialsimError
from dialsim.scenario.loading import files_of, load, loads
from dialsim.testing import Sketch

LISTED = Sketch(2, start="Mon 08:00", setup_time=None).campaign(
    "One", recipients={"file": "people.csv"}, requested=None
)
TIMES = {"dist": "empirical", "file": "measured/talk.csv", "column": "talk"}
MEASURED = LISTED.behaviour("measured", talk_time=TIMES).agent(behaviour="measured")
PEOPLE, TALK = b"tel,customerName\n0811111111,\xe0\xb8\x81\n", b"talk\n20s\n40s\n"


def test_the_files_of_a_scenario_stand_in_for_those_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "measured").mkdir()
    (tmp_path / "people.csv").write_bytes(PEOPLE)
    (tmp_path / "measured" / "talk.csv").write_bytes(TALK)
    (tmp_path / "week.yaml").write_text(MEASURED.text)
    scenario = load(tmp_path / "week.yaml")
    files = files_of(scenario)
    assert files == {"people.csv": PEOPLE, "measured/talk.csv": TALK}
    kept = loads(MEASURED.text, folder="/nowhere", files=files)
    assert kept.digest == scenario.digest
    assert files_of(kept) == files
    assert kept.with_("seed=9").seed == 9


def test_files_that_have_changed_since_are_not_taken_for_those_that_were_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "people.csv").write_bytes(PEOPLE)
    scenario = loads(LISTED.text, folder=tmp_path)
    (tmp_path / "people.csv").write_bytes(b"tel\n0822222222\n")
    with pytest.raises(DialsimError, match="have changed since"):
        files_of(scenario)
