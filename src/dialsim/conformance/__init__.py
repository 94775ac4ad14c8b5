"""Rules of the rule book as checks of runs and of logs, without code of the engines."""
