"""Each engine notices where the other breaks a rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from dialsim.engine.trace import Trace
from dialsim.engine.world import World
from dialsim.scenario.scenario import Scenario as Model
from engine.breadth import broad_scenario
from engine.compiled.mutants import (
    OF_COMPILED,
    OF_SIMPY,
    Mutant,
    compiled_engine,
    simpy_engine,
)
from engine.readings import loaded
from engine.rows import told
from oracle.scenarios import random_scenario

SCENARIOS = 400
"""Scenarios, enough to show every mutant; most are shown by one of the first ten."""
_FAST = ("C4", "Q5", "R2")  # a sample; all of them are slow


@cache
def scenario(number: int) -> Model:
    """Scenarios with and without chance by turns."""
    make = broad_scenario if number % 2 else random_scenario
    return loaded(make(number))


@cache
def other_engine(number: int) -> dict[str, object]:
    """Return the trace of a scenario in the engine without a mutation."""
    return told(simpy_engine(None)(World(scenario(number))))


def noticed(engine: Callable[[World], Trace]) -> int | None:
    """Return the first scenario with a different trace in an engine; None if there is none."""
    for number in range(SCENARIOS):
        world = World(scenario(number))
        try:
            found = told(engine(world))
        except (IndexError, KeyError, AssertionError, TypeError, AttributeError):
            return number  # what a broken engine stumbles over is noticed, too
        if found != other_engine(number):
            return number
    return None


def cases(mutants: tuple[Mutant, ...]) -> list[object]:
    return [
        pytest.param(
            mutant,
            id=f"{mutant.rule} {mutant.source.strip().splitlines()[0][:40]}",
            marks=[] if mutant.rule in _FAST else [pytest.mark.slow],
        )
        for mutant in mutants
    ]


def test_engines_made_anew_agree_while_no_rule_is_broken() -> None:
    engine = compiled_engine(None)
    for number in range(4):
        assert told(engine(World(scenario(number)))) == other_engine(number)


@pytest.mark.parametrize("mutant", cases(OF_COMPILED))
def test_a_rule_broken_in_the_compiled_engine_is_noticed(mutant: Mutant) -> None:
    assert noticed(compiled_engine(mutant)) is not None


@pytest.mark.parametrize("mutant", cases(OF_SIMPY))
def test_a_rule_broken_in_the_simpy_engine_is_noticed(mutant: Mutant) -> None:
    assert noticed(simpy_engine(mutant)) is not None


@pytest.mark.parametrize("mutants", [OF_COMPILED, OF_SIMPY], ids=["compiled", "SimPy"])
def test_at_least_twenty_rules_are_broken(mutants: tuple[Mutant, ...]) -> None:
    assert len({mutant.rule for mutant in mutants}) >= 20
