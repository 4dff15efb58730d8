"""The report of a split with an error: axis and lengths as written, and no output type that is not known."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from onnx import parser

import splitgraph
from splitgraph.reports.documents.analyses import analysis_json
from splitgraph.reports.html.split_svg import split_svg

# Opset, inputs, node, initializer; the code of the error; axis and lengths of the report.
Case = tuple[int, str, str, str, str, int | None, tuple[int | None, ...]]
NODE = "a, b = Split"
CASES: dict[str, Case] = {
    "lengths that do not sum": (17, "float[6] x", f"{NODE}<axis=-1>(x, s)", "int64[2] s = {2,5}", "SG204", 0, (2, 5)),
    "an axis out of range": (17, "float[6,3] x", f"{NODE}<axis=2>(x, s)", "int64[2] s = {2,4}", "SG201", 2, (2, 4)),
    "a scalar": (17, "float x", f"{NODE}<axis=0>(x, s)", "int64[2] s = {2,4}", "SG201", 0, (2, 4)),
    "too many lengths": (17, "float[6] x", f"{NODE}<axis=0>(x, s)", "int64[3] s = {1,2,3}", "SG202", 0, (1, 2, 3)),
    "too many run-time lengths": (17, "float[6] x, int64[3] s", f"{NODE}(x, s)", "", "SG202", 0, (None,) * 3),
    "a negative length": (17, "float[6] x", f"{NODE}(x, s)", "int64[2] s = {-3,9}", "SG205", 0, (-3, 9)),
    "as an attribute": (11, "float[2,6] x", f"{NODE}<axis=-1, split=[2,5]>(x)", "", "SG204", 1, (2, 5)),
    "of Split-2": (2, "float[2,6] x", f"{NODE}<axis=1, split=[2,5]>(x)", "", "SG204", 1, (2, 5)),
    "of Split-1": (1, "float[6] x", f"{NODE}<axis=0>(x, s)", "float[2] s = {2,5}", "SG204", 0, (2, 5)),
    "equal parts that are not": (13, "float[2,7] x", f"{NODE}<axis=1>(x)", "", "SG206", 1, ()),
    "neither": (18, "float[5] x", "a, b, c, d = Split<axis=0>(x)", "", "SG207", 0, ()),
    "both": (18, "float[6] x", f"{NODE}<num_outputs=2>(x, s)", "int64[2] s = {2,4}", "SG208", 0, (2, 4)),
    "outputs that are missing": (18, "float[5] x", f"{NODE}<num_outputs=4>(x)", "", "SG209", 0, (2, 2, None, None)),
    "of a dynamic dimension": (18, "float[N] x", f"{NODE}<num_outputs=1>(x)", "", "SG209", 0, (None,)),
    "of no tensor": (18, "seq(float) q", f"{NODE}<axis=-1, num_outputs=3>(q)", "", "SG213", -1, (None,) * 3),
    "lengths of a float type": (13, "float[6] x", f"{NODE}(x, s)", "float[2] s = {2,4}", "SG211", 0, (2, 4)),
    "an attribute of the version before": (13, "float[6] x", f"{NODE}<split=[2,4]>(x)", "", "SG212", 0, (2, 4)),
    "an input of a later version": (11, "float[6] x", f"{NODE}(x, s)", "int64[2] s = {2,4}", "SG212", 0, (2, 4)),
    "of a sequence": (11, "float[6] x", "a = SplitToSequence(x, s)", "int64[2] s = {2,5}", "SG204", 0, (2, 5)),
    "a chunk size": (11, "float[6] x", "a = SplitToSequence<axis=1>(x, s)", "int64 s = {2}", "SG201", 1, ()),
}


@pytest.mark.parametrize("name", CASES)
def test_axis_and_lengths_are_shown_as_written(name: str) -> None:
    opset, inputs, node, initializer, code, axis, lengths = CASES[name]
    output = "seq(float) a" if "Sequence" in node else "float[r] a"
    header = f'<ir_version: 8, opset_import: ["": {opset}]>'
    analysis = splitgraph.infer(parser.parse_model(f"{header} g ({inputs}) => ({output}) <{initializer}> {{ {node} }}"))
    assert code in {found.code for found in analysis.diagnostics if found.severity == "error"}
    (split,) = analysis.splits
    assert (split.axis, split.lengths) == (axis, lengths)
    assert all(value.shape is None for _, value in split.outputs)
    assert analysis_json(analysis, "m")["splits"][0]["lengths"] == list(lengths)


def ir(folder: Path, op: str, data: str, numbers: list[int], outputs: int) -> Path:
    """An IR whose only split has the axis as its first number, and the other numbers, if any, as its lengths."""
    values = [("a", [], numbers[:1]), *([("s", [len(numbers) - 1], numbers[1:])] if numbers[1:] else [])]
    dims, offset = "<dim>2</dim><dim>6</dim>", 0
    layers = '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2,6" element_type="f32"/>'
    layers += f'<output><port id="0" precision="FP32">{dims}</port></output></layer>'
    ports, edges = f'<port id="0" precision="FP32">{dims}</port>', '<edge from-layer="0" from-port="0" to-layer="9" '
    edges += 'to-port="0"/>'
    for index, (name, shape, held) in enumerate(values, 1):
        port = "".join(f"<dim>{dim}</dim>" for dim in shape)
        layers += f'<layer id="{index}" name="{name}" type="Const" version="opset1"><data element_type="i64" '
        layers += f'shape="{",".join(map(str, shape))}" offset="{offset}" size="{8 * len(held)}"/>'
        layers += f'<output><port id="0" precision="I64">{port}</port></output></layer>'
        ports += f'<port id="{index}" precision="I64">{port}</port>'
        edges += f'<edge from-layer="{index}" from-port="0" to-layer="9" to-port="{index}"/>'
        offset += 8 * len(held)
    given = "".join(f'<port id="{5 + part}" precision="FP32">{dims}</port>' for part in range(outputs))
    layers += f'<layer id="9" name="v" type="{op}" version="opset1">{data}<input>{ports}</input>'
    layers += f"<output>{given}</output></layer>"
    path = folder / "m.xml"
    text = f'<net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
    path.write_text(f'<?xml version="1.0"?>{text}')
    path.with_suffix(".bin").write_bytes(struct.pack(f"<{len(numbers)}q", *numbers))
    return path


IRS: dict[str, tuple[str, str, list[int], int, str, int, tuple[int | None, ...]]] = {
    "lengths that do not sum": ("VariadicSplit", "", [-1, 2, 5], 2, "SG204", 1, (2, 5)),
    "two rests": ("VariadicSplit", "", [1, -1, -1, 4], 3, "SG216", 1, (-1, -1, 4)),
    "a rest below 0": ("VariadicSplit", "", [1, 7, -1], 2, "SG204", 1, (7, -1)),
    "an axis out of range": ("VariadicSplit", "", [4, 2, 4], 2, "SG201", 4, (2, 4)),
    "num_splits that does not divide": ("Split", '<data num_splits="4"/>', [1], 4, "SG206", 1, (None,) * 4),
    "num_splits of another number": ("Split", '<data num_splits="3"/>', [1], 2, "SG209", 1, (2, 2, 2)),
}


@pytest.mark.parametrize("name", IRS)
def test_of_an_ir(name: str, tmp_path: Path) -> None:
    op, data, numbers, outputs, code, axis, lengths = IRS[name]
    analysis = splitgraph.infer(str(ir(tmp_path, op, data, numbers, outputs)))
    assert code in {found.code for found in analysis.diagnostics if found.severity == "error"}
    (split,) = analysis.splits
    assert (split.axis, split.lengths) == (axis, lengths)
    assert "-1 (-1)" not in split_svg(analysis, split)


def test_a_body_that_is_called_twice_names_each_dimension_of_its_call() -> None:
    """The lengths that are shown are those of the call, though the body is walked once for equal calls."""
    text = """<ir_version: 8, opset_import: ["": 17, "local": 1]> g (float[N,6] x, float[M,6] y)
        => (float[p] a, float[q] b)
        { a = local.f (x) b = local.f (y) }
        <opset_import: ["": 17], domain: "local"> f (x) => (a) {
            shape = Shape <start = 0, end = 1> (x) lengths = Concat <axis = 0> (shape, shape)
            a, rest = Split <axis = 2> (x, lengths) }"""
    analysis = splitgraph.infer(parser.parse_model(text))
    assert [[str(each) for each in split.lengths] for split in analysis.splits] == [["N", "N"], ["M", "M"]]


def test_a_valid_split_shows_its_parts_as_before() -> None:
    header = '<ir_version: 8, opset_import: ["": 18]>'
    model = parser.parse_model(
        f"{header} g (float[N] x) => (float[p] a) {{ a, b = Split <axis = -1, num_outputs = 2>(x) }}"
    )
    (split,) = splitgraph.infer(model).splits
    assert (split.axis, [str(each) for each in split.lengths]) == (0, ["(N + 1)//2", "N//2"])
