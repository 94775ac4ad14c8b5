"""The webhook stream: which results a run sends, when, what they say, and how they arrive.

Everything here is a function of the trace, on columns of calls: of a whole run at once, or of one
call alone, with the same values either way (rules A, W and D).
"""
