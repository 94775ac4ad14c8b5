"""The output folder: written beside its place, and moved there in one step when complete.

At every instant, a kill included, the place holds what it held before or the complete new folder.
What a killed run leaves is a hidden sibling, `.DIR.dialsim-…`, which the next run that writes to
the same place removes.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from dialsim.interface.errors import DialsimError
from dialsim.results.manifest import MANIFEST


class OutputError(DialsimError):
    """The output folder cannot be written."""


class ExistingOutput(OutputError):
    """The output folder is there already, and may not be replaced."""


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
    draft = folder.parent / f"{_prefix(folder)}{token_hex(6)}"
    lock = None
    try:
        draft.mkdir(parents=True)
        lock = _lock(draft)
        yield draft
        _sync(draft)
        check_place(folder, force)
        _move(draft, folder)
        _sync_entry(folder.parent)
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if lock is not None:
            os.close(lock)
    _remove_leftovers(folder)


def _prefix(folder: Path) -> str:
    return f".{folder.name}.dialsim-"


def _move(draft: Path, folder: Path) -> None:
    """Put the draft in its place; what stood there is then at `draft`, or gone."""
    if not os.path.lexists(folder):
        os.rename(draft, folder)
    elif not _exchange(draft, folder):
        # without an atomic exchange, a kill between the two lines leaves no folder at the place
        aside = draft.with_name(f"{draft.name}-old")
        os.rename(folder, aside)
        os.rename(draft, folder)
        shutil.rmtree(aside)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step (Linux renameat2); False where that cannot be done."""
    if sys.platform != "linux":
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(code, os.strerror(code), str(other))


def _sync(folder: Path) -> None:
    """Have the folder and all its files on the disk before it is moved."""
    for path in sorted(folder.rglob("*")):
        _sync_entry(path)
    _sync_entry(folder)


def _sync_entry(path: Path) -> None:
    entry = os.open(path, os.O_RDONLY)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)


def _lock(draft: Path) -> int | None:
    """Hold a draft as one that somebody is writing; None if somebody else does."""
    entry = os.open(draft, os.O_RDONLY)
    try:
        fcntl.flock(entry, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(entry)
        return None
    return entry


def _remove_leftovers(folder: Path) -> None:
    """Remove the drafts of runs that were killed: those that nobody holds."""
    for draft in folder.parent.glob(f"{_prefix(folder)}*"):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            lock = _lock(draft)
            if lock is not None:
                shutil.rmtree(draft, ignore_errors=True)
                os.close(lock)
