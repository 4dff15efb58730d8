"""Time, memory and text that growing models take, each family at n and at four times n.

    python tests/campaigns/measure_growing_models.py --times 4

Printed is one line for each family and n: bytes of the file, seconds of CPU, megabytes that the process grew by, and
characters of all types and requirements; and the growth from n to 4 n. Each measurement has a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

# A downgrade to an opset without the form of the split, beside inference.
_DOWNGRADED = {"many outputs": 11, "explicit lengths": 11}


def measure(name: str, size: int, opset: int | None) -> tuple[int, float, float, int]:
    """Bytes of the model, seconds, megabytes and characters; with an opset of the model that is downgraded to it."""
    from growing_models import FAMILIES

    import splitgraph
    import splitgraph.conversion.opset

    # What is imported when it is used first is no cost of the model.
    for small in (FAMILIES["squared"].make(2), FAMILIES[name].make(2)):
        splitgraph.infer(small)
    model = FAMILIES[name].make(size)
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    if opset is None:
        analysis = splitgraph.infer(model)
        characters = sum(len(str(each)) for each in (*analysis.types.values(), *analysis.obligations))
    else:
        characters = splitgraph.downgrade(model, opset).model.ByteSize()
    seconds = time.process_time() - begun
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return model.ByteSize(), seconds, grown / 1024, characters


def main() -> int:
    """Measure every family."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=4, help="how many times the n of the tests n is")
    parser.add_argument("--one", nargs=3, metavar=("FAMILY", "N", "OPSET"), help="measure here, and print the figures")
    options = parser.parse_args()
    if options.one:
        name, size, opset = options.one
        print(*measure(name, int(size), int(opset) or None))
        return 0
    from growing_models import FAMILIES

    print(f"{'family':32} {'n':>7} {'bytes':>9} {'seconds':>8} {'MB':>6} {'characters':>11}  growth from n to 4 n")
    for name, family in FAMILIES.items():
        for opset in (0, _DOWNGRADED.get(name)):
            if opset is not None:
                _print_growth(name, options.times * family.size, opset)
    return 0


def _print_growth(name: str, size: int, opset: int) -> None:
    label = f"{name}, downgraded" if opset else name
    small, large = (_in_own_process(name, each, opset) for each in (size, 4 * size))
    for each, figures in ((size, small), (4 * size, large)):
        growth = ""
        if figures is large:
            ratios = [after / max(before, 1e-9) for before, after in zip(small[1:], large[1:], strict=True)]
            growth = "  time {:.1f}, memory {:.1f}, text {:.1f}".format(*ratios)
        taken, seconds, megabytes, characters = figures
        print(
            f"{label:32} {each:7} {taken:9.0f} {seconds:8.2f} {megabytes:6.0f} {characters:11.0f}{growth}", flush=True
        )


def _in_own_process(name: str, size: int, opset: int) -> list[float]:
    command = [sys.executable, __file__, "--one", name, str(size), str(opset)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(figure) for figure in done.stdout.split()]


if __name__ == "__main__":
    sys.exit(main())
