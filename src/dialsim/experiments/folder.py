"""Output folder of an experiment: its store, and finally tables, numbers and manifest.

The manifest is written at the beginning and identifies a stopped experiment. The same command
continues it if scenario, seed and version of dialsim are equal. Every other file appears in one
step; `finished` in the manifest means that all are complete.

In summary.json, as in `--format json`, NaN and infinite numbers are null.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialsim import __version__
from dialsim.errors import ExistingOutput, OutputError
from dialsim.experiments.runner import STORE
from dialsim.interface.instants import format_instant, ms_of
from dialsim.results.figures import is_instant
from dialsim.results.folder import (
    MANIFEST,
    SUMMARY,
    check_place,
    environment,
    replacing,
    source_entries,
    write_source,
)

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.experiments.comparison import Comparison
    from dialsim.experiments.replications import Replications
    from dialsim.experiments.sweep import Sweep
    from dialsim.scenario.scenario import Scenario


_QUANTILES = ("p05", "p25", "p50", "p75", "p95")


def replications_document(runs: Replications) -> dict[str, object]:
    """Return counts, requested precision, and all estimates; instants beside their seconds."""
    return {
        "scenario": runs.scenario.name,
        "seed": runs.seed,
        "replications": len(runs),
        "origin": _instant(runs.origin),
        "confidence": 0.95,
        "precision": [
            {
                "figure": part.figure,
                "wanted": part.wanted,
                "reached": _plain(part.reached),
                "unfinished": part.unfinished,
                "met": part.met,
            }
            for part in runs.precision
        ],
        "estimates": _estimates(runs.intervals(), runs.origin),
    }


def sweep_document(
    found: Sweep, differences: pd.DataFrame, baseline: str, seed: int, adjust: str | None
) -> dict[str, object]:
    """Return the variants, their estimates, and the differences from the baseline."""
    return {
        "scenario": found.scenario.name,
        "seed": seed,
        "replications": found.replications,
        "origin": _instant(found.origin),
        "confidence": 0.95,
        "variants": [
            {
                "variant": variant.name,
                "changes": [f"{change.path}={change.text}" for change in variant.changes],
            }
            for variant in found.variants
        ],
        "estimates": _estimates(found.intervals().drop(columns=list(found.paths)), found.origin),
        "baseline": baseline,
        "adjustment": adjust,
        "differences": _records(differences),
    } | _decided(found)


def _decided(found: Sweep) -> dict[str, object]:
    """Return the decisions by a figure; empty without one."""
    decided = found.decided
    if decided is None:
        return {}
    said = asdict(decided) | {"figure": decided.figure.text, "decisions": _records(decided.frame)}
    return {"decided": said}


def comparison_document(
    found: Comparison, differences: pd.DataFrame, baseline: str, adjust: str | None
) -> dict[str, object]:
    """Return a sweep's document with files as variants, and the differences between the files."""
    names = [variant.name for variant in found.variants]
    return sweep_document(found, differences, baseline, found.seed, adjust) | {
        "unmatched": found.unmatched,
        "file_differences": [
            {"path": part.path, "values": dict(zip(names, part.values, strict=True))}
            for part in found.file_differences
        ],
    }


def _estimates(table: pd.DataFrame, origin: datetime | None) -> list[dict[str, object]]:
    rows = _records(table)
    for row in rows:
        if is_instant(row["figure"]) and origin is not None:
            instant = row["figure"].removesuffix("_seconds")
            row |= {f"{instant}_{name}": _after(origin, row[name]) for name in _QUANTILES}
    return rows


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    # As objects: in a float column pandas would turn None back into NaN.
    known = table.astype(object).where(table.notna(), None)
    columns = [[_plain(value) for value in known[name].tolist()] for name in table.columns]
    rows: Iterable[tuple[Any, ...]] = zip(*columns, strict=True)
    return [dict(zip(map(str, table.columns), row, strict=True)) for row in rows]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


def _after(origin: datetime, seconds: float | None) -> str | None:
    return None if seconds is None else _instant(origin + timedelta(seconds=seconds))


