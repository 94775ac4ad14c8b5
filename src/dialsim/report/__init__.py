"""The page: a run or an experiment for people, in one file that needs no network."""
