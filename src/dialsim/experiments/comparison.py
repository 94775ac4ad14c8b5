"""Comparison of scenario files: figures side by side, and differences between the files.

The files are the variants of a sweep (`dialsim.experiments.sweep`). They share their random numbers
as far as their campaigns stand at equal positions ("Chance" in docs/rules.md), and their figures
are compared in pairs. Campaigns are matched by the names of organization and campaign.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from dialsim.errors import ExperimentError
from dialsim.experiments.estimates import check_baseline
from dialsim.experiments.expression import Expression, ShownFigures, read_figures
from dialsim.experiments.run_figures import RunFigures
from dialsim.experiments.run_spec import RunSpec
from dialsim.experiments.runner import RunSettings, runner
from dialsim.experiments.sweep import INDIFFERENCE, Decided, Deciding, Sweep, run_variants
from dialsim.experiments.variants import Variant
from dialsim.interface.phrases import checked, kind_of
from dialsim.scenario.loading import document_of, load
from dialsim.scenario.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd


_LONGEST = 60  # characters of a value that a table shows


@dataclass(frozen=True, slots=True)
class FileDifference:
    """Path at which files differ; `values` has each file's value, None if absent."""

    path: str
    values: tuple[str | None, ...]


class Comparison(Sweep):
    """Result of many runs of several scenario files: a `Sweep` whose variants are the files.

    >>> both = {"two": scenario, "four": scenario.with_(lines=4)}
    >>> found = dialsim.compare(both, 4, jobs=1)
    >>> found.runs.groupby("variant", sort=False).size().to_dict()
    {'two': 4, 'four': 4}
    """

    def __init__(
        self,
        variants: Sequence[Variant],
        figures: Sequence[Sequence[RunFigures]],
        specs: Sequence[RunSpec],
        expressions: Sequence[Expression] = (),
        decided: Decided | None = None,
        baseline: str | None = None,
    ) -> None:
        """`variants` are whole scenarios; `specs` are theirs, in the same order.

        `expressions`, `decided` and `baseline` are as in `Sweep`.
        """
        self.scenarios = tuple(spec.scenario for spec in specs)
        self.seed = specs[0].seed
        all_bounds = [spec.bounds for spec in specs]
        super().__init__(
            self.scenarios[0], variants, figures, all_bounds, expressions, decided, baseline
        )

    @property
    def file_differences(self) -> tuple[FileDifference, ...]:
        """Differences between the files as written, path by path, overrides included."""
        return tuple(file_differences([document_of(scenario) for scenario in self.scenarios]))

    @property
    def changed(self) -> pd.DataFrame:
        """`file_differences` as a table: a row per path, a column per file."""
        import pandas as pd

        names = [variant.name for variant in self.variants]
        rows = [(part.path, *part.values) for part in self.file_differences]
        return pd.DataFrame(rows, columns=["path", *names])

    @property
    def unmatched(self) -> dict[str, tuple[str, ...]]:
        """Campaigns that are missing in some files, with the files that have them."""
        having: dict[str, list[str]] = {}
        for variant, scenario in zip(self.variants, self.scenarios, strict=True):
            for organization in scenario.organizations:
                for campaign in organization.campaigns:
                    having.setdefault(f"{organization.name}/{campaign.name}", []).append(
                        variant.name
                    )
        return {
            name: tuple(files) for name, files in having.items() if len(files) < len(self.variants)
        }

    def __repr__(self) -> str:
        names = ", ".join(variant.name for variant in self.variants)
        return f"<dialsim.Comparison {names}, replications: {self.replications:,}>"

    def _repr_html_(self) -> str:
        from dialsim.experiments.experiment_text import comparison_html

        return comparison_html(self)


