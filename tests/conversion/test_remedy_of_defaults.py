"""Refusals because of a value that is the default of an input: each names --assume-defaults, if that helps."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import splitgraph

FLAG = "--assume-defaults"


def model(opset: int, nodes: str, held: str, data: str = "float[2,3,4,4] x", ir_version: int = 8) -> onnx.ModelProto:
    """held: inputs with a default, as "int64[1] k = {3}, ...", each of which is also listed as an input."""
    listed = ", ".join(each.split(" =")[0].strip() for each in held.split(";"))
    head = f'<ir_version: {ir_version}, opset_import: ["" : {opset}]> g ({data}, {listed}) => (y)'
    return onnx.parser.parse_model(f"{head} <{held.replace(';', ',')}> {{ {nodes} }}")


SCALES = "float[4] s = {1, 1, 2, 2}"
BOUNDS = "int64[1] b = {0}; int64[1] e = {2}; int64[1] d = {1}"
OPEN = "float[N,M] x"
# Each is refused without the option, and converted with it. The last column is the opset.
HELPED = {
    "Upsample": (model(9, 'y = Upsample<mode = "nearest">(x, s)', SCALES), 8),
    "Resize": (model(10, 'y = Resize<mode = "nearest">(x, s)', SCALES), 8),
    "TopK": (model(10, "y, i = TopK<axis = 1>(x, k)", "int64[1] k = {2}", OPEN), 9),
    "Slice": (model(10, "y = Slice(x, b, e, d)", BOUNDS), 8),
    "Reshape": (model(5, "y = Reshape(x, s)", "int64[2] s = {6, 16}"), 4),
    "Pad": (model(13, "y = Pad(x, p)", "int64[4] p = {0, 1, 0, 1}", OPEN), 8),
    "Clip": (model(11, "y = Clip(x, l, h)", "float l = {0}; float h = {6}"), 5),
    "Tile": (model(6, "y = Tile(x, s)", "int64[4] s = {1, 1, 2, 2}"), 5),
    "Unsqueeze": (model(13, "y = Unsqueeze(x, s)", "int64[1] s = {0}"), 8),
    "ReduceSum": (model(13, "y = ReduceSum(x, s)", "int64[1] s = {1}"), 8),
    "ConstantOfShape": (model(9, "y = ConstantOfShape(s)", "int64[1] s = {3}"), 5),
    "Split": (model(13, "y, z = Split<axis = 1>(x, s)", "int64[2] s = {1, 2}"), 8),
    "a value computed from a default": (
        model(10, "o = Add(k, k) y, i = TopK<axis = 1>(x, o)", "int64[1] k = {1}", OPEN), 9,
    ),
    "two defaults, joined": (
        model(6, "c = Concat<axis = 0>(s, t) y = Reshape(x, c)", "int64[1] s = {6}; int64[1] t = {6}", "float[36] x"),
        4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HELPED)
def test_the_refusal_names_the_remedy(name: str) -> None:
    given, opset = HELPED[name]
    with pytest.raises(splitgraph.ConversionError, match=FLAG) as refused:
        splitgraph.downgrade(given, opset)
    (blocker,) = [found for found in refused.value.diagnostics if FLAG in found.help]
    assert "depends on the default of an input, which a caller may replace" in blocker.message
    assert blocker.message in str(refused.value)
    assert splitgraph.downgrade(given, opset, assume_defaults=True).to_opset[""] == opset


GIVEN = "y, i = TopK<axis = 1>(x, k)"
# The option changes nothing about these.
NOT_HELPED = {
    "a default of another value": (model(10, GIVEN, "float[1] w = {1}", "float[N,M] x, int64[1] k"), 9),
    "an operator that is younger": (
        model(11, "y = OneHot(x, d, v)", "int64 d = {3}; float[2] v = {0, 1}", "int64[2] x"),
        8,
    ),
    "another reason at each of both": (model(11, "y = CumSum(x, a)", "int64 a = {1}"), 5),
    "a type, not a value": (model(12, "y = Clip(x, l, h)", "int64 l = {0}; int64 h = {6}", "int64[2,3] x"), 5),
}


@pytest.mark.parametrize("name", NOT_HELPED)
def test_no_remedy_that_does_not_help(name: str) -> None:
    given, opset = NOT_HELPED[name]
    try:
        splitgraph.downgrade(given, opset)
    except splitgraph.ConversionError as refused:
        assert FLAG not in str(refused)
        assert not [found for found in refused.diagnostics if FLAG in found.help]
    else:
        pytest.fail("nothing is refused")
