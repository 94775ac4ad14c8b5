from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import replace

import pytest

from dialsim.engine.trace import Refusal
from dialsim.results.campaigns import PeopleCount
from dialsim.results.result import Result
from dialsim.results.summary_text import print_summary, tables
from results.test_real_runs import nasty
from results.test_summary import COSTS, JANUARY
from results.traces import NINE, HandCampaign, hand_trace

PRINTED = """\
By hand (seed 1, SimPy)

January
  completed Mon 5 Jan 2026 09:06 Thai time, 1 calling day
  3 of 4 people reached (75 %)
  Retry interval: 76 % of the time went by until the 5 min before a retry was
  over.

People    all   reached   exhausted
───────────────────────────────────
January     4         3           1

Calls     all   completed   no answer   busy   failed
─────────────────────────────────────────────────────
January     6           3           1      1        1

Attempts and cost   attempts   per person   talk minutes       cost
───────────────────────────────────────────────────────────────────
January                    6         1.50              2   4.20 THB

Money     per reached
─────────────────────
January      1.40 THB

Lines and queue   mean in use   peak   of capacity   mean wait   95 % within
────────────────────────────────────────────────────────────────────────────
January                   0.5      2          25 %        11 s          32 s

Reached by attempt      1      2
────────────────────────────────
January              50 %   75 %
"""


def printed(result: Result) -> str:
    stream = io.StringIO()
    print_summary(result.summary, "simpy", stream)
    return stream.getvalue()


def test_the_answer_stands_first_and_the_figures_below() -> None:
    assert printed(Result(hand_trace([JANUARY], costs=COSTS))) == PRINTED


