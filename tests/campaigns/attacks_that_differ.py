"""Pairs of models that may differ, for `attacks.py`: one thing is changed in the second one."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, count
from typing import Any

import numpy as np
import onnx
from attacks_pairs import PLACES, Array, Base, Pair, bases, changed, first_free, in_places, with_node
from onnx import helper

RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
BODIES = [name for name in PLACES if name.startswith("in ")]
# Operators that take the same inputs, and are easily taken for each other.
NEAR = """
    Greater/GreaterOrEqual Less/LessOrEqual Greater/Less Max/Min Floor/Round Ceil/Round Floor/Ceil And/Or Or/Xor
    Relu/Elu Elu/Selu Elu/Celu Sigmoid/HardSigmoid Erf/Tanh Softplus/Relu Softsign/Tanh Softmax/LogSoftmax
    Softmax/Hardmax ReduceMax/ReduceMean ReduceSum/ReduceMean ReduceL1/ReduceSum ReduceL2/ReduceSumSquare
    ReduceLogSum/ReduceLogSumExp ArgMax/ArgMin MaxPool/AveragePool GlobalMaxPool/GlobalAveragePool Add/Sub Mul/Div
    Abs/Relu Sin/Asin Cosh/Exp Gelu/Mish Mish/HardSwish InstanceNormalization/LpNormalization BitwiseAnd/BitwiseOr
    Sum/Mean LeakyRelu/ThresholdedRelu IsNaN/IsInf
"""


def different_pairs() -> Iterator[Pair]:
    """Yield all pairs."""
    return chain(_attributes(), _optional_inputs(), _elements(), _near_operators(), _limits(), _ends(), _tables())


def _places(text: str, more: int = 1) -> Sequence[str]:
    """Return where a pair stands: alone or behind an Identity, and in so many bodies, which take turns."""
    turn = zlib.crc32(text.encode())
    first = ("alone", "behind Identity")[turn % 2]
    return [first, *(BODIES[(turn + step) % len(BODIES)] for step in range(more))]


def _attributes() -> Iterator[Pair]:
    for base in map(first_free, bases()):
        for number, attribute in enumerate(base.node.attribute):
            for how, other in _other_values(base.node.op_type, attribute):
                node = changed(base.node)
                del node.attribute[number]
                node.attribute.extend([] if other is None else [other])
                what = f"{base.name} {attribute.name} {how}"
                yield from in_places("attribute", what, base, with_node(base, node), _places(what))


def _other_values(op_type: str, attribute: onnx.AttributeProto) -> Iterator[tuple[str, onnx.AttributeProto | None]]:
    yield "dropped", None
    held = helper.get_attribute_value(attribute)
    others: list[Any] = []
    if attribute.type == onnx.AttributeProto.INT:
        others = [1 - held if held in (0, 1) else held + 1]
    elif attribute.type == onnx.AttributeProto.FLOAT:
        others = [held * 1.5 + 0.25]
    elif attribute.type == onnx.AttributeProto.INTS and len(held):
        others = [[held[0] + 1, *held[1:]], list(reversed(held))]
    elif attribute.type == onnx.AttributeProto.STRING:
        others = sorted(_texts()[op_type, attribute.name] - {held})
    elif attribute.type == onnx.AttributeProto.STRINGS and len(held):
        others = [[b"Relu", *held[1:]], [*held[:-1], b"Sigmoid"]]
    for other in others:
        if other != held:
            shown = other.decode() if isinstance(other, bytes) else other
            yield f"→ {shown}", helper.make_attribute(attribute.name, other)


@cache
def _texts() -> Mapping[tuple[str, str], set[bytes]]:
    """Return the texts that each attribute has anywhere in onnx's node tests."""
    found: defaultdict[tuple[str, str], set[bytes]] = defaultdict(set)
    for base in bases():
        for attribute in base.node.attribute:
            if attribute.type == onnx.AttributeProto.STRING:
                found[base.node.op_type, attribute.name].add(attribute.s)
    return found


