"""The compiled engine: the same rows as the SimPy engine for every scenario."""
