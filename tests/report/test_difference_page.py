"""The page and the document of `diff`."""

from __future__ import annotations

import pytest

import splitgraph
from splitgraph.differences import ModelDifference, NodeDifference, NodeForm, PartDifference, ValueDifference
from splitgraph.findings.diagnostics import diagnostic
from splitgraph.model.value_type import tensor
from splitgraph.reports.differences import difference_blocks, difference_page
from splitgraph.reports.documents.comparisons import difference_document
from splitgraph.reports.documents.skeletons import failed_document
from splitgraph.reports.text import plain_text


def form(operator: str, name: str = "s", **given: object) -> NodeForm:
    held = {"inputs": ("x",), "outputs": ("y",), "attributes": {}, **given}
    return NodeForm(f"main/{name}", name, operator, operator.startswith("Split-"), **held)


def changed(before: NodeForm, after: NodeForm, *aspects: str, **given: object) -> NodeDifference:
    return NodeDifference(after.location, "changed", before, after, aspects, **given)


def page(*nodes: NodeDifference, with_all: bool = False, **given: object) -> list[str]:
    found = ModelDifference(nodes=nodes, before_opset={"": 11}, after_opset={"": 18}, after_nodes=9, **given)
    return plain_text(difference_page(found, "a.onnx", "b.onnx", with_all=with_all)).splitlines()


RELU = changed(form("Relu-6", "r"), form("Relu-14", "r"), "version")
RENAMED = changed(form("Relu-6", "r"), form("Relu-6", "q"), "name")
SPLIT = changed(
    form("Split-11", attributes={"axis": "1", "split": "[3, 4]"}),
    form("Split-18", attributes={"axis": "1", "num_outputs": "2"}),
    "version", "attributes", attributes=("split", "num_outputs"),
)  # fmt: skip
ADDED = NodeDifference("main/t", "added", None, form("Slice-13", "t"), others=("main/s",))
REMOVED = NodeDifference("main/c", "removed", form("Constant-13", "c", inputs=()), None)


def test_nothing_differs() -> None:
    assert page() == ["a.onnx → b.onnx · opset 11 → 18 · no difference in 9 nodes"]
    assert difference_blocks(ModelDifference()) == []


@pytest.mark.parametrize(
    ("nodes", "phrase"),
    [
        ((SPLIT,), "1 split changed"),
        ((SPLIT, SPLIT, changed(form("Relu-6"), form("Abs-6"), "operator")), "2 splits and 1 other node changed"),
        ((ADDED, ADDED, REMOVED), "2 nodes added, 1 node removed"),
        ((RELU, RENAMED), "1 node only with other names or notes, 1 node only of another operator version"),
    ],
)
def test_the_first_line(nodes: tuple[NodeDifference, ...], phrase: str) -> None:
    assert page(*nodes)[0] == f"a.onnx → b.onnx · opset 11 → 18 · {phrase}"


def test_the_table_of_nodes() -> None:
    assert page(RELU, ADDED, REMOVED, SPLIT)[2:] == [
        "  node  operator             what",
        "  s     Split-11 → Split-18  split [3, 4] → num_outputs 2",
        "  t     + Slice-13           replaces s",
        "  c     - Constant-13        – → y",
        "",
        "  1 node only of another operator version; --all shows them",
    ]
    # With all of them in their order.
    assert [text.split()[0] for text in page(RELU, ADDED, REMOVED, SPLIT, with_all=True)[3:]] == ["r", "t", "c", "s"]


WHAT = [
    (changed(form("A-1", attributes={"k": "1"}), form("A-1", attributes={"k": "2"}), "attributes", attributes=("k",)),
     ["k 1 → 2"]),
    (changed(form("A-1", attributes={"k": "1"}), form("A-1", attributes={"k": "1"}), "attributes", attributes=("k",)),
     ["k: other elements"]),
    (changed(form("A-1", attributes={"k": "1"}), form("A-1"), "attributes", attributes=("k",)), ["k 1 removed"]),
    (changed(form("A-1"), form("A-1", attributes={"k": "1"}), "attributes", attributes=("k",)), ["k 1 added"]),
    (changed(form("A-1"), form("A-1", inputs=("x", "l")), "inputs", inputs=(1,)), ["input 1 added: l = 3, 4"]),
    (changed(form("A-1", inputs=("x", "w")), form("A-1"), "inputs", inputs=(1,)), ["input 1 removed: w"]),
    (changed(form("A-1"), form("A-1", inputs=("z",)), "inputs", inputs=(0,)), ["input 0: x → z"]),
    (changed(form("A-1"), form("A-1"), "inputs", inputs=(0,)), ["input 0: x is another value"]),
    (changed(form("A-1"), form("A-1", outputs=("y", "z")), "outputs"), ["output 1 added: z"]),
    (changed(form("A-1"), form("A-1"), "outputs", others=("main/t", "main/u")), ["other outputs come from t, u"]),
    (changed(form("A-1", "o"), form("A-1"), "name"), ["named 'o' before"]),
    (changed(form("A-1", ""), form("A-1"), "name"), ["without a name before"]),
    (changed(form("A-1"), form("A-1"), "metadata"), ["other metadata"]),
    (NodeDifference("main/s", "removed", form("A-1"), None, others=("main/t",)), ["replaced by t"]),
    (NodeDifference("main/s", "added", None, form("A-1")), ["x → y"]),
    (changed(form("A-1"), form("A-1", outputs=tuple("yabcde")), "outputs"),
     ["output 1 added: a", "output 2 added: b", "output 3 added: c", "… and 2 more"]),
]  # fmt: skip


