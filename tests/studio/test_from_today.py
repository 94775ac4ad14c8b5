"""Scenarios whose people have histories: the studio begins today, and shows what has happened."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("panel", reason="panel is not installed: pip install '.[studio]'")

import dialsim
from dialsim.engine.log_reader import NOT_HAPPENED
from dialsim.errors import StudioError
from dialsim.experiments.pool import Pool
from dialsim.experiments.variants import DRAWS, read_variants
from dialsim.logs.pull import ServiceClient, pull
from dialsim.sandbox.restart import begin, resume
from dialsim.studio.charts import FanChart
from dialsim.studio.estimate import Estimate, Estimator
from dialsim.studio.files import open_path, opened, scenario_file
from dialsim.studio.state import StudioState
from logs.running import KEY, january
from sandbox.serving import served
from studio.saving import saved

SCENARIOS = Path(__file__).parents[2] / "scenarios"
MIDDLE = SCENARIOS / "forecast-from-the-middle.yaml"
SHARES = (0.2, 0.5, 0.8)
CHANGED = "behaviours.default.talkTime={dist: exponential, mean: 90s}"


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    pool = Pool(1)
    yield pool
    pool.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As `dialsim pull --log` writes it, with three behaviours that the log allows."""
    (tmp_path / "scenario.yaml").write_bytes(MIDDLE.read_bytes())
    people = "people-on-wednesday.csv"
    (tmp_path / people).write_bytes(MIDDLE.with_name(people).read_bytes())
    draws = {}
    for share in SHARES:
        outcomes = {"answered": share, "noAnswer": round(1 - share, 3), "busy": 0, "failed": 0}
        draws[f"draw {share}"] = [f"behaviours.default.outcomes={json.dumps(outcomes)}"]
    (tmp_path / DRAWS).write_text(json.dumps(draws), encoding="utf-8")
    return tmp_path


def estimate(pool: Pool, state: StudioState, runs: int) -> Estimate:
    drawn = state.drawn(state.scenario)
    return Estimator(pool, limit=runs).ask(state.scenario, draws=drawn).final()


def test_other_draws_are_asked_anew(pool: Pool, folder: Path) -> None:
    state = open_path(folder)
    drawn = state.drawn(state.scenario)
    estimator = Estimator(pool, limit=3)
    others = (drawn[2], drawn[2], drawn[2])

    def reached(asked: Estimator, draws: tuple[dialsim.Scenario, ...]) -> list[int]:
        found = asked.ask(state.scenario, draws=draws).final()
        return sorted(found.replications.runs["people_reached"])

    found = reached(estimator, drawn)
    assert reached(estimator, others) == reached(Estimator(pool, limit=3), others) != found


def assert_rises_in_calling_hours_only(chart: FanChart, curve: dict[str, Any]) -> None:
    """Check that a curve rises, and between closing and opening does not."""
    x, y = np.asarray(curve["x"]), np.asarray(curve["y"])
    assert (np.diff(x) >= 0).all()
    assert (np.diff(y) >= 0).all()
    begins, ends = (chart._open.data[name] for name in ("x0", "x1"))
    nights = [(close, opening) for close, opening in zip(ends, begins[1:], strict=False)
              if x[0] < close < opening < x[-1]]  # fmt: skip
    assert nights
    for close, opening in nights:
        before, after = np.interp([close + 1, opening - 1], x, y)
        assert after == pytest.approx(before)


