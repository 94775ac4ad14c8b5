"""The sandbox: the service's interface over HTTP, on a virtual clock."""
