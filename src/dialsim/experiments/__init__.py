"""Many runs of a scenario and of its variants: how sure an answer is, and what would change it."""
