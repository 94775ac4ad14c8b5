"""A second, naive reading of the rule book, to hold the engine against; it knows no dialsim."""
