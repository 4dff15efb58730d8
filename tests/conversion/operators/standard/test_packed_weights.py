"""Matrix products and look-ups with packed weights in operators of ai.onnx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from conversion.operators.standard.inferred import check
from conversion.operators.standard.one_node import Array, Case, refusal, run, standard
from onnx import external_data_helper, helper, numpy_helper

import splitgraph
from splitgraph.conversion import known_values
from splitgraph.conversion.notation import node_at_boundary
from splitgraph.conversion.operators.microsoft import packed_weights

_RNG = np.random.default_rng(2)
_LOOSE = {"rtol": 5e-3, "atol": 2e-2}


def _packed(codes: Array, bits: int, *, high_first: bool = False) -> Array:
    """Bytes along the last axis; the first code is in the lowest bits."""
    each = 8 // bits
    padded = np.concatenate([codes, np.zeros((*codes.shape[:-1], -codes.shape[-1] % each), codes.dtype)], -1)
    groups = padded.reshape(*codes.shape[:-1], -1, each)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(groups << (shifts[::-1] if high_first else shifts), axis=-1).astype(np.uint8)


def _nbits(
    bits: int,
    *,
    rows: int = 64,
    columns: int = 5,
    block: int = 16,
    zeros: str = "",
    groups: str = "",
    bias: bool = False,
    dtype: str = "float32",
    level: int = 0,
    flat: bool = True,
    constants: bool = True,
    free: bool = False,
) -> Case:
    blocks = -(-rows // block)
    codes = _RNG.integers(0, 2**bits, (columns, blocks, block)).astype(np.uint8)
    scales = _RNG.uniform(0.02, 0.1, (columns, blocks)).astype(dtype)
    zero_codes = _RNG.integers(0, 2**bits, (columns, blocks)).astype(np.uint8)
    zero = {"packed": _packed(zero_codes, bits), "real": (zero_codes + 0.25).astype(dtype)}.get(zeros)
    if zeros == "default":
        zero = _packed(np.full_like(zero_codes, 2 ** (bits - 1)), bits)
    places = np.arange(rows if groups != "padded" else blocks * block) // block
    group = _RNG.permutation(places).astype(np.int32) if groups else None
    inputs: list[Array | None] = [
        _RNG.standard_normal((2, 3, rows)).astype(dtype),
        _packed(codes, bits),
        scales.reshape(-1) if flat else scales,
        None if zero is None else zero.reshape(-1) if flat else zero,
        group,
        _RNG.standard_normal(columns).astype(dtype) if bias else None,
    ]
    attributes = {"K": rows, "N": columns, "bits": bits, "block_size": block, "accuracy_level": level}
    more: dict[str, Any] = _LOOSE if dtype == "float16" else {}
    middle = zero_codes if zeros == "packed" else np.full_like(zero_codes, 2 ** (bits - 1))

    def truth(data: Array, *_: object, **__: object) -> list[Array]:
        weights = (codes - middle[..., None].astype(np.float32)) * scales[..., None]
        return [(data @ weights.reshape(columns, -1)[:, :rows].T).astype(np.float32)]

    return Case(
        "MatMulNBits",
        inputs,
        attributes,
        constants=frozenset({1, 2, 3, 4, 5}) if constants else frozenset(),
        truth=truth if level == 4 else None,
        free=free,
        **more,
    )


# MatMulNBits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (_nbits(2, groups="rows"), "g_idx with weights of 4 bits"),
        (_nbits(8, groups="rows"), "g_idx with weights of 4 bits"),
        (_nbits(4, groups="rows", zeros="packed"), "ignores packed zero points beside g_idx"),
        (_nbits(8, zeros="real"), "zero points that are not integers"),
        (Case("MatMulNBits", _nbits(4).inputs, {**_nbits(4).attributes, "bits": 3}), "no weights of 3 bits"),
        (Case("MatMulNBits", _nbits(4).inputs, {**_nbits(4).attributes, "weight_prepacked": 1}), "one processor"),
        (Case("MatMulFpQ4", _nbits(4).inputs[:3]), "laid out for the processor"),
    ],
)
def test_what_no_kernel_runs_is_refused(case: Case, reason: str) -> None:
    assert reason in refusal(case)


@pytest.mark.parametrize("constants", [True, False])
@pytest.mark.parametrize("zeros", ["", "packed"])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("rows", "block"), [(64, 16), (90, 32), (48, 64)])
def test_weights_of_bits(bits: int, zeros: str, rows: int, block: int, constants: bool) -> None:
    case = _nbits(bits, zeros=zeros, rows=rows, block=block, constants=constants, bias=rows == 90)
    check(case, (24, 13) if rows == 90 else (24,))


@pytest.mark.parametrize("opset", [25, 21, 20, 17, 11])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_at_opsets(bits: int, opset: int) -> None:
    check(_nbits(bits, zeros="packed", rows=80, block=16), (opset,))


def test_weights_of_unknown_sizes() -> None:
    for bits in (2, 4, 8):
        check(_nbits(bits, zeros="packed", rows=90, block=32, constants=False, free=True), (24, 13))


@pytest.mark.parametrize("groups", ["", "rows", "padded"])
@pytest.mark.parametrize("zeros", ["", "real", "default"])
def test_groups_of_rows(zeros: str, groups: str) -> None:
    for rows, constants in ((64, True), (90, zeros == "default")):
        check(_nbits(4, zeros=zeros, groups=groups, rows=rows, block=32, constants=constants), (24, 13))


@pytest.mark.parametrize("bits", [2, 4])
def test_real_zero_points(bits: int) -> None:
    check(_nbits(bits, zeros="real", rows=90, block=16, flat=False), (25, 24, 13))


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_half_precision(bits: int) -> None:
    check(_nbits(bits, zeros="packed", dtype="float16", bias=True), (24, 13))


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_low_accuracy_approximates_the_product(bits: int) -> None:
    check(_nbits(bits, level=4), (24,))


def _initializers(model: onnx.ModelProto) -> dict[str, int]:
    counts: dict[str, int] = {}
    for tensor in model.graph.initializer:
        name = onnx.TensorProto.DataType.Name(tensor.data_type)
        counts[name] = counts.get(name, 0) + int(np.prod(tensor.dims))
    return counts


def test_weights_stay_packed() -> None:
    case = _nbits(4, zeros="packed", rows=64, columns=6)
    model = case.model()
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("o0", 1, ["p", "q", "r"]))
    result = standard(model, 21)
    assert _initializers(result)["UINT4"] == 6 * 64 + 6 * 4
    assert "UINT8" not in _initializers(result)
    weights = next(tensor for tensor in result.graph.initializer if list(tensor.dims) == [6, 64])
    assert weights.raw_data == case.inputs[1].tobytes()  # type: ignore[union-attr]


@pytest.mark.parametrize("bits", [2, 4])
def test_weights_are_unpacked_in_pieces(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_weights, "_PIECE", 8)
    check(_nbits(bits, zeros="packed", rows=90, block=16, columns=37), (24, 13))


def test_large_weights_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def array_of(tensor: onnx.TensorProto) -> Array:
        assert np.prod(tensor.dims) <= 2**16, tensor.name
        return numpy_helper.to_array(tensor)

    monkeypatch.setattr(known_values, "array_of", array_of)
    monkeypatch.setattr(node_at_boundary, "array_of", array_of)
    model = _nbits(4, zeros="packed", rows=2048, columns=1024, block=32).model()
    result = splitgraph.convert(model, standard=True, opset=21).model
    assert _initializers(result)["UINT4"] == 1024 * (2048 + 64)


def test_weights_in_another_file_are_not_read(tmp_path: Path) -> None:
    case = _nbits(4, zeros="packed", rows=64, columns=6)
    model = case.model()
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("o0", 1, ["p", "q", "r"]))
    wanted = run(model, case.feeds)
    external_data_helper.convert_model_to_external_data(model, location="weights.bin", size_threshold=0)
    onnx.save(model, tmp_path / "model.onnx")
    rewrite = splitgraph.convert(str(tmp_path / "model.onnx"), standard=True, opset=21)
    rewrite.save(tmp_path / "result.onnx")
    got = run(onnx.load(tmp_path / "result.onnx"), case.feeds)
    np.testing.assert_allclose(got[0], wanted[0], 1e-5, 1e-5)


# MatMulBnb4 ----------------------------------------------------------------------------------------------------------


def _bnb4(kind: int, rows: int, columns: int, block: int, **more: Any) -> Case:
    codes = _RNG.integers(0, 16, rows * columns).astype(np.uint8)
    scales = _RNG.uniform(0.5, 2, -(-rows * columns // block)).astype(np.float32)
    data = _RNG.standard_normal((3, rows)).astype(np.float32)
    attributes = {"K": rows, "N": columns, "block_size": block, "quant_type": kind}
    return Case("MatMulBnb4", [data, _packed(codes, 4, high_first=True), scales], attributes, **more)


@pytest.mark.parametrize("constants", [frozenset({1, 2}), frozenset()])
@pytest.mark.parametrize(
    ("rows", "columns", "block"), [(64, 3, 16), (64, 5, 64), (32, 5, 64), (16, 1, 32), (32, 3, 32)]
)
@pytest.mark.parametrize("kind", [0, 1])
def test_bnb4(kind: int, rows: int, columns: int, block: int, constants: frozenset[int]) -> None:
    check(_bnb4(kind, rows, columns, block, constants=constants), (24, 13))


def test_bnb4_tables_are_those_of_the_kernel() -> None:
    for kind in (0, 1):
        codes = np.arange(16, dtype=np.uint8)
        inputs = [np.eye(16, dtype=np.float32), _packed(codes, 4, high_first=True), np.ones(1, np.float32)]
        case = Case("MatMulBnb4", inputs, {"K": 16, "N": 1, "block_size": 16, "quant_type": kind}, rtol=0, atol=0)
        check(case, (24,))


@pytest.mark.parametrize("more", [{"quant_type": 2}, {"transB": 0}])
def test_bnb4_of_other_kinds_is_refused(more: dict[str, int]) -> None:
    case = _bnb4(0, 32, 3, 16)
    assert "quant_type 0 (FP4) or 1 (NF4)" in refusal(Case("MatMulBnb4", case.inputs, {**case.attributes, **more}))


# GatherBlockQuantized ------------------------------------------------------------------------------------------------


def _rows(bits: int, blocks: int, zeros: bool, dtype: str, indices: Any, rank: int = 2, **more: Any) -> Case:
    lead = (7, 2)[: rank - 1]
    codes = _RNG.integers(0, 2**bits, (*lead, 16 * blocks)).astype(np.uint8)
    zero = _RNG.integers(0, 2**bits, (*lead, blocks)).astype(np.uint8)
    inputs: list[Array | None] = [
        _packed(codes, bits),
        np.asarray(indices),
        _RNG.uniform(0.02, 0.1, (*lead, blocks)).astype(dtype),
        _packed(zero, bits) if zeros else None,
    ]
    attributes = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": rank - 1}
    tight = {"rtol": 1e-6, "atol": 1e-6} if dtype == "float32" else {"rtol": 2e-3, "atol": 2e-3}
    return Case("GatherBlockQuantized", inputs, attributes, **tight, **more)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("blocks", [1, 2, 3])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_rows_of_bytes(bits: int, blocks: int, zeros: bool) -> None:
    indices = np.array([[1, -7, 6], [0, 3, -1]], np.int64)
    check(_rows(bits, blocks, zeros, "float32", indices, free=blocks == 2 and not zeros), (24, 13))
    check(_rows(bits, blocks, zeros, "float16", indices.astype(np.int32), constants=frozenset({0, 2, 3})), (24,))
    check(_rows(bits, blocks, zeros, "float32", np.int64(2), rank=3), (24,))


# onnxruntime takes no zero points of free sizes.
@pytest.mark.parametrize(("zeros", "free"), [(False, False), (False, True), (True, False)])
@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_one_row_and_no_rows(bits: int, blocks: int, zeros: bool, free: bool) -> None:
    check(_rows(bits, blocks, zeros, "float32", np.int64(2), free=free), (24, 13))
    check(_rows(bits, blocks, zeros, "float32", np.zeros((2, 0), np.int64), free=free), (24, 13))


def _narrow(dtype: str, gather: int, quantize: int, zeros: bool) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model with a table of 4 bits, which onnxruntime takes as an initializer only."""
    shape, lowest = [3, 4, 16], -8 if dtype == "int4" else 0
    shape[quantize] = 32
    sizes = list(shape)
    sizes[quantize] = 2
    kind = getattr(ml_dtypes, dtype)
    table, zero = (_RNG.integers(lowest, lowest + 16, of).astype(kind) for of in (shape, sizes))
    scales = _RNG.uniform(0.02, 0.1, sizes).astype(np.float32)
    names = ["data", "indices", "scales", *(["zero"] if zeros else [])]
    node = helper.make_node(
        "GatherBlockQuantized",
        names,
        ["o0"],
        domain="com.microsoft",
        block_size=16,
        gather_axis=gather,
        quantize_axis=quantize,
    )
    constants = {"data": table, "scales": scales, "zero": zero}
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("indices", 7, ["a", 2])],
        [helper.make_tensor_value_info("o0", 1, list("pqrs"))],
        [numpy_helper.from_array(value, name) for name, value in constants.items() if name in names],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    feeds = {"indices": _RNG.integers(0, shape[gather], (2, 2)).astype(np.int64)}
    return helper.make_model(graph, opset_imports=imports, ir_version=10), feeds


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("gather", "quantize"), [(0, 1), (1, 0), (0, 2), (2, 0)])
@pytest.mark.parametrize("dtype", ["uint4", "int4"])
def test_rows_of_narrow_integers(dtype: str, gather: int, quantize: int, zeros: bool) -> None:
    model, feeds = _narrow(dtype, gather, quantize, zeros)
    (wanted,) = run(model, feeds)
    for opset in (24, 21):
        (got,) = run(standard(model, opset), feeds)
        np.testing.assert_allclose(got, wanted, 1e-6, 1e-6)


@pytest.mark.parametrize(
    ("more", "reason"),
    [({"gather_axis": 1}, "along the axis of the blocks"), ({"bits": 3}, "must be 2, 4 or 8")],
)
def test_other_tables_are_refused(more: dict[str, int], reason: str) -> None:
    case = _rows(4, 2, False, "float32", [1])
    assert reason in refusal(Case("GatherBlockQuantized", case.inputs, {**case.attributes, **more}))
