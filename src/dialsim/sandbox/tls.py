"""TLS: the certificate that a sandbox shows, given as files or made on the spot."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

from dialsim.interface.errors import DialsimError

_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with what leads to its authority, and its private key, as PEM files.

    `authority` is what clients verify it by, where it was made on the spot.
    """

    chain: Path
    key: Path
    authority: Path | None = None

    def check(self) -> None:
        """Raise DialsimError unless it can be used."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.chain, self.key)
        except OSError as error:  # an SSLError is one, and says no file
            what = error.strerror if error.filename is None else "can't be read"
            raise DialsimError(
                f"--tls-cert {self.chain}, --tls-key {self.key}: {what or error}; give a "
                "certificate and its private key, without a passphrase, as PEM files"
            ) from None


@contextmanager
def certificate_for(host: str) -> Iterator[Certificate]:
    """A certificate for this machine, by an authority of its own, while the block runs.

    It names localhost, both loopback addresses, the machine's own name, and `host`.
    """
    import trustme

    names = dict.fromkeys((*_NAMES, socket.gethostname(), *(() if _is_any(host) else (host,))))
    authority = trustme.CA(organization_name="dialsim sandbox")
    made = authority.issue_cert(*names)
    with TemporaryDirectory(prefix="dialsim-tls-") as folder:
        place = Path(folder)
        found = Certificate(place / "chain.pem", place / "key.pem", place / "authority.pem")
        authority.cert_pem.write_to_path(str(place / "authority.pem"))
        made.private_key_pem.write_to_path(str(found.key))
        found.key.chmod(0o600)
        for number, part in enumerate(made.cert_chain_pems):
            part.write_to_path(str(found.chain), append=number > 0)
        yield found


def _is_any(host: str) -> bool:
    """Whether it stands for all addresses of the machine, and is none to connect to."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
