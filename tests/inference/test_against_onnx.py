"""onnx's own inference on all its node tests: what it knows, we know; what it refuses, we refuse.

Each model is inferred as it is and with the dimensions of its inputs replaced by symbols, evaluated at the sizes that
they had; and with one thing made wrong. The exceptions stand in tables, each with the reason why onnx is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import onnx
import pytest
from node_models import NEWEST_OPSET, model_of

from splitgraph.dim import Dim, DimLike, evaluate, parse_dim, symbols_of
from splitgraph.inference import infer_model
from splitgraph.model.value_type import ValueType
from splitgraph.model.values import value_type

SAMPLE = 100
# onnx writes such names for dimensions of which it knows nothing.
_GENERATED = "unk__"

# Where onnx knows more than we, or something else, by the start of the case's name and whether inputs are symbolic.
WRONG: dict[tuple[str, bool], str] = {
    ("test_attention_", True): "reads a symbolic dimension as 0 where it multiplies it",
    ("test_einsum_batch_matmul", True): "takes the first of two letters, where a dimension of 1 broadcasts",
    ("test_linear_attention_", True): "takes the initial state's shape for the last one's, whatever the body gives",
    ("test_loop13_seq", False): "takes the shape of the empty sequence's elements for that of all",
    ("test_loop13_seq", True): "takes the shape of the empty sequence's elements for that of all",
    ("test_scan", True): "takes what the body declares, though a scan of no steps gives the initial state back",
}
# Valid models that onnx refuses.
REFUSED: dict[tuple[str, bool], str] = {
    ("test_mvn", False): "builds a Constant without a value in the body of MeanVarianceNormalization",
    ("test_mvn", True): "builds a Constant without a value in the body of MeanVarianceNormalization",
    ("test_resize", True): "reads sizes of symbolic length as none",
    ("test_strnormalizer_", True): "takes a symbolic first dimension for another than 1",
}


@dataclass
class Tally:
    """Dimensions that onnx knows, how many of them we know too, and what differs, by case and mode."""

    known: int = 0
    equal: int = 0
    wrong: dict[tuple[str, bool], str] = field(default_factory=dict)
    refused: dict[tuple[str, bool], str] = field(default_factory=dict)
    ours_refuse: list[str] = field(default_factory=list)


@cache
def cases() -> tuple[Any, ...]:
    """All node tests but those of the split family, on some of which onnx's inference aborts the process."""
    from node_tests import node_tests as onnx_node_tests

    return tuple(case for case in onnx_node_tests() if "split" not in case.name)


def sampled(count: int | None) -> list[Any]:
    return list(cases()) if count is None else random.Random(0).sample(cases(), count)


