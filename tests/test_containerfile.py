"""The Containerfile: its paths exist, and its image serves if containers can be run."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[1]
FILE = ROOT / "Containerfile"
TEXT = FILE.read_text(encoding="utf-8")
IMAGE = "dialsim-tried-by-its-tests"
TOKEN = "correct-horse-battery-staple"


def test_what_is_copied_is_there_and_sent_to_the_builder() -> None:
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = re.findall(r"^COPY (.+) \S+$", TEXT, re.MULTILINE)
    for name in " ".join(copied).split():
        assert (ROOT / name).exists()
        assert f"!{name}" in sent


def test_the_extras_exist() -> None:
    [extras] = re.findall(r"dialsim\[([\w,]+)\]", TEXT)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {*extras.split(",")} <= {*project["optional-dependencies"]}


def _tool() -> str | None:
    """A container tool that works here; a client may be there without its daemon."""
    for name in ("docker", "podman"):
        if (
            shutil.which(name)
            and not subprocess.run([name, "info"], check=False, capture_output=True).returncode
        ):
            return name
    return None


@pytest.fixture
def served() -> Iterator[str]:
    """The URL of a sandbox in a container of the image."""
    tool = _tool()
    if tool is None:
        pytest.skip("there is no container tool that works")
    subprocess.run([tool, "build", "-q", "-f", FILE, "-t", IMAGE, ROOT], check=True)
    mounted = f"{ROOT / 'scenarios'}:/data:ro"
    command = [tool, "run", "--rm", "-d", "-p", "127.0.0.1::8400", "-v", mounted]
    command += ["-e", f"DIALSIM_CONTROL_TOKEN={TOKEN}", IMAGE]
    command += ["serve", "first-campaign.yaml", "--host", "0.0.0.0"]
    started = subprocess.run(command, check=True, capture_output=True, text=True)
    container = started.stdout.strip()
    try:
        port = subprocess.run(
            [tool, "port", container, "8400"], check=True, capture_output=True, text=True
        )
        yield f"http://{port.stdout.split()[-1]}"
    finally:
        subprocess.run([tool, "kill", container], check=True, capture_output=True)


@pytest.mark.slow(minutes=2)
def test_the_image_serves_a_scenario(served: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=served, headers=headers, timeout=60) as client:
        for _ in range(60):
            try:
                clock = client.get("/_dialsim/clock")
                break
            except httpx.TransportError:
                time.sleep(1)
        assert clock.json()["mode"] == "manual"
