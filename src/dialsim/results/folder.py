"""Output folders of a run and of an experiment.

The folder of a run has tables as parquet, webhooks as JSON lines, the rest as JSON. It contains the
scenario's text, so that the run can be repeated, and a manifest with the version of dialsim, the
scenario and the seed. It is written to a hidden sibling `.DIR.dialsim-…`, and moved into place when
it is complete. A killed run leaves only the sibling, which the next run with the same target
removes.

The folder of an experiment has its store, and finally tables, numbers and manifest. The manifest is
written at the beginning and identifies a stopped experiment. The same command continues it if
scenario, seed and version of dialsim are equal. Every other file appears in one step; `finished` in
the manifest means that all are complete.
"""

from __future__ import annotations

import gzip
import io
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import mkdtemp, mkstemp
from typing import TYPE_CHECKING, Any, BinaryIO

from filelock import FileLock, Timeout

from dialsim import __version__
from dialsim.errors import DialsimError, ExistingOutput, OutputError
from dialsim.scenario.loading import loads

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.engine.trace import Trace
    from dialsim.results.result import Result
    from dialsim.scenario.scenario import Scenario

LIBRARIES = ("numba", "numpy", "pandas", "pyarrow", "pydantic", "scipy", "simpy")

MANIFEST = "manifest.json"
SUMMARY = "summary.json"
_LOCK = "lock"


def source_entries(scenario: Scenario) -> dict[str, object]:
    """Return what is needed, beside the text, to load a scenario again; empty without a text."""
    origin = scenario.origin
    if origin is None:
        return {}
    return {
        "overrides": origin.overrides,
        "scenario_folder": str(origin.folder.absolute()),
        **({_LISTS: [*origin.kept]} if origin.kept else {}),
    }


def manifest_json(trace: Trace, wall_seconds: float | None, without: Sequence[str] = ()) -> bytes:
    """Return the bytes of `manifest.json`, the only file in which two equal runs differ.

    `wall_seconds` is the wall-clock time of the simulation; `without` are the tables left out.
    """
    import orjson

    world = trace.world
    content = {
        "dialsim": __version__,
        "scenario": world.scenario.name,
        "scenario_sha256": world.scenario.digest,
        **source_entries(world.scenario),
        "seed": world.seed,
        "replication": world.replication,
        "engine": trace.engine,
        "wall_seconds": wall_seconds,
        **({"without": without} if without else {}),
        **environment(),
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def environment() -> dict[str, object]:
    """Return the machine, and the versions of Python and of the libraries that affect numbers."""
    versions = {}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):  # numba may be missing
            versions[name] = version(name)
    return {
        "python": platform.python_version(),
        "libraries": versions,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
    }


SOURCE = "scenario.yaml"
_LISTS = "lists"
"""Folder of lists that came with the text, numbered in the order of the manifest."""


def write_source(scenario: Scenario, folder: Path) -> None:
    """Write the text that a scenario was loaded from, if any, and the lists that came with it."""
    origin = scenario.origin
    if origin is not None:
        (folder / SOURCE).write_text(origin.text, encoding="utf-8")
        for number, content in enumerate(origin.kept.values()):
            (folder / _LISTS).mkdir(exist_ok=True)
            (folder / _LISTS / str(number)).write_bytes(content)


def read_source(folder: Path) -> Scenario:
    """Load the scenario of a result again, with its overrides; its CSVs are read from their old
    paths.

    Raises DialsimError if the folder is not a result or has no source, or if a CSV has changed.
    """
    said = read_manifest(folder)
    file = folder / SOURCE
    if not file.is_file() or "overrides" not in said:
        raise DialsimError(f"{folder} has no {SOURCE}, so its run can't be repeated")
    scenario = loads(
        file.read_text(encoding="utf-8"),
        name=str(file),
        folder=said["scenario_folder"],
        overrides=said["overrides"],
        files={
            name: (folder / _LISTS / str(number)).read_bytes()
            for number, name in enumerate(said.get(_LISTS, ()))
        },
    )
    if scenario.digest != said["scenario_sha256"]:
        raise DialsimError(
            f"{folder} was made from another scenario: {SOURCE} or a file that it names in "
            f"{said['scenario_folder']} has changed since"
        )
    return scenario


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a result. Raises DialsimError if the folder is not a result of
    dialsim.
    """
    import orjson

    try:
        said = orjson.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise DialsimError(f"{folder} is not a result of dialsim: it has no {MANIFEST}") from None
    except (OSError, orjson.JSONDecodeError) as error:
        raise DialsimError(f"{folder / MANIFEST} can't be read: {error}") from None
    if not isinstance(said, dict) or "scenario_sha256" not in said:
        raise DialsimError(f"{folder / MANIFEST} is not a manifest of dialsim")
    return said


def check_place(folder: Path, force: bool) -> None:
    """Raise ExistingOutput if `folder` exists and may not be replaced.

    Without `force` nothing may be replaced; with `force` only a result of dialsim (a folder with a
    manifest) or an empty folder. Raises OutputError if the folder cannot be created.
    """
    folder = Path(os.path.abspath(folder))
    above = next(parent for parent in folder.parents if os.path.lexists(parent))
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        what = "not a folder" if not above.is_dir() else "not writable"
        raise OutputError(f"{folder} cannot be written: {above} is {what}")
    if not os.path.lexists(folder):
        return
    if not force:
        raise ExistingOutput(f"{folder} exists already; choose another folder, or use force=True")
    if folder.is_symlink() or not folder.is_dir():
        raise ExistingOutput(f"{folder} is not a folder; it is left alone, by force or not")
    if any(folder.iterdir()) and not (folder / MANIFEST).is_file():
        raise ExistingOutput(
            f"{folder} has no {MANIFEST}, so it is not a result of dialsim; "
            "it is left alone, by force or not"
        )


@contextmanager
def replacing(folder: Path, force: bool = False) -> Iterator[Path]:
    """Yield a new folder, which replaces `folder` at the end of the block.

    If the block raises or is interrupted, the new folder is removed and `folder` is unchanged.
    Raises ExistingOutput and OutputError like `check_place`, and OutputError for errors of the file
    system, such as a full disk.
    """
    folder = Path(os.path.abspath(folder))
    check_place(folder, force)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _workplace(folder) as work:
            draft = work / "new"
            draft.mkdir()
            yield draft
            _sync(draft)
            check_place(folder, force)
            _move(draft, folder, aside=work / "old")
            _sync_entry(folder.parent)
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror or error}") from error
    _remove_leftovers(folder)


def replace_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file beside its final path, and move it there when it is complete.

    Raises OutputError for errors of the file system.
    """
    try:
        _replace(path, write)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    descriptor, draft = mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            write(file)
        # mkstemp creates files that only the owner may read.
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, path)
    # Ctrl-C included: no draft may remain beside the result.
    except BaseException:
        os.unlink(draft)
        raise


