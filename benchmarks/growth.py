"""How the cost of each command grows with a model: CPU seconds of whole processes at n and at 4 n.

python benchmarks/growth.py [--runs 2] [--scale 1] [--verb NAME ...] [FAMILY ...]

Growth is the ratio of what the larger model adds to the time of a model of two layers to what the smaller one adds:
the start of a process does not grow. Linear is 4; above 6, whatever 50 ms of noise may be, a family is marked, and the
exit code is 1. What adds less than 0.3 s at 4 n is not told: --scale makes all models larger. A command that refuses a
model is measured, too, because refusing is work. Verification is left out, as the time is that of the engine (see
`verification.py`).

Families: see `growing.py`.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import onnx
from alone import ALONE
from growing import GROWING

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 6.0
# Less than this is the noise of a start.
LEAST_SECONDS = 0.05
_PATIENCE = 600
# What a node becomes in a model that is compared.
_NEAR = {"Relu": "Abs", "Add": "Sub", "Mul": "Div", "Softmax": "LogSoftmax"}
# A fault of splitgraph, and what a wrong option prints.
_FAULT, _USAGE = 70, "There is no option"

VERBS: Mapping[str, Sequence[str]] = {
    "infer": ["infer", "MODEL", "-o", "OUT"],
    "upgrade": ["upgrade", "MODEL", "--opset", "24", "--no-verify", "-o", "OUT"],
    "downgrade": ["downgrade", "MODEL", "--opset", "12", "--no-verify", "-o", "OUT"],
    "to VariadicSplit": ["convert", "MODEL", "--to", "variadic-split", "--no-verify", "-o", "OUT"],
    "to slices": ["convert", "MODEL", "--to", "slice", "--no-verify", "-o", "OUT"],
    "for a target": ["convert", "MODEL", "--target", "opencv", "--no-verify", "-o", "OUT"],
    "reshape": ["reshape", "MODEL", "--batch", "3", "--no-verify", "-o", "OUT"],
    "check": ["check", "MODEL", "--target", "openvino"],
    "diff": ["diff", "MODEL", "CHANGED"],
    "report": ["report", "MODEL", "-o", "PAGE"],
}


class Growth(NamedTuple):
    """CPU seconds of a command on models of two layers, of n and of 4 n."""

    start: float
    small: float
    large: float

    @property
    def ratio(self) -> float | None:
        """What the larger model adds as a ratio to what the smaller one adds; None if neither adds much."""
        small, large = self.small - self.start, self.large - self.start
        return None if large < LIMIT * LEAST_SECONDS else large / max(small, LEAST_SECONDS)

    @property
    def is_superlinear(self) -> bool:
        """True if the growth is above the limit whatever the noise of the three runs is."""
        small, large = self.small - self.start, self.large - self.start
        return large - LEAST_SECONDS > LIMIT * (max(small, 0.0) + LEAST_SECONDS)


def cpu_seconds(command: Sequence[str], runs: int) -> float:
    """Return the least CPU time of runs of `splitgraph`. Raises CalledProcessError for a wrong option or a fault."""
    least = float("inf")
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        typed = [sys.executable, "-m", "splitgraph", *command]
        done = subprocess.run(typed, env=ALONE, cwd=ROOT, capture_output=True, text=True, timeout=_PATIENCE)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode == _FAULT or _USAGE in done.stderr:
            raise subprocess.CalledProcessError(done.returncode, typed, done.stdout, done.stderr)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least


def changed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model in which every third node that can be is another operator."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    for node in other.graph.node[::3]:
        node.op_type = _NEAR.get(node.op_type, node.op_type)
    return other


def growth(family: str, verb: str, folder: Path, *, scale: float = 1.0, runs: int = 2) -> Growth:
    """Measure a command on the models of a family."""
    make, size = GROWING[family]
    size = max(int(size * scale), 2)
    seconds = []
    for n in (2, size, 4 * size):
        endings = ("model.onnx", "changed.onnx", "out.onnx", "html")
        files = {ending: str(folder / f"{family}.{n}.{ending}") for ending in endings}
        if not Path(files["model.onnx"]).exists():
            model = make(n)
            onnx.save(model, files["model.onnx"])
            onnx.save(changed(model), files["changed.onnx"])
        names = dict(zip(("MODEL", "CHANGED", "OUT", "PAGE"), files.values(), strict=True))
        command = [names.get(word, word) for word in VERBS[verb]]
        for written in (names["OUT"], names["PAGE"]):
            Path(written).unlink(missing_ok=True)
        command += ["--force"] if "-o" in command else []
        seconds.append(cpu_seconds(command, runs))
    return Growth(*seconds)


def rows(families: Sequence[str], verbs: Sequence[str], scale: float, runs: int) -> Iterator[tuple[str, list[Growth]]]:
    """Measure families, one after the other."""
    with tempfile.TemporaryDirectory(prefix="splitgraph-benchmark-") as name:
        for family in families:
            yield family, [growth(family, verb, Path(name), scale=scale, runs=runs) for verb in verbs]


def cell(found: Growth) -> str:
    """Return the growth and the seconds of a command."""
    ratio = found.ratio
    told = "–" if ratio is None else f"**{ratio:.1f}**" if found.is_superlinear else f"{ratio:.1f}"
    return f"{told}; {found.large:.2f} s"


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(GROWING))
    parser.add_argument("--verb", action="append", choices=VERBS)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    verbs, superlinear = options.verb or list(VERBS), list[str]()
    print(f"| family | {' | '.join(verbs)} |\n" + "|---" * (len(verbs) + 1) + "|", flush=True)
    for family, costs in rows(options.families or list(GROWING), verbs, options.scale, options.runs):
        print(f"| {family} | {' | '.join(map(cell, costs))} |", flush=True)
        over = (verb for verb, cost in zip(verbs, costs, strict=True) if cost.is_superlinear)
        superlinear += [f"{verb} of {family}" for verb in over]
    print("\n".join(["", *(f"above {LIMIT:g}: {name}" for name in superlinear)]))
    return 1 if superlinear else 0


if __name__ == "__main__":
    sys.exit(main())
