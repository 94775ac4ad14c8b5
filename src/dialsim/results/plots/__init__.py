"""Plots of a run: each draws on an Axes and returns it, without pyplot's global state."""
