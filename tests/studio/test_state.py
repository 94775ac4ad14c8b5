"""A studio's state: every change is a line that can be pasted, and nothing is lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialsim
from dialsim.errors import ScenarioError, StudioError
from dialsim.interface.instants import parse_instant
from dialsim.scenario.campaign import GeneratedRecipients, RecipientsFile
from dialsim.scenario.list_doctor import clean_list
from dialsim.scenario.new_scenario import NewScenario, proposed_holidays
from dialsim.studio.files import with_list
from dialsim.studio.levers import Lever, campaigns, complete, levers, path_to_campaign, pauses
from dialsim.studio.state import StudioState
from dialsim.testing import Sketch
from studio.saving import saved

SCENARIOS = Path(__file__).parents[2] / "scenarios"
FIRST = SCENARIOS / "first-campaign.yaml"
LINES = "organizations.Acme.maxConcurrentCalls"
JANUARY = "organizations.Acme.campaigns.January"


@pytest.fixture
def first() -> StudioState:
    return StudioState.of(FIRST)


def lever(state: StudioState, label: str) -> Lever:
    (found,) = (each for each in levers(state.scenario) if each.label == label)
    return found


def test_a_change_is_a_line_that_commands_take(first: StudioState) -> None:
    state = first.set("lines", "12").set("January.windows", "Mon-Sat 09:00-20:00")
    assert state.differences == (
        f"{LINES}=12",
        f"{JANUARY}.schedule.timeWindows=Mon-Sat 09:00-20:00",
    )
    assert state.set_lines()[1] == f"--set '{JANUARY}.schedule.timeWindows=Mon-Sat 09:00-20:00'"
    assert state.command().startswith(f"dialsim run {FIRST} --set {LINES}=12 --set ")
    assert state.scenario.digest == dialsim.load(FIRST, overrides=state.differences).digest


def test_the_last_change_of_a_path_counts_however_it_is_written(first: StudioState) -> None:
    state = first.set("lines", "12").set("organizations.0.maxConcurrentCalls", "14")
    assert state.differences == (f"{LINES}=14",)
    assert state.reset("lines").scenario.digest == first.scenario.digest


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("lines", "many", "must be a whole number"),
        ("maxAttempts", "0", "must not be less than 1"),
        ("nonsense", "1", "neither a key of the file nor a name"),
        ("windows", "Mon 25:00-26:00", "must be a time such as 09:00-18:00"),
    ],
)
def test_a_bad_value_says_why_and_changes_nothing(
    first: StudioState, path: str, text: str, says: str
) -> None:
    state = first.set("lines", "12")
    with pytest.raises(ScenarioError, match=says):
        state.set(path, text)
    assert state.differences == (f"{LINES}=12",)


def test_undo_and_redo_go_through_all_changes(first: StudioState) -> None:
    state = first.set("lines", "12").set("lines", "13").set("seed", "7")
    back = state.undo().undo()
    assert back.differences == (f"{LINES}=12",)
    assert back.scenario.organizations[0].max_concurrent_calls == 12
    assert back.redo().redo() == state
    assert back.set("seed", "8").redo().differences == (f"{LINES}=12", "seed=8")
    assert first.undo() is first


def test_answers_and_talk_times_keep_what_is_not_changed(first: StudioState) -> None:
    state = first.turn(lever(first, "Answered"), "40 %")
    now, then = state.scenario.behaviours["default"], first.scenario.behaviours["default"]
    assert (now.outcomes.answered, now.outcomes.failed) == (0.4, then.outcomes.failed)
    assert now.people == then.people
    state = state.turn(lever(state, "Mean talk time"), "2m")
    assert lever(state, "Mean talk time").value == 120_000
    assert state.scenario.behaviours["default"].outcomes.answered == 0.4
    for text in ("99%", "many", "-1"):
        with pytest.raises(ScenarioError):
            first.turn(lever(first, "Answered"), text)


def test_pauses_and_further_campaigns_are_differences_too(first: StudioState) -> None:
    state = first.pause((0, 0), "Tue 12:00", "Tue 13:00").add_campaign("February", 500)
    ((since, until),) = pauses(state.scenario, (0, 0))
    assert until == since + 3_600_000
    assert [name for _, name, _ in campaigns(state.scenario)] == ["January", "February"]
    state = state.set("February.maxAttempts", "5")
    assert dialsim.load(FIRST, overrides=state.differences).digest == state.scenario.digest
    assert state.without(state.differences[0]).differences == state.differences[1:]


def test_levers_have_the_value_of_the_file(first: StudioState) -> None:
    found = {each.label: each for each in levers(first.scenario)}
    assert found["Lines"].path == LINES
    assert (found["Lines"].value, found["Attempts"].value) == (10, 3)
    assert found["Windows"].text == "Mon-Fri 09:00-19:00; Sat-Sun 10:00-19:00"
    assert found["Caller IDs"].choices == ("021000001", "021000002", "021000003")
    for each in found.values():  # the text of each is one that it takes
        if each.text:
            assert lever(first.turn(each, each.text), each.label).value == each.value


def test_hours_by_kind_of_day_and_lines_of_the_evening_are_levers() -> None:
    state = StudioState.of(SCENARIOS / "songkran.yaml")
    found = {each.label: each for each in levers(state.scenario)}
    assert "Windows" not in found
    hours = {label: each.text for label, each in found.items() if label.startswith("Hours")}
    assert [*hours.values()] == ["08:00-20:00", "08:00-18:00", "closed", "10:00-16:00"]
    lines = {label: each.text for label, each in found.items() if "ines" in label}
    assert lines == {
        "Lines": "4", "Lines, Mon-Fri 13:00-18:00": "8", "Lines, holiday": "2",
    }  # fmt: skip
    closed = state.turn(found["Hours Mon-Fri"], "09:00-12:00, 13:00-17:00")
    closed = closed.turn(found["Hours on holidays"], "")
    (campaign,) = closed.scenario.organizations[0].campaigns
    assert campaign.calling_hours is not None
    assert campaign.calling_hours.weekday == ((540, 720), (780, 1020))
    assert campaign.calling_hours.holiday is None  # as the day of the week
    with pytest.raises(StudioError, match="hours must be a time such as 09:00-18:00"):
        state.turn(found["Hours on Sundays"], "morning")


def test_evening_lines_are_the_usual_ones_until_they_are_set(first: StudioState) -> None:
    unset = lever(first, "Evening lines")
    assert (unset.value, unset.text) == (10, "")
    more = first.turn(unset, "25")
    assert more.differences == ("organizations.Acme.lines.17:00-24:00=25",)
    assert more.scenario.organizations[0].lines == {"17:00-24:00": 25}
    assert lever(more, "Evening lines").text == "25"
    assert more.turn(lever(more, "Evening lines"), "").differences == ()


DEBTS = "เบอร์โทร,กลุ่ม,ยอดหนี้\n" + "".join(
    f"08{number:08},{('ใหม่', 'ค้างนาน')[number % 2]},{100 * number}\n" for number in range(1, 41)
)


def begun(**more: str) -> StudioState:
    asked = NewScenario(listed="debts.csv", start="2026-04-09 09:00", **more)
    return StudioState.begin(asked, DEBTS.encode())


def test_a_list_is_sorted_and_cut_by_levers_and_keeps_its_segments() -> None:
    state = begun(value="ยอดหนี้")
    sort = lever(state, "Sort")
    assert sort.choices == ("-ยอดหนี้", "ยอดหนี้")
    first = lever(state, "First of the list")
    assert (first.value, first.text, first.high) == (40, "", 40)
    state = state.turn(sort, sort.choices[0]).turn(first, "3")
    recipients = state.scenario.organizations[0].campaigns[0].recipients
    assert isinstance(recipients, RecipientsFile)
    assert recipients.table.params == {"ยอดหนี้": [4000, 3900, 3800]}
    assert [*recipients.table.segments.texts] == ["ใหม่", "ค้างนาน"]
    again = lever(state, "First of the list")
    assert (again.value, again.high) == (3, 40)
    assert state.turn(again, "").scenario.organizations[0].campaigns[0].size == 40


def test_holidays_close_days_unless_they_are_ordinary_and_the_deadline_is_kept() -> None:
    state = begun(deadline="2026-04-14 18:00")
    assert state.deadline == parse_instant("2026-04-14T11:00:00Z")
    assert state.set("lines", "3").deadline == state.deadline
    proposed = proposed_holidays("2026-04-09 09:00", "2026-04-14 18:00", "TH")
    assert [str(day) for day in proposed] == ["2026-04-13", "2026-04-14"]
    assert proposed_holidays("2026-04-09 09:00", "", "none") == {}
    assert proposed_holidays("soon", "", "TH") == {}
    asked = NewScenario(start="2026-04-09 09:00", ordinary=("2026-04-14",))
    calendar = StudioState.begin(asked).scenario.calendar
    assert calendar is not None
    names = [str(day) for day in calendar.names]
    assert "2026-04-13" in names
    assert "2026-04-14" not in names
    further = state.add_campaign("May", 5).scenario.organizations[0].campaigns
    assert further[1].calling_hours == further[0].calling_hours


def test_a_list_opened_in_a_scenario_gives_the_agent_its_amounts() -> None:
    state = StudioState.of(SCENARIOS / "songkran.yaml")
    state = with_list(state, (0, 0), "debts.csv", DEBTS.encode())
    assert lever(state, "Sort").choices == ("-ยอดหนี้", "ยอดหนี้")
    assert len(state.past) == 1


ODD = "a.b = <i>"
"""An organization's name that cannot stand in a path."""


