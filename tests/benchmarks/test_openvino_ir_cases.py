"""Cases of OpenVINO IR: which are chosen, how they are measured, and the layer to blame for one that is not read."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from inference.openvino_ir.one_layer import one_layer

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "targets"))

import ir_cases
import measure
from environments import RUNTIMES, Runtime
from layer_table import Measured, layer_entry, layers_of, rows_of

Layers = Mapping[str, set[str]]
RELU: Layers = {"opset1.ReLU": {"T=float32"}}
GELU: Layers = {"opset7.Gelu": {"T=float32"}}
HALF: Layers = {"opset1.ReLU": {"T=float16"}}

# IR by their layers, with answers and words; then by layer: how many cases have which answer. The last number counts IR
# that say nothing.
BLAMED: dict[str, tuple[Sequence[tuple[Layers, str, str]], dict[str, dict[str, int]], int]] = {
    "all are read": (
        [(RELU, "reads", ""), (RELU | GELU, "reads", "")],
        {"opset1.ReLU": {"reads": 2}, "opset7.Gelu": {"reads": 1}},
        0,
    ),
    "the only layer": ([(GELU, "refuses", "no")], {"opset7.Gelu": {"refuses": 1}}, 0),
    "the only layer that is read nowhere": (
        [(RELU, "reads", ""), (RELU | GELU, "refuses", "no")],
        {"opset1.ReLU": {"reads": 1}, "opset7.Gelu": {"refuses": 1}},
        0,
    ),
    "two that are read nowhere": ([(RELU | GELU, "refuses", "no")], {}, 1),
    "two of which one is named": ([(RELU | GELU, "refuses", "Cannot create Gelu")], {"opset7.Gelu": {"refuses": 1}}, 0),
    "a part of another name is no name": ([(RELU | GELU, "refuses", "Cannot create GeluX")], {}, 1),
    "two of which one is refused alone": (
        [(RELU | GELU, "refuses", "no"), (GELU, "refuses", "no")],
        {"opset7.Gelu": {"refuses": 2}},
        0,
    ),
    "a trait that is read nowhere": (
        [(RELU, "reads", ""), (GELU, "reads", ""), (HALF | GELU, "wrong", "other values")],
        {"opset1.ReLU": {"reads": 1, "wrong": 1}, "opset7.Gelu": {"reads": 1}},
        0,
    ),
    "two traits that are read only alone": (
        [
            ({"opset1.Convert": {"T=uint4", "to=f32"}}, "reads", ""),
            ({"opset1.Convert": {"T=uint8", "to=f16"}} | RELU, "reads", ""),
            ({"opset1.Convert": {"T=uint4", "to=f16"}} | RELU, "refuses", "no"),
        ],
        {"opset1.Convert": {"reads": 2, "refuses": 1}, "opset1.ReLU": {"reads": 1}},
        0,
    ),
    "a rank is no reason": (
        [(RELU, "reads", ""), ({"opset1.ReLU": {"T=float32", "rank 7"}} | GELU, "refuses", "no"), (GELU, "reads", "")],
        {"opset1.ReLU": {"reads": 1}, "opset7.Gelu": {"reads": 1}},
        1,
    ),
    "all is read elsewhere, and there is only one": (
        [(RELU, "reads", ""), (RELU, "refuses", "no")],
        {"opset1.ReLU": {"reads": 1, "refuses": 1}},
        0,
    ),
    "all is read elsewhere, and one is named": (
        [(RELU, "reads", ""), (GELU, "reads", ""), (RELU | GELU, "dies", "in Gelu")],
        {"opset1.ReLU": {"reads": 1}, "opset7.Gelu": {"reads": 1, "dies": 1}},
        0,
    ),
}


@pytest.mark.parametrize("name", BLAMED)
def test_a_layer_is_to_blame(name: str) -> None:
    given, expected, left = BLAMED[name]
    measured = [
        Measured({label: frozenset({frozenset(traits)}) for label, traits in layers.items()}, answer, said)
        for layers, answer, said in given
    ]
    rows, unexplained = rows_of(measured)
    counts: dict[str, dict[str, int]] = {}
    for label, found in rows.items():
        for _, answer, _ in found:
            of_layer = counts.setdefault(label, {})
            of_layer[answer] = of_layer.get(answer, 0) + 1
    assert counts == expected
    assert len(unexplained) == left


# Traits of cases with answers, and those that the cases have which no rule explains.
LIKE: dict[str, tuple[list[tuple[set[str], str]], list[str] | None]] = {
    "all is explained": ([({"a"}, "reads"), ({"b"}, "refuses")], None),
    "nothing is read": ([({"a"}, "refuses")], None),
    "one that is like one that is read": ([({"a", "empty"}, "reads"), ({"a", "empty"}, "wrong")], ["a", "empty"]),
    "what both have": ([({"a", "b", "c"}, "reads"), ({"a", "b"}, "wrong"), ({"a", "c"}, "wrong")], ["a"]),
    "no rank": ([({"a", "rank 1"}, "reads"), ({"a", "rank 1"}, "wrong")], ["a"]),
    "none that a rule explains": ([({"a", "b"}, "reads"), ({"a", "b"}, "wrong"), ({"c"}, "refuses")], ["a", "b"]),
    "nothing in common": ([({"a", "b"}, "reads"), ({"a"}, "wrong"), ({"b"}, "wrong")], None),
}


@pytest.mark.parametrize("name", LIKE)
def test_cases_that_nothing_explains_are_like_some_nodes_only(name: str) -> None:
    given, like = LIKE[name]
    rows = [(frozenset(traits), answer, "") for traits, answer in given]
    assert layer_entry(rows, frozenset().union(*(traits for traits, _, _ in rows))).get("like") == like


def test_the_traits_of_each_layer(tmp_path: Path) -> None:
    one_layer(tmp_path, "ReLU", "opset1", {}, ["f16 2,?"])
    assert layers_of(tmp_path / "model.xml") == {
        "opset1.ReLU": frozenset({frozenset({"T=float16", "rank 2", "dim 1 open"})})
    }


def written(name: str, test: str, layers: Layers) -> ir_cases.Written:
    pairs = frozenset((label, trait) for label, traits in layers.items() for trait in {"", *traits})
    return ir_cases.Written(name, test, Path(f"{name}.xml"), Path(name), pairs)


HIGH: Layers = {"opset1.ReLU": {"T=float32", "rank 7"}}
# IR with the tests that they were made from, and those that become cases.
CHOSEN: dict[str, tuple[list[tuple[Layers, str]], list[int]]] = {
    "few layers first": ([(RELU | GELU, "a"), (RELU, "b"), (GELU, "c")], [1, 2, 0]),
    "three tests are enough": ([(RELU, test) for test in "abcde"], [0, 1, 2]),
    "a test once": ([(RELU, test) for test in "aaabb"], [0, 3]),
    "a trait that is new": ([*((RELU, test) for test in "abcd"), (HALF, "e")], [0, 1, 2, 4]),
    "a trait that is new in a test that is known": ([*((RELU, test) for test in "abc"), (HALF, "a")], [0, 1, 2, 3]),
    "a rank is nothing new": ([*((RELU, test) for test in "abc"), (HIGH, "d")], [0, 1, 2]),
    "the way of a test that has something new": (
        [(RELU, "a"), ({"opset1.ReLU": {"T=float16", "T=float32"}}, "a"), (GELU, "a")],
        [0, 1, 2],
    ),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_what_is_new_becomes_a_case(name: str) -> None:
    given, expected = CHOSEN[name]
    chosen = ir_cases.choose([written(str(number), test, layers) for number, (layers, test) in enumerate(given)])
    assert [int(each.name) for each in chosen] == expected


@pytest.mark.parametrize(
    ("values", "label", "is_so"),
    [
        ([1.0, 2.0], "opset1.ReLU", False),
        ([1.0, np.inf], "opset1.ReLU", True),
        ([np.nan], "opset1.Convert", True),
        ([np.nan], "opset10.IsNaN", False),
    ],
)
def test_a_case_about_numbers_that_are_none(tmp_path: Path, values: list[float], label: str, is_so: bool) -> None:
    np.savez(tmp_path / "x.in.npz", x=np.array(values, np.float32), count=np.array([1]))
    each = ir_cases.Written("x", "x", tmp_path / "x.xml", tmp_path / "x", frozenset({(label, "")}))
    assert ir_cases.is_about_numbers(each) is is_so


ADAPTER = """
def version():
    return "0"

