"""What differs apart from nodes: parts of the models, types of values, findings."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import helper

import splitgraph

from .written import diff, model, named, parts, told

ROOT = Path(__file__).parents[2]
PLAIN = model("(float[N, 6] x, float[6] z) => (float[N, 6] y, float[N, 6] u) { y = Add(x, z) u = Relu(x) }")


def changed(change: Callable[[onnx.ModelProto], object], before: onnx.ModelProto = PLAIN) -> onnx.ModelProto:
    after = copy.deepcopy(before)
    change(after)
    return after


def swap(values: object) -> None:
    entries = [copy.deepcopy(value) for value in values]  # type: ignore[attr-defined]
    del values[:]  # type: ignore[attr-defined]
    values.extend(reversed(entries))  # type: ignore[attr-defined]


def with_weights(text: str) -> onnx.ModelProto:
    return model(f"(float[2] x) => (float[2] y) <{text}> {{ y = Relu(x) }}")


FUNCTION = '<domain: "mine", opset_import: ["": 18]> F'


def with_function(text: str, opset: int = 18) -> onnx.ModelProto:
    function = f'<domain: "mine", opset_import: ["": {opset}]> F {text}'
    return model("(float[2] x) => (y) { y = mine.F(x) }", functions=function)


def with_sparse(*values: float) -> onnx.ModelProto:
    made = model("(float[2] x) => (float[2] y) { y = Relu(x) }")
    held = helper.make_tensor("s", onnx.TensorProto.FLOAT, [len(values)], values)
    indices = helper.make_tensor("i", onnx.TensorProto.INT64, [len(values)], range(len(values)))
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(held, indices, [4]))
    return made


def with_functions(*texts: str) -> onnx.ModelProto:
    """A model with several functions of the same name."""
    made = with_function(texts[0])
    made.functions.extend(with_function(text).functions[0] for text in texts[1:])
    return made


def with_opaque(name: str, *around: str) -> onnx.ModelProto:
    made = model("(float[2] x) => (float[2] y) { y = mine.Op(x) }")
    held = made.graph.input[0].type
    held.Clear()
    for kind in around:
        held = getattr(held, kind).elem_type
    held.opaque_type.domain, held.opaque_type.name = "d", name
    return made


CASES: dict[str, tuple[onnx.ModelProto, onnx.ModelProto, list[tuple[str, str, str, str | None, str | None]]]] = {
    "the opset": (
        PLAIN, changed(lambda made: setattr(made.opset_import[0], "version", 19)),
        [("opset", "", "changed", "18", "19")],
    ),
    "another operator set": (
        PLAIN, changed(lambda made: made.opset_import.add(domain="other", version=3)),
        [("opset", "other", "added", None, "3")],
    ),
    "the IR version": (
        PLAIN, changed(lambda made: setattr(made, "ir_version", 9)),
        [("IR version", "", "changed", "8", "9")],
    ),
    "the producer": (
        PLAIN, changed(lambda made: setattr(made, "producer_name", "me")),
        [("metadata", "producer_name", "added", None, "me")],
    ),
    "metadata": (
        changed(lambda made: made.metadata_props.add(key="k", value="1")),
        changed(lambda made: made.metadata_props.add(key="k", value="2")),
        [("metadata", "k", "changed", "1", "2")],
    ),
    "an input more": (
        PLAIN, changed(lambda made: made.graph.input.append(helper.make_tensor_value_info("w", 7, ["M"]))),
        [("input", "w", "added", None, "int64[M]")],
    ),
    "an output less": (
        PLAIN, changed(lambda made: made.graph.output.pop()),
        [("output", "u", "removed", "float32[N, 6]", None)],
    ),
    "the order of inputs": (
        PLAIN, changed(lambda made: swap(made.graph.input)),
        [("order of inputs", "", "changed", "x, z", "z, x")],
    ),
    "the order of outputs": (
        PLAIN, changed(lambda made: swap(made.graph.output)),
        [("order of outputs", "", "changed", "y, u", "u, y")],
    ),
    "an initializer more": (
        with_weights(""), with_weights("float[2] w = {1, 2}"),
        [("initializer", "w", "added", None, "float32[2] = 1, 2")],
    ),
    "elements": (
        with_weights("float[2] w = {1, 2}"), with_weights("float[2] w = {1, 3}"),
        [("initializer", "w", "changed", "float32[2] = 1, 2", "float32[2] = 1, 3")],
    ),
    "a shape": (
        with_weights("float[2] w = {1, 2}"), with_weights("float[1, 2] w = {1, 2}"),
        [("initializer", "w", "changed", "float32[2] = 1, 2", "float32[1, 2] = 1, 2")],
    ),
    "an element type": (
        with_weights("int32[1] w = {1}"), with_weights("int64[1] w = {1}"),
        [("initializer", "w", "changed", "int32[1] = 1", "int64[1] = 1")],
    ),
    "sparse elements": (
        with_sparse(1, 2), with_sparse(1, 3),
        [("initializer", "s", "changed", "sparse_tensor(float32[4])", "sparse_tensor(float32[4])")],
    ),
    "a function more": (
        model("(float[2] x) => (float[2] y) { y = Relu(x) }"),
        model("(float[2] x) => (float[2] y) { y = Relu(x) }", functions=f"{FUNCTION} (a) => (b) {{ b = Relu(a) }}"),
        [("function", "mine::F", "added", None, "inputs: 1, outputs: 1")],
    ),
    "the opset of a function": (
        with_function("(a) => (b) { b = Relu(a) }"), with_function("(a) => (b) { b = Relu(a) }", opset=17),
        [("opset", "", "changed", "18", "17")],
    ),
    "an attribute of a function": (
        with_function("(a) => (b) { b = Relu(a) }"), with_function("<k>(a) => (b) { b = Relu(a) }"),
        [("function", "attribute k", "added", None, "must be given")],
    ),
    "names in a function, which mean something by their positions": (
        with_function("(a) => (b) { b = Relu(a) }"), with_function("(p) => (q) { q = Relu(p) }"),
        [],
    ),
    "another output of a function": (
        with_function("(a) => (b) { b = Relu(a) c = Abs(a) }"), with_function("(a) => (c) { b = Relu(a) c = Abs(a) }"),
        [("output", "c", "changed", "b", "c")],
    ),
    "an attribute of the second of two functions of one name": (
        with_functions("(a) => (b) { b = Relu(a) }", "(a) => (b) { b = Relu(a) }"),
        with_functions("(a) => (b) { b = Relu(a) }", "<k>(a) => (b) { b = Relu(a) }"),
        [("function", "attribute k", "added", None, "must be given")],
    ),
    "a second function of one name": (
        with_functions("(a) => (b) { b = Relu(a) }"),
        with_functions("(a) => (b) { b = Relu(a) }", "(a) => (b) { b = Relu(a) }"),
        [("function", "mine::F#2", "added", None, "inputs: 1, outputs: 1")],
    ),
    "the same opaque type": (with_opaque("a"), with_opaque("a"), []),
    "another opaque type": (
        with_opaque("a"), with_opaque("b"),
        [("input", "x", "changed", "opaque(d.a)", "opaque(d.b)")],
    ),
    "another opaque type in a sequence": (
        with_opaque("a", "optional_type", "sequence_type"), with_opaque("b", "optional_type", "sequence_type"),
        [("input", "x", "changed", "optional(sequence(opaque(d.a)))", "optional(sequence(opaque(d.b)))")],
    ),
    "an opaque type in place of a tensor": (
        model("(float[2] x) => (float[2] y) { y = mine.Op(x) }"), with_opaque("b"),
        [("input", "x", "changed", "float32[2]", "opaque(d.b)")],
    ),
    "devices": (
        changed(lambda made: made.configuration.add(name="c", num_devices=2)),
        changed(lambda made: made.configuration.add(name="c", num_devices=2, device=["a", "b"])),
        [("metadata", "devices of c", "changed", "2", "2, a, b")],
    ),
    "quantization": (
        PLAIN, changed(lambda made: made.graph.quantization_annotation.add(tensor_name="x")),
        [("quantization", "x", "added", None, "")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_parts_that_differ(case: str) -> None:
    before, after, expected = CASES[case]
    assert parts(diff(before, after)) == expected
    mirrored = {"added": "removed", "removed": "added", "changed": "changed"}
    back = [(part, name, mirrored[kind], two, one) for part, name, kind, one, two in expected]
    found = parts(diff(after, before))
    # What changed has the name that it has in the second model.
    assert [each[:1] + each[2:] for each in found] == [each[:1] + each[2:] for each in back]


def test_training_graphs() -> None:
    after = changed(lambda made: made.training_info.add())
    assert [each.part for each in diff(PLAIN, after).parts] == ["training"]


def values(before: onnx.ModelProto, after: onnx.ModelProto) -> list[tuple[str, str, str, str]]:
    return [(each.kind, each.name, str(each.before), str(each.after)) for each in diff(before, after).values]


def test_values_of_another_type() -> None:
    text = "(float[{}, 6] x) => (a, b) {{ t = Relu(x) a = Shape(t) b = Shape(a) }}"
    before, after = model(text.format("N")), model(text.format("2"))
    expected = [("changed", name, "float32[N, 6]", "float32[2, 6]") for name in "xt"]
    assert values(before, after) == expected
    # The types of a and b are the same on both sides. The input is a part of the model, too.
    assert parts(diff(before, after)) == [("input", "x", "changed", "float32[N, 6]", "float32[2, 6]")]


def test_values_under_another_name() -> None:
    before = named("(float[N, 6] x) => (y) { a = Softmax(x) y = Relu(a) }", "s", "r")
    after = named("(float[M, 6] x) => (y) { b = Softmax(x) y = Relu(b) }", "s", "r")
    by_name = {each.name: each for each in diff(before, after).values}
    assert list(by_name) == ["x", "b", "y"]
    assert (by_name["b"].kind, by_name["b"].old_name, by_name["y"].old_name) == ("changed", "a", "")


def test_values_of_added_and_removed_nodes() -> None:
    before = named("(float[N, 6] x) => (y) { y = Relu(x) }", "r")
    after = named("(float[N, 6] x) => (y) { t = Abs(x) y = Relu(t) }", "a", "r")
    assert values(before, after) == [("added", "t", "None", "float32[N, 6]")]
    assert values(after, before) == [("removed", "t", "float32[N, 6]", "None")]


def test_values_in_a_body() -> None:
    branches = "then_branch = t () => (a) {{ a = Relu(x) }}, else_branch = e () => (b) {{ b = Neg(x) }}"
    text = f"(bool c, float[{{}}] x) => (y) {{{{ y = If(c) <{branches}> }}}}"
    found = diff(model(text.format("4")), model(text.format("5")))
    assert [(each.location, each.name) for each in found.values] == [
        ("main", "x"),
        ("main", "y"),
        ("main/If#0/then_branch", "a"),
        ("main/If#0/else_branch", "b"),
    ]
    assert not found.nodes


def test_findings_of_one_model() -> None:
    right = named("(float[N, 6] x) => (a, b) { a, b = Split<axis = 1, num_outputs = 2>(x) }", "s")
    wrong = named("(float[N, 6] x) => (a, b) { a, b = Split<axis = 2, num_outputs = 2>(x) }", "s")
    found = diff(right, wrong)
    ((new,), gone) = found.new_findings, found.gone_findings
    assert (new.severity, new.location, gone) == ("error", "main/s", ())
    back = diff(wrong, right)
    assert (back.new_findings, back.gone_findings) == ((), (new,))
    # Models with errors are compared all the same.
    assert told(found) == ["changed s: attributes"]
    assert not diff(wrong, wrong)


def test_a_finding_about_the_same_node_is_the_same_whatever_its_words() -> None:
    """The node has another position and version, which its location and the message name."""
    text = "a, b = Split<axis = 2>(x)"
    before = model(f"(float[N, 6] x) => (a, b) {{ {text} }}", opset=11)
    after = model(f"(float[N, 6] x) => (a, b, c) {{ c = Relu(x) {text} }}", opset=13)
    messages = [splitgraph.infer(each).diagnostics for each in (before, after)]
    assert messages[0][0].location != messages[1][0].location
    found = diff(before, after)
    assert (found.new_findings, found.gone_findings) == ((), ())


def test_onnx_and_ir_are_refused() -> None:
    ir, plain = ROOT / "models" / "interval_split.xml", ROOT / "models" / "split13_equal.onnx"
    for before, after, first in ((ir, plain, "OpenVINO IR"), (plain, ir, "ONNX")):
        with pytest.raises(
            splitgraph.SplitgraphError, match=f"the first model is {first}.*convert model.onnx"
        ) as caught:
            splitgraph.diff(before, after)
        assert caught.value.diagnostics[0].code == "SG601"


@pytest.mark.parametrize("source", ["missing.onnx", b"", None])
def test_what_is_no_model_is_refused(source: object) -> None:
    with pytest.raises(splitgraph.ModelError):
        splitgraph.diff(PLAIN, source)


def test_an_ir_and_its_changes() -> None:
    path = ROOT / "models" / "interval_split.xml"
    before, after = splitgraph.load(path), splitgraph.load(path)
    split = next(layer for layer in after.graph.layers if layer.type in ("Split", "VariadicSplit"))
    split.element.set("name", "other")
    after.refresh()
    (node,) = splitgraph.diff(before, after).nodes
    assert (node.aspects, node.is_split, node.before.name, node.after.name) == (
        ("outputs", "name"),
        True,
        split.name,
        "other",
    )
    assert node.after.operator == f"org.openvinotoolkit.{split.type}-1"


def test_a_constant_of_an_ir() -> None:
    path = ROOT / "models" / "interval_split.xml"
    before, after = splitgraph.load(path), splitgraph.load(path)
    layer = [layer for layer in after.graph.layers if layer.type == "Const"][-1]
    layer.element.find("data").set("offset", str(after.append_constant(bytes(8))))
    after.refresh()
    constants = [each for each in splitgraph.diff(before, after).parts if each.part == "initializer"]
    assert [(each.name, each.kind, each.before, each.after) for each in constants] == [
        (layer.name, "changed", "int64[] = 2", "int64[] = 0")
    ]
    assert not splitgraph.diff(after, after)


def test_a_size_that_only_one_model_tells_to_be_that_of_another_value() -> None:
    """A generated symbol that one value has is an unknown size, and shown as such."""
    before = model("(float[?] x) => (a, b) { a = Relu(x) b = Abs(x) }")
    after = model("(float[?] x) => (a, b) { a = mine.Unknown(x) b = Abs(x) }")
    assert [each.name for each in diff(before, after).values] == ["a"]
    assert [each.name for each in diff(after, before).values] == ["a"]


@pytest.mark.parametrize(
    ("versions", "operators"),
    [
        (("extension", "extension"), []),
        (("opset1", "opset13"), ["1", "13"]),
        (("extension", "experimental"), ["extension", "experimental"]),
    ],
)
@pytest.mark.parametrize("kind", ["VariadicSplit", "Gather"])
def test_the_operator_set_of_a_layer(
    kind: str, versions: tuple[str, str], operators: list[str], tmp_path: Path
) -> None:
    loaded = []
    text = (ROOT / "models" / "interval_split.xml").read_text().replace("VariadicSplit", kind)
    shutil.copy(ROOT / "models" / "interval_split.bin", tmp_path / "model.bin")
    for version in versions:
        written = text.replace(f'type="{kind}" version="opset1"', f'type="{kind}" version="{version}"', 1)
        (tmp_path / "model.xml").write_text(written)
        loaded.append(splitgraph.load(tmp_path / "model.xml"))
    nodes = splitgraph.diff(*loaded).nodes
    forms = [form for node in nodes for form in (node.before, node.after) if form is not None]
    assert [form.operator.rpartition("-")[2] for form in forms] == operators
    assert [node.aspects for node in nodes] == [("version",)] * (len(operators) // 2)


@pytest.mark.parametrize("kind", ["Parameter", "Const", "Result"])
def test_the_operator_set_of_a_layer_that_is_no_node(kind: str, tmp_path: Path) -> None:
    text = (ROOT / "models" / "interval_split.xml").read_text()
    changed_text = text.replace(f'type="{kind}" version="opset1"', f'type="{kind}" version="extension"', 1)
    assert changed_text != text
    shutil.copy(ROOT / "models" / "interval_split.bin", tmp_path / "model.bin")
    loaded = []
    for written in (text, changed_text):
        (tmp_path / "model.xml").write_text(written)
        loaded.append(splitgraph.load(tmp_path / "model.xml"))
    (part,) = splitgraph.diff(*loaded).parts
    assert (part.part, part.location, part.name.split()[0]) == ("opset", "main", kind)
    assert (part.kind, part.before, part.after) == ("changed", "opset1", "extension")
