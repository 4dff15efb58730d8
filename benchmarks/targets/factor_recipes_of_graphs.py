"""How operators with graphs or sequences, and quantized ones, stand in models of exporters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case_graph import CaseGraph
from factor_recipes import OPEN, Recipe, changes, ways
from onnx import TensorProto, helper

# Graphs ---------------------------------------------------------------------------------------------------------------


def _if(g: CaseGraph, cond: str = "computed", shape: Any = (2, 3), other: Any = (2, 3), outputs: int = 1,
        captures: bool = True, T: str = "float32", open: bool = False) -> None:  # fmt: skip
    x = g.data(shape, T, open=(0,) if open else ())
    if cond in ("shape", "sized"):
        test = g.add("Equal", [g.given(2, cond, "int64"), g.constant(np.array(2))])
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
            # Beside data of an open size, a constant has the size 1 there.
            like = (1, *size[1:]) if open else size
            array = np.full(like, sign + number, T)
            value = helper.make_tensor(held, kind, like, array.tobytes(), raw=True)
            nodes.append(helper.make_node("Constant", [], [held], value=value))
            same = captures and tuple(size) == tuple(shape)
            nodes.append(helper.make_node("Mul", [x if same else held, held], [result]))
            # Exporters name the open sizes of each branch anew.
            declared = (f"{name}_size", *size[1:]) if open else size
            results.append(helper.make_tensor_value_info(result, kind, declared))
        return helper.make_graph(nodes, name, [], results)

    branches = {"then_branch": branch("then", shape, 2.0), "else_branch": branch("else", other, 3.0)}
    made = g.put("If", [test], outputs, **branches)
    # Of branches with other shapes, exporters declare no shape of the results.
    g.use([g.add("Reshape", [name, g.constant(np.array([-1]))]) for name in made] if other != shape else made, T)


_IF = changes(
    ways("cond", "init", "shape", "sized", "input"),
    [{"other": (4, 3)}, {"other": (6,)}, {"other": (1, 2, 3)}, {"outputs": 2}, {"captures": False}, {"T": "int64"}],
    [{"open": True}, {"open": True, "outputs": 2}],
)


def _loop(g: CaseGraph, count: str = "init", cond: str = "init", shape: Any = (2, 3), carried: int = 1,
          scanned: bool = False, captures: bool = False, unused: bool = False) -> None:  # fmt: skip
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
    kinds = "1" * (carried + scanned - unused) + "u" * unused
    g.use(g.put("Loop", [limit, going, *start], kinds, body=body))


_LOOP = changes(
    ways("count", "node", "shape", "input"),
    ways("cond", "node", "absent"),
    [{"shape": (4,)}, {"shape": ()}, {"carried": 2}, {"scanned": True}, {"captures": True}],
    [
        {"carried": 3},
        {"carried": 2, "unused": True},
        {"scanned": True, "unused": True},
        {"carried": 2, "scanned": True},
    ],
)


def _scan(g: CaseGraph, shape: Any = (5, 2, 3), carried: int = 1, scanned: int = 1, axis: int = 0,
          captures: bool = False, backwards: bool = False, open: Any = (), used: str = "") -> None:  # fmt: skip
    """A running sum, as recurrent layers are written out."""
    size = tuple(each for place, each in enumerate(shape) if place != axis)
    start = [g.data(size, open=[each - (each > axis) for each in open if each != axis]) for _ in range(carried)]
    rows = [g.data(shape, open=open) for _ in range(scanned)]
    extra = g.data(size) if captures else ""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * len(size)) for name in
             ("a0", "a1", "r0", "r1", "b0", "b1", "s")]  # fmt: skip
    named = {each.name: each for each in value}
    nodes = [helper.make_node("Mul", ["r0", extra or f"r{scanned - 1}"], ["m"])]
    for number in range(carried):
        nodes.append(helper.make_node("Add", [f"a{number}", "m"], [f"b{number}"]))
    nodes.append(helper.make_node("Tanh", ["b0" if carried else "m"], ["s"]))
    ins = [*(named[f"a{number}"] for number in range(carried)), *(named[f"r{number}"] for number in range(scanned))]
    body = helper.make_graph(nodes, "body", ins, [*(named[f"b{number}"] for number in range(carried)), named["s"]])
    held: dict[str, Any] = {"scan_input_axes": [axis] * scanned, "scan_output_axes": [axis]} if axis else {}
    if backwards:
        held |= {"scan_input_directions": [1] * scanned, "scan_output_directions": [1]}
    kinds = used or "1" * (carried + 1)
    g.use(g.put("Scan", [*start, *rows], kinds, body=body, num_scan_inputs=scanned, **held))


_SCAN = changes(
    [{"carried": 2}, {"scanned": 2}, {"axis": 1}, {"captures": True}, {"backwards": True}, {"shape": (5, 3)}],
    [{"carried": 0}, {"used": "u1"}, {"carried": 2, "used": "uu1"}],
    [{"shape": (5, 2, 2, 3)}, {"scanned": 2, "carried": 2}],
)

# Sequences ------------------------------------------------------------------------------------------------------------


def _sequence(g: CaseGraph, count: int, shape: Any, open: Any = ()) -> str:
    if not count:
        return g.add("SequenceEmpty", [])
    return g.add("SequenceConstruct", [g.data(shape, open=open) for _ in range(count)])


def _sequence_insert(g: CaseGraph, count: int = 2, shape: Any = (2, 3), tensor: str = "data", at: str = "absent",
                     open: Any = (), T: str = "int64") -> None:  # fmt: skip
    held = _sequence(g, count, shape, open)
    more = g.data(shape, open=open) if tensor == "data" else g.given(g.numbers(*shape), tensor)
    (made,) = g.put("SequenceInsert", [held, more, g.given(0, at, T)])
    g.use([g.add("ConcatFromSequence", [made], axis=0)])


_SEQUENCE_INSERT = changes(
    ways("at", "init", "node"), [{"at": "init", "T": "int32"}, {"count": 0}, {"tensor": "init"}],
    [{"open": (0,)}, {"open": (1,)}, {"count": 0, "open": (0,)}],
)  # fmt: skip


def _sequence_length(g: CaseGraph, count: int = 2, shape: Any = (2, 3), open: Any = ()) -> None:
    held = _sequence(g, count, shape, open)
    g.use_number(g.put("SequenceLength", [held])[0], "int64")
    g.use([g.add("ConcatFromSequence", [held], axis=0)])


def _split_to_sequence(g: CaseGraph, shape: Any = (4, 6), split: Any = 2, given: str = "init", axis: Any = 0,
                       keepdims: Any = None, open: Any = ()) -> None:  # fmt: skip
    lengths = "" if split is None else g.given(split, given, "int64")
    (made,) = g.put("SplitToSequence", [g.data(shape, open=open), lengths], axis=axis, keepdims=keepdims)
    g.use([g.add("SequenceAt", [made, g.given(each, "init", "int64")]) for each in (0, 1)])


_SPLIT_TO_SEQUENCE = changes(
    [{"split": (1, 3)}, {"split": None}, {"split": None, "keepdims": 0}, {"split": 3}, {"keepdims": 1}],
    ({"split": split, "given": how} for split in (2, (1, 3)) for how in ("node", "folded", "sized", "shape")),
    [{"axis": 1}, {"axis": -1}, {"axis": None}, {"axis": 1, "split": (2, 4)}, {"split": (2, 2)}],
    [{"open": (0,)}, {"open": (1,)}, {"open": (0,), "split": (2, 2)}, {"open": (0,), "axis": 1}],
    [{"axis": 1, "open": (0,), "split": (2, 4)}, {"shape": (4,)}, {"shape": (4, 3, 2)}, {"axis": None, "open": (1,)}],
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


GRAPHS = [
    Recipe("If", _if, _IF),
    Recipe("Loop", _loop, _LOOP),
    Recipe("Scan", _scan, _SCAN, since=9),
    Recipe("SequenceInsert", _sequence_insert, _SEQUENCE_INSERT, since=11),
    Recipe("SequenceLength", _sequence_length, [{"open": (0,)}], since=11),
    Recipe("SplitToSequence", _split_to_sequence, _SPLIT_TO_SEQUENCE, since=11),
    Recipe("QuantizeLinear", _quantize("QuantizeLinear"), _QUANTIZE, since=10),
    Recipe("DequantizeLinear", _quantize("DequantizeLinear"), [*_QUANTIZE, {"given": "weights"}], since=10),
    Recipe("ConvInteger", _conv_integer, _INTEGERS, since=10),
    Recipe("MatMulInteger", _matmul_integer, [*_INTEGERS, {"a": (3, 4)}], since=10),
]
