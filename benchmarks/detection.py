"""What follows a detector, as exported: for each class the boxes above a threshold, the best of these, and those that
do not overlap; then the best of all classes.
"""

from __future__ import annotations

import numpy as np
import onnx
from exported_graph import ExportedGraph, declare, make_model
from onnx import TensorProto

_MOST_BEFORE, _MOST_AFTER = 1000, 100


class _Detection(ExportedGraph):
    def decoded(self) -> str:
        """Corners from the anchors and what the network says of them."""
        anchors = [self.slice("anchors", self.constant([i]), self.constant([i + 2]), 1) for i in (0, 2)]
        moved = [self.slice("deltas", self.constant([i]), self.constant([i + 2]), 1) for i in (0, 2)]
        centre = self.node("Add", [self.node("Mul", [moved[0], anchors[1]]), anchors[0]])
        size = self.node("Mul", [self.node("Exp", [moved[1]]), anchors[1]])
        half = self.node("Mul", [size, self.constant(0.5, np.float32)])
        return self.node("Concat", [self.node("Sub", [centre, half]), self.node("Add", [centre, half])], axis=1)

    def best(self, scores: str, most: int) -> tuple[str, str]:
        """The highest scores and their places: `most` of them, or all where there are fewer."""
        both = self.node("Concat", [self.constant([most]), self.size(scores, 0)], axis=0)
        count = self.node("ReduceMin", [both], keepdims=1, axes=[0])
        names = f"best_{len(self.nodes)}", f"places_{len(self.nodes)}"
        self.node("TopK", [scores, count], *names, axis=0, largest=1, sorted=1)
        return names

    def of_class(self, boxes: str, index: int) -> tuple[str, str, str]:
        """Boxes, scores and labels of a class."""
        scores = self.node("Gather", ["scores", self.constant(index)], axis=1)
        above = self.node("Greater", [scores, self.constant(0.05, np.float32)])
        places = self.squeeze(self.node("Transpose", [self.node("NonZero", [above])], perm=[1, 0]), 1)
        boxes, scores = (self.node("Gather", [value, places], axis=0) for value in (boxes, scores))
        scores, places = self.best(scores, _MOST_BEFORE)
        boxes = self.node("Gather", [boxes, places], axis=0)
        limits = [self.constant([_MOST_AFTER]), self.constant([0.5], np.float32), self.constant([0.0], np.float32)]
        stacked = [self.unsqueeze(boxes, 0), self.unsqueeze(self.unsqueeze(scores, 0), 0)]
        chosen = self.node("NonMaxSuppression", [*stacked, *limits])
        kept = self.squeeze(self.slice(chosen, self.constant([2]), self.constant([3]), 1), 1)
        boxes, scores = (self.node("Gather", [value, kept], axis=0) for value in (boxes, scores))
        labels = self.node("Expand", [self.constant(index), self.node("Shape", [scores])])
        return boxes, scores, labels


def detection(classes: int, opset: int = 11) -> onnx.ModelProto:
    """`N` anchors of one image. How many boxes of a class are above the threshold, and how many of these are kept, only
    the values tell: two symbols for each class that nothing expresses through `N`.
    """
    graph = _Detection(opset)
    boxes = graph.decoded()
    found = zip(*(graph.of_class(boxes, index) for index in range(classes)), strict=True)
    together = [graph.node("Concat", list(parts), axis=0) for parts in found]
    scores, places = graph.best(together[1], _MOST_AFTER)
    graph.node("Gather", [together[0], places], "boxes_out", axis=0)
    graph.node("Identity", [scores], "scores_out")
    graph.node("Gather", [together[2], places], "labels_out", axis=0)
    inputs = declare({"anchors": ["N", 4], "deltas": ["N", 4], "scores": ["N", classes]})
    outputs = [*declare({"boxes_out": ["kept", 4], "scores_out": ["kept"]})]
    return make_model(graph.nodes, inputs, outputs + declare({"labels_out": ["kept"]}, TensorProto.INT64), (), opset)
