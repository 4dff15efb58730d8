"""Models with new sizes against what they have to give, in onnxruntime.

    python tests/campaigns/sized_models.py FOLDER                  (with a Python that has torch)
    python tests/campaigns/reshaped_models.py --pairs FOLDER [--ir] [--every N]
    python tests/campaigns/reshaped_models.py MODEL...

Of pairs, the model with fixed sizes gets the names of the other one, the batch alone and all axes: at five sizes each
its results have to be those of the model that was exported with dynamic axes. With --ir it is converted to OpenVINO IR
before it gets the names, and runs in OpenVINO. Of a model, one with a fixed batch gets
any batch: at 1, 2, 3 and 7 times the old one its results have to be those of the model for each group of items. Ends
with 1 where a result differs, or a model does not load or run; a refusal or a question is printed with its reasons.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import splitgraph

# What is multiplied with a batch; a size of another kind is half, twice and three times the old one, too.
_BATCHES = (1, 2, 3, 5, 7)
_OTHERS = {1: (1, 1), 2: (2, 1), 3: (3, 2), 5: (3, 1), 7: (1, 2)}
_GROUPS = (1, 2, 3, 7)
_TYPES = {"float": "float32", "double": "float64", "float16": "float16", "bool": "bool"}
_TYPES |= {name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16")}
Shapes = Mapping[str, Sequence[int | str]]
# Gives a model other sizes, and returns what runs it.
Reshaped = Callable[[onnx.ModelProto, Shapes], Any]


def main() -> int:
    """Try what the command line says, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--pairs", type=Path, help="a folder of sized_models.py")
    parser.add_argument("--ir", action="store_true", help="reshape OpenVINO IRs of the pairs")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every Nth pair")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    found = Counter[tuple[str, str]]()
    reshaped = IrSession if given.ir else reshaped_onnx
    pairs = of_pairs(given.pairs, reshaped, given.every) if given.pairs else ()
    for kind, name, answer in itertools.chain(pairs, map(of_model, given.models)):
        word = answer.partition(":")[0]
        found[kind, word] += 1
        if word not in ("equal", "no fixed batch"):
            print(f"{name}: {answer}", flush=True)
    for (kind, word), count in sorted(found.items()):
        print(f"{kind}: {count} {word}")
    return 1 if any(word in ("differs", "does not run") for _, word in found) else 0


def of_pairs(folder: Path, reshaped: Reshaped, every: int) -> Iterator[tuple[str, str, str]]:
    """What came out for each pair: kind, name, and the answer."""
    for entry in json.loads((folder / "index.json").read_text())[::every]:
        fixed = onnx.load(folder / f"{entry['name']}.fixed.onnx")
        dynamic = session(onnx.load(folder / f"{entry['name']}.dynamic.onnx"))
        old = {value.name: sizes_of(value) for value in fixed.graph.input}
        names = {(name, int(axis)): symbol for name, axes in entry["axes"].items() for axis, symbol in axes.items()}
        for only in ("N", *(["all"] if len(set(names.values())) > 1 else [])):
            asked = {key: symbol for key, symbol in names.items() if only in (symbol, "all")}
            shapes = {
                name: [asked.get((name, axis), size) for axis, size in enumerate(sizes)] for name, sizes in old.items()
            }
            yield (
                f"{entry['kind']}, {only}",
                f"{entry['name']} ({only})",
                _of_pair(partial(reshaped, fixed, shapes), dynamic, shapes, old),
            )


def reshaped_onnx(fixed: onnx.ModelProto, shapes: Shapes) -> Any:
    """The reshaped model in onnxruntime."""
    return session(splitgraph.reshape(fixed, shapes).model)


class IrSession:
    """The reshaped IR of a model, in OpenVINO."""

    def __init__(self, fixed: onnx.ModelProto, shapes: Shapes) -> None:
        import openvino

        with tempfile.TemporaryDirectory() as folder:
            onnx.save(fixed, f"{folder}/m.onnx")
            openvino.save_model(openvino.convert_model(f"{folder}/m.onnx"), f"{folder}/m.xml", compress_to_fp16=False)
            splitgraph.reshape(f"{folder}/m.xml", shapes).save(f"{folder}/after.xml")
            settings = {"INFERENCE_PRECISION_HINT": "f32"}
            self._compiled = openvino.Core().compile_model(f"{folder}/after.xml", "CPU", settings)

    def run(self, _: None, inputs: Mapping[str, Any]) -> list[Any]:
        """The outputs, in order."""
        return list(self._compiled(dict(inputs)).values())


