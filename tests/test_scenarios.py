"""The shipped scenarios: each runs, and each shows the lesson it was written for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import dialsim
from dialsim.results.summary import CampaignSummary

FOLDER = Path(__file__).parents[1] / "scenarios"
FILES = sorted(FOLDER.glob("*.yaml"))


@cache
def ran(name: str, *overrides: str) -> dialsim.Result:
    """A shipped scenario's run, which several tests look at."""
    return dialsim.run(dialsim.load(FOLDER / name, overrides=overrides))


def figures(name: str, *overrides: str) -> dict[str, CampaignSummary]:
    """The summary of each campaign of a shipped scenario, by name."""
    summary = ran(name, *overrides).summary
    return {campaign.name: campaign for campaign in summary.campaigns}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_shipped_scenario_runs_and_explains_itself(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=scenario.schema.json\n# Lesson: ")
    result = ran(path.name)
    assert len(result.calls) > 0
    assert result.summary.refused == ()


def test_shared_slots_slow_each_other_and_fifo_makes_the_urgent_one_wait() -> None:
    shared = figures("shared-slots.yaml")
    fifo = figures("shared-slots.yaml", "engine.sharing=fifo")
    urgent = "Product recall"
    assert shared[urgent].finish is not None
    assert fifo[urgent].finish is not None
    assert fifo[urgent].finish > shared[urgent].finish


VIP = "organizations.Acme.campaigns.VIP"


@pytest.mark.parametrize(
    ("overrides", "vip", "survey"),
    [
        (["engine.sharing=fifo"], 24, 20),
        (["engine.sharing=roundRobin"], 19, 24),
        (["engine.sharing=roundRobin", f"{VIP}.reserved=2"], 16, 24),
        (["engine.sharing=roundRobin", f"{VIP}.atMost=1"], 22, 24),
        ([], 15, 24),
        (["engine.sharing=deadline"], 15, 24),
        # nine of twelve queued and dialled calls are VIP's: two or three of each minute's three
        (["engine.sharing=weighted", f"{VIP}.weight=3"], 16, 24),
    ],
)
def test_who_goes_first_is_as_worked_out_by_hand(
    overrides: list[str], vip: int, survey: int
) -> None:
    # in minutes after 09:00: three lines make 72 calls of a minute in 24 minutes, and at 09:10
    # three people of the survey are in the queue
    done = figures("who-goes-first.yaml", *overrides)
    nine = datetime(2026, 1, 5, 2, tzinfo=UTC)
    assert done["VIP"].finish == nine + timedelta(minutes=vip)
    assert done["Survey"].finish == nine + timedelta(minutes=survey)


def test_the_pause_moves_the_finish_over_the_weekend() -> None:
    paused = figures("pause-at-the-worst-moment.yaml")["Before the weekend"]
    without = figures("pause-at-the-worst-moment.yaml", "organizations.Acme.timeline=[]")[
        "Before the weekend"
    ]
    friday_evening = datetime(2026, 1, 9, 12, tzinfo=UTC)
    assert without.finish is not None
    assert without.finish <= friday_evening
    assert paused.finish is not None
    assert paused.finish > datetime(2026, 1, 12, 2, tzinfo=UTC)


def test_an_unlimited_queue_churns_and_a_short_one_does_not() -> None:
    churning = figures("queue-churn.yaml")["All at once"]
    short = figures("queue-churn.yaml", "engine.queueLimit=10")["All at once"]
    assert churning.queue_timeouts > 500
    assert short.queue_timeouts == 0
    assert churning.people_reached == short.people_reached, "people react alike"
    assert churning.finish is not None
    assert short.finish is not None
    assert churning.finish - short.finish > timedelta(hours=1)


def test_an_early_end_expires_people() -> None:
    cut = figures("end-too-early.yaml")["Until Tuesday noon"]
    assert cut.people_expired > 0
    assert cut.status == "EXPIRED"


def test_rotation_reaches_more_people_than_one_tired_number() -> None:
    both = figures("caller-id-fatigue.yaml")
    one, six = both["From one number"], both["From six numbers"]
    assert six.people_reached > one.people_reached + 100


def test_vips_answer_more_readily() -> None:
    recipients = ran("people-from-a-file.yaml").recipients
    reached = (recipients["state"] == "reached").groupby(recipients["segment"], observed=True)
    assert reached.mean()["vip"] > reached.mean()["mass"]


def test_an_outage_loses_what_falls_into_it_and_errors_alone_lose_nothing() -> None:
    none = "organizations.Acme.webhook.receiver.outages=[]"
    outage = figures("webhook-outage.yaml")["Results wanted"].webhooks
    without = figures("webhook-outage.yaml", none)["Results wanted"].webhooks
    assert outage.results == without.results
    assert without.lost == 0
    assert without.after_retries > 0
    assert outage.lost > 300


def test_re_analyses_of_old_calls_come_without_personal_data() -> None:
    webhooks = ran("retention.yaml").webhooks
    again = webhooks[webhooks.result == 1]
    assert len(again) > 50
    for payload in (body["payload"] for body in again.body):
        assert payload["isReAnalysis"]
        assert payload["recipient"]["customerName"] == ""
        assert payload["recipient"]["agentParams"] == {"amount": None, "metadata__batch": "2026-01"}
        assert payload["recordUrl"] is None
        assert payload["transcriptFileUrl"] is None
        assert payload["callResult"]["version"] == "v2"


def test_a_forecast_from_the_middle_makes_friday_where_one_from_scratch_does_not() -> None:
    name = "forecast-from-the-middle.yaml"
    anew = "organizations.0.campaigns.0.recipients={count: 300}"
    gone_on, from_scratch = figures(name)["This week"], figures(name, anew)["This week"]
    assert gone_on.people == from_scratch.people == 300
    assert gone_on.status == "COMPLETED"
    assert gone_on.finish is not None
    assert gone_on.finish < datetime(2026, 1, 9, 11, 30, tzinfo=UTC)
    assert from_scratch.status == "EXPIRED"
    assert from_scratch.people_expired > 50


def test_who_did_not_answer_by_wednesday_is_harder_to_reach_than_who_was_never_called() -> None:
    scenario = dialsim.load(FOLDER / "forecast-from-the-middle.yaml")
    calls = [dialsim.run(scenario, replication=replication).calls for replication in range(30)]
    everything = pd.concat(calls)
    answered = everything["status"] == "COMPLETED"
    first = everything["attempt"] == 1
    second = (everything["attempt"] == 2) & (everything["call"] == 1)
    # With the default behaviour (docs/default-behaviour.md) 50 % and then 35 % answer.
    for chosen, share in ((first, 0.5), (second, 0.349)):
        error = (share * (1 - share) / chosen.sum()) ** 0.5
        assert abs(answered[chosen].mean() - share) < 4 * error
    reached = len(everything.loc[answered]) / 30 + 117
    assert abs(reached / 300 - 0.75) < 0.02


def test_who_was_reached_by_wednesday_is_left_alone() -> None:
    result = ran("forecast-from-the-middle.yaml")
    wednesday = datetime(2026, 1, 7, tzinfo=UTC)
    reached = result.recipients[result.recipients["reached_at"] < wednesday]
    assert len(reached) == 117
    assert set(reached["recipient"]).isdisjoint(result.calls["recipient"])
    assert result.calls["attempt"].max() == 3
    assert result.calls["call"].max() == 3
