"""Checking a model for a target: nothing in the way first, then what is."""

from __future__ import annotations

import onnx
import pytest
from runtimes import models

import splitgraph
from splitgraph.runtimes.target import find_target


@pytest.mark.parametrize(
    ("given", "target"),
    [
        (models.LENGTHS, "mnn"),
        (models.LENGTHS, "tract"),
        (models.EVEN, "mnn"),
        (models.UNEVEN, "onnxruntime"),
        (models.EITHER, "tvm"),
        (models.SEQUENCE, "mnn"),
        (models.WITHOUT_AXIS, "opencv@4"),
    ],
)
def test_nothing_is_in_the_way(given: onnx.ModelProto, target: str) -> None:
    assert [found for found in splitgraph.check(given, target) if found.severity == "error"] == []


@pytest.mark.parametrize(
    ("given", "target", "code", "words"),
    [
        (models.UNEVEN, "mnn", "SG702", "silently computes wrong results of Split-18 with num_outputs that does not"),
        (models.UNEVEN, "tinygrad", "SG702", "cuts 7 into 3, 2, 2"),
        (models.UNEVEN, "openvino@2023.3", "SG701", "OpenVINO 2023.3.0 refuses Split-18 with num_outputs"),
        (models.EITHER, "mnn", "SG702", "num_outputs that may not divide the dimension: "),
        (models.SEQUENCE, "tract", "SG701", "refuses SplitToSequence-11"),
        (models.WITHOUT_AXIS, "opencv", "SG702", "takes 1 for an axis that is left out"),
        (models.ATTRIBUTE, "iree", "SG701", "lengths as an attribute that differ: ignores the lengths"),
        (models.SLICES, "tvm", "SG701", "refuses Slice-1"),
        (models.HALF, "mnn", "SG701", "refuses Split-13 with T=float16"),
        (models.MIXED, "onnx2torch", "SG702", "gives back all parts where only some are outputs"),
        (
            models.RANK_1,
            "opencv@4.14",
            "SG702",
            "Split-13 with a result of rank 1 as an output of the graph: gives tensors of rank 1 with rank 2",
        ),
    ],
)
def test_what_is_in_the_way(given: onnx.ModelProto, target: str, code: str, words: str) -> None:
    findings = splitgraph.check(given, target)
    found = [each for each in findings if each.severity == "error"]
    assert {each.code for each in found} == {code}
    assert any(words in each.message for each in found)
    # What to do is said once, and convert only where it does not refuse.
    assert {each.help for each in found} == {""}
    (advice,) = findings.advice
    told = f"splitgraph convert --target {find_target(target).key}" in advice
    assert told is (findings.after_conversion is not False)


@pytest.mark.parametrize(
    ("opset", "given", "node", "code", "help"),
    [
        (13, "float[2] x, int32[1] s", "y = Reshape(x, s)", "SG302", "Cast the input, or upgrade the model"),
        (18, "float[6] x", "y, z = Split<axis = 0, num_outputs = 3>(x)", "SG209", "Add the missing outputs;"),
    ],
)
def test_what_the_schema_alone_forbids_is_refused_by_onnxruntime(
    opset: int, given: str, node: str, code: str, help: str
) -> None:
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g ({given}) => (float[2] y) {{ {node} }}'
    model = onnx.parser.parse_model(text)
    (found,) = splitgraph.check(model, "onnxruntime")
    assert (found.code, found.severity) == ("SG701", "error")
    assert found.help.startswith(help)
    assert [(each.code, each.severity) for each in splitgraph.check(model, "openvino")] == [(code, "warning")]


FIXED, OPEN = models.HALF, models.model("y0, y1 = Split<axis = 2>(x)", 13, data="float16[N, 7, 8] x")
NOT_KNOWN = models.model("y0 = Relu(x)", 14, data="float16[2, 3] x")


