"""Output folder of an experiment: its store, and finally tables, numbers and manifest.

The manifest is written at the beginning and identifies a stopped experiment. The same command
continues it if scenario, seed and version of dialsim are equal. Every other file appears in one
step; `finished` in the manifest means that all are complete.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialsim import __version__
from dialsim.errors import ExistingOutput, OutputError
from dialsim.experiments.runner import STORE
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

    from dialsim.scenario.scenario import Scenario


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
