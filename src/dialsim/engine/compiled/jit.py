"""Compilation: functions into machine code, columns into addresses."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar, TypeVar, get_type_hints

import numba
import numpy as np
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import (
    NativeValue,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import get_itemsize, make_array, populate_array

from dialsim.engine.compiled import numba_keeps_code

F = TypeVar("F", bound=Callable[..., Any])

# -- functions -------------------------------------------------------------------------------------


def rule(function: F) -> F:
    """Compile a function of this package; it is inlined into its compiled callers."""
    compiled: F = numba.njit(function)
    return compiled


def shared(function: F, **uses: Callable[..., Any]) -> F:
    """Compile a function that the SimPy engine calls uncompiled.

    `uses` are the compiled versions of the functions that it calls, by name.
    """
    assert isinstance(function, FunctionType)
    # A copy with other globals: the Python function itself must go on calling Python functions.
    seen = {**function.__globals__, **uses}
    return rule(FunctionType(function.__code__, seen, function.__name__))  # type: ignore[return-value]


def entry(*arguments: type) -> Callable[[F], F]:
    """Compile, or load from the cache, a function that Python calls with arguments of these
    types.
    """

    def compile_now(function: F) -> F:
        with numba_keeps_code() as is_kept:
            compiled = numba.njit(cache=is_kept)(function)
        if not numba.config.DISABLE_JIT:
            # Compiled at import for these types only, so that no run compiles anything, not even
            # for an int of another width.
            compiled.compile(tuple(map(_type_of, arguments)))
            compiled.disable_compile()
        kept: F = compiled
        return kept

    return compile_now


# -- columns ---------------------------------------------------------------------------------------

_WORDS = 4
"""int64 words per column: its address and up to three lengths."""


class Columns:
    """Columns and records that compiled functions receive as one address.

    Subclasses declare each column as `Annotated` with its dtype and number of dimensions; `FORMS`
    has these by name. A column of 0 dimensions is a single record, assigned as an array of length
    1. Columns can be replaced by others of the same form.
    """

    # numba would pass a tuple of arrays by value, several machine words each, to every function,
    # and count references to each array: with thirty arrays that takes forty times as long as all
    # the work. Here compiled code reads address and shape of a column where needed. Without counted
    # references, an array must stay assigned while compiled functions run.
    FORMS: ClassVar[dict[str, tuple[np.dtype[Any], int]]]

    def __init_subclass__(cls) -> None:
        declared = get_type_hints(cls, include_extras=True)
        cls.FORMS = {name: form.__metadata__ for name, form in declared.items() if name != "FORMS"}

    def __init__(self, **columns: Any) -> None:
        self._where = np.zeros((len(self.FORMS), _WORDS), dtype=np.int64)
        self.address = self._where.ctypes.data
        for name, column in columns.items():
            setattr(self, name, column)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.FORMS:
            dtype, dimensions = self.FORMS[name]
            assert value.dtype == dtype
            assert value.ndim == max(1, dimensions)
            assert value.flags.c_contiguous
            where = [value.ctypes.data, *value.shape[:dimensions]]
            self._where[[*self.FORMS].index(name), : len(where)] = where
            value = value if dimensions else value[0]
        super().__setattr__(name, value)


class ColumnsType(types.Type):
    """numba type of a class of columns: an address."""

    def __init__(self, of: type[Columns]) -> None:
        self.of = of
        super().__init__(f"{of.__module__}.{of.__qualname__}")

    def form(self, name: str) -> Any:
        """Return numba's type of a column; None if there is no such column."""
        if name not in self.of.FORMS:
            return None
        dtype, dimensions = self.of.FORMS[name]
        element = numba.from_dtype(dtype)
        return types.Array(element, dimensions, "C") if dimensions else element


def _type_of(argument: type) -> Any:
    return ColumnsType(argument) if issubclass(argument, Columns) else numba.typeof(argument())


@typeof_impl.register(Columns)  # type: ignore[untyped-decorator]
def _typeof(value: Columns, _context: object) -> ColumnsType:
    return ColumnsType(type(value))


@register_model(ColumnsType)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, of: ColumnsType) -> None:
        super().__init__(manager, of, cgutils.intp_t.as_pointer())


@unbox(ColumnsType)  # type: ignore[untyped-decorator]
def _unboxed(_type: ColumnsType, value: Any, c: Any) -> Any:
    address = c.pyapi.object_getattr_string(value, "address")
    number = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(c.builder.inttoptr(number, cgutils.intp_t.as_pointer()))


@infer_getattr
class _Attributes(AttributeTemplate):  # type: ignore[misc]
    key = ColumnsType

    def generic_resolve(self, of: ColumnsType, name: str) -> Any:
        return of.form(name)


@lower_getattr_generic(ColumnsType)  # type: ignore[untyped-decorator]
def _attribute(context: Any, builder: Any, of: ColumnsType, where: Any, name: str) -> Any:
    form, dimensions = of.form(name), of.of.FORMS[name][1]
    first = _WORDS * [*of.of.FORMS].index(name)
    address, *shape = (
        builder.load(cgutils.gep(builder, where, first + word)) for word in range(1 + dimensions)
    )
    if not dimensions:
        return builder.inttoptr(address, context.get_value_type(form))
    column = make_array(form)(context, builder)
    itemsize = cgutils.intp_t(get_itemsize(context, form))
    strides = [itemsize]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(address, context.get_data_type(form.dtype).as_pointer())
    populate_array(column, data, shape, strides, itemsize, meminfo=None)
    return column._getvalue()
