"""The page at /_dialsim/: a sandbox to watch and to steer, live, from files of this package."""
