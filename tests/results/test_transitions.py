from __future__ import annotations

from dialsim.results.result import Result
from results.traces import NINE, HandCampaign, hand_trace


def test_t4_rows_of_one_instant_go_by_position_recipient_call_and_occurrence() -> None:
    late = HandCampaign("0 0 1 scheduled\n5 0 1 released\n5 0 1 dialled", name="Late")
    jumbled = HandCampaign(
        """
        0 0 1 scheduled
        0 1 1 scheduled
        0 2 1 scheduled
        5 2 1 released
        5 0 1 released
        5 2 1 dialled
        5 0 1 dialled
        5 0 1 BUSY
        5 0 2 retry
        5 2 1 ringing
        6 1 1 released
        """,
        people=3,
    )
    table = Result(hand_trace([jumbled, late], [HandCampaign("5 0 1 scheduled")])).transitions
    at_five = table[table["at"].astype("int64") == NINE + 5]
    rows = zip(
        *(at_five.organization, at_five.campaign, at_five.recipient, at_five.call, at_five.cause),
        strict=True,
    )
    assert list(rows) == [
        ("Acme", "January", 0, 1, "released"),
        ("Acme", "January", 0, 1, "dialled"),
        ("Acme", "January", 0, 1, "ended"),
        ("Acme", "January", 0, 2, "retry"),
        ("Acme", "January", 2, 1, "released"),
        ("Acme", "January", 2, 1, "dialled"),
        ("Acme", "January", 2, 1, "ringing"),
        ("Acme", "Late", 0, 1, "released"),
        ("Acme", "Late", 0, 1, "dialled"),
        ("Bolt", "January", 0, 1, "scheduled"),
    ]
    assert table["at"].is_monotonic_increasing


def test_phases_are_those_after_the_change_and_creations_come_from_nowhere() -> None:
    table = Result(
        hand_trace(
            [
                HandCampaign(
                    "0 0 1 scheduled\n1 0 1 released\n1 0 1 dialled\n2 0 1 ringing\n"
                    "3 0 1 answered\n4 0 1 COMPLETED"
                )
            ]
        )
    ).transitions
    assert table.phase.astype("str").fillna("").tolist() == [
        "",
        "",
        "dialling",
        "ringing",
        "talking",
        "",
    ]
    assert table.from_status.astype("str").fillna("").tolist() == [
        "",
        "SCHEDULED",
        "QUEUED",
        *["INITIATED"] * 3,
    ]
    assert (table.from_status == table.to_status).sum() == 2  # one set of categories: comparable


def test_campaign_changes_go_by_instant_then_position_then_occurrence() -> None:
    life = "0 SCHEDULED schedule\n0 RUNNING start\n9 COMPLETED all_final\n20 COMPLETED delete"
    trace = hand_trace(
        [HandCampaign("", 0, life=life), HandCampaign("", 0, name="February", life=life)]
    )
    trace.campaigns.reverse()
    trace.campaigns.sort(key=lambda row: (row.at, row.cause != "schedule"))
    table = Result(trace).campaigns
    assert list(table) == ["at", "organization", "campaign", "from_status", "to_status", "cause"]
    assert [
        f"{row['at'].value // 1_000_000 - NINE} {row.campaign} {row.from_status} {row.to_status}"
        for _, row in table.iterrows()
    ] == [
        "0 January DRAFT SCHEDULED",
        "0 January SCHEDULED RUNNING",
        "0 February DRAFT SCHEDULED",
        "0 February SCHEDULED RUNNING",
        "9 January RUNNING COMPLETED",
        "9 February RUNNING COMPLETED",
        "20 January COMPLETED COMPLETED",
        "20 February COMPLETED COMPLETED",
    ]
