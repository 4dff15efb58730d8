"""Operators that read and write at positions, products by letters, and what stands alone in exports of today.

They come behind all other recipes, so that the cases of those keep their numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case_graph import CaseGraph
from factor_recipes import FLOATS, OPEN, RANKS, Recipe, changes, ways
from factor_recipes_of_exports import positions
from onnx import helper, numpy_helper

# Indices --------------------------------------------------------------------------------------------------------------


def _indices(g: CaseGraph, how: str, array: Any) -> str:
    held = np.asarray(array, np.int64)
    return g.graph_input(held) if how == "input" else g.given(held, how, "int64")


def _gather_elements(g: CaseGraph, shape: Any = (2, 3, 4), axis: Any = 1, at: str = "input", data: str = "data",
                     T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    held = g.data(shape, T, open=open) if data == "data" else g.given(g.numbers(*shape, dtype=T), data)
    index = np.zeros(shape, np.int64)
    index[..., -1] = 1
    g.use(g.put("GatherElements", [held, _indices(g, at, index)], axis=axis), T)


def _gather_elements_sizes(g: CaseGraph, at: str = "shape", shape: Any = (2, 3), data: str = "data",
                           T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    """Each row in the reverse order, for as many rows as there are at run time."""
    held = g.data(shape, T, open=open) if data == "data" else g.given(g.numbers(*shape, dtype=T), data)
    backwards = np.arange(shape[-1])[::-1].reshape(*[1] * (len(shape) - 1), -1)
    index = g.add("Expand", [g.constant(backwards.copy()), g.given(list(shape), at, "int64")])
    (made,) = g.put("GatherElements", [held, index], axis=len(shape) - 1)
    g.use([made] if data == "data" else [g.add("Add", [g.data((1,) * len(shape), T), made])], T)


def _gather_grid(g: CaseGraph, at: str = "shape", rank: int = 4, shape: Any = (6,), data: str = "data",
                 T: str = "float32", axis: Any = 0, open: Any = ()) -> None:  # fmt: skip
    """Elements at rows and columns, such as those of a mask that was made flat: a position for each pair of two."""
    held = g.data(shape, T, open=open) if data == "data" else g.given(g.numbers(*shape, dtype=T), data)
    ones = [1] * (rank - 1)
    if at in ("shape", "sized"):
        rows, columns = positions(g, at, (2, *ones)), positions(g, at, (*ones, 3))
        index = g.add("Add", [columns, g.add("Mul", [rows, g.constant(np.array(3))])])
    else:
        index = _indices(g, at, np.arange(6).reshape(2, *ones[1:], 3))
    (made,) = g.put("Gather", [held, index], axis=axis)
    g.use([made] if data == "data" else [g.add("Add", [g.data((1,), T), made])], T)


def _gather_nd(g: CaseGraph, shape: Any = (4, 3, 5), at: str = "input", index: Any = ((1,), (3,)), data: str = "data",
               batch: Any = None, T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    held = g.data(shape, T, open=open) if data == "data" else g.given(g.numbers(*shape, dtype=T), data)
    if at == "shape":
        made = g.put("GatherND", [held, _column(g, positions(g, at, (2,)))], batch_dims=batch)
    else:
        made = g.put("GatherND", [held, _indices(g, at, index)], batch_dims=batch)
    g.use(made, T)


def _column(g: CaseGraph, name: str) -> str:
    """A list as a matrix of one column. A Reshape to fixed sizes would contradict a list of an open size."""
    if g.opset < 13:
        return g.add("Unsqueeze", [name], axes=[1])
    return g.add("Unsqueeze", [name, g.constant(np.array([-1]))])


def _scatter_elements(g: CaseGraph, shape: Any = (3, 4), axis: Any = 0, at: str = "input", data: str = "data",
                      updates: str = "data", reduction: Any = None, T: str = "float32",
                      open: Any = ()) -> None:  # fmt: skip
    held = g.data(shape, T, open=open) if data == "data" else g.given(g.numbers(*shape, dtype=T), data)
    index = np.zeros(shape, np.int64)
    index[:] = np.arange(shape[axis]).reshape([-1 if each == axis % len(shape) else 1 for each in range(len(shape))])
    more = g.data(shape, T) if updates == "data" else g.given(g.numbers(*shape, dtype=T), updates)
    (made,) = g.put("ScatterElements", [held, _indices(g, at, index), more], axis=axis, reduction=reduction)
    g.use([made] if data == "data" else [g.add("Add", [g.data((1,) * len(shape), T), made])], T)


def _scatter_nd(g: CaseGraph, shape: Any = (4, 3), at: str = "init", index: Any = ((1,), (3,)), data: str = "data",
                updates: str = "data", reduction: Any = None, T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    held = g.data(shape, T, open=open) if data == "data" else g.given(g.numbers(*shape, dtype=T), data)
    rows = np.asarray(index)
    size = (*rows.shape[:-1], *shape[rows.shape[-1] :])
    if updates in ("sized", "shape"):
        # One number for all that is written, as exporters write x[:, 1:3] = 0.
        more = g.add("Expand", [g.constant(np.array(0.5, T)), g.given(list(size), updates, "int64")])
    else:
        more = g.data(size, T) if updates == "data" else g.given(g.numbers(*size, dtype=T), updates)
    if at == "sized":
        places = g.add("Reshape", [positions(g, at, (2,)), g.constant(np.array([2, 1]))])
    elif at == "shape":
        places = _column(g, positions(g, at, (2,)))
    else:
        places = _indices(g, at, rows)
    (made,) = g.put("ScatterND", [held, places, more], reduction=reduction)
    g.use([made] if data == "data" else [g.add("Add", [g.data((1,) * len(shape), T), made])], T)


_AT = changes(
    ways("at", "init", "node", "folded", "computed"),
    ways("data", "init", "node", "folded"),
    [{"open": (0,)}, {"open": (-1,)}, {"T": "int64"}, {"T": "bool"}, {"T": "float16"}],
)
_GRID = changes(
    ways("at", "sized", "folded", "init", "node", "computed", "input"),
    [{"rank": 3}, {"rank": 2}, {"rank": 3, "at": "sized"}, {"rank": 2, "at": "sized"}, {"rank": 3, "at": "input"}],
    [{"shape": (6, 1)}, {"shape": (6, 1), "T": "bool"}, {"shape": (6, 1), "at": "sized"}, {"open": (0,)}],
    [{"T": "bool"}, {"T": "int64"}, {"T": "bool", "at": "sized"}, {"shape": (6, 1), "T": "bool", "open": (0,)}],
    [{"shape": (2, 6), "axis": 1}, {"shape": (6, 2, 2)}],
    # A table of which the positions are read that are known, or follow from sizes.
    ({"data": "init", "shape": (6, 4), "rank": 2, "at": at} for at in ("folded", "sized", "shape")),
    ({"shape": (6, 4), "rank": 2, "at": "folded", "axis": axis} for axis in (0, None)),
    [{"data": "init", "shape": (6, 4), "rank": 2, "at": "folded", "axis": None}, {"data": "folded", "shape": (6, 4)}],
)
_INTO = changes(
    ways("at", "node", "folded", "computed"),
    ways("data", "init", "node", "folded"),
    ways("updates", "init", "node", "folded"),
    [{"open": (0,)}, {"T": "int64"}, {"data": "init", "updates": "init"}],
)


# Others ---------------------------------------------------------------------------------------------------------------


# Products of attention, of heads, of relative positions, and an outer one.
_EQUATIONS = (
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ij,jk->ik", (3, 4), (4, 5)), ("i,j->ij", (3,), (4,)),
    ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("bhqk,bhkd->bhqd", (2, 2, 3, 5), (2, 2, 5, 4)),
    ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)), ("bhqk,bkhd->bqhd", (2, 2, 3, 5), (2, 5, 2, 4)),
    ("btd,bsd->bts", (2, 3, 4), (2, 5, 4)), ("btd,de->bte", (2, 3, 4), (4, 5)), ("bnd,nde->bne", (2, 3, 4), (3, 4, 5)),
    ("bind,snd->bnis", (2, 3, 2, 4), (5, 2, 4)), ("td,dnh->tnh", (3, 4), (4, 2, 5)),
    ("binh,tnh->bnit", (2, 3, 2, 4), (5, 2, 4)), ("bchw,hkc->bkhw", (2, 3, 4, 5), (4, 2, 3)),
    ("bhwc,hkc->bhwk", (2, 3, 4, 5), (3, 2, 5)), ("bhwc,wkc->bhwk", (2, 3, 4, 5), (4, 2, 5)),
    ("ibh,hnd->ibnd", (3, 2, 4), (4, 2, 5)), ("ibnd,jbnd->bnij", (3, 2, 2, 4), (5, 2, 2, 4)),
    ("bnij,jbnd->ibnd", (2, 2, 3, 5), (5, 2, 2, 4)), ("ibnd,hnd->ibh", (3, 2, 2, 4), (5, 2, 4)),
    ("bct,dt->bcd", (2, 3, 4), (5, 4)), ("bchq,bkhc->bkhq", (2, 3, 4, 5), (2, 6, 4, 3)),
    # Mixtures of experts, biases and norms by letters, sums, and orders that only the result has.
    ("btd,edo->bteo", (2, 3, 4), (5, 4, 6)), ("bte,bteo->bto", (2, 3, 4), (2, 3, 4, 5)), ("bi,bi->b", (2, 3), (2, 3)),
    ("ij,kj->ik", (3, 4), (5, 4)), ("ij,jk->ki", (3, 4), (4, 5)), ("bi,bj->bij", (2, 3), (2, 4)),
    ("bij,j->bi", (2, 3, 4), (4,)), ("bij,bj->bi", (2, 3, 4), (2, 4)), ("bi,bij->bj", (2, 3), (2, 3, 4)),
    ("bij,bik->bjk", (2, 3, 4), (2, 3, 5)), ("bij,bi->bij", (2, 3, 4), (2, 3)), ("i,i->", (4,), (4,)),
)  # fmt: skip


def _einsum(g: CaseGraph, equation: str = "bij,bjk->bik", a: Any = (2, 3, 4), b: Any = (2, 4, 5), A: str = "data",
            B: str = "data", c: Any = None, open: Any = (), T: str = "float32") -> None:  # fmt: skip
    def value(how: str, size: Any) -> str:
        if how in ("sized", "shape"):
            return g.add("Cast", [positions(g, how, size)], to=1)
        return g.data(size, T, open=open) if how == "data" else g.given(g.numbers(*size, dtype=T), how)

    values = [value(A, a), value(B, b), *([] if c is None else [value("init", c)])]
    g.use(g.put("Einsum", values, equation=equation), T)


_EINSUM = changes(
    ({"equation": equation, "a": a, "b": b} for equation, a, b in _EQUATIONS[1:]),
    ways("B", "init", "node", "folded"),
    ways("A", "init", "folded"),
    [{"open": (0,)}, {"T": "float16"}],
    [{"equation": "i,j->ij", "a": (3,), "b": (4,), "A": how, "B": "init"} for how in ("shape", "sized", "init")],
    # Attention whose weights are tables: into heads, and back with what each head gives.
    [{"equation": "btc,chd->bhtd", "a": (2, 3, 4), "b": (4, 2, 5), "B": "init", "open": open} for open in ((), (0, 1))],
    [{"equation": "bhqk,bhkd,hdc->bqc", "a": (2, 2, 3, 5), "b": (2, 2, 5, 4), "c": (2, 4, 6)}],
)


def _cumsum(g: CaseGraph, shape: Any = (2, 3, 4), axis: int = 1, given: str = "init", exclusive: Any = None,
            reverse: Any = None, T: str = "float32", cast: bool = False, to: str = "int64",
            open: Any = ()) -> None:  # fmt: skip
    held = {"exclusive": exclusive, "reverse": reverse}
    data = g.data(shape, T, open=open)
    if cast:
        mask = g.add("Greater", [data, g.constant(np.array(0.5, np.float32))])
        data, T = g.add("Cast", [mask], to=7 if to == "int64" else 6), to
    g.use(g.put("CumSum", [data, g.given(axis, given, "int64")], **held), T)


def _trilu(g: CaseGraph, shape: Any = (3, 4), k: Any = 0, given: str = "init", upper: Any = 0, T: str = "float32",
           data: str = "data", open: Any = ()) -> None:  # fmt: skip
    held = g.data(shape, T, open=open) if data == "data" else g.given(g.numbers(*shape, dtype=T), data)
    (made,) = g.put("Trilu", [held, "" if k is None else g.given(k, given, "int64")], upper=upper)
    g.use([g.add("Add", [g.data(shape, T), made])] if data != "data" and T != "bool" else [made], T)


def _trilu_full(g: CaseGraph, how: str = "shape", upper: Any = 1) -> None:
    """A causal mask of an open size."""
    sizes = g.given([4, 4], how, "int64")
    full = g.add("ConstantOfShape", [sizes], value=numpy_helper.from_array(np.ones(1, np.float32), ""))
    (made,) = g.put("Trilu", [full, g.given(1, "init", "int64")], upper=upper)
    g.use([g.add("Add", [g.data((1, 1)), made])])


def _eye(g: CaseGraph, data: str = "data", shape: Any = (4, 4), dtype: Any = 1, k: Any = None, T: str = "float32",
         open: Any = ()) -> None:  # fmt: skip
    if data == "data":
        held = g.data(shape, T, open=open)
    elif data == "shape":
        sizes = g.given(list(shape), data, "int64")
        held = g.add("ConstantOfShape", [sizes], value=numpy_helper.from_array(np.zeros(1, T), ""))
    else:
        held = g.given(g.numbers(*shape, dtype=T), data)
    kind = T if dtype is None else helper.tensor_dtype_to_np_dtype(dtype).name
    (made,) = g.put("EyeLike", [held], dtype=dtype, k=k)
    g.use([g.add("Add", [g.data(shape, kind), made])] if kind != "bool" else [made], kind)


_EYE = changes(
    ways("data", "init", "node", "folded", "shape"),
    [{"dtype": None}, {"dtype": 7}, {"dtype": 9}, {"k": 1}, {"k": 0}, {"T": "int64"}, {"T": "int64", "dtype": None}],
    [{"shape": (3, 4)}, {"open": (0,)}, {"data": "folded", "dtype": None}, {"data": "init", "dtype": None}],
)


def _one_hot(g: CaseGraph, shape: Any = (2, 3), axis: Any = None, depth: str = "init", values: str = "init",
             T: str = "float32", open: Any = ()) -> None:  # fmt: skip
    array = np.arange(int(np.prod(shape))).reshape(shape) % 4
    made = g.put("OneHot", [g.graph_input(array, open=open), g.given(4, depth, "int64"), g.given([0, 1], values, T)],
                 axis=axis)  # fmt: skip
    g.use(made, T)


def _non_zero(g: CaseGraph, shape: Any = (2, 4), T: str = "float32", open: Any = ()) -> None:
    array = np.ones(shape, T)
    array.flat[0] = 0
    held = g.data(shape, T, open=open, array=array - np.array(0.5, T)) if T == "float32" else g.graph_input(array)
    g.use(g.put("NonZero", [held]), "int64")


def _lrn(g: CaseGraph, size: int = 5, alpha: Any = 1e-4, beta: Any = 0.75, bias: Any = 1.0, open: Any = ()) -> None:
    g.use(g.put("LRN", [g.data((2, 6, 4, 5), open=open)], size=size, alpha=alpha, beta=beta, bias=bias))


def _lp_norm(g: CaseGraph, shape: Any = (2, 3, 8), axis: Any = -1, p: Any = 2, open: Any = ()) -> None:
    g.use(g.put("LpNormalization", [g.data(shape, open=open)], axis=axis, p=p))


def _remainder(g: CaseGraph, shape: Any = (2, 3, 8), given: str = "init", fmod: Any = 1, T: str = "float32",
               other: Any = (), open: Any = ()) -> None:  # fmt: skip
    data = g.data(shape, T, open=open)
    g.use(g.put("Mod", [data, g.given(np.full(other, 3, T), given)], fmod=fmod), T)


def _remainder_of_cast(g: CaseGraph, shape: Any = (2, 6), to: str = "int64", fmod: Any = None, added: bool = False,
                       open: Any = ()) -> None:  # fmt: skip
    """The rest of numbers that are below 0, too, which a Cast made of floats."""
    array = np.arange(-6, 6, dtype=np.float32).reshape(shape)
    data = g.add("Cast", [g.data(shape, open=open, array=array)], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
    data = g.add("Add", [data, g.constant(np.array(1, to))]) if added else data
    g.use(g.put("Mod", [data, g.constant(np.array(4, to))], fmod=fmod), to)


def _dynamic_quantize(g: CaseGraph, shape: Any = (2, 3, 4), open: Any = ()) -> None:
    made = g.put("DynamicQuantizeLinear", [g.data(shape, open=open)], 3)
    g.use(made[:1], "uint8")
    g.use(made[1:2])
    g.use(made[2:], "uint8")


def _unary(operator: str) -> Callable[..., None]:
    def build(g: CaseGraph, shape: Any = (2, 3, 8), open: Any = (), T: str = "float32") -> None:
        array = (np.abs(g.numbers(*shape, dtype=T)) + np.array(1, T)).astype(T)
        g.use(g.put(operator, [g.data(shape, T, open=open, array=array)]), T)

    return build


INDICES = [
    Recipe(
        "GatherElements",
        _gather_elements,
        [
            *_AT,
            {"axis": 0},
            {"axis": 2},
            {"axis": -1},
            {"axis": None},
            {"shape": (3, 4), "axis": 1},
            {"shape": (2, 3, 2, 4)},
        ],
        since=11,
    ),
    Recipe(
        "GatherElements",
        _gather_elements_sizes,
        [
            *ways("at", "sized", "folded"),
            *ways("data", "folded", "init"),
            {"data": "folded", "T": "int64"},
            {"data": "init", "at": "folded"},
            {"data": "folded", "at": "sized"},
            {"T": "int64"},
            {"shape": (2, 3, 4)},
            {"open": (0,)},
        ],
        since=11,
        family="sizes",
    ),
    Recipe("Gather", _gather_grid, _GRID, since=11, family="grid"),
    Recipe(
        "GatherND",
        _gather_nd,
        [
            *_AT,
            {"at": "shape"},
            {"index": ((0, 1), (3, 2))},
            {"index": (1, 2)},
            {"index": ((0, 1, 4),)},
            {"shape": (4, 3)},
            {"shape": (4, 3, 2, 2)},
            {"shape": (4,)},
            {"index": (((1,),), ((3,),))},
            # A mask at a grid of positions, as newer exporters write it.
            {"shape": (4, 3), "index": np.array([[0, 1], [3, 2]]).reshape(2, 1, 1, 1, 2).tolist()},
            {"shape": (4, 3), "index": np.array([[0, 1], [3, 2]]).reshape(2, 1, 1, 1, 2).tolist(), "at": "folded"},
        ],
        since=11,
    ),
    Recipe(
        "ScatterElements",
        _scatter_elements,
        [
            *_INTO,
            {"at": "init"},
            {"axis": 1},
            {"axis": -1},
            {"axis": None},
            {"shape": (2, 3, 4)},
            {"axis": 1, "open": (0,)},
            {"axis": -1, "open": (0,)},
            {"shape": (2, 3, 4), "axis": 2, "open": (0, 1)},
        ],
        since=11,
    ),
    Recipe(
        "ScatterElements",
        _scatter_elements,
        [{"reduction": "add"}, {"reduction": "mul"}, {"reduction": "none"}],
        since=16,
        family="reduction",
    ),
    Recipe(
        "ScatterND",
        _scatter_nd,
        [
            *_INTO,
            {"at": "input"},
            {"at": "sized"},
            {"updates": "sized"},
            {"updates": "shape"},
            {"at": "shape"},
            {"at": "shape", "updates": "shape"},
            {"index": ((0, 1), (3, 2))},
            {"shape": (4, 3, 2)},
            {"shape": (4, 3, 2, 2), "index": ((0, 1), (3, 2))},
            {"shape": (4,)},
        ],
        since=11,
    ),
    Recipe("ScatterND", _scatter_nd, [{"reduction": "add"}, {"reduction": "none"}], since=16, family="reduction"),
    Recipe("Einsum", _einsum, _EINSUM, since=12),
    Recipe(
        "CumSum",
        _cumsum,
        [
            {"cast": True},
            {"cast": True, "to": "int32"},
            {"axis": 0},
            {"axis": 2},
            {"axis": -1},
            {"given": "node"},
            {"exclusive": 1},
            {"reverse": 1},
            {"T": "int64"},
            {"T": "int32"},
            {"shape": (3, 4)},
            *OPEN,
            {"exclusive": 0, "reverse": 0},
            {"shape": (6,), "axis": 0},
            {"shape": (2, 3, 2, 4)},
        ],
        since=11,
    ),
    Recipe(
        "Trilu",
        _trilu,
        [
            {"upper": 1},
            {"upper": None},
            {"k": 1},
            {"k": -1},
            {"k": None},
            {"given": "node"},
            {"data": "init"},
            {"data": "node"},
            {"T": "int64"},
            {"T": "bool"},
            {"shape": (2, 3, 4)},
            {"shape": (2, 2, 3, 4)},
            *OPEN[:2],
        ],
        since=14,
    ),
    Recipe("Trilu", _trilu_full, [{"how": "sized"}, {"upper": 0}], since=14, family="sizes"),
    Recipe("EyeLike", _eye, _EYE, since=9),
    Recipe(
        "OneHot",
        _one_hot,
        [
            {"axis": 0},
            {"axis": 1},
            {"axis": -1},
            {"depth": "node"},
            {"values": "node"},
            {"depth": "node", "values": "node"},
            {"shape": (3,)},
            {"T": "int64"},
            {"open": (0,)},
            {"shape": (3,), "T": "int64", "axis": -1},
        ],
        since=9,
    ),
    Recipe(
        "NonZero", _non_zero, [{"shape": (4,)}, {"shape": (2, 2, 3)}, {"T": "int64"}, {"T": "bool"}, *OPEN[:1]], since=9
    ),
    Recipe("LRN", _lrn, [{"size": 3}, {"alpha": None}, {"beta": None}, {"bias": None}, {"open": (0,)}]),
    Recipe("LpNormalization", _lp_norm, [{"axis": 1}, {"axis": None}, {"p": 1}, {"shape": (4, 6)}, *OPEN]),
    Recipe(
        "Mod", _remainder, [{"given": "node"}, {"given": "folded"}, {"other": (8,)}, *OPEN[:1]], since=10, family="rest"
    ),
    Recipe(
        "Mod",
        _remainder,
        [
            {"given": "node", "T": "int64", "fmod": 0},
            {"T": "int64", "fmod": None, "given": "folded"},
            {"T": "int64", "fmod": None},
        ],
        since=13,
        family="numbers",
    ),
    Recipe(
        "Mod",
        _remainder_of_cast,
        [{"to": "int32"}, {"fmod": 1}, {"added": True}, {"open": (0,)}],
        since=10,
        family="casts",
    ),
    Recipe(
        "DynamicQuantizeLinear",
        _dynamic_quantize,
        [{"shape": (4, 6)}, {"shape": (2, 3, 4, 5)}, {"open": (0,)}],
        since=11,
    ),
    *(
        Recipe(name, _unary(name), [*RANKS[:3], *OPEN[:1], *FLOATS[:1]])
        for name in ("Tan", "Atan", "Asinh", "Sinh", "Cosh")
    ),
]