def test_a_terminal_gets_colour_and_a_pipe_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    result = Result(hand_trace([JANUARY]))
    assert "\x1b" not in printed(result)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[1m" in printed(result)


def test_a_narrow_terminal_cuts_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    coloured = printed(Result(hand_trace([JANUARY], costs=COSTS)))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()
    answer = lines.index("January")
    assert max(map(len, lines[: lines.index("", answer)])) <= 40
    *_, tables = PRINTED.partition("\n\nPeople")
    assert "\n".join(lines).endswith(tables.rstrip("\n"))


def test_several_campaigns_get_a_headline_and_a_row_for_all_within_80_columns() -> None:
    long = HandCampaign(JANUARY.log, 4, name="A campaign with quite a long name, [bold]indeed",
                        life=JANUARY.life, body=JANUARY.body)  # fmt: skip
    draft = HandCampaign("", 3, name="Draft", body=None)
    text = printed(Result(hand_trace([JANUARY, long, draft], [JANUARY])))
    assert text.splitlines()[1] == (
        "All done Mon 5 Jan 2026 09:06 Thai time. 9 of 15 people reached (60 %)."
    )
    assert max(map(len, text.splitlines())) <= 80
    assert "A campaign with quite a long name, [bold]indeed\n" in text
    assert "Bolt/January\n" in text
    assert "  never scheduled\n" in text
    assert "\nall " in text


@pytest.mark.parametrize("seed", range(40))
def test_what_stands_beside_all_adds_up_to_it(seed: int) -> None:
    def number(cell: str) -> int:
        return int(cell.replace(",", "") or 0)

    for table in tables(nasty(seed).summary):
        if table.columns[0] == "all":
            for _, whole, *parts in table.rows:
                assert sum(map(number, parts)) == number(whole), table.title
            if len(table.rows) > 1:
                *campaigns, (name, whole, *_) = table.rows
                assert name == "all"
                assert sum(number(row[1]) for row in campaigns) == number(whole)


def test_large_figures_are_never_cut_and_names_give_way_to_them() -> None:
    result = Result(hand_trace([JANUARY]))
    (owner,) = result.summary.organizations
    (campaign,) = owner.campaigns
    many = 1_234_567
    ends = "COMPLETED", "NO_ANSWER", "BUSY", "FAILED"
    whole, organization, part = result.reading.parts
    part.people = PeopleCount(7 * many, *[many] * 8)
    by_end = Counter({("ended", end): many for end in ends} | {("expired", "EXPIRED"): many})
    part.calls = replace(part.calls, by_end=by_end)
    campaign = replace(campaign, name="A campaign with quite a long name", part=part)
    owner = replace(owner, part=organization, campaigns=(campaign,))
    stream = io.StringIO()
    whole = replace(result.summary, part=whole, organizations=(owner,))
    print_summary(whole, "simpy", stream)
    rows = [line for line in stream.getvalue().splitlines() if line.startswith("A cam")][1:]
    people, _, _, calls, *_ = rows
    for row in (people, calls):
        assert len(re.findall(r"(?<= )\d,\d{3},\d{3}", row)) == 6
        assert "…" in row


def test_what_is_not_finished_says_why() -> None:
    waiting = "0 0 1 scheduled"
    running = "0 SCHEDULED schedule\n0 RUNNING start"
    cut = printed(Result(hand_trace([HandCampaign(waiting, life=running)], cut=True)))
    assert "  not finished: RUNNING, cut by clock.end\n" in cut
    stalled = HandCampaign(waiting, life=f"{running}\n5 PAUSED pause", stalled=True)
    assert "  not finished: PAUSED, stalled\n" in printed(Result(hand_trace([stalled])))


def test_c7_a_campaign_that_expired_or_was_cancelled_says_how_many_it_lost() -> None:
    log = "0 0 1 scheduled\n0 1 1 scheduled\n60000 0 1 expired\n60000 1 1 expired"
    body = {"endDateTime": "2026-01-05T02:01:00Z"}
    life = "0 SCHEDULED schedule\n0 RUNNING start\n60000 EXPIRED end_date_time"
    expired = HandCampaign(log, 2, life=life, body=body)
    assert "  not finished: expired Mon 5 Jan 2026 09:01 Thai time, 2 people lost\n" in printed(
        Result(hand_trace([expired]))
    )
    cancelled = HandCampaign(
        "0 0 1 scheduled\n90000 0 1 cancelled", name="February",
        life="0 SCHEDULED schedule\n0 RUNNING start\n90000 CANCELLED cancel",
    )  # fmt: skip
    text = printed(Result(hand_trace([expired, cancelled, JANUARY])))
    assert "  not finished: cancelled Mon 5 Jan 2026 09:01 Thai time, 1 person lost\n" in text
    assert text.splitlines()[1] == (
        "2 campaigns are not finished; 3 people lost. 3 of 7 people reached (43 %)."
    )
    draft = HandCampaign("", 3, life="5000 CANCELLED cancel", body=None)
    assert "  cancelled Mon 5 Jan 2026 09:00 Thai time, never scheduled\n" in printed(
        Result(hand_trace([draft]))
    )


def test_warnings_and_refusals_are_printed_below() -> None:
    trace = hand_trace([JANUARY])
    trace.world.warnings = ("The number 0800000000 stands twice in January.",)
    text = "Cannot pause a COMPLETED campaign"
    trace.refused.append(Refusal(NINE, 0, 0, "pause", "INVALID_CAMPAIGN_STATE", text))
    lines = " ".join(printed(Result(trace)).split())
    assert "Warning: The number 0800000000 stands twice in January." in lines
    assert (
        "Refused: Mon 5 Jan 2026 09:00 Thai time, pause January: "
        "Cannot pause a COMPLETED campaign (INVALID_CAMPAIGN_STATE)"
    ) in lines


def test_a_notebook_gets_the_same_as_html_with_names_escaped() -> None:
    campaign = HandCampaign(JANUARY.log, 4, name="<b>", life=JANUARY.life, body=JANUARY.body)
    html = Result(hand_trace([campaign]))._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b><b>" not in html
    assert "3 of 4 people reached (75 %)" in html


def test_a_result_says_in_a_line_what_it_is() -> None:
    january = HandCampaign("", 1200, life="0 SCHEDULED schedule\n60000 CANCELLED cancel")
    draft = HandCampaign("", 1, name="Draft", body=None)
    assert repr(Result(hand_trace([JANUARY, draft]))) == (
        "<dialsim.Result 'By hand' seed 1, people: 5, campaigns: 2, "
        "all done Mon 5 Jan 2026 09:06 Thai time>"
    )
    begun = HandCampaign("", 1, name="Begun", life="0 SCHEDULED schedule")
    assert repr(Result(hand_trace([january, begun]))) == (
        "<dialsim.Result 'By hand' seed 1, people: 1,201, campaigns: 2, "
        "2 unfinished at Mon 5 Jan 2026 09:01 Thai time>"
    )
    assert repr(Result(hand_trace([draft]))).endswith(
        " seed 1, people: 1, campaigns: 1, none scheduled>"
    )
