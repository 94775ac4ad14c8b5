"""Being here puts this folder on the path, so that every test finds the package `oracle`."""
