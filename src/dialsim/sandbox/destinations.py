"""Destinations: which webhook URLs a sandbox sends results to, and at which addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Literal

from dialsim.errors import DialsimError, Refused
from dialsim.sandbox.access import hostname, is_loopback

KEEP: Literal["keep"] = "keep"
"""Webhook URL that stands for sending nothing."""
LOOKUP_SECONDS = 5  # a test suite must not wait for one failing lookup per result


class Destinations:
    """Rules for the URLs that results are sent to; results for any other URL are kept.

    By default results go to loopback addresses alone, so that a scenario file that names a foreign
    host sends nothing there unasked. A URL that a client of the control plane sets is asked for.
    """

    def __init__(
        self,
        webhook_url: str | None = None,
        *,
        everywhere: bool = False,
        hosts: Sequence[str] = (),
    ) -> None:
        """`webhook_url` is one more URL to send to, or "keep": then none is sent to unasked.

        `everywhere` sends to the URLs of the scenario file as well. `hosts` are the only hosts
        that are called: names, addresses or networks. Raises DialsimError for a host that is none
        of these, and for a `webhook_url` that the hosts exclude.
        """
        self._asked_for = webhook_url
        self._everywhere = everywhere
        self._names: set[str] = set()
        self._networks = []
        for host in hosts:
            try:
                self._networks.append(ip_network(host, strict=False))
            except ValueError:
                if not host or any(mark in host for mark in "/:*?#@ "):
                    text = f"--webhook-hosts {host}: give a host name, an address or a network"
                    raise DialsimError(f"{text} such as 10.0.0.0/8") from None
                self._names.add(host.lower())
        if webhook_url not in (None, KEEP) and not self._may_call(webhook_url or ""):
            raise DialsimError(f"webhook_url {webhook_url}: {_EXCLUDED}")

    def sends(self, url: str, named: Collection[str] = ()) -> bool:
        """Return whether results for a URL are sent; `named` are the URLs that clients have set."""
        unasked = self._asked_for != KEEP and is_loopback(hostname(url))
        asked = self._everywhere or unasked or url == self._asked_for or url in named
        return asked and self._may_call(url)

    def require(self, url: str | None) -> None:
        """Refuse a client's URL whose host must not be called (400)."""
        if url is not None and not self._may_call(url):
            raise Refused(400, "VALIDATION_FAILED", [f"{url}: {_EXCLUDED}"])

    def permits(self, host: str, address: str) -> bool:
        """Return whether a host may be called at an address that its name was resolved to."""
        found = ip_address(address.partition("%")[0])
        if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        if any(found in network for network in self._networks):
            return True
        # link-local addresses hold the secrets of cloud machines: a name must not lead there
        return not found.is_link_local and (not self._is_limited or host.lower() in self._names)

    @property
    def _is_limited(self) -> bool:
        return bool(self._names or self._networks)

    def _may_call(self, url: str) -> bool:
        """Return False for a host that is excluded whatever its name is resolved to."""
        host = hostname(url) or ""
        if (address := _address(host)) is not None:
            return self.permits(host, str(address))
        return not self._is_limited or bool(self._networks) or host in self._names


_EXCLUDED = "its host is not to be called: it is link-local, or --webhook-hosts leaves it out"


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


class Lookups:
    """Name lookups, each remembered for some seconds, failures as well."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], asyncio.Task[list[str]]] = {}

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host; raises OSError if there is none."""
        place = host, port
        if place not in self._found:
            task = asyncio.create_task(_resolved(host, port))
            self._found[place] = task
            task.add_done_callback(
                lambda done: done.get_loop().call_later(
                    LOOKUP_SECONDS, self._found.pop, place, None
                )
            )
        return await asyncio.shield(self._found[place])


async def _resolved(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, proto=6)  # 6: TCP
    return [*dict.fromkeys(str(place[0]) for *_, place in found)]
