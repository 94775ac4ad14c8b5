"""What a planner writes: scenario files, their units, their people, and the checks on them."""