@pytest.mark.parametrize(("node", "lines"), WHAT)
def test_what_is_said_of_a_node(node: NodeDifference, lines: list[str]) -> None:
    added = PartDifference("initializer", "main", "l", "added", None, "int64[2] = 3, 4")
    table = page(node, parts=(added,))[2:]
    column = table[0].index("what")
    assert [text[column:] for text in table[1 : 1 + len(lines)]] == lines


def test_long_texts_are_cut() -> None:
    node = NodeDifference("main/s", "added", None, form("Concat-13", inputs=tuple(map(str, range(9999)))))
    short, full = ("\n".join(page(node, with_all=with_all)) for with_all in (False, True))
    assert len(short) < 1000 < 9000 < len(full)


def test_long_lists_are_cut() -> None:
    nodes = [changed(form("A-1", f"n{index}"), form(f"B-{index}", f"n{index}"), "operator") for index in range(40)]
    assert page(*nodes[:21])[-1].split() == ["n20", "A-1", "→", "B-20"]
    assert page(*nodes, SPLIT)[3].split()[0] == "s"
    assert page(*nodes)[-1] == "  … and 20 more; --all shows them"
    assert page(*nodes, with_all=True)[-1].split()[0] == "n39"


def test_more_nodes_than_are_shown_are_grouped() -> None:
    nodes = [changed(form("A-1", f"n{index}"), form("B-1", f"n{index}"), "operator") for index in range(21)]
    assert len(page(*nodes)) == 3 + 21
    added = NodeDifference("main/c", "added", None, form("Constant-13", "c", outputs=("l",)))
    reader = changed(form("C-1", "r"), form("C-1", "r", inputs=("x", "l")), "inputs", inputs=(1,))
    assert page(*nodes, SPLIT, added, reader)[2:] == [
        "  node            operator             what",
        "  s               Split-11 → Split-18  split [3, 4] → num_outputs 2",
        "  n0 and 20 more  A-1 → B-1",
        "  r               C-1                  input 1 added: l",
        "                                       with Constant-13",
    ]
    assert len(page(*nodes, SPLIT, added, reader, with_all=True)) == 3 + 24


def test_parts_values_and_findings() -> None:
    text = "m" * 80
    parts = (
        PartDifference("opset", "", "", "changed", "11", "18"),
        PartDifference("opset", "mine::F", "", "changed", "11", "18"),
        PartDifference("input", "main", "x", "changed", "float32[N]", "float32[2]"),
        PartDifference("initializer", "main", "w", "changed", "float32[9]", "float32[9]"),
        PartDifference("metadata", "", "k", "added", None, f"a {text}"),
    )
    one, two = tensor("float32", [1]), tensor("float32", [2])
    values = (
        ValueDifference("main", "x", "changed", one, two),
        ValueDifference("main", "v", "changed", one, two, "u"),
        ValueDifference("main/If#0/then_branch", "a", "changed", one, two),
        ValueDifference("main", "n", "added", None, one),
    )
    found = diagnostic("SG302", "wrong", "main/s", help="")
    given = {"parts": parts, "values": values, "new_findings": (found,), "gone_findings": (found,)}
    assert page(**given) == [
        "a.onnx → b.onnx · opset 11 → 18 · all 9 nodes are the same",
        "",
        "  part   name  before      after",
        "  input  x     float32[N]  float32[2]",
        "",
        "  part         name              before      after",
        "  opset        mine::F: ai.onnx  11          18",
        "  initializer  w                 float32[9]  other elements",
        "  metadata     k                 –           a…",
        "",
        "  value                before      after",
        "  u → v                float32[1]  float32[2]",
        "  If#0/then_branch: a  float32[1]  float32[2]",
        "",
        "  1 value of added and removed nodes; --all shows them",
        "",
        "new findings",
        "  SG302  main/s  wrong",
        "",
        "findings that are gone",
        "  SG302  main/s  wrong",
    ]
    full = "\n".join(page(**given, with_all=True))
    for told in (text, "  opset        ai.onnx", "  n ", "  x      "):
        assert told in full


def test_hostile_names_are_written_as_escapes() -> None:
    name = "\x1b[2J"
    part = PartDifference("metadata", "", name, "added", None, name)
    node = changed(form("A-1", name), form("B-1", name, inputs=(name,)), "operator", "inputs", inputs=(0,))
    text = "\n".join(page(node, parts=(part,)))
    assert "\x1b" not in text
    assert text.count(r"\x1b[2J") == 4


def test_the_document() -> None:
    value = ValueDifference("main", "v", "changed", tensor("float32", [1]), tensor("float32", [2]), "u")
    found = ModelDifference(
        nodes=(SPLIT,), values=(value,), before_opset={"": 11}, after_opset={"": 18}, before_nodes=1
    )
    document = difference_document(found, "a.onnx", "b.onnx")
    assert list(document) == list(failed_document("diff", "", []))
    assert (document["splitgraph"], document["same"]) == (splitgraph.__version__, False)
    assert document["before"] == {"model": "a.onnx", "opset": {"": 11}, "nodes": 1}
    (node,) = document["nodes"]
    assert (node["aspects"], node["before"]["operator"]) == (["version", "attributes"], "Split-11")
    assert document["values"][0]["after"] == {"kind": "tensor", "dtype": "float32", "shape": [2]}
    assert difference_document(ModelDifference(), "a", "b")["same"] is True
