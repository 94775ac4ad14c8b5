"""The studio's page without a browser: its responses to messages, access control, the command."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("panel", reason="panel is not installed: pip install '.[studio]'")

import dialsim
from dialsim.cli import commands
from dialsim.errors import DialsimError
from dialsim.experiments.pool import Pool, shared_pool
from dialsim.sandbox.access import ControlToken
from dialsim.sandbox.server import Server
from dialsim.studio.charts import LinesChart
from dialsim.studio.estimate import Estimator
from dialsim.studio.page import Studio
from dialsim.studio.server import server
from dialsim.studio.state import StudioState
from dialsim.testing import Sketch

SCENARIO = Path(__file__).parents[2] / "scenarios" / "first-campaign.yaml"
TOKEN = "correct-horse-battery-staple"
LINES = "organizations.Acme.maxConcurrentCalls"


def within(do: Callable[[Studio], Any], state: StudioState | None, *, guest: bool = False) -> None:
    """Do something with a studio, as in a cell of a notebook; it may be something that waits."""

    async def cell() -> None:
        studio = Studio(state, served=False, guest=guest)
        try:
            done = do(studio)
            if done is not None:
                await done
        finally:
            studio.close()

    asyncio.run(cell())


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(120):
        while not is_so():
            await asyncio.sleep(0.01)


def test_a_change_is_shown_as_a_set_line_and_is_undone() -> None:
    def do(studio: Studio) -> None:
        studio.hear({"kind": "set", "key": LINES, "number": 14})
        assert studio.page.changes["lines"] == [f"--set {LINES}=14"]
        said = studio.page.changes["values"][LINES]
        assert (said["text"], said["file"], said["changed"]) == ("14", "10", True)
        studio.hear({"kind": "undo"})
        assert studio.page.changes["lines"] == []
        assert studio.page.changes["redo"]

    within(do, StudioState.of(SCENARIO))


def test_a_change_is_answered_by_a_first_estimate_before_any_run() -> None:
    def do(studio: Studio) -> None:
        studio.hear({"kind": "set", "key": LINES, "number": 14})
        assert studio.page.answer["how"].startswith(
            "First estimate, before any run: done Tue 6 Jan"
        )
        assert studio.page.answer["busy"]

    within(do, StudioState.of(SCENARIO))


def test_a_drag_is_undone_in_one_step() -> None:
    def do(studio: Studio) -> None:
        for drag, number in (("a", 12), ("b", 13), ("b", 15), ("b", 15), ("b", 14)):
            studio.hear({"kind": "set", "key": LINES, "number": number, "drag": drag})
        seen = []
        while studio.page.changes["undo"]:
            seen.append(studio.page.changes["lines"])
            studio.hear({"kind": "undo"})
        assert seen == [[f"--set {LINES}=14"], [f"--set {LINES}=12"]]
        assert studio.page.changes["lines"] == []

    within(do, StudioState.of(SCENARIO))


def test_a_bad_value_says_why_at_its_lever_and_an_unknown_path_at_its_field() -> None:
    def do(studio: Studio) -> None:
        studio.hear({"kind": "set", "key": LINES, "text": "many"})
        assert "whole number" in studio.page.changes["values"][LINES]["error"]
        assert studio.page.changes["lines"] == []
        studio.hear({"kind": "any", "path": "cots.perMinute", "text": "2"})
        assert "did you mean costs.perMinute?" in studio.page.changes["anyError"]
        studio.hear({"kind": "any", "path": "costs.perMinute", "text": "2"})
        assert studio.page.changes["anyError"] == ""
        assert studio.page.changes["lines"] == ["--set costs.perMinute=2"]

    within(do, StudioState.of(SCENARIO))


def test_what_can_not_be_done_is_said_and_the_page_lives_on() -> None:
    def do(studio: Studio) -> None:
        studio.hear({"kind": "goto", "pin": "nowhere"})
        assert studio.page.notice == {"text": "there is no pin nowhere", "kind": "bad"}
        studio.hear({"kind": "noted"})
        assert studio.page.notice == {}
        studio.hear({"kind": "ready", "dark": True, "link": "nonsense"})
        assert "link" in studio.page.notice["text"]
        studio.hear({"kind": "set", "key": LINES, "number": 12})
        assert studio.page.changes["lines"] == [f"--set {LINES}=12"]

    within(do, StudioState.of(SCENARIO))


def test_a_link_restores_changes_and_pins() -> None:
    links: list[str] = []

    def first(studio: Studio) -> None:
        studio.hear({"kind": "set", "key": LINES, "number": 14})
        studio.hear({"kind": "pin"})
        links.append(studio.page.changes["link"])

    def second(studio: Studio) -> None:
        studio.hear({"kind": "ready", "dark": False, "link": links[0]})
        assert studio.page.changes["lines"] == [f"--set {LINES}=14"]
        assert studio.page.changes["link"] == links[0]

    within(first, StudioState.of(SCENARIO))
    within(second, StudioState.of(SCENARIO))


def listed(folder: Path) -> Path:
    """A scenario with a list of people, in a folder that is to vanish."""
    for name in ("people-from-a-file.yaml", "people.csv"):
        (folder / name).write_bytes(SCENARIO.with_name(name).read_bytes())
    return folder / "people-from-a-file.yaml"


@pytest.mark.parametrize("gone", ["people.csv", "people-from-a-file.yaml"])
def test_a_file_that_vanishes_hurts_nobody_who_has_it_open(tmp_path: Path, gone: str) -> None:
    state = StudioState.of(listed(tmp_path))
    links: list[str] = []

    async def do(studio: Studio) -> None:
        kept: list[Any] = []
        studio.page.send = kept.append  # type: ignore[method-assign]
        (tmp_path / gone).unlink()
        studio.hear({"kind": "set", "key": LINES, "number": 2})
        assert studio.page.changes["lines"] == [f"--set {LINES}=2"]
        await until(lambda: studio.page.answer.get("facts") and not studio.page.answer["busy"])
        studio.hear({"kind": "save", "what": "scenario"})
        await until(lambda: studio.page.notice.get("text", "").endswith("is saved."))
        assert kept[0]["name"] == "People-from-a-file.zip"
        links.append(studio.page.changes["link"])

    def again(studio: Studio) -> None:  # another session of the same server
        studio.hear({"kind": "ready", "dark": False, "link": links[0]})
        assert studio.page.notice == {}
        assert studio.page.changes["lines"] == [f"--set {LINES}=2"]

    def elsewhere(studio: Studio) -> None:  # a server that has nothing open
        studio.hear({"kind": "ready", "dark": False, "link": links[0]})
        assert gone in studio.page.notice["text"]
        assert studio.page.notice["text"].endswith(
            "is not there any more, so this link can't be opened"
            if gone.endswith("yaml")
            else "there is no such file"
        )
        assert not studio.page.head["begun"]

    within(do, state)
    within(again, state)
    within(elsewhere, None)


def test_a_guest_can_not_have_a_scenario_of_the_server_read_by_a_link() -> None:
    link = StudioState.of(SCENARIO).set("lines", "3").link()

    def do(studio: Studio) -> None:
        studio.hear({"kind": "ready", "dark": False, "link": link})
        assert studio.page.notice["text"].startswith("this link needs its scenario")
        assert not studio.page.head["begun"]

    within(do, None, guest=True)


def test_a_killed_worker_is_told_of_and_the_page_lives_on() -> None:
    async def do(studio: Studio) -> None:
        await until(lambda: studio.page.answer.get("facts"))
        for pid in shared_pool().processes:
            os.kill(pid, signal.SIGKILL)
        await until(lambda: not studio.page.answer["busy"])
        killed = "200 runs. A worker process was killed, and started again."
        assert studio.page.answer["how"] == killed
        studio.hear({"kind": "set", "key": LINES, "number": 12})
        await until(lambda: not studio.page.answer["busy"])
        # that a process which had nothing to do was killed is seen when it is needed
        assert studio.page.answer["how"] in {"200 runs", killed}
        studio.hear({"kind": "set", "key": LINES, "number": 13})
        await until(lambda: not studio.page.answer["busy"])
        assert studio.page.answer["how"] == "200 runs"

    within(do, StudioState.of(SCENARIO))


def many_campaigns(count: int) -> dialsim.Scenario:
    campaign = {"agent": "Reminder", "recipients": {"count": 1}}
    schedule = {"startDateTime": "2026-01-05T02:00:00Z"}
    campaigns = [campaign | {"name": f"Day {n}", "schedule": schedule} for n in range(count)]
    many = Sketch(10, setup_time=None).also(name="Many").agent("Reminder")
    return many.having(campaigns=campaigns).scenario()


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow(minutes=3))])
def test_thousands_of_campaigns_are_answered(count: int) -> None:
    async def do(studio: Studio) -> None:
        async with asyncio.timeout(600):
            while not studio.page.answer.get("sentence"):
                await asyncio.sleep(0.1)
        studio.hear({"kind": "set", "key": LINES, "number": 20})
        assert studio.page.changes["lines"] == [f"--set {LINES}=20"]
        assert studio.page.notice == {}

    within(do, StudioState.of(many_campaigns(count)))


def test_a_scenario_without_people_or_campaigns_is_answered() -> None:
    async def do(studio: Studio) -> None:
        await until(lambda: not studio.page.answer["busy"])
        assert studio.page.answer["sentence"]
        studio.hear({"kind": "any", "path": "organizations.Acme.campaigns", "text": "[]"})
        await until(lambda: studio.page.answer["sentence"] == "Nothing was scheduled.")
        assert studio.page.notice == {}
        studio.hear({"kind": "ask", "question": "help", "given": {}})
        await until(lambda: not studio.page.questions.get("running"))
        studio.hear({"kind": "pause", "since": "Tue 12:00", "until": "Tue 14:00"})
        studio.hear({"kind": "add-campaign"})
        assert studio.page.notice["kind"] == "bad"
        assert "fault" not in studio.page.notice["text"]

    within(do, StudioState.of(SCENARIO).set("people", "0"))


def test_what_has_happened_is_said_first() -> None:
    async def do(studio: Studio) -> None:
        await until(lambda: studio.page.answer.get("facts") and not studio.page.answer["busy"])
        answer = studio.page.answer
        assert answer["sentence"].startswith("From today, Wed 7 Jan 09:00: 95 % sure to be done by")
        assert "117 of them already" in answer["rest"]
        questions = [question for question, _, _ in answer["facts"]]
        assert questions == ["When is it done?", "Whom will it reach?", "What holds it back?"]
        deadline = studio.page.questions["asks"][0]["fields"][0]["value"]
        assert deadline == "2026-01-09 18:00"

    within(do, StudioState.of(SCENARIO.with_name("forecast-from-the-middle.yaml")))


REFUSED = "no files of this machine are read here"


def test_a_guest_can_not_have_files_of_the_server_read(tmp_path: Path) -> None:
    private = tmp_path / "private.csv"
    private.write_text("tel,agentParams.amount\n0812345678,5\n", encoding="utf-8")
    block = json.dumps({"file": str(private)})
    link = StudioState.of(SCENARIO).set("January.recipients", block).link()
    people = "{count: 6000, agentParams: {amount: 100}}"
    text = SCENARIO.read_text(encoding="utf-8").replace(people, block)

    async def cell() -> None:
        studio = Studio(StudioState.of(SCENARIO), served=False, guest=True)
        try:
            studio.hear({"kind": "any", "path": "January.recipients", "text": block})
            assert REFUSED in studio.page.changes["anyError"]
            studio.hear({"kind": "ready", "dark": False, "link": link})
            assert REFUSED in studio.page.notice["text"]
            studio.hear({"kind": "noted"})
            studio.hear({"kind": "upload", "name": "mine.yaml", "data": text.encode()})
            async with asyncio.timeout(60):
                while studio.page.notice["kind"] != "bad":
                    await asyncio.sleep(0.01)
            assert REFUSED in studio.page.notice["text"]
            assert studio.page.changes["lines"] == []
            studio.hear({"kind": "set", "key": LINES, "number": 12})
            assert studio.page.changes["lines"] == [f"--set {LINES}=12"]
            content = StudioState.of(SCENARIO).without_files().set("lines", "12").link()
            assert studio.page.changes["link"] == content  # without folders of the server
        finally:
            studio.close()

    asyncio.run(cell())


def test_without_a_scenario_answers_that_can_not_be_read_are_told_at_their_fields() -> None:
    def do(studio: Studio) -> None:
        assert not studio.page.head["begun"]
        answers = {name: default for name, _, _, default in studio.page.asked}
        answers |= {"people": "none", "start": "soon", "windows": "Mon-Thu 09:00-19:00",
                    "holiday_hours": "early"}  # fmt: skip
        studio.hear({"kind": "begin", "answers": answers, "ordinary": []})
        assert set(studio.page.head["errors"]) == {"people", "start", "holidays", "holiday_hours"}

    within(do, None)


def asked(port: int, path: str, **headers: str) -> Any:
    """The status of an answer, and where it leads."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers=headers)
    try:
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers
    finally:
        connection.close()


