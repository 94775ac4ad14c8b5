"""Checks of a trace, rule by rule. They share no code with the engine."""
