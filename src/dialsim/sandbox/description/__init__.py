"""The interface's description: an OpenAPI 3.1 document that says what the sandbox answers."""
