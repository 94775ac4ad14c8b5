"""How fast logs are read, and how much memory that takes.

Bodies of a run are written over and over, with ids of their own, to one file, which is read in a
process of its own.

    python benchmarks/logs.py --bodies 5000000
"""

from __future__ import annotations

import argparse
import io
import resource
import sys
import tempfile
from pathlib import Path
from subprocess import run
from time import perf_counter

from joblib.externals.loky import get_reusable_executor

import dialsim
from dialsim.logs.log import read_log

_SCENARIO = Path(__file__).parents[1] / "scenarios" / "webhook-outage.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bodies", type=int, default=1_000_000)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read is not None:
        read(arguments.read)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "webhooks.jsonl"
        write(path, arguments.bodies)
        run([sys.executable, __file__, "--read", str(path)], check=True)


def write(path: Path, bodies: int) -> None:
    file = io.BytesIO()
    dialsim.run(dialsim.load(_SCENARIO)).write_webhooks(file)
    lines = file.getvalue().splitlines(keepends=True)
    before, call, after = b'"call":{"id":"', 8, b'"tel":"'
    with path.open("wb") as target:
        for number in range(bodies):
            line = lines[number % len(lines)]
            copy = b"%08d" % (number // len(lines))
            place = line.index(before) + len(before)
            line = line[:place] + copy + line[place + call :]
            place = line.index(after) + len(after)
            target.write(line[:place] + copy + line[place:])


def read(path: Path) -> None:
    started = perf_counter()
    log = read_log(path)
    seconds = perf_counter() - started
    get_reusable_executor().shutdown()  # only of processes that have ended is the memory known
    own, worker = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    busy = sum(one.ru_utime + one.ru_stime for one in (own, worker))
    print(
        f"{len(log.bodies):,} bodies, {len(log.calls):,} calls in {seconds:.1f} s: "
        f"{len(log.bodies) / seconds:,.0f} a second; processors busy for {busy:.1f} s; "
        f"at most {own.ru_maxrss / 2**20:.2f} GiB, {worker.ru_maxrss / 2**20:.2f} in a worker"
    )


if __name__ == "__main__":
    main()