def test_names_with_markup_and_signs_can_be_changed() -> None:
    sketch = Sketch(setup_time=None).organization(ODD, 5)
    for number in range(2):
        sketch = sketch.campaign(f"<b>x</b> & 50% = {number}", recipients={"count": 1}, agent="A")
    state = StudioState.of(sketch.scenario())
    for campaign in ((0, 0), (0, 1)):
        attempts = next(e for e in levers(state.scenario, campaign) if e.label == "Attempts")
        state = state.turn(attempts, "4")
    requests = [campaign.schedule for campaign in state.scenario.organizations[0].campaigns]
    assert [request and request.max_attempts for request in requests] == [4, 4]


@pytest.mark.slow
def test_ten_thousand_campaigns_have_levers_one_by_one() -> None:
    schedule = {"startDateTime": "2026-01-05T02:00:00Z"}
    campaigns = [
        {"name": f"C{k}", "agent": "Agent", "recipients": {"count": 1}, "schedule": schedule}
        for k in range(10_000)
    ]
    sketch = Sketch(setup_time=None).organization(ODD, 5, campaigns=campaigns)
    state = StudioState.of(sketch.scenario())
    found = levers(state.scenario, (0, 9_999))
    assert len(found) < 20
    (people,) = (each for each in found if each.label == "People")
    assert people.path == "organizations.0.campaigns.C9999.recipients.count"
    assert len(complete(state.scenario, "organizations.0.campaigns.C")) == 200
    changed = state.turn(people, "7").scenario.organizations[0].campaigns[9_999]
    assert changed.size == 7


