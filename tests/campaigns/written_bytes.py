"""What upgrade, downgrade, convert and reshape write, as hashes: to see that a change of the code changes no byte.

    python tests/campaigns/written_bytes.py before.json
    python tests/campaigns/written_bytes.py after.json --against before.json
    python tests/campaigns/written_bytes.py sizes.json --only reshape            (5 minutes on two cores)

The models are those of `models/` and all of onnx's node tests, each taken to six opsets and, where it has splits, to
VariadicSplit, to Split, and to explicit lengths; and the OpenVINO IRs of the tests, taken to VariadicSplit. Each of
them gets the sizes of `asked_sizes.py`. A refusal counts with the codes of its reasons, a result with its notes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import onnx
from asked_sizes import requests

import splitgraph

TESTS = Path(__file__).resolve().parents[1]
MODELS = TESTS.parent / "models"
IRS = (TESTS / "formats" / "openvino_ir" / "corpus.zip", TESTS / "inference" / "openvino_ir" / "layers.zip")
OPSETS = (7, 11, 13, 18, 21, 28)
PARTS = ("convert", "reshape")


def models(folder: Path) -> Iterator[tuple[str, bytes | Path]]:
    """Every model by its name: the content of an ONNX model, the path of an IR below a folder that may be written."""
    from onnx.backend.test.case.node import collect_testcases

    for path in sorted(MODELS.rglob("*.onnx")):
        yield path.name, path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        if case.model is not None:
            yield case.name, case.model.SerializeToString()
    yield from ((path.name, path) for path in sorted(MODELS.rglob("*.xml")))
    for archive in IRS:
        with zipfile.ZipFile(archive) as file:
            file.extractall(folder / archive.stem)
        yield from ((path.name, path) for path in sorted((folder / archive.stem).rglob("*.xml")))


def written(rewrite: Callable[[], splitgraph.Rewrite]) -> str:
    """The hash of what a conversion writes and notes, or the codes of why it refuses."""
    try:
        found = rewrite()
    except splitgraph.SplitgraphError as error:
        return f"{type(error).__name__} " + " ".join(sorted(each.code for each in error.diagnostics))
    codes = " ".join(sorted(each.code for each in found.diagnostics))
    return f"{hashlib.sha256(_content(found)).hexdigest()[:16]} {codes}".strip()


def _content(found: splitgraph.Rewrite) -> bytes:
    if isinstance(found.model, onnx.ModelProto):
        return found.model.SerializeToString(deterministic=True)
    with tempfile.TemporaryDirectory() as folder:
        found.save(Path(folder, "m.xml"))
        return b"".join(path.read_bytes() for path in sorted(Path(folder).iterdir()))


def answers_for(item: tuple[str, bytes | Path], parts: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """What each conversion of one model gives."""
    name, data = item
    model = onnx.load_from_string(data) if isinstance(data, bytes) else data
    found = {}
    if "convert" in parts and isinstance(model, onnx.ModelProto):
        found |= conversions_of(model)
    elif "convert" in parts:
        found["variadic-split"] = written(lambda: splitgraph.convert(model, "variadic-split"))
    if "reshape" in parts:
        for asked, request in requests(model).items():
            found[asked] = written(lambda request=request: splitgraph.reshape(model, **request.options()))  # type: ignore[misc]
    return name, found


def conversions_of(model: onnx.ModelProto) -> dict[str, str]:
    """What each conversion of an ONNX model to an opset, or of its splits, gives."""
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), None)
    found = {}
    for target in OPSETS if opset is not None else ():
        verb = splitgraph.upgrade if target >= (opset or 0) else splitgraph.downgrade
        found[str(target)] = written(lambda target=target, verb=verb: verb(model, target))  # type: ignore[misc]
    if b"Split" in model.SerializeToString():
        for to in ("variadic-split", "split", "slice"):
            found[to] = written(lambda to=to: splitgraph.convert(model, to))  # type: ignore[misc]
        found["explicit"] = written(lambda: splitgraph.convert(model, "split", explicit_lengths=True))
    return found


def main() -> int:
    """Write the hashes; 1 where they are not those of another run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--against", type=Path, help="hashes of an earlier run, to compare with")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="only every n-th model, for a quick look")
    parser.add_argument("--only", choices=PARTS, help="only one part of what is asked of each model")
    options = parser.parse_args()
    parts = PARTS if options.only is None else (options.only,)
    with tempfile.TemporaryDirectory() as folder, Pool(options.jobs) as pool:
        chosen = (item for index, item in enumerate(models(Path(folder))) if index % options.every == 0)
        found = dict(pool.imap_unordered(partial(answers_for, parts=parts), chosen, chunksize=16))
    options.output.write_text(json.dumps(found, indent=1, sort_keys=True))
    count = sum(map(len, found.values()))
    print(f"{len(found):,} models, {count:,} conversions")
    if options.against is None:
        return 0
    before = json.loads(options.against.read_text())
    differing = [
        (name, to, before.get(name, {}).get(to), answer)
        for name, answers in sorted(found.items())
        for to, answer in answers.items()
        if before.get(name, {}).get(to) != answer
    ]
    for name, to, old, new in differing[:50]:
        print(f"{name} to {to}: {old} became {new}")
    print(f"{len(differing):,} of {count:,} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
