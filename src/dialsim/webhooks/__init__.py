"""The webhook stream, a function of the trace: analyses, messages, bodies, deliveries (A, W, D)."""
