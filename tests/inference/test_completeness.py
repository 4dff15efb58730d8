"""Every value's inferred shape against execution, on whole models at two sizes each: nothing wrong, and all known but
what the tables name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest
from executed_shapes import RefusedError, Trace, compare, make_feeds, run_onnxruntime, run_reference
from installed_engines import onnxruntime_can_judge
from typical_models import control_flow, decoder, detector, recurrent, sequences

import splitgraph
from splitgraph.dim import Dim, evaluate, symbols_of
from splitgraph.inference.analysis import Analysis
from splitgraph.model.value_type import ValueType

MODELS = Path(__file__).parents[2] / "models"
INDEX: list[dict[str, Any]] = [
    entry for entry in json.loads((MODELS / "index.json").read_text("utf-8")) if entry["valid"] and entry["engines"]
]

UNLIKE = "the elements of the sequence are of unlike lengths, or the last may be shorter"
# What no inference can know from the sizes of the inputs: (model, value, axis) and why.
UNKNOWABLE: Mapping[str, Mapping[tuple[str, int], str]] = {
    "string_split20": {("parts", 1): "the most parts that a string has"},
    "prefix_split": {("/SplitToSequence_output_0", 1): UNLIKE},
    "segment_means": {(f"/{name}_output_0", 1): UNLIKE for name in ("SplitToSequence", "SequenceAt")},
    "segment_means.dynamo": {("split", 1): UNLIKE},
    "split_to_sequence11_lengths": {("parts", 1): UNLIKE},
    "split_to_sequence11_scalar": {("stretches", 1): UNLIKE},
    "split_to_sequence24": {("parts", 1): UNLIKE},
    "sequences": {("SplitToSequence_13", 0): UNLIKE},
    "control_flow": {(name, 0): "grows with every iteration" for name in ("step_grown", "step_Concat_3")},
}


def unknowable(name: str) -> Mapping[tuple[str, int], str]:
    """The table of a model: its own, or that of its architecture."""
    stem, *rest = name.removesuffix(".onnx").split(".")
    return UNKNOWABLE.get(".".join([stem, *(part for part in rest if part == "dynamo")]), {})


def check(
    name: str, model: onnx.ModelProto, sizes: Mapping[str, int], entry: Mapping[str, Any], engines: list[str], seed: int
) -> int:
    """Run a model at one assignment of sizes in each engine and hold the inferred types against that; dims compared."""
    analysis = splitgraph.infer(model)
    assert analysis.ok, [found.message for found in analysis.diagnostics]
    given = entry.get("values", {})
    feeds = make_feeds(model, analysis, sizes, given, entry.get("ranges", {}), seed)
    compared = 0
    for engine in engines:
        found = compare(analysis.graphs, traces(engine, model, analysis, feeds), with_definitions(analysis, sizes))
        assert not found.wrong
        assert set(found.unknown) <= {f"{value}[{axis}]" for value, axis in unknowable(name)}
        compared += found.dims
    return compared


# Sizes of the runs are far below.
LARGEST = 256


def with_definitions(analysis: Analysis, sizes: Mapping[str, int]) -> Mapping[str, int]:
    """The sizes with the symbols that are no size of an input, where the analysis says what they must be: the only
    number with which an equality holds.
    """
    known = dict(sizes)
    for obligation in analysis.obligations:
        if obligation.relation != "==" or "%" in str(obligation.lhs):
            continue
        sides = (obligation.lhs, obligation.rhs)
        unknown = {name for side in sides for name in symbols_of(side)} - known.keys()
        if len(unknown) == 1:
            name = unknown.pop()
            found = [n for n in range(LARGEST) if len({evaluate(side, {**known, name: n}) for side in sides}) == 1]
            if len(found) == 1:
                known[name] = found[0]
    return known


def traces(engine: str, model: onnx.ModelProto, analysis: Analysis, feeds: Mapping[str, Any]) -> list[Trace]:
    if engine == "reference":
        return run_reference(model, feeds)
    names = [output for node in model.graph.node for output in node.output if output]
    return run_onnxruntime(model, names, feeds)


def check_file(entry: Mapping[str, Any]) -> int:
    """Both cases of a model of `models/`; dims compared."""
    model = onnx.load(MODELS / entry["file"])
    ranges, engines = entry["ranges"], entry["engines"]
    if not onnxruntime_can_judge() and model.opset_import[0].version > 23:
        engines = [engine for engine in engines if engine != "onnxruntime"]
    return sum(
        check(entry["file"], model, case["dims"], {"values": case["values"], "ranges": ranges}, engines, seed)
        for seed, case in enumerate(entry["cases"])
    )


def is_quick(entry: Mapping[str, Any]) -> bool:
    """One opset of each architecture, with each exporter."""
    return not any(f"opset{opset}." in entry["file"] for opset in (11, 17))


@pytest.mark.parametrize("entry", list(filter(is_quick, INDEX)), ids=lambda entry: entry["file"])
def test_models(entry: Mapping[str, Any]) -> None:
    assert check_file(entry)


@pytest.mark.slow
@pytest.mark.parametrize("entry", [entry for entry in INDEX if not is_quick(entry)], ids=lambda entry: entry["file"])
def test_models_at_other_opsets(entry: Mapping[str, Any]) -> None:
    assert check_file(entry)


def engines_of(name: str) -> list[str]:
    """All that can run the model: the reference evaluator of onnx 1.20 has no bidirectional LSTM."""
    # The newest onnx runs it; the versions between were not tried.
    old = onnx.defs.onnx_opset_version() < 28
    return ["onnxruntime"] if old and name == "recurrent" else ["onnxruntime", "reference"]


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize(
    ("build", "cases"),
    [
        (decoder, [{"batch": 2, "seq": 4, "past": 3}, {"batch": 3, "seq": 1, "past": 7}]),
        (detector, [{"batch": 2, "height": 21, "width": 34}, {"batch": 1, "height": 40, "width": 19}]),
        (recurrent, [{"batch": 2, "time": 5}, {"batch": 3, "time": 1}]),
        (sequences, [{"rows": 5}, {"rows": 9}]),
        (control_flow, [{"N": 3, "M": 4}, {"N": 1, "M": 2}]),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_generated_models(build: Callable[[int], onnx.ModelProto], cases: list[dict[str, int]], opset: int) -> None:
    for seed, sizes in enumerate(cases):
        assert check(build.__name__, build(opset), sizes, {}, engines_of(build.__name__), seed)


BUILDERS = {"sequences": sequences, "control_flow": control_flow}


@pytest.mark.parametrize("name", UNKNOWABLE)
def test_every_exception_is_needed(name: str) -> None:
    """An entry of the table that inference knows by now is out of date."""
    if name in BUILDERS:
        models = [BUILDERS[name](18)]
    else:
        models = [onnx.load(MODELS / e["file"]) for e in INDEX if unknowable(e["file"]) is UNKNOWABLE[name]]
    assert models
    for model in models:
        analysis = splitgraph.infer(model)
        given = {symbol for value in model.graph.input for symbol in symbols_in(analysis.types[value.name])}
        values = {name: known for types in analysis.graphs.values() for name, known in types.items()}
        for value, axis in UNKNOWABLE[name]:
            shape = values[value].shape
            assert shape is not None
            dim = shape[axis]
            assert dim is None or (isinstance(dim, Dim) and not symbols_of(dim) <= given), f"{value}[{axis}]: {dim}"


def symbols_in(known: ValueType) -> set[str]:
    return {name for dim in known.shape or () if dim is not None for name in symbols_of(dim)}


def test_a_wrong_shape_would_be_found() -> None:
    """The comparison itself can fail: with the types of another model every difference shows."""
    model = sequences(18)
    analysis = splitgraph.infer(model)
    feeds = make_feeds(model, analysis, {"rows": 5}, {}, {}, 0)
    found = compare(analysis.graphs, run_reference(model, feeds), {"rows": 6})
    assert any(text.startswith("x[0]: rows is 6, really 5") for text in found.wrong)
    with pytest.raises(RefusedError):
        run_onnxruntime(model, [], {"x": feeds["x"][:, :5]})