def _instant(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(ms_of(instant))


FILE = "file-"
"""Prefix of the folders of a comparison's further files, numbered from 2."""


class ExperimentFolder:
    """Output folder of an experiment such as `replications`, `sweep`, `comparison` or `plan`."""

    def __init__(
        self,
        path: Path,
        kind: str,
        scenario: Scenario,
        seed: int | None,
        arguments: Mapping[str, object] | None = None,
        others: Sequence[Scenario] = (),
    ) -> None:
        """`seed` defaults to the scenario's; `arguments` are further inputs of the page.

        `others` are the further scenarios of a comparison.
        """
        self.path = path
        self._scenario = scenario
        self._others = others
        self._arguments = dict(arguments or {})
        self._identity = {
            "dialsim": __version__,
            "experiment": kind,
            "scenario": scenario.name,
            "scenario_sha256": scenario.digest,
            "seed": scenario.seed if seed is None else seed,
        }
        if others:
            # Part of the identity: a command with other files must not continue the experiment in
            # this folder.
            self._identity["compared_with"] = [other.digest for other in others]

    def open(self, force: bool) -> None:
        """Create the folder, or continue a stopped experiment in it.

        Raises ExistingOutput if something else exists; `force` replaces any result of dialsim.
        """
        if force and os.path.lexists(self.path):
            # In one step, because the folder of a forecast contains the figures of earlier ones.
            with replacing(self.path, force=True) as draft:
                self._begin(draft)
            return
        found = _content(self.path / MANIFEST)
        if found.get("experiment"):
            self._check_same(found)
        elif os.path.lexists(self.path) and (not self.path.is_dir() or any(self.path.iterdir())):
            check_place(self.path, force=False)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._begin(self.path)
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}") from error

    def _begin(self, place: Path) -> None:
        """Write the files that do not depend on runs."""
        write_source(self._scenario, place)
        for number, other in enumerate(self._others, 2):
            self._write_other(other, place / f"{FILE}{number}")
        self._write_manifest(place, finished=False)

    def _write_other(self, scenario: Scenario, folder: Path) -> None:
        """Write the files that `read_source` needs to load a further scenario."""
        import orjson

        folder.mkdir(exist_ok=True)
        write_source(scenario, folder)
        content = {"scenario_sha256": scenario.digest, **source_entries(scenario)}
        (folder / MANIFEST).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))

    def _check_same(self, found: Mapping[str, Any]) -> None:
        words = {
            "experiment": "kind of experiment",
            "scenario_sha256": "scenario",
            "compared_with": "choice of files",
            "seed": "seed",
            "dialsim": "version of dialsim",
        }
        for key, word in words.items():
            if found.get(key) != self._identity.get(key):
                raise ExistingOutput(
                    f"{self.path} is there already, with another {word}; "
                    "choose another folder, or use --force"
                )

    def finish(self, tables: Mapping[str, pd.DataFrame], document: object) -> None:
        """Write the tables as parquet, the document as summary.json, and the manifest."""
        import orjson

        for name, frame in tables.items():
            # Renamed when complete, so that a stopped command leaves no truncated table.
            draft = self.path / f".{name}.parquet"
            frame.to_parquet(draft, index=False, compression="zstd")
            draft.replace(self.path / f"{name}.parquet")
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        _write(self.path / SUMMARY, orjson.dumps(document, option=options))
        # Last, because `finished` promises that all other files are complete.
        self._write_manifest(self.path, finished=True)

    def _write_manifest(self, place: Path, finished: bool) -> None:
        import orjson

        content = (
            self._identity
            | source_entries(self._scenario)
            | {
                "arguments": self._arguments,
                "finished": finished,
                "store": STORE,
                **environment(),
            }
        )
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        _write(place / MANIFEST, orjson.dumps(content, option=options))


def _write(file: Path, content: bytes) -> None:
    draft = file.with_name(f".{file.name}")
    draft.write_bytes(content)
    draft.replace(file)


def _content(path: Path) -> dict[str, Any]:
    """Return a manifest's content; empty if unreadable."""
    import orjson

    try:
        content = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return content if isinstance(content, dict) else {}
