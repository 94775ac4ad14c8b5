"""Rules as checks of traces and of logs read them. Shares no code with the engines."""
