"""What customers receive, as a function of a trace (rules A, W and D)."""
