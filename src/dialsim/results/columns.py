"""Columns of the tables: compact arrays in, pandas arrays out that come back from parquet alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray
from pandas.api.extensions import ExtensionArray

from dialsim.results.ledger import Ledger
from dialsim.results.reading import Reading

INSTANT = pd.DatetimeTZDtype("ms", "UTC")


def joined(
    ledgers: Iterable[Ledger], dtype: DTypeLike, column: Callable[[Ledger], NDArray[Any]]
) -> NDArray[Any]:
    """The column of each campaign, one below the other."""
    return np.concatenate([np.empty(0, dtype), *(column(ledger) for ledger in ledgers)])


def instants(at: NDArray[np.int64]) -> ExtensionArray:
    """UTC instants of datetime64[ms, UTC]; NEVER becomes NaT."""
    column: ExtensionArray = pd.array(at.view("datetime64[ms]"), dtype=INSTANT)
    return column


def names(codes: NDArray[Any] | list[int], texts: Sequence[str]) -> pd.Categorical:
    """Texts of a small set, dictionary-encoded; code -1 is null."""
    return pd.Categorical.from_codes(codes, categories=pd.Index([*texts], dtype="str"))


def texts(ascii_text: NDArray[np.bytes_]) -> ExtensionArray:
    """ASCII texts of equal length (dtype S…), as the string dtype of pandas."""
    offsets = np.arange(len(ascii_text) + 1, dtype=np.int64) * ascii_text.dtype.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(ascii_text))]
    arrow = pa.Array.from_buffers(pa.large_string(), len(ascii_text), buffers)
    column: ExtensionArray = pd.array(arrow, dtype="str")
    return column


def counts(values: NDArray[np.int32] | NDArray[np.int64], missing: NDArray[np.bool_]) -> Any:
    """Whole numbers of which some are missing (Int32 or Int64)."""
    return pd.arrays.IntegerArray(values, missing)


def campaign_columns(reading: Reading, sizes: Sequence[int]) -> dict[str, pd.Categorical]:
    """The columns organization and campaign: `sizes[i]` rows of the i-th campaign of the run."""
    codes = reading.catalog.campaign_codes(reading.world)
    organizations = np.array([position[0] for position in reading.lives], dtype=np.int32)
    campaigns = np.array([codes[o][c] for o, c in reading.lives], dtype=np.int32)
    return {
        "organization": names(np.repeat(organizations, sizes), reading.catalog.organizations),
        "campaign": names(np.repeat(campaigns, sizes), reading.catalog.campaigns),
    }