def run(path, inputs, outputs, stage):
    return [inputs["x"]] if path.endswith(".xml") else []
"""


def test_an_ir_is_measured_like_an_onnx_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "environment", lambda runtime, cache: (Path(sys.executable), {}))
    monkeypatch.setattr(measure, "ADAPTERS", tmp_path)
    monkeypatch.setattr(measure, "RUNTIMES", {"own@0": Runtime("own", "own-0", ())})
    (tmp_path / "own.py").write_text(ADAPTER)
    cases = tmp_path / "cases"
    cases.mkdir()
    for name, ending in (("an.ir", ".xml"), ("onnx", ".onnx")):
        for file in (ending, ".bin"):
            (cases / f"{name}{file}").write_bytes(b"")
        for file in (".in.npz", ".exp.npz"):
            np.savez(cases / f"{name}{file}", x=np.ones(2, np.float32))
    answers = measure.measure("own@0", cases, tmp_path)
    assert {name: each.answer for name, each in answers.items()} == {"an.ir": "reads", "onnx": "wrong"}


WRITER = """
import json, os, sys

folder = sys.argv[1]
for line in sys.stdin:
    name = os.path.basename(line.strip())
    if name == "dies":
        os._exit(1)
    print(json.dumps([line.strip(), "wrong" if name == "wrong" else ""]), flush=True)
"""


def test_writing_goes_on_behind_a_model_that_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ir_cases, "environment", lambda runtime, cache: (Path(sys.executable), {}))
    monkeypatch.setattr(ir_cases, "_HERE", tmp_path)
    (tmp_path / "ir_writer.py").write_text(WRITER)
    folder, models = tmp_path / "written" / "own@0", ["first", "dies", "wrong", "dies", "last"]
    name = next(iter(RUNTIMES))
    ir_cases.write_all(name, tmp_path, models[:3], folder, tmp_path)
    assert ir_cases.problems(folder) == {"first": "", "dies": "dies", "wrong": "wrong"}
    # What is known is not asked again.
    (tmp_path / "ir_writer.py").write_text(WRITER.replace('"wrong" if', '"again" if'))
    ir_cases.write_all(name, tmp_path, models, folder, tmp_path)
    assert ir_cases.problems(folder) == {"first": "", "dies": "dies", "wrong": "wrong", "last": ""}
    assert len((tmp_path / "written" / "own@0.jsonl").read_text().splitlines()) == len(set(models))
