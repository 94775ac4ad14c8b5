"""Tests of the engine; a package, so that its modules may have the names of their subjects."""
