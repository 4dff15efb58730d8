"""Nodes as models have them: operator, attributes, and the types of inputs, without the weights.

    python benchmarks/targets/node_signatures.py MODEL...       (adds what is new to node_signatures.jsonl)

onnx's node tests have few of the attributes, types and shapes that models have. Each line of the file is a node with a
set of traits that no line before it has; its numbers are drawn anew, but small constants of integers are kept, because
they are axes, shapes and positions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import splitgraph
from splitgraph.dim import Dim
from splitgraph.model.attributes import HOLDING_GRAPHS
from splitgraph.model.value_type import Contents
from splitgraph.options import STRICT
from splitgraph.runtimes.check import examine

FILE = Path(__file__).with_name("node_signatures.jsonl")
Array = np.ndarray[Any, Any]
Signature = Mapping[str, Any]
_MOST_ELEMENTS, _MOST_KEPT, _LONGEST = 200_000, 64, 2000
_MOST_SCALES = 8
# Tried one after the other for every symbol: a model may need a size that fits its constants.
_SIZES = (2, 4, 1, 8)
_DOMAINS = ("", "ai.onnx.ml", "com.microsoft")
_SKIPPED = {"Constant", "Split", "SplitToSequence", "StringSplit", "If", "Loop", "Scan"}


def add(paths: Sequence[Path]) -> int:
    """Add the nodes of models with traits that the file does not have; returns how many."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    known = {tuple(json.loads(line)["key"]) for line in lines}
    before = len(lines)
    for path in paths:
        try:
            signatures = list(_signatures(onnx.load(path, load_external_data=False)))
        except Exception as error:  # a model that cannot be read has nothing to add
            print(f"{path.name} is left out: {error}")
            continue
        for signature in signatures:
            line = json.dumps(signature)
            # The longest are trees with all their numbers.
            if tuple(signature["key"]) not in known and len(line) <= _LONGEST:
                known.add(tuple(signature["key"]))
                lines.append(line)
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines) - before


def _signatures(model: ModelProto) -> Iterator[Signature]:
    examined = examine(model, STRICT)
    for each in examined.nodes:
        node, scope = each.node, each.scope
        detail = examined.walked.graphs.get(scope.path)
        graphs = any(attribute.type in HOLDING_GRAPHS for attribute in node.attribute)
        if detail is None or scope.path or graphs or node.op_type in _SKIPPED or node.domain not in _DOMAINS:
            continue
        if any(attribute.ref_attr_name for attribute in node.attribute):
            continue
        inputs = []
        for name in node.input:
            kind = detail.types.get(name)
            if not name:
                inputs.append(None)
            elif kind is None or kind.kind != "tensor" or kind.dtype is None or kind.shape is None:
                break
            else:
                shape = [
                    dim if isinstance(dim, int) else str(dim) if isinstance(dim, Dim) else "?" for dim in kind.shape
                ]
                inputs.append([kind.dtype, shape, *_elements(detail.constants.get(name))])
        else:
            yield {
                "key": [each.label, *sorted(each.own)],
                "op": node.op_type,
                "domain": node.domain,
                "opset": scope.imports.get(node.domain, 1),
                "inputs": inputs,
                "outputs": [bool(name) for name in node.output],
                "attributes": {attribute.name: _value(attribute) for attribute in node.attribute},
            }


def _elements(known: Contents | TensorProto | None) -> list[Any]:
    """What is known of the elements before the run: small ones of integers, or that they are a constant."""
    if isinstance(known, Contents) and known.integers is not None and len(known.items) <= _MOST_KEPT:
        return [list(known.integers)]
    if isinstance(known, TensorProto):
        small = np.prod(list(known.dims), dtype=int) <= _MOST_KEPT
        if small and known.data_type in (TensorProto.INT64, TensorProto.INT32) and not known.external_data:
            return [[int(item) for item in numpy_helper.to_array(known).ravel()]]
        return ["constant"]
    return []


def _value(attribute: AttributeProto) -> Any:
    if attribute.type == AttributeProto.TENSOR:
        array = numpy_helper.to_array(attribute.t)
        return {"dtype": str(array.dtype), "items": array.ravel().tolist()[:_MOST_KEPT]}
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (list, tuple)) or hasattr(value, "__iter__"):
        return [item.decode() if isinstance(item, bytes) else item for item in value]
    return value


# Models of them -------------------------------------------------------------------------------------------------------


def signature_tests() -> Iterator[tuple[str, str, ModelProto, Mapping[str, Array]]]:
    """Name, operator, model and inputs of each line that an engine can run."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    for number, line in enumerate(lines):
        signature = json.loads(line)
        domain = f"{signature['domain']}." if signature["domain"] else ""
        for size in _SIZES:
            made = _made(signature, size)
            if made is not None:
                yield f"node{number}", f"{domain}{signature['op']}", *made
            if made is None or not any(isinstance(dim, str) for each in signature["inputs"] if each for dim in each[1]):
                break


def _made(signature: Signature, size: int) -> tuple[ModelProto, dict[str, Array]] | None:
    random = np.random.default_rng(7)
    graph = onnx.GraphProto(name="node")
    node, inputs = graph.node.add(op_type=signature["op"], domain=signature["domain"]), dict[str, Array]()
    for position, given in enumerate(signature["inputs"]):
        name = f"x{position}" if given else ""
        node.input.append(name)
        if not given:
            continue
        dtype, shape, *known = given
        sizes = [dim if isinstance(dim, int) else size for dim in shape]
        if np.prod(sizes, dtype=int) > _MOST_ELEMENTS or not hasattr(np, dtype if dtype != "bool" else "bool_"):
            return None
        array = _drawn(random, dtype, sizes)
        if position and len(sizes) == 1 and sizes[0] <= _MOST_SCALES and array.dtype.kind == "f":
            # Scales: drawn ones would also change the batch.
            array = np.ones(sizes, dtype)
        if known and known[0] != "constant":
            array = np.array(known[0], dtype).reshape(sizes)
        if known or not array.size:
            graph.initializer.append(numpy_helper.from_array(array, name))
            continue
        inputs[name] = array
        symbols = [dim if isinstance(dim, int) else f"d{index}" for index, dim in enumerate(shape)]
        graph.input.append(
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), symbols)
        )
    node.output.extend(f"y{index}" if is_there else "" for index, is_there in enumerate(signature["outputs"]))
    node.attribute.extend(_attribute(name, value) for name, value in signature["attributes"].items())
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
    imports = [helper.make_opsetid(signature["domain"], signature["opset"])]
    if signature["domain"]:
        imports.append(helper.make_opsetid("", 17))
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    return splitgraph.infer(model).model, inputs


def _drawn(random: np.random.Generator, dtype: str, sizes: Sequence[int]) -> Array:
    if dtype == "bool":
        return np.asarray(random.integers(0, 2, sizes) > 0)
    if np.dtype(dtype).kind in "iu":
        return random.integers(0, 2, sizes).astype(dtype)
    return random.uniform(0.1, 1, sizes).astype(dtype)


def _attribute(name: str, value: Any) -> AttributeProto:
    if isinstance(value, dict):
        return helper.make_attribute(name, numpy_helper.from_array(np.array(value["items"], value["dtype"])))
    made: NodeProto = helper.make_node("_", [], [], **{name: value})
    return made.attribute[0]


if __name__ == "__main__":
    print(f"{add([Path(each) for each in sys.argv[1:]])} nodes are new")
