"""What other tools make of the models of `sized_models.py` for another batch: loaded, run, right.

    python tests/campaigns/reshaped_models_peers.py FOLDER

Each tool gives a fixed model a batch three times as large, or any batch. What it makes is run in onnxruntime, what
OpenVINO makes in OpenVINO, and its results are compared with those of the model that was exported with dynamic axes.
Tools that are not installed are left out.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from reshaped_models import session, sizes_of

import splitgraph

Run = Callable[[Mapping[str, Any]], list[Any]]
Shapes = Mapping[str, list[Any]]


def _in_onnxruntime(model: onnx.ModelProto) -> Run:
    made = session(model)
    return lambda inputs: list(made.run(None, dict(inputs)))


def by_splitgraph(model: onnx.ModelProto, names: Shapes, sizes: Shapes) -> Run:
    """splitgraph reshape."""
    return _in_onnxruntime(splitgraph.reshape(model, names).model)


def by_onnx(model: onnx.ModelProto, names: Shapes, sizes: Shapes) -> Run:
    """onnx.tools.update_model_dims, with a name for the batch."""
    from onnx.tools.update_model_dims import update_inputs_outputs_dims

    outputs = {value.name: ["N", *sizes_of(value)[1:]] for value in model.graph.output}
    return _in_onnxruntime(update_inputs_outputs_dims(model, dict(names), outputs))


def by_labels(model: onnx.ModelProto, names: Shapes, sizes: Shapes) -> Run:
    """Another name in the shapes of the inputs, and nothing else."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value in made.graph.input:
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    for value in made.graph.output:
        value.type.tensor_type.ClearField("shape")
    return _in_onnxruntime(made)


def by_onnxsim(model: onnx.ModelProto, names: Shapes, sizes: Shapes) -> Run:
    """onnxsim with overwrite_input_shapes."""
    import onnxsim

    made, _ = onnxsim.simplify(model, overwrite_input_shapes=dict(sizes))
    return _in_onnxruntime(made)


def by_openvino(model: onnx.ModelProto, names: Shapes, sizes: Shapes) -> Run:
    """The method reshape of a model in OpenVINO."""
    import openvino

    core = openvino.Core()
    read = core.read_model(model.SerializeToString())
    read.reshape({name: openvino.PartialShape([-1, *shape[1:]]) for name, shape in sizes.items()})
    compiled = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda inputs: list(compiled(dict(inputs)).to_tuple())


TOOLS = (by_splitgraph, by_onnx, by_labels, by_onnxsim, by_openvino)


def main() -> None:
    """Print one line for each tool."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    found = {tool: Counter[str]() for tool in TOOLS}
    for entry in json.loads((folder / "index.json").read_text()):
        fixed = onnx.load(folder / f"{entry['name']}.fixed.onnx")
        dynamic = session(onnx.load(folder / f"{entry['name']}.dynamic.onnx"))
        old = {value.name: sizes_of(value) for value in fixed.graph.input}
        names = {name: ["N", *dims[1:]] for name, dims in old.items()}
        sizes = {name: [3 * dims[0], *dims[1:]] for name, dims in old.items()}
        random = np.random.default_rng(0)
        inputs = {name: random.standard_normal(dims).astype(np.float32) for name, dims in sizes.items()}
        wanted = dynamic.run(None, inputs)
        for tool in TOOLS:
            found[tool][_answer(tool, fixed, names, sizes, inputs, wanted)] += 1
    for tool, answers in found.items():
        print(f"{(tool.__doc__ or '').rstrip('.')}: {dict(sorted(answers.items()))}")


def _answer(tool: Any, model: onnx.ModelProto, names: Shapes, sizes: Shapes, inputs: Any, wanted: Any) -> str:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    try:
        run: Run = tool(copy, names, sizes)
    except ImportError:
        return "not installed"
    except Exception:
        return "refused, or does not load"
    try:
        results = run(inputs)
    except Exception:
        return "does not run"
    right = all(
        one.shape == other.shape and np.allclose(one, other, 1e-3, 1e-3)
        for one, other in zip(results, wanted, strict=True)
    )
    return "right" if right else "other results"


if __name__ == "__main__":
    main()
