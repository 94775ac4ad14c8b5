"""What a trace may never show, rule by rule; shares no code with the engine that it checks."""
