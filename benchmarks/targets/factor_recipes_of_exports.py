"""What exports of today have besides: sizes of the data itself, masks, arithmetic of sizes, states from sizes.

They come behind all other recipes, so that the cases of those keep their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from case_graph import CaseGraph
from factor_recipes import INT_MAX, OPEN, RANKS, Recipe, changes, ways
from factor_recipes_of_elements import binary
from factor_recipes_of_layers import read_states
from onnx import helper, numpy_helper

# Sizes of the data itself ---------------------------------------------------------------------------------------------


def _own_sizes(g: CaseGraph, data: str, wanted: Sequence[int | str], given: str = "init") -> str:
    """A list of numbers and of sizes of data: "0" is its first size."""
    shape, parts = g.add("Shape", [data]), []
    for each in wanted:
        if isinstance(each, int):
            parts.append(g.given([each], given, "int64"))
            continue
        picked = g.add("Gather", [shape, g.given(int(each), given, "int64")], axis=0)
        axes = {} if g.opset >= 13 else {"axes": [0]}
        parts.append(g.add("Unsqueeze", [picked, *([g.given([0], given, "int64")] if g.opset >= 13 else [])], **axes))
    return g.add("Concat", parts, axis=0)


def _reshape_own(g: CaseGraph, shape: Any = (2, 3, 8), to: Any = ("0", "1", 2, 4), T: str = "float32",
                 given: str = "init", open: Any = (0, 1)) -> None:  # fmt: skip
    data = g.data(shape, T, open=open)
    g.use(g.put("Reshape", [data, _own_sizes(g, data, to, given)]), T)


_RESHAPE_OWN = changes(
    [{"to": ("0", -1)}, {"to": ("0", "1", -1)}, {"to": ("0", -1, 8)}, {"to": ("0", "1", 2, 2, 2)}, {"open": (0,)}],
    [{"shape": (2, 3, 2, 4), "to": ("0", "1", 8)}, {"shape": (2, 4, 3, 5), "to": ("0", 2, 2, "2", "3"), "open": (0,)}],
    [{"shape": (2, 4, 3, 5), "to": ("0", 2, 2, "2", "3"), "open": (0, 2, 3)}, {"given": "node"}, {"open": ()}],
    [
        {"shape": (4, 6), "to": ("0", 2, 3), "open": (0,)},
        {"shape": (2, 2, 2, 3, 4), "to": ("0", "3", "4", 4), "open": (0,)},
    ],
    [{"T": "int64"}, {"T": "bool"}, {"T": "float16"}, {"T": "int32"}],
)


def _expand_own(g: CaseGraph, shape: Any = (1, 1, 8), to: Any = ("0", "1", 8), T: str = "float32", how: str = "data",
                open: Any = (0, 1)) -> None:  # fmt: skip
    like = g.data((2, 3, 8), open=open)
    held = g.data(shape, T) if how == "data" else g.given(g.numbers(*shape, dtype=T), how)
    g.use(g.put("Expand", [held, _own_sizes(g, like, to)]), T)
    g.use([like])


_EXPAND_OWN = changes(
    [{"shape": (8,)}, {"shape": ()}, {"shape": (1, 8)}, {"shape": (1, 2, 1, 4), "to": ("0", 2, "1", 4)}],
    [{"shape": (1, 2, 1, 2, 3), "to": ("0", 2, "1", 2, 3)}, {"how": "init"}, {"how": "node"}, {"how": "folded"}],
    [{"T": "bool"}, {"T": "int64"}, {"T": "int32"}, {"shape": (1, 2, 1, 4), "to": ("0", 2, "1", 4), "T": "bool"}],
    [{"open": ()}, {"shape": (), "how": "init"}, {"shape": (1, 2, 1, 4), "to": ("0", 2, "1", 4), "how": "init"}],
)


def _expand_ranks(g: CaseGraph, shape: Any = (2, 2, 1, 4), to: Any = (2, 2, 3, 4), given: str = "init",
                  T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    g.use(g.put("Expand", [g.data(shape, T, open=open), g.given(list(to), given, "int64")]), T)


_EXPAND_RANKS = changes(
    [{"shape": (2, 2, 1, 3, 4), "to": (2, 2, 2, 3, 4)}, {"open": (0,), "to": (1, 1, 3, 1)}, {"T": "bool"}],
    ways("given", "node", "folded", "sized", "shape"),
    [{"T": "int64"}, {"shape": (2, 2, 1, 3, 4), "to": (2, 2, 2, 3, 4), "given": "shape"}, {"to": (2, 2, 1, 4)}],
    [
        {"shape": (2, 2, 1, 3, 4), "to": (1, 1, 2, 1, 1), "open": (0,)},
        {"shape": (2, 2, 1, 3, 4), "to": (1, 1, 2, 1, 1)},
    ],
)

# Masks ----------------------------------------------------------------------------------------------------------------


def positions(g: CaseGraph, how: str, shape: Sequence[int]) -> str:
    """Numbers from 0 on along an axis: a constant, or a range up to an open or a fixed size."""
    count = int(np.prod(shape))
    if how in ("shape", "sized"):
        limit = g.given(count, how, "int64")
        made = g.add("Range", [g.constant(np.array(0)), limit, g.constant(np.array(1))])
        return g.add("Reshape", [made, g.constant(np.array([-1 if each > 1 else 1 for each in shape]))])
    if how == "data":
        return g.graph_input(np.arange(count).reshape(shape))
    return g.given(np.arange(count).reshape(shape), how, "int64")


def _compare(operator: str) -> Callable[..., None]:
    """Positions against positions, as masks of attention have them."""

    def build(g: CaseGraph, A: str = "data", B: str = "data", a: Any = (4, 1), b: Any = (1, 4)) -> None:
        (made,) = g.put(operator, [positions(g, A, a), positions(g, B, b)])
        g.use([g.add("Mul", [g.data((1, 4)), g.add("Cast", [made], to=1)])])

    return build


_COMPARE = changes(
    ways("A", "init", "node", "sized", "shape", "folded"),
    ways("B", "init", "node", "sized", "shape", "folded"),
    [{"A": "shape", "B": "shape"}, {"A": "sized", "B": "sized"}],
    [{"b": (4,), "a": (4,)}, {"B": "init", "b": ()}, {"a": (1, 1, 4, 1), "b": (1, 1, 1, 4)}, {"a": (4, 1), "b": (4,)}],
    [{"A": "init", "B": "init"}, {"B": "node", "b": ()}, {"A": "node", "B": "node"}],
)


def _mask(g: CaseGraph, how: str, shape: Sequence[int]) -> str:
    """A mask: a constant, computed from constants, from positions up to a size, or from data."""
    if how == "data":
        return g.add("Greater", [g.data(shape), g.constant(np.array(0.5, np.float32))])
    if how in ("shape", "sized"):
        return g.add("Less", [positions(g, how, shape), g.constant(np.array(2))])
    if how == "folded":
        return g.add("Not", [g.constant(~(g.numbers(*shape, dtype="bool")))])
    return g.given(g.numbers(*shape, dtype="bool"), how)


def _both(operator: str) -> Callable[..., None]:
    def build(g: CaseGraph, A: str = "data", B: str = "data", a: Any = (4, 1), b: Any = (1, 4)) -> None:
        (made,) = g.put(operator, [_mask(g, A, a), _mask(g, B, b)])
        g.use([g.add("Mul", [g.data((1, 4)), g.add("Cast", [made], to=1)])])

    return build


_BOTH = changes(
    ways("A", "init", "node", "sized", "shape", "folded"),
    ways("B", "init", "node", "sized", "shape", "folded"),
    [{"A": "shape", "B": "shape"}, {"A": "sized", "B": "sized"}, {"a": (), "A": "init", "B": "shape"}],
    [{"a": (), "A": "init"}, {"b": (), "B": "init"}, {"a": (4,), "b": (4,)}, {"a": (1, 1, 4, 1), "b": (1, 1, 1, 4)}],
    [{"a": (4, 4), "b": (4,)}, {"a": (2, 1, 4, 1), "b": (4,)}, {"a": (), "A": "node"}, {"a": (), "A": "folded"}],
    [{"a": (4, 4), "b": (1, 4)}, {"a": (1, 4), "b": (4, 4), "B": "data"}, {"A": "init", "B": "init"}],
    [{"a": (4,), "b": (4, 4), "B": "data"}],
)


def _not(g: CaseGraph, how: str = "data", shape: Any = (2, 4), open: Any = ()) -> None:
    if how == "data":
        held = g.add("Greater", [g.data(shape, open=open), g.constant(np.array(0.5, np.float32))])
    else:
        held = _mask(g, how, shape)
    (made,) = g.put("Not", [held])
    g.use([g.add("Mul", [g.data(shape, open=open), g.add("Cast", [made], to=1)])])


_NOT = changes(
    ways("how", "init", "node", "folded"),
    [{"how": "shape", "shape": (1, 4)}, {"how": "sized", "shape": (1, 4)}, {"shape": (4,)}, {"shape": (2, 1, 4)}],
    [{"shape": (2, 1, 3, 4)}, {"open": (0,)}, {"shape": ()}],
)


def _of_numbers(operator: str) -> Callable[..., None]:
    def build(g: CaseGraph, shape: Any = (2, 3, 4), open: Any = ()) -> None:
        data, odd = g.data(shape, open=open), np.nan if operator == "IsNaN" else np.inf
        large = g.add("Greater", [data, g.constant(np.array(0.7, np.float32))])
        scores = g.add("Where", [large, g.constant(np.array(odd, np.float32)), data])
        g.use(g.put(operator, [scores]), "bool")

    return build


def _where_masks(g: CaseGraph, C: str = "shape", X: str = "init", Y: str = "init", c: Any = (1, 4), x: Any = (),
                 y: Any = (), T: str = "float32") -> None:  # fmt: skip
    """What scores of attention get for a mask."""

    def value(how: str, size: Any) -> str:
        return g.data(size, T) if how == "data" else g.given(g.numbers(*size, dtype=T), how)

    (made,) = g.put("Where", [_mask(g, C, c), value(X, x), value(Y, y)])
    g.use([g.add("Add", [g.data((2, 4), T), made])], T)


_WHERE_MASKS = changes(
    ways("C", "init", "node", "folded", "sized", "data"),
    ways("X", "node", "folded"),
    ways("Y", "node", "folded"),
    [{"X": "data", "x": (2, 4)}, {"Y": "data", "y": (2, 4)}, {"Y": "data", "y": (2, 4), "C": "init"}, {"T": "int64"}],
    [
        {"X": "data", "x": (2, 4), "C": "data", "c": (2, 4)},
        {"C": "data", "c": (4, 1, 1, 4)},
        {"X": "node", "Y": "node"},
    ],
)


# Arithmetic of sizes --------------------------------------------------------------------------------------------------


def _largest(operator: str) -> Callable[..., None]:
    def build(g: CaseGraph, A: str = "shape", B: str = "shape", listed: bool = False) -> None:
        one = [4] if listed else 4
        (made,) = g.put(operator, [g.given(one, A, "int64"), g.given([2] if listed else 2, B, "int64")])
        g.use_sizes(made, 1 if listed else 0)

    return build


_LARGEST = changes(
    ways("A", "init", "node", "sized", "folded"), ways("B", "init", "node", "sized", "folded"), {"listed": True}
)


def _of_a_size(operator: str) -> Callable[..., None]:
    """An operator of one input in arithmetic of sizes."""

    def build(g: CaseGraph, data: str = "shape", T: str = "int64") -> None:
        # A negative size has a sign that can be taken from it.
        held = g.given(3, data, "int64")
        if T != "int64":
            held = g.add("Cast", [held], to=helper.np_dtype_to_tensor_dtype(np.dtype(T)))
        (made,) = g.put(operator, [held])
        g.use_number(made, T)

    return build


def _of_roots(operator: str) -> Callable[..., None]:
    """Numbers of floating point that follow from sizes, as the scale of attention does."""

    def build(g: CaseGraph, A: str = "init", B: str = "shape", rank: int = 0) -> None:
        def value(how: str) -> str:
            if how in ("init", "node"):
                return g.given(np.full((1,) * rank, 2, np.float32), how)
            size = g.add("Cast", [g.given([4] if rank else 4, how, "int64")], to=1)
            return g.add("Sqrt", [size])

        (made,) = g.put(operator, [value(A), value(B)])
        g.use([g.add("Mul", [g.data((2, 3)), made])])

    return build


_OF_ROOTS = [{"rank": 1}, {"B": "sized"}, {"A": "shape", "B": "init"}, {"A": "node"}, {"rank": 1, "B": "sized"}]


def _slice_steps(g: CaseGraph, steps: int = 2, open: Any = (1,), axis: int = 1) -> None:
    """Every second element, and all of them backwards."""
    first, end = (0, INT_MAX) if steps > 0 else (-1, -INT_MAX)
    lists = [g.given([each], "init", "int64") for each in (first, end, axis, steps)]
    g.use(g.put("Slice", [g.data((4, 6, 8), open=open), *lists]))


def _slice_joined(g: CaseGraph, starts: Any = (0,), ends: Any = (2,), axis: int = 1, joined: bool = True,
                  open: Any = ()) -> None:  # fmt: skip
    """What is left of data, perhaps nothing, and other data."""
    lists = [g.given(list(each), "init", "int64") for each in (starts, ends, (axis,))]
    (made,) = g.put("Slice", [g.data((2, 3, 4), open=open), *lists])
    g.use([g.add("Concat", [g.data((2, 3, 4), open=open), made], axis=axis) if joined else made])


_NOTHING = {"starts": (3,), "ends": (INT_MAX,)}
_SLICE_JOINED = [
    _NOTHING,
    {"starts": (2,), "ends": (2,)},
    {"ends": (0,)},
    {**_NOTHING, "open": (0,)},
    {**_NOTHING, "axis": 0},
    {**_NOTHING, "joined": False},
]


def _slice_of_sizes(g: CaseGraph, first: int = 1, given: str = "init", joined: bool = True, axes: bool = True,
                    open: Any = (0, 1)) -> None:  # fmt: skip
    """The sizes behind the first ones, of which there may be none: exporters join them with others."""
    shape = g.add("Shape", [g.data((2, 3), open=open)])
    lists = [g.given([each], given, "int64") for each in (first, INT_MAX)]
    (made,) = g.put("Slice", [shape, *lists, *([g.given([0], given, "int64")] if axes else [])])
    g.use_sizes(g.add("Concat", [g.constant(np.array([4])), made], axis=0) if joined else made)


_SLICE_OF_SIZES = [
    {"first": 2},
    {"first": 2, "open": ()},
    {"first": 2, "given": "node"},
    {"first": 2, "given": "node", "axes": False},
    {"first": 2, "given": "folded", "axes": False},
    {"first": 2, "given": "node", "axes": False, "open": ()},
    {"first": 2, "joined": False},
    {"first": 2, "joined": False, "open": ()},
]


def _concat_empty(g: CaseGraph, kinds: str = "dd", shape: Any = (2, 3, 4), axis: int = 1, T: str = "float32") -> None:
    hollow = [0 if each == axis else size for each, size in enumerate(shape)]
    hows = {"e": "init", "E": "node", "F": "folded"}
    names = [g.data(shape, T) if kind == "d" else g.given(np.zeros(hollow, T), hows[kind]) for kind in kinds]
    g.use(g.put("Concat", names, axis=axis), T)


def _concat_empty_sizes(g: CaseGraph, kinds: str = "ss", how: str = "shape") -> None:
    g.use_sizes(g.put("Concat", [_given_sizes(g, kind, how) for kind in kinds], axis=0)[0])


def _given_sizes(g: CaseGraph, kind: str, how: str) -> str:
    """A size, a number, no size that is a constant, or what is left of sizes where nothing is."""
    if kind == "s":
        return g.given([3], how, "int64")
    if kind in "in":
        return g.given([2], {"i": "init", "n": "node"}[kind], "int64")
    if kind in "eE":
        return g.given(np.zeros(0, np.int64), {"e": "init", "E": "node"}[kind])
    shape = g.add("Shape", [g.data((2, 3), open=(0, 1) if how == "shape" else ())])
    lists = [g.constant(np.array([each])) for each in (0, 0, 0)]
    return g.add("Slice", [shape, *lists])


def _fill(g: CaseGraph, shape: Any = (2,), given: str = "init", T: str = "float32") -> None:
    """A list of one number, or without a size that number alone."""
    value = numpy_helper.from_array(np.ones((1,), T), "")
    g.is_constant = given in ("init", "node", "folded")
    g.use(g.put("ConstantOfShape", [g.given(np.asarray(shape, np.int64), given)], value=value), T)


def _ones_behind_sizes(g: CaseGraph, given: str = "init") -> None:
    """A list of ones is the end of the shape that data gets. All of the list is known when the model is read."""
    value = numpy_helper.from_array(np.ones(1, np.int64), "")
    (made,) = g.put("ConstantOfShape", [g.given([2], given, "int64")], value=value)
    target = g.add("Concat", [g.constant(np.array([2, 3])), made], axis=0)
    g.use([g.add("Reshape", [g.data((2, 3)), target])])


def _reversed_pads(g: CaseGraph, data: str = "folded", given: str = "node") -> None:
    """TorchScript reverses the pairs of its pads: the last axis comes first there."""
    pairs = g.given(np.array([[0, 1], [2, 0]]), data)
    lists = [g.given([each], given, "int64") for each in (-1, -INT_MAX, 0, -1)]
    (made,) = g.put("Slice", [pairs, *lists])
    turned = g.add("Transpose", [made], perm=[1, 0])
    listed = g.add("Reshape", [turned, g.constant(np.array([-1]))])
    g.use([g.add("Pad", [g.data((2, 3)), g.add("Cast", [listed], to=7)])])


# States from sizes ----------------------------------------------------------------------------------------------------


def _state(g: CaseGraph, data: str, how: str, both: int) -> str:
    """Zeros for each item of a batch, as exporters write them."""
    if how == "absent":
        return ""
    sizes = _own_sizes(g, data, (both, "1", 4))
    if how == "zeros":
        return g.add("ConstantOfShape", [sizes], value=numpy_helper.from_array(np.zeros(1, np.float32), ""))
    return g.add("Expand", [g.constant(np.zeros((both, 1, 4), np.float32)), sizes])


def _recurrent(operator: str, gates: int) -> Callable[..., None]:
    def build(g: CaseGraph, state: str = "zeros", direction: str = "forward", used: str = "", open: Any = (1,),
              same: bool = True) -> None:  # fmt: skip
        both = 2 if direction == "bidirectional" else 1
        data = g.data((5, 2, 3), open=open)
        names = [
            data,
            *(g.given(g.numbers(both, gates * 4, size)) for size in (3, 4)),
            g.given(g.numbers(both, gates * 8)),
        ]
        names += ["", _state(g, data, state, both)]
        if operator == "LSTM":
            names.append(names[-1] if same else _state(g, data, state, both))
        held = {"linear_before_reset": 1} if operator == "GRU" else {}
        outputs = used or ("111" if operator == "LSTM" else "11")
        made = g.put(operator, names, outputs, hidden_size=4, direction=direction, **held)
        if outputs[0] == "1":
            made[0] = read_states(g, made[0], both)
        g.use(made)

    return build


_STATES = changes(
    [{"state": "expand"}, {"open": ()}, {"direction": "bidirectional"}, {"same": False}, {"open": (0, 1)}],
    [{"used": "1"}, {"used": "1u"}, {"used": "11"}, {"state": "expand", "open": ()}, {"used": "01"}],
)


def _gelu(g: CaseGraph, inside: bool = False, scale: str = "Div", open: Any = ()) -> None:
    """x * (1 + erf(x / sqrt(2))) * 0.5, or with the half inside."""
    x, half = g.data((2, 3, 8), open=open), g.constant(np.array(0.5, np.float32))
    root = np.sqrt(np.float32(2))
    scaled = g.add(scale, [x, g.constant(np.array(root if scale == "Div" else 1 / root, np.float32))])
    total = g.add("Add", [g.add("Erf", [scaled]), g.constant(np.array(1, np.float32))])
    if inside:
        g.use(g.put("Mul", [x, g.add("Mul", [half, total])]))
    else:
        g.use([g.add("Mul", [g.put("Mul", [x, total])[0], half])])


_COMPARISONS = (("Greater", 9), ("Less", 9), ("Equal", 11), ("GreaterOrEqual", 12), ("LessOrEqual", 12))
EXPORTS = [
    *(Recipe(name, _of_roots(name), _OF_ROOTS, family="roots") for name in ("Add", "Mul", "Sub", "Div")),
    Recipe(
        "Slice",
        _slice_steps,
        [{"open": ()}, {"steps": -1}, {"steps": -1, "open": ()}, {"open": (0,)}, {"axis": 2}],
        since=10,
        family="steps",
    ),
    Recipe("Slice", _slice_joined, _SLICE_JOINED, since=10, family="joined"),
    Recipe("Slice", _slice_of_sizes, _SLICE_OF_SIZES, since=10, family="hollow"),
    Recipe("Mul", _gelu, [{"inside": True}, {"inside": True, "open": (0, 1)}], since=9, family="gelu"),
    Recipe("Reshape", _reshape_own, _RESHAPE_OWN, family="own"),
    Recipe("Expand", _expand_own, _EXPAND_OWN, since=8, family="own"),
    Recipe("Expand", _expand_ranks, _EXPAND_RANKS, since=8, family="ranks"),
    *(Recipe(name, _compare(name), _COMPARE, since=max(since, 11), family="positions") for name, since in _COMPARISONS),
    *(Recipe(name, _both(name), _BOTH, family="masks", at=13) for name in ("And", "Or", "Xor")),
    *(
        Recipe(
            name,
            binary(name),
            [{"shape": (2, 1, 8), "other": (1, 3, 8)}, {"shape": (2, 1, 8), "other": (1, 3, 8), "T": "int64"}],
            since=8,
            family="several",
        )
        for name in ("Max", "Min")
    ),
    Recipe("Not", _not, _NOT, at=13),
    *(Recipe(name, _of_numbers(name), [*RANKS[1:3], *OPEN[:1]], since=10) for name in ("IsNaN", "IsInf")),
    Recipe("Where", _where_masks, _WHERE_MASKS, since=11, family="masks"),
    *(Recipe(name, _largest(name), _LARGEST, since=12, family="sizes") for name in ("Max", "Min")),
    *(
        Recipe(name, _of_a_size(name), [*ways("data", "sized", "computed", "folded"), {"T": "float32"}], family="sizes")
        for name in ("Neg", "Abs")
    ),
    *(
        Recipe(name, _of_a_size(name), ways("data", "sized", "computed", "folded"), family="sizes")
        for name in ("Identity",)
    ),
    Recipe(
        "Concat",
        _concat_empty,
        [
            *({"kinds": each} for each in ("ed", "de", "Ed", "dE", "Fd")),
            {"shape": (4,), "axis": 0, "kinds": "ed"},
            {"shape": (2, 3, 4, 5), "kinds": "ed"},
        ],
        family="empty",
    ),
    Recipe(
        "Concat",
        _concat_empty_sizes,
        [{"kinds": "es"}, {"kinds": "se"}, {"kinds": "Es"}, {"kinds": "es", "how": "sized"}],
        family="hollow",
    ),
    # Which sizes stand before an axis: none before the first one.
    Recipe(
        "Concat",
        _concat_empty_sizes,
        [
            *({"kinds": kinds, "how": how} for kinds in ("zs", "zns") for how in ("shape", "sized")),
            *({"kinds": kinds} for kinds in ("zn", "sz", "szn")),
        ],
        since=10,
        family="none",
    ),
    Recipe(
        "ConstantOfShape",
        _fill,
        [
            *({"shape": (), "T": T} for T in ("float32", "bool", "int64")),
            {"shape": (), "given": "folded"},
            *({"T": T, "given": given} for given in ("init", "sized") for T in ("int64", "bool")),
            {"shape": (2, 3)},
        ],
        since=9,
        family="fill",
    ),
    Recipe("ConstantOfShape", _ones_behind_sizes, ways("given", "node", "folded"), since=9, family="known"),
    Recipe(
        "Slice",
        _reversed_pads,
        changes(ways("data", "init", "node"), ways("given", "init")),
        since=11,
        family="reversed",
    ),
    *(
        Recipe(name, _recurrent(name, gates), _STATES, since=9, family="states")
        for name, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
    ),
]
