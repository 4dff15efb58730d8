"""Pairs of models that an attacker wrote who knew the code, one for each way in which a verdict may be wrong.

`attacks_by_hand.jsonl` has a pair in each line: both models in onnx's textual syntax, their constants, and for pairs
that differ the inputs that show it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from attacks_pairs import Array, Pair

_LINES = Path(__file__).with_suffix(".jsonl")


def pairs_by_hand() -> Iterator[Pair]:
    """Yield the pairs."""
    for line in _LINES.read_text("utf-8").splitlines():
        told = json.loads(line)
        yield _pair(told)


def _pair(told: Mapping[str, Any]) -> Pair:
    constants = {name: _array(*each) for name, each in told.get("constants", {}).items()}
    later = constants | {name: _array(*each) for name, each in told.get("changed", {}).items()}
    functions = told.get("functions", ["", ""])
    models = [
        _model(told["signature"], told[side], told["opsets"][number], functions[number], held)
        for number, (side, held) in enumerate((("before", constants), ("after", later)))
    ]
    given = told.get("witness")
    feed = None if given is None else _feed(models[0], given)
    return Pair(f"by hand/{told['name']}", *models, told["differs"], feed)


def _array(dtype: str, elements: Any) -> Array:
    return np.array(elements, object if dtype == "str" else dtype)


def _model(signature: str, body: str, opset: int, functions: str, constants: Mapping[str, Array]) -> onnx.ModelProto:
    imports = f'"": {opset}, "local": 1, "ai.onnx.ml": 3, "com.microsoft": 1'
    text = (
        f"<ir_version: 10, opset_import: [{imports}]> g ({signature.replace('=>', ') => (')}) {{ {body} }} {functions}"
    )
    model = onnx.parser.parse_model(text)
    used = (name for name in constants if re.search(rf"\b{name}\b", body))
    model.graph.initializer.extend(onnx.numpy_helper.from_array(constants[name], name) for name in used)
    return model


def _feed(model: onnx.ModelProto, given: Mapping[str, Sequence[Any]]) -> Mapping[str, Array] | None:
    """Return inputs of the types that a model declares; None if some are no tensors."""
    types = {each.name: each.type for each in model.graph.input}
    if any(not types[name].HasField("tensor_type") for name in given):
        return None
    numbers = {name: types[name].tensor_type.elem_type for name in given}
    return {name: np.asarray(given[name], onnx.helper.tensor_dtype_to_np_dtype(numbers[name])) for name in given}
