"""Pictures of a run: each takes an Axes and gives it back, drawn on; no state of pyplot is used."""
