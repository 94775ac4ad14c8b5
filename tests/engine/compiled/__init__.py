"""The compiled engine: the same rows as the SimPy engine, whatever a scenario file says."""