def _optional_inputs() -> Iterator[Pair]:
    for base in map(first_free, bases()):
        for position in range(1, len(base.node.input)):
            name = base.node.input[position]
            if not name or (base.node.op_type in RECURRENT and not np.any(base.constants.get(name, 1))):
                # Zeros are what a recurrent operator takes for an input that is left out.
                continue
            node = changed(base.node)
            node.input[position] = ""
            while node.input and not node.input[-1]:
                del node.input[-1]
            what = f"{base.name} without input {position}"
            yield from in_places("optional input", what, base, with_node(base, node), _places(what))


def _elements() -> Iterator[Pair]:
    for base in map(first_free, bases()):
        for name, array in base.constants.items():
            if not array.size:
                continue
            rng = np.random.default_rng(zlib.crc32(f"{base.name} {name}".encode()))
            place = int(rng.integers(array.size))
            what = f"{base.name} {name}[{place}]"
            other = base.constants | {name: _with_another(array, place)}
            after = Base(base.name, base.node, base.opset, base.free, other)
            yield from in_places("element", what, base, after, _places(what))


def _with_another(array: Array, place: int) -> Array:
    other = array.copy()
    flat = other.reshape(-1)
    if array.dtype.kind == "b":
        flat[place] = not flat[place]
    elif array.dtype.kind == "f":
        flat[place] = flat[place] * 1.5 + 0.25
    else:
        flat[place] = flat[place] - 1 if flat[place] > 0 else flat[place] + 1
    return other


def _near_operators() -> Iterator[Pair]:
    near = defaultdict(list)
    for one, other in (names.split("/") for names in NEAR.split()):
        near[one].append(other)
        near[other].append(one)
    for base in bases():
        for op_type in near[base.node.op_type]:
            node = changed(base.node)
            node.op_type = op_type
            what = f"{base.name} → {op_type}"
            yield from in_places("operator", what, base, with_node(base, node), _places(what, 2))


# Comparisons with constants, ends of types, tables -------------------------------------------------------------------


def _limits() -> Iterator[Pair]:
    """Yield comparisons with many limits, of which one differs, or that differ at a tie alone."""
    rng = np.random.default_rng(7)
    for size in (1, 16, 65, 100, 3000):
        numbers = np.round(rng.uniform(-90, 90, size) * 2) / 2
        for dtype in ("float32", "int64", "int32", "float64", "float16"):
            limits = numbers.astype(dtype)
            x = np.zeros((3, size), dtype)
            x[1] = limits
            base = Base(
                f"{size} limits {dtype}", helper.make_node("Greater", ["x", "k"], ["y"]), 18, {"x": x}, {"k": limits}
            )
            for one, other in (("Greater", "GreaterOrEqual"), ("Less", "LessOrEqual")):
                sides = [with_node(base, helper.make_node(op_type, ["x", "k"], ["y"])) for op_type in (one, other)]
                yield from _fed("limit", f"{one} or {other}, {base.name}", *sides, x)
            place = int(rng.integers(size))
            for op_type in ("Equal", "Min", "Max", "Greater"):
                moved = limits.copy()
                moved[place] += 1
                x_moved = np.repeat(moved[None], 3, 0).astype(dtype)
                x_moved[0] = limits
                if op_type == "Max":
                    x_moved[1] = limits.min() - 1
                node = helper.make_node(op_type, ["x", "k"], ["y"])
                sides = [Base("", node, 18, {"x": x}, {"k": held}) for held in (limits, moved)]
                yield from _fed("limit", f"{op_type}, one of {base.name}", *sides, x_moved)


def _fed(kind: str, what: str, before: Base, after: Base, x: Array) -> Iterator[Pair]:
    for pair in in_places(kind, what, before, after, _places(what, 2)):
        yield Pair(pair.name, pair.before, pair.after, True, {"x": x})


