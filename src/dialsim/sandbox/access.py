"""Access to a sandbox or a studio: packages, addresses and paths, keys and the token, TLS."""

from __future__ import annotations

import hmac
import re
import socket
import ssl
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from pydantic import ValidationError

from dialsim.errors import DialsimError, Refused
from dialsim.interface.phrases import joined
from dialsim.scenario.organization import Webhook

if TYPE_CHECKING:
    from dialsim.scenario.scenario import Scenario


PACKAGES = ("starlette", "uvicorn", "httpx", "httptools", "jinja2")


def require_extra(what: str, packages: Sequence[str] = PACKAGES, extra: str = "sandbox") -> None:
    """Check that optional packages are installed.

    Raises DialsimError with the install command if a package that `what` needs is missing.
    """
    missing = [package for package in packages if find_spec(package.partition(".")[0]) is None]
    if missing:
        raise DialsimError(
            f"{what} needs {joined(missing)}: pip install '.[{extra}]' in the folder of dialsim"
        )


PREFIX = "/_dialsim"
"""Path prefix of the control plane and its page."""


def is_control(path: str) -> bool:
    """True if a path belongs to the control plane or its page."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def address_url(host: str, port: int, scheme: str = "http") -> str:
    """The URL at which a server is reached."""
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def with_public_url(scenario: Scenario, url: str) -> Scenario:
    """Return the scenario with file links to this server, unless the file sets `public_url`."""
    service = scenario.service
    if "public_url" in service.model_fields_set:
        return scenario
    changed = scenario.model_copy(
        update={"service": service.model_copy(update={"public_url": url})}
    )
    return _as_overridden(changed, [f"service.publicUrl={url}"])


def with_webhook_url(scenario: Scenario, url: str) -> Scenario:
    """Return the scenario with the results of all its organizations sent to one URL."""
    try:
        webhook = Webhook.model_validate({"url": url})
    except ValidationError as error:
        raise DialsimError(f"webhook_url {url!r} {error.errors()[0]['msg']}") from None
    organizations = tuple(
        block.model_copy(
            update={
                "webhook": block.webhook.model_copy(update={"url": url})
                if block.webhook
                else webhook
            }
        )
        for block in scenario.organizations
    )
    changed = scenario.model_copy(update={"organizations": organizations})
    overrides = [f"organizations.{index}.webhook.url={url}" for index in range(len(organizations))]
    return _as_overridden(changed, overrides)


def _as_overridden(scenario: Scenario, overrides: list[str]) -> Scenario:
    """Return the scenario with further overrides recorded in it."""
    origin = scenario.origin
    if origin is None:
        return scenario
    overridden = replace(origin, overrides=(*origin.overrides, *overrides))
    return scenario.loaded(overridden, scenario.remarks)


_KEY_PREFIX = "sim_"
_KEY_LENGTH = 32


def derived_key(seed: int, organization: str) -> str:
    """Return the key of an organization without a given one: prefix, underscore, 32 characters."""
    digest = sha256(f"API key of {organization}, seed {seed}".encode()).hexdigest()
    return _KEY_PREFIX + digest[:_KEY_LENGTH]


def regenerated_key(seed: int, organization: str, first: str, times: int) -> str:
    """Return the key of an organization after some regenerations, with the first key's prefix."""
    text = f"API key of {organization}, seed {seed}, regenerated {times} times"
    return first[:-_KEY_LENGTH] + sha256(text.encode()).hexdigest()[:_KEY_LENGTH]


class KeyRing:
    """Index of organizations by API key. Stores digests of the keys, never the keys."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Take the keys of the organizations, in the order of the scenario."""
        self._digests = [_digest(key.encode()) for key in keys]

    def add(self, key: str) -> None:
        """Add the key of another organization."""
        self._digests.append(_digest(key.encode()))

    def replace(self, organization: int, key: str) -> None:
        """Replace the key of an organization, given its index; the old key becomes unknown."""
        self._digests[organization] = _digest(key.encode())

    def owner(self, key: bytes) -> int | None:
        """Return the index of the organization with a key; None for an unknown key."""
        digest, owner = _digest(key), None
        # All digests are compared, also after a match, so that the time taken reveals nothing.
        for position, known in enumerate(self._digests):
            if hmac.compare_digest(digest, known):
                owner = position
        return owner


def _digest(key: bytes) -> bytes:
    return sha256(key).digest()


_FORM = re.compile(r"[A-Za-z0-9._~-]{16,}")


