"""A declaration is held against what is known at the end, and infer finds nothing new in what infer wrote.

SPLITGRAPH_OWN=2000 checks so many generated chains in the slow tests.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import onnx
import pytest
from chain_models import model_of_chain
from conformance.exporter_idioms import idiom_model
from hypothesis import given, settings
from hypothesis import strategies as st
from inference.memo_models import almost_repeating, in_functions
from node_tests import node_tests
from random_chains import random_chain

import splitgraph
from splitgraph.findings.diagnostics import Diagnostic

MODELS = sorted((Path(__file__).parents[2] / "models").glob("*.onnx"))
FEW, MANY = 25, int(os.environ.get("SPLITGRAPH_OWN", "300"))
EACH_OF_THE_NODE_TESTS = 25

HEAD = '<ir_version: 8, opset_import: ["": 18]> g '
SPLIT = "a, b = Split <axis = 0> (x, l)"
LENGTHS = "int64[2] l = {3, 4}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}"


def model_of(declared: str, nodes: str, value_info: str) -> onnx.ModelProto:
    """A model of the input x; value_info: the declared types between its nodes."""
    text = f"{HEAD} ({declared}) => (float[?, 2] a) <{LENGTHS}, {value_info}> {{ {nodes} }}"
    return onnx.parser.parse_model(text)


# The input, the nodes, a declaration of an early value: a later node proves it.
PROVED_LATER = {
    "Slice": ("float[N, 2] x", f"y = Slice (x, zero, one) {SPLIT}", "float[1, 2] y"),
    "Tile": ("float[N, 2] x", f"r = Constant <value_ints = [2, 1]> () y = Tile (x, r) {SPLIT}", "float[14, 2] y"),
    "Concat": ("float[N, 2] x", f"y = Concat <axis = 0> (x, x) {SPLIT}", "float[14, 2] y"),
    "Reshape": ("float[N, 2] x", f"m = Constant <value_ints = [-1]> () y = Reshape (x, m) {SPLIT}", "float[14] y"),
    "Split": ("float[N, 2] x", f"y, z = Split <axis = 0, num_outputs = 2> (x) {SPLIT}", "float[4, 2] y, float[3, 2] z"),
    "Relu": ("float[N, 2] x", f"y = Relu (x) {SPLIT}", "float[7, 2] y"),
    "two values": ("float[N, 2] x", f"y = Relu (x) z = Abs (y) {SPLIT}", "float[7, 2] y, float[7, 2] z"),
}
OTHER = "a = Constant <value = float[1, 2] {1.0, 2.0}> ()"
NOT_PROVED = {
    "nothing follows": ("float[N, 2] x", f"y = Slice (x, zero, one) {OTHER}", "float[1, 2] y"),
    "another dimension is split": (
        "float[N, M] x",
        f"y = Slice (x, zero, one) p, q = Split <axis = 1> (x, l) {OTHER}",
        "float[1, M] y",
    ),
    "only a bound follows": (
        "float[N, 2] x",
        f"y = Slice (x, zero, two) p, q = Split <axis = 0, num_outputs = 2> (x) {OTHER}",
        "float[2, 2] y",
    ),
    "the declaration alone": ("float[N, 2] x", f"y = Relu (x) {OTHER}", "float[7, 2] y"),
    "two declarations of one size": (
        "float[N, 2] x",
        f"y = Relu (x) z = Abs (y) {OTHER}",
        "float[7, 2] y, float[7, 2] z",
    ),
}


@pytest.mark.parametrize("name", NOT_PROVED)
def test_a_declaration_for_one_size_only_is_told(name: str) -> None:
    found = splitgraph.infer(model_of(*NOT_PROVED[name])).diagnostics
    assert [(each.code, each.severity) for each in found] == [("SG301", "warning")]


def test_a_declaration_that_a_later_node_contradicts_is_told() -> None:
    model = model_of("float[N, 2] x", f"y = Relu (x) {SPLIT}", "float[8, 2] y")
    assert [each.code for each in splitgraph.infer(model).diagnostics] == ["SG301"]


@pytest.mark.parametrize("name", PROVED_LATER)
def test_a_declaration_that_a_later_node_proves_is_no_finding(name: str) -> None:
    assert not splitgraph.infer(model_of(*PROVED_LATER[name])).diagnostics


def key(found: Diagnostic) -> tuple[str, str, str]:
    return found.code, found.location, re.sub(r"\bunk\d+\b", "unk", found.message)


def new_findings(model: onnx.ModelProto | Path) -> list[Diagnostic]:
    first = splitgraph.infer(model)
    known = set(map(key, first.diagnostics))
    return [found for found in splitgraph.infer(first.model).diagnostics if key(found) not in known]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_nothing_new_in_a_model(path: Path) -> None:
    assert not new_findings(path)


def test_nothing_new_in_node_tests() -> None:
    cases = node_tests()[::EACH_OF_THE_NODE_TESTS]
    assert not [(case.name, found) for case in cases for found in new_findings(case.model)]


def test_a_name_that_is_given_twice_has_no_declaration() -> None:
    model = model_of("float[N, 2] x", f"y = Shape (x) y = Relu (x) {OTHER}", "float[N, 2] z")
    assert "y" not in {value.name for value in splitgraph.infer(model).model.graph.value_info}
    assert not new_findings(model)


@pytest.mark.parametrize("seed", range(8))
def test_nothing_new_in_branches_loops_and_functions(seed: int) -> None:
    assert not new_findings(idiom_model(seed).proto)


@pytest.mark.parametrize("seed", [18, 33])
def test_nothing_new_in_repeated_bodies(seed: int) -> None:
    assert not new_findings(almost_repeating(seed))
    assert not new_findings(in_functions(almost_repeating(seed)))


@pytest.mark.slow
def test_nothing_new_in_all_node_tests() -> None:
    assert not [(case.name, found) for case in node_tests() for found in new_findings(case.model)]


@settings(max_examples=FEW, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 10**6), broadcasts=st.booleans())
def test_nothing_new_in_generated_chains(seed: int, broadcasts: bool) -> None:
    assert not new_findings(model_of_chain(random_chain(seed, broadcasts=broadcasts)[0]))


@pytest.mark.slow
def test_nothing_new_in_many_generated_chains() -> None:
    chains = {seed: random_chain(seed, broadcasts=seed % 2 == 1)[0] for seed in range(MANY)}
    assert not [seed for seed, chain in chains.items() if new_findings(model_of_chain(chain))]
