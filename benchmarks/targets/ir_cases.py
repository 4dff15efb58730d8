"""Cases of OpenVINO IR: cases of operators as releases of OpenVINO write them, and layers that no operator becomes.

    python benchmarks/targets/ir_cases.py CASES FOLDER --cache ENVIRONMENTS [--most 4]

CASES is the folder that `operator_cases.py` wrote. The newest and the oldest OpenVINO of `environments.py` convert its
first models of each operator version: the newest one writes the newest layers, the oldest one writes what later
releases write no more. An IR whose own release does not compute what the case expects does not become a case. Of the
others, those are cases that have something new: a layer, or a trait of a layer that few cases before them have. All
layers of `layer_cases.py` are cases.

FOLDER gets NAME.xml, NAME.bin, NAME.in.npz and NAME.exp.npz; `measure.py` runs them like any other. In FOLDER/written
is all that was converted, which is not converted again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from cases import read_arrays  # noqa: E402, the folders above are on the path only now
from environments import RUNTIMES, environment  # noqa: E402
from measure import first_of_each  # noqa: E402

from splitgraph.formats.openvino_ir import load_ir  # noqa: E402
from splitgraph.runtimes.examine_ir import examine_ir  # noqa: E402
from splitgraph.runtimes.operator_traits import needs_a_case  # noqa: E402

_HERE = Path(__file__).parent
_RELEASES = [name for name in RUNTIMES if name.startswith("openvino@")]
WRITERS = (_RELEASES[0], _RELEASES[-1])
# How many tests of each trait of a layer become cases.
_ENOUGH = 3
# How the names of cases begin that were built as cases of a layer.
LAYER = "layer."
_ABOUT_NUMBERS = frozenset({"IsInf", "IsNaN", "IsFinite"})


# Writing --------------------------------------------------------------------------------------------------------------


def write_all(name: str, folder: Path, models: Sequence[str], written: Path, cache: Path) -> None:
    """Convert models by one release of OpenVINO into the folder `written`, those that it did not convert before.

    Beside the folder, a file says of each model what is wrong with its IR, "" for nothing. A model of which the process
    dies is answered for, and the next process goes on behind it.
    """
    written.mkdir(parents=True, exist_ok=True)
    answers = problems(written)
    missing = [model for model in models if model not in answers]
    python, variables = environment(RUNTIMES[name], cache)
    # No model is of interest to those who count how OpenVINO is used.
    variables = {**variables, "CI": "true"}
    command = [str(each) for each in (python, "-I", _HERE / "ir_writer.py", written.resolve())]
    while missing:
        answered = 0
        with tempfile.TemporaryFile("w+", encoding="utf-8") as asked, _answers(written).open("a") as kept:
            asked.write("".join(f"{folder.resolve() / model}\n" for model in missing))
            asked.seek(0)
            with subprocess.Popen(command, stdin=asked, stdout=subprocess.PIPE, text=True, env=variables) as writer:
                assert writer.stdout is not None
                for line in writer.stdout:
                    path, problem = json.loads(line)
                    kept.write(json.dumps([Path(path).name, problem]) + "\n")
                    kept.flush()
                    answered += 1
            if answered < len(missing):
                kept.write(json.dumps([missing[answered], "dies"]) + "\n")
        missing = missing[answered + 1 :]


def write_layers(written: Path, cache: Path) -> None:
    """Write the cases of layers that no operator becomes, by the newest release."""
    if not written.exists():
        python, variables = environment(RUNTIMES[WRITERS[0]], cache)
        subprocess.run([python, _HERE / "layer_cases.py", written], check=True, env=variables)


def problems(written: Path) -> dict[str, str]:
    """What is wrong with the IR of each model that a release converted, "" for nothing."""
    file = _answers(written)
    return dict(map(json.loads, file.read_text("utf-8").splitlines())) if file.exists() else {}


def _answers(written: Path) -> Path:
    return written.with_name(f"{written.name}.jsonl")


# Choosing -------------------------------------------------------------------------------------------------------------


class Written(NamedTuple):
    """An IR that computes what is expected.

    name: of the case. test: what it was made from, in whatever way and version of the operator. model: its .xml.
    arrays: the path of its inputs and expected outputs, without `.in.npz` and `.exp.npz`. layers: its layers, each with
    each of its traits.
    """

    name: str
    test: str
    model: Path
    arrays: Path
    layers: frozenset[tuple[str, str]]

    @property
    def labels(self) -> set[str]:
        """The layers of which it has at least one."""
        return {label for label, _ in self.layers}


def usable(folder: Path, written: Path) -> Iterator[Written]:
    """The IR that count. folder: of the cases that releases converted."""
    for name in WRITERS:
        for case, problem in problems(written / name).items():
            if not problem:
                # A case is called OPERATOR-VERSION.NUMBER.TEST.WAY.
                named = f"{case}.{name.partition('@')[2]}", case.rsplit(".", 2)[1]
                yield _read(*named, written / name / f"{case}.xml", folder / case)
    for path in sorted(Path(written, "layers").glob("*.exp.npz")):
        name = path.name.removesuffix(".exp.npz")
        yield _read(name, name, path.with_name(f"{name}.xml"), path.with_name(name))


def _read(name: str, test: str, model: Path, arrays: Path) -> Written:
    nodes = examine_ir(load_ir(model)).nodes
    # A layer without a trait is something, too.
    return Written(
        name, test, model, arrays, frozenset((node.label, trait) for node in nodes for trait in {"", *node.own})
    )


def choose(written: Iterable[Written]) -> Iterator[Written]:
    """Those with a trait of a layer that few tests before them have; those with few layers first, because they say
    most of each of them. A test is in several ways and versions of an operator, which are alike. What was built as a
    case of a layer is one.
    """
    tests: dict[tuple[str, str], set[str]] = defaultdict(set)
    for each in sorted(written, key=lambda one: (len(one.labels), one.name)):
        pairs = [tests[label, trait] for label, trait in each.layers if not trait or needs_a_case(trait)]
        is_new = any(each.test not in known and len(known) < _ENOUGH for known in pairs)
        if is_new or each.test.startswith(LAYER):
            for known in pairs:
                known.add(each.test)
            yield each


def is_about_numbers(each: Written) -> bool:
    """True for an IR with inputs that are infinite or no numbers. What becomes of these says nothing of a layer, except
    of one that is about them.
    """
    arrays = read_arrays(Path(f"{each.arrays}.in.npz")).values()
    are_finite = all(np.all(np.isfinite(array)) for array in arrays if array.dtype.kind == "f")
    return not are_finite and not any(label.partition(".")[2] in _ABOUT_NUMBERS for label in each.labels)


def main() -> None:
    """Write the cases that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, help="the folder that operator_cases.py wrote")
    parser.add_argument("folder", type=Path, help="where the cases go")
    parser.add_argument("--cache", type=Path, required=True, help="where the environments are")
    parser.add_argument("--most", type=int, help="convert only the first models of each operator version")
    given = parser.parse_args()
    # The plainest models first: what is written before an interruption is of most use.
    models = sorted((path.stem for path in given.cases.glob("*.onnx")), key=lambda name: (name.split(".")[-3], name))
    written = given.folder / "written"
    for name in WRITERS:
        write_all(name, given.cases, first_of_each(models, given.most), written / name, given.cache)
    write_layers(written / "layers", given.cache)
    chosen = list(choose(each for each in usable(given.cases, written) if not is_about_numbers(each)))
    for left in given.folder.iterdir():
        # Of an earlier choice.
        if left.is_file():
            left.unlink()
    for each in chosen:
        shutil.copyfile(each.model, given.folder / f"{each.name}.xml")
        shutil.copyfile(each.model.with_suffix(".bin"), given.folder / f"{each.name}.bin")
        for ending in (".in.npz", ".exp.npz"):
            shutil.copyfile(f"{each.arrays}{ending}", given.folder / f"{each.name}{ending}")
    labels = set().union(*(each.labels for each in chosen))
    print(f"{len(chosen)} cases of {len(labels)} layers in {given.folder}")


if __name__ == "__main__":
    main()
