"""A scenario as a notebook shows it, and its variants."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from dialsim import DialsimError, ScenarioError
from dialsim.testing import Sketch

TWO = (
    Sketch(lines=4)
    .campaign("Debt <b>", "noAnswer 5s", "noAnswer 5s", "noAnswer 5s")
    .campaign("VIP", recipients={"count": 1200})
)


def test_it_is_said_in_a_line() -> None:
    shown = repr(TWO.scenario())
    assert shown.endswith("organizations: 1, campaigns: 2, people: 1,203>")
    assert len(shown) < 120


def test_a_notebook_shows_its_campaigns() -> None:
    html = TWO.scenario()._repr_html_()
    assert "<td>1,200</td>" in html
    assert "Debt &lt;b&gt;" in html


def test_completion_offers_only_what_a_scenario_has() -> None:
    offered = [name for name in dir(TWO.scenario()) if not name.startswith("_")]
    assert "with_" in offered
    assert "organizations" in offered
    assert not [name for name in offered if name.startswith("model_")]


def test_variants_take_the_paths_of_set(tmp_path: Path) -> None:
    scenario = TWO.scenario()
    varied = scenario.with_("seed=7", "organizations.0.maxConcurrentCalls=9")
    assert (varied.seed, varied.organizations[0].max_concurrent_calls) == (7, 9)
    assert scenario.seed != 7
    again = pickle.loads(pickle.dumps(varied)).with_("name=x")
    assert (again.seed, again.name) == (7, "x")
    with pytest.raises(ScenarioError, match="has no item named Nobody"):
        scenario.with_("organizations.Nobody.maxConcurrentCalls=9")


def test_only_what_was_read_can_be_varied() -> None:
    made = TWO.scenario().loaded(None, ())
    with pytest.raises(DialsimError, match=r"only scenarios from dialsim\.load"):
        made.with_("seed=7")