def undeclared(case: Any) -> onnx.ModelProto:
    """The model without the shapes of its outputs."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return model


def with_symbols(model: onnx.ModelProto) -> dict[str, int]:
    """Replace the dimensions of the inputs by symbols of their own; gives what they were."""
    sizes: dict[str, int] = {}
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
            if dim.HasField("dim_value"):
                sizes[f"d{len(sizes)}"] = dim.dim_value
                dim.dim_param = f"d{len(sizes) - 1}"
    return sizes


def size_of(dim: DimLike | None, sizes: dict[str, int]) -> int | None:
    """The dimension at these sizes, None when it is not known."""
    if isinstance(dim, Dim):
        return None if symbols_of(dim) - sizes.keys() else evaluate(dim, sizes)
    return dim


def difference(theirs: ValueType, ours: ValueType, sizes: dict[str, int], tally: Tally) -> str | None:
    """What onnx knows of a value and we do not, or know otherwise."""
    found = f"{theirs} by onnx, {ours} by us"
    if theirs.kind == "unknown":
        return None
    if (theirs.kind, theirs.dtype or ours.dtype) != (ours.kind, ours.dtype):
        return found
    if theirs.shape is None:
        return None
    if ours.shape is None or len(ours.shape) != len(theirs.shape):
        return found
    differs = False
    for known, mine in zip(theirs.shape, ours.shape, strict=True):
        size = size_of(known, sizes)
        if size is not None:
            tally.known += 1
            tally.equal += size_of(mine, sizes) == size
            differs = differs or size_of(mine, sizes) != size
    return found if differs else None


def parse_theirs(text: str) -> DimLike:
    """A dimension that onnx names; a generated name stands for nothing."""
    return parse_dim(text.replace(_GENERATED, "unknown_"))


def compare(case: Any, symbolic: bool, tally: Tally) -> None:
    """Infer one model with both, and note what differs."""
    model = undeclared(case)
    sizes = with_symbols(model) if symbolic else {}
    analysis = infer_model(model)
    tally.ours_refuse += [f"{case.name}: {d.message}" for d in analysis.diagnostics if d.severity == "error"]
    try:
        theirs = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError as error:
        tally.refused[case.name, symbolic] = str(error)
        return
    for value in (*theirs.graph.output, *theirs.graph.value_info):
        found = difference(value_type(value.type, parse_theirs), analysis.types[value.name], sizes, tally)
        if found is not None:
            tally.wrong[case.name, symbolic] = f"{value.name}: {found}"


def unexplained(found: dict[tuple[str, bool], str], table: dict[tuple[str, bool], str]) -> dict[tuple[str, bool], str]:
    return {
        key: text
        for key, text in found.items()
        if not any(key[0].startswith(start) and key[1] == symbolic for start, symbolic in table)
    }


def check(count: int | None) -> Tally:
    tally = Tally()
    for case in sampled(count):
        for symbolic in (False, True):
            compare(case, symbolic, tally)
    assert unexplained(tally.wrong, WRONG) == {}
    assert unexplained(tally.refused, REFUSED) == {}
    assert tally.ours_refuse == []
    return tally


def test_we_know_what_onnx_knows_on_a_sample() -> None:
    tally = check(SAMPLE)
    assert tally.known > 400 and tally.equal >= 0.99 * tally.known


@pytest.mark.slow
def test_we_know_what_onnx_knows_on_all_its_node_tests() -> None:
    tally = check(None)
    assert tally.known > 40_000 and tally.equal >= 0.998 * tally.known
    for table, found in ((WRONG, tally.wrong), (REFUSED, tally.refused)):
        used = {key for key in table if any(name.startswith(key[0]) and mode == key[1] for name, mode in found)}
        assert table.keys() == used, "a reason that no case needs any more"


# Models that are wrong in one thing ----------------------------------------------------------------------------------

# What onnx refuses and we do not, by operator and mutation.
NOT_REFUSED: dict[tuple[str, str], str] = {
    ("MeanVarianceNormalization", ""): "onnx refuses the valid model, too",
}

# What ends the process in the inference of onnx 1.20, by operator and mutation. The newest onnx is asked about all of
# it; the versions between were not tried.
ENDS_THE_PROCESS: frozenset[tuple[str, str]] = frozenset(
    {
        ("ConvInteger", "rank of input 1"),
        ("ConvTranspose", "scalar of input 1"),
        ("MaxUnpool", "scalar of input 1"),
        ("QLinearConv", "rank of input 3"),
        ("Scan", "no num_scan_inputs"),
    }
    if NEWEST_OPSET < 28
    else ()
)


def mutants(case: Any) -> Iterator[tuple[str, onnx.ModelProto]]:
    """The model with one input of another rank, dimension or type, or one input or attribute less or changed."""
    for position, value in enumerate(case.model.graph.input):
        if not value.type.HasField("tensor_type"):
            continue
        for name, change in SHAPE_CHANGES.items():
            model = undeclared(case)
            if change(model.graph.input[position].type.tensor_type.shape):
                yield f"{name} of input {position}", model
        for dtype in (onnx.TensorProto.STRING, onnx.TensorProto.BOOL, onnx.TensorProto.INT64, onnx.TensorProto.FLOAT):
            if dtype != value.type.tensor_type.elem_type:
                model = undeclared(case)
                model.graph.input[position].type.tensor_type.elem_type = dtype
                yield f"type {dtype} of input {position}", model
    if case.model.graph.node[0].input:
        model = undeclared(case)
        del model.graph.node[0].input[-1]
        yield "last input", model
    for position, attribute in enumerate(case.model.graph.node[0].attribute):
        model = undeclared(case)
        del model.graph.node[0].attribute[position]
        yield f"no {attribute.name}", model
        model = undeclared(case)
        changed = model.graph.node[0].attribute[position]
        if changed.type == onnx.AttributeProto.INT:
            changed.i = 77
        elif changed.type == onnx.AttributeProto.INTS:
            changed.ints.append(77)
        yield f"other {attribute.name}", model


def _longer(shape: onnx.TensorShapeProto) -> bool:
    shape.dim.add().dim_value = 7
    return True


def _scalar(shape: onnx.TensorShapeProto) -> bool:
    changed = bool(shape.dim)
    del shape.dim[:]
    return changed


def _first(shape: onnx.TensorShapeProto) -> bool:
    if shape.dim:
        shape.dim[0].dim_value += 1
    return bool(shape.dim)


def _last(shape: onnx.TensorShapeProto) -> bool:
    if shape.dim:
        shape.dim[-1].dim_value += 1
    return bool(shape.dim)


SHAPE_CHANGES = {"rank": _longer, "scalar": _scalar, "first dimension": _first, "last dimension": _last}


def refused_by_onnx(model: onnx.ModelProto) -> str | None:
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        return str(error)[-200:]
    return None


def missed(found: list[Any]) -> tuple[list[str], int]:
    """The wrong models that onnx refuses and we do not, and how many both refuse."""
    missing, both = [], 0
    for case in found:
        if len(case.model.graph.node) != 1:
            continue
        op_type = case.model.graph.node[0].op_type
        for name, model in mutants(case):
            if (op_type, name) in ENDS_THE_PROCESS:
                continue
            said = refused_by_onnx(model)
            if said is None:
                continue
            if not infer_model(model).ok:
                both += 1
            elif not any(op_type == op and name.startswith(start) for op, start in NOT_REFUSED):
                missing.append(f"{case.name}, {name}: {said}")
    return missing, both


def test_we_refuse_what_onnx_refuses_on_a_sample() -> None:
    missing, both = missed(sampled(SAMPLE))
    assert missing == [] and both > 400


@pytest.mark.slow
def test_we_refuse_what_onnx_refuses_of_all_its_node_tests_made_wrong() -> None:
    missing, both = missed(list(cases()))
    assert missing == [] and both > 14_000


# name, inputs, nodes, opset; each is refused by onnx's inference or checker.
INVALID = [
    ("attribute-missing", "float[2,3] x", "y = Concat(x, x)", 13),
    ("attribute-type", "float[2,3] x", "y = Concat<axis=1.0>(x, x)", 13),
    ("input-missing", "float[2,3] x", "y = Add(x)", 14),
    ("input-too-many", "float[2,3] x", "y = Relu(x, x)", 14),
    ("undefined", "float[2,3] x", "y = Relu(z)", 14),
    ("operator-too-new", "float[2,3] x", "y = Mish(x)", 14),
    ("operator-gone", "float[2,3] x", "y = Upsample(x, x)", 14),
    ("name-twice", "float[2,3] x", "y = Relu(x) y = Neg(x)", 14),
    ("matmul", "float[2,3] x", "y = MatMul(x, x)", 13),
    ("broadcast", "float[2,3] x, float[2,2] z", "y = Add(x, z)", 14),
    ("reshape", "float[2,3] x", "s = Constant<value_ints=[4]>() y = Reshape(x, s)", 14),
    ("transpose", "float[2,3] x", "y = Transpose<perm=[0,0]>(x)", 13),
    ("squeeze", "float[2,3] x", "s = Constant<value_ints=[1]>() y = Squeeze(x, s)", 13),
    ("conv", "float[1,3,8] x, float[4,2,3] w", "y = Conv(x, w)", 11),
    ("types", "float[2] x, int64[2] z", "y = Add(x, z)", 14),
    ("bool", "float[2] x", "y = Not(x)", 14),
]


@pytest.mark.parametrize(("inputs", "body", "opset"), [case[1:] for case in INVALID], ids=[case[0] for case in INVALID])
def test_invalid_models_are_refused(inputs: str, body: str, opset: int) -> None:
    model = model_of(inputs, body, opset=opset)
    assert not infer_model(model).ok
    declared = onnx.ValueInfoProto(name="y")
    declared.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    model.graph.output.append(declared)
    assert refused_by_onnx(model) is not None or _fails_the_checker(model)


def _fails_the_checker(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return True
    return False
