"""The interface over HTTP: operations, their answers and failures, the description, the server."""
