"""What a notebook shows of a result: one short line, however large the model is; and dimensions with values."""

from __future__ import annotations

from pathlib import Path

import pytest

import splitgraph
from splitgraph.findings.diagnostics import diagnostic

MODEL = Path(__file__).parent.parent / "models" / "gpt2.opset17.onnx"


def test_results_are_one_short_line() -> None:
    analysis = splitgraph.infer(MODEL)
    assert repr(analysis) == "<Analysis: 263 nodes, 2 splits, 493 of 493 dims known, no findings>"
    rewrite = splitgraph.upgrade(MODEL, 18)
    assert repr(rewrite) == "<Rewrite: ai.onnx 17 to ai.onnx 18, 2 changes, not verified, no findings>"
    assert repr(splitgraph.check(MODEL, "mnn")).startswith("<TargetFindings: mnn@")
    assert repr(splitgraph.diff(MODEL, rewrite.model)).startswith("<ModelDifference: 1 parts, 2 nodes, 0 values")
    assert len(repr(splitgraph.verify(MODEL, rewrite.model))) < 120
    (outcome,) = splitgraph.map_models("infer", [MODEL], jobs=1)
    assert repr(outcome) == f"<Outcome: infer {MODEL}: clean, no findings>"


def test_a_split_is_one_short_line() -> None:
    (split, _) = splitgraph.infer(MODEL).splits
    assert repr(split) == "<SplitReport: main//h.0/attn/Split, Split-13 on axis 2, 3 outputs>"


def test_a_target_and_a_finding_are_one_short_line() -> None:
    for target in splitgraph.targets().values():
        limit = "" if target.newest_opset is None else f", up to opset {target.newest_opset}"
        assert repr(target) == f"<Target: {target.key}{limit}>"
    found = diagnostic("SG203", "lengths 3, 4 are not 8", "main/split")
    assert repr(found) == "<Diagnostic: error SG203 at main/split: lengths 3, 4 are not 8>"
    assert len(repr(diagnostic("SG203", "word " * 1000, "main/" + "name" * 1000))) < 600


def test_a_change_names_the_version_of_the_operator_that_was_there() -> None:
    changes = splitgraph.upgrade(MODEL.with_name("gpt2.opset11.onnx"), 18).changes
    assert {(change.before, change.why) for change in changes} == {
        ("Unsqueeze-11", "axes is an input from opset 13 on"),
        ("ReduceMean-11", "axes is an input from opset 18 on"),
        ("Split-11", "opset 18"),
    }


def test_sizes_mean_the_same_where_nothing_is_written() -> None:
    for sizes in (
        {"bind": {"batch": 2}},
        {"try_sizes": {"batch": 2}},
        {"bind": {"batch": 9}, "try_sizes": {"batch": 2}},
    ):
        found = splitgraph.verify(MODEL, MODEL, samples=1, engine="reference", **sizes)
        assert found.verdict == "equal"
    with pytest.raises(splitgraph.SplitgraphError, match="nobody"):
        splitgraph.verify(MODEL, MODEL, samples=1, engine="reference", try_sizes={"nobody": 2})


def test_a_url_is_no_missing_file() -> None:
    with pytest.raises(splitgraph.ModelError, match=r"^https://host/a.onnx: is a URL, which the command line"):
        splitgraph.infer("https://host/a.onnx")


def test_findings_are_counted() -> None:
    analysis = splitgraph.infer(MODEL, bind={"batch": 2})
    assert "no findings" in repr(analysis)
    model = splitgraph.load(MODEL)
    model.graph.node[0].op_type = "Nonsense"
    assert "1 warning" in repr(splitgraph.infer(model))


def test_a_dimension_gets_values() -> None:
    batch, length = splitgraph.infer(MODEL).types["input_ids"].shape or ()
    assert isinstance(batch, splitgraph.Dim)
    assert isinstance(length, splitgraph.Dim)
    assert batch.evaluate({"batch": 3}) == 3
    assert batch.evaluate({}) is batch
    assert (2 * length + batch).evaluate({"seq": 5}) == batch + 10  # type: ignore[union-attr]
    assert (length // batch).evaluate({"seq": batch * 4, "batch": batch}) == 4  # type: ignore[union-attr]
    with pytest.raises(ZeroDivisionError):
        (length // batch).evaluate({"batch": 0})  # type: ignore[union-attr]


@pytest.mark.parametrize("ask", [bool, int, lambda dim: dim < 3])
def test_what_a_symbol_cannot_answer_names_evaluate(ask: object) -> None:
    (batch, _) = splitgraph.infer(MODEL).types["input_ids"].shape or (None, None)
    with pytest.raises(TypeError, match="give its symbols numbers with evaluate"):
        ask(batch)  # type: ignore[operator]
