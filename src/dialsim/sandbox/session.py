"""A session: one sandbox from start to stop, with all that it holds of this machine."""

from __future__ import annotations

from dialsim.engine.trace import Trace
from dialsim.interface.errors import DialsimError
from dialsim.sandbox.addresses import with_public_url
from dialsim.sandbox.control_client import ControlClient
from dialsim.sandbox.exchange import Exchange
from dialsim.sandbox.remote_clock import RemoteClock
from dialsim.sandbox.remote_faults import RemoteFaults
from dialsim.sandbox.server import address, listening
from dialsim.sandbox.server_thread import ServerThread
from dialsim.scenario.models import Scenario


class Session:
    """The server's thread, and the client that asks it over HTTP."""

    def __init__(self, scenario: Scenario, seed: int | None, port: int) -> None:
        """Serve from now on; raises DialsimError where that can't be."""
        listener = listening("127.0.0.1", port)
        try:
            self.url = address(listener)
            self._exchange = Exchange(with_public_url(scenario, self.url), seed)
            self._thread = ServerThread(self._exchange, listener)
            self._thread.start()
        except BaseException:
            listener.close()
            raise
        self.client = ControlClient(self.url)
        self.clock = RemoteClock(self.client)
        self.faults = RemoteFaults(self.client)

    @property
    def at(self) -> int:
        """The virtual instant (ms)."""
        return self._exchange.simulation.at

    @property
    def api_keys(self) -> dict[str, str]:
        """The API key of every organization, by its name."""
        return {
            account.block.name: self._exchange.api_key(account.block.position)
            for account in self._exchange.accounts
        }

    def snapshot(self) -> Trace:
        """What has happened so far, for keeps."""

        def take() -> Trace:
            return self._exchange.simulation.trace.snapshot()

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
