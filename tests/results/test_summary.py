from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from dialsim.engine.trace import Refusal
from dialsim.results.figures import FIGURES
from dialsim.results.result import Result
from dialsim.results.summary import Summary
from dialsim.scenario.service import Costs
from results.traces import NINE, HandCampaign, hand_trace

LOG = """
0      0 1 scheduled
0      1 1 scheduled
0      2 1 scheduled
0      3 1 scheduled
0      0 1 released
0      1 1 released
0      0 1 dialled
0      1 1 dialled
0      2 1 released
0      3 1 released
1000   0 1 ringing
1000   1 1 ringing
4000   0 1 answered
31000  1 1 NO_ANSWER
31000  2 1 dialled
32000  2 1 ringing
33000  2 1 BUSY
33000  3 1 dialled
34000  3 1 ringing
40000  3 1 answered
64000  0 1 COMPLETED
70000  3 1 COMPLETED
331000 1 2 retry
331000 1 2 released
331000 1 2 dialled
332000 1 2 ringing
333000 1 2 answered
333000 2 2 retry
333000 2 2 released
333000 2 2 dialled
335000 2 2 FAILED
393000 1 2 COMPLETED
"""
LIFE = "0 SCHEDULED schedule\n0 RUNNING start\n393000 COMPLETED all_final"
BODY = {"maxAttempts": 2, "retryInterval": 300_000}
JANUARY = HandCampaign(LOG, 4, life=LIFE, body=BODY)
COSTS = Costs.model_validate({"perDial": 0.1, "perMinute": 1.2, "billingIncrement": "60s"})


def after_nine(at: datetime | None) -> timedelta | None:
    return None if at is None else at - datetime.fromtimestamp(NINE / 1000, UTC)


def summary(*campaigns: HandCampaign, **more: object) -> Summary:
    return Result(hand_trace([*campaigns], **more)).summary


def test_the_figures_of_a_campaign_are_those_worked_out_on_paper() -> None:
    run = summary(JANUARY, costs=COSTS)
    (january,) = run.campaigns
    assert after_nine(january.finish) == timedelta(seconds=393)
    assert january.calling_days == 1
    people = (january.people, january.people_reached, january.people_exhausted)
    assert people == (4, 3, 1)
    assert january.reach_share == 0.75
    assert january.reach_by_attempt == (0.5, 0.75)
    assert (january.calls, january.calls_completed, january.calls_no_answer) == (6, 3, 1)
    assert (january.calls_busy, january.calls_failed, january.dials) == (1, 1, 6)
    assert (january.attempts, january.attempts_per_person_mean) == (6, 1.5)
    used_ms = 64_000 + 31_000 + 2_000 + 37_000 + 62_000 + 2_000
    assert january.lines_in_use_mean == used_ms / 393_000
    assert january.lines_in_use_peak == 2
    assert january.lines_capacity_share == used_ms / (2 * 393_000)
    assert january.queue_wait_mean_seconds == pytest.approx((31 + 33) / 6)
    assert january.queue_wait_p95_seconds == pytest.approx(32.5)  # 31 + 0.75 × (33 − 31)
    assert january.talk_minutes == 2.5
    assert january.cost == pytest.approx(6 * 0.1 + 3 * 1.2)
    assert january.currency == "THB"
    assert (january.status, after_nine(january.start)) == ("COMPLETED", timedelta(0))


def test_one_campaign_alone_makes_the_same_figures_for_its_organization_and_the_run() -> None:
    run = summary(JANUARY, costs=COSTS)
    (january,), (acme,) = run.campaigns, run.organizations
    for figure in FIGURES:
        assert figure.of(january) == figure.of(acme) == figure.of(run)


def test_campaigns_and_organizations_add_up_and_the_last_finish_counts() -> None:
    later = HandCampaign(
        "393000 0 1 scheduled\n400000 0 1 released\n400000 0 1 dialled\n460000 0 1 BUSY",
        name="Later",
        start=393_000,
        life="393000 SCHEDULED schedule\n393000 RUNNING start\n460000 COMPLETED all_final",
    )
    run = Result(hand_trace([JANUARY, later], [JANUARY])).summary
    assert after_nine(run.finish) == timedelta(seconds=460)
    assert after_nine(run.organizations[1].finish) == timedelta(seconds=393)
    assert (run.people, run.people_reached, run.people_exhausted) == (9, 6, 3)
    assert run.reach_by_attempt == (4 / 9, 6 / 9)
    assert run.lines_in_use_peak == 4
    acme_ms, bolt_ms = 198_000 + 60_000, 198_000
    assert run.organizations[0].lines_in_use_mean == acme_ms / 460_000
    assert run.lines_in_use_mean == (acme_ms + bolt_ms) / 460_000
    assert run.lines_capacity_share == (acme_ms + bolt_ms) / (2 * 460_000 + 2 * 393_000)
    assert run.held_back is not None
    assert run.held_back.campaign == "Acme/Later"


