"""Many runs of a scenario and of its variants: confidence of an answer, and effects of changes."""