def _of_pair(make: Callable[[], Any], dynamic: Any, shapes: Shapes, old: Mapping[str, Sequence[int]]) -> str:
    try:
        made = make()
    except splitgraph.ConversionError as refused:
        codes = {found.code for found in refused.diagnostics if found.severity == "error"}
        return f"{'asked' if codes == {'SG421'} else 'refused'}: {refused.diagnostics[0].message}"
    except RuntimeError as error:
        return f"does not run: {str(error)[:200]}"
    random = np.random.default_rng(0)
    for batch in _BATCHES:
        up, down = _OTHERS[batch]
        inputs = {}
        for name, dims in shapes.items():
            sizes = [
                size if dim == size else batch if dim == "N" else max(size * up // down, 1)
                for dim, size in zip(dims, old[name], strict=True)
            ]
            inputs[name] = random.standard_normal(sizes).astype(np.float32)
        told = _compared(made, inputs, dynamic.run(None, inputs))
        if told:
            return told
    return "equal"


def of_model(path: Path) -> tuple[str, str, str]:
    """What came out for a model with any batch."""
    kind = "models"
    try:
        model = onnx.load(path)
    except Exception as error:
        return kind, path.name, f"not run before: {str(error)[:100]}"
    weights = {tensor.name for tensor in model.graph.initializer}
    firsts = {(*sizes_of(value), 0)[0] for value in model.graph.input if value.name not in weights}
    if len(firsts) != 1 or min(firsts) < 1:
        return kind, path.name, "no fixed batch"
    try:
        before = session(model)
        items = [_drawn(before, seed) for seed in range(max(_GROUPS))]
        expected = [before.run(None, item) for item in items]
    except Exception as error:
        return kind, path.name, f"not run before: {str(error)[:100]}"
    try:
        after = splitgraph.reshape(model, batch="ANY_BATCH").model
        made = session(after)
    except splitgraph.SplitgraphError as refused:
        return kind, path.name, f"refused: {str(refused)[:300]}"
    except Exception as error:
        return kind, path.name, f"does not run: {str(error)[:200]}"
    axes = [
        next((axis for axis, dim in enumerate(value.type.tensor_type.shape.dim) if "ANY_BATCH" in dim.dim_param), None)
        for value in after.graph.output
    ]
    for groups in _GROUPS:
        inputs = {name: np.concatenate([item[name] for item in items[:groups]]) for name in items[0]}
        wanted = [
            expected[0][index] if axis is None else np.concatenate([each[index] for each in expected[:groups]], axis)
            for index, axis in enumerate(axes)
        ]
        told = _compared(made, inputs, wanted)
        if told:
            return kind, path.name, _verified(model) if told.startswith("differs") else told
    return kind, path.name, "equal"


def _verified(model: onnx.ModelProto) -> str:
    """What the verification says of a model whose results differ: items that reach each other, or rounding."""
    try:
        verification = splitgraph.reshape(model, batch="ANY_BATCH", verify=True).verification
    except splitgraph.VerificationError as refused:
        return f"refused after it ran: {refused.diagnostics[0]}"
    assert verification is not None
    return f"equal up to rounding: {verification.max_abs_diff}" if verification.verdict == "equal" else "differs"


def session(model: onnx.ModelProto) -> Any:
    """The model in onnxruntime, as it is written."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def sizes_of(value: onnx.ValueInfoProto) -> list[int]:
    """The sizes of an input; 0 for one that is no number."""
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def _drawn(made: Any, seed: int) -> dict[str, Any]:
    random, inputs = np.random.default_rng(seed), {}
    for value in made.get_inputs():
        dtype = np.dtype(_TYPES[value.type.removeprefix("tensor(").removesuffix(")")])
        sizes = [dim if isinstance(dim, int) else 4 for dim in value.shape]
        array = random.random(sizes) if dtype.kind == "f" else random.integers(0, 2, sizes)
        inputs[value.name] = array.astype(dtype)
    return inputs


def _compared(made: Any, inputs: Mapping[str, Any], wanted: Sequence[Any]) -> str:
    """What is wrong with the results of a model; "" for nothing."""
    try:
        found = made.run(None, dict(inputs))
    except Exception as error:
        return f"does not run: {str(error)[:200]}"
    for number, (array, expected) in enumerate(zip(found, wanted, strict=True)):
        if array.shape != expected.shape or not np.allclose(array, expected, 1e-3, 1e-4, equal_nan=True):
            return f"differs: output {number} with { ({name: value.shape for name, value in inputs.items()}) }"
    return ""


if __name__ == "__main__":
    sys.exit(main())