def test_the_capacity_follows_the_limit_and_counts_open_time_only() -> None:
    half_hour = [{"dayOfWeek": 1, "time": [{"start": "09:00", "end": "09:01"}]}]
    log = "0 0 1 scheduled\n0 0 1 released\n0 0 1 dialled\n90000 0 1 BUSY"
    life = "0 SCHEDULED schedule\n0 RUNNING start\n90000 COMPLETED all_final"
    run = summary(
        HandCampaign(log, life=life, body={"timeWindows": half_hour}),
        limits=[(0, 0, 1), (20_000, 0, 3)],
    )
    assert run.lines_in_use_mean == 1
    assert run.lines_capacity_share == 60_000 / (20_000 * 1 + 40_000 * 3)
    limits = [limit.max_concurrent_calls for limit in run.organizations[0].limits]
    assert limits == [1, 3]


def test_slots_in_use_are_those_of_open_time_only() -> None:
    # Open from 0 to 60 and from 120 to 180, where it ends. Of 90 + 5 + 10 s of calls 30 are closed.
    times = [{"start": "09:00", "end": "09:01"}, {"start": "09:02", "end": "09:10"}]
    log = """
    0      0 1 scheduled
    0      1 1 scheduled
    0      2 1 scheduled
    0      0 1 released
    0      0 1 dialled
    90000  0 1 BUSY
    120000 1 1 released
    120000 1 1 dialled
    125000 1 1 BUSY
    170000 2 1 released
    170000 2 1 dialled
    180000 2 1 BUSY
    """
    life = "0 SCHEDULED schedule\n0 RUNNING start\n180000 COMPLETED all_final"
    body = {"timeWindows": [{"dayOfWeek": 1, "time": times}]}
    run = summary(HandCampaign(log, 3, life=life, body=body))
    assert run.lines_in_use_mean == run.campaigns[0].lines_in_use_mean == 75_000 / 120_000
    assert run.lines_capacity_share == 75_000 / (2 * 120_000)


def test_withdrawn_dials_timeouts_and_drops_are_counted_apart() -> None:
    run = summary(
        HandCampaign(
            """
            0      0 1 scheduled
            0      1 1 scheduled
            0      2 1 scheduled
            0      0 1 released
            0      0 1 dialled
            5      0 1 paused
            10     0 1 released
            20     0 1 dialled
            30     1 1 released
            600    1 1 queue_timeout
            700    0 1 cancelled
            700    2 1 cancelled
            """,
            3,
            life="0 SCHEDULED schedule\n0 RUNNING start\n700 CANCELLED cancel",
        )
    )
    assert (run.dials, run.dials_withdrawn, run.attempts) == (2, 2, 0)
    assert (run.calls, run.queue_timeouts, run.calls_cancelled) == (3, 1, 2)
    assert (run.people_cancelled, run.calls_unfinished) == (3, 0)
    assert run.queue_wait_mean_seconds == pytest.approx((0 + 10 + 570) / 3 / 1000)
    assert run.reach_by_attempt == ()


def test_the_run_has_no_finish_while_a_scheduled_campaign_is_not_final() -> None:
    waiting = HandCampaign(
        "0 0 1 scheduled", name="Waiting", life="0 SCHEDULED schedule\n0 RUNNING start"
    )
    run = summary(JANUARY, waiting, cut=True)
    assert run.finish is None
    assert run.unfinished == ("Acme/Waiting",)
    assert run.cut
    assert (run.people_pending, run.calls_unfinished) == (1, 1)


def test_a_campaign_never_scheduled_does_not_keep_the_run_from_finishing() -> None:
    run = summary(JANUARY, HandCampaign("", 3, name="Draft", body=None))
    assert after_nine(run.finish) == timedelta(seconds=393)
    assert run.campaigns[1].status == "DRAFT"
    assert run.people_unscheduled == 3
    assert summary(HandCampaign("", 3, body=None)).finish is None


def test_c8_deleting_a_finished_campaign_does_not_move_its_finish() -> None:
    deleted = HandCampaign(LOG, 4, life=f"{LIFE}\n999000 COMPLETED delete", body=BODY)
    assert after_nine(summary(deleted).finish) == timedelta(seconds=393)


RUNNING = "0 SCHEDULED schedule\n0 RUNNING start\n"
TALKING = """
0      0 1 scheduled
0      0 1 released
0      0 1 dialled
1000   0 1 ringing
5000   0 1 answered
90000  0 1 COMPLETED
"""


def test_c7_a_campaign_that_expired_with_people_lost_has_not_finished() -> None:
    log = f"{TALKING}0 1 1 scheduled\n60000 1 1 expired"
    body = {"endDateTime": "2026-01-05T02:01:00Z"}
    run = summary(HandCampaign(log, 2, life=f"{RUNNING}60000 EXPIRED end_date_time", body=body))
    for part in (run, *run.organizations, *run.campaigns):
        assert (part.finish, part.people_lost) == (None, 1)
        assert after_nine(part.final_at) == timedelta(seconds=60)
    assert run.unfinished == ("Acme/January",)


