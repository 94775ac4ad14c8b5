"""The control plane: what the interface doesn't show, under /_dialsim."""
