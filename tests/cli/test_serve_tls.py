"""`dialsim serve` over HTTPS: real clients verify the certificate, made or given."""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trustme

from cli.program import ROOT, SCRIPTED
from cli.program import dialsim as program


@contextmanager
def serving(*options: str) -> Iterator[list[str]]:
    """Yield the output of a server until it serves; stop it at the end."""
    command = [sys.executable, "-m", "dialsim", "serve", SCRIPTED, "--port", "0", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert server.stdout is not None
    printed = []
    try:
        for line in server.stdout:
            printed.append(line.strip())
            if line.startswith("Serving on"):
                break
        yield printed
    finally:
        server.terminate()
        server.wait(timeout=60)
        server.stdout.close()


def told(printed: list[str], beginning: str) -> str:
    [line] = [line for line in printed if line.startswith(beginning)]
    return line.removeprefix(beginning).split()[0]


def test_a_client_verifies_a_certificate_that_is_made_on_the_spot() -> None:
    with serving("--tls") as printed:
        authority = Path(told(printed, "Certificate authority: "))
        url = told(printed, "Serving on ")
        assert url.startswith("https://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=str(authority))
        for host in ("127.0.0.1", "localhost"):
            there = url.replace("127.0.0.1", host)
            with httpx.Client(base_url=there, verify=trusting, timeout=60) as client:
                assert client.get("/voice-demo/catalog").status_code == 200
                assert client.get("/_dialsim/clock").json()["mode"] == "manual"
                body = {"status": "BUSY"}
                assert client.post("/_dialsim/trigger", json=body).json()["code"] in (
                    "NO_WEBHOOK_URL",
                    "VALIDATION_FAILED",
                )
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(url, verify=True)
    assert not authority.exists()


def test_a_certificate_may_be_given(tmp_path: Path) -> None:
    authority = trustme.CA()
    made = authority.issue_cert("localhost", "127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    made.private_key_pem.write_to_path(str(key))
    made.cert_chain_pems[0].write_to_path(str(chain))
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with serving("--tls-cert", str(chain), "--tls-key", str(key)) as printed:
        assert not any(line.startswith("Certificate") for line in printed)
        answer = httpx.get(f"{told(printed, 'Serving on ')}/voice-demo/catalog", verify=trusting)
        assert answer.status_code == 200


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--tls-cert", "README.md"), "--tls-cert and --tls-key go together"),
        (
            ("--tls", "--tls-cert", "README.md", "--tls-key", "README.md"),
            "--tls makes a certificate: leave --tls-cert and --tls-key out",
        ),
        (
            ("--tls-cert", "README.md", "--tls-key", "README.md"),
            "give a certificate and its private key, without a passphrase, as PEM files",
        ),
        (("--tls-cert", "nowhere.pem", "--tls-key", "README.md"), "nowhere.pem"),
    ],
)
def test_what_is_no_certificate_is_refused(options: tuple[str, ...], says: str) -> None:
    done = program("serve", SCRIPTED, "--port", "0", *options)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
