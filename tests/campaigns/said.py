"""What the program says, word by word: to see that a change of the code changes no answer, message or help text.

    python tests/campaigns/said.py before.jsonl.gz
    python tests/campaigns/said.py after.jsonl.gz --against before.jsonl.gz
    python tests/campaigns/said.py sizes.jsonl.gz --only reshape

`written_bytes.py` records what is written; this records what is printed. Each model is given to the commands below,
with --json and as text; a result is not written. The models are those of `models/`, all of onnx's node tests, the
cases of the corpora of inference and of OpenVINO, splits as exporters write them, and models that are broken in their
bytes, fields or in memory, most of which are refused. Each model is asked for the sizes of `asked_sizes.py`, too. The
help of each command and the page of each diagnostic code belong to it.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import onnx

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "conformance"), str(TESTS.parent)]

from asked_sizes import requests  # noqa: E402  (the folders above are on the path only now)
from builder import build  # noqa: E402
from exporter_idioms import idiom_model  # noqa: E402
from mutated_models_mutants import make_mutant  # noqa: E402

from splitgraph import cli  # noqa: E402
from splitgraph.findings.codes import CODES  # noqa: E402

COMMANDS = ("infer", "upgrade", "downgrade", "convert", "reshape", "verify", "explain", "check", "report", "diff")
DRY = ("--dry-run", "--no-verify")
QUESTIONS: Mapping[str, Sequence[str]] = {
    "infer": ("infer",),
    "infer in full": ("infer", "--all", "--json"),
    "check": ("check", "--all-targets", "--json"),
    "check ncnn": ("check", "--target", "ncnn"),
    "to 28": ("convert", "--opset", "28", "--json", *DRY),
    "to 18": ("convert", "--opset", "18", "--diff", *DRY),
    "to 11": ("convert", "--opset", "11", "--json", *DRY),
    "to 7": ("convert", "--opset", "7", *DRY),
    "split": ("convert", "--to", "split", "--explicit-lengths", "--json", *DRY),
    "slice": ("convert", "--to", "slice", *DRY),
    "variadic-split": ("convert", "--to", "variadic-split", *DRY),
    "mnn": ("convert", "--target", "mnn", "--json", *DRY),
}
OF_IR = ("infer", "infer in full", "variadic-split")
PARTS = ("reshape", "others")
IDIOMS = 150
MUTANTS = 1500


def said(*arguments: str) -> str:
    """The exit code, what is printed, and what goes to standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = cli.main(list(arguments))
    return f"{code}\n{out.getvalue()}\n{err.getvalue()}"


def models(mutants: int) -> Iterator[tuple[str, bytes]]:
    """Every ONNX model by its name."""
    from onnx.backend.test.case.node import collect_testcases

    for path in sorted((TESTS.parent / "models").rglob("*.onnx")):
        yield path.name, path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        if case.model is not None:
            yield case.name, case.model.SerializeToString()
    for case in json.loads((TESTS / "conformance" / "infer_cases.json").read_text())["cases"]:
        yield f"case {case['id']}", build(case).SerializeToString()
    for seed in range(IDIOMS):
        yield f"idiom {seed}", idiom_model(seed).proto.SerializeToString()
    for seed in range(mutants):
        content = make_mutant(seed).content
        try:
            yield f"mutant {seed}", content if isinstance(content, bytes) else content.SerializeToString()
        except (ValueError, onnx.onnx_cpp2py_export.checker.ValidationError):
            # A message that protobuf itself cannot write is no file.
            continue


def answers(item: tuple[str, bytes], parts: Sequence[str]) -> tuple[str, dict[str, str]]:
    """What is said of one model."""
    name, data = item
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("model.onnx").write_bytes(data)
        return name, of_file("model.onnx", tuple(QUESTIONS), parts)


def of_file(path: str, questions: Sequence[str], parts: Sequence[str]) -> dict[str, str]:
    """What is said of the model of one file."""
    found = {}
    if "others" in parts:
        found = {question: said(*QUESTIONS[question], path) for question in questions}
    if "reshape" in parts:
        for asked, request in requests(path).items():
            how = ("--diff",) if request.batch is None else ("--json",)
            found[asked] = said("reshape", path, *request.arguments(), *how, *DRY)
    return found


def of_layers(folder: Path, parts: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """What is said of the corpus of OpenVINO's files."""
    with zipfile.ZipFile(TESTS / "formats" / "openvino_ir" / "corpus.zip") as archive:
        archive.extractall(folder)
    os.chdir(folder)
    for path in sorted(folder.glob("*.xml")):
        yield path.name, of_file(path.name, OF_IR, parts)


def of_no_model() -> Iterator[tuple[str, dict[str, str]]]:
    """The help of each command, and the page of each code."""
    yield "help", {command: said(command, "--help") for command in (*COMMANDS, "doctor")}
    yield "codes", {code: said("explain", code) for code in CODES}


def main() -> int:
    """Write what is said; 1 where another run says something else."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--against", type=Path, help="an earlier run, to compare with")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--mutants", type=int, default=MUTANTS, help="how many broken models")
    parser.add_argument("--every", type=int, default=1, help="only every n-th model, for a quick look")
    parser.add_argument("--only", choices=PARTS, help="only one part of what is asked of each model")
    parser.add_argument("--show", type=int, default=20, help="how many differences to print")
    options = parser.parse_args()
    output, against = options.output.resolve(), options.against and options.against.resolve()
    parts = PARTS if options.only is None else (options.only,)
    found = dict(of_no_model())
    with tempfile.TemporaryDirectory() as folder:
        found.update(of_layers(Path(folder), parts))
        os.chdir("/")
    chosen = (item for index, item in enumerate(models(options.mutants)) if index % options.every == 0)
    with Pool(options.jobs) as pool:
        found.update(pool.imap_unordered(partial(answers, parts=parts), chosen, chunksize=8))
    with gzip.open(output, "wt", compresslevel=4) as file:
        for name in sorted(found):
            file.write(json.dumps([name, found[name]]) + "\n")
    count = sum(map(len, found.values()))
    print(f"{len(found):,} models and pages, {count:,} answers")
    return 0 if against is None else _compare(against, found, count, options.show)


def _compare(against: Path, found: Mapping[str, Mapping[str, str]], count: int, shown: int) -> int:
    """Print where answers differ from those of an earlier run. 1 if any does."""
    differing = 0
    with gzip.open(against, "rt") as file:
        for name, before in map(json.loads, file):
            for question, old in before.items():
                new = found.get(name, {}).get(question) if name in found else old
                if new == old:
                    continue
                differing += 1
                if differing <= shown:
                    print(f"--- {name}: {question}")
                    _print_lines(old.splitlines(), (new or "(not asked)").splitlines())
    print(f"{differing:,} of {count:,} differ")
    return 1 if differing else 0


def _print_lines(old: Sequence[str], new: Sequence[str]) -> None:
    """The lines that only one of the two has, cut to a length that can be read."""
    for mark, lines, others in (("-", old, new), ("+", new, old)):
        for line in [line for line in lines if line not in others][:4]:
            print(f"  {mark} {line[:400]}")


if __name__ == "__main__":
    sys.exit(main())
