"""Attributes of another version: ignored and dropped where they change nothing, errors where they might."""

from __future__ import annotations

import pytest
from node_models import infer_nodes, model_of

import splitgraph
from splitgraph.inference.repairs import SUPERFLUOUS

IMAGE = "float[1, 2, 4, 4] x"
BN = "float[1, 2, 4, 4] x, float[2] a, float[2] b, float[2] c, float[2] d"
LSTM = "float[3, 2, 4] x, float[1, 20, 4] w, float[1, 20, 5] r"
RESIZE = "float[1, 2, 4, 4] x, float[0] r, float[4] s"
# Inputs, node and opset; the attribute is dropped by a conversion to the next opset.
DROPPED = [
    (BN, "y = BatchNormalization<spatial = 1>(x, a, b, c, d)", 9, "spatial"),
    (BN, "y = BatchNormalization<spatial = 1>(x, a, b, c, d)", 15, "spatial"),
    (BN, "y = BatchNormalization<is_test = 1>(x, a, b, c, d)", 7, "is_test"),
    (IMAGE, "y = MaxPool<kernel_shape = [2, 2], dilations = [1, 1]>(x)", 8, "dilations"),
    (IMAGE, "y = AveragePool<kernel_shape = [2, 2], dilations = [1, 1]>(x)", 11, "dilations"),
    (IMAGE, "y = LpPool<kernel_shape = [2, 2], dilations = [1, 1]>(x)", 11, "dilations"),
    (RESIZE, "y = Resize<antialias = 0>(x, r, s)", 13, "antialias"),
    (LSTM, "y = LSTM<hidden_size = 5, output_sequence = 0>(x, w, r)", 7, "output_sequence"),
    (
        "float[3, 2, 4] x, float[1, 15, 4] w, float[1, 15, 5] r",
        "y = GRU<output_sequence = 0>(x, w, r)",
        14,
        "output_sequence",
    ),
]
ERRORS = [
    (BN, "y = BatchNormalization<spatial = 0>(x, a, b, c, d)", 9),
    (BN, "y = BatchNormalization<is_test = 0>(x, a, b, c, d)", 9),
    (BN, "y, m, v = BatchNormalization<is_test = 1, training_mode = 1>(x, a, b, c, d)", 15),
    (IMAGE, "y = MaxPool<kernel_shape = [2, 2], dilations = [2, 1]>(x)", 8),
    (IMAGE, "y = AveragePool<kernel_shape = [2, 2], dilations = [0, 0]>(x)", 11),
    (RESIZE, "y = Resize<antialias = 1>(x, r, s)", 13),
    (LSTM, "y = LSTM<hidden_size = 5, output_sequence = 1>(x, w, r)", 7),
    (IMAGE, "y = Relu<dilations = [1, 1]>(x)", 14),
]


@pytest.mark.parametrize(
    ("inputs", "body", "opset", "name"), DROPPED, ids=[f"{row[1][4:9]}-{row[2]} {row[3]}" for row in DROPPED]
)
def test_what_is_dropped(inputs: str, body: str, opset: int, name: str) -> None:
    (found,) = infer_nodes(inputs, body, opset=opset).diagnostics
    assert (found.code, found.severity) == ("SG416", "warning")
    assert name in found.message
    rewrite = splitgraph.upgrade(model_of(inputs, body, opset=opset), opset + 1, verify=False)
    assert name not in {each.name for node in rewrite.model.graph.node for each in node.attribute} or opset + 1 == 12
    assert not splitgraph.infer(rewrite.model).diagnostics


@pytest.mark.parametrize(("inputs", "body", "opset"), ERRORS)
def test_what_might_change_the_meaning(inputs: str, body: str, opset: int) -> None:
    found = infer_nodes(inputs, body, opset=opset).diagnostics
    assert [(each.code, each.severity) for each in found] == [("SG212", "error")]


def test_every_entry_is_of_a_version() -> None:
    from splitgraph.model.schemas import versions_of

    for op, held in SUPERFLUOUS.items():
        for name in held:
            has = [name in version.attributes for version in versions_of("", op)]
            assert any(has)
            assert not all(has)
