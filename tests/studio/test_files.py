"""Files that go into a studio and come out of it."""

from __future__ import annotations

import io
from pathlib import Path
from zipfile import ZipFile

import pytest

from dialsim.errors import ScenarioError, StudioError
from dialsim.experiments.pool import Pool
from dialsim.studio.estimate import Estimator
from dialsim.studio.files import (
    THE_FILE,
    excel_file,
    open_path,
    opened,
    report_file,
    scenario_file,
    sheet_file,
)
from dialsim.studio.state import StudioState

SCENARIOS = Path(__file__).parents[2] / "scenarios"
LISTED = SCENARIOS / "people-from-a-file.yaml"


def archive(**files: str) -> bytes:
    packed = io.BytesIO()
    with ZipFile(packed, "w") as made:
        for name, text in files.items():
            made.writestr(name.replace("__", "."), text)
    return packed.getvalue()


def test_what_was_saved_is_opened_again(tmp_path: Path) -> None:
    state = StudioState.of(LISTED).set("lines", "7")
    saved = scenario_file(state)
    assert saved.name == "People-from-a-file.zip"
    file = tmp_path / saved.name
    file.write_bytes(saved.data)
    for again in (open_path(file), opened(file.name, saved.data, {})):
        assert again.scenario.digest == state.scenario.digest
        assert again.differences == ()
    assert open_path(file, ["lines=3"]).scenario.organizations[0].max_concurrent_calls == 3


@pytest.mark.slow
def test_the_page_and_the_workbook_are_of_what_is_shown() -> None:
    state = StudioState.of(SCENARIOS / "first-campaign.yaml").set("people", "60")
    pool = Pool(1)
    estimate = Estimator(pool, limit=3).ask(state.scenario).final()
    pool.close()
    page = report_file(estimate)
    assert (page.name, page.type) == ("First-campaign-report.html", "text/html")
    assert estimate.sentence in page.data.decode()
    assert "3 replications" in page.data.decode()
    for code, said in (("en", "As planned, calling is"), ("th", "ตามแผนนี้")):
        sheet = sheet_file(estimate, [("fewer", estimate), (THE_FILE, estimate)], code)
        assert sheet.name == "First-campaign-sheet.html"
        assert all(text in sheet.data.decode() for text in (said, f'lang="{code}"', "fewer"))
    assert "ไฟล์เดิม" in sheet.data.decode()
    workbook = excel_file(state)
    assert workbook.name == "First-campaign-results.xlsx"
    assert workbook.data.startswith(b"PK")


def test_an_archive_of_a_folder_is_opened_too(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with ZipFile(packed, "w") as made:
        made.write(LISTED, "my folder/week.yaml")
        made.write(LISTED.with_name("people.csv"), "my folder/people.csv")
        made.writestr("__MACOSX/my folder/._week.yaml", "what a system adds")
    assert opened("week.zip", packed.getvalue(), {}).scenario.name == "People from a file"


def test_an_archive_that_is_none_says_so() -> None:
    for name, content, says in (
        ("a.zip", b"PK but no more", "a.zip is no zip file that can be read"),
        ("a.zip", archive(people__csv="tel"), r"one scenario file \(.yaml\), and has none"),
        ("a.zip", archive(a__yaml="1", b__yaml="2"), "and has 2 of them"),
    ):
        with pytest.raises(StudioError, match=says):
            opened(name, content, {})
    text = LISTED.read_text(encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"people\.csv"):
        opened("a.zip", archive(a__yaml=text), {})