def test_the_fan_shows_what_has_happened_and_begins_today(pool: Pool) -> None:
    state = StudioState.of(MIDDLE)
    found = estimate(pool, state, 20)
    standing = found.standing
    assert standing is not None
    forecast = dialsim.forecast(state.scenario, 20, jobs=1).figures
    assert forecast is not None
    assert len(standing.reached) == forecast.reached == 117
    assert standing.at == state.scenario.clock.start == forecast.at
    chart = FanChart()
    assert chart.show(found, []).startswith("39 % are reached already. Half of the runs reach ")
    lines = {
        item.label.value: item.renderers[0].data_source.data
        for item in chart.figure.legend[0].items
    }
    past, middle = lines["until today"], lines["half of the runs"]
    assert (np.diff(past["x"]) >= 0).all()
    assert (np.diff(past["y"]) >= 0).all()
    # where the one ends the other begins
    assert past["x"][-1] == middle["x"][0]
    assert past["y"][0] == 0
    assert past["y"][-1] == pytest.approx(middle["y"][0]) == pytest.approx(39)
    assert_rises_in_calling_hours_only(chart, middle)
    # and without histories today is not mentioned
    plain = state.set("This week.recipients", "{count: 300}")
    assert estimate(pool, plain, 2).standing is None


def test_a_pulled_folder_opens_with_the_behaviours_that_its_log_allows(
    pool: Pool, folder: Path
) -> None:
    state = open_path(folder)
    found = estimate(pool, state, 30)
    assert found.draws == 3
    expected = dialsim.forecast(
        state.scenario, 30, draws=read_variants(folder / DRAWS), jobs=1
    ).runs
    for name in ("finish_seconds", "people_reached"):
        assert sorted(found.replications.runs[name]) == sorted(expected.runs[name])
    assert state.command().startswith(f"dialsim forecast {folder / 'scenario.yaml'}")
    # a behaviour that is changed here counts in all runs
    changed = state.set(*CHANGED.split("=", 1))
    assert changed.drawn(changed.scenario) == ()
    assert estimate(pool, changed, 2).draws == 0
    assert changed.set("lines", "2").command().startswith("dialsim run ")


def test_a_campaign_in_a_journal_is_pulled_and_begins_today(pool: Pool, tmp_path: Path) -> None:
    journal = tmp_path / "week.journal"
    core = begin(journal, january(120, 2).scenario())
    asyncio.run(core.clock.advance_by(50 * 60_000))
    assert core.journal is not None
    core.journal.close()
    core = resume(journal)
    assert core.journal is not None
    with served(core) as sandbox, ServiceClient(sandbox.url, KEY, rate=1e6) as client:
        [campaign] = core.accounts[0].views
        pull(client, [campaign.campaign.block.id], tmp_path / "today", lines=2)
    core.journal.close()
    found = estimate(pool, open_path(tmp_path / "today"), 3)
    assert found.standing is not None
    assert core.at - 60_000 < found.standing.at <= core.at  # it is the time of its last change
    calls = campaign.calls
    assert len(found.standing.reached) == int(
        (calls.counted & (calls.started_at != NOT_HAPPENED)).sum()
    )


def test_the_draws_are_saved_and_linked(folder: Path, tmp_path: Path) -> None:
    state = open_path(folder).set("lines", "2")
    file = scenario_file(state)
    again = opened(file.name, file.data, {})
    assert len(again.drawn(again.scenario)) == 3
    behaviours = [scenario.behaviours for scenario in state.drawn(state.scenario)]
    assert [scenario.behaviours for scenario in again.drawn(again.scenario)] == behaviours
    assert len(open_path(saved(state, tmp_path / "more")).drawn(state.scenario)) == 3
    link = state.link()
    assert StudioState.from_link(link).differences == state.differences
    (folder / DRAWS).write_text("draw 1: [behaviours.default.people.deadNumbers=0.02]")
    with pytest.raises(StudioError, match="has changed since this link was made"):
        StudioState.from_link(link)


def test_draws_that_are_none_are_refused(folder: Path) -> None:
    (folder / DRAWS).write_text("draw 1: [organizations.0.maxConcurrentCalls=2]")
    with pytest.raises(StudioError, match="a studio takes draws of behaviours, not of org"):
        open_path(folder)
    (folder / DRAWS).write_text("draw 1: [behaviours.default.outcomes.answered=0.9]")
    with pytest.raises(StudioError, match=r"^draws.yaml: .*must sum to 1"):
        open_path(folder)
