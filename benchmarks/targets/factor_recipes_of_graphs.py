"""How operators with graphs, and quantized ones, stand in models of exporters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case_graph import CaseGraph
from factor_recipes import OPEN, Recipe, changes, ways
from onnx import TensorProto, helper

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


GRAPHS = [
    Recipe("If", _if, _IF),
    Recipe("Loop", _loop, _LOOP),
    Recipe("QuantizeLinear", _quantize("QuantizeLinear"), _QUANTIZE, since=10),
    Recipe("DequantizeLinear", _quantize("DequantizeLinear"), [*_QUANTIZE, {"given": "weights"}], since=10),
    Recipe("ConvInteger", _conv_integer, _INTEGERS, since=10),
    Recipe("MatMulInteger", _matmul_integer, [*_INTEGERS, {"a": (3, 4)}], since=10),
]
