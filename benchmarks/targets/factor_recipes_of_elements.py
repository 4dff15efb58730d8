"""How elementwise operators and matrix products stand in models of exporters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case_graph import CaseGraph
from factor_recipes import FLOATS, OPEN, RANKS, Recipe, changes, ways
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


def _both_signs(operator: str) -> Callable[..., None]:
    """With numbers of both signs: what is done to negative ones is another formula."""

    def build(g: CaseGraph, **words: Any) -> None:
        g.use(g.put(operator, [g.data((2, 3, 8), array=g.numbers(2, 3, 8) * 2 - np.float32(0.5))], **words))

    return build


def binary(operator: str, kind: str = "float32", result: str | None = None) -> Callable[..., None]:
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
# Rows of numbers, such as those behind a pool, and one number.
_WITH_NUMBER = [
    {"shape": (4, 6), "other": (), "B": how, "open": open} for how in ("init", "node") for open in ((), (0,))
]
_FEW = [
    {"other": (8,), "B": "init"},
    {"other": (), "B": "init"},
    *RANKS[1:],
    {"open": (0,)},
]


def _sizes(operator: str) -> Callable[..., None]:
    """Arithmetic of sizes: a size and a number."""

    def build(g: CaseGraph, A: str = "shape", B: str = "init", listed: bool = False, use: str = "") -> None:
        # No rest of a division is 0: a shape with a 0 has no elements to compare.
        one, other = 4, 3 if operator == "Mod" else 2
        both = [[one], [other]] if listed else [one, other]
        (made,) = g.put(operator, [g.given(size, how, "int64") for size, how in zip(both, (A, B), strict=True)])
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


def _by_a_size(operator: str) -> Callable[..., None]:
    """Data and a number of floating point that follows from a size, as in means and in scales of attention."""

    def build(g: CaseGraph, B: str = "shape", rank: int = 0, turned: bool = False) -> None:
        both = [g.data((2, 3)), g.add("Cast", [g.given([4] if rank else 4, B, "int64")], to=TensorProto.FLOAT)]
        g.use(g.put(operator, both[::-1] if turned else both))

    return build


_BY_A_SIZE = [{"rank": 1}, {"B": "sized"}, {"turned": True}, {"turned": True, "B": "sized"}]


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


def _identity_const(g: CaseGraph, given: str = "init", shape: Any = (2, 3, 8), T: str = "float32",
                    scales: bool = False) -> None:  # fmt: skip
    """A weight that several nodes share. scales: it is that of a normalization."""
    (held,) = g.put("Identity", [g.given(g.numbers(*shape, dtype=T), given)])
    if scales:
        others = [g.constant(np.ones(shape, np.float32)) for _ in range(3)]
        g.use([g.add("BatchNormalization", [g.data((2, *shape, 3)), held, *others])])
    else:
        g.use([g.add("Add", [g.data(shape if len(shape) > 1 else (2, 3, 8), T), held])], T)


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


def _cast(g: CaseGraph, shape: Any = (2, 3, 8), T: str = "int32", to: str = "float32", compared: bool = False,
          open: Any = ()) -> None:  # fmt: skip
    number = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    if compared:
        # Not every runtime takes an input that is bool.
        data = g.add("Greater", [g.data(shape, open=open), g.constant(np.array(0.5, np.float32))])
    else:
        data = g.data(shape, T, open=open)
    g.use(g.put("Cast", [data], to=number), to)


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
    [{"compared": True, "open": (0,)}],
)


def _cast_like(g: CaseGraph, shape: Any = (2, 3, 8), T: str = "int32", given: str = "init", to: str = "float32",
               open: Any = ()) -> None:  # fmt: skip
    like = g.data((1,), to) if given == "data" else g.given(np.ones((1,), to), given)
    g.use(g.put("CastLike", [g.data(shape, T, open=open), like]), to)


_CAST_LIKE = [{"T": "bool"}, *({"T": "float32", "to": to} for to in ("int64", "int32", "bool", "float16"))]


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
    {"shape": (2, 3, 4, 6), "open": (0,)},
)
_CLIP_11 = changes(
    ways("low", "node", "computed"),
    ways("high", "node", "computed"),
    [{"T": "int64"}, *({"T": "int64", bound: "absent"} for bound in ("low", "high"))],
)


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
            open: Any = (), open_other: Any = (), scaled: bool = True) -> None:  # fmt: skip
    first = g.data(a, T, open=open) if A == "data" else g.given(g.numbers(*a, dtype=T), A)
    if B == "sized":
        # Learned queries, one for each item of a batch.
        second = g.add("Expand", [g.constant(g.numbers(*b[1:])), g.sizes(np.array(b), is_open=False)])
    else:
        second = g.data(b, T, open=open_other) if B == "data" else g.given(g.numbers(*b, dtype=T), B)
    made = g.put("MatMul", [first, second])
    g.use(made if scaled else [g.add("Tanh", made)], T)


_MATMUL = changes(
    [{"a": (3, 4)}, {"a": (2, 2, 3, 4)}, {"a": (4,)}, {"b": (4,)}, {"a": (3, 4), "b": (4,)}, *OPEN, *FLOATS],
    [{"B": "data", "b": (2, 4, 5)}, {"B": "data"}, {"a": (2, 2, 3, 4), "b": (2, 2, 4, 5), "B": "data"}],
    [{"a": (2, 2, 3, 4), "b": (1, 2, 4, 5), "B": "data"}, {"a": (3, 4), "b": (2, 4, 5), "B": "data"}],
    [{"b": (2, 4, 5)}, {"B": "node"}, {"B": "folded"}, {"A": "init", "a": (3, 4), "B": "data", "b": (4, 5)}],
    [{"a": (2, 2, 3, 4), "b": (2, 2, 4, 5), "B": "data", "open": (0,), "open_other": (0,)}],
    [{"a": (2, 2, 3, 4), "b": (2, 2, 4, 5), "B": "data", "open": (2,)}, {"T": "int32", "B": "data"}],
    # Scores by a vector, which OpenVINO multiplies with what scales them.
    [{"b": (4,), "open": (0,)}, *({"b": (4,), "open": open, "scaled": False} for open in ((), (0,)))],
    # Each of several capsules has a matrix for each item.
    [{"a": (2, 3, 1, 1, 4), "b": (3, 2, 4, 5), "open": open} for open in ((), (0,))],
    [{"b": (2, 4, 5), "B": "sized"}],
)


def _gemm(g: CaseGraph, a: Any = (3, 4), b: Any = (5, 4), C: Any = (5,), c: str = "init", B: str = "init",
          transA: Any = None, transB: Any = 1, alpha: Any = None, beta: Any = None, T: str = "float32",
          open: Any = (), open_c: Any = ()) -> None:  # fmt: skip
    first = g.data(a, T, open=open)
    second = g.data(b, T) if B == "data" else g.given(g.numbers(*b, dtype=T), B)
    numbers = g.numbers(*C, dtype=T)
    third = g.data(C, T, open=open_c, array=numbers) if open_c else g.given(numbers, c)
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
    [{"transA": 1, "a": (4, 3), "open": (1,)}],
    [{"B": "data", "b": (4, 5), "transB": None}],
    [{"C": (3, 1), "open": (0,), "open_c": (0,)}],
)

_FLOAT_UNARY = ("Relu", "Sigmoid", "Tanh", "Exp", "Sqrt", "Neg", "Abs", "Erf", "Floor", "Ceil", "Reciprocal", "Log",
                "Sin", "Cos", "HardSigmoid", "Elu", "Softplus", "LeakyRelu", "Sign", "Identity", "Round", "Selu",
                "Softsign")  # fmt: skip
_NEWER_UNARY = {"HardSwish": 14, "Gelu": 20, "Mish": 18, "Celu": 12, "ThresholdedRelu": 10}
_FULL = ("Relu", "Sigmoid", "Identity")


ELEMENTS = [
    Recipe(
        "CastLike",
        _cast_number_like,
        [{"given": "node"}, {"like": "input"}, *OPEN, {"like": "input", "open": (0,)}],
        since=15,
        family="number",
    ),
    *(Recipe(name, binary(name), _MORE, since=8, family="more") for name in ("Max", "Min", "Sum", "Mean")),
    Recipe(
        "CastLike",
        _cast_like,
        [*ways("given", "node", "data"), *RANKS[1:3], *OPEN, {"T": "int64"}, *_CAST_LIKE],
        since=15,
    ),
    Recipe("Mod", binary("Mod", "int64"), [*_FEW, {"T": "int32"}], since=10, family="data"),
    *(
        Recipe(name, _unary(name), _UNARY if name in _FULL else [*_UNARY[:5], {"open": (0,)}, {"T": "float16"}])
        for name in _FLOAT_UNARY
    ),
    *(Recipe(name, _unary(name), [*RANKS, {"open": (0,)}], since=since) for name, since in _NEWER_UNARY.items()),
    *(Recipe(name, _both_signs(name), [{"alpha": 0.2}], family="alpha") for name in ("LeakyRelu", "Elu")),
    *(
        Recipe(name, _both_signs(name), [{"alpha": 0.7}], since=_NEWER_UNARY[name], family="alpha")
        for name in ("Celu", "ThresholdedRelu")
    ),
    Recipe("Selu", _both_signs("Selu"), [{"alpha": 1.5}, {"gamma": 1.2}], family="alpha"),
    Recipe(
        "HardSigmoid", _both_signs("HardSigmoid"), [{"alpha": 1 / 6}, {"alpha": 1 / 6, "beta": 0.6}], family="alpha"
    ),
    Recipe("Gelu", _unary("Gelu"), [{"approximate": "tanh"}], since=20, family="tanh"),
    *(Recipe(name, binary(name), [*_BINARY, *_NUMBERS, *_WITH_NUMBER]) for name in ("Add", "Mul", "Sub", "Div")),
    *(Recipe(name, _sizes(name), _OF_SIZES, family="sizes") for name in ("Add", "Mul", "Sub", "Div")),
    *(Recipe(name, _by_a_size(name), _BY_A_SIZE, family="scale") for name in ("Add", "Mul", "Sub", "Div", "Pow")),
    *(
        Recipe(name, binary(name), [*_FEW, *FLOATS[:1], {"other": (3, 1)}, {"other": ()}], since=8)
        for name in ("Pow", "Max", "Min")
    ),
    Recipe(
        "Pow",
        _power,
        [
            {"given": "node"},
            {"given": "folded"},
            *RANKS,
            {"shape": ()},
            {"kind": "int64"},
            {"open": (0,)},
        ],
        family="number",
    ),
    *(
        Recipe(
            name, binary(name, result="bool"), [*_FEW, {"T": "int64"}, {"T": "int32"}, {"other": (3, 1)}], since=since
        )
        for name, since in (("Greater", 9), ("Less", 9), ("Equal", 11), ("GreaterOrEqual", 12), ("LessOrEqual", 12))
    ),
    *(
        Recipe(
            name,
            binary(name, "bool"),
            [{"other": (8,)}, {"shape": (4, 6)}, {"open": (0,)}, {"other": (), "B": "init"}],
        )
        for name in ("And", "Or", "Xor")
    ),
    *(
        Recipe(name, _sizes(name), _OF_SIZES, since=since, family="sizes")
        for name, since in (("Equal", 11), ("Greater", 9), ("Less", 9), ("Mod", 10))
    ),
    Recipe(
        "Identity",
        _identity_const,
        [
            *({"shape": each} for each in ((8,), (4, 6), (2, 3, 2, 2), ())),
            {"given": "node"},
            {"T": "int64", "shape": ()},
            {"shape": (8,), "scales": True},
        ],
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
            *({"rank": 1, "data": "sized", "to": to} for to in ("float32", "int64")),
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
]
