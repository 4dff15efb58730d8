"""What blocks a conversion, as data: the node, its operator, the opset in the way, and how far the model can go."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import onnx
import pytest

import splitgraph

MODELS = Path(__file__).parents[2] / "models"
STOP = re.compile(r"Stop at opset (\d+)")


def made(body: str, opset: int, functions: str = "") -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "local": 1]> g {body} {functions}')


UNNAMED = made("(string[N] x) => (string[N] y) { y = StringConcat(x, x) }", 20)
IN_A_FUNCTION = made(
    "(string[N] x) => (string[N] y) { [outer] y = local.Inner(x) }",
    20,
    '<domain: "local", opset_import: ["": 20]> Inner (x) => (y) { [deep] y = StringConcat(x, x) }',
)

# The model, the opset, and of each blocker its node, operator and opset; then what can be reached.
TABLE = [
    (
        MODELS / "string_split20.onnx",
        13,
        [("split", "StringSplit-20", 19), ("mark", "StringConcat-20", 19)],
        20,
    ),
    (MODELS / "split18_num_outputs.onnx", 8, [("split_length", "Split-18", 8)], 9),
    (MODELS / "split_in_scan.onnx", 7, [("scan", "Scan-16", 7)], 8),
    # bfloat16 is in the way before the operator itself is.
    (
        MODELS / "split_to_sequence24_bfloat16.onnx",
        10,
        [("split", "SplitToSequence-24", 10), ("split", "SplitToSequence-24", 23), ("narrow", "Cast-24", 12)],
        24,
    ),
    (MODELS / "split18_num_outputs.onnx", 13, [], 13),
    (MODELS / "split13_equal.onnx", 21, [], 21),
]


@pytest.mark.parametrize(("model", "opset", "blocking", "reachable"), TABLE)
def test_blockers(model: Path, opset: int, blocking: list[tuple[str, str, int]], reachable: int) -> None:
    found = splitgraph.blockers(model, opset)
    assert [(each.node, each.operator, each.blocking_opset) for each in found] == blocking
    assert (found.reachable, bool(found)) == (reachable, bool(blocking))


@pytest.mark.parametrize(("model", "node"), [(UNNAMED, "StringConcat#0"), (IN_A_FUNCTION, "deep")])
def test_nodes_without_names_and_in_functions(model: onnx.ModelProto, node: str) -> None:
    found = splitgraph.blockers(model, 19)
    assert [(each.node, each.operator) for each in found] == [(node, "StringConcat-20")]
    assert found.reachable == 20


@pytest.mark.parametrize(
    ("name", "opset"),
    [("gpt2.opset18", 1), ("prefix_split.opset18.dynamo", 1), ("segment_means.opset13", 5), ("shufflenet.opset11", 1)],
)
def test_fields_say_what_the_advice_says(name: str, opset: int) -> None:
    """The same findings as in the error; the opset beside the one to stop at; and the model goes as far as is said."""
    path = MODELS / f"{name}.onnx"
    found = splitgraph.blockers(path, opset)
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.downgrade(path, opset)
    assert found == refused.value.diagnostics
    assert [each.node for each in found] == [each.node for each in refused.value.diagnostics]
    stops = [STOP.search(each.help) for each in found]
    assert [each.blocking_opset for each in found] == [stop and int(stop[1]) - 1 for stop in stops]
    assert found.reachable is not None
    assert splitgraph.downgrade(path, found.reachable).to_opset[""] == found.reachable
    assert splitgraph.blockers(path, found.reachable - 1)


def test_a_wrong_model_reaches_nothing() -> None:
    cycle = made("(float[2] x) => (float[2] y) { [a] y = Add(x, z) [b] z = Neg(y) }", 18)
    found = splitgraph.blockers(cycle, 13)
    assert ({each.code for each in found}, found.reachable) == ({"SG102"}, None)


def test_an_opset_that_does_not_exist_and_an_ir_are_refused() -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="there is no opset 1000"):
        splitgraph.blockers(MODELS / "split13_equal.onnx", 1000)
    with pytest.raises(splitgraph.SplitgraphError, match="OpenVINO IR has no opset"):
        splitgraph.blockers(MODELS / "interval_split.xml", 13)


def test_copies_keep_what_can_be_reached() -> None:
    found = splitgraph.blockers(MODELS / "string_split20.onnx", 13)
    copied = pickle.loads(pickle.dumps(found))
    assert (copied, copied.reachable) == (found, 20)


def test_an_accepted_error_blocks_no_more() -> None:
    model = made("(float[2] x) => (float[2] y) { [odd] y = Relu<unknown = 1>(x) }", 18)
    assert [each.code for each in splitgraph.blockers(model, 13)] == ["SG212"]
    assert splitgraph.blockers(model, 17, accept=["SG212"]) == ()


def test_a_node_in_the_form_of_another_version_blocks_no_more() -> None:
    model = made("(float[2, 3] x) => (float[2, 1] y) { y = ReduceMean<axes = [1]>(x) }", 18)
    assert [each.code for each in splitgraph.blockers(model, 13)] == ["SG212"]
    assert splitgraph.blockers(model, 13, read_by_form=True) == ()


def test_a_default_that_is_fixed_blocks_no_more() -> None:
    body = "(float[6] x, int64[2] s) => (float[a] y, float[b] z) <int64[2] s = {2, 4}> { y, z = Split(x, s) }"
    model = made(body, 13)
    assert [each.blocking_opset for each in splitgraph.blockers(model, 8)] == [8]
    assert splitgraph.blockers(model, 8, fix_defaults=True) == ()
    assert len(model.graph.input) == 2


@pytest.mark.parametrize("wrong", [{"read_by_form": 1}, {"fix_defaults": "yes"}])
def test_options_that_are_no_truth_values(wrong: dict[str, Any]) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="must be True or False"):
        splitgraph.blockers(UNNAMED, 19, **wrong)


@pytest.mark.parametrize("is_node", [False, True])
def test_a_new_type_in_a_data_file_of_a_model_in_memory(
    is_node: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data file is not looked for in the folder of the process, and the help says what to give."""
    body = "(float[3] x) => (float[3] y) { c = Cast<to = 1>(w) y = Add(x, c) }"
    model = made(body, 13)
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.BFLOAT16, dims=[3], raw_data=bytes(6))
    if is_node:
        model.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["w"], value=tensor))
    else:
        model.graph.initializer.append(tensor)
    path = tmp_path / "model.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="data", size_threshold=0, convert_attribute=True)
    for folder in (tmp_path, tmp_path.parent):
        monkeypatch.chdir(folder)
        found = splitgraph.blockers(onnx.load(path, load_external_data=False), 12)
        assert {each.code for each in found} == {"SG403"}
        assert all(each.help.startswith("The elements of 'w' are in a data file, whose folder") for each in found)
    assert splitgraph.blockers(path, 12) == ()
