"""The JSON documents."""

from __future__ import annotations

import json

import pytest
from obligation_texts import obligation_of

import splitgraph
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.model.value_type import UNKNOWN, ValueType, sequence, tensor
from splitgraph.reports.documents.analyses import analysis_json
from splitgraph.reports.documents.comparisons import verification_json
from splitgraph.reports.documents.parts import type_json
from splitgraph.reports.documents.rewrites import rewrite_json
from splitgraph.reports.documents.skeletons import document_text, failed_document
from splitgraph.verification.verification import Difference

from .results import SPLIT_CHANGE, dims, make_analysis, make_rewrite, make_split, make_verification

# What findings have that were not made for a node, a runtime or a conversion.
NO_NODE = {"node": None, "operator": None, "target": None, "blocking_opset": None}


def test_analysis_json_is_the_contract() -> None:
    outputs = [("a", tensor("float32", dims("N", 3))), ("", tensor("float32", dims("N", 3)))]
    found = Diagnostic("SG203", "warning", "...", "main/s", "help")
    analysis = make_analysis(
        make_split(outputs=outputs, obligations=["N >= 2"]),
        diagnostics=[found],
        graphs={"main": {"y": tensor("float32", dims("N", 3))}},
        required_by={obligation_of("N >= 2"): ("main/s",)},
        assumed_by={obligation_of("N >= 1"): "main/a"},
        accepted=(Diagnostic("SG302", "error", "...", "main/t", "fix"),),
    )
    expected = {
        "splitgraph": splitgraph.__version__,
        "model": "model.onnx",
        "opset": {"": 18},
        "ok": True,
        "inputs": {},
        "outputs": {},
        "splits": [
            {
                "node": "s",
                "op": "Split",
                "domain": "",
                "since_version": 18,
                "location": "main/s",
                "axis": 1,
                "input": {"name": "x", "kind": "tensor", "dtype": "float32", "shape": ["N", 6]},
                "outputs": [
                    {"name": "a", "kind": "tensor", "dtype": "float32", "shape": ["N", 3]},
                    {"name": "", "kind": "tensor", "dtype": "float32", "shape": ["N", 3]},
                ],
                "lengths": [3, 3],
                "obligations": ["N >= 2"],
            }
        ],
        "symbols": {"N": {"min": 0, "max": None}},
        "obligations": ["N >= 2"],
        "assumptions": ["N >= 1"],
        "diagnostics": [
            {"code": "SG203", "severity": "warning", "message": "...", "location": "main/s", "help": "help", **NO_NODE}
        ],
        "accepted": [
            {"code": "SG302", "severity": "error", "message": "...", "location": "main/t", "help": "fix", **NO_NODE}
        ],
        "completeness": {
            "dims": 12,
            "known": 12,
            "symbolic": 4,
            "unknown_rank": 0,
            "nodes": 3,
            "unknown_operators": [],
            "left_open": 0,
            "first_unknown": None,
        },
        "branch_obligations": [],
        "costs": None,
    }
    assert json.loads(document_text(analysis_json(analysis, "model.onnx"))) == expected
    values = {"y": {"kind": "tensor", "dtype": "float32", "shape": ["N", 3]}}
    assert analysis_json(analysis, "model.onnx", with_values=True) == {
        **expected,
        "operators": {},
        "values": values,
        "graphs": {"main": values},
    }


@pytest.mark.parametrize(
    ("value", "document"),
    [
        (UNKNOWN, {"kind": "unknown", "dtype": None, "shape": None}),
        (tensor("int64", ()), {"kind": "tensor", "dtype": "int64", "shape": []}),
        (
            tensor("int64", dims("N//2", None, 2**70)),
            {"kind": "tensor", "dtype": "int64", "shape": ["N//2", None, 2**70]},
        ),
        (sequence("float32", None), {"kind": "sequence", "dtype": "float32", "shape": None}),
        (
            ValueType("optional", "float32", None, sequence("float32", (1,))),
            {
                "kind": "optional",
                "dtype": "float32",
                "shape": None,
                "element": {"kind": "sequence", "dtype": "float32", "shape": [1]},
            },
        ),
    ],
)
def test_type_json(value: ValueType, document: dict) -> None:
    assert type_json(value) == document


def test_rewrite_json_is_the_contract() -> None:
    rewrite = make_rewrite(SPLIT_CHANGE, verification=make_verification())
    comparison = verification_json(make_verification())
    # The version stands once, at the top.
    del comparison["splitgraph"]
    assert rewrite_json(rewrite, "m.onnx", output="out.onnx") == {
        "splitgraph": splitgraph.__version__,
        "ok": True,
        "model": "m.onnx",
        "output": "out.onnx",
        "data_files": [],
        "from": {"": 13},
        "to": {"": 18},
        "changes": [{"location": "main/s", "before": "Split-13", "after": "Split-18", "why": "opset 18"}],
        "diagnostics": [],
        "accepted": [],
        "assumed_defaults": [],
        "verified": True,
        "verification": comparison,
        "ran": None,
    }
    assert rewrite_json(make_rewrite(), "m.onnx", output=None)["ok"] is False
    verdicts = [None, *map(make_verification, ("equal", "different", "not-run"))]
    verified = [rewrite_json(make_rewrite(verification=each), "m", output="o")["verified"] for each in verdicts]
    assert verified == [None, True, False, False]
    assert failed_document("upgrade", "m", ())["verified"] is None


def test_verification_json_is_the_contract() -> None:
    different = make_verification(
        "different",
        first_difference=Difference("y", 0, "0.5 is not 0.6"),
        max_abs_diff=float("inf"),
        max_rel_diff=float("nan"),
    )
    assert json.loads(document_text(verification_json(different))) == {
        "splitgraph": splitgraph.__version__,
        "verdict": "different",
        "engine": "onnxruntime",
        "providers": [],
        "cases": 3,
        "max_abs_diff": "inf",
        "max_rel_diff": "nan",
        "first_difference": {"name": "y", "case": 0, "reason": "0.5 is not 0.6"},
        "proofs": [],
        "said": "different",
        "compared": {},
        "only_ran": [],
        "first_node": None,
        "regions": [],
        "diagnostics": [],
    }


def test_failed_documents_have_the_keys_of_the_good_ones() -> None:
    found = [diagnostic("SG101", "empty file")]
    pairs = [
        (failed_document("infer", "m", found), analysis_json(make_analysis(), "m")),
        (failed_document("convert", "m", found), rewrite_json(make_rewrite(), "m", output="o")),
        (failed_document("verify", "m", found), verification_json(make_verification())),
    ]
    for failed, good in pairs:
        assert list(failed) == list(good)
        assert next(iter(good.items())) == ("splitgraph", splitgraph.__version__)
        assert failed["diagnostics"][0]["code"] == "SG101"


def test_documents_are_ascii_so_that_any_pipe_can_carry_them() -> None:
    text = document_text(analysis_json(make_analysis(make_split("größe\udcff\x1b")), "大.onnx"))
    assert text.isascii()
    assert json.loads(text)["splits"][0]["node"] == "größe\udcff\x1b"