@checked(ExperimentError, RunSettings)
def compare(
    files: Sequence[str | os.PathLike[str] | Scenario] | Mapping[str, Scenario],
    replications: int = 50,
    *,
    figures: ShownFigures = (),
    decide: str | None = None,
    indifference: float = INDIFFERENCE,
    baseline: str | None = None,
    seed: int | None = None,
    **settings: Unpack[RunSettings],
) -> Comparison:
    """Run several scenario files `replications` times each, with common random numbers.

    `files` are paths or scenarios, or scenarios by name. `seed` defaults to the first file's and
    applies to all. `figures`, `decide`, `indifference` and `baseline` are as in `sweep`; every file
    must have the figures in them. The other arguments are as in `replicate`. Raises
    ExperimentError, and ScenarioError for a file with problems.

    >>> both = {"two": scenario, "four": scenario.with_(lines=4)}
    >>> found = dialsim.compare(both, 6, decide="finish", jobs=1)
    >>> found.differences().query("figure == 'finish_seconds'")["variant"].unique().tolist()
    ['four']
    """
    named = _named(files)
    if len(named) < 2:
        raise ExperimentError(f"a comparison needs 2 files or more, not {len(named)}")
    if replications < 2:
        raise ExperimentError(f"a comparison needs 2 replications or more, not {replications}")
    read = {name: read_figures(figures, part) for name, part in named.items()}
    named = {name: scenario for name, (scenario, _) in read.items()}
    (_, shown), *_ = read.values()
    names, scenarios = [*named], [*named.values()]
    baseline = check_baseline(names, baseline)
    deciding = None
    if decide is not None:
        deciding = Deciding(decide, indifference, names, baseline, replications, scenarios)
    variants = [Variant(name, scenario=scenario) for name, scenario in named.items()]
    first = next(iter(named.values()))
    # With different seeds, differences between files would include differences of chance.
    specs = [RunSpec(scenario, first.seed if seed is None else seed) for scenario in named.values()]
    with runner(**settings) as place:
        runs, decided = run_variants(place, specs, replications, deciding)
    return Comparison(variants, runs, specs, shown, decided, baseline)


def _named(
    files: Sequence[str | os.PathLike[str] | Scenario] | Mapping[str, Scenario],
) -> dict[str, Scenario]:
    """Return the scenarios by unique names: file names, with folders if necessary."""
    if isinstance(files, Mapping):
        if not all(isinstance(name, str) for name in files):
            raise ExperimentError(f"files must have texts as names, not {[*files]}")
        return {name: s if isinstance(s, Scenario) else load(s) for name, s in files.items()}
    if isinstance(files, str):
        raise ExperimentError(f'a comparison takes a list of files, such as ["{files}", "b.yaml"]')
    if not isinstance(files, Sequence):
        raise ExperimentError(f"files must be a list of files or scenarios, not {kind_of(files)}")
    loaded = [part if isinstance(part, Scenario) else load(part) for part in files]
    return dict(zip(names_of([_path(scenario) for scenario in loaded]), loaded, strict=True))


def _path(scenario: Scenario) -> Path:
    return scenario.source or Path(scenario.name)


def names_of(paths: Sequence[Path]) -> list[str]:
    """Return short unique names for files: the last part without suffix, or more parts if
    necessary.
    """
    parts = [path.with_suffix("").parts for path in paths]
    for length in range(1, max(map(len, parts), default=0) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    twice = {path for path, often in Counter(paths).items() if often > 1}
    numbers = {path: count(1) for path in twice}
    return [f"{path} ({next(numbers[path])})" if path in twice else str(path) for path in paths]


def file_differences(documents: Sequence[Any]) -> Iterator[FileDifference]:
    """Yield the paths at which documents differ.

    Items of lists are matched by their `name` if all have one; other lists are compared as a whole.
    """
    yield from _walk("", [_Found(document) for document in documents])


@dataclass(frozen=True, slots=True)
class _Found:
    """Value of a document at a path."""

    value: Any


def _walk(path: str, found: Sequence[_Found | None]) -> Iterator[FileDifference]:
    there = [part.value for part in found if part is not None]
    if len(there) == len(found) and all(value == there[0] for value in there):
        return
    # If a file lacks a whole block, the block is one difference, not each of its lines.
    branches = [_branches(value) for value in there]
    kinds = {type(value) for value in there}
    if len(there) < len(found) or None in branches or len(kinds) > 1:
        said = (None if part is None else _text(part.value) for part in found)
        yield FileDifference(path, tuple(said))
        return
    keys = dict.fromkeys(key for branch in branches for key in branch or {})
    if kinds == {list}:  # the order of campaigns matters (Q3), the order of keys does not
        common = [
            [key for key in b or {} if all(key in (c or {}) for c in branches)] for b in branches
        ]
        if any(order != common[0] for order in common):
            yield FileDifference(
                path, tuple(f"{', '.join(order)} in this order" for order in common)
            )
    for key in keys:
        below = [_Found(branch[key]) if branch and key in branch else None for branch in branches]
        yield from _walk(f"{path}.{key}" if path else key, below)


def _branches(value: Any) -> dict[str, Any] | None:
    """Return the parts of a value by their names in paths; None for a value without parts."""
    if isinstance(value, dict):
        return {str(key): part for key, part in value.items()}
    if not isinstance(value, list):
        return None
    names = [part.get("name") if isinstance(part, dict) else None for part in value]
    if None in names or len(set(map(str, names))) < len(names):
        return None
    return dict(zip(map(str, names), value, strict=True))


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
