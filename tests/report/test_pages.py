from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from math import inf, nan

import pytest

import dialsim
from dialsim.experiments.experiment_text import amount_text
from dialsim.experiments.plan import plan
from dialsim.experiments.plan_text import plan_headline
from dialsim.experiments.replications import replicate
from dialsim.experiments.sweep import sweep
from dialsim.report.page import ReportPage, Section
from dialsim.report.replications_page import campaign_table
from dialsim.report.what_if import FurtherRuns
from dialsim.report.writing import (
    optimum_report,
    plan_report,
    replications_report,
    run_report,
    sweep_report,
)
from dialsim.results.result import Result
from dialsim.results.summary_text import FigureTable, ValueText, answers
from dialsim.testing import Sketch
from report.pages import ACME, GOAL, KINDS, LINES, Reader, acme, clients, make, rendered


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_whole_html_with_one_title_and_headings_in_order(
    pages: dict[str, str], kind: str
) -> None:
    page = Reader(pages[kind])
    assert pages[kind].startswith("<!doctype html>\n")
    assert page.of("html") == [{"lang": "en"}]
    assert {"charset": "utf-8"} in page.of("meta")
    assert any(meta.get("name") == "viewport" for meta in page.of("meta"))
    levels = [int(tag[1]) for tag, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert set(levels) == {1, 2}
    assert len(page.of("main")) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_loads_nothing_and_runs_no_script_but_its_own(
    pages: dict[str, str], kind: str
) -> None:
    page = Reader(pages[kind])
    loading = {"link", "iframe", "object", "embed", "img", "video", "audio", "base"}
    assert not loading & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name not in ("src", "srcset", "action")
            if name == "href":
                assert (value or "").startswith("#")
    assert "http:" not in pages[kind]
    assert "https:" not in pages[kind].replace("https://receiver.example", "")
    assert "@import" not in pages[kind]
    assert not re.search(r"url\((?!#)", pages[kind])
    (script,) = re.findall(r"<script>(.*?)</script>", pages[kind], re.DOTALL)
    (policy,) = (meta["content"] for meta in page.of("meta") if "http-equiv" in meta)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert policy == (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
        f"script-src 'sha256-{digest}'"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_has_size_and_alternative_text(pages: dict[str, str], kind: str) -> None:
    page = Reader(pages[kind])
    pictures = page.of("svg")
    assert len(pictures) >= 2
    for picture in pictures:
        assert picture["role"] == "img"
        assert len(picture["aria-label"] or "") > 30
        assert int(picture["width"] or 0) > 200
        assert int(picture["height"] or 0) > 100
        assert re.fullmatch(r"0 0 [\d.]+ [\d.]+", picture["viewbox"] or "")
    labels = [picture["aria-label"] for picture in pictures]
    assert len(set(labels)) == len(labels)
    assert len(page.of("figcaption")) == len(pictures)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind != "run")) for kind in KINDS]
)
def test_no_two_elements_share_an_id_and_every_reference_has_its_own(kind: str) -> None:
    page = Reader(rendered(kind))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    referred = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', rendered(kind))
    assert referred
    assert {one or other for one, other in referred} <= set(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_has_heads_for_its_columns_and_rows(pages: dict[str, str], kind: str) -> None:
    page = Reader(pages[kind])
    assert page.of("table")
    scopes = [head.get("scope") for head in page.of("th")]
    assert set(scopes) == {"col", "row"}
    assert scopes.count("row") == len(page.of("tr")) - len(page.of("thead"))


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_the_scenario_stand_there_as_text(pages: dict[str, str], kind: str) -> None:
    assert "<& Co>" not in pages[kind]
    files = "january-as-planned.yaml or january-more-lines.yaml"
    title = files if kind == "compare" else "งวดมกราคม <& Co>"
    assert Reader(pages[kind]).headings[0] == ("h1", title)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_same_experiment_same_page(kind: str) -> None:
    assert make(kind) == rendered(kind)


def test_the_page_of_a_run_answers_first_and_in_the_summary_s_figures(
    pages: dict[str, str], acme_run: Result
) -> None:
    summary = acme_run.summary
    page = Reader(pages["run"])
    assert page.headings[1][1].startswith("All done Mon 5 Jan 2026 ")
    for question in (
        "Will it finish? Yes Mon 5 Jan 2026 ",
        "How sure is that? 2 runs with different chance",
        f"Whom does it reach? {summary.people_reached} of 160 people reached",
        "What holds it back?",
        "What would help?",
        f"What does it cost? {summary.cost:,.2f} THB",
    ):
        assert question in page.words
    assert [text for tag, text in page.headings[2:] if tag == "h2"] == [
        "Campaign by campaign",
        "What would help",
        "How it goes",
        "Figures",
    ]


@pytest.mark.usefixtures("pictures_undrawn")
def test_the_cost_of_a_run_is_split_into_dials_minutes_lines_and_fixed() -> None:
    costs = {"perDial": 0.5, "perMinute": 1.2, "perLineDay": 35, "fixed": 500}
    result = dialsim.run(acme().also(costs=costs).scenario())
    words = Reader(run_report(result, pairs=0)).words
    found = re.search(
        r"Dials ([\d.,]+), minutes ([\d.,]+), lines ([\d.,]+), fixed ([\d.,]+)\.", words
    )
    assert found is not None
    dials, minutes, lines, fixed = (float(text.replace(",", "")) for text in found.groups())
    summary = result.summary
    assert summary.cost is not None
    assert dials == (summary.dials - summary.dials_withdrawn) / 2
    assert (lines, fixed) == (5 * 35, 500)
    assert dials + minutes + lines + fixed == pytest.approx(summary.cost, abs=0.011)


@pytest.mark.usefixtures("pictures_undrawn")
def test_reached_by_attempt_shows_all_attempts() -> None:
    busy = "; ".join(["busy 1s"] * 18 + ["answered 5s 60s"])
    sketch = Sketch(1).campaign("January", busy, "answered 5s 60s", max_attempts=19,
                                retry_interval="5m")  # fmt: skip
    words = Reader(run_report(dialsim.run(sketch.scenario()), pairs=0)).words
    tables = words.split("Reached by attempt ")[1:]
    assert " ".join(tables).count("%") == 19
    assert "19 100" in tables[-1].replace("\N{NO-BREAK SPACE}", " ")


def test_the_table_of_campaigns_names_their_organizations(
    eighteen: str, eighteen_run: Result, pages: dict[str, str]
) -> None:
    summary = eighteen_run.summary
    page = Reader(eighteen).words
    assert "Campaign organization finish reach held back by Campaign 1.1 Client 1 " in page
    one = Reader(pages["run"]).words
    assert "Campaign finish reach cost held back by มกราคม completed " in one
    for part, answer in zip(summary.campaigns, answers(summary), strict=True):
        assert f"{part.name} {part.organization} {answer.finish} {answer.reach}" in page


def test_a_page_says_how_to_get_the_pictures_that_it_leaves_out(
    eighteen: str, pages: dict[str, str]
) -> None:
    page = Reader(eighteen)
    pictures = [label["aria-label"] or "" for label in page.of("svg")]
    shown = [label for label in pictures if label.startswith("Progress of")]
    assert len(shown) == 12
    assert (
        "Up to 12 campaigns and 6 organizations have pictures of their own here. In Python, "
        "dialsim.run(dialsim.load(FILE)).plot draws any of them."
    ) in page.words
    assert "have pictures of their own" not in Reader(pages["run"]).words


@pytest.mark.usefixtures("pictures_unrendered")
def test_a_campaign_that_never_started_takes_no_other_s_picture() -> None:
    many = clients(1, 14, start="1 Jan 2026 07:00", end="1 Feb 2026 07:00", drafts=2)
    page = Reader(run_report(dialsim.run(many.scenario()), pairs=0))
    pictures = [label["aria-label"] or "" for label in page.of("svg")]
    assert sum(label.startswith("Progress of") for label in pictures) == 12
    assert "have pictures of their own" not in page.words


def test_maps_of_answers_and_funnels_are_those_of_one_organization(
    eighteen: str, eighteen_run: Result
) -> None:
    page = Reader(eighteen).words
    for owner in eighteen_run.summary.organizations:
        assert f"Attempt 1: share of attempts of {owner.name} answered, by weekday" in page
        assert f"From people to the steps of the conversation: {owner.name}, Reminder." in page


def test_reach_and_hours_of_answers_are_chosen_by_organization_and_attempt(
    eighteen: str, eighteen_run: Result
) -> None:
    page = Reader(eighteen)
    choices = [part["aria-label"] for part in page.of("div") if part.get("role") == "radiogroup"]
    assert choices == ["Attempt", "Attempt", "Attempt", "Of"]
    labels = re.findall(r"<label[^>]*>([^<]+)</label>", eighteen)
    assert labels == ["1", "2", "3"] * 3 + ["Client 1", "Client 2", "Client 3"]
    checked = [box["id"] for box in page.of("input") if "checked" in box]
    assert [str(name).rpartition("-")[2] for name in checked] == ["1"] * 4
    for owner in eighteen_run.summary.organizations:
        assert f"Attempt 2: share of attempts of {owner.name} answered, by weekday" in page.words
        assert f"Of {owner.name}: share of the people reached by each attempt." in page.words


LINES_OF_FIRST = "organizations.0.maxConcurrentCalls"


@pytest.mark.usefixtures("pictures_undrawn")
@pytest.mark.parametrize("kind", ["replications", "plan", "optimum"])
def test_pages_of_many_runs_have_a_row_for_each_campaign(kind: str) -> None:
    scenario = clients(2, 2).also(costs={"perMinute": 1, "currency": "THB"}).scenario()
    runs = replicate(scenario, 5, jobs=1)
    table = campaign_table(runs.figures, "THB")
    assert table.columns == (
        "organization", "median finish", "95 % done", "people", "reached", "cost, THB"
    )  # fmt: skip
    frame = runs.frame
    for row in table.rows[:-1]:
        part = frame[(frame["campaign"] == row[0]) & (frame["organization"] == row[1])]
        half = sorted(part["finish"])[2].tz_convert("Asia/Bangkok")
        assert row[2] == f"{half:%a} {half.day} {half:%b %H:%M}"
        assert row[5] == amount_text("people_reached", part["people_reached"].mean())
        assert row[6] == amount_text("cost", part["cost"].mean())
    assert [row[0] for row in table.rows] == [*dict.fromkeys(frame["campaign"]), "all"]
    if kind == "replications":
        page = Reader(replications_report(runs, FurtherRuns(0))).words
    elif kind == "plan":
        answer = plan(scenario, LINES_OF_FIRST, (4, 4), "mean(people_reached) >= 1",
                      replications=5, max_replications=5, jobs=1)  # fmt: skip
        page = Reader(plan_report(answer, scenario, None, FurtherRuns(0))).words
    else:
        best = dialsim.optimize(scenario, {LINES_OF_FIRST: [4]}, ["mean(people_reached) >= 1"],
                                replications=5, max_replications=5, jobs=1)  # fmt: skip
        page = Reader(optimum_report(best, scenario, None)).words
    assert f"Campaign by campaign {'' if kind == 'replications' else 'Of the 5 runs'}" in page
    assert " ".join(table.rows[0]) in page


@pytest.mark.usefixtures("pictures_undrawn")
def test_the_tables_of_a_sweep_name_the_organization_of_each_campaign_where_there_are_several() -> (
    None
):
    found = sweep(clients(2, 2).scenario(), {"organizations.0.maxConcurrentCalls": [4, 6]}, 2,
                  jobs=1)  # fmt: skip
    page = Reader(sweep_report(found, FurtherRuns(0)))
    assert "Client 1/Campaign 1.1 median finish" in page.words
    assert "Client 2/Campaign 2.2 minus 4 lines" in page.words


def test_cells_that_say_a_number_an_instant_or_a_length_of_time_bear_its_value() -> None:
    rows = (
        ("1,204", "12", ValueText("Mon 5 Jan 09:00", 1.5e12), ValueText("never", inf)),
        ("a", "4 THB", ValueText("–", nan), ValueText("2 h earlier", -7200.0)),
    )
    html = ReportPage("T", "L", "A", [], [Section("H", [FigureTable("X", ("a", "b", "c"), rows)])],
                      "M").html()  # fmt: skip
    cells = re.findall(r"<t[hd] (?:scope=\"row\"|role=\"cell\")([^>]*)>([^<]*)", html)
    values = {text: re.search('data-value="([^"]*)"', found) for found, text in cells}
    assert {text: found and found[1] for text, found in values.items()} == {
        "1,204": "1204", "12": "12", "Mon 5 Jan 09:00": "1500000000000.0", "never": "Infinity",
        "a": None, "4 THB": None, "–": None, "2 h earlier": "-7200.0",
    }  # fmt: skip


@pytest.mark.usefixtures("pictures_undrawn")
def test_the_page_of_few_replications_does_not_say_by_when_95_in_100_are_done(
    pages: dict[str, str],
) -> None:
    few = Reader(pages["replications"])
    assert few.headings[1][1].startswith("Half of the runs are done by Mon 5 Jan ")
    assert "Will it finish? Yes, in all 6 runs" in few.words
    assert "but 6 runs can't tell how late it may get: 72 or more would." in few.words
    one = Reader(replications_report(replicate(ACME.scenario(), 1, jobs=1), FurtherRuns(0)))
    assert "but 1 run can't tell how late it may get" in one.words
    assert "1 runs" not in one.words


@pytest.mark.slow
@pytest.mark.usefixtures("pictures_undrawn")
def test_the_page_of_replications_says_by_when_95_in_100_are_done_if_its_runs_tell() -> None:
    runs = replicate(ACME.scenario(), 72, jobs=1)
    latest = runs.runs["finish"].max().tz_convert("Asia/Bangkok")
    enough = Reader(replications_report(runs, FurtherRuns(0)))
    assert enough.headings[1][1] == (
        f"95\N{NO-BREAK SPACE}% sure to be done by Mon 5 Jan {latest:%H:%M} Thai time"
    )
    assert "are done by an instant between Mon 5 Jan 10:2" in enough.words
    assert f" and Mon 5 Jan {latest:%H:%M}." in enough.words


def test_the_page_of_a_sweep_recommends_a_variant(pages: dict[str, str]) -> None:
    page = Reader(pages["sweep"])
    assert page.headings[1][1] == "Recommended: 8 lines"
    assert "How sure is that? 6 runs of each variant" in page.words


def test_the_page_of_a_plan_names_the_value_and_its_neighbour(pages: dict[str, str]) -> None:
    scenario = ACME.scenario()
    answer = plan(scenario, LINES, (2, 12), GOAL, replications=5, max_replications=5, jobs=1)
    assert answer.value is not None
    assert answer.neighbour is not None
    page = Reader(pages["plan"])
    assert page.headings[1][1] == plan_headline(answer).removesuffix(".")
    # five runs can't be sure, so the answer has more to spare than it needs
    assert f"{answer.neighbour.value} lines: would do as well" in page.words


@pytest.mark.usefixtures("pictures_undrawn")
def test_the_page_of_a_plan_that_nothing_meets_says_so() -> None:
    scenario = ACME.scenario()
    goal = "p95(finish) <= 2026-01-05T02:05:00Z"
    answer = plan(scenario, LINES, (2, 4), goal, replications=2, max_replications=2, jobs=1)
    page = Reader(plan_report(answer, scenario, 3, FurtherRuns(0)))
    assert page.headings[1][1].startswith("No number of lines from 2 to 4 ")


@pytest.mark.usefixtures("pictures_undrawn")
def test_a_run_that_does_not_finish_says_no_and_why() -> None:
    page = Reader(run_report(dialsim.run(acme(end="Mon 09:10").scenario()), pairs=0))
    assert "2 campaigns are not finished" in page.words
    assert "Will it finish? No" in page.words
    assert "cut by clock.end" in page.words


EXPIRES = acme(january={"end": "Mon 09:30"})


@pytest.mark.usefixtures("pictures_undrawn")
def test_a_run_that_loses_people_has_not_finished_and_says_how_many(
    pages: dict[str, str],
) -> None:
    result = dialsim.run(EXPIRES.scenario())
    lost = result.summary.people_lost
    assert lost > 20
    page = Reader(run_report(result, pairs=0))
    assert page.headings[1][1].startswith(f"1 campaign is not finished; {lost} people lost. ")
    assert (
        f"Will it finish? No: {lost} people lost มกราคม: not finished: expired Mon 5 Jan 2026 "
        f"09:30 Thai time, {lost} people lost."
    ) in page.words
    runs = replicate(EXPIRES.scenario(), 3, jobs=1)
    many = Reader(replications_report(runs, FurtherRuns(0))).words
    average = f"{runs.runs['people_lost'].mean():,.1f}".removesuffix(".0")
    assert f"In 0 % of 3 runs 3 did not finish. On average {average} people are lost." in many


@pytest.mark.usefixtures("pictures_undrawn")
def test_of_many_campaigns_that_do_not_finish_the_first_are_named() -> None:
    cut = clients(start="Mon 07:00", end="Tue 09:01")
    result = dialsim.run(cut.scenario())
    page = Reader(run_report(result, pairs=0)).words
    count = len(result.summary.unfinished)
    assert count > 6
    assert f"; and {count - 6} more." in page


@pytest.mark.usefixtures("pictures_unrendered")
def test_a_run_in_which_nothing_was_scheduled_has_a_page_too() -> None:
    drafts = acme(end="Mon 09:10", requested=None)
    page = Reader(run_report(dialsim.run(drafts.scenario())))
    assert page.headings[1][1] == "Nothing was scheduled"


def test_a_percent_sign_stays_with_its_number_and_text_is_escaped() -> None:
    parts = ["66 % of <them>"]
    html = ReportPage("T", "L", "A", [], [Section("H", parts)], "M").html()
    assert "66\N{NO-BREAK SPACE}% of &lt;them&gt;" in html