def _umask() -> int:
    # The mask can be read only by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _prefix(folder: Path) -> str:
    return f".{folder.name}.dialsim-"


@contextmanager
def _workplace(folder: Path) -> Iterator[Path]:
    """Create a hidden folder beside `folder`, locked while it is being written."""
    work = Path(mkdtemp(prefix=_prefix(folder), dir=folder.parent))
    try:
        with FileLock(work / _LOCK):
            yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove the hidden folders of killed runs, recognized by their free locks."""
    for work in folder.parent.glob(f"{_prefix(folder)}*"):
        with suppress(OSError, Timeout):  # Timeout: another process is writing; OSError: it is gone
            FileLock(work / _LOCK).acquire(blocking=False).lock.release()
            shutil.rmtree(work, ignore_errors=True)


def _move(draft: Path, folder: Path, aside: Path) -> None:
    """Move the draft into place; a previous folder is moved to `aside`."""
    # No portable call swaps two folders, so the target is missing between the two renames. If the
    # process is killed there, both folders are complete in the hidden one.
    if not os.path.lexists(folder):
        draft.rename(folder)
        return
    folder.rename(aside)
    try:
        draft.rename(folder)
    except BaseException:
        aside.rename(folder)
        raise


def _sync(folder: Path) -> None:
    """Flush the folder and all its files to the disk before it is moved."""
    # A rename may reach the disk before the data does; after a power failure the files would be
    # empty.
    for path in [*sorted(folder.rglob("*")), folder]:
        _sync_entry(path)


def _sync_entry(path: Path) -> None:
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open folders
    entry = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)


TABLES = ("calls", "transitions", "recipients", "campaigns")
WEBHOOKS = "webhooks"
PARTS = (*TABLES, WEBHOOKS)
"""Parts that can be left out of a folder."""

# A million lines are 1.5 GB, and 0.1 GB compressed.
MOST_PLAIN = 100_000
"""Largest number of lines of webhooks in a plain file; more are compressed."""


def check_parts(without: Sequence[str]) -> None:
    """Raise OutputError for unknown names of parts."""
    for name in without:
        if name not in PARTS:
            raise OutputError(f'"{name}" can\'t be left out; known here: {", ".join(PARTS)}')


def write_result(
    result: Result,
    folder: str | os.PathLike[str],
    force: bool = False,
    also: Callable[[Path], object] | None = None,
    without: Sequence[str] = (),
) -> Path:
    """Write all files of a result; the folder appears complete or not at all.

    `also` is called with the unfinished folder, to write more files; `without` are parts to leave
    out. Equal results give equal bytes under equal versions of dialsim and its libraries, except
    the manifest. Raises ExistingOutput if the folder exists, unless `force` replaces the result in
    it.
    """
    path = Path(folder)
    check_parts(without)
    with replacing(path, force) as draft:
        for name in TABLES:
            if name not in without:
                _write_table(getattr(result, name), draft / f"{name}.parquet")
        if WEBHOOKS not in without:
            _write_webhooks(result, draft)
        (draft / SUMMARY).write_bytes(result.summary.to_json())
        write_source(result.trace.world.scenario, draft)
        if also is not None:
            also(draft)
        left_out = [name for name in PARTS if name in without]
        content = manifest_json(result.trace, result.wall_seconds, left_out)
        (draft / MANIFEST).write_bytes(content)
    return path


def _write_webhooks(result: Result, folder: Path) -> None:
    path = folder / "webhooks.jsonl"
    if len(result.reading.stream.posts) <= MOST_PLAIN:
        with path.open("wb") as file:
            result.write_webhooks(file)
        return
    with (
        path.with_suffix(".jsonl.gz").open("wb") as file,
        # Name and time in the gzip header would make equal runs differ.
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
        io.BufferedWriter(packed, 1 << 20) as lines,
    ):
        result.write_webhooks(lines)


def _write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write one table; only repeated texts are dictionary-encoded."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    encoded = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    pq.write_table(table, path, compression="zstd", use_dictionary=encoded)


STORE = "replications.sqlite"
"""Store of an experiment: the finished replications."""
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
        """`seed` defaults to the scenario's; `arguments` are further entries of the manifest.

        `others` are the further scenarios of a comparison. Arguments that are known only after runs
        may be added before `finish`.
        """
        self.path = path
        self._scenario = scenario
        self._others = others
        self.arguments = dict(arguments or {})
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
        """Write the text and lists of a further scenario, for `read_source`."""
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
                    "choose another folder, or use force=True"
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
                "arguments": self.arguments,
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