@pytest.mark.parametrize(
    ("given", "target", "expected"),
    [
        (models.LENGTHS, "mnn", ()),
        (models.UNEVEN, "mnn", ("runs after  splitgraph convert --target mnn@3.6.1",)),
        # No form is read, and sizes that are fixed already are no help.
        (FIXED, "mnn", ("convert knows no other form. For other runtimes: splitgraph check --all-targets.",)),
        (OPEN, "mnn", ("convert knows no other form. For other runtimes: splitgraph check --all-targets. "
                       "Fixed sizes may help: splitgraph reshape --input-shape NAME=SIZES.",)),
        # A version that was not measured keeps its name in the commands.
        (models.LENGTHS, "openvino@2025.1",
         ("To find out, where OpenVINO 2025.1 is installed: splitgraph check --target openvino@2025.1 --run",)),
        (models.model("y0 = Relu(x)", 17), "onnxruntime@1.10",
         ("runs after  splitgraph convert --target onnxruntime@1.10",)),
        # What has no runner is run by the user.
        (NOT_KNOWN, "tensorrt",
         ("Run the model in TensorRT 10.15, and compare the results with those of ONNX Runtime.",)),
        # A model with errors of its own is told about these.
        (models.model("y0, y1 = Split<axis = 5, num_outputs = 2>(x)"), "mnn", ()),
    ],
)  # fmt: skip
def test_one_line_says_what_to_do(given: onnx.ModelProto, target: str, expected: tuple[str, ...]) -> None:
    assert splitgraph.check(given, target).advice == expected


@pytest.mark.parametrize(("given", "fixed"), [(FIXED, False), (OPEN, True)])
def test_only_open_sizes_are_to_be_fixed(given: onnx.ModelProto, fixed: bool) -> None:
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.convert(given, target="mnn")
    assert ("fixed sizes" in caught.value.diagnostics[-1].help) is fixed


def test_what_to_do_about_many_blockers_is_said_once() -> None:
    two = models.model("y0, y1 = Split<axis = 2>(x) y2, y3 = Split<axis = 2>(y0)", 13, data="float16[2, 7, 8] x")
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.convert(two, target="mnn")
    advised = ["change the model" in each.help.lower() for each in caught.value.diagnostics]
    assert advised == [False, True]


def test_opset_and_ir_version() -> None:
    new = models.model("y0, y1 = Split<axis = 2, num_outputs = 2>(x)", 22, 10)
    texts = [found.message for found in splitgraph.check(new, "onnxruntime@1.15")]
    assert any("reads opsets up to 19; the model has opset 22" in text for text in texts)
    assert any("reads IR versions up to 9; the model has IR version 10" in text for text in texts)


def test_several_targets_and_a_model_that_is_wrong() -> None:
    texts = [found.message for found in splitgraph.check(models.UNEVEN, ["mnn", "onnxruntime", "tinygrad"])]
    assert [text.split()[0] for text in texts] == ["MNN", "tinygrad"]
    wrong = models.model("y0, y1 = Split<axis = 5, num_outputs = 2>(x)")
    assert [found.code for found in splitgraph.check(wrong, ["mnn", "tract"])] == ["SG201"]


@pytest.mark.parametrize("target", ["onnxruntime", "mnn"])
def test_equal_initializers_of_one_name_are_told(target: str) -> None:
    """By every verb, once: they are in no way, but one of them has to go."""
    twice = models.model("y0, y1 = Split<axis = 1>(x, s)", 13, more="<int64[2] s = {3, 4}, int64[2] s = {3, 4}>")
    (found,) = splitgraph.check(twice, target)
    assert (found.code, found.severity, found.location) == ("SG104", "warning", "main")
    rewrites = (
        splitgraph.upgrade(twice, 18),
        splitgraph.convert(twice, "slice"),
        splitgraph.convert(twice, target=target),
        splitgraph.convert(twice, "split", opset=18),
    )
    for rewrite in rewrites:
        assert [each for each in rewrite.diagnostics if each.code == "SG104"] == [found]


@pytest.mark.parametrize(
    ("name", "words"),
    [("trct", "did you mean 'tract'"), ("mnn@1", "known are: mnn@3.6.1"), ("", "there is no target ''")],
)
def test_an_unknown_target(name: str, words: str) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match=words):
        splitgraph.check(models.EVEN, name)


def test_every_target_is_listed() -> None:
    known = splitgraph.targets()
    assert known["mnn"].version == "3.6.1"
    assert {"onnxruntime", "openvino", "opencv", "tvm", "ncnn"} <= set(known)
    assert find_target("opencv@4").version == "4.14.0"
    assert find_target("openvino@2023.3").version == "2023.3.0"
    assert find_target("onnxruntime@1.15").version == "1.15.1"
