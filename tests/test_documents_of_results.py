"""The documents of results: what the commands print with --json, by the published schemas, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_schemas import wrong

import splitgraph

MODELS = Path(__file__).resolve().parent.parent / "models"
UNEVEN, WRONG, IR = MODELS / "split18_num_outputs.onnx", MODELS / "split18_neither.onnx", MODELS / "interval_split.xml"

Run = Callable[..., tuple[int, str, str]]
# The document of a result, the command that prints the same, and its schema.
DOCUMENTS: dict[str, tuple[Callable[[], dict[str, Any]], list[str], str]] = {
    "infer": (lambda: splitgraph.infer(UNEVEN).document(), ["infer", str(UNEVEN)], "infer"),
    "infer --all": (
        lambda: splitgraph.infer(UNEVEN).document(values=True),
        ["infer", str(UNEVEN), "--all"],
        "infer",
    ),
    "a wrong model": (lambda: splitgraph.infer(WRONG).document(), ["infer", str(WRONG)], "infer"),
    "an IR": (lambda: splitgraph.infer(IR).document(), ["infer", str(IR)], "infer"),
    "downgrade": (
        lambda: splitgraph.downgrade(UNEVEN, 13).document(),
        ["downgrade", str(UNEVEN), "--opset", "13", "--dry-run", "--no-verify"],
        "rewrite",
    ),
    "check": (
        lambda: splitgraph.check(UNEVEN, ["mnn", "openvino@2023.3"]).document(),
        ["check", str(UNEVEN), "--target", "mnn", "--target", "openvino@2023.3"],
        "check",
    ),
    "verify": (
        lambda: splitgraph.verify(UNEVEN, UNEVEN, engine="reference").document(),
        ["verify", str(UNEVEN), str(UNEVEN), "--engine", "reference"],
        "verify",
    ),
}


@pytest.mark.parametrize(("made", "command", "schema"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_is_what_the_command_prints(
    made: Callable[[], dict[str, Any]], command: list[str], schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from splitgraph.cli import main

    document = made()
    assert wrong(document, schema) == []
    capsys.readouterr()
    main([*command, "--json"])
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(document))


def test_a_rewrite_that_was_saved(tmp_path: Path) -> None:
    rewrite = splitgraph.downgrade(UNEVEN, 13)
    document = rewrite.document(tmp_path / "out.onnx")
    assert wrong(document, "rewrite") == []
    assert (document["ok"], document["output"], "dry_run" in document) == (True, str(tmp_path / "out.onnx"), False)


def test_a_model_in_memory_has_no_file() -> None:
    model = splitgraph.load(UNEVEN)
    assert splitgraph.infer(model).document()["model"] == splitgraph.upgrade(model, 20).document()["model"] == ""


OUTCOMES = {
    "infer": {"sources": [WRONG]},
    "upgrade": {"sources": [MODELS / "split13_equal.onnx"], "opset": 18},
    "downgrade": {"sources": [MODELS / "string_split20.onnx"], "opset": 13},
    "reshape": {"sources": [UNEVEN], "batch": 3},
    "check": {"sources": [UNEVEN], "target": ["mnn", "tract"]},
    "verify": {"sources": [(UNEVEN, UNEVEN)], "engine": "reference"},
}


@pytest.mark.parametrize(("verb", "options"), OUTCOMES.items(), ids=OUTCOMES)
def test_an_outcome_is_read_back(verb: Any, options: dict[str, Any]) -> None:
    (outcome,) = splitgraph.map_models(verb, jobs=1, **options)
    document = outcome.document()
    assert wrong(document, "outcome") == []
    read = splitgraph.Outcome.from_document(json.loads(json.dumps(document)))
    assert read.document() == document
    # Equal findings may differ in these.
    assert [(each.node, each.operator) for each in read.diagnostics] == [
        (each.node, each.operator) for each in outcome.diagnostics
    ]


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"verb": "infer"},
        {"verb": "sing", "status": "clean"},
        [],
        None,
        splitgraph.infer(WRONG).document(),
        {**next(splitgraph.map_models("infer", [WRONG], jobs=1)).document(), "model": 3},
    ],
)
def test_other_documents_are_refused(document: Any) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="describes no outcome"):
        splitgraph.Outcome.from_document(document)
