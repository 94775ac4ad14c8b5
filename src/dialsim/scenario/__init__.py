"""The planner's input: scenario files, their units, their people, and the checks on them."""