def test_c7_a_retry_that_the_end_date_forestalls_is_lost_though_the_campaign_completes() -> None:
    log = "0 0 1 scheduled\n0 0 1 released\n0 0 1 dialled\n1000 0 1 ringing\n70000 0 1 NO_ANSWER"
    body = {"endDateTime": "2026-01-05T02:01:00Z", "maxAttempts": 2}
    run = summary(HandCampaign(log, life=f"{RUNNING}70000 COMPLETED all_final", body=body))
    assert (run.campaigns[0].status, run.people_lost) == ("COMPLETED", 1)
    assert (run.finish, after_nine(run.final_at)) == (None, timedelta(seconds=70))


def test_c6_a_campaign_cancelled_during_its_last_conversation_finishes_with_that() -> None:
    run = summary(HandCampaign(TALKING, life=f"{RUNNING}60000 CANCELLED cancel"))
    assert run.people_lost == 0
    assert after_nine(run.finish) == timedelta(seconds=90)
    assert after_nine(run.final_at) == timedelta(seconds=60)
    talking = TALKING.replace("90000  0 1 COMPLETED\n", "")
    cut = summary(HandCampaign(talking, life=f"{RUNNING}60000 CANCELLED cancel"), cut=True)
    assert (cut.finish, cut.people_lost) == (None, 0)


def test_c6_a_draft_that_was_cancelled_keeps_no_run_from_finishing() -> None:
    draft = HandCampaign("", 3, name="Draft", life="999000 CANCELLED cancel", body=None)
    run = summary(JANUARY, draft)
    assert after_nine(run.finish) == timedelta(seconds=393)
    assert (run.campaigns[1].finish, run.unfinished) == (None, ())


def test_the_run_is_held_back_by_what_lost_people_rather_than_by_what_finished_last() -> None:
    log = "0 0 1 scheduled\n60000 0 1 expired"
    life = f"{RUNNING}60000 EXPIRED end_date_time"
    body = {"endDateTime": "2026-01-05T02:01:00Z"}
    run = summary(HandCampaign(log, name="Short", life=life, body=body), JANUARY)
    assert run.finish is None
    assert run.held_back is not None
    assert run.held_back.campaign == "Acme/Short"


def test_nothing_to_divide_by_gives_none_and_not_an_error() -> None:
    life = "0 SCHEDULED schedule\n0 RUNNING start\n0 COMPLETED all_final"
    run = summary(HandCampaign("", 0, life=life))
    assert (run.reach_share, run.attempts_per_person_mean) == (None, None)
    assert (run.lines_in_use_mean, run.lines_capacity_share) == (None, None)
    assert (run.queue_wait_mean_seconds, run.queue_wait_p95_seconds) == (None, None)
    assert run.reach_by_attempt == ()
    assert after_nine(run.finish) == timedelta(0)


def test_refusals_are_listed_with_the_interface_s_words() -> None:
    trace = hand_trace([JANUARY])
    text = "Cannot pause a COMPLETED campaign"
    trace.refused.append(Refusal(NINE, 0, 0, "pause", "INVALID_CAMPAIGN_STATE", text))
    trace.refused.append(Refusal(NINE, 0, None, "setConcurrency", "X", "y"))
    refused = Result(trace).summary.refused
    assert [(row.organization, row.campaign, row.action) for row in refused] == [
        ("Acme", "January", "pause"),
        ("Acme", None, "setConcurrency"),
    ]
    assert refused[0].message == text


def test_the_json_has_every_figure_by_its_name_and_instants_in_utc_and_thai_time() -> None:
    run = summary(JANUARY)
    document = json.loads(run.to_json())
    assert {figure.key for figure in FIGURES if not figure.block} <= set(document)
    assert document["finish"] == "2026-01-05T02:06:33.000Z"
    assert document["finish_thai"] == "2026-01-05T09:06:33.000+07:00"
    assert document["final_at_thai"] == "2026-01-05T09:06:33.000+07:00"
    assert document["cost"] is None
    assert document["held_back"]["reason"] == "retry_interval"
    january = document["organizations"][0]["campaigns"][0]
    assert january["name"] == "January"
    assert january["reach_by_attempt"] == [0.5, 0.75]
    assert list(document)[:3] == ["scenario", "seed", "replication"]
    assert list(document)[-1] == "organizations"


def test_the_frame_has_a_row_per_scope_and_a_column_per_figure() -> None:
    frame = summary(JANUARY).to_frame()
    assert frame.scope.tolist() == ["run", "organization", "campaign"]
    assert frame.campaign.tolist()[2] == "January"
    assert frame.reach_by_attempt_2.tolist() == [0.75] * 3
    assert frame.held_back.tolist() == ["retry_interval"] * 3
    assert str(frame.finish.dtype) == str(frame.final_at.dtype) == "datetime64[ms, UTC]"
    assert str(frame.cost.dtype) == "float64"
