"""How operators stand in models of exporters, and what is changed one at a time: shapes, reductions, sizes as data.

A recipe is a function that puts the node into a `CaseGraph`; its defaults are the base. A change is what differs from
the base. Which factors that changes is read from the model and not declared here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from case_graph import CaseGraph

INT_MAX = 2**63 - 1
Change = Mapping[str, Any]
OPEN = tuple({"open": (axis,)} for axis in (0, 1, -1))
FLOATS = ({"T": "float16"}, {"T": "float64"})
SIZED = ("node", "folded", "sized", "shape", "computed")
RANKS = ({"shape": (6,)}, {"shape": (4, 6)}, {"shape": (2, 3, 4, 6)}, {"shape": (2, 3, 2, 4, 6)})


class Recipe(NamedTuple):
    """How cases of an operator are built. build: puts the node into a graph, at the opset of the graph. changes: of its
    words, one case for each. since: the opsets between which the operator is built in this way. family: of several ways
    to use one operator, "" for the only one. at: the opset of the graph, for a version that is older than the operators
    around it.
    """

    operator: str
    build: Callable[..., None]
    changes: Sequence[Change]
    since: int = 7
    until: int = 99
    family: str = ""
    domain: str = ""
    at: int = 0


def changes(*groups: Change | Iterable[Change]) -> list[Change]:
    """All changes of several groups."""
    return [each for group in groups for each in ([group] if isinstance(group, Mapping) else group)]


def ways(name: str, *hows: str) -> list[Change]:
    """One change for each way in which a value is given."""
    return [{name: how} for how in hows]


def axes_given(g: CaseGraph, axes: Sequence[int] | None, how: str, since: int) -> tuple[list[str], dict[str, Any]]:
    """A list of axes as an attribute, or as an input from an opset on."""
    if axes is None:
        return [], {}
    if g.opset < since:
        return [], {"axes": list(axes)}
    return [g.given(list(axes), how, "int64")], {}


# Softmax and its like -------------------------------------------------------------------------------------------------


def _softmax(operator: str) -> Callable[..., None]:
    def build(g: CaseGraph, shape: Any = (2, 3, 8), axis: int | None = -1, T: str = "float32", open: Any = ()) -> None:
        g.use(g.put(operator, [g.data(shape, T, open=open)], axis=axis), T)

    return build


_SOFTMAX = changes(({"axis": axis} for axis in (0, 1, 2, -2, -3, None)), RANKS, OPEN, FLOATS)
_SOFTMAX += [{"shape": (2, 3, 4, 6), "axis": axis} for axis in (1, 2, 3)] + [{"shape": (4, 6), "axis": 1}]


def _reduce(operator: str, axes_since: int) -> Callable[..., None]:
    def build(
        g: CaseGraph,
        shape: Any = (2, 3, 4, 5),
        axes: Any = (-1,),
        given: str = "init",
        keepdims: int | None = 1,
        T: str = "float32",
        open: Any = (),
    ) -> None:
        inputs, held = axes_given(g, axes, given, axes_since)
        noop = {"noop_with_empty_axes": 0} if axes is None and g.opset >= axes_since else {}
        data = g.data(shape, T, open=open)
        if T == "int64":
            data = g.add("Mul", [data, g.constant(np.array(1, T))])
        g.use(g.put(operator, [data, *inputs], keepdims=keepdims, **held, **noop), T)

    return build


def _reduce_sizes(g: CaseGraph, data: str = "shape", axes: Any = (0,), given: str = "init", keepdims: int = 0,
                  use: str = "", wanted: Any = (2, 2)) -> None:  # fmt: skip
    """How many elements there are: the product of sizes."""
    inputs, held = axes_given(g, axes, given, 18)
    (made,) = g.put("ReduceProd", [g.given(list(wanted), data, "int64"), *inputs], keepdims=keepdims, **held)
    if use == "Cast":
        g.use_number(made, "int64")
    else:
        g.use_sizes(made, keepdims)


_REDUCE_SIZES = changes(
    ways("data", "sized", "folded", "init", "computed"),
    [{"axes": None}, {"keepdims": 1}, {"use": "Cast"}, {"use": "Cast", "data": "sized"}, {"axes": (-1,)}],
    [{"use": "Cast", "data": "sized", "axes": None}, {"keepdims": 1, "use": "Cast", "data": "sized"}],
)
_REDUCE = changes(
    ({"axes": axes} for axes in ((2, 3), (1,), (0,), (3,), (-2, -1), (0, 2), (1, 2, 3), None)),
    ways("given", "node", "folded"),
    [{"keepdims": 0}, {"shape": (3, 4)}, {"shape": (3, 4, 5)}, {"shape": (2, 3, 2, 4, 5)}, {"shape": (6,)}],
    [{"T": "int64"}, {"T": "int32"}, *FLOATS],
    OPEN,
    [{"shape": (2, 3, 2, 4, 5), "axes": (2, 3, 4)}, {"axes": (1,), "open": (2,)}, {"axes": (2, 3), "open": (2, 3)}],
)


def _arg(operator: str) -> Callable[..., None]:
    def build(
        g: CaseGraph,
        shape: Any = (2, 3, 8),
        axis: int | None = -1,
        keepdims: int | None = 0,
        last: int | None = None,
        T: str = "float32",
        open: Any = (),
    ) -> None:
        kept = g.put(operator, [g.data(shape, T, open=open)], axis=axis, keepdims=keepdims, select_last_index=last)
        g.use(kept, "int64")

    return build


_ARG = changes(({"axis": axis} for axis in (0, 1, 2, None)), {"keepdims": 1}, RANKS[1:4], OPEN, FLOATS[:1])

# Shapes ---------------------------------------------------------------------------------------------------------------


def _shape(g: CaseGraph, shape: Any = (2, 3, 8), start: Any = None, end: Any = None,
           T: str = "float32", open: Any = (), use: str = "Gather") -> None:  # fmt: skip
    (made,) = g.put("Shape", [g.data(shape, T, open=open)], start=start, end=end)
    if use == "Gather":
        made = g.add(
            "Gather",
            [made, g.constant(np.array(min(1, len(shape) - 1) if start is None and end is None else 0))],
            axis=0,
        )
        g.use_sizes(made, 0)
    elif use == "Cast":
        g.use([made], "int64")
    elif use == "Slice":
        bounds = [g.constant(np.array([each])) for each in (0, 1)]
        g.use_sizes(g.add("Slice", [made, *bounds, g.constant(np.array([0]))]))
    else:
        g.use_sizes(made)


def _shape_of_sizes(g: CaseGraph, data: str = "shape") -> None:
    g.use_sizes(g.put("Shape", [g.given([2, 3], data, "int64")])[0])


_SHAPE = changes(
    ways("use", "Cast", "Slice", "whole"),
    OPEN,
    RANKS,
    [{"T": "int64"}, {"T": "float16"}, {"T": "bool"}],
    [{"shape": (2, 3, 2, 2, 2, 2)}, {"open": (0,), "use": "Cast"}, {"open": (0, 1), "use": "whole"}],
)
_SHAPE_15 = changes(
    [{"start": 1, "end": 2}, {"start": -1}, {"end": 1}, {"start": 1, "end": 2, "open": (1,)}],
    # What reads the first size alone does not tell whether the others were left out.
    ({"start": 0, "end": 1, "use": "whole", "open": open} for open in ((), (0,))),
    ({"start": 2, "end": 4, "use": "whole", "shape": (2, 3, 4, 5), "open": open} for open in ((), (2, 3))),
)


def _unsqueeze(g: CaseGraph, shape: Any = (2, 3, 8), axes: Any = (1,), given: str = "init", T: str = "float32",
               open: Any = ()) -> None:  # fmt: skip
    inputs, held = axes_given(g, axes, given, 13)
    g.use(g.put("Unsqueeze", [g.data(shape, T, open=open), *inputs], **held), T)


def _unsqueeze_sizes(g: CaseGraph, axes: Any = (0,), given: str = "init", data: str = "shape") -> None:
    number = g.given(3, data, "int64")
    inputs, held = axes_given(g, axes, given, 13)
    (made,) = g.put("Unsqueeze", [number, *inputs], **held)
    g.use_sizes(g.add("Concat", [made, g.constant(np.array([2]))], axis=0))


_UNSQUEEZE = changes(
    ({"axes": axes} for axes in ((0,), (-1,), (3,), (1, 2), (0, 1), (-1, -2), (2,))),
    [{"axes": (1, 2, 3)}, {"axes": (0, 1, 2)}, {"axes": (-1, -2, -3)}, {"shape": (6,), "axes": (1, 2, 3)}],
    ways("given", "node"),
    [{"shape": (6,)}, {"shape": (4, 6)}, {"shape": (2, 3, 4, 6)}, {"shape": ()}],
    [{"T": "int64"}, {"T": "bool"}, {"T": "int32"}, {"T": "float16"}],
    OPEN,
    ({"axes": axes, "open": (0,)} for axes in ((0,), (2,), (3,), (-1,))),
    ({"shape": (4, 6), "axes": axes, "open": (0,)} for axes in ((0,), (1,), (2,))),
    ({"shape": (4, 6), "axes": axes, "open": (0, 1)} for axes in ((0,), (2,))),
)


def _squeeze_sizes(g: CaseGraph, data: str = "shape", axes: Any = (0,), given: str = "init", use: str = "") -> None:
    inputs, held = axes_given(g, axes, given, 13)
    (made,) = g.put("Squeeze", [g.given([3], data, "int64"), *inputs], **held)
    if use == "Cast":
        g.use_number(made, "int64")
    else:
        g.use_sizes(made, 0)


def _squeeze(g: CaseGraph, shape: Any = (2, 1, 8), axes: Any = (1,), given: str = "init", T: str = "float32",
             open: Any = ()) -> None:  # fmt: skip
    inputs, held = axes_given(g, axes, given, 13)
    g.use(g.put("Squeeze", [g.data(shape, T, open=open), *inputs], **held), T)


_SQUEEZE = changes(
    [{"shape": (1, 3, 8), "axes": (0,)}, {"shape": (2, 8, 1), "axes": (-1,)}, {"shape": (2, 8, 1), "axes": (2,)}],
    [{"axes": None}, {"shape": (2, 1, 1, 4), "axes": (1, 2)}, {"shape": (2, 3, 1, 1), "axes": (-1, -2)}],
    [{"shape": (2, 3, 1, 1), "axes": (2, 3)}, {"shape": (2, 1)}, {"shape": (1,), "axes": (0,)}],
    [{"shape": (2, 1, 3, 2, 4)}, {"shape": (1, 2, 3, 2, 4), "axes": (0,)}],
    ways("given", "node"),
    [{"T": "int64"}, {"T": "bool"}, {"T": "float16"}, {"open": (0,)}, {"open": (2,)}],
)


def _reshape(g: CaseGraph, shape: Any = (2, 3, 8), to: Any = (2, -1), given: str = "init", zero: Any = None,
             T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    target = g.given(list(to), given, "int64")
    g.use(g.put("Reshape", [g.data(shape, T, open=open), target], allowzero=zero), T)


_RESHAPE = changes(
    ({"to": to} for to in ((2, 24), (0, -1), (-1,), (2, 3, 2, 4), (0, 0, 2, -1), (2, 3, 2, 2, 2), (0, 0, -1), (-1, 8))),
    ({"to": (2, 24), "given": how} for how in (*SIZED, "input")),
    [
        {"to": (2, 3, 1, 2, 2, 2)},
        {"shape": (2, 1, 2, 1, 2, 3)},
        {"given": "node"},
        {"given": "shape"},
        {"to": (2, 3, 2, 4), "given": "shape"},
    ],
    [{"open": (0,), "to": (0, -1)}, {"open": (0,), "to": (-1, 24)}, {"open": (1,), "to": (2, -1)}],
    [{"open": (-1,), "to": (2, -1)}, {"open": (0,), "to": (0, 0, -1)}, {"open": (0, 1), "to": (0, 0, -1)}],
    [{"shape": (6,), "to": (2, 3)}, {"shape": (4, 6)}, {"shape": (2, 3, 4, 6)}, {"shape": (2, 3, 2, 2, 6)}],
    [{"T": "int64"}, {"T": "bool"}, {"T": "float16"}, {"T": "int32"}],
)


def _reshape_sizes(g: CaseGraph, data: str = "shape", to: Any = (-1,), given: str = "init") -> None:
    number = g.given([3] if data in ("folded", "init") else 3, data, "int64")
    (made,) = g.put("Reshape", [number, g.given(list(to), given, "int64")])
    g.use_sizes(made)


def _flatten(g: CaseGraph, shape: Any = (2, 3, 4, 5), axis: Any = 1, T: str = "float32", open: Any = ()) -> None:
    g.use(g.put("Flatten", [g.data(shape, T, open=open)], axis=axis), T)


# A mask that is made flat has its axis behind the last one.
_FLATTEN = changes(
    [{"axis": 0}, {"axis": 2}, {"axis": -1}, {"axis": None}, *RANKS[1:], *OPEN, {"open": (0, 1)}, {"open": (0, 2)}],
    ({"shape": (4, 6), "axis": 2, "open": open} for open in ((), (0,), (0, 1))),
    ({"shape": (4, 6), "axis": 2, "open": open, "T": "bool"} for open in ((), (0,), (0, 1))),
    FLOATS,
)


def _expand(g: CaseGraph, shape: Any = (2, 1, 8), to: Any = (2, 3, 8), given: str = "init", T: str = "float32",
            open: Any = ()) -> None:  # fmt: skip
    g.use(g.put("Expand", [g.data(shape, T, open=open), g.given(list(to), given, "int64")]), T)


_EXPAND = changes(
    ways("given", *SIZED, "input"),
    [
        {"to": (4, 2, 3, 8)},
        {"to": (3, 1)},
        {"to": (1, 3, 1)},
        {"shape": (), "to": (2, 3)},
        {"shape": (8,), "to": (3, 8)},
    ],
    [{"to": (2, 1, 8)}, {"T": "int64"}, {"T": "bool"}, {"T": "float16"}, {"T": "int32"}],
    [{"open": (0,), "to": (1, 3, 1)}, {"open": (-1,), "to": (1, 3, 1)}, {"open": (0,), "given": "shape"}],
)


def _expand_sizes(g: CaseGraph, data: str = "shape", given: str = "shape", T: str = "int64") -> None:
    held = g.given([4], data, "int64") if T == "int64" else g.given(np.ones((1,), T), data)
    (made,) = g.put("Expand", [held, g.given([2, 3], given, "int64")])
    g.use([made], T)


_EXPAND_SIZES = changes(
    ways("data", "init", "node", "sized", "folded", "computed"),
    ({"data": "init", "given": how} for how in ("init", "sized", "computed")),
    [
        {"data": "init", "T": "float32"},
        {"data": "init", "T": "float32", "given": "sized"},
        {"given": "sized", "data": "sized"},
    ],
)


def _tile(g: CaseGraph, shape: Any = (2, 3, 4), repeats: Any = (1, 2, 1), given: str = "init", T: str = "float32",
          open: Any = ()) -> None:  # fmt: skip
    g.use(g.put("Tile", [g.data(shape, T, open=open), g.given(list(repeats), given, "int64")]), T)


_TILE = changes(
    ({"repeats": each} for each in ((2, 1, 1), (1, 1, 2), (2, 3, 1), (1, 1, 1))),
    ways("given", *SIZED),
    [{"shape": (6,), "repeats": (2,)}, {"shape": (4, 6), "repeats": (2, 1)}, {"T": "int64"}, {"T": "float16"}],
    [{"shape": (2, 3, 4, 5), "repeats": (1, 1, 2, 2)}, *OPEN],
)


def _constant_of_shape(g: CaseGraph, shape: Any = (2, 3), given: str = "shape", T: str = "float32",
                       has_value: bool = True) -> None:  # fmt: skip
    from onnx import numpy_helper

    value = numpy_helper.from_array(np.ones((1,), T), "") if has_value else None
    made = g.put("ConstantOfShape", [g.given(list(shape), given, "int64")], value=value)
    if not has_value:
        # Beside weights, the zeros have to be float32: tract makes numbers of double precision.
        made = [g.add("Add", [g.data((2, 4)), g.add("MatMul", [*made, g.constant(g.numbers(3, 4))])])]
    g.use(made, T)


def _range(g: CaseGraph, end: str = "shape", start: str = "init", delta: str = "init", T: str = "int64") -> None:
    limit = g.given(5, end, "int64" if T == "int64" else T)
    g.use(g.put("Range", [g.given(0, start, T), limit, g.given(1, delta, T)]), T)


# Moving data ----------------------------------------------------------------------------------------------------------


def _transpose(g: CaseGraph, shape: Any = (2, 3, 4, 5), perm: Any = (0, 2, 1, 3), T: str = "float32",
               open: Any = ()) -> None:  # fmt: skip
    g.use(g.put("Transpose", [g.data(shape, T, open=open)], perm=None if perm is None else list(perm)), T)


_TRANSPOSE = changes(
    (
        {"perm": perm}
        for perm in ((0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2), (3, 2, 1, 0), (1, 0, 2, 3), (0, 1, 2, 3), None)
    ),
    [
        {"shape": (2, 2, 2, 3, 2, 4), "perm": (0, 1, 3, 2, 4, 5)},
        {"shape": (3, 4), "perm": (1, 0)},
        {"shape": (2, 3, 4), "perm": (0, 2, 1)},
        {"shape": (2, 3, 4), "perm": (1, 0, 2)},
    ],
    [{"shape": (2, 3, 4), "perm": (2, 0, 1)}, {"shape": (2, 3, 2, 4, 5), "perm": (0, 2, 1, 4, 3)}],
    [{"T": "int64"}, {"T": "bool"}, {"T": "float16"}, {"T": "float64"}, {"T": "int32"}],
    OPEN,
)


def _gather(g: CaseGraph, shape: Any = (6, 8), axis: Any = 0, indices: Any = ((0, 2), (5, 1)), given: str = "input",
            T: str = "float32", index_type: str = "int64", data: str = "data", open: Any = ()) -> None:  # fmt: skip
    held = g.given(g.numbers(*shape, dtype=T), "init") if data == "init" else g.data(shape, T, open=open)
    g.use(g.put("Gather", [held, g.given(indices, given, index_type)], axis=axis), T)


def _gather_sizes(g: CaseGraph, index: Any = 1, given: str = "init", axis: Any = 0, open: Any = (0, 1, 2),
                  use: str = "Unsqueeze", index_type: str = "int64") -> None:  # fmt: skip
    shape = g.add("Shape", [g.data((2, 3, 8), open=open)])
    held = g.given(index, given, index_type)
    (made,) = g.put("Gather", [shape, held], axis=axis)
    if use == "number":
        g.use_number(made, "int64")
        return
    # As TorchScript writes it.
    held = g.add("Cast", [made], to=7) if use == "Cast" else made
    g.use_sizes(held, 1 if isinstance(index, tuple) else 0)


_GATHER = changes(
    ({"given": how} for how in ("init", "node", "computed")),
    ({"given": "init", "indices": each} for each in (1, -1, (1,), (0, 2), ((0, 1), (2, 3)), (-1, 0), (((0,), (1,)),))),
    [{"given": "node", "indices": 0}, {"given": "node", "indices": (1, 0)}, {"indices": (1, 2)}, {"indices": 1}],
    [{"axis": 1}, {"axis": -1}, {"axis": None}, {"shape": (2, 6, 4), "axis": 1, "given": "init", "indices": 0}],
    [
        {"shape": (6,)},
        {"shape": (6, 2, 4)},
        {"shape": (6, 2, 2, 4)},
        {"shape": (3, 2, 2, 2, 4), "given": "init", "indices": 1},
        {"index_type": "int32"},
        {"data": "init"},
    ],
    [{"data": "init", "given": "init", "indices": 1}, {"T": "int64"}, {"T": "float16"}, {"T": "bool"}, {"T": "int32"}],
    [{"open": (0,), "given": "init"}, {"open": (1,), "given": "init"}, {"open": (0,)}],
    [{"shape": (2, 6, 4), "axis": 1, "given": "init", "indices": 0, "open": (0,)}],
    [{"shape": (2, 6, 4), "axis": 1, "given": "init", "indices": -1, "open": (1,)}],
    [{"shape": (2, 2, 6, 4), "axis": 2, "given": "init", "indices": each} for each in (0, ((0, 2), (5, 1)))],
)
_GATHER_SIZES = changes(
    [{"given": "node"}, {"index": -1}, {"index": (1,)}, {"index": (0, 1)}, {"axis": None}, {"open": ()}],
    [{"use": "Cast"}, {"index": 0}, {"index_type": "int32"}, {"given": "node", "open": ()}, {"open": (0,)}],
    [{"use": "Cast", "given": "node"}, {"given": "node", "index": (0,)}],
    [{"use": "Cast", "open": ()}, {"use": "Cast", "given": "node", "open": ()}],
    ({"use": "number", "given": given, "open": open} for given in ("init", "node") for open in ((0, 1, 2), (0,), ())),
    [{"use": "number", "given": "node", "index": 0}, {"use": "number", "given": "node", "index": (1,)}],
)


def _slice(g: CaseGraph, shape: Any = (4, 6, 8), starts: Any = (0,), ends: Any = (2,), axes: Any = (1,),
           steps: Any = (1,), given: str = "init", bounds: str | None = None, T: str = "float32",
           index_type: str = "int64", open: Any = ()) -> None:  # fmt: skip
    data = g.data(shape, T, open=open)
    if g.opset < 10:
        held = {"starts": list(starts), "ends": list(ends), "axes": None if axes is None else list(axes)}
        g.use(g.put("Slice", [data], **held), T)
        return
    lists = [g.given(list(starts), bounds or given, index_type), g.given(list(ends), bounds or given, index_type)]
    lists.append("" if axes is None else g.given(list(axes), given, index_type))
    lists.append("" if steps is None else g.given(list(steps), given, index_type))
    g.use(g.put("Slice", [data, *lists]), T)


def _slice_of(g: CaseGraph, data: str = "init", given: str = "init") -> None:
    """Rows of a table, such as positions, up to a size."""
    table = g.given(g.numbers(1, 6, 4), data)
    lists = [g.given([0], given, "int64"), g.given([3], "shape", "int64"), g.given([1], given, "int64")]
    (made,) = g.put("Slice", [table, *lists, g.given([1], given, "int64")])
    g.use([g.add("Add", [g.data((2, 1, 4)), made])])


def _slice_from(g: CaseGraph, bounds: str = "shape", open: Any = ()) -> None:
    lists = [g.given([1], bounds, "int64"), g.given([4], bounds, "int64"), g.given([1], "init", "int64")]
    g.use(g.put("Slice", [g.data((4, 6, 8), open=open), *lists]))


def _slice_sizes(g: CaseGraph, starts: Any = (0,), ends: Any = (2,), given: str = "init", open: Any = (0, 1, 2),
                 axes: Any = (0,), steps: Any = None, use: str = "") -> None:  # fmt: skip
    shape = g.add("Shape", [g.data((2, 3, 8), open=open)])
    if g.opset < 10:
        (made,) = g.put("Slice", [shape], starts=list(starts), ends=list(ends), axes=list(axes))
    else:
        lists = [g.given(list(each), given, "int64") for each in (starts, ends, axes, *([steps] if steps else []))]
        (made,) = g.put("Slice", [shape, *lists])
    if use == "Cast":
        g.use([g.add("Mul", [g.data((2, 1)), g.add("Sqrt", [g.add("Cast", [made], to=1)])])])
    else:
        g.use_sizes(made)


_SLICE = changes(
    [{"starts": (1,)}, {"starts": (-2,), "ends": (INT_MAX,)}, {"ends": (INT_MAX,)}, {"ends": (-1,)}],
    [{"axes": (0,)}, {"axes": (2,)}, {"axes": (-1,)}, {"starts": (0, 1), "ends": (2, 5), "axes": (0, 1)}],
    [{"starts": (0, 1), "ends": (2, 5), "axes": (0, 1), "steps": (1, 1)}],
)
_SLICE_10 = changes(
    [{"steps": None}, {"steps": (2,)}, {"starts": (-1,), "ends": (-INT_MAX,), "steps": (-1,)}],
    [{"starts": (0, 1), "ends": (2, 5), "axes": None, "steps": None}, {"index_type": "int32"}],
    ways("given", "node", "folded"),
    ways("bounds", *SIZED, "input"),
    [{"steps": None, "bounds": "shape"}, {"steps": None, "given": "node"}, {"axes": None, "steps": None}],
)
_SLICE_DATA = changes(
    [{"shape": (8,), "axes": (0,)}, {"shape": (4, 6)}, {"shape": (2, 6, 4, 5)}, {"shape": (2, 6, 2, 4, 5)}],
    [{"shape": (2, 6, 4, 5), "axes": (2,)}, {"shape": (2, 6, 4, 5), "axes": (3,)}],
    [{"T": "int64"}, {"T": "float16"}, {"T": "bool"}, {"T": "int32"}, *OPEN, {"open": (1,), "ends": (INT_MAX,)}],
)
_REVERSED: Change = {"starts": (-1,), "ends": (-INT_MAX,), "steps": (-1,)}
_SLICE_REVERSED = changes(
    ({**_REVERSED, "open": open} for open in ((0,), (1,), (0, 1, 2))),
    [{**_REVERSED, "shape": (2, 6, 4, 5), "axes": (3,)}],
    [
        {**_REVERSED, "shape": (2, 6, 4, 5), "axes": (3,), "open": (0, 2, 3), "given": given}
        for given in ("init", "node")
    ],
)


def _concat(g: CaseGraph, shape: Any = (2, 3, 4), axis: Any = 1, kinds: str = "dd", T: str = "float32",
            open: Any = ()) -> None:  # fmt: skip
    """kinds: of each input, computed data, an initializer, or an input of the graph (x)."""
    names = []
    for kind in kinds:
        held = g.numbers(*shape, dtype=T) if kind != "d" else None
        names.append(g.data(shape, T, open=open) if held is None else g.given(held, "input" if kind == "x" else "init"))
    g.use(g.put("Concat", names, axis=axis), T)


def _concat_sizes(g: CaseGraph, kinds: str = "si") -> None:
    hows = {"s": "shape", "f": "sized", "i": "init", "n": "node", "c": "computed", "o": "folded"}
    names = [g.given([3] if kind in "sf" else [2], hows[kind], "int64") for kind in kinds]
    g.use_sizes(g.put("Concat", names, axis=0)[0])


_CONCAT = changes(
    ({"axis": axis} for axis in (0, 2, -1)),
    [{"shape": (2, 3, 4, 5), "axis": 2}, {"kinds": "ddd"}, {"kinds": "d"}, {"kinds": "di"}, {"kinds": "id"}, *OPEN],
    [{"shape": (4,), "axis": 0}, {"shape": (3, 4)}, {"shape": (2, 3, 4, 5)}, {"shape": (2, 3, 2, 4, 5)}],
    [{"shape": (2, 3, 4, 5), "axis": 3}, {"T": "int64"}, {"T": "float16"}, {"T": "bool"}, {"T": "float64"}],
    [{"kinds": kinds, "shape": (1, 3, 4, 5)} for kinds in ("xi", "ix", "xii")],
    [{"kinds": "xi", "axis": 0}],
)
_CONCAT_SIZES = [
    {"kinds": kinds}
    for kinds in ("sii", "is", "sin", "sn", "s", "ss", "fi", "ff", "fn", "so", "sf", "ni", "ns", "cs", "ii")
]


def _split(g: CaseGraph, shape: Any = (2, 6, 4), axis: Any = 1, lengths: Any = (2, 4), given: str = "init",
           count: int = 2, used: str = "", T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    data, outputs = g.data(shape, T, open=open), used or "1" * (len(lengths) if lengths else count)
    held: dict[str, Any] = {"axis": axis}
    inputs = [data]
    if lengths is not None and g.opset < 13:
        held["split"] = list(lengths)
    elif lengths is not None:
        inputs.append(g.given(list(lengths), given, "int64"))
    elif g.opset >= 18:
        held["num_outputs"] = len(outputs)
    g.use(g.put("Split", inputs, outputs, **held), T)


_SPLIT = changes(
    [{"lengths": (3, 3)}, {"lengths": None}, {"lengths": None, "count": 3}, {"lengths": (2, 2, 2)}, {"lengths": (6,)}],
    [{"axis": -1, "lengths": (1, 3)}, {"axis": 2, "lengths": (1, 3)}, {"axis": 0, "lengths": (1, 1)}, {"axis": -2}],
    [{"axis": None, "lengths": (1, 1)}, {"used": "1u"}, {"used": "u1"}, {"given": "node"}, {"given": "shape"}],
    [{"shape": (6, 4), "axis": 0}, {"shape": (2, 6, 4, 5)}, {"shape": (6,), "axis": 0}, {"shape": (2, 6, 2, 4, 5)}],
    [{"T": "int64"}, {"T": "float16"}, *OPEN, {"open": (1,), "lengths": None}],
)


def _pad(g: CaseGraph, shape: Any = (2, 3, 5, 6), pads: Any = (0, 0, 1, 1, 0, 0, 1, 1), mode: Any = "constant",
         given: str = "init", value: str = "absent", axes: Any = None, T: str = "float32",
         open: Any = ()) -> None:  # fmt: skip
    data = g.data(shape, T, open=open)
    if g.opset < 11:
        g.use(g.put("Pad", [data], pads=list(pads), mode=mode), T)
        return
    inputs = [data, g.given(list(pads), given, "int64"), g.given(0, value, T)]
    inputs.append("" if axes is None or g.opset < 18 else g.given(list(axes), "init", "int64"))
    g.use(g.put("Pad", inputs, mode=mode), T)


_PAD = changes(
    ({"mode": mode} for mode in ("reflect", "edge")),
    [{"pads": (0, 0, 1, 2, 0, 0, 2, 1)}, {"pads": (0, 0, -1, 0, 0, 0, 0, -1)}, {"pads": (0, 1, 0, 0, 0, 0, 0, 0)}],
    ways("given", "node", "folded", "sized", "computed"),
    ways("value", "init", "node", "folded"),
    [{"pads": (0, 0, 0, 0, 0, 0, 0, 0)}],
    [
        {"shape": (3, 5), "pads": (0, 1, 0, 1)},
        {"shape": (2, 3, 5), "pads": (0, 0, 1, 0, 0, 1)},
        {"shape": (2, 1, 5, 3, 4), "pads": (0, 0, 1, 0, 0, 0, 0, 1, 0, 0)},
        *OPEN,
        *FLOATS,
        {"T": "int32"},
        {"T": "int64"},
        *({"shape": (2, 3, 5), "pads": (0, 0, 2, 0, 0, 2), "mode": mode} for mode in ("reflect", "edge")),
        {"shape": (2, 3, 5), "pads": (0, 0, 2, 0, 0, 0), "open": (2,)},
    ],
)
_PAD_18 = [{"axes": (2, 3), "pads": (1, 1, 1, 1)}]


def _topk(g: CaseGraph, shape: Any = (2, 8), k: str = "init", axis: Any = -1, largest: Any = None, sort: Any = None,
          used: str = "11", T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    held = {"axis": axis} | ({"largest": largest, "sorted": sort} if g.opset >= 11 else {})
    data = g.data(shape, T, open=open, array=np.arange(np.prod(shape)).reshape(shape)[::-1].astype(T))
    kinds = iter((T, "int64"))
    inputs = [data] if g.opset < 10 else [data, g.given([3], k, "int64")]
    made = g.put("TopK", inputs, used, **held, **({"k": 3} if g.opset < 10 else {}))
    dtypes = [dtype for dtype, kind in zip(kinds, used, strict=False) if kind == "1"]
    for name, dtype in zip(made, dtypes, strict=True):
        g.use([name], dtype)


_TOPK = changes(
    ways("k", "node", "folded", "sized", "shape", "computed"),
    [{"axis": 0, "shape": (4, 6)}, {"axis": 1}, {"axis": None}, {"largest": 0}, {"sort": 0}, {"used": "1u"}],
    [{"used": "u1"}, {"shape": (8,)}, {"shape": (2, 3, 8)}, {"T": "int64"}, {"open": (0,)}, {"open": (1,)}],
    [{"open": (0, 1)}, {"axis": 1, "largest": 0, "open": (0, 1)}],
)

SHAPES = [
    Recipe(
        "Squeeze",
        _squeeze_sizes,
        [
            *ways("data", "sized", "computed", "folded"),
            {"given": "node"},
            {"axes": (-1,)},
            {"axes": None},
            {"use": "Cast"},
        ],
        family="sizes",
    ),
    Recipe("Range", _range, [{"start": "sized"}, {"start": "shape", "end": "init"}], since=11, family="start"),
    Recipe("Slice", _slice_of, changes(ways("given", "node"), ways("data", "node")), since=10, family="constant"),
    Recipe("Slice", _slice_from, ways("bounds", "sized", "computed", "folded"), since=10, family="from"),
    Recipe("Softmax", _softmax("Softmax"), _SOFTMAX),
    Recipe("LogSoftmax", _softmax("LogSoftmax"), _SOFTMAX),
    Recipe("Hardmax", _softmax("Hardmax"), [{"axis": 1}, {"axis": 0}, {"axis": None}]),
    *(
        Recipe(name, _reduce(name, 13 if name == "ReduceSum" else 18), _REDUCE)
        for name in (
            *("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2"),
            *("ReduceL1", "ReduceLogSumExp", "ReduceSumSquare"),
        )
    ),
    Recipe("ReduceProd", _reduce_sizes, _REDUCE_SIZES, family="sizes"),
    Recipe("ArgMax", _arg("ArgMax"), _ARG),
    Recipe("ArgMin", _arg("ArgMin"), _ARG[:4]),
    Recipe("Shape", _shape, _SHAPE, until=14),
    Recipe("Shape", _shape, [*_SHAPE, *_SHAPE_15], since=15),
    Recipe("Shape", _shape_of_sizes, ways("data", "sized", "folded", "init", "computed"), family="sizes"),
    Recipe("Unsqueeze", _unsqueeze, _UNSQUEEZE, family="data"),
    Recipe(
        "Unsqueeze",
        _unsqueeze_sizes,
        [
            {"given": "node"},
            {"data": "computed"},
            {"axes": (-1,)},
            {"data": "sized"},
            {"data": "folded"},
            {"data": "init"},
        ],
        family="sizes",
    ),
    Recipe("Squeeze", _squeeze, _SQUEEZE),
    Recipe("Reshape", _reshape, _RESHAPE, until=13),
    Recipe("Reshape", _reshape, [*_RESHAPE, {"zero": 1}, {"zero": 0}], since=14),
    Recipe(
        "Reshape",
        _reshape_sizes,
        [*ways("data", "sized", "computed", "folded"), {"given": "node"}, {"to": (1,)}],
        family="sizes",
    ),
    Recipe("Flatten", _flatten, _FLATTEN),
    Recipe("Expand", _expand, _EXPAND, since=8),
    Recipe("Expand", _expand_sizes, _EXPAND_SIZES, since=8, family="sizes"),
    Recipe("Tile", _tile, _TILE),
    Recipe(
        "ConstantOfShape",
        _constant_of_shape,
        [
            *ways("given", "init", "node", "sized", "folded", "computed"),
            *({"T": "int64"}, {"shape": (3,)}, {"T": "bool"}),
            # Zeros of the default type, of sizes that the run tells.
            {"has_value": False},
        ],
        since=9,
    ),
    Recipe(
        "Range",
        _range,
        [
            *ways("end", "init", "node", "sized", "folded", "computed"),
            {"delta": "node", "start": "node"},
            {"delta": "node"},
            {"delta": "node", "start": "node", "end": "sized"},
            {"T": "float32", "end": "init"},
        ],
        since=11,
    ),
    Recipe("Transpose", _transpose, _TRANSPOSE),
    Recipe("Gather", _gather, _GATHER, family="data"),
    Recipe("Gather", _gather_sizes, _GATHER_SIZES, family="sizes"),
    Recipe("Slice", _slice, [*_SLICE, *_SLICE_DATA], until=9, family="data"),
    Recipe("Slice", _slice, [*_SLICE, *_SLICE_10, *_SLICE_DATA, *_SLICE_REVERSED], since=10, family="data"),
    Recipe(
        "Slice",
        _slice_sizes,
        [
            {"starts": (1,), "ends": (INT_MAX,)},
            {"ends": (-1,)},
            {"given": "node"},
            {"open": ()},
            {"given": "node", "open": ()},
            {"starts": (-1,), "ends": (INT_MAX,)},
            {"steps": (1,)},
            {"steps": (-1,), "starts": (-1,), "ends": (-INT_MAX,)},
            {"given": "folded"},
            *({"use": "Cast", "starts": (-1,), "ends": (INT_MAX,), "given": how} for how in ("init", "node")),
            {"use": "Cast", "starts": (-1,), "ends": (INT_MAX,), "given": "node", "open": ()},
        ],
        family="sizes",
    ),
    Recipe("Concat", _concat, _CONCAT, family="data"),
    Recipe("Concat", _concat_sizes, _CONCAT_SIZES, family="sizes"),
    Recipe("Split", _split, _SPLIT),
    Recipe("Pad", _pad, [change for change in _PAD if not {"given", "value"} & change.keys()], until=10),
    Recipe("Pad", _pad, _PAD, since=11, until=17),
    Recipe("Pad", _pad, [*_PAD, *_PAD_18], since=18),
    Recipe("TopK", _topk, [{"axis": 0, "shape": (4, 6)}], until=9),
    Recipe("TopK", _topk, _TOPK, since=10),
]