def answers_of(made: Server, ask: Callable[[], Any]) -> Any:
    """Ask a server that runs in this thread's loop, from another."""

    async def both() -> Any:
        return await asyncio.to_thread(ask)

    try:
        return made.io_loop.asyncio_loop.run_until_complete(both())
    finally:
        made.stop()


def test_a_name_of_somebody_elses_choice_is_refused_and_so_are_other_pages() -> None:
    made = server(None)

    def ask() -> list[int]:
        port = int(made.port or 0)
        return [
            asked(port, "/")[0],
            asked(port, "/", Host="evil.example")[0],
            asked(port, "/", Origin="http://evil.example")[0],
        ]

    assert answers_of(made, ask) == [200, 403, 403]


def test_no_page_of_another_site_shows_the_studio_in_a_frame() -> None:
    made = server(None)

    def ask() -> list[str | None]:
        with closing(http.client.HTTPConnection("127.0.0.1", int(made.port or 0))) as connection:
            connection.request("GET", "/")
            return [connection.getresponse().headers["Content-Security-Policy"]]

    assert answers_of(made, ask) == ["frame-ancestors 'self'"]


def test_with_a_token_only_who_has_it_comes_in() -> None:
    token = ControlToken(TOKEN)
    made = server(None, token=token)

    def ask() -> list[Any]:
        port = int(made.port or 0)
        status, headers = asked(port, "/")
        wrong, _ = asked(port, "/login?token=wrong-horse-battery-staple")
        right, given = asked(port, f"/login?token={TOKEN}")
        cookie = given["Set-Cookie"].partition(";")[0]
        return [status, headers["Location"].startswith("./login"), wrong, right,
                TOKEN in cookie, asked(port, "/", Cookie=cookie)[0]]  # fmt: skip

    assert answers_of(made, ask) == [302, True, 401, 302, False, 200]


