"""Writes cases of layers that no ONNX operator becomes, by the newest OpenVINO's own Python.

    python benchmarks/targets/layer_cases.py FOLDER [GROUP...]

The layers are those of `tests/inference/openvino_ir/`, splits in all their forms, and weights in types that are
smaller than float32. An IR has one layer, and what it needs. Its inputs are random, its expected outputs what OpenVINO
computes: nobody else computes layers. So what is measured is whether other releases read a layer, and compute the same.
A layer of which two runs differ is left out, and one that draws random numbers. Imports nothing of the package.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "inference" / "openvino_ir"))

import body_layer_models  # noqa: F401 - registers its groups
import every_layer
import layer_models
import openvino as ov
from layer_models import F32, I64, N, const, fitting, given, group, used_parameters
from openvino import (
    opset1,
    opset3,
    opset4,
    opset5,
    opset6,
    opset7,
    opset8,
    opset9,
    opset10,
    opset11,
    opset12,
    opset13,
    opset16,
)

I32 = np.int32
# Sizes of dynamic dimensions, the first one that a layer takes.
_SIZES = (4, 7, 3, 1)
_SECONDS = 60
# Squeeze of a dimension that is not 1: the specification forbids that, and newer releases leave the dimension as it is.
_FORBIDDEN = ("squeezed_not_one", "squeezed_never_one")
# Each release may draw other numbers.
_RANDOM = ("RandomUniform", "Multinomial")


# Splits and weights ---------------------------------------------------------------------------------------------------


@group
def splits() -> dict[str, Any]:
    """Split-1: the axis, the type, the sizes."""
    types = {"float16": np.float16, "int64": I64, "int32": I32, "uint8": np.uint8, "int8": np.int8, "bool": bool}
    return {
        "plain": opset1.split(given(2, 6, 4), const(1), 3),
        "negative": opset1.split(given(2, 6, 4), const(-2), 3),
        "narrow": opset1.split(given(2, 6, 4), const(1, I32), 3),
        "one": opset1.split(given(2, 6), const(1), 1),
        "open": opset1.split(given(N, 6), const(1), 2),
        "opened": opset1.split(given(6, N), const(1), 1),
        "axis": opset1.split(given(2, 6), opset1.parameter([], I64), 2),
        "vector": opset1.split(given(6), const(0), 2),
        "double": opset1.split(given(2, 6, dtype=np.float64), const(1), 2),
        **{name: opset1.split(given(2, 6, dtype=dtype), const(1), 2) for name, dtype in types.items()},
    }


@group
def variadic_splits() -> dict[str, Any]:
    """VariadicSplit-1: the lengths, the axis, the type."""
    types = {"float16": np.float16, "int64": I64, "int32": I32, "uint8": np.uint8, "int8": np.int8, "bool": bool}
    split = opset1.variadic_split
    return {
        "plain": split(given(2, 6, 4), const(1), const([2, 1, 3])),
        "rest": split(given(2, 6, 4), const(1), const([2, -1, 3])),
        "rest_first": split(given(2, 6, 4), const(1), const([-1, 2])),
        "rest_of_nothing": split(given(2, 6, 4), const(1), const([2, -1, 4])),
        "rest_of_any": split(given(2, N, 4), const(1), const([2, -1])),
        "empty": split(given(2, 6, 4), const(1), const([2, 0, 4])),
        "negative": split(given(2, 6, 4), const(-2), const([2, 4])),
        "narrow": split(given(2, 6, 4), const(1, I32), const([2, 4], I32)),
        "listed": split(given(2, 6, 4), const([1]), const([2, 4])),
        "one": split(given(2, 6), const(1), const([6])),
        "alone": split(given(2, 6), const(1), const([-1])),
        "open": split(given(N, 6), const(1), const([2, 4])),
        "opened": split(given(2, N), const(1), const([1, -1])),
        "vector": split(given(6), const(0), const([2, 4])),
        "lengths": split(given(2, 2), const(1), opset1.parameter([2], I64)),
        "counted": split(given(2, N), const(1), opset1.concat([const([1]), _all_but_one(given(2, N))], 0)),
        "axis": split(given(2, 2), opset1.parameter([], I64), const([1, 1])),
        "double": split(given(2, 6, dtype=np.float64), const(1), const([2, 4])),
        **{name: split(given(2, 6, dtype=dtype), const(1), const([2, 4])) for name, dtype in types.items()},
    }


def _all_but_one(data: Any) -> Any:
    return opset1.subtract(opset8.gather(opset3.shape_of(data), const([1]), const(0)), const([1]))


_SMALL = ("f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0", "nf4", "f4e2m1", "i4", "u4", "i8", "u8", "u2")


def _stored(name: str, *shape: int) -> Any:
    """A constant of numbers that all of these types have."""
    return ov.op.Constant(getattr(ov.Type, name), ov.Shape(shape), np.resize([1.0, 2.0, 1.0, 1.0, 2.0], shape).ravel())


@group
def weights() -> dict[str, Any]:
    """Weights in small types, and how they become numbers again."""
    found: dict[str, Any] = {}
    for name in _SMALL:
        held = _stored(name, 2, 4)
        found[name] = opset1.matmul(given(N, 2), opset1.convert(held, "f32"), False, False)
        half = opset1.multiply(opset1.convert(held, "f16"), const([[0.5]] * 2, np.float16))
        found[f"{name}_scaled"] = opset1.matmul(given(N, 2), opset1.convert(half, "f32"), False, False)
    return found


@group
def compressed() -> dict[str, Any]:
    """Weights as compression of large models writes them: with a zero point and a scale for each row, or for each group
    of a row.
    """
    found: dict[str, Any] = {}
    for name in ("u4", "i4", "nf4", "u8", "i8", "f8e4m3"):
        rows = _scaled(_stored(name, 4, 8), _stored(name, 4, 1) if name[0] == "u" else None, [4, 1])
        groups = _scaled(_stored(name, 4, 2, 4), _stored(name, 4, 2, 1) if name[0] == "u" else None, [4, 2, 1])
        joined = opset1.reshape(groups, const([4, 8]), False)
        for kind, weight in (("rows", rows), ("groups", joined)):
            found[f"{name}_{kind}"] = opset1.matmul(given(N, N, 8), opset1.convert(weight, "f32"), False, True)
        looked_up = opset8.gather(rows, given(N, dtype=I64), const(0))
        found[f"{name}_gathered"] = opset1.convert(looked_up, "f32")
    return found


def _scaled(held: Any, zero: Any, shape: list[int]) -> Any:
    number = opset1.convert(held, "f16")
    if zero is not None:
        number = opset1.subtract(number, opset1.convert(zero, "f16"))
    return opset1.multiply(number, opset1.constant(np.full(shape, 0.5, np.float16)))


@group
def attention() -> dict[str, Any]:
    """Attention as models have it, with each kind of mask."""

    def data() -> list[Any]:
        return [given(N, 2, N, 8), given(N, 2, N, 8), given(N, 2, N, 8)]

    dot = opset13.scaled_dot_product_attention
    return {
        "plain": dot(*data()),
        "causal": dot(*data(), causal=True),
        "mask": dot(*data(), given(N, 1, N, N)),
        "bits": dot(*data(), given(N, 1, N, N, dtype=bool)),
        "row": dot(*data(), given(N, 1, 1, N)),
        "fixed_row": dot(given(1, 2, 4, 8), given(1, 2, 4, 8), given(1, 2, 4, 8), given(1, 1, 1, 4)),
        "values": dot(given(N, 2, N, 8), given(N, 2, N, 8), given(N, 2, N, 6)),
        "fixed_values": dot(given(1, 2, 4, 8), given(1, 2, 4, 8), given(1, 2, 4, 6)),
        "scale": dot(*data(), given(N, 1, N, N), const(0.5, F32)),
        "fixed": dot(given(1, 2, 4, 8), given(1, 2, 4, 8), given(1, 2, 4, 8), given(1, 1, 4, 4, dtype=bool)),
        "fixed_causal": dot(given(1, 2, 4, 8), given(1, 2, 4, 8), given(1, 2, 4, 8), causal=True),
    }


@group
def others() -> dict[str, Any]:
    """What models have and no test."""
    return {
        "reshape": opset1.reshape(given(), const([1]), False),
        "shape_of": opset1.concat([opset3.shape_of(given()), const([2])], 0),
        "update": opset3.scatter_update(given(N, 4), const([1]), given(1, 4), const(0, I32)),
        "pool": opset8.max_pool(given(N, 3, N, N), [1, 1], [1, 1], [0, 0], [0, 0], [2, 2], "floor", "valid"),
        "average": opset1.avg_pool(given(N, 3, N, N), [1, 1], [0, 0], [0, 0], [2, 2], True, "floor", "valid"),
        **{
            f"from_{name}": opset1.convert(given(N, 3, dtype=getattr(np, name)), "f32")
            for name in ("int16", "uint16", "uint32")
        },
        **{f"to_{name}": opset1.convert(given(N, 3), name) for name in ("i16", "u16", "u32", "u64")},
    }


_UNARY = {
    opset1: "abs acos asin atan ceiling cos cosh erf exp floor log negative relu sigmoid sign sin sinh sqrt tan tanh",
    opset4: "acosh asinh atanh hswish mish softplus swish",
    opset5: "hsigmoid",
    opset9: "softsign",
    opset10: "is_nan is_inf is_finite",
    opset16: "identity",
}
_BINARY = (
    "add subtract multiply divide power maximum minimum mod floor_mod squared_difference equal not_equal greater "
    "greater_equal less less_equal"
)
_REDUCING = {opset1: "reduce_max reduce_mean reduce_min reduce_prod reduce_sum", opset4: "reduce_l1 reduce_l2"}


@group
def open_elements() -> dict[str, Any]:
    """Layers of single elements on data of which no dimension is known."""
    found = {name: getattr(held, name)(_open()) for held, names in _UNARY.items() for name in names.split()}
    found |= {name: getattr(opset1, name)(_open(), _open()) for name in _BINARY.split()}
    found |= {name: getattr(opset1, f"logical_{name}")(_open(bool), _open(bool)) for name in ("and", "or", "xor")}
    found |= {
        "not": opset1.logical_not(_open(bool)),
        "select": opset1.select(_open(bool), _open(), _open()),
        "round": opset5.round(_open(), "half_to_even"),
        "clamp": opset1.clamp(_open(), 0.2, 0.7),
        "elu": opset1.elu(_open(), 1.0),
        "gelu": opset7.gelu(_open(), "erf"),
        "prelu": opset1.prelu(_open(), const([0.1], F32)),
        "half": opset1.convert(_open(), "f16"),
        "integers": opset1.convert(_open(), "i64"),
        "softmax": opset8.softmax(_open(), -1),
        "log_softmax": opset5.log_softmax(_open(), -1),
        "mvn": opset6.mvn(_open(), const([-1]), True, 1e-5, "INSIDE_SQRT"),
        "cum_sum": opset3.cum_sum(_open(), const(1)),
    }
    return found


@group
def open_shapes() -> dict[str, Any]:
    """Layers that move elements, on data of which no dimension is known."""
    found = {
        name: getattr(held, name)(_open(), const([-1]), True)
        for held, names in _REDUCING.items()
        for name in names.split()
    }
    axis = const(-1)
    found |= {
        "split": opset1.split(_open(), axis, 2),
        "variadic_split": opset1.variadic_split(_open(), axis, const([1, -1])),
        "concat": opset1.concat([_open(), _open()], -1),
        "reshape": opset1.reshape(_open(), const([0, -1]), True),
        "transpose": opset1.transpose(_open(), const([2, 0, 1])),
        "unsqueeze": opset1.unsqueeze(_open(), const([1])),
        "squeeze": opset1.squeeze(given(N, 1, N), const([1])),
        "shape": opset3.shape_of(_open()),
        "gather": opset8.gather(_open(), const([0, 1]), axis),
        "gathered": opset8.gather(_open(), given(N, N, N, dtype=I64), axis),
        "elements": opset6.gather_elements(_open(), given(N, N, N, dtype=I64), -1),
        "slice": opset8.slice(_open(), const([0]), const([2]), const([1]), const([-1])),
        "strided": opset1.strided_slice(_open(), const([0, 0]), const([2, 2]), const([1, 1]), [0, 0], [0, 0]),
        "broadcast": opset3.broadcast(_open(), opset3.shape_of(_open()), broadcast_spec="BIDIRECTIONAL"),
        "tile": opset1.tile(_open(), const([1, 2, 1])),
        "pad": opset12.pad(_open(), const([0, 1, 0]), const([0, 0, 1]), "constant"),
        "matmul": opset1.matmul(_open(), _open(), False, True),
        "top": opset11.topk(_open(), const(2), -1, "max", "value"),
    }
    return found


def _open(dtype: Any = F32) -> Any:
    return given(N, N, N, dtype=dtype)


# Writing --------------------------------------------------------------------------------------------------------------


def main(folder: Path, wanted: Sequence[str]) -> None:
    """Write the cases of groups, all if none is named. Each layer has a process of its own: OpenVINO dies of some."""
    for name, build in _groups():
        if wanted and name not in wanted:
            continue
        layer_models.start()
        of_layers: dict[str, list[Any]] = {}
        for key, output in build().items():
            if key not in _FORBIDDEN:
                of_layers.setdefault(output.get_node().get_name(), []).append((key, output))
        for outputs in of_layers.values():
            _fork(folder, f"layer.{name}.{outputs[0][0]}", [output for _, output in outputs])
    if not wanted or "state" in wanted:
        _fork(folder, "layer.state.sum", *_state())
    count = len(list(folder.glob("*.exp.npz")))
    print(f"{count} layers in {folder}")


def _groups() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """The layers as they are registered for other tests; those of every set with fixed and with dynamic dimensions."""
    for name, build in layer_models.GROUPS.items():
        if name not in every_layer.NOT_RUN:
            yield name, build
    for kind in ("fixed", "dynamic"):
        for name in every_layer.LAYERS:
            yield kind, lambda name=name, kind=kind: every_layer.built(name, kind) or {}


def _state() -> tuple[list[Any], list[Any]]:
    """A sum that is kept from run to run: its result, and the layer that keeps it."""
    held = opset6.read_value(const([[0.0, 0.0]], F32), "sum", ov.Type.f32, ov.PartialShape([1, 2]))
    total = opset1.add(held, given(1, 2))
    return [total.output(0)], [opset6.assign(total, "sum")]


def _fork(folder: Path, name: str, outputs: Sequence[Any], sinks: Sequence[Any] = ()) -> None:
    """Write the case of one layer, in a process that ends then."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    signal.alarm(_SECONDS)
    try:
        _write(ov.Core(), folder, name, outputs, sinks)
    finally:
        os._exit(0)


