"""The version of dialsim, which every result names."""

__version__ = "0.1.0"
