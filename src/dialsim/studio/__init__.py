"""The studio: a scenario that is being changed, and estimates of what comes of it."""
