"""Names of a megabyte are cut in what people read, with how long they are; programs get them in full."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import splitgraph
from splitgraph.findings.diagnostics import LONGEST_NAME, LONGEST_TEXT, SplitgraphError, abridged, diagnostic
from splitgraph.reports.documents.analyses import analysis_json
from splitgraph.reports.documents.skeletons import document_text
from splitgraph.reports.pages import analysis_page, blockers_page
from splitgraph.reports.text import plain_text

LENGTH = 1 << 20
CUT = "1,048,5"


def model(**names: str) -> onnx.ModelProto:
    """An invalid split and a node of an unknown operator. names: in place of short ones."""
    held = {name: names.get(name, name) for name in ("node", "x", "part", "other", "dim", "Unknown", "domain")}
    nodes = [
        helper.make_node("Split", [held["x"]], [held["part"], held["other"]], name=held["node"], axis=1, num_outputs=1),
        helper.make_node(held["Unknown"], [held["part"]], ["y"], domain=held["domain"]),
        helper.make_node("Add", [held["part"], held["other"]], ["sum"], name=f"{held['node']} of both"),
    ]
    inputs = [helper.make_tensor_value_info(held["x"], TensorProto.FLOAT, [held["dim"], "width"])]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in (held["other"], "y")]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid(held["domain"], 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.mark.parametrize("letters", ["n", "n m"])
@pytest.mark.parametrize("which", ["node", "x", "part", "other", "dim", "Unknown", "domain"])
def test_a_name_of_a_megabyte(which: str, letters: str) -> None:
    name = (letters * LENGTH)[:LENGTH].strip()
    made = model(**{which: name})
    analysis = splitgraph.infer(made)
    assert not analysis.ok
    page = plain_text(analysis_page(analysis, "model.onnx", with_values=True))
    # A type with a name in it is a text of several names.
    assert len(page) < 2 * LONGEST_TEXT + 40 * LONGEST_NAME and CUT in page
    assert name in document_text(analysis_json(analysis, "model.onnx", with_values=True))
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.upgrade(made, 21)
    blockers = caught.value.diagnostics
    assert len(str(caught.value)) < 20_000 and len(plain_text(blockers_page("model.onnx", blockers))) < 20_000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("n" * LONGEST_NAME, "n" * LONGEST_NAME),
        ("a" * 250 + "b" * 250 + "c", "a" * 250 + "…" + "b" * 124 + "c (501 characters)"),
    ],
)
def test_what_is_shown_of_a_name(text: str, shown: str) -> None:
    assert abridged(text) == shown


@pytest.mark.parametrize(
    ("message", "length"),
    [
        ("short", 5),
        (f"reads {'n' * LENGTH!r}, which", 430),
        (" ".join(["word"] * 1000), 4999),
        ("n m " * LENGTH, 8000),
    ],
)
def test_messages_of_findings_and_errors_stay_readable(message: str, length: int) -> None:
    found = diagnostic("SG105", message)
    assert abs(len(found.message) - length) <= length / 10
    assert str(SplitgraphError("short")) == "short"
    assert len(str(SplitgraphError(f"reads {'n' * LENGTH}"))) < 500
