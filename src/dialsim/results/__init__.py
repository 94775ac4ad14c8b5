"""Results of a run: tables, figures and texts, all read from the trace."""
