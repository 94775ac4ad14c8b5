"""Logs of real and simulated calls: reading, rules, estimates, comparisons."""