def test_nobody_to_call_and_nothing_at_all_have_levers() -> None:
    empty = StudioState.of(FIRST).set(f"{JANUARY}.recipients", "[]")
    assert "People" not in {each.label for each in levers(empty.scenario)}
    assert {each.label for each in levers(empty.scenario, (0, 5))} == {"Lines", "Evening lines"}
    assert levers(empty.scenario, (3, 0)) == []


def test_completion_goes_down_level_by_level(first: StudioState) -> None:
    assert "engine" in complete(first.scenario)
    assert complete(first.scenario, "engine.queueT") == ["engine.queueTimeout"]
    assert f"{JANUARY}.schedule.maxAttempts" in complete(first.scenario, f"{JANUARY}.schedule.")
    assert complete(first.scenario, "nothing.of.that") == []


# -- links -----------------------------------------------------------------------------------------


def test_a_link_restores_differences_and_pins(first: StudioState) -> None:
    state = first.set("lines", "12").pin("twelve").set("name", "สิบสอง").pin()
    link = state.link()
    assert re.fullmatch(r"[A-Za-z0-9_-]+", link)
    for again in (StudioState.from_link(f"#{link}"), StudioState.from_link(link, opened=first)):
        assert again.differences == state.differences
        assert again.scenario.digest == state.scenario.digest
        assert [pin.name for pin in again.pins] == ["twelve", "variant 1"]
        assert again.pins[0].scenario.digest == state.pins[0].scenario.digest


