"""How long a list of people takes to load from a workbook and from a CSV, and how much memory.

Both hold the same rows; the workbook has its texts in a table of their own, as Excel writes them.
Each is loaded in a process of its own, in turns.

    python benchmarks/lists.py --rows 500000
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import xlsxwriter

MOST_SECONDS, MOST_MIB = 60, 1024
HEADER = ("tel", "customerName", "segment", "agentParams.amount", "agentParams.reference")
_SCENARIO = """
organizations:
  - name: Acme
    maxConcurrentCalls: 2
    agents: [{{name: Reminder, paramsSchema: {{amount: {{type: number}}}}}}]
    campaigns:
      - name: January
        agent: Reminder
        recipients: {{file: {file}}}
        schedule: {{startDateTime: 2026-01-05T02:00:00Z}}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--load", type=Path, help="only load this list, and print what it took")
    parser.add_argument("--write", type=Path, help="only write both lists to this folder")
    arguments = parser.parse_args()
    if arguments.load is not None:
        print(json.dumps(load(arguments.load)))
        return 0
    if arguments.write is not None:
        write(arguments.write, arguments.rows)
        return 0
    found: dict[str, list[dict[str, float]]] = {"people.xlsx": [], "people.csv": []}
    with tempfile.TemporaryDirectory() as folder:
        # not in this process: on Linux the peak of what it starts would begin with its own
        command = [sys.executable, __file__, "--write", folder, "--rows", str(arguments.rows)]
        subprocess.run(command, check=True)
        for _ in range(arguments.rounds):
            for name, taken in found.items():
                command = [sys.executable, __file__, "--load", str(Path(folder, name))]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                taken.append(json.loads(done.stdout))
    middle = {
        name: {key: median(one[key] for one in taken) for key in taken[0]}
        for name, taken in found.items()
    }
    for name, taken in middle.items():
        print(f"{name:<14}{taken['cpu_s']:>8.1f} s{taken['peak_mib']:>8.0f} MiB")
    book, text = middle["people.xlsx"], middle["people.csv"]
    print(f"ratio         {book['cpu_s'] / text['cpu_s']:>8.1f}")
    print(f"promised      {MOST_SECONDS:>8} s{MOST_MIB:>8} MiB for 500,000 rows of a workbook")
    return int(book["cpu_s"] > MOST_SECONDS or book["peak_mib"] > MOST_MIB)


def write(folder: Path, rows: int) -> None:
    """The same list in both forms."""
    book = xlsxwriter.Workbook(folder / "people.xlsx")
    sheet = book.add_worksheet("Customers")
    with (folder / "people.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(HEADER)
        sheet.write_row(0, 0, HEADER)
        for row in range(rows):
            segment = "vip" if row % 10 == 0 else "mass"
            cells = (f"08{row:08d}", f"สมชาย ใจดี {row}", segment, row / 4, f"A-{row}")
            lines.writerow(cells)
            sheet.write_row(row + 1, 0, cells)
    book.close()


def load(path: Path) -> dict[str, float]:
    """Seconds of processor time and peak memory of loading a scenario with a list."""
    from dialsim.scenario.loading import loads

    text = _SCENARIO.format(file=path.name)
    begin = time.process_time()
    loads(text, folder=path.parent)
    seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts in KiB
    return {"cpu_s": seconds, "peak_mib": peak}


if __name__ == "__main__":
    sys.exit(main())