def _ends() -> Iterator[Pair]:
    """Yield chains that differ where a number leaves a type, or is none."""
    f32, i32, i64, f16 = np.float32, np.int32, np.int64, np.float16
    to = {i32: 6, i64: 7, f16: 10, f32: 1, np.int8: 3, np.uint8: 2, np.int16: 5, np.float64: 11}
    n = helper.make_node
    x_float, x_whole = np.array([[1.5, 1e10, -3e9, 70000.0]], f32), np.array([[1, 2**50, -(2**40), 70000]], i64)
    cases: list[tuple[str, Array, Sequence[onnx.NodeProto], Sequence[onnx.NodeProto], Mapping[str, Array]]] = []
    for one, other in ((i32, i64), (np.int16, i32), (np.uint8, i32), (np.int8, i64)):
        chains = [[n("Cast", ["x"], ["q"], to=to[each]), n("Cast", ["q"], ["y"], to=7)] for each in (one, other)]
        cases.append((f"int64 through {one.__name__} or {other.__name__}", x_whole, *chains, {}))
    halves = [[n("Cast", ["x"], ["q"], to=to[each]), n("Cast", ["q"], ["y"], to=1)] for each in (f16, np.float64)]
    cases.append(("float32 through float16 or float64", x_float, *halves, {}))
    for exponent in (20, 31, 33, 40, 52):
        cap = {"k": np.array(2**exponent, i64)}
        whole = np.array([[0, 2**exponent + 5, 2**exponent - 5, -(2**exponent) - 5]], i64)
        cases.append(
            (
                f"with and without an end at 2^{exponent}",
                whole,
                [n("Identity", ["x"], ["y"])],
                [n("Min", ["x", "k"], ["y"])],
                cap,
            )
        )
        low = {"k": np.array(-(2**exponent), i64)}
        cases.append(
            (
                f"with and without an end at -2^{exponent}",
                whole,
                [n("Identity", ["x"], ["y"])],
                [n("Max", ["x", "k"], ["y"])],
                low,
            )
        )
    nan = np.array([[np.nan, 1.0, -np.inf, np.inf]], f32)
    one = {"k": np.array(1.0, f32)}
    pick = [n("Greater", ["x", "k"], ["g"]), n("Where", ["g", "x", "k"], ["y"])]
    cases.append(("Max, and Greater with Where", nan, [n("Max", ["x", "k"], ["y"])], pick, one))
    cases.append(
        (
            "x / x and 1",
            np.array([[0.0, 1.0, 2.0, np.inf]], f32),
            [n("Div", ["x", "x"], ["y"])],
            [n("Sub", ["x", "x"], ["z"]), n("Add", ["z", "k"], ["y"])],
            one,
        )
    )
    cases.append(
        (
            "x * 0 and 0",
            nan,
            [n("Mul", ["x", "k"], ["y"])],
            [n("Abs", ["k"], ["z"]), n("Expand", ["z", "s"], ["y"])],
            {"k": np.array(0.0, f32), "s": np.array([1, 4])},
        )
    )
    wraps = np.array([[2**30, 2**31 - 1, -(2**31), 7]], i32)
    wide = [
        n("Cast", ["x"], ["a"], to=7),
        n("Add", ["a", "a"], ["b"]),
        n("Clip", ["b", "lo", "hi"], ["c"]),
        n("Cast", ["c"], ["y"], to=6),
    ]
    cases.append(
        (
            "sums that wrap and that end",
            wraps,
            [n("Add", ["x", "x"], ["y"])],
            wide,
            {"lo": np.array(-(2**31), i64), "hi": np.array(2**31 - 1, i64)},
        )
    )
    cases.append(
        (
            "rounding of ties",
            np.array([[0.5, 1.5, 2.5, -0.5]], f32),
            [n("Round", ["x"], ["y"])],
            [n("Add", ["x", "k"], ["z"]), n("Floor", ["z"], ["y"])],
            {"k": np.array(0.5, f32)},
        )
    )
    cases.append(
        (
            "quotients of negative numbers",
            np.array([[-7, 7, -8, 1]], i64),
            [n("Div", ["x", "k"], ["y"])],
            [
                n("Cast", ["x"], ["a"], to=11),
                n("Cast", ["k"], ["b"], to=11),
                n("Div", ["a", "b"], ["c"]),
                n("Floor", ["c"], ["d"]),
                n("Cast", ["d"], ["y"], to=7),
            ],
            {"k": np.array(2, i64)},
        )
    )
    for name, x, before, after, constants in cases:
        for place in ("main", *BODIES):
            yield Pair(
                f"ends/{name}/{place}",
                _chain(x, before, constants, place),
                _chain(x, after, constants, place),
                True,
                {"x": x},
            )


