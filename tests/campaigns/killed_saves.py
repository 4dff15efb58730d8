"""Saves that are killed at any moment: the file is the old one or the new one, whole, and the next save cleans up.

    python tests/campaigns/killed_saves.py --moments 200

Saves a model of 32 MB beside its source and in its place, each again and again, and kills each save at another moment.
Printed are how many saves were ended early, which file they left as the target, what else they left, and each that is
wrong, with its moment. Ends with 1 where one is wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
WORKER = CHECKOUT / "tests" / "formats" / "saving_worker.py"
PLACES = ("beside", "in-place")
# What a killed save may leave: a name that nobody takes for a model, and that says whose it is.
_LEFT = re.compile(r"\.splitgraph-[0-9a-f]{16}(-0\.(tmp|old)|\.owner(-new)?)")


def killed_saves(folder: Path, moments: int, place: str) -> list[dict[str, Any]]:
    """What was found after saves that were killed, each at another moment."""
    ran = subprocess.run(
        [sys.executable, WORKER, folder, str(moments), place],
        cwd=CHECKOUT,
        env={"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def is_right(found: dict[str, Any]) -> bool:
    """False where the target is neither file, or anything is left that nobody would know, or the next save left it."""
    is_known = all(_LEFT.fullmatch(name) for name in found["left"])
    return is_known and found["target"] in ("old", "new") and found["next"] == "new" and not found["left by the next"]


def main() -> int:
    """Kill saves; 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=200, help="how many saves are killed in each place")
    options = parser.parse_args()
    wrong = 0
    for place in PLACES:
        with tempfile.TemporaryDirectory() as folder:
            found = killed_saves(Path(folder), options.moments, place)
        counted = Counter[str]()
        for moment, each in enumerate(found):
            counted["ended early"] += each["killed"]
            counted[f"left the {each['target']} file"] += 1
            counted["left other files, too"] += bool(each["left"])
            if not is_right(each):
                wrong += 1
                print(f"{place}, moment {moment} of {options.moments}: {each}")
        print(f"{place}, {len(found):,} saves:", *(f"{number:8,} {name}" for name, number in counted.items()), sep="\n")
    print(f"wrong: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
