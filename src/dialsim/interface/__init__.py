"""The service's nouns, shared by every layer: statuses, requests and their checks, error texts."""
