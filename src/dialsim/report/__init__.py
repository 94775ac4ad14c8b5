"""HTML reports of runs and experiments, each a single file that needs no network."""
