"""IR files of one VariadicSplit, written without OpenVINO."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from splitgraph.formats import OpenVINOModel, load_ir


def layer(number: int, name: str, kind: str, data: str, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """One layer; inputs, outputs: the text of their ports."""
    sides = [f"<{side}>{''.join(ports)}</{side}>" for side, ports in (("input", inputs), ("output", outputs)) if ports]
    return f'<layer id="{number}" name="{name}" type="{kind}" version="opset1">{data}{"".join(sides)}</layer>'


def port(number: int, precision: str, dims: Sequence[int], names: str = "") -> str:
    named = f' names="{names}"' if names else ""
    inner = "".join(f"<dim>{dim}</dim>" for dim in dims)
    return f'<port id="{number}" precision="{precision}"{named}>{inner}</port>'


def variadic_split(
    folder: Path,
    lengths: Sequence[int] | None,
    *,
    shape: str = "2,6",
    axis: int = 1,
    dtype: str = "f32",
    names: Sequence[str] = ("a", "b"),
    name: str = "x",
    order: Sequence[int] | None = None,
    outputs: int = 2,
) -> OpenVINOModel:
    """x split along a constant axis by constant lengths, or by an input `lengths` without any.

    names: of the outputs' tensors. order: in which the Results come.
    """
    precision = {"f32": "FP32", "string": "STRING"}.get(dtype, dtype.upper())
    dims = [-1] * len(shape.split(","))
    ports = [port(0, precision, dims), port(1, "I64", ()), port(2, "I64", [outputs])]
    given = [port(3 + index, precision, dims, names[index]) for index in range(outputs)]
    count = f'<data shape="{outputs}" element_type="i64" offset="8" size="{8 * outputs}"/>'
    held = [
        layer(
            0,
            name,
            "Parameter",
            f'<data shape="{shape}" element_type="{dtype}"/>',
            [],
            [port(0, precision, dims, name)],
        ),
        layer(1, "axis", "Const", '<data shape="" element_type="i64" offset="0" size="8"/>', [], [port(0, "I64", ())]),
        layer(2, "lengths", "Const", count, [], [port(0, "I64", [outputs])])
        if lengths is not None
        else layer(
            2,
            "lengths",
            "Parameter",
            f'<data shape="{outputs}" element_type="i64"/>',
            [],
            [port(0, "I64", [outputs], "lengths")],
        ),
        layer(3, "split", "VariadicSplit", "", ports, given),
    ]
    edges = [(0, 0, 3, 0), (1, 0, 3, 1), (2, 0, 3, 2)]
    for place, index in enumerate(range(outputs) if order is None else order):
        held.append(layer(4 + place, f"{names[index]}/sink_port_0", "Result", "", [port(0, precision, dims)], []))
        edges.append((3, 3 + index, 4 + place, 0))
    wires = "".join(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in edges)
    net = f'<net name="m" version="11"><layers>{"".join(held)}</layers><edges>{wires}</edges></net>'
    path = folder / f"{len(list(folder.iterdir()))}.xml"
    path.write_text(f'<?xml version="1.0"?>\n{net}', "utf-8")
    path.with_suffix(".bin").write_bytes(np.array([axis, *(lengths or ())], "<i8").tobytes())
    return load_ir(path)