def test_a_link_says_when_its_file_has_changed_or_vanished(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_bytes(FIRST.read_bytes())
    link = StudioState.of(file).set("lines", "12").link()
    file.write_text(FIRST.read_text(encoding="utf-8") + "seed: 3\n", encoding="utf-8")
    with pytest.raises(StudioError, match=r"my\.yaml or a list that it names has changed since"):
        StudioState.from_link(link)
    file.unlink()
    with pytest.raises(StudioError, match=r"my\.yaml is not there any more"):
        StudioState.from_link(link)


def test_a_guest_of_a_server_opens_no_other_file(first: StudioState) -> None:
    other = StudioState.of(SCENARIOS / "scripted.yaml").link()
    with pytest.raises(StudioError, match="has changed since"):
        StudioState.from_link(other, opened=first)


@given(st.text(alphabet="AZaz059-_#= é", max_size=40))
def test_whatever_is_no_link_is_refused(text: str) -> None:
    with pytest.raises(StudioError, match="not one of a studio"):
        StudioState.from_link(text)


# -- files -----------------------------------------------------------------------------------------


def test_a_saved_file_keeps_comments_and_says_the_same(first: StudioState, tmp_path: Path) -> None:
    state = first.set("lines", "12").set("January.end", "Fri 18:00").set("seed", "77")
    file = saved(state, tmp_path)
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server")
    assert "startDateTime: 2026-01-05T02:00:00Z # Monday 09:00 in Thailand\n" in text
    assert "    maxConcurrentCalls: 12\n" in text
    assert dialsim.load(file).digest == state.scenario.digest
    assert sorted(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("name", ["people-from-a-file", "songkran", "scripted"])
def test_every_kind_of_file_can_be_saved_elsewhere(name: str, tmp_path: Path) -> None:
    state = StudioState.of(SCENARIOS / f"{name}.yaml").set("seed", "77")
    again = dialsim.load(saved(state, tmp_path))
    assert again.seed == 77
    sizes = [size for _, _, size in campaigns(state.scenario)]
    assert [size for _, _, size in campaigns(again)] == sizes


def test_where_an_anchor_stands_for_two_places_only_one_is_changed(tmp_path: Path) -> None:
    text = FIRST.read_text(encoding="utf-8").replace("January\n", "&n January\n", 1)
    text = text.replace("name: First campaign", "name: &t First\ndescription: *t", 1)
    text = re.sub(r"description: Six.*\n", "", text)
    state = StudioState.of(dialsim.loads(text)).set("description", "Other")
    assert dialsim.load(saved(state, tmp_path)).digest == state.scenario.digest


def test_a_list_that_vanishes_is_kept_and_saved(tmp_path: Path) -> None:
    for name in ("people-from-a-file.yaml", "people.csv"):
        (tmp_path / name).write_bytes((SCENARIOS / name).read_bytes())
    state = StudioState.of(tmp_path / "people-from-a-file.yaml")
    os.remove(tmp_path / "people.csv")
    state = state.set("seed", "4")
    assert dialsim.load(saved(state, tmp_path)).digest == state.scenario.digest


def test_a_new_one_begins_with_a_list_and_a_few_answers(tmp_path: Path) -> None:
    content = "เบอร์,ชื่อ\n081-234-5678,สมชาย\n082-345-6789,สมหญิง\n".encode()
    asked = NewScenario(listed="../ลูกค้า.csv", start="2026-01-05 09:00", deadline="Fri 18:00")
    state = StudioState.begin(asked, content)
    assert [size for _, _, size in campaigns(state.scenario)] == [2]
    file = saved(state, tmp_path)
    found = clean_list((tmp_path / "ลูกค้า-clean.xlsx").read_bytes(), "clean.xlsx")
    assert found.cells == [["0812345678", "สมชาย"], ["0823456789", "สมหญิง"]]
    assert dialsim.load(file).digest == state.scenario.digest
    with pytest.raises(StudioError, match="this link is to a scenario that was never saved"):
        StudioState.from_link(state.link())
    with pytest.raises(StudioError, match="must have its time as HH:MM"):
        StudioState.begin(NewScenario(start="Mon 9am"))


def test_a_new_one_has_the_defaults_of_the_command() -> None:
    asked = NewScenario(start="2026-01-05 09:00")
    (campaign,) = StudioState.begin(asked).scenario.organizations[0].campaigns
    assert isinstance(campaign.recipients, GeneratedRecipients)
    said = subprocess.run(
        [sys.executable, "-m", "dialsim", "new", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    said = " ".join(said.split())
    for default in (
        asked.name,
        asked.lines,
        asked.windows,
        asked.attempts,
        asked.retry_interval,
        asked.holidays,
        asked.holiday_hours,
    ):
        assert f"default: {default}." in said


def test_without_files_only_the_lists_that_are_there_are_read(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("tel\n0812345678\n", encoding="utf-8")
    state = StudioState.of(FIRST.with_name("people-from-a-file.yaml")).without_files()
    assert state.set("lines", "3").scenario.organizations[0].max_concurrent_calls == 3
    path = f"{path_to_campaign(state.scenario, (0, 0))}.recipients.file"
    with pytest.raises(ScenarioError, match="no files of this machine are read here"):
        state.set(path, str(tmp_path / "other.csv"))
    behaviour = f'{{"dist": "empirical", "file": "{tmp_path}/other.csv", "column": "tel"}}'
    with pytest.raises(ScenarioError, match="no files of this machine are read here"):
        state.set("behaviours.default.talkTime", behaviour)
