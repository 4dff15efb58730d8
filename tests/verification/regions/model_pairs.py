"""Pairs of small models, in onnx's textual syntax, for the tables of this folder."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import onnx

import splitgraph

from ..small_models import parsed


class Pair(NamedTuple):
    """Two models with one signature.

    witness: legal inputs on which the models differ; none for equal models. constants: the initializers of both models;
    each model gets those that its text names. changed: other values for the second model. functions: their text.
    """

    signature: str
    before: str
    after: str
    witness: dict[str, Any] = {}  # noqa: RUF012
    constants: dict[str, Any] = {}  # noqa: RUF012
    changed: dict[str, Any] = {}  # noqa: RUF012
    opset: int = 18
    functions: tuple[str, str] = ("", "")
    opset_after: int = 0

    def models(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        second = self.constants | self.changed
        before = _model(self.signature, self.before, self.functions[0], self.opset, self.constants)
        after = _model(self.signature, self.after, self.functions[1], self.opset_after or self.opset, second)
        return before, after

    def witness_arrays(self) -> dict[str, np.ndarray]:
        """Return the witness as arrays of the types that the models declare."""
        types = {each.name: each.type.tensor_type.elem_type for each in self.models()[0].graph.input}
        dtypes = {name: onnx.helper.tensor_dtype_to_np_dtype(number) for name, number in types.items()}
        return {name: np.asarray(array, dtypes[name]) for name, array in self.witness.items()}


def find_difference(pair: Pair) -> None:
    """Assert that the models of a pair are found to differ."""
    found = splitgraph.verify(*pair.models(), timeout=60)
    assert found.verdict == "different", found
    assert found.first_difference is not None


def show_difference(pair: Pair) -> None:
    """Assert that the witness of a pair shows the difference."""
    found = splitgraph.verify(*pair.models(), inputs=pair.witness_arrays())
    assert found.verdict == "different", found


def _model(signature: str, body: str, functions: str, opset: int, constants: dict[str, Any]) -> onnx.ModelProto:
    used = {name: array for name, array in constants.items() if re.search(rf"\b{name}\b", body)}
    return parsed(signature, body, functions, opset, **used)