def test_other_hosts_need_a_token() -> None:
    with pytest.raises(DialsimError, match="other machines reach this address"):
        server(None, "0.0.0.0")


def test_the_command_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = CliRunner().invoke(commands, ["studio", "--set", "lines=3"])
    assert run.exit_code == 2
    assert "--set goes with a SCENARIO" in run.output
    people = str(SCENARIO.with_name("people.csv"))
    run = CliRunner().invoke(commands, ["studio", people, "--set", "lines=3"])
    assert "--set goes with a SCENARIO" in run.output
    monkeypatch.setitem(sys.modules, "panel", None)
    monkeypatch.setattr("dialsim.sandbox.access.find_spec", lambda name: None)
    run = CliRunner().invoke(commands, ["studio"])
    assert isinstance(run.exception, DialsimError)
    assert "pip install '.[studio]'" in str(run.exception)


def test_an_area_of_steps_is_never_empty() -> None:
    """Bokeh 3.9 draws an area of steps without points for ever, and the tab hangs."""
    chart = LinesChart()
    sources = [renderer.data_source for renderer in chart.figure.renderers]
    # Shades of calling hours have other columns, and may be none
    drawn = [source for source in sources if "x" in source.data]
    assert len(drawn) == 4
    assert all(len(source.data["x"]) for source in drawn)
    state = StudioState.of(SCENARIO).set("organizations.Acme.campaigns", "[]")
    pool = Pool(1)
    chart.show(Estimator(pool, limit=1).ask(state.scenario).final(), [])
    pool.close()
    assert all(len(source.data["x"]) for source in drawn)


def test_the_page_gives_python_the_scenario_with_the_changes_made_on_it() -> None:
    def change(studio: Studio) -> None:
        studio.page.hear({"kind": "set", "key": LINES, "number": 17})
        changed = studio.page.scenario
        assert changed is not None
        assert changed.organizations[0].max_concurrent_calls == 17

    def begin(studio: Studio) -> None:
        assert studio.page.scenario is None

    within(change, StudioState.of(SCENARIO))
    within(begin, None)
