"""The compiled engine: the rule book once more, over arrays, compiled by numba."""
