"""Measures the cases of factors in one runtime after the other, and the controls of those that fail.

    python benchmarks/targets/measure_factors.py CASES KEPT --cache FOLDER --runtime mnn@3.6.1 [--runtime ...]

CASES is the folder that `factor_cases.py` wrote. KEPT is a folder with one file for each runtime, to which answers are
added as they come: a line has the digest of a model, its name, the answer and the runtime's words. What is there is not
run again, so that a measurement may be stopped, and cases may be added. The answer "control" says that the graph fails
without its node, too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from environments import RUNTIMES
from measure import measure

# Operators whose cases tell most: they are in most exports, or were judged wrong before.
_FIRST = frozenset(
    {"Softmax", "LSTM", "RNN", "GRU", "LayerNormalization", "Shape", "Gather", "Slice", "Unsqueeze", "Reshape"}
    | {"Concat", "Expand", "Where", "Cast", "Conv", "ConvTranspose", "MaxPool", "If", "MatMul", "Gemm", "Split"}
)
# So many cases are run before their answers are written.
_AT_ONCE = 200


def digest(model: Path) -> str:
    """What identifies a model, whatever its file is called."""
    return hashlib.sha1(model.read_bytes()).hexdigest()[:16]


def read_kept(file: Path) -> dict[str, tuple[str, str, str]]:
    """The name, the answer and the words of each model that was measured, by its digest."""
    if not file.exists():
        return {}
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {held: (name, answer, said) for held, name, answer, said in lines}


def run(name: str, cases: Path, kept: Path, cache: Path, seconds: float) -> Counter[str]:
    """Measure what is not known of a runtime; returns how often it gives each answer."""
    kept.mkdir(parents=True, exist_ok=True)
    file = kept / f"{name}.jsonl"
    digests = {path.stem: digest(path) for path in sorted(cases.glob("*.onnx"))}
    known = read_kept(file)
    # Bases first: a measurement that is stopped knows something of each version.
    missing = sorted((model for model, held in digests.items() if held not in known), key=_bases_first)
    for share in _shares(missing):
        answers = measure(name, cases, cache, models=share, seconds=seconds)
        failing = [model for model, answer in answers.items() if answer.answer != "reads"]
        controls = measure(name, cases / "controls", cache, models=failing, seconds=seconds) if failing else {}
        with file.open("a", encoding="utf-8") as written:
            for model, (answer, said) in answers.items():
                is_lame = model in controls and controls[model].answer != "reads"
                told = [digests[model], model, "control" if is_lame else answer, said]
                written.write(json.dumps(told, ensure_ascii=False) + "\n")
    return Counter(answer for held, (_, answer, _) in read_kept(file).items() if held in set(digests.values()))


def _bases_first(model: str) -> tuple[bool, bool, str]:
    return ".base." not in model, model.partition("-")[0] not in _FIRST, model


def _shares(models: Sequence[str]) -> Iterable[Sequence[str]]:
    return (models[first : first + _AT_ONCE] for first in range(0, len(models), _AT_ONCE))


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("kept", type=Path)
    parser.add_argument("--cache", type=Path, required=True, help="where the environments are, or are made")
    parser.add_argument("--runtime", action="append", default=[], choices=list(RUNTIMES), help="repeatable")
    parser.add_argument("--seconds", type=float, default=20, help="that one model may take")
    given = parser.parse_args()
    for name in given.runtime:
        counts = run(name, given.cases, given.kept, given.cache, given.seconds)
        print(f"{name}: {', '.join(f'{number} {answer}' for answer, number in counts.most_common())}", flush=True)


if __name__ == "__main__":
    main()
