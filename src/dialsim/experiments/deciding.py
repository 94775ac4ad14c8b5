"""Sweeps that stop early: variants get no more runs once a figure decides about them.

A variant gets no more runs once it certainly differs from the baseline in the deciding figure, or
certainly does not. The claims are about pairs of runs: the figure is greater in more than half of
them, or smaller, or within the indifference. Each claim concerns a share of pairs, and is evaluated
by the looks of `dialsim.experiments.looks` as in a plan. That requires no assumption about the
distribution of differences; a mean may depend on rare pairs that few runs do not show. The error is
divided evenly among claims and variants (Bonferroni), so that all verdicts of a sweep are true with
95 % confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import records
from dialsim.experiments.expression import Expression, read_expression
from dialsim.experiments.intervals import CONFIDENCE, Values
from dialsim.experiments.looks import Looks
from dialsim.experiments.run_figures import earliest_start

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.run_spec import RunSpec
    from dialsim.experiments.runner import ExperimentRunner
    from dialsim.scenario.scenario import Scenario

Verdict = Literal["more", "less", "alike", "open"]

INDIFFERENCE = 0.005
"""Default share within which two runs are equivalent."""
_FIRST_LOOK = 8
"""Runs at the first look, as in a plan: enough to stop early if all pairs agree."""
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Decision:
    """Verdict on a variant against the baseline, and its number of runs.

    Of the pairs of runs, the deciding figure is greater than the baseline's in `more`, smaller in
    `less`, and within the indifference in `alike`, which overlaps with both. The verdict names the
    relation that certainly holds in more than half of all pairs, or is `open`.
    """

    variant: str
    verdict: Verdict
    runs: int
    more: int
    less: int
    alike: int


@dataclass(frozen=True, slots=True)
class Decided:
    """Decisions of a sweep, in its order, with the deciding figure and the baseline.

    A pair is alike if its difference is at most the share `indifference` of the baseline's figure;
    for an instant, of the time since the earliest startAt. No variant has more than `most` runs.
    All verdicts together are true with the given `confidence`.
    """

    figure: Expression
    indifference: float
    baseline: str
    most: int
    confidence: float
    decisions: tuple[Decision, ...]

    def runs(self, variant: str) -> int:
        """Return the number of runs of a variant; the baseline has the maximum."""
        known = {part.variant: part.runs for part in self.decisions}
        return known.get(variant, max(known.values()))

    def to_dict(self) -> dict[str, object]:
        """Return JSON values."""
        return asdict(self) | {"figure": self.figure.text, "decisions": records(self.frame)}

    @property
    def frame(self) -> pd.DataFrame:
        """Table with a row per decision."""
        import pandas as pd

        return pd.DataFrame([asdict(part) for part in self.decisions])


class Deciding:
    """Sequential comparison of variants with the baseline, with no more runs than needed."""

    def __init__(
        self,
        figure: str,
        indifference: float,
        names: Sequence[str],
        baseline: str,
        most: int,
        scenarios: Sequence[Scenario],
    ) -> None:
        """`names` are the names of all variants, each with at most `most` runs.

        Raises ExperimentError for a figure that a scenario lacks, an indifference that is no share,
        and too few runs for any decision.
        """
        # Parsed for every scenario: one of several files may lack the campaign that the figure
        # names.
        (self._figure, *_) = [read_expression(figure, scenario) for scenario in scenarios]
        if not 0 <= indifference < 1:
            raise ExperimentError(f"the indifference is a share such as 0.01, not {indifference}")
        self._indifference = indifference
        self.names = names
        self._baseline = baseline
        if len(names) < 2:
            raise ExperimentError("one variant alone has nothing to be told from")
        self._most = most
        self._looks = _looks(most)
        # Each variant may turn out more, less or alike: three claims, and none may be wrong.
        claims = 3 * (len(names) - 1)
        # Only one tail of each claim counts.
        self._level = 1 - 2 * (1 - CONFIDENCE) / claims
        if not self._looks.can_tell(_HALF, self._level):
            enough = next(n for n in range(most, 1000) if _looks(n).can_tell(_HALF, self._level))
            raise ExperimentError(
                f"{most} replications tell none of {len(names)} variants from another: "
                f"{enough} or more do"
            )

    def replicate(self, runner: ExperimentRunner, specs: Sequence[RunSpec]) -> Decided:
        """Run the specs, one per variant, until all is decided or no runs are left."""
        by_name = dict(zip(self.names, specs, strict=True))
        base = by_name.pop(self._baseline)
        still_open, made, decisions = [*by_name], 0, {}
        for count in self._looks.counts:
            # An upper bound for the progress bar, as decided variants drop out.
            runner.ahead = (len(still_open) + 1) * (self._most - made)
            runner.replicate([base, *(by_name[name] for name in still_open)], count)
            made, start = count, earliest_start(base.first(count))
            theirs = self._figure.in_tables(base.first(count), start)
            for name in still_open:
                ours = self._figure.in_tables(by_name[name].first(count), start)
                decisions[name] = self._decision(name, ours, theirs)
            still_open = [name for name in still_open if decisions[name].verdict == "open"]
            if not still_open:
                break
        return Decided(
            self._figure,
            self._indifference,
            self._baseline,
            self._most,
            CONFIDENCE,
            tuple(decisions[name] for name in by_name),
        )

    def _decision(self, name: str, ours: Values, theirs: Values) -> Decision:
        from scipy import stats

        count = len(theirs)
        more, less = int((ours > theirs).sum()), int((ours < theirs).sum())
        alike = self._alike(ours, theirs)
        hits: dict[Verdict, int] = {"more": more, "less": less, "alike": alike}
        # The sign test: with equal variants each pair is more or less with probability 1/2,
        # whatever the distribution.
        tail = self._looks.of_share(_HALF, count, self._level).low
        sure = (each for each in hits if stats.binom.sf(hits[each] - 1, count, _HALF) <= tail)
        return Decision(name, next(sure, "open"), count, more, less, alike)

    def _alike(self, ours: Values, theirs: Values) -> int:
        """Return the number of equivalent pairs, pairs without any finish included."""
        with np.errstate(invalid="ignore"):
            within = np.abs(ours - theirs) <= self._indifference * np.abs(theirs)
        # Equality covers infinities: two runs that never finish are alike, though their difference
        # is NaN.
        return int(((ours == theirs) | (within & np.isfinite(theirs))).sum())


def _looks(most: int) -> Looks:
    return Looks.between(min(_FIRST_LOOK, most), most)
