"""A column of payloads that are made when they are looked at, and take no memory before."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, Self

import numpy as np
import orjson
from numpy.typing import NDArray
from pandas.api.extensions import ExtensionArray, ExtensionDtype, take
from pandas.api.indexers import check_array_indexer

from dialsim.interface.errors import DialsimError
from dialsim.results.stream.stream import Stream


class BodySource(Protocol):
    """Where bodies come from: a run's stream, or those that were made before."""

    def bodies(self, rows: NDArray[np.int64]) -> list[bytes]:
        """The bodies of some POSTs, in the order asked for."""
        ...


@dataclass(frozen=True, slots=True)
class MadeBodies:
    """Bodies that are there as text: those of a column that was pickled."""

    texts: list[bytes]

    def bodies(self, rows: NDArray[np.int64]) -> list[bytes]:
        """Some of them, in the order asked for."""
        return [self.texts[row] for row in rows.tolist()]


class PayloadDtype(ExtensionDtype):
    """The dtype of webhook bodies: each is a dict, exactly the interface's payload."""

    name = "payload"
    type = dict
    na_value = None

    @classmethod
    def construct_array_type(cls) -> builtins.type[PayloadArray]:
        """The array type that goes with it."""
        return PayloadArray


class PayloadArray(ExtensionArray):
    """Bodies of POSTs of a stream; `rows` are indexes into its posts, -1 is null."""

    def __init__(self, stream: BodySource, rows: NDArray[np.int64]) -> None:
        self._stream = stream
        self._rows = rows

    @classmethod
    def _from_sequence(cls, *_scalars: Any, **_settings: Any) -> Self:
        """Refuse: what `map` and the like make of payloads is then a column of another type."""
        raise TypeError("payloads are those of a run: join others as lists of dicts")

    @classmethod
    def _concat_same_type(cls, parts: Sequence[Self]) -> Self:
        if len({id(part._stream) for part in parts}) > 1:
            raise NotImplementedError("bodies of several runs: join them as lists of dicts")
        return cls(parts[0]._stream, np.concatenate([part._rows for part in parts]))

    @property
    def dtype(self) -> PayloadDtype:
        """Always the same."""
        return PayloadDtype()

    @property
    def nbytes(self) -> int:
        """What the references take, not what the bodies would."""
        return self._rows.nbytes

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, int | np.integer):
            row = self._rows[item]
            return None if row < 0 else orjson.loads(self._stream.bodies(row[None])[0])
        return type(self)(self._stream, self._rows[check_array_indexer(self, item)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        objects = np.full(len(self), None, dtype=object)
        known = np.flatnonzero(self._rows >= 0)
        for place, body in zip(known, self._stream.bodies(self._rows[known]), strict=True):
            objects[place] = orjson.loads(body)
        return objects

    def __arrow_array__(self, type: Any = None) -> NoReturn:
        """Refuse: no Parquet file of such a column can be read without dialsim."""
        raise DialsimError(
            "webhook bodies are no column of a Parquet or Feather file; make text of them first, "
            "frame.assign(body=frame.body.map(json.dumps)), or leave them out, "
            'frame.drop(columns="body")'
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled bodies are made before: the run does not go along with them."""
        known = np.flatnonzero(self._rows >= 0)
        rows = np.full(len(self), -1, dtype=np.int64)
        rows[known] = np.arange(len(known))
        return type(self), (MadeBodies(self._stream.bodies(self._rows[known])), rows)

    def isna(self) -> NDArray[np.bool_]:
        """Which rows are null."""
        return self._rows < 0

    def take(
        self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None
    ) -> PayloadArray:
        """Some of the rows, in any order."""
        del fill_value  # there is but one null
        rows = np.asarray(take(self._rows, indices, allow_fill=allow_fill, fill_value=-1))
        return type(self)(self._stream, rows)

    def copy(self) -> PayloadArray:
        """The same references again."""
        return type(self)(self._stream, self._rows.copy())


def payload_column(stream: Stream) -> PayloadArray:
    """The bodies of all POSTs of a stream, in its order."""
    return PayloadArray(stream, np.arange(len(stream.posts)))
