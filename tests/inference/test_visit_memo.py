"""The memo of visits and of calls changes nothing but the time: with and without it, everything is the same.

SPLITGRAPH_LAYERS=3000 checks so many generated models in the slow tests, in place of 100.
"""

from __future__ import annotations

import os
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import pytest
from inference.memo_models import WAYS, almost_repeating, in_functions

from splitgraph.inference import infer_model, walk_model
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.memo import Memo
from splitgraph.inference.task import Task
from splitgraph.inference.walk import Walk
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.scopes import MAIN

MODELS = sorted((Path(__file__).parents[2] / "models").glob("*.onnx"))
# Seeds of generated models, of the node tests: in the tests of every day, and in all.
FEW, MANY = 15, int(os.environ.get("SPLITGRAPH_LAYERS", "100"))
PARTS = 4
FEW_NODE_TESTS = 60


@pytest.fixture(autouse=True)
def order_of_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    """Symbols are written in the order of their names, and unk10 stands before unk9: how many were made before would
    show.
    """
    prepare = WalkState.__init__

    def started_late(state: WalkState, task: Task) -> None:
        prepare(state, task)
        state.symbols.counter = 100_000

    monkeypatch.setattr(WalkState, "__init__", started_late)


@pytest.fixture
def without_memo(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Infers a model whose every node is visited."""

    def infer(model: onnx.ModelProto) -> tuple[Analysis, dict[str, Any]]:
        with monkeypatch.context() as patch:
            patch.setattr(Memo, "remembers", False)
            return everything(model)

    return infer


def everything(model: onnx.ModelProto) -> tuple[Analysis, dict[str, Any]]:
    """The analysis, which has the written model, and what conversion is told besides."""
    walked = walk_model(model)
    graphs = {path: graph for path, graph in walked.graphs.items() if path[:1] != ("call",)}
    told = {
        "what is wrong": (walked.diagnostics, walked.never_run, walked.misdeclared),
        "names": {name: sorted(map(str, paths)) for name, paths in walked.named.items()},
        "types by graph": {path: numbered(graph.types) for path, graph in graphs.items()},
        "splits by graph": {path: numbered(graph.splits) for path, graph in graphs.items()},
        "positions and repairs": {path: (graph.positions, graph.repairs) for path, graph in graphs.items()},
    }
    return infer_model(model), told


def numbered(told: object) -> str:
    """As text; generated symbols numbered as they appear, for how many there are before them is nobody's concern."""
    names: dict[str, str] = {}
    return re.sub(r"\bunk\d+\b", lambda word: names.setdefault(word[0], f"new{len(names)}"), repr(told))


def differences(model: onnx.ModelProto, without_memo: Any) -> list[str]:
    """What is not the same with the memo."""
    (quick, told), (thorough, also_told) = everything(model), without_memo(model)
    fields = [name for name in Analysis.__slots__ if name != "details"]
    found = [name for name in fields if getattr(quick, name) != getattr(thorough, name)]
    return found + [name for name in told if told[name] != also_told[name]]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_model_of_an_exporter(path: Path, without_memo: Any) -> None:
    assert differences(onnx.load(path, load_external_data=False), without_memo) == []


@cache
def node_tests() -> tuple[Any, ...]:
    """onnx's own node tests, in a seeded order."""
    from node_tests import node_tests as onnx_node_tests

    found = onnx_node_tests()
    return tuple(random.Random(0).sample(found, len(found)))


def differing_node_tests(chosen: slice, without_memo: Any) -> list[str]:
    """Each is inferred as it is, and with its nodes twice, the second time under other names."""
    found = []
    for case in node_tests()[chosen]:
        for model in (case.model, doubled(case.model)):
            found += [f"{case.name}: {what}" for what in differences(model, without_memo)]
    return found


def doubled(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with each node once more."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    given = {name for node in model.graph.node for name in node.output if name}
    for node in model.graph.node:
        again = made.graph.node.add()
        again.CopyFrom(node)
        again.name = ""
        for names in (again.input, again.output):
            names[:] = [f"{name}_again" if name in given else name for name in names]
    return made


def test_a_sample_of_the_node_tests(without_memo: Any) -> None:
    assert differing_node_tests(slice(FEW_NODE_TESTS), without_memo) == []


@pytest.mark.slow
def test_half_of_the_other_node_tests(without_memo: Any) -> None:
    assert differing_node_tests(slice(FEW_NODE_TESTS, None, 2), without_memo) == []


def differing_layers(seeds: range, without_memo: Any) -> list[str]:
    return [f"{seed}: {what}" for seed in seeds for what in differences(almost_repeating(seed), without_memo)]


def test_layers_that_almost_repeat(without_memo: Any) -> None:
    assert differing_layers(range(FEW), without_memo) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_many_layers_that_almost_repeat(part: int, without_memo: Any) -> None:
    seeds = range(FEW + part, MANY, PARTS)
    assert seeds
    assert differing_layers(seeds, without_memo) == []


def differing_functions(seeds: range, without_memo: Any) -> list[str]:
    found = []
    for seed in seeds:
        found += [
            f"{seed}: {what}" for what in differences(in_functions(almost_repeating(seed), is_older=True), without_memo)
        ]
    return found


def test_functions_with_equal_nodes(without_memo: Any) -> None:
    assert differing_functions(range(FEW // 5), without_memo) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_many_functions_with_equal_nodes(part: int, without_memo: Any) -> None:
    seeds = range(FEW + part, MANY, PARTS)
    assert seeds
    assert differing_functions(seeds, without_memo) == []


def test_the_switch_turns_the_memo_off(without_memo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the comparisons above would compare nothing."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18]> g (float[N] x) => () { a = Relu (x)  b = Relu (x) }'
    )
    first, second = walk_model(model).graphs[MAIN].visits
    assert first is second
    monkeypatch.setattr(Memo, "remembers", False)
    first, second = walk_model(model).graphs[MAIN].visits
    assert first is not second


@pytest.mark.parametrize("first", range(len(WAYS)), ids=WAYS)
def test_the_generated_layers_repeat(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the memo would have nothing to do with them."""
    visits = 0
    visit = Walk._visit

    def counted(walk: Walk, *given: Any) -> Any:
        nonlocal visits
        visits += 1
        return visit(walk, *given)

    monkeypatch.setattr(Walk, "_visit", counted)
    models = [almost_repeating(seed) for seed in range(first, 4 * len(WAYS), len(WAYS))]
    for model in models:
        infer_model(model)
    with_memo = visits
    monkeypatch.setattr(Memo, "remembers", False)
    for model in models:
        infer_model(model)
    assert visits - with_memo > with_memo