def _chain(x: Array, nodes: Sequence[onnx.NodeProto], constants: Mapping[str, Array], place: str) -> onnx.ModelProto:
    """Return a model of a chain of nodes from x to y, in the main graph or in a body."""
    function = helper.make_function(
        "chains", "Chain", ["x", *constants], ["y"], list(nodes), [helper.make_opsetid("", 18)]
    )
    y_type = onnx.TensorProto.FLOAT if x.dtype.kind == "f" else onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
    if place in ("main", "in a function"):
        call = helper.make_node("Chain", ["x", *constants], ["y"], domain="chains")
        model = _graph_model(x, [call], y_type, constants)
        model.opset_import.append(helper.make_opsetid("chains", 1))
        model.functions.append(function)
        return model if place == "in a function" else onnx.inliner.inline_local_functions(model)
    names = count()
    inner = [
        helper.make_node(node.op_type, list(node.input), list(node.output), f"inner{next(names)}") for node in nodes
    ]
    for node, copy in zip(nodes, inner, strict=True):
        copy.attribute.extend(node.attribute)
        copy.output[:] = [f"{name}.inner" for name in node.output]
        copy.input[:] = [name if name in ("x", *constants) else f"{name}.inner" for name in node.input]
    result = helper.make_tensor_value_info("y.inner", y_type, None)
    boolean, whole = onnx.TensorProto.BOOL, onnx.TensorProto.INT64
    more = dict(constants)
    if place == "in an If":
        other = helper.make_graph(
            [helper.make_node("Cast", ["x"], ["y.else"], to=y_type)],
            "else",
            [],
            [helper.make_tensor_value_info("y.else", y_type, None)],
        )
        then = helper.make_graph(inner, "then", [], [result])
        nodes_out = [
            helper.make_node("Size", ["x"], ["size"]),
            helper.make_node("Greater", ["size", "least"], ["c"]),
            helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        ]
        more["least"] = np.array(2, np.int64)
    elif place == "in a Loop":
        inputs = [helper.make_tensor_value_info("turn", whole, []), helper.make_tensor_value_info("going", boolean, [])]
        again = helper.make_node("Identity", ["going"], ["going.on"])
        going = helper.make_tensor_value_info("going.on", boolean, [])
        body = helper.make_graph([again, *inner], "body", inputs, [going, result])
        nodes_out = [helper.make_node("Loop", ["turns", "always"], ["y"], body=body)]
        more |= {"turns": np.array(2, np.int64), "always": np.array(True)}
    else:
        item = helper.make_tensor_value_info("item", onnx.TensorProto.FLOAT, [])
        body = helper.make_graph(inner, "body", [item], [result])
        nodes_out = [helper.make_node("Scan", ["items"], ["y"], body=body, num_scan_inputs=1)]
        more["items"] = np.array([1.0, 2.0], np.float32)
    return _graph_model(x, nodes_out, y_type, more)


