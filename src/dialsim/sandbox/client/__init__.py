"""The sandbox from Python."""
