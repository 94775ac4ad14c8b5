"""Writing a result to disk: tables as parquet, webhooks as lines, the rest as JSON."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dialsim.results.manifest import MANIFEST, manifest_json
from dialsim.results.output_folder import replacing
from dialsim.results.source import write_source

if TYPE_CHECKING:
    import pandas as pd

    from dialsim.results.result import Result

TABLES = ("calls", "transitions", "recipients", "campaigns")


def write_result(
    result: Result,
    folder: str | os.PathLike[str],
    force: bool = False,
    also: Callable[[Path], object] | None = None,
) -> Path:
    """Write all files of a result; the folder is there when all of them are, or not at all.

    `also` is called with the folder while it is in the making, to write more files there. Same
    result, same bytes, under the same versions of dialsim and its libraries; the manifest alone
    differs. Raises ExistingOutput if the folder exists, unless `force` replaces the result in it.
    """
    place = Path(folder)
    with replacing(place, force) as draft:
        for name in TABLES:
            _write_table(getattr(result, name), draft / f"{name}.parquet")
        with (draft / "webhooks.jsonl").open("wb") as file:
            result.write_webhooks(file)
        (draft / "summary.json").write_bytes(result.summary.to_json())
        write_source(result.trace.world.scenario, draft)
        if also is not None:
            also(draft)
        content = manifest_json(result.trace, result.wall_seconds)
        (draft / MANIFEST).write_bytes(content)
    return place


def _write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write one table; texts that are all different are not worth a dictionary."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    encoded = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    pq.write_table(table, path, compression="zstd", use_dictionary=encoded)
