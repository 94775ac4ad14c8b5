"""The output folder of a run: tables as parquet, webhooks as lines, the rest as JSON.

Many webhooks are packed by gzip: a million lines are 1.5 GB, and 0.1 GB packed.

It holds the scenario's text, so that it can be run again, and a manifest: which dialsim, which
scenario and which seed made it.

A folder is written beside its place, in a hidden sibling `.DIR.dialsim-…`, and moved there when it
is complete. What a killed run leaves is the sibling, which the next run that writes to the same
place removes.
"""

from __future__ import annotations

import gzip
import io
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

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
_LOCK = "lock"


def source_entries(scenario: Scenario) -> dict[str, object]:
    """What must be known beside a scenario's text to load it again; nothing without a text."""
    origin = scenario.origin
    if origin is None:
        return {}
    return {"overrides": origin.overrides, "scenario_folder": str(origin.folder.absolute())}


def manifest_json(trace: Trace, wall_seconds: float | None, without: Sequence[str] = ()) -> bytes:
    """The bytes of `manifest.json`: the only file of a result that two equal runs differ in.

    `wall_seconds` is the time that the simulation took on the clock on the wall; `without` are
    the tables that were not written.
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
        "python": platform.python_version(),
        "libraries": versions(),
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def versions() -> dict[str, str]:
    """The versions of what the numbers come from; numba is not everywhere."""
    versions = {}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


SOURCE = "scenario.yaml"


def write_source(scenario: Scenario, folder: Path) -> None:
    """Write the text that a scenario was loaded from; nothing for one that was made by hand."""
    if scenario.origin is not None:
        (folder / SOURCE).write_text(scenario.origin.text, encoding="utf-8")


def read_source(folder: Path) -> Scenario:
    """Load the scenario of a result again, with its overrides; its CSVs stay where they were.

    Raises DialsimError if the folder is no result, has no source, or a CSV is no longer the same.
    """
    said = read_manifest(folder)
    file = folder / SOURCE
    if not file.is_file() or "overrides" not in said:
        raise DialsimError(f"{folder} has no {SOURCE}, so what it shows can't be run again")
    scenario = loads(
        file.read_text(encoding="utf-8"),
        name=str(file),
        folder=said["scenario_folder"],
        overrides=said["overrides"],
    )
    if scenario.digest != said["scenario_sha256"]:
        raise DialsimError(
            f"{folder} was made from another scenario: {SOURCE} or a file that it names in "
            f"{said['scenario_folder']} was changed since"
        )
    return scenario


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a result says of itself. Raises DialsimError if the folder is no result of dialsim."""
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
    """Raise ExistingOutput if something stands at `folder` that may not be replaced.

    Without `force` that is anything at all; with it, anything but a result of dialsim (a folder
    with a manifest) or an empty folder. Raises OutputError if no folder can be made there.
    """
    folder = Path(os.path.abspath(folder))
    above = next(parent for parent in folder.parents if os.path.lexists(parent))
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        what = "not a folder" if not above.is_dir() else "not writable"
        raise OutputError(f"{folder} cannot be written: {above} is {what}")
    if not os.path.lexists(folder):
        return
    if not force:
        raise ExistingOutput(f"{folder} exists already; choose another folder, or use --force")
    if folder.is_symlink() or not folder.is_dir():
        raise ExistingOutput(f"{folder} is not a folder; it is left alone, --force or not")
    if any(folder.iterdir()) and not (folder / MANIFEST).is_file():
        raise ExistingOutput(
            f"{folder} has no {MANIFEST}, so it is not a result of dialsim; "
            "it is left alone, --force or not"
        )


@contextmanager
def replacing(folder: Path, force: bool = False) -> Iterator[Path]:
    """A new folder to write into, which takes the place of `folder` when the block is left.

    If the block raises, or is interrupted, the new folder is removed and `folder` is untouched.
    Raises ExistingOutput and OutputError as `check_place`, and OutputError for what the system
    refuses, a full disk say.
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


def _prefix(folder: Path) -> str:
    return f".{folder.name}.dialsim-"


@contextmanager
def _workplace(folder: Path) -> Iterator[Path]:
    """A hidden folder beside `folder`, locked as one that somebody is writing to."""
    work = Path(mkdtemp(prefix=_prefix(folder), dir=folder.parent))
    try:
        with FileLock(work / _LOCK):
            yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove what killed runs left: the hidden folders that nobody holds."""
    for work in folder.parent.glob(f"{_prefix(folder)}*"):
        with suppress(OSError, Timeout):  # Timeout: somebody is writing; OSError: it is gone
            FileLock(work / _LOCK).acquire(blocking=False).lock.release()
            shutil.rmtree(work, ignore_errors=True)


def _move(draft: Path, folder: Path, aside: Path) -> None:
    """Put the draft in its place; what stood there is then at `aside`.

    No system-independent call swaps two folders. Between the two renames the place is empty, and
    what a kill leaves there is the old folder and the new one, both whole, in the hidden folder.
    """
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
    """Have the folder and all its files on the disk before it is moved."""
    for path in [*sorted(folder.rglob("*")), folder]:
        _sync_entry(path)


def _sync_entry(path: Path) -> None:
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folders
    entry = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)


TABLES = ("calls", "transitions", "recipients", "campaigns")
WEBHOOKS = "webhooks"
PARTS = (*TABLES, WEBHOOKS)
"""What may be left out of a folder."""

MOST_PLAIN = 100_000
"""Lines of webhooks that are written as they are; more of them are packed."""


def check_parts(without: Sequence[str]) -> None:
    """Raise OutputError for names that are none of `PARTS`."""
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
    """Write all files of a result; the folder is there when all of them are, or not at all.

    `also` is called with the folder while it is in the making, to write more files there; `without`
    are parts that are not written. Same result, same bytes, under the same versions of dialsim and
    its libraries; the manifest alone differs. Raises ExistingOutput if the folder exists, unless
    `force` replaces the result in it.
    """
    place = Path(folder)
    check_parts(without)
    with replacing(place, force) as draft:
        for name in TABLES:
            if name not in without:
                _write_table(getattr(result, name), draft / f"{name}.parquet")
        if WEBHOOKS not in without:
            _write_webhooks(result, draft)
        (draft / "summary.json").write_bytes(result.summary.to_json())
        write_source(result.trace.world.scenario, draft)
        if also is not None:
            also(draft)
        left_out = [name for name in PARTS if name in without]
        content = manifest_json(result.trace, result.wall_seconds, left_out)
        (draft / MANIFEST).write_bytes(content)
    return place


def _write_webhooks(result: Result, folder: Path) -> None:
    path = folder / "webhooks.jsonl"
    if len(result.reading.stream.posts) <= MOST_PLAIN:
        with path.open("wb") as file:
            result.write_webhooks(file)
        return
    with (
        path.with_suffix(".jsonl.gz").open("wb") as file,
        # without name and time of the file, equal runs write equal bytes
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
        io.BufferedWriter(packed, 1 << 20) as lines,
    ):
        result.write_webhooks(lines)


def _write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write one table; texts that are all different are not worth a dictionary."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    encoded = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    pq.write_table(table, path, compression="zstd", use_dictionary=encoded)
