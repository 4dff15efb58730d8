"""Dimensions that a subgraph names as splitgraph names what it does not know are other dimensions than those."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper, parser

import splitgraph
from splitgraph.inference import infer_model

MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[N] x, float[N] z, bool c) => (int64[2, F] both, int64[1, G] y) {
    i = NonZero(x)
    both = Concat <axis = 0> (i, i)
    y = If (c) <
        then_branch = yes () => (int64[1, NAME] u) <int64[1, NAME] t> { t = NonZero(z) u = Neg(t) },
        else_branch = no () => (int64[1, NAME] w) <int64[1, NAME] v> { v = NonZero(z) w = Abs(v) }
    >
}"""


def shown(analysis: splitgraph.Analysis, name: str) -> str:
    """The last dimension of a value of any graph."""
    (known,) = [values[name] for values in [*analysis.graphs.values(), analysis.types] if name in values][:1]
    assert known.shape is not None
    return str(known.shape[-1])


@pytest.mark.parametrize("operator", ["If", "of no known operator"])
@pytest.mark.parametrize("name", ["unk0", "unk1", "unk2", "other"])
def test_a_generated_name_is_never_one_of_a_subgraph(name: str, operator: str) -> None:
    model: onnx.ModelProto = parser.parse_model(MODEL.replace("NAME", name))
    if operator != "If":
        model.opset_import.add(domain="foreign", version=1)
        model.graph.node[2].domain = "foreign"
    analysis = splitgraph.infer(model)
    assert shown(analysis, "i") == shown(analysis, "both")
    assert shown(analysis, "i") != name
    assert {shown(analysis, each) for each in "tuvw"} == {name}
    assert not analysis.diagnostics or operator != "If"


def test_bounds_are_those_of_the_symbol_that_is_shown() -> None:
    """Symbols are numbered anew when they are shown; the bounds once were those of another symbol of that number."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[N] x, float[M] y) => (int64[1, A] alone, float[1, 1, B] p) {
            alone = NonZero (x)
            both = NonZero (y)
            axis = Constant <value_ints: ints = [0]> ()
            row = Unsqueeze (both, axis)
            twice = Cast <to: int = 1> (row)
            p = MaxPool <kernel_shape: ints = [5]> (twice)
        }"""
    )
    for value in model.graph.output:
        value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.INT64, None))
    analysis = infer_model(model)
    assert str(analysis.types["both"]) == "int64[1, unk0]"
    assert analysis.symbols["unk0"] == (4, None)