class ControlToken:
    """Verifier of the control token and of the cookie that replaces it.

    The token is not stored. The browser gets a `cookie` that does not reveal the token.
    """

    def __init__(self, token: str) -> None:
        """Raises DialsimError, without the token, if the token is too short or can't be sent."""
        if not _FORM.fullmatch(token):
            raise DialsimError(
                "the control token must have at least 16 characters, all of them letters, digits, "
                "or one of . _ ~ -"
            )
        self.cookie = hmac.digest(token.encode(), b"cookie of the control plane", sha256).hex()
        self._tokens = KeyRing([token])
        self._cookies = KeyRing([self.cookie])

    def is_token(self, offered: str) -> bool:
        """True if a text equals the token. The comparison takes constant time."""
        return self._tokens.owner(offered.encode()) is not None

    def is_cookie(self, offered: str) -> bool:
        """True if a text equals the cookie's value. The comparison takes constant time."""
        return self._cookies.owner(offered.encode()) is not None


def checked_host(host: str, token: ControlToken | None) -> str:
    """Return the IP address to listen on.

    Raises DialsimError for an invalid address. Without a token, also rejects every address that
    other machines can reach.
    """
    if host == "localhost":
        host = "127.0.0.1"
    try:
        local = ip_address(host)
    except ValueError:
        raise DialsimError(f"--host {host}: give an IP address such as 127.0.0.1") from None
    if token is None and not local.is_loopback:
        raise DialsimError(
            f"--host {host}: other machines reach this address, so it needs a control token: set "
            "DIALSIM_CONTROL_TOKEN (or --control-token), or listen on 127.0.0.1 or ::1"
        )
    return host


def hostname(url: str) -> str | None:
    """Return the host of a URL, without its port; None for an invalid URL."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def is_loopback(name: str | None) -> bool:
    """True for `localhost` and loopback addresses such as 127.0.0.2.

    Other names are rejected, because a resolver may map them to another machine.
    """
    try:
        return name == "localhost" or ip_address(name or "").is_loopback
    except ValueError:
        return False


KEEP: Literal["keep"] = "keep"
"""Webhook URL that stands for sending nothing."""


class Destinations:
    """Rules for the URLs that results are sent to; results for any other URL are kept.

    By default results go to loopback addresses alone, so that a scenario file that names a foreign
    host sends nothing there unasked. A URL that a client of the control plane sets is always
    permitted.
    """

    def __init__(
        self,
        webhook_url: str | None = None,
        *,
        everywhere: bool = False,
        hosts: Sequence[str] = (),
    ) -> None:
        """`webhook_url` is one more URL to send to; "keep" keeps all results for the scenario's
        URLs.

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
        """Refuse (400) a client's URL whose host must not be called."""
        if url is not None and not self._may_call(url):
            raise Refused(400, "VALIDATION_FAILED", [f"{url}: {_EXCLUDED}"])

    def permits(self, host: str, address: str) -> bool:
        """Return whether a host may be called at an address that its name was resolved to."""
        found = ip_address(address.partition("%")[0])
        # An IPv4 address may be written as ::ffff:10.0.0.1, which no network of IPv4 contains.
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


_EXCLUDED = "its host must not be called: it is link-local, or --webhook-hosts excludes it"


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Certificate:
    """Certificate chain and private key, as PEM files.

    `authority` is the certificate that clients verify against, for a generated certificate.
    """

    chain: Path
    key: Path
    authority: Path | None = None

    def check(self) -> None:
        """Raise DialsimError unless it can be used."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.chain, self.key)
        # SSLError is an OSError as well, but has no file name.
        except OSError as error:
            what = error.strerror if error.filename is None else "can't be read"
            raise DialsimError(
                f"--tls-cert {self.chain}, --tls-key {self.key}: {what or error}; give a "
                "certificate and its private key, without a passphrase, as PEM files"
            ) from None


@contextmanager
def certificate_for(host: str) -> Iterator[Certificate]:
    """Create a certificate for this machine, signed by a temporary authority.

    The certificate covers localhost, both loopback addresses, the host name, and `host`. The files
    exist while the block runs.
    """
    import trustme

    names = dict.fromkeys((*_NAMES, socket.gethostname(), *(() if _is_any(host) else (host,))))
    authority = trustme.CA(organization_name="dialsim sandbox")
    made = authority.issue_cert(*names)
    with TemporaryDirectory(prefix="dialsim-tls-") as folder:
        path = Path(folder)
        found = Certificate(path / "chain.pem", path / "key.pem", path / "authority.pem")
        authority.cert_pem.write_to_path(str(path / "authority.pem"))
        made.private_key_pem.write_to_path(str(found.key))
        found.key.chmod(0o600)
        for number, part in enumerate(made.cert_chain_pems):
            part.write_to_path(str(found.chain), append=number > 0)
        yield found


def _is_any(host: str) -> bool:
    """True for a wildcard address, which clients cannot connect to."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
