"""One sandbox of Python's from start to stop, with all that it holds of this machine."""

from __future__ import annotations

from dialsim.engine.trace import Trace
from dialsim.interface.errors import DialsimError
from dialsim.sandbox.addresses import with_public_url
from dialsim.sandbox.client.remote import ControlClient, RemoteClock, RemoteFaults
from dialsim.sandbox.client.requests import RemoteRequests
from dialsim.sandbox.core import SandboxCore, Snapshot
from dialsim.sandbox.remaining import remaining_run
from dialsim.sandbox.server import ServerThread, address, listening
from dialsim.scenario.scenario import Scenario


class Session:
    """The server's thread, and the client that asks it over HTTP."""

    def __init__(
        self, scenario: Scenario, seed: int | None, port: int, state: Snapshot | None = None
    ) -> None:
        """Serve from now on; raises DialsimError where that can't be.

        With a `state` of another sandbox it is a fork of that: it begins there, and sends nothing.
        """
        listener = listening("127.0.0.1", port)
        try:
            self.url = address(listener)
            served = with_public_url(scenario, self.url)
            if state is None:
                self._core = SandboxCore(served, seed)
            else:
                self._core = SandboxCore.replayed(served, seed, state, silent=True)
                self._core.clock.speed = None
            self._thread = ServerThread(self._core, listener)
            self._thread.start()
        except BaseException:
            listener.close()
            raise
        self.client = ControlClient(self.url)
        self.clock = RemoteClock(self.client)
        self.faults = RemoteFaults(self.client)
        self.requests = RemoteRequests(self.client)

    @property
    def at(self) -> int:
        """The virtual instant (ms)."""
        return self._core.simulation.at

    @property
    def api_keys(self) -> dict[str, str]:
        """The API key of every organization, by its name."""
        return {
            account.block.name: self._core.api_key(account.block.position)
            for account in self._core.accounts
        }

    def state(self) -> Snapshot:
        """The state of now, for a fork."""
        return self._thread.ask(lambda: self._core.state)

    def remaining(self) -> Scenario:
        """What is still to come, as a scenario that begins now."""
        return self._thread.ask(lambda: remaining_run(self._core.simulation))().scenario

    def snapshot(self) -> Trace:
        """What has happened so far, for keeps."""

        def take() -> Trace:
            return self._core.simulation.trace.snapshot()

        return self._thread.ask(take)

    def close(self) -> None:
        """Stop serving; raises DialsimError if there was a fault of ours."""
        self._thread.stop()
        self.client.close()
        if self._thread.failure is not None:
            raise DialsimError(
                f"the sandbox ended by itself: {self._thread.failure!r}"
            ) from self._thread.failure
        for fault in self._thread.faults:
            raise DialsimError(
                f"the sandbox had a fault of its own, please report it: {fault!r}"
            ) from fault
