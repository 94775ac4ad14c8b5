"""Pictures of many runs; as those of one run, each takes an Axes and gives it back."""
