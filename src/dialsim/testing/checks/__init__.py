"""What a trace may never show, rule by rule. The checks share no code with the engine's rules."""
