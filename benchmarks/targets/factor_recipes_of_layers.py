"""How operators of layers stand in models of exporters: elementwise ones, products, convolutions, recurrent ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case_graph import CaseGraph
from factor_recipes import FLOATS, OPEN, RANKS, Change, Recipe, changes, ways
from onnx import TensorProto, helper

# Elementwise ----------------------------------------------------------------------------------------------------------


def _unary(operator: str, result: str | None = None, **attributes: Any) -> Callable[..., None]:
    def build(g: CaseGraph, shape: Any = (2, 3, 8), T: str = "float32", open: Any = (), **words: Any) -> None:
        array = np.abs(g.numbers(*shape, dtype=T)) + 1 if T.startswith("float") else None
        if operator in ("Asin", "Acos", "Atanh") and array is not None:
            array = array / 4 - np.array(0.5, T)
        if operator == "Round":
            # Halves are rounded to even numbers.
            array = np.round(g.numbers(*shape) * 8) / 2
        data = g.data(shape, T, open=open, array=None if array is None else array.astype(T))
        g.use(g.put(operator, [data], **{**attributes, **words}), result or T)

    return build


def _binary(operator: str, kind: str = "float32", result: str | None = None) -> Callable[..., None]:
    def build(g: CaseGraph, shape: Any = (2, 3, 8), other: Any = None, B: str = "data", A: str = "data",
              T: str = kind, open: Any = (), open_other: Any = ()) -> None:  # fmt: skip
        def value(size: Any, how: str, opened: Any) -> str:
            array = g.numbers(*size, dtype=T)
            if T.startswith("float"):
                array = (np.abs(array) + np.array(1, T)).astype(T)
            return g.data(size, T, open=opened, array=array) if how == "data" else g.given(array, how)

        second = shape if other is None else other
        names = [value(shape, A, open), value(second, B, open if other is None else open_other)]
        g.use(g.put(operator, names), result or T)

    return build


_UNARY = changes(RANKS, {"shape": ()}, OPEN, FLOATS)
_BINARY = changes(
    [
        {"other": (8,)},
        {"other": (3, 8)},
        {"other": (2, 3, 1)},
        {"other": (1, 3, 1)},
        {"other": (2, 1, 8)},
        {"other": ()},
    ],
    [{"other": (), "B": "init"}, {"other": (8,), "B": "init"}, {"B": "init"}, {"other": (), "B": "node"}],
    [{"other": (3, 1), "B": "init"}, {"other": (1,), "B": "init"}, {"other": (8,), "B": "folded"}, {"B": "folded"}],
    [{"A": "init"}, {"shape": (), "other": (2, 3, 8), "A": "init"}, {"shape": (8,), "other": (2, 3, 8)}],
    [{"shape": (), "other": (2, 3, 8), "A": "node"}, {"shape": (8,), "other": (2, 3, 8), "A": "init"}],
    [{"shape": (2, 1, 8), "other": (2, 3, 8)}, {"shape": (2, 3, 1), "other": (1, 3, 8)}],
    RANKS,
    [{"shape": (2, 3, 4, 6), "other": (3, 1, 1), "B": "init"}, {"shape": (2, 3, 4, 6), "other": (1, 3, 1, 1)}],
    {"shape": ()},
    OPEN,
    [{"open": (0,), "other": (8,), "B": "init"}, {"open": (0,), "other": (), "B": "init"}],
    [{"open": (0,), "other": (2, 3, 1), "open_other": (0,)}],
)
# Of operators with any number of inputs, as conversion writes them, too.
_MORE = changes(
    ways("B", "init", "node", "folded"),
    [
        {"other": (), "B": "init"},
        {"other": (), "B": "folded"},
        {"other": (), "B": "node"},
        {"other": (3, 1), "B": "init"},
    ],
    [
        {"shape": (), "other": (2, 3, 8), "A": "init"},
        {"T": "int64"},
        {"T": "int32"},
        {"T": "float64"},
        {"T": "float16"},
    ],
    [
        {"T": "int64", "other": (), "B": "init"},
        {"shape": (4, 6)},
        {"shape": (6,)},
        {"shape": (2, 3, 4, 6)},
        {"open": (0,)},
    ],
)
_NUMBERS = [*FLOATS, {"T": "int64"}, {"T": "int32"}, {"T": "int64", "shape": (), "other": (), "B": "init"}]
_FEW = [
    {"other": (8,), "B": "init"},
    {"other": (), "B": "init"},
    {"shape": (2, 3, 4, 6)},
    {"shape": (4, 6)},
    {"open": (0,)},
]


def _sizes(operator: str) -> Callable[..., None]:
    """Arithmetic of sizes: a size and a number."""

    def build(g: CaseGraph, A: str = "shape", B: str = "init", listed: bool = False, use: str = "") -> None:
        one = [4] if listed else 4
        (made,) = g.put(operator, [g.given(one, A, "int64"), g.given([2] if listed else 2, B, "int64")])
        if operator in _COMPARISONS:
            g.use_number(made, "bool")
        elif use == "Cast":
            g.use_number(made, "int64")
        else:
            g.use_sizes(made, 1 if listed else 0)

    return build


_COMPARISONS = ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
_OF_SIZES = changes(
    ways("B", "node", "shape", "sized", "folded"),
    [{"listed": True}, {"A": "init", "B": "shape"}, {"A": "computed"}, {"A": "sized"}, {"A": "node", "B": "shape"}],
    [{"A": "folded"}, {"A": "sized", "B": "sized"}, {"listed": True, "A": "sized"}, {"listed": True, "B": "node"}],
    [{"A": "init", "B": "sized"}, {"use": "Cast"}, {"A": "init", "B": "init"}],
)


def _where_sizes(g: CaseGraph, C: str = "shape", X: str = "init", Y: str = "shape") -> None:
    test = g.add("Equal", [g.given([4], C, "int64"), g.constant(np.array([-1]))])
    g.use_sizes(g.put("Where", [test, g.given([1], X, "int64"), g.given([4], Y, "int64")])[0])


_WHERE_SIZES = changes(
    ways("X", "node", "folded", "sized", "shape", "computed"),
    ways("Y", "init", "node", "folded", "sized"),
    ways("C", "sized", "init"),
    [
        {"C": "init", "Y": "init"},
        {"X": "folded", "C": "sized", "Y": "sized"},
        {"X": "sized", "Y": "sized", "C": "sized"},
    ],
)


def _identity_const(g: CaseGraph, given: str = "init", shape: Any = (2, 3, 8), T: str = "float32") -> None:
    (held,) = g.put("Identity", [g.given(g.numbers(*shape, dtype=T), given)])
    g.use([g.add("Add", [g.data(shape, T), held])], T)


def _power(g: CaseGraph, shape: Any = (2, 3, 8), given: str = "init", kind: str = "float32", open: Any = ()) -> None:
    data = g.data(shape, open=open, array=np.abs(g.numbers(*shape)) + np.float32(1))
    g.use(g.put("Pow", [data, g.given(2, given, kind if g.opset >= 12 else "float32")]))


def _where(g: CaseGraph, shape: Any = (2, 3, 8), cond: Any = None, other: Any = None, X: str = "data", Y: str = "data",
           C: str = "computed", T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    size = shape if cond is None else cond
    if C == "init":
        mask = g.given(g.numbers(*size, dtype="bool"))
    else:
        mask = g.add("Greater", [g.data(size, open=open if cond is None else ()), g.constant(np.array(0, np.float32))])
    second = shape if other is None else other
    x = g.data(shape, T, open=open) if X == "data" else g.given(g.numbers(*shape, dtype=T), X)
    y = (
        g.data(second, T, open=open if other is None else ())
        if Y == "data"
        else g.given(g.numbers(*second, dtype=T), Y)
    )
    g.use(g.put("Where", [mask, x, y]), T)


_WHERE = changes(
    [{"cond": (2, 3, 1)}, {"cond": (8,)}, {"cond": (3, 8)}, {"other": ()}, {"other": (), "Y": "init"}, {"Y": "init"}],
    [
        {"X": "node"},
        {"Y": "node"},
        {"X": "folded"},
        {"Y": "folded"},
        {"other": (), "Y": "node"},
        {"X": "init"},
        {"C": "init"},
        {"X": "init", "Y": "init"},
        {"T": "int64"},
        *FLOATS[:1],
        *RANKS,
        *OPEN,
    ],
)


def _cast(g: CaseGraph, shape: Any = (2, 3, 8), T: str = "int32", to: str = "float32", open: Any = ()) -> None:
    number = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    g.use(g.put("Cast", [g.data(shape, T, open=open)], to=number), to)


def _cast_sizes(g: CaseGraph, data: str = "shape", to: str = "float32", rank: int = 0) -> None:
    number = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    g.use_number(g.put("Cast", [g.given([4] if rank else 4, data, "int64")], to=number)[0], to)


_CAST = changes(
    ({"T": "float32", "to": to} for to in ("int64", "int32", "bool", "float16", "float64", "uint8", "int8", "float32")),
    ({"T": T} for T in ("int64", "bool", "float16", "float64", "uint8")),
    [{"T": "int32", "to": "int64"}, {"T": "int64", "to": "int32"}, {"T": "bool", "to": "int64"}],
    [{"T": "int64", "to": "bool"}, {"T": "float16", "to": "float16"}, {"T": "int64", "to": "int64"}],
    RANKS,
    OPEN,
)


def _cast_like(g: CaseGraph, shape: Any = (2, 3, 8), T: str = "int32", given: str = "init", open: Any = ()) -> None:
    like = g.data((1,)) if given == "data" else g.given(np.ones((1,), np.float32), given)
    g.use(g.put("CastLike", [g.data(shape, T, open=open), like]))


def _cast_number_like(g: CaseGraph, given: str = "init", like: str = "data", open: Any = ()) -> None:
    """A constant of a formula gets the type of its data."""
    data = g.data((2, 3, 8), open=open) if like == "data" else g.graph_input(g.numbers(2, 3, 8), open=open)
    (made,) = g.put("CastLike", [g.given(np.float32(2), given), data])
    g.use([g.add("Mul", [data, made])])


def _clip(g: CaseGraph, shape: Any = (2, 3, 8), low: str = "init", high: str = "init", T: str = "float32",
          open: Any = ()) -> None:  # fmt: skip
    data = g.data(shape, T, open=open)
    if g.opset < 11:
        g.use(g.put("Clip", [data], min=None if low == "absent" else 0.0, max=None if high == "absent" else 6.0), T)
    else:
        g.use(g.put("Clip", [data, g.given(0, low, T), g.given(6, high, T)]), T)


_CLIP = changes(
    [{"low": "absent"}, {"high": "absent"}, {"low": "absent", "high": "absent"}, *RANKS, *OPEN, *FLOATS],
)
_CLIP_11 = changes(ways("low", "node", "computed"), ways("high", "node", "computed"), [{"T": "int64"}])


def _prelu(g: CaseGraph, shape: Any = (2, 3, 4, 5), slope: Any = (3, 1, 1), given: str = "init",
           open: Any = ()) -> None:  # fmt: skip
    g.use(g.put("PRelu", [g.data(shape, open=open), g.given(g.numbers(*slope), given)]))


_PRELU = changes(
    [
        {"slope": (1,)},
        {"slope": (1, 1, 1)},
        {"slope": (5,)},
        {"slope": (3, 4, 5)},
        {"slope": (1, 3, 1, 1)},
        {"slope": ()},
    ],
    ways("given", "node", "computed", "folded"),
    [{"shape": (2, 3), "slope": (3,)}, {"shape": (2, 3, 5), "slope": (3, 1)}, {"shape": (2, 3), "slope": (1,)}, *OPEN],
)

# Products -------------------------------------------------------------------------------------------------------------


def _matmul(g: CaseGraph, a: Any = (2, 3, 4), b: Any = (4, 5), B: str = "init", A: str = "data", T: str = "float32",
            open: Any = (), open_other: Any = ()) -> None:  # fmt: skip
    first = g.data(a, T, open=open) if A == "data" else g.given(g.numbers(*a, dtype=T), A)
    second = g.data(b, T, open=open_other) if B == "data" else g.given(g.numbers(*b, dtype=T), B)
    g.use(g.put("MatMul", [first, second]), T)


_MATMUL = changes(
    [{"a": (3, 4)}, {"a": (2, 2, 3, 4)}, {"a": (4,)}, {"b": (4,)}, {"a": (3, 4), "b": (4,)}, *OPEN, *FLOATS],
    [{"B": "data", "b": (2, 4, 5)}, {"B": "data"}, {"a": (2, 2, 3, 4), "b": (2, 2, 4, 5), "B": "data"}],
    [{"a": (2, 2, 3, 4), "b": (1, 2, 4, 5), "B": "data"}, {"a": (3, 4), "b": (2, 4, 5), "B": "data"}],
    [{"b": (2, 4, 5)}, {"B": "node"}, {"B": "folded"}, {"A": "init", "a": (3, 4), "B": "data", "b": (4, 5)}],
    [{"a": (2, 2, 3, 4), "b": (2, 2, 4, 5), "B": "data", "open": (0,), "open_other": (0,)}],
    [{"a": (2, 2, 3, 4), "b": (2, 2, 4, 5), "B": "data", "open": (2,)}, {"T": "int32", "B": "data"}],
)


def _gemm(g: CaseGraph, a: Any = (3, 4), b: Any = (5, 4), C: Any = (5,), c: str = "init", B: str = "init",
          transA: Any = None, transB: Any = 1, alpha: Any = None, beta: Any = None, T: str = "float32",
          open: Any = ()) -> None:  # fmt: skip
    first = g.data(a, T, open=open)
    second = g.data(b, T) if B == "data" else g.given(g.numbers(*b, dtype=T), B)
    third = "" if c == "absent" else g.given(g.numbers(*C, dtype=T), c)
    g.use(g.put("Gemm", [first, second, third], transA=transA, transB=transB, alpha=alpha, beta=beta), T)


_GEMM = changes(
    [
        {"transB": None, "b": (4, 5)},
        {"transA": 1, "a": (4, 3)},
        {"alpha": 0.5},
        {"beta": 0.5},
        {"alpha": 1.0, "beta": 1.0},
    ],
    ways("B", "data", "node", "folded"),
    ways("c", "node", "computed", "folded"),
    [{"C": (3, 5)}, {"C": (1, 5)}, {"C": (3, 1)}, {"C": ()}, {"C": (1,)}, {"open": (0,)}, {"open": (1,)}, *FLOATS],
    [{"B": "data", "b": (4, 5), "transB": None}],
)

# Convolutions and pools -----------------------------------------------------------------------------------------------


def _conv(g: CaseGraph, shape: Any = (2, 4, 9, 9), out: int = 6, kernel: Any = (3, 3), group: Any = 1,
          bias: str = "init", W: str = "init", strides: Any = (1, 1), pads: Any = (1, 1, 1, 1),
          dilations: Any = (1, 1), auto: Any = None,
          T: str = "float32", open: Any = (), kernel_shape: bool = True) -> None:  # fmt: skip
    spatial = len(shape) - 2
    kernel, strides, dilations = (
        (tuple(each) * 3)[:spatial] if each else None for each in (kernel, strides, dilations)
    )
    pads = None if pads is None else (tuple(pads) if len(pads) == 2 * spatial else (1,) * 2 * spatial)
    weights = g.given(g.numbers(out, shape[1] // (group or 1), *kernel, dtype=T), W)
    held = {"strides": strides, "pads": pads, "dilations": dilations, "group": group, "auto_pad": auto}
    if kernel_shape:
        held["kernel_shape"] = kernel
    third = "" if bias == "absent" else g.given(g.numbers(out, dtype=T), bias)
    g.use(g.put("Conv", [g.data(shape, T, open=open), weights, third], **held), T)


_CONV = changes(
    [
        {"group": 4, "out": 4},
        {"group": 2},
        {"group": None},
        {"kernel": (1, 1), "pads": (0, 0, 0, 0)},
        {"kernel": (3, 1)},
    ],
    [{"strides": (2, 2)}, {"strides": (2, 1)}, {"strides": None}, {"dilations": (2, 2)}, {"dilations": None}],
    [{"pads": (0, 0, 0, 0)}, {"pads": None}, {"pads": (0, 1, 1, 2)}, {"kernel_shape": False}],
    [{"pads": None, "auto": "SAME_UPPER"}, {"pads": None, "auto": "SAME_LOWER"}, {"pads": None, "auto": "VALID"}],
    [{"auto": "NOTSET"}, {"pads": None, "auto": "SAME_UPPER", "strides": (2, 2)}, {"dilations": (1, 2)}],
    ways("bias", "absent", "node", "computed", "folded"),
    ways("W", "node", "computed", "folded"),
    [{"shape": (2, 4, 9)}, {"shape": (2, 4, 5, 5, 5)}, *OPEN, {"open": (2, 3)}, {"open": (0, 2, 3)}, *FLOATS],
)


def _conv_transpose(g: CaseGraph, shape: Any = (2, 4, 5, 5), out: int = 3, kernel: Any = (3, 3), group: Any = 1,
                    bias: str = "init", W: str = "init", strides: Any = (2, 2), pads: Any = (1, 1, 1, 1),
                    dilations: Any = (1, 1), output_padding: Any = None, output_shape: Any = None, auto: Any = None,
                    T: str = "float32", open: Any = (), kernel_shape: bool = True) -> None:  # fmt: skip
    spatial = len(shape) - 2
    kernel, strides, dilations = (
        (tuple(each) * 3)[:spatial] if each else None for each in (kernel, strides, dilations)
    )
    pads = None if pads is None else (tuple(pads) if len(pads) == 2 * spatial else (1,) * 2 * spatial)
    weights = g.given(g.numbers(shape[1], out // (group or 1), *kernel, dtype=T), W)
    third = "" if bias == "absent" else g.given(g.numbers(out, dtype=T), bias)
    held = {
        "strides": strides,
        "pads": pads,
        "dilations": dilations,
        "group": group,
        "auto_pad": auto,
        "kernel_shape": kernel if kernel_shape else None,
    }
    held |= {"output_padding": output_padding, "output_shape": output_shape}
    g.use(g.put("ConvTranspose", [g.data(shape, T, open=open), weights, third], **held), T)


_CONV_TRANSPOSE = changes(
    [{"group": 2, "out": 4}, {"group": 4, "out": 4}, {"group": None}, {"kernel": (2, 2), "pads": (0, 0, 0, 0)}],
    [{"strides": (1, 1)}, {"strides": (2, 1)}, {"strides": None}, {"dilations": (2, 2)}, {"dilations": None}],
    [{"pads": (0, 0, 0, 0)}, {"pads": None}, {"pads": (0, 1, 1, 0)}, {"output_padding": (1, 1)}],
    [{"output_padding": (0, 0)}, {"pads": None, "output_shape": (10, 10)}, {"pads": None, "auto": "SAME_UPPER"}],
    [{"pads": None, "auto": "SAME_LOWER"}, {"pads": None, "auto": "VALID"}, {"auto": "NOTSET"}],
    ways("bias", "absent", "node", "computed"),
    ways("W", "node", "computed"),
    [{"shape": (2, 4, 5)}, {"shape": (2, 4, 3, 3, 3)}, *OPEN, {"open": (2, 3)}, *FLOATS, {"kernel_shape": False}],
)


def _pool(operator: str) -> Callable[..., None]:
    def build(g: CaseGraph, shape: Any = (2, 3, 8, 8), kernel: Any = (2, 2), strides: Any = (2, 2),
              pads: Any = (0, 0, 0, 0), ceil: Any = None, dilations: Any = None, count: Any = None, auto: Any = None,
              order: Any = None, used: str = "1", T: str = "float32", open: Any = ()) -> None:  # fmt: skip
        spatial = len(shape) - 2
        kernel, strides, dilations = (
            (tuple(each) * 3)[:spatial] if each else None for each in (kernel, strides, dilations)
        )
        pads = None if pads is None else (tuple(pads) if len(pads) == 2 * spatial else tuple(pads[:1]) * 2 * spatial)
        held = {
            "kernel_shape": kernel,
            "strides": strides,
            "pads": pads,
            "ceil_mode": ceil,
            "auto_pad": auto,
            "dilations": dilations,
        }
        if operator == "AveragePool":
            held["count_include_pad"] = count
        else:
            held["storage_order"] = order
        made = g.put(operator, [g.data(shape, T, open=open)], used, **held)
        g.use(made[:1], T)
        g.use(made[1:], "int64")

    return build


_POOL = changes(
    [{"kernel": (3, 3), "pads": (1, 1, 1, 1)}, {"kernel": (3, 2)}, {"strides": (1, 1)}, {"strides": None}],
    [{"strides": (2, 1)}, {"pads": None}, {"kernel": (3, 3), "pads": (0, 0, 1, 1)}, {"auto": "NOTSET"}],
    [{"pads": None, "auto": "SAME_UPPER", "kernel": (3, 3)}, {"pads": None, "auto": "SAME_LOWER", "kernel": (3, 3)}],
    [
        {"pads": None, "auto": "VALID"},
        {"shape": (2, 3, 8)},
        {"shape": (2, 3, 6, 6, 6)},
        *OPEN,
        {"open": (2, 3)},
        *FLOATS,
    ],
)
_CEIL = [{"ceil": 0}, {"ceil": 1, "kernel": (3, 3)}, {"ceil": 1, "kernel": (3, 3), "pads": (1, 1, 1, 1)}]
_COUNT = [{"count": 0}, {"count": 1}, {"count": 1, "kernel": (3, 3), "pads": (1, 1, 1, 1)}]


def _global_pool(operator: str) -> Callable[..., None]:
    def build(g: CaseGraph, shape: Any = (2, 3, 8, 8), T: str = "float32", open: Any = ()) -> None:
        g.use(g.put(operator, [g.data(shape, T, open=open)]), T)

    return build


_GLOBAL = changes([{"shape": (2, 3, 8)}, {"shape": (2, 3, 4, 4, 4)}, *OPEN, {"open": (2, 3)}, *FLOATS])

# Normalization --------------------------------------------------------------------------------------------------------


def _batch_norm(g: CaseGraph, shape: Any = (2, 3, 4, 5), given: str = "init", epsilon: Any = 1e-5, momentum: Any = 0.9,
                training: Any = None, T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    lists = [g.given(np.abs(g.numbers(shape[1], dtype=T)) + np.array(0.5, T), given) for _ in range(4)]
    held = {"epsilon": epsilon, "momentum": momentum} | ({"training_mode": training} if g.opset >= 14 else {})
    g.use(g.put("BatchNormalization", [g.data(shape, T, open=open), *lists], **held), T)


_BATCH_NORM = changes(
    [
        {"epsilon": None},
        {"epsilon": 1e-3},
        {"momentum": None},
        {"momentum": 0.1},
        {"shape": (2, 3)},
        {"shape": (2, 3, 5)},
    ],
    [{"shape": (2, 3, 4, 4, 4)}, *ways("given", "node", "computed", "folded"), *OPEN, *FLOATS],
)


def _instance_norm(g: CaseGraph, shape: Any = (2, 3, 4, 5), given: str = "init", epsilon: Any = 1e-5,
                   T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    lists = [g.given(g.numbers(shape[1], dtype=T), given) for _ in range(2)]
    g.use(g.put("InstanceNormalization", [g.data(shape, T, open=open), *lists], epsilon=epsilon), T)


def _layer_norm(g: CaseGraph, shape: Any = (2, 3, 8), axis: Any = -1, size: Any = None, scale: str = "init",
                bias: str = "init", epsilon: Any = 1e-5, stash: Any = None, used: str = "1", T: str = "float32",
                open: Any = ()) -> None:  # fmt: skip
    rank = len(shape)
    own = tuple(shape[(-1 if axis is None else axis) % rank :]) if size is None else size
    lists = [g.given(g.numbers(*own, dtype=T), scale), g.given(g.numbers(*own, dtype=T), bias)]
    made = g.put(
        "LayerNormalization", [g.data(shape, T, open=open), *lists], used, axis=axis, epsilon=epsilon, stash_type=stash
    )
    g.use(made[:1], T)
    g.use(made[1:])


_LAYER_NORM = changes(
    [{"axis": 1}, {"axis": 2}, {"axis": None}, {"axis": -2}, {"bias": "absent"}, {"epsilon": None}, {"epsilon": 1e-3}],
    [{"used": "111"}, {"used": "11"}, {"used": "101"}, {"used": "1uu"}, {"stash": 1}, {"shape": (3, 8)}, {"axis": 0}],
    [{"shape": (2, 3, 4, 8)}, {"shape": (2, 3, 4, 8), "axis": 2}],
    ways("scale", "node", "computed", "folded"),
    ways("bias", "node", "computed", "folded"),
    [{"scale": "folded", "bias": "folded"}],
    OPEN,
    FLOATS,
)


def _group_norm(g: CaseGraph, shape: Any = (2, 4, 5, 5), groups: int = 2, open: Any = ()) -> None:
    count = groups if g.opset < 21 else shape[1]
    lists = [g.given(g.numbers(count)) for _ in range(2)]
    g.use(g.put("GroupNormalization", [g.data(shape, open=open), *lists], num_groups=groups))


def _dropout(g: CaseGraph, shape: Any = (2, 3, 8), ratio: str = "absent", mode: str = "absent", used: str = "1",
             open: Any = ()) -> None:  # fmt: skip
    data = g.data(shape, open=open)
    if g.opset < 12:
        made = g.put("Dropout", [data], used)
    else:
        made = g.put("Dropout", [data, g.given(0.5, ratio, "float32"), g.given(False, mode, "bool")], used)
    g.use(made[:1])
    g.use(made[1:], "bool")


# Recurrent ------------------------------------------------------------------------------------------------------------


def _recurrent(operator: str, gates: int) -> Callable[..., None]:
    def build(g: CaseGraph, direction: Any = None, bias: str = "init", lens: str = "absent", h: str = "init",
              c: str = "init", P: str = "absent", used: str = "111" if operator == "LSTM" else "11", layout: Any = None,
              clip: Any = None, reset: Any = 1, forget: Any = None, acts: Any = None, W: str = "init",
              T: str = "float32", open: Any = ()) -> None:  # fmt: skip
        seq, batch, size, hidden = 5, 2, 3, 4
        both = 2 if direction == "bidirectional" else 1
        turned = bool(layout)
        shape = (batch, seq, size) if turned else (seq, batch, size)
        state = (batch, both, hidden) if turned else (both, batch, hidden)
        names = [g.data(shape, T, open=open)]
        names += [g.given(g.numbers(both, gates * hidden, each, dtype=T), W) for each in (size, hidden)]
        names.append("" if bias == "absent" else g.given(g.numbers(both, 2 * gates * hidden, dtype=T), bias))
        names.append("" if lens == "absent" else g.given([seq] * batch, lens, "int32"))

        def start(how: str) -> str:
            if how == "data":
                return g.data(state, T, open=(0 if turned else 1,) if open else ())
            return "" if how == "absent" else g.given(g.numbers(*state, dtype=T), how)

        names.append(start(h))
        held = {"hidden_size": hidden, "direction": direction, "layout": layout, "clip": clip, "activations": acts}
        if operator == "LSTM":
            names += [start(c), "" if P == "absent" else g.given(g.numbers(both, 3 * hidden, dtype=T), P)]
            held["input_forget"] = forget
        if operator == "GRU":
            held["linear_before_reset"] = reset
        g.use(g.put(operator, names, used, **held), T)

    return build


_STATES = [{"h": how, "c": how} for how in ("absent", "data", "node")]
_RECURRENT: list[Change] = changes(
    [{"direction": each} for each in ("forward", "reverse", "bidirectional")],
    [{"bias": "absent"}, {"bias": "node"}, {"lens": "init"}, {"lens": "input"}, *_STATES, {"clip": 3.0}],
    [{"used": "1"}, {"used": "01"}, {"used": "1u"}, {"used": "u1"}, {"used": "11"}],
    [{"W": "node"}, {"W": "computed"}, {"h": "absent", "c": "absent", "used": "1"}],
    [
        {"h": "absent", "c": "absent", "open": (0,)},
        {"h": "absent", "c": "absent", "open": (1,)},
        {"h": "data", "c": "data", "open": (1,)},
    ],
    [{"open": (0,)}, {"T": "float16"}, {"T": "float64"}, {"direction": "bidirectional", "h": "absent", "c": "absent"}],
    [{"direction": "bidirectional", "used": "1"}],
)
_LSTM = [
    {"h": "absent"},
    {"c": "absent"},
    {"P": "init"},
    {"forget": 1},
    {"used": "1uu"},
    {"used": "011"},
    {"used": "001"},
]
_LSTM += [{"used": "u11"}, {"acts": ["Sigmoid", "Tanh", "Tanh"]}, {"acts": ["Sigmoid", "Relu", "Relu"]}]
_GRU = [{"reset": 0}, {"reset": None}, {"acts": ["Sigmoid", "Tanh"]}]
_LAYOUT = [{"layout": 1}, {"layout": 0}, {"layout": 1, "h": "absent", "c": "absent"}]

# Images ---------------------------------------------------------------------------------------------------------------


def _resize(g: CaseGraph, shape: Any = (2, 3, 4, 4), mode: str = "nearest", scales: Any = (1, 1, 2, 2),
            sizes: Any = None, given: str = "init", way: Any = "asymmetric", rounding: Any = "floor",
            roi: str = "absent", exclude: Any = None, coefficient: Any = None, antialias: Any = None, axes: Any = None,
            T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    data = g.data(shape, T, open=open)
    if g.opset < 11:
        g.use(g.put("Resize", [data, g.given(list(scales), given, "float32")], mode=mode), T)
        return
    box = g.given(np.zeros((0,)), "init", "float32") if roi == "absent" and g.opset < 13 else ""
    if roi == "init":
        box = g.given([0.0] * len(shape) + [1.0] * len(shape), "init", "float32")
    inputs = [data, box]
    if sizes is None:
        inputs.append(g.given(list(scales), given, "float32"))
    else:
        inputs.append(g.given(np.zeros((0,)), "init", "float32") if g.opset < 13 else "")
        inputs.append(g.given(list(sizes), given, "int64"))
    held = {
        "mode": mode,
        "coordinate_transformation_mode": way,
        "exclude_outside": exclude,
        "cubic_coeff_a": coefficient,
    }
    held["nearest_mode"] = rounding
    if g.opset >= 18:
        held |= {"antialias": antialias, "axes": axes}
    g.use(g.put("Resize", inputs, **held), T)


_RESIZE = changes(
    ({"scales": each} for each in ((1, 1, 0.5, 0.5), (1, 1, 1.5, 1.5), (1, 1, 2, 1), (1, 1, 3, 0.5))),
    ways("given", "node", "folded"),
    [
        {"sizes": (2, 3, 8, 8)},
        {"sizes": (2, 3, 8, 8), "given": "shape"},
        {"sizes": (2, 3, 2, 2)},
        {"sizes": (2, 3, 6, 6)},
    ],
    ({"way": each} for each in ("half_pixel", "pytorch_half_pixel", "align_corners", None)),
    [{"way": "half_pixel", "sizes": (2, 3, 7, 9)}, {"way": "tf_half_pixel_for_nn"}, {"roi": "init"}],
    OPEN,
    [{"open": (2, 3)}, {"open": (0, 2, 3)}, {"T": "float16"}, {"T": "float64"}],
    [{"shape": (2, 3, 6), "scales": (1, 1, 2)}, {"shape": (1, 2, 3, 3, 3), "scales": (1, 1, 2, 2, 2)}],
)
_NEAREST = [{"rounding": each} for each in ("ceil", "round_prefer_floor", "round_prefer_ceil", None)]
_RESIZE_18 = [{"antialias": 1, "scales": (1, 1, 0.5, 0.5)}, {"antialias": 0}, {"axes": (2, 3), "scales": (2, 2)}]


def _mode(mode: str, changed: list[Change]) -> list[Change]:
    return [{"way": "half_pixel", **change, "mode": mode} for change in ({}, *changed)]


def _upsample(g: CaseGraph, shape: Any = (2, 3, 4, 4), scales: Any = (1, 1, 2, 2), mode: str = "nearest",
              given: str = "init", open: Any = ()) -> None:  # fmt: skip
    data = g.data(shape, open=open)
    if g.opset < 9:
        g.use(g.put("Upsample", [data], mode=mode, scales=[float(each) for each in scales]))
    else:
        g.use(g.put("Upsample", [data, g.given(list(scales), given, "float32")], mode=mode))


def _grid_sample(g: CaseGraph, shape: Any = (2, 3, 5, 6), mode: Any = "linear", padding: Any = "zeros",
                 corners: Any = 0, grid: str = "data", T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    old = {"linear": "bilinear", "cubic": "bicubic"}
    kind = old.get(mode, mode) if g.opset < 20 else mode
    points = g.numbers(shape[0], *((4,) * (len(shape) - 2)), len(shape) - 2, dtype=T)
    held = g.data(points.shape, T, array=points - np.array(0.5, T)) if grid == "data" else g.given(points)
    data = g.data(shape, T, open=open)
    g.use(g.put("GridSample", [data, held], mode=kind, padding_mode=padding, align_corners=corners), T)


_GRID = changes(
    [{"mode": "nearest"}, {"mode": "cubic"}, {"mode": None}, {"padding": "border"}, {"padding": "reflection"}],
    [{"corners": 1}, {"corners": None}, {"grid": "init"}, {"open": (0,)}, {"open": (2, 3)}, {"T": "float64"}],
)


def _depth(operator: str) -> Callable[..., None]:
    def build(g: CaseGraph, shape: Any = (2, 8, 4, 4), mode: Any = None, open: Any = ()) -> None:
        held = {"mode": mode} if operator == "DepthToSpace" and g.opset >= 11 else {}
        g.use(g.put(operator, [g.data(shape, open=open)], blocksize=2, **held))

    return build


# Graphs ---------------------------------------------------------------------------------------------------------------


def _if(g: CaseGraph, cond: str = "computed", shape: Any = (2, 3), other: Any = (2, 3), outputs: int = 1,
        captures: bool = True, T: str = "float32") -> None:  # fmt: skip
    x = g.data(shape, T)
    if cond == "shape":
        test = g.add("Equal", [g.given(2, "shape", "int64"), g.constant(np.array(2))])
    elif cond == "computed":
        total = g.add("ReduceMax", [g.data((2,))], keepdims=0)
        test = g.add("Greater", [total, g.constant(np.array(-9, np.float32))])
    else:
        test = g.given(True, cond, "bool")
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(T))

    def branch(name: str, size: Any, sign: float) -> Any:
        nodes, results = [], []
        for number in range(outputs):
            result, held = f"{name}{number}", f"{name}c{number}"
            array = np.full(size, sign + number, T)
            value = helper.make_tensor(held, kind, size, array.tobytes(), raw=True)
            nodes.append(helper.make_node("Constant", [], [held], value=value))
            same = captures and tuple(size) == tuple(shape)
            nodes.append(helper.make_node("Mul", [x if same else held, held], [result]))
            results.append(helper.make_tensor_value_info(result, kind, size))
        return helper.make_graph(nodes, name, [], results)

    branches = {"then_branch": branch("then", shape, 2.0), "else_branch": branch("else", other, 3.0)}
    made = g.put("If", [test], outputs, **branches)
    # Of branches with other shapes, exporters declare no shape of the results.
    g.use([g.add("Reshape", [name, g.constant(np.array([-1]))]) for name in made] if other != shape else made, T)


_IF = changes(
    ways("cond", "init", "shape", "input"),
    [{"other": (4, 3)}, {"other": (6,)}, {"other": (1, 2, 3)}, {"outputs": 2}, {"captures": False}, {"T": "int64"}],
)


def _loop(g: CaseGraph, count: str = "init", cond: str = "init", shape: Any = (2, 3), carried: int = 1,
          scanned: bool = False, captures: bool = False) -> None:  # fmt: skip
    start = [g.data(shape) for _ in range(carried)]
    extra = g.data(shape) if captures else ""
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    nodes = [helper.make_node("Constant", [], ["k"], value=one), helper.make_node("Identity", ["c_in"], ["c_out"])]
    ins = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("c_in", TensorProto.BOOL, []),
    ]
    outs = [helper.make_tensor_value_info("c_out", TensorProto.BOOL, [])]
    for number in range(carried):
        ins.append(helper.make_tensor_value_info(f"a{number}", TensorProto.FLOAT, shape))
        nodes.append(helper.make_node("Add", [f"a{number}", extra or "k"], [f"b{number}"]))
        outs.append(helper.make_tensor_value_info(f"b{number}", TensorProto.FLOAT, shape))
    if scanned:
        nodes.append(helper.make_node("Mul", ["b0", "k"], ["s"]))
        outs.append(helper.make_tensor_value_info("s", TensorProto.FLOAT, shape))
    body = helper.make_graph(nodes, "body", ins, outs)
    limit, going = g.given(3, count, "int64"), g.given(True, cond, "bool")
    g.use(g.put("Loop", [limit, going, *start], carried + scanned, body=body))


_LOOP = changes(
    ways("count", "node", "shape", "input"),
    ways("cond", "node", "absent"),
    [{"shape": (4,)}, {"shape": ()}, {"carried": 2}, {"scanned": True}, {"captures": True}],
)

# Quantized ------------------------------------------------------------------------------------------------------------


def _quantize(operator: str) -> Callable[..., None]:
    def build(g: CaseGraph, shape: Any = (2, 3, 4, 5), scale: Any = (), zero: str = "init", kind: str = "uint8",
              axis: Any = None, given: str = "init", open: Any = ()) -> None:  # fmt: skip
        scales, zeros = np.full(scale, 0.05, np.float32), np.full(scale, 3, kind)
        if operator == "QuantizeLinear":
            data = g.data(shape, open=open)
        else:
            data = (
                g.graph_input(g.numbers(*shape, dtype=kind), open=open)
                if given != "weights"
                else g.given(g.numbers(*shape, dtype=kind))
            )
        lists = [g.given(scales, "init"), "" if zero == "absent" else g.given(zeros, zero)]
        held = {"axis": axis} if g.opset >= 13 else {}
        g.use(g.put(operator, [data, *lists], **held), kind if operator == "QuantizeLinear" else "float32")

    return build


_QUANTIZE = changes(
    [{"kind": "int8"}, {"zero": "absent"}, {"scale": (3,), "axis": 1}, {"scale": (3,)}, {"zero": "node"}, *OPEN[:2]],
    [{"shape": (4, 6)}, {"shape": (6,)}, {"shape": (2, 3, 4)}],
)


def _conv_integer(g: CaseGraph, shape: Any = (2, 3, 6, 6), x: str = "uint8", w: str = "uint8", xz: str = "init",
                  wz: str = "init", pads: Any = (1, 1, 1, 1), open: Any = ()) -> None:  # fmt: skip
    data = g.graph_input(g.numbers(*shape, dtype=x), open=open)
    weights = g.given(g.numbers(4, shape[1], 3, 3, dtype=w))
    zeros = [g.given(2, xz, x), g.given(2, wz, w)]
    g.use(g.put("ConvInteger", [data, weights, *zeros], kernel_shape=(3, 3), pads=pads), "int32")


def _matmul_integer(g: CaseGraph, a: Any = (2, 3, 4), b: Any = (4, 5), x: str = "uint8", w: str = "int8",
                    xz: str = "init", wz: str = "init", open: Any = ()) -> None:  # fmt: skip
    names = [g.graph_input(g.numbers(*a, dtype=x), open=open), g.given(g.numbers(*b, dtype=w))]
    g.use(g.put("MatMulInteger", [*names, g.given(2, xz, x), g.given(2, wz, w)]), "int32")


_INTEGERS = [
    {"w": "int8"},
    {"w": "uint8"},
    {"x": "int8"},
    {"xz": "absent"},
    {"wz": "absent"},
    {"open": (0,)},
    {"wz": "absent", "xz": "absent"},
]

_FLOAT_UNARY = ("Relu", "Sigmoid", "Tanh", "Exp", "Sqrt", "Neg", "Abs", "Erf", "Floor", "Ceil", "Reciprocal", "Log",
                "Sin", "Cos", "HardSigmoid", "Elu", "Softplus", "LeakyRelu", "Sign", "Identity", "Round", "Selu",
                "Softsign")  # fmt: skip
_NEWER_UNARY = {"HardSwish": 14, "Gelu": 20, "Mish": 18, "Celu": 12, "ThresholdedRelu": 10}
_FULL = ("Relu", "Sigmoid", "Identity")

LAYERS = [
    Recipe(
        "CastLike",
        _cast_number_like,
        [{"given": "node"}, {"like": "input"}, *OPEN, {"like": "input", "open": (0,)}],
        since=15,
        family="number",
    ),
    *(Recipe(name, _binary(name), _MORE, since=8, family="more") for name in ("Max", "Min", "Sum", "Mean")),
    Recipe("CastLike", _cast_like, [*ways("given", "node", "data"), *RANKS[1:3], *OPEN, {"T": "int64"}], since=15),
    Recipe("Mod", _binary("Mod", "int64"), [*_FEW, {"T": "int32"}], since=10, family="data"),
    *(
        Recipe(name, _unary(name), _UNARY if name in _FULL else [*_UNARY[1:5], {"open": (0,)}, {"T": "float16"}])
        for name in _FLOAT_UNARY
    ),
    *(Recipe(name, _unary(name), [*_UNARY[1:3], {"open": (0,)}], since=since) for name, since in _NEWER_UNARY.items()),
    Recipe("LeakyRelu", _unary("LeakyRelu"), [{"alpha": 0.2}], family="alpha"),
    Recipe("Gelu", _unary("Gelu"), [{"approximate": "tanh"}], since=20, family="tanh"),
    *(Recipe(name, _binary(name), [*_BINARY, *_NUMBERS]) for name in ("Add", "Mul", "Sub", "Div")),
    *(Recipe(name, _sizes(name), _OF_SIZES, family="sizes") for name in ("Add", "Mul", "Sub", "Div")),
    *(
        Recipe(name, _binary(name), [*_FEW, *FLOATS[:1], {"other": (3, 1)}, {"other": ()}], since=8)
        for name in ("Pow", "Max", "Min")
    ),
    Recipe(
        "Pow",
        _power,
        [
            {"given": "node"},
            {"given": "folded"},
            {"shape": (2, 3, 4, 6)},
            {"shape": ()},
            {"kind": "int64"},
            {"open": (0,)},
        ],
        family="number",
    ),
    *(
        Recipe(
            name, _binary(name, result="bool"), [*_FEW, {"T": "int64"}, {"T": "int32"}, {"other": (3, 1)}], since=since
        )
        for name, since in (("Greater", 9), ("Less", 9), ("Equal", 11), ("GreaterOrEqual", 12), ("LessOrEqual", 12))
    ),
    *(
        Recipe(name, _binary(name, "bool"), [{"other": (8,)}, {"shape": (4, 6)}, {"open": (0,)}])
        for name in ("And", "Or", "Xor")
    ),
    *(
        Recipe(name, _sizes(name), _OF_SIZES, since=since, family="sizes")
        for name, since in (("Equal", 11), ("Greater", 9), ("Less", 9), ("Mod", 10))
    ),
    Recipe(
        "Identity",
        _identity_const,
        [{"shape": (8,)}, {"shape": (4, 6)}, {"given": "node"}, {"shape": (2, 3, 2, 2)}, {"T": "int64", "shape": ()}],
        family="const",
    ),
    Recipe("Where", _where_sizes, _WHERE_SIZES, since=9, family="sizes"),
    Recipe("Where", _where, _WHERE, since=9),
    Recipe("Cast", _cast, _CAST, family="data"),
    Recipe(
        "Cast",
        _cast_sizes,
        [
            {"data": "computed"},
            {"rank": 1},
            {"to": "int32"},
            {"to": "bool"},
            {"data": "sized"},
            {"to": "int64"},
            {"data": "sized", "to": "int64"},
            {"data": "folded"},
            {"data": "init"},
        ],
        family="sizes",
    ),
    Recipe("Clip", _clip, _CLIP, until=10),
    Recipe("Clip", _clip, [*_CLIP, *_CLIP_11], since=11),
    Recipe("PRelu", _prelu, _PRELU),
    Recipe("MatMul", _matmul, _MATMUL),
    Recipe("Gemm", _gemm, _GEMM, until=10),
    Recipe("Gemm", _gemm, [*_GEMM, {"c": "absent"}], since=11),
    Recipe("Conv", _conv, _CONV),
    Recipe("ConvTranspose", _conv_transpose, _CONV_TRANSPOSE),
    Recipe("MaxPool", _pool("MaxPool"), [*_POOL, {"used": "1u"}], until=9),
    Recipe(
        "MaxPool",
        _pool("MaxPool"),
        [*_POOL, *_CEIL, {"used": "1u"}, {"used": "11"}, {"order": 0}, {"dilations": (1, 1)}, {"dilations": (2, 2)}],
        since=10,
    ),
    Recipe("AveragePool", _pool("AveragePool"), [*_POOL, *_COUNT], until=9),
    Recipe("AveragePool", _pool("AveragePool"), [*_POOL, *_COUNT, *_CEIL], since=10),
    *(Recipe(name, _global_pool(name), _GLOBAL) for name in ("GlobalAveragePool", "GlobalMaxPool")),
    Recipe("BatchNormalization", _batch_norm, _BATCH_NORM, until=13),
    Recipe("BatchNormalization", _batch_norm, [*_BATCH_NORM, {"training": 0}], since=14),
    Recipe(
        "InstanceNormalization",
        _instance_norm,
        [{"shape": (2, 3, 8)}, {"epsilon": None}, {"given": "node"}, *OPEN, *FLOATS],
    ),
    Recipe("LayerNormalization", _layer_norm, _LAYER_NORM, since=17),
    Recipe("GroupNormalization", _group_norm, [{"shape": (2, 4, 6)}, *OPEN], since=18),
    Recipe(
        "Dropout",
        _dropout,
        [{"used": "1u"}, *OPEN, {"shape": (4, 6)}, {"shape": (2, 3, 4, 6)}, {"used": "11"}],
        until=11,
    ),
    Recipe(
        "Dropout",
        _dropout,
        [
            {"used": "1u"},
            {"ratio": "init"},
            {"ratio": "init", "mode": "init"},
            *OPEN,
            {"shape": (4, 6)},
            {"shape": (2, 3, 4, 6)},
            {"used": "11"},
        ],
        since=12,
    ),
    Recipe("LSTM", _recurrent("LSTM", 4), [*_RECURRENT, *_LSTM], until=13),
    Recipe("LSTM", _recurrent("LSTM", 4), [*_RECURRENT, *_LSTM, *_LAYOUT], since=14),
    Recipe("GRU", _recurrent("GRU", 3), [*_RECURRENT, *_GRU], until=13),
    Recipe("GRU", _recurrent("GRU", 3), [*_RECURRENT, *_GRU, *_LAYOUT], since=14),
    Recipe("RNN", _recurrent("RNN", 1), _RECURRENT, until=13),
    Recipe("RNN", _recurrent("RNN", 1), [*_RECURRENT, *_LAYOUT], since=14),
    Recipe("Resize", _resize, [*_RESIZE[:1], *OPEN, {"mode": "linear"}], since=10, until=10),
    Recipe("Resize", _resize, [*_RESIZE, *_NEAREST], since=11, until=17, family="nearest"),
    Recipe("Resize", _resize, _mode("linear", _RESIZE), since=11, until=17, family="linear"),
    Recipe(
        "Resize",
        _resize,
        _mode(
            "cubic",
            [{"coefficient": -0.5}, {"exclude": 1}, *_RESIZE[:2], {"way": "align_corners"}, {"sizes": (2, 3, 8, 8)}],
        ),
        since=11,
        until=17,
        family="cubic",
    ),
    Recipe("Resize", _resize, [*_RESIZE, *_NEAREST, *_RESIZE_18], since=18, family="nearest"),
    Recipe("Resize", _resize, _mode("linear", [*_RESIZE, *_RESIZE_18]), since=18, family="linear"),
    Recipe(
        "Resize",
        _resize,
        _mode("cubic", [{"coefficient": -0.5}, {"exclude": 1}, *_RESIZE[:2], {"sizes": (2, 3, 8, 8)}]),
        since=18,
        family="cubic",
    ),
    Recipe("Upsample", _upsample, [{"mode": "linear"}, {"scales": (1, 1, 1.5, 1.5)}, *OPEN], until=8),
    Recipe(
        "Upsample",
        _upsample,
        [{"mode": "linear"}, {"given": "node"}, {"scales": (1, 1, 1.5, 1.5)}, *OPEN],
        since=9,
        until=9,
    ),
    Recipe("GridSample", _grid_sample, _GRID, since=16),
    Recipe("DepthToSpace", _depth("DepthToSpace"), [{"mode": "CRD"}, {"mode": "DCR"}, *OPEN]),
    Recipe("SpaceToDepth", _depth("SpaceToDepth"), OPEN),
    Recipe("If", _if, _IF),
    Recipe("Loop", _loop, _LOOP),
    Recipe("QuantizeLinear", _quantize("QuantizeLinear"), _QUANTIZE, since=10),
    Recipe("DequantizeLinear", _quantize("DequantizeLinear"), [*_QUANTIZE, {"given": "weights"}], since=10),
    Recipe("ConvInteger", _conv_integer, _INTEGERS, since=10),
    Recipe("MatMulInteger", _matmul_integer, [*_INTEGERS, {"a": (3, 4)}], since=10),
]
