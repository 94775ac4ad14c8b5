"""Evidence: logs of real and simulated calls, what they say, and what speaks against them."""
