"""A loop written out, no step of which repeats another one: the cache grows by a row in each."""

from __future__ import annotations

import numpy as np
import onnx
from exported_graph import ExportedGraph, declare, make_model

WIDTH = 4
# Every so many steps, what is attended to has a length of its own.
_OWN_LENGTH = 4


class _Unrolled(ExportedGraph):
    def step(self, cache: str, number: int) -> tuple[str, str]:
        """One more row of `rows` before those of the cache: the cache, and what is made of it, in 22 nodes or 25."""
        count = self.constant([number])
        row = self.node("Slice", ["rows", count, self.node("Add", [count, "one"]), "axis", "one"])
        cache = self.node("Concat", [row, cache], axis=1)
        length = self.node("Gather", [self.node("Shape", [cache]), "one"], axis=0)
        keys = self.node("Transpose", [self.node("MatMul", [cache, "weight"])], perm=[0, 2, 1])
        weights = self.node("Softmax", [self.node("MatMul", [cache, keys])], axis=2)
        # A window of another width in each step, and as many elements as before.
        sizes = {"kernel_shape": [2 * number + 1], "pads": [number, number], "strides": [1]}
        weights = self.node("AveragePool", [weights], count_include_pad=1, **sizes)
        rows = self.node("Reshape", [weights, self.node("Concat", ["minus_one", length], axis=0)])
        shape = self.node("Concat", ["minus_one", length, length], axis=0)
        weights = self.node("Sqrt", [self.node("Reshape", [rows, shape])])
        value = self.node("Add", [self.node("MatMul", [weights, cache]), cache])
        if number % _OWN_LENGTH == 0:
            memory = f"memory_{number}"
            scores = self.node("MatMul", [value, self.node("Transpose", [memory], perm=[0, 2, 1])])
            value = self.node("MatMul", [scores, memory])
        # The first rows, as many as there were steps, go behind the others.
        lengths = self.node("Concat", [count, self.node("Sub", [length, count])], axis=0)
        parts = [f"first_{number}", f"rest_{number}"]
        self.node("Split", [value, lengths], *parts, axis=1)
        return cache, self.node("Concat", parts[::-1], axis=1)


def unrolled(nodes: int) -> onnx.ModelProto:
    """About as many nodes. A prefix of `P` rows and batch `B`; a quarter of the steps has a symbol of its own."""
    graph, given, cache, made = _Unrolled(13), {"prefix": ["B", "P", WIDTH]}, "prefix", list[str]()
    while len(graph.nodes) < nodes:
        number = len(made) + 1
        if number % _OWN_LENGTH == 0:
            given[f"memory_{number}"] = ["B", f"S{number}", WIDTH]
        cache, value = graph.step(cache, number)
        made.append(value)
    graph.node("Concat", made, "made", axis=1)
    given["rows"] = ["B", len(made) + 1, WIDTH]
    graph.weight("weight", np.eye(WIDTH, dtype=np.float32))
    for name, value in {"axis": 1, "one": 1, "minus_one": -1}.items():
        graph.weight(name, np.array([value], np.int64))
    return make_model(graph.nodes, declare(given), declare({"made": ["B", None, WIDTH]}), graph.weights, 13)
