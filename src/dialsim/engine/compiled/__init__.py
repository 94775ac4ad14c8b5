"""The compiled engine: the rule book a second time, over arrays, compiled by numba."""
