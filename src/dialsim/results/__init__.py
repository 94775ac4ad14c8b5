"""What came of a run: every table, figure and sentence here is a reading of the trace."""
