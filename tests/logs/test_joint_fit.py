"""A behaviour that is written keeps all values of its joint fit, so it reaches as many people."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import beta

from dialsim.logs.answering import (
    ANSWERED,
    BUSY,
    FAILED,
    NO_ANSWER,
    Answering,
    Attempts,
    answering,
)
from dialsim.logs.behaviour_text import answering_block, plain

ATTEMPTS = 3


class Truth(NamedTuple):
    """People who answer 30 % of first attempts; without `concentration` all are alike."""

    concentration: float | None
    never: float

    @property
    def mean(self) -> float:
        return 0.3 / (1.0 - self.never)

    @property
    def reach(self) -> float:
        """The expected share of people reached by three attempts."""
        if self.concentration is None:
            missed = (1.0 - self.mean) ** ATTEMPTS
        else:
            a, b = self.mean * self.concentration, (1.0 - self.mean) * self.concentration
            missed = float(np.exp(betaln(a, b + ATTEMPTS) - betaln(a, b)))
        return (1.0 - self.never) * (1.0 - missed)

    def calls(self, seed: int, people: int = 2_000) -> Attempts:
        """Return up to three attempts per person: the model of P7, drawn without an engine."""
        chance = np.random.default_rng(seed)
        own = np.full(people, self.mean)
        if self.concentration is not None:
            a, b = self.mean * self.concentration, (1.0 - self.mean) * self.concentration
            own = chance.beta(a, b, people)
        own[chance.random(people) < self.never] = 0.0
        left, rows = np.arange(people), []
        for attempt in range(1, ATTEMPTS + 1):
            answered = chance.random(len(left)) < own[left]
            others = chance.choice([NO_ANSWER, BUSY, FAILED], len(left), p=[0.7, 0.1, 0.2])
            hour = chance.integers(9, 19, len(left))
            same = np.ones(len(left), dtype=np.int64)
            outcome = np.where(answered, ANSWERED, others)
            rows.append(
                np.stack(
                    [left, attempt * same, hour, attempt * same, -same, outcome, -same, 0 * same]
                )
            )
            left = left[~answered]
        columns = np.concatenate(rows, axis=1)
        return Attempts(*columns[:, np.lexsort((columns[1], columns[0]))])


TRUTHS = {
    "alike": Truth(None, 0.0),
    "concentration 3": Truth(3.0, 0.0),
    "concentration 30": Truth(30.0, 0.0),
    "20 % never answer": Truth(None, 0.2),
}


def reach_of(found: Answering) -> float:
    """The share of people that the written block reaches by three attempts."""
    block: dict[str, Any] = plain(answering_block(found))
    people, answered = block["people"], block["outcomes"]["answered"]
    reachable = people.get("reachable", 1.0 - people["deadNumbers"])
    mean, concentration = answered / reachable, people["concentration"]
    own = beta.ppf((np.arange(5_000) + 0.5) / 5_000, mean * concentration,
                   (1.0 - mean) * concentration)  # fmt: skip
    factors = block["answeredOdds"]["byAttempt"]
    missed = np.ones(len(own))
    for attempt in range(ATTEMPTS):
        factor = factors[min(attempt, len(factors) - 1)]
        missed *= (1.0 - own) / (1.0 - own + factor * own)
    return float(reachable * (1.0 - missed.mean()))


@pytest.mark.parametrize("seed", [0, 3])
def test_people_who_are_alike_are_reached_as_in_their_log(seed: int) -> None:
    truth = TRUTHS["alike"]
    assert abs(reach_of(answering(truth.calls(seed))) - truth.reach) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTHS)
def test_the_reach_of_50_logs_is_that_of_their_truth(name: str) -> None:
    """The sampling error alone of a log of 2,000 people has a standard error of 0.011.

    The bias is at most half of it: people who are alike are at the edge of the prior.
    """
    truth = TRUTHS[name]
    errors = np.array([reach_of(answering(truth.calls(seed))) for seed in range(50)]) - truth.reach
    assert abs(errors.mean()) < 0.0055
    assert errors.std() < 0.02
    assert (np.abs(errors) < 0.03).sum() >= 44


def test_a_log_that_the_estimates_do_not_reproduce_is_found() -> None:
    calls = TRUTHS["alike"].calls(0)
    found = answering(calls)
    assert found.contradicted(calls) is None
    why = found.contradicted(TRUTHS["concentration 3"].calls(0))
    assert why is not None
    assert " were expected to be answered" in why