def _write(core: Any, folder: Path, name: str, outputs: Sequence[Any], sinks: Sequence[Any]) -> None:
    """Write the case of a layer that runs, and computes something certain."""
    parameters = used_parameters(outputs[0])
    for number, parameter in enumerate(parameters):
        parameter.output(0).set_names({f"in{number}"})
    model = ov.Model([opset1.result(output) for output in outputs], list(sinks), parameters)
    for size in _SIZES:
        # A layer that this release does not compile, or not with this size, is no case of it.
        try:
            compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
            inputs = {f"in{number}": _values(parameter, size) for number, parameter in enumerate(parameters)}
            first, again = (list(compiled.create_infer_request().infer(inputs).values()) for _ in range(2))
        except (RuntimeError, ValueError):
            continue
        is_random = outputs[0].get_node().get_type_name() in _RANDOM
        if is_random or not all(map(np.array_equal, first, again)) or not all(map(_is_finite, first)):
            return
        ov.save_model(model, folder / f"{name}.xml", compress_to_fp16=False)
        np.savez(folder / f"{name}.in.npz", **inputs)
        np.savez(folder / f"{name}.exp.npz", **{f"out{number}": array for number, array in enumerate(first)})
        return


def _is_finite(array: np.ndarray[Any, Any]) -> bool:
    return bool(np.all(np.isfinite(array.astype(float))))


def _values(parameter: Any, size: int) -> np.ndarray[Any, Any]:
    dims = parameter.get_partial_shape()
    shape = [fitting(dim, size) for dim in dims] if dims.rank.is_static else [size, 2]
    dtype = parameter.get_element_type().to_dtype()
    if np.issubdtype(dtype, np.floating):
        return np.random.default_rng(0).uniform(0.1, 1, shape).astype(dtype)
    return np.ones(shape, dtype)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    main(Path(sys.argv[1]), sys.argv[2:])