def _graph_model(
    x: Array, nodes: Sequence[onnx.NodeProto], y_type: int, constants: Mapping[str, Array], shape: Any = None
) -> onnx.ModelProto:
    dims = list(x.shape) if shape is None else shape
    x_type = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
    tensors = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", x_type, dims)],
        [helper.make_tensor_value_info("y", y_type, None)],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _tables() -> Iterator[Pair]:
    """Yield tables of which a row differs that only some sizes, branches or numbers reach."""
    n, f32 = helper.make_node, np.float32
    size = [n("Shape", ["x"], ["s"], start=1, end=2)]
    steps = [*size, n("Squeeze", ["s"], ["n"]), n("Range", ["zero", "n", "one"], ["r"])]
    scalars = {"zero": np.array(0), "one": np.array(1)}
    lists = {"from": np.array([0]), "to": np.array([1])}
    free: Any = ["b", "n"]
    for rows in (24, 100, 128, 512):
        table = np.arange(rows, dtype=f32)
        for row in {rows - 1, rows - 8, rows // 2 + 3}:
            other = table.copy()
            other[row] = -5
            x = np.ones((1, rows), f32)
            by_slice = [*size, n("Slice", ["t", "from", "s"], ["p"]), n("Add", ["x", "p"], ["y"])]
            by_range = [*steps, n("Gather", ["t", "r"], ["p"]), n("Add", ["x", "p"], ["y"])]
            by_most = [
                *steps,
                n("Min", ["r", "most"], ["i"]),
                n("Gather", ["u", "i"], ["p"]),
                n("Add", ["x", "p"], ["y"]),
            ]
            by_cast = [
                n("Abs", ["x"], ["a"]),
                n("Cast", ["a"], ["i"], to=7),
                n("Min", ["i", "most"], ["j"]),
                n("Gather", ["t", "j"], ["y"]),
            ]
            both = [{"t": each, **scalars, **lists, "u": table, "most": np.array(rows - 1)} for each in (table, other)]
            for how, nodes in (("Slice", by_slice), ("Gather of a Range", by_range)):
                models = [_graph_model(x, nodes, 1, held, free) for held in both]
                yield Pair(f"table/{how}, row {row} of {rows}", *models, True, {"x": x})
            models = [
                _graph_model(x, by_most, 1, {**both[0], "most": np.array(most)}, free) for most in (rows - 1, row - 1)
            ]
            yield Pair(f"table/positions of at most {rows - 1} or {row - 1}", *models, True, {"x": x})
            models = [_graph_model(x, by_cast, 1, held, free) for held in both]
            yield Pair(f"table/by a Cast, row {row} of {rows}", *models, True, {"x": np.full((1, 3), row + 0.5, f32)})
            square = np.tril(np.ones((rows, rows), f32))
            hole = square.copy()
            hole[row, row // 2] = 0
            masked = [
                *size,
                n("Slice", ["m", "from", "s", "from"], ["p"]),
                n("Slice", ["p", "from", "s", "to"], ["q"]),
                n("MatMul", ["x", "q"], ["y"]),
            ]
            models = [_graph_model(x, masked, 1, {"m": each, **lists}, free) for each in (square, hole)]
            yield Pair(f"table/mask, [{row}, {row // 2}] of {rows}", *models, True, {"x": x})
        yield from _branches(rows)


def _branches(rows: int) -> Iterator[Pair]:
    """Yield weights of a branch that only many items reach."""
    x = np.ones((rows + 10, 4), np.float32)

    def model(weight: Array) -> onnx.ModelProto:
        value = helper.make_tensor_value_info
        then = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["t"])],
            "then",
            [],
            [value("t", 1, None)],
            [onnx.numpy_helper.from_array(weight, "w")],
        )
        other = helper.make_graph([helper.make_node("Relu", ["x"], ["e"])], "else", [], [value("e", 1, None)])
        nodes = [
            helper.make_node("Shape", ["x"], ["s"], end=1),
            helper.make_node("Greater", ["s", "k"], ["c"]),
            helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        ]
        return _graph_model(x, nodes, 1, {"k": np.array([rows])}, ["n", 4])

    eye = np.eye(4, dtype=np.float32)
    yield Pair(f"table/branch for more than {rows} items", model(eye), model(2 * eye), True, {"x": x})
